"""The light models of the onnx package as networks: sizes, plans, HiGHS as judge."""

from __future__ import annotations

import time
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import clformats as cf
from clformats.solver import highs

onnx = pytest.importorskip("onnx", reason="pip install 'clformats[onnx]'")
make = onnx.helper
LIGHT = Path(onnx.__file__).parent / "backend/test/data/light"
FORMATS = ["nchw", "nhwc", "nChw8c", "nChw16c", "nChw4c", "nChw32c", "chwn", "cnhw"]
NODES = {
    "bvlc_alexnet": 15,
    "zfnet512": 15,
    "vgg19": 26,
    "squeezenet": 39,
    "inception_v1": 85,
    "inception_v2": 95,
    "resnet50": 74,
    "shufflenet": 124,
    "densenet121": 246,
}


def kernels(seed: int = 0) -> cf.Kernels:
    """Eight formats for all that computes, at random costs; views where they are legal."""
    rng = np.random.default_rng(seed)
    result = cf.Kernels(plain=True)

    @result.of("Conv")
    def _(node: cf.Node) -> list[cf.Choice]:
        rest = (None,) * (len(node.inputs) - 1)
        return [
            cf.Choice((f, *rest), (f,), float(rng.uniform(1e-4, 3e-4)), kernel=f) for f in FORMATS
        ]

    result.same("MaxPool", "AveragePool", "GlobalAveragePool", "LRN", "BatchNormalization", "Add",
                "Concat", "Relu", "Softmax", formats=FORMATS)  # fmt: skip
    result.view("Concat", formats=FORMATS)
    result.view("Reshape", "Transpose", formats=["nchw", "nhwc", "ab", "abcde", "abdc"])
    return result


def light(name: str) -> cf.Network:
    net = cf.Network.from_onnx(LIGHT / f"light_{name}.onnx")
    for value in (*net.inputs, *net.outputs):
        net.fix(value, "abcd"[: value.rank])
    return net


@pytest.mark.parametrize("name", NODES)
def test_a_light_model_is_planned(name: str) -> None:
    net = light(name)
    assert len(net.nodes) == NODES[name]
    plan = cf.propagate(net, kernels())
    assert plan.exact
    assert plan.memory.nbytes <= 1.15 * plan.memory.lower_bound
    rows = plan.compare().rows
    assert rows[0].seconds == plan.seconds
    assert {"greedy any", "fastest per layer", "rules", "uniform nhwc"} <= {r.name for r in rows}


def test_the_nine_light_models_are_planned_in_seconds() -> None:
    """Under one second of a quiet core; here with room for a busy machine."""
    nets = [light(name) for name in NODES]
    start = time.process_time()
    for net in nets:
        assert cf.propagate(net, kernels()).exact
    assert time.process_time() - start < 6


@pytest.mark.slow
@pytest.mark.parametrize("name", NODES)
def test_highs_finds_the_same_optimum_for_a_light_model(name: str) -> None:
    pytest.importorskip("highspy", reason="pip install 'clformats[solve]'")
    plan = cf.propagate(light(name), kernels())
    judged = highs.solve(plan.built.problem)
    assert judged is not None
    assert judged.exact
    assert judged.cost == pytest.approx(plan.seconds, rel=1e-9)
    assert plan.bound == plan.seconds


@pytest.mark.parametrize("name", ["squeezenet", "resnet50", "inception_v1"])
def test_pictures_and_files_tell_the_plan(name: str, tmp_path: Path) -> None:
    plan = cf.propagate(light(name), kernels())
    picture = plan.svg()
    assert picture.count("<rect") >= len(plan.choices)
    assert plan.to_dot().count("->") >= len(plan.choices) - 1
    assert f'"exact": {str(plan.exact).lower()}' in plan.to_json()
    plan.to_onnx(tmp_path / "planned.onnx")
    written = onnx.load(str(tmp_path / "planned.onnx"))
    moved = [n for n in written.graph.node if n.op_type == "Reorder"]
    assert len(moved) == len(plan.reorders) > 0
    made = {v.name for v in written.graph.input}
    for node in written.graph.node:
        assert set(node.input) <= made, node.name
        made |= set(node.output)


