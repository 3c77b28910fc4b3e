"""Which lanes of a tile's vectors are elements, where the tile is at an edge of the tensor.

A guard of the problem (`clformats.problems.problem`) that is the same for all lanes of a vector is
a condition, another one is a mask. Where a tile covers all that a guard is about, the layout of its
vectors has decided already, and nothing is left to ask.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from operator import mul

from ..problems.problem import Problem
from ..schedule.layout import TileLayout, TileVector
from ..schedule.runs import asks_anything, ends_at, guard_range, is_settled, steady, strides
from ..schedule.schedule import Tile


@dataclass(frozen=True, slots=True)
class Edge:
    """What a kernel knows of a guard that some tiles are at the edge of, whatever the sizes.

    A step of loop ``k`` of the tile moves the guarded index, number ``index`` of the kernel, by
    ``units[k]``. ``below``: there may be tiles below the first element. ``spills``: some tiles
    reach beyond the padding, where nothing may be stored. ``word``: see `Guard`.
    """

    index: int
    units: tuple[int, ...]
    below: bool
    spills: bool
    word: int = 1


@dataclass(frozen=True, slots=True)
class Guarded:
    """The numbers of an edge: elements are from ``lo`` to ``hi``, and padding ends at ``end``.

    A tile whose index is from ``lo`` to ``top`` has elements only. ``number`` is the guard's in the
    problem.
    """

    edge: Edge
    number: int
    lo: int
    hi: int
    end: int
    top: int


def guarded(p: Problem, tile: Tile, layout: TileLayout) -> list[Guarded]:
    """The guards that a tile asks for at an edge."""
    extents = tile.all_steps(len(p.nodes))
    numbers = [g for g in range(len(p.guards))
               if not is_settled(p, g, extents) and asks_anything(p, g, extents)]  # fmt: skip
    found: list[Guarded] = []
    for index, number in enumerate(numbers):
        guard = p.guards[number]
        inside, last = guard_range(p, number, extents)
        lo, hi, end = guard.lo.value, guard.hi.value, guard.end.value
        units = tuple(p.nodes[k].unit if p.nodes[k].guard == number else 0 for k in layout.axes)
        edge = Edge(index, units, lo > 0, last >= end, guard.word)
        found.append(Guarded(edge, number, lo, hi, end, hi - 1 - inside))
    return found


def reads_outside(p: Problem, tile: Tile, layout: TileLayout) -> bool:
    """Whether some tile has a vector that is not all in the source's memory.

    Memory of blocks holds the padding, too: tiles at its edges read no further. With tables the
    answer is always yes.
    """
    if p.tables:
        return True
    low = high = p.src0
    for k, (node, stride) in enumerate(zip(p.nodes, steady(p.nodes, "src"), strict=True)):
        last = ends_at(p, node, tile.steps(k)) - tile.steps(k)
        low, high = low + min(0, last * stride), high + max(0, last * stride)
    places = layout.places(p, "src")
    first, end = min(places, default=0), reach_of(p, layout, "src")
    return low + first < 0 or high + end > source_end(p)


def source_end(p: Problem) -> int:
    """The elements that the source's memory holds, or words, from its first one on."""
    return p.src.span_nbytes * 8 // p.dtypes[0].bits


def reach_of(p: Problem, layout: TileLayout, side: str) -> int:
    """How far from its first element on a tile is loaded from the source, or stored."""
    along = strides(p.nodes, side)
    vectors = layout.loads if side == "src" else layout.stores
    places = zip(layout.places(p, side), vectors, strict=True)
    turns = sum((n - 1) * along[layout.axes[k]] for k, n in layout.rolled)
    return turns + max((at + v.width for at, v in places), default=0)


