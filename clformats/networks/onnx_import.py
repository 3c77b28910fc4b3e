"""The graph of an ONNX model; needs the extra ``onnx``.

Shapes are inferred. What depends only on constants is folded, and what just passes a tensor on
(``Identity``, ``Dropout``) is left out. A batch normalisation, and a product or sum with one
number for each channel, goes into the convolution before it, or into the normalisation before it;
an activation goes into the operation before it and is its attribute ``activation``. ``Sum`` of two
is ``Add``. Small constants that say how an operation works (a new shape, axes) are attributes.

Every operation becomes a node, known or not. Types that this library has not are taken as one of
the same width.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from itertools import chain, count
from pathlib import Path
from typing import Any

import numpy as np

from ..errors import InvalidNetwork
from ..files.common import library
from ..files.onnx import TYPES
from .fold import RawOperation, folded

_WIDTHS = {1: "u8", 2: "f16", 4: "s32", 8: "f64"}


def _loaded(model: str | Path | Any) -> Any:
    onnx = library("onnx", "ONNX models")
    if not isinstance(model, str | Path):
        if not hasattr(model, "graph"):
            raise InvalidNetwork(f"got {model!r}, expected a path or an onnx.ModelProto")
        return model
    errors = library("google.protobuf.message", "ONNX models")
    try:
        loaded = onnx.load(str(model))
    except OSError as error:
        raise InvalidNetwork(f"cannot read {model}: {error.strerror}") from error
    except (errors.DecodeError, onnx.checker.ValidationError, ValueError) as error:
        raise InvalidNetwork(f"{model} is no ONNX model, or is cut off: {error}") from error
    if not (loaded.ir_version and loaded.opset_import and loaded.graph.node):
        raise InvalidNetwork(f"{model} is no ONNX model, or is cut off: it has no nodes")
    return loaded


class OnnxGraph:
    """What a model or a file says: values as arguments of `Network.value`, operations, outputs.

    ``batch`` replaces a first dimension of unknown size. Raises `InvalidNetwork`, which names the
    input, value or node.
    """

    def __init__(self, model: str | Path | Any, batch: int | None = None) -> None:
        self.onnx = library("onnx", "ONNX models")
        copy = self.onnx.ModelProto()
        copy.CopyFrom(_loaded(model))
        copy.ir_version = max(copy.ir_version, 4)  # before, initializers had to be inputs too
        self.model = copy
        self.graph = copy.graph
        self.constants: dict[str, Any] = {}
        for tensor in self.graph.initializer:
            self.constants[tensor.name] = self.onnx.numpy_helper.to_array(tensor)
        self._set_batch(batch)
        self.shapes = self._inferred()
        self.opsets = {o.domain: o.version for o in copy.opset_import}
        outputs = [o.name for o in self.graph.output]
        ranks = {name: len(dims) for name, (dims, _) in self.shapes.items() if dims is not None}
        self.operations = folded(list(self._operations()), self.constants, outputs, ranks)
        written = {name for op in self.operations for name in op.outputs}
        self.outputs = [name for name in outputs if name in written]
        names = [i.name for i in self.graph.input if i.name not in self.constants]
        names += [n for op in self.operations for n in (*op.inputs, *op.outputs)]
        self.values = [self._value(name) for name in dict.fromkeys(names)]

    # --- shapes -----------------------------------------------------------------------------------

    def _set_batch(self, batch: int | None) -> None:
        for info in self.graph.input:
            if info.name in self.constants:
                continue
            for k, dim in enumerate(info.type.tensor_type.shape.dim):
                if dim.dim_value > 0:
                    continue
                named = repr(dim.dim_param) if dim.dim_param else "unknown"
                if k or batch is None:
                    raise InvalidNetwork(
                        f"input {info.name!r}: dimension {k} is {named}: "
                        + ("give batch=..." if not k else "only models of known sizes are planned")
                    )
                dim.dim_value = batch
        if batch is not None:
            for info in [*self.graph.output, *self.graph.value_info]:
                info.type.tensor_type.ClearField("shape")

    def _inferred(self) -> dict[str, tuple[tuple[int, ...] | None, int]]:
        """Dims (None where not all are known) and element type of each value."""
        inference = library("onnx.shape_inference", "ONNX models")
        try:
            done = inference.infer_shapes(self.model, data_prop=True)
        except inference.InferenceError as error:
            raise InvalidNetwork(f"shapes cannot be inferred: {error}") from error
        found: dict[str, tuple[tuple[int, ...] | None, int]] = {}
        for info in [*done.graph.input, *done.graph.value_info, *done.graph.output]:
            tensor = info.type.tensor_type
            dims = tuple(d.dim_value for d in tensor.shape.dim)
            known = tensor.HasField("shape") and all(n > 0 for n in dims)
            found[info.name] = (dims if known else None, tensor.elem_type)
        return found

    def _value(self, name: str) -> dict[str, Any]:
        if name in self.constants:
            constant = self.constants[name]
            code = self.onnx.helper.np_dtype_to_tensor_dtype(np.dtype(constant.dtype))
            dims = constant.shape or (1,)
            return {"name": name, "dims": dims, "dtype": self._type(code), "constant": constant}
        known, code = self.shapes.get(name, (None, 0))
        if known is None:
            raise InvalidNetwork(
                f"value {name!r} has no shape: the model does not say it, and it cannot be inferred"
            )
        return {"name": name, "dims": known or (1,), "dtype": self._type(code)}

    def _type(self, code: int) -> str:
        names = self.onnx.TensorProto.DataType
        name = names.Name(code) if code in names.values() else ""
        if name in TYPES:
            return TYPES[name].name
        try:
            width = np.dtype(self.onnx.helper.tensor_dtype_to_np_dtype(code)).itemsize
        except (KeyError, TypeError):
            return "f32"
        return _WIDTHS.get(width, "f32")

    # --- nodes ------------------------------------------------------------------------------------

    def _operations(self) -> Iterator[RawOperation]:
        """The nodes that are left when constants are folded."""
        taken: set[str] = set()
        for node in self.graph.node:
            given = {a.name: self.onnx.helper.get_attribute_value(a) for a in node.attribute}
            if self._fold(node, given):
                continue
            base = node.name or node.output[0] or node.op_type
            numbered = (f"{base}#{k}" for k in count(2))
            name = next(name for name in chain([base], numbered) if name not in taken)
            taken.add(name)
            yield self._operation(node, name, given)

    def _fold(self, node: Any, given: Mapping[str, Any]) -> bool:
        """Compute what depends only on constants."""
        inputs = [n for n in node.input if n]
        has_graph = any(a.HasField("g") or a.graphs for a in node.attribute)
        is_random = node.op_type.startswith("Random")
        if has_graph or is_random or any(n not in self.constants for n in inputs):
            return False
        if node.op_type == "Constant" and "value" in given:
            self.constants[node.output[0]] = self.onnx.numpy_helper.to_array(given["value"])
        elif node.op_type == "ConstantOfShape":
            read = self.onnx.numpy_helper.to_array
            fill = read(given["value"]).reshape(-1)[0] if "value" in given else np.float32(0)
            shape = tuple(int(n) for n in self.constants[inputs[0]])
            self.constants[node.output[0]] = np.broadcast_to(fill, shape)
        else:
            return self._evaluated(node)
        return True

    def _evaluated(self, node: Any) -> bool:
        reference = library("onnx.reference", "ONNX models")
        try:
            feeds = {n: np.asarray(self.constants[n]) for n in node.input if n}
            run = reference.ReferenceEvaluator(self._single(node, feeds))
            results = run.run(None, feeds)
        except Exception:  # noqa: BLE001  # whatever the evaluator cannot do stays a node
            return False
        self.constants.update(zip(node.output, map(np.asarray, results), strict=False))
        return True

    def _single(self, node: Any, feeds: Mapping[str, Any]) -> Any:
        """A model of one node."""
        make, code = self.onnx.helper, self.onnx.helper.np_dtype_to_tensor_dtype
        inputs = [make.make_tensor_value_info(n, code(a.dtype), a.shape) for n, a in feeds.items()]
        outputs = [make.make_empty_tensor_value_info(n) for n in node.output]
        graph = make.make_graph([node], "constant", inputs, outputs)
        return make.make_model(graph, opset_imports=self.model.opset_import)

    def _operation(self, node: Any, name: str, given: Mapping[str, Any]) -> RawOperation:
        attributes = {k: v.decode(errors="replace") if isinstance(v, bytes) else v
                      for k, v in given.items()}  # fmt: skip
        inputs: list[str] = []
        for k, source in enumerate(node.input):
            constant = self.constants.get(source)
            if constant is not None and self._is_setting(node.op_type, k, constant):
                attributes[self._input_name(node, k)] = np.asarray(constant).tolist()
            elif source:
                inputs.append(source)
        if node.op_type == "Slice":
            if len(inputs) > 1:  # where it begins is known at execution only
                attributes.pop("starts", None)
            _full_starts(name, attributes, self.shapes.get(node.input[0], (None, 0))[0])
        # What the graphs of an If, Loop or Scan read from outside has to be there, too.
        inputs += [n for n in dict.fromkeys(_free(node)) if n not in inputs and self._is_there(n)]
        outputs = [n for n in node.output if n]
        reserved = {"name", "inputs", "outputs", "op", "choices"}
        kept = {k if k not in reserved else f"{k}_": v for k, v in attributes.items()}
        return RawOperation(name, node.op_type, inputs, outputs, kept)

    def _is_there(self, name: str) -> bool:
        """Whether a name is a value: of known dims, or a constant with elements."""
        if name in self.constants:
            return 0 not in self.constants[name].shape
        return self.shapes.get(name, (None, 0))[0] is not None

    def _is_setting(self, op: str, k: int, constant: Any) -> bool:
        """Whether a constant says how an operation works, rather than being a weight."""
        settings = ("Clip", "Pad", "Resize", "Upsample", "Dropout")
        return k > 0 and (op in settings or np.asarray(constant).dtype.kind in "iub") and not (
            op.startswith(("QLinear", "Quantize", "Dequantize")) or op.endswith("Integer")
        )  # fmt: skip

    def _input_name(self, node: Any, k: int) -> str:
        try:
            schema = self.onnx.defs.get_schema(
                node.op_type, self.opsets.get(node.domain, 1), node.domain
            )
            return str(schema.inputs[min(k, len(schema.inputs) - 1)].name)
        except self.onnx.defs.SchemaError:
            return f"input{k}"


def _free(node: Any) -> Iterator[str]:
    """The names that the graphs in a node's attributes read and do not define."""
    for attribute in node.attribute:
        for graph in [*([attribute.g] if attribute.HasField("g") else []), *attribute.graphs]:
            own = {value.name for value in (*graph.input, *graph.initializer)}
            own |= {sparse.values.name for sparse in graph.sparse_initializer}
            for inner in graph.node:
                yield from (n for n in (*inner.input, *_free(inner)) if n and n not in own)
                own |= {*inner.output}
            yield from (value.name for value in graph.output if value.name not in own)


def _full_starts(name: str, attributes: dict[str, Any], dims: Sequence[int] | None) -> None:
    """``starts`` of a Slice with one number for each dimension; left out where steps are not 1.

    Raises `InvalidNetwork` where they do not fit the dims.
    """
    starts = attributes.pop("starts", None)
    steps, axes = attributes.get("steps") or [1], attributes.get("axes")
    if dims is None or starts is None:
        return
    full = [0] * len(dims)
    try:
        if set(steps) != {1}:
            return
        axes = axes or range(len(starts))
        for axis, start in zip(axes, starts, strict=True):
            n = dims[axis]
            full[axis] = min(max(start + n if start < 0 else start, 0), n)
    except (TypeError, ValueError, IndexError):
        raise InvalidNetwork(
            f"node {name!r}: got starts {starts} for axes {axes} of a value of dims {tuple(dims)}"
        ) from None
    attributes["starts"] = full
