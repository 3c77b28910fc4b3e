"""Blocks that hold more than there is: which of them are filled from one vector of the source."""

from __future__ import annotations

import pytest

import clformats as cf
from clformats.schedule import make_plan
from clformats.schedule.tile import TilePlan
from clformats.schedule.traits import Traits
from clformats.schedule.windows import windows_of


def _plan(dims: tuple[int, ...], types: str, traits: Traits | None = None) -> TilePlan:
    src, dst = (cf.MemoryDesc(dims, *text.split(":")) for text in types.split())
    body = make_plan(src, dst, traits or Traits()).body
    assert isinstance(body, TilePlan)
    return body


@pytest.mark.parametrize(
    ("dims", "types", "windows", "registers"),
    [
        ((8, 3, 224, 224), "u8:byxf f16:b_fs_yx_fsv16", 1, 4),
        ((8, 3, 224, 224), "f32:byxf f32:b_fs_yx_fsv16", 1, 4),
        ((8, 4, 113, 57), "f16:byxf f16:b_fs_yx_fsv16", 1, 4),
        ((8, 5, 113, 57), "f32:byxf f16:b_fs_yx_fsv16", 1, 2),
        ((8, 9, 113, 57), "f32:byxf f16:b_fs_yx_fsv16", 2, 2),
        ((8, 3, 224, 224), "u8:byxf u8:b_fs_yx_fsv4", 4, 4),
        ((8, 3, 224, 224), "u8:byxf u8:b_fs_yx_fsv8", 2, 4),
        ((8, 3, 224, 224), "u8:byxf u8:b_fs_yx_fsv32", 1, 8),
        ((16, 5, 57, 33), "f32:byxf f16:bs_fs_yx_bsv16_fsv16", 2, 2),
        ((8, 12, 224, 224), "f32:byxf f16:b_fs_yx_fsv16", 2, 2),
        ((8, 12, 224, 224), "f32:byxf f32:b_fs_yx_fsv16", 0, 1),
        ((8, 17, 224, 224), "f32:b_fs_yx_fsv8 f16:b_fs_yx_fsv32", 0, 4),
        ((8, 3, 224, 224), "f32:bfyx f32:b_fs_yx_fsv16", 0, 16),
    ],
)
def test_a_window_fills_as_many_blocks_as_it_has_elements_for(
    dims: tuple[int, ...], types: str, windows: int, registers: int
) -> None:
    plan = _plan(dims, types)
    assert len(windows_of(plan)) == windows
    assert plan.register_count == registers


@pytest.mark.parametrize("channels", [2, 3, 5, 7, 11, 15])
@pytest.mark.parametrize("block", [4, 8, 16, 32])
@pytest.mark.parametrize("traits", [Traits(), Traits(streamed_bytes=0)])
def test_lanes_take_their_elements_and_zeros_else(
    channels: int, block: int, traits: Traits
) -> None:
    plan = _plan((2, channels, 17, 13), f"u8:byxf u8:b_fs_yx_fsv{block}", traits)
    windows = windows_of(plan)
    seen: dict[int, int] = {}
    for window in windows:
        first = window.first * plan.lanes + window.lane
        assert first % block < channels
        begins = first // block * channels + first % block
        for register, taken in window.spread:
            for lane, n in enumerate(taken):
                at = register * plan.lanes + lane
                assert (n is None) == (at % block >= channels)
                if n is not None:
                    assert n < plan.lanes
                    seen[at] = begins + n
    assert bool(windows) == (channels < block)
    assert all(place == at // block * channels + at % block for at, place in seen.items())
    count = plan.register_count * plan.lanes // block
    assert not windows or len(seen) == count * channels
