"""Arithmetic on values as a tree: read from text, evaluated in numpy, written as OpenCL C.

A kernel computes such a tree between loading and storing, and the host computes the same tree to
check it; a reorder's scales and zero points are such a tree too. A user's text is in a part of
OpenCL C: variables, numbers, ``+ - * /``, comparisons, ``&& || !``, ``?:``, and the functions in
`FUNCTIONS`. Anything else is refused with its name, so that only text which was understood can
reach a compiler.

All numbers are floating point, so that ``1 / 2`` is a half. A comparison used as a number is 1 or
0; a number used as a condition is true if it is not 0.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, NoReturn

import numpy as np
from numpy.typing import NDArray

from ..errors import InvalidExpression
from .lanes import name_of

LONGEST = 2000
"""The most characters of a text."""
DEEPEST = 40
"""The deepest nesting of brackets, calls and signs."""
HIGHEST = 100
"""The longest chain of operators and calls on each other's results: ``x + x + x`` has 2."""

LARGEST = float(np.finfo(np.float32).max)

_Values = Callable[..., Any]


def _round(x: NDArray[Any]) -> Any:
    """To nearest, halves away from zero; adding a half would round once more."""
    whole = np.trunc(x)
    return np.asarray(whole + np.copysign((np.abs(x - whole) >= 0.5).astype(x.dtype), x))


def _sign(x: NDArray[Any]) -> NDArray[Any]:
    """OpenCL's: zeros keep their sign, NaN becomes 0."""
    return np.where(np.isnan(x), 0, np.where(x == 0, x, np.sign(x))).astype(x.dtype)


FUNCTIONS: dict[str, tuple[int, _Values]] = {
    "fabs": (1, np.abs), "floor": (1, np.floor), "ceil": (1, np.ceil), "trunc": (1, np.trunc),
    "rint": (1, np.rint), "round": (1, _round),
    "sqrt": (1, np.sqrt), "rsqrt": (1, lambda x: 1 / np.sqrt(x)), "cbrt": (1, np.cbrt),
    "exp": (1, np.exp), "exp2": (1, np.exp2), "expm1": (1, np.expm1),
    "log": (1, np.log), "log2": (1, np.log2), "log10": (1, np.log10), "log1p": (1, np.log1p),
    "sin": (1, np.sin), "cos": (1, np.cos), "tan": (1, np.tan), "asin": (1, np.arcsin),
    "acos": (1, np.arccos), "atan": (1, np.arctan), "sinh": (1, np.sinh), "cosh": (1, np.cosh),
    "tanh": (1, np.tanh), "sign": (1, _sign),
    "min": (2, np.fmin), "max": (2, np.fmax), "fmin": (2, np.fmin), "fmax": (2, np.fmax),
    "fmod": (2, np.fmod), "pow": (2, np.power), "atan2": (2, np.arctan2), "hypot": (2, np.hypot),
    "copysign": (2, np.copysign), "step": (2, lambda edge, x: np.logical_not(x < edge)),
    "clamp": (3, lambda x, lo, hi: np.fmin(np.fmax(x, lo), hi)),
    "mad": (3, lambda a, b, c: a * b + c), "mix": (3, lambda a, b, t: a + (b - a) * t),
}  # fmt: skip
"""The OpenCL built-in functions that a text may call, each with its number of arguments."""

_OPERATORS: dict[str, tuple[int, _Values]] = {
    "||": (1, np.logical_or), "&&": (2, np.logical_and),
    "==": (3, np.equal), "!=": (3, np.not_equal),
    "<": (4, np.less), "<=": (4, np.less_equal), ">": (4, np.greater), ">=": (4, np.greater_equal),
    "+": (5, np.add), "-": (5, np.subtract), "*": (6, np.multiply), "/": (6, np.divide),
}  # fmt: skip
"""Binary operators: the precedence and the function of each."""
_WRITTEN = {"min": "fmin", "max": "fmax"}
"""These define the result for NaN, which ``min``, ``max`` and ``clamp`` of OpenCL do not."""
_CONDITIONS = {"||", "&&", "==", "!=", "<", "<=", ">", ">="}
_SIGN = 7
"""The precedence of a sign."""


