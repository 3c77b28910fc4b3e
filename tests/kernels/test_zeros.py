"""Stores of zeros that follow each other are a loop: of blocks that are mostly padding."""

from __future__ import annotations

import re
from math import prod

import pytest

import clformats as cf
from clformats.kernels.scheduled import render_schedule
from clformats.kernels.zeros import LEAST_LOOPED, runs
from clformats.problems.computation import from_attr
from clformats.problems.problem import Problem
from clformats.problems.refine import problem, separate
from clformats.problems.thresholds import MOST_ELEMENTS
from clformats.problems.words import in_words
from clformats.schedule.extents import tiles
from clformats.schedule.layout import TileVector
from clformats.schedule.runs import text_share
from clformats.schedule.schedule import Schedule
from tests.device_support import check_reorder
from tests.schedules_support import check_written, parsed

LOOP = re.compile(r"for \(idx zero = 0; zero < (\d+); \+\+zero\)")


def of_few(src: str, dst: str, batches: int, to: str) -> Problem:
    dims = (batches, 32, 64, 66)
    return problem(cf.MemoryDesc(dims, src, "bfyx"), cf.MemoryDesc(dims, dst, to))


def line(*places: tuple[int, int], width: int = 8) -> list[TileVector]:
    return [TileVector((row,), shift, width, ()) for row, shift in places]


@pytest.mark.parametrize(("lines", "lengths"), [
    ([], []),
    ([line((0, 0))], [1]),
    ([line((0, 0)), line((0, 8)), line((0, 16))], [3]),
    ([line((0, 0)), line((1, 8))], [1, 1]),
    ([line((0, 0)), line((0, 16)), line((0, 24))], [1, 2]),
    ([line((0, 8)), line((0, 0))], [1, 1]),
    ([line((0, 0), (0, 8)), line((0, 16), (0, 24))], [2]),
    ([line((0, 0), (0, 8)), line((0, 16))], [1, 1]),
    ([line((0, 0), (0, 8)), line((0, 16), (1, 24))], [1, 1]),
    ([line((0, 0)), line((0, 8), width=4)], [1, 1]),
])  # fmt: skip
def test_runs_are_of_equal_lines_without_gaps(
    lines: list[list[TileVector]], lengths: list[int]
) -> None:
    found = [*runs(lines, 8)]
    assert [len(r) for r in found] == lengths
    assert [k for r in found for k in r] == [*range(len(lines))]


@pytest.mark.parametrize(("src", "dst", "to", "batches", "tile", "store"), [
    ("f32", "f32", "bs_fs_yx_bsv32_fsv32", 1, "a8 b32 c32 of 8", "stream 64"),
    ("f32", "bf16", "bs_fs_yx_bsv32_fsv32", 2, "a8 b32 c32 of 16", "stream 64"),
    ("f16", "f16", "bs_fs_yx_bsv32_fsv32", 3, "a4 b32 c32 of 16", "stream 32"),
    ("u8", "f32", "bs_fs_yx_bsv16_fsv16", 1, "b8 c16 d16 of 16", "stream 64"),
    ("f16", "s8", "bs_fs_yx_bsv32_fsv32", 1, "a8 b32 c32 of 16", "stream 16"),
])  # fmt: skip
def test_padding_of_a_tile_is_zero(
    engine: cf.Engine, src: str, dst: str, to: str, batches: int, tile: str, store: str
) -> None:
    p = of_few(src, dst, batches, to)
    nest = "a" if tile.startswith("a") else "a b"
    schedule = Schedule.parse(f"tile {tile} | {nest} | ahead 2 | {store}")
    text = render_schedule(p, schedule).source
    assert min(map(int, LOOP.findall(text))) >= LEAST_LOOPED
    check_written(engine, p, schedule, seed=1)


@pytest.mark.parametrize(("src", "dst", "tile"), [
    ("f32:bfyx:2x3x5x7", "f32:aBcd200b:2x3x5x7", "c200 of 8 | a* b | ahead 2 | stream 32"),
    ("f32:bfyx:2x3x5x7", "f32:aBcd136b:2x3x5x7", "c136 of 4 | a* b | ahead 2 | stream 16"),
    ("u8:bfyx:2x3x5x7", "u8:aBcd272b:2x3x5x7", "c272 of 16 | a* b | ahead 2 | stream 16"),
    ("u8:bfyx:2x3x5x7", "f16:aBcd168b:2x3x5x7", "c168 of 8 | a* b | ahead 0 | stream 16"),
])  # fmt: skip
def test_blocks_that_lines_do_not_fill(engine: cf.Engine, src: str, dst: str, tile: str) -> None:
    """The last stores of a row are fewer than those of a line."""
    p = parsed(src, dst)
    schedule = Schedule.parse(f"tile {tile}")
    check_written(engine, p, schedule, seed=1)


@pytest.mark.parametrize(
    ("tile", "loops"), [("b8 c16 d16 of 8", 8 + 8), ("a2 b8 c16 d16 of 8", 16)]
)
def test_stores_at_an_edge_are_loops_unless_they_ask(
    engine: cf.Engine, tile: str, loops: int
) -> None:
    """The last of three blocks has 8 channels. Tiles of two blocks reach beyond memory there."""
    p = parsed("f32:bfyx:1x40x24x24", "f32:bs_fs_yx_bsv16_fsv16:1x40x24x24")
    schedule = Schedule.parse(f"tile {tile} | a b | ahead 2 | stream 64")
    assert len(LOOP.findall(render_schedule(p, schedule).source)) == loops
    check_written(engine, p, schedule, seed=1)


@pytest.mark.parametrize(("channels", "attr"), [
    (64, cf.Attr()), (60, cf.Attr()), (64, cf.Attr(src_scale=0.5)),
    (40, cf.Attr(src_scale=0.5, beta=0.7)),
])  # fmt: skip
def test_one_batch_of_32_by_the_rules(streaming: cf.Stream, channels: int, attr: cf.Attr) -> None:
    """Stores of computed values are each their own."""
    src, dst = (cf.MemoryDesc((1, channels, 24, 24), "f32", name)
                for name in ("bfyx", "bs_fs_yx_bsv32_fsv32"))  # fmt: skip
    check_reorder(src, dst, streaming, attr=attr)


def test_ordinary_stores_are_no_loop() -> None:
    p = of_few("f32", "f32", 1, "bs_fs_yx_bsv32_fsv32")
    schedule = Schedule.parse("tile a8 b32 c32 of 8 | a | ahead 2 | ordinary")
    assert not LOOP.search(render_schedule(p, schedule).source)


@pytest.mark.parametrize(("src", "attr"), [("f32", cf.Attr(src_scale=0.5)), ("u4", None)])
def test_what_is_no_loop_counts_as_other_text(src: str, attr: cf.Attr | None) -> None:
    """Values are computed with operands of each lane; elements of words are moved inside them."""
    dims = (1, 64, 64, 64)
    read, stored = (cf.MemoryDesc(dims, src, n) for n in ("bfyx", "bs_fs_yx_bsv32_fsv32"))
    p = in_words(
        separate(problem(read, stored, from_attr(attr, read, stored) if attr else None)), 64
    )
    for one in tiles(p):
        assert text_share(p, one) == 1
        assert prod(one.extents) <= MOST_ELEMENTS * prod(p.held(s) for s in ("src", "dst"))
