"""What a layout is: a list of digits.

A digit is a part of an index, of value ``(index // step) % size``; the digits of all dimensions in
one order, outermost first, read as one number, are the offset. docs/digits.md teaches it, with
pictures. Everything else in clformats is derived from this list: the names, sizes, strides, the
offset as Python, numpy and OpenCL C, its inverse, the pictures and the reorder kernels.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from math import lcm, prod

from ..errors import InvalidFormat, expect
from .expr import Const, Expr, Select, as_expr, total

__all__ = ["MAX_NDIMS", "RUNTIME", "Digit", "Layout", "Placed", "Tail", "TailAt", "ceil_div",
           "coordinates", "offset_expr", "place", "round_up", "tail_at"]  # fmt: skip

MAX_NDIMS = 12
"""The most dimensions of a tensor: oneDNN's."""

RUNTIME = -(2**63)
"""Stands for a size, or a stride that depends on one, which is known at execution only."""


@dataclass(frozen=True, slots=True)
class Digit:
    """One digit of an index: the value ``(index // step) % size``; ``size`` None = open-ended."""

    dim: int | tuple[int, ...]
    size: int | None
    step: int = 1
    flip: bool = False

    def __post_init__(self) -> None:
        """Write an index of one dimension as its number: (0,) is 0."""
        if isinstance(self.dim, tuple) and len(self.dim) == 1:
            object.__setattr__(self, "dim", self.dim[0])

    @property
    def dims(self) -> tuple[int, ...]:
        """The logical dimensions of the index, outermost first; one in nearly every format."""
        return self.dim if isinstance(self.dim, tuple) else (self.dim,)

    @property
    def index(self) -> tuple[tuple[int, ...], bool]:
        """The key of the digit's index: its dimensions and whether it is flipped."""
        return self.dims, self.flip


@dataclass(frozen=True, slots=True)
class Tail:
    """Another order of the digits after the last whole slice of ``size`` along ``dim``.

    In ``iy_xs_os_xsv2_osv8__ao32`` columns lie in pairs; where X is odd the last one has no
    neighbour, and its output channels lie in slices of 32 instead of 8.
    """

    dim: int
    size: int
    digits: tuple[Digit, ...]


@dataclass(frozen=True)
class Layout:
    """An unsized layout: the digits, outermost first, over ``ndims`` logical dimensions.

    ``align`` rounds dimensions up to a multiple without splitting them; empty means all 1.
    ``tail``: an incomplete last slice of one dimension has other digits, in the same memory.
    Raises `InvalidFormat` where the digits do not number every element exactly once.
    """

    ndims: int
    digits: tuple[Digit, ...]
    align: tuple[int, ...] = ()
    tail: Tail | None = None

    def __post_init__(self) -> None:
        self._check_types()
        if not self.align:
            object.__setattr__(self, "align", (1,) * self.ndims)
        seen = sorted(d for index in self.chains for d in index[0])
        if seen != list(range(self.ndims)):
            raise InvalidFormat(
                f"the digits cover dimensions {seen}, expected each of {self.ndims}"
            )
        for (dims, flip), chain in self.chains.items():
            if flip and len(dims) > 1:
                raise InvalidFormat(f"the fused index {dims} is flipped: flip single dimensions")
            _check_chain(dims, chain)
        if self.tail is not None:
            _check_tail(self, self.tail)

    def _check_types(self) -> None:
        expect(self.ndims, int, "ndims")
        for name, values in (("digits", self.digits), ("align", self.align)):
            expect(values, tuple, name)
        for d in self.digits:
            expect(d, Digit, "a digit")
            expect(d.size, int | None, "the size of a digit")
            expect(d.flip, bool, "flip")
            for number in (*d.dims, d.step, *self.align):
                expect(number, int, "dim, step and align")
            if d.size is not None and d.size < 2:
                raise InvalidFormat(f"{d} has the value 0 only: leave it out")
        expect(self.tail, Tail | None, "tail")
        if not 1 <= self.ndims <= MAX_NDIMS or not all(d.dims for d in self.digits):
            raise InvalidFormat(f"got {self.ndims} dims {self.digits}: expected 1 to {MAX_NDIMS}")
        if len(self.align) not in (0, self.ndims) or any(n < 1 for n in self.align):
            raise InvalidFormat(
                f"got align={self.align} for {self.ndims} dims: expected a multiple for each"
            )

    @cached_property
    def behind(self) -> Layout:
        """The layout of the tail, for a whole tensor; the layout itself if it has no tail."""
        return self if self.tail is None else Layout(self.ndims, self.tail.digits, self.align)

    @cached_property
    def chains(self) -> dict[tuple[tuple[int, ...], bool], tuple[Digit, ...]]:
        """For each index its digits, the finest (step 1) first."""
        grouped: dict[tuple[tuple[int, ...], bool], list[Digit]] = {}
        for digit in self.digits:
            grouped.setdefault(digit.index, []).append(digit)
        return {k: tuple(sorted(v, key=lambda d: d.step)) for k, v in grouped.items()}

    @cached_property
    def blocks(self) -> tuple[int, ...]:
        """Per dimension the product of its block sizes: 1 where it is not split (or is fused)."""
        result = [1] * self.ndims
        for (dims, _), chain in self.chains.items():
            if len(dims) == 1:
                result[dims[0]] = chain[-1].step
        return tuple(result)

    @property
    def inner(self) -> tuple[Digit, ...]:
        """The digits of fixed size, outermost first: the blocks."""
        return tuple(d for d in self.digits if d.size is not None)

    @property
    def outer(self) -> tuple[Digit, ...]:
        """The open digits, outermost first: one for each index."""
        return tuple(d for d in self.digits if d.size is None)

    @cached_property
    def is_tag(self) -> bool:
        """Whether oneDNN's notation can express it: open digits, then blocks, nothing else."""
        consecutive = self.digits == self.outer + self.inner
        simple = all(isinstance(d.dim, int) and not d.flip for d in self.digits)
        whole = set(self.align) == {1} and self.tail is None
        return simple and consecutive and self._steps_in_order and whole

    @property
    def _steps_in_order(self) -> bool:
        return all(
            [d.step for d in self.digits if d.index == index]
            == sorted((d.step for d in chain), reverse=True)
            for index, chain in self.chains.items()
        )

    def padded(self, extents: Sequence[int]) -> tuple[int, ...]:
        """The extents rounded up to whole blocks and to ``align``, in elements."""
        return tuple(
            round_up(n, lcm(block, align))
            for n, block, align in zip(extents, self.blocks, self.align, strict=True)
        )


