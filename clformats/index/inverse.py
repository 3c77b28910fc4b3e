"""From an offset back to the coordinates: one digit after the other, by falling stride."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from ..formats.digits import RUNTIME, Digit, Layout, Placed, place
from ..formats.expr import Const, Expr, Var
from .tensor import IndexedTensor, digit_name


@dataclass(frozen=True, slots=True)
class InverseStep:
    """One digit, computed from the rest of the offset.

    ``stride`` None: the rest is the digit. ``most``: the size that the digit must stay below, if a
    gap or another dimension follows; None if the test of the coordinate is enough.
    """

    name: str
    stride: Expr | None
    most: int | None
    digit: Digit


@dataclass(frozen=True, slots=True)
class Inverse:
    """The inverse of an offset: the digits, and the coordinates made of them.

    ``coordinates`` has one expression for each dimension, over the names of the digits; ``rest``
    says whether a remainder is possible, which is no element.
    """

    steps: tuple[InverseStep, ...]
    coordinates: tuple[Expr, ...]
    rest: bool


def inverse(t: IndexedTensor) -> Inverse:
    """The inverse of a tensor's offset; for its `tail` see `inverse_of_tail`."""
    if t.numbers is not None:
        return _inverse(t, t.format.structure, _sized(t))
    # Dense: in the order of the format.
    dense = place(t.format.structure, [RUNTIME] * len(t.letters))
    digits = [_Digit(p, stride) for p, stride in zip(dense, t.strides, strict=True)]
    return _inverse(t, t.format.structure, digits)


def inverse_of_tail(t: IndexedTensor) -> Inverse:
    """The inverse for the order of digits in the format's tail."""
    layout = t.format.structure.behind
    known = dict(zip(t.format.digits, t.strides, strict=True))
    behind = place(layout, [RUNTIME] * layout.ndims)
    strides = [Const(p.stride) if p.fixed_stride else known[p.digit] for p in behind]
    return _inverse(t, layout, [_Digit(p, s) for p, s in zip(behind, strides, strict=True)])


@dataclass(frozen=True, slots=True)
class _Digit:
    """A digit, the text of its stride, and whether a gap may follow what it counts."""

    placed: Placed
    stride: Expr
    gap: bool = False


def _sized(t: IndexedTensor) -> list[_Digit]:
    """The digits by falling stride, without those that are always 0 or are not told apart."""
    found = sorted(
        zip(t.numbers or (), t.strides, strict=True),
        key=lambda pair: (pair[0].stride, pair[0].size),
        reverse=True,
    )
    result: list[_Digit] = []
    outer = 0
    for p, stride in found:
        if p.stride == 0 or p.size == 1:
            continue
        result.append(_Digit(p, stride, gap=p.fixed_size and p.size * p.stride != outer))
        outer = p.stride
    return result


def _inverse(t: IndexedTensor, layout: Layout, digits: Sequence[_Digit]) -> Inverse:
    steps = [
        InverseStep(
            digit_name(t.letters, d.placed.digit),
            None if d.placed.stride == 1 else d.stride,
            d.placed.digit.size if d.gap else None,
            d.placed.digit,
        )
        for d in digits
    ]
    coordinates: list[Expr] = [Const(0)] * len(t.letters)
    for (dims, flip), chain in layout.chains.items():
        mine = {s.digit: s for s in steps}
        index: Expr = Const(0)
        for digit in reversed(chain):
            if digit in mine:
                index = index + Var(mine[digit].name) * digit.step
        for d, coordinate in _unfused(t, dims, index):
            flipped = t.extents[d] - 1 - coordinate if flip else coordinate
            coordinates[d] = flipped - t.lower[d]
    return Inverse(tuple(steps), tuple(coordinates), not steps or steps[-1].stride is not None)


def _unfused(t: IndexedTensor, dims: Sequence[int], index: Expr) -> Iterator[tuple[int, Expr]]:
    for d in reversed(dims[1:]):
        yield d, index % t.extents[d]
        index = index // t.extents[d]
    yield dims[0], index
