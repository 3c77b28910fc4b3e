"""Plan a network, and run it in the planned formats with kernels written once.

`plan_network.cl` has a handful of kernels over index sources. Here they are timed in place, in
plans that try every choice; the network is planned with these times, and runs from one arena. A
race against simpler plans tells which one to keep:

    python examples/plan_network.py                      a small one, compared with numpy
    python examples/plan_network.py squeezenet           the light model of the package onnx, with
                                                         random weights, compared with onnxruntime
    python examples/plan_network.py squeezenet plan.svg  the same, and a picture
"""

from __future__ import annotations

import sys
from collections.abc import Mapping, Sequence
from functools import partial
from importlib import import_module
from pathlib import Path
from time import perf_counter
from typing import Any, NamedTuple

import numpy as np

import clformats as cf

KERNELS = Path(__file__).with_name("plan_network.cl").read_text(encoding="ascii")
FORMATS = {"bfyx": "oiyx", "b_fs_yx_fsv8": "os_iyx_osv8"}  # of data, and of weights with it


# --- what the kernels can do ----------------------------------------------------------------------

kernels = cf.Kernels()
kernels.same("MaxPool", "AveragePool", "GlobalAveragePool", "Add", "LRN", "BatchNormalization",
             "Concat", formats=[*FORMATS])  # fmt: skip
kernels.same("Softmax", formats=[*FORMATS, "ab"])
kernels.view("Concat", formats=[*FORMATS])
kernels.view("Reshape", formats=["bfyx", "ab"])


@kernels.of("Conv")
def convolutions(_: cf.Node) -> list[cf.Choice]:
    """Any format in, any out: the kernel asks index sources."""
    return [
        cf.Choice((src, FORMATS[dst], "a"), (dst,), kernel="convolution")
        for src in FORMATS
        for dst in FORMATS
    ]


@kernels.of("Gemm")
def matrix_products(_: cf.Node) -> list[cf.Choice]:
    """Plain vectors and a plain matrix."""
    return [cf.Choice(("ab", "ab", "a"), ("ab",), kernel="gemm")]


# --- launching ------------------------------------------------------------------------------------

OWN = {"Conv": "convolution", "Add": "add", "Softmax": "softmax", "Gemm": "gemm", "LRN": "lrn",
       "BatchNormalization": "normalise", "Concat": "place"}  # fmt: skip
NAMES = {
    "convolution": ["SRC", "WEIGHTS", "", "DST"],
    "gemm": ["SRC", "WEIGHTS", "", "DST"],
    "add": ["SRC", "SRC2", "DST"],
    "normalise": ["SRC", "", "", "", "", "DST"],
}


class Setting(NamedTuple):
    """What `tune_network.py` tunes: pixels to a work-item, and work-items to a work-group."""

    width: int = 1
    group: int = 0  # as OpenCL likes


tuned: dict[str, Setting] = {}


def problem(node: cf.Node) -> str:
    """What makes two convolutions one to the tuner."""
    dims = [v.dims for v in (*node.inputs[:2], *node.outputs)]
    return str((dims, node.attributes.get("strides"), node.attributes.get("group")))


