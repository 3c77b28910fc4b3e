"""Comparing descriptors: the name of a layout, and whether two put elements at the same bytes."""

from __future__ import annotations

import operator
from collections.abc import Iterable, Sequence
from functools import cache
from math import prod

import numpy as np
from numpy.typing import NDArray

from ..errors import InvalidDescriptor
from ..formats import registry
from ..formats.digits import round_up
from ..formats.format import Format
from ..tensors.desc import MemoryDesc
from ..tensors.described import Described
from ..tensors.geometry import by_blocking, check_dims, int_tuple
from ..tensors.given import as_desc
from .refine import refine

_SMALL = 1 << 24
_MOST_COMPARED = 1 << 22
"""Of larger tensors in one buffer is taken that they share bytes where their spans overlap."""


def identify(
    dims: Sequence[int], strides: Sequence[int], blocks: Sequence[tuple[int, int]] = ()
) -> str | None:
    """The name of a layout that is given by oneDNN's numbers; None if it has no name.

    ``strides``: one for each logical dimension, of its outermost digit, in elements; ``blocks``:
    the inner blocks as (size, dimension), outermost first. Several names fit where a dimension has
    size 1: the first of them in oneDNN's list is taken, where plain orders come first; an unlisted
    name only if none is listed. Strides with gaps have no name. Raises `InvalidDescriptor`.
    """
    dims, strides, blocks = check_dims(dims), int_tuple("strides", strides), _pairs(blocks)
    _check_numbers(dims, strides, blocks)
    block = [1] * len(dims)
    for size, d in blocks:
        block[d] *= size
    padded = [round_up(n, b) for n, b in zip(dims, block, strict=True)]
    geometry = by_blocking(dims, padded, strides, blocks)
    asked = MemoryDesc.of(geometry, "u8")
    inner = geometry.format.structure.inner
    candidates = [*_tags_of_rank(len(dims)), geometry.format]
    for fmt in candidates:
        if fmt.structure.inner == inner and MemoryDesc(dims, "u8", fmt) == asked:
            return fmt.name
    return None


def same_bytes(a: MemoryDesc | str, b: MemoryDesc | str) -> bool:
    """Whether two descriptors put every element at the same offset, whatever their names.

    Dims and the width of an element must be equal too. ``nChw16c`` and ``nhwc`` of 2 x 16 x 1 x 1
    have the same bytes, though the descriptors differ. Padding is not compared.
    """
    a, b = as_desc(a, "a"), as_desc(b, "b")
    a.require_layout()
    b.require_layout()
    if a.dims != b.dims or a.dtype.bits != b.dtype.bits or a.format.image != b.format.image:
        return False
    if 0 in a.dims or not a.dims:
        return True
    problem = refine(a, b)
    if problem.why or problem.tables or any(g.lo.value for g in problem.guards):
        if a.nelems > _SMALL:
            raise InvalidDescriptor(
                f"{a} and {b} have no common digits, and {a.nelems} elements are too many to "
                f"compare one by one: ask for smaller dims with the same remainders"
            )
        return bool((a.offsets() == b.offsets()).all())
    return problem.src0 == problem.dst0 and all(
        n.src.value == n.dst.value
        for n in problem.nodes
        if n.size.value > 1 and (n.guard is None or problem.guards[n.guard].hi.value > n.unit)
    )


def _pairs(blocks: Iterable[Sequence[int]]) -> list[tuple[int, int]]:
    try:
        return [(operator.index(size), operator.index(d)) for size, d in blocks]
    except (TypeError, ValueError):
        raise InvalidDescriptor(
            f"blocks must be pairs (size, dimension) of ints, got {blocks!r}"
        ) from None


def _check_numbers(
    dims: Sequence[int], strides: Sequence[int], blocks: Sequence[tuple[int, int]]
) -> None:
    if len(strides) != len(dims) or not dims:
        raise InvalidDescriptor(f"got {len(strides)} strides for {len(dims)} dims: give one each")
    for size, d in blocks:
        if size < 2 or not 0 <= d < len(dims):
            raise InvalidDescriptor(
                f"got the block {(size, d)}: expected a size of 2 or more and a dimension below "
                f"{len(dims)}"
            )


@cache
def _tags_of_rank(ndims: int) -> tuple[Format, ...]:
    tags = (Format(n) for n in registry.listed("onednn") if n[0] in "abcdefghijklABCDEFGHIJKL")
    return tuple(f for f in tags if f.ndims == ndims and f.onednn == f.name)


def overlap(read: MemoryDesc | Described, written: MemoryDesc | Described) -> bool:
    """Whether of two tensors in one buffer the one that is read may share bytes with the other.

    Their spans overlap. Regions of one tensor may interleave: for equal element types the elements
    are compared with all that is written, padding too, unless sums follow them.
    """
    spans = [_span(d) for d in (read, written)]
    if not (spans[0][0] < spans[1][1] and spans[1][0] < spans[0][1]):
        return False
    if isinstance(read, Described) or isinstance(written, Described):
        return True
    places = prod(p.size for p in written.placed)
    if read.dtype != written.dtype or read.sums or written.sums or places > _MOST_COMPARED:
        return True
    return bool(np.intersect1d(read.offsets(), _places(written)).size)


def _span(desc: MemoryDesc | Described) -> tuple[int, int]:
    """The first byte of a tensor, and the end of the last one."""
    if isinstance(desc, Described):
        return 0, desc.nbytes
    return desc.offset0 * desc.dtype.bits // 8, desc.span_nbytes


def _places(desc: MemoryDesc) -> NDArray[np.int64]:
    """The offset of every element and of every padding element."""
    found = np.array([desc.offset0], np.int64)
    for p in desc.placed:
        found = (found[:, None] + p.stride * np.arange(p.size)).reshape(-1)
    return found
