"""Elements and padding of a tensor as strided views of its memory: one for each box of digits.

A range of an index is a few *boxes*, in each of which every digit runs through a range of its own.
Features 0 to 17 in blocks of 16 are two: block 0 with features 0 to 16 of it, and block 1 with
feature 0. So a box is a view of memory with one axis for each digit, and a view of the array of
logical shape with the same axes: feature ``16 * block + k`` has a stride for both of its digits.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from functools import lru_cache
from itertools import pairwise, product
from math import prod
from typing import Any, NamedTuple

import numpy as np
from numpy.lib.stride_tricks import as_strided
from numpy.typing import NDArray

from ..formats.digits import Digit, Placed, place
from ..tensors.desc import MemoryDesc

Array = NDArray[Any]
Index = tuple[tuple[int, ...], bool]
"""The dimensions of an index, and whether it is flipped: a `Digit.index`."""
Runs = dict[Digit, tuple[int, int]]
"""For each digit the first value, and how many there are."""


def strided(array: Array, shape: Sequence[int], strides: Sequence[int]) -> Array:
    """A view with this shape and these strides, in bytes; as writeable as the array.

    `as_strided` finds an element type again by its text, which float8_e5m2 of ml_dtypes has none
    of that numpy can read: so it is shown unsigned integers of that width.
    """
    is_plain = array.dtype.isbuiltin == 1
    bits = array if is_plain else array.view(f"u{array.itemsize}")
    view = as_strided(bits, shape, strides)
    return view if is_plain else view.view(array.dtype)


class Pair(NamedTuple):
    """The same elements in memory and in the array of logical shape, with the same axes."""

    memory: Array
    array: Array


class _Span(NamedTuple):
    """Values of an index from ``start`` up to ``stop``.

    ``first`` is the element at the start, numbered row by row over the dimensions of the index.
    """

    start: int
    stop: int
    first: int = 0


class _ViewBox(NamedTuple):
    """The digits of one index, and which element the first of them are: as of `_Span`."""

    runs: Runs
    first: int


class _Region(NamedTuple):
    """Boxes, one of each index, as views: in memory (in elements), and in the array."""

    offset: int
    counts: tuple[int, ...]
    strides: tuple[int, ...]
    at: tuple[int, ...]
    steps: tuple[tuple[int, int], ...]
    """Of each digit the dimension along which it steps in the array, and how far."""

    def of_memory(self, memory: Array) -> Array:
        """A view of 1-D memory."""
        strides = [memory.strides[0] * n for n in self.strides]
        return strided(memory[self.offset :], self.counts, strides)

    def of_array(self, array: Array) -> Array:
        """A view of the array of logical shape."""
        strides = [array.strides[d] * n for d, n in self.steps]
        return strided(array[tuple(slice(k, None) for k in self.at)], self.counts, strides)


def elements(memory: Array, array: Array, desc: MemoryDesc) -> Iterator[Pair]:
    """All elements. ``memory`` is 1-D, of physical elements, ``array`` of shape ``desc.dims``."""
    steps, dims = array.strides, desc.dims
    joined = all(steps[a] == steps[b] * dims[b]
                 for p in desc.placed for a, b in pairwise(p.digit.dims))  # fmt: skip
    for region in _regions(desc, joined):
        yield Pair(region.of_memory(memory), region.of_array(array))


def padding(memory: Array, desc: MemoryDesc) -> Iterator[Array]:
    """All padding: what fills up blocks and lies around the tensor. ``memory`` as in `elements`."""
    for order in _orders(desc):
        indices = list(order.chains)
        inside = [order.boxes(i, order.spans(i)) for i in indices]
        whole = [order.boxes(i, [order.whole(i)]) for i in indices]
        for k, index in enumerate(indices):
            outside = order.boxes(index, order.gaps(index))
            for boxes in product(*inside[:k], outside, *whole[k + 1 :]):
                yield order.region(boxes).of_memory(memory)


@lru_cache(maxsize=64)
def _regions(desc: MemoryDesc, joined: bool) -> list[_Region]:  # noqa: FBT001  # of a cache's key
    """All elements; ``joined``: in the array the rows of fused dimensions follow each other."""
    return [
        order.region(boxes)
        for order in _orders(desc)
        for boxes in product(*(order.boxes(i, order.spans(i, joined=joined)) for i in order.chains))
    ]


class _ViewOrder:
    """An order of digits, and where it holds: ``limit``, for one dimension at most, is a part."""

    def __init__(
        self, desc: MemoryDesc, placed: Sequence[Placed], limit: Mapping[int, slice]
    ) -> None:
        self.desc, self.placed, self._limit = desc, placed, limit
        self.chains: dict[Index, list[Placed]] = {}
        for p in sorted(placed, key=lambda p: -p.digit.step):
            self.chains.setdefault(p.digit.index, []).append(p)

    def whole(self, index: Index) -> _Span:
        """All values, those of padding too."""
        dims, _ = index
        if len(dims) > 1:  # what lies after the end of a fused index is padding too
            return _Span(0, prod(p.size for p in self.chains[index]))
        limit = self._limit.get(dims[0], slice(None))
        return _Span(*limit.indices(self.desc.padded_dims[dims[0]])[:2])

    def spans(self, index: Index, *, joined: bool = True) -> list[_Span]:
        """The values of elements, rising; of a fused index one for all, or one for each row."""
        (*outer, d), flip = index
        sizes, padded, lower = self.desc.dims, self.desc.padded_dims, self.desc.padded_offsets
        if flip:  # formats that are turned around have whole dimensions, without padding in front
            return [_Span(padded[d] - sizes[d], padded[d], sizes[d] - 1)]
        if outer and joined and all(sizes[i] == padded[i] for i in index[0][1:]):
            return [_Span(0, prod(sizes[i] for i in index[0]))]
        whole, result = self.whole(index), []
        for row, at in enumerate(np.ndindex(*(sizes[i] for i in outer))):
            start = 0
            for i, k in zip(outer, at, strict=True):
                start = start * padded[i] + lower[i] + k
            start = start * padded[d] + lower[d]
            first, stop = max(start, whole.start), min(start + sizes[d], whole.stop)
            if first < stop:
                result.append(_Span(first, stop, row * sizes[d] + first - start))
        return result

    def gaps(self, index: Index) -> list[_Span]:
        """The values of padding: those that no element has."""
        whole = self.whole(index)
        taken = [_Span(0, whole.start), *self.spans(index), _Span(whole.stop, whole.stop)]
        return [_Span(one.stop, other.start) for one, other in pairwise(taken)]

    def boxes(self, index: Index, spans: Sequence[_Span]) -> list[_ViewBox]:
        """The boxes of spans."""
        chain, way = self.chains[index], -1 if index[1] else 1
        return [
            _ViewBox(
                {p.digit: _run(p, start, stop, step) for p in chain},
                span.first + way * (start - span.start),
            )
            for span in spans
            for start, stop, step in _parts(span.start, span.stop, [p.digit.step for p in chain])
        ]

    def region(self, boxes: Sequence[_ViewBox]) -> _Region:
        """What lies in boxes, one of each index."""
        at = [0] * self.desc.ndims
        for box, (dims, _) in zip(boxes, self.chains, strict=True):
            rest = box.first
            for d in reversed(dims):
                rest, at[d] = divmod(rest, self.desc.dims[d])
        runs = {digit: run for box in boxes for digit, run in box.runs.items()}
        digits = [p.digit for p in self.placed]
        return _Region(
            self.desc.offset0 + sum(p.stride * runs[p.digit][0] for p in self.placed),
            tuple(runs[digit][1] for digit in digits),
            tuple(p.stride for p in self.placed),
            tuple(at),
            tuple((digit.dims[-1], -digit.step if digit.flip else digit.step) for digit in digits),
        )


def _orders(desc: MemoryDesc) -> Iterator[_ViewOrder]:
    """The order of a tensor's digits, and the one of its tail."""
    tail = desc.tail
    if tail is None:
        yield _ViewOrder(desc, desc.placed, {})
        return
    start = int(tail.start.evaluate({}))
    strides = {p.digit: p.stride for p in desc.placed}
    behind = [
        p if p.fixed_stride else Placed(p.digit, p.size, strides[p.digit])
        for p in place(tail.layout, desc.padded_dims)
    ]
    yield _ViewOrder(desc, desc.placed, {tail.dim: slice(start)})
    yield _ViewOrder(desc, behind, {tail.dim: slice(start, None)})


def _run(p: Placed, start: int, stop: int, step: int) -> tuple[int, int]:
    """The values of a digit in a part that begins and ends at multiples of ``step``."""
    if p.digit.step < step:
        return 0, p.size
    first = start // p.digit.step % (p.digit.size or stop)
    return first, (stop - start) // step if p.digit.step == step else 1


def _parts(start: int, stop: int, steps: Sequence[int]) -> Iterator[tuple[int, int, int]]:
    """A range of an index cut at the multiples of the first step, and what is left at the next."""
    if start >= stop:
        return
    step, rest = steps[0], steps[1:]
    first = min(-(-start // step) * step, stop)
    last = max(stop // step * step, first)
    yield from _parts(start, first, rest)
    if first < last:
        yield first, last, step
    yield from _parts(last, stop, rest)
