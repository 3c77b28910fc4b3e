"""From the text of a layout and the dims of a tensor to planes: digits with strides in bits."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from math import prod

from ..errors import InvalidDescriptor, InvalidFormat
from ..formats.digits import Digit, Layout, ceil_div, round_up
from .owners import check_apart, unturned
from .planes import LETTERS, Buffer, Field, Plane, PlaneDigit
from .text import TextBuffer, TextDigit, TextField, TextPlane
from .types import WHOLE, FieldType, QuantisedType

ALIGNMENT = 128
"""Buffers begin at multiples of so many bytes: what OpenCL promises of sub-buffers at least."""
_DIMS = {"e": 0, "n": 1, "r": 1, "k": 2, "g": 2}

Extents = tuple[int, int, int]


@dataclass(frozen=True, slots=True)
class Placement:
    """A layout in a tensor: its fields, their planes by name, and the buffers."""

    fields: dict[str, Field]
    planes: dict[str, Plane]
    buffers: tuple[Buffer, ...]


@dataclass(frozen=True, slots=True)
class _Open:
    """A digit in a plane, before strides: ``size`` None where it is open; steps count groups."""

    dim: int
    step: int
    size: int | None
    text: TextDigit


def placed(kind: QuantisedType, buffers: Sequence[TextBuffer], dims: tuple[int, ...]) -> Placement:
    """The planes of a tensor. Raises `InvalidDescriptor` and `InvalidFormat`."""
    extents = extents_of(dims)
    fields: dict[str, Field] = {}
    planes: dict[str, Plane] = {}
    made: list[Buffer] = []
    for described in buffers:
        own = list(described.fields)
        groups = [own] if described.shared else _one_each(own)
        for group in groups:
            at = round_up(made[-1].start + made[-1].nbytes, ALIGNMENT) if made else 0
            found = _placed_in(kind, described, group, extents, at, len(made))
            if all(extents):
                _check_apart(described, group, found, len(_outer(described, extents)), at)
            names = "+".join(p.name for f in found.values() for p in f)
            size = _size(described, found, extents, at) if all(extents) else 0
            made.append(Buffer(names, at, size))
            for name, parts in found.items():
                _check_names(name, parts, planes)
                planes |= {p.name: p for p in parts}
                before = fields[name].planes if name in fields else ()
                fields[name] = _field(kind, dims, extents, group, name, (*before, *parts))
    return Placement({n: fields[n] for n in kind.fields}, planes, tuple(made))


def extents_of(dims: tuple[int, ...]) -> Extents:
    """Experts, rows and columns of dims in logical order: columns last, rows before them."""
    if not dims:
        raise InvalidDescriptor("got no dims, expected (rows, columns), experts in front")
    return prod(dims[:-2]), dims[-2] if len(dims) > 1 else 1, dims[-1]


def grouped(extents: Extents, group: tuple[int, int]) -> Extents:
    """The extents of a field: groups of rows and columns, the last ones perhaps short."""
    e, *rest = extents
    n, k = (1 if g == WHOLE else ceil_div(n, g) for n, g in zip(rest, group, strict=True))
    return e, n, k


def _one_each(fields: Sequence[TextField]) -> list[list[TextField]]:
    """Each plane by itself, in a buffer of its own."""
    return [[TextField(f.name, f.bias, (p,))] for f in fields for p in f.planes]


def _field(
    kind: QuantisedType,
    dims: tuple[int, ...],
    extents: Extents,
    group: Sequence[TextField],
    name: str,
    planes: tuple[Plane, ...],
) -> Field:
    own = kind.fields[name]
    sizes = grouped(extents, own.group)
    bias = next(f.bias for f in group if f.name == name)
    shape = (*dims[:-2], *sizes[3 - min(len(dims), 2) :])
    return Field(name, shape, sizes, own.dtype, own.group, planes, bias % (1 << own.dtype.bits))


def _placed_in(
    kind: QuantisedType,
    described: TextBuffer,
    group: Sequence[TextField],
    extents: Extents,
    at: int,
    number: int,
) -> dict[str, list[Plane]]:
    """The planes of one buffer, by field."""
    result: dict[str, list[Plane]] = {}
    outer = _outer(described, extents)
    for field in group:
        own = kind.fields[field.name]
        for plane in field.planes:
            bits = plane.bits or own.dtype.bits
            sizes = grouped(extents, own.group)
            digits = [*_grouped_digits(outer, own), *_inner(plane, own, extents, sizes, bits)]
            if not outer:
                digits = _with_experts(plane, digits, sizes, bits)
            padded = _checked(field.name, digits, sizes)
            first = 8 * at + _number(plane.first, extents)
            named = _plane_name(field.name, plane.number)
            made = Plane(named, bits, tuple(digits), first, number, padded)
            result.setdefault(field.name, []).append(made)
    return result


def _check_names(field: str, parts: Sequence[Plane], others: Mapping[str, Plane]) -> None:
    """Refuse a field with the name of another one's plane."""
    for plane in parts:
        if plane.name in others:
            raise InvalidFormat(
                f"field {field}: a plane of another field is called {plane.name}, too: give the "
                f"field another name"
            )


