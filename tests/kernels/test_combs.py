"""Short loops that memory interleaves, taken apart and put together: every byte, on the device."""

from __future__ import annotations

import numpy as np
import pytest

import clformats as cf
from clformats.schedule.tile import TilePlan
from clformats.schedule.walk import Reads
from tests.device_support import check_reorder

pytestmark = [pytest.mark.sampled(8), pytest.mark.usefixtures("plans_for_cpus")]

PAIRS = [
    ("f32:yxfb", "f32:b_fs_yx_fsv16"),
    ("f32:yxfb", "f16:b_fs_yx_fsv8"),
    ("f16:yxfb", "f32:b_fs_yx_fsv4"),
    ("u8:yxfb", "u8:b_fs_yx_fsv4"),
    ("f32:yxfb", "s8:b_fs_yx_fsv32"),
    ("f16:yxfb", "f16:byxf"),
    ("f32:b_fs_yx_fsv16", "f32:yxfb"),
    ("f32:b_fs_yx_fsv8", "bf16:yxfb"),
    ("u8:b_fs_yx_fsv4", "u8:yxfb"),
    ("u8:b_fs_yx_fsv32", "f32:yxfb"),
    ("f32:byxf", "f32:yxfb"),
]


@pytest.mark.parametrize("streams", [False, True])
@pytest.mark.parametrize("dims", [(3, 48, 5, 7), (5, 37, 3, 11), (6, 65, 4, 5), (7, 32, 16, 8)])
@pytest.mark.parametrize(("src", "dst"), PAIRS)
def test_every_element_of_a_batch_that_fills_no_vector(
    src: str, dst: str, dims: tuple[int, ...], stream: cf.Stream, *, streams: bool
) -> None:
    read, written = (cf.MemoryDesc(dims, *text.split(":")) for text in (src, dst))
    check_reorder(read, written, stream, front=16, choices=cf.Choices(nontemporal=streams))


@pytest.mark.parametrize("dims", [(2, 3, 37, 29), (1, 5, 16, 31), (2, 7, 64, 64), (1, 13, 33, 9)])
@pytest.mark.parametrize("types", [("u8", "u8"), ("f32", "f32"), ("f16", "f32"), ("f32", "s8")])
@pytest.mark.parametrize("formats", [("byxf", "bfyx"), ("bfyx", "byxf")])
def test_channels_of_images(
    dims: tuple[int, ...], types: tuple[str, str], formats: tuple[str, str], stream: cf.Stream
) -> None:
    src, dst = (cf.MemoryDesc(dims, t, f) for t, f in zip(types, formats, strict=True))
    for choices in (cf.Choices(), cf.Choices(nontemporal=True)):
        check_reorder(src, dst, stream, choices=choices)


@pytest.mark.parametrize("dims", [(8, 12, 4, 3), (3, 8, 5, 3), (2, 24, 7, 1), (5, 16, 2, 5)])
@pytest.mark.parametrize("formats", [("b_fs_yx_fsv4", "bfyx"), ("bfyx", "b_fs_yx_fsv4")])
def test_planes_that_are_short_loops(
    dims: tuple[int, ...], formats: tuple[str, str], stream: cf.Stream
) -> None:
    for dtype in ("u8", "f16", "f32"):
        src, dst = (cf.MemoryDesc(dims, dtype, f) for f in formats)
        check_reorder(src, dst, stream)


@pytest.mark.parametrize("dims", [(35, 18, 3, 3), (16, 21, 1, 5), (33, 40, 7, 1), (48, 3, 1, 3)])
@pytest.mark.parametrize("types", [("f32", "f32"), ("f16", "f16"), ("f32", "f16")])
def test_planes_that_both_sides_have_innermost(
    dims: tuple[int, ...], types: tuple[str, str], stream: cf.Stream
) -> None:
    for formats in (("oiyx", "ioyx"), ("ioyx", "oiyx")):
        src, dst = (cf.MemoryDesc(dims, t, f) for t, f in zip(types, formats, strict=True))
        check_reorder(src, dst, stream, choices=cf.Choices(nontemporal=True))


def test_rows_that_are_put_together_are_asked_for(stream: cf.Stream) -> None:
    src = cf.MemoryDesc((9, 62, 33, 47), "f32", "b_fs_yx_fsv4")
    dst = cf.MemoryDesc((9, 62, 33, 47), "f32", "yxfb")
    body = check_reorder(src, dst, stream).plan.body
    assert isinstance(body, TilePlan)
    assert body.comb
    assert body.walk.reads is Reads.ROWS
    for ahead in (1, 4):
        check_reorder(src, dst, stream, choices=cf.Choices(ahead=ahead, nontemporal=True))


@pytest.mark.parametrize(
    "pad", [((0, 0), (2, 5), (0, 0), (0, 0)), ((0, 0), (0, 0), (1, 2), (3, 0))]
)
def test_padding_of_both_sides(pad: tuple[tuple[int, int], ...], stream: cf.Stream) -> None:
    dims = (3, 41, 6, 7)
    padded = cf.MemoryDesc(dims, "f32", "b_fs_yx_fsv8", padding=pad)
    plain = cf.MemoryDesc(dims, "f32", "yxfb")
    check_reorder(padded, plain, stream)
    check_reorder(plain, padded, stream)
    check_reorder(cf.MemoryDesc(dims, "f32", "yxfb", padding=pad), padded, stream)


@pytest.mark.parametrize(("src", "dst"), [("yxfb", "b_fs_yx_fsv8"), ("b_fs_yx_fsv8", "yxfb")])
@pytest.mark.parametrize("features", [32, 43])
def test_values_are_computed_in_the_right_lanes(
    src: str, dst: str, features: int, stream: cf.Stream
) -> None:
    dims = (5, features, 6, 7)
    attr = cf.Attr(src_scale=(np.linspace(0.5, 2, features), 2), beta=0.5)
    check_reorder(
        cf.MemoryDesc(dims, "f32", src), cf.MemoryDesc(dims, "f32", dst), stream, attr=attr
    )


@pytest.mark.parametrize("channels", [2, 3])
@pytest.mark.parametrize("pixels", [(16, 1), (5, 13), (64, 33)])
@pytest.mark.parametrize("types", [("u8", "s8"), ("u8", "f32"), ("f32", "f16")])
def test_a_scale_for_each_of_the_channels_that_both_sides_interleave(
    channels: int, pixels: tuple[int, int], types: tuple[str, str], stream: cf.Stream
) -> None:
    src, dst = (cf.MemoryDesc((2, channels, *pixels), t, "byxf") for t in types)
    scale = (np.linspace(0.5, 2, channels), 2)
    for attr in (cf.Attr(src_scale=scale), cf.Attr(src_scale=scale, beta=0.5)):
        for choices in (cf.Choices(), cf.Choices(nontemporal=True)):
            check_reorder(src, dst, stream, attr=attr, choices=choices)
