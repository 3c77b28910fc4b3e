"""The OpenCL images of memory objects: allocation, checks, reading and writing.

An image of one channel is of order R, one of two of order RG, one of four of order RGBA; the
channels are FLOAT or HALF_FLOAT as the elements, or, of u8, UNORM_INT8. Rows of an image may have a
pitch that the host cannot choose, so its pixels are copied to an array and back instead of being
mapped.
"""

from __future__ import annotations

from math import prod
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from ..errors import DeviceError, Unsupported, expect
from ..tensors.desc import MemoryDesc
from .engine import Engine
from .opencl import named_errors, opencl

if TYPE_CHECKING:
    import pyopencl

_PROBE = """\
__constant sampler_t exact = CLK_NORMALIZED_COORDS_FALSE | CLK_ADDRESS_NONE | CLK_FILTER_NEAREST;
__kernel void probe(__read_only image2d_t a, __write_only image2d_t b, __global float *seen,
                    const float one)
{
    vstore4(rint(read_imagef(a, exact, (int2)(1, 0)) * one), 0, seen);
    write_imagef(b, (int2)(1, 0), (float4)(5.0f, 6.0f, 7.0f, 8.0f) / one);
}
"""


def allocated(engine: Engine, desc: MemoryDesc) -> pyopencl.Image:
    """A new image for a descriptor, all zero. Raises `DeviceError`."""
    check_support(engine, desc)
    _check_size(engine, desc)
    cl = opencl()
    size = _size(desc)
    with named_errors(f"allocating {_shape_text(desc)} for", desc):
        image = _image(engine.context, _pixel(desc), size)
        zero = np.zeros(4, np.float32)
        cl.enqueue_fill_image(engine.tracked_queue, image, zero, (0, 0, 0), (*size, 1)).wait()
    return image


def _image(context: pyopencl.Context, pixel: Any, size: tuple[int, int]) -> pyopencl.Image:
    cl = opencl()
    wanted = cl.ImageDescriptor()
    wanted.image_type, wanted.shape = cl.mem_object_type.IMAGE2D, size
    wanted.num_mip_levels = wanted.num_samples = 0
    wanted.pitches, wanted.buffer = (0, 0), None
    return cl.Image(context, cl.mem_flags.READ_WRITE, pixel, desc=wanted)  # type: ignore[no-any-return]


def _check_size(engine: Engine, desc: MemoryDesc) -> None:
    """Raise `DeviceError` before NVIDIA's driver is asked: it makes such an image, then breaks."""
    most = engine.device.image2d_max_width, engine.device.image2d_max_height
    if any(n > limit for n, limit in zip(_size(desc), most, strict=True)):
        raise DeviceError(
            f"allocating {_shape_text(desc)} for {desc} failed: {engine.device.name.strip()} has "
            f"images of {most[0]} x {most[1]} pixels at most: take a format in a buffer instead",
            name="INVALID_IMAGE_SIZE",
        )


def check_support(engine: Engine, desc: MemoryDesc) -> None:
    """Raise `DeviceError` where a device has no images, or none with pixels of this kind."""
    if not engine.traits.has_images:
        raise DeviceError(
            f"{engine.device.name} has no image support: reorder to a format in a buffer instead"
        )
    cl = opencl()
    kinds = cl.get_supported_image_formats(
        engine.context, cl.mem_flags.READ_WRITE, cl.mem_object_type.IMAGE2D
    )
    if _pixel(desc) not in kinds:
        raise DeviceError(
            f"{engine.device.name} has no images with pixels of {_pixel(desc)}, which {desc} "
            f"needs: take a format in a buffer instead",
            name="IMAGE_FORMAT_NOT_SUPPORTED",
        )


def check_pixels(engine: Engine, desc: MemoryDesc) -> None:
    """Raise where kernels read or write other pixels than the host: `DeviceError`, `Unsupported`.

    PoCL 3.1 lists images of one HALF_FLOAT channel, but its image functions access wrong pixels.
    """
    check_support(engine, desc)
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
    channels = (desc.image_shape or (0, 0, 1))[2]
    flags, size = cl.mem_flags.READ_WRITE, (2, 1)
    read, written = (_image(engine.context, _pixel(desc), size) for _ in range(2))
    host = np.arange(1, 2 * channels + 1).astype(desc.dtype.numpy)
    seen, back = np.zeros(4, np.float32), np.zeros_like(host)
    buffer = cl.Buffer(engine.context, flags, seen.nbytes)
    cl.enqueue_copy(queue, read, host, origin=(0, 0), region=size)
    cl.enqueue_copy(queue, written, back, origin=(0, 0), region=size)
    one = np.float32(255 if desc.dtype.name == "u8" else 1)
    engine.kernel(_PROBE, "probe")(queue, (1,), (1,), read, written, buffer, one)
    cl.enqueue_copy(queue, seen, buffer)
    cl.enqueue_copy(queue, back, written, origin=(0, 0), region=size)
    wanted = np.array([0] * channels + [5, 6, 7, 8][:channels])
    return bool((seen[:channels] == host[channels:]).all() and (back == wanted).all())


def check(image: Any, desc: MemoryDesc) -> None:
    """Raise unless this is an image of the shape and pixels of the descriptor."""
    expect(image, opencl().Image, "buffer")
    width, height = _size(desc)
    if (image.width, image.height) != (width, height):
        got = f"{image.width} x {image.height} pixels"
        raise DeviceError(f"the image has {got}, {desc} needs {_shape_text(desc)}")
    if image.format != _pixel(desc):
        got = f"pixels of {image.format}"
        raise DeviceError(f"the image has {got}, {desc} needs {_pixel(desc)}")


def read(
    queue: pyopencl.CommandQueue, image: Any, desc: MemoryDesc, waits: list[pyopencl.Event]
) -> NDArray[Any]:
    """Every element of the image, row by row."""
    array = np.empty(prod(desc.image_shape or ()), desc.dtype.raw)
    opencl().enqueue_copy(queue, array, image, origin=(0, 0), region=_size(desc), wait_for=waits)
    return array


def write(queue: pyopencl.CommandQueue, image: Any, desc: MemoryDesc, array: NDArray[Any]) -> None:
    """Every element of the image, from an array that `read` makes."""
    opencl().enqueue_copy(queue, image, array, origin=(0, 0), region=_size(desc))


def _size(desc: MemoryDesc) -> tuple[int, int]:
    """The width and height of an image."""
    height, width, _ = desc.image_shape or (0, 0, 0)
    return width, height


def _shape_text(desc: MemoryDesc) -> str:
    width, height = _size(desc)
    return f"an image of {width} x {height} pixels"


def _pixel(desc: MemoryDesc) -> Any:
    """OpenCL's name for the channels of a pixel."""
    cl = opencl()
    orders = {1: cl.channel_order.R, 2: cl.channel_order.RG, 4: cl.channel_order.RGBA}
    types, channels = cl.channel_type, (desc.image_shape or (0, 0, 1))[2]
    kinds = {"f32": types.FLOAT, "f16": types.HALF_FLOAT, "u8": types.UNORM_INT8}
    return cl.ImageFormat(orders[channels], kinds[desc.dtype.name])