@dataclass(frozen=True, slots=True)
class Placed:
    """A digit in memory: ``size`` values, ``stride`` elements apart.

    ``fixed_size`` and ``fixed_stride``: the number follows from the format only, so that kernels
    may have it as a constant and still serve every shape.
    """

    digit: Digit
    size: int
    stride: int
    fixed_stride: bool = False

    @property
    def fixed_size(self) -> bool:
        """Whether the size is in the format: the digit is a block."""
        return self.digit.size is not None


def place(layout: Layout, padded: Sequence[int]) -> tuple[Placed, ...]:
    """Give each digit its size and dense stride, for padded extents in elements.

    A size of zero does not multiply the strides further out: oneDNN's rule, which keeps the
    strides of zero-volume tensors meaningful.
    """
    result: list[Placed] = []
    stride, fixed = 1, True
    for digit in reversed(layout.digits):
        size = digit.size
        if size is None:
            extents = [padded[d] for d in digit.dims]
            size = RUNTIME if RUNTIME in extents else -(-prod(extents) // digit.step)
        result.append(Placed(digit, size, stride, fixed))
        stride = RUNTIME if RUNTIME in (size, stride) else stride * max(size, 1)
        fixed = fixed and digit.size is not None
    return tuple(reversed(result))


@dataclass(frozen=True, slots=True)
class TailAt:
    """A `Tail` in a tensor: it begins at index ``start`` of ``dim`` and has this ``layout``."""

    layout: Layout
    dim: int
    start: Expr


def tail_at(layout: Layout, dims: Sequence[Expr | int]) -> TailAt | None:
    """Where the tail of a layout begins, for logical dims; None where it has none."""
    if layout.tail is None:
        return None
    extent = as_expr(dims[layout.tail.dim])
    start = extent - extent % layout.tail.size
    return TailAt(layout.behind, layout.tail.dim, start)


def offset_expr(
    placed: Sequence[Placed],
    indices: Sequence[Expr],
    extents: Sequence[Expr | int],
    strides: Sequence[Expr | int] | None = None,
    offset0: Expr | int = 0,
    tail: TailAt | None = None,
) -> Expr:
    """The offset, in elements, of the element at ``indices``: the one formula of this library.

    ``offset0 + sum of ((index // step) % size) * stride``. The indices count from the start of the
    padding; ``extents`` are the padded extents, which only fused and flipped indices need;
    ``strides`` replaces the numbers in ``placed``, for instance by names of kernel arguments.
    Indices in the ``tail`` take its digits; those whose stride follows from the sizes are the same
    in both lists.
    """
    numbers = [p.stride for p in placed] if strides is None else strides
    terms = _terms([p.digit for p in placed], indices, extents, numbers)
    if tail is None:
        return total([*terms, as_expr(offset0)])
    known = {p.digit: n for p, n in zip(placed, numbers, strict=True)}
    behind = place(tail.layout, [1] * tail.layout.ndims)
    numbers = [p.stride if p.fixed_stride else known[p.digit] for p in behind]
    last = _terms(tail.layout.digits, indices, extents, numbers)
    return Select(indices[tail.dim], tail.start, total(last), total(terms)) + offset0


def coordinates(
    placed: Sequence[Placed], padded: Sequence[int], offset: int, tail: TailAt | None = None
) -> tuple[int, ...] | None:
    """The indices (counted from the start of the padding) of the element at ``offset``.

    None where ``offset`` lies in a hole between strides or beyond the end. The inverse of
    `offset_expr`; needs strides that do not overlap. A digit of stride 0 answers 0.
    """
    found = _coordinates(placed, padded, offset)
    if tail is None:
        return found
    start = tail.start.evaluate({})
    if found is not None and found[tail.dim] < start:
        return found
    behind = _coordinates(place(tail.layout, padded), padded, offset)
    return behind if behind is not None and behind[tail.dim] >= start else None


def _coordinates(
    placed: Sequence[Placed], padded: Sequence[int], offset: int
) -> tuple[int, ...] | None:
    if offset < 0:
        return None
    values: dict[tuple[tuple[int, ...], bool], int] = {d.digit.index: 0 for d in placed}
    rest = offset
    for p in sorted(placed, key=lambda p: (p.stride, p.size), reverse=True):
        if p.stride == 0 or p.size == 1:
            continue
        value, rest = divmod(rest, p.stride)
        if value >= p.size:
            return None
        values[p.digit.index] += value * p.digit.step
    if rest:
        return None
    return _unfuse(values, padded)


def round_up(n: int, multiple: int) -> int:
    """The smallest multiple not below ``n``; an unknown size stays unknown."""
    return n if n == RUNTIME else ceil_div(n, multiple) * multiple


def ceil_div(n: int, by: int) -> int:
    """The quotient of numbers that are not negative, rounded up."""
    return (n + (by - 1)) // by


def _check_chain(dims: tuple[int, ...], chain: tuple[Digit, ...]) -> None:
    """A chain must be a number system: steps 1, s0, s0*s1, ..., the last digit open."""
    step = 1
    for digit in chain[:-1]:
        if digit.step != step or digit.size is None:
            raise InvalidFormat(f"the digits of dimension {dims} do not nest: {chain}")
        step *= digit.size
    if chain[-1].size is not None or chain[-1].step != step:
        raise InvalidFormat(f"the outermost digit of dimension {dims} is not open: {chain}")


def _check_tail(layout: Layout, tail: Tail) -> None:
    """Both orders must fill the same memory, page by page.

    A page is what lies inside of the innermost open digit; the digits outside of it must be the
    same in both orders. The tail must begin with a page: inside of it are the finest digits of its
    dimension only.
    """
    for number in (tail.dim, tail.size):
        expect(number, int, "dim and size of a tail")
    ones = [1] * layout.ndims
    behind = layout.behind
    free = [{p.digit for p in place(x, ones) if not p.fixed_stride} for x in (layout, behind)]
    mine = [d for d in layout.digits if d.index == ((tail.dim,), False)]
    page = min((d.step for d in mine if d in free[0]), default=0)
    finest = all(d.step < page for d in mine if d not in free[0])
    same = free[0] == free[1] and layout.padded(ones) == behind.padded(ones)
    if not same or not page or not finest or tail.size < 2 or tail.size % page:
        raise InvalidFormat(
            f"the tail {tail} does not fit into the memory of {layout.digits}: expected the same "
            f"digits outside of the innermost open one, inside of it the finest of dimension "
            f"{tail.dim} only, and a size of whole pages"
        )


def _terms(
    digits: Sequence[Digit],
    indices: Sequence[Expr],
    extents: Sequence[Expr | int],
    strides: Sequence[Expr | int],
) -> list[Expr]:
    """The value of each digit times its stride."""
    terms: list[Expr] = []
    for digit, stride in zip(digits, strides, strict=True):
        index = _index_expr(digit, indices, extents) // digit.step
        if digit.size is not None:
            index = index % digit.size
        terms.append(index * stride)
    return terms


def _index_expr(digit: Digit, indices: Sequence[Expr], extents: Sequence[Expr | int]) -> Expr:
    result = indices[digit.dims[0]]
    for d in digit.dims[1:]:
        result = result * extents[d] + indices[d]
    if digit.flip:
        return (Const(0) + extents[digit.dims[0]]) - 1 - result
    return result


def _unfuse(
    values: dict[tuple[tuple[int, ...], bool], int], padded: Sequence[int]
) -> tuple[int, ...] | None:
    result = [0] * len(padded)
    for (dims, flip), fused in values.items():
        value = fused
        for d in reversed(dims[1:]):
            value, result[d] = divmod(value, padded[d])
        if value >= padded[dims[0]]:
            return None
        result[dims[0]] = padded[dims[0]] - 1 - value if flip else value
    return tuple(result)
