"""Pictures in OpenCL images of 8-bit unorm: RGBA, and the two planes of NV12."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import clformats as cf
from clformats.runtime import image
from tests.device_support import memory_of
from tests.reorders.test_images import (
    BUFFER_TYPES,
    FAMILIES,
    check_from_image,
    check_into_image,
    pixels_of,
)
from tests.support import garbage, random_values, same_bytes

pytestmark = pytest.mark.sampled(9)

D = cf.MemoryDesc
RGBA, NV12 = "image_2d_rgba", "nv12"
# Three channels and four, several pictures in stacked rows; luma and chroma (dims n, h, w, c).
PICTURES = [
    (RGBA, (1, 3, 5, 7)), (RGBA, (1, 4, 3, 17)), (RGBA, (2, 6, 3, 5)), (RGBA, (1, 1, 1, 1)),
    (NV12, (1, 6, 10, 1)), (NV12, (1, 3, 5, 2)), (NV12, (2, 7, 3, 2)),
]  # fmt: skip
ORDERS = {1: "R", 2: "RG", 4: "RGBA"}


def picture(name: str, dims: tuple[int, ...], engine: cf.Engine) -> D:
    """The descriptor; skips where the device has no such pixels: PoCL 3.1, two channels."""
    desc = D(dims, "u8", name)
    try:
        image.check_fits(engine, desc)
    except cf.DeviceError as error:
        if error.name != "IMAGE_FORMAT_NOT_SUPPORTED" or (desc.image_shape or (0, 0, 0))[2] != 2:
            raise
        pytest.skip(str(error))
    return desc


@pytest.mark.parametrize(("name", "dims"), PICTURES)
def test_memory_is_an_image_of_8_bit_unorm(
    name: str, dims: tuple[int, ...], engine: cf.Engine
) -> None:
    import pyopencl as cl

    m = cf.Memory(picture(name, dims, engine), engine)
    assert isinstance(m.buffer, cl.Image)
    height, width, channels = m.desc.image_shape or (0, 0, 0)
    order = getattr(cl.channel_order, ORDERS[channels])
    assert m.buffer.format == cl.ImageFormat(order, cl.channel_type.UNORM_INT8)
    assert (m.buffer.width, m.buffer.height) == (width, height)
    assert not pixels_of(m).any()


@pytest.mark.parametrize(("name", "dims"), PICTURES)
def test_pixels_are_what_pack_gives(name: str, dims: tuple[int, ...], engine: cf.Engine) -> None:
    desc = picture(name, dims, engine)
    array = random_values(np.random.default_rng(1), dims, "u8")
    m = cf.from_numpy(array, engine, format=name)
    assert same_bytes(pixels_of(m), cf.pack(array, desc))
    assert same_bytes(cf.to_numpy(m), array)
    values = garbage(np.random.default_rng(2), desc)
    with m.map("w") as a:
        a[:] = values
    with m.map("rw") as a:
        assert same_bytes(a, values)
        a[-1] ^= 0xFF
    assert pixels_of(m)[-1] == values[-1] ^ 0xFF


@pytest.mark.parametrize("family", FAMILIES)
@pytest.mark.parametrize("buffer", ["bfyx", "yxfb", "acdb", "byxf", "b_fs_yx_fsv16"])
@pytest.mark.parametrize(("name", "dims"), PICTURES)
def test_reorders_both_ways(
    name: str, dims: tuple[int, ...], buffer: str, family: str | None, stream: cf.Stream
) -> None:
    desc, plain = picture(name, dims, stream.engine), D(dims, "u8", buffer)
    check_into_image(plain, desc, stream, family=family)
    check_from_image(desc, plain, stream, family=family)


@pytest.mark.parametrize("family", FAMILIES)
@pytest.mark.parametrize("other", BUFFER_TYPES)
@pytest.mark.parametrize(("name", "dims"), [PICTURES[0], PICTURES[4], PICTURES[5]])
def test_reorders_convert_as_everywhere(
    name: str, dims: tuple[int, ...], other: str, family: str | None, stream: cf.Stream
) -> None:
    desc, plain = picture(name, dims, stream.engine), D(dims, other, "yxfb")
    check_into_image(plain, desc, stream, family=family)
    check_from_image(desc, plain, stream, family=family)


@pytest.mark.parametrize("family", FAMILIES)
@pytest.mark.parametrize(("name", "dims"), [(RGBA, (1, 4, 16, 16)), (NV12, (1, 16, 16, 1)),
                                            (NV12, (1, 16, 16, 2))])  # fmt: skip
def test_every_value_is_exact_in_every_channel(
    name: str, dims: tuple[int, ...], family: str | None, stream: cf.Stream
) -> None:
    desc, plain = picture(name, dims, stream.engine), D(dims, "u8")
    ramp = np.arange(256, dtype=np.uint8).reshape(16, 16)
    array: Any = np.empty(dims, np.uint8)
    for channel in range(dims[1] if name == RGBA else dims[3]):
        turned = ramp + np.uint8(50 * channel)  # another value in each channel of a pixel
        array[(0, channel) if name == RGBA else (0, ..., channel)] = turned
    check_into_image(plain, desc, stream, array, family)
    check_from_image(desc, plain, stream, array, family)


def test_from_picture_to_picture(stream: cf.Stream) -> None:
    dims = (1, 3, 7, 1)
    check_into_image(D(dims, "u8", RGBA), D(dims, "u8", NV12), stream)
    check_into_image(D(dims, "u8", NV12), D(dims, "u8", RGBA), stream)


SAMPLER = """
__constant sampler_t near = CLK_NORMALIZED_COORDS_FALSE | CLK_ADDRESS_NONE | CLK_FILTER_NEAREST;
__kernel void look(__read_only image2d_t picture, __global float4 *seen)
{
    const int x = get_global_id(0), y = get_global_id(1);
    seen[y * get_global_size(0) + x] = read_imagef(picture, near, (int2)(x, y));
}
"""


def test_kernels_of_the_user_see_the_pixels(engine: cf.Engine) -> None:
    """x and y are the picture's, the channels its features as fractions of 255, a missing one 0."""
    import pyopencl as cl

    height, width = 5, 7
    array = random_values(np.random.default_rng(3), (1, 3, height, width), "u8")
    m = cf.reorder(cf.from_numpy(array, engine), RGBA)
    seen = np.empty((height, width, 4), np.float32)
    buffer = cl.Buffer(engine.context, cl.mem_flags.WRITE_ONLY, seen.nbytes)
    engine.kernel(SAMPLER, "look")(engine.queue, (width, height), None, m.buffer, buffer)
    cl.enqueue_copy(engine.queue, seen, buffer)
    assert np.allclose(seen[..., :3] * 255, array[0].transpose(1, 2, 0), rtol=1e-6)
    assert not seen[..., 3].any()


