"""A plan as an ONNX model, with its reorders as nodes."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from ..errors import Error
from ..files.common import library
from ..files.onnx import CODES
from .decision import Decision
from .graph import Node, Value
from .memory import steps_of
from .named import Key


def to_onnx(plan: Decision, path: str | Path) -> None:
    """Write the plan as an ONNX model, to be looked at in viewers and read by compilers.

    Reorders are nodes ``Reorder`` of the domain ``clformats`` with the formats as attributes; every
    other node has the attribute ``formats``. Weights are inputs: they are not written.
    """
    onnx = library("onnx", "ONNX models")
    make = onnx.helper
    nodes = []
    names: dict[tuple[str, Key], str] = {}
    for step in steps_of(plan):
        if isinstance(step, Node):
            nodes.append(_onnx_node(make, plan, step, names))
            continue
        result = f"{step.value}@{step.dst}"
        source = names.get((step.value, step.src.key), step.value)
        names[step.value, step.dst.key] = result
        nodes.append(make.make_node("Reorder", [source], [result], f"reorder {result}",
                                    domain="clformats", src=step.src, dst=step.dst))  # fmt: skip
    used = [v for n in plan.network.nodes.values() for v in n.inputs]
    inputs = [v for v in dict.fromkeys(used) if plan.network.producer(v) is None]
    formats = {**plan.formats, **plan.network.fixed}
    outputs = [(v, names.get((v.name, formats[v.name].key), v.name)) for v in plan.delivered]
    graph = make.make_graph(
        nodes,
        "planned",
        [_info(onnx, v, v.name) for v in inputs],
        [_info(onnx, v, name) for v, name in outputs],
    )
    opsets = [make.make_opsetid("", 17), make.make_opsetid("clformats", 1)]
    try:
        onnx.save(make.make_model(graph, opset_imports=opsets), str(path))
    except OSError as error:
        raise Error(f"cannot write {path}: {error.strerror}") from error


def _onnx_node(make: Any, plan: Decision, node: Node, names: dict[tuple[str, Key], str]) -> Any:
    choice = plan.choices[node.name]
    inputs = [
        names.get((v.name, f.key if f else ""), v.name)
        for v, f in zip(node.inputs, choice.ins, strict=True)
    ]
    attributes = {k: v for k, v in node.attributes.items() if _is_plain(v)}
    outputs = [v.name for v in node.outputs]
    return make.make_node(
        node.op, inputs, outputs, node.name, **attributes | {"formats": str(choice)}
    )


def _is_plain(value: Any) -> bool:
    """Whether it can be an attribute: a number, a text, or numbers."""
    if isinstance(value, list | tuple):
        return bool(value) and all(isinstance(n, int | float) for n in value)
    return isinstance(value, int | float | str)


def _info(onnx: Any, value: Value, name: str) -> Any:
    code = onnx.TensorProto.DataType.Value(CODES.get(value.dtype.name, "FLOAT"))
    return onnx.helper.make_tensor_value_info(name, code, value.dims)
