"""Plan a network, and run it in the planned formats with kernels written once.

`plan_network.cl` has a handful of kernels over index sources. Here they are timed in place, in
plans that try every choice; the network is planned with these times, and runs from one arena:

    python examples/plan_network.py                      a small one, compared with numpy
    python examples/plan_network.py squeezenet           the light model of the package onnx, with
                                                         random weights, compared with onnxruntime
    python examples/plan_network.py squeezenet plan.svg  the same, and a picture
"""

from __future__ import annotations

import sys
from collections.abc import Mapping
from importlib import import_module
from pathlib import Path
from time import perf_counter
from typing import Any

import numpy as np

import clformats as cf
from clformats.networks import race

KERNELS = Path(__file__).with_name("plan_network.cl").read_text(encoding="ascii")
FORMATS = {"bfyx": "oiyx", "b_fs_yx_fsv8": "os_iyx_osv8"}  # of data, and of weights with it


# --- what the kernels can do ----------------------------------------------------------------------

kernels = cf.Kernels()
kernels.same("MaxPool", "AveragePool", "GlobalAveragePool", "Add", formats=[*FORMATS])
kernels.same("Softmax", formats=[*FORMATS, "ab"])
kernels.view("Concat", formats=[*FORMATS])
kernels.view("Reshape", formats=["bfyx", "ab"])


@kernels.of("Conv")
def convolutions(node: cf.Node) -> list[cf.Choice]:
    """Any format in, any out: the kernel asks index sources."""
    if node.attributes.get("group", 1) != 1:
        return []
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


def source(node: cf.Node, memories: tuple[cf.Memory, ...]) -> tuple[str, str]:
    """The name of a node's kernel, and its OpenCL C."""
    own = {"Conv": "convolution", "Add": "add", "Softmax": "softmax", "Gemm": "gemm"}
    name = own.get(node.op, "pool")
    weighted = ["SRC", "WEIGHTS", "", "DST"]
    names = {"convolution": weighted, "gemm": weighted, "add": ["SRC", "SRC2", "DST"]}
    lines = [f"#define {name.upper()}"]
    if node.attributes.get("activation") == "Relu":
        lines.append("#define RELU")
    lines.append(f"#define STRIDE {node.attributes.get('strides', [1])[0]}")
    lines.append(f"#define BORDER {node.attributes.get('pads', [0])[0]}")
    if name == "pool":
        window = node.attributes.get("kernel_shape", node.inputs[0].dims[2:])
        lines += [f"#define WINDOW_Y {window[0]}", f"#define WINDOW_X {window[1]}"]
        lines.append(f"#define MEAN {int('Average' in node.op)}")
    lines.append(f"#define INNER {node.inputs[0].dims[1]}")
    rest = ", 0" * (node.inputs[0].rank - 2)
    lines.append(f"#define AT(index, b, f) index(b, f{rest})")
    for prefix, memory in zip(names.get(name, ["SRC", "DST"]), memories, strict=True):
        if prefix:
            vector = {"WEIGHTS": "o8", "DST": "f8"}.get(prefix, "") if name == "convolution" else ""
            lines.append(cf.index_source(memory.desc, prefix, vector=vector))
    return name, "\n".join([*lines, KERNELS])


built: dict[tuple[str, ...], tuple[str, Any]] = {}


def launch(stream: cf.Stream, node: cf.Node, choice: cf.Choice, *memories: cf.Memory) -> Any:
    """Enqueue the kernel of a node, which is built when it is first met with these descriptors."""
    del choice
    key = (node.name, *(str(m.desc) for m in memories))
    if key not in built:
        name, text = source(node, memories)
        built[key] = name, stream.engine.kernel(text, name)
    name, kernel = built[key]
    batch, channels, *image = memories[-1].desc.dims
    blocks = -(-channels // 8) if name == "convolution" else channels
    threads: tuple[int, ...] = (*image[::-1], batch * blocks)
    if name in ("softmax", "gemm"):
        threads = (batch,) if name == "softmax" else (channels, batch)
    buffers: list[Any] = [m.buffer for m in memories]
    return kernel(stream.queue, threads, None, *buffers)


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


def main() -> None:
    """Plan, run, compare."""
    if len(sys.argv) > 1:
        net, model = light(sys.argv[1])
    else:
        net, model = small(), None
    (given,) = net.inputs
    rng = np.random.default_rng(1)
    image = {given.name: rng.standard_normal(given.dims, np.float32)}
    net.fix(given, "bfyx")
    stream = cf.Stream(cf.Engine())
    costs = cf.Costs()
    costs.measure_in_place(kernels.apply(net), stream, launch, image)
    plan = cf.propagate(net, kernels, reorder_cost=costs)
    print(plan, plan.compare(), plan.memory, sep="\n\n")
    if len(sys.argv) > 2:
        plan.draw(sys.argv[2])
    schedule = plan.schedule(stream.engine, launch)
    outputs = schedule(stream, **image)
    (found,) = (m.numpy() for m in outputs.values())
    wanted = in_numpy(net, image[given.name]) if model is None else reference(model, image)
    if wanted is not None:
        error = float(np.abs(found - wanted).max() / np.abs(wanted).max())
        assert error < 1e-4, error
        print(f"\nlargest difference {error:.1e} of the largest element")
    times = []
    for _ in range(7):
        start = perf_counter()
        for number in range(len(plan.memory.steps)):
            schedule.run_step(stream, number)
            stream.wait()
        times.append(perf_counter() - start)
    print(f"predicted {plan.seconds * 1e3:.3g} ms, took {np.median(times) * 1e3:.3g} ms")
    uniform = next(row for row in plan.compare().rows if row.name.startswith("uniform"))
    other = uniform.plan.schedule(stream.engine, launch)
    found_ = race(schedule, other, stream, image)
    print(
        f"{found_.ratio:.3f} of the time of {uniform.name} "
        f"({found_.low:.3f} to {found_.high:.3f}), turn by turn"
    )


if __name__ == "__main__":
    main()
