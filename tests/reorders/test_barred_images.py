"""Images of any list of digits: written by a reorder, read by a kernel of the test's own."""

from __future__ import annotations

import time
from concurrent.futures import ThreadPoolExecutor
from threading import Event
from typing import Any

import numpy as np
import pyopencl as cl
import pytest

import clformats as cf
from clformats.runtime import storage
from clformats.runtime.twins import Twins
from tests.engine_layouts_support import LAYOUTS, placed_by

pytestmark = [pytest.mark.device, pytest.mark.sampled(20)]

D = cf.MemoryDesc
IMAGES = sorted({(row[2], row[3]) for row in LAYOUTS if "|" in row[3] and "(i" not in row[3]})
# One of each kind, for what need not be tried on all: rows and columns, layers, one line.
KINDS = ["nh|Cw|4c", "C|h|wn|4c", "Chwn|4c"]
FAMILIES = (None, "image")
READ = """
__constant sampler_t exact = CLK_NORMALIZED_COORDS_FALSE | CLK_ADDRESS_NONE | CLK_FILTER_NEAREST;
__kernel void look(__read_only KIND image, __global VALUE *out, int width, int height)
{
    const int k = get_global_id(0);
    const int x = k % width, y = k / width % height, z = k / width / height;
    vstore4(READ(image, AT), k, out);
}
"""
SMALL, LARGE = (D((1, 4, n, n), "f32", "nh|Cw|4c") for n in (8, 128))
AT = {2: ("image1d_buffer_t", "k"), 3: ("image2d_t", "exact, (int2)(x, y)"),
      4: ("image2d_array_t", "exact, (int4)(x, y, z, 0)")}  # fmt: skip
NEGATE = """
__kernel void negate(__read_only KIND from, __write_only KIND to, int width, int height)
{
    const int k = get_global_id(0);
    const int x = k % width, y = k / width % height, z = k / width / height;
    write_imagef(to, PLACE, -read_imagef(from, AT));
}
"""


def seen_by_a_kernel(memory: cf.Memory, function: str = "f") -> Any:
    """The components of every pixel, as a kernel of the test's own reads them."""
    *outer, channels = memory.desc.image_shape or ()
    width, height = (*outer[::-1], 1)[:2]
    image = memory.buffer
    kind, at = AT[len(outer) + 1]
    kind = "image3d_t" if image.type == cl.mem_object_type.IMAGE3D else kind
    value = {"f": np.float32, "i": np.int32, "ui": np.uint32}[function]
    macros = f"#define KIND {kind}\n#define AT {at}\n#define READ read_image{function}\n"
    macros += f"#define VALUE { ({'f': 'float', 'i': 'int', 'ui': 'uint'}[function]) }\n"
    engine, count = memory.engine, int(np.prod(outer))
    out, got = cl.Buffer(engine.context, 0, 16 * count), np.empty((count, 4), value)
    program = cl.Program(engine.context, macros + READ).build()
    sizes = np.int32(width), np.int32(height)
    program.look(engine.queue, (count,), None, image, out, *sizes, wait_for=memory.events)
    cl.enqueue_copy(engine.queue, got, out)
    return got[:, :channels]


def values_for(dims: tuple[int, ...], dtype: str) -> Any:
    """No two neighbours alike, none of them 0, exact in every type."""
    count = int(np.prod(dims))
    return (
        (np.arange(count) % 113 + 1).astype(cf.tensors.dtypes.as_dtype(dtype).numpy).reshape(dims)
    )


def family_for(desc: D, wanted: str | None) -> str | None:
    """``wanted`` for images that kernels can reach as such; a line of pixels is a buffer."""
    return wanted if len(desc.image_shape or ()) > 2 else None


