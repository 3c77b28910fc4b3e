"""Files of GGUF: their tensors as descriptors and bytes, read by the package gguf."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ...errors import InvalidDescriptor, Unsupported, expect
from ...quantised import QuantisedDesc
from ...quantised.types import find
from ...tensors.desc import MemoryDesc
from .common import library, reading

_PLAIN = {"F32": "f32", "F16": "f16", "BF16": "bf16", "F64": "f64", "I8": "s8", "I32": "s32",
          "I64": "s64"}  # fmt: skip
"""GGUF's types that are element types."""


@dataclass(frozen=True, slots=True)
class GgufTensor:
    """A tensor of a file: its name and GGUF type, its descriptor, and its bytes in the file.

    ``desc`` is None for types that have no layout here (``TQ1_0``). ``raw`` is mapped, not read:
    uint8, or elements for a type that shares nothing. Dims are rows and columns, not ggml's order.
    """

    name: str
    kind: str
    dims: tuple[int, ...]
    desc: MemoryDesc | QuantisedDesc | None
    raw: NDArray[Any]

    def numpy(self) -> NDArray[Any]:
        """The values, of shape ``dims``. Raises `Unsupported` (code GGUF) for an unknown type."""
        from ...host.packing import unpack

        if self.desc is None:
            raise Unsupported("GGUF", f"{self.name} is of type {self.kind}, which is not decoded "
                                      f"here: use gguf.quants.dequantize")  # fmt: skip
        return unpack(self.raw, self.desc)


def read_gguf(path: str | Path) -> dict[str, GgufTensor]:
    """The tensors of a .gguf file, by name, in the order of the file.

    The file is mapped, so that nothing is read before it is used. Needs the package gguf. Raises
    `InvalidDescriptor` for a file that is none.
    """
    expect(path, str | Path, "path")
    gguf = library("gguf", "files of GGUF")
    file = Path(path)
    with reading(file, "GGUF file", ValueError, KeyError, IndexError):
        found = gguf.GGUFReader(file)
    return {t.name: t for t in _tensors(found)}


def _tensors(reader: Any) -> Iterator[GgufTensor]:
    for t in reader.tensors:
        kind = t.tensor_type.name
        dims = tuple(int(n) for n in reversed(t.shape.tolist()))
        raw = np.asarray(t.data).reshape(-1)
        yield GgufTensor(t.name, kind, dims, *_described(kind, dims, raw))


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
