"""In which order variables are eliminated, and which ones are parted so that tables stay small.

Greedy: always the variable whose elimination makes the smallest table. Where even that one is above
the limit, it is parted into copies, each with some of its tables: what is then solved is a
relaxation, and its optimum a lower bound.
"""

from __future__ import annotations

import heapq
from collections import defaultdict
from collections.abc import Iterable
from dataclasses import dataclass, field
from math import prod

from .model import Model

Step = tuple[str, int]
"""``("variable", v)`` or ``("bundle", b)`` are eliminated, ``("table", b)`` writes a bundle out."""
Origin = tuple[str, int]
"""A table or a bundle of the model."""


@dataclass(slots=True)
class Order:
    """The steps, and which variable each table and bundle has instead of a parted one.

    ``copies`` lists for each parted variable all that stand for it, itself first.
    """

    steps: list[Step] = field(default_factory=list)
    renamed: dict[Origin, dict[int, int]] = field(default_factory=dict)
    copies: dict[int, list[int]] = field(default_factory=dict)
    sizes: list[int] = field(default_factory=list)
    largest: int = 0


@dataclass(slots=True)
class _Table:
    scope: frozenset[int]
    origins: frozenset[Origin]


@dataclass(slots=True)
class _Bundle:
    source: int
    leaves: list[int]
    formats: int


