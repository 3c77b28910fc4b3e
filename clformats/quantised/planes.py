"""Planes: where the bits of quantised values lie. A plane is a list of digits with bit strides.

A *digit* is a part of an index, ``(mul * i + add) // step % size``, and a stride in bits. A *plane*
is one run of bits of each value of a field: the sum of its digits' values times their strides, and
a first bit. A *field* is one logical array, put together from planes, the lowest bits first.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import accumulate

from ..formats.expr import Expr, total
from .codes import Codes

LETTERS = "enk"
"""The dimensions: experts (all dimensions in front of the last two), rows, columns."""


@dataclass(frozen=True, slots=True)
class PlaneDigit:
    """A digit of a plane: ``size`` values, ``stride`` bits apart.

    ``dim`` is 0 for experts, 1 for rows and 2 for columns; of a field whose columns are in groups,
    the index counts groups. ``mul`` and ``add`` are 1 and 0 but for streams of bits in words.
    """

    dim: int
    step: int
    size: int
    stride: int
    mul: int = 1
    add: int = 0

    @property
    def is_plain(self) -> bool:
        """Whether the index is that of the field."""
        return (self.mul, self.add) == (1, 0)

    def value(self, index: Expr) -> Expr:
        """The digit of an index."""
        return (index * self.mul + self.add) // self.step % self.size

    def __str__(self) -> str:
        own = LETTERS[self.dim] if self.is_plain else f"({self.mul}{LETTERS[self.dim]}+{self.add})"
        return f"{own}/{self.step}%{self.size}:{self.stride}"


@dataclass(frozen=True, slots=True)
class Plane:
    """``bits`` bits of every value of a field, from ``first_bit`` of the memory on.

    ``buffer`` is the number of the buffer in which it lies; ``padded`` the extents that the digits
    number, without a value for each of them.
    """

    name: str
    bits: int
    digits: tuple[PlaneDigit, ...]
    first_bit: int
    buffer: int
    padded: tuple[int, int, int]

    def address(self, indices: Sequence[Expr]) -> Expr:
        """The first bit of a value, for the indices of its field: expert, row, group of columns."""
        terms = [d.value(indices[d.dim]) * d.stride for d in self.digits if d.size > 1]
        return total(terms) + self.first_bit

    @property
    def is_plain(self) -> bool:
        """Whether every digit is one of a plain index."""
        return all(d.is_plain for d in self.digits)

    @property
    def end_bit(self) -> int:
        """The bit behind the last one."""
        return self.first_bit + sum((d.size - 1) * d.stride for d in self.digits) + self.bits


@dataclass(frozen=True, slots=True)
class Field:
    """One logical array of a quantised tensor.

    ``dims`` are those of the tensor, its rows and columns in groups of ``group``; ``dtype`` says
    what codes mean; ``bias`` is added to a code, modulo its range, where it is stored.
    """

    name: str
    dims: tuple[int, ...]
    extents: tuple[int, int, int]
    dtype: Codes
    group: tuple[int, int]
    planes: tuple[Plane, ...]
    bias: int = 0

    @property
    def bits(self) -> int:
        """The bits of a value."""
        return self.dtype.bits

    @property
    def parts(self) -> Iterator[tuple[int, Plane]]:
        """The planes, each with the lowest of the bits of a value that it has."""
        return zip(accumulate((p.bits for p in self.planes), initial=0), self.planes, strict=False)


@dataclass(frozen=True, slots=True)
class Buffer:
    """Where a run of planes lies in the memory of the tensor, in bytes; ``name`` joins theirs."""

    name: str
    start: int
    nbytes: int

    @property
    def first(self) -> str:
        """The name of its first plane, by which users know it."""
        return self.name.partition("+")[0]
