"""The initializers of an ``.onnx`` model; the record of a packed one is in its own metadata.

A packed initializer becomes a 1-D tensor of raw elements, whose ``metadata_props`` have the key
``clformats``. The graph stays as it is, so what it says of that weight is no longer true: no plain
runtime can run it before it is unpacked.

A model with external data gets one file of external data again, ``MODEL.onnx.data``; so does one
that would not fit into the two gigabytes of a protobuf message.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from math import prod
from pathlib import Path
from typing import Any, BinaryIO

import numpy as np
from numpy.typing import NDArray

from ..tensors.dtypes import DType, named
from .common import KEY, Change, Container, Tensor, as_bytes, library, reading

TYPES = named("onnx")
"""Element types by ONNX's names."""
CODES = {dtype.name: code for code, dtype in TYPES.items()}
_DATA = ".data"
_PAGE = 4096  # as ONNX advises, so that readers can map each tensor
_LEAST_EXTERNAL = 1024
_MOST_INLINE = (1 << 31) - (1 << 24)


class OnnxFile(Container):
    """An ``.onnx`` model; needs the library ``onnx``."""

    what = "onnx model"
    types = tuple(CODES)
    companions = (_DATA,)

    def __init__(self, path: Path, raw_type: DType | None = None) -> None:
        del raw_type  # the file names its types
        self._onnx = library("onnx", "ONNX models")
        self._external = library("onnx.external_data_helper", "ONNX models")
        self._errors = (
            library("google.protobuf.message", "ONNX models").DecodeError,
            self._onnx.checker.ValidationError,
        )
        self.path = path
        self._load()

    def _load(self) -> None:
        """Read the model, without its external data."""
        path, onnx = self.path, self._onnx
        with reading(path, self.what, *self._errors):
            self._model = onnx.load(str(path), format="protobuf", load_external_data=False)
            if not (self._model.ir_version and self._model.opset_import):
                raise ValueError("it names no version, or is cut off")
            self._tensors = {t.name: t for t in self._model.graph.initializer}
            if not all(isinstance(name, str) for name in self._tensors):
                raise ValueError("an initializer's name is no UTF-8")  # protobuf gives bytes
            if len(self._tensors) < len(self._model.graph.initializer):
                raise ValueError("two of its initializers have the same name")
            self.tensors = {name: self._described(t) for name, t in self._tensors.items()}
            outside = [_location(t) for t in self._all_tensors() if self._is_external(t)]
            if not all(isinstance(file, str) for file in outside):
                raise ValueError("the name of a file of external data is no UTF-8")
        self.records = {
            name: str(entry.value)  # bytes, where it is no UTF-8
            for name, t in self._tensors.items()
            for entry in t.metadata_props
            if entry.key == KEY
        }
        self.inputs = (path, *sorted({path.parent / file for file in outside}))

    def _described(self, tensor: Any) -> Tensor:
        known = self._onnx.TensorProto.DataType
        is_known = tensor.data_type in known.values()
        code = known.Name(tensor.data_type) if is_known else f"type {tensor.data_type}"
        dtype = TYPES.get(code)
        shape = tuple(tensor.dims)
        if any(n < 0 for n in shape):
            raise ValueError(f"the shape of {tensor.name!r} is {shape}")
        nbytes = -(-prod(shape) * dtype.bits // 8) if dtype else len(tensor.raw_data)
        return Tensor(tensor.name, code, dtype, shape, nbytes)

    def _is_external(self, tensor: Any) -> bool:
        return bool(self._external.uses_external_data(tensor))

    def _all_tensors(self) -> Iterator[Any]:
        """Every tensor of the model, those in nodes, branches and functions too."""
        yield from _graph_tensors(self._model.graph)
        for function in self._model.functions:
            for node in function.node:
                yield from _node_tensors(node)

    def read(self, name: str) -> NDArray[Any]:
        """The elements of an initializer, external or not."""
        tensor = self._tensors[name]
        if self._is_external(tensor):
            tensor = self._loaded(tensor)
        with reading(self.path, self.what, *self._errors):
            return np.asarray(self._onnx.numpy_helper.to_array(tensor))

    def raw(self, name: str) -> NDArray[np.uint8]:
        """The bytes of an initializer as they are stored."""
        tensor = self._tensors[name]
        if self._is_external(tensor):
            return np.frombuffer(self._loaded(tensor).raw_data, np.uint8)
        is_raw = tensor.HasField("raw_data")
        return np.frombuffer(tensor.raw_data if is_raw else tensor.SerializeToString(), np.uint8)

    def _loaded(self, tensor: Any) -> Any:
        """A copy of an external tensor with its bytes; the library checks where they come from."""
        copy = self._onnx.TensorProto()
        copy.CopyFrom(tensor)
        if 0 in tensor.dims:  # some releases read the whole file for a length of 0
            copy.raw_data = b""
        else:
            with reading(self.path, self.what, *self._errors):
                self._external.load_external_data_for_tensor(copy, str(self.path.parent))
                length = self._external.ExternalDataInfo(tensor).length
                if length and len(copy.raw_data) != length:
                    raise ValueError(f"the external data of {tensor.name!r} is cut off")
        for field in ("data_location", "external_data"):  # some releases leave them
            copy.ClearField(field)
        return copy

    def write(self, path: Path, changes: Mapping[str, Change]) -> None:
        """Write the model with the changes, and a file of external data where it needs one.

        The model is changed in memory, so as not to have it there twice, and then read anew.
        """
        try:
            self._write(path, changes)
        finally:
            self._load()

    def _write(self, path: Path, changes: Mapping[str, Change]) -> None:
        size = self._model.ByteSize() + sum(
            c.nbytes - len(self._tensors[n].raw_data) for n, c in changes.items()
        )
        if len(self.inputs) == 1 and size < _MOST_INLINE:
            for name, change in changes.items():
                self._tensors[name].raw_data = self._changed(self._tensors[name], change)
        else:
            with path.with_name(path.name + _DATA).open("wb") as data:
                self._write_outside(data, changes)
        with path.open("wb") as file:
            file.write(self._model.SerializeToString())

    def _write_outside(self, data: BinaryIO, changes: Mapping[str, Change]) -> None:
        """Every tensor that was outside or has changed into the file of external data.

        One at a time, and never through the model: a message keeps the memory of what it held.
        """
        by_identity = {id(self._tensors[name]): change for name, change in changes.items()}
        for tensor in self._all_tensors():
            if change := by_identity.get(id(tensor)):
                self._move_out(tensor, self._changed(tensor, change), data)
            elif self._is_external(tensor):
                self._move_out(tensor, self._loaded(tensor).raw_data, data)
            elif len(tensor.raw_data) >= _LEAST_EXTERNAL:
                self._move_out(tensor, tensor.raw_data, data)

    def _changed(self, tensor: Any, change: Change) -> bytes:
        """Describe the new value in ``tensor``, without data; return the data."""
        array = change.make()
        for field in ("raw_data", "float_data", "int32_data", "double_data", "external_data",
                      "data_location", "dims"):  # fmt: skip
            tensor.ClearField(field)
        tensor.dims.extend(change.shape)
        tensor.data_type = self._onnx.TensorProto.DataType.Value(CODES[change.dtype.name])
        kept = [entry for entry in tensor.metadata_props if entry.key != KEY]
        del tensor.metadata_props[:]
        tensor.metadata_props.extend(kept)
        if change.record is not None:
            tensor.metadata_props.add(key=KEY, value=str(change.record))
        if change.dtype.is_packed:  # its elements share bytes, but not in numpy
            return bytes(self._onnx.numpy_helper.from_array(array).raw_data)
        return as_bytes(array).tobytes()

    def _move_out(self, tensor: Any, raw: bytes, data: BinaryIO) -> None:
        """Append a tensor's bytes to the file of external data, and say where they are."""
        for field in ("raw_data", "data_location", "external_data"):
            tensor.ClearField(field)
        if not raw:
            tensor.raw_data = b""
            return
        data.write(bytes(-data.tell() % _PAGE))
        place = {"location": Path(data.name).name, "offset": data.tell(), "length": len(raw)}
        data.write(raw)
        tensor.data_location = self._onnx.TensorProto.EXTERNAL
        for key, value in place.items():
            tensor.external_data.add(key=key, value=str(value))


def _location(tensor: Any) -> str:
    return next((e.value for e in tensor.external_data if e.key == "location"), "")


def _graph_tensors(graph: Any) -> Iterator[Any]:
    yield from graph.initializer
    for sparse in graph.sparse_initializer:
        yield from (sparse.values, sparse.indices)
    for node in graph.node:
        yield from _node_tensors(node)


def _node_tensors(node: Any) -> Iterator[Any]:
    for attribute in node.attribute:
        if attribute.HasField("t"):
            yield attribute.t
        yield from attribute.tensors
        for graph in (attribute.g, *attribute.graphs):
            yield from _graph_tensors(graph)
