"""The OpenCL images of memory objects: allocation, checks, reading and writing.

An image with rows and columns is 2D, with layers an array of such images; one line of pixels is an
image1d_buffer over a buffer (see `views`). Instead of an array users may give a 3D image. One
component is of order R, two are RG, four RGBA. The components are of `CHANNELS`, the first of them
where the library allocates. Rows of an image may have a pitch that the host cannot choose, so its
pixels are copied to an array and back instead of being mapped.
"""

from __future__ import annotations

from math import prod
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from ..errors import DeviceError, Unsupported, expect
from ..opencl import named_errors, opencl
from ..tensors import images
from ..tensors.desc import MemoryDesc
from ..tensors.images import LINE, PICTURES, PLANE, STACK
from .engine import Engine

if TYPE_CHECKING:
    import pyopencl

_PROBE = """\
__kernel void probe(__read_only KIND a, __write_only KIND b, __global float *seen, const float one)
{
    vstore4(rint(convert_float4(READ(a, FROM)) * one), 0, seen);
    WRITE(b, TO, MADE((float4)(5.0f, 6.0f, 7.0f, 8.0f) / one));
}
"""
_SAMPLER = """\
__constant sampler_t exact = CLK_NORMALIZED_COORDS_FALSE | CLK_ADDRESS_NONE | CLK_FILTER_NEAREST;
"""

CHANNELS = {
    "f32": ("FLOAT",),
    "f16": ("HALF_FLOAT",),
    "s32": ("SIGNED_INT32",),
    "u8": ("UNSIGNED_INT8", "UNORM_INT8"),
    "s8": ("SIGNED_INT8", "SNORM_INT8"),
}
"""OpenCL's channel types for an element type. SNORM_INT8 cannot say -128: it is read as -127."""
_ORDERS = {1: "R", 2: "RG", 4: "RGBA"}
Region = tuple[int, int, int]
"""Width, height and layers."""
_KINDS = {LINE: "IMAGE1D_BUFFER", PLANE: "IMAGE2D", STACK: "IMAGE2D_ARRAY"}
_TYPES = {PLANE: "image2d_t", STACK: "image2d_array_t"}
_COORDINATES = {PLANE: "(int2)(1, 0)", STACK: "(int4)(1, 0, 0, 0)"}


def allocated(engine: Engine, desc: MemoryDesc) -> pyopencl.Image:
    """A new image for a descriptor that fits, all zero. Raises `DeviceError`."""
    cl = opencl()
    with named_errors(f"allocating {_shape_text(desc)} for", desc):
        image = made(engine.context, desc, region_of(desc))
        zero = np.zeros(4, np.int32 if _function(desc) else np.float32)
        start, region = (0, 0, 0), region_of(desc)
        cl.enqueue_fill_image(engine.tracked_queue, image, zero, start, region).wait()
    return image


def made(
    context: pyopencl.Context, desc: MemoryDesc, region: Region, over: tuple[Any, int] = (None, 0)
) -> pyopencl.Image:
    """An image of the kind that a descriptor needs, of any size.

    It lies ``over`` a buffer whose rows are so many bytes apart. Raises OpenCL's errors.
    """
    cl, axes = opencl(), axes_of(desc)
    wanted = cl.ImageDescriptor()
    width, height, layers = region
    wanted.image_type = getattr(cl.mem_object_type, _KINDS[axes])
    wanted.shape = {LINE: (width,), PLANE: (width, height), STACK: (width, height, 1)}[axes]
    if axes == STACK:
        wanted.array_size = layers
    wanted.num_mip_levels = wanted.num_samples = 0
    wanted.buffer, pitch = over
    wanted.pitches = (pitch, 0)
    return cl.Image(  # type: ignore[no-any-return]
        context, cl.mem_flags.READ_WRITE, _pixel(desc), desc=wanted
    )


def misfit(engine: Engine, desc: MemoryDesc) -> str:
    """Why a device has no such image; empty where it has, and for buffers."""
    if not desc.format.image or not desc.nelems:
        return ""
    if reason := images.refusal(desc):
        return reason
    try:
        check_fits(engine, desc)
    except DeviceError as error:
        return str(error)
    return ""


