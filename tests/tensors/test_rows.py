"""The table of element types: what codes stand for, and how numbers become codes."""

from __future__ import annotations

from typing import Any

import ml_dtypes
import numpy as np
import pytest

import clformats as cf
from clformats.tensors.dtypes import as_dtype, codes, convert, from_codes
from clformats.tensors.rows import ROWS, DType, Float
from tests.types_support import EVERY, NF4, OWN, each_type, known

CODED = [row for row in ROWS if row.is_coded]


def all_codes(row: DType) -> Any:
    return np.arange(1 << row.bits, dtype=np.uint8)


def same(a: Any, b: Any) -> bool:
    """Equal numbers; zeros of equal sign; NaN equals NaN."""
    return bool(((a == b) & (np.signbit(a) == np.signbit(b)) | np.isnan(a) & np.isnan(b)).all())


@pytest.mark.parametrize("row", CODED, ids=str)
def test_every_code_stands_for_what_ml_dtypes_says(row: DType) -> None:
    theirs = all_codes(row).view(row.numpy).astype(np.float32)
    assert same(convert(all_codes(row).view(row.numpy), row, "f32"), theirs)
    assert row.largest == np.nanmax(np.where(np.isinf(theirs), np.nan, theirs))


@pytest.mark.parametrize("row", [r for r in ROWS if r.floating and r.bits > 8], ids=str)
def test_the_numbers_of_wide_floats_are_those_of_ml_dtypes(row: DType) -> None:
    theirs: Any = ml_dtypes.finfo(row.numpy)  # type: ignore[no-untyped-call]
    t = row.floating
    assert t is not None
    assert t.mantissa == theirs.nmant
    assert (t.value(t.first_normal), t.value(1)) == (
        theirs.smallest_normal, theirs.smallest_subnormal)  # fmt: skip
    assert t.largest == theirs.max
    for bits, holds in ((t.infinity, np.isinf), (t.nan, np.isnan)):
        assert holds(np.array([bits], row.raw).view(row.numpy).astype(np.float64)).all()


def hard_values(row: DType) -> Any:
    """Every value, every halfway point, what lies next to each, and what is far away."""
    values = from_codes(all_codes(row), row).astype(np.float32)
    values = np.unique(values[np.isfinite(values)]).astype(np.float64)
    points = np.concatenate([values, (values[1:] + values[:-1]) / 2, values * 2, values / 8])
    points = np.append(points, [1e30, 3e38, 1e-30, 1e-40, 2.0**-127, 1.5 * 2.0**-127, 2.0**-149])
    with np.errstate(over="ignore"):
        points = np.append(points, -points).astype(np.float32)
        nexts = [np.nextafter(points, np.float32(to)) for to in (np.inf, -np.inf)]
    return np.concatenate([points, *nexts, [np.inf, -np.inf]]).astype(np.float32)


@pytest.mark.parametrize("row", CODED, ids=str)
def test_numbers_are_rounded_as_by_ml_dtypes(row: DType) -> None:
    """But for NaN, and for 0 as a power of two: there the rule is ours, see below.

    ml_dtypes makes 2**-126 of all that lies between this and 2**-127; here the nearer one counts.
    """
    values = hard_values(row)
    if row.floating and not row.floating.signed:
        values = values[(values != 0) & ((values <= 2.0**-127) | (values >= 2.0**-126))]
    want = values.astype(row.numpy)
    assert (convert(values, "f32", row).view(np.uint8) == want.view(np.uint8)).all()
    halves = np.arange(1 << 16, dtype=np.uint16).view(np.float16)
    finite = halves[np.isfinite(halves) & (halves != 0)]
    want = finite.astype(np.float32).astype(row.numpy)
    assert (convert(finite, "f16", row).view(np.uint8) == want.view(np.uint8)).all()


@pytest.mark.parametrize("row", [r for r in EVERY if r.is_coded], ids=str)
def test_every_value_is_its_own(row: DType) -> None:
    """Through f32 and back; of codes with equal values the first."""
    every = from_codes(all_codes(row), row).astype(np.float32)
    again = codes(every, row)
    values = from_codes(again, row).astype(np.float32)
    assert same(values, every) or (row.name == "t3_own" and (values == every).all())
    finite = np.isfinite(every)
    assert (again[finite] == all_codes(row)[finite]).all() or row.name == "t3_own"