@pytest.mark.parametrize("family", FAMILIES)
@pytest.mark.parametrize("dtype", ["f32", "f16"])
@pytest.mark.parametrize(("letters", "said"), IMAGES)
def test_images_of_engines(
    letters: str, said: str, dtype: str, family: str | None, engine: cf.Engine, stream: cf.Stream
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
    family = family_for(image, family)
    reorder = cf.Reorder(plain, image, engine, family=family, wait=True)
    reorder(stream, cf.from_numpy(array, engine), written).wait()
    assert np.array_equal(seen_by_a_kernel(written), want.reshape(-1, axes[-1]))
    assert np.array_equal(cf.to_numpy(written), array)
    back = cf.Memory(plain, engine)
    cf.Reorder(image, plain, engine, family=family, wait=True)(stream, written, back).wait()
    assert np.array_equal(cf.to_numpy(back), array)
    assert (reorder.plan.family == "image") == (family == "image" or not reorder.plan.has_twin)


@pytest.mark.parametrize("family", FAMILIES)
@pytest.mark.parametrize("other", ["f32", "u8", "s32", "bf16"])
@pytest.mark.parametrize("dtype", ["u8", "s8", "s32"])
@pytest.mark.parametrize("name", KINDS)
def test_integers_in_images(
    name: str, dtype: str, other: str, family: str | None, engine: cf.Engine, stream: cf.Stream
) -> None:
    image, plain = D((2, 7, 3, 5), dtype, name), D((2, 7, 3, 5), other)
    array, family = values_for(image.dims, other), family_for(image, family)
    m, back = cf.Memory(image, engine), cf.Memory(plain, engine)
    into = cf.Reorder(plain, image, engine, family=family, wait=True)
    into(stream, cf.from_numpy(array, engine), m).wait()
    want = cf.pack(array.astype(image.dtype.numpy), image)
    assert np.array_equal(seen_by_a_kernel(m, "ui" if dtype == "u8" else "i").ravel(), want)
    cf.Reorder(image, plain, engine, family=family, wait=True)(stream, m, back).wait()
    assert np.array_equal(cf.to_numpy(back), array)


@pytest.mark.parametrize("family", FAMILIES)
@pytest.mark.parametrize(
    ("dtype", "kind", "one"), [("u8", "UNORM_INT8", 255), ("s8", "SNORM_INT8", 127)]
)
@pytest.mark.parametrize("name", KINDS[:2])
def test_images_of_fractions_are_taken(
    name: str, dtype: str, kind: str, one: int, family: str | None, engine: cf.Engine,
    stream: cf.Stream,
) -> None:  # fmt: skip
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
    into = cf.Reorder(plain, image, engine, family=family, wait=True)
    into(stream, cf.from_numpy(array, engine), m).wait()
    want = cf.pack(array, image).astype(np.float32) / one
    assert np.allclose(seen_by_a_kernel(m).ravel(), want, rtol=0, atol=1e-3)
    cf.Reorder(image, plain, engine, family=family, wait=True)(stream, m, back).wait()
    assert np.array_equal(cf.to_numpy(back), array)


@pytest.mark.parametrize("family", FAMILIES)
@pytest.mark.parametrize("name", KINDS)
def test_values_are_computed_on_the_way(
    name: str, family: str | None, engine: cf.Engine, stream: cf.Stream
) -> None:
    """A photograph to what a network wants, in one pass; and a map that reads an image."""
    photo = cf.from_numpy(values_for((2, 3, 7, 5), "u8"), engine, format="nhwc")
    mean, scale = np.array([120, 110, 100], np.float32), np.array([0.5, 0.25, 2], np.float32)
    attr = cf.Attr(src_zero_point=(mean, 2), src_scale=(scale, 2))
    image = cf.Memory(D(photo.desc.dims, "f16", name), engine)
    family = family_for(image.desc, family)
    into = cf.Reorder(photo.desc, image.desc, engine, attr=attr, family=family, wait=True)
    into(stream, photo, image).wait()
    want = (cf.to_numpy(photo) - mean[:, None, None]) * scale[:, None, None]
    assert np.array_equal(cf.to_numpy(image).astype(np.float32), want)
    with image.map("r") as flat:
        assert np.count_nonzero(flat) == np.count_nonzero(want)  # padding is zero
    plain = cf.Memory(D(photo.desc.dims, "f32"), engine)
    twice = cf.Attr(src_scale=2)
    out = cf.Reorder(image.desc, plain.desc, engine, attr=twice, family=family, wait=True)
    out(stream, image, plain).wait()
    assert np.array_equal(cf.to_numpy(plain), 2 * want)
    with pytest.raises(cf.Unsupported, match=r"never the one that it writes.*IMAGE"):
        cf.Reorder(photo.desc, image.desc, engine, attr=cf.Attr(beta=1))


SAME = ["nhCw4c", "nh|Cw|4c", "n|hCw|4c", "nhCw|4c", "nhC|w|4c"]
"""The same bytes: in a buffer, in images of other rows, in a line of pixels."""


@pytest.mark.parametrize("src", SAME)
@pytest.mark.parametrize("dst", SAME)
def test_the_same_bytes_are_copied(src: str, dst: str, every_stream: cf.Stream) -> None:
    engine, dims = every_stream.engine, (2, 8, 3, 5)
    a, b = D(dims, "f16", src), D(dims, "f16", dst)
    reorder = cf.Reorder(a, b, engine, wait=True)
    assert reorder.plan.is_copied == (
        engine.traits.is_cpu and any(s.count("|") > 1 for s in (src, dst))
    )
    assert ("OpenCL copies them" in str(reorder.plan)) == reorder.plan.is_copied
    array = values_for(dims, "f16")
    m, n = cf.from_numpy(array, engine, format=src), cf.Memory(b, engine)
    reorder(every_stream, m, n).wait()
    assert np.array_equal(cf.to_numpy(n), array)


def test_images_take_turns_at_the_buffers_between(engine: cf.Engine) -> None:
    """Two reorders of images of different sizes, on queues that wait for nobody."""
    streams = [cf.Stream(engine, out_of_order=k > 0) for k in range(3)]
    made = []
    for k in range(12):
        dims = (1, 8, 40 + 30 * (k % 4), 70)
        array, stream = values_for(dims, "f32") + k, streams[k % 3]
        plain, image = (D(dims, "f32", f) for f in ("nchw", "nh|Cw|4c"))
        other = D(dims, "f32", "C|h|wn|4c")
        a, b, c = cf.from_numpy(array, engine), cf.Memory(image, engine), cf.Memory(other, engine)
        d = cf.Memory(plain, engine)
        for one, two in ((a, b), (b, c), (c, d)):
            cf.Reorder(one.desc, two.desc, engine, wait=True)(stream, one, two)
        made.append((array, d))
    for array, d in made:
        assert np.array_equal(cf.to_numpy(d), array)


def test_shared_virtual_memory_goes_to_an_image(engine: cf.Engine, stream: cf.Stream) -> None:
    """It is not copied to an image: the kernel takes it."""
    fine = cl.svm_mem_flags.READ_WRITE
    image = D((2, 8, 3, 5), "f32", "nh|Cw|4c")
    try:
        held = cl.SVMAllocation(engine.context, image.nbytes, 0, fine, queue=engine.queue)
    except cl.Error:
        pytest.skip("the device has no shared virtual memory")
    array = values_for(image.dims, "f32")
    twin = cf.Memory(image.buffer_twin, engine, buffer=held)
    cf.reorder(cf.from_numpy(array, engine), out=twin)
    m = cf.Memory(image, engine)
    cf.Reorder(twin.desc, image, engine, wait=True)(stream, twin, m).wait()
    assert np.array_equal(cf.to_numpy(m), array)
    cf.Reorder(image, twin.desc, engine, wait=True)(stream, m, twin).wait()
    assert np.array_equal(cf.to_numpy(twin), array)


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
    again = cf.Memory(desc, engine, buffer=view.buffer)
    assert again.usage is view.usage is twin.usage
    assert view.copied_because == ""


def negated(memory: cf.Memory, stream: cf.Stream, into: cf.Memory) -> None:
    """Every pixel of one image negated into another, by a kernel of the test's own."""
    *outer, _ = memory.desc.image_shape or ()
    width, height = (*outer[::-1], 1)[:2]
    kind, at = AT[len(outer) + 1]
    macros = f"#define KIND {kind}\n#define AT {at}\n#define PLACE {at.removeprefix('exact, ')}\n"
    source = macros + READ.split("__kernel", maxsplit=1)[0] + NEGATE
    kernel = memory.engine.kernel(source, "negate")
    sizes = np.int32(width), np.int32(height)
    stream.run(kernel, (int(np.prod(outer)),), None, memory, into, *sizes, reads=[memory])


OVER = [
    ("nh|Cw|4c", 16, None), ("nh|Cw|4c", 5, None), ("nh|Cw|4c", 5, (192, 20, 64, 4)),
    ("nh|Cw|4c", 5, (132, 20, 44, 4)), ("hC|wn|4c", 6, (4, 64, 128, 8)),
    ("C|h|wn|4c", 5, None), ("C|h|wn|4c", 5, (4, 192, 64, 8)),
]  # fmt: skip


@pytest.mark.parametrize("dtype", ["f32", "f16"])
@pytest.mark.parametrize(("name", "width", "strides"), OVER)
def test_rows_over_a_buffer(
    name: str, width: int, strides: Any, dtype: str, every_stream: cf.Stream
) -> None:
    """What one writes the other reads, whether the device makes a view or the library copies."""
    engine, stream = every_stream.engine, every_stream
    desc = D((2, 7, 3, width), dtype, name, strides=strides)
    plain, twin = D(desc.dims, "f32"), cf.Memory(desc.buffer_twin, engine)
    stream.fill(twin, 0xA5)
    view, own = cf.Memory(desc, engine, buffer=twin.buffer), cf.Memory(desc, engine)
    why = view.copied_because
    assert bool(why) == ("an image by a copy" in repr(view))
    assert ("layers" in why) == ("|h|" in name)
    assert bool(why) >= ("cl_khr_image2d_from_buffer" not in engine.device.extensions)
    array, zeros = values_for(desc.dims, "f32"), cf.Memory(plain, engine)
    flat, where = cf.pack(array, desc), at_pixels(desc)
    pixels, gaps = flat[where].reshape(-1, 4), np.delete(np.arange(flat.size), where)
    for family in FAMILIES if strides is None else FAMILIES[:1]:
        into = cf.Reorder(plain, desc, engine, family=family, wait=True)
        out = cf.Reorder(desc, plain, engine, family=family, wait=True)
        if strides:
            assert f"{name}: the kernel writes {desc.buffer_twin}, its buffer" in str(into.plan)
        into(stream, cf.from_numpy(array, engine), view)
        with twin.map("r") as held:
            assert np.array_equal(held[where], flat[where])
        assert np.array_equal(seen_by_a_kernel(view), pixels)
        negated(view, stream, own)
        assert np.array_equal(seen_by_a_kernel(own), -pixels)
        into(stream, zeros, view)
        negated(own, stream, view)
        back = cf.Memory(plain, engine)
        for memory, wanted in ((own, -array), (view, array)):
            out(stream, memory, back)
            assert np.array_equal(cf.to_numpy(back), wanted)
        assert np.array_equal(cf.to_numpy(twin), array)
    with view.map("rw") as held:
        held[where] = -held[where]
    with twin.map("r") as held:
        assert np.array_equal(held[where], -flat[where])
        assert (held[gaps].view(np.uint8) == 0xA5).all()
    assert np.array_equal(view.physical().reshape(-1, 4), -pixels)


def at_pixels(desc: D) -> Any:
    """Where each component of each pixel lies in the buffer, row by row."""
    *outer, width, channels = desc.image_shape or ()
    rows = int(np.prod(outer))
    pitch = next(p.stride for p in desc.placed[::-1] if p.stride >= width * channels)
    return np.arange(rows)[:, None] * pitch + np.arange(width * channels)


@pytest.mark.parametrize("family", FAMILIES)
@pytest.mark.parametrize("dtype", ["f32", "f16", "u8"])
def test_layers_may_be_a_3d_image(dtype: str, family: str | None, every_stream: cf.Stream) -> None:
    """Of the user's: OpenCL copies between it and the buffer that kernels take."""
    engine, desc = every_stream.engine, D((2, 7, 3, 5), dtype, "C|h|wn|4c")
    wanted = cl.ImageDescriptor()
    layers, rows, columns, _ = desc.image_shape or ()
    wanted.image_type, wanted.shape = cl.mem_object_type.IMAGE3D, (columns, rows, layers)
    like = cf.Memory(desc, engine).buffer
    given = cl.Image(engine.context, cl.mem_flags.READ_WRITE, like.format, desc=wanted)
    volume, plain = cf.Memory(desc, engine, buffer=given), D(desc.dims, "f32")
    array = values_for(desc.dims, "f32")
    into = cf.Reorder(plain, desc, engine, family=family, wait=True)
    into(every_stream, cf.from_numpy(array, engine), volume)
    want = cf.pack(array, desc).reshape(-1, 4)
    assert np.array_equal(seen_by_a_kernel(volume, "ui" if dtype == "u8" else "f"), want)
    back = cf.Memory(plain, engine)
    cf.Reorder(desc, plain, engine, family=family, wait=True)(every_stream, volume, back)
    assert np.array_equal(cf.to_numpy(back), array)
    assert np.array_equal(cf.to_numpy(volume), array)
    with pytest.raises(cf.DeviceError, match="needs IMAGE2D"):
        cf.Memory(D((2, 7, 3, 5), dtype, "nh|Cw|4c"), engine, buffer=given)


@pytest.mark.parametrize("at", [0, 4, 32])
def test_a_line_of_pixels_begins_where_its_buffer_does(
    at: int, engine: cf.Engine, stream: cf.Stream
) -> None:
    """Host memory may begin anywhere, and kernels write it as the buffer that it is."""
    desc = D((2, 16, 31, 5), "f32", "Chwn|4c")
    whole = np.zeros(desc.nbytes + 128, np.uint8)
    start = -whole.ctypes.data % 64 + at
    flags = cl.mem_flags.READ_WRITE | cl.mem_flags.USE_HOST_PTR
    host = whole[start : start + desc.nbytes]
    try:
        view = cf.Memory(desc, engine, buffer=cl.Buffer(engine.context, flags, hostbuf=host))
    except cf.DeviceError as error:
        pytest.skip(f"no image over such memory: {error}")
    assert view.begins_at == (64 if at == 0 else at)
    array = values_for(desc.dims, "f32")
    cf.reorder(cf.from_numpy(array, engine), out=view, stream=stream)
    assert np.array_equal(cf.to_numpy(view), array)
    assert not np.delete(whole, np.s_[start : start + desc.nbytes]).any()


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


def test_a_plan_tells_which_choice_has_an_image_that_does_not_fit(engine: cf.Engine) -> None:
    """The cheap choice of a wide tensor is left out; that of a narrow one is taken."""
    net, wide = cf.Network(), engine.device.image2d_max_width // 4
    for name, columns in (("x", 8), ("y", 8), ("z", wide)):
        net.value(name, (1, 20, 3, columns))
    image, plain = "nh|Cw|4c", "nchw"
    ways = [cf.Choice((image,), (image,), 1e-6), cf.Choice((image,), (plain,), 9e-5)]
    net.node("narrow", ["x"], ["y"], "Relu", ways)
    net.node("broad", ["y"], ["z"], "Resize", ways)
    net.fix("x", plain)
    free = cf.propagate(net, reorder_cost=lambda *_: 1e-6)
    assert free.formats == {"x": plain, "y": image, "z": image}
    plan = cf.propagate(net, reorder_cost=lambda *_: 1e-6, engine=engine)
    assert plan.formats == {"x": plain, "y": image, "z": plain}
    told = f"left out: broad: {ways[0]}: 'z' in {image} does not fit: {engine.device.name.strip()}"
    assert told in str(plan)
    assert "left out" not in str(free)
    net.fix("z", image)
    with pytest.raises(cf.InvalidNetwork, match=r"'z' in nh.Cw.4c does not fit.*fix another"):
        cf.propagate(net, reorder_cost=lambda *_: 1e-6, engine=engine)


def test_threads_share_a_buffer_that_holds_the_largest_image(
    engine: cf.Engine, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Also where the smaller one is allocated last."""
    real, began = storage.allocated, Event()

    def slow(to: cf.Engine, nbytes: int, *given: Any, **more: Any) -> Any:
        made = real(to, nbytes, *given, **more)
        if nbytes < LARGE.nbytes:
            began.set()
            time.sleep(0.2)
        return made

    def twins(desc: cf.MemoryDesc) -> Twins:
        return Twins(own, [None, desc], copied=False)

    monkeypatch.setattr(storage, "allocated", slow)
    own = cf.Engine(context=engine.context, device=engine.device)
    with ThreadPoolExecutor(2) as pool:
        small = pool.submit(twins, SMALL)
        began.wait(10)
        large = pool.submit(twins, LARGE).result()
        small.result()
    (_, held) = large._scratch
    assert held is not None
    assert held.size >= LARGE.nbytes