@dataclass(frozen=True, slots=True)
class Formula:
    """A node of the tree.

    ``kind`` is ``"number"``, ``"name"``, ``"operator"`` (one, two or, for ``?:``, three parts) or
    ``"call"``; ``text`` the number, the name, the operator or the function.
    """

    kind: str
    text: str
    parts: tuple[Formula, ...] = ()

    @property
    def names(self) -> tuple[str, ...]:
        """The variables, each once, in order of appearance."""
        return tuple(dict.fromkeys(f.text for f in _nodes(self) if f.kind == "name"))

    @property
    def calls(self) -> frozenset[str]:
        """The functions that it calls."""
        return frozenset(f.text for f in _nodes(self) if f.kind == "call")

    @property
    def is_condition(self) -> bool:
        """Whether its value is true or false."""
        return self.kind == "operator" and (self.text in _CONDITIONS or self.text == "!")

    def with_names(self, replaced: Mapping[str, Formula]) -> Formula:
        """The tree with other trees in the place of variables."""
        if self.kind == "name":
            return replaced.get(self.text, self)
        return Formula(self.kind, self.text, tuple(p.with_names(replaced) for p in self.parts))

    # Trees are put together with Python's operators.
    def __add__(self, other: Formula) -> Formula:
        return Formula("operator", "+", (self, other))

    def __sub__(self, other: Formula) -> Formula:
        return Formula("operator", "-", (self, other))

    def __mul__(self, other: Formula) -> Formula:
        return Formula("operator", "*", (self, other))

    def __truediv__(self, other: Formula) -> Formula:
        return Formula("operator", "/", (self, other))

    def evaluate(self, values: Mapping[str, NDArray[Any]], dtype: Any = np.float32) -> NDArray[Any]:
        """The value in numpy, every step rounded to ``dtype``: float32 or float64."""
        with np.errstate(all="ignore"):
            return np.asarray(_value(self, values, np.dtype(dtype).type), dtype)

    def source(self, real: str, width: int = 1, *, by_lane: bool = False) -> str:
        """OpenCL C over variables of ``width`` lanes: ``real`` is float, double or short.

        With ``by_lane`` for a kernel that has the definitions of `lanes`.
        """
        vector = f"{real}{width}" if width > 1 else real if real == "short" else ""
        return _FormulaWriter(real, vector, by_lane and width > 1).wide(self, 0)

    def __str__(self) -> str:
        return self.source("float")


def _nodes(f: Formula) -> Iterator[Formula]:
    yield f
    for part in f.parts:
        yield from _nodes(part)


def _height(f: Formula) -> int:
    """The number of nodes on the longest path, found without recursion, which could go too deep."""
    height, level = 0, [f]
    while level := [part for node in level for part in node.parts]:
        height += 1
    return height


def _value(f: Formula, values: Mapping[str, NDArray[Any]], of: Any) -> Any:
    if f.kind == "number":
        return of(f.text)
    if f.kind == "name":
        return values[f.text].astype(of)
    if f.text == "?:":
        condition, yes, no = (_value(p, values, of) for p in f.parts)
        return np.where(condition.astype(bool), yes, no).astype(of)
    parts = [np.asarray(_value(p, values, of)) for p in f.parts]
    if f.text in ("&&", "||", "!"):
        parts = [p.astype(bool) for p in parts]
    else:
        parts = [p.astype(of) for p in parts]
    if f.kind == "operator" and len(parts) == 1:
        return np.logical_not(parts[0]) if f.text == "!" else np.negative(parts[0])
    table = FUNCTIONS if f.kind == "call" else _OPERATORS
    return table[f.text][1](*parts)