def test_sizes_known_at_execution(engine: cf.Engine, stream: cf.Stream) -> None:
    some = (1, cf.RUNTIME_DIM, cf.RUNTIME_DIM, 1)
    reorder = cf.Reorder(D(some, "u8"), D(some, "u8", NV12), engine)
    for dims in ((1, 6, 10, 1), (1, 5, 3, 1)):
        array = random_values(np.random.default_rng(4), dims, "u8")
        target = memory_of(0xA5, D(dims, "u8", NV12), engine)
        reorder(stream, cf.from_numpy(array, engine), target).wait()
        assert same_bytes(cf.to_numpy(target), array)


def test_a_device_without_such_pixels_says_so(
    engine: cf.Engine, monkeypatch: pytest.MonkeyPatch
) -> None:
    desc = D((1, 6, 10, 1), "u8", NV12)
    m = cf.Memory(desc, engine)
    monkeypatch.setattr("pyopencl.get_supported_image_formats", lambda *_: [])
    for make in (
        lambda: cf.Memory(desc, engine),
        lambda: cf.Reorder(D(desc.dims, "u8"), desc, engine),
    ):
        with pytest.raises(cf.DeviceError, match=r"no images with pixels of .*R, UNORM") as caught:
            make()
        assert caught.value.name == "IMAGE_FORMAT_NOT_SUPPORTED"
    with pytest.raises(cf.DeviceError, match="has 10 x 6 pixels"):
        cf.Memory(D((1, 5, 10, 1), "u8", NV12), engine, buffer=m.buffer)