@pytest.mark.parametrize(
    ("name", "values", "wanted"),
    [
        ("f4_e2m1", [0, 0.25, 0.26, 0.75, 1.25, 1.75, 2.5, 3.5, 5, 5.01, 1e9, np.inf],
         [0, 0, 1, 2, 2, 4, 4, 6, 6, 7, 7, 7]),
        ("f4_e2m1", [-0.0, -0.2, -6, -np.inf, np.nan, -np.nan], [8, 8, 15, 15, 7, 15]),
        ("f6_e2m3", [0.0625, 0.0626, 7.5, 8, -9, np.nan], [0, 1, 31, 31, 63, 31]),
        ("f6_e3m2", [2.0**-4, 28, 30, 1e9, -1e9, -np.nan], [1, 31, 31, 31, 63, 63]),
        ("f8_e8m0", [1, 1.49, 1.5, 3, 0.75, 0, -0.0, 2.0**-127, 1e-45],
         [127, 127, 128, 129, 127, 0, 0, 0, 0]),
        ("e8m0", [2.0**127, 1.5 * 2.0**127, np.inf, np.nan, -np.nan, -1, -np.inf, -1e-45],
         [254, 255, 255, 255, 255, 255, 255, 255]),
        ("f8_e4m3", [464, 464.1, np.nan, -np.nan], [0x7E, 0x7F, 0x7F, 0xFF]),
        ("f8_e5m2", [61439, 61440, np.nan, -np.nan], [0x7B, 0x7C, 0x7E, 0xFE]),
        ("s4", [-9, -8, -1, 0.5, 1.5, 7.5, 99, np.nan], [8, 8, 15, 0, 2, 7, 7, 0]),
        ("s2", [-3, -2, -1.5, -0.5, 0.5, 1, 2], [2, 2, 2, 0, 0, 1, 1]),
        ("u2", [-1, 2.5, 3.5, 9], [0, 2, 3, 3]),
        ("u3", [-1, 6.5, 7.5, 9], [0, 6, 7, 7]),
        ("u5", [30.5, 31.5, 1e10], [30, 31, 31]),
        ("u6", [62.5, 63.5, np.inf], [62, 63, 63]),
        ("u1", [-1, 0.5, 0.51, 7], [0, 0, 1, 1]),
    ],
)  # fmt: skip
def test_numbers_to_codes(name: str, values: list[float], wanted: list[int]) -> None:
    for kind in (np.float32, np.float64):
        assert codes(np.array(values, kind), as_dtype(name)).tolist() == wanted


@pytest.mark.parametrize("name", ["s8", "u4", "s32", "s64"])
def test_signalling_nan_becomes_0_without_a_warning(name: str) -> None:
    wide = np.array([0x7F800001, 0xFF800123], np.uint32).view(np.float32)
    half = np.array([0x7C01, 0xFC23], np.uint16).view(np.float16)
    assert not codes(wide, as_dtype(name)).any()
    assert not codes(half, as_dtype(name)).any()


def test_a_table_takes_the_nearest_value() -> None:
    nf4, odd = OWN[2], OWN[3]
    assert codes(np.array(NF4, np.float32), nf4).tolist() == list(range(16))
    assert codes(np.array([-9, 0.04, 0.039, 0.99, np.nan, np.inf]), nf4).tolist() == [
        0, 8, 7, 15, 7, 15]  # fmt: skip
    # -1 of -0.5, the smaller of two values as near; of equal values the first code.
    assert codes(np.array([-0.5, 0.5, 0.25, 1.75, 4, 50, 51]), odd).tolist() == [
        1, 2, 4, 2, 7, 0, 6]  # fmt: skip


def test_64_bits() -> None:
    values = np.array([-(2.0**63), 2.0**63, 1e300, -1e300, np.nan, 2.5, -np.inf, np.inf])
    most, least = 2**63 - 1, -(2**63)
    assert convert(values, "f64", "s64").tolist() == [
        least, most, most, least, 0, 2, least, most]  # fmt: skip
    assert convert(np.array([3e9, -3e9], np.float32), "f32", "s64").tolist() == [
        3 * 10**9,
        -3 * 10**9,
    ]
    wide = np.array([most, least, 2**53 + 1, 300, -129])
    assert convert(wide, "s64", "s32").tolist() == [2**31 - 1, -(2**31), 2**31 - 1, 300, -129]
    assert convert(wide, "s64", "s8").tolist() == [127, -128, 127, 127, -128]
    assert convert(wide, "s64", "f64").tolist() == [2.0**63, -(2.0**63), 2.0**53, 300, -129]
    assert codes(np.array([2**64 - 1], np.uint64), as_dtype("s64")).tolist() == [most]


@each_type
def test_a_row_is_found_by_its_names(row: DType) -> None:
    with known(row):
        assert as_dtype(row.name) is as_dtype(row) is row
        assert cf.MemoryDesc.parse(f"{row.name}:ab:2x3").dtype is row
    assert as_dtype(row.numpy) is row or row.numpy in (np.uint8, np.float32, np.int8)


@pytest.mark.parametrize(
    "wrong",
    [
        lambda: DType("x", 9, "signed", np.dtype(np.int16)),
        lambda: DType("x", 4, "float", np.dtype(np.float32)),
        lambda: DType("x", 4, "float", np.dtype(np.float32), None, (1.0, 2.0)),
        lambda: DType("x", 4, "float", np.dtype(np.float32), Float(3, 2, 1)),
        lambda: DType("x", 1, "float", np.dtype(np.float32), None, (1.0, np.nan)),
        lambda: DType("x y", 4, "signed", np.dtype(np.int8)),
        lambda: Float(4, 3, 7, 0x7F),
        lambda: Float(5, 0, 15, signed=False),
    ],
)
def test_rows_that_do_not_agree(wrong: Any) -> None:
    with pytest.raises(cf.InvalidArgument, match="expected"):
        wrong()
