"""Elimination: the optimum of a `GraphicalModel`, and who attains it.

Greedy: always the variable that is the least work. Its tables go, and what is left of them is one
table over the variables around it.
"""

from __future__ import annotations

import heapq
from collections import defaultdict
from collections.abc import Iterable, Sequence
from math import prod

import numpy as np

from .model import GraphicalModel, Scope
from .trees import Array, min_plus

Table = tuple[Scope, Array]


class Elimination:
    """One pass over the tables; ``kept`` is a variable that stays to the end."""

    def __init__(self, model: GraphicalModel, kept: int | None = None) -> None:
        self.sizes, self.limit, self.fits = model.sizes, model.limit, model.fits
        self.value = 0.0
        self.tables: dict[int, Table] = {}
        self._of: defaultdict[int, dict[int, None]] = defaultdict(dict)
        self._left = set(range(len(model.sizes))) - {kept}
        self._done: list[tuple[int, tuple[Table, ...]]] = []
        self._count = 0
        self._heap: list[tuple[int, int]] = []
        self._now: dict[int, int] = {}
        for table in model.tables:
            self._add(table)

    def run(self) -> bool:
        """Eliminate all, which makes ``value`` the minimum; False where tables are too large."""
        self._update(self._left)
        while self.fits and self._heap:
            size, v = heapq.heappop(self._heap)
            if v in self._left and self._now[v] == size:
                self.fits = size <= self.limit
                if self.fits:
                    self._eliminate(v)
        return self.fits

    def assignment(self) -> list[int]:
        """A value for each variable, that together attain the minimum."""
        found = [0] * len(self.sizes)
        for v, tables in reversed(self._done):
            total = np.zeros(self.sizes[v])
            for scope, table in tables:
                total = total + table[tuple(slice(None) if w == v else found[w] for w in scope)]
            found[v] = int(np.argmin(total))
        return found

    def _update(self, variables: Iterable[int]) -> None:
        """Note how many entries the tables need that go with these variables."""
        for v in sorted(self._left.intersection(variables)):
            around = {w for t in self._of[v] for w in self.tables[t][0]} | {v}
            size = prod(self.sizes[w] for w in around)
            if self._now.get(v) != size:
                self._now[v] = size
                heapq.heappush(self._heap, (size, v))

    def _eliminate(self, v: int) -> None:
        tables = self._take(v)
        self._done.append((v, tables))
        scope = tuple(dict.fromkeys(w for own, _ in tables for w in own if w != v))
        if len(scope) == 2 and all(len(own) < 3 for own, _ in tables):
            left = [t for t in tables if scope[1] not in t[0]]
            right = [t for t in tables if scope[1] in t[0]]
            self._add((scope, min_plus(joined(left, (scope[0], v)), joined(right, (v, scope[1])))))
        elif tables:
            self._add((scope, joined(tables, (*scope, v)).min(axis=-1)))
        self._update(scope)

    def _take(self, v: int) -> tuple[Table, ...]:
        """The tables of a variable, which is gone with them."""
        self._left.discard(v)
        numbers = list(self._of[v])
        taken = tuple(self.tables.pop(t) for t in numbers)
        for number, (scope, _) in zip(numbers, taken, strict=True):
            for other in scope:
                del self._of[other][number]
        return taken

    def _add(self, table: Table) -> None:
        scope, values = table
        if not scope:
            self.value += float(values)
            return
        self.tables[self._count] = table
        for v in scope:
            self._of[v][self._count] = None
        self._count += 1


def joined(tables: Sequence[Table], scope: Scope) -> Array:
    """The sum of tables, with one axis for each variable of ``scope``; of length 1 where none."""
    total: Array = np.zeros([1] * len(scope))
    for own, table in sorted(tables, key=lambda t: t[1].size):
        axes = sorted(range(len(own)), key=lambda k: scope.index(own[k]))
        turned = table.transpose(axes)
        lengths = dict(zip((own[k] for k in axes), turned.shape, strict=True))
        total = total + turned.reshape([lengths.get(v, 1) for v in scope])
    return total
