"""What a side of a schedule is to memory: the rows that tiles move, and how far apart they lie.

Rows a large power of two apart share few sets of a cache, and few banks of memory.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from math import inf

from ..problems import thresholds as weights
from ..problems.problem import Problem, remembered
from ..problems.thresholds import LINE_BYTES
from .nest import inside_out
from .runs import lacking, steady, steps_on
from .schedule import Loop, Schedule, Tile


@dataclass(frozen=True, slots=True)
class Traffic:
    """What a side of a schedule is to memory.

    ``run``: bytes of a row that come together, within the caches; ``jumps``: how often a tile goes
    to another row; ``rows`` of a tile; ``lasts``: for how many tiles, one after the other, these go
    on; ``ended``: how many of them end for each tile, also those that reach the next row.
    ``apart``: the largest power of two that divides the distances between places that come one
    after the other, in bytes. ``between``: how many rows come before one of them goes on, which
    counts only for stores to few banks; infinite elsewhere.
    ``begins``: the largest power of two of which all runs begin at multiples; at most a line.
    ``reread``: the tile's rows where their lines leave the nearest cache before the next tile goes
    on in them: all are in one set of it, and runs end inside lines. Runs of whole or half lines do
    not count: the second cache gives them in time.
    """

    run: int
    jumps: float
    rows: int
    lasts: int
    ended: float
    apart: int
    between: float
    begins: int
    reread: int = 0

    @property
    def follows(self) -> bool:
        """Whether the next tile goes on in the rows of one."""
        return self.lasts > 1

    @property
    def whole(self) -> float:
        """The most bytes that the lines of a run have for each of its bytes."""
        return (self.run + LINE_BYTES - self.begins) / self.run

    def missed(self, *, cached: bool) -> float:
        """How many of a tile's rows miss the few places of a cache, or banks, that they share.

        ``cached``: as they are stored to the caches, which hold lines of some of them.
        """
        if self.apart < weights.SAME_BANK:
            return 0.0
        if cached and self.rows * self.apart <= weights.FAR_BYTES:
            return self.jumps
        return float(self.rows) if self.between > weights.OPEN_ROWS else 0.0


def traffic(p: Problem, schedule: Schedule, side: str) -> Traffic:
    """The rows of a side: of a tile, and of the loops around it while the caches hold them.

    What is stored also goes on in rows of which they hold all lines of the loops inside. What is
    read does not: each part of a line is waited for.
    """
    steps = schedule.tile.all_steps(len(p.nodes))
    rows, run, apart = rows_of(p, side, tuple(steps))
    first, begins = rows, apart
    parts = run & -run < min(run, LINE_BYTES // 2)
    leaves = parts and apart >= weights.ONE_SET and rows > weights.SET_ROWS
    lasts, ended = _going_on(p, schedule, side)
    tiles, jumps = 1, float(rows)
    serial = [(x, rounds) for x, rounds in inside_out(p, schedule) if not x.spread and rounds > 1]
    for number, (loop, all_rounds) in enumerate(serial):
        rounds, (after, longer, far), held = _around(p, side, steps, loop.axis, all_rounds)
        tiles *= rounds
        follows = longer > run if side == "dst" else number == 0 and lasts > 1
        if number == 0 and follows:
            jumps = min(rows, after) / rounds
        elif number == 0:
            apart = far
        if not (held or follows):
            break
        if held:
            jumps = min(jumps, after / tiles)
        rows, run, begins = after, longer, far
        if rounds < all_rounds:
            break
    between = _between(p, schedule) if side == "dst" and apart >= weights.SAME_BANK else inf
    begins = min(LINE_BYTES, begins, run & -run)
    reread = first if lasts > 1 and leaves else 0
    return Traffic(run, jumps, first, lasts, ended, apart, between, begins, reread)


def _with_loops(p: Problem, schedule: Schedule) -> Iterator[tuple[Loop, int, tuple[int, ...]]]:
    """Each loop, innermost first, its rounds, and the steps of every axis that are done by then."""
    steps = schedule.tile.all_steps(len(p.nodes))
    for loop, rounds in inside_out(p, schedule):
        steps[loop.axis] *= rounds
        yield loop, rounds, tuple(steps)


def _going_on(p: Problem, schedule: Schedule, side: str) -> tuple[int, float]:
    """For how many tiles rows go on, and how many rows end for each tile: see `Traffic`.

    They go on along the innermost loops in which runs become longer. Of 8 rows that are one after 4
    tiles 7 end where the next begins, so 7 / 4 for each tile, and the last goes on. Where a loop
    does not make runs longer, all that are left end.
    """
    rows, run, _ = rows_of(p, side, tuple(schedule.tile.all_steps(len(p.nodes))))
    tiles, ended = 1, 0.0
    for loop, rounds, every in _with_loops(p, schedule):
        after, longer, _ = rows_of(p, side, every)
        if loop.spread or (rounds > 1 and longer <= run):
            break
        tiles *= rounds
        ended += (rows - after) / tiles
        rows, run = after, longer
    return tiles, ended + rows / tiles


def _between(p: Problem, schedule: Schedule) -> float:
    """How many rows of the destination come before the first goes on; infinite where none does."""
    rows, run, _ = rows_of(p, "dst", tuple(schedule.tile.all_steps(len(p.nodes))))
    for *_, every in _with_loops(p, schedule):
        after, longer, _ = rows_of(p, "dst", every)
        if longer > run:
            return rows
        rows = after
    return inf


def _around(
    p: Problem, side: str, steps: list[int], axis: int, rounds: int
) -> tuple[int, tuple[int, int, int], bool]:
    """(rounds, rows, whether caches hold them) of one loop more, which is added to ``steps``.

    Fewer rounds of a loop with a table, if these are held: after some it is in another block.
    """
    tabled = side == "src" and p.nodes[axis].table
    before = steps[axis]
    while True:
        steps[axis] = before * rounds
        rows, run, far = rows_of(p, side, tuple(steps))
        held = rows * max(run, LINE_BYTES) <= weights.FAR_BYTES
        held &= far < weights.SAME_BANK or rows * far <= weights.NEAR_BYTES
        if held or rounds == 1 or not tabled:
            return rounds, (rows, run, far), held
        rounds //= 2


def pages(p: Problem, tile: Tile) -> int:
    """In how many pages of the source a tile's rows are, at the least."""
    return _pages(p, tuple(tile.all_steps(len(p.nodes))))


