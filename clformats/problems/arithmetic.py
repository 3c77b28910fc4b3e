"""Arithmetic of strides: what numbers divide together, and which loops are one run.

A level is (count, stride): ``count`` places that are ``stride`` elements apart.
"""

from __future__ import annotations

from collections.abc import Iterable
from math import gcd

from .thresholds import LINE_BYTES


def alignment(numbers: Iterable[int], bits: int, most: int = LINE_BYTES) -> int:
    """The most bytes, a power of two, that divide each of these numbers of elements of ``bits``.

    >>> alignment([12, 8], 32)
    16
    """
    common = gcd(8 * most, *(n * bits for n in numbers))
    return (common & -common) // 8


def footprint(levels: Iterable[tuple[int, int]]) -> list[tuple[int, int]]:
    """(count, stride) of what loops reach together, innermost first; contiguous ones are joined.

    >>> footprint([(16, 100), (4, 1), (8, 4)])
    [(32, 1), (16, 100)]
    """
    return joined(sorted((x for x in levels if x[0] > 1 and x[1]), key=lambda x: x[1]))


def joined(levels: Iterable[tuple[int, int]]) -> list[tuple[int, int]]:
    """(count, stride) of loops, innermost first; those that go on where one ends are one with it.

    >>> joined([(16, 100), (4, 1), (8, 4)])
    [(16, 100), (32, 1)]
    """
    found: list[tuple[int, int]] = []
    for count, stride in levels:
        if found and stride == found[-1][0] * found[-1][1]:
            found[-1] = (found[-1][0] * count, found[-1][1])
        else:
            found.append((count, stride))
    return found


def power_of_two(n: int) -> int:
    """The largest power of two that is not above ``n``."""
    return 1 << (n.bit_length() - 1)
