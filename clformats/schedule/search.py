"""The schedules that a problem has, in the order of what they are estimated to cost.

The first one runs where nothing was measured; a tuner measures the first few.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import replace
from itertools import islice
from math import prod

from ..problems.problem import Problem
from .cost import CostModel
from .extents import tiles
from .nest import ordered, positions
from .profile import Profile
from .runs import chain, common, strides
from .schedule import Loop, Prefetch, Schedule, Store, Tile
from .stores import legal

AHEAD_BYTES = 16 << 10
"""How far ahead the prefetch runs, in bytes that tiles read, where caches do not hold all."""
MOST_AHEAD = 16
BLOCKS = (4, 16)
"""Tiles of a block of the last loop but one."""
ITEM_BYTES = 32 << 10
"""What a work-item moves at the least; there are up to `ITEMS` of them for each core."""
ITEMS = 16
UNUSUAL = 1.15
"""What another tile than the one of most problems must gain: each is a program to compile."""
PROGRAMS, EACH = 6, 4
"""How many tiles and stores are worth a measurement, and how many nests and prefetches of each."""
LEADS = (0, 1, 2, 4, 8, 16, 32, 64)
"""How far ahead the neighbours of a schedule prefetch."""


def best(p: Problem, profile: Profile) -> Schedule:
    """The first of `ranked`. Of tiles that cannot have it, no schedule is looked at."""
    model, usual = CostModel(p, profile), next(tiles(p))
    bounds = {tile: model.least(tile) * _factor(p, tile, usual) for tile in tiles(p)}
    found: list[tuple[float, Schedule]] = []
    for tile in sorted(bounds, key=bounds.__getitem__):
        if found and bounds[tile] > found[0][0]:
            break
        factor = _factor(p, tile, usual)
        found += [(model.seconds(s) * factor, s) for s in _schedules(p, tile, profile)]
        found = [min(found)]
    return found[0][1]


def ranked(p: Problem, profile: Profile) -> list[Schedule]:
    """All candidates, the one with the least estimated cost first."""
    model, usual = CostModel(p, profile), next(tiles(p))
    return sorted(
        candidates(p, profile),
        key=lambda s: (model.seconds(s) * _factor(p, s.tile, usual), s),
    )


def spread(found: list[Schedule]) -> list[Schedule]:
    """The first schedules of each of the first tiles and stores, in their order."""
    programs: dict[tuple[Tile, Store], list[Schedule]] = {}
    for schedule in found:
        programs.setdefault((schedule.tile, schedule.store), []).append(schedule)
    return [s for program in islice(programs.values(), PROGRAMS) for s in program[:EACH]]


def neighbours(p: Problem, profile: Profile, schedule: Schedule) -> Iterator[Schedule]:
    """Other schedules of the same program, the one with the least estimated cost first."""
    found = {replace(schedule, prefetch=Prefetch(lead)) for lead in LEADS}
    for wanted in (profile.units, 4 * profile.units, ITEMS * profile.units):
        found |= {replace(schedule, nest=nest) for nest in nests(p, schedule.tile, wanted)}
    model = CostModel(p, profile)
    yield from sorted(found - {schedule}, key=lambda s: (model.seconds(s), s))


def _factor(p: Problem, tile: Tile, usual: Tile) -> float:
    """What an unusual tile must gain; nothing without a shuffle, as there is little to compile.

    Nothing where tables are, which few problems share.
    """
    return 1 if tile == usual or common(p, tile) >= tile.lanes or p.tables else UNUSUAL


def candidates(p: Problem, profile: Profile) -> Iterator[Schedule]:
    """Tiles, orders of loops, prefetch and stores in all combinations that are legal, each once."""
    for tile in tiles(p):
        yield from _schedules(p, tile, profile)


def _schedules(p: Problem, tile: Tile, profile: Profile) -> Iterator[Schedule]:
    for nest in nests(p, tile, wanted_items(p, profile)):
        lead = prefetch(p, tile, nest, profile)
        for store in legal(p, tile, nest, profile.begin_bytes):
            yield Schedule(tile, nest, lead, store)


def wanted_items(p: Problem, profile: Profile) -> int:
    """How many work-items a problem is worth."""
    return max(1, min(ITEMS * profile.units, p.nbytes // ITEM_BYTES))


def prefetch(p: Problem, tile: Tile, nest: Sequence[Loop], profile: Profile) -> Prefetch:
    """How many tiles ahead lines are asked for: none where caches hold what is moved.

    None either where each tile would look up more places in tables: kernels of these have none.

    Processors follow rows themselves; where each tile is in other rows, it has to be early.
    """
    if p.nbytes < profile.stream_bytes or p.tables:
        return Prefetch()
    if nest and nest[-1].axis not in _going_on(p, tile, "src"):
        return Prefetch(MOST_AHEAD)
    ahead = 8 * AHEAD_BYTES // (prod(tile.extents) * p.dtypes[0].bits)
    return Prefetch(max(4, min(MOST_AHEAD, ahead)))


def nests(p: Problem, tile: Tile, wanted: int) -> Iterator[tuple[Loop, ...]]:
    """Orders of the loops: of either side, with a run's loop innermost, in blocks."""
    nodes = p.nodes or ()
    orders = {tuple(sorted(range(len(nodes)), key=lambda k: -along[k]))
              for along in (strides(nodes, "src"), strides(nodes, "dst"))}  # fmt: skip
    inner = [axis for side in ("src", "dst") for axis in _going_on(p, tile, side)]
    orders |= {(*(k for k in order if k != axis), axis) for order in orders for axis in inner}
    found: set[tuple[Loop, ...]] = set()
    for order in orders:
        nest = ordered(p, tile, order, wanted)
        found |= {nest, *in_blocks(p, tile, nest, BLOCKS)}
    yield from found


def in_blocks(
    p: Problem, tile: Tile, nest: tuple[Loop, ...], blocks: Sequence[int]
) -> list[tuple[Loop, ...]]:
    """The nest with one more loop along the last axis but one: (.. y x) to (.. y:16 x y)."""
    if sum(not loop.spread for loop in nest) < 2:
        return []
    *rest, outer, last = nest
    counts = positions(p, tile)
    limit = min([x.tiles for x in rest if x.axis == outer.axis] or [counts[outer.axis]])
    return [(*rest, Loop(outer.axis, n), last, outer) for n in blocks if n < limit]


def _going_on(p: Problem, tile: Tile, side: str) -> list[int]:
    """The loop along which a tile's runs go on, on a side."""
    counts = positions(p, tile)
    return [axis for axis, _, _ in chain(p, side) if counts[axis] > 1][:1]
