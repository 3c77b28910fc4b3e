"""Places that kernels look up in tables: the source's, of blocks that the destination's do not fit.

A table is a formula (`clformats.problems.problem.Table`): how often it jumps is a constant of the
kernel, how far is an argument.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import reduce

from ..problems.problem import Problem
from ..schedule.layout import TileLayout


@dataclass(frozen=True, slots=True)
class TableKey:
    """What a source depends on of a table.

    ``every``: after how many steps it jumps; ``steps``: how many of them a step of each of the
    tile's loops is.
    """

    every: tuple[int, ...]
    steps: tuple[int, ...]


def keyed(p: Problem, axes: Sequence[int]) -> tuple[TableKey, ...]:
    """The tables of a problem, for a tile of these loops."""
    steps = (tuple(p.nodes[k].steps_of(t) for k in axes) for t in range(len(p.tables)))
    return tuple(TableKey(tuple(every for every, _ in table.jumps), each)
                 for table, each in zip(p.tables, steps, strict=True))  # fmt: skip


class Lookups:
    """The texts that look up where rows of a tile lie."""

    def __init__(self, keys: Sequence[TableKey], layout: TileLayout) -> None:
        self.keys = keys
        rows = [self._steps(v.row) for v in layout.loads]
        self.used = [sorted({steps[t] for steps in rows}) for t in range(len(keys))]

    def _steps(self, row: Sequence[int]) -> list[int]:
        """The step of each table that a row is at, after those of the tile."""
        return [sum(a * b for a, b in zip(row, key.steps, strict=True)) for key in self.keys]

    def apart(self, row: Sequence[int]) -> tuple[list[int], list[str]]:
        """A row without the loops that have tables, and what these add to its place."""
        rest = [0 if any(key.steps[k] for key in self.keys) else n for k, n in enumerate(row)]
        return rest, [f"p{t}_{step}" for t, step in enumerate(self._steps(row))]

    @property
    def statements(self) -> list[str]:
        """What is looked up for each tile."""
        return [f"const idx p{t}_{step} = place{t}(&nest, now.table[{t}] + {step});"
                for t, steps in enumerate(self.used) for step in steps]  # fmt: skip

    @property
    def most(self) -> str:
        """The most that is added to the place of a row of the tile."""
        names = ([f"p{t}_{step}" for step in steps] for t, steps in enumerate(self.used))
        return "".join(f" + {reduce('max({}, {})'.format, found)}" for found in names)
