"""Pack and unpack by the offset of every element: slow, but no more than the definition says.

`clformats.pack`, `clformats.unpack` and every kernel are tested against this.
"""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ..tensors.desc import MemoryDesc
from .packing import all_sums, as_type, flat_size, places, shared, taken_apart


def pack_by_offsets(array: Any, desc: MemoryDesc) -> NDArray[Any]:
    """As `clformats.pack`, without its checks."""
    flat = np.zeros(flat_size(desc), desc.dtype.numpy)
    if desc.nelems:
        values = as_type(np.asarray(array), desc.dtype)
        flat[desc.offsets()] = values
        flat[desc.sums_at : desc.span_nbytes] = all_sums(values, desc)
    return shared(flat, desc.dtype) if desc.dtype.is_packed else flat


def unpack_by_offsets(flat: NDArray[Any], desc: MemoryDesc) -> NDArray[Any]:
    """As `clformats.unpack`, without its checks."""
    if not desc.nelems:
        return np.zeros(desc.dims, desc.dtype.numpy)
    if desc.dtype.is_packed:
        flat = taken_apart(flat, desc.dtype)
    return np.asarray(flat[desc.offsets()])


def padding_offsets(desc: MemoryDesc) -> NDArray[np.int64]:
    """The offsets of the elements that fill up blocks or lie around the tensor, in elements."""
    if any(len(p.digit.dims) > 1 for p in desc.placed):
        # Dense: what lies behind the end of a fused index is padding too.
        every = np.arange(desc.offset0, places(desc))
    else:
        around = tuple((0, 0) for _ in desc.dims)
        whole = replace(desc.geometry, dims=desc.padded_dims, padding=around)
        every = type(desc).of(whole, desc.dtype).offsets().ravel()
    return np.setdiff1d(every, desc.offsets().ravel(), assume_unique=True)
