"""Stores of zeros that follow each other are a loop: of blocks that are mostly padding."""

from __future__ import annotations

import re

import numpy as np
import pytest

import clformats as cf
from clformats.kernels.scheduled import render_schedule
from clformats.kernels.zeros import LEAST_LOOPED, runs
from clformats.problems.problem import Problem
from clformats.problems.refine import problem
from clformats.schedule.layout import TileVector
from clformats.schedule.schedule import Schedule
from tests.schedules_support import before_and_after, written

LOOP = re.compile(r"for \(idx zero = 0; zero < (\d+); \+\+zero\)")


def of_few(src: str, dst: str, batches: int, to: str) -> Problem:
    dims = (batches, 32, 64, 66)
    return problem(cf.MemoryDesc(dims, src, "bfyx"), cf.MemoryDesc(dims, dst, to))


def vector(row: int, shift: int) -> TileVector:
    return TileVector((row,), shift, 8, ())


@pytest.mark.parametrize(("vectors", "lengths"), [
    ([], []), ([(0, 0)], [1]), ([(0, 0), (0, 8), (0, 16)], [3]), ([(0, 0), (1, 8)], [1, 1]),
    ([(0, 0), (0, 16), (0, 24)], [1, 2]), ([(0, 8), (0, 0)], [1, 1]),
])  # fmt: skip
def test_runs_are_of_a_row_and_without_gaps(
    vectors: list[tuple[int, int]], lengths: list[int]
) -> None:
    found = [*runs([vector(*v) for v in vectors], 8)]
    assert [len(r) for r in found] == lengths
    assert [k for r in found for k in r] == [*range(len(vectors))]


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
    source, expected = before_and_after(p, 1)
    assert np.array_equal(written(engine, p, schedule, source, baked=False), expected)


def test_stores_that_other_tiles_share_or_compute_are_no_loop() -> None:
    """Ordinary stores are few for small tensors; of operands each lane may have its own."""
    p = of_few("f32", "f32", 1, "bs_fs_yx_bsv32_fsv32")
    schedule = Schedule.parse("tile a8 b32 c32 of 8 | a | ahead 2 | ordinary")
    assert not LOOP.search(render_schedule(p, schedule).source)
