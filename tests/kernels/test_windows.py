"""Blocks that hold more than there is, filled from one vector of the source: every byte."""

from __future__ import annotations

import pytest

import clformats as cf
from tests.device_support import check_reorder

pytestmark = pytest.mark.sampled(4)

TYPES = [("u8", "u8"), ("u8", "f16"), ("f32", "f32"), ("f32", "f16"), ("f16", "f32")]


@pytest.mark.parametrize("streams", [False, True])
@pytest.mark.parametrize(
    ("block", "channels"), [(4, 3), (8, 3), (8, 7), (16, 3), (16, 5), (16, 15), (32, 2), (32, 20)]
)
@pytest.mark.parametrize(("src", "dst"), TYPES)
def test_images_to_blocks(
    src: str, dst: str, block: int, channels: int, stream: cf.Stream, *, streams: bool
) -> None:
    dims = (2, channels, 5, 7)
    read, written = (
        cf.MemoryDesc(dims, src, "byxf"),
        cf.MemoryDesc(dims, dst, f"b_fs_yx_fsv{block}"),
    )
    check_reorder(read, written, stream, front=16, choices=cf.Choices(nontemporal=streams))


@pytest.mark.parametrize("dims", [(1, 3, 1, 1), (1, 3, 1, 5), (3, 2, 1, 3), (1, 15, 1, 17)])
@pytest.mark.parametrize("formats", [("byxf", "b_fs_yx_fsv16"), ("byxf", "bs_fs_yx_bsv16_fsv16"),
                                     ("yxfb", "bs_fs_yx_bsv16_fsv16"),
                                     ("b_fs_yx_fsv4", "b_fs_yx_fsv16")])  # fmt: skip
def test_what_is_shorter_than_a_window(
    dims: tuple[int, ...], formats: tuple[str, str], stream: cf.Stream
) -> None:
    for src, dst in TYPES:
        check_reorder(
            cf.MemoryDesc(dims, src, formats[0]), cf.MemoryDesc(dims, dst, formats[1]), stream
        )


@pytest.mark.parametrize("dims", [(16, 3, 3, 3), (17, 5, 1, 3), (5, 3, 2, 3)])
@pytest.mark.parametrize("written", ["os_is_yx_osv16_isv4", "os_is_yx_isv16_osv16", "OIhw16i16o"])
def test_weights_with_few_inputs(dims: tuple[int, ...], written: str, stream: cf.Stream) -> None:
    for src, dst in TYPES[1:4]:
        for read in ("ohwi", "hwio"):
            check_reorder(cf.MemoryDesc(dims, src, read), cf.MemoryDesc(dims, dst, written), stream)