def test_why_tells_what_each_choice_would_cost() -> None:
    net = light("squeezenet")
    table = kernels()
    ready = table.apply(net)
    costs = cf.Costs(bandwidth=10e9)  # chains gain nothing, whatever formats there are
    plan = cf.propagate(ready, reorder_cost=costs)
    name = next(n for n in plan.choices if net.nodes[n].op == "Conv")
    found = plan.why(name)
    assert len(found) == 8
    assert found[0].more == pytest.approx(0, abs=1e-12)
    assert found[0].choice == plan.choices[name]
    for other in found[::3]:
        held = cf.propagate(ready.with_choices({name: [other.choice]}), reorder_cost=costs)
        assert held.seconds - plan.seconds == pytest.approx(other.more, abs=1e-9)


# --- the importer ---------------------------------------------------------------------------------


def model(nodes: list[Any], inputs: list[Any], outputs: list[Any], weights: dict[str, Any]) -> Any:
    tensors = [onnx.numpy_helper.from_array(a, n) for n, a in weights.items()]
    graph = make.make_graph(nodes, "g", inputs, outputs, tensors)
    return make.make_model(graph, opset_imports=[make.make_opsetid("", 17)], ir_version=8)


def info(name: str, dims: list[Any]) -> Any:
    return make.make_tensor_value_info(name, 1, dims)


def test_normalisation_and_activation_go_into_the_convolution() -> None:
    rng = np.random.default_rng(1)
    weights = {
        "w": rng.standard_normal((5, 3, 3, 3)).astype(np.float32),
        **{n: rng.uniform(0.5, 2, 5).astype(np.float32) for n in ("g", "b", "m", "v")},
    }
    nodes = [
        make.make_node("Conv", ["x", "w"], ["y"], "conv", pads=[1, 1, 1, 1]),
        make.make_node("BatchNormalization", ["y", "g", "b", "m", "v"], ["z"], "norm"),
        make.make_node("Relu", ["z"], ["r"], "relu"),
    ]
    net = cf.Network.from_onnx(
        model(nodes, [info("x", [1, 3, 6, 7])], [info("r", [1, 5, 6, 7])], weights)
    )
    (node,) = net.nodes.values()
    assert node.attributes["activation"] == "Relu"
    assert [v.name for v in node.outputs] == ["r"]
    x, w, b = (np.asarray(v.constant) for v in (node.inputs[0], *node.inputs[1:]))
    del x
    image = rng.standard_normal((1, 3, 6, 7)).astype(np.float32)
    own = convolved(image, w) + b[:, None, None]
    k = [weights[n][:, None, None] for n in ("g", "b", "m", "v")]
    wanted = (convolved(image, weights["w"]) - k[2]) / np.sqrt(k[3] + 1e-5) * k[0] + k[1]
    assert np.allclose(own, wanted, atol=1e-4)


def convolved(image: np.ndarray, filters: np.ndarray) -> np.ndarray:
    padded = np.pad(image, [(0, 0), (0, 0), (1, 1), (1, 1)])
    windows = np.lib.stride_tricks.sliding_window_view(padded, (3, 3), axis=(2, 3))
    result: np.ndarray = np.einsum("bihwyx,oiyx->bohw", windows, filters)
    return result


def test_a_value_that_others_read_is_not_folded_away() -> None:
    nodes = [
        make.make_node("Conv", ["x", "w"], ["y"], "conv"),
        make.make_node("Relu", ["y"], ["r"], "relu"),
        make.make_node("Add", ["y", "r"], ["z"], "add"),
    ]
    weights = {"w": np.ones((4, 4, 1, 1), np.float32)}
    net = cf.Network.from_onnx(
        model(nodes, [info("x", [1, 4, 6, 7])], [info("z", [1, 4, 6, 7])], weights)
    )
    assert list(net.nodes) == ["conv", "relu", "add"]


