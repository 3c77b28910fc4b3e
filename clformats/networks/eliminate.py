"""Elimination: the optimum of a `Model` in a given `Order`, and who attains it."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from .model import Bundle, Model, Scope, leaf_costs
from .order import Order, Origin
from .problem import Slot
from .trees import Array, min_plus, tree, tree_table

Table = tuple[Scope, Array]


@dataclass(frozen=True, slots=True)
class _Done:
    """A step that was done, with what is needed to tell the values that attain its minimum."""

    variable: int
    tables: tuple[Table, ...]
    bundle: Bundle | None = None


class Elimination:
    """One pass over the tables, with further costs of single variables (``extra``)."""

    def __init__(
        self, model: Model, order: Order, extra: Mapping[int, Array] | None = None
    ) -> None:
        self.model, self.order = model, order
        self.value = 0.0
        self.tables: dict[int, Table] = {}
        self.of: defaultdict[int, dict[int, None]] = defaultdict(dict)
        self.done: list[_Done] = []
        self._count = 0
        for number, (scope, table) in enumerate(model.tables):
            self._add((self._renamed(("table", number), scope), table))
        for v, costs in (extra or {}).items():
            self._add(((v,), costs))

    def run(self) -> None:
        """Eliminate everything; the minimum is ``value``."""
        for kind, number in self.order.steps:
            if kind == "bundle":
                self._bundle(number)
            elif kind == "table":
                self._write_out(number)
            else:
                self._variable(number)

    def assignment(self) -> list[int]:
        """A value for each variable, that together attain the minimum."""
        found = [0] * len(self.order.sizes)
        for step in reversed(self.done):
            if step.bundle is None:
                costs = _sliced(step.variable, step.tables, found, self.order.sizes)
                found[step.variable] = int(np.argmin(costs))
            else:
                self._leaves(step.bundle, step.tables, found)
        return found

    # --- steps ------------------------------------------------------------------------------------

    def _renamed(self, origin: Origin, scope: Scope) -> Scope:
        names = self.order.renamed.get(origin)
        return tuple(_final(names, v) for v in scope) if names else scope

    def _add(self, table: Table) -> None:
        scope, values = table
        if not scope:
            self.value += float(values)
            return
        self.tables[self._count] = table
        for v in scope:
            self.of[v][self._count] = None
        self._count += 1

    def _take(self, numbers: Sequence[int]) -> tuple[Table, ...]:
        taken = tuple(self.tables.pop(t) for t in numbers)
        for number, (scope, _) in zip(numbers, taken, strict=True):
            for v in scope:
                del self.of[v][number]
        return taken

    def _variable(self, v: int) -> None:
        tables = self._take(list(self.of[v]))
        self.done.append(_Done(v, tables))
        scope = _union(tables, {v})
        if len(scope) == 2 and all(len(own) < 3 for own, _ in tables):
            left = [t for t in tables if scope[1] not in t[0]]
            right = [t for t in tables if scope[1] in t[0]]
            self._add((scope, min_plus(joined(left, (scope[0], v)), joined(right, (v, scope[1])))))
        elif tables:
            self._add((scope, joined(tables, (*scope, v)).min(axis=-1)))

    def _bundle(self, number: int) -> None:
        bundle = self._bundle_of(number)
        leaves = [leaf.variable for leaf in bundle.leaves]
        taken = [self._take(list(self.of[v])) for v in leaves]
        everything = tuple(t for tables in taken for t in tables)
        self.done.append(_Done(bundle.source.variable, everything, bundle))
        scope = _union(everything, set(leaves))
        costs = []
        for leaf, tables in zip(bundle.leaves, taken, strict=True):
            table = joined(tables, (leaf.variable, *scope), self.order.sizes)
            costs.append(leaf_costs(bundle, leaf, table))
        result = tree_table(bundle.distance, costs)[bundle.source.formats]
        shape = (len(result), *(self.order.sizes[v] for v in scope))
        result = np.broadcast_to(result, shape)
        if bundle.source.variable in scope:
            axis = scope.index(bundle.source.variable) + 1
            result = np.moveaxis(np.diagonal(result, axis1=0, axis2=axis), -1, 0)
            scope = tuple(v for v in scope if v != bundle.source.variable)
        self._add(((bundle.source.variable, *scope), np.ascontiguousarray(result)))

    def _write_out(self, number: int) -> None:
        """A bundle as one table over its source and leaves."""
        bundle = self._bundle_of(number)
        costs = []
        for k, leaf in enumerate(bundle.leaves):
            size = self.order.sizes[leaf.variable]
            free = leaf_costs(bundle, leaf, np.where(np.eye(size) > 0, 0.0, np.inf))
            shape = [1] * (len(bundle.leaves) + 1)
            shape[0], shape[k + 1] = free.shape
            costs.append(free.reshape(shape))
        table = tree_table(bundle.distance, costs)[bundle.source.formats]
        self._add(((bundle.source.variable, *(s.variable for s in bundle.leaves)), table))

    def _bundle_of(self, number: int) -> Bundle:
        bundle = self.model.bundles[number]
        names = self.order.renamed.get(("bundle", number), {})
        leaves = tuple(Slot(_final(names, s.variable), s.formats) for s in bundle.leaves)
        source = Slot(_final(names, bundle.source.variable), bundle.source.formats)
        return Bundle(bundle.distance, source, leaves)

    def _leaves(self, bundle: Bundle, tables: Sequence[Table], found: list[int]) -> None:
        """Give each leaf the value that attains the minimum."""
        costs, own = [], []
        for leaf in bundle.leaves:
            mine = [t for t in tables if leaf.variable in t[0]]
            own.append(_sliced(leaf.variable, mine, found, self.order.sizes))
            costs.append(leaf_costs(bundle, leaf, own[-1]))
        root = int(bundle.source.formats[found[bundle.source.variable]])
        chosen, _ = tree(bundle.distance, root, costs)
        for leaf, fmt, values in zip(bundle.leaves, chosen, own, strict=True):
            fits = (leaf.formats == fmt) | (leaf.formats == -1)
            found[leaf.variable] = int(np.argmin(np.where(fits, values, np.inf)))


def _final(names: Mapping[int, int], v: int) -> int:
    while v in names:
        v = names[v]
    return v


def _union(tables: Sequence[Table], without: set[int]) -> Scope:
    seen = dict.fromkeys(v for scope, _ in tables for v in scope)
    return tuple(v for v in seen if v not in without)


def joined(tables: Sequence[Table], scope: Scope, sizes: Sequence[int] | None = None) -> Array:
    """The sum of tables, with one axis for each variable of ``scope``; of length 1 where none."""
    total: Array | None = None
    for own, table in sorted(tables, key=lambda t: t[1].size):
        axes = sorted(range(len(own)), key=lambda k: scope.index(own[k]))
        turned = table.transpose(axes)
        lengths = dict(zip((own[k] for k in axes), turned.shape, strict=True))
        spread = turned.reshape([lengths.get(v, 1) for v in scope])
        total = spread if total is None else total + spread
    if total is None:
        total = np.zeros([1] * len(scope))
    if sizes is not None and total.shape[0] != sizes[scope[0]]:
        total = np.broadcast_to(total, (sizes[scope[0]], *total.shape[1:]))
    return total


def _sliced(v: int, tables: Sequence[Table], found: Sequence[int], sizes: Sequence[int]) -> Array:
    """The costs of a variable's values where all others have theirs."""
    total = np.zeros(sizes[v])
    for scope, table in tables:
        total = total + table[tuple(slice(None) if w == v else found[w] for w in scope)]
    return total
