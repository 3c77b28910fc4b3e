"""Kernels that transform values, and those that add sums, equal the host to the bit."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import clformats as cf
from tests.device_support import check_bytes, check_reorder, expected, guarded, memory_of
from tests.support import dirty_pack, garbage, random_values, same_bytes
from tests.tiers import crossed

pytestmark = pytest.mark.sampled(6)

D = cf.MemoryDesc
RT = cf.RUNTIME_DIM
DATA = "winograd_2x3_s1_data"
WEIGHTS = (
    *("winograd_2x3_s1_weights", "winograd_2x3_s1_fused_weights", "winograd_6x3_s1_fused_weights"),
    *("wino_wei_aaOIoi", "wino_wei_aaOio", "wino_wei_aaOBiOo_16i2O16o"),
    "wino_wei_OBaaIBOIio_2O2I16i16o",
)
IMAGES = tuple(f"image_2d_weights_winograd_6x3_s1_{order}" for order in ("fbxyb", "xfbyb"))
SOURCES = ("oihw", "hwio", "os_is_yx_isv16_osv16", "iy_xs_os_xsv2_osv8__ao32", "oiyx_o16",
           "os_iyx_osv16_rotate_180")  # fmt: skip
TYPES = ("f32", "f16", "bf16", "f64", "s32", "s8", "u8", "f8_e4m3", "f8_e5m2")
CHANNELS = [(19, 17), (1, 1), (16, 5), (33, 2)]


def weights(channels: tuple[int, int], dtype: str = "f32", name: str = "oihw") -> D:
    return D((*channels, 3, 3), dtype, name)


@pytest.mark.parametrize("dtype", ["f32", "s8"])
@pytest.mark.parametrize("name", WEIGHTS)
def test_weights(name: str, dtype: str, stream: cf.Stream) -> None:
    """From every third source format, so that each meets each name or one of its relatives."""
    turn = WEIGHTS.index(name) + (dtype == "s8")
    for source in SOURCES[turn % 3 :: 3]:
        for k, channels in enumerate(CHANNELS):
            src = weights(channels, "f32", source)
            dst = cf.winograd(src, name, dtype)
            r = check_reorder(src, dst, stream, seed=k, front=3 * (k % 3))
            assert r.plan.family == "winograd"
            assert bool(r.plan.sums) == bool(dst.sums)


@pytest.mark.sampled(1)
@pytest.mark.parametrize(("src_type", "dst_type"), crossed(TYPES))
def test_every_pair_of_types(src_type: str, dst_type: str, stream: cf.Stream) -> None:
    src = weights((5, 17), src_type)
    check_reorder(src, cf.winograd(src, WEIGHTS[1], dst_type), stream)


@pytest.mark.parametrize("src_type", TYPES)
def test_every_type_with_sums(src_type: str, stream: cf.Stream) -> None:
    src = weights((5, 17), src_type)
    check_reorder(src, cf.winograd(src, WEIGHTS[3], "s8"), stream)


@pytest.mark.parametrize("name", WEIGHTS)
def test_infinities_nan_and_zeros(name: str, stream: cf.Stream) -> None:
    """Where a matrix has a zero, infinity times it is NaN or not there at all; -0 may stay."""
    if "rusticl" in stream.engine.device.platform.name and name in WEIGHTS[3:]:
        pytest.skip("Mesa's compiler takes 0 * x for 0, whatever x is")
    src = weights((3, 5))
    special = np.array([np.inf, -np.inf, np.nan, -0.0, 0.0, 3e38, -1e-45, 1.5], np.float32)
    array = np.random.default_rng(3).choice(special, src.dims)
    dst = cf.winograd(src, name)
    target = guarded(dst, stream.engine)
    source = memory_of(cf.pack(array, src), src, stream.engine)
    cf.Reorder(src, dst, stream.engine)(stream, source, target).wait()
    got, want = cf.to_numpy(target), cf.transform(array, src, dst)
    assert np.isnan(want).any()
    same = (got.view(np.uint32) == want.view(np.uint32)) | (np.isnan(got) & np.isnan(want))
    assert same.all()


@pytest.mark.parametrize("name", WEIGHTS[3:])
def test_more_channels_than_weights(name: str, stream: cf.Stream) -> None:
    """DNNL's oc and ic: the missing channels are zero, not what lay there."""
    src = weights((27, 29))
    dst = cf.winograd(src, name, "s8" if "OIoi" in name else "f32", padded=(64, 32))
    assert dst.padded_dims[:2] == (64, 32)
    check_reorder(src, dst, stream)


