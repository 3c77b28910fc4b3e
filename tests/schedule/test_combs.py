"""Short loops that memory interleaves: which tiles take them apart, and where lines are whole."""

from __future__ import annotations

import pytest

import clformats as cf
from clformats.kernels import launch
from clformats.schedule import make_plan
from clformats.schedule.boxes import source_runs
from clformats.schedule.network import deinterleave, interleave
from clformats.schedule.tile import TilePlan
from clformats.schedule.traits import Traits

LARGE = Traits(streamed_bytes=0)


def _plan(dims: tuple[int, ...], types: str, traits: Traits = LARGE) -> TilePlan:
    src, dst = (cf.MemoryDesc(dims, *text.split(":")) for text in types.split())
    body = make_plan(src, dst, traits).body
    assert isinstance(body, TilePlan)
    return body


@pytest.mark.parametrize("size", [2, 3, 5, 6, 7, 11, 15])
@pytest.mark.parametrize("lanes", [4, 8, 16])
def test_what_is_taken_apart_is_put_together_again(size: int, lanes: int) -> None:
    def mixed(mixes: tuple[tuple[tuple[int, ...], ...], ...], of: list[list[int]]) -> object:
        result = []
        for first, *later in mixes:
            both = of[0] + of[1]
            value = [both[k] for k in first]
            for pattern, other in zip(later, of[2:], strict=True):
                both = value + other
                value = [both[k] for k in pattern]
            result.append(value)
        return result

    run = [[r * lanes + k for k in range(lanes)] for r in range(size)]
    apart = [[k * size + c for k in range(lanes)] for c in range(size)]
    assert mixed(deinterleave(size, lanes), run) == apart
    assert mixed(interleave(size, lanes), apart) == run


@pytest.mark.parametrize(
    ("dims", "types", "interleaves", "registers"),
    [
        ((3, 64, 12, 16), "f32:yxfb f32:b_fs_yx_fsv16", (True, False), 3),
        ((3, 64, 12, 16), "f32:yxfb f32:b_fs_yx_fsv8", (True, False), 6),
        ((3, 64, 12, 16), "f32:yxfb f16:b_fs_yx_fsv8", (True, False), 12),
        ((5, 64, 12, 16), "f32:yxfb f16:b_fs_yx_fsv4", (True, False), 40),
        ((3, 64, 12, 16), "u8:yxfb u8:b_fs_yx_fsv4", (True, False), 48),
        ((5, 50, 12, 16), "f32:yxfb f32:b_fs_yx_fsv4", (True, False), 20),
        ((5, 64, 12, 16), "f32:yxfb f32:byxf", (True, False), 5),
        ((2, 6, 128, 128), "f32:byxf f32:bfyx", (True, False), 6),
        ((7, 60, 12, 16), "f32:b_fs_yx_fsv8 f32:yxfb", (False, True), 14),
        ((12, 60, 12, 16), "f32:b_fs_yx_fsv16 f32:yxfb", (False, True), 12),
        ((3, 64, 12, 16), "f32:byxf f32:yxfb", (False, True), 3),
        ((2, 3, 128, 128), "u8:byxf u8:bfyx", (True, False), 12),
    ],
)
def test_a_short_loop_is_taken_apart(
    dims: tuple[int, ...], types: str, interleaves: tuple[bool, bool], registers: int
) -> None:
    plan = _plan(dims, types)
    assert plan.comb
    assert plan.interleaves == interleaves
    assert plan.register_count == registers
    assert plan.load_piece == plan.store_piece == plan.lanes == 16
    assert plan.nontemporal


@pytest.mark.parametrize(
    ("dims", "types"),
    [
        ((4, 64, 12, 16), "f32:yxfb f32:b_fs_yx_fsv8"),  # four are bits of a tile like others
        ((16, 64, 12, 16), "f32:yxfb f32:b_fs_yx_fsv8"),
        ((12, 64, 12, 16), "f32:yxfb f32:b_fs_yx_fsv16"),  # tiles of 8 that overlap are as fast
        ((12, 64, 12, 16), "u8:b_fs_yx_fsv16 u8:yxfb"),
        ((3, 64, 12, 16), "f32:yxfb f32:bfyx"),  # one long run: positions are the other lanes
        ((5, 64, 12, 16), "f16:yxfb f16:b_fs_yx_fsv4"),  # words are woven
        ((5, 64, 12, 16), "f32:byxf f32:yxfb"),  # lines are joined
        ((12, 64, 12, 16), "f32:b_fs_yx_fsv16 f32:yxfb"),
        ((2, 13, 128, 128), "f32:bfyx f32:byxf"),
        ((8, 12, 4, 3), "f16:b_fs_yx_fsv4 f16:bfyx"),  # blocks and positions are one run
        ((7, 64, 12, 16), "u8:yxfb u8:bs_fs_yx_bsv16_fsv16"),  # the batch is padded
    ],
)
def test_other_loops_are_not(dims: tuple[int, ...], types: str) -> None:
    assert _plan(dims, types).comb is None


