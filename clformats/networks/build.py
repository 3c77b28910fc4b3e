"""From a `Network` and costs to a `AssignmentProblem`, and back from an assignment to formats."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field
from itertools import permutations
from typing import Any, Protocol

import numpy as np

from ..errors import InvalidNetwork
from ..solver.problem import ANY, AssignmentProblem, FormatSlot, ReorderedValue
from ..solver.trees import Array, Distances
from ..tensors.desc import MemoryDesc
from .choice import Choice
from .cost import Cost, as_cost
from .graph import Network, Node, Value
from .named import FormatName, Key, plain
from .views import Surroundings, conflicts, refusal, surroundings, viewed_format

OUTPUT = "(output)"
"""Stands for the reader of a value that is delivered in a fixed format."""

ReorderCost = Callable[[str, str, str], "Cost | float"]


Misfit = Callable[[MemoryDesc], str]
"""Why a device has no memory for a descriptor; empty where it has."""


class Pricing(Protocol):
    """What prices reorders and choices: `clformats.networks.costs.Costs` is one."""

    def reorder(self, value: Value, src: str, dst: str) -> Cost:
        """The cost of a reorder of a value."""
        ...

    def choice(self, node: Node, choice: Choice) -> Cost:
        """The cost of a choice that was given none."""
        ...


class FunctionPricing:
    """The pricing of a function of a value's name and two formats."""

    def __init__(self, function: ReorderCost) -> None:
        self.function = function

    def reorder(self, value: Value, src: str, dst: str) -> Cost:
        """What the function says. Raises `InvalidNetwork` for what is no cost."""
        where = f"the reorder of {value.name!r} from {src} to {dst}"
        return as_cost(self.function(value.name, src, dst), where)

    def choice(self, node: Node, choice: Choice) -> Cost:
        """Nothing: a function prices reorders only."""
        raise InvalidNetwork(
            f"{node}: the choice {choice} has no cost: give it one in seconds, or measure it "
            f"(cf.Costs)"
        )


@dataclass(slots=True)
class BuiltProblem:
    """A problem, with what its numbers stand for.

    ``choices`` are those of a node that are left, with ``costs``, ``given`` the formats that an
    input may be given in; ``variable`` and ``border`` are their numbers. ``formats`` are those of a
    value, by the problem's numbers, and ``reading`` who reads it: nodes, with the number of the
    input. ``misfits`` says of choices that were left out why a device has no memory for them, as
    ``misfit`` tells.
    """

    network: Network
    order: list[Node]
    pricing: Pricing
    misfit: Misfit | None = None
    problem: AssignmentProblem = field(default_factory=AssignmentProblem)
    variable: dict[str, int] = field(default_factory=dict)
    border: dict[str, int] = field(default_factory=dict)
    choices: dict[str, list[Choice]] = field(default_factory=dict)
    costs: dict[str, list[Cost]] = field(default_factory=dict)
    given: dict[str, list[FormatName]] = field(default_factory=dict)
    misfits: list[str] = field(default_factory=list)
    formats: dict[str, list[FormatName]] = field(default_factory=dict)
    reading: dict[str, list[tuple[str, int]]] = field(default_factory=dict)
    shared: dict[object, Distances] = field(default_factory=dict)


def build(
    network: Network, pricing: Pricing, via: Iterable[FormatName] = (),
    misfit: Misfit | None = None,
) -> BuiltProblem:  # fmt: skip
    """The problem of a network.

    ``via`` are formats through which chains of reorders may go. Choices with tensors that
    ``misfit`` has a reason against are left out. Raises `InvalidNetwork` for a node without a
    choice, for costs that are none, and for a fixed format that is no fit.
    """
    built = BuiltProblem(network, network.order(), pricing, misfit)
    if not built.order:
        raise InvalidNetwork("the network has no nodes: there is nothing to plan")
    around = surroundings(network)
    for node in built.order:
        _add_node(built, node, around)
    readers = network.readers()
    for value in network.values.values():
        if reason := _against(built, value, network.fixed.get(value.name)):
            raise InvalidNetwork(f"{reason}: fix another format")
        if not value.is_constant:
            passing = tuple(name for name in via if not _against(built, value, name))
            _add_value(built, value, readers[value.name], passing)
    for value, one, other in conflicts(network):
        _exclude(built, value, one, other)
    return built


def _against(built: BuiltProblem, value: Value, name: FormatName | None) -> str:
    """Why a device has no memory for a value in a format; empty where it has, or may have."""
    if built.misfit is None or name is None or name.means is None:
        return ""
    reason = built.misfit(value.desc(name))
    return reason and f"{value.name!r} in {name} does not fit: {reason}"


def _no_memory(built: BuiltProblem, node: Node, choice: Choice) -> str:
    """The first reason against a tensor of a choice."""
    sides = zip((*node.inputs, *node.outputs), (*choice.ins, *choice.outs), strict=True)
    why = next((text for value, name in sides if (text := _against(built, value, name))), "")
    built.misfits += [f"{node.name}: {choice}: {why}"] if why else []
    return why


