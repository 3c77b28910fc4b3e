"""Stores of zeros that follow each other: a loop, as compilers take seconds for hundreds of them.

One batch of a block of 32 has 31 stores of padding for each other one.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from textwrap import indent

from ..schedule.layout import TileVector

LEAST_LOOPED = 8
"""From so many stores on that follow each other they are a loop."""


def runs(vectors: Sequence[TileVector], step: int) -> Iterator[range]:
    """The numbers of vectors that follow each other in a row, each ``step`` after the one before.

    >>> [list(r) for r in runs([TileVector((), k, 8, ()) for k in (0, 8, 16, 40, 48)], 8)]
    [[0, 1, 2], [3, 4]]
    """
    ends = [(v.row, v.shift + step) for v in vectors]
    begins = [k for k, v in enumerate(vectors) if not k or (v.row, v.shift) != ends[k - 1]]
    return map(range, begins, [*begins[1:], len(vectors)])


def further(step: int) -> str:
    """How far a store of a loop is from the first one, each ``step`` from the one before."""
    return f"{step} * zero"


def looped(statements: Sequence[str], count: int) -> str:
    """The statements ``count`` times, at places that are `further` each time."""
    body = indent("\n".join(statements), "    ")
    return f"#pragma unroll 1\nfor (idx zero = 0; zero < {count}; ++zero) {{\n{body}\n}}"
