"""The schedules that a problem has, in the order of what they are estimated to cost.

The first one is what runs where nobody has measured; a tuner measures the first few.
"""

from __future__ import annotations

from collections.abc import Iterator
from math import prod

from .cost import Model, common, run_of
from .extents import tiles
from .nest import ordered, positions
from .problem import Problem
from .profile import Profile
from .runs import LINE_BYTES, alignment, chain, is_settled, moves, strides
from .schedule import Loop, Prefetch, Schedule, Store, Tile

LEADS = ((0, 4), (4, 16))
"""Tiles of prefetch where the caches hold all, and where they do not: there it never costs much."""
BLOCKS = (4, 16)
ITEM_BYTES = 32 << 10
"""What a work-item moves at the least; there are up to `ITEMS` of them for each core."""
ITEMS = 16
UNUSUAL = 1.15
"""What another tile than the one of most problems must gain: each is a program to compile."""
CONSIDERED = 4
"""Tiles whose shuffles are made to compare them."""
LEAST_STREAM = 16
LONG_RUN_BYTES = 256
"""The least store that passes the cache, and a run of which they make most lines whole."""
MOST_ROWS = 64
"""Rows whose lines wait in a buffer."""


def best(p: Problem, profile: Profile) -> Schedule:
    """The schedule with the least estimated cost."""
    return ranked(p, profile)[0]


def ranked(p: Problem, profile: Profile) -> list[Schedule]:
    """All candidates, the one with the least estimated cost first."""
    model = Model(p, profile)
    usual = next(tiles(p))
    found = sorted(set(candidates(p, profile)), key=model.seconds)
    # Shuffles are made for the first few tiles alone: that takes longer than all else.
    for tile in [*dict.fromkeys(s.tile for s in found)][:CONSIDERED]:
        model.consider(tile)

    def cost(s: Schedule) -> tuple[float, int, str]:
        # Without a shuffle there is little to compile.
        is_usual = s.tile == usual or common(p, s.tile) >= s.tile.lanes
        return model.seconds(s) * (1 if is_usual else UNUSUAL), s.prefetch.lead, str(s)

    return sorted(found, key=cost)


def candidates(p: Problem, profile: Profile) -> Iterator[Schedule]:
    """Tiles, orders of loops, prefetch and stores in all combinations that are legal."""
    wanted = max(1, min(ITEMS * profile.units, p.nbytes // ITEM_BYTES))
    for tile in tiles(p):
        stores = _stores(p, tile, profile)
        for nest in nests(p, tile, wanted):
            for lead in LEADS[p.nbytes >= profile.stream_bytes]:
                for store in stores:
                    yield Schedule(tile, nest, Prefetch(lead), store)


def nests(p: Problem, tile: Tile, wanted: int) -> Iterator[tuple[Loop, ...]]:
    """Orders of the loops: of either side, with a run's loop innermost, in blocks."""
    nodes = p.nodes or ()
    counts = positions(p, tile)
    orders = {tuple(sorted(range(len(nodes)), key=lambda k: -along[k]))
              for along in (strides(nodes, "src"), strides(nodes, "dst"))}  # fmt: skip
    inner = [axis for side in ("src", "dst") for axis in _going_on(p, tile, side)]
    orders |= {(*(k for k in order if k != axis), axis) for order in orders for axis in inner}
    found: set[tuple[Loop, ...]] = set()
    for order in sorted(orders):
        nest = ordered(p, tile, order, wanted)
        found.add(nest)
        serial = [loop for loop in nest if not loop.spread]
        if len(serial) < 2:
            continue
        # One more loop along the last axis but one, inside the last: (.. y x) to (.. y:16 x y).
        *rest, outer, last = nest
        limit = min([x.tiles for x in rest if x.axis == outer.axis] or [counts[outer.axis]])
        found |= {(*rest, Loop(outer.axis, n), last, outer) for n in BLOCKS if n < limit}
    yield from sorted(found, key=str)


def _going_on(p: Problem, tile: Tile, side: str) -> list[int]:
    """The loop along which a tile's runs go on, on a side."""
    counts = positions(p, tile)
    return [axis for axis, _, _ in chain(p, side) if counts[axis] > 1][:1]


def _stores(p: Problem, tile: Tile, profile: Profile) -> list[Store]:
    """The ways in which the lines of a tile may reach memory."""
    if streams := streaming(p, tile, profile.begin_bytes):
        return [Store(), Store(streams)]
    if profile.begin_bytes >= LINE_BYTES and can_buffer_lines(p, tile):
        return [Store(), Store(lines=True)]
    return [Store()]


def can_buffer_lines(p: Problem, tile: Tile) -> bool:
    """Whether a line buffer can hold the rows of a tile: each has as many bytes as whole lines."""
    run = run_of(p, tile, "dst")
    rows = prod(tile.extents) // run
    settled = any(is_settled(p, g, [tile.steps(k) for k in range(len(p.nodes or ()))])
                  for g in range(len(p.guards)))  # fmt: skip
    line = run * p.dtypes[1].nbytes % LINE_BYTES == 0 and run % tile.lanes == 0 and tile.lanes > 1
    return line and not settled and rows <= MOST_ROWS and not p.operand_descs


def streaming(p: Problem, tile: Tile, begin_bytes: int) -> int:
    """Bytes of a streaming store that every vector of a tile may have; 0 for none.

    A tile stores whole lines, which vectors complete at once: parts of lines that are far apart in
    time are worse than ordinary stores. One long run may begin anywhere in a line.
    """
    nbytes = p.dtypes[1].nbytes
    nodes = p.nodes or ()
    extents = [tile.steps(k) for k in range(len(nodes))]
    run = run_of(p, tile, "dst")
    whole = run * nbytes % LINE_BYTES == 0 and run % tile.lanes == 0 and tile.lanes > 1
    if not whole:
        return 0
    inside = zip(nodes, extents, strict=True)
    rows = [n.dst.value for n, extent in inside if extent > 1 and n.dst.value >= run]
    every = [*moves(p, "dst", extents), *rows]
    least = alignment(every, nbytes, min(LINE_BYTES, begin_bytes))
    one_run = prod(extents) == run and run * nbytes >= LONG_RUN_BYTES
    enough = least >= (LEAST_STREAM if one_run else LINE_BYTES)
    return alignment([tile.lanes], nbytes, least) if enough else 0