def check_fits(engine: Engine, desc: MemoryDesc) -> None:
    """Raise `DeviceError` where a device has no images, none with such pixels, or none so large.

    Before the driver is asked: NVIDIA's makes an image that is too large, then breaks.
    """
    cl, device, axes = opencl(), engine.device, axes_of(desc)
    if not engine.traits.has_images:
        raise DeviceError(f"{device.name} has no image support: reorder to a format in a buffer")
    access, kind = cl.mem_flags.READ_WRITE, getattr(cl.mem_object_type, _KINDS[axes])
    if _pixel(desc) not in cl.get_supported_image_formats(engine.context, access, kind):
        raise DeviceError(
            f"{device.name} has no images with pixels of {_pixel(desc)}, which {desc} needs: take "
            f"a format in a buffer instead",
            name="IMAGE_FORMAT_NOT_SUPPORTED",
        )
    plane = device.image2d_max_width, device.image2d_max_height, device.image_max_array_size
    most = (device.image_max_buffer_size,) if axes == LINE else plane[: axes - 1]
    if any(n > limit for n, limit in zip(region_of(desc), most, strict=False)):
        raise DeviceError(
            f"{device.name.strip()} does not have {_shape_text(desc)}, which {desc} needs, but of "
            f"{' x '.join(map(str, most))} pixels at most: take a format in a buffer instead, such "
            f"as {desc.buffer_twin.format}",
            name="INVALID_IMAGE_SIZE",
        )


def check_pixels(engine: Engine, desc: MemoryDesc) -> None:
    """Raise `Unsupported` where kernels read or write other pixels than the host.

    PoCL 3.1 lists images of one HALF_FLOAT channel, but its image functions access wrong pixels.
    Raises `DeviceError`, too.
    """
    with named_errors("trying out pixels of", desc):
        right = _pixels_agree(engine, desc)
    if not right:
        other = "take f32, or " if desc.dtype.name == "f16" else ""
        raise Unsupported(
            "IMAGE",
            f"the OpenCL driver of {engine.device.name} reads or writes wrong values in pixels of "
            f"{_pixel(desc)}, which {desc} has: {other}cf.pack on the host",
        )


def _pixels_agree(engine: Engine, desc: MemoryDesc) -> bool:
    """One pixel from the host to a kernel, and one from a kernel to the host."""
    cl, queue = opencl(), engine.tracked_queue
    channels = _channels(desc)
    flags, region = cl.mem_flags.READ_WRITE, (2, 1, 1)
    source, written = (made(engine.context, desc, region) for _ in range(2))
    host = np.arange(1, 2 * channels + 1).astype(desc.dtype.numpy)
    seen, back = np.zeros(4, np.float32), np.zeros_like(host)
    buffer = cl.Buffer(engine.context, flags, seen.nbytes)
    write(queue, source, desc, host, region)
    write(queue, written, desc, back, region)
    one = np.float32({"UNORM_INT8": 255, "SNORM_INT8": 127}.get(_channel(desc), 1))
    engine.kernel(_probe(desc), "probe")(queue, (1,), (1,), source, written, buffer, one)
    cl.enqueue_copy(queue, seen, buffer)
    back = read(queue, written, desc, region=region).view(back.dtype)
    wanted = np.array([0] * channels + [5, 6, 7, 8][:channels])
    return bool((seen[:channels] == host[channels:]).all() and (back == wanted).all())


def _probe(desc: MemoryDesc) -> str:
    """A kernel that reads a pixel and writes another one."""
    axes, function = axes_of(desc), _function(desc)
    value = {"i": "convert_int4", "ui": "convert_uint4", "": ""}[function]
    macros = {
        "KIND": _TYPES[axes], "READ": f"read_image{function or 'f'}",
        "FROM": f"exact, {_COORDINATES[axes]}", "TO": _COORDINATES[axes],
        "WRITE": f"write_image{function or 'f'}", "MADE": value,
    }  # fmt: skip
    lines = "".join(f"#define {name} {text}\n" for name, text in macros.items())
    return _SAMPLER + lines + _PROBE


def _function(desc: MemoryDesc) -> str:
    """Which image functions read the pixels that the library makes: i, ui, empty for f."""
    return {"SIGNED_INT8": "i", "SIGNED_INT32": "i", "UNSIGNED_INT8": "ui"}.get(_channel(desc), "")


