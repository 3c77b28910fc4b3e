"""Files of GGUF: their tensors as descriptors and bytes, read by the package gguf."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ..errors import Error, InvalidDescriptor, expect
from ..quantised import QuantisedDesc
from ..quantised.types import find
from ..tensors.desc import MemoryDesc
from ..tensors.dtypes import named
from .common import library, reading, shown, write_array
from .safetensors import reserve
from .stored import StoredTensor

_PLAIN = named("gguf")
"""GGUF's types that are element types."""
HEADER = "clformats.gguf"
"""Under this name a packed file has what stood in front of the tensors of a .gguf."""


def read_gguf(path: str | Path) -> dict[str, StoredTensor]:
    """The tensors of a .gguf file, by name, in the order of the file.

    The file is mapped, so that nothing is read before it is used. Needs the package gguf. Raises
    `InvalidDescriptor` for a file that is none.
    """
    expect(path, str | Path, "path")
    return {t.name: t for t in _tensors(_opened(Path(path)))}


def _tensors(reader: Any) -> Iterator[StoredTensor]:
    for t in reader.tensors:
        kind = t.tensor_type.name
        dims = tuple(int(n) for n in reversed(t.shape.tolist()))
        raw = np.asarray(t.data).reshape(-1)
        try:
            desc, raw = _described(kind, dims, raw)
        except Error as error:
            raise InvalidDescriptor(f"tensor {shown(t.name)}: {error}") from error
        note = "" if desc else "not decoded here: use gguf.quants.dequantize"
        yield StoredTensor(t.name, kind, dims, desc, {t.name: raw}, note)


def _described(
    kind: str, dims: tuple[int, ...], raw: NDArray[Any]
) -> tuple[MemoryDesc | QuantisedDesc | None, NDArray[Any]]:
    if kind in _PLAIN:
        desc = MemoryDesc(dims, _PLAIN[kind])
        return desc, raw.view(np.uint8).view(desc.dtype.storage)
    name = kind.lower().replace("_k", "_K")
    own = find(name)
    raw = raw.view(np.uint8)
    if own is None or "gguf" not in own.layouts:
        return None, raw
    made = QuantisedDesc(dims, own, "gguf")
    if made.nbytes != raw.size:
        raise InvalidDescriptor(
            f"got {raw.size} bytes for {made}, expected {made.nbytes}: a file of another version"
        )
    return made, raw


class Gguf:
    """What surrounds the tensors of a .gguf file, and a file made of it again."""

    def __init__(self, path: Path) -> None:
        self._path = path
        self._reader = _opened(path)

    def header(self) -> NDArray[np.uint8]:
        """All bytes in front of the tensors.

        Raises `Error` where the file has others between tensors than zeros, which would be lost.
        """
        data = np.memmap(self._path, np.uint8, "r")
        start = int(self._reader.data_offset)
        end = start
        for t in sorted(self._reader.tensors, key=lambda t: int(t.data_offset)):
            if data[end : int(t.data_offset)].any():
                raise Error(f"{shown(str(self._path))} has bytes in front of {shown(t.name)} that "
                            f"belong to no tensor")  # fmt: skip
            end = int(t.data_offset) + int(t.n_bytes)
        if data[end:].any():
            raise Error(f"{shown(str(self._path))} has bytes behind its tensors")
        return np.array(data[:start])

    @staticmethod
    def written(path: Path, header: NDArray[Any], size: int) -> dict[str, NDArray[np.uint8]]:
        """A new file with such a header, and so many bytes: the place of each tensor, mapped."""
        if size < header.size:
            raise Error(f"got a header of {header.size} bytes for a file of {size}: it is damaged")
        with path.open("wb") as file:
            write_array(file, header)
            reserve(file, size)
        found = _opened(path, "r+")
        whole = np.memmap(path, np.uint8, "r+")
        return {t.name: whole[int(t.data_offset) : int(t.data_offset) + int(t.n_bytes)]
                for t in found.tensors}  # fmt: skip


def _opened(path: Path, mode: str = "r") -> Any:
    gguf = library("gguf", "files of GGUF")
    with reading(path, "GGUF file", ValueError, KeyError, IndexError):
        reader = gguf.GGUFReader(path, mode)
        if reader.byte_order != "I":
            raise ValueError(
                f"its numbers are in the byte order of other processors: let the package gguf "
                f"change them first, by gguf-convert-endian FILE {sys.byteorder}"
            )
        return reader
