"""`Decision`: what was decided for a network, as data: formats, choices, reorders, and costs."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from ..errors import InvalidNetwork
from ..solver.problem import ReorderedValue
from ..solver.solve import LIMIT, marginals, solve
from .build import BuiltProblem, Misfit, Pricing, build
from .choice import Choice
from .cost import Cost
from .graph import Network, Value
from .named import FormatName, Key

if TYPE_CHECKING:
    from typing_extensions import Self


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
        choices: dict[str, Choice] = {}
        for name, v in built.variable.items():
            choice = built.choices[v][assignment[v]]
            if isinstance(choice, Choice):
                choices[name] = choice
        formats = {
            value.name: text
            for node in built.order
            for value, text in zip(node.outputs, choices[node.name].outs, strict=True)
        }
        for name, v in built.border.items():
            given = built.choices[v][assignment[v]]
            if isinstance(given, FormatName):
                formats[name] = given
        reorders = [r for t in built.problem.tensors for r in _reorders(built, t, assignment)]
        pack = _packed(network, choices)
        formats |= {p.value: p.dst for p in reversed(pack)}
        seconds = built.problem.total(assignment)
        exact = bool(seconds <= bound * (1 + 1e-9) + 1e-30)
        bound = seconds if exact else bound
        return cls(network, formats, choices, reorders, pack, seconds, bound, exact, built,
                   tuple(assignment))  # fmt: skip

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
        if part not in self.choices:
            raise InvalidNetwork(f"the plan has no node {part!r}")
        v = self.built.variable[part]
        return self.built.costs[v][self.assignment[v]]

    @cached_property
    def reorder_seconds(self) -> float:
        """What the reorders cost together."""
        return sum(self.cost(r).seconds for r in self.reorders)

    def why(self, node: str) -> list[Alternative]:
        """What each choice of a node would cost, everything else optimal for it; cheapest first."""
        if node not in self.choices:
            raise InvalidNetwork(f"the plan has no node {node!r}")
        v = self.built.variable[node]
        totals, exact = marginals(self.built.problem, v)
        found = [
            Alternative(c, self.built.costs[v][k].seconds, float(totals[k]) - self.seconds, exact)
            for k, c in enumerate(self.built.choices[v])
            if isinstance(c, Choice)
        ]
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