class Planner:
    """Finds an `Order` without touching a number."""

    def __init__(self, model: Model, limit: int) -> None:
        self.limit, self.count = limit, 0
        self.order = Order(sizes=list(model.sizes))
        self.sizes = self.order.sizes
        self.tables: dict[int, _Table] = {}
        self.of: defaultdict[int, set[int]] = defaultdict(set)
        self.bundles = {
            b: _Bundle(x.source.variable, [s.variable for s in x.leaves], len(x.distance))
            for b, x in enumerate(model.bundles)
        }
        self.held: defaultdict[int, set[int]] = defaultdict(set)
        for b, bundle in self.bundles.items():
            for v in (bundle.source, *bundle.leaves):
                self.held[v].add(b)
        for number, (scope, _) in enumerate(model.tables):
            self._add(frozenset(scope), frozenset({("table", number)}))
        self.left = set(range(len(model.sizes)))
        self.heap: list[tuple[int, int, Step]] = []
        self.now: dict[Step, tuple[int, int]] = {}

    def run(self) -> Order:
        """The order of all variables and bundles."""
        self._update(sorted(self.left))
        for b in self.bundles:
            self._push(("bundle", b))
        while self.left or self.bundles:
            found = self._next()
            if found is None:
                self._unblock()
                continue
            size, (kind, number) = found
            if size > self.limit:
                self._part(kind, number)
                continue
            self.order.largest = max(self.order.largest, size)
            self.order.steps.append((kind, number))
            if kind == "variable":
                self._eliminate(number)
            else:
                self._eliminate_bundle(number)
        return self.order

    # --- candidates -------------------------------------------------------------------------------

    def _next(self) -> tuple[int, Step] | None:
        while self.heap:
            work, size, step = self.heap[0]
            if self.now.get(step) == (work, size):
                return size, step
            heapq.heappop(self.heap)
        return None

    def _push(self, step: Step) -> None:
        size = self._size(*step)
        if size is None:
            self.now.pop(step, None)
            return
        work = size * self._passes(*step)
        if self.now.get(step) != (work, size):
            self.now[step] = work, size
            heapq.heappush(self.heap, (work, size, step))

    def _update(self, variables: Iterable[int]) -> None:
        bundles: set[int] = set()
        for v in variables:
            self._push(("variable", v))
            bundles |= self.held[v]
        for b in sorted(bundles):
            self._push(("bundle", b))

    def _size(self, kind: str, number: int) -> int | None:
        """Entries of the table that is made; None for what cannot be eliminated yet."""
        if kind == "variable":
            if number not in self.left or self.held[number]:
                return None
            return self._entries(self._around(number) | {number})
        bundle = self.bundles.get(number)
        if bundle is None:
            return None
        around: set[int] = set()
        for leaf in bundle.leaves:
            near = self._around(leaf)
            if self.held[leaf] != {number} or near & set(bundle.leaves):
                return None
            around |= near
        return bundle.formats * self._entries(around)

    def _passes(self, kind: str, number: int) -> int:
        """How often a bundle's table is gone through: distances for each set of its leaves."""
        if kind == "variable":
            return 1
        bundle = self.bundles[number]
        return bundle.formats << len(bundle.leaves)

    def _around(self, v: int) -> set[int]:
        near: set[int] = set()
        for t in self.of[v]:
            near |= self.tables[t].scope
        return near - {v}

    def _entries(self, variables: Iterable[int]) -> int:
        return int(prod(self.sizes[v] for v in variables))

    # --- eliminating ------------------------------------------------------------------------------

    def _add(self, scope: frozenset[int], origins: frozenset[Origin]) -> None:
        number = self.count
        self.count += 1
        self.tables[number] = _Table(scope, origins)
        for v in scope:
            self.of[v].add(number)

    def _take(self, numbers: Iterable[int]) -> tuple[frozenset[int], frozenset[Origin]]:
        """Remove tables; all their variables and origins."""
        scope: set[int] = set()
        origins: set[Origin] = set()
        for number in numbers:
            table = self.tables.pop(number)
            scope |= table.scope
            origins |= table.origins
            for v in table.scope:
                self.of[v].discard(number)
        return frozenset(scope), frozenset(origins)

    def _eliminate(self, v: int) -> None:
        scope, origins = self._take(sorted(self.of[v]))
        self._gone(v)
        self._made(scope - {v}, origins)

    def _eliminate_bundle(self, b: int) -> None:
        bundle = self.bundles.pop(b)
        taken = sorted({t for leaf in bundle.leaves for t in self.of[leaf]})
        scope, origins = self._take(taken)
        for v in (bundle.source, *bundle.leaves):
            self.held[v].discard(b)
        for leaf in bundle.leaves:
            self._gone(leaf)
        self.now.pop(("bundle", b), None)
        kept = (scope - set(bundle.leaves)) | {bundle.source}
        self._made(kept, origins | {("bundle", b)})

    def _made(self, scope: frozenset[int], origins: frozenset[Origin]) -> None:
        if scope:
            self._add(scope, origins)
        self._update(sorted(scope))

    def _gone(self, v: int) -> None:
        self.left.discard(v)
        self.now.pop(("variable", v), None)

    # --- parting ----------------------------------------------------------------------------------

    def _part(self, kind: str, number: int) -> None:
        if kind == "bundle":
            if not any(self._around(leaf) for leaf in self.bundles[number].leaves):
                self.limit = self.bundles[number].formats
            else:
                self._free_leaf(number)
            return
        groups: list[tuple[set[int], list[int]]] = []
        by_size = sorted(self.of[number], key=lambda t: -self._entries(self.tables[t].scope))
        for t in by_size:
            scope = self.tables[t].scope
            for around, members in groups:
                if self._entries(around | scope) <= self.limit:
                    around.update(scope)
                    members.append(t)
                    break
            else:
                groups.append((set(scope), [t]))
        if len(groups) == 1:  # one table above the limit as it is: nothing can be parted
            self.limit = self._entries(groups[0][0])
            return
        for _, members in groups[1:]:
            self._copy(number, members)
        self._update([number, *self._around(number)])

    def _copy(self, v: int, members: Iterable[int]) -> int:
        """A new variable instead of ``v`` in some tables."""
        copy = len(self.sizes)
        self.sizes.append(self.sizes[v])
        self.left.add(copy)
        self.order.copies.setdefault(self._original(v), [self._original(v)]).append(copy)
        for t in members:
            table = self.tables[t]
            table.scope = (table.scope - {v}) | {copy}
            self.of[v].discard(t)
            self.of[copy].add(t)
            for origin in table.origins:
                self.order.renamed.setdefault(origin, {})[v] = copy
        self._update([copy, *self._around(copy)])
        return copy

    def _original(self, v: int) -> int:
        return next((x for x, all_ in self.order.copies.items() if v in all_), v)

    def _free_leaf(self, b: int) -> None:
        """Give a leaf of a bundle to the bundle alone: one that has others around it, if any."""
        bundle = self.bundles[b]
        leaf = max(bundle.leaves, key=lambda v: self._entries(self._around(v)))
        copy = len(self.sizes)
        self.sizes.append(self.sizes[leaf])
        self.left.add(copy)
        first = self._original(leaf)
        self.order.copies.setdefault(first, [first]).append(copy)
        self.order.renamed.setdefault(("bundle", b), {})[leaf] = copy
        bundle.leaves[bundle.leaves.index(leaf)] = copy
        self.held[leaf].discard(b)
        self.held[copy].add(b)
        self._update([leaf, copy])
        self._push(("bundle", b))

    def _unblock(self) -> None:
        """Nothing can be eliminated: the leaves of each bundle depend on each other."""
        sizes = {b: self._dense(x) for b, x in self.bundles.items()}
        b = min(sizes, key=lambda b: (sizes[b], b))
        if sizes[b] > self.limit:
            self._free_leaf(b)
            return
        bundle = self.bundles.pop(b)
        self.order.steps.append(("table", b))
        self.order.largest = max(self.order.largest, sizes[b])
        scope = frozenset((bundle.source, *bundle.leaves))
        for v in scope:
            self.held[v].discard(b)
        self.now.pop(("bundle", b), None)
        self._made(scope, frozenset({("bundle", b)}))

    def _dense(self, bundle: _Bundle) -> int:
        return bundle.formats * self._entries(bundle.leaves)
