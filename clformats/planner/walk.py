"""In which order the tiles are visited, and how they are shared among work-items.

Two loops decide: the one that is nearest in the source and the one nearest in the destination,
``S`` and ``D``. A work-item takes a *box*: a chunk of one of them and the whole of the other. What
the rules rest on was measured with f32 of 50 MB and more (pocl, 2 cores; share of a copy):

* a core follows up to about 15 streams of addresses at once. bfyx -> byxf with the short ``D``
  innermost reads 64 streams and runs at 0.2; with the long ``S`` innermost it reads 16, at 0.8;
* lines written far apart cost little, lines *read* far apart much, for the prefetcher fetches their
  neighbours too. byxf -> bfyx writes 64 streams with the short ``S`` innermost, 0.3, and reads
  every fourth line with the long ``D`` innermost, 0.35; with a loop before it that asks for the
  whole box in the source's order 0.5.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from math import prod

from .traits import Traits

TILES_PER_UNIT = 64
"""Work-items per core at the least, so that cores of unequal speed finish together."""
INNER_LIMIT = 64
"""The longest inner loop that is still run whole by one work-item."""
STREAMS = 15
"""Addresses far apart that a core can follow at once."""
FEW_TILES = 8
"""Fewer tiles than this do not pay for starting a work-item: it takes another loop as well."""
BOX_BYTES = 256 << 10
"""Bytes of a box whose lines are touched more than once: a part of the second-level cache."""


@dataclass(frozen=True, slots=True)
class Walk:
    """The loops over the tiles.

    ``outer`` nodes are spread over work-items; each work-item runs ``chunk`` positions of node
    ``middle`` and all positions of node ``inner`` (None: no such loop), the latter in the inner
    loop, or in the outer one if ``swapped``. ``prefetch``: the box is asked for before.
    """

    outer: tuple[int, ...] = ()
    middle: int | None = None
    inner: int | None = None
    chunk: int = 1
    swapped: bool = False
    prefetch: bool = False

    def __str__(self) -> str:
        if self.middle is None:
            return "a work-item runs 1 tile"
        middle = f"{self.chunk} of loop {self.middle}"
        if self.inner is None:
            return f"a work-item runs {middle}"
        loops = [middle, f"all of loop {self.inner}"]
        order = " x ".join(reversed(loops) if self.swapped else loops)
        return f"a work-item {'prefetches and ' if self.prefetch else ''}runs {order}"


def walk(
    counts: Sequence[int],
    steps: tuple[Sequence[int], Sequence[int]],
    streams: tuple[int, int],
    tile_bytes: int,
    traits: Traits,
    *,
    large: bool,
) -> Walk:
    """The walk over ``counts[k]`` tiles along each node k.

    ``steps`` are how far a tile moves in source and destination, ``streams`` how many places far
    apart one tile loads from and stores to, ``large`` whether the tensors exceed the cache.
    """
    loops = [k for k, count in enumerate(counts) if count > 1]
    if not loops:
        return Walk()
    near_src, near_dst = (min(loops, key=side.__getitem__) for side in steps)
    share = prod(counts) // (traits.compute_units * TILES_PER_UNIT)
    short, long = sorted((near_src, near_dst), key=lambda k: counts[k])
    if short == long and counts[short] <= FEW_TILES and len(loops) > 1:
        long = min((k for k in loops if k != short), key=steps[1].__getitem__)
    if short == long or counts[short] > INNER_LIMIT:
        middle = near_src if counts[near_src] > INNER_LIMIT else long
        outer = tuple(k for k in loops if k != middle)
        return Walk(outer, middle, None, max(1, min(share, counts[middle])))
    across = streams[0] if short == near_dst else streams[1]
    swapped = across * counts[short] > STREAMS
    prefetch = swapped and short == near_src and large
    chunk = share // counts[short]
    if swapped and (short == near_src or not large):
        chunk = min(chunk, BOX_BYTES // (tile_bytes * counts[short]))
    chunk = max(1, min(chunk, counts[long]))
    outer = tuple(k for k in loops if k not in (short, long))
    return Walk(outer, long, short, chunk, swapped, prefetch)
