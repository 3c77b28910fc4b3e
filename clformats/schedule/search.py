"""The schedules that a problem has, in the order of what they are estimated to cost.

The first one runs where nothing was measured; a tuner measures the first few.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import replace
from itertools import islice

from ..problems.problem import Problem
from ..problems.thresholds import (
    AHEAD_BYTES,
    BLOCKS,
    EACH,
    ITEM_BYTES,
    ITEMS,
    LEADS,
    MOST_AHEAD,
    PAGES_AHEAD,
    PROGRAMS,
    UNUSUAL,
)
from ..problems.traits import Traits
from .cost import CostModel
from .extents import tiles
from .nest import going_on, ordered, rounds_of
from .runs import common, moved, strides
from .schedule import Loop, Schedule, Store, Tile
from .stores import legal
from .traffic import pages


def best(p: Problem, traits: Traits) -> Schedule:
    """The first of `ranked`. Of tiles that cannot have it, no schedule is looked at."""
    model, (usual, *others) = CostModel(p, traits), tiles(p)
    bounds = {tile: model.least(tile) * _factor(p, tile, usual) for tile in (usual, *others)}
    found: list[tuple[float, Schedule]] = []
    for tile in sorted(bounds, key=bounds.__getitem__):
        if found and bounds[tile] > found[0][0]:
            break
        factor = _factor(p, tile, usual)
        found += [(model.seconds(s) * factor, s) for s in _schedules(p, tile, traits)]
        found = [min(found)]
    return found[0][1]


def ranked(p: Problem, traits: Traits) -> list[Schedule]:
    """All candidates, the one with the least estimated cost first."""
    model, usual = CostModel(p, traits), next(tiles(p))
    return sorted(
        (s for tile in tiles(p) for s in _schedules(p, tile, traits)),
        key=lambda s: (model.seconds(s) * _factor(p, s.tile, usual), s),
    )


def spread(found: list[Schedule]) -> list[Schedule]:
    """The first schedules of each of the first tiles and stores, in their order."""
    programs: dict[tuple[Tile, Store], list[Schedule]] = {}
    for schedule in found:
        programs.setdefault((schedule.tile, schedule.store), []).append(schedule)
    return [s for program in islice(programs.values(), PROGRAMS) for s in program[:EACH]]


def neighbours(p: Problem, traits: Traits, schedule: Schedule) -> Iterator[Schedule]:
    """Other schedules of the same program, the one with the least estimated cost first."""
    found = {replace(schedule, ahead=ahead) for ahead in LEADS}
    for wanted in (traits.compute_units, 4 * traits.compute_units, ITEMS * traits.compute_units):
        found |= {replace(schedule, nest=nest) for nest in nests(p, schedule.tile, wanted)}
    model = CostModel(p, traits)
    yield from sorted(found - {schedule}, key=lambda s: (model.seconds(s), s))


def _factor(p: Problem, tile: Tile, usual: Tile) -> float:
    """What an unusual tile must gain; nothing without a shuffle, as there is little to compile.

    Nothing where tables are, which few problems share.
    """
    return 1 if tile == usual or common(p, tile) % tile.lanes == 0 or p.tables else UNUSUAL


def _schedules(p: Problem, tile: Tile, traits: Traits) -> Iterator[Schedule]:
    """Orders of loops, prefetch and stores in all combinations that are worth a thought for a tile.

    Where caches hold what is moved, stores are ordinary ones: see `Traits.stream_bytes`.
    """
    streams = traits.streams(p.nbytes)
    for nest in nests(p, tile, wanted_items(p, traits)):
        lead = prefetch(p, tile, nest, traits)
        for store in legal(p, tile, nest, traits.begin_bytes) if streams else [Store()]:
            yield Schedule(tile, nest, lead, store)


def wanted_items(p: Problem, traits: Traits) -> int:
    """How many work-items a problem is worth."""
    return max(1, min(ITEMS * traits.compute_units, p.nbytes // ITEM_BYTES))


def prefetch(p: Problem, tile: Tile, nest: tuple[Loop, ...], traits: Traits) -> int:
    """How many tiles ahead lines are asked for: none where caches hold what is moved.

    None either where each tile would look up more places in tables: kernels of these have none.

    Processors follow rows themselves; where each tile is in other rows, it has to be early, but in
    few pages, and what was asked for has to stay in the nearest cache.
    """
    if not traits.is_large(p.nbytes) or p.tables:
        return 0
    ahead = 8 * AHEAD_BYTES // (moved(p, tile, "src") * p.dtypes[0].bits)
    if nest and nest[-1].axis not in going_on(p, tile, "src"):
        return max(1, min(MOST_AHEAD, PAGES_AHEAD // pages(p, tile), max(4, 2 * ahead)))
    return max(4, min(MOST_AHEAD, ahead))


def nests(p: Problem, tile: Tile, wanted: int) -> Iterator[tuple[Loop, ...]]:
    """Orders of the loops: of either side, with a run's loop innermost, in blocks."""
    orders = {tuple(sorted(range(len(p.nodes)), key=lambda k: -along[k]))
              for along in (strides(p.nodes, "src"), strides(p.nodes, "dst"))}  # fmt: skip
    inner = [axis for side in ("src", "dst") for axis in going_on(p, tile, side)]
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
    limit = rounds_of(p, tile, nest)[-2]
    return [(*rest, Loop(outer.axis, n), last, outer) for n in blocks if n < limit]
