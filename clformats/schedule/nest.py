"""The loops over tiles: how often each goes round, and how they are split over work-items."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from math import prod

from ..errors import InvalidArgument
from ..problems.problem import Problem, remembered
from ..problems.thresholds import MOST_ELEMENTS, MOST_LOOPS, MOST_PLACES_STORED
from .layout import stores_units
from .runs import chain, ends_at, is_inner, is_shifted, is_too_large
from .schedule import ALL, LETTERS, VECTORS, Loop, Schedule, Tile


@dataclass(frozen=True, slots=True)
class Counted:
    """A loop in steps of the problem's loop ``axis``: ``step`` of them each time.

    ``size`` is how far the axis goes: where the last tile may not reach beyond it, that tile is
    shifted back and overlaps the one before (there is no remainder loop). ``extent``: steps of a
    tile, for the innermost loop of the axis; 0 for others. ``outer`` is the number of the
    loop around it that goes along the same axis, -1 for none.
    """

    axis: int
    step: int
    size: int
    extent: int
    outer: int


@dataclass(frozen=True, slots=True)
class Nest:
    """The loops, outermost first; the first ones, ``counts`` times, are spread over work-items."""

    loops: tuple[Counted, ...]
    counts: tuple[int, ...]

    @property
    def items(self) -> int:
        """How many work-items there are."""
        return prod(self.counts)


@remembered
def positions(p: Problem, tile: Tile) -> tuple[int, ...]:
    """How many tiles there are along each loop of a problem."""
    steps = tile.all_steps(len(p.nodes))
    return tuple(-(-n.size.value // k) for n, k in zip(p.nodes, steps, strict=True))


@remembered
def rounds_of(p: Problem, tile: Tile, nest: tuple[Loop, ...]) -> tuple[int, ...]:
    """How many steps each loop has each time it is entered, within a block of its axis."""
    left, found = [*positions(p, tile)], []
    for loop in nest:
        found.append(max(1, left[loop.axis] // loop.tiles))
        left[loop.axis] = min(left[loop.axis], loop.tiles)
    return tuple(found)


def inside_out(p: Problem, schedule: Schedule) -> list[tuple[Loop, int]]:
    """The loops of a schedule, innermost first, with their rounds: see `rounds_of`."""
    nest = schedule.nest
    return [*zip(nest, rounds_of(p, schedule.tile, nest), strict=True)][::-1]


def going_on(p: Problem, tile: Tile, side: str) -> list[int]:
    """The loop along which a tile's runs go on, on a side."""
    counts = positions(p, tile)
    return [axis for axis, _, _ in chain(p, side) if counts[axis] > 1][:1]


def counted(p: Problem, schedule: Schedule) -> Nest:
    """The loops of a schedule with their numbers. Raises `InvalidArgument` where it is none."""
    if why := why_illegal(p, schedule):
        raise InvalidArgument(why)
    loops: list[Counted] = []
    last = {loop.axis: k for k, loop in enumerate(schedule.nest)}
    found: dict[int, int] = {}
    for k, loop in enumerate(schedule.nest):
        steps = schedule.tile.steps(loop.axis)
        size = ends_at(p, p.nodes[loop.axis], steps)
        extent = steps if last[loop.axis] == k else 0
        loops.append(Counted(loop.axis, loop.tiles * steps, size, extent, found.get(loop.axis, -1)))
        found[loop.axis] = k
    spread = [c for c, loop in zip(loops, schedule.nest, strict=True) if loop.spread]
    return Nest(tuple(loops), tuple(-(-c.size // c.step) for c in spread))


def why_illegal(p: Problem, schedule: Schedule) -> str:
    """Why a schedule does not fit a problem; empty if it does."""
    expected = next(_expected(p, schedule), "")
    return f"the schedule {schedule} does not fit: expected {expected}" if expected else ""


def _expected(p: Problem, schedule: Schedule) -> Iterator[str]:
    """What a schedule lacks: every tile is to be visited, once or more often where it may be."""
    nodes, tile, nest = p.nodes, schedule.tile, schedule.nest
    if len(tile.extents) > len(nodes) or any(loop.axis >= len(nodes) for loop in nest):
        yield f"loops up to {LETTERS[max(0, len(nodes) - 1)]}, which the problem has"
    if why := _refusal_of_vectors(p, schedule):
        yield why
    if len(nest) > MOST_LOOPS:
        yield f"at most {MOST_LOOPS} loops in its nest"
    spread = [loop.spread for loop in nest]
    if spread != sorted(spread, reverse=True):
        yield "the loops over work-items (*) before all others"
    if len({loop.axis for loop in nest if loop.spread}) < sum(spread):
        yield "one loop over work-items for each axis at the most"
    for axis, count in enumerate(positions(p, tile)):
        if why := _refusal_of_extent(p, axis, tile.steps(axis)):
            yield why
        blocks = [loop.tiles for loop in nest if loop.axis == axis]
        if blocks != sorted(set(blocks), reverse=True) or (count > 1 and blocks[-1:] != [1]):
            yield f"loops along {LETTERS[axis]} that become shorter, down to one tile"
    if not stores_units(p, tile):
        yield f"tiles that store whole bytes of {p.dtypes[1]}"


def _refusal_of_vectors(p: Problem, schedule: Schedule) -> str:
    """What a work-item would have to have to move the tile; empty if it can."""
    tile = schedule.tile
    if schedule.group > 1 or schedule.store.local or tile.stored or ALL in tile.extents:
        return "a tile for one work-item, with a number of steps of each loop"
    if tile.lanes not in VECTORS:
        return "vectors of 1, 2, 4, 8 or 16 lanes"
    most = f"{MOST_ELEMENTS} elements at most, {MOST_PLACES_STORED} if most are padding"
    return most if is_too_large(p, tile) else ""


def _refusal_of_extent(p: Problem, axis: int, steps: int) -> str:
    """Why a tile may not cover ``steps`` steps of a loop; empty if it may."""
    node, name = p.nodes[axis], LETTERS[axis]
    if steps < node.size.value and any(axis == k for k, _ in (*p.exchanges, *p.inside)):
        return f"{node.size} steps of {name}, which move elements in words"
    if node.size.value % steps == 0:
        return ""
    shifted = is_shifted(p, node)
    if node.size.value < steps and shifted:
        return f"at most {node.size} steps of {name}"
    if not shifted and is_inner(p, node):
        return f"a number of steps of {name} that divides {node.size}"
    if shifted and p.reads_old:
        return f"a number of steps of {name} that divides {node.size}, where the old value is read"
    return ""


def is_legal_extent(p: Problem, axis: int, steps: int) -> bool:
    """Whether a tile may cover ``steps`` steps of a loop."""
    return not _refusal_of_extent(p, axis, steps)


def ordered(p: Problem, tile: Tile, order: Sequence[int], wanted: int) -> tuple[Loop, ...]:
    """The loops in an order, outermost first, the outer ones spread over about ``wanted`` items."""
    counts = positions(p, tile)
    loops: list[Loop] = []
    spread = 1
    inner = []
    for axis in order:
        count = counts[axis]
        if count == 1:
            continue
        if spread >= wanted:
            inner.append(Loop(axis))
            continue
        each = max(1, count // -(-wanted // spread))
        loops.append(Loop(axis, each, spread=True))
        spread *= -(-count // each)
        if each > 1:
            inner.append(Loop(axis))
    return (*loops, *inner)