@pytest.mark.parametrize("source", ["byxf", "b_fs_yx_fsv16", "bs_fs_yx_bsv16_fsv16"])
@pytest.mark.parametrize("x", [1, 2, 3, 6, 9])
def test_data_with_the_padding_of_the_convolution(source: str, x: int, stream: cf.Stream) -> None:
    """Windows reach into padding, which counts as zero whatever lies there."""
    for k, pad in enumerate([((1, 1), (1, 1)), ((0, 2), (2, 1)), ((0, 0), (0, 2))]):
        src = D((2, 19, 5, x), "f32", source, padding=((0, 0), (k, 1), *pad))
        check_reorder(src, cf.winograd(src, DATA), stream, seed=k, front=8 * k, transform=True)


def test_four_columns_are_moved_or_transformed_as_asked(stream: cf.Stream) -> None:
    src = D((2, 3, 5, 4), "f32", "bfyx")
    for transform in (False, True):
        check_reorder(src, D(src.dims, "f32", DATA), stream, transform=transform)


@pytest.mark.parametrize("x", [7, 8])
@pytest.mark.parametrize("target", ["bfyx", "b_fs_yx_fsv16", "bf8_xy16", "fs_b_yx_fsv32"])
def test_outputs_of_products(target: str, x: int, stream: cf.Stream) -> None:
    """An odd width leaves the last output out; the destination's padding is zero."""
    src = D((2, 19, 5, 16), "f32", DATA)
    check_reorder(src, D((2, 19, 5, x), "f16", target), stream)
    padding = ((0, 0), (1, 0), (2, 1), (1, 3))
    if target != "bf8_xy16":
        check_reorder(src, D((2, 19, 5, x), "f32", target, padding=padding), stream)


@pytest.mark.parametrize("name", [n for n in WEIGHTS if "6x3" not in n and "OBaa" not in n])
def test_weights_come_back(name: str, stream: cf.Stream) -> None:
    plain = weights((19, 17))
    for target in SOURCES[WEIGHTS.index(name) % 3 :: 3]:
        src = cf.winograd(plain, name)
        check_reorder(src, D(plain.dims, "f32", target), stream, front=3)


@pytest.mark.parametrize("name", IMAGES)
@pytest.mark.parametrize("dtype", ["f32", "f16"])
def test_weights_into_images(name: str, dtype: str, stream: cf.Stream) -> None:
    rng = np.random.default_rng(7)
    for channels in ((19, 17), (1, 1), (16, 5)):
        src = weights(channels, "f32", "os_is_yx_isv16_osv16")
        dst = cf.winograd(src, name, dtype)
        try:
            reorder = cf.Reorder(src, dst, stream.engine)
        except cf.Unsupported as error:
            if dtype != "f16":
                raise
            pytest.skip(str(error))
        check_image(reorder, rng, stream)


@pytest.mark.parametrize("name", ["c1_b_fyx", "c4_fyx_b"])
def test_outputs_into_images_go_by_a_buffer(name: str, stream: cf.Stream) -> None:
    """A pixel has four values, or y and x are one index: no work-item has one of its own."""
    src, dst = D((2, 19, 5, 16), "f32", DATA), D((2, 19, 5, 7), "f32", f"image_2d_weights_{name}")
    reorder = cf.Reorder(src, dst, stream.engine)
    assert reorder.plan.has_twin
    check_image(reorder, np.random.default_rng(8), stream)


def check_image(reorder: cf.Reorder, rng: np.random.Generator, stream: cf.Stream) -> None:
    """The bytes of an image that values are transformed to are those of the host."""
    src, dst = reorder.src, reorder.dst
    array = random_values(rng, src.dims, "f32")
    source = memory_of(dirty_pack(rng, array, src), src, stream.engine)
    target = memory_of(garbage(rng, dst), dst, stream.engine)
    reorder(stream, source, target).wait()
    with target.map("r") as flat:
        assert same_bytes(flat, cf.pack(cf.transform(array, src, dst), dst)), dst


# --- sums -----------------------------------------------------------------------------------------


@pytest.mark.parametrize("channels", CHANNELS)
@pytest.mark.parametrize("dtype", ["s8", "f32", "s32", "u8"])
def test_transformed_int8_weights_are_moved_with_new_sums(
    channels: tuple[int, int], dtype: str, stream: cf.Stream
) -> None:
    src = D((*channels, 4, 4), dtype, "hwoi" if dtype == "s8" else "oihw")
    dst = D(src.dims, "s8", "wino_wei_aaOIoi")
    assert check_reorder(src, dst, stream, front=1).plan.sums
    other = D(src.dims, "s8", "wino_wei_aaOIoi_8o4i")
    check_reorder(dst, other, stream)
    check_reorder(dst, dst, stream)
    check_reorder(dst, src, stream)


