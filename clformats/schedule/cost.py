"""How long a schedule takes, as far as a profile of the processor tells: to order candidates.

Either the shuffles of the tiles take the time, or memory does. Memory is read and written in lines:
a line of which a tile has a part is fetched again for the other parts, unless they come while it is
still cached; a jump to another row costs as much as reading some more bytes would. Rows whose
distance is a multiple of a large power of two share few sets of a cache, and few banks of memory.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from math import log2, prod

from ..problems.problem import Problem, remembered
from ..problems.traits import LINE_BYTES
from .nest import positions
from .profile import Profile
from .runs import chain, common, is_settled, run_of, steady, vectors
from .schedule import Loop, Schedule, Tile
from .stores import staged_tiles

OWNED = 3.0
"""Bytes that move for each byte of an ordinary store: its line is read, and written back."""
PASSED = 1.5
"""The same where stores pass by a cache that would have held the line."""
SURELY = 1 - 1e-9
"""A lower bound is below what it bounds, however both are rounded."""
SAME_BANK = 512
"""Places so many bytes apart, times any whole number, are in few banks of memory and few sets of a
cache. Lines that pass the cache, two cores of a Zen 5: 34 GB/s at odd multiples of 64 and 128,
23 of 256, 13 of 512 and more; runs of two lines 48, 45, 26, of four 53, 53, 46."""
MOST_APART = 1 << 16
"""How far apart lines have to be to share one place of the second cache, at the most."""
LOOKED_NS = 0.6
"""What it takes to look up a place in a table."""
INSERTED = 5
"""Accesses that a lane costs which is loaded by itself."""
SPILLED = 12
"""Accesses that a shuffle costs of a register that there is none for."""


@dataclass(frozen=True, slots=True)
class Traffic:
    """What a side of a schedule is to memory.

    ``run``: bytes of a row that come together, within the caches; ``jumps``: how often a tile goes
    to another row; ``rows`` of a tile; ``follows``: whether the next tile goes on in them;
    ``goes_on``: contiguous bytes of a row, until the loops leave it. ``apart``: the largest power
    of two that divides the distances between places that come one after the other, in bytes.
    """

    run: int
    jumps: float
    rows: int
    follows: bool
    goes_on: int
    apart: int


class CostModel:
    """The cost of schedules of one problem; what they have in common is computed once."""

    def __init__(self, p: Problem, profile: Profile) -> None:
        self.p, self.profile = p, profile
        self.is_large = p.nbytes >= profile.stream_bytes
        # Tiles that overlap find in the caches what they move again.
        self.elements = prod(n.size.value for n in p.nodes or ())
        self._core: dict[Tile, tuple[list[int], float]] = {}
        self._traffic: dict[tuple[Tile, tuple[Loop, ...]], tuple[Traffic, Traffic]] = {}

    def _of_tile(self, tile: Tile) -> tuple[list[int], float]:
        """How many tiles there are along each loop, and the time of one in the nearest cache."""
        if tile not in self._core:
            self._core[tile] = positions(self.p, tile), _core(self.p, tile, self.profile)
        return self._core[tile]

    def least(self, tile: Tile) -> float:
        """What every schedule of a tile takes: all cores work, whole lines are moved once."""
        counts, each = self._of_tile(tile)
        core = prod(counts) * (each + self.profile.tile_ns) / self.profile.units
        moved = self.elements * sum(t.bits / 8 for t in self.p.dtypes)
        busy = _together(core, moved * self._byte_ns) + self.profile.item_ns
        return busy * 1e-9 * SURELY

    @property
    def _byte_ns(self) -> float:
        return self.profile.byte_ns * (1.0 if self.is_large else self.profile.cached)

    def seconds(self, schedule: Schedule) -> float:
        """The estimated time of a schedule."""
        p, profile, tile = self.p, self.profile, schedule.tile
        counts, each = self._of_tile(tile)
        key = tile, schedule.nest
        if key not in self._traffic:
            self._traffic[key] = (
                traffic(p, schedule, "src", counts, profile),
                traffic(p, schedule, "dst", counts, profile),
            )
        tiles = prod(counts)
        ahead = profile.tile_ns / 2 if schedule.prefetch.lead else 0.0
        each += _at_edges(p, tile, tuple(counts)) * prod(tile.extents) * profile.edge_ns
        items = prod(-(-counts[loop.axis] // loop.tiles) for loop in schedule.nest if loop.spread)
        units = min(profile.units, items)
        core = tiles * (each + profile.tile_ns + ahead) / units
        memory = self._memory(schedule, tiles, self._traffic[key])
        # Some cores wait for the last one.
        waits = -(-items // units) * units / items
        return (_together(core, memory) * waits + items * profile.item_ns / units) * 1e-9

    def _memory(self, schedule: Schedule, tiles: int, sides: tuple[Traffic, Traffic]) -> float:
        """The time that memory takes."""
        profile, store = self.profile, schedule.store
        src, dst = self.p.dtypes
        read, written = sides
        jump = profile.asked_bytes if schedule.prefetch.lead else profile.jump_bytes
        crowded = read.follows and read.rows > profile.streams and not schedule.prefetch.lead
        lost = max(1.0, LINE_BYTES / read.run)
        each = src.bits * lost + dst.bits * self._moved(written, schedule)
        moved = self.elements * each / 8
        moved += tiles * read.jumps * jump * (2 if crowded else 1)
        moved += tiles * (0 if read.follows else read.rows) * profile.hop_bytes
        if store.is_ordinary:
            crowds = profile.bank_bytes if written.apart >= SAME_BANK else 0
            moved += tiles * written.jumps * (profile.asked_bytes + crowds)
        elif not store.staged and (written.rows > 1 or not written.follows):
            moved += tiles * written.rows * profile.sent_bytes
            if written.apart >= SAME_BANK:
                moved = max(moved, tiles * written.rows * profile.bank_bytes)
        return moved * self._byte_ns

    def _moved(self, written: Traffic, schedule: Schedule) -> float:
        """How many bytes move for each byte that is stored."""
        tile, nest, store = schedule.tile, schedule.nest, schedule.store
        if store.is_ordinary:
            return max(1.0, LINE_BYTES / written.run) * (OWNED if self.is_large else 1.0)
        if store.staged:
            _, run = staged_tiles(self.p, tile, nest, store.staged)
            moved = 1.1 + 4 * LINE_BYTES / (run * self.p.dtypes[1].nbytes)
        elif store.lines:
            # Rows begin and end with parts of lines.
            moved = 1.6 + 24 * LINE_BYTES / max(written.goes_on, LINE_BYTES)
        else:
            moved = 1.0 if written.run % LINE_BYTES == 0 else 4.0
        return moved if self.is_large else PASSED * moved


def _together(core: float, memory: float) -> float:
    """What is done at the same time is not quite free."""
    return max(core, memory) + min(core, memory) / 4


def seconds(p: Problem, schedule: Schedule, profile: Profile) -> float:
    """The estimated time of a schedule."""
    return CostModel(p, profile).seconds(schedule)


def _core(p: Problem, tile: Tile, profile: Profile) -> float:
    """The time of a tile whose memory is in the nearest cache."""
    src, dst = p.dtypes
    loads, stores = vectors(p, tile, "src"), vectors(p, tile, "dst")
    moving = min(src.nbytes, dst.nbytes)
    parts = max(1, tile.lanes * moving // profile.vector_bytes)
    # Each step of a transposition shuffles every vector once; short loads are put together.
    mixes = stores * log2(max(1, min(tile.lanes, run_of(p, tile, "dst")) / common(p, tile)))
    looked = [prod(tile.steps(k) for k, n in enumerate(p.nodes or ()) if n.steps_of(t))
              for t in range(len(p.tables))]  # fmt: skip
    mixes = max(mixes, loads - stores) if looked else mixes
    live = tile.lanes * parts  # as many as a transposition mixes before the first is done
    spilled = mixes * parts * max(0, live - profile.registers) / live * SPILLED
    accesses: float = loads * max(1, tile.lanes * src.bits // 8 // profile.vector_bytes)
    accesses += stores * max(1, tile.lanes * dst.bits // 8 // profile.vector_bytes)
    sides = [(run_of(p, tile, "src"), src.bits), (run_of(p, tile, "dst"), dst.bits)]
    if looked:
        steps = [tile.steps(k) for k in range(len(p.nodes or ()))]
        rows, *_ = _rows(_digits(p, "src", steps), _by_stride(p, "src"), src.bits)
        sides[0] = -(-prod(tile.extents) // rows), src.bits
    touched = sum(
        -(-prod(tile.extents) // run) * -(-run * bits // (8 * LINE_BYTES)) for run, bits in sides
    )
    shuffled = mixes * parts * profile.shuffle_ns + touched * profile.line_ns
    accesses += _operand_loads(p, tile)
    return (accesses + spilled) * profile.access_ns + shuffled + sum(looked) * LOOKED_NS


@remembered
def _at_edges(p: Problem, tile: Tile, counts: tuple[int, ...]) -> float:
    """The share of tiles at an edge that go lane by lane.

    That is where a run of the source goes beyond the elements of a dimension, or one of the
    destination beyond its places; elsewhere vectors are loaded and stored as a whole, or not.
    """
    nodes, inside = p.nodes or (), 1.0
    steps = [tile.steps(k) for k in range(len(counts))]
    for number, guard in enumerate(p.guards):
        unit, outer = max((n.unit, k) for k, n in enumerate(nodes) if n.guard == number)
        span = unit * steps[outer]
        sides = ("src", "dst") if guard.end.value < span * counts[outer] else ("src",)
        runs = [nodes[k].guard for side in sides for k, _, _ in chain(p, side)[:1]]
        if number in runs and not is_settled(p, number, steps):
            first, last = -(-guard.lo.value // span), guard.hi.value // span
            inside *= max(0, last - first) / counts[outer]
    return 1 - min(1.0, inside)


def _operand_loads(p: Problem, tile: Tile) -> float:
    """The loads of operands: one for many lanes that are neighbours, or share a value."""
    nodes, loads, run = p.nodes or (), 0.0, chain(p, "dst")
    inside = {axis for axis, _, reached in run if reached < tile.lanes and tile.steps(axis) > 1}
    for j in range(len(p.operands0)):
        along = [n.operands[j].value for n in nodes]
        values = prod(tile.steps(k) for k, stride in enumerate(along) if stride)
        near = [along[axis] for axis in inside] == [1]
        varies = any(along[axis] for axis in inside)
        loads += values / tile.lanes if near else values * (INSERTED if varies else 1)
    return loads


def traffic(
    p: Problem, schedule: Schedule, side: str, counts: Sequence[int], profile: Profile
) -> Traffic:
    """The rows of a side: of a tile, and of the loops around it while the caches hold them."""
    bits = p.dtypes[side == "dst"].bits
    steps = [schedule.tile.steps(k) for k in range(len(counts))]
    rows, run, apart = _rows(_digits(p, side, steps), _by_stride(p, side), bits)
    first, goes_on = rows, run
    follows = False
    tiles = 1
    jumps = float(rows)
    serial = [loop for loop in schedule.nest if not loop.spread]
    for number, loop in enumerate(reversed(serial)):
        outer = [x.tiles for x in schedule.nest if x.axis == loop.axis and x.tiles > loop.tiles]
        rounds = max(1, min([*outer, counts[loop.axis]]) // loop.tiles)
        all_rounds = rounds
        rounds, (after, longer, far), held = _around(p, side, steps, loop.axis, rounds, profile)
        tiles *= rounds
        if number == 0:
            apart = LINE_BYTES if longer > run else far
        if number == 0 and longer > run:
            follows, goes_on, jumps = True, longer, rows / rounds
        if not held and not (number == 0 and follows):
            break
        jumps = min(jumps, after / tiles)
        rows, run = after, longer
        if rounds < all_rounds:
            break
    return Traffic(run, jumps, first, follows, goes_on, apart)


def _around(
    p: Problem, side: str, steps: list[int], axis: int, rounds: int, profile: Profile
) -> tuple[int, tuple[int, int, int], bool]:
    """(rounds, rows, whether caches hold them) of one loop more, which is added to ``steps``.

    Fewer rounds of a loop with a table, if these are held: after some it is in another block.
    """
    tabled = side == "src" and (p.nodes or ())[axis].table
    before, bits = steps[axis], p.dtypes[side == "dst"].bits
    while True:
        steps[axis] = before * rounds
        rows, run, far = _rows(_digits(p, side, steps), _by_stride(p, side), bits)
        held = rows * max(run, LINE_BYTES) <= profile.far_bytes
        held &= far < SAME_BANK or rows * far <= profile.near_bytes
        if held or rounds == 1 or not tabled:
            return rounds, (rows, run, far), held
        rounds //= 2


@remembered
def _by_stride(p: Problem, side: str) -> list[tuple[int, int]]:
    """The loops that move on a side, as (stride, loop), by stride; and the digits of tables."""
    tables = p.tables if side == "src" else ()
    digits = (table.place(every) for table in tables for every, _ in table.jumps)
    along = enumerate((*steady(p.nodes or (), side), *digits))
    return sorted((stride, axis) for axis, stride in along if stride)


def _digits(p: Problem, side: str, steps: list[int]) -> list[int]:
    """Steps of each loop, and what they are along each digit of the tables in the source."""
    if side == "dst" or not p.tables:
        return steps
    found = [*steps]
    for t, table in enumerate(p.tables):
        moved = (n.steps_of(t) * (k - 1) for n, k in zip(p.nodes or (), steps, strict=True))
        left, every = 1 + sum(m for m in moved if m > 0), [every for every, _ in table.jumps]
        for small, large in zip(every, [*every[1:], left * every[-1]], strict=True):
            whole = large // small
            # Of blocks that are read for more than half, all lines are read.
            found.append(whole if 2 * left > whole else left)
            left = -(-left // whole)
    return found


def _rows(steps: list[int], along: list[tuple[int, int]], bits: int) -> tuple[int, int, int]:
    """(rows, bytes of each, the power of two in their distances) of what these steps reach."""
    rows = run = 1
    apart = MOST_APART
    for stride, axis in along:
        if stride == run and rows == 1:
            run *= steps[axis]
        else:
            rows *= steps[axis]
            if steps[axis] > 1:
                apart = min(apart, (stride & -stride) * bits // 8)
    return rows, max(1, run * bits // 8), apart if rows > 1 else LINE_BYTES
