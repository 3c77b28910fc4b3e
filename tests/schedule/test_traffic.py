"""What is told of the rows of a side is what an odometer over the tiles sees."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from itertools import pairwise, product

import pytest

from clformats.problems.problem import Problem
from clformats.schedule.nest import counted
from clformats.schedule.runs import strides
from clformats.schedule.schedule import Schedule
from clformats.schedule.traffic import traffic
from tests.schedules_support import parsed

BLOCKS = ("f16:bs_fs_yx_bsv16_fsv16:32x16x4x4", "f16:nChw16c:32x16x4x4")
WEIGHTS = ("f32:OIhw4i16o4i:16x32x3x3", "f32:OIhw8o8i:16x32x3x3")
PLAIN = ("f32:bfyx:2x32x8x8", "f32:byxf:2x32x8x8")


def tiles(p: Problem, schedule: Schedule) -> Iterator[list[int]]:
    """Where each tile of the first work-item begins in the loops of the problem, in order."""
    nest = counted(p, schedule)
    serial = nest.loops[len(nest.counts) :]
    for steps in product(*(range(0, c.size, c.step) for c in serial)):
        found = [0] * len(p.nodes)
        for c, step in zip(serial, steps, strict=True):
            found[c.axis] = step
        yield found


def rows(p: Problem, schedule: Schedule, first: Sequence[int], side: str) -> list[range]:
    """The places of a tile in memory, as runs."""
    along = strides(p.nodes, side)
    every = product(*(range(n, n + k) for n, k in
                      zip(first, schedule.tile.all_steps(len(p.nodes)), strict=True)))  # fmt: skip
    found: list[range] = []
    for at in sorted(sum(n * k for n, k in zip(step, along, strict=True)) for step in every):
        if found and found[-1].stop == at:
            found[-1] = range(found[-1].start, at + 1)
        else:
            found.append(range(at, at + 1))
    return found


@pytest.mark.parametrize(("pair", "text", "side"), [
    (BLOCKS, "b2 c16 d16 of 16 | a c b | ahead 0 | stream 64", "src"),
    (BLOCKS, "b4 c4 d16 of 16 | a c b | ahead 0 | stream 64", "src"),
    (BLOCKS, "b16 c4 d16 of 16 | a c | ahead 0 | stream 64", "src"),
    (BLOCKS, "b4 c4 d16 of 16 | a b c | ahead 0 | stream 64", "src"),
    (BLOCKS, "b4 c4 d16 of 16 | a b c | ahead 0 | stream 64", "dst"),
    (WEIGHTS, "e8 f2 g4 of 8 | a b c d | ahead 0 | stream 64", "src"),
    (PLAIN, "b16 c16 of 16 | a* b c | ahead 0 | stream 64", "src"),
    (PLAIN, "b16 c16 of 16 | a* c b | ahead 0 | stream 64", "src"),
    (PLAIN, "b16 c16 of 16 | a* b c | ahead 0 | stream 64", "dst"),
])  # fmt: skip
def test_rows_end_where_the_next_tile_does_not_go_on(
    pair: tuple[str, str], text: str, side: str
) -> None:
    p, schedule = parsed(*pair), Schedule.parse(f"tile {text}")
    every = [rows(p, schedule, first, side) for first in tiles(p, schedule)]
    ended = [{r.stop for r in now} - {r.start for r in after}
             for now, after in pairwise([*every, []])]  # fmt: skip
    told = traffic(p, schedule, side)
    assert told.rows == len(every[0])
    assert told.lasts == 1 + [len(e) == told.rows for e in ended].index(True)
    # Where a loop does not go on, some tile may by chance, as the last one before a next block.
    assert told.ended * 0.95 <= sum(map(len, ended)) / len(every) <= told.ended
