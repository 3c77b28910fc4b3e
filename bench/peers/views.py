"""A reorder as strided copies: what numpy and torch users write with reshape and transpose.

Each dimension is cut where one of the two layouts cuts it; a dimension that does not fill its
last block falls into two parts. Padding is not written.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from itertools import pairwise, product

import clformats as cf

from ..arena import NotComparableError


@dataclass(frozen=True, slots=True)
class View:
    """Where a part of a tensor lies in a flat array, in elements."""

    offset: int
    shape: tuple[int, ...]
    strides: tuple[int, ...]


@dataclass(frozen=True, slots=True)
class Part:
    """A range of one dimension: it starts at ``start`` and has axes (step, size)."""

    start: int
    axes: tuple[tuple[int, int], ...]


def views(src: cf.MemoryDesc, dst: cf.MemoryDesc) -> list[tuple[View, View]]:
    """Pairs of equally shaped views that together hold every logical element once."""
    parts = [list(_parts(n, _steps(d, src, dst))) for d, n in enumerate(src.dims)]
    return [(_view(src, box), _view(dst, box)) for box in product(*parts)]


def _steps(dim: int, *descs: cf.MemoryDesc) -> list[int]:
    digits = [p.digit for desc in descs for p in desc.placed if dim in p.digit.dims]
    steps = sorted({digit.step for digit in digits}, reverse=True)
    nested = all(big % small == 0 for big, small in pairwise(steps))
    if not nested or any(len(digit.dims) > 1 or digit.flip for digit in digits):
        raise NotComparableError("the blocks do not nest")
    return steps


def _parts(n: int, steps: list[int], start: int = 0) -> Iterator[Part]:
    """Cut ``n`` indices at multiples of the largest step, what is left at the next."""
    if not n:
        return
    step, smaller = steps[0], steps[1:]
    if n >= step:
        axes = ((step, n // step), *((low, high // low) for high, low in pairwise(steps)))
        yield Part(start, axes)
    yield from _parts(n % step, smaller, start + n // step * step)


def _view(desc: cf.MemoryDesc, box: tuple[Part, ...]) -> View:
    axes = [(d, step, size) for d, part in enumerate(box) for step, size in part.axes]
    offset = desc.offset(*(part.start for part in box))
    strides = tuple(_stride(desc, d, step) for d, step, _ in axes)
    return View(int(offset), tuple(size for _, _, size in axes), strides)


def _stride(desc: cf.MemoryDesc, dim: int, step: int) -> int:
    """How far ``step`` indices of a dimension lie apart: by the largest digit that counts them."""
    digits = [p for p in desc.placed if dim in p.digit.dims and p.digit.step <= step]
    nearest = max(digits, key=lambda p: p.digit.step)
    return nearest.stride * (step // nearest.digit.step)