@remembered
def _pages(p: Problem, every: tuple[int, ...]) -> int:
    """In how many pages of the source so many steps of every loop are, at the least."""
    page = 8 * weights.PAGE_BYTES // p.dtypes[0].bits
    steps = digits(p, "src", every)
    found = span = 1
    for stride, axis, _ in by_stride(p, "src"):
        if stride >= page:
            found *= steps[axis]
        else:
            span += stride * (steps[axis] - 1)
            found = -(-span // page)
    return found


def new_pages(p: Problem, schedule: Schedule) -> float:
    """How many pages of the source a tile goes to, in the mean, whose addresses are not held."""
    held, tiles = pages(p, schedule.tile), 1
    found = float(held)
    for loop, rounds, every in _with_loops(p, schedule):
        if loop.spread or held > weights.HELD_PAGES:
            break
        tiles *= rounds
        held = _pages(p, every)
        found = min(found, held / tiles)
    return found


@remembered
def by_stride(p: Problem, side: str) -> list[tuple[int, int, int]]:
    """The loops that move on a side, as (stride, loop, run), by stride; and the digits of tables.

    After a run of so many elements the loop goes on in the row: their stride, or less where the
    source has others between them, less than a page, as prefetchers follow; more where the next row
    begins before the steps of one end, as of 17 elements that are taken for two blocks of 16.
    """
    nodes, tables = p.nodes, p.tables if side == "src" else ()
    places = (table.place(every) for table in tables for every, _ in table.jumps)
    along = sorted((stride, axis) for axis, stride in enumerate((*steady(nodes, side), *places))
                   if stride)  # fmt: skip
    if tables or side == "dst":
        return [(stride, axis, stride) for stride, axis in along]
    found, run, end = [], 1, 1
    for stride, axis in along:
        near = (stride - end) * p.dtypes[0].bits < 8 * weights.PAGE_BYTES
        before = run if near else stride * run // end
        found.append((stride, axis, before))
        steps = steps_on(p, axis, side)
        run, end = before * steps, stride * steps
    return found


def digits(p: Problem, side: str, steps: Sequence[int]) -> list[int]:
    """Steps of each loop that a side has, and what they are along each digit of its tables."""
    there = [*steps]
    for axis, most in lacking(p, side):
        there[axis] = min(steps[axis], most)
    if side == "dst" or not p.tables:
        return there
    found = [*there]
    for t, table in enumerate(p.tables):
        left, every = _along(p, t, there), [every for every, _ in table.jumps]
        for small, large in zip(every, [*every[1:], left * every[-1]], strict=True):
            whole = large // small
            # Of blocks that are read for more than half, all lines are read.
            found.append(whole if 2 * left > whole else left)
            left = -(-left // whole)
    return found


def _along(p: Problem, table: int, steps: Sequence[int]) -> int:
    """How many steps of a table there are, from the first to the last of so many of the loops."""
    moved = (n.steps_of(table) * (k - 1) for n, k in zip(p.nodes, steps, strict=True))
    return 1 + sum(m for m in moved if m > 0)


@remembered
def covered(p: Problem, tile: Tile) -> float:
    """How many elements the blocks have that a tile reads a part of, for each that it takes.

    Only where tables lead to them. Tiles of 32 channels take two of three parts of blocks of 48, or
    the third and one of the next: the rest is fetched beside them, and again for other tiles.
    """
    found, steps = 1.0, tile.all_steps(len(p.nodes))
    for number, table in enumerate(p.tables):
        taken, block = _along(p, number, steps), table.jumps[-1][0]
        there = _along(p, number, [n.size.value for n in p.nodes])
        found *= min(there, -(-taken // block) * block) / taken
    return found


@remembered
def rows_of(p: Problem, side: str, every: tuple[int, ...]) -> tuple[int, int, int]:
    """(rows, bytes of each, the power of two in their distances) of so many steps of every loop."""
    bits, steps = p.dtypes[side == "dst"].bits, digits(p, side, every)
    rows = run = 1
    apart = weights.MOST_APART
    for stride, axis, before in by_stride(p, side):
        if before == run and rows == 1:
            run *= steps[axis]
        else:
            rows *= steps[axis]
            if steps[axis] > 1:
                apart = min(apart, (stride & -stride) * bits // 8)
    return rows, max(1, run * bits // 8), apart if rows > 1 else LINE_BYTES
