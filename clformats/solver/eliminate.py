"""Elimination: the optimum of a `GraphicalModel`, and who attains it.

Greedy: always the step that is the least work. It takes the tables of a variable, and what is left
of them is one table over the variables around it; a bundle goes together with all its leaves.
"""

from __future__ import annotations

import heapq
from collections import defaultdict
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from math import prod

import numpy as np

from .model import Bundle, GraphicalModel, Scope, identity, leaf_costs
from .trees import Array, min_plus, tree, trees

Table = tuple[Scope, Array]
Step = tuple[str, int]
"""``("variable", v)`` or ``("bundle", b)`` are eliminated, ``("table", b)`` writes a bundle out."""


@dataclass(frozen=True, slots=True)
class _Done:
    """A step that was done, with what is needed to tell the values that attain its minimum."""

    variable: int
    tables: tuple[Table, ...]
    bundle: Bundle | None = None


class Elimination:
    """One pass over the tables; ``kept`` is a variable that stays to the end."""

    def __init__(self, model: GraphicalModel, limit: int, kept: int | None = None) -> None:
        self.sizes, self.limit = model.sizes, limit
        self.value = 0.0
        self.tables: dict[int, Table] = {}
        self._of: defaultdict[int, dict[int, None]] = defaultdict(dict)
        self._bundles = dict(enumerate(model.bundles))
        self._held: defaultdict[int, set[int]] = defaultdict(set)
        for b, bundle in self._bundles.items():
            for v in (bundle.source.variable, *bundle.readers):
                self._held[v].add(b)
        self._left = set(range(len(model.sizes))) - {kept}
        self._done: list[_Done] = []
        self._count = 0
        self._heap: list[tuple[int, int, Step]] = []
        self._now: dict[Step, tuple[int, int]] = {}
        for table in model.tables:
            self._add(table)

    def run(self) -> bool:
        """Eliminate all, which makes ``value`` the minimum; False where tables are too large."""
        self._update(sorted(self._left))
        while self._left or self._bundles:
            size, (kind, number) = self._next() or self._smallest_bundle()
            if size > self.limit:
                return False
            if kind == "variable":
                self._variable(number)
            elif kind == "bundle":
                self._bundle(number)
            else:
                self._write_out(number)
        return True

    def assignment(self) -> list[int]:
        """A value for each variable, that together attain the minimum."""
        found = [0] * len(self.sizes)
        for step in reversed(self._done):
            if step.bundle is None:
                found[step.variable] = int(
                    np.argmin(self._sliced(step.variable, step.tables, found))
                )
            else:
                self._leaves(step.bundle, step.tables, found)
        return found

    # --- which step is next -----------------------------------------------------------------------

    def _next(self) -> tuple[int, Step] | None:
        """The step of least work, and the entries that it needs; None where bundles block all."""
        while self._heap:
            work, size, step = self._heap[0]
            if self._now.get(step) == (work, size):
                return size, step
            heapq.heappop(self._heap)
        return None

    def _smallest_bundle(self) -> tuple[int, Step]:
        """Where the leaves of each bundle depend on each other, one is written out as a table."""
        sizes = {b: len(x.distance) * self._entries(x.readers) for b, x in self._bundles.items()}
        b = min(sizes, key=lambda b: (sizes[b], b))
        return sizes[b], ("table", b)

    def _update(self, variables: Iterable[int]) -> None:
        bundles: set[int] = set()
        for v in variables:
            self._push(("variable", v))
            bundles |= self._held[v]
        for b in sorted(bundles):
            self._push(("bundle", b))

    def _push(self, step: Step) -> None:
        kind, number = step
        found = self._of_variable(number) if kind == "variable" else self._of_bundle(number)
        if found is None:
            self._now.pop(step, None)
        elif self._now.get(step) != found:
            self._now[step] = found
            heapq.heappush(self._heap, (*found, step))

    def _of_variable(self, v: int) -> tuple[int, int] | None:
        """Work and entries of a step; None for what cannot be eliminated yet."""
        if v not in self._left or self._held[v]:
            return None
        size = self._entries(self._around(v) | {v})
        return size, size

    def _of_bundle(self, b: int) -> tuple[int, int] | None:
        bundle = self._bundles[b]
        around: set[int] = set()
        for leaf in bundle.readers:
            near = self._around(leaf)
            if self._held[leaf] != {b} or near & set(bundle.readers):
                return None
            around |= near
        formats, leaves = len(bundle.distance), len(bundle.leaves)
        sets = formats * self._entries(around) << leaves  # a table for each set of leaves
        return sets * formats, max(sets, formats * 3**leaves)

    def _around(self, v: int) -> set[int]:
        near: set[int] = set()
        for t in self._of[v]:
            near.update(self.tables[t][0])
        return near - {v}

    def _entries(self, variables: Iterable[int]) -> int:
        return prod(self.sizes[v] for v in variables)

    # --- steps ------------------------------------------------------------------------------------

    def _variable(self, v: int) -> None:
        tables = self._take(v)
        self._done.append(_Done(v, tables))
        scope = _union(tables, {v})
        if len(scope) == 2 and all(len(own) < 3 for own, _ in tables):
            left = [t for t in tables if scope[1] not in t[0]]
            right = [t for t in tables if scope[1] in t[0]]
            self._add((scope, min_plus(joined(left, (scope[0], v)), joined(right, (v, scope[1])))))
        elif tables:
            self._add((scope, joined(tables, (*scope, v)).min(axis=-1)))
        self._update(sorted(scope))

    def _bundle(self, number: int) -> None:
        bundle = self._gone(number)
        taken = [self._take(v) for v in bundle.readers]
        everything = tuple(t for tables in taken for t in tables)
        root = bundle.source.variable
        self._done.append(_Done(root, everything, bundle))
        scope = _union(everything, set(bundle.readers))
        costs = []
        for leaf, tables in zip(bundle.leaves, taken, strict=True):
            table = joined(tables, (leaf.variable, *scope))
            costs.append(leaf_costs(bundle, leaf, table))
        result = trees(bundle.distance, costs)[0][-1][bundle.source.formats]
        result = np.broadcast_to(result, (len(result), *(self.sizes[v] for v in scope)))
        if root in scope:
            axis = scope.index(root) + 1
            result = np.moveaxis(np.diagonal(result, axis1=0, axis2=axis), -1, 0)
            scope = tuple(v for v in scope if v != root)
        self._add(((root, *scope), np.ascontiguousarray(result)))
        self._update(sorted((root, *scope)))

    def _write_out(self, number: int) -> None:
        """A bundle as one table over its source and leaves."""
        bundle = self._gone(number)
        costs = []
        for k, leaf in enumerate(bundle.leaves):
            free = leaf_costs(bundle, leaf, identity(self.sizes[leaf.variable]))
            shape = [1] * (len(bundle.leaves) + 1)
            shape[0], shape[k + 1] = free.shape
            costs.append(free.reshape(shape))
        table = trees(bundle.distance, costs)[0][-1][bundle.source.formats]
        scope = (bundle.source.variable, *bundle.readers)
        self._add((scope, table))
        self._update(sorted(scope))

    def _gone(self, number: int) -> Bundle:
        bundle = self._bundles.pop(number)
        for v in (bundle.source.variable, *bundle.readers):
            self._held[v].discard(number)
        self._now.pop(("bundle", number), None)
        return bundle

    def _take(self, v: int) -> tuple[Table, ...]:
        """The tables of a variable, which is gone with them."""
        self._left.discard(v)
        self._now.pop(("variable", v), None)
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

    # --- back -------------------------------------------------------------------------------------

    def _leaves(self, bundle: Bundle, tables: Sequence[Table], found: list[int]) -> None:
        """Give each leaf the value that attains the minimum."""
        costs = []
        for leaf in bundle.leaves:
            mine = [t for t in tables if leaf.variable in t[0]]
            costs.append(leaf_costs(bundle, leaf, self._sliced(leaf.variable, mine, found)))
        root = int(bundle.source.formats[found[bundle.source.variable]])
        _, chosen, _ = tree(bundle.distance, root, costs)
        for leaf, fmt in zip(bundle.leaves, chosen, strict=True):
            found[leaf.variable] = [*leaf.formats].index(fmt)

    def _sliced(self, v: int, tables: Sequence[Table], found: Sequence[int]) -> Array:
        """The costs of a variable's values where all others have theirs."""
        total = np.zeros(self.sizes[v])
        for scope, table in tables:
            total = total + table[tuple(slice(None) if w == v else found[w] for w in scope)]
        return total


def _union(tables: Sequence[Table], without: set[int]) -> Scope:
    seen = dict.fromkeys(v for scope, _ in tables for v in scope)
    return tuple(v for v in seen if v not in without)


def joined(tables: Sequence[Table], scope: Scope) -> Array:
    """The sum of tables, with one axis for each variable of ``scope``; of length 1 where none."""
    total: Array = np.zeros([1] * len(scope))
    for own, table in sorted(tables, key=lambda t: t[1].size):
        axes = sorted(range(len(own)), key=lambda k: scope.index(own[k]))
        turned = table.transpose(axes)
        lengths = dict(zip((own[k] for k in axes), turned.shape, strict=True))
        spread = turned.reshape([lengths.get(v, 1) for v in scope])
        total = total + spread
    return total