@pytest.mark.parametrize("given", ["w", "b"])
def test_a_factor_after_weights_that_are_no_constants_stays_a_node(given: str) -> None:
    nodes = [
        make.make_node("Conv", ["x", "w", "b"], ["y"], "conv"),
        make.make_node("Mul", ["y", "k"], ["z"], "mul"),
    ]
    ones = {"w": (5, 3, 1, 1), "b": (5,), "k": (5, 1, 1)}
    weights = {n: np.ones(dims, np.float32) for n, dims in ones.items() if n != given}
    inputs = [info("x", [1, 3, 6, 7]), info(given, list(ones[given]))]
    net = cf.Network.from_onnx(model(nodes, inputs, [info("z", [1, 5, 6, 7])], weights))
    assert list(net.nodes) == ["conv", "mul"]


@pytest.mark.parametrize(("window", "factor", "result"), [
    ([1, 1], (5, 1, 1), [1, 5, 6, 7]),  # of a convolution with one channel
    ([1], (4, 1, 1), [4, 1, 6]),  # of the batch, not of channels
])  # fmt: skip
def test_a_factor_for_other_than_the_channels_stays_a_node(
    window: list[int], factor: tuple[int, ...], result: list[int]
) -> None:
    nodes = [
        make.make_node("Conv", ["x", "w"], ["y"], "conv"),
        make.make_node("Mul", ["y", "k"], ["z"], "mul"),
    ]
    dims = {"w": (1, 3, *window), "k": factor}
    weights = {n: np.ones(size, np.float32) for n, size in dims.items()}
    image = [1, 3, *result[2:]]
    net = cf.Network.from_onnx(model(nodes, [info("x", image)], [info("z", result)], weights))
    assert list(net.nodes) == ["conv", "mul"]


NORM = ["g", "b", "m", "v"]


@pytest.mark.parametrize(("dims", "training"), [([8, 8, 5], 0), ([1, 8, 5], 0), ([1, 8, 5, 6], 1)])
def test_a_normalisation_takes_factors_of_its_own_channels_only(
    dims: list[int], training: int
) -> None:
    """Of three dims the factors (8, 1, 1) are of the first; in training they are the batch's."""
    nodes = [
        make.make_node(
            "BatchNormalization",
            ["x", *NORM],
            ["a", "mean", "var"][: 1 + 2 * training],
            "norm",
            training_mode=training,
        ),
        make.make_node("Mul", ["a", "k"], ["y"], "mul"),
    ]
    weights = {n: np.ones(8, np.float32) for n in NORM} | {"k": np.ones((8, 1, 1), np.float32)}
    result = [8, *dims[1:]] if len(dims) == 3 else dims
    net = cf.Network.from_onnx(model(nodes, [info("x", dims)], [info("y", result)], weights))
    assert list(net.nodes) == ["norm", "mul"]


def test_folded_weights_keep_their_type() -> None:
    nodes = [
        make.make_node("Conv", ["x", "w"], ["a"], "conv"),
        make.make_node("BatchNormalization", ["a", *NORM], ["y"], "norm"),
    ]
    weights = {"w": np.ones((8, 4, 1, 1), np.float16)} | {n: np.ones(8, np.float16) for n in NORM}
    ends = [make.make_tensor_value_info(n, 10, [1, c, 5, 6]) for n, c in (("x", 4), ("y", 8))]
    net = cf.Network.from_onnx(model(nodes, ends[:1], ends[1:], weights))
    assert list(net.nodes) == ["conv"]
    assert {str(v.dtype) for v in net.values.values()} == {"f16"}


def test_what_inner_graphs_read_is_an_edge() -> None:
    """So that it is neither folded away nor overwritten before."""
    dims = [1, 4, 6, 7]
    branches = {
        name: make.make_graph(
            [make.make_node("Add", ["c", "c"], [out])], name, [], [info(out, dims)]
        )
        for name, out in (("then_branch", "t"), ("else_branch", "e"))
    }
    nodes = [
        make.make_node("Conv", ["x", "w"], ["c"], "conv"),
        make.make_node("Relu", ["c"], ["r"], "relu"),
        make.make_node("If", ["k"], ["i"], "if", **branches),
        make.make_node("Add", ["r", "i"], ["y"], "add"),
    ]
    inputs = [info("x", dims), make.make_tensor_value_info("k", 9, [1])]
    weights = {"w": np.ones((4, 4, 1, 1), np.float32)}
    net = cf.Network.from_onnx(model(nodes, inputs, [info("y", dims)], weights))
    assert list(net.nodes) == ["conv", "relu", "if", "add"]
    assert [v.name for v in net.nodes["if"].inputs] == ["k", "c"]