@dataclass(frozen=True, slots=True)
class _FormulaWriter:
    """Writes trees.

    C widens a scalar to a vector beside ``+ - * /`` only: ``vector`` is the type that constants are
    made of elsewhere, empty where one lane is computed. One lane of short becomes int in each step.
    """

    real: str
    vector: str
    by_lane: bool

    def number(self, f: Formula, around: int) -> str:
        """``f`` as a number, in brackets where what is ``around`` it binds tighter."""
        if f.is_condition:
            one, zero = self.wide(ONE, 0), self.wide(ZERO, 0)
            text = f"{self.condition(f, 1)} ? {one} : {zero}"
            return f"({text})" if around else text
        return self._written(f, around)

    def condition(self, f: Formula, around: int) -> str:
        """``f`` as a condition."""
        if f.is_condition:
            return self._written(f, around)
        return self._written(Formula("operator", "!=", (f, ZERO)), around)

    def wide(self, f: Formula, around: int) -> str:
        """``f`` as a number of all lanes."""
        if self.vector and (not f.names or self.vector == "short"):
            return f"({self.vector})({self.number(f, 0)})"
        return self.number(f, around)

    def _written(self, f: Formula, around: int) -> str:
        if f.kind == "number":
            return self._literal(f.text)
        if f.kind == "name":
            return f.text
        if f.kind == "call" and f.text == "clamp":
            x, lo, hi = (self.wide(p, 0) for p in f.parts)
            return f"{self._name('min')}({self._name('max')}({x}, {lo}), {hi})"
        if f.kind == "call" and f.text in _SPELLED_OUT:
            return self.number(_SPELLED_OUT[f.text](*f.parts), around)
        if f.kind == "call":
            return f"{self._name(f.text)}({', '.join(self.wide(p, 0) for p in f.parts)})"
        if f.text == "?:":
            own = 0
            text = f"{self.condition(f.parts[0], 1)} ? "
            text += f"{self.wide(f.parts[1], 1)} : {self.wide(f.parts[2], 0)}"
        else:
            own = _SIGN if len(f.parts) == 1 else _OPERATORS[f.text][0]
            side = self._side(f.text)
            *left, right = f.parts
            text = "".join(f"{side(p, own)} " for p in left) + f.text + " " * len(left)
            text += side(right, own + 1)
        return f"({text})" if own < around else text

    def _literal(self, number: str) -> str:
        if self.real == "short":
            return f"(short){int(float(number))}"
        return f"{np.float32(number)}f" if self.real == "float" else repr(float(number))

    def _name(self, function: str) -> str:
        """What a function is called where numbers are of the type ``real``."""
        if self.real == "short":
            return function.removeprefix("f")
        written = _WRITTEN.get(function, function)
        return name_of(written, self.real) if self.by_lane else written

    def _side(self, operator: str) -> Callable[[Formula, int], str]:
        """How the sides of an operator are written."""
        if operator in ("&&", "||", "!"):
            return self.condition
        return self.wide if operator in _CONDITIONS else self.number


ZERO, ONE = Formula("number", "0"), Formula("number", "1")

_SPELLED_OUT: dict[str, Callable[..., Formula]] = {
    "mad": lambda a, b, c: a * b + c,
    "step": lambda edge, x: Formula("operator", "!", (Formula("operator", "<", (x, edge)),)),
}
"""Functions that OpenCL leaves open: ``mad`` may round once or twice, ``step`` of NaN is 0 or 1."""

_TOKEN = re.compile(
    r"\s*(?:(?P<number>(?:\d+\.?\d*|\.\d+)(?:[eE][+-]?\d+)?[fF]?(?![\w.]))"
    r"|(?P<name>[A-Za-z_]\w*)|(?P<sign>\|\||&&|[=!<>]=|[-+*/<>!?:(),]))",
    re.ASCII,
)


def parse(text: str, variables: Sequence[str]) -> Formula:
    """The tree of a text over ``variables``. Raises `InvalidExpression`, naming what is wrong."""
    if not isinstance(text, str):
        raise InvalidExpression(f"got {text!r}, expected an expression as text")
    if len(text) > LONGEST:
        raise InvalidExpression(f"the expression has {len(text)} characters; {LONGEST} are allowed")
    return _Parser(text, tuple(variables)).whole()


