"""Words whose elements change places: by masks and shifts, in vectors of them.

See `clformats.problems.words`. Vectors that exchange elements are a *group*, by the steps of the
loops along which they do: two for one loop, eight for three.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence

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
