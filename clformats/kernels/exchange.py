"""Words whose elements change places: by masks and shifts, in vectors of them.

See `clformats.problems.words`. Vectors that exchange elements are a *group*, by the steps of the
loops along which they do: two for one loop, eight for three.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import accumulate
from math import prod
from operator import mul

from ..schedule.banks import Pass
from ..schedule.layout import TileVector

Exchanges = tuple[tuple[int, int], ...]
"""(number of the tile's loop, distance in bits) of each."""


def groups(vectors: Sequence[TileVector], along: Exchanges) -> dict[int, tuple[int, ...]]:
    """For each vector those that exchange elements with it and itself, by their steps."""
    found: dict[object, list[int]] = {}
    for number, v in enumerate(vectors):
        rest = tuple(0 if k in dict(along) else n for k, n in enumerate(v.row))
        found.setdefault((rest, v.shift), []).append(number)
    for group in found.values():
        group.sort(key=lambda n: [vectors[n].row[k] for k, _ in reversed(along)])
    return {n: tuple(group) for group in found.values() for n in group}


def exchanged(
    vector: str, along: Exchanges, values: Sequence[str], names: Sequence[str]
) -> Iterator[str]:
    """The statements by which a group exchanges elements; the results have other ``names``."""
    for stage, (_, distance) in enumerate(along):
        made = [*names] if stage + 1 == len(along) else [f"{name}_{stage}" for name in names]
        for k, name in enumerate(made):
            a, b = (values[k & ~(1 << stage) | side << stage] for side in (0, 1))
            which = "HIGH" if k >> stage & 1 else "LOW"
            yield f"const {vector} {name} = {which}{distance}({a}, {b});"
        values = made


def distances(exchanges: Sequence[Exchanges], bits: int) -> list[tuple[int, str]]:
    """(distance, mask of the elements that are first of two) of all, in words of ``bits`` bits."""
    found = sorted({distance for along in exchanges for _, distance in along})
    return [(distance, _mask(bits, [(distance, 0)])) for distance in found]


def swaps(places: Sequence[tuple[int, int]], bits: int) -> list[tuple[int, str]]:
    """(distance, mask of the nearer one) of elements that trade places inside a word."""
    return [(abs(a - b), _mask(bits, [(min(a, b), 1), (max(a, b), 0)])) for a, b in places]


def _mask(bits: int, wanted: Sequence[tuple[int, int]]) -> str:
    """The bits of a word whose number has these digits: each 0, or not."""
    inside = [n for n in range(bits) if all((n & digit > 0) == on for digit, on in wanted)]
    return f"{sum(1 << n for n in inside):#x}u"


@dataclass(frozen=True, slots=True)
class GroupTrades:
    """The exchanges of a work-group's tile of ``sizes``, loaded in units of the pass ``unit``.

    A work-item loads all units that trade elements; their loops are outermost in the pass.
    """

    unit: Pass
    sizes: Sequence[int]
    exchanges: Exchanges
    work: str

    @property
    def _places(self) -> list[tuple[int, int]]:
        """(elements apart in the pass, distance) of each exchange, the nearest first."""
        reached = accumulate((self.sizes[k] for k in self.unit.order), mul, initial=1)
        place = dict(zip(self.unit.order, reached, strict=False))
        return sorted((place[k], distance) for k, distance in self.exchanges)

    @property
    def _between(self) -> Exchanges:
        """The exchanges between units."""
        return tuple(x for x in self._places if x[0] >= self.unit.width)

    @property
    def together(self) -> int:
        """How many units trade elements."""
        return 1 << len(self._between)

    @property
    def apart(self) -> int:
        """By how many units they are apart."""
        count = prod(self.sizes[k] for k in self.unit.order)
        return count // self.unit.width // self.together

    def numbers(self, group: int, count: int) -> tuple[str, int, int]:
        """C of the ``k``-th of ``count`` units of a chunk; how far chunks go on, where they end."""
        together, at = self.together, f"begin + k * {group}"
        if together > 1:
            at = f"begin + k / {together} * {group} + k % {together} * {self.apart}"
        return at, count // together * group, self.apart

    def statements(self, count: int) -> Iterator[str]:
        """The statements by which the units ``held``, so many, trade elements."""
        for k in range(count):
            for at, distance in self._places:
                if at < self.unit.width:
                    yield self._inside(f"held[{k}]", at, distance)
        width, between = self.unit.width, self._between
        for first in range(0, count, self.together) if between else ():
            numbers = range(first, first + self.together)
            names, values = [f"held_{k}" for k in numbers], [f"held[{k}]" for k in numbers]
            vector = f"{self.work}{width if width > 1 else ''}"
            yield from exchanged(vector, between, values, names)
            yield from (f"{a} = {b};" for a, b in zip(values, names, strict=True))

    def _inside(self, name: str, at: int, distance: int) -> str:
        """The statement by which lanes of a unit that are so far apart trade elements."""
        width = self.unit.width
        low = [j for j in range(width) if not j & at]
        sides = [f"{name}.s" + "".join(f"{j | more:x}" for j in low) for more in (0, at)]
        a, b = (f"{which}{distance}({', '.join(sides)})" for which in ("LOW", "HIGH"))
        lanes = [("b" if j & at else "a") + (f".s{low.index(j & ~at):x}" if width > 2 else "")
                 for j in range(width)]  # fmt: skip
        half = f"{self.work}{width // 2 if width > 2 else ''}"
        made = f"({self.work}{width})({', '.join(lanes)})"
        return f"{{ const {half} a = {a}, b = {b}; {name} = {made}; }}"
