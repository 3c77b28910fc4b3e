"""Images of any list of digits: written by a reorder, read by a kernel of the test's own."""

from __future__ import annotations

from typing import Any

import numpy as np
import pyopencl as cl
import pytest

import clformats as cf
from tests.engine_layouts_support import LAYOUTS, placed_by

pytestmark = [pytest.mark.device, pytest.mark.sampled(12)]

D = cf.MemoryDesc
IMAGES = sorted({(row[2], row[3]) for row in LAYOUTS if "|" in row[3] and "(i" not in row[3]})
# One of each kind, for what need not be tried on all: rows and columns, layers, one line.
KINDS = ["nh|Cw|4c", "C|h|wn|4c", "Chwn|4c"]
READ = """
__constant sampler_t exact = CLK_NORMALIZED_COORDS_FALSE | CLK_ADDRESS_NONE | CLK_FILTER_NEAREST;
__kernel void look(__read_only KIND image, __global VALUE *out, int width, int height)
{
    const int k = get_global_id(0);
    const int x = k % width, y = k / width % height, z = k / width / height;
    vstore4(READ(image, AT), k, out);
}
"""
AT = {2: ("image1d_buffer_t", "k"), 3: ("image2d_t", "exact, (int2)(x, y)"),
      4: ("image2d_array_t", "exact, (int4)(x, y, z, 0)")}  # fmt: skip


def seen_by_a_kernel(memory: cf.Memory, function: str = "f") -> Any:
    """The components of every pixel, as a kernel of the test's own reads them."""
    *outer, channels = memory.desc.image_shape or ()
    width, height = (*outer[::-1], 1)[:2]
    kind, at = AT[len(outer) + 1]
    value = {"f": np.float32, "i": np.int32, "ui": np.uint32}[function]
    macros = f"#define KIND {kind}\n#define AT {at}\n#define READ read_image{function}\n"
    macros += f"#define VALUE { ({'f': 'float', 'i': 'int', 'ui': 'uint'}[function]) }\n"
    engine, count = memory.engine, int(np.prod(outer))
    out, got = cl.Buffer(engine.context, 0, 16 * count), np.empty((count, 4), value)
    program = cl.Program(engine.context, macros + READ).build()
    sizes = np.int32(width), np.int32(height)
    program.look(engine.queue, (count,), None, memory.buffer, out, *sizes)
    cl.enqueue_copy(engine.queue, got, out)
    return got[:, :channels]


def values_for(dims: tuple[int, ...], dtype: str) -> Any:
    """No two neighbours alike, none of them 0, exact in every type."""
    count = int(np.prod(dims))
    return (
        (np.arange(count) % 113 + 1).astype(cf.tensors.dtypes.as_dtype(dtype).numpy).reshape(dims)
    )


@pytest.mark.parametrize("dtype", ["f32", "f16"])
@pytest.mark.parametrize(("letters", "said"), IMAGES)
def test_images_of_engines(
    letters: str, said: str, dtype: str, engine: cf.Engine, stream: cf.Stream
) -> None:
    dims = (5, 7, 3, 6, 2)[: len(letters)]
    if said.endswith("|c"):
        dims = (5, 4, 3, 6)  # all channels in one pixel
    image, plain = D(dims, dtype, cf.Format(said, dims=letters)), D(dims, "f32")
    axes, where = placed_by(said, letters, dims)
    want = np.zeros(int(np.prod(axes)))
    want[where] = array = values_for(dims, "f32")
    written = cf.Memory(image, engine)
    with written.map("w") as flat:
        flat.view(np.uint8)[:] = 0xA5
    reorder = cf.Reorder(plain, image, engine, wait=True)
    reorder(stream, cf.from_numpy(array, engine), written).wait()
    assert np.array_equal(seen_by_a_kernel(written), want.reshape(-1, axes[-1]))
    assert np.array_equal(cf.to_numpy(written), array)
    back = cf.Memory(plain, engine)
    cf.Reorder(image, plain, engine, wait=True)(stream, written, back).wait()
    assert np.array_equal(cf.to_numpy(back), array)
    assert reorder.plan.family == "image"


@pytest.mark.parametrize("other", ["f32", "u8", "s32", "bf16"])
@pytest.mark.parametrize("dtype", ["u8", "s8", "s32"])
@pytest.mark.parametrize("name", KINDS)
def test_integers_in_images(
    name: str, dtype: str, other: str, engine: cf.Engine, stream: cf.Stream
) -> None:
    image, plain = D((2, 7, 3, 5), dtype, name), D((2, 7, 3, 5), other)
    array = values_for(image.dims, other)
    m, back = cf.Memory(image, engine), cf.Memory(plain, engine)
    cf.Reorder(plain, image, engine, wait=True)(stream, cf.from_numpy(array, engine), m).wait()
    want = cf.pack(array.astype(image.dtype.numpy), image)
    assert np.array_equal(seen_by_a_kernel(m, "ui" if dtype == "u8" else "i").ravel(), want)
    cf.Reorder(image, plain, engine, wait=True)(stream, m, back).wait()
    assert np.array_equal(cf.to_numpy(back), array)


