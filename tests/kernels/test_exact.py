"""Which kernels round to floats, and how bf16 is rounded: each upper half of a float, NaN too."""

from __future__ import annotations

from itertools import product

import numpy as np
import pytest

import clformats as cf
from clformats.kernels.types import conversion
from clformats.tensors.dtypes import convert, from_codes
from clformats.tensors.rows import ROWS, DType
from tests.device_support import check_reorder

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


@pytest.mark.parametrize("low", [0, 1, 0x7FFF, 0x8000, 0x8001, 0xFFFF])
def test_every_upper_half_of_a_float(low: int, stream: cf.Stream) -> None:
    """Signs and payloads of NaN, infinities, what overflows, ties: in vectors and one by one."""
    values = (np.arange(1 << 16, dtype=np.uint32) << 16 | np.uint32(low)).view(np.float32)
    n = values.size
    for src in (cf.MemoryDesc((n, 1), "f32", "ab"), cf.MemoryDesc((n, 1), "f32", strides=(2, 1))):
        check_reorder(src, cf.MemoryDesc((n, 1), "bf16", "ab"), stream, array=values.reshape(n, 1))
