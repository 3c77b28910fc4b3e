"""Which kinds of files there are, by the end of a name."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

from ..errors import Error
from ..tensors.dtypes import DType, as_dtype
from .common import Container, shown
from .npy import NpyFile
from .onnx import OnnxFile
from .safetensors import SafetensorsFile

KINDS: dict[str, Callable[[Path, DType | None], Container]] = {
    ".npy": NpyFile,
    ".safetensors": SafetensorsFile,
    ".onnx": OnnxFile,
}


def open_file(path: str | Path, raw_type: object = None) -> Container:
    """Open a ``.npy``, ``.safetensors`` or ``.onnx`` file for reading.

    ``raw_type`` is the element type of a ``.npy`` file whose elements have none. Raises `Error`.
    """
    path = Path(path)
    if path.suffix not in KINDS:
        raise Error(
            f"cannot tell what kind of file {shown(str(path))} is: expected a name that ends in "
            f"{', '.join(KINDS)}"
        )
    dtype = None if raw_type is None else as_dtype(raw_type)
    if dtype is not None and path.suffix != ".npy":
        raise Error(f"{shown(str(path))} names its element types: --as is for .npy files only")
    return KINDS[path.suffix](path, dtype)
