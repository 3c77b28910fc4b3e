"""The assignment of least cost, with a lower bound that proves how good it is.

Elimination is exact while its tables stay below a limit; the networks of the field have a treewidth
of four and less. Beyond the limit variables are parted into copies (`clformats.networks.order`).
What is solved then is a relaxation: its optimum is a lower bound, raised in rounds by prices on
which the copies must agree (a subgradient method), and each round gives an assignment, in which the
copies are held to one value and all else is optimal again.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from .eliminate import Elimination
from .model import Model
from .order import Order, Planner
from .problem import Problem
from .trees import Array

LIMIT = 10_000_000
"""Entries of the largest table that elimination may make."""
RELAXED_LIMIT = 100_000
"""The same where tables are too large anyway, and are gone through in many rounds."""
ROUNDS = 15
GOOD_ENOUGH = 1e-3
"""Rounds end where the bound is so near, relative to the cost."""
CLOSE = 1e-9
"""Where bound and cost differ by less, relative to the cost, they are equal."""


@dataclass(frozen=True, slots=True)
class Solution:
    """A value for each variable of the problem, what that costs, and a proven lower bound."""

    assignment: tuple[int, ...]
    cost: float
    bound: float
    largest: int
    rounds: int = 0

    @property
    def exact(self) -> bool:
        """Whether nothing cheaper exists."""
        return self.cost <= self.bound + CLOSE * max(abs(self.cost), abs(self.bound))


def solve(problem: Problem, *, limit: int = LIMIT, rounds: int = ROUNDS) -> Solution | None:
    """The cheapest assignment; None where there is none at a finite cost."""
    model = Model.of(problem)
    order = Planner(model, limit).run()
    if order.copies:
        order = Planner(model, min(limit, RELAXED_LIMIT)).run()
    first = Elimination(model, order)
    first.run()
    if not np.isfinite(first.value):
        return None
    found = first.assignment()[: len(problem.costs)]
    if model.exact and not order.copies:
        return Solution(tuple(found), problem.total(found), first.value, order.largest)
    return _Rounds(problem, model, order).run(first, rounds)


def marginals(problem: Problem, variable: int, *, limit: int = LIMIT) -> tuple[Array, bool]:
    """For each value of a variable the least cost of an assignment with it, and whether exact.

    Where tables are too large these are lower bounds.
    """
    model = Model.of(problem)
    order = Planner(model, limit).run()
    copies = order.copies.get(variable, [variable])
    result = np.empty(len(problem.costs[variable]))
    for value in range(len(result)):
        held = _only(len(result), value)
        run = Elimination(model, order, dict.fromkeys(copies, held))
        run.run()
        result[value] = run.value
    return result, model.exact and not order.copies


def _only(size: int, value: int) -> Array:
    return np.where(np.arange(size) == value, 0.0, np.inf)


class _Rounds:
    """Prices on copies, and assignments from what the copies want."""

    def __init__(self, problem: Problem, model: Model, order: Order) -> None:
        self.problem, self.model, self.order = problem, model, order
        copies = [c for all_ in order.copies.values() for c in all_]
        self.prices = {c: np.zeros(order.sizes[c]) for c in copies}
        self.best: list[int] | None = None
        self.cost = np.inf

    def run(self, first: Elimination, rounds: int) -> Solution | None:
        bound, scale, stale = first.value, 1.0, 0
        relaxed = first
        for number in range(rounds + 1):
            wanted = relaxed.assignment()
            self._try(wanted)
            if relaxed.value > bound:
                bound, stale = relaxed.value, 0
            elif number:
                stale += 1
                scale *= 0.5 if stale % 2 == 0 else 1.0
            done = self.cost - bound <= GOOD_ENOUGH * abs(self.cost)
            if done or number == rounds or not self._reprice(wanted, scale, bound):
                break
            relaxed = Elimination(self.model, self.order, self.prices)
            relaxed.run()
        if self.best is None:
            return None
        bound = min(bound, self.cost)
        return Solution(tuple(self.best), self.cost, bound, self.order.largest, number)

    def _try(self, wanted: Sequence[int]) -> None:
        """Hold the copies of choices to one value each, all else optimal, then improve by hand."""
        count = len(self.problem.costs)
        parted = [v for v in self.order.copies if v < count]
        tried = [list(wanted[:count]), self._held({v: self._voted(v, wanted) for v in parted})]
        if self.best is not None:
            tried.append(self._held({v: self.best[v] for v in parted}))
        for found in tried:
            if found is not None and self.problem.total(found) < 1.02 * self.cost:
                better, cost = descended(self.problem, found)
                if cost < self.cost:
                    self.best, self.cost = better, cost

    def _voted(self, v: int, wanted: Sequence[int]) -> int:
        votes = [wanted[c] for c in self.order.copies[v]]
        return max(sorted(set(votes)), key=votes.count)

    def _held(self, values: Mapping[int, int]) -> list[int] | None:
        extra = {
            c: _only(self.order.sizes[c], value)
            for v, value in values.items()
            for c in self.order.copies[v]
        }
        run = Elimination(self.model, self.order, {**self.prices, **extra})
        run.run()
        return run.assignment()[: len(self.problem.costs)] if np.isfinite(run.value) else None

    def _reprice(self, wanted: Sequence[int], scale: float, bound: float) -> bool:
        """A step along the subgradient; False where all copies agree."""
        steps: dict[int, Array] = {}
        for copies in self.order.copies.values():
            size = self.order.sizes[copies[0]]
            votes = np.array([np.arange(size) == wanted[c] for c in copies], float)
            steps.update(zip(copies, votes - votes.mean(axis=0), strict=True))
        norm = sum(float((s * s).sum()) for s in steps.values())
        if norm == 0:
            return False
        top = self.cost if np.isfinite(self.cost) else 1.05 * abs(bound)
        length = scale * max(top - bound, GOOD_ENOUGH * abs(bound)) / norm
        for copy, step in steps.items():
            self.prices[copy] = self.prices[copy] + length * step
        return True


def descended(problem: Problem, start: Sequence[int]) -> tuple[list[int], float]:
    """Change one variable at a time while that makes the assignment cheaper."""
    found = list(start)
    near = _neighbours(problem)
    queue = dict.fromkeys(range(len(found)))
    while queue:
        v = next(iter(queue))
        del queue[v]
        if len(problem.costs[v]) < 2:
            continue
        costs = _local(problem, near, v, found)
        best = int(np.argmin(costs))
        if costs[best] < costs[found[v]] * (1 - 1e-12):
            found[v] = best
            for t in near[v][0]:
                tensor = problem.tensors[t]
                queue.update(dict.fromkeys([s.variable for s in tensor.readers]))
                queue[tensor.source.variable] = None
    return found, problem.total(found)


def _neighbours(problem: Problem) -> list[tuple[list[int], list[int]]]:
    """For each variable the tensors and the pairs that it is part of."""
    near: list[tuple[list[int], list[int]]] = [([], []) for _ in problem.costs]
    for number, tensor in enumerate(problem.tensors):
        for v in {tensor.source.variable, *(s.variable for s in tensor.readers)}:
            near[v][0].append(number)
    for number, (a, b, _) in enumerate(problem.pairs):
        near[a][1].append(number)
        near[b][1].append(number)
    return near


def _local(
    problem: Problem, near: Sequence[tuple[list[int], list[int]]], v: int, found: list[int]
) -> Array:
    """What each value of a variable costs where all others stay."""
    costs: Array = problem.costs[v].copy()
    for number in near[v][1]:
        a, b, table = problem.pairs[number]
        costs += table[:, found[b]] if a == v else table[found[a]]
    before = found[v]
    trees: dict[tuple[int, ...], float] = {}
    for value in np.flatnonzero(np.isfinite(costs)):
        found[v] = int(value)
        for number in near[v][0]:
            tensor = problem.tensors[number]
            root = int(tensor.source.formats[found[tensor.source.variable]])
            key = (number, root, *sorted(set(tensor.wanted(found))))
            if key not in trees:
                trees[key] = tensor.cost(found)
            costs[value] += trees[key]
    found[v] = before
    return costs
