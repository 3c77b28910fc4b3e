"""Plans that run on a device: one arena, nothing outside it, outputs as in numpy."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pyopencl as cl
import pytest

import clformats as cf
from clformats.networks import race
from clformats.networks.costs import held
from tests.networks_support import example
from tests.tiers import tiered


def image() -> Any:
    return np.random.default_rng(1).standard_normal((1, 3, 30, 34), np.float32)


@pytest.mark.parametrize("way", tiered(range(4), [0, 2]))
def test_every_choice_runs_from_a_poisoned_arena(way: int, stream: cf.Stream) -> None:
    net = example.small()
    net.fix("image", "bfyx")
    plan = cf.propagate(held(example.kernels.apply(net), way), reorder_cost=lambda *_: 0.0)
    run = plan.schedule(stream.engine, example.launch)
    cl.enqueue_fill_buffer(stream.queue, run.arena, np.uint8(0xFF), 0, run.arena.size)  # NaN
    stream.wait()
    (found,) = (m.numpy() for m in run(stream, image=image()).values())
    wanted = example.in_numpy(net, image())
    assert np.abs(found - wanted).max() < 1e-5 * np.abs(wanted).max()


def test_padding_in_the_arena_is_zero(stream: cf.Stream) -> None:
    net = cf.Network()
    x, y = net.value("x", (1, 3, 5, 7)), net.value("y", (1, 3, 5, 7))
    net.node("copy", [x], [y], "Add", [cf.Choice(("b_fs_yx_fsv16",), ("b_fs_yx_fsv16",), 1.0)])
    net.fix("x", "b_fs_yx_fsv16")

    def launch(at: cf.Stream, _: cf.Node, __: cf.Choice, src: cf.Memory, dst: cf.Memory) -> Any:
        return cf.Reorder(src.desc, dst.desc, at.engine)(at, src, dst)

    plan = cf.propagate(net)
    run = plan.schedule(stream.engine, launch)
    cl.enqueue_fill_buffer(stream.queue, run.arena, np.uint8(0xFF), 0, run.arena.size)
    stream.wait()
    given = np.random.default_rng(0).standard_normal((1, 3, 5, 7), np.float32)
    memory = run(stream, x=given)["y"]
    assert np.array_equal(memory.numpy(), given)
    with memory.map("r") as flat:
        wanted = cf.pack(given, cf.MemoryDesc(given.shape, "f32", "b_fs_yx_fsv16"))
        assert np.array_equal(flat[memory.desc.offset0 :][: len(wanted)], wanted) or np.array_equal(
            flat[: len(wanted)], wanted
        )


def test_a_workspace_of_a_node_that_is_named_as_what_it_writes(stream: cf.Stream) -> None:
    net = cf.Network()
    x, y = net.value("x", (2, 3)), net.value("y", (2, 3))
    net.node("y", [x], [y], "Add", [cf.Choice(("ab",), ("ab",), 1.0, workspace=64)])

    def launch(at: cf.Stream, _: cf.Node, __: cf.Choice, src: cf.Memory, dst: cf.Memory) -> Any:
        return cf.Reorder(src.desc, dst.desc, at.engine)(at, src, dst)

    given = np.random.default_rng(0).standard_normal((2, 3), np.float32)
    plan = cf.propagate(net)
    assert ("y", "(workspace)") in plan.memory.offsets
    memory = plan.schedule(stream.engine, launch)(stream, x=given)["y"]
    assert np.array_equal(memory.numpy(), given)


def test_formats_are_found_by_what_they_mean(stream: cf.Stream, tmp_path: Path) -> None:
    """Two nodes name one format differently: a reorder, and a constant, serve both."""
    net = cf.Network()
    dims = (1, 8, 5, 7)
    x, y, z = (net.value(n, dims) for n in "xyz")
    array = np.arange(280, dtype=np.float32).reshape(dims)
    w = net.value("w", dims, constant=array)
    for name, result, ins in (("a", y, ("nchw", "nhwc")), ("b", z, ("bfyx", "byxf"))):
        net.node(name, [x, w], [result], "Add", [cf.Choice(ins, ("nchw",), 1.0)])
    net.fix(x, "nhwc")
    plan = cf.propagate(net)
    assert len(plan.reorders) == len(plan.pack) == 1

    def launch(at: cf.Stream, _: cf.Node, __: cf.Choice, *memories: cf.Memory) -> Any:
        return cf.Reorder(memories[1].desc, memories[2].desc, at.engine)(at, *memories[1:])

    found = plan.schedule(stream.engine, launch)(stream, x=array)
    assert all(np.array_equal(found[name].numpy(), array) for name in "yz")
    onnx = pytest.importorskip("onnx", reason="pip install 'clformats[onnx]'")
    plan.to_onnx(tmp_path / "planned.onnx")
    nodes = {n.op_type + n.name: n for n in onnx.load(str(tmp_path / "planned.onnx")).graph.node}
    assert nodes["Adda"].input[:] == nodes["Addb"].input[:] == ["x@nchw", "w"]


def test_bad_inputs_are_refused(stream: cf.Stream) -> None:
    net = example.small()
    plan = cf.propagate(held(example.kernels.apply(net), 0))
    run = plan.schedule(stream.engine, example.launch)
    with pytest.raises(cf.InvalidNetwork, match="expected image"):
        run(stream, picture=image())
    with pytest.raises(cf.InvalidNetwork, match="input 'image': got the shape"):
        run(stream, image=image()[:, :2])


def test_reorders_are_measured(stream: cf.Stream) -> None:
    net = cf.Network()
    x, y = net.value("x", (1, 17, 9, 8)), net.value("y", (1, 17, 9, 8))
    both = [cf.Choice((f,), (f,), 1e-6) for f in ("bfyx", "b_fs_yx_fsv16")]
    net.node("relu", [x], [y], "Relu", both)
    costs = cf.Costs()
    assert costs.measure(net, stream.engine, repeats=3) == 2  # both values have one shape
    assert costs.measure(net, stream.engine, repeats=3) == 0
    cost = costs.reorder(x, "nchw", "nChw16c")
    assert cost.source == "measured"
    assert 0 < cost.low <= cost.seconds <= cost.high


def test_costs_in_place_and_a_race(stream: cf.Stream) -> None:
    net = example.small()
    net.fix("image", "bfyx")
    costs = cf.Costs()
    ready = example.kernels.apply(net)
    count = costs.measure_in_place(ready, stream, example.launch, {"image": image()}, rounds=2)
    assert 6 < count <= 9  # two formats, four choices, and the best plans so far
    plan = cf.propagate(ready, reorder_cost=costs)
    assert {plan.cost(n).source for n in plan.choices} <= {"measured in place", "given"}
    run = plan.schedule(stream.engine, example.launch)
    same = plan.schedule(stream.engine, example.launch)
    found = race(run, same, stream, {"image": image()}, rounds=6)
    assert found.low <= found.ratio <= found.high
