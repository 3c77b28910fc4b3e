"""Integer expressions: written once, evaluated in Python and numpy, printed as OpenCL C.

An offset formula is built once as an `Expr` and then used in three ways, so that the three can
never disagree:

>>> b, x = Var("b"), Var("x")
>>> e = b // 16 * Var("pitch") + x % 16
>>> str(e)
'b / 16 * pitch + x % 16'
>>> e.evaluate({"b": 33, "x": 21, "pitch": 100})
205

``evaluate`` takes numpy arrays as well and then broadcasts. Division is floor division; C agrees
because every operand is an index or a size, never negative. Constants are folded and neutral
elements dropped while building, so the printed text has no ``* 1`` and no ``+ 0``.
"""

from __future__ import annotations

import operator
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

_APPLY: dict[str, Callable[[Any, Any], Any]] = {
    "+": operator.add,
    "-": operator.sub,
    "*": operator.mul,
    "/": operator.floordiv,
    "%": operator.mod,
}
_PRECEDENCE = {"+": 1, "-": 1, "*": 2, "/": 2, "%": 2}
_ATOM = 3


class Expr:
    """An integer expression; combine with ``+ - * // %`` and ints."""

    __slots__ = ()

    def __add__(self, other: Expr | int) -> Expr:
        return _add(self, as_expr(other))

    def __sub__(self, other: Expr | int) -> Expr:
        return _sub(self, as_expr(other))

    def __mul__(self, other: Expr | int) -> Expr:
        return _mul(self, as_expr(other))

    def __floordiv__(self, other: Expr | int) -> Expr:
        return _div(self, as_expr(other))

    def __mod__(self, other: Expr | int) -> Expr:
        return _mod(self, as_expr(other))

    def evaluate(self, env: Mapping[str, Any]) -> Any:
        """The value under ``env``, which maps each variable to an int or an integer array."""
        raise NotImplementedError

    def __str__(self) -> str:
        return self.render()[0]

    def render(self) -> tuple[str, int]:
        """The C text and its precedence (higher binds tighter)."""
        raise NotImplementedError


@dataclass(frozen=True, slots=True)
class Const(Expr):
    """An integer constant."""

    value: int

    def evaluate(self, env: Mapping[str, Any]) -> Any:  # noqa: D102  # as in Expr
        del env
        return self.value

    def render(self) -> tuple[str, int]:  # noqa: D102  # as in Expr
        return str(self.value), _ATOM

    __str__ = Expr.__str__


@dataclass(frozen=True, slots=True)
class Var(Expr):
    """A variable, printed by its name."""

    name: str

    def evaluate(self, env: Mapping[str, Any]) -> Any:  # noqa: D102  # as in Expr
        return env[self.name]

    def render(self) -> tuple[str, int]:  # noqa: D102  # as in Expr
        return self.name, _ATOM

    __str__ = Expr.__str__


@dataclass(frozen=True, slots=True)
class Binary(Expr):
    """``left op right``; made by the operators of `Expr`, which simplify."""

    op: str
    left: Expr
    right: Expr

    def evaluate(self, env: Mapping[str, Any]) -> Any:  # noqa: D102  # as in Expr
        return _APPLY[self.op](self.left.evaluate(env), self.right.evaluate(env))

    def render(self) -> tuple[str, int]:  # noqa: D102  # as in Expr
        mine = _PRECEDENCE[self.op]
        left, left_binds = self.left.render()
        right, right_binds = self.right.render()
        if left_binds < mine:
            left = f"({left})"
        # The right side of equal precedence needs brackets: a / (b * c), a - (b + c).
        if right_binds < mine or (right_binds == mine and self.op != "+"):
            right = f"({right})"
        return f"{left} {self.op} {right}", mine

    __str__ = Expr.__str__


@dataclass(frozen=True, slots=True)
class Select(Expr):
    """``then`` where ``left >= right``, else ``otherwise``."""

    left: Expr
    right: Expr
    then: Expr
    otherwise: Expr

    def evaluate(self, env: Mapping[str, Any]) -> Any:  # noqa: D102  # as in Expr
        # In numbers instead of a branch, so that it takes arrays and needs no numpy.
        chosen = (self.left.evaluate(env) >= self.right.evaluate(env)) * 1
        otherwise = self.otherwise.evaluate(env)
        return otherwise + chosen * (self.then.evaluate(env) - otherwise)

    def render(self) -> tuple[str, int]:  # noqa: D102  # as in Expr
        text = f"({self.left} >= {self.right} ? {self.then} : {self.otherwise})"
        return text, _ATOM

    __str__ = Expr.__str__


def as_expr(value: Expr | int) -> Expr:
    """An `Expr` as it is, an int as a `Const`."""
    return value if isinstance(value, Expr) else Const(int(value))


def total(terms: list[Expr]) -> Expr:
    """The sum of the terms, 0 for none."""
    result: Expr = Const(0)
    for term in terms:
        result = result + term
    return result


def _constants(left: Expr, right: Expr) -> tuple[int | None, int | None]:
    return (
        left.value if isinstance(left, Const) else None,
        right.value if isinstance(right, Const) else None,
    )


def _add(left: Expr, right: Expr) -> Expr:
    a, b = _constants(left, right)
    if a is not None and b is not None:
        return Const(a + b)
    if a == 0:
        return right
    if b == 0:
        return left
    if b is not None and b < 0:
        return Binary("-", left, Const(-b))
    return Binary("+", left, right)


def _sub(left: Expr, right: Expr) -> Expr:
    a, b = _constants(left, right)
    if a is not None and b is not None:
        return Const(a - b)
    if b is not None:
        return _add(left, Const(-b))
    return Binary("-", left, right)


def _mul(left: Expr, right: Expr) -> Expr:
    a, b = _constants(left, right)
    if a is not None and b is not None:
        return Const(a * b)
    if a == 0 or b == 0:
        return Const(0)
    if a == 1:
        return right
    if b == 1:
        return left
    return Binary("*", left, right)


def _div(left: Expr, right: Expr) -> Expr:
    a, b = _constants(left, right)
    if a is not None and b is not None:
        return Const(a // b)
    return left if b == 1 else Binary("/", left, right)


def _mod(left: Expr, right: Expr) -> Expr:
    a, b = _constants(left, right)
    if a is not None and b is not None:
        return Const(a % b)
    return Const(0) if b == 1 else Binary("%", left, right)
