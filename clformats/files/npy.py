"""One array in numpy's ``.npy`` file; of a packed one, its record after it in the same file.

The header of a ``.npy`` has room for nothing but type, order and shape. But numpy defines that
several arrays may follow each other in one file, each read by its own ``np.load(file)``:
the first here is the 1-D array of physical elements, the second a text, ``clformats:`` and the
record. ``np.load("file.npy")`` reads the first and stops there, and nothing can be lost on the way.

Types that numpy lacks (bf16, f8) it saves as raw bytes, ``V2`` and ``V1``. So do we; the record
says which type it is, and for a file without one the user does.
"""

from __future__ import annotations

import io
import re
from collections.abc import Mapping
from math import prod
from pathlib import Path
from tokenize import TokenError
from typing import Any, BinaryIO, NamedTuple

import numpy as np
from numpy.lib import format as npy
from numpy.typing import NDArray

from ..errors import Error, InvalidDescriptor
from ..tensors.dtypes import ROWS, DType, as_dtype
from .common import KEY, Change, Container, Record, Tensor, as_bytes, reading, shown, write_array

NAME = "array"
"""The name that the only tensor of such a file goes by."""
_PREFIX = f"{KEY}:"
_MOST_HEADER = 1 << 16
_ARCHIVE = b"PK\3\4"  # np.savez makes one
# numpy writes this for ml_dtypes.float8_e5m2, and cannot read it again.
_E5M2 = re.compile(rb"(.{8,12}\{'descr': )'<f1'", re.DOTALL)


class NpyFile(Container):
    """A ``.npy`` file. ``raw_type`` says what elements without a type (``V1 V2``) are."""

    what = "npy file"
    types = tuple(r.name for r in ROWS if as_dtype(r.numpy) is r and r.name != "u1")

    def __init__(self, path: Path, raw_type: DType | None = None) -> None:
        self.path = path
        self.inputs = (path,)
        with reading(path, self.what, TokenError), path.open("rb") as file:
            self._array = array = _first(path, file)
            self._stored = array.dtype
            size = file.seek(0, io.SEEK_END)
            file.seek(array.end)
            text = _record_text(path, file) if size > array.end else None
        self.records = {} if text is None else {NAME: text}
        dtype = self._type(text, raw_type)
        self.tensors = {
            NAME: Tensor(NAME, self._type_name(dtype), dtype, array.shape, array.nbytes)
        }

    def _type(self, record: str | None, raw_type: DType | None) -> DType | None:
        """The element type: the file's, else what the record says, else what the user says."""
        stored = self._stored
        if stored.kind != "V":
            if raw_type is not None:
                raise Error(
                    f"{shown(str(self.path))} has elements of {stored}: leave --as {raw_type} out, "
                    f"it names elements that numpy saved as raw bytes"
                )
            try:
                return None if stored.kind == "b" else as_dtype(stored)
            except InvalidDescriptor:
                return None
        if record is not None and raw_type is None:
            raw_type = Record.parse(record).packed.dtype
        if stored.names or raw_type is None or raw_type.numpy.itemsize != stored.itemsize:
            return None
        return raw_type

    def _type_name(self, dtype: DType | None) -> str:
        return dtype.name if dtype else str(self._stored)

    def read(self, name: str) -> NDArray[Any]:
        """The array, mapped from the file."""
        tensor = self.tensors[name]
        if not tensor.nbytes:
            return np.zeros(tensor.shape, self._native(tensor))
        with reading(self.path, self.what):
            array = self._array.mapped(self.path)
        if self._stored.kind == "V":
            self._check_bits(array, tensor)
            return array.view(self._native(tensor))
        return array.astype(self._native(tensor), copy=False)

    def _check_bits(self, array: NDArray[Any], tensor: Tensor) -> None:
        """Raise `Error` where bytes are no codes of a type of fewer bits: some would be lost."""
        if tensor.dtype is None or not tensor.dtype.is_packed:
            return
        largest, bits = int(array.view(np.uint8).max()), tensor.dtype.bits
        if largest >> bits:
            raise Error(
                f"{shown(str(self.path))} has an element {largest:#04x}, {tensor.dtype} has {bits} "
                f"bits: are these elements of another type, or of several in a byte?"
            )

    def _native(self, tensor: Tensor) -> np.dtype[Any]:
        return tensor.dtype.numpy if tensor.dtype else self._stored

    def raw(self, name: str) -> NDArray[np.uint8]:
        """The bytes of the array in C order."""
        return as_bytes(self.read(name))

    def write(self, path: Path, changes: Mapping[str, Change]) -> None:
        """Write the changed array, and its record after it."""
        change = changes[NAME]
        dtype = change.dtype.numpy
        descr = dtype.str if dtype.isbuiltin == 1 else f"<V{dtype.itemsize}"  # as numpy writes it
        with path.open("wb") as file:
            npy.write_array_header_1_0(
                file, {"descr": descr, "fortran_order": False, "shape": change.shape}
            )
            write_array(file, change.make())
            if change.record is not None:
                text = np.array(f"{_PREFIX}{change.record}".encode("ascii"))
                npy.write_array(file, text, allow_pickle=False)


