"""Walks in boxes of several loops, on plans alone: which boxes, and what is asked for of them."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import product
from math import prod

import pytest

import clformats as cf
from clformats.formats.expr import Expr, Var
from clformats.kernels.ahead import Box, asks_of, box_arguments
from clformats.schedule import make_plan
from clformats.schedule.boxes import LEAST_BOX_BYTES, PARTS_OF_LINES, source_runs
from clformats.schedule.tile import TilePlan
from clformats.schedule.traits import LINE_BYTES, Traits
from clformats.schedule.walk import ASKED_BYTES, PREFETCH_RUN_BYTES

FULL = (32, 64, 56, 56)
BOXED = [
    ("f32:bs_fs_yx_bsv32_fsv32", "f32:bfyx", FULL),
    ("f32:bs_fs_yx_bsv32_fsv32", "f32:byxf", FULL),
    ("f16:bs_fs_yx_bsv32_fsv32", "f16:b_fs_yx_fsv16", (64, 128, 56, 56)),
    ("u8:bs_fs_yx_bsv32_fsv32", "u8:b_fs_yx_fsv4", (128, 160, 56, 56)),
    ("f32:b_fs_yx_fsv16", "f32:bs_fs_yx_bsv32_fsv16", (64, 64, 56, 56)),
    ("f16:yxfb", "f16:bs_fs_yx_bsv32_fsv32", (64, 128, 56, 56)),
    ("f32:fs_b_yx_fsv32", "f32:yxfb", FULL),
    ("f32:byxf", "f32:fs_b_yx_fsv32", (16, 512, 56, 56)),
    ("f32:bs_fs_yx_bsv32_fsv32", "s8:bfyx", (64, 96, 64, 64)),
    ("u8:bs_fs_yx_bsv16_fsv16", "u8:byxf", (128, 160, 56, 56)),
    ("f32:yxfb", "f16:bfyx", (8, 96, 112, 112)),
    ("f32:oiyx", "f32:OIhw16i16o4i", (1280, 320, 3, 3)),
]


def _plan(src: str, dst: str, dims: tuple[int, ...]) -> TilePlan:
    a, b = (cf.MemoryDesc(dims, *text.split(":")) for text in (src, dst))
    body = make_plan(a, b).body
    assert isinstance(body, TilePlan)
    return body


@pytest.mark.parametrize(("src", "dst", "dims"), BOXED)
def test_boxes_read_long_runs(src: str, dst: str, dims: tuple[int, ...]) -> None:
    plan = _plan(src, dst, dims)
    path, item = plan.walk, plan.problem.src.dtype.nbytes
    assert path.middle in path.inside
    assert path.inner is None
    (run, step), *rows = source_runs(plan, path)
    assert step == 1
    assert run * item >= PREFETCH_RUN_BYTES
    box = run * item * prod(count for count, _ in rows)
    assert LEAST_BOX_BYTES // 2 <= box <= 2 * ASKED_BYTES
    counts = {k: plan.positions(k).value for k in range(len(plan.nodes))}
    assert sorted(path.loops) == [k for k, count in counts.items() if count > 1]
    assert path.chunk <= counts[path.middle or 0]
    assert path.chunk % path.ahead == 0 or path.chunk == counts[path.middle or 0]
    assert f"{path.ahead} of loop {path.middle}" in str(path).split("boxes of")[1]


@pytest.mark.parametrize(
    ("src", "dst", "dims"),
    [
        ("f32:bs_fs_yx_bsv32_fsv32", "f32:bfyx", (1, 32, 56, 56)),  # the cache holds it
        ("f32:bfyx", "f32:b_fs_yx_fsv16", FULL),  # two loops read long rows
        ("f32:byxf", "f32:bfyx", FULL),  # one piece
        ("f32:byxf", "f32:b_fs_yx_fsv16", (32, 61, 55, 57)),  # the last block of 4 overlaps
        ("f16:b_fs_yx_fsv32", "f16:bfyx", (32, 128, 56, 56)),
        ("f32:bfyx", "f32:bs_fs_yx_bsv16_fsv16", FULL),  # rows in boxes already
        ("f16:fs_b_yx_fsv32", "f16:bfyx", (16, 64, 75, 75)),  # lines are carried on
    ],
)
def test_where_two_loops_do_there_are_none(src: str, dst: str, dims: tuple[int, ...]) -> None:
    assert not _plan(src, dst, dims).walk.inside


def test_whole_lines_are_written_as_the_source_lies_and_parts_as_the_destination_does() -> None:
    for src, dst, dims in BOXED:
        plan = _plan(src, dst, dims)
        side = "src" if plan.nontemporal else "dst"
        steps = [getattr(plan.nodes[k], side).value << plan.bits[k] for k in plan.walk.inside]
        assert steps == sorted(steps, reverse=True)


def test_by_ordinary_stores_runs_are_long_where_the_box_is_not_too_large() -> None:
    near = _plan("u8:bs_fs_yx_bsv16_fsv16", "u8:byxf", (128, 160, 56, 56)).walk
    assert near.ahead * 4 * 160 >= PARTS_OF_LINES[0][0]
    far = _plan("f32:bs_fs_yx_bsv32_fsv32", "s8:bfyx", (64, 96, 64, 64)).walk
    assert far.ahead * 16 == LINE_BYTES


@pytest.mark.parametrize("batch", [3, 31])
def test_of_blocks_that_the_batch_does_not_fill_nothing_else_is_read(batch: int) -> None:
    dims = (batch, 192, 97, 131)
    plan = _plan("u8:bs_fs_yx_bsv32_fsv32", "f32:bfyx", dims)
    assert not plan.problem.guards
    (run, _), *_ = source_runs(plan, plan.walk)
    assert run == 32 * batch
    # Where the batch is a run, lanes are masked; padding that is written has a guard.
    assert _plan("u8:bs_fs_yx_bsv32_fsv32", "f32:yxfb", dims).problem.guards
    assert _plan("u8:bfyx", "f32:bs_fs_yx_bsv32_fsv32", dims).problem.guards


def test_padding_is_written_from_end_to_end() -> None:
    """The batch of 8 is in blocks of 32: of each position 24 are zeroed, which reads nothing."""
    plan = _plan("u8:byxf", "u8:bs_fs_yx_bsv32_fsv32", (8, 96, 112, 112))
    assert {k for k, n in enumerate(plan.nodes) if n.guard is not None} <= set(plan.walk.inside)


def _asked(plan: TilePlan, count: int) -> Iterator[int]:
    """Where the first lines begin that a box asks for, from its begin on: what ASK_NEXT does."""
    values, line = box_arguments(plan), LINE_BYTES // plan.problem.src.dtype.nbytes
    runs = [name for name in values if name.startswith("lines")]
    done, at = [0] * len(runs), 0
    for _ in range(count):
        yield at
        at += line
        for k in range(len(runs)):
            done[k] += 1
            if done[k] < values[f"lines{k}"]:
                break
            done[k] = 0
            at += values[f"skip{k}"]


@pytest.mark.parametrize(("src", "dst", "dims"), BOXED)
def test_every_line_of_a_box_is_asked_for_once_in_the_order_of_addresses(
    src: str, dst: str, dims: tuple[int, ...]
) -> None:
    plan = _plan(src, dst, dims)
    line = LINE_BYTES // plan.problem.src.dtype.nbytes
    (run, _), *rows = source_runs(plan, plan.walk)
    lines = -(-run // line)
    asked = list(_asked(plan, lines * prod(count for count, _ in rows)))
    assert asked == sorted(set(asked))
    starts = sorted(
        sum(k * step for k, (_, step) in zip(place, rows, strict=True))
        for place in product(*(range(count) for count, _ in rows))
    )
    assert asked == [start + k * line for start in starts for k in range(lines)]


@pytest.mark.parametrize(("src", "dst", "dims"), BOXED)
def test_the_tiles_of_a_box_ask_for_as_many_lines_as_it_has(
    src: str, dst: str, dims: tuple[int, ...]
) -> None:
    """Tiles at an edge ask for nothing, and the last ones along a loop may overlap."""
    plan = _plan(src, dst, dims)
    path, item = plan.walk, plan.problem.src.dtype.nbytes
    strides: list[Expr] = [Var(f"s{k}") for k in range(len(plan.nodes))]
    asks = asks_of(plan, strides, {path.middle or 0: Var("count")})
    assert isinstance(asks, Box)
    tile = plan.elements * item
    assert asks.lines == max(1, tile // LINE_BYTES)
    assert asks.lines * LINE_BYTES == tile * asks.turns


def test_what_is_chosen_changes_the_box() -> None:
    a, b = (cf.MemoryDesc(FULL, "f32", fmt) for fmt in ("bs_fs_yx_bsv32_fsv32", "bfyx"))
    for ahead, chunk in ((0, 1), (8, 24), (1 << 20, 1 << 30)):
        body = make_plan(a, b, Traits(), choices=cf.Choices(ahead=ahead, chunk=chunk)).body
        assert isinstance(body, TilePlan)
        count = body.positions(body.walk.middle or 0).value
        farthest = 1 << (count - 1).bit_length() >> 1
        assert body.walk.ahead == max(1, min(ahead, farthest))
        assert body.walk.chunk == min(chunk, count)