def _plane_name(field: str, k: int) -> str:
    return field if k == 0 else field + ("h" if k == 1 else str(k))


def _outer(described: TextBuffer, extents: Extents) -> list[PlaneDigit]:
    """The digits of records, with strides: steps and sizes in elements."""
    if not described.outer:
        return []
    result: list[PlaneDigit] = []
    stride = 8 * described.nbytes
    for text in reversed(described.outer):
        dim = _DIMS[text.letter]
        if extents[dim] % text.step:
            what = "columns" if dim == 2 else "rows"
            raise InvalidDescriptor(
                f"got {extents[dim]} {what}, expected a multiple of {text.step}: records are whole"
            )
        size = extents[dim] // text.step
        result.append(PlaneDigit(dim, text.step, size, stride))
        stride *= size
    if all(d.dim for d in result):
        result.append(PlaneDigit(0, 1, extents[0], stride))
    return result[::-1]


def _check_apart(
    described: TextBuffer,
    group: Sequence[TextField],
    found: dict[str, list[Plane]],
    outer: int,
    at: int,
) -> None:
    """Raise `InvalidFormat` where values share a bit, or one lies behind the end of its record."""
    planes = [p for own in found.values() for p in own]
    for plane in planes if outer else ():
        end = plane.first_bit - 8 * at + plane.bits
        end += sum((d.size - 1) * d.stride for d in plane.digits[outer:])
        if end > 8 * described.nbytes:
            raise InvalidFormat(
                f"{plane.name} needs {-(-end // 8)} bytes of a record of {described.nbytes}: make "
                f"records larger, or its first bit or strides smaller"
            )
    texts = [p for field in group for p in field.planes]
    is_dense = len(texts) == 1 and all(d.stride is None for d in texts[0].digits)
    if not is_dense or not planes[0].is_plain:
        check_apart(planes, outer)


