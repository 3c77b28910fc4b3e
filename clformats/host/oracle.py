"""Pack and unpack by the offset of every element, bit by bit: slow, but just the definition.

`clformats.pack`, `clformats.unpack` and every kernel are tested against this. It has no code in
common with them but the descriptor, and the conversion of values to codes.
"""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ..tensors.desc import MemoryDesc
from ..tensors.dtypes import as_dtype, codes, from_codes


def pack_by_offsets(array: Any, desc: MemoryDesc) -> NDArray[Any]:
    """As `clformats.pack`, without its checks."""
    memory: NDArray[np.uint8] = np.zeros(max(desc.nbytes, desc.span_nbytes), np.uint8)
    if desc.nelems:
        found = codes(array, desc.dtype)
        put(memory, desc.offsets(), found, desc.dtype.bits)
        sums = _sums(from_codes(found, desc.dtype), desc)
        memory[desc.sums_at : desc.sums_at + len(sums)] = np.frombuffer(sums, np.uint8)
    return memory.view(desc.dtype.storage)


def unpack_by_offsets(flat: NDArray[Any], desc: MemoryDesc) -> NDArray[Any]:
    """As `clformats.unpack`, without its checks."""
    if not desc.nelems:
        return from_codes(np.zeros(desc.dims, desc.dtype.raw), desc.dtype)
    found = taken(flat.view(np.uint8), desc.offsets(), desc.dtype.bits)
    return from_codes(found.astype(desc.dtype.raw), desc.dtype)


def put(
    memory: NDArray[np.uint8], offsets: NDArray[np.int64], found: NDArray[Any], bits: int
) -> None:
    """Write codes of so many bits at offsets in elements; all other bits of memory stay."""
    if bits % 8 == 0:
        memory[: memory.size * 8 // bits * bits // 8].view(f"u{bits // 8}")[offsets] = found
        return
    each = np.unpackbits(memory, bitorder="little")
    for k in range(bits):
        each[offsets * bits + k] = found >> k & 1
    memory[:] = np.packbits(each, bitorder="little")


def taken(memory: NDArray[np.uint8], offsets: NDArray[np.int64], bits: int) -> NDArray[Any]:
    """The codes of so many bits at offsets in elements."""
    if bits % 8 == 0:
        return np.asarray(
            memory[: memory.size * 8 // bits * bits // 8].view(f"u{bits // 8}")[offsets]
        )
    each = np.unpackbits(memory, bitorder="little")
    return np.asarray(sum(each[offsets * bits + k] << np.uint8(k) for k in range(bits)))


def _sums(values: NDArray[Any], desc: MemoryDesc) -> bytes:
    """The bytes of all sums that follow ``values``: see `MemoryDesc.sums`."""
    result = b""
    for sums in desc.sums:
        total = np.zeros(sums.shape(desc.dims, desc.padded_dims), np.int64)
        index = np.indices(desc.dims)
        counted = np.full(desc.dims, fill_value=True)
        if sums.none_at:
            counted = ~np.all([index[d] == at for d, at in sums.none_at], axis=0)
        where = tuple(index[d][counted] for d in sums.dims)
        np.add.at(total, where, values[counted].astype(np.int64) * sums.factor)
        result += total.astype(as_dtype(sums.dtype).numpy).tobytes()
    return result


def padding_offsets(desc: MemoryDesc) -> NDArray[np.int64]:
    """The offsets of the elements that fill up blocks or lie around the tensor, in elements."""
    if any(len(p.digit.dims) > 1 for p in desc.placed):
        # Dense: what lies after the end of a fused index is padding too.
        last = desc.offset0 + sum((p.size - 1) * p.stride for p in desc.placed)
        every = np.arange(desc.offset0, last + 1)
    else:
        around = tuple((0, 0) for _ in desc.dims)
        whole = replace(desc.geometry, dims=desc.padded_dims, padding=around)
        every = type(desc).of(whole, desc.dtype).offsets().ravel()
    return np.setdiff1d(every, desc.offsets().ravel(), assume_unique=True)
