"""Law: the text of an expression, evaluated by Python, is the value that `evaluate` gives."""

from __future__ import annotations

from typing import Any

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from clformats.formats.expr import Const, Expr, Select, Var, total

_leaves = st.one_of(st.integers(0, 50).map(Const), st.sampled_from(["a", "b", "c"]).map(Var))
_positive = st.integers(1, 40)


def _grow(children: st.SearchStrategy[Expr]) -> st.SearchStrategy[Expr]:
    return st.one_of(
        st.tuples(children, children).map(lambda t: t[0] + t[1]),
        st.tuples(children, children).map(lambda t: t[0] * t[1]),
        st.tuples(children, children).map(lambda t: t[0] - t[1]),
        st.tuples(children, _positive).map(lambda t: t[0] // t[1]),
        st.tuples(children, _positive).map(lambda t: t[0] % t[1]),
        st.tuples(children, _positive).map(lambda t: t[0] // (Const(t[1]) * Const(2))),
    )


expressions: st.SearchStrategy[Expr] = st.recursive(_leaves, _grow, max_leaves=12)


@given(expressions, st.integers(0, 99), st.integers(0, 99), st.integers(0, 99))
def test_text_means_the_value(e: Expr, a: int, b: int, c: int) -> None:
    env = {"a": a, "b": b, "c": c}
    text = str(e).replace("/", "//")
    assert eval(text, {}, env) == e.evaluate(env)  # noqa: S307  # the text is our own


@given(expressions)
def test_arrays_broadcast(e: Expr) -> None:
    env: dict[str, Any] = {"a": np.arange(5)[:, None], "b": np.arange(3), "c": 7}
    values = np.broadcast_to(e.evaluate(env), (5, 3))
    for a in range(5):
        for b in range(3):
            assert values[a, b] == e.evaluate({"a": a, "b": b, "c": 7})


def test_neutral_elements_vanish() -> None:
    x = Var("x")
    assert str(x * 1 + 0) == "x"
    assert str(x // 1 * 4) == "x * 4"
    assert str(x % 1) == "0"
    assert str(x * 0 + 3) == "3"
    assert str(x + -2) == "x - 2"
    assert str(total([])) == "0"


def test_brackets_only_where_needed() -> None:
    a, b, c = Var("a"), Var("b"), Var("c")
    assert str((a + b) * c) == "(a + b) * c"
    assert str(a // (b * c)) == "a / (b * c)"
    assert str(a * b // c) == "a * b / c"
    assert str(a - (b + c)) == "a - (b + c)"
    assert str(a + (b + c)) == "a + b + c"


def test_select_takes_numbers_and_arrays() -> None:
    i = Var("i")
    e = Select(i, Const(3), i + 10, i * 2) + 1
    assert str(e) == "(i >= 3 ? i + 10 : i * 2) + 1"
    assert [e.evaluate({"i": k}) for k in range(5)] == [1, 3, 5, 14, 15]
    assert e.evaluate({"i": np.arange(5)}).tolist() == [1, 3, 5, 14, 15]