def _add_node(built: BuiltProblem, node: Node, around: Surroundings) -> None:
    """The variable of a node: its choices that are legal, and what they cost."""
    if not node.choices:
        raise InvalidNetwork(f"{node} has no choice: give it one, or a rule in cf.Kernels")
    reasons = [
        refusal(built.network, node, choice, around)
        or _breaks_fix(built.network, node, choice, around)
        or _no_memory(built, node, choice)
        for choice in node.choices
    ]
    kept = [c for c, reason in zip(node.choices, reasons, strict=True) if not reason]
    if not kept:
        why = f"{node.choices[0]}: {reasons[0]}"
        raise InvalidNetwork(f"{node}: no choice of {len(reasons)} is legal; {why}")
    costs = [
        built.pricing.choice(node, c) if c.cost is None else as_cost(c.cost, f"{node}, choice {k}")
        for k, c in enumerate(kept)
    ]
    built.choices[node.name], built.costs[node.name] = kept, costs
    built.variable[node.name] = built.problem.add(node.name, [c.seconds for c in costs])


def _breaks_fix(network: Network, node: Node, choice: Choice, around: Surroundings) -> str:
    """A value inside the network that is fixed must be written so."""
    for value, name in zip(node.outputs, choice.outs, strict=True):
        wanted = network.fixed.get(value.name)
        if wanted is None or value.name in around.outputs:
            continue
        if name.key != wanted.key:
            return f"it writes {value.name!r} in {name}, which is fixed as {wanted}"
    return ""


def _add_value(
    built: BuiltProblem, value: Value, readers: list[tuple[Node, int]], via: tuple[FormatName, ...]
) -> None:
    """The tensor of a value: its formats, who writes and who reads it."""
    network, names = built.network, _Names()
    fixed = network.fixed.get(value.name)
    maker = network.producer(value)
    read = [(n.name, i, [c.ins[i] for c in built.choices[n.name]]) for n, i in readers]
    if maker is None and not read:
        return
    if maker is not None:
        o = [v.name for v in maker.outputs].index(value.name)
        written = [c.outs[o] for c in built.choices[maker.name]]
        source = FormatSlot(built.variable[maker.name], names.numbers(written))
    else:
        asked = names.numbers([n for _, _, formats in read for n in formats])
        given = [fixed] if fixed else [names.list[k] for k in dict.fromkeys(asked) if k != ANY]
        given = given or [plain(value.rank)]
        v = built.problem.add(value.name, [0.0] * len(given))
        built.border[value.name], built.given[value.name] = v, given
        source = FormatSlot(v, names.numbers(given))
    slots = [FormatSlot(built.variable[n], names.numbers(formats)) for n, _, formats in read]
    built.reading[value.name] = [(n, i) for n, i, _ in read]
    if fixed and maker is not None:
        v = built.problem.add(f"{value.name} {OUTPUT}", [0.0])
        slots.append(FormatSlot(v, names.numbers([fixed])))
        built.reading[value.name].append((OUTPUT, 0))
    names.numbers([name.of_rank(value.rank) for name in via if name.fits(value.rank)])
    built.formats[value.name] = names.list
    distances = _priced(built, value, names.list)
    built.problem.tensors.append(ReorderedValue(value.name, distances, source, tuple(slots)))


class _Names:
    """The formats of a value in the order in which they are met, one name for each."""

    def __init__(self) -> None:
        self.list: list[FormatName] = []
        self._number: dict[Key, int] = {}
        self._known: dict[str | None, int] = {None: ANY}

    def numbers(self, names: Iterable[FormatName | None]) -> np.ndarray[Any, np.dtype[np.intp]]:
        """The number of each format; `ANY` for None."""
        return np.array([self._number_of(n) for n in names], np.intp)

    def _number_of(self, name: FormatName | None) -> int:
        if name is not None and name not in self._known:
            self._known[name] = self._number.setdefault(name.key, len(self.list))
            if self._known[name] == len(self.list):
                self.list.append(name)
        return self._known[name]


def _priced(built: BuiltProblem, value: Value, names: Sequence[FormatName]) -> Distances:
    """The distances between a value's formats; of values that are priced alike they are shared."""
    by_name = isinstance(built.pricing, FunctionPricing)
    key = value.name if by_name else (value.dims, value.dtype.name), tuple(names)
    if key not in built.shared:
        costs: Array = np.zeros((len(names), len(names)))
        for (i, src), (j, dst) in permutations(enumerate(names), 2):
            costs[i, j] = built.pricing.reorder(value, src, dst).seconds
        built.shared[key] = Distances(costs)
    return built.shared[key]


def _exclude(built: BuiltProblem, value: Value, *nodes: Node) -> None:
    """Two nodes that must not both view a value in one format."""
    keys = [[viewed_format(n, c, value) for c in built.choices[n.name]] for n in nodes]
    table = np.array([[np.inf if a is not None and a == b else 0.0 for b in keys[1]]
                      for a in keys[0]])  # fmt: skip
    one, other = (built.variable[n.name] for n in nodes)
    built.problem.pairs.append((one, other, table))
