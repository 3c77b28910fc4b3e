"""Attributes: the formula's numbers, masks, and what is refused."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import clformats as cf
from clformats.values.attr import Values

S8 = np.array([10], np.int8)


def test_onednn_examples() -> None:
    """facts of oneDNN 2 and 3: s8, x 10, scale .5, zp_src 2, zp_dst 3, sum .5, old 4."""
    base: dict[str, Any] = {"src_scale": 0.5, "src_zero_point": 2, "dst_zero_point": 3, "beta": 0.5}
    old = np.array([4], np.int8)
    assert cf.Attr(**base).apply(S8, "s8", "s8", old) == 9
    assert cf.Attr(**base, dst_scale=0.25).apply(S8, "s8", "s8", old) == 27


def test_each_step_is_rounded_to_f32() -> None:
    x = np.array([3.0], np.float32)
    got = cf.Attr(dst_scale=3).apply(x, "f32", "f32")
    assert got == np.float32(3) * (np.float32(1) / np.float32(3))
    wide = cf.Attr(dst_scale=3).apply(x.astype(np.float64), "f64", "f64")
    assert wide == 3.0 * (1.0 / 3.0)


@pytest.mark.parametrize("mask", range(16))
def test_any_mask_runs_row_major_over_its_dimensions(mask: int) -> None:
    dims = (2, 3, 5, 7)
    sizes = tuple(n if mask >> d & 1 else 1 for d, n in enumerate(dims))
    scales = np.random.default_rng(mask).integers(1, 9, sizes)
    x = np.random.default_rng(7).integers(-50, 50, dims).astype(np.float32)
    got = cf.Attr(src_scale=(scales, mask)).apply(x, "f32", "f32")
    np.testing.assert_array_equal(got, x * scales)
    flat, strides = scales.ravel(), Values(None, mask).strides(dims)
    for index in np.ndindex(dims):
        at = sum(i * s for i, s in zip(index, strides, strict=True))
        assert (
            flat[at] == scales[tuple(i if n > 1 else 0 for i, n in zip(index, sizes, strict=True))]
        )


def test_input_preparation_of_cldnn() -> None:
    mean, factor = np.array([123.68, 116.78, 103.94]), np.array([0.017, 0.0175, 0.018])
    image = np.random.default_rng(0).integers(0, 256, (1, 3, 4, 5)).astype(np.uint8)
    attr = cf.Attr(src_zero_point=(mean, 1 << 1), src_scale=(factor, 1 << 1))
    m, f = (v.astype(np.float32).reshape(1, 3, 1, 1) for v in (mean, factor))
    np.testing.assert_array_equal(attr.apply(image, "u8", "f32"), (image - m) * f)


def test_the_expression_stands_before_sum_and_destination() -> None:
    attr = cf.Attr(src_scale=2, beta=1, dst_scale=0.5, expression="max(x, 0) + 1")
    assert (
        str(attr.formula) == "(fmax(x * src_scale, 0.0f) + 1.0f + beta * old) * (1.0f / dst_scale)"
    )
    x = np.array([-3, 3], np.float32)
    np.testing.assert_array_equal(attr.apply(x, "f32", "f32", x), [(1 - 3) * 2, (7 + 3) * 2])


def test_nothing_given_converts_alone() -> None:
    assert cf.Attr().is_empty
    assert str(cf.Attr().formula) == "x"
    big = np.array([2**24 + 1], np.int32)
    assert cf.Attr().apply(big, "s32", "s32") == big


def test_values_given_at_execution() -> None:
    attr = cf.Attr(src_scale=cf.at_execution(mask=2), beta=cf.at_execution())
    x = np.ones((2, 3), np.float32)
    got = attr.apply(x, "f32", "f32", x, src_scale=[1, 2, 3], beta=10)
    np.testing.assert_array_equal(got, [[11, 12, 13]] * 2)
    assert repr(attr) == "Attr(src_scale=given at execution, mask 2, beta=given at execution)"
    cases: list[tuple[dict[str, Any], str]] = [
        ({"beta": 1}, "src_scale is to be given at execution"),
        ({"beta": 1, "src_scale": [1, 2]}, "got 2 values of src_scale"),
        ({"beta": 1, "src_scale": [1, 2, 3], "dst_scale": 1}, "got dst_scale at execution"),
    ]
    for given, said in cases:
        with pytest.raises(cf.InvalidAttr, match=said):
            attr.apply(x, "f32", "f32", x, **given)


@pytest.mark.parametrize(
    ("given", "said"),
    [
        ({"src_scale": [1, 2]}, "without a mask"),
        ({"src_scale": ([1, 2], 1, 3)}, "got 3 items"),
        ({"src_scale": ([1, 2], -1)}, "mask -1"),
        ({"src_scale": ([1, 2], True)}, "mask True"),
        ({"src_scale": ([1, 2], 1.0)}, "mask 1.0"),
        ({"src_scale": "two"}, "expected numbers"),
        ({"src_scale": 1j}, "expected numbers"),
        ({"src_scale": ([[1], [2, 3]], 1)}, "expected numbers"),
        ({"dst_scale": 0}, "divided by it"),
        ({"dst_scale": ([1, 0], 1)}, "divided by it"),
        ({"expression": 3}, "as text"),
    ],
)  # fmt: skip
def test_bad_values_are_refused(given: dict[str, Any], said: str) -> None:
    with pytest.raises(cf.InvalidAttr, match=said):
        cf.Attr(**given)


def test_counts_are_checked_against_dims() -> None:
    x = np.ones((2, 3), np.float32)
    with pytest.raises(cf.InvalidAttr, match=r"got 2 values of src_scale with mask 2 .*expected 3"):
        cf.Attr(src_scale=([1, 2], 2)).apply(x, "f32", "f32")
    with pytest.raises(cf.InvalidAttr, match=r"mask of beta is 4.*at most 3"):
        cf.Attr(beta=([1, 2], 4)).apply(x, "f32", "f32", x)
    with pytest.raises(cf.InvalidAttr, match="needs old"):
        cf.Attr(beta=1).apply(x, "f32", "f32")


def test_values_beyond_the_type_are_refused() -> None:
    x, wide = np.ones(3, np.float32), np.ones(3)
    for attr, said in [
        (cf.Attr(src_scale=1e300), "a value of src_scale is beyond f32"),
        (cf.Attr(dst_scale=1e-60), "a dst_scale is 0"),
    ]:
        with pytest.raises(cf.InvalidAttr, match=said):
            attr.apply(x, "f32", "f32")
        assert np.isfinite(attr.apply(wide, "f64", "f64")).all()


def test_attributes_are_immutable() -> None:
    attr = cf.Attr(src_scale=([1, 2], 1), expression="x + 1")
    with pytest.raises(AttributeError, match="immutable"):
        attr.expression = "x + 2"
    with pytest.raises(TypeError):
        attr.terms["beta"] = Values(None)  # type: ignore[index]
    values = attr.terms["src_scale"].values
    assert values is not None
    with pytest.raises(ValueError, match="read-only"):
        values[0] = 7


@pytest.mark.parametrize("value", [np.nan, np.inf, -np.inf])
@pytest.mark.parametrize("name", cf.Attr.NAMES)
def test_only_finite_numbers_are_values(name: str, value: float) -> None:
    with pytest.raises(cf.InvalidAttr, match=f"infinity for {name}, expected finite numbers"):
        cf.Attr(**{name: value})  # type: ignore[arg-type]  # mypy takes any of its names
    late = cf.Attr(**{name: cf.at_execution()})  # type: ignore[arg-type]
    with pytest.raises(cf.InvalidAttr, match="finite"):
        late.apply(S8, "s8", "s8", S8, **{name: value})