RNN = [(1, 1, 1, 1, 1), (2, 1, 5, 3, 17), (1, 2, 33, 4, 16), (2, 3, 2, 1, 15)]


@pytest.mark.parametrize("name", ["ldigo_p", "ldgoi_p"])
@pytest.mark.parametrize("dims", RNN)
def test_recurrent_weights_are_packed_and_unpacked(
    name: str, dims: tuple[int, ...], stream: cf.Stream
) -> None:
    for plain, pairs in {"ldigo": ("f32 f32", "f32 s8"), "ldgoi": ("s8 s8", "bf16 bf16")}.items():
        for src_type, dst_type in map(str.split, pairs):
            src, dst = D(dims, src_type, plain), D(dims, dst_type, name)
            r = check_reorder(src, dst, stream, front=7)
            assert bool(r.plan.sums) == bool(dst.sums)
            check_reorder(dst, src, stream, front=8)


# --- calls ----------------------------------------------------------------------------------------


def test_sizes_known_at_execution(stream: cf.Stream) -> None:
    """One kernel for all sizes of channels, and of pictures."""
    engine = stream.engine
    src, dst = D((RT, RT, 3, 3), "f32", "oihw"), D((RT, RT, 4, 4), "s8", "wino_wei_aaOIoi")
    reorder = cf.Reorder(src, dst, engine)
    sources = set()
    for channels in ((19, 17), (32, 5)):
        array = _run(reorder, weights(channels), stream)
        sources.add(reorder.source)
        assert array.shape == (*channels, 4, 4)
    assert len(sources) == 1
    data = cf.Reorder(D((RT,) * 4, "f32", "bfyx"), D((RT,) * 4, "f32", DATA), engine)
    for dims in ((1, 2, 3, 5), (2, 3, 5, 9)):
        _run(data, D(dims, "f32", "bfyx"), stream)
        sources.add(data.source)
    assert len(sources) == 2


def _run(reorder: cf.Reorder, src: D, stream: cf.Stream) -> Any:
    dst = cf.winograd(src, reorder.dst.format, reorder.dst.dtype)
    array = random_values(np.random.default_rng(1), src.dims, src.dtype.name)
    source = memory_of(cf.pack(array, src), src, stream.engine)
    target = guarded(dst, stream.engine)
    reorder(stream, source, target).wait()
    check_bytes(target, expected(array, src, dst))
    return cf.to_numpy(target)


def test_a_new_shape_compiles_nothing(stream: cf.Stream) -> None:
    """Law 7, for each family: sizes and paddings are arguments."""

    def source(src: D, name: str, dtype: str) -> str:
        return cf.Reorder(src, cf.winograd(src, name, dtype), stream.engine).source

    for name, dtype in ((WEIGHTS[1], "f32"), (WEIGHTS[3], "s8"), (WEIGHTS[6], "f16")):
        assert source(weights((19, 17)), name, dtype) == source(weights((40, 33)), name, dtype)
    pads = [((0, 0), (0, 0), (0, n), (n, 1)) for n in (1, 2)]
    one, two = (D((2, 3, 5 + p[2][1], 9), "f32", "bfyx", padding=p) for p in pads)
    assert source(one, DATA, "f32") == source(two, DATA, "f32")


def test_no_elements(stream: cf.Stream) -> None:
    src = weights((0, 4))
    dst = cf.winograd(src, WEIGHTS[3], "s8")
    empty = (cf.Memory(d, stream.engine) for d in (src, dst))
    cf.Reorder(src, dst, stream.engine)(stream, *empty).wait()


def test_the_one_line_form_transforms(engine: cf.Engine) -> None:
    """And back; values that are transformed already are moved where that is said."""
    array = random_values(np.random.default_rng(1), (19, 17, 3, 3), "f32").round()
    plain = cf.from_numpy(array, engine)
    wino = cf.reorder(plain, WEIGHTS[1])
    assert wino.desc == cf.winograd(plain.desc, WEIGHTS[1])
    assert (cf.to_numpy(wino) == cf.transform(array, plain.desc, wino.desc)).all()
    assert (cf.to_numpy(cf.reorder(wino, "os_is_yx_isv16_osv16")) == array).all()
    moved = cf.reorder(wino, "oiyx", transform=False)
    assert (cf.to_numpy(moved) == cf.to_numpy(wino)).all()
    again = cf.reorder(moved, WEIGHTS[1], transform=False)
    assert (cf.to_numpy(again) == cf.to_numpy(wino)).all()
    for source, form, transform in ((moved, WEIGHTS[1], None), (plain, "hwio", True)):
        with pytest.raises(cf.InvalidDescriptor, match="TRANSFORM_DIMS"):
            cf.reorder(source, form, transform=transform)