@pytest.mark.parametrize(
    ("dtype", "kind", "one"), [("u8", "UNORM_INT8", 255), ("s8", "SNORM_INT8", 127)]
)
@pytest.mark.parametrize("name", KINDS[:2])
def test_images_of_fractions_are_taken(
    name: str, dtype: str, kind: str, one: int, engine: cf.Engine, stream: cf.Stream
) -> None:
    image, plain = D((2, 7, 3, 5), dtype, name), D((2, 7, 3, 5), dtype)
    made = cf.Memory(image, engine).buffer
    wanted = cl.ImageDescriptor()
    shape: Any = (made.width, made.height, 1)
    wanted.image_type = made.type
    wanted.shape = shape if made.array_size else shape[:2]
    wanted.array_size = made.array_size
    pixel = cl.ImageFormat(cl.channel_order.RGBA, getattr(cl.channel_type, kind))
    given = cl.Image(engine.context, cl.mem_flags.READ_WRITE, pixel, desc=wanted)
    m, back = cf.Memory(image, engine, buffer=given), cf.Memory(plain, engine)
    array = values_for(image.dims, dtype)
    cf.Reorder(plain, image, engine, wait=True)(stream, cf.from_numpy(array, engine), m).wait()
    want = cf.pack(array, image).astype(np.float32) / one
    assert np.allclose(seen_by_a_kernel(m).ravel(), want, rtol=0, atol=1e-3)
    cf.Reorder(image, plain, engine, wait=True)(stream, m, back).wait()
    assert np.array_equal(cf.to_numpy(back), array)


@pytest.mark.parametrize("name", KINDS)
def test_values_are_computed_on_the_way(name: str, engine: cf.Engine, stream: cf.Stream) -> None:
    """A photograph to what a network wants, in one pass; and a map that reads an image."""
    photo = cf.from_numpy(values_for((2, 3, 7, 5), "u8"), engine, format="nhwc")
    mean, scale = np.array([120, 110, 100], np.float32), np.array([0.5, 0.25, 2], np.float32)
    attr = cf.Attr(src_zero_point=(mean, 2), src_scale=(scale, 2))
    image = cf.Memory(D(photo.desc.dims, "f16", name), engine)
    cf.Reorder(photo.desc, image.desc, engine, attr=attr, wait=True)(stream, photo, image).wait()
    want = (cf.to_numpy(photo) - mean[:, None, None]) * scale[:, None, None]
    assert np.array_equal(cf.to_numpy(image).astype(np.float32), want)
    with image.map("r") as flat:
        assert np.count_nonzero(flat) == np.count_nonzero(want)  # padding is zero
    plain = cf.Memory(D(photo.desc.dims, "f32"), engine)
    twice = cf.Attr(src_scale=2)
    cf.Reorder(image.desc, plain.desc, engine, attr=twice, wait=True)(stream, image, plain).wait()
    assert np.array_equal(cf.to_numpy(plain), 2 * want)
    with pytest.raises(cf.Unsupported, match=r"never the one that it writes.*IMAGE"):
        cf.Reorder(photo.desc, image.desc, engine, attr=cf.Attr(beta=1))


def test_an_image_over_a_buffer(engine: cf.Engine, stream: cf.Stream) -> None:
    desc = D((2, 7, 3, 5), "f32", "Chwn|4c")
    array = values_for(desc.dims, "f32")
    twin = cf.from_numpy(array, engine, format=desc.buffer_twin.format)
    view = cf.Memory(desc, engine, buffer=twin.buffer)
    assert np.array_equal(cf.to_numpy(view), array)
    assert np.array_equal(seen_by_a_kernel(view).ravel(), cf.pack(array, desc))
    doubled, plain = cf.from_numpy(2 * array, engine), D(desc.dims, "f32")
    cf.Reorder(plain, desc, engine, wait=True)(stream, doubled, view)
    assert np.array_equal(cf.to_numpy(twin), 2 * array)  # waits for what writes the view
    if "cl_khr_image2d_from_buffer" not in engine.device.extensions:
        rows = D((2, 7, 3, 5), "f32", "hC|wn|4c")
        with pytest.raises(cf.Unsupported, match=r"from_buffer; reorder the buffer.*one copy"):
            cf.Memory(rows, engine, buffer=twin.buffer)


def test_images_of_another_shape_are_refused(engine: cf.Engine) -> None:
    one, other = (D(dims, "f32", "nh|Cw|4c") for dims in ((2, 7, 3, 5), (2, 7, 3, 6)))
    layers = D((2, 7, 3, 5), "f32", "C|h|wn|4c")
    for desc in (other, layers, D((2, 7, 3, 5), "f16", "nh|Cw|4c")):
        with pytest.raises(cf.DeviceError, match="needs"):
            cf.Memory(one, engine, buffer=cf.Memory(desc, engine).buffer)


@pytest.mark.parametrize(
    ("name", "dims"), [("nh|Cw|4c", (1, 4, 2, 10**6)), ("c|h|w n|", (10**6, 1, 1, 1)[::-1])]
)
def test_an_image_beyond_the_limits_is_refused_before_anything_is_allocated(
    name: str, dims: tuple[int, ...], engine: cf.Engine
) -> None:
    dims = (1, 10**6, 1, 1) if "|h|" in name else dims
    with pytest.raises(cf.DeviceError, match=r"pixels at most: take a format in a buffer"):
        cf.Memory(D(dims, "f32", name), engine)
