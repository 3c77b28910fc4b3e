"""Planes that move by themselves: each as a tensor of one element type, which plain reorders move.

Two layouts of a type hold the same planes under other digits. A plane that owns its bytes is a
tensor of elements of 1 to 32 bits with strides, and so are planes that stand together in the
records of both sides: a *run* of bytes for each record. What plain reorders have, words that trade
elements in registers, schedules, streaming stores and the local memory of GPUs, serves them too.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from itertools import groupby
from math import prod

from ..errors import Error
from ..formats.digits import Digit, Layout, Placed
from ..formats.format import Format
from ..quantised.desc import QuantisedDesc
from ..quantised.planes import Buffer, Field, Plane, PlaneDigit
from ..tensors import nibbles
from ..tensors.desc import MemoryDesc
from ..tensors.geometry import Geometry

TYPES = {**{b: f"u{b}" for b in (1, 2, 3, 4, 5, 6, 8)}, 16: "f16", 32: "f32"}
"""The element types whose bits are moved for planes of so many bits."""


@dataclass(frozen=True, slots=True)
class PlaneMove:
    """A plain reorder that moves planes, within the bytes of both tensors; ``names`` of planes.

    ``buffers`` are their numbers, in the source and in the destination. ``added`` is what each code
    has more there, modulo its range.
    """

    src: MemoryDesc
    dst: MemoryDesc
    names: tuple[str, ...]
    buffers: tuple[int, int]
    added: int = 0


@dataclass(frozen=True, slots=True)
class _Side:
    """A plane of one side; ``twice`` is the same of a tensor of twice the size."""

    plane: Plane
    twice: Plane
    field: Field

    @property
    def digits(self) -> tuple[tuple[PlaneDigit, bool], ...]:
        """The digits, outermost first, and whether the stride is the same for all sizes."""
        pairs = zip(self.plane.digits, self.twice.digits, strict=True)
        own = [(d, d.stride == t.stride) for d, t in pairs]
        return tuple(sorted(own, key=lambda x: -x[0].stride))


def in_buffer(desc: MemoryDesc, buffer: Buffer) -> MemoryDesc:
    """A plane, within the bytes of its buffer."""
    own = desc.geometry
    first = own.offset0 - 8 * buffer.start // desc.dtype.bits
    return MemoryDesc.of(replace(own, offset0=first), desc.dtype)


def moves_apart(
    src: QuantisedDesc, dst: QuantisedDesc, buffer: int, *, adding: bool = False
) -> list[PlaneMove] | None:
    """The plain reorders that write a buffer of the destination; None where that is not possible.

    A plane moves by itself if both sides have it, with equal biases, and it owns whole bytes. With
    ``adding`` biases may differ.
    """
    larger = _twice(src), _twice(dst)
    sides = []
    for field in dst.fields.values():
        own = src.fields[field.name]
        mine = [p for p in field.planes if p.buffer == buffer]
        adds = own.bias != field.bias
        if mine and ([p.bits for p in own.planes] != [p.bits for p in field.planes]
                     or (adds and not (adding and len(field.planes) == 1))):  # fmt: skip
            return None
        for plane in mine:
            k = field.planes.index(plane)
            names = own.planes[k].name, plane.name
            sides.append(
                (_Side(own.planes[k], larger[0].planes[names[0]], own),
                 _Side(plane, larger[1].planes[names[1]], field))
            )  # fmt: skip
    moves: list[PlaneMove] = []
    for _, together in groupby(sides, key=lambda s: s[0].plane.buffer):
        found = list(together)
        alike = all(a.field.bias == b.field.bias for a, b in found)
        run = _run(found, src, dst) if len(found) > 1 and alike else None
        made = [run] if run else [_single(a, b) for a, b in found]
        moves += [m for m in made if m is not None]
        if None in made:
            return None
    return moves


def _twice(desc: QuantisedDesc) -> QuantisedDesc:
    return QuantisedDesc((2 * n for n in desc.dims), desc.dtype, desc.text)


def _single(src: _Side, dst: _Side) -> PlaneMove | None:
    """One plane, element by element."""
    if src.plane.bits not in TYPES or not (src.plane.is_plain and dst.plane.is_plain):
        return None
    both = [_tensor(s, s.field.extents, TYPES[s.plane.bits]) for s in (src, dst)]
    if both[0] is None or both[1] is None or nibbles.refusal(both[1]):
        return None
    buffers = src.plane.buffer, dst.plane.buffer
    added = (dst.field.bias - src.field.bias) % (1 << dst.plane.bits)
    return PlaneMove(both[0], both[1], (dst.plane.name,), buffers, added)


def plane_of(desc: QuantisedDesc, own: Field, dtype: str) -> MemoryDesc | None:
    """The only plane of a field as a tensor of its dims; None where it is not one."""
    if len(own.planes) > 1 or not own.planes[0].is_plain:
        return None
    plane = own.planes[0]
    return _tensor(_Side(plane, _twice(desc).planes[plane.name], own), own.dims, dtype)


def _tensor(side: _Side, dims: Sequence[int], dtype: str) -> MemoryDesc | None:
    """A plane as a tensor; None where a stride or the start is no number of elements.

    ``dims`` are the field's extents, or those of them that the tensor has.
    """
    plane, bits, first = side.plane, side.plane.bits, 3 - len(dims)
    if plane.first_bit % bits or any(d.stride % bits for d in plane.digits if d.size > 1):
        return None
    last = {dim: max((d.step for d in plane.digits if d.dim == dim), default=0) for dim in range(3)}
    placed = [
        Placed(Digit(d.dim - first, None if d.step == last[d.dim] else d.size, d.step), d.size,
               d.stride // bits, fixed_stride=fixed)
        for d, fixed in side.digits if d.dim >= first
    ]  # fmt: skip
    return _described(dims, placed, plane.padded[first:], plane.first_bit // bits, dtype)


def _described(
    extents: Sequence[int], placed: Sequence[Placed], padded: Sequence[int], first: int, dtype: str
) -> MemoryDesc | None:
    """A tensor of such digits; dimensions without one are of size 1."""
    without = {*range(len(extents))} - {p.digit.dim for p in placed}
    ones = (Placed(Digit(dim, None), 1, 1, fixed_stride=True) for dim in sorted(without))
    placed = [*ones, *placed]
    try:
        layout = Layout(len(extents), tuple(p.digit for p in placed))
    except Error:
        return None
    own = Geometry(tuple(extents), Format.from_layout(layout), tuple(placed), tuple(padded),
                   ((0, 0),) * len(extents), first)  # fmt: skip
    return MemoryDesc.of(own, dtype)


def _run(
    sides: Sequence[tuple[_Side, _Side]], src: QuantisedDesc, dst: QuantisedDesc
) -> PlaneMove | None:
    """Planes that fill the same bytes of records on both sides, in the same order: as bytes."""
    shared = [_common(s[k] for s in sides) for k in (0, 1)]
    inner = [[_inside(s[k], shared[k]) for s in sides] for k in (0, 1)]
    starts = [min(s[k].plane.first_bit for s in sides) for k in (0, 1)]
    bits = sum(s.plane.bits * prod(d[2] for d in inside)
               for (_, s), inside in zip(sides, inner[1], strict=True))  # fmt: skip
    places = [[s[k].plane.first_bit - starts[k] for s in sides] for k in (0, 1)]
    ends = max(p + s.plane.bits + sum((d[2] - 1) * d[3] for d in inside)
               for (_, s), p, inside in zip(sides, places[1], inner[1], strict=True))  # fmt: skip
    whole = ends == bits and not (bits | starts[0] | starts[1]) % 8
    steps = [sorted((dim, step, size) for dim, step, size, _ in own) for own in shared]
    if not whole or inner[0] != inner[1] or places[0] != places[1] or steps[0] != steps[1]:
        return None
    both = [
        _bytes(own, desc, start // 8, bits // 8, sides[0][k])
        for k, (own, desc, start) in enumerate(zip(shared, (src, dst), starts, strict=True))
    ]
    if both[0] is None or both[1] is None:
        return None
    names = tuple(s.plane.name for _, s in sides)
    return PlaneMove(both[0], both[1], names, (sides[0][0].plane.buffer, sides[0][1].plane.buffer))


_Own = tuple[int, int, int, int]
"""Of a digit the dimension, its step in elements, its size, and its stride in bits."""


def _own(side: _Side) -> list[_Own]:
    groups = (1, *side.field.group)
    return [(d.dim, d.step * (groups[d.dim] or 1), d.size, d.stride) for d in side.plane.digits]


def _common(sides: Iterable[_Side]) -> list[_Own]:
    """The digits that all planes have, outside of those that some have: those of the records."""
    own = [_own(s) for s in sides]
    shared = [d for d in own[0] if all(d in other for other in own)]
    inside = max((d[3] for digits in own for d in digits if d not in shared), default=0)
    return [d for d in shared if d[3] > inside]


def _inside(side: _Side, shared: Sequence[_Own]) -> list[_Own]:
    return sorted(d for d in _own(side) if d not in shared and d[2] > 1)


def _bytes(
    shared: Sequence[_Own], desc: QuantisedDesc, start: int, nbytes: int, side: _Side
) -> MemoryDesc | None:
    """Records of bytes as a tensor of experts, rows and columns in records, and bytes."""
    least = {dim: min((d[1] for d in shared if d[0] == dim), default=0) for dim in range(3)}
    last = {dim: max((d[1] for d in shared if d[0] == dim), default=0) for dim in range(3)}
    if any(d[3] % 8 for d in shared) or any(
        desc.extents[dim] % (step or 1) for dim, step in least.items()
    ):
        return None
    fixed = {d.stride: same for d, same in side.digits}
    placed = [
        Placed(Digit(dim, None if step == last[dim] else size, step // least[dim]), size,
               stride // 8, fixed_stride=fixed[stride])
        for dim, step, size, stride in sorted(shared, key=lambda d: -d[3])
    ]  # fmt: skip
    extents = [desc.extents[dim] // least[dim] if least[dim] else 1 for dim in range(3)]
    placed.append(Placed(Digit(3, None), nbytes, 1, fixed_stride=True))
    return _described((*extents, nbytes), placed, (*extents, nbytes), start, "u8")
