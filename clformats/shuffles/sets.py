"""Sets of values, as the bits of numbers."""

from __future__ import annotations

from collections.abc import Iterable
from functools import reduce
from operator import or_


def mask_of(numbers: Iterable[int]) -> int:
    """The set of some numbers; those below 0 are none."""
    return union(1 << n for n in numbers if n >= 0)


def union(masks: Iterable[int]) -> int:
    """What is in one of the sets at least."""
    return reduce(or_, masks, 0)


def connected(masks: Iterable[int]) -> list[list[int]]:
    """The numbers of the sets, in groups that share nothing.

    >>> connected([0b1, 0b110, 0b1000, 0b100])
    [[0], [2], [1, 3]]
    """
    groups: list[tuple[int, list[int]]] = []
    for number, mask in enumerate(masks):
        mine = [number]
        for group in [g for g in groups if g[0] & mask]:
            groups.remove(group)
            mask |= group[0]  # noqa: PLW2901  # the group grows
            mine = group[1] + mine
        groups.append((mask, mine))
    return [mine for _, mine in groups]
