"""How long a schedule takes by the weights in `problems.thresholds`: to order candidates.

Either the shuffles of the tiles take the time, or memory does. Memory is read and written in lines:
a line of which a tile has a part is fetched again for the other parts, unless they come while it is
still cached; a jump to another row costs as much as reading some more bytes would.
"""

from __future__ import annotations

from functools import cached_property
from math import log2, prod

from ..problems import thresholds as weights
from ..problems.arithmetic import footprint
from ..problems.problem import Problem, remembered
from ..problems.thresholds import LINE_BYTES
from ..problems.traits import Traits
from .nest import positions, rounds_of
from .runs import (
    chain,
    common,
    crosses_blocks,
    filled,
    has_unlike_rows,
    is_settled,
    is_shifted,
    mixed,
    moved,
    row_apart,
    run_of,
    steps_on,
    turns,
    vectors,
)
from .schedule import Loop, Schedule, Tile
from .stores import line_buffer, line_groups, steps_together, whole_row
from .traffic import Traffic, by_stride, covered, new_pages, rows_of, traffic

SURELY = 1 - 1e-9
"""A lower bound is below what it bounds, however both are rounded."""


class CostModel:
    """The cost of schedules of one problem; what they have in common is computed once."""

    def __init__(self, p: Problem, traits: Traits) -> None:
        self.p, self.traits = p, traits
        self.is_large = traits.is_large(p.nbytes)
        # Tiles that overlap find in the caches what they read again.
        self.loaded, self.stored = (prod(steps_on(p, k, side) for k in range(len(p.nodes)))
                                    for side in ("src", "dst"))  # fmt: skip
        src, dst = p.dtypes
        self.bits = src.bits / p.held("src"), dst.bits / p.held("dst")
        self._core: dict[Tile, float] = {}
        self._traffic: dict[tuple[Tile, tuple[Loop, ...]], tuple[Traffic, Traffic, float]] = {}

    def _each(self, tile: Tile) -> float:
        """The time of a tile in the nearest cache, a mean of all tiles."""
        if tile not in self._core:
            each = _core(self.p, tile, self.traits, is_large=self.is_large)
            self._core[tile] = each + _at_edges(self.p, tile) * prod(tile.extents)
        return self._core[tile]

    def least(self, tile: Tile) -> float:
        """What every schedule of a tile takes: all cores work, lines are moved once."""
        core = prod(positions(self.p, tile)) * (self._each(tile) + weights.TILE_NS)
        core /= self.traits.compute_units
        src, dst = self.bits
        moved = (self.loaded * src * self._lost(tile) + self.stored * dst) / 8
        busy = _together(core, moved * self._byte_ns, self._exposed(tile)) + weights.ITEM_NS
        return busy * 1e-9 * SURELY

    def _exposed(self, tile: Tile) -> float:
        """The share of shuffles that memory does not hide, or the reverse.

        Memory outside the caches hides less of a large tile, or is hidden less by it.
        """
        if not self.is_large:
            return weights.EXPOSED_CACHED
        return min(1.0, weights.EXPOSED_SHARE + _nbytes(self.p, tile) / weights.EXPOSED_BYTES)

    @cached_property
    def _byte_ns(self) -> float:
        return weights.BYTE_NS * (1.0 if self.is_large else weights.CACHED)

    @cached_property
    def _core_gb_s(self) -> float:
        """How many bytes a core could move in a nanosecond in which it waits, or does without."""
        measured = self.traits.copy_gb_s / self.traits.compute_units
        return measured if self.is_large else weights.CORE_GB_S

    def seconds(self, schedule: Schedule) -> float:
        """The estimated time of a schedule."""
        p, traits, tile = self.p, self.traits, schedule.tile
        counts, each = positions(p, tile), self._each(tile)
        key = tile, schedule.nest
        if key not in self._traffic:
            self._traffic[key] = (
                traffic(p, schedule, "src"),
                traffic(p, schedule, "dst"),
                new_pages(p, schedule) if self.is_large else 0.0,
            )
        tiles = prod(counts)
        ahead = weights.TILE_NS / 2 if schedule.ahead else 0.0
        if _shares_lines(p, schedule, traits.compute_units):
            each += self._traffic[key][1].rows * weights.FALSE_SHARING_NS
        items = prod(-(-counts[loop.axis] // loop.tiles) for loop in schedule.nest if loop.spread)
        units = min(traits.compute_units, items)
        left = tiles / rounds_of(p, tile, schedule.nest)[-1] if schedule.nest else 0
        left *= weights.LEFT_BYTES * self._byte_ns * (2 if schedule.ahead else 1)
        core = (tiles * (each + weights.TILE_NS + ahead) + left) / units
        memory = self._memory(schedule, tiles, self._traffic[key])
        # Some cores wait for the last one.
        waits = -(-items // units) * units / items
        busy = _together(core, memory, self._exposed(tile)) * waits
        return (busy + items * weights.ITEM_NS / units) * 1e-9

    def _memory(
        self, schedule: Schedule, tiles: int, sides: tuple[Traffic, Traffic, float]
    ) -> float:
        """The time that memory takes."""
        store = schedule.store
        src, dst = self.bits
        read, written, pages = sides
        moved = self.loaded * src * self._lost(schedule.tile, read.whole) / 8
        stored = self.stored if store.is_ordinary else _stored(self.p, schedule.tile)
        moved += stored * dst * self._moved(written, schedule) / 8
        moved += tiles * read.jumps * weights.JUMP_BYTES
        least = 0 if store.is_buffered else weights.LEAST_HOP
        moved += tiles * max(least / read.lasts, read.ended * weights.HOP_BYTES)
        missed = tiles * written.missed(cached=store.is_ordinary)
        missed *= weights.BANK_MISS_NS * self._core_gb_s
        if store.is_ordinary:
            moved += tiles * written.jumps * weights.JUMP_BYTES + missed
        elif not store.staged and (written.rows > 1 or not written.follows):
            goes = written.rows + (0 if store.lines else written.jumps)
            moved += tiles * goes * weights.SENT_BYTES
            moved = max(moved, missed)
        if store.lines:
            held = _held(self.p, schedule.tile, schedule.nest)
            moved += tiles * written.rows * held * weights.KEPT_ROW_BYTES
        moved += tiles * read.reread * weights.REREAD_BYTES
        moved += tiles * pages * weights.NEW_PAGE_BYTES
        return moved * self._byte_ns

    def _lost(self, tile: Tile, whole: float = 1.0) -> float:
        """How many bytes are read for each byte that a tile needs: ``whole`` in its lines."""
        return max(self._sparse, whole) + (covered(self.p, tile) - 1) * weights.BESIDE_SHARE

    @cached_property
    def _sparse(self) -> float:
        """How many bytes of the source are read for each that is moved: a line of a gap at most."""
        line, along = 8 * LINE_BYTES // self.p.dtypes[0].bits, by_stride(self.p, "src")
        return max((min(stride, run + line) / run for stride, _, run in along), default=1.0)

    def _moved(self, written: Traffic, schedule: Schedule) -> float:
        """How many bytes move for each byte that is stored."""
        tile, nest, store = schedule.tile, schedule.nest, schedule.store
        if store.is_ordinary:
            return written.whole * (weights.OWNED_BYTES if self.is_large else 1.0)
        if store.streams == LINE_BYTES:
            return 1.0
        if store.staged:
            row = prod(steps_together(self.p, tile, nest, store.staged))
            longer = 1 + row * self.p.dtypes[1].nbytes / weights.STAGED_RUN
            each, ends = 1 + weights.STAGED_NS * longer * self._core_gb_s, weights.STAGED_ENDS
        elif store.lines:
            row, each, ends = whole_row(self.p, tile, nest), weights.KEPT_BYTES, weights.KEPT_ENDS
        else:
            # No cache holds what passes it until other tiles go on in its lines.
            row, each, ends = run_of(self.p, tile, "dst"), 1.0, weights.STAGED_ENDS
            if written.follows:
                row *= rounds_of(self.p, tile, nest)[-1]
        # Rows begin and end with parts of lines.
        return each + ends * 8 * LINE_BYTES / (row * self.p.dtypes[1].bits)


def _together(core: float, memory: float, exposed: float) -> float:
    """The time of both: the longer hides the shorter but for the exposed share of it."""
    return max(core, memory) + min(core, memory) * exposed


@remembered
def _nbytes(p: Problem, tile: Tile) -> float:
    """How many bytes a tile loads and stores."""
    sides = zip(("src", "dst"), p.dtypes, strict=True)
    return sum(moved(p, tile, side) * t.bits for side, t in sides) / 8


@remembered
def _stored(p: Problem, tile: Tile) -> int:
    """How many elements are stored past the cache: tiles that overlap store some twice."""
    counts = positions(p, tile)
    return prod(
        count * tile.steps(k) if is_shifted(p, n) else steps_on(p, k, "dst")
        for k, (n, count) in enumerate(zip(p.nodes, counts, strict=True))
    )


def _core(p: Problem, tile: Tile, traits: Traits, *, is_large: bool) -> float:
    """The time of a tile in the nearest cache; many lines cost more unless `is_large`."""
    src, dst = p.dtypes
    loads, stores = vectors(p, tile, "src"), vectors(p, tile, "dst")
    read, sent = loads * turns(p, "src"), stores * turns(p, "dst")
    moving = min(t.nbytes for t in (p.words if p.inside else p.dtypes) if t)
    parts = max(1, tile.lanes * moving // traits.vector_bytes)
    # Each step of a transposition shuffles every vector once, as do rows that vectors cross; short
    # loads are put together.
    run, row = run_of(p, tile, "dst"), common(p, tile)
    stages = log2(max(1, min(tile.lanes, run) / row))
    if run > row and row % tile.lanes:
        stages = max(1.0, stages)
    if several := mixed(p, tile):
        # Vectors of two rows; one instruction takes any of two registers for 2 bytes and more.
        stages = (stages + 1) * (1 if moving > 1 and traits.vector_bytes == 64 else 2)
    mixes = sent * filled(p, tile) / p.held("src") * stages
    mixes = max(mixes, loads - stores) if p.tables else mixes
    if _is_unlike(p, tile):
        # Such shuffles cross the halves of a register, and load their indices.
        parts = max(parts, 2 * tile.lanes * moving // traits.vector_bytes)
    live = max(tile.lanes, several) * parts  # as many as are mixed before the first is done
    spilled = mixes * parts * max(0, live - traits.registers) / live * weights.SPILLED
    accesses: float = read * max(1, tile.lanes * src.bits // 8 // traits.vector_bytes)
    accesses += sent * max(1, tile.lanes * dst.bits // 8 // traits.vector_bytes)
    runs = [run_of(p, tile, side) for side in ("src", "dst")]
    if p.tables:
        rows, *_ = rows_of(p, "src", tuple(tile.all_steps(len(p.nodes))))
        runs[0] = -(-prod(tile.extents) // rows)
    shuffled = mixes * parts * weights.SHUFFLE_NS + _touched(p, tile, runs, is_large=is_large)
    accesses += _operand_loads(p, tile)
    return (accesses + spilled) * weights.ACCESS_NS + shuffled


def _touched(p: Problem, tile: Tile, runs: list[int], *, is_large: bool) -> float:
    """The time for the lines of a tile; many cost more unless `is_large`."""
    read, written = (_lines(p, tile, *side) for side in zip(("src", "dst"), runs, strict=True))
    lines = read + written
    if not is_large:
        lines += max(0, lines - weights.TOUCHED_LINES)
    old = written * weights.OLD_LINE_NS if p.reads_old else 0.0
    return lines * weights.TOUCHED_LINE_NS + old


def _is_unlike(p: Problem, tile: Tile) -> bool:
    """Whether vectors are made of several rows, each by shuffles of its own.

    With tables, of which rows of a side are shorter than a vector; without by `has_unlike_rows`.
    """
    if p.tables:
        across = (crosses_blocks(p, table, tile.lanes) for table in range(len(p.tables)))
        return any(steps < tile.lanes for _, steps, _ in chain(p, "dst")[:1]) or not all(across)
    return has_unlike_rows(p, tile) and row_apart(p, tile) is None


def _held(p: Problem, tile: Tile, nest: tuple[Loop, ...]) -> float:
    """The line buffers of all tiles in turn, as a share of what they may take."""
    buffer = line_buffer(p, tile)
    return buffer.place(0, line_groups(p, tile, nest)) * buffer.nbytes / weights.STAGE_BYTES


def _lines(p: Problem, tile: Tile, side: str, run: int) -> int:
    """How many lines the runs of a tile touch on a side, where they begin with lines."""
    line = 8 * LINE_BYTES
    return -(-moved(p, tile, side) // run) * -(-run * p.dtypes[side == "dst"].bits // line)


def _at_edges(p: Problem, tile: Tile) -> float:
    """What an element takes longer for the tiles at an edge, as a mean of all tiles.

    Tiles at the edge of any guard take another branch. It costs more where a run of the source may
    end there, as vectors are loaded under masks, and most where one of the destination goes beyond
    its places, as lanes are stored one by one. Else vectors are loaded and stored whole, or not.
    """
    nodes, inside, price = p.nodes, 1.0, 0.0
    steps, counts = tile.all_steps(len(nodes)), positions(p, tile)
    read, written = ([nodes[k].guard for k, *_ in chain(p, side)[:1]] for side in ("src", "dst"))
    for number, guard in enumerate(p.guards):
        if is_settled(p, number, steps):
            continue
        unit, outer = max((n.unit, k) for k, n in enumerate(nodes) if n.guard == number)
        span = unit * steps[outer]
        first, last = -(-guard.lo.value // span), guard.hi.value // span
        inside *= min(1.0, max(0, last - first) / counts[outer])
        if number in written and guard.end.value < span * counts[outer]:
            price = weights.EDGE_NS
        elif number in read:
            price = max(price, weights.EDGE_LOADED_NS)
    return (1 - inside) * price


def _shares_lines(p: Problem, schedule: Schedule, units: int) -> bool:
    """Whether cores write the same lines at the same time: each has less than a line of a row."""
    around, counts = 1, positions(p, schedule.tile)
    for loop in schedule.nest:
        if not loop.spread or around >= units:
            break
        rounds = -(-counts[loop.axis] // loop.tiles)
        stride = p.nodes[loop.axis].dst.value * schedule.tile.steps(loop.axis) * loop.tiles
        around *= rounds
        if rounds > 1 and 0 < stride * around * p.dtypes[1].bits < 8 * LINE_BYTES * units:
            return True
    return False


def _operand_loads(p: Problem, tile: Tile) -> float:
    """The loads of operands: one for many lanes that are neighbours, or share a value."""
    nodes, loads, side = p.nodes, 0.0, "src" if p.reads_alike else "dst"
    inside = [(axis, min(tile.steps(axis), tile.lanes // reached))
              for axis, _, reached in chain(p, side) if reached < tile.lanes]  # fmt: skip
    for j in range(len(p.operands0)):
        along = [n.operands[j].value for n in nodes]
        values = prod(tile.steps(k) for k, stride in enumerate(along) if stride)
        levels = footprint((steps, along[axis]) for axis, steps in inside)
        if not levels:
            loads += values
        elif len(levels) == 1 and levels[0][1] == 1:
            loads += values / levels[0][0]
        else:
            loads += values * weights.INSERTED
    return loads