class _Array(NamedTuple):
    """An array in a file: its first byte, shape, whether in Fortran's order, and element type."""

    start: int
    shape: tuple[int, ...]
    is_fortran: bool
    dtype: np.dtype[Any]

    @property
    def nbytes(self) -> int:
        return prod(self.shape) * self.dtype.itemsize

    @property
    def end(self) -> int:
        return self.start + self.nbytes

    def mapped(self, path: Path) -> NDArray[Any]:
        if not self.nbytes:  # nothing can be mapped
            return np.zeros(self.shape, self.dtype)
        order: Any = "F" if self.is_fortran else "C"
        return np.memmap(path, self.dtype, "r", self.start, self.shape, order)


def mapped(path: Path) -> NDArray[Any]:
    """The first array in a ``.npy`` file, mapped, with the element type that numpy stores.

    What follows it is not read. Raises `Error` for a file that is damaged, or is none.
    """
    with reading(path, NpyFile.what, TokenError):
        with path.open("rb") as file:
            found = _first(path, file)
        return found.mapped(path)


def _first(path: Path, file: BinaryIO) -> _Array:
    """The first array of a file, all of which is there."""
    found = _header(file)
    size = file.seek(0, io.SEEK_END)
    if size < found.end:
        raise Error(
            f"{shown(str(path))} is cut off: it has {size} bytes, its array ends at {found.end}"
        )
    return found


def _header(file: BinaryIO) -> _Array:
    head = file.read(_MOST_HEADER)
    if head.startswith(_ARCHIVE):
        raise ValueError("it is an archive of several arrays: save the one you mean by np.save")
    stream = io.BytesIO(_E5M2.sub(rb"\1'|V1'", head, count=1) if _E5M2.match(head) else head)
    version = npy.read_magic(stream)
    readers = {(1, 0): npy.read_array_header_1_0, (2, 0): npy.read_array_header_2_0}
    if version not in readers:
        raise ValueError(f"version {version} of the format, expected (1, 0) or (2, 0)")
    try:
        shape, is_fortran, dtype = readers[version](stream)
    except MemoryError:  # how Python's parser says that brackets are nested too deeply
        raise ValueError("its header is nested too deeply") from None
    if dtype.hasobject:
        raise ValueError("its elements are pickled Python objects")
    if any(n < 0 or isinstance(n, bool) for n in shape):
        raise ValueError(f"its shape is {shape}")
    return _Array(stream.tell(), shape, is_fortran, dtype)


def _record_text(path: Path, file: BinaryIO) -> str:
    """The record after the array. Raises `Error` where something else stands there."""
    try:
        found = npy.read_array(file, allow_pickle=False)
        text = found.tobytes().decode("ascii") if found.dtype.kind == "S" else ""
    except (ValueError, EOFError, MemoryError, TokenError):
        text = ""
    if not text.startswith(_PREFIX) or file.read(1):
        raise Error(
            f"{shown(str(path))} has data after its array that is no record of a packed tensor: "
            f"a cut record, or several arrays, of which only one would be kept"
        )
    return text.removeprefix(_PREFIX)
