"""The summed family: int8 weights that are followed by sums over them.

There is one work-item for each sum. It moves or transforms the elements of the sum, one after the
other, then stores the sum of the stored values. So the sum is that of the rounded values, and needs
no second pass over memory.
"""

from __future__ import annotations

from dataclasses import dataclass
from math import prod

from .problem import Problem
from .request import Request


@dataclass(frozen=True, slots=True)
class SummedPlan:
    """``rows`` work-items; each moves the elements that differ in the dimensions summed over."""

    problem: Problem
    rows: int

    def __str__(self) -> str:
        step = f"{self.problem.step}: " if self.problem.step else ""
        return f"{step}one work-item for each of {self.rows} sums"


def refusal(p: Problem) -> str:
    """Why the family does not take the problem; empty if it does."""
    return "" if p.dst.sums else "no sums follow the elements"


def plan(request: Request) -> SummedPlan:
    """The plan for a problem that `refusal` accepts."""
    p = request.problem
    # Where there are several arrays of sums, they are over the same dimensions.
    return SummedPlan(p, prod(p.dst.padded_dims[d] for d in p.dst.sums[0].dims))
