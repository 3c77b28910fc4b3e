"""Blocks of which the source has few steps: 2 batches of 16, 3 inputs of 16."""

from __future__ import annotations

import pytest

import clformats as cf
from clformats.problems.problem import Problem
from clformats.problems.refine import problem
from clformats.problems.traits import Traits
from clformats.schedule.cost import CostModel
from clformats.schedule.nest import ordered, why_illegal
from clformats.schedule.runs import padded, present, told, vectors
from clformats.schedule.schedule import Schedule, Tile
from clformats.schedule.search import best
from clformats.schedule.traffic import traffic

CORES = Traits(compute_units=2, vector_bytes=32)
SCHEDULE = "tile b16 c16 d16 of 16 | a* b | ahead 4 | stream 64"


def of_batches(batches: int, read: str = "bfyx", block: int = 16) -> Problem:
    """To blocks of batches and channels: a channels / block, b places, c batches, d channels."""
    dims, blocked = (batches, 256, 112, 112), f"bs_fs_yx_bsv{block}_fsv{block}"
    src, dst = (cf.MemoryDesc(dims, "f32", name) for name in (read, blocked))
    return problem(src, dst)


def tile(text: str) -> Tile:
    return Schedule.parse(f"tile {text} | a* b | ahead 0 | ordinary").tile


@pytest.mark.parametrize(("src", "dst", "lacks"), [
    ("f32:oiyx:64x3x7x7", "f32:OIhw16i16o:64x3x7x7", [3]),
    ("f32:oiyx:64x3x7x7", "f32:OIhw4i16o4i:64x3x7x7", [1, 3]),
    ("f32:oiyx:64x6x7x7", "f32:OIhw4i16o4i:64x6x7x7", [2]),
    ("f32:oiyx:64x16x7x7", "f32:OIhw4i16o4i:64x16x7x7", []),
    ("f32:oiyx:64x17x7x7", "f32:OIhw16i16o:64x17x7x7", []),
])  # fmt: skip
def test_loops_have_the_steps_that_the_source_has(src: str, dst: str, lacks: list[int]) -> None:
    p = problem(cf.MemoryDesc.parse(src), cf.MemoryDesc.parse(dst))
    assert sorted(steps for _, steps in padded(p, "src")) == lacks
    assert padded(p, "dst") == []


@pytest.mark.parametrize(("text", "loaded", "share"), [
    ("b16 c16 d16 of 16", 3 * 16, 3 / 16), ("b16 c8 d16 of 16", 8 * 16, 1),
    ("b16 d16 of 16", 16, 1),
])  # fmt: skip
def test_tiles_of_whole_blocks_know_what_is_padding(text: str, loaded: int, share: float) -> None:
    p = of_batches(3)
    assert vectors(p, tile(text), "src") == loaded
    assert present(p, tile(text), "src") == present(p, tile(text), "dst") == share


def test_stores_of_padding_are_little_text() -> None:
    """A tile has more than `MOST_ELEMENTS` places, 16 x 32 x 32, if most are padding."""
    p, full = of_batches(1, block=32), of_batches(32, block=32)
    whole, part = tile("b16 c32 d32 of 16"), tile("b16 c8 d32 of 16")
    assert told(p, whole, "dst") == 1 / 32 + 31 / 32 / 16
    assert told(p, part, "dst") == told(full, whole, "dst") == 1
    schedule = Schedule(whole, ordered(p, whole, (0, 1), 2))
    assert not why_illegal(p, schedule)
    assert "4096 elements" in why_illegal(full, schedule)


def test_padding_is_not_read() -> None:
    """Tiles of two batches go to the rows of two, and cost what stores of the padding cost."""
    two, all_of_them = of_batches(2), of_batches(16)
    schedule = Schedule.parse(SCHEDULE)
    assert traffic(two, schedule, "src").rows == 2 * 16
    assert traffic(all_of_them, schedule, "src").rows == 16 * 16
    seconds, most = (CostModel(p, CORES).seconds(schedule) for p in (two, all_of_them))
    assert seconds < 0.7 * most


@pytest.mark.parametrize("read", ["bfyx", "byxf", "nChw8c", "b_fs_yx_fsv4"])
@pytest.mark.parametrize("batches", [1, 2, 3])
def test_blocks_of_mostly_padding_are_taken_whole(batches: int, read: str) -> None:
    """Else each tile asks which of its batches there are: two to three times the time."""
    p = of_batches(batches, read)
    block = next(axis for axis, _ in padded(p, "src"))
    assert best(p, CORES).tile.steps(block) == 16
