"""How far steps of loops are: of the bits of a register's number, or of a lane's."""

from __future__ import annotations

from collections.abc import Sequence

from ..formats.expr import Expr, total
from ..schedule.lanes import Bit, steps_of
from ..schedule.problem import FAR, Node


def far_side(node: Node) -> str:
    """The side on which a run is not one."""
    return "src" if node.src.value == FAR else "dst"


def offset(bits: Sequence[Bit], number: int, strides: Sequence[Expr]) -> Expr:
    """How far the bits of ``number`` move."""
    return total([strides[k] * n for k, n in steps_of((bits, number)).items()])