def check(image: Any, desc: MemoryDesc) -> None:
    """Raise unless this is an image of the shape and pixels of the descriptor."""
    cl = opencl()
    expect(image, cl.Image, "buffer")
    kinds, kind, is_3d = cl.mem_object_type, _KINDS[axes_of(desc)], is_volume(image)
    if image.type != getattr(kinds, kind) and not (is_3d and axes_of(desc) == STACK):
        got = kinds.to_string(image.type, "type %d")
        raise DeviceError(f"the image is {got}, {desc} needs {kind}")
    count = axes_of(desc) - 1
    size = (image.width, image.height, image.depth if is_3d else image.array_size)[:count]
    if size != region_of(desc)[:count]:
        text = " x ".join(map(str, size))
        raise DeviceError(f"the image has {text} pixels, {desc} needs {_shape_text(desc)}")
    channels = CHANNELS[desc.dtype.name]
    # Kernels ask an image what its components are, but PoCL 3.1 cannot ask an image1d_buffer.
    allowed = [_pixel(desc, c) for c in (channels[:1] if axes_of(desc) == LINE else channels)]
    if image.format not in allowed:
        needed = " or ".join(map(str, allowed))
        raise DeviceError(f"the image has pixels of {image.format}, {desc} needs {needed}")


def is_volume(image: pyopencl.Image) -> bool:
    """Whether it is a 3D image, for which kernels of an array of images are not made."""
    return bool(image.type == opencl().mem_object_type.IMAGE3D)


def read(
    queue: pyopencl.CommandQueue, image: Any, desc: MemoryDesc,
    waits: list[pyopencl.Event] | None = None, region: Region | None = None,
) -> NDArray[Any]:  # fmt: skip
    """Every element of the image, or of a region, row by row."""
    region = region or region_of(desc)
    array = np.empty(prod(region) * _channels(desc), desc.dtype.raw)
    opencl().enqueue_copy(queue, array, image, wait_for=waits, origin=(0, 0, 0), region=region)
    return array


def write(
    queue: pyopencl.CommandQueue, image: Any, desc: MemoryDesc, array: NDArray[Any],
    region: Region | None = None,
) -> None:  # fmt: skip
    """Every element of the image, or of a region, from an array that `read` makes."""
    place = region or region_of(desc)
    opencl().enqueue_copy(queue, image, array, origin=(0, 0, 0), region=place)


def copied(
    queue: pyopencl.CommandQueue, region: Region, to: Any, source: Any,
    waits: list[pyopencl.Event],
) -> pyopencl.Event:  # fmt: skip
    """Enqueue a copy between a region of an image and a buffer of its bytes."""
    where = {"offset": 0, "origin": (0, 0, 0), "region": region}
    return opencl().enqueue_copy(  # type: ignore[no-any-return]
        queue, to, source, wait_for=waits or None, **where
    )


def _channels(desc: MemoryDesc) -> int:
    return (desc.image_shape or (1,))[-1]


def axes_of(desc: MemoryDesc) -> int:
    """`LINE`, `PLANE` or `STACK`."""
    return len(desc.image_shape or ())


def region_of(desc: MemoryDesc) -> Region:
    """The width, height and layers of an image."""
    *outer, _ = desc.image_shape or (0, 0)
    width, height, layers = (*outer[::-1], 1, 1)[:3]
    return width, height, layers


def _shape_text(desc: MemoryDesc) -> str:
    size = " x ".join(map(str, region_of(desc)[: axes_of(desc) - 1]))
    return f"an image of {size} pixels"


def _channel(desc: MemoryDesc) -> str:
    """The channel type of images that the library makes; pictures are of fractions."""
    names = CHANNELS[desc.dtype.name]
    return names[-1] if desc.format.name in PICTURES else names[0]


def _pixel(desc: MemoryDesc, channel: str = "") -> Any:
    """OpenCL's name for the components of a pixel."""
    cl = opencl()
    order = _ORDERS[_channels(desc)]
    kind = getattr(cl.channel_type, channel or _channel(desc))
    return cl.ImageFormat(getattr(cl.channel_order, order), kind)
