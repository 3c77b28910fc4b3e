"""What is stored past the cache: whole lines, by vectors or by aligned parts of them."""

from __future__ import annotations

import pytest

import clformats as cf
from clformats.schedule import make_plan
from clformats.schedule.plan import Plan
from clformats.schedule.tile import TilePlan
from clformats.schedule.traits import Traits


def _plan(dims: tuple[int, ...], types: str, begin: int = 64) -> tuple[Plan, TilePlan]:
    src, dst = (cf.MemoryDesc(dims, *text.split(":")) for text in types.split())
    plan = make_plan(src, dst, Traits(streamed_bytes=0, begin_bytes=begin))
    assert isinstance(plan.body, TilePlan)
    return plan, plan.body


@pytest.mark.parametrize(
    ("dims", "types", "piece"),
    [
        ((2, 32, 14, 14), "f32:bfyx f32:b_fs_yx_fsv4", 16),  # the last tile begins at a line
        ((2, 32, 7, 36), "f16:bfyx f16:b_fs_yx_fsv8", 16),
        ((2, 32, 7, 7), "f32:bfyx f32:b_fs_yx_fsv4", 4),
        ((2, 32, 35, 35), "u8:bfyx f32:b_fs_yx_fsv4", 4),
        ((2, 32, 35, 35), "f32:bfyx f32:b_fs_yx_fsv8", 8),
        ((2, 30, 35, 35), "f32:bfyx f32:b_fs_yx_fsv8", 8),
        ((2, 32, 35, 35), "f16:bfyx f16:b_fs_yx_fsv8", 8),
        ((2, 32, 35, 35), "f16:bfyx f16:b_fs_yx_fsv16", 16),  # a vector is half a line
        ((2, 32, 35, 35), "u8:bfyx u8:b_fs_yx_fsv32", 16),
    ],
)
def test_a_long_run_is_stored_by_what_is_aligned(
    dims: tuple[int, ...], types: str, piece: int
) -> None:
    plan, body = _plan(dims, types)
    assert body.nontemporal
    assert body.streamed_piece == piece
    assert ("of 4 lanes stores" in str(plan)) == (piece == 4)
    assert plan.alignment[1] == 64


@pytest.mark.parametrize(
    "types",
    [
        "f16:bfyx:2x32x35x35 f16:b_fs_yx_fsv4:2x32x35x35",  # pieces of 8 bytes
        "u8:bfyx:2x32x35x35 u8:b_fs_yx_fsv4:2x32x35x35",
        "f32:byxf:2x32x35x35 f32:b_fs_yx_fsv4:2x32x35x35",  # four positions are no long run
        "f32:bfyx:2x32x35x35 f32:b_fs_yx_fsv4:2x32x35x35:offset=1",
    ],
)
def test_shorter_ones_are_not(types: str) -> None:
    src, dst = map(cf.MemoryDesc.parse, types.split())
    body = make_plan(src, dst, Traits(streamed_bytes=0)).body
    assert isinstance(body, TilePlan)
    assert not body.nontemporal


def test_memory_that_begins_anywhere_is_stored_the_ordinary_way() -> None:
    _, body = _plan((2, 32, 35, 35), "f32:bfyx f32:b_fs_yx_fsv4", begin=16)
    assert not body.nontemporal


def test_what_is_read_narrow_is_written_in_rows_of_pages() -> None:
    """Along the positions of a box, then on to the next channels, though its rows are short."""
    _, body = _plan((1, 512, 128, 128), "u8:b_fs_yx_fsv4 f32:byxf")
    positions = next(k for k, n in enumerate(body.nodes) if n.size.value == 128 * 128)
    assert body.walk.inside == (positions,)
