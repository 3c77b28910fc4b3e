"""Pack and unpack in numpy, without a device.

The same by the offset of each element, which this is tested against, is `clformats.host.oracle`.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from math import prod
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ..errors import InvalidArgument, InvalidDescriptor
from ..formats import Format
from ..formats.registry import without_bits
from ..formats.sums import Sums
from ..tensors.desc import MemoryDesc
from ..tensors.described import Described, parsed, refuse
from ..tensors.dtypes import DType, as_array, as_dtype, codes, from_codes
from ..tensors.given import as_desc, require_memory
from .axes import in_order
from .bits import apart, joined
from .copying import move
from .views import elements, padding


def pack(
    array: Any,
    desc: MemoryDesc | Described | Format | str,
    *,
    axes: str | Sequence[str] | None = None,
    raw: bool = False,
) -> NDArray[Any]:
    """``array`` as it lies in memory under ``desc``: a 1-D array of elements, padding zero.

    Of element types of less than a byte (``s4``, ``u1``, ``f6_e2m3`` ...) it is an array of the
    bytes that they share, uint8.

    ``desc`` may be its text, or only a format: ``pack(x, "nChw16c")`` takes shape and element type
    of the array. ``axes`` are those of the array, as of `clformats.from_numpy`.

    ``array`` has the shape ``desc.dims``, its elements are converted to ``desc.dtype`` by the rules
    of docs/values.md if they are of another type: uint8 15 as ``s4`` is 7, the largest of them.
    With ``raw`` it holds codes, integers that are the bits of elements: 15 is then -1::

        >>> import numpy as np, clformats as cf
        >>> nibbles = np.array([15, 3], np.uint8)
        >>> cf.unpack(cf.pack(nibbles, "s4:a:2"), "s4:a:2").tolist()
        [7, 3]
        >>> cf.unpack(cf.pack(nibbles, "s4:a:2", raw=True), "s4:a:2").tolist()
        [-1, 3]

    The result holds ``desc.nbytes`` bytes, or ``desc.span_nbytes`` where that is more. Raises
    `InvalidDescriptor` for another shape, `InvalidArgument` for codes beyond the type's bits.

    Of a quantised type the result is bytes: values are quantised by the type's rule, and a dict of
    all its fields is packed exactly. Raises `Unsupported` (code QUANTISE) without a rule.
    """
    quantised = _described(desc)
    if quantised is not None:
        return quantised.pack(array)
    assert not isinstance(desc, Described)  # noqa: S101  # those have returned
    return _packed(as_array(array), desc, axes, raw=raw)


def _packed(
    array: NDArray[Any],
    desc: MemoryDesc | Format | str,
    axes: str | Sequence[str] | None,
    *,
    raw: bool,
) -> NDArray[Any]:
    if isinstance(desc, Format) or (isinstance(desc, str) and ":" not in without_bits(desc)):
        if raw:
            raise InvalidArgument(
                f"got raw=True with the format {desc}: codes do not say of which element type they "
                f"are, give a descriptor"
            )
        array = in_order(array, axes, desc)
        desc = MemoryDesc(array.shape, as_dtype(array.dtype), desc)
    else:
        desc = as_desc(desc, "desc")
        array = in_order(array, axes, desc.format if axes else None)
    require_memory(desc)
    _check_shape(array, desc)
    flat = _allocated(desc, flat_size(desc), zeros=not _is_whole(desc))
    _write(flat, array, desc, as_codes if raw else codes)
    return joined(flat, desc.dtype.bits) if desc.dtype.is_packed else flat.view(desc.dtype.storage)


def _allocated(
    desc: MemoryDesc, shape: int | tuple[int, ...], *, zeros: bool = False
) -> NDArray[Any]:
    """An array of codes. Raises `InvalidDescriptor` where there is no memory for it."""
    try:
        return (np.zeros if zeros else np.empty)(shape, desc.dtype.raw)
    except MemoryError as error:
        raise InvalidDescriptor(
            f"{desc} does not fit into memory ({error}): pack it in parts, which "
            f"desc.submemory(dims, offsets) describes"
        ) from error


def as_codes(array: NDArray[Any], dtype: DType) -> NDArray[Any]:
    """Integers that are codes of ``dtype``. Raises `InvalidArgument` for others."""
    if array.dtype.kind not in "iu":
        raise InvalidArgument(
            f"got raw=True and an array of {array.dtype}: codes are integers, the bits of each "
            f"element; leave raw out where the array holds values"
        )
    most = (1 << dtype.bits) - 1
    if array.size and (array.min() < 0 or array.max() > most):
        raise InvalidArgument(
            f"got codes from {array.min()} to {array.max()}, expected 0 to {most} for {dtype} of "
            f"{dtype.bits} bits; leave raw out where the array holds values"
        )
    return array.astype(dtype.raw, copy=False)


def pack_into(flat: NDArray[Any], array: Any, desc: MemoryDesc) -> None:
    """As `pack`, into an array of `storage_size` elements, whatever it holds."""
    if desc.dtype.is_packed:
        flat[:] = pack(array, desc)
        return
    array = as_array(array)
    _check_shape(array, desc)
    raw = flat.view(desc.dtype.raw)
    if not _is_whole(desc):
        move([(raw, np.broadcast_to(raw.dtype.type(0), raw.shape))])
    _write(raw, array, desc)


def _check_shape(array: NDArray[Any], desc: MemoryDesc) -> None:
    if array.ndim == 0 and desc.dims != ():
        raise InvalidDescriptor(f"got the single value {array!r}, expected an array of {desc.dims}")
    if array.shape != desc.dims:
        raise InvalidDescriptor(
            f"got an array of shape {array.shape}, expected {desc.dims}, the dims of {desc} "
            f"in logical order ({', '.join(desc.format.dims)})"
        )


def _is_whole(desc: MemoryDesc) -> bool:
    """Whether elements fill all of the memory: no padding, no gaps, nothing before or after."""
    spread = all(p.stride for p in desc.placed if p.size > 1)
    return spread and desc.nelems == flat_size(desc)


def is_gapless(desc: MemoryDesc) -> bool:
    """Whether elements and padding fill all of the memory, so that a reorder writes every byte."""
    filled = prod(p.size for p in desc.placed if p.stride) == flat_size(desc)
    return filled and not (desc.dtype.is_packed or desc.sums)


def _write(
    flat: NDArray[Any],
    array: NDArray[Any],
    desc: MemoryDesc,
    coded: Callable[[NDArray[Any], DType], NDArray[Any]] = codes,
) -> None:
    """All elements and sums to their places, as codes; everything else stays."""
    if not desc.nelems:
        return
    if desc.sums:
        array = coded(array, desc.dtype)
        values = from_codes(array, desc.dtype)
        flat[desc.sums_at : desc.span_nbytes] = all_sums(values, desc).view(flat.dtype)
        coded = as_codes
    if array.dtype == desc.dtype.numpy and desc.dtype.holds_codes and not desc.dtype.is_packed:
        move(elements(flat, array.view(flat.dtype), desc))
    else:
        move(elements(flat, array, desc), lambda piece: coded(piece, desc.dtype))


def all_sums(values: NDArray[Any], desc: MemoryDesc) -> NDArray[Any]:
    """The bytes of all sums that follow ``values``, as elements; none for most descriptors."""
    bytes_ = [sums_of(values, desc, sums).tobytes() for sums in desc.sums]
    return np.frombuffer(b"".join(bytes_), desc.dtype.numpy)


def sums_of(values: NDArray[Any], desc: MemoryDesc, sums: Sums) -> NDArray[Any]:
    """One array of the sums after ``values`` of shape ``desc.dims``: see `MemoryDesc.sums`."""
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


def unpack(
    flat: Any, desc: MemoryDesc | Described | str, *, raw: bool = False, field: str | None = None
) -> NDArray[Any]:
    """The logical tensor, of shape ``desc.dims``, from the 1-D array that `pack` makes.

    With ``raw`` its codes: unsigned integers, the bits of each element. Of a quantised type the
    values are f32; with ``field`` the codes of that field. Raises `InvalidDescriptor` where
    ``flat`` is of another type or too short.
    """
    quantised = _described(desc)
    if quantised is not None:
        return quantised.unpack(flat, field)
    if field is not None:
        raise InvalidDescriptor(f"field={field!r}: {desc} has one element type and no fields")
    desc = as_desc(desc, "desc")
    require_memory(desc)
    flat = as_array(flat)
    storage = desc.dtype.storage
    size = -(-desc.span_nbytes // storage.itemsize)
    if flat.ndim != 1 or flat.dtype != storage or flat.size < size:
        raise InvalidDescriptor(
            f"got an array of {flat.dtype} and shape {flat.shape}, expected a 1-D array of "
            f"{storage} with at least {size} elements for {desc}"
        )
    found = _allocated(desc, desc.dims)
    if desc.nelems:
        memory = apart(flat, desc.dtype.bits) if desc.dtype.is_packed else flat.view(found.dtype)
        move((to, source) for source, to in elements(memory, found, desc))
    return found if raw else from_codes(found, desc.dtype)


def _described(desc: object) -> Described | None:
    """The descriptor, or the one of a text, if it is of no single element type."""
    if isinstance(desc, str) and ":" in desc:
        found: Described | None = parsed(desc)
        return found
    return desc if isinstance(desc, Described) else None


def flat_size(desc: MemoryDesc) -> int:
    """The number of physical elements, padding counted, that a buffer for ``desc`` has."""
    return whole_nbytes(desc) * 8 // desc.dtype.bits


def places(desc: MemoryDesc) -> int:
    """As `flat_size`, but without what follows the elements and their padding."""
    behind = desc.span_nbytes - desc.sums_at if desc.sums else 0
    return flat_size(desc) - behind * 8 // desc.dtype.bits


def storage_size(desc: MemoryDesc) -> int:
    """As `flat_size`, but in bytes where several elements share one: the size of `pack`'s array."""
    return whole_nbytes(desc) // desc.dtype.storage.itemsize


def whole_nbytes(desc: MemoryDesc) -> int:
    """The bytes of a buffer for ``desc``: `MemoryDesc.nbytes`, or its span where that is more."""
    return max(desc.nbytes, desc.span_nbytes)


def zero_padding(flat: NDArray[Any], desc: MemoryDesc) -> None:
    """Make the padding zero in the array that `pack` makes; elements and gaps stay."""
    refuse(desc, "clearing the padding")
    if not desc.nelems:
        return
    if not desc.dtype.is_packed:
        for view in padding(flat.view(desc.dtype.raw), desc):
            view[...] = 0
        return
    bits = desc.dtype.bits  # whole words of codes, so that no bit after the last one is lost
    taken = apart(np.resize(flat, -(-flat.size // bits) * bits), bits)
    for view in padding(taken, desc):
        view[...] = 0
    flat[:] = joined(taken, bits)[: flat.size]
