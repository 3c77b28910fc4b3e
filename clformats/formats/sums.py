"""Sums that lie behind int8 weights: what a library needs later to correct its integer products."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from math import prod

from ..errors import expect, expect_int


@dataclass(frozen=True, slots=True)
class Sums:
    """``factor`` times the sum of the elements over dimensions ``over``, one for each other index.

    They lie row-major over ``dims``, the outermost first, as ``dtype`` (``"s32"`` or ``"f32"``),
    behind the elements. ``padded`` counts the padding of ``dims`` too, whose sums are 0.
    ``none_at``: where each of these (dimension, index) holds, 0 lies instead of the sum.
    """

    dims: tuple[int, ...]
    over: tuple[int, ...]
    factor: int
    dtype: str
    padded: bool = True
    none_at: tuple[tuple[int, int], ...] = ()

    ITEM = 4
    """Bytes of one sum."""

    def shape(self, dims: Sequence[int], padded_dims: Sequence[int]) -> tuple[int, ...]:
        """How many there are along each of `dims`."""
        extents = padded_dims if self.padded else dims
        return tuple(extents[d] for d in self.dims)

    def nbytes(self, dims: Sequence[int], padded_dims: Sequence[int]) -> int:
        """The bytes of all."""
        return prod(self.shape(dims, padded_dims)) * self.ITEM


@dataclass(frozen=True, slots=True)
class Extra:
    """What a convolution needs beside int8 weights: oneDNN's extra flags of a descriptor.

    For each index of the dimensions in ``mask`` (bit d for dimension d; the output channels, with
    the groups where there are any) int32 sums over all other dimensions follow the weights, from
    the next multiple of 4 bytes on, row-major over the padded dimensions: with ``s8s8`` -128 times
    the sum, because an s8 source is made u8 by adding 128; with ``asymmetric``, behind those, minus
    the sum, for the source's zero point. A reorder multiplies the weights by ``scale_adjust``
    before it rounds them: 0.5 keeps 16-bit accumulators from saturating.
    """

    mask: int
    s8s8: bool = False
    asymmetric: bool = False
    scale_adjust: float = 1.0

    ALIGNMENT = 4
    """The sums start at a multiple of so many bytes."""

    def __post_init__(self) -> None:
        """Raise `InvalidArgument` for values of other types."""
        expect_int(self.mask, "mask")
        expect(self.s8s8, bool, "s8s8")
        expect(self.asymmetric, bool, "asymmetric")
        expect(self.scale_adjust, float | int, "scale_adjust")

    def sums(self, ndims: int) -> tuple[Sums, ...]:
        """The sums of weights of so many dimensions."""
        dims = tuple(d for d in range(ndims) if self.mask >> d & 1)
        over = tuple(d for d in range(ndims) if not self.mask >> d & 1)
        factors = [-128] * self.s8s8 + [-1] * self.asymmetric
        return tuple(Sums(dims, over, factor, "s32") for factor in factors)
