"""Expressions of the user's: what they mean, and that nothing else gets through."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import clformats as cf
from clformats.values.formula import FUNCTIONS, Formula, parse

X = np.array([-2.5, -1.0, -0.0, 0.5, 3.0], np.float32)

MEANINGS = {
    "x": X,
    "1 / 2": 0.5,
    "-x": -X,
    "- -x": X,
    "1 - 2 - 3": -4,
    "8 / 4 / 2": 1,
    "1 - (2 - 3)": 2,
    "2 + 3 * 4": 14,
    "-2 * -3": 6,
    "max(x, 0.f) * 0.5f": np.maximum(X, 0) / 2,
    "x > 0 ? x : 0.25 * x": np.where(X > 0, X, X / 4),
    "x < 0 ? -1 : x > 1 ? 2 : 3": np.where(X < 0, -1, np.where(X > 1, 2, 3)),
    "(x > 0) + (x > 1)": (X > 0).astype(int) + (X > 1),
    "x ? 1 : 2": np.where(X != 0, 1, 2),
    "!x": (X == 0).astype(int),
    "x >= -1 && x <= .5 || x == 3": ((X >= -1) & (X <= 0.5)) | (X == 3),
    "1 < 2 < 3": 1,
    "clamp(x, -1, 1)": np.clip(X, -1, 1),
    "1e1F + 5.e-1": 10.5,
}


@pytest.mark.parametrize("text", MEANINGS)
def test_meaning(text: str) -> None:
    got = parse(text, ("x",)).evaluate({"x": X})
    assert got.dtype == np.float32
    np.testing.assert_array_equal(got, np.asarray(MEANINGS[text], np.float32))


@pytest.mark.parametrize("text", MEANINGS)
def test_what_is_printed_reads_back(text: str) -> None:
    tree = parse(text, ("x",))
    again = parse(str(tree), ("x",))
    assert str(again) == str(tree)
    np.testing.assert_array_equal(again.evaluate({"x": X}), tree.evaluate({"x": X}))


def test_every_function_is_what_its_name_says() -> None:
    """Against Python's own, where it has one."""
    others: dict[str, Any] = {
              "fabs": abs, "rint": round, "rsqrt": lambda x: x**-0.5, "fmin": min, "fmax": max,
              "round": lambda x: math.floor(x + 0.5), "sign": lambda x: math.copysign(1, x),
              "step": lambda edge, x: float(x >= edge), "clamp": lambda x, a, b: min(max(x, a), b),
              "mad": lambda a, b, c: a * b + c, "mix": lambda a, b, t: a + (b - a) * t,
              "min": min, "max": max, "cbrt": lambda x: x ** (1 / 3), "exp2": lambda x: 2**x,
              }  # fmt: skip
    arguments = (0.375, 0.75, 0.9)
    for name, (count, _) in FUNCTIONS.items():
        tree = parse(f"{name}({', '.join(map(str, arguments[:count]))})", ())
        want = others.get(name) or getattr(math, name)
        got = tree.evaluate({}, np.float64)
        np.testing.assert_allclose(got, want(*arguments[:count]), rtol=1e-12, err_msg=name)


def test_functions_at_their_edges() -> None:
    """What OpenCL says of halves, zeros and NaN."""
    nan, most, x = np.float32(np.nan), np.nextafter(np.float32(0.5), np.float32(0)), ("x",)
    values = np.array([most, -most, 0.5, -2.5, 8388609, -0.0, np.inf, nan], np.float32)
    rounded = parse("round(x)", x).evaluate({"x": values})
    want = np.array([0, -0.0, 1, -3, 8388609, -0.0, np.inf, nan], np.float32)
    np.testing.assert_array_equal(rounded, want)
    np.testing.assert_array_equal(np.signbit(rounded[:-1]), np.signbit(want[:-1]))
    signs = parse("sign(x)", x).evaluate({"x": values})
    np.testing.assert_array_equal(signs, [1, -1, 1, -1, 1, 0, 1, 0])
    assert np.signbit(signs[5])
    np.testing.assert_array_equal(parse("step(1, x)", x).evaluate({"x": values})[-2:], [1, 1])


