"""Reading and writing planes in numpy: by views of bytes where digits allow it, else by address.

Digits whose strides are whole bytes become axes of a view. The others run through a few values
each, and every combination of these is one view, one shift and one mask.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from itertools import product
from math import gcd
from typing import Any, NamedTuple

import numpy as np
from numpy.lib.stride_tricks import as_strided
from numpy.typing import NDArray

from ..formats.expr import Var
from .planes import Field, Plane

Array = NDArray[Any]


class _Axis(NamedTuple):
    """Values of a digit as an axis: how many, bytes in memory, and elements in the array."""

    size: int
    step: int
    elements: int


class _Part(NamedTuple):
    """Values that a view of bytes has: the bit of the first one, and its place in the array."""

    bit: int
    element: int
    axes: tuple[_Axis, ...]


Apart = tuple[tuple[int, NDArray[np.uint8]], ...]
"""The buffers of a tensor: of each its first byte in the whole, and its bytes."""


def read_field(raw: NDArray[np.uint8] | Apart, field: Field) -> Array:
    """The unsigned codes of a field, of shape `Field.extents`."""
    kind = np.dtype(f"u{field.dtype.nbytes}")
    result: Array | None = None
    for low, plane in field.parts:
        at, data = raw[plane.buffer] if isinstance(raw, tuple) else (0, raw)
        own = _read(data, replace(plane, first_bit=plane.first_bit - 8 * at), field.extents, kind)
        result = own if result is None else result | own << np.array(low, kind)
    assert result is not None  # noqa: S101  # a field has planes
    if field.bias:
        mask = np.array((1 << field.bits) - 1, kind)
        result = (result - np.array(field.bias, kind)) & mask
    return result


def write_field(
    raw: NDArray[np.uint8], field: Field, codes: Array, buffer: tuple[int, int] | None = None
) -> None:
    """Or the codes of a field into bytes that are zero where it lies.

    With ``buffer``, its number and first byte, ``raw`` has that buffer alone.
    """
    kind = np.dtype(f"u{field.dtype.nbytes}")
    values = codes.astype(kind, copy=False).reshape(field.extents)
    if field.bias:
        values = (values + np.array(field.bias, kind)) & np.array((1 << field.bits) - 1, kind)
    for low, plane in field.parts:
        if buffer is None or buffer[0] == plane.buffer:
            mask = np.array((1 << plane.bits) - 1, kind)
            first = plane.first_bit - (8 * buffer[1] if buffer else 0)
            _write(raw, replace(plane, first_bit=first), values >> np.array(low, kind) & mask)


def _read(
    raw: NDArray[np.uint8], plane: Plane, extents: tuple[int, int, int], kind: np.dtype[Any]
) -> Array:
    if not plane.is_plain:
        return _gathered(raw, plane, extents, kind)
    result = np.empty(plane.padded, kind)
    mask = np.array((1 << plane.bits) - 1, kind)
    for part in _parts(plane):
        at, shift = divmod(part.bit, 8)
        view = _word(raw, part, at, shift + plane.bits, kind)
        shown = view if shift == 0 else view >> np.array(shift, view.dtype)
        whole = plane.bits == 8 * view.dtype.itemsize
        _elements(result, part)[...] = shown if whole else shown & mask.astype(view.dtype)
    return result[tuple(map(slice, extents))]


def _write(raw: NDArray[np.uint8], plane: Plane, values: Array) -> None:
    if not plane.is_plain:
        _scattered(raw, plane, values)
        return
    padded = values
    if values.shape != plane.padded:
        padded = np.zeros(plane.padded, values.dtype)
        padded[tuple(map(slice, values.shape))] = values
    padded = np.ascontiguousarray(padded)
    for part in _parts(plane):
        at, shift = divmod(part.bit, 8)
        own = _elements(padded, part)
        wide = own.astype(np.uint64) << np.uint64(shift) if shift + plane.bits > 8 else own << shift
        for byte in range(-(-(shift + plane.bits) // 8)):
            view = _bytes(raw, part, at + byte)
            view |= (wide >> np.array(8 * byte, wide.dtype)).astype(np.uint8)


def _parts(plane: Plane) -> Iterator[_Part]:
    """Every combination of the digits whose strides are no whole bytes."""
    outer: list[_Axis] = []
    inner: list[list[tuple[int, int, _Axis]]] = []
    scale = (plane.padded[1] * plane.padded[2], plane.padded[2], 1)
    for d in plane.digits:
        elements = d.step * scale[d.dim]
        turns = 8 // gcd(d.stride, 8)
        if turns == 1:
            outer.append(_Axis(d.size, d.stride // 8, elements))
            continue
        inner.append(
            [
                (j * d.stride, j * elements,
                 _Axis(-(-(d.size - j) // turns), d.stride * turns // 8, elements * turns))
                for j in range(min(turns, d.size))
            ]
        )  # fmt: skip
    for chosen in product(*inner):
        axes = (*outer, *(axis for *_, axis in chosen))
        bit = plane.first_bit + sum(c[0] for c in chosen)
        yield _Part(bit, sum(c[1] for c in chosen), tuple(a for a in axes if a.size > 1))


def _word(raw: NDArray[np.uint8], part: _Part, at: int, bits: int, kind: np.dtype[Any]) -> Array:
    """The bytes that a value touches, as one integer."""
    nbytes = -(-bits // 8)
    if nbytes in (1, 2, 4):
        shape, strides = [a.size for a in part.axes], [a.step for a in part.axes]
        wide: Array = np.ndarray(tuple(shape), f"<u{nbytes}", raw.data, at, tuple(strides))
        return wide if nbytes >= kind.itemsize else wide.astype(kind)
    wide = np.zeros([a.size for a in part.axes], np.uint64)
    for byte in range(nbytes):
        wide |= _bytes(raw, part, at + byte).astype(np.uint64) << np.uint64(8 * byte)
    return wide


def _bytes(raw: NDArray[np.uint8], part: _Part, at: int) -> Array:
    view = as_strided(raw[at:], [a.size for a in part.axes], [a.step for a in part.axes])
    return np.asarray(view)


def _elements(array: Array, part: _Part) -> Array:
    item = array.itemsize
    flat = array.reshape(-1)[part.element :]
    return as_strided(flat, [a.size for a in part.axes], [a.elements * item for a in part.axes])


def _addresses(plane: Plane, extents: tuple[int, int, int]) -> NDArray[np.int64]:
    e, n, k = np.ogrid[tuple(slice(0, size) for size in extents)]
    found = plane.address((Var("e"), Var("n"), Var("k"))).evaluate({"e": e, "n": n, "k": k})
    return np.broadcast_to(np.asarray(found, np.int64), extents)


def _gathered(
    raw: NDArray[np.uint8], plane: Plane, extents: tuple[int, int, int], kind: np.dtype[Any]
) -> Array:
    where = _addresses(plane, extents)
    result = np.zeros(extents, kind)
    for b in range(plane.bits):
        bit = where + b
        result |= (raw[bit >> 3] >> (bit & 7).astype(np.uint8) & 1).astype(kind) << np.array(
            b, kind
        )
    return result


def _scattered(raw: NDArray[np.uint8], plane: Plane, values: Array) -> None:
    where = _addresses(plane, (values.shape[0], values.shape[1], values.shape[2]))
    for b in range(plane.bits):
        bit = (where + b).ravel()
        on = (values >> np.array(b, values.dtype) & 1).astype(bool).ravel()
        np.bitwise_or.at(raw, bit[on] >> 3, (1 << (bit[on] & 7)).astype(np.uint8))
