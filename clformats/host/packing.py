"""Pack and unpack in numpy, without a device.

The same by the offset of each element, which this is tested against, is `clformats.oracle`.
"""

from __future__ import annotations

from math import prod
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ..errors import InvalidDescriptor
from ..formats import Format
from ..formats.registry import without_bits
from ..formats.sums import Sums
from ..tensors.desc import MemoryDesc
from ..tensors.dtypes import DTYPES, DType, as_array, as_dtype, convert, saturate
from ..tensors.given import as_desc
from .axes import in_order
from .copying import move
from .views import elements, padding


def pack(array: Any, desc: MemoryDesc | Format | str, *, axes: str | None = None) -> NDArray[Any]:
    """``array`` as it lies in memory under ``desc``: a 1-D array of elements, padding zero.

    Of element types that share bytes (``s4 u4 u1``) it is an array of those bytes, uint8.

    ``desc`` may be its text, or a format alone: ``pack(x, "nChw16c")`` takes shape and element type
    of the array. ``axes`` are those of the array, as of `clformats.from_numpy`.

    ``array`` has the shape ``desc.dims``, its elements are converted to ``desc.dtype`` by the rules
    of `clformats.dtypes` if they are of another type. The result holds ``desc.nbytes`` bytes, or
    ``desc.span_nbytes`` where that is more. Raises `InvalidDescriptor` for another shape.
    """
    array = as_array(array)
    if isinstance(desc, Format) or (isinstance(desc, str) and ":" not in without_bits(desc)):
        array = in_order(array, axes, desc)
        desc = MemoryDesc(array.shape, as_dtype(array.dtype), desc)
    else:
        desc = as_desc(desc, "desc")
        array = in_order(array, axes, desc.format if axes else None)
    desc.require_layout()
    _check_shape(array, desc)
    flat = (np.empty if _is_whole(desc) else np.zeros)(flat_size(desc), desc.dtype.numpy)
    _write(flat, array, desc)
    return shared(flat, desc.dtype) if desc.dtype.is_packed else flat


def pack_into(flat: NDArray[Any], array: NDArray[Any], desc: MemoryDesc) -> None:
    """As `pack`, into an array of `storage_size` elements, whatever it holds."""
    if desc.dtype.is_packed:
        flat[:] = pack(array, desc)
        return
    _check_shape(array, desc)
    if not _is_whole(desc):
        raw = flat.view(desc.dtype.raw)
        move([(raw, np.broadcast_to(raw.dtype.type(0), raw.shape))])
    _write(flat, array, desc)


def _check_shape(array: NDArray[Any], desc: MemoryDesc) -> None:
    if array.ndim == 0 and desc.dims != ():
        raise InvalidDescriptor(f"got the single value {array!r}, expected an array of {desc.dims}")
    if array.shape != desc.dims:
        raise InvalidDescriptor(
            f"got an array of shape {array.shape}, expected {desc.dims}, the dims of {desc} "
            f"in logical order ({', '.join(desc.format.dims)})"
        )


def _is_whole(desc: MemoryDesc) -> bool:
    """Whether elements fill all of the memory: no padding, no gaps, nothing before or behind."""
    spread = all(p.stride for p in desc.placed if p.size > 1)
    return spread and desc.nelems == flat_size(desc)


def is_gapless(desc: MemoryDesc) -> bool:
    """Whether elements and padding fill all of the memory, so that a reorder writes every byte."""
    filled = prod(p.size for p in desc.placed if p.stride) == flat_size(desc)
    return filled and not (desc.dtype.is_packed or desc.sums)


def _write(flat: NDArray[Any], array: NDArray[Any], desc: MemoryDesc) -> None:
    """All elements and sums to their places; everything else stays."""
    if not desc.nelems:
        return
    if desc.sums:
        array = as_type(array, desc.dtype)
        flat[desc.sums_at : desc.span_nbytes] = all_sums(array, desc)
    raw = desc.dtype.raw
    if array.dtype == desc.dtype.numpy:
        move(elements(flat.view(raw), array.view(raw), desc))
    else:
        pairs = elements(flat.view(raw), array, desc)
        move(pairs, lambda piece: as_type(piece, desc.dtype).view(raw))


def as_type(array: NDArray[Any], dtype: DType) -> NDArray[Any]:
    """The values as ``dtype``; integers that have no type of ours saturate, bool counts 0 and 1."""
    native = array.astype(array.dtype.newbyteorder("="), copy=False)
    if native.dtype.kind in "iub" and native.dtype not in (d.numpy for d in map(as_dtype, DTYPES)):
        if not dtype.is_float:
            return saturate(native, dtype)
        wide = as_dtype("f64" if dtype.name == "f64" else "f32")
        return convert(native.astype(wide.numpy), wide, dtype)
    return convert(native, as_dtype(native.dtype), dtype)


