"""`propagate`: the format of every value of a network, at the least cost there is."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from ..errors import InvalidNetwork, expect_int, shown
from .build import OUTPUT, Built, Given, Pricing, ReorderCost, build
from .choice import Choice
from .cost import Cost
from .graph import Network, Value
from .named import key_of, listed, text_of
from .problem import Tensor
from .solve import LIMIT, marginals, solve

if TYPE_CHECKING:
    from pathlib import Path

    from ..runtime import Engine
    from .baselines import Comparison
    from .kernels import Kernels
    from .memory import MemoryPlan
    from .racing import Run, Settled
    from .schedule import Launch, Schedule


class PlannedReorder(NamedTuple):
    """A reorder of a plan: which value, from and to which format, and who reads the result.

    ``readers`` are names of nodes; ``"(output)"`` where the value is delivered so. None where only
    other reorders read the result.
    """

    value: str
    src: str
    dst: str
    readers: tuple[str, ...]


class Packed(NamedTuple):
    """A constant in a format that nodes read it in: reordered once, before the network runs."""

    value: str
    dst: str
    readers: tuple[str, ...]


class Alternative(NamedTuple):
    """Another choice of a node, and how much more the best plan with it costs."""

    choice: Choice
    seconds: float
    more: float
    exact: bool


@dataclass(frozen=True)
class FormatPlan:
    """What `propagate` decided.

    ``formats`` has the format in which each value is written (or given), ``choices`` the choice of
    each node, ``reorders`` what is reordered, ``pack`` the constants. ``seconds`` is what it costs
    by the given costs, ``bound`` a proven lower bound, ``exact`` whether they are equal.
    """

    network: Network
    formats: Mapping[str, str]
    choices: Mapping[str, Choice]
    reorders: Sequence[PlannedReorder]
    pack: Sequence[Packed]
    seconds: float
    bound: float
    exact: bool
    built: Built = field(repr=False)
    assignment: tuple[int, ...] = field(repr=False)

    def __repr__(self) -> str:
        return (
            f"FormatPlan({len(self.choices)} nodes, {len(self.reorders)} reorders, "
            f"{self.seconds * 1e3:.4g} ms)"
        )

    def _repr_svg_(self) -> str:
        return self.svg()

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
            return self._reorder_cost(part)
        if part not in self.choices:
            raise InvalidNetwork(f"the plan has no node {part!r}")
        v = self.built.variable[part]
        return self.built.costs[v][self.assignment[v]]

    def _reorder_cost(self, reorder: PlannedReorder) -> Cost:
        value = self.network.values[reorder.value]
        return self.built.pricing.reorder(value, reorder.src, reorder.dst)

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

    def compare(self, baselines: Iterable[str] | None = None) -> Comparison:
        """What other ways to choose cost by the same costs: `clformats.networks.baselines`."""
        from .baselines import compare

        return compare(self, baselines)

    def settle(
        self, prepare: Callable[[FormatPlan], Run], baselines: Iterable[str] | None = None,
        *, rounds: int = 20,
    ) -> Settled:  # fmt: skip
        """Race this plan against baselines on the clock: which to keep, see `Settled`.

        ``prepare`` makes a plan ready, and gives a function that runs it once and waits. The
        fastest baseline stays unless this plan is surely faster. ``baselines`` are names of
        `compare`, by default the three cheapest that differ.
        """
        from .racing import settle

        return settle(self, prepare, baselines=baselines, rounds=rounds)

    @cached_property
    def memory(self) -> MemoryPlan:
        """One arena for all values: `clformats.networks.memory`."""
        from .memory import plan_memory

        return plan_memory(self)

    def schedule(self, engine: Engine, launch: Launch, **options: Any) -> Schedule:
        """The plan on a device, with your function that launches kernels: see `Schedule`."""
        from .schedule import Schedule

        return Schedule(self, engine, launch, **options)

    def to_json(self) -> str:
        """The plan as JSON, which `from_json` reads."""
        from .stored import to_json

        return to_json(self)

    @classmethod
    def from_json(
        cls, text: str, *, kernels: Mapping[str, Any] | None = None,
        constants: Mapping[str, Any] | None = None,
    ) -> FormatPlan:  # fmt: skip
        """The plan that `to_json` wrote, without the tables and costs that led to it.

        ``kernels`` gives handles by the names of nodes, in place of those that JSON could hold;
        ``constants`` gives arrays by the names of values. The choices that were not taken are not
        in the text: `why` and `compare` know the plan's own. Raises `InvalidNetwork`.
        """
        from .stored import from_json

        return from_json(text, kernels=kernels, constants=constants)

    def to_onnx(self, path: str | Path) -> None:
        """Write the plan as an ONNX model, its reorders as nodes (extra ``onnx``)."""
        from .export import to_onnx

        to_onnx(self, path)

    def to_dot(self) -> str:
        """The plan as a graph for Graphviz."""
        from .picture import dot

        return dot(self)

    def svg(self) -> str:
        """A picture of the network, coloured by format, its reorders marked."""
        from .picture import svg

        return svg(self)

    def draw(self, path: str | Path) -> None:
        """Write the picture to a file, SVG."""
        from pathlib import Path

        Path(path).write_text(self.svg(), encoding="utf-8")

    def __str__(self) -> str:
        from .summary import summary

        return summary(self)


def propagate(  # each is one question
    network: Network,
    kernels: Kernels | None = None,
    *,
    reorder_cost: ReorderCost | Pricing | None = None,
    via: Iterable[str] = (),
    limit: int = LIMIT,
    memory_limit: int | None = None,
) -> FormatPlan:
    """Choose for each node how it runs, so that nodes and reorders together cost the least.

    ``kernels`` gives choices to nodes that have none. ``reorder_cost`` is a function of a value's
    name and two formats, in seconds, or a `Costs`; without one, bytes over 10 GB/s. A reorder
    serves every reader of its result; where a chain of reorders is cheaper, the plan has the chain.
    ``via`` names formats through which chains may go though no node reads them. ``limit`` is the
    number of entries of the largest table that the solver may make. ``memory_limit`` is the most
    bytes that `FormatPlan.memory` may have; it may need scipy, the extra ``solve``.

    >>> net = Network()
    >>> _ = net.value("x", (1, 16, 8, 8)), net.value("y", (1, 16, 8, 8))
    >>> fast = Choice(("nChw16c",), ("nChw16c",), 1e-5)
    >>> slow = Choice(("nchw",), ("nchw",), 9e-5)
    >>> _ = net.node("conv", ["x"], ["y"], "Conv", [fast, slow])
    >>> net.fix("x", "nchw")
    >>> plan = propagate(net, reorder_cost=lambda value, src, dst: 2e-5)
    >>> plan.formats["y"], plan.reorders[0].dst, plan.exact
    ('nChw16c', 'nChw16c', True)

    Raises `InvalidNetwork`, which names the node or the value.
    """
    names = [text_of(name, "via") for name in listed(via, "via")]
    most = _positive(limit, "limit")
    built = build(_with_choices(network, kernels), as_pricing(reorder_cost), names)
    solution = solve(built.problem, limit=most)
    if solution is None:
        raise InvalidNetwork(_impossible(built))
    plan = planned(built, solution.assignment, solution.bound)
    if memory_limit is None:
        return plan
    from .limited import fitted

    return fitted(plan, _positive(memory_limit, "memory_limit"))


def _with_choices(network: Network, kernels: Kernels | None) -> Network:
    if not isinstance(network, Network):
        raise InvalidNetwork(f"got {network!r}, expected a cf.Network")
    if kernels is not None and not hasattr(kernels, "apply"):
        raise InvalidNetwork(f"kernels: got {shown(kernels)}, expected a cf.Kernels")
    return network if kernels is None else kernels.apply(network)


def _positive(number: int, what: str) -> int:
    if expect_int(number, what) < 1:
        raise InvalidNetwork(f"{what}: got {number}, expected 1 or more")
    return number


def as_pricing(given: ReorderCost | Pricing | None) -> Pricing:
    """What prices reorders: the given one, or bytes over bandwidth."""
    if given is None:
        from .costs import Costs

        return Costs()
    if hasattr(given, "reorder") and hasattr(given, "choice"):
        return given
    if not callable(given):
        raise InvalidNetwork(f"reorder_cost: got {shown(given)}, expected a function or a cf.Costs")
    return Given(given)


def planned(built: Built, assignment: Sequence[int], bound: float) -> FormatPlan:
    """The plan of an assignment."""
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
    formats |= {n: str(built.choices[v][assignment[v]]) for n, v in built.border.items()}
    reorders = [r for t in built.problem.tensors for r in _reorders(built, t, assignment)]
    pack = _packed(network, choices)
    formats |= {p.value: p.dst for p in reversed(pack)}
    seconds = built.problem.total(assignment)
    exact = bool(seconds <= bound * (1 + 1e-9) + 1e-30)
    bound = seconds if exact else bound
    return FormatPlan(network, formats, choices, reorders, pack, seconds, bound, exact, built,
                      tuple(assignment))  # fmt: skip


def _reorders(built: Built, tensor: Tensor, assignment: Sequence[int]) -> list[PlannedReorder]:
    _, steps = tensor.tree(assignment)
    if not steps:
        return []
    root = int(tensor.source.formats[assignment[tensor.source.variable]])
    wanted = tensor.wanted(assignment)
    reading = built.reading[tensor.name]
    return [
        PlannedReorder(
            tensor.name,
            tensor.formats[src],
            tensor.formats[dst],
            tuple(dict.fromkeys(n for (n, _), d in zip(reading, wanted, strict=True) if d == dst)),
        )
        for src, dst in _in_order(steps, root)
    ]


def _in_order(steps: Sequence[tuple[int, int]], root: int) -> list[tuple[int, int]]:
    """The steps of a tree from its root on, each format made once."""
    ready, left = {root}, list(steps)
    found: list[tuple[int, int]] = []
    while True:
        step = next((s for s in left if s[0] in ready and s[1] not in ready), None)
        if step is None:
            return found
        left.remove(step)
        ready.add(step[1])
        found.append(step)


def _packed(network: Network, choices: Mapping[str, Choice]) -> list[Packed]:
    """The constants in every format that they are read in."""
    found: dict[tuple[str, Any], tuple[str, list[str]]] = {}
    for name, choice in choices.items():
        for value, text in zip(network.nodes[name].inputs, choice.ins, strict=True):
            if value.is_constant and text is not None:
                key = (value.name, key_of(text, value.rank))
                found.setdefault(key, (text, []))[1].append(name)
    return [Packed(key[0], text, tuple(nodes)) for key, (text, nodes) in found.items()]


def _impossible(built: Built) -> str:
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


__all__ = ["OUTPUT", "Alternative", "FormatPlan", "Packed", "PlannedReorder", "propagate"]
