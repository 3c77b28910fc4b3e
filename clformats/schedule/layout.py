"""How a tile lies in vectors: which elements each load and each store takes.

The elements of a tile are numbered. Where they lie follows from the strides; neighbours in
memory make runs, and runs are cut into vectors. Nothing else is known of blocks, channels or
short loops: three interleaved channels, blocks of any size and windows of 3 x 3 are all runs.

Where a tile covers a whole padded dimension, such as 3 channels of a block of 16, what is no
element is not loaded, and stored as zero.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass
from functools import lru_cache
from itertools import product
from math import prod
from operator import mul

from ..problems.problem import Problem
from ..problems.thresholds import LINE_BYTES, MOST_LANES
from ..shuffles.program import ShuffleProgram
from ..shuffles.synthesis import synthesise
from .runs import (
    begins_blocks,
    chain,
    crosses_blocks,
    is_settled,
    moves,
    row_apart,
    steady,
    strides,
)
from .schedule import Tile


@dataclass(frozen=True, slots=True)
class TileVector:
    """Neighbours in memory: ``elements[l]`` is the number of lane l's, None where there is none.

    The first is ``shift`` elements after the step ``row[k]`` of each of the tile's loops. Loads of
    different steps of a loop with a table are apart, but for those that cross its blocks: their
    last element is at the steps ``last``.
    ``width`` lanes are accessed: a power of two where they are loaded.
    """

    row: tuple[int, ...]
    shift: int
    width: int
    elements: tuple[int | None, ...]
    last: tuple[int, ...] = ()


@dataclass(frozen=True, slots=True)
class TileLayout:
    """The vectors of a tile.

    ``axes`` are the loops of the problem that a tile has more than one step of, by their stride in
    the source: rows and ``steps``, those of each element, are given along these. ``loaded[n]`` is
    the element whose value element n gets, None for a zero. ``reach`` says that some loads are
    longer than their run. ``rolled``: (which of the axes, steps) of `Problem.rolled`, along which
    a tile has one step here. ``cut``: words of which the lowest bits are elements, and how many.
    """

    axes: tuple[int, ...]
    steps: tuple[tuple[int, ...], ...]
    loaded: tuple[int | None, ...]
    loads: tuple[TileVector, ...]
    stores: tuple[TileVector, ...]
    lanes: int
    rolled: tuple[tuple[int, int], ...] = ()
    cut: tuple[tuple[int, int], ...] = ()

    @property
    def reach(self) -> bool:
        """Whether some load is longer than its run, or than its part in a block."""
        return any(v.last or None in v.elements[: v.width] for v in self.loads)

    @property
    def read_run(self) -> int:
        """The elements of each row that is loaded; 0 where rows are of several lengths."""
        ends: dict[tuple[int, ...], int] = {}
        for v in self.loads:
            end = v.shift + sum(n is not None for n in v.elements)
            ends[v.row] = max(end, ends.get(v.row, 0))
        lengths = {*ends.values()}
        return lengths.pop() if len(lengths) == 1 else 0

    def places(self, p: Problem, side: str) -> list[int]:
        """How far each vector's first element is from the tile's, on a side: loads or stores.

        Without what tables add to the source's.
        """
        along = steady(p.nodes, side)
        along = [along[k] for k in self.axes]
        vectors = self.loads if side == "src" else self.stores
        return [v.shift + sum(map(mul, v.row, along)) for v in vectors]

    def program(self, nbytes: int, stored_nbytes: int) -> ShuffleProgram:
        """The shuffles between loads and stores.

        Elements have ``nbytes`` while they are shuffled and ``stored_nbytes`` in the destination.
        """
        wanted = [
            tuple(None if n is None else self.loaded[n] for n in v.elements[: v.width])
            for v in self.stores
        ]
        whole = all(v.width == self.lanes for v in self.stores)
        together = max(1, LINE_BYTES // (self.lanes * stored_nbytes)) if whole else 1
        loads = [v.elements for v in self.loads]
        return synthesise(loads, wanted, nbytes=nbytes, together=together)


@lru_cache(maxsize=512)
def lay_out(p: Problem, tile: Tile) -> TileLayout:
    """The vectors of a tile of a problem."""
    nodes = p.nodes
    axes = tuple(sorted((k for k in range(len(nodes)) if tile.steps(k) > 1),
                        key=lambda k: (nodes[k].src.value, nodes[k].dst.value)))  # fmt: skip
    extents = [1 if k in p.rolled else tile.steps(k) for k in range(len(nodes))]
    steps = tuple(t[::-1] for t in product(*(range(extents[k]) for k in axes[::-1])))
    covered = [extents[k] for k in axes]
    src, dst = ([strides(nodes, side)[k] for k in axes] for side in ("src", "dst"))
    read, written = _places(p, extents, axes)
    # Along a broadcast loop (source stride 0) only the first element is loaded.
    still = [stride == 0 and nodes[k].guard is None and nodes[k].table is None
             for k, stride in zip(axes, src, strict=True)]  # fmt: skip
    apart = [prod(covered[:j]) for j in range(len(axes))]
    first = _offsets(covered, [0 if s else n for n, s in zip(apart, still, strict=True)])
    loaded: list[int | None] = [None] * len(steps)
    for n in read:
        loaded[n] = first[n]
    sources = {n for n in loaded if n is not None}
    begins, ends = _offsets(covered, src), _offsets(covered, dst)
    crossed = [t for t in range(len(p.tables)) if crosses_blocks(p, t, tile.lanes)
               and not begins_blocks(p, t, extents)]  # fmt: skip
    near, blocks = _in_blocks(p, extents, axes, crossed)
    first, late = ([axes.index(axis) for axis, _ in some] for some in exchanged(p))
    first += _overlapping(covered, src, [begins[n] for n in sources])
    first += [j for t in crossed for j, k in enumerate(axes) if not nodes[k].steps_of(t)]
    if (row := row_apart(p, tile)) is not None:
        first += [j for j, k in enumerate(axes) if k != row]
    late += _overlapping(covered, dst, [ends[n] for n in written])
    apart_in, apart_out = (
        [tuple(step[k] for k in some) for step in steps] for some in (first, late)
    )
    apart_in = [(*a, *b) for a, b in zip(apart_in, blocks, strict=True)]
    loads = _vectors({n: near[n] for n in sources}, steps, tile.lanes, apart_in,
                     overlap=True, crossed=bool(crossed))  # fmt: skip
    stores = _vectors({n: ends[n] for n in written}, steps, tile.lanes, apart_out)
    rolled = tuple((axes.index(k), tile.steps(k)) for k in p.rolled)
    return TileLayout(axes, steps, tuple(loaded), loads, stores, tile.lanes, rolled,
                      _cut(p, extents, axes, read))  # fmt: skip


def exchanged(p: Problem) -> tuple[list[tuple[int, int]], list[tuple[int, int]]]:
    """Which of `Problem.exchanges` are done as vectors are loaded, and which as they are stored.

    There the two words are in different vectors; on the other side they may be neighbours.
    """
    near = {axis for axis, _, reached in chain(p, "src") if reached < MOST_LANES}
    return ([x for x in p.exchanges if x[0] not in near],
            [x for x in p.exchanges if x[0] in near])  # fmt: skip


def stores_units(p: Problem, tile: Tile) -> bool:
    """Whether all that a tile stores are whole units of elements that share bytes."""
    unit = p.dtypes[1].unit
    if unit == 1 or tile.lanes % unit:
        return unit == 1
    whole = not any(v.width % unit for v in lay_out(p, tile).stores)
    return whole and begins_units(p, tile, "dst")


def begins_units(p: Problem, tile: Tile, side: str) -> bool:
    """Whether each vector of a side begins with a whole unit of elements that share bytes."""
    extents = tile.all_steps(len(p.nodes))
    places = [*lay_out(p, tile).places(p, side), *moves(p, side, extents)]
    return not any(n % p.dtypes[side == "dst"].unit for n in places)


def _offsets(extents: Sequence[int], along: Sequence[int]) -> list[int]:
    """How far each element of a tile is from the first one, by its steps; the first loop counts up.

    >>> _offsets((2, 3), (1, 10))
    [0, 1, 10, 11, 20, 21]
    """
    found = [0]
    for extent, stride in zip(extents, along, strict=True):
        found = [step * stride + n for step in range(extent) for n in found]
    return found


def _in_blocks(
    p: Problem, extents: Sequence[int], axes: Sequence[int], crossed: Collection[int]
) -> tuple[list[int], list[tuple[int, ...]]]:
    """How far each element is from the first one of its block in the source, and which that is.

    Of tables; where a tile does not begin with a block, each step is one, or all of them are, of
    tables whose blocks are ``crossed``.
    """
    covered, along = [extents[k] for k in axes], steady(p.nodes, "src")
    places = _offsets(covered, [along[k] for k in axes])
    blocks: list[tuple[int, ...]] = [()] * len(places)
    for number, table in enumerate(p.tables):
        at = _offsets(covered, [p.nodes[k].steps_of(number) for k in axes])
        every = max(at) + 1 if number in crossed else begins_blocks(p, number, extents) or 1
        places = [n + t % every * table.jumps[0][1] for n, t in zip(places, at, strict=True)]
        blocks = [(*b, t // every) for b, t in zip(blocks, at, strict=True)]
    return places, blocks


def _overlapping(
    extents: Sequence[int], along: Sequence[int], places: Collection[int]
) -> list[int]:
    """Where elements share places, the loops whose steps are within what others reach.

    So it is in a tensor smaller than a tile: guards leave one of the elements. Of loops with the
    same stride the longest stays.

    >>> _overlapping((16, 2), (1, 7), [*range(16), *range(7, 23)])
    [1]
    """
    found: list[int] = []
    reached = 0
    loops = (j for j, stride in enumerate(along) if stride)
    for j in sorted(loops, key=lambda j: (along[j], -extents[j])):
        stride = along[j]
        if stride < reached:
            found.append(j)
        reached = max(reached, stride * extents[j])
    return found if len(set(places)) < len(places) else []


def _places(p: Problem, extents: Sequence[int], axes: Sequence[int]) -> tuple[list[int], list[int]]:
    """The numbers of the elements that are read, and of those that have a place to be written."""
    covered = [extents[k] for k in axes]
    written = [*range(prod(covered))]
    for j, k in enumerate(axes):
        size = p.nodes[k].size.value
        if size < extents[k]:
            at = _offsets(covered, [int(j == i) for i in range(len(axes))])
            written = [n for n in written if at[n] < size]
    read = written
    for number, g in enumerate(p.guards):
        if is_settled(p, number, extents):
            at = _guarded(p, number, extents, axes)
            lo, hi, end = g.lo.value, g.hi.value, g.end.value
            written = [n for n in written if at[n] < end]
            read = [n for n in read if lo <= at[n] < hi and at[n] < end]
    return read, written


def _guarded(p: Problem, number: int, extents: Sequence[int], axes: Sequence[int]) -> list[int]:
    """The index of a guard at each element of a tile."""
    units = (p.nodes[k].unit if p.nodes[k].guard == number else 0 for k in axes)
    return _offsets([extents[k] for k in axes], [*units])


def _cut(
    p: Problem, extents: Sequence[int], axes: Sequence[int], read: Sequence[int]
) -> tuple[tuple[int, int], ...]:
    """Of words that are read and have padding their numbers, and how many bits are elements."""
    found: list[tuple[int, int]] = []
    for number, g in enumerate(p.guards):
        if g.word > 1 and is_settled(p, number, extents):
            left = [g.hi.value - at for at in _guarded(p, number, extents, axes)]
            found += [(n, left[n] * p.dtypes[0].bits // g.word) for n in read if left[n] < g.word]
    return tuple(found)


def _vectors(
    places: Mapping[int, int],
    steps: Sequence[tuple[int, ...]],
    lanes: int,
    apart: Sequence[tuple[int, ...]],
    *,
    overlap: bool = False,
    crossed: bool = False,
) -> tuple[TileVector, ...]:
    """The vectors of runs of elements; those that differ in ``apart`` are in several.

    ``overlap``: they may have elements twice, where the last of a run overlaps the one before, and
    lanes after its end. ``crossed``: a run crosses blocks, where its elements are further apart.
    """
    groups: dict[tuple[int, ...], list[int]] = {}
    for n in sorted(places, key=places.__getitem__):
        groups.setdefault(apart[n], []).append(n)
    runs: list[list[int]] = []
    for group in groups.values():
        for last, n in zip([None, *group], group, strict=False):
            if last is not None and places[n] == places[last] + 1:
                runs[-1].append(n)
            else:
                runs.append([n])
    found = []
    for run in runs:
        starts = [*range(0, len(run), lanes)]
        if overlap and len(run) > lanes:
            starts[-1] = len(run) - lanes
        for start in starts:
            part = run[start : start + lanes]
            width = 1 << (len(part) - 1).bit_length() if overlap else len(part)
            elements = (*part, *[None] * (lanes - len(part)))
            if crossed and len(part) > 1:
                found.append(TileVector(steps[part[0]], 0, width, elements, steps[part[-1]]))
            else:
                found.append(TileVector(steps[run[0]], start, width, elements))
    return tuple(found)
