"""Which kernels round: those whose destination does not hold every value of the source."""

from __future__ import annotations

from itertools import product

import numpy as np
import pytest

from clformats.kernels.types import conversion
from clformats.tensors.dtypes import convert, from_codes
from clformats.tensors.rows import ROWS, DType

INTEGERS = [t for t in ROWS if not t.is_float]
FLOATS = [t for t in ROWS if t.floating is not None]


def hard_values(dtype: DType) -> np.ndarray:
    """All values of a small type, else those with the most bits."""
    if dtype.bits <= 8:
        return from_codes(np.arange(1 << dtype.bits, dtype=np.uint8), dtype)
    low, high = dtype.limits
    return np.array([low, low + 1, high, high - 1, 1 << dtype.bits // 2 | 1], dtype.numpy)


@pytest.mark.parametrize(("src", "dst"), [*product(INTEGERS, FLOATS)], ids=str)
def test_nothing_is_rounded_that_fits(src: DType, dst: DType) -> None:
    values = hard_values(src)
    back = convert(convert(values, src, dst), dst, "f64")
    if conversion(src, dst).helpers.exact:
        assert np.array_equal(back.astype(float), values.astype(float))


@pytest.mark.parametrize(("src", "exact"), [("s8", True), ("u8", True), ("s32", False)])
def test_bf16_holds_bytes(src: str, exact: bool) -> None:
    types = {t.name: t for t in ROWS}
    assert conversion(types[src], types["bf16"]).helpers.exact is exact
