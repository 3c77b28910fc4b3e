"""How far steps of loops are: of the bits of a register's number, or of a lane's."""

from __future__ import annotations

from collections.abc import Sequence

from ..formats.expr import Expr, total
from ..planner.lanes import Bit
from ..planner.problem import FAR, Node


def far_side(node: Node) -> str:
    """The side on which a run is not one."""
    return "src" if node.src.value == FAR else "dst"


def offset(bits: Sequence[Bit], number: int, strides: Sequence[Expr]) -> Expr:
    """How far the bits of ``number`` move."""
    return total([strides[k] * n for k, n in steps_of((bits, number)).items()])


def steps_of(*parts: tuple[Sequence[Bit], int]) -> dict[int, int]:
    """How many steps of each node the bits of the numbers make."""
    steps: dict[int, int] = {}
    for bits, number in parts:
        for j, b in enumerate(bits):
            if number >> j & 1:
                steps[b.node] = steps.get(b.node, 0) + (1 << b.place)
    return steps