def all_sums(values: NDArray[Any], desc: MemoryDesc) -> NDArray[Any]:
    """The bytes of all sums behind ``values``, as elements; none for most descriptors."""
    bytes_ = [sums_of(values, desc, sums).tobytes() for sums in desc.sums]
    return np.frombuffer(b"".join(bytes_), desc.dtype.numpy)


def sums_of(values: NDArray[Any], desc: MemoryDesc, sums: Sums) -> NDArray[Any]:
    """One of the arrays of sums behind ``values`` of shape ``desc.dims``: see `MemoryDesc.sums`."""
    rest = [d for d in range(desc.ndims) if d not in sums.over]
    total = values.sum(sums.over, dtype=np.int64) * sums.factor
    if sums.none_at:
        excepted = dict(sums.none_at)
        total[tuple(slice(excepted[d], excepted[d] + 1) if d in excepted else slice(None)
                    for d in rest)] = 0  # fmt: skip
    ordered = total.transpose([rest.index(d) for d in sums.dims])
    result = np.zeros(sums.shape(desc.dims, desc.padded_dims), as_dtype(sums.dtype).numpy)
    result[tuple(map(slice, ordered.shape))] = ordered
    return result


def unpack(flat: Any, desc: MemoryDesc | str) -> NDArray[Any]:
    """The logical tensor, of shape ``desc.dims``, from the 1-D array that `pack` makes.

    Raises `InvalidDescriptor` where ``flat`` is of another type or too short.
    """
    desc = as_desc(desc, "desc")
    desc.require_layout()
    flat = as_array(flat)
    storage = desc.dtype.storage
    size = -(-desc.span_nbytes // storage.itemsize)
    if flat.ndim != 1 or flat.dtype != storage or flat.size < size:
        raise InvalidDescriptor(
            f"got an array of {flat.dtype} and shape {flat.shape}, expected a 1-D array of "
            f"{storage} with at least {size} elements for {desc}"
        )
    array = np.empty(desc.dims, desc.dtype.numpy)
    if desc.nelems:
        if desc.dtype.is_packed:
            flat = taken_apart(flat, desc.dtype)
        raw = desc.dtype.raw
        pairs = elements(flat.view(raw), array.view(raw), desc)
        move((to, source) for source, to in pairs)
    return array


def flat_size(desc: MemoryDesc) -> int:
    """The number of physical elements, padding counted, that a buffer for ``desc`` has."""
    return max(desc.nbytes, desc.span_nbytes) * 8 // desc.dtype.bits


def places(desc: MemoryDesc) -> int:
    """As `flat_size`, but without what lies behind the elements and their padding."""
    behind = desc.span_nbytes - desc.sums_at if desc.sums else 0
    return flat_size(desc) - behind * 8 // desc.dtype.bits


def storage_size(desc: MemoryDesc) -> int:
    """As `flat_size`, but in bytes where several elements share one: the size of `pack`'s array."""
    return flat_size(desc) * desc.dtype.bits // 8 // desc.dtype.storage.itemsize


def zero_padding(flat: NDArray[Any], desc: MemoryDesc) -> None:
    """Make the padding zero in the array that `pack` makes; elements and gaps stay."""
    if not desc.nelems:
        return
    taken = taken_apart(flat, desc.dtype) if desc.dtype.is_packed else flat
    for view in padding(taken.view(desc.dtype.raw), desc):
        view[...] = 0
    if desc.dtype.is_packed:
        flat[:] = shared(taken, desc.dtype)


def shared(flat: NDArray[Any], dtype: DType) -> NDArray[np.uint8]:
    """Elements to the bytes they share; the first in the lowest bits."""
    values = flat.astype(np.int8).view(np.uint8) & ((1 << dtype.bits) - 1)
    shifts = np.arange(0, 8, dtype.bits, dtype=np.uint8)
    return np.asarray(np.bitwise_or.reduce(values.reshape(-1, shifts.size) << shifts, axis=1))


def taken_apart(bytes_: NDArray[np.uint8], dtype: DType) -> NDArray[Any]:
    """The inverse of `shared`."""
    shifts = np.arange(0, 8, dtype.bits, dtype=np.uint8)
    values = (bytes_[:, None] >> shifts & ((1 << dtype.bits) - 1)).ravel().astype(np.int8)
    _, highest = dtype.limits
    values[values > highest] -= 1 << dtype.bits
    return values.astype(dtype.numpy)
