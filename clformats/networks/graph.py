"""`Network`: values, nodes, and the ways in which each node can run.

A network is data: nothing here computes a tensor. Values are tensors with dims and a type; nodes
read and write them; a `Choice` is one way to run a node, with the formats that it reads and writes
and what it costs.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import lru_cache
from graphlib import CycleError, TopologicalSorter
from heapq import heappop, heappush
from math import prod
from operator import is_
from pathlib import Path
from typing import Any

from ..errors import Error, InvalidNetwork, expect
from ..formats import Format
from ..tensors.desc import MemoryDesc
from ..tensors.dtypes import DType, as_dtype
from .choice import Choice
from .cost import as_cost
from .named import FormatName, listed, named
from .onnx_import import OnnxGraph

Dims = tuple[int, ...]


@dataclass(frozen=True, slots=True)
class Value:
    """A tensor of a network: its name, dims in logical order, and element type.

    ``constant`` is None for what is computed, an array (or anything else) for what is known before
    the network runs, as weights are. Constants are packed once: their reorders cost nothing.
    """

    name: str
    dims: Dims
    dtype: DType
    constant: Any = field(default=None, compare=False, repr=False)

    @property
    def rank(self) -> int:
        """The number of dimensions."""
        return len(self.dims)

    @property
    def is_constant(self) -> bool:
        """Whether it is known before the network runs."""
        return self.constant is not None

    def desc(self, format: str | Format) -> MemoryDesc:
        """The descriptor in a format of this library's. Raises `InvalidNetwork` for opaque ones."""
        name = named(format).of_rank(self.rank, f"value {self.name!r}")
        if name.means is None:
            raise InvalidNetwork(
                f"value {self.name!r} is in the format {str(name)!r}, of which clformats knows "
                f"the name only: {name.why}"
            )
        return _described(self.dims, self.dtype, name)[0]

    def nbytes(self, format: str | Format | None = None) -> int:
        """Bytes in a format; for an opaque one, and for None, those of the dense tensor."""
        name = None if format is None else named(format).of_rank(self.rank)
        if name is not None and name.means is not None:
            return _described(self.dims, self.dtype, name)[1]
        return -(-prod(self.dims) * self.dtype.bits // 8)


@lru_cache(maxsize=1 << 14)
def _described(dims: Dims, dtype: DType, name: FormatName) -> tuple[MemoryDesc, int]:
    """The descriptor of a tensor in a format of this library's, and its bytes."""
    desc = MemoryDesc(dims, dtype, name.means)
    return desc, desc.span_nbytes


@dataclass(frozen=True, slots=True, eq=False)
class Node:
    """An operation of a network: what it reads and writes, and its choices.

    ``inputs`` and ``outputs`` are `Value`s; ``attributes`` is whatever the operation needs to be
    known, as ``axis`` of a concatenation.
    """

    name: str
    op: str
    inputs: tuple[Value, ...]
    outputs: tuple[Value, ...]
    choices: tuple[Choice, ...] = ()
    attributes: Mapping[str, Any] = field(default_factory=dict)

    def __str__(self) -> str:
        return f"node {self.name!r} ({self.op})"


class Network:
    """A graph of nodes that read and write values.

    >>> net = Network()
    >>> x, y = net.value("x", (1, 64, 56, 56)), net.value("y", (1, 64, 56, 56))
    >>> relu = net.node("relu", [x], [y], "Relu", [Choice(("nchw",), ("nchw",), 1e-4)])
    >>> net.fix("x", "nhwc")

    ``notes`` says what may be a mistake, such as rows of a table of kernels that no node can use.
    Nodes may come in any order; they run in the order in which they were added, as far as that is
    possible. Raises `InvalidNetwork`, naming the value or the node.
    """

    def __init__(self) -> None:
        self.values: dict[str, Value] = {}
        self.nodes: dict[str, Node] = {}
        self.fixed: dict[str, FormatName] = {}
        self.notes: tuple[str, ...] = ()
        self._marked: list[str] = []
        self._producer: dict[str, str] = {}

    @classmethod
    def from_onnx(cls, model: str | Path | Any, *, batch: int | None = None) -> Network:
        """The network of an ONNX model or file: see `clformats.networks.onnx_import`."""
        found, result = OnnxGraph(model, batch), cls()
        for value in found.values:
            result.value(**value)
        for op in found.operations:
            result.node(op.name, op.inputs, op.outputs, op.op, **op.attributes)
        for name in found.outputs:
            result.output(name)
        return result

    # --- building ---------------------------------------------------------------------------------

    def value(
        self, name: str, dims: Iterable[int], dtype: object = "f32", *, constant: Any = None
    ) -> Value:
        """Add a tensor: name, dims in logical order, element type."""
        _check_name("value", name, self.values)
        made = Value(name, _checked_dims(name, dims), _checked_dtype(name, dtype), constant)
        self.values[name] = made
        return made

    def node(  # a record with many fields
        self,
        name: str,
        inputs: Iterable[Value | str],
        outputs: Iterable[Value | str],
        op: str = "",
        choices: Iterable[Choice] = (),
        **attributes: Any,
    ) -> Node:
        """Add an operation that reads and writes values which were added before."""
        _check_name("node", name, self.nodes)
        read = tuple(self._known(name, v) for v in _listed(inputs, "inputs"))
        written = tuple(self._known(name, v) for v in _listed(outputs, "outputs"))
        expect(op, str, "op")
        bare = Node(name, op or name, read, written)
        if not written:
            raise InvalidNetwork(f"{bare} writes nothing: give it an output")
        for value in written:
            other = self._producer.get(value.name)
            if other is not None or written.count(value) > 1:
                by = other or "it"
                raise InvalidNetwork(f"{bare}: {value.name!r} is already written by {by!r}")
            if value.is_constant:
                raise InvalidNetwork(f"{bare} writes {value.name!r}, which is a constant")
        fitting = checked_choices(bare, listed(choices, "choices"))
        made = replace(bare, choices=fitting, attributes=attributes)
        self._producer.update((value.name, name) for value in written)
        self.nodes[name] = made
        return made

    def fix(self, value: Value | str, format: str | Format) -> None:
        """Say which format a value has.

        An input of the network is given in it. An output is delivered in it, reordered if need be;
        any other value is written in it by its node.
        """
        known = self._known("fix", value)
        name = named(format, f"fix({known.name!r})")
        self.fixed[known.name] = name.of_rank(known.rank, f"value {known.name!r}")

    def output(self, value: Value | str, format: str | Format | None = None) -> None:
        """Make a value that nodes read an output too; one that none reads is an output anyway."""
        known = self._known("output", value)
        if known.is_constant:
            raise InvalidNetwork(
                f"output: {known.name!r} is a constant: it is known before the network runs, "
                f"leave it out"
            )
        if known.name not in self._marked:
            self._marked.append(known.name)
        if format is not None:
            self.fix(known, format)

    def with_choices(self, choices: Mapping[str, Iterable[Choice]]) -> Network:
        """The same network, where the named nodes have these choices."""
        given: dict[str, tuple[Choice, ...]] = {}
        for name, found in choices.items():
            if name not in self.nodes:
                raise InvalidNetwork(f"there is no node {name!r}")
            given[name] = checked_choices(self.nodes[name], listed(found, "choices"))
        return self.with_checked(given)

    def with_checked(self, choices: Mapping[str, tuple[Choice, ...]]) -> Network:
        """As `with_choices`, of choices that `checked_choices` gave."""
        result = Network()
        result.values, result.fixed = dict(self.values), dict(self.fixed)
        result.notes = self.notes
        result._marked, result._producer = list(self._marked), dict(self._producer)
        result.nodes = {
            name: replace(node, choices=choices.get(name, node.choices))
            for name, node in self.nodes.items()
        }
        return result

    # --- what it says -----------------------------------------------------------------------------

    def producer(self, value: Value | str) -> Node | None:
        """The node that writes a value; None for inputs of the network and constants."""
        name = self._producer.get(_name(value))
        return None if name is None else self.nodes[name]

    def readers(self) -> dict[str, list[tuple[Node, int]]]:
        """For each value the nodes that read it, with the number of the input."""
        found: dict[str, list[tuple[Node, int]]] = {name: [] for name in self.values}
        for node in self.nodes.values():
            for number, value in enumerate(node.inputs):
                found[value.name].append((node, number))
        return found

    @property
    def inputs(self) -> list[Value]:
        """The values that the network is given, in the order in which they were added."""
        return [
            self.values[name]
            for name, readers in self.readers().items()
            if readers and name not in self._producer and not self.values[name].is_constant
        ]

    @property
    def outputs(self) -> list[Value]:
        """The values that are marked as outputs, or written and never read."""
        return [
            self.values[name]
            for name, readers in self.readers().items()
            if name in self._marked or (name in self._producer and not readers)
        ]

    def order(self) -> list[Node]:
        """The nodes in an order in which they can run. Raises `InvalidNetwork` for a cycle."""
        number = {node: k for k, node in enumerate(self.nodes.values())}
        sorter = TopologicalSorter({
            node: [p for v in node.inputs if (p := self.producer(v))] for node in number
        })  # fmt: skip
        try:
            sorter.prepare()
        except CycleError as error:
            node = error.args[1][0]
            raise InvalidNetwork(
                f"{node} is part of a cycle: what it reads depends on what it writes, "
                f"{', '.join(v.name for v in node.outputs)}; {node.name!r} can never run"
            ) from None
        order, ready = [], list[tuple[int, Node]]()
        while sorter.is_active():
            for node in sorter.get_ready():
                heappush(ready, (number[node], node))
            _, first = heappop(ready)
            order.append(first)
            sorter.done(first)
        return order

    def __repr__(self) -> str:
        return (
            f"Network of {len(self.nodes)} nodes and {len(self.values)} values: "
            f"{', '.join(v.name for v in self.inputs)} -> "
            f"{', '.join(v.name for v in self.outputs)}"
        )

    def _known(self, where: str, value: Value | str) -> Value:
        name = _name(value)
        if name not in self.values:
            raise InvalidNetwork(
                f"{where!r}: there is no value {name!r}: add it first, net.value({name!r}, dims)"
            )
        return self.values[name]


# --- checks ---------------------------------------------------------------------------------------


def checked_choices(node: Node, choices: Iterable[Choice]) -> tuple[Choice, ...]:
    """The choices, with formats of the ranks of the node's values.

    Raises `InvalidNetwork` where one does not fit.
    """
    found = []
    for number, choice in enumerate(choices):
        where = f"{node}, choice {number}"
        if not isinstance(choice, Choice):
            raise InvalidNetwork(f"{where}: got {choice!r}, expected a cf.Choice")
        ins = _ranked(where, "ins", choice.ins, node.inputs)
        outs = _ranked(where, "outs", choice.outs, node.outputs)
        if choice.cost is not None:
            as_cost(choice.cost, where)
        for i, o in choice.shared:
            if not (0 <= i < len(node.inputs) and 0 <= o < len(node.outputs)):
                raise InvalidNetwork(f"{where}: views={choice.views!r} names no input and output")
        same = all(map(is_, (*ins, *outs), (*choice.ins, *choice.outs)))
        found.append(choice if same else replace(choice, ins=ins, outs=outs))  # type: ignore[arg-type]  # no None
    return tuple(found)


def _ranked(
    where: str, what: str, names: Sequence[FormatName | None], values: Sequence[Value]
) -> tuple[FormatName | None, ...]:
    """The formats as those of tensors of the values' ranks."""
    if len(names) != len(values):
        raise InvalidNetwork(
            f"{where}: {what} has {len(names)} formats, the node has {len(values)}: "
            f"{', '.join(v.name for v in values)}"
        )
    return tuple(
        None if name is None else name.of_rank(value.rank, f"{where}, value {value.name!r}")
        for name, value in zip(names, values, strict=True)
    )


def _name(value: Value | str) -> str:
    expect(value, Value | str, "value")
    return value.name if isinstance(value, Value) else value


def _listed(names: Iterable[Any], what: str) -> Iterable[Any]:
    return (names,) if isinstance(names, Value) else listed(names, what)


def _check_name(what: str, name: object, taken: Mapping[str, object]) -> None:
    if not isinstance(name, str) or not name:
        raise InvalidNetwork(f"the name of a {what}: got {name!r}, expected a text")
    if name in taken:
        raise InvalidNetwork(f"there is a {what} {name!r} already: names are unique")


def _checked_dims(name: str, dims: Iterable[int] | None) -> Dims:
    if dims is None:
        raise InvalidNetwork(f"value {name!r} has no shape: give its dims, all of them known")
    sizes = listed(dims, f"dims of value {name!r}")
    if any(not hasattr(n, "__index__") or isinstance(n, bool) or n < 1 for n in sizes):
        raise InvalidNetwork(f"value {name!r}: got dims {sizes!r}, expected whole numbers above 0")
    return tuple(int(n) for n in sizes)


def _checked_dtype(name: str, dtype: object) -> DType:
    try:
        return as_dtype(dtype)
    except Error as error:
        raise InvalidNetwork(f"value {name!r}: {error}") from None