def test_long_expressions_are_computed() -> None:
    """The deepest that is read is not too deep for what is done with it."""
    for text in ("x+" * 99 + "x", "fabs(" * 39 + "x+" * 60 + "x" + ")" * 39):
        tree = parse(text, ("x",))
        assert tree.evaluate({"x": X}).shape == X.shape
        assert parse(tree.source("float", 4).replace("(float4)", ""), ("x",)).names == ("x",)


REFUSED = {
    "x;": "';'", "y": "'y'", "system(x)": "'system'", "x +": "the end", "max(x)": "2 arguments",
    "1e99": "too large", "(((x": "expected ')'", "x ** 2": "'*'", 'x"': "cannot read",
    "x'": "cannot read", "x x": "'x'", "1.2.3": "cannot read", "0x10": "cannot read",
    "x = 1": "cannot read", "x[0]": "cannot read", "{x}": "cannot read", "x % 2": "cannot read",
    "x & 1": "cannot read", "#define": "cannot read", "x \\": "cannot read", "": "the end",
    "max": "'max'", "x(1)": "'x'", "1 ? 2": "':'", "get_global_id(0)": "'get_global_id'",
    "/* x */": "expected a value", "x // y": "expected a value", "é": "cannot read",
    "(" * 60 + "x" + ")" * 60: "levels", "-" * 60 + "x": "signs", "x+" * 2000 + "x": "characters",
    "x+" * 900 + "x": "sums of sums", "x*(1+" * 39 + "x+" * 60 + "x" + ")" * 39: "sums of sums",
    "x\u00e9": "cannot read", "\u0663": "cannot read",
}  # fmt: skip


@pytest.mark.parametrize("text", REFUSED, ids=lambda t: t[:12])
def test_what_is_not_understood_is_named(text: str) -> None:
    with pytest.raises(cf.InvalidExpression) as refusal:
        parse(text, ("x",))
    assert REFUSED[text] in str(refusal.value)
    with pytest.raises(cf.InvalidAttr):
        cf.Attr(expression=text)


@given(st.text(alphabet="xy01.+-*/<>=!&|?:(), fmaxin", max_size=30))
def test_any_text_is_read_or_refused(text: str) -> None:
    try:
        tree = parse(text, ("x",))
    except cf.InvalidExpression:
        return
    assert parse(tree.source("float"), ("x",)).source("float") == tree.source("float")


def test_vectors_are_made_where_c_does_not_widen() -> None:
    tree = parse("x > 1 ? max(x, 2) : 0 * x + 3", ("x",))
    wide = "x > (float4)(1.0f) ? fmax(x, (float4)(2.0f)) : 0.0f * x + 3.0f"
    assert tree.source("float", 4) == wide
    assert tree.source("double", 4) == wide.replace("float4", "double4").replace("0f", "0")


def test_what_opencl_leaves_open_is_spelled_out() -> None:
    """``mad`` is fused on Intel's runtime, and ``step`` of NaN is 0 there."""
    source = parse("mad(x, x + 1, 2) * step(x, 3)", ("x",)).source("float", 4)
    one, zero = "(float4)(1.0f)", "(float4)(0.0f)"
    assert source == f"(x * (x + 1.0f) + 2.0f) * (!((float4)(3.0f) < x) ? {one} : {zero})"
    assert parse("step(1, x)", ("x",)).evaluate({"x": np.array([np.nan], np.float32)}) == 1


def test_trees_are_put_together_by_operators() -> None:
    x, y = Formula("name", "x"), Formula("name", "y")
    assert str((x - y) * x / (x + y)) == "(x - y) * x / (x + y)"
    assert ((x - y) * x).names == ("x", "y")
    assert str((x * y).with_names({"x": x + y})) == "(x + y) * y"
