"""A plan as an ONNX model, with its reorders as nodes."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from ..errors import Error
from ..files.common import library
from .decision import Decision
from .graph import Node, Value
from .memory import steps_of

_TYPES = {"f32": 1, "u8": 2, "s8": 3, "s32": 6, "f16": 10, "f64": 11, "bf16": 16}


def to_onnx(plan: Decision, path: str | Path) -> None:
    """Write the plan as an ONNX model, to be looked at in viewers and read by compilers.

    Reorders are nodes ``Reorder`` of the domain ``clformats`` with the formats as attributes; every
    other node has the attribute ``formats``. Weights are inputs: they are not written.
    """
    onnx = library("onnx", "ONNX models")
    make = onnx.helper
    nodes = []
    names: dict[tuple[str, str], str] = {}
    for step in steps_of(plan):
        if isinstance(step, Node):
            nodes.append(_onnx_node(make, plan, step, names))
            continue
        result = f"{step.value}@{step.dst}"
        source = names.get((step.value, step.src), step.value)
        names[step.value, step.dst] = result
        nodes.append(make.make_node("Reorder", [source], [result], f"reorder {result}",
                                    domain="clformats", src=step.src, dst=step.dst))  # fmt: skip
    used = [v for n in plan.network.nodes.values() for v in n.inputs]
    inputs = [v for v in dict.fromkeys(used) if plan.network.producer(v) is None]
    graph = make.make_graph(
        nodes,
        "planned",
        [_info(make, v, v.name) for v in inputs],
        [_info(make, v, names.get((v.name, plan.network.fixed.get(v.name, "")), v.name))
         for v in plan.network.outputs],
    )  # fmt: skip
    opsets = [make.make_opsetid("", 17), make.make_opsetid("clformats", 1)]
    try:
        onnx.save(make.make_model(graph, opset_imports=opsets), str(path))
    except OSError as error:
        raise Error(f"cannot write {path}: {error.strerror}") from error


def _onnx_node(make: Any, plan: Decision, node: Node, names: dict[tuple[str, str], str]) -> Any:
    choice = plan.choices[node.name]
    inputs = [
        names.get((v.name, f or ""), v.name) for v, f in zip(node.inputs, choice.ins, strict=True)
    ]
    attributes: dict[str, Any] = {
        k: v for k, v in node.attributes.items() if isinstance(v, int | float | str)
    }
    attributes |= {
        k: list(v)
        for k, v in node.attributes.items()
        if isinstance(v, list | tuple) and v and all(isinstance(n, int | float) for n in v)
    }
    attributes["formats"] = str(choice)
    return make.make_node(
        node.op, inputs, [v.name for v in node.outputs], node.name, **attributes
    )  # fmt: skip


def _info(make: Any, value: Value, name: str) -> Any:
    return make.make_tensor_value_info(name, _TYPES.get(value.dtype.name, 1), value.dims)
