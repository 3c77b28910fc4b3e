"""The values of a computation's operands in the lanes of a tile's vectors: each read once."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import product

from ..problems.computation import Operand
from ..problems.thresholds import LINE_BYTES
from ..schedule.layout import TileLayout, TileVector
from ..schedule.schedule import VECTORS
from ..values.attr import OLD
from .computation import Computed, pointer_to
from .masks import Masks
from .source import moved, under


class Operands:
    """The variables of vectors of operands, which are shared where they have the same values.

    ``along[j]`` are the strides of operand j along the tile's loops, one for each of
    ``layout.axes``. ``before`` are declarations that are the same in all turns of a loop.
    To ``widths`` are added those of the vectors that are loaded. ``may_follow``: whether values may
    be computed as they are loaded; `follow_loads` tells whether they are.
    """

    def __init__(
        self,
        types: Computed,
        layout: TileLayout,
        along: Sequence[tuple[int, ...]],
        widths: set[int],
        masks: Masks,
        *,
        may_follow: bool,
    ) -> None:
        self.types, self.layout, self.along, self.widths = types, layout, along, widths
        self.masks = masks
        self.follow_loads = may_follow and self._follow_loads()
        self._names: dict[tuple[str, bool], str] = {}
        self.before: list[str] = []

    def of(self, vector: TileVector, *, edge: bool) -> tuple[list[str], list[str]]:
        """The statements that declare what a vector is the first to need, and all its operands.

        ``edge``: in tiles at an edge, where some lanes have no element.
        """
        declared: list[str] = []
        names: list[str] = []
        n = self.layout.lanes if self.layout.lanes > 1 else ""
        for j in range(len(self.along)):
            text = self._read(vector, j, edge=edge)
            name = self._names.get((text, edge))
            if name is None:
                name = self._names[text, edge] = f"p{len(self._names)}"
                turns = any(self.along[j][k] for k, _ in self.layout.rolled)
                where = declared if turns or not self.layout.rolled else self.before
                where.append(f"const {self.types.real}{n} {name} = {text};")
            names.append(name)
        return declared, names

    def _follow_loads(self) -> bool:
        """Whether operands are read as the source is: then values are computed as they are loaded.

        One load has the values of each in the lanes of every load of the source, but not in those
        of every store. None is the old value of what is stored.
        """
        loads, stores = self.layout.loads, self.layout.stores
        count = range(len(self.along))
        if self.types.computation.reads_old:
            return False
        if any(v.width < self.layout.lanes or None in v.elements for v in loads):
            return False
        if any(k not in (None, n) for n, k in enumerate(self.layout.loaded)):
            return False  # several elements share one load, but may have different operands
        return all(self._is_read_at_once(v, j) for v, j in product(loads, count)) and not all(
            self._is_read_at_once(v, j) for v, j in product(stores, count)
        )

    def _is_read_at_once(self, vector: TileVector, j: int) -> bool:
        """Whether one load has the values of all lanes that have any."""
        far = [self._far(j, s) for s in self._steps(vector) if s is not None]
        return not far or bool(_of_one_load(far))

    def prefetched(self) -> list[str]:
        """The last elements that a tile reads of lines of operands whose lanes are neighbours.

        Not of those, such as scales, that elements of a tile share.
        """
        found: dict[tuple[int, tuple[int, ...], int], str] = {}
        vectors = self.layout.loads if self.follow_loads else self.layout.stores
        vectors = () if self.layout.rolled else vectors
        for (j, operand), vector in product(enumerate(self.types.computation.operands), vectors):
            steps = [s for s in self._steps(vector) if s is not None]
            far = [self._far(j, s) for s in steps]
            if all(self.along[j]) and len(far) > 1 and far == [*range(far[0], far[-1] + 1)]:
                bits, place = operand.desc.dtype.bits, self._place(j, steps[-1], "next")
                at = f"(({place}) * {bits} >> 3)" if operand.desc.dtype.is_packed else place
                line = vector.shift * bits // (8 * LINE_BYTES)
                found[j, vector.row, line] = f"PREFETCH({pointer_to(operand)} + {at});"
        return [*found.values()]

    def _steps(self, vector: TileVector) -> list[tuple[int, ...] | None]:
        """The steps of the tile's loops to each lane; None for padding, whose place may be none."""
        layout = self.layout
        return [None if n is None or layout.loaded[n] is None else layout.steps[n]
                for n in vector.elements]  # fmt: skip

    def _far(self, j: int, steps: Sequence[int]) -> int:
        """How far an element of an operand is from the tile's first."""
        return sum(a * b for a, b in zip(steps, self.along[j], strict=True))

    def _read(self, vector: TileVector, j: int, *, edge: bool) -> str:
        """C of an operand in the lanes of a vector."""
        types, lanes = self.types, self.layout.lanes
        operand, steps = types.computation.operands[j], self._steps(vector)
        far = [None if s is None else self._far(j, s) for s in steps]
        given = [None if s is None else self._place(j, s) for s in steps]
        known = [(f, g) for f, g in zip(far, given, strict=True) if f is not None and g is not None]
        if not known:
            return self._zeros
        first, at = known[0]
        if operand.name == OLD and lanes == vector.width > 1:
            return self._old(vector, operand, moved(at, -far.index(first)), edge=edge)
        last = f"nest.last{j}"
        if all(f == first for f, _ in known):
            at = f"clamp({at}, (idx)0, {last})" if edge else at
            return types.spread(types.load_operand(operand, str(at), 1), lanes)
        condition, differ = self.masks.of_elements(vector) if edge else ("", False)
        if None not in far and not differ and (text := self._near(operand, known, lanes)):
            return under(condition, text, self._zeros)
        texts = [
            "0" if g is None else types.load_operand(
                operand, f"clamp({g}, (idx)0, {last})" if edge else g, 1)
            for g in given
        ]  # fmt: skip
        return f"({types.real}{lanes})({', '.join(texts)})"

    def _old(self, vector: TileVector, operand: Operand, at: str, *, edge: bool) -> str:
        """The old values of a vector that is stored as a whole, with those of its padding."""
        condition, mask = self.masks.of_store(vector) if edge else ("", "")
        if mask:
            return f"old_edge(dst, {at}, {mask})"
        text = self.types.load_operand(operand, at, self.layout.lanes)
        return under(condition, text, self._zeros)

    @property
    def _zeros(self) -> str:
        """Zero in every lane."""
        lanes = self.layout.lanes
        return f"({self.types.real}{lanes if lanes > 1 else ''})(0)"

    def _near(self, operand: Operand, known: Sequence[tuple[int, str]], lanes: int) -> str:
        """One load of the values of all lanes, which are neighbours; empty if they are not.

        Lanes may share a value: of 4 inputs of 4 outputs 4 have the scale of one output.
        """
        lane = _of_one_load([far for far, _ in known])
        if not lane:
            return ""
        _, at = min(known, key=lambda place: place[0])
        width = max(lane) + 1
        self.widths.add(width)
        text = self.types.load_operand(operand, at, width)
        taken = "".join(f"{n:x}" for n in lane)
        return text if lane == [*range(lanes)] else f"({text}).s{taken}"

    def _place(self, j: int, steps: Sequence[int], tile: str = "now") -> str:
        """The place of an element of an operand, by the steps of the tile's loops."""
        rolled, terms = dict(self.layout.rolled), [f"{tile}.operand[{j}]"]
        for k, (n, stride) in enumerate(zip(steps, self.along[j], strict=True)):
            if stride and (n or k in rolled):
                turn = f"f{k}" if k in rolled else str(n)
                terms.append(f"{turn} * o{j}_{k}" if n != 1 else f"o{j}_{k}")
        return " + ".join(terms)


def _of_one_load(far: Sequence[int]) -> list[int]:
    """The lanes of a vector that values so far away are; empty where no vector has just these."""
    lanes = [f - min(far) for f in far]
    width = max(lanes) + 1
    return lanes if width in VECTORS and len({*lanes}) == width else []
