"""Sizes that a kernel learns from its arguments: numbers that remember how they follow from them.

A descriptor of sizes such as `Size` has planes whose strides are such numbers too, so that one
description serves tensors of every size.
"""

from __future__ import annotations

from collections.abc import Sequence

from ..errors import InvalidArgument
from ..formats.expr import Binary, Const, Expr, Var
from ..quantised import QuantisedDesc

SIZE_NAMES = ("EXPERTS", "ROWS", "COLUMNS")
"""What the sizes of a quantised tensor are called in source."""


class Size(int):
    """A number, and the expression that it is the value of, over the sizes of a tensor.

    Sums, differences, products and quotients of it are of this kind; comparisons are those of ints.
    """

    expr: Expr

    @classmethod
    def of(cls, value: int, expr: Expr) -> Size:
        """The value ``value`` of ``expr``."""
        result = cls(value)
        result.expr = expr
        return result

    def __add__(self, other: int) -> Size:
        return Size.of(int(self) + int(other), self.expr + expr_of(other))

    def __sub__(self, other: int) -> Size:
        return Size.of(int(self) - int(other), _without(self.expr, expr_of(other)))

    def __mul__(self, other: int) -> Size:
        return Size.of(int(self) * int(other), self.expr * expr_of(other))

    def __floordiv__(self, other: int) -> Size:
        return Size.of(int(self) // int(other), _quotient(self.expr, int(other)))

    __radd__ = __add__
    __rmul__ = __mul__


def expr_of(number: int) -> Expr:
    """The expression of a number, which is a constant where it does not depend on sizes."""
    return number.expr if isinstance(number, Size) else Const(number)


def _without(expr: Expr, term: Expr) -> Expr:
    """``expr - term``, where it can be by leaving the term out of a sum."""
    if expr == term:
        return Const(0)
    if isinstance(expr, Binary) and expr.op == "+":
        if expr.right == term:
            return expr.left
        found = _without(expr.left, term)
        if not (isinstance(found, Binary) and found.op == "-"):
            return found + expr.right
    return expr - term


def _quotient(expr: Expr, by: int) -> Expr:
    """``expr // by``, without a division where the expression is a multiple, or one and a rest."""
    if isinstance(expr, Binary) and expr.op == "+" and isinstance(expr.right, Const):
        whole = _divided(expr.left, by)
        if whole is not None:
            return whole + expr.right.value // by
    return _divided(expr, by) or expr // by


def _divided(expr: Expr, by: int) -> Expr | None:
    """``expr / by`` of a multiple of ``by``; None where it is not known to be one."""
    if isinstance(expr, Const):
        return None if expr.value % by else Const(expr.value // by)
    if not isinstance(expr, Binary):
        return None
    left, right = _divided(expr.left, by), _divided(expr.right, by)
    if expr.op == "*":
        return expr.left * right if right else left * expr.right if left else None
    return Binary(expr.op, left, right) if expr.op in "+-" and left and right else None


def any_size(desc: QuantisedDesc, prefix: str) -> QuantisedDesc:
    """A descriptor of sizes ``<prefix>_ROWS`` ..., for all multiples of the dims of ``desc``.

    Its dims are odd multiples, so large that each digit which may have several values has some:
    what is true of its strides, such as that they are whole bytes, is true of all. Raises
    `InvalidArgument` for an empty tensor.
    """
    if not desc.nelems:
        raise InvalidArgument(f"sizes: got {desc}, expected a tensor that has elements")
    names = [Var(f"(ulong){prefix}_{name}") for name in SIZE_NAMES][3 - min(desc.ndims, 3) :]
    dims = desc.extents[3 - len(names) :]
    found, factor = _sized(desc, dims, names, 3), 3
    while any(d.size == 1 and isinstance(d.size, Size)
              for p in found.planes.values() for d in p.digits):  # fmt: skip
        factor *= 3
        found = _sized(desc, dims, names, factor)
    return found


def _sized(
    desc: QuantisedDesc, dims: Sequence[int], names: Sequence[Expr], factor: int
) -> QuantisedDesc:
    sizes = [Size.of(factor * n, name) for n, name in zip(dims, names, strict=True)]
    return QuantisedDesc(sizes, desc.dtype, desc.text)
