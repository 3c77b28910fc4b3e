"""Weights in OpenCL images: their memory, and reorders that read or write pixels."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np
import pytest

import clformats as cf
from tests.device_support import check_reorder, memory_of, moved
from tests.support import dirty_pack, garbage, random_values, same_bytes

pytestmark = pytest.mark.sampled(8)

D = cf.MemoryDesc
C4, C1 = "image_2d_weights_c4_fyx_b", "image_2d_weights_c1_b_fyx"
WINO = tuple(f"image_2d_weights_winograd_6x3_s1_{order}" for order in ("fbxyb", "xfbyb"))
IMAGES = (C4, C1, *WINO)
TYPES = ("f32", "f16")
FAMILIES = (None, "image")
"""The usual one, and the one of devices with units for pixels."""
BUFFER_TYPES = ("f32", "f16", "bf16", "f64", "s32", "s8", "u8")
DIMS = [(5, 3, 2, 7), (19, 2, 5, 3), (2, 17, 3, 5), (1, 1, 1, 1)]


def pixels_of(memory: cf.Memory) -> Any:
    """The image's raw elements, read without the library's mapping."""
    import pyopencl as cl

    height, width, channels = memory.desc.image_shape or (0, 0, 0)
    assert isinstance(memory.buffer, cl.Image)
    result = np.empty((height, width * channels), memory.desc.dtype.raw)
    queue, region = memory.engine.queue, (width, height)
    cl.enqueue_copy(queue, result, memory.buffer, origin=(0, 0), region=region)
    return result.ravel()


def prepared(src: D, dst: D, engine: cf.Engine, family: str | None = None) -> cf.Reorder:
    """The reorder; skips where the driver is known to be wrong: PoCL 3.1, one half channel."""
    try:
        return cf.Reorder(src, dst, engine, family=family)
    except cf.Unsupported as error:
        halves = [d for d in (src, dst) if d.dtype.name == "f16" and d.format.image]
        if not any((d.image_shape or (0, 0, 0))[2] == 1 for d in halves):
            raise
        pytest.skip(str(error))


def check_from_image(
    src: D, dst: D, stream: cf.Stream, array: Any = None, family: str | None = None
) -> None:
    """Reorder an image with garbage in its padding into a buffer between canaries."""
    prepared(src, dst, stream.engine, family)
    plan = check_reorder(src, dst, stream, array=array, family=family).plan
    assert (plan.request.src, plan.request.dst) == (src, dst)
    assert plan.has_twin == goes_by_twin(stream.engine, family)


def goes_by_twin(engine: cf.Engine, family: str | None) -> bool:
    """Whether images that are no line are reached as buffers: see `problems.twins`."""
    return engine.traits.is_cpu and family != "image"


def check_into_image(
    src: D, dst: D, stream: cf.Stream, array: Any = None, family: str | None = None
) -> cf.Reorder:
    """Reorder into an image full of NaN (0xFF) and one full of 0xA5, and compare every byte."""
    rng = np.random.default_rng(7)
    if array is None:
        array = random_values(rng, src.dims, src.dtype.name)
    source = memory_of(dirty_pack(rng, array, src), src, stream.engine)
    reorder = prepared(src, dst, stream.engine, family)
    assert reorder.plan.has_twin == goes_by_twin(stream.engine, family)
    want = cf.pack(cf.tensors.dtypes.convert(array, src.dtype, dst.dtype), dst)
    for byte in (0xFF, 0xA5):
        before = np.full(want.nbytes, byte, np.uint8).view(want.dtype)
        target = memory_of(before, dst, stream.engine)
        reorder(stream, source, target).wait()
        assert same_bytes(pixels_of(target), want), reorder.plan
    return reorder


@pytest.mark.parametrize("dtype", TYPES)
@pytest.mark.parametrize("name", IMAGES)
def test_memory_is_an_image_of_the_shape_that_the_descriptor_says(
    name: str, dtype: str, engine: cf.Engine
) -> None:
    import pyopencl as cl

    desc = D((5, 3, 2, 7), dtype, name)
    m = cf.Memory(desc, engine)
    assert isinstance(m.buffer, cl.Image)
    assert desc.image_shape is not None
    height, width, channels = desc.image_shape
    order = {1: cl.channel_order.R, 4: cl.channel_order.RGBA}[channels]
    kind = {"f32": cl.channel_type.FLOAT, "f16": cl.channel_type.HALF_FLOAT}[dtype]
    assert (m.buffer.width, m.buffer.height) == (width, height)
    assert m.buffer.format == cl.ImageFormat(order, kind)
    assert not pixels_of(m).any()


@pytest.mark.parametrize("dims", DIMS)
@pytest.mark.parametrize("dtype", TYPES)
@pytest.mark.parametrize("name", IMAGES)
def test_pixels_are_what_pack_gives(
    name: str, dtype: str, dims: tuple[int, ...], engine: cf.Engine
) -> None:
    array = random_values(np.random.default_rng(1), dims, dtype)
    m = cf.from_numpy(array, engine, format=name)
    assert same_bytes(pixels_of(m), cf.pack(array, m.desc))
    assert same_bytes(cf.to_numpy(m), array)


@pytest.mark.parametrize("name", IMAGES)
def test_a_map_has_every_element_row_by_row(name: str, engine: cf.Engine) -> None:
    desc = D((5, 3, 2, 7), "f16", name)
    m = cf.Memory(desc, engine)
    values = garbage(np.random.default_rng(2), desc)
    with m.map("w") as a:
        assert a.shape == (np.prod(desc.image_shape or ()),)
        assert a.dtype == np.float16
        a[:] = values
    assert same_bytes(pixels_of(m), values)
    with m.map("rw") as a:
        assert same_bytes(a, values)
        a[-1] = 3
    with m.map("r") as a:
        assert same_bytes(a[:-1], values[:-1])
        assert a[-1] == 3
        with pytest.raises(ValueError, match="read-only"):
            a[0] = 1


def test_a_mapped_image_is_exclusive(engine: cf.Engine, stream: cf.Stream) -> None:
    desc, plain = D((5, 3, 2, 7), "f32", C4), D((5, 3, 2, 7), "f32")
    m, other = cf.Memory(desc, engine), cf.Memory(plain, engine)
    view = cf.Memory(desc, engine, buffer=m.buffer)
    with m.map("rw"):
        for same in (m, view):
            with pytest.raises(cf.MappedError, match="cannot map it"):
                same.map("r")
            with pytest.raises(cf.MappedError, match="cannot reorder it"):
                cf.Reorder(plain, desc, engine)(stream, other, same)
        with pytest.raises(cf.MappedError, match="cannot give it another buffer"):
            m.set_buffer(None)
    with view.map("r"):
        pass


def test_an_exception_in_the_block_writes_the_image_back(engine: cf.Engine) -> None:
    m = cf.Memory(D((5, 3, 2, 7), "f32", C1), engine)

    def write_and_fail() -> None:
        with m.map("rw") as a:
            a[:] = 7
            raise RuntimeError("mine")

    with pytest.raises(RuntimeError, match="mine"):
        write_and_fail()
    assert (cf.to_numpy(m) == 7).all()


def test_images_of_the_user(engine: cf.Engine) -> None:
    desc = D((5, 3, 2, 7), "f32", C1)
    mine = cf.Memory(desc, engine).buffer
    assert cf.Memory(desc, engine, buffer=mine).buffer is mine
    with pytest.raises(TypeError, match="expected Image"):
        cf.Memory(desc, engine, buffer=np.zeros(210, np.float32))
    with pytest.raises(cf.DeviceError, match="has 4 bytes"):
        cf.Memory(desc, engine, buffer=cf.Memory(D((1,), "f32"), engine).buffer)
    with pytest.raises(TypeError, match="expected a pyopencl Buffer"):
        cf.Memory(D((5, 3, 2, 7), "f32"), engine, buffer=mine)
    with pytest.raises(cf.DeviceError, match=r"has 5 x 42 pixels, .* needs .* 42 x 5 pixels"):
        cf.Memory(D((42, 5, 1, 1), "f32", C1), engine, buffer=mine)
    with pytest.raises(cf.DeviceError, match=r"pixels of .*FLOAT.*, .* needs .*HALF_FLOAT"):
        cf.Memory(D((5, 3, 2, 7), "f16", C1), engine, buffer=mine)
    m = cf.Memory(desc, engine, buffer=None)
    with pytest.raises(cf.DeviceError, match="set_buffer"), m.map("r"):
        pass
    m.set_buffer(mine)
    assert not cf.to_numpy(m).any()


def test_a_device_without_images_says_so(
    engine: cf.Engine, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setitem(engine.__dict__, "traits", replace(engine.traits, has_images=False))
    with pytest.raises(cf.DeviceError, match="no image support"):
        cf.Memory(D((5, 3, 2, 7), "f32", C4), engine)
    with pytest.raises(cf.DeviceError, match="no image support"):
        cf.Reorder(D((5, 3, 2, 7), "f32"), D((5, 3, 2, 7), "f32", C4), engine)


def test_an_image_that_is_too_large_is_told_by_name(engine: cf.Engine) -> None:
    with pytest.raises(cf.DeviceError, match="an image of 1048576 x 1 pixels") as caught:
        cf.Memory(D((1 << 20, 1, 1, 1), "f32", C1), engine)
    assert caught.value.name == "INVALID_IMAGE_SIZE"


def test_an_image_without_elements_is_none(engine: cf.Engine, stream: cf.Stream) -> None:
    empty, plain = D((0, 3, 2, 7), "f32", C4), D((0, 3, 2, 7), "f32")
    m = cf.Memory(empty, engine)
    assert m.buffer is None
    assert cf.to_numpy(m).shape == (0, 3, 2, 7)
    cf.Reorder(empty, plain, engine)(stream, m, cf.Memory(plain, engine)).wait()


@pytest.mark.parametrize(
    ("dtype", "name"),
    [("bf16", C4), ("u8", "nv12"), ("f64", "c/4|h|w n|c%4"), ("u4", "c/4 h w n|c%4")],
)
def test_other_images_are_refused_with_what_to_do(dtype: str, name: str, engine: cf.Engine) -> None:
    image, plain = D((1, 3, 2, 7), dtype, name), D((1, 3, 2, 7), "f32")
    with pytest.raises(cf.Unsupported, match=r"of shape .* cf\.pack") as caught:
        cf.Memory(image, engine)
    assert caught.value.code == "IMAGE"
    for pair in ((image, plain), (plain, image)):
        with pytest.raises(cf.Unsupported) as caught:
            cf.make_plan(*pair)
        assert caught.value.code == "IMAGE"


def test_an_image_begins_at_its_first_pixel(engine: cf.Engine) -> None:
    with pytest.raises(cf.Unsupported, match=r"begins 3 elements.*IMAGE"):
        cf.Memory(moved(D((5, 3, 2, 7), "f32", C4), 3), engine)


@pytest.mark.parametrize(("what", "to"), [("READ(a", "-READ(a"), ("5.0f", "9.0f")])
@pytest.mark.parametrize("name", [C4, C1])
def test_a_driver_that_goes_astray_in_pixels_is_refused(
    name: str, what: str, to: str, engine: cf.Engine, monkeypatch: pytest.MonkeyPatch
) -> None:
    from clformats.runtime import image

    monkeypatch.setattr(image, "_PROBE", image._PROBE.replace(what, to))
    pair = D((5, 3, 2, 7), "f32"), D((5, 3, 2, 7), "f32", name)
    for src, dst in (pair, pair[::-1]):
        with pytest.raises(cf.Unsupported, match=r"wrong values in pixels.*IMAGE"):
            cf.Reorder(src, dst, engine, family="image")


@pytest.mark.parametrize("family", FAMILIES)
@pytest.mark.parametrize("dims", DIMS)
@pytest.mark.parametrize("buffer", ["oiyx", "yxio", "os_iyx_osv16", "os_iyx_osv16_rotate_180"])
@pytest.mark.parametrize("name", IMAGES)
def test_reorders_both_ways(
    name: str, buffer: str, dims: tuple[int, ...], family: str | None, stream: cf.Stream
) -> None:
    image, plain = D(dims, "f32", name), D(dims, "f32", buffer)
    check_into_image(plain, image, stream, family=family)
    check_from_image(image, plain, stream, family=family)


@pytest.mark.parametrize("family", FAMILIES)
@pytest.mark.parametrize("other", BUFFER_TYPES)
@pytest.mark.parametrize("dtype", TYPES)
@pytest.mark.parametrize("name", [C4, C1])
def test_reorders_convert_as_everywhere(
    name: str, dtype: str, other: str, family: str | None, stream: cf.Stream
) -> None:
    dims = (7, 3, 5, 11)
    image, plain = D(dims, dtype, name), D(dims, other, "os_iyx_osv16")
    check_into_image(plain, image, stream, family=family)
    check_from_image(image, plain, stream, family=family)


@pytest.mark.parametrize("family", FAMILIES)
@pytest.mark.parametrize(("a", "b"), [(a, b) for a in TYPES for b in TYPES])
@pytest.mark.parametrize("other", IMAGES)
@pytest.mark.parametrize("name", IMAGES)
def test_reorders_from_image_to_image(
    name: str, other: str, a: str, b: str, family: str | None, stream: cf.Stream
) -> None:
    dims = (19, 3, 5, 7)
    check_into_image(D(dims, a, name), D(dims, b, other), stream, family=family)


@pytest.mark.parametrize("family", FAMILIES)
@pytest.mark.parametrize("name", [C4, C1])
@pytest.mark.parametrize(("a", "b"), [(a, b) for a in TYPES for b in TYPES])
def test_hard_values_pass_through_an_image(
    name: str, a: str, b: str, family: str | None, stream: cf.Stream
) -> None:
    """Infinities, zeros of both signs, what overflows, ties between two halves."""
    values = [0.0, -0.0, np.inf, -np.inf, 65519.0, 65520.0, 1e9, 2049.0, 2051.0, 6e-8, 1 + 2**-11]
    with np.errstate(over="ignore"):
        array = (
            np.array(values, np.float64)
            .reshape(11, 1, 1, 1)
            .astype(cf.tensors.dtypes.as_dtype(a).numpy)
        )
    desc, image = D(array.shape, a), D(array.shape, b, name)
    check_into_image(desc, image, stream, array, family)
    check_from_image(D(array.shape, a, name), D(array.shape, b), stream, array, family)


def test_nan_passes_through_an_image(engine: cf.Engine) -> None:
    array = np.array([[1.0, np.nan, -np.nan, 2.0, np.nan]], np.float32).reshape(5, 1, 1, 1)
    for dtype in TYPES:
        m = cf.reorder(cf.from_numpy(array, engine), C4, dtype=dtype)
        back = cf.to_numpy(cf.reorder(m, "oiyx"))
        assert (np.isnan(back) == np.isnan(array)).all()


def test_commands_on_images_wait_for_each_other(engine: cf.Engine) -> None:
    array = random_values(np.random.default_rng(3), (67, 13, 7, 11), "f32")
    for out_of_order in (False, True):
        streams = [cf.Stream(engine, out_of_order=out_of_order) for _ in range(2)]
        m = cf.from_numpy(array, engine)
        for k, name in enumerate((C4, "yxio", *WINO, C1, "os_iyx_osv16", C4)):
            m = cf.reorder(m, name, stream=streams[k % 2], transform=False)
        assert same_bytes(cf.to_numpy(m), array)


def test_sizes_known_at_execution(engine: cf.Engine, stream: cf.Stream) -> None:
    some = (cf.RUNTIME_DIM, 3, cf.RUNTIME_DIM, 7)
    reorder = cf.Reorder(D(some, "f32"), D(some, "f32", C4), engine)
    built = set()
    for dims in ((5, 3, 2, 7), (11, 3, 13, 7)):
        array = random_values(np.random.default_rng(4), dims, "f32")
        target = cf.Memory(D(dims, "f32", C4), engine)
        reorder(stream, cf.from_numpy(array, engine), target).wait()
        assert same_bytes(cf.to_numpy(target), array)
        built.add(reorder.source)
    assert len(built) == 1, "one kernel serves every shape"


def test_an_image_is_not_reordered_in_place(engine: cf.Engine, stream: cf.Stream) -> None:
    desc = D((5, 3, 2, 7), "f32", C4)
    m = cf.Memory(desc, engine)
    with pytest.raises(cf.InvalidDescriptor, match="in place"):
        cf.Reorder(desc, desc, engine)(stream, m, cf.Memory(desc, engine, buffer=m.buffer))