class Masks:
    """The conditions and masks of the vectors of a tile, as texts; empty where all are elements.

    ``outside``: see `reads_outside`. ``most`` is added to where a tile begins in the source, for
    its last row.
    """

    def __init__(
        self, edges: Sequence[Edge], layout: TileLayout, *, outside: bool, most: str = ""
    ) -> None:
        self.edges, self.layout, self.outside, self.most = edges, layout, outside, most
        self.overruns = outside and layout.reach  # where loads are longer than what they read

    @property
    def asks(self) -> bool:
        """Whether there may be tiles at an edge."""
        return bool(self.edges) or self.overruns

    @property
    def spills(self) -> bool:
        """Whether stores ask for their places: some tiles reach beyond those of the destination."""
        return any(g.spills for g in self.edges)

    @property
    def word(self) -> int:
        """The elements of words that are cut at an edge; 1 where none are."""
        return max((g.word for g in self.edges), default=1)

    @property
    def inside(self) -> str:
        """The condition that a tile is at no edge."""
        tests = [f"{at} >= nest.lo{g.index} && {at} <= nest.top{g.index}"
                 for g in self.edges for at in [f"now.guard[{g.index}]"]]  # fmt: skip
        ends = [f"now.src{self.most} <= nest.src_top"] if self.overruns else []
        return " && ".join([*tests, *ends])

    def of_load(self, vector: TileVector) -> tuple[str, str]:
        """The condition under which a vector is loaded, and the mask of its lanes."""
        lanes = vector.elements[: vector.width]
        conditions, masks = self._tests(lanes, self.edges, "lo", "hi")
        if None in lanes and self.outside:
            masks.append(_constant([n is not None for n in lanes]))
        return " && ".join(conditions), " & ".join(masks)

    def of_store(self, vector: TileVector) -> tuple[str, str]:
        """The condition under which a vector is stored, and the mask of its lanes."""
        spilling = [g for g in self.edges if g.spills]
        conditions, masks = self._tests(vector.elements, spilling, "", "end")
        if not masks:
            return " && ".join(conditions), ""
        if None in vector.elements:
            masks.append(_constant([n is not None for n in vector.elements]))
        masks += [f"(int{len(vector.elements)})({c} ? -1 : 0)" for c in conditions]
        return "", " & ".join(masks)

    def of_elements(self, vector: TileVector) -> tuple[str, bool]:
        """The condition that all lanes of a vector are elements, and whether lanes differ.

        Where they do, the condition does not suffice.
        """
        conditions, masks = self._tests(vector.elements, self.edges, "lo", "hi")
        return " && ".join(conditions), bool(masks)

    def of_words(self, vector: TileVector, word: str, bits: int, *, edge: bool) -> str:
        """The mask of the bits of a vector of words that are elements, where words are cut.

        ``word`` is the unsigned type of words, and ``bits`` how many they have.
        """
        lanes, cut = vector.elements[: vector.width], dict(self.layout.cut)
        n = str(len(lanes)) if len(lanes) > 1 else ""
        masks = []
        if any(k in cut for k in lanes):
            whole = (1 << bits) - 1
            kept = ((1 << cut[k]) - 1 if k in cut else whole for k in lanes)
            masks.append(f"({word}{n})({', '.join(f'{k:#x}u' for k in kept)})")
        for g in (g for g in self.edges if edge and g.word > 1):
            numbers = ", ".join(str(s or 0) for s in self._shifts(g, lanes))
            left = f"nest.hi{g.index} - now.guard[{g.index}]"
            masks.append(f"elements_{len(lanes)}({left}, (int{n})({numbers}))")
        return " & ".join(masks)

    def of_values(self, vector: TileVector, mask_type: str, *, edge: bool) -> str:
        """The mask of the lanes of a computed vector that are elements."""
        lanes, loaded, n = vector.elements, self.layout.loaded, len(vector.elements)
        conditions, masks = self._tests(lanes, self.edges if edge else (), "lo", "hi")
        if any(k is not None and loaded[k] is None for k in lanes):
            masks.append(_constant([k is not None and loaded[k] is not None for k in lanes]))
        masks += [f"({_int(n)})({c} ? -1 : 0)" for c in conditions]
        together = " & ".join(masks)
        return f"convert_{mask_type}{n if n > 1 else ''}({together})" if together else ""

    def _shifts(self, edge: Edge, lanes: Sequence[int | None]) -> list[int | None]:
        """How far the index of a guard is after the tile's first one, in each lane."""
        steps = (None if n is None else self.layout.steps[n] for n in lanes)
        return [None if s is None else sum(map(mul, edge.units, s)) for s in steps]

    def _tests(
        self, lanes: Sequence[int | None], edges: Sequence[Edge], lower: str, upper: str
    ) -> tuple[list[str], list[str]]:
        """Conditions for all lanes and masks over them: index from ``lower`` to below ``upper``."""
        conditions, masks = [], []
        for g in edges:
            shifts = self._shifts(g, lanes)
            known = [s for s in shifts if s is not None]
            at = f"now.guard[{g.index}]"
            low = f"nest.{lower}{g.index}" if lower else "0"
            high = f"nest.{upper}{g.index}"
            if len(set(known)) <= 1:
                here = f"{at} + {known[0]}" if known and known[0] else at
                above = f"{here} >= {low} && " if lower and g.below else ""
                conditions.append(f"{above}{here} < {high}")
                continue
            numbers = ", ".join(str(s or 0) for s in shifts)
            masks.append(f"between_{len(lanes)}({at}, (int{len(lanes)})({numbers}), {low}, {high})")
        return conditions, masks


def _int(lanes: int) -> str:
    return f"int{lanes if lanes > 1 else ''}"


def _constant(kept: Sequence[bool]) -> str:
    return f"({_int(len(kept))})({', '.join('-1' if k else '0' for k in kept)})"
