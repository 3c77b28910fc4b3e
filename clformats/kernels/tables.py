"""Places that kernels look up in tables: the source's, of blocks that the destination's do not fit.

A table is a formula (`clformats.problems.problem.Table`): how often it jumps is a constant of the
kernel, how far is an argument.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import reduce

from ..problems.problem import Problem
from ..schedule.layout import TileLayout, TileVector


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
        crossing = [v for v in layout.loads if v.last]
        self.widths = sorted({v.width for v in crossing})
        rows = [self._steps(row) for row in (*(v.row for v in layout.loads),
                                             *(v.last for v in crossing))]  # fmt: skip
        self.used = [sorted({steps[t] for steps in rows}) for t in range(len(keys))]
        self.left = [sorted({self._steps(v.row)[t] for v in crossing if self._crossed(v) == t})
                     for t in range(len(keys))]  # fmt: skip

    def _steps(self, row: Sequence[int]) -> list[int]:
        """The step of each table that a row is at, after those of the tile."""
        return [sum(a * b for a, b in zip(row, key.steps, strict=True)) for key in self.keys]

    def apart(self, row: Sequence[int]) -> tuple[list[int], list[str]]:
        """A row without the loops that have tables, and what these add to its place."""
        rest = [0 if any(key.steps[k] for key in self.keys) else n for k, n in enumerate(row)]
        return rest, [f"p{t}_{step}" for t, step in enumerate(self._steps(row))]

    def _crossed(self, vector: TileVector) -> int:
        """The table whose blocks a vector may cross."""
        both = zip(self._steps(vector.row), self._steps(vector.last), strict=True)
        return next(t for t, (first, last) in enumerate(both) if first != last)

    def left_of(self, vector: TileVector) -> str:
        """How many elements from a vector's first one on are in its block."""
        t = self._crossed(vector)
        return f"left{t}_{self._steps(vector.row)[t]}"

    def place(self, table: int) -> str:
        """The place of a ``step``."""
        return " + ".join(f"{self._whole(table, n)} * nest->jump{table}_{k}"
                          for k, n in enumerate(self.keys[table].every))  # fmt: skip

    def rest(self, table: int) -> str:
        """How many steps a block has from a ``step`` on."""
        n = self.keys[table].every[1]
        return f"{n} - (step - {self._whole(table, n)} * {n})"

    def _whole(self, table: int, n: int) -> str:
        """How often there are ``n`` steps. A vector that crosses blocks may begin in padding."""
        if n == 1:
            return "step"
        if self.left[table]:
            return f"(step - {n - 1} * (step < 0)) / {n}"
        return f"(idx)((ulong)step / {n})"

    @property
    def statements(self) -> list[str]:
        """What is looked up for each tile."""
        places = [f"const idx p{t}_{step} = place{t}(&nest, now.table[{t}] + {step});"
                  for t, steps in enumerate(self.used) for step in steps]  # fmt: skip
        left = [f"const idx left{t}_{step} = left{t}(now.table[{t}] + {step});"
                for t, steps in enumerate(self.left) for step in steps]  # fmt: skip
        return [*places, *left]

    @property
    def most(self) -> str:
        """The most that is added to the place of a row of the tile."""
        names = ([f"p{t}_{step}" for step in steps] for t, steps in enumerate(self.used))
        return "".join(f" + {reduce('max({}, {})'.format, found)}" for found in names)
