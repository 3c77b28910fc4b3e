"""`Decision`: what was decided for a network, as data: formats, choices, reorders, and costs."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from typing import TYPE_CHECKING, NamedTuple, TypeVar

import numpy as np

from ..errors import InvalidNetwork
from ..solver.problem import ReorderedValue, Solution
from ..solver.solve import LIMIT, marginals, solve
from .build import BuiltProblem, Misfit, Pricing, build
from .choice import Choice
from .cost import Cost
from .graph import Network, Value
from .named import FormatName, Key

if TYPE_CHECKING:
    from typing_extensions import Self


Plan = TypeVar("Plan", bound="Decision")


class PlannedReorder(NamedTuple):
    """A reorder of a plan: which value, from and to which format, and who reads the result.

    ``readers`` are names of nodes; ``"(output)"`` where the value is delivered so. None where only
    other reorders read the result.
    """

    value: str
    src: FormatName
    dst: FormatName
    readers: tuple[str, ...]


class Packed(NamedTuple):
    """A constant in a format that nodes read it in: reordered once, before the network runs."""

    value: str
    dst: FormatName
    readers: tuple[str, ...]


class Alternative(NamedTuple):
    """Another choice of a node, and how much more the best plan with it costs."""

    choice: Choice
    seconds: float
    more: float
    exact: bool


@dataclass(frozen=True)
class Decision:
    """A choice for each node of a network, and what follows from it: see `FormatPlan`."""

    network: Network
    formats: Mapping[str, FormatName]
    choices: Mapping[str, Choice]
    reorders: Sequence[PlannedReorder]
    pack: Sequence[Packed]
    seconds: float
    bound: float
    exact: bool
    built: BuiltProblem = field(repr=False)
    assignment: tuple[int, ...] = field(repr=False)

    @classmethod
    def decided(cls, built: BuiltProblem, assignment: Sequence[int], bound: float) -> Self:
        """What an assignment of a network's variables decides."""
        network = built.network
        choices = {name: built.choices[name][assignment[v]] for name, v in built.variable.items()}
        formats = {
            value.name: text
            for node in built.order
            for value, text in zip(node.outputs, choices[node.name].outs, strict=True)
        }
        formats |= {name: built.given[name][assignment[v]] for name, v in built.border.items()}
        reorders = [r for t in built.problem.tensors for r in _reorders(built, t, assignment)]
        pack = _packed(network, choices)
        formats |= {p.value: p.dst for p in reversed(pack)}
        found = Solution(tuple(assignment), built.problem.total(assignment), bound)
        bound = found.cost if found.exact else bound
        return cls(network, formats, choices, reorders, pack, found.cost, bound, found.exact,
                   built, found.assignment)  # fmt: skip

    @classmethod
    def cheapest(
        cls, network: Network, pricing: Pricing, via: Iterable[FormatName] = (),
        limit: int = LIMIT, misfit: Misfit | None = None,
    ) -> Self:  # fmt: skip
        """The decision of least cost; ``via`` and ``misfit`` are as of `build`.

        Raises `InvalidNetwork` where none has a finite cost.
        """
        built = build(network, pricing, via, misfit)
        solution = solve(built.problem, limit=limit)
        if solution is None:
            raise InvalidNetwork(_impossible(built))
        return cls.decided(built, solution.assignment, solution.bound)

    @property
    def gap(self) -> float:
        """How far the cost may be above the least, relative to the bound."""
        return 0.0 if self.exact or not self.bound else self.seconds / self.bound - 1

    @property
    def delivered(self) -> list[Value]:
        """The outputs, without those that are given from outside and that no node reads."""
        return [v for v in self.network.outputs if v.name in self.formats]

    def cost(self, part: str | PlannedReorder) -> Cost:
        """What a node (by name) or a reorder of the plan costs."""
        if isinstance(part, PlannedReorder):
            value = self.network.values[part.value]
            return self.built.pricing.reorder(value, part.src, part.dst)
        chosen = self.assignment[self._variable(part)]
        return self.built.costs[part][chosen]

    def _variable(self, node: str) -> int:
        if node not in self.choices:
            raise InvalidNetwork(f"the plan has no node {node!r}")
        return self.built.variable[node]

    @cached_property
    def reorder_seconds(self) -> float:
        """What the reorders cost together."""
        return sum(self.cost(r).seconds for r in self.reorders)

    def why(self, node: str) -> list[Alternative]:
        """What each choice of a node would cost, everything else optimal for it; cheapest first."""
        totals, exact = marginals(self.built.problem, self._variable(node))
        more = (float(total) - self.seconds for total in totals)
        every = zip(self.built.choices[node], self.built.costs[node], more, strict=True)
        found = [Alternative(choice, cost.seconds, by, exact) for choice, cost, by in every]
        return sorted(found, key=lambda a: a.more)


def _reorders(
    built: BuiltProblem, tensor: ReorderedValue, assignment: Sequence[int]
) -> list[PlannedReorder]:
    _, wanted = tensor.formats(assignment)
    formats, reading = built.formats[tensor.name], built.reading[tensor.name]
    return [
        PlannedReorder(
            tensor.name,
            formats[src],
            formats[dst],
            tuple(dict.fromkeys(n for (n, _), d in zip(reading, wanted, strict=True) if d == dst)),
        )
        for src, dst in tensor.reorders(assignment)
    ]


def _packed(network: Network, choices: Mapping[str, Choice]) -> list[Packed]:
    """The constants in every format that they are read in."""
    found: dict[tuple[str, Key], tuple[FormatName, list[str]]] = {}
    for name, choice in choices.items():
        for value, text in zip(network.nodes[name].inputs, choice.ins, strict=True):
            if value.is_constant and text is not None:
                key = (value.name, text.key)
                found.setdefault(key, (text, []))[1].append(name)
    return [Packed(key[0], text, tuple(nodes)) for key, (text, nodes) in found.items()]


def _impossible(built: BuiltProblem) -> str:
    """The message where nothing has a finite cost; names the value at which it fails."""
    for node in built.order:
        v = built.variable[node.name]
        if not np.isfinite(built.problem.costs[v]).any():
            return f"{node}: every choice costs infinitely much"
    for tensor in built.problem.tensors:
        for slot in tensor.readers:
            reached = tensor.distances.table[np.unique(tensor.source.formats)]
            wanted = np.unique(slot.formats)
            if -1 not in wanted and not np.isfinite(reached[:, wanted]).any():
                return (
                    f"no reorder of {tensor.name!r} leads from a format that it is written in to "
                    f"one that {built.problem.names[slot.variable]!r} reads: all are infinite"
                )
    return "no assignment has a finite cost: choices exclude each other, or reorders are missing"