def _grouped_digits(outer: Sequence[PlaneDigit], own: FieldType) -> list[PlaneDigit]:
    """The digits of records, for a field whose indices count groups."""
    result = []
    for d in outer:
        group = (1, *own.group)[d.dim]
        if group == WHOLE or d.step % group:
            raise InvalidFormat(f"records of {d.step} {LETTERS[d.dim]} cannot hold one value for "
                                f"{group or 'all'}")  # fmt: skip
        result.append(PlaneDigit(d.dim, d.step // group, d.size, d.stride))
    return result


def _inner(
    plane: TextPlane, own: FieldType, extents: Extents, sizes: Extents, bits: int
) -> list[PlaneDigit]:
    """The digits that a plane's text writes out, with strides."""
    opened = [_opened(d, own) for d in plane.digits]
    if opened and opened[0].text.stride is not None:
        return [
            PlaneDigit(o.dim, o.step, _sized(o, sizes), _number(o.text.stride or "", extents),
                       o.text.mul, o.text.add)
            for o in opened
        ]  # fmt: skip
    result: list[PlaneDigit] = []
    stride = bits
    for o in reversed(opened):
        stride = round_up(stride, o.text.rounded)
        size = _sized(o, sizes)
        result.append(PlaneDigit(o.dim, o.step, size, stride, o.text.mul, o.text.add))
        stride *= size
    return result[::-1]


def _opened(digit: TextDigit, own: FieldType) -> _Open:
    dim = _DIMS[digit.letter]
    group = (1, *own.group)[dim]
    if digit.letter in "gr" or group in (1, WHOLE):
        return _Open(dim, digit.step, digit.size, digit)
    span = digit.step * (digit.size or 1)
    if digit.step % group and (digit.size is None or span > group):
        raise InvalidFormat(
            f"the digit {digit.letter}/{digit.step} cuts groups of {group}: write g "
            f"for columns and r for rows in groups"
        )
    return _Open(dim, max(1, digit.step // group), digit.size, digit)


def _sized(o: _Open, sizes: Extents) -> int:
    if o.size is not None:
        return o.size
    return ceil_div(o.text.mul * sizes[o.dim], o.step)


def _with_experts(
    plane: TextPlane, digits: list[PlaneDigit], sizes: Extents, bits: int
) -> list[PlaneDigit]:
    """Experts outermost; planes that say their strides themselves cannot have them."""
    if any(d.dim == 0 for d in digits):
        return digits
    if not any(d.stride is not None for d in plane.digits):
        stride = digits[0].stride * digits[0].size if digits else bits
        return [PlaneDigit(0, 1, sizes[0], stride), *digits]
    if sizes[0] != 1:
        raise InvalidDescriptor("planes that share a buffer without records cannot have experts "
                                "in front: unpack each by itself")  # fmt: skip
    return [PlaneDigit(0, 1, 1, bits), *digits]


def _checked(name: str, digits: Sequence[PlaneDigit], sizes: Extents) -> Extents:
    """The padded extents; raises `InvalidFormat` where values do not have one place each."""
    chains = [[unturned(d) for d in digits if d.dim == dim] for dim in range(3)]
    streams = [not all(d.is_plain for d in chain) for chain in chains]  # `check_apart` knows those
    own: list[Digit] = []
    for dim, chain in enumerate(chains):
        if streams[dim]:
            own.append(Digit(dim, None))
            continue
        last = max(chain, key=lambda d: d.step, default=None)
        if last is None and sizes[dim] > 1:
            raise InvalidFormat(
                f"field {name}: no digit of {LETTERS[dim]}, of which there are {sizes[dim]}"
            )
        own += [Digit(dim, None if d is last else d.size, d.step) for d in chain]
        own += [Digit(dim, None)] * (last is None)
    Layout(3, tuple(own))
    counts = [
        sizes[dim] if streams[dim] else prod(d.size for d in chain)
        for dim, chain in enumerate(chains)
    ]
    if any(c < n for c, n in zip(counts, sizes, strict=True)):
        raise InvalidFormat(f"field {name}: the digits number {counts} values, of {sizes}")
    if not all(d.is_plain for d in digits):
        return sizes
    return counts[0], counts[1], counts[2]


def _number(text: str, extents: Extents) -> int:
    """The value of a stride such as ``8``, ``96n`` or ``4+32n``."""
    of = {"n": extents[1], "k": extents[2], "": 1}
    found = re.findall(r"(\d+)([nk]?)", text)
    return sum(int(number) * of[letter] for number, letter in found)


def _size(described: TextBuffer, found: dict[str, list[Plane]], extents: Extents, at: int) -> int:
    """The bytes of a buffer."""
    if described.outer:
        outer = _outer(described, extents)
        return described.nbytes * prod(d.size for d in outer)
    return max(ceil_div(_end(p) - 8 * at, 8) for own in found.values() for p in own)


def _end(plane: Plane) -> int:
    """The bit behind a plane and the padding of its outermost stride."""
    last = max(plane.digits, key=lambda d: d.stride, default=None)
    if last is None:
        return plane.first_bit + plane.bits
    return max(plane.first_bit + last.stride * last.size, plane.end_bit)
