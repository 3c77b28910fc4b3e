"""Views are legal exactly where descriptors allow them, and memory that is shared stays right."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import pytest

import clformats as cf
from clformats.networks.views import refusal, surroundings
from tests.networks_support import random_network


def concat(channels: tuple[int, ...], fmt: str, axis: int = 1) -> cf.Network:
    """Two convolutions into a concatenation, in place or as a copy that costs 5."""
    net = cf.Network()
    parts = []
    for k, n in enumerate(channels):
        x, y = net.value(f"x{k}", (1, n, 5, 7)), net.value(f"y{k}", (1, n, 5, 7))
        net.node(f"conv{k}", [x], [y], "Conv", [cf.Choice((fmt,), (fmt,), 1.0)])
        parts.append(y)
    out = net.value("out", (1, sum(channels), 5, 7))
    ins = (fmt,) * len(channels)
    copy = cf.Choice(ins, (fmt,), 5.0)
    view = cf.Choice(ins, (fmt,), 0.0, views=dict.fromkeys(range(len(channels)), 0))
    net.node("concat", parts, [out], "Concat", [copy, view], axis=axis)
    return net


@pytest.mark.parametrize(
    ("channels", "fmt", "legal"),
    [
        ((3, 5), "nchw", True),
        ((3, 5), "nhwc", True),
        ((16, 5), "nChw16c", True),
        ((5, 16), "nChw16c", False),
        ((16, 16), "nChw8c", True),
        ((12, 16), "nChw8c", False),
        ((16, 16), "my own", False),
    ],
)
def test_parts_of_a_concatenation(channels: tuple[int, ...], fmt: str, legal: bool) -> None:
    plan = cf.propagate(concat(channels, fmt), reorder_cost=lambda *_: 9.0)
    assert bool(plan.choices["concat"].views) == legal
    assert plan.seconds == 2 + 5 * (not legal)
    if legal:
        whole = plan.network.values["out"].desc(fmt)
        at = 0
        for k, n in enumerate(channels):
            part = plan.memory.views[f"y{k}", fmt]
            assert part == whole.submemory((1, n, 5, 7), (0, at, 0, 0))
            at += n


def reshaped(fmt: str, dims: tuple[int, ...], out: str, op: str = "Reshape",
             **attributes: object) -> cf.FormatPlan:  # fmt: skip
    net = cf.Network()
    x, y, z = net.value("x", (2, 8, 3, 5)), net.value("y", (2, 8, 3, 5)), net.value("z", dims)
    net.node("conv", [x], [y], "Conv", [cf.Choice((fmt,), (fmt,), 1.0)])
    choices = [
        cf.Choice((fmt,), (out,), 5.0),
        cf.Choice((fmt,), (out,), 0.0, views={0: 0}),
    ]
    net.node("shape", [y], [z], op, choices, **attributes)
    return cf.propagate(net, reorder_cost=lambda *_: 9.0)


def test_reshapes_and_transpositions_are_views_where_the_digits_allow() -> None:
    assert reshaped("nchw", (2, 120), "ab").seconds == 1
    assert reshaped("nhwc", (2, 120), "ab").seconds == 6
    assert reshaped("nChw8c", (2, 2, 4, 15), "nchw").seconds == 6
    assert reshaped("nchw", (2, 2, 4, 15), "nchw").seconds == 1
    turned = (2, 3, 5, 8)
    assert reshaped("nhwc", turned, "abcd", "Transpose", perm=[0, 2, 3, 1]).seconds == 1
    assert reshaped("nchw", turned, "abcd", "Transpose", perm=[0, 2, 3, 1]).seconds == 6
    assert reshaped("nchw", turned, "adbc", "Transpose", perm=[0, 2, 3, 1]).seconds == 1


def test_an_overwritten_value_has_no_other_reader() -> None:
    def plan(*, second: bool) -> cf.FormatPlan:
        net = cf.Network()
        x, y, z, w = (net.value(n, (1, 8, 5, 7)) for n in "xyzw")
        net.node("conv", [x], [y], "Conv", [cf.Choice(("nchw",), ("nchw",), 1.0)])
        both = [cf.Choice(("nchw",), ("nchw",), c, views=v) for c, v in ((5.0, {}), (0.0, {0: 0}))]
        net.node("relu", [y], [z], "Relu", both)
        if second:
            net.node("other", [y], [w], "Conv", [cf.Choice(("nchw",), ("nchw",), 1.0)])
        return cf.propagate(net, reorder_cost=lambda *_: 9.0)

    assert plan(second=False).choices["relu"].views == {0: 0}
    assert plan(second=True).choices["relu"].views == {}


def test_what_a_part_is_written_over_is_part_too() -> None:
    net = cf.Network()
    x, y, z, other = (net.value(n, (1, 8, 5, 7)) for n in ("x", "y", "z", "other"))
    whole = net.value("whole", (1, 16, 5, 7))
    net.node("conv", [x], [y], "Conv", [cf.Choice(("nchw",), ("nchw",), 1.0)])
    net.node("conv2", [x], [other], "Conv", [cf.Choice(("nchw",), ("nchw",), 1.0)])
    net.node("relu", [y], [z], "Relu", [cf.Choice(("nchw",), ("nchw",), 1.0, views={0: 0})])
    parts = cf.Choice(("nchw", "nchw"), ("nchw",), 0.0, views={0: 0, 1: 0})
    net.node("concat", [other, z], [whole], "Concat", [parts], axis=1)
    memory = cf.propagate(net).memory
    assert memory.views["y", "nchw"] == memory.views["z", "nchw"] != z.desc("nchw")
    assert memory.offsets["y", "nchw"] == memory.offsets["whole", "nchw"]


def test_memory_is_part_of_one_concatenation_only() -> None:
    net = concat((16, 16), "nchw")
    out = net.value("out2", (1, 32, 5, 7))
    choices = net.nodes["concat"].choices
    net.node("concat2", ["y1", "y0"], [out], "Concat", choices, axis=1)
    plan = cf.propagate(net, reorder_cost=lambda *_: 9.0)
    assert plan.seconds == 2 + 5
    rows = {row.name: row.seconds for row in plan.compare().rows}
    assert rows["greedy any"] == rows["fastest per layer"] == plan.seconds


def test_baselines_view_a_reordered_value_too() -> None:
    """Its memory is another one, which may be part of another concatenation."""
    net = concat((16, 16), "nchw")
    out = net.value("out2", (1, 32, 5, 7))
    views = [(50.0, {}), (0.0, {0: 0, 1: 0})]
    choices = [cf.Choice(("nhwc", "nhwc"), ("nhwc",), cost, views=v) for cost, v in views]
    net.node("concat2", ["y0", "y1"], [out], "Concat", choices, axis=1)
    plan = cf.propagate(net, reorder_cost=lambda *_: 1.0)
    rows = {row.name: row.seconds for row in plan.compare().rows}
    assert plan.seconds == rows["fastest per layer"] == 2 + 2


# --- the arena ------------------------------------------------------------------------------------


SEEN: dict[str, Callable[[np.ndarray, cf.Node], np.ndarray]] = {
    "Identity": lambda x, node: x.reshape(node.outputs[0].dims),
    "Reshape": lambda x, node: x.reshape(node.outputs[0].dims),
    "Transpose": lambda x, node: x.transpose(node.attributes["perm"]),
    "Slice": lambda x, node: x[
        tuple(slice(at, at + n) for at, n in
              zip(node.attributes["starts"], node.outputs[0].dims, strict=True))
    ],
}  # fmt: skip
"""What a view shows of its input."""


class Poisoned:
    """Runs a plan on numbers: each node writes its own mark, and every reader must find it.

    Memory is an array of elements with the arena's offsets, poisoned at first. A view writes
    nothing; a part of a concatenation finds its mark in the whole.
    """

    def __init__(self, plan: cf.FormatPlan) -> None:
        self.plan = plan
        self.arena = np.full(plan.memory.nbytes, -1, np.int64)
        self.marks: dict[str, np.ndarray] = {}
        self.rng = np.random.default_rng(0)

    def where(self, value: str, fmt: str) -> np.ndarray:
        desc = self.plan.memory.views.get((value, fmt)) or self.plan.network.values[value].desc(fmt)
        return self.plan.memory.offsets[value, fmt] + 4 * desc.offsets()

    def write(self, value: str, fmt: str) -> None:
        self.arena[self.where(value, fmt)] = self.marks[value]

    def check(self, value: str, fmt: str) -> None:
        assert (self.arena[self.where(value, fmt)] == self.marks[value]).all(), (value, fmt)

    def run(self) -> None:
        for value in self.plan.network.inputs:
            self.marks[value.name] = self.rng.integers(0, 2**40, value.dims)
            self.write(value.name, self.plan.formats[value.name])
        for step in self.plan.memory.steps:
            if isinstance(step, cf.Node):
                self.node(step)
            else:
                self.check(step.value, step.src)
                self.write(step.value, step.dst)
        for value in self.plan.network.outputs:
            fmt = self.plan.network.fixed.get(value.name, self.plan.formats[value.name])
            self.check(value.name, fmt)

    def node(self, node: cf.Node) -> None:
        choice = self.plan.choices[node.name]
        for value, fmt in zip(node.inputs, choice.ins, strict=True):
            self.check(value.name, fmt or self.plan.formats[value.name])
        for o, value in enumerate(node.outputs):
            shared = [i for i, other in choice.shared if other == o]
            if shared and node.op == "Concat":
                parts = [self.marks[v.name] for v in node.inputs]
                self.marks[value.name] = np.concatenate(parts, 1)
            elif shared and node.op in SEEN:
                self.marks[value.name] = SEEN[node.op](self.marks[node.inputs[0].name], node)
            else:
                self.marks[value.name] = self.rng.integers(0, 2**40, value.dims)
                self.write(value.name, choice.outs[o])
            self.check(value.name, choice.outs[o])


def test_no_two_live_tensors_overlap() -> None:
    """With poison, on random networks of formats that have a layout."""
    shared = ran = 0
    for seed in range(200):
        net, price = random_network(seed)
        names = {f for n in net.nodes.values() for c in n.choices for f in (*c.ins, *c.outs)}
        if "my_own" in {*names, *net.fixed.values()}:
            continue
        try:
            plan = cf.propagate(net, reorder_cost=price)
        except cf.InvalidNetwork:
            continue
        Poisoned(plan).run()
        assert plan.memory.nbytes >= plan.memory.lower_bound
        ran += 1
        shared += any(c.views for c in plan.choices.values())
    assert ran > 50
    assert shared > 15


@pytest.mark.parametrize("batch", [1, 2])
@pytest.mark.parametrize("part", [False, True], ids=["", "part"])
@pytest.mark.parametrize(
    "ops",
    ["Slice Reshape", "Slice Transpose", "Slice Transpose Reshape", "Slice Slice", "Transpose",
     "Transpose Reshape", "Reshape", "Transpose Transpose Slice",
     "Slice Transpose Transpose Reshape"],
)  # fmt: skip
def test_views_of_views_lie_where_their_input_lies(ops: str, batch: int, *, part: bool) -> None:
    """Of a region, or of a part of a concatenation, too: each view is of what is there."""
    net = cf.Network()
    before = net.value("relu", (batch, 8, 3, 5))
    plain = [cf.Choice(("abcd",), ("abcd",), 1.0)]
    net.node("relu", [net.value("x", before.dims)], [before], "Relu", plain)
    if part:
        net.node("conv", ["x"], [net.value("other", before.dims)], "Conv", plain)
        parts = [cf.Choice(("abcd",) * 2, ("abcd",), 0.0, views={0: 0, 1: 0})]
        whole = net.value("whole", (batch, 16, 3, 5))
        net.node("concat", ["other", before], [whole], "Concat", parts, axis=1)
    for k, op in enumerate(ops.split()):
        before = seen(net, f"v{k}", op, before)
    last = "abcd"[: before.rank]
    net.node("last", [before], [net.value("y", before.dims)], "Conv",
             [cf.Choice((last,), (last,), 1.0)])  # fmt: skip
    Poisoned(cf.propagate(net, reorder_cost=lambda *_: 0.5)).run()


def seen(net: cf.Network, name: str, op: str, before: cf.Value) -> cf.Value:
    """A value that may be a view of another one: its second half, turned, or in another shape."""
    sizes, given = list(before.dims), {}
    if op == "Slice":
        sizes[1] //= 2
        given = {"starts": [0, sizes[1], *[0] * (before.rank - 2)]}
    elif op == "Transpose":
        given = {"perm": [1, 0, *range(2, before.rank)]}
        sizes[:2] = sizes[1::-1]
    else:
        sizes = [sizes[0], sizes[1] * 3, 5]
    ways = [("abcd"[: before.rank], "abcd"[: len(sizes)])]
    if op == "Transpose":
        turned = "ba" + ways[0][0][2:]
        ways = [(ways[0][0], turned), (turned, ways[0][0])]
    choices = [cf.Choice((a,), (b,), 2.0 * (not v), views=v) for a, b in ways for v in ({}, {0: 0})]
    after = net.value(name, sizes)
    net.node(f"to {name}", [before], [after], op, choices, **given)
    return after


def test_refusals_say_why() -> None:
    net = concat((5, 16), "nChw16c")
    node = net.nodes["concat"]
    reason = refusal(net, node, node.choices[1], surroundings(net))
    assert "no multiple of its block 16" in reason