@pytest.mark.parametrize(
    ("dims", "types", "taken"),
    [
        ((64, 48, 3, 3), "f32:ioyx f32:oiyx", True),
        ((64, 48, 3, 3), "f16:oiyx f16:ioyx", True),
        ((61, 47, 1, 5), "f32:oiyx f32:ioyx", True),
        ((61, 47, 3, 3), "f16:oiyx f16:ioyx", False),  # rows start anywhere
        ((64, 48, 3, 3), "f32:oiyx f16:ioyx", False),  # converted one by one
        ((64, 48, 3, 3), "u8:oiyx u8:ioyx", False),
    ],
)
def test_what_both_sides_interleave_is_gathered(
    dims: tuple[int, ...], types: str, *, taken: bool
) -> None:
    plan = _plan(dims, types)
    assert bool(plan.comb) == taken
    assert plan.interleaves == (False, taken)


def test_bytes_of_floats_are_not_held_in_more_registers_than_there_are() -> None:
    plan = _plan((3, 64, 12, 16), "f32:yxfb s8:b_fs_yx_fsv4")
    assert plan.register_count == 12
    assert not plan.nontemporal


def test_a_run_of_the_destination_moves_by_whole_lines() -> None:
    """Batch and features together are one run there: its half lines follow each other."""
    plan = _plan((3, 192, 9, 7), "f16:bfyx f16:yxfb")
    assert any(n.parts for n in plan.nodes)
    assert plan.nontemporal


def test_boxes_hold_all_steps_of_what_is_taken_apart() -> None:
    plan = _plan((3, 192, 97, 131), "f32:yxfb f16:b_fs_yx_fsv8")
    assert plan.comb
    assert plan.walk.inside
    (run, step), *_ = source_runs(plan, plan.walk)
    assert (step, run % (3 * 192)) == (1, 0)


def test_rows_that_are_put_together_are_counted() -> None:
    """One row for each of the batch: tiles are walked along them, not across the features."""
    plan = _plan((12, 124, 90, 90), "f32:b_fs_yx_fsv16 f32:yxfb")
    positions = next(k for k, n in enumerate(plan.nodes) if n.size.value == 90 * 90)
    assert plan.walk.innermost == positions


@pytest.mark.parametrize(
    ("dims", "types"),
    [
        ((100, 101, 1, 15), "f16:os_is_yx_osv16_isv4 f16:oiyx"),
        ((40, 56, 3, 1, 1), "f32:OIdhw16i16o f32:oizyx"),
        ((64, 35, 7, 32), "f8_e4m3:bs_fs_yx_bsv8_fsv2 f64:bxfy"),
        ((100, 101, 3, 3), "f32:OIhw16i16o4i f32:oiyx"),
        ((16, 56, 7, 1), "u8:oiyx u8:OIhw4i16o4i"),
    ],
)
def test_tiles_at_edges_are_not_too_long_to_compile(dims: tuple[int, ...], types: str) -> None:
    src, dst = (cf.MemoryDesc(dims, *text.split(":")) for text in types.split())
    plan = make_plan(src, dst, LARGE)
    assert isinstance(plan.body, TilePlan)
    assert plan.body.register_count <= 36


def test_what_is_put_together_of_a_lane_has_one_condition() -> None:
    dims = (100, 101, 3, 3)
    plan = make_plan(cf.MemoryDesc(dims, "f32", "OIhw16i16o4i"), cf.MemoryDesc(dims, "f32", "oiyx"))
    kernel = launch(plan)
    assert kernel is not None
    rows, lanes = 4, 16
    assert kernel.source.count("{ *(to") + kernel.source.count("{ *to") == rows * lanes
    # Of a line of several rows some may be no part of the destination at all.
    dims = (1, 96, 4, 3)
    assert launch(
        make_plan(cf.MemoryDesc(dims, "s8", "OIhw4i4o"), cf.MemoryDesc(dims, "bf16", "ioyx"))
    )
