"""oneDNN 2.6 as the engine of planned networks: what it can do, as `clformats.Kernels`; a runner.

`kernels` asks the library for every combination of formats, and leaves out what only its reference
implementation takes. `Run` has a primitive for each step of a plan, all memory in one arena as the
plan says. Operations that are not known here are left out: they cost nothing, and their results are
not right.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from functools import lru_cache, partial
from itertools import product
from typing import Any

import numpy as np
from numpy.typing import NDArray

import clformats as cf
from clformats.networks.named import FormatName, named
from clformats.networks.schedule import is_free

from . import onednn_steps as steps
from .onednn import Desc, Status
from .onednn_steps import BIAS, DST, MEAN, MULTIPLE, SRC, VARIANCE, WEIGHTS, Operation

FORMATS = ("nchw", "nhwc", "nChw8c", "nChw16c")
RESHAPES = ("Reshape", "Flatten", "Squeeze", "Unsqueeze", "Identity", "Dropout")
SAME = ("MaxPool", "AveragePool", "GlobalAveragePool", "LRN", "BatchNormalization", "Add", "Relu",
        "Concat", "Softmax")  # fmt: skip
Array = NDArray[Any]


# --- what the library can do ----------------------------------------------------------------------


def kernels() -> cf.Kernels:
    """Every combination of `FORMATS` that the library has an own implementation for."""
    found = cf.Kernels(plain=True)

    @found.of("Conv")
    def _(node: cf.Node) -> Iterator[cf.Choice]:
        for src, dst in product(FORMATS, FORMATS):
            yield from _choice(node, src, dst)

    @found.of(*SAME)
    def _(node: cf.Node) -> Iterator[cf.Choice]:
        for name in FORMATS if node.outputs[0].rank == 4 else ("ab",):
            yield from _choice(node, name, name)

    @found.of("Gemm")
    def _(node: cf.Node) -> Iterator[cf.Choice]:
        yield from _choice(node, "ab", "ab")

    found.view("Concat", formats=[f for f in FORMATS if f != "nhwc"])  # one image: in one piece
    found.view(*RESHAPES, formats=["a", "ab", "abc", "abcd", "abcde"])
    return found


def _choice(node: cf.Node, src: str, dst: str) -> Iterator[cf.Choice]:
    impl = asked(node, src, dst)
    if impl:
        ins = [None if v.is_constant else src for v in node.inputs]
        yield cf.Choice(ins, [dst], kernel=impl)


def asked(node: cf.Node, src: str, dst: str) -> str:
    """The implementation that does a node in these formats, or nothing."""
    try:
        operation = operation_of(node, [src] * _read(node), dst)
    except Status:
        return ""
    return "" if operation.is_reference else operation.impl


def by_any(network: cf.Network, *, in_place: bool) -> cf.Network:
    """The network where convolutions have the one choice that "any" leads to.

    Unless ``in_place``, concatenations are copies, as oneDNN's are.
    """
    chosen: dict[str, list[cf.Choice]] = {}
    for node in network.nodes.values():
        if node.op == "Conv":
            operation = operation_of(node, ["any"], "any")
            names = [_name(operation.wants(k), v) for k, v in
                     ((SRC, node.inputs[0]), (DST, node.outputs[0]))]  # fmt: skip
            same = [c for c in node.choices if [c.ins[0], c.outs[0]] == names]
            chosen[node.name] = same or list(node.choices)
        elif node.op == "Concat" and not in_place:
            chosen[node.name] = [c for c in node.choices if not c.views] or list(node.choices)
    return network.with_choices(chosen)


def _name(desc: Desc, value: cf.Value) -> str:
    return next((f for f in FORMATS if Desc.by_tag(value.dims, "f32", f) == desc), "")


def _read(node: cf.Node) -> int:
    return sum(not v.is_constant for v in node.inputs)


# --- operations -----------------------------------------------------------------------------------


def operation_of(node: cf.Node, ins: Sequence[str], out: str) -> Operation:
    """The operation of a node, its computed inputs and its output in these formats."""
    values = [v for v in node.inputs if not v.is_constant]
    read = [_desc(v.dims, f) for v, f in zip(values, ins, strict=True)]
    return OPERATIONS[node.op](node, read, _desc(node.outputs[0].dims, out))


@lru_cache(maxsize=4096)
def _desc(dims: tuple[int, ...], tag: str) -> Desc:
    return Desc.by_tag(dims, "f32", tag)


def _relu(node: cf.Node) -> bool:
    activation = node.attributes.get("activation")
    if activation not in (None, "Relu"):
        raise NotImplementedError(f"{node} with {activation}")
    return activation == "Relu"


def _border(node: cf.Node, window: Sequence[int], strides: Sequence[int]) -> steps.Pads:
    """The border, behind as wide as the output needs it."""
    before = list(node.attributes.get("pads", [0] * 4))[:2]
    sizes = zip(node.inputs[0].dims[2:], node.outputs[0].dims[2:], before, window, strides,
                strict=True)  # fmt: skip
    return before, [(n - 1) * s + k - size - b for size, n, b, k, s in sizes]


def _convolution(node: cf.Node, read: Sequence[Desc], dst: Desc) -> Operation:
    if set(node.attributes.get("dilations", [1])) != {1}:
        raise NotImplementedError(f"{node} with dilations")
    shape, groups = node.inputs[1].dims, node.attributes.get("group", 1)
    if groups > 1:
        shape = (groups, shape[0] // groups, *shape[1:])
    strides = node.attributes.get("strides", [1, 1])
    bias = Desc.by_tag(shape[:1] if groups == 1 else (shape[0] * shape[1],), "f32", "a")
    return steps.convolution(
        read[0], _desc(shape, "any"), bias if len(node.inputs) > 2 else None, dst,
        strides=strides, pads=_border(node, shape[-2:], strides), relu=_relu(node),
    )  # fmt: skip


def _pool(node: cf.Node, read: Sequence[Desc], dst: Desc) -> Operation:
    window = node.attributes.get("kernel_shape", node.inputs[0].dims[2:])
    strides = node.attributes.get("strides", [1, 1])
    kind = "max" if node.op == "MaxPool" else "mean"
    if node.attributes.get("count_include_pad"):
        kind = "mean with border"
    return steps.pool(
        read[0], dst, kind=kind, window=window, strides=strides,
        pads=_border(node, window, strides),
    )  # fmt: skip


def _lrn(node: cf.Node, read: Sequence[Desc], _: Desc) -> Operation:
    a = node.attributes
    return steps.lrn(read[0], size=a["size"], alpha=a.get("alpha", 1e-4), beta=a.get("beta", 0.75),
                     k=a.get("bias", 1.0))  # fmt: skip


def _normalisation(node: cf.Node, read: Sequence[Desc], _: Desc) -> Operation:
    epsilon = node.attributes.get("epsilon", 1e-5)
    return steps.normalisation(read[0], epsilon=epsilon, relu=_relu(node))


def _product(node: cf.Node, read: Sequence[Desc], dst: Desc) -> Operation:
    shape = node.inputs[1].dims
    rows = shape if node.attributes.get("transB") else shape[::-1]
    bias = Desc.by_tag(rows[:1], "f32", "a")
    return steps.product(read[0], _desc(rows, "any"), bias, dst, relu=_relu(node))


def _transposition(node: cf.Node, read: Sequence[Desc], dst: Desc) -> Operation:
    perm = node.attributes["perm"]
    return steps.reorder(read[0].permute_axes([perm.index(d) for d in range(len(perm))]), dst)


Made = Callable[[cf.Node, Sequence[Desc], Desc], Operation]
OPERATIONS: Mapping[str, Made] = {
    "Conv": _convolution,
    **dict.fromkeys(("MaxPool", "AveragePool", "GlobalAveragePool"), _pool),
    "LRN": _lrn,
    "BatchNormalization": _normalisation,
    "Add": lambda node, read, dst: steps.add(read[0], read[1], dst, relu=_relu(node)),
    "Relu": lambda _, read, __: steps.rectified(read[0]),
    "Concat": lambda node, read, dst: steps.concatenation(
        read, dst, axis=node.attributes["axis"] % node.outputs[0].rank
    ),
    "Softmax": lambda node, read, _: steps.softmax(
        read[0], axis=node.attributes.get("axis", 1) % node.outputs[0].rank
    ),
    "Gemm": _product,
    "Transpose": _transposition,
    **dict.fromkeys(RESHAPES, lambda _, read, dst: steps.reorder(_flat(read[0]), _flat(dst))),
}


def _flat(desc: Desc) -> Desc:
    return _desc((int(np.prod(desc.dims)),), "a")


# --- running --------------------------------------------------------------------------------------


Packed = dict[tuple[str, bytes], "tuple[Desc, int, Array]"]
"""Weights by name and layout: descriptor, address, and the array that holds them."""


class Run:
    """A planned network, ready to be called.

    ``left_out`` names the operations that are not known here. Plans of one network may share
    ``packed`` weights.
    """

    def __init__(self, plan: cf.FormatPlan, packed: Packed | None = None) -> None:
        self.plan = plan
        self._packed = {} if packed is None else packed
        self._room = np.zeros(plan.memory.nbytes + 64, np.uint8)
        self._base = -(-self._room.ctypes.data // 64) * 64
        self._constants: list[Array] = []
        self.left_out: list[str] = []
        self._steps = [self._step(step) for step in plan.memory.steps]

    def __call__(self) -> None:
        """Run everything."""
        for step in self._steps:
            step()

    @property
    def steps(self) -> list[Callable[[], None]]:
        """A function for each of ``plan.memory.steps``, which keeps this object alive."""
        return [partial(self._run_step, number) for number in range(len(self._steps))]

    def _run_step(self, number: int) -> None:
        self._steps[number]()

    def write(self, name: str, array: Array) -> None:
        """Put an input where it belongs."""
        given = np.ascontiguousarray(array, np.float32)
        plain = Desc.by_strides(given.shape, "f32")
        self._moved(plain, given.ctypes.data, *self._at(name, self.plan.formats[name]))()

    def read(self, name: str) -> Array:
        """An output."""
        value = self.plan.network.values[name]
        fmt = self.plan.network.fixed.get(name) or self.plan.formats[name]
        found = np.empty(value.dims, np.float32)
        plain = Desc.by_strides(found.shape, "f32")
        self._moved(*self._at(name, fmt), plain, found.ctypes.data)()
        return found

    def _at(self, name: str, fmt: FormatName) -> tuple[Desc, int]:
        """The descriptor and the address of a value. A part of a concatenation is one piece."""
        dims = self.plan.network.values[name].dims
        offsets = self.plan.memory.offsets
        place = next(p for p in offsets if p[0] == name and named(p[1]).key == fmt.key)
        view = self.plan.memory.views.get(place)
        inside = 4 * view.offset0 if view is not None else 0
        return _desc(dims, fmt), self._base + self.plan.memory.offsets[place] + inside

    def _step(self, step: cf.Node | object) -> Callable[[], None]:
        if not isinstance(step, cf.Node):
            value, src, dst = step.value, step.src, step.dst  # type: ignore[attr-defined]
            return self._moved(*self._at(value, src), *self._at(value, dst))
        choice = self.plan.choices[step.name]
        if is_free(step, choice):
            return _nothing
        if step.op not in OPERATIONS:
            self.left_out.append(step.name)
            return _nothing
        pairs = [(v, f or self.plan.formats[v.name])
                 for v, f in zip(step.inputs, choice.ins, strict=True)
                 if not v.is_constant]  # fmt: skip
        operation = operation_of(step, [f for _, f in pairs], choice.outs[0])
        read = [self._at(v.name, f) for v, f in pairs]
        first = MULTIPLE if step.op == "Concat" else SRC
        memories = {first + k: place for k, place in enumerate(read)}
        memories[DST] = self._at(step.outputs[0].name, choice.outs[0])
        if step.op in RESHAPES:
            memories = {k: (_flat(d), at) for k, (d, at) in memories.items()}
        if step.op == "Transpose":
            memories[SRC] = operation.wants(SRC), memories[SRC][1]
        return operation.bound({**memories, **self._weights(step, operation)})

    def _weights(self, node: cf.Node, operation: Operation) -> dict[int, tuple[Desc, int]]:
        """The constants of a node, packed as its operation wants them."""
        constants = [v for v in node.inputs if v.is_constant]
        if node.op == "BatchNormalization":
            scale, shift, mean, variance = (np.asarray(v.constant) for v in constants)
            whole = {WEIGHTS: np.stack([scale, shift]), MEAN: mean, VARIANCE: variance}
            return {k: self._kept(a) for k, a in whole.items()}
        if node.op not in ("Conv", "Gemm"):
            return {}
        found = {WEIGHTS: self._pack(node, constants[0], operation.wants(WEIGHTS))}
        if len(constants) > 1:
            found[BIAS] = self._kept(np.asarray(constants[1].constant))
        return found

    def _pack(self, node: cf.Node, value: cf.Value, desc: Desc) -> tuple[Desc, int]:
        key = value.name, bytes(desc.raw)
        if key not in self._packed:
            array = np.asarray(value.constant, np.float32)
            if node.op == "Gemm" and not node.attributes.get("transB"):
                array = array.T
            given = np.ascontiguousarray(array).reshape(desc.dims)
            room = np.zeros(desc.size() // 4 + 16, np.float32)
            at = -(-room.ctypes.data // 64) * 64
            self._moved(Desc.by_strides(desc.dims, "f32"), given.ctypes.data, desc, at)()
            self._packed[key] = desc, at, room
        return self._packed[key][:2]

    def _kept(self, array: Array) -> tuple[Desc, int]:
        own = np.ascontiguousarray(array, np.float32)
        self._constants.append(own)
        return Desc.by_strides(own.shape, "f32"), own.ctypes.data

    def _moved(self, src: Desc, at: int, dst: Desc, to: int) -> Callable[[], None]:
        return steps.reorder(src, dst).bound({SRC: (src, at), DST: (dst, to)})


def _nothing() -> None:
    pass