class _Parser:
    """Reads a text by descent: one function for each level of the grammar."""

    def __init__(self, text: str, variables: tuple[str, ...]) -> None:
        self.text = text
        self.variables = variables
        self.tokens = self._tokens()
        self.at = 0
        self.depth = 0

    def _tokens(self) -> list[tuple[str, str]]:
        tokens, at = [], 0
        while self.text[at:].strip():
            found = _TOKEN.match(self.text, at)
            if found is None:
                rest = self.text[at:].strip()
                self._refuse(f"cannot read {rest[:20]!r}")
            tokens.append((str(found.lastgroup), found[str(found.lastgroup)]))
            at = found.end()
        return [*tokens, ("end", "")]

    def _refuse(self, why: str) -> NoReturn:
        raise InvalidExpression(
            f"{why} in the expression {self.text!r}: it may have the variables "
            f"{', '.join(self.variables)}, numbers, + - * /, comparisons, && || !, ?: and the "
            f"functions {', '.join(FUNCTIONS)}"
        )

    def whole(self) -> Formula:
        """The whole text."""
        result = self._choice()
        if self.tokens[self.at][0] != "end":
            self._refuse(f"did not expect {self.tokens[self.at][1]!r}")
        if _height(result) > HIGHEST:
            self._refuse(
                f"more than {HIGHEST} operators one on top of the other (write long sums as sums "
                f"of sums in brackets)"
            )
        return result

    def _takes(self, *signs: str) -> str:
        """The next token if it is one of the signs, else the empty text."""
        kind, text = self.tokens[self.at]
        if kind != "sign" or text not in signs:
            return ""
        self.at += 1
        return text

    def _expect(self, sign: str) -> None:
        if not self._takes(sign):
            self._refuse(f"expected {sign!r}, got {self.tokens[self.at][1] or 'the end'!r}")

    def _choice(self) -> Formula:
        self.depth += 1
        if self.depth > DEEPEST:
            self._refuse(f"more than {DEEPEST} levels of brackets")
        condition = self._binary(1)
        if self._takes("?"):
            yes = self._choice()
            self._expect(":")
            condition = Formula("operator", "?:", (condition, yes, self._choice()))
        self.depth -= 1
        return condition

    def _binary(self, tightness: int) -> Formula:
        if tightness == _SIGN:
            return self._signed()
        result = self._binary(tightness + 1)
        signs = [s for s, (own, _) in _OPERATORS.items() if own == tightness]
        while sign := self._takes(*signs):
            result = Formula("operator", sign, (result, self._binary(tightness + 1)))
        return result

    def _signed(self) -> Formula:
        signs = []
        while sign := self._takes("-", "!", "+"):
            signs.append(sign)
        if len(signs) > DEEPEST:
            self._refuse(f"more than {DEEPEST} signs in a row")
        result = self._primary()
        for sign in reversed(signs):
            result = result if sign == "+" else Formula("operator", sign, (result,))
        return result

    def _primary(self) -> Formula:
        if self._takes("("):
            result = self._choice()
            self._expect(")")
            return result
        kind, text = self.tokens[self.at]
        if kind not in ("number", "name"):
            self._refuse(f"expected a value, got {text or 'the end'!r}")
        self.at += 1
        if kind == "number":
            return self._number(text)
        if self._takes("("):
            return self._call(text)
        if text not in self.variables:
            self._refuse(f"unknown variable {text!r}")
        return Formula("name", text)

    def _number(self, text: str) -> Formula:
        value = text.rstrip("fF")
        if float(value) > LARGEST:
            self._refuse(f"the number {text} is too large")
        return Formula("number", value)

    def _call(self, name: str) -> Formula:
        if name not in FUNCTIONS:
            self._refuse(f"unknown function {name!r}")
        arguments = [self._choice()]
        while self._takes(","):
            arguments.append(self._choice())
        self._expect(")")
        if len(arguments) != FUNCTIONS[name][0]:
            self._refuse(f"{name} takes {FUNCTIONS[name][0]} arguments, got {len(arguments)}")
        return Formula("call", name, tuple(arguments))
