"""Sums that follow int8 weights, for the correction of integer products (compensation)."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from math import prod

from ..errors import expect, expect_int


@dataclass(frozen=True, slots=True)
class Sums:
    """``factor`` times the sum of the elements over dimensions ``over``, one for each other index.

    They follow the elements, row-major over ``dims``, the outermost first, as ``dtype`` (``"s32"``
    or ``"f32"``). With ``padded`` the padding of ``dims`` has sums too, which are 0. The sum is 0
    as well where all of the (dimension, index) pairs of ``none_at`` hold.
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
        """The number of sums along each of `dims`."""
        extents = padded_dims if self.padded else dims
        return tuple(extents[d] for d in self.dims)

    def nbytes(self, dims: Sequence[int], padded_dims: Sequence[int]) -> int:
        """The bytes of all sums."""
        return prod(self.shape(dims, padded_dims)) * self.ITEM


@dataclass(frozen=True, slots=True)
class Extra:
    """Compensation after int8 weights, for convolutions: oneDNN's extra flags of a descriptor.

    int32 sums follow the weights at the next multiple of 4 bytes: one for each index of the
    dimensions in ``mask`` (bit d for dimension d; the output channels, and the groups if there are
    any), over all other dimensions, row-major over the padded dimensions. ``s8s8`` stores -128
    times the sum, because an s8 source becomes u8 by adding 128. ``asymmetric`` stores, after
    those, minus the sum, for the source's zero point. A reorder multiplies the weights by
    ``scale_adjust`` before it rounds them: 0.5 keeps 16-bit accumulators from saturating.
    """

    mask: int
    s8s8: bool = False
    asymmetric: bool = False
    scale_adjust: float = 1.0

    ALIGNMENT = 4
    """The alignment of the first sum, in bytes."""

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
