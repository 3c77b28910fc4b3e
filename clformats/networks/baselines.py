"""What other ways to choose formats cost by the same costs.

*greedy any*
    As programs with oneDNN do: node after node, each takes its own fastest choice for the formats
    that its inputs happen to have where it does not compute much, and its fastest of all where it
    does. Reorders are put in where formats differ.
*uniform FORMAT*
    One format wherever a node has a choice in it, and the fastest choice where not.
*fastest per layer*
    Each node's fastest choice, whatever it reads and writes, as tuning each layer by itself gives.
*rules*
    In the manner of OpenVINO's GPU plugin: a format preferred by each node that computes, spread to
    neighbours that have no preference, so that first the number of reorders and then their elements
    are few. Times are not looked at any more.

They differ from the plan only in the assignment. Problem, costs and reorders are the same, and so
is the sharing of reorders, which flatters all of them.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property, partial
from typing import Generic

import numpy as np

from ..errors import InvalidNetwork
from .build import BuiltProblem
from .choice import Choice
from .decision import Plan
from .graph import Node
from .named import FormatName, Key, plain
from .prices import COMPUTE


@dataclass(frozen=True, slots=True)
class Compared(Generic[Plan]):
    """A way to choose: its name, what it costs, of that its reorders, and how many there are."""

    name: str
    seconds: float
    reorder_seconds: float
    reorders: int
    plan: Plan


@dataclass(frozen=True, slots=True)
class Comparison(Generic[Plan]):
    """The plan and the baselines, cheapest first; `str` is a table."""

    rows: tuple[Compared[Plan], ...]
    best: float

    def __getitem__(self, name: str) -> Compared[Plan]:
        return next(row for row in self.rows if row.name == name)

    def __str__(self) -> str:
        lines = [f"{'':<28}{'ms':>11}{'more':>10}{'reorders':>10}{'ms':>11}"]
        lines += [
            f"{r.name:<28}{r.seconds * 1e3:>11.4f}{100 * (r.seconds / self.best - 1):>+9.1f}%"
            f"{r.reorders:>10}{r.reorder_seconds * 1e3:>11.4f}"
            for r in self.rows
        ]
        return "\n".join(lines)


def compare(plan: Plan, names: Iterable[str] | None = None) -> Comparison[Plan]:
    """The plan beside the baselines of these names, or all that can be run at a finite cost."""
    built = plan.built
    wanted = None if names is None else list(names)
    rows = [_row("this plan", plan)]
    for name, assignment in _baselines(built):
        if wanted is not None and name not in wanted:
            continue
        if np.isfinite(built.problem.total(assignment)):
            rows.append(_row(name, plan.decided(built, assignment, plan.bound)))
    known = {row.name for row in rows}
    if wanted is not None and (unknown := set(wanted) - known):
        raise InvalidNetwork(f"no baseline {', '.join(sorted(unknown))}: got {', '.join(known)}")
    return Comparison(tuple(sorted(rows, key=lambda r: r.seconds)), plan.seconds or 1.0)


def _row(name: str, plan: Plan) -> Compared[Plan]:
    return Compared(name, plan.seconds, plan.reorder_seconds, len(plan.reorders), plan)


def _baselines(built: BuiltProblem) -> Iterator[tuple[str, list[int]]]:
    yield "greedy any", _Walk(built).by(_Walk.greedy)
    for name in written_formats(built.order):
        yield f"uniform {name}", _Walk(built).by(partial(_Walk.uniform, name=name))
    yield "fastest per layer", _Walk(built).by(_Walk.least)
    yield "rules", _Walk(built).by(_Walk.rules)


def written_formats(nodes: Iterable[Node]) -> list[FormatName]:
    """The formats that choices write 4 or more dimensions in, or, without such, any; in order."""
    known = list(nodes)
    found: dict[Key, FormatName] = {}
    least = min(4, max(v.rank for n in known for v in n.outputs))
    for node in known:
        for choice in node.choices:
            for value, name in zip(node.outputs, choice.outs, strict=True):
                if value.rank >= least:
                    found.setdefault(name.key, name)
    return list(found.values())


def is_uniform(node: Node, choice: Choice, name: FormatName) -> bool:
    """Whether a choice reads and writes one format, constants and values of other ranks aside."""
    sides = (*zip(node.inputs, choice.ins, strict=True),
             *zip(node.outputs, choice.outs, strict=True))  # fmt: skip
    return all(
        other is None or v.is_constant or not name.fits(v.rank)
        or other.key == name.key
        for v, other in sides
    )  # fmt: skip


class _Walk:
    """Gives each node a choice, from the first to the last.

    An input that no one fixed is given as the plain format, or the first that is asked.
    """

    def __init__(self, built: BuiltProblem) -> None:
        self.built = built
        self.assignment = [0] * len(built.problem.costs)
        self.made: dict[str, Key | None] = {}
        self.taken: set[int] = set()
        for name, v in built.border.items():
            keys = [fmt.key for fmt in built.given[name]]
            wanted = plain(built.network.values[name].rank).key
            self.assignment[v] = keys.index(wanted) if wanted in keys else 0
            self.made[name] = keys[self.assignment[v]]

    def by(self, pick: Callable[[_Walk, Node], int]) -> list[int]:
        """What ``pick`` takes for each node, which knows what the nodes before it have taken."""
        for node in self.built.order:
            self._take(node, pick(self, node))
        return self.assignment

    def greedy(self, node: Node) -> int:
        return self.least(node, reading=node.op not in COMPUTE)

    def uniform(self, node: Node, name: FormatName) -> int:
        choices = self.built.choices[node.name]
        fits = [k for k, c in enumerate(choices) if is_uniform(node, c, name)]
        return self.least(node, among=fits, reading=True)

    def rules(self, node: Node) -> int:
        choices = self.built.choices[node.name]
        legal = [k for k in range(len(choices)) if self._legal(node, k)]
        fits = [k for k in legal if choices[k].outs[0] == self._preferred.get(node.name)]
        ranked = sorted((*self._changes(node, k), k) for k in fits or legal)
        return ranked[0][-1] if ranked else 0

    @cached_property
    def _preferred(self) -> dict[str, str]:
        """The format that each node prefers: its own fastest, else its neighbours'."""
        found: dict[str, str] = {}
        order = self.built.order
        for node in order:
            if node.op in COMPUTE:
                found[node.name] = self.built.choices[node.name][self.least(node)].outs[0]
        for nodes in (order, order[::-1]):
            for node in nodes:
                near = self._neighbours(node, forward=nodes is order)
                names = [found[n] for n in near if n in found]
                if node.name not in found and names:
                    found[node.name] = max(names, key=names.count)
        return found

    def _neighbours(self, node: Node, *, forward: bool) -> list[str]:
        network = self.built.network
        if forward:
            return [p.name for v in node.inputs if (p := network.producer(v))]
        return [n for v in node.outputs for n, _ in self.built.reading.get(v.name, [])]

    def _changes(self, node: Node, k: int) -> tuple[int, int]:
        """How many inputs a choice has reordered, and how many elements they have."""
        choice = self.built.choices[node.name][k]
        moved = [
            v for v, n in zip(node.inputs, choice.ins, strict=True)
            if not v.is_constant and n is not None and n.key != self.made.get(v.name)
        ]  # fmt: skip
        return len(moved), sum(int(np.prod(v.dims)) for v in moved)

    def least(
        self, node: Node, among: Sequence[int] | None = None, *, reading: bool = False
    ) -> int:
        """The fastest choice; where ``reading``, of those with the fewest inputs to reorder."""
        costs = self.built.problem.costs[self.built.variable[node.name]]
        every = range(len(costs))
        legal = [k for k in among or every if self._legal(node, k) and np.isfinite(costs[k])]

        def key(k: int) -> tuple[float, ...]:
            return (*(self._changes(node, k) if reading else ()), float(costs[k]), k)

        return min(legal or every, key=key)

    def _legal(self, node: Node, k: int) -> bool:
        """Whether what earlier nodes have taken does not exclude a choice."""
        v = self.built.variable[node.name]
        pairs = ((b, t[k]) if a == v else (a, t[:, k])
                 for a, b, t in self.built.problem.pairs if v in (a, b))  # fmt: skip
        return all(o not in self.taken or row[self.assignment[o]] == 0 for o, row in pairs)

    def _take(self, node: Node, k: int) -> None:
        choice, v = self.built.choices[node.name][k], self.built.variable[node.name]
        self.assignment[v] = k
        self.taken.add(v)
        for value, name in zip(node.outputs, choice.outs, strict=True):
            self.made[value.name] = name.key
