"""Stores of zeros that follow each other: a loop, as compilers take seconds for hundreds of them.

With one batch of a block of 32 there are 31 stores of padding for each store of elements.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from textwrap import indent

from ..schedule.layout import TileVector

LEAST_LOOPED = 8
"""From so many stores on that follow each other they are a loop."""


def runs(lines: Sequence[Sequence[TileVector]], lanes: int) -> Iterator[range]:
    """The numbers of lines that follow each other: equal ones, each where the one before ends.

    A line has vectors of so many lanes, in any rows; the last one of a tile may have fewer.

    >>> rows = [[TileVector((), k, 8, ())] for k in (0, 8, 16, 40, 48)]
    >>> [list(r) for r in runs(rows, 8)]
    [[0, 1, 2], [3, 4]]
    """

    def places(line: Sequence[TileVector], by: int) -> list[tuple[tuple[int, ...], int, int]]:
        return [(v.row, v.shift + by, v.width) for v in line]

    begins = [k for k, line in enumerate(lines)
              if not k or places(line, 0) != places(lines[k - 1], lanes * len(line))]  # fmt: skip
    return map(range, begins, [*begins[1:], len(lines)])


def place(step: int) -> str:
    """Where a tile begins for the stores of a loop: each time ``step`` elements further."""
    return f"now.dst + {step} * zero"


def looped(statements: Sequence[str], count: int) -> str:
    """The statements ``count`` times; the first declares where the others store: at `place`."""
    body = indent("\n".join(statements), "    ")
    return f"#pragma unroll 1\nfor (idx zero = 0; zero < {count}; ++zero) {{\n{body}\n}}"
