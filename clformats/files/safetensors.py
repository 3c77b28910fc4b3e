"""The tensors of a ``.safetensors`` file; the records of packed ones are in its metadata.

The library checks the file: sizes, types, names, no gaps and no overlap. It cannot write one tensor
after the other, nor read the element types that numpy lacks, so the bytes are mapped and written
here: eight bytes with the length of the header, the header in JSON, then the tensors' bytes.
"""

from __future__ import annotations

import json
import os
import re
import struct
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, BinaryIO

import numpy as np
from numpy.typing import NDArray

from ..tensors.dtypes import DType, named
from .common import KEY, Change, Container, Tensor, library, reading, shown, write_array

_TYPES = {name: t for name, t in named("safetensors").items() if not t.is_packed}
_CODES = {dtype.name: code for code, dtype in _TYPES.items()}
_METADATA = "__metadata__"
_PREFIX = f"{KEY}:"
_ALIGNMENT = 8


class SafetensorsFile(Container):
    """A ``.safetensors`` file; needs the library ``safetensors``."""

    what = "safetensors file"
    types = tuple(_CODES)

    def __init__(self, path: Path, raw_type: DType | None = None) -> None:
        del raw_type  # the file names its types
        module = library("safetensors", "safetensors files")
        self.path = path
        self.inputs = (path,)
        with reading(path, self.what, module.SafetensorError):
            with module.safe_open(str(path), framework="numpy"):
                pass
            with path.open("rb") as file:
                (length,) = struct.unpack("<Q", file.read(8))
                header = json.loads(file.read(length), object_pairs_hook=_distinct)
            self.metadata: dict[str, str] = header.pop(_METADATA, None) or {}
            self._start = 8 + length
            self._header: dict[str, dict[str, Any]] = header
            self.tensors = {name: _tensor(name, entry) for name, entry in self._in_order()}
        self.records = {
            key.removeprefix(_PREFIX): text
            for key, text in self.metadata.items()
            if key.startswith(_PREFIX)
        }

    def _in_order(self) -> list[tuple[str, dict[str, Any]]]:
        return sorted(self._header.items(), key=lambda item: item[1]["data_offsets"][0])

    def read(self, name: str) -> NDArray[Any]:
        """The elements, mapped from the file."""
        tensor = self.tensors[name]
        dtype = tensor.dtype.numpy if tensor.dtype else _words(tensor.type_name)
        with reading(self.path, self.what):  # numpy refuses some shapes without elements
            return self.raw(name).view(dtype).reshape(tensor.shape)

    def raw(self, name: str) -> NDArray[np.uint8]:
        """The bytes, mapped from the file."""
        begin, end = self._header[name]["data_offsets"]
        if begin == end:
            return np.zeros(0, np.uint8)
        with reading(self.path, self.what):
            return np.memmap(self.path, np.uint8, "r", self._start + begin, (end - begin,))

    def write(self, path: Path, changes: Mapping[str, Change]) -> None:
        """Write a copy, one tensor after the other; the widest types first, so that all align."""
        entries: dict[str, Any] = {
            name: {"dtype": _CODES[c.dtype.name], "shape": list(c.shape), "nbytes": c.nbytes}
            for name, c in changes.items()
        }
        order = sorted(self.tensors, key=lambda n: -self._width(n, changes))
        written = {
            name: entries.get(name)
            or {
                "dtype": self.tensors[name].type_name,
                "shape": self._header[name]["shape"],
                "nbytes": self.tensors[name].nbytes,
            }
            for name in order
        }
        with path.open("wb") as file:
            file.write(_head(written, self._new_metadata(changes)))
            for name in order:
                change = changes.get(name)
                write_array(file, change.make() if change else self.raw(name))

    def _width(self, name: str, changes: Mapping[str, Change]) -> int:
        """The bytes of one element; 1 for types that only the file knows."""
        if name in changes:
            return changes[name].dtype.nbytes
        dtype = self.tensors[name].dtype
        digits = "".join(filter(str.isdigit, self.tensors[name].type_name.partition("_")[0]))
        return dtype.nbytes if dtype else max(1, int(digits or 8) // 8)

    def _new_metadata(self, changes: Mapping[str, Change]) -> dict[str, str]:
        stale = {f"{_PREFIX}{name}" for name in changes}
        kept = {k: v for k, v in self.metadata.items() if k not in stale}
        added = {f"{_PREFIX}{n}": str(c.record) for n, c in changes.items() if c.record}
        return kept | added


@dataclass(frozen=True, slots=True)
class Entry:
    """A tensor to be written: its type in the file, shape, and what fills its bytes, all zero."""

    code: str
    shape: tuple[int, ...]
    nbytes: int
    fill: Callable[[NDArray[np.uint8]], None]


def prepare(
    path: Path, entries: Mapping[str, Entry], metadata: Mapping[str, str]
) -> dict[str, int]:
    """Write a file whose tensors are zero yet: where each of them begins."""
    described = {n: {"dtype": e.code, "shape": list(e.shape), "nbytes": e.nbytes}
                 for n, e in entries.items()}  # fmt: skip
    with path.open("wb") as file:
        head = _head(described, metadata)
        file.write(head)
        reserve(file, len(head) + sum(e.nbytes for e in entries.values()))
    starts, end = {}, len(head)
    for name, e in entries.items():
        starts[name], end = end, end + e.nbytes
    return starts


def fill(path: Path, start: int, entry: Entry) -> None:
    """Fill one tensor of a file, in the file's mapped bytes: nothing else is held."""
    if entry.nbytes:
        entry.fill(np.memmap(path, np.uint8, "r+", start, (entry.nbytes,)))


def reserve(file: BinaryIO, size: int) -> None:
    """Make a file as long, of zeros for which the disk has room: mapped, it cannot be refused."""
    file.flush()
    if size and hasattr(os, "posix_fallocate"):
        os.posix_fallocate(file.fileno(), 0, size)
    file.truncate(size)


def code_of(dtype: DType) -> str | None:
    """The file's name of an element type; None where it has none."""
    return _CODES.get(dtype.name)


def _head(entries: Mapping[str, dict[str, Any]], metadata: Mapping[str, str]) -> bytes:
    """What stands in front of the tensors, for entries in order with their ``nbytes``."""
    header: dict[str, Any] = {_METADATA: dict(metadata)} if metadata else {}
    end = 0
    for name, entry in entries.items():
        begin, end = end, end + entry["nbytes"]
        own = {k: v for k, v in entry.items() if k != "nbytes"}
        header[name] = {**own, "data_offsets": [begin, end]}
    text = json.dumps(header, separators=(",", ":")).encode()
    text += b" " * (-len(text) % _ALIGNMENT)
    return struct.pack("<Q", len(text)) + text


def _words(type_name: str) -> np.dtype[Any]:
    """The items of integers that are no element type here, such as I16; of others bytes."""
    found = re.fullmatch(r"([IU])(16|32|64)", type_name)
    return np.dtype(f"{found[1].lower()}{int(found[2]) // 8}" if found else "u1")


def _distinct(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    """An object of JSON. Raises ValueError where it has a key twice, which the format forbids."""
    found = dict(pairs)
    if len(found) < len(pairs):
        keys = [key for key, _ in pairs]
        twice = next(key for key in keys if keys.count(key) > 1)
        raise ValueError(f"its header names {shown(twice)} twice")
    return found


def _tensor(name: str, entry: dict[str, Any]) -> Tensor:
    begin, end = entry["data_offsets"]
    code = entry["dtype"]
    dtype = _TYPES.get(code)
    return Tensor(name, code, dtype, tuple(entry["shape"]), end - begin)
