"""Views: when an input and an output of a node may share memory, and which choices exclude others.

Three kinds, which depend on the operation:

*part*
    ``Concat`` along ``axis``: input i is the region of the output where its elements go. Legal
    where `MemoryDesc.submemory` allows the region. The input's memory is then part of the output's,
    so it can be part of one output only, and of no input of the network, which others own.
*alias*
    The output is the input under another description and is only read: ``Reshape`` and its kin
    where `MemoryDesc.reshape` gives the output's own descriptor, ``Transpose`` by ``perm`` where
    `MemoryDesc.permute_axes` does, ``Split`` and ``Slice`` where `MemoryDesc.submemory` allows the
    region at ``starts``. A part, or a region, is not seen in another shape: its rows may be apart.
*overwrite*
    Everything else, ``Relu`` or ``Add`` say: the output replaces the input, in the same format and
    of the same dims and type. Legal where no other node reads the memory, whatever is chosen
    elsewhere: the value, and all that may share its memory, have one reader each.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass

from ..errors import Error, InvalidNetwork
from ..tensors.desc import MemoryDesc
from .choice import Choice
from .graph import Network, Node, Value
from .named import Key

RESHAPES = ("Reshape", "Flatten", "Squeeze", "Unsqueeze", "Identity", "Dropout")
REGIONS = ("Split", "Slice")


def kind_of(op: str) -> str:
    """How the inputs and outputs of an operation share memory, where they do."""
    if op == "Concat":
        return "part"
    return "alias" if op in (*RESHAPES, *REGIONS, "Transpose") else "overwrite"


def inside(node: Node, whole: MemoryDesc, i: int, o: int) -> MemoryDesc:
    """How what shares memory lies in ``whole``, its owner: the input, or the output, as seen there.

    Raises `Error` where it cannot be described so.
    """
    if kind_of(node.op) == "part":
        return whole.submemory(node.inputs[i].dims, _after(node, node.inputs[:i]))
    if node.op in REGIONS:
        return whole.submemory(node.outputs[o].dims, region_offsets(node, o))
    if node.op == "Transpose":
        perm = _perm(node, whole.ndims)
        return whole.permute_axes([perm.index(d) for d in range(whole.ndims)])
    return whole.reshape(node.outputs[o].dims) if node.op in RESHAPES else whole


def _check_shared(node: Node, choice: Choice, i: int, o: int) -> None:
    """Raise `Error` where the formats of a choice do not let an input and an output share memory.

    Where one of them is opaque, only equal names and dims can.
    """
    source, target = node.inputs[i], node.outputs[o]
    name_in, name_out = choice.ins[i], choice.outs[o]
    if name_in is None:
        raise InvalidNetwork(f"views need a format of {source.name!r}, not any")
    if name_in.means is None or name_out.means is None:
        if name_in.key != name_out.key or source.dims != target.dims or kind_of(node.op) == "part":
            raise InvalidNetwork("clformats does not know the format: it cannot tell its parts")
        return
    read, written = source.desc(name_in), target.desc(name_out)
    if kind_of(node.op) == "part":
        _check_same(node, read.format, written.format, "its part of the output")
        inside(node, written, i, o)
    elif node.op in REGIONS:
        _check_same(node, read.format, written.format, "its region of the input")
        inside(node, read, i, o)
    else:
        _check_same(node, inside(node, read, i, o), written, "what the output says")


def _check_same(node: Node, found: object, wanted: object, what: str) -> None:
    if found != wanted:
        raise InvalidNetwork(f"{node.op}: {found} is not {what}, {wanted}")


def region_offsets(node: Node, o: int) -> list[int]:
    """Where output o of a ``Split`` or ``Slice`` begins in its input."""
    if node.op == "Slice":
        starts = node.attributes.get("starts")
        if starts is None or len(starts) != node.inputs[0].rank:
            raise InvalidNetwork(f"{node}: a view needs starts=..., one number for each dimension")
        return [int(n) for n in starts]
    return _after(node, node.outputs[:o])


def _after(node: Node, values: Sequence[Value]) -> list[int]:
    """Where a part begins that comes after these, along the axis of a ``Concat`` or ``Split``."""
    axis = axis_of(node)
    offsets = [0] * node.inputs[0].rank
    offsets[axis] = sum(v.dims[axis] for v in values)
    return offsets


def axis_of(node: Node) -> int:
    """The axis of a ``Concat`` or ``Split``."""
    rank, axis = node.inputs[0].rank, int(node.attributes.get("axis", 0))
    if not -rank <= axis < rank:
        raise InvalidNetwork(f"{node}: got axis={axis} for {rank} dimensions")
    return axis % rank


def _perm(node: Node, rank: int) -> Sequence[int]:
    perm = [int(d) for d in node.attributes.get("perm", range(rank)[::-1])]
    if sorted(perm) != list(range(rank)):
        raise InvalidNetwork(f"{node}: got perm={perm} for {rank} dimensions")
    return perm


# --- whether a choice is legal --------------------------------------------------------------------


def refusal(network: Network, node: Node, choice: Choice, around: Surroundings) -> str:
    """Why the views of a choice are not legal, or the empty string."""
    if kind_of(node.op) == "overwrite" and len({i for i, _ in choice.shared}) > 1:
        return "an output can replace one input"
    for i, o in choice.shared:
        try:
            _check_shared(node, choice, i, o)
        except Error as error:
            return str(error)
        reason = _taken(network, node, node.inputs[i], around)
        if reason:
            return reason
    return ""


def _taken(network: Network, node: Node, source: Value, around: Surroundings) -> str:
    """Why the memory of an input cannot be shared, whatever the format, or the empty string."""
    kind = kind_of(node.op)
    if network.producer(source) is None and (kind != "alias" or source.is_constant):
        return f"{source.name!r} is given from outside: its memory is not the network's"
    if kind == "overwrite" and not around.lonely[source.name]:
        return f"{source.name!r}, or what may share its memory, has other readers"
    if kind == "part" and source.name in around.outputs:
        return f"{source.name!r} is delivered: it is a tensor of its own"
    if node.op in RESHAPES and source.name in around.strided:
        return f"{source.name!r} may be a transposition of a region, or of a part"
    if kind == "part" and [v.name for v in node.inputs].count(source.name) > 1:
        return f"{source.name!r} would lie at two places"
    return ""


@dataclass(frozen=True, slots=True)
class Surroundings:
    """What decides on views beside the formats: readers, and outputs of the network.

    ``strided`` are transpositions of what may be a region or a part of another tensor.
    """

    lonely: Mapping[str, bool]
    outputs: frozenset[str]
    strided: frozenset[str]


def surroundings(network: Network) -> Surroundings:
    """For each value whether its memory has one reader, whatever shares memory with it.

    A value that some choice of its node makes share memory with an input is as lonely as the input.
    A result of a reshape and its kin is not: who writes into it writes into what it was made of.
    """
    readers = network.readers()
    outputs = {v.name for v in network.outputs}
    lonely: dict[str, bool] = {}
    regions = {name for name, nodes in readers.items()
               if any(kind_of(n.op) == "part" and _views(n, i) for n, i in nodes)}  # fmt: skip
    strided: set[str] = set()
    for node in network.order():
        shared = {pair for choice in node.choices for pair in choice.shared}
        if shared and node.op in REGIONS:
            regions |= {v.name for v in node.outputs}
        if shared and node.op == "Transpose" and node.inputs[0].name in regions | strided:
            strided.add(node.outputs[0].name)
        for o, value in enumerate(node.outputs):
            sources = [node.inputs[i] for i, other in shared if other == o]
            lone = len(readers[value.name]) == 1 and value.name not in outputs
            if sources and kind_of(node.op) == "alias":
                lone = False
            lonely[value.name] = lone and all(lonely.get(v.name, False) for v in sources)
    return Surroundings(lonely, frozenset(outputs), frozenset(strided))


def conflicts(network: Network) -> Iterator[tuple[Value, Node, Node]]:
    """Each value with the pairs of nodes that must not both view it in one format.

    Memory is part of one concatenation only. A part, and a region, has the strides of the whole: it
    is not seen in another shape, and a part is no view at the same time.
    """
    readers = network.readers()
    for name, nodes in readers.items():
        viewing = {n.name: n for n, i in nodes if _views(n, i)}.values()
        parts = [n for n in viewing if kind_of(n.op) == "part"]
        shaped = [n for n in viewing if n.op in (*RESHAPES, *REGIONS)]
        maker = network.producer(name)
        aliases = [maker] if maker is not None and kind_of(maker.op) == "alias" else []
        for k, node in enumerate(parts):
            others = [*parts[k + 1 :], *shaped, *aliases]
            yield from ((network.values[name], node, other) for other in others)
        if maker is not None and maker.op in REGIONS:
            yield from ((network.values[name], n, maker) for n in shaped if n.op in RESHAPES)


def _views(node: Node, i: int) -> bool:
    return any(i == number for choice in node.choices for number, _ in choice.shared)


def viewed_format(node: Node, choice: Choice, value: Value) -> Key | None:
    """The format in which a choice of a value's reader or maker views it; None if it copies.

    A maker's format is the one that it writes the value in.
    """
    for i, o in choice.shared:
        ends = (node.inputs[i], choice.ins[i]), (node.outputs[o], choice.outs[o])
        for end, name in ends:
            if end.name == value.name and name is not None:
                return name.key
    return None
