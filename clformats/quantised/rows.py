"""A tensor in parts of whole rows, so that what is made of a large one fits in the caches."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import replace
from math import lcm

from .planes import Field, Plane, PlaneDigit
from .types import WHOLE

VALUES = 1 << 20
"""A part has about so many values."""
Part = tuple[int, int, int]
"""An expert, and rows from the first to behind the last."""


def parts(extents: tuple[int, int, int], fields: Sequence[Field]) -> Iterator[Part | None]:
    """The parts of a tensor; None, for all of it, where fields do not lie row by row."""
    experts, rows, columns = extents
    planes = [p for f in fields for p in f.planes]
    outermost = [_outermost(p, 1) for p in planes]
    if any(f.group[0] not in (1, WHOLE) for f in fields) or None in outermost or any(
        (d := _outermost(p, 0)) is not None and d.step != 1 for p in planes
    ):  # fmt: skip
        yield None
        return
    whole = lcm(*(d.step for d in outermost if d))
    step = max(1, VALUES // (columns * whole)) * whole
    for e in range(experts):
        for start in range(0, rows, step):
            yield e, start, min(start + step, rows)


def part_of(field: Field, part: Part | None) -> Field | None:
    """What a field has in a part; None where an earlier part has had it."""
    if part is None:
        return field
    e, start, stop = part
    if field.group[0] == WHOLE:
        if start:
            return None
        start, stop = 0, 1
    extents = (1, stop - start, field.extents[2])
    return replace(
        field, extents=extents, planes=tuple(_cut(p, e, start, stop) for p in field.planes)
    )


def _outermost(plane: Plane, dim: int) -> PlaneDigit | None:
    """The digit of a dimension with the largest step; None where an index is not plain."""
    own = [d for d in plane.digits if d.dim == dim]
    if not own:
        return PlaneDigit(dim, 1, 1, 0)
    return max(own, key=lambda d: d.step) if all(d.is_plain for d in own) else None


def _cut(plane: Plane, e: int, start: int, stop: int) -> Plane:
    """The plane of rows of one expert, in the same memory."""
    digits, first, padded = list(plane.digits), plane.first_bit, list(plane.padded)
    for dim, begin, end in ((0, e, e + 1), (1, start, stop)):
        for k in [k for k, d in enumerate(digits) if d == _outermost(plane, dim)]:
            d = digits[k]
            size = -(-(end - begin) // d.step)
            first += begin // d.step * d.stride
            padded[dim] = size * d.step
            digits[k] = replace(d, size=size)
    return replace(
        plane, digits=tuple(digits), first_bit=first, padded=(padded[0], padded[1], padded[2])
    )
