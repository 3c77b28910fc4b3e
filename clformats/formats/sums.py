"""Sums that lie behind int8 weights: what a library needs later to correct its integer products."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from math import prod


@dataclass(frozen=True, slots=True)
class Sums:
    """``factor`` times the sum of the elements over dimension ``over``, one for each other index.

    They lie row-major over ``dims``, the outermost first, as ``dtype`` (``"s32"`` or ``"f32"``),
    right behind the elements. ``padded`` counts the padding of ``dims`` too, whose sums are 0.
    ``none_at``: where each of these (dimension, index) holds, 0 lies instead of the sum.
    """

    dims: tuple[int, ...]
    over: int
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