def defines(node: cf.Node, setting: Setting, first: int = 0) -> dict[str, object]:
    """What the kernel of a node needs to know beside formats."""
    a, dims = node.attributes, node.inputs[0].dims
    groups, outputs = a.get("group", 1), node.outputs[0].dims[1]
    window = a.get("kernel_shape", dims[2:])
    return {
        **({"RELU": ""} if a.get("activation") == "Relu" else {}),
        **dict(zip(("WINDOW_Y", "WINDOW_X"), window, strict=False)),
        "STRIDE": a.get("strides", [1])[0],
        "BORDER": a.get("pads", [0])[0],
        "MEAN": int("Average" in node.op),
        "INNER": dims[1],
        "AT(index, b, f)": f"index(b, f{', 0' * (len(dims) - 2)})",
        "WIDTH": setting.width,
        "PER_GROUP": outputs // groups,
        "OF_ONE_GROUP": int(groups == 1 or outputs // groups % 8 == 0),
        "NEAR": a.get("size", 1),
        "ALPHA": f"{a.get('alpha', 1e-4)}f",
        "BETA": f"{a.get('beta', 0.75)}f",
        "BIAS": f"{a.get('bias', 1.0)}f",
        "EPSILON": f"{a.get('epsilon', 1e-5)}f",
        "FIRST": first,
    }


def source(
    node: cf.Node, descs: Sequence[cf.MemoryDesc], setting: Setting, first: int = 0
) -> tuple[str, str]:
    """The name of a node's kernel, and its OpenCL C."""
    name = OWN.get(node.op, "pool")
    lines = [f"#define {name.upper()}"]
    lines += [f"#define {n} {value}" for n, value in defines(node, setting, first).items()]
    for prefix, desc in zip(NAMES.get(name, ["SRC", "DST"]), descs, strict=True):
        if prefix:
            vector = {"WEIGHTS": "o8", "DST": "f8"}.get(prefix, "") if name == "convolution" else ""
            lines.append(cf.index_source(desc, prefix, vector=vector))
    return name, "\n".join([*lines, KERNELS])


def threads(name: str, desc: cf.MemoryDesc, setting: Setting) -> tuple[int, ...]:
    """The work-items of a kernel that goes through a tensor."""
    batch, channels, *image = desc.dims
    if name in ("softmax", "gemm"):
        return (batch,) if name == "softmax" else (channels, batch)
    if name != "convolution":
        return (*image[::-1], batch * channels)
    group = setting.group or 1
    wide = -(-image[1] // (setting.width * group)) * group
    return wide, image[0], batch * -(-channels // 8)


built: dict[tuple[object, ...], tuple[str, Any]] = {}


def launch(stream: cf.Stream, node: cf.Node, choice: cf.Choice, *memories: cf.Memory) -> Any:
    """Enqueue the kernel of a node; a concatenation that is a copy takes one for each part."""
    del choice
    if node.op != "Concat":
        return enqueued(stream, node, memories)
    first, event = 0, None
    for memory in memories[:-1]:
        event = enqueued(stream, node, (memory, memories[-1]), first)
        first += memory.desc.dims[1]
    return event


def enqueued(
    stream: cf.Stream, node: cf.Node, memories: Sequence[cf.Memory], first: int = 0
) -> Any:
    """Enqueue a kernel, which is built when it is first met with these descriptors."""
    setting = tuned.get(problem(node), Setting()) if node.op == "Conv" else Setting()
    descs = [m.desc for m in memories]
    key = (node.name, first, setting, *descs)
    if key not in built:
        name, text = source(node, descs, setting, first)
        built[key] = name, stream.engine.kernel(text, name)
    name, kernel = built[key]
    wide = threads(name, descs[0 if name == "place" else -1], setting)
    local = (setting.group, 1, 1) if setting.group else None
    return stream.run(kernel, wide, local, *memories, reads=memories[:-1])


# --- networks -------------------------------------------------------------------------------------


def small() -> cf.Network:
    """Two convolutions and a residual, a concatenation of two more, a pool."""
    rng = np.random.default_rng(0)
    net = cf.Network()
    sizes = {"image": 3, "a": 16, "b": 16, "sum": 16, "c": 24, "d": 8, "both": 32}
    for name, channels in sizes.items():
        net.value(name, (1, channels, 30, 34))
    net.value("out", (1, 32, 1, 1))
    for name, src, dst, window in [
        *(("conv1", "image", "a", 3), ("conv2", "a", "b", 3)),
        *(("conv3", "sum", "c", 1), ("conv4", "sum", "d", 3)),
    ]:
        shape = (sizes[dst], sizes[src], window, window)
        weights = rng.standard_normal(shape, np.float32) * (2 / (sizes[src] * window**2)) ** 0.5
        net.value(f"{name}.w", shape, constant=weights)
        net.value(f"{name}.b", shape[:1], constant=rng.standard_normal(shape[0], np.float32))
        border = [window // 2] * 4
        net.node(name, [src, f"{name}.w", f"{name}.b"], [dst], "Conv", pads=border,
                 activation="Relu")  # fmt: skip
    net.node("add", ["a", "b"], ["sum"], "Add")
    net.node("concat", ["c", "d"], ["both"], "Concat", axis=1)
    net.node("pool", ["both"], ["out"], "GlobalAveragePool")
    return net


def in_numpy(net: cf.Network, image: Any) -> Any:
    """The small network in numpy."""
    found: dict[str, Any] = {"image": image}
    for node in net.order():
        read = [found.get(v.name, v.constant) for v in node.inputs]
        if node.op == "Conv":
            n = node.attributes["pads"][0]
            padded = np.pad(read[0], [(0, 0), (0, 0), (n, n), (n, n)])
            windows = np.lib.stride_tricks.sliding_window_view(
                padded, read[1].shape[2:], axis=(2, 3)
            )
            summed = np.einsum("bihwyx,oiyx->bohw", windows, read[1])
            result = np.maximum(summed + read[2][:, None, None], 0)
        elif node.op == "Add":
            result = read[0] + read[1]
        elif node.op == "Concat":
            result = np.concatenate(read, 1)
        else:
            result = read[0].mean((2, 3), keepdims=True)
        found[node.outputs[0].name] = result
    return found["out"]


def light(name: str) -> tuple[cf.Network, Any]:
    """A light model of the onnx package with random weights, and the model itself.

    Its own weights are all equal, so that a mixed-up layout would not be seen.
    """
    onnx: Any = import_module("onnx")
    model = onnx.load(Path(onnx.__file__).parent / f"backend/test/data/light/light_{name}.onnx")
    shapes = {t.name: onnx.numpy_helper.to_array(t) for t in model.graph.initializer}
    rng = np.random.default_rng(0)
    kept = []
    for node in model.graph.node:
        if node.op_type != "ConstantOfShape":
            kept.append(node)
            continue
        shape = tuple(int(n) for n in shapes[node.input[0]])
        fan = int(np.prod(shape[1:])) if len(shape) > 1 else 0
        array = rng.standard_normal(shape).astype(np.float32) * np.float32((2 / max(fan, 1)) ** 0.5)
        if not fan:  # statistics of normalisations among them: positive
            array = np.float32(1) + np.abs(array) * np.float32(0.1)
        model.graph.initializer.append(onnx.numpy_helper.from_array(array, node.output[0]))
    del model.graph.node[:]
    for name_ in shapes:
        if name_.endswith("__SHAPE"):
            model.graph.initializer.remove(
                next(t for t in model.graph.initializer if t.name == name_)
            )
    model.ir_version = 8
    weights = {t.name for t in model.graph.initializer} | set(shapes)
    inputs = [i for i in model.graph.input if i.name not in weights]
    del model.graph.input[:]
    model.graph.input.extend(inputs)
    model.graph.node.extend(kept)
    last = model.graph.node[-1]
    if last.op_type == "Softmax" and name != "squeezenet":  # where it saturates it hides errors
        model.graph.output[0].name = last.input[0]
        del model.graph.node[-1]
    return cf.Network.from_onnx(model), model


def reference(model: Any, image: Mapping[str, Any]) -> Any:
    """What onnxruntime computes, or None where it is not installed."""
    try:
        onnxruntime: Any = import_module("onnxruntime")
    except ImportError:
        return None
    session = onnxruntime.InferenceSession(model.SerializeToString())
    return session.run(None, dict(image))[0]


def prepared(plan: cf.FormatPlan, stream: cf.Stream, image: Mapping[str, Any]) -> Any:
    """The schedule of a plan, as a function that runs it."""
    return partial(plan.schedule(stream.engine, launch), stream, **image)


def main(words: Sequence[str]) -> None:
    """Plan, run, compare."""
    net, model = light(words[0]) if words else (small(), None)
    (given,) = net.inputs
    rng = np.random.default_rng(1)
    image = {given.name: rng.standard_normal(given.dims, np.float32)}
    net.fix(given, "bfyx")
    stream = cf.Stream(cf.Engine())
    costs = cf.Costs()
    costs.measure_in_place(kernels.apply(net), stream, launch, image)
    plan = cf.propagate(net, kernels, reorder_cost=costs)
    print(plan, plan.compare(), plan.memory, sep="\n\n")
    if len(words) > 1:
        plan.draw(words[1])
    run = prepared(plan, stream, image)
    (found,) = (m.numpy() for m in run().values())
    wanted = in_numpy(net, image[given.name]) if model is None else reference(model, image)
    if wanted is not None:
        error = float(np.abs(found - wanted).max() / np.abs(wanted).max())
        assert error < 1e-4, error
        print(f"\nlargest difference {error:.1e} of the largest element")
    times = []
    for _ in range(9):
        start = perf_counter()
        run()
        times.append(perf_counter() - start)
    print(f"predicted {plan.seconds * 1e3:.3g} ms, took {np.median(times) * 1e3:.3g} ms")
    print(plan.settle(partial(prepared, stream=stream, image=image), rounds=8))


if __name__ == "__main__":
    main(sys.argv[1:])
