"""What is told of the rows of a side is what an odometer over the tiles sees."""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Iterator, Sequence
from itertools import pairwise, product

import pytest

from clformats.problems.problem import Problem
from clformats.problems.thresholds import FAR_BYTES, LINE_BYTES
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


def fetched(p: Problem, schedule: Schedule) -> int:
    """Bytes of the lines that stores fetch into a cache that forgets what was used first."""
    each, missed = p.dtypes[1].nbytes, 0
    held: OrderedDict[int, None] = OrderedDict()
    for first in tiles(p, schedule):
        for run in rows(p, schedule, first, "dst"):
            for line in range(run.start * each // LINE_BYTES, -(-run.stop * each // LINE_BYTES)):
                missed += line not in held
                held[line] = None
                held.move_to_end(line)
                if len(held) > FAR_BYTES // LINE_BYTES:
                    held.popitem(last=False)
    return missed * LINE_BYTES


@pytest.mark.parametrize(("channels", "loops", "whole"), [
    (512, "b a", True),
    (512, "a b", True),
    (2048, "b a", False),
])  # fmt: skip
def test_lines_that_are_stored_in_parts_are_fetched_once_while_the_caches_hold_them(
    channels: int, loops: str, whole: bool
) -> None:
    shape = f"1x{channels}x19x19"
    p = parsed(f"bf16:byxf:{shape}", f"u8:bfyx:{shape}")
    schedule = Schedule.parse(f"tile a16 b64 of 16 | {loops} | ahead 0 | ordinary")
    share = fetched(p, schedule) / (channels * 19 * 19)
    assert share < 1.3 if whole else share > 1.6
    assert traffic(p, schedule, "dst").whole == pytest.approx(share, rel=0.2)


@pytest.mark.parametrize(("columns", "follows"), [(1, True), (16, True), (17, False)])
def test_rows_go_on_after_gaps_of_less_than_a_page(columns: int, follows: bool) -> None:
    """2 batches of blocks of 16 are 32 bytes of each 256; one column of 16 is 32 of 4096."""
    pad = f"0+0x0+0x0+0x0+{columns - 1}"
    p = parsed(f"s8:bs_fs_yx_bsv16_fsv16:2x64x16x1:pad={pad}", "s8:yxfb:2x64x16x1")
    schedule = Schedule.parse("tile c16 d16 of 16 | b a | ahead 0 | ordinary")
    read = traffic(p, schedule, "src")
    assert read.follows == follows
    assert read.ended == (1 / 64 if follows else 1)


def test_a_loop_of_one_round_stops_no_row() -> None:
    p = parsed("f32:aBcd3b:32x512x7x56", "s8:yxfb:32x512x7x56")
    schedule = Schedule.parse("tile a16 c3 d16 of 16 | b*5 b a:16 d a | ahead 0 | ordinary")
    assert traffic(p, schedule, "dst").whole == pytest.approx(1.07, abs=0.01)


def test_tables_that_lead_to_more_rows_cost_no_more_jumps() -> None:
    """The next tile goes on in a row of this one, and then in another block."""
    p = parsed("s8:bs_fs_yx_bsv16_fsv16:32x64x7x56", "f16:aBcd24b:32x64x7x56")
    schedule = Schedule.parse("tile f8 of 8 | a b c d e | ahead 0 | ordinary")
    assert traffic(p, schedule, "src").jumps == pytest.approx(1 / 3)
