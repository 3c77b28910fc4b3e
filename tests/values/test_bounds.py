"""Bounds of formulas hold for every value, and tell which results one addition rounds."""

from __future__ import annotations

from math import inf
from typing import Any

import numpy as np
import pytest

import clformats as cf
from clformats.problems.computation import from_attr, over_tensors
from clformats.values.bounds import ROUNDED_BELOW, is_whole, largest
from clformats.values.formula import parse

RANGES = {"x": (0.0, 128.0), "y": (0.25, 3.0)}
UNARY = ("-{}", "fabs({})", "trunc({})", "!{}", "floor({})", "sqrt({})")
BINARY = ("{} + {}", "{} - {}", "{} * {}", "{} / {}", "max({}, {})", "min({}, {})", "{} < {}",
          "{} && {}", "pow({}, {})")  # fmt: skip
TERNARY = ("({} ? {} : {})", "clamp({}, {}, {})", "mix({}, {}, {})")
FORMS = UNARY + 2 * BINARY + TERNARY


def text(rng: np.random.Generator, depth: int) -> str:
    if depth == 0 or rng.random() < 0.1:
        return str(rng.choice(["x", "y", "z", "0", "0.5", "3", "1e30", "1e-30"]))
    form = FORMS[rng.integers(len(FORMS))]
    parts = [f"({text(rng, depth - 1)})" for _ in range(form.count("{}"))]
    return form.format(*parts)


def test_no_value_is_beyond_the_bound() -> None:
    rng = np.random.default_rng(5)
    values = {
        "x": rng.choice(np.array([-128, -1, 0, 1, 127], np.float32), 200),
        "y": rng.choice(np.array([-3, -0.25, 0.25, 3], np.float32), 200),
        "z": rng.choice(np.array([np.nan, np.inf, -np.inf, 0, 3e38], np.float32), 200),
    }
    bounded = 0
    for _ in range(3000):
        formula = parse(text(rng, int(rng.integers(1, 5))), ("x", "y", "z"))
        bound = largest(formula, RANGES)
        if bound < inf:
            bounded += 1
            found = np.abs(formula.evaluate(values))
            assert not np.isnan(found).any(), formula
            assert found.max() <= bound * (1 + 1e-5), formula
    assert bounded > 500


def test_integers_compute_the_same_where_all_is_whole() -> None:
    rng = np.random.default_rng(7)
    values = {"x": np.arange(-128, 128, dtype=np.int16), "y": np.array([[-3], [0], [7]], np.int16)}
    ranges, found = {"x": (0.0, 128.0), "y": (0.0, 7.0)}, 0
    for _ in range(3000):
        formula = parse(text(rng, int(rng.integers(1, 5))), ("x", "y", "z"))
        if is_whole(formula, ranges):
            found += 1
            same = formula.evaluate(values, np.int16) == formula.evaluate(values)
            assert same.all(), formula
    assert found > 200


@pytest.mark.parametrize(
    ("src", "dst", "attr", "whole"),
    [
        ("s8", "u8", {"src_zero_point": ([-128, 3], 1), "beta": -2}, True),
        ("u8", "s4", {"expression": "x > 7.f ? max(x, 9.f) : -x"}, True),
        ("s8", "s8", {"beta": 254}, True),
        ("s8", "s8", {"beta": 255}, False),
        ("s8", "s8", {"dst_zero_point": ([3, 0.5], 1)}, False),
        ("s8", "s8", {"dst_zero_point": cf.at_execution()}, False),
        ("s8", "s8", {"dst_scale": 1}, False),
        ("s8", "s32", {"beta": 1}, False),
        ("s8", "f32", {"src_zero_point": 1}, False),
        ("s32", "s8", {"src_zero_point": 1}, False),
    ],
)
def test_which_formulas_are_whole(src: str, dst: str, attr: dict[str, Any], whole: bool) -> None:
    a, b = (cf.MemoryDesc((2, 3), t, "ab") for t in (src, dst))
    computation = from_attr(cf.Attr(**attr), a, b)
    assert computation is not None
    assert computation.whole is whole


@pytest.mark.parametrize(
    ("src", "dst", "attr", "small"),
    [
        ("s8", "s8", {"src_scale": 0.5}, True),
        ("u8", "s8", {"src_scale": ([0.5, 100.0], 1), "dst_zero_point": -7, "beta": 3}, True),
        ("s8", "s8", {"dst_scale": ([0.001, 2.0], 1)}, True),
        ("s8", "u8", {"expression": "max(x, 0.f)"}, True),
        ("s8", "s8", {"src_scale": 2.0**14}, True),
        ("s8", "s8", {"src_scale": 2.0**14 + 1}, False),
        ("s8", "s8", {"src_scale": 0.5, "dst_scale": 1e-39}, False),
        ("s8", "s32", {"src_scale": cf.at_execution()}, False),
        ("s8", "s8", {"expression": "sqrt(x)"}, False),
        ("f32", "s8", {"src_scale": 0.5}, False),
        ("f32", "s8", {"expression": "clamp(x, -1.f, 1.f)"}, False),
        ("s32", "s8", {"src_scale": 0.5}, False),
        ("s32", "s8", {"src_scale": 2.0**-12}, True),
    ],
)
def test_which_results_are_small(src: str, dst: str, attr: dict[str, Any], small: bool) -> None:
    a, b = (cf.MemoryDesc((2, 3), t, "ab") for t in (src, dst))
    computation = from_attr(cf.Attr(**attr), a, b)
    assert computation is not None
    assert computation.small is small


@pytest.mark.parametrize(
    ("src", "dst", "attr", "name"),
    [
        ("s8", "s8", {}, "src_scale"),
        ("s8", "u4", {"src_zero_point": ([3, 9], 1)}, "src_scale"),
        ("s8", "s8", {"src_zero_point": 8000}, "src_scale"),
        ("s8", "s8", {"src_zero_point": 8100}, ""),  # a product with 256 is too large to round
        ("s8", "s8", {"src_zero_point": 0.5}, ""),  # a half times 256 does not saturate u8
        ("s8", "s8", {"dst_zero_point": 1}, ""),  # which is 0 where a factor is no number
        ("s8", "s8", {"beta": cf.at_execution()}, ""),
        ("s8", "s8", {"dst_scale": 2.0}, ""),
        ("s8", "s8", {"src_scale": 1e6 + 0.5}, ""),
        ("s8", "s32", {}, ""),
        ("s8", "f16", {}, ""),
        ("f32", "s8", {}, ""),
    ],
)
def test_which_factors_are_held(src: str, dst: str, attr: dict[str, Any], name: str) -> None:
    a, b = (cf.MemoryDesc((2, 3), t, "ab") for t in (src, dst))
    computation = from_attr(cf.Attr(**{"src_scale": cf.at_execution(), **attr}), a, b)
    assert computation is not None
    assert computation.held == name
    assert computation.small is bool(name)


def test_maps_of_integers_are_small() -> None:
    a, b, dst = (cf.MemoryDesc((2, 3), t, f) for t, f in (("s8", "ab"), ("u8", "ba"), ("s8", "ab")))
    formula = parse("a * 0.5f - b", ("a", "b"))
    assert over_tensors(formula, [("a", a), ("b", b)], dst)[1].small
    half = cf.MemoryDesc((2, 3), "f16", "ba")
    assert not over_tensors(formula, [("a", a), ("b", half)], dst)[1].small
    assert 1 < ROUNDED_BELOW < 2**22
