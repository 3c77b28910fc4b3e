"""`infer`: the digits of somebody's packing, found by packing random numbers.

Every bit of every value is followed to the bit of the result that always equals it. Where these
places are a sum of digits, the digits are the answer; else the reason why they are none.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from itertools import pairwise
from math import prod
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ..errors import InvalidArgument, NotDigits, expect, expect_int
from ..tensors.dtypes import as_array
from .digitsof import digits_of

Array = NDArray[Any]
PROBES = 64
"""So many random tensors tell any two bits apart."""
MOST_BIAS = 4
"""Up to so many bits every number that may have been added is tried."""


@dataclass(frozen=True, slots=True)
class InferredDigit:
    """A digit that was found: of dimension ``letter``, ``size`` None where it is open.

    ``stride`` counts bits. ``mul`` and ``add`` as of `clformats.quantised.planes.PlaneDigit`.
    """

    letter: str
    step: int
    size: int
    stride: int
    is_open: bool
    mul: int = 1
    add: int = 0

    @property
    def text(self) -> str:
        """Without its stride: ``k/8`` or ``k%8``."""
        index = self.letter
        if self.mul != 1:
            index = f"({self.mul}{self.letter}{f'+{self.add}' if self.add else ''})"
        step = f"/{self.step}" if self.step > 1 else ""
        return f"{index}{step}{'' if self.is_open else f'%{self.size}'}"


@dataclass(frozen=True, slots=True)
class InferredPlane:
    """Some bits of every value: digits, outermost first, and the first bit."""

    bits: int
    digits: tuple[InferredDigit, ...]
    first_bit: int

    @property
    def is_dense(self) -> bool:
        """Whether the strides follow from the order of the digits."""
        stride = self.bits
        for d in reversed(self.digits):
            if d.stride != stride:
                return False
            stride *= d.size
        return True

    @property
    def text(self) -> str:
        """The digits; with strides where they are not dense."""
        if self.is_dense:
            return " ".join(d.text for d in self.digits)
        return " ".join(f"{d.text}:{d.stride}" for d in self.digits)


@dataclass(frozen=True, slots=True)
class Inferred:
    """What `infer` found: planes, the lowest bits of a value first.

    ``bias`` is added to each value, modulo its range, before it is stored. ``nbytes`` is the size
    of the result.
    """

    planes: tuple[InferredPlane, ...]
    bias: int
    nbytes: int

    @property
    def digits(self) -> tuple[InferredDigit, ...]:
        """The digits of the first plane, outermost first."""
        return self.planes[0].digits

    @property
    def text(self) -> str:
        """The digits, as layouts of quantised types have them."""
        if len(self.planes) == 1 and not self.planes[0].first_bit:
            return self.planes[0].text
        parts = [f"{p.bits}@{p.first_bit} {p.text}".replace("@0 ", " ") for p in self.planes]
        return " + ".join(parts)

    def layout(self, field: str = "q") -> str:
        """The text of a layout with this packing for one field."""
        bias = f"{self.bias:+d}" if self.bias else ""
        shared = len(self.planes) > 1 or self.planes[0].first_bit
        return f"{{{field}{bias}={self.text}}}" if shared else f"{field}{bias}={self.text}"

    def __str__(self) -> str:
        return self.text


def infer(
    packing: Callable[[Array], Any], dims: Sequence[int] | Mapping[str, int], bits: int
) -> Inferred:
    """The digits of a packing function.

    ``packing`` takes an int32 array of shape ``dims`` with values of ``bits`` bits, and gives an
    array of any type, of which the bytes count. ``dims`` are sizes, or a dict of sizes by the
    letters that the digits are to have; they should hold each block of the packing twice. It is
    called some sixty times.

    >>> def nibbles(q):
    ...     return (q[:, ::2] | q[:, 1::2] << 4).astype("u1").T  # bytes, outputs innermost
    >>> infer(nibbles, {"n": 16, "k": 32}, bits=4).text
    'k/2 n k%2'

    Raises `NotDigits` with the reason where the packing is none, `InvalidArgument`.
    """
    if not callable(packing):
        raise InvalidArgument(f"packing: got {packing!r}, expected a function")
    bits = expect_int(bits, "bits")
    if not 1 <= bits <= 31:
        raise InvalidArgument(f"bits: got {bits}, expected 1 to 31")
    letters, sizes = _named(dims)
    rng = np.random.default_rng(0)
    pairs = []
    for _ in range(PROBES):
        values = rng.integers(0, 1 << bits, sizes, np.int64).astype(np.int32)
        pairs.append((values, as_array(packing(values.copy()))))
    return infer_pairs(pairs, letters, bits)


def infer_pairs(pairs: Sequence[tuple[Array, Array]], letters: str, bits: int) -> Inferred:
    """As `infer`, from what went in and what came out, which must tell any two bits apart.

    Raises `NotDigits`.
    """
    expect(letters, str, "letters")
    sizes = pairs[0][0].shape
    results = [np.ascontiguousarray(p).reshape(-1).view(np.uint8) for _, p in pairs]
    if any(v.shape != sizes for v, _ in pairs) or len({r.size for r in results}) != 1:
        raise NotDigits("the results, or the values, are not all of one size")
    out = _signatures([np.unpackbits(r, bitorder="little") for r in results])
    values = [v.astype(np.int64).ravel() & ((1 << bits) - 1) for v, _ in pairs]
    reason = NotDigits("no values")
    for bias in _biases(bits):
        biased = [(v + bias) & ((1 << bits) - 1) for v in values]
        try:
            places = _places(biased, out, sizes, bits)
        except NotDigits as error:
            reason = error if bias == 0 else reason
            continue
        planes = _planes(places, letters, bits)
        return Inferred(planes, bias, results[0].size)
    raise reason


def _named(dims: Sequence[int] | Mapping[str, int]) -> tuple[str, tuple[int, ...]]:
    named = dims if isinstance(dims, Mapping) else dict(zip("abcdefgh", dims, strict=False))
    letters = "".join(map(str, named))
    sizes = tuple(expect_int(n, "dims") for n in named.values())
    if len(letters) != len(sizes) or not sizes or min(sizes) < 1 or prod(sizes) < 2:
        raise InvalidArgument(f"dims: got {dims!r}, expected sizes, or sizes by single letters")
    return letters, sizes


def _biases(bits: int) -> list[int]:
    if bits <= MOST_BIAS:
        return list(range(1 << bits))
    return [0, 1 << bits - 1, (1 << bits) - 1, 1]


def _signatures(bits: Sequence[Array]) -> NDArray[np.uint64]:
    """For each bit what it was in all tensors, as one number."""
    result = np.zeros(bits[0].size, np.uint64)
    for at, own in enumerate(bits[:64]):
        result |= own.astype(np.uint64) << np.uint64(at)
    return result


def _places(
    values: Sequence[Array], out: NDArray[np.uint64], sizes: tuple[int, ...], bits: int
) -> list[Array]:
    """For each bit of a value the bit of the result that it goes to, of every element."""
    order = np.argsort(out, kind="stable")
    sorted_ = out[order]
    every = [_signatures([v >> b & 1 for v in values]) for b in range(bits)]
    if np.unique(np.concatenate(every)).size != bits * every[0].size:
        raise NotDigits(f"{len(values)} pairs do not tell all bits apart: give more, random ones")
    places = []
    for b, own in enumerate(every):
        first = np.searchsorted(sorted_, own, "left")
        last = np.searchsorted(sorted_, own, "right")
        lost = np.flatnonzero(first == last)
        if lost.size:
            at = tuple(int(i) for i in np.unravel_index(lost[0], sizes))
            raise NotDigits(
                f"bit {b} of element {at} is no bit of the result (so are {lost.size} of "
                f"{own.size}): it is lost, or computed with others"
            )
        if (last - first > 1).any():
            at = tuple(int(i) for i in np.unravel_index((last - first > 1).argmax(), sizes))
            raise NotDigits(f"bit {b} of element {at} stands at more than one place")
        places.append(order[first].reshape(sizes).astype(np.int64))
    return places


def _planes(places: list[Array], letters: str, bits: int) -> tuple[InferredPlane, ...]:
    cuts = [0, *(b for b in range(1, bits) if (places[b] != places[b - 1] + 1).any()), bits]
    try:
        return tuple(_plane(places[start], letters, stop - start) for start, stop in pairwise(cuts))
    except NotDigits:
        streamed = _streamed(places, letters, bits)
        if streamed is None:
            raise
        return streamed


def _plane(where: Array, letters: str, bits: int) -> InferredPlane:
    """The digits of one run of bits."""
    first = int(where[(0,) * where.ndim])
    digits: list[InferredDigit] = []
    rest = where - first
    for d, letter in enumerate(letters):
        along = where[tuple(slice(None) if a == d else 0 for a in range(where.ndim))] - first
        found = digits_of(along)
        if found is None:
            raise NotDigits(
                f"dimension {letter}: the places {along[:8].tolist()} ... are no digits"
            )
        digits += [
            InferredDigit(letter, step, size, stride, is_open=at == len(found) - 1)
            for at, (step, size, stride) in enumerate(found)
        ]
        rest = rest - along.reshape([-1 if a == d else 1 for a in range(where.ndim)])
    if rest.any():
        at = tuple(int(i) for i in np.unravel_index(np.abs(rest).argmax(), where.shape))
        raise NotDigits(
            f"element {at} lies at bit {int(where[at])}, {int(rest[at])} off what its digits say: "
            f"dimensions act on each other, as in an exclusive or"
        )
    digits.sort(key=lambda d: (-d.stride, -d.size))
    return InferredPlane(bits, tuple(digits), first)


def _streamed(places: list[Array], letters: str, bits: int) -> tuple[InferredPlane, ...] | None:
    """The bits of all values along one dimension as a stream that is cut into words."""
    for d, letter in enumerate(letters):
        stack = np.moveaxis(np.stack(places, -1), d, -2)
        stream = stack.reshape(*stack.shape[:-2], -1)
        others = letters.replace(letter, "")
        try:
            found = _plane(stream, others + letter, 1)
        except NotDigits:
            continue
        return tuple(
            InferredPlane(
                1,
                tuple(
                    InferredDigit(x.letter, x.step, x.size, x.stride, x.is_open, bits, b)
                    if x.letter == letter
                    else x
                    for x in found.digits
                ),
                found.first_bit,
            )
            for b in range(bits)
        )
    return None