def test_nodes_of_one_name_are_all_there() -> None:
    names = ["c", "c", "c#2", "c"]
    values = ["x", "a", "b", "d", "y"]
    nodes = [
        make.make_node("Sin", [source], [target], name)
        for name, source, target in zip(names, values, values[1:], strict=False)
    ]
    ends = [info(n, [1, 4, 6, 7]) for n in ("x", "y")]
    net = cf.Network.from_onnx(model(nodes, ends[:1], ends[1:], {}))
    assert len(net.nodes) == 4
    assert [v.name for v in net.inputs] == ["x"]


def test_slices_that_begin_where_only_an_execution_knows() -> None:
    integers = {"starts": [2], "ends": [4], "axes": [1], "steps": [1]}

    def sliced(wrong: dict[str, Any], given: str = "") -> cf.Network:
        weights = {n: np.array(v, np.int64) for n, v in (integers | wrong).items() if n != given}
        more = [make.make_tensor_value_info(given, 7, [1])] if given else []
        node = make.make_node("Slice", ["x", *integers], ["y"], "s")
        ends = [info(n, [1, c, 6, 6]) for n, c in (("x", 8), ("y", 2))]
        return cf.Network.from_onnx(model([node], [ends[0], *more], ends[1:], weights))

    assert sliced({}).nodes["s"].attributes["starts"] == [0, 2, 0, 0]
    assert "starts" not in sliced({}, "axes").nodes["s"].attributes


def test_an_unknown_operation_is_a_node_and_never_a_refusal() -> None:
    odd = make.make_node("Mystery", ["x"], ["y"], "odd", domain="my.own")
    built = model([odd], [info("x", [1, 4, 6, 7])], [info("y", [1, 4, 6, 7])], {})
    built.opset_import.append(make.make_opsetid("my.own", 1))
    net = cf.Network.from_onnx(built)
    plan = cf.propagate(net, cf.Kernels(plain=True))
    assert plan.formats["y"] == "abcd"


def test_a_dynamic_batch_is_given() -> None:
    relu = make.make_node("Relu", ["x"], ["y"], "relu")
    built = model([relu], [info("x", ["N", 4, 6, 7])], [info("y", ["N", 4, 6, 7])], {})
    with pytest.raises(cf.InvalidNetwork, match="input 'x': dimension 0 is 'N': give batch"):
        cf.Network.from_onnx(built)
    assert cf.Network.from_onnx(built, batch=3).values["y"].dims == (3, 4, 6, 7)


def test_bad_models_are_refused(tmp_path: Path) -> None:
    whole = (LIGHT / "light_squeezenet.onnx").read_bytes()
    file = tmp_path / "cut.onnx"
    for size in (0, 100, len(whole) // 2):
        file.write_bytes(whole[:size])
        with pytest.raises(cf.InvalidNetwork, match=r"cut\.onnx"):
            cf.Network.from_onnx(file)
    with pytest.raises(cf.InvalidNetwork, match="cannot read"):
        cf.Network.from_onnx(tmp_path / "none.onnx")
    odd = make.make_node("Mystery", ["x"], ["y"], "odd", domain="my.own")
    tail = make.make_node("Relu", ["y"], ["z"], "relu")
    built = model([odd, tail], [info("x", [1, 4, 6, 7])], [info("z", [1, 4, 6, 7])], {})
    built.opset_import.append(make.make_opsetid("my.own", 1))
    with pytest.raises(cf.InvalidNetwork, match="value 'y' has no shape"):
        cf.Network.from_onnx(built)
