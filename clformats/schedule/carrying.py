"""The walks along which lines are carried on, from tile to tile and from row to row.

Where rows of the destination start anywhere, whole lines can be written by work-items that go along
the rows (`clformats.schedule.lines`, `clformats.kernels.carry`). That is worth while where the rows
are long enough, and where what they read lies in order or comes from a cache:
`clformats.schedule.walk` has what reading far apart costs. So where many rows lie side by side in
the source they go on together, and their lines wait in private memory.
"""

from __future__ import annotations

from dataclasses import replace

from .traits import LINE_BYTES, Traits
from .walk import (
    BOX_BYTES,
    ITEMS_PER_UNIT,
    STREAMS,
    Carried,
    Kept,
    Reads,
    Tiles,
    Walk,
    asked_of_row,
    in_boxes,
    share_of,
)

LEAST_CARRIED = 20
"""Tiles that carry lines on to each other, at the least: the first and the last one cost more. Rows
of 18 tiles reach 0.48 where ordinary stores reach 0.52, with 22 it is 0.57 and 0.48."""
LEAST_LINKED = 3
"""Tiles of rows that are linked, at the least; 2 where a tile has `STREAMS` rows. In f16 rows of 49
elements reach 0.6 instead of 0.3 with 2 tiles of 16 rows, but 0.75 instead of 0.9 with 4 rows."""
LINKED_BOX_BYTES = 512 << 10
"""What may be gone through once for each tile that lies between those of a row: images of 200 KB
reach 0.55 instead of 0.27, larger ones less than without where there are more tiles than
`FEW_PASSES`: 0.38 instead of 0.42 with 16 of them."""
FEW_PASSES = 6
"""Tiles between those of a row for which larger images are gone through as well: 4 and 6 of them
reach 0.6 and 0.75 instead of 0.4 and 0.3."""
KEPT_LINES = (256, 1024, 2048)
"""Lines that may wait in private memory: half of the nearest cache, and what is taken of the second
one. `byxf` to `bfyx` with 2048 channels of 27 x 27 still gains, f32 0.81 instead of 0.67."""
LEAST_KEPT = 32
"""Tiles that a work-item goes along where lines wait in memory, at the least: it reads one more, to
end the lines of the last one. With 12 of them f32 to f16 with 192 channels reaches 0.77, with 48
0.99."""


def keeping_walk(tiles: Tiles, traits: Traits, along: int, *, links: bool) -> Walk | None:
    """The walk along rows whose lines wait in private memory; None where there is none.

    Tiles of another loop lie between those of a row, and all of them together are a piece of the
    source, which is read from end to end; pieces follow each other. `byxf` to `bfyx` with 250
    channels reaches 0.9 so in f32 and f16, collected 0.48 and 0.38. ``links``: rows can be linked,
    which is faster where values get longer and a cache holds what is read.
    """
    counts, steps = tiles.counts, tiles.src_steps
    inner = min((k for k, n in enumerate(counts) if n > 1), key=steps.__getitem__)
    follows = steps[along] <= tiles.elements * counts[inner] < 2 * steps[along]
    lines = tiles.elements * tiles.dst_bytes // LINE_BYTES * counts[inner]
    room = next((n for n in KEPT_LINES if lines <= n), None)
    if inner == along or not follows or room is None or counts[along] < LEAST_CARRIED:
        return None
    in_cache = steps[along] * counts[along] * tiles.src_bytes <= LINKED_BOX_BYTES
    if links and in_cache and tiles.src_bytes < tiles.dst_bytes:
        return None
    fair = max(1, tiles.total // (counts[inner] * _least_items(traits)))
    share = max(share_of(tiles, traits) // counts[inner], min(LEAST_KEPT, fair))
    chunk = -(-counts[along] // max(1, counts[along] // share))
    outer = tuple(k for k, n in enumerate(counts) if n > 1 and k not in (along, inner))
    asks = Walk(outer, along, inner, chunk, reads=Reads.PIECES, ahead=1, near=False)
    return replace(asks, lines=Kept(room))


def linking_walk(tiles: Tiles, traits: Traits, along: int) -> Walk | None:
    """The walk where rows are linked: along them from end to end, and on to the next; None without.

    Where tiles of another loop lie between those of a row in the source, all that they read is gone
    through once for each of them: the cache holds it, they are few, or it is read in boxes of rows.
    """
    counts, steps = tiles.counts, tiles.src_steps
    others = [k for k, count in enumerate(counts) if count > 1 and k != along]
    between = [k for k in others if steps[k] < steps[along]]
    near = not between and steps[along] == tiles.elements
    if not others or counts[along] < _least_linked(tiles) or not (near or len(between) == 1):
        return None
    middle = between[0] if between else min(others, key=tiles.dst_steps.__getitem__)
    outer = tuple(k for k in others if k != middle)
    chunk = max(1, min(share_of(tiles, traits) // counts[along], counts[middle]))
    path = Walk(outer, middle, along, chunk, lines=Carried(links=True))
    if near:
        return path if tiles.total >= counts[along] * _least_items(traits) else None
    few = counts[middle] <= FEW_PASSES
    held = few or steps[along] * counts[along] * tiles.src_bytes <= LINKED_BOX_BYTES
    boxes = tiles.reads >= STREAMS and asked_of_row(tiles, counts[along]) >= LINE_BYTES
    return in_boxes(path, tiles, large=True) if held or boxes else None


def _least_items(traits: Traits) -> int:
    """Work-items that keep a device busy."""
    return ITEMS_PER_UNIT[0] * traits.compute_units


def _least_linked(tiles: Tiles) -> int:
    """How many tiles a row has at the least."""
    return LEAST_LINKED - (tiles.writes >= STREAMS)


def carrying_walk(tiles: Tiles, traits: Traits, along: int) -> Walk | None:
    """The walk where lines are carried on along a loop: from end to end, if that leaves enough.

    Where tiles of another loop lie between those of this one, the source would be read again for
    each of them: there they take turns, box by box. None where that gains nothing.
    """
    share, counts = share_of(tiles, traits), tiles.counts
    near = tiles.src_steps[along] == tiles.elements or tiles.reads * counts[along] <= 2 * STREAMS
    if counts[along] < LEAST_CARRIED or not near:
        return None
    others = [k for k, count in enumerate(counts) if count > 1 and k != along]
    middle = min(others, key=tiles.src_steps.__getitem__, default=along)
    if middle != along and tiles.src_steps[middle] < tiles.src_steps[along]:
        chunk = max(LEAST_CARRIED, BOX_BYTES // (tiles.nbytes * counts[middle]))
        outer = tuple(k for k in others if k != middle)
        return Walk(outer, along, middle, min(chunk, counts[along]), swapped=True, lines=Carried())
    if middle == along or share < counts[along]:
        chunk = min(max(share, LEAST_CARRIED), counts[along])
        return Walk(tuple(others), along, None, chunk, lines=Carried())
    chunk = max(1, min(share // counts[along], counts[middle]))
    outer = tuple(k for k in others if k != middle)
    return Walk(outer, middle, along, chunk, lines=Carried())
