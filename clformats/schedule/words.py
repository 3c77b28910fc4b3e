"""Elements that share bytes: how many make whole bytes."""

from __future__ import annotations

from math import gcd

from ..tensors.dtypes import DType


def unit_of(dtype: DType) -> int:
    """The elements of a *unit*, the fewest whole bytes that hold whole elements.

    >>> from clformats.tensors.dtypes import as_dtype
    >>> unit_of(as_dtype("u4")), unit_of(as_dtype("u1")), unit_of(as_dtype("f16"))
    (2, 8, 1)
    """
    return 8 // gcd(8, dtype.bits)
