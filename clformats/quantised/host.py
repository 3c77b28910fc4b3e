"""Packing and unpacking quantised tensors on the host, and moving them between layouts."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from math import prod
from typing import Any, Protocol

import numpy as np
from numpy.typing import NDArray

from ..errors import InvalidArgument, InvalidDescriptor, expect
from ..tensors.dtypes import as_array
from .bits import Apart, read_field, write_field
from .exact import change_of
from .planes import Buffer, Field
from .rows import part_of, parts
from .rules import quantised
from .types import WHOLE, QuantisedType

Array = NDArray[Any]
ROWS_AT_ONCE = 1 << 18
"""About so many values are computed together, so that what is made between stays in the caches."""


class Placed(Protocol):
    """What packing asks of a `QuantisedDesc`."""

    dims: tuple[int, ...]
    dtype: QuantisedType
    fields: dict[str, Field]
    buffers: tuple[Buffer, ...]

    @property
    def nbytes(self) -> int:
        """The bytes of all buffers."""

    @property
    def extents(self) -> tuple[int, int, int]:
        """Experts, rows and columns."""

    def join(self, buffers: Mapping[str, Any]) -> NDArray[np.uint8]:
        """The bytes of a tensor, from those of its buffers."""


def as_bytes(raw: Any, desc: Placed) -> NDArray[np.uint8]:
    """The bytes of a tensor as a flat array. Raises `InvalidDescriptor` where they are too few."""
    data = as_array(raw)
    fits = data.ndim == 1 and data.dtype == np.uint8 and data.size >= desc.nbytes
    if not fits:
        raise InvalidDescriptor(
            f"got an array of {data.dtype} and shape {data.shape}, expected a 1-D array of uint8 "
            f"with at least {desc.nbytes} bytes for {desc}"
        )
    return np.ascontiguousarray(data)


def unpack(raw: Any, desc: Placed, field: str | None = None) -> Array:
    """The values in f32, of shape ``desc.dims``; with ``field`` the codes of that field.

    Floats of 16 and 32 bits are given as floats, other codes as integers. Every step of the type's
    formula is rounded to f32. Raises `InvalidDescriptor`.
    """
    expect(field, str | None, "field")
    if isinstance(raw, Mapping):
        raw = desc.join(raw)
    data = as_bytes(raw, desc)
    if field is not None and field not in desc.fields:
        raise InvalidArgument(f"field: got {field!r}, expected one of {', '.join(desc.fields)}")
    if not all(desc.dims):
        own = None if field is None else desc.fields[field]
        return np.zeros(own.dims, own.dtype.numpy) if own else np.zeros(desc.dims, np.float32)
    if field is not None:
        own = desc.fields[field]
        return own.dtype.array(read_field(data, own)).reshape(own.dims)
    codes = {n: f.dtype.array(read_field(data, f)) for n, f in desc.fields.items()}
    return values_of(desc.dtype, codes, desc.extents).reshape(desc.dims)


def pack(values: Any, desc: Placed) -> NDArray[np.uint8]:
    """The bytes of a tensor: of values by the type's rule, of a dict of all its fields exactly.

    Raises `InvalidDescriptor` for shapes and codes that do not fit, `Unsupported` (code QUANTISE)
    where the type has no rule.
    """
    if isinstance(values, Mapping):
        return from_codes(_checked(values, desc), desc)
    array = as_array(values)
    if array.dtype.kind not in "fiubV" or array.shape != desc.dims:
        is_raw = array.dtype == np.uint8 and array.shape == (desc.nbytes,)
        hint = ": these are its bytes, which cf.HostMemory(desc, raw) holds and cf.transfer moves"
        raise InvalidDescriptor(
            f"got an array of {array.dtype} and shape {array.shape}, expected numbers of shape "
            f"{desc.dims} for {desc}{hint * is_raw}"
        )
    if not array.size:
        return np.zeros(0, np.uint8)
    with np.errstate(all="ignore"):
        numbers = array.astype(np.float32)
    return from_codes(quantised(desc.dtype, numbers.reshape(desc.extents)), desc)


def from_codes(codes: Mapping[str, Array], desc: Placed) -> NDArray[np.uint8]:
    """The bytes of a tensor from unsigned codes of the extents of each field."""
    raw = np.zeros(desc.nbytes, np.uint8)
    for name, field in desc.fields.items() if raw.size else ():
        write_field(raw, field, codes[name])
    return raw


def moved(raw: Any, src: Placed, dst: Placed) -> NDArray[np.uint8]:
    """The bytes of a tensor in another layout of its type: the same codes, exactly.

    Raises `InvalidDescriptor` where type or dims differ.
    """
    if src.dtype != dst.dtype:
        raise InvalidDescriptor(f"got {src} and {dst}, expected two layouts of one type and dims")
    result = np.zeros(dst.nbytes, np.uint8)
    move_into(result, raw, src, dst)
    return result


def move_into(
    out: NDArray[np.uint8], raw: Any, src: Placed, dst: Placed, buffer: int | None = None
) -> None:
    """As `moved`, into bytes that are zero, a few rows after the other; or to an equal type.

    ``raw`` may be a dict of the buffers' bytes. With ``buffer`` only that one is written, to bytes
    of its own. Types are equal where `exact.change_of` says
    so. Raises `InvalidDescriptor` for other dims, and `Unsupported` (code QUANTISE) where values
    would change.
    """
    data = _bytes_of(raw, src)
    place = None if buffer is None else (buffer, dst.buffers[buffer].start)
    for codes, fields in _codes(data, src, dst, buffer):
        for name, field in fields.items():
            write_field(out, field, codes[name], place)


def is_same(a: Any, src: Placed, b: Any, dst: Placed) -> bool:
    """Whether the bytes ``b`` are what `move_into` makes of ``a``, but for padding."""
    found, data = _bytes_of(b, dst), _bytes_of(a, src)
    return all(
        np.array_equal(codes[name], read_field(found, field))
        for codes, fields in _codes(data, src, dst)
        for name, field in fields.items()
    )


def _bytes_of(raw: Any, desc: Placed) -> NDArray[np.uint8] | Apart:
    """The bytes of a tensor, or those of each buffer, as a dict of them says in their order."""
    if not isinstance(raw, Mapping):
        return as_bytes(raw, desc)
    return tuple(
        (b.start, np.ascontiguousarray(own).reshape(-1).view(np.uint8))
        for b, own in zip(desc.buffers, raw.values(), strict=True)
    )


def _codes(
    data: NDArray[np.uint8] | Apart, src: Placed, dst: Placed, buffer: int | None = None
) -> Iterator[tuple[dict[str, Array], dict[str, Field]]]:
    """Codes of ``dst`` made of those of ``src``, and the fields that they are of, part by part."""
    change = change_of(src.dtype, dst.dtype)
    if src.dims != dst.dims:
        raise InvalidDescriptor(f"got {src} and {dst}, expected equal dims")
    wanted = {n: f for n, f in dst.fields.items()
              if buffer is None or buffer in {p.buffer for p in f.planes}}  # fmt: skip
    read = {n: f for n, f in src.fields.items() if src.dtype != dst.dtype or n in wanted}
    every = [*src.fields.values(), *dst.fields.values()]
    for part in parts(src.extents, every) if all(src.dims) else ():
        own = {n: part_of(f, part) for n, f in read.items()}
        codes = change({n: read_field(data, f) for n, f in own.items() if f})
        fields = {n: part_of(f, part) for n, f in wanted.items()}
        yield codes, {n: f for n, f in fields.items() if f and n in codes}


def _checked(values: Mapping[str, Any], desc: Placed) -> dict[str, Array]:
    if sorted(values) != sorted(desc.fields):
        raise InvalidDescriptor(f"got the fields {sorted(values)}, expected {list(desc.fields)} of "
                                f"{desc}, all of them")  # fmt: skip
    result = {}
    for name, field in desc.fields.items():
        codes = field.dtype.codes_of(values[name], f"field {name}")
        if codes.shape != field.dims:
            raise InvalidDescriptor(
                f"field {name}: got the shape {codes.shape}, expected {field.dims} in {desc}"
            )
        result[name] = codes.reshape(field.extents)
    return result


def values_of(
    kind: QuantisedType, codes: Mapping[str, Array], extents: tuple[int, int, int]
) -> Array:
    """The values of a type's formula, of codes of its fields, in f32.

    Each dimension becomes one axis for each size of group, so that parameters broadcast and every
    step is computed once for the values that share it.
    """
    e, n, k = extents
    columns = _axes(kind, 1, k)
    rows = _axes(kind, 0, n)
    whole = prod(columns)
    result = np.empty((e * n, k), np.float32)
    at_once = max(1, ROWS_AT_ONCE // whole)
    simple = len(rows) == 1
    parts = range(0, e * n, at_once) if simple else range(0, e * n, n)
    step = at_once if simple else n
    for start in parts:
        stop = min(start + step, e * n)
        own = {
            name: _shaped(kind, name, _rows(kind, name, array, start, stop, n), columns, rows)
            for name, array in codes.items()
        }
        found = kind.formula.evaluate(own)
        shape = (stop - start if simple else prod(rows), whole)
        full = np.broadcast_to(found, _full(found.ndim, stop - start, rows, columns, simple=simple))
        result[start:stop] = full.reshape(shape)[: stop - start, :k]
    return result.reshape(extents)


def _full(
    ndim: int, count: int, rows: Sequence[int], columns: Sequence[int], *, simple: bool
) -> tuple[int, ...]:
    del ndim
    return (*((count,) if simple else rows), *columns)


def _rows(kind: QuantisedType, name: str, array: Array, start: int, stop: int, n: int) -> Array:
    """What rows ``start`` to ``stop`` of all experts' need of a field, a row (or group) each."""
    group = kind.fields[name].group[0]
    flat: Array = array.reshape(-1, array.shape[2])
    if group == 1:
        return flat[start:stop]
    first, last = start // n, (stop - 1) // n
    if group == WHOLE:
        return flat[first : first + 1] if first == last else flat[np.arange(start, stop) // n]
    rows = array.shape[1]
    return flat[first * rows : (first + 1) * rows]


def _axes(kind: QuantisedType, dim: int, extent: int) -> list[int]:
    """The sizes of the axes of a dimension, for the sizes of groups that the type has."""
    sizes = sorted({f.group_of_values[dim] for f in kind.fields.values()} - {WHOLE, 1})
    if not sizes:
        return [extent]
    inner = [b // a for a, b in zip([1, *sizes], sizes, strict=False)]
    return [-(-extent // sizes[-1]), *reversed(inner)]


def _shaped(
    kind: QuantisedType, name: str, array: Array, columns: Sequence[int], rows: Sequence[int]
) -> Array:
    """Codes of a field as values, on the axes of groups."""
    field = kind.fields[name]
    values = field.dtype.values(array)
    if field.dtype.width > 1:
        values = values.reshape(array.shape[0], -1)
    values = _on_axes(values, 1, field.group_of_values[1], columns)
    if len(rows) > 1:
        values = _on_axes(values, 0, field.group_of_values[0], rows)
    return values


def _on_axes(values: Array, axis: int, group: int, sizes: Sequence[int]) -> Array:
    """One axis split into those of groups; those inside the field's own group have size 1."""
    if group == WHOLE:
        shape = [1] * len(sizes)
    else:
        inner = list(sizes)
        covered = 1
        for at in range(len(inner) - 1, 0, -1):
            if covered >= group:
                break
            covered *= inner[at]
            inner[at] = 1
        shape = inner
        missing = prod(shape) - values.shape[axis]
        if missing:
            widths = [(0, missing if d == axis else 0) for d in range(values.ndim)]
            values = np.pad(values, widths)
    shown: Array = values.reshape(*values.shape[:axis], *shape, *values.shape[axis + 1 :])
    return shown
