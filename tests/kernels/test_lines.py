"""Lines stored past the cache by parts of vectors: every byte, wherever rows begin."""

from __future__ import annotations

import pytest

import clformats as cf
from clformats.schedule.tile import TilePlan
from tests.device_support import check_reorder

pytestmark = pytest.mark.sampled(3)

STREAMS = cf.Choices(nontemporal=True)


@pytest.mark.parametrize("dims", [(2, 24, 5, 7), (3, 17, 7, 7), (1, 40, 14, 14), (2, 9, 3, 31)])
@pytest.mark.parametrize("dst", ["b_fs_yx_fsv4", "b_fs_yx_fsv8"])
@pytest.mark.parametrize(
    "types", [("f32", "f32"), ("u8", "f32"), ("f16", "f32"), ("f32", "f16"), ("f16", "f16")]
)
def test_rows_that_begin_at_parts_of_vectors(
    types: tuple[str, str], dst: str, dims: tuple[int, ...], stream: cf.Stream
) -> None:
    sides = (cf.MemoryDesc(dims, types[0], "bfyx"), cf.MemoryDesc(dims, types[1], dst))
    for front in (0, 8):
        check_reorder(*sides, stream, front=front, choices=STREAMS)


def test_such_a_row_is_stored_by_parts(stream: cf.Stream) -> None:
    src, dst = (cf.MemoryDesc((2, 24, 7, 7), "f32", f) for f in ("bfyx", "b_fs_yx_fsv4"))
    body = check_reorder(src, dst, stream, choices=STREAMS).plan.body
    assert isinstance(body, TilePlan)
    assert body.streamed_piece == 4


def test_values_are_computed_before_the_parts_are_stored(stream: cf.Stream) -> None:
    dims = (2, 21, 7, 7)
    attr = cf.Attr(src_scale=([0.5 + k / 8 for k in range(21)], 2), dst_zero_point=3)
    for dst in ("b_fs_yx_fsv4", "b_fs_yx_fsv8"):
        sides = (cf.MemoryDesc(dims, "u8", "bfyx"), cf.MemoryDesc(dims, "f32", dst))
        check_reorder(*sides, stream, attr=attr, choices=STREAMS)
