"""Between numbers and the codes of the types that no computer calculates with: f8, f6, f4, tables.

Real numbers are f32 on the way. Rounding, the same in every kernel (`clformats.kernels.types`):

* to floats: to nearest, ties to even; what is too large becomes infinity, where a type has none its
  NaN, where it has neither its largest number. NaN keeps its sign, and becomes the largest number
  where a type has no NaN;
* to floats without a sign, powers of two: to nearest, ties to the larger one; 0 becomes the
  smallest one, a negative number NaN;
* to tables: the nearest value, ties to the smaller one; of codes with equal values the first. NaN
  counts as 0.
"""

from __future__ import annotations

from functools import lru_cache
from typing import Any

import numpy as np
from numpy.typing import NDArray

from .rows import DType, Float

F32_MANTISSA, F32_BIAS = 23, 127
_INFINITY, _SIGNLESS = 0x7F800000, 0x7FFFFFFF
Array = NDArray[Any]


@lru_cache(maxsize=64)
def values_of_codes(dtype: DType) -> NDArray[np.float32]:
    """The value of each code of a coded type, in f32, which holds all of them."""
    made = dtype.values
    if made is None:
        assert dtype.floating is not None  # noqa: S101  # a row has one of the two
        made = tuple(map(dtype.floating.value, range(1 << dtype.bits)))
    table = np.array(made, np.float32)
    table.setflags(write=False)
    return table


@lru_cache(maxsize=64)
def rounding_table(dtype: DType) -> tuple[NDArray[np.float32], NDArray[np.uint8]]:
    """Of a type with a table: (bounds, codes). Value x has the code ``codes[count of bounds < x]``.

    The bounds lie half-way between neighbouring values, rounded to f32. There are as many codes as
    the type has; where values are equal the largest is repeated.
    """
    values, first = np.unique(values_of_codes(dtype), return_index=True)
    repeated = (0, (1 << dtype.bits) - values.size)
    values, first = np.pad(values, repeated, "edge"), np.pad(first, repeated, "edge")
    halfway = (values[1:].astype(np.float64) + values[:-1]) / 2
    return halfway.astype(np.float32), first.astype(np.uint8)


def code_of(array: Array, dtype: DType) -> NDArray[np.uint8]:
    """The codes of real numbers as a coded type, which are rounded to f32 first."""
    with np.errstate(over="ignore", invalid="ignore"):
        real = np.asarray(array.astype(np.float32, copy=False))
    if dtype.floating is None:
        bounds, codes = rounding_table(dtype)
        return np.asarray(codes[np.searchsorted(bounds, np.where(np.isnan(real), 0, real))])
    bits = np.ascontiguousarray(real).view(np.uint32)
    rounded = _signed if dtype.floating.signed else _unsigned
    return np.asarray(rounded(bits, dtype.floating).astype(np.uint8).reshape(real.shape))


def f32_bits(t: Float, magnitude: int) -> int:
    """The f32 bits of the normal number with this magnitude, or that would have it."""
    return (magnitude << F32_MANTISSA - t.mantissa) + (F32_BIAS - t.bias << F32_MANTISSA)


def _signed(bits: Array, t: Float) -> Array:
    """Round to nearest, ties to even. The rest of the division by the last place decides.

    Below the normal numbers, adding a power of two leaves the rounded code in the low bits.
    """
    shift = np.uint32(F32_MANTISSA - t.mantissa)
    shifter = t.step + F32_MANTISSA
    magnitude = bits & np.uint32(_SIGNLESS)
    reach = np.minimum(magnitude, np.uint32(f32_bits(t, t.overflow)))
    reach += reach >> shift & np.uint32(1)
    reach += np.uint32((1 << int(shift) - 1) - 1)
    reach -= np.uint32(F32_BIAS - t.bias << F32_MANTISSA)
    reach >>= shift
    with np.errstate(over="ignore", invalid="ignore"):
        small = (magnitude.view(np.float32) + np.float32(2.0**shifter)).view(np.uint32)
    small -= np.uint32(shifter + F32_BIAS << F32_MANTISSA)
    np.copyto(reach, small, where=magnitude < f32_bits(t, t.first_normal))
    np.copyto(reach, np.uint32(t.of_nan), where=magnitude > _INFINITY)
    return np.asarray(reach | bits >> np.uint32(31) << np.uint32(t.bits - 1))


def _unsigned(bits: Array, t: Float) -> Array:
    """Round to the nearest power of two, ties up; the bias is that of f32."""
    half = 1 << F32_MANTISSA - 1
    rounded = bits + np.uint32(half) >> np.uint32(F32_MANTISSA)
    # f32 has 2**-127 as a subnormal number, and nothing for 2**-128.
    np.copyto(rounded, np.uint32(0), where=bits < half + half // 2)
    # A sign, unless it is that of zero; NaN; and what is rounded to infinity or to a sign.
    wrong = (bits > _INFINITY) & (bits != _SIGNLESS + 1)
    np.copyto(rounded, np.uint32(t.of_nan), where=wrong)
    np.copyto(rounded, np.uint32(0), where=bits == _SIGNLESS + 1)
    return np.asarray(rounded)
