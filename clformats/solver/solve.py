"""The assignment of least cost, with a lower bound that proves how good it is.

Elimination is exact while its tables stay below a limit; the networks of the field have a treewidth
of four and less. Beyond the limit HiGHS solves the same problem (`clformats.solver.highs`).
"""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from . import highs
from .eliminate import Elimination, joined
from .model import GraphicalModel
from .problem import AssignmentProblem, Solution
from .trees import Array

LIMIT = 10_000_000
"""Entries of the largest table that elimination may make."""


def solve(problem: AssignmentProblem, *, limit: int = LIMIT) -> Solution | None:
    """The cheapest assignment; None where there is none at a finite cost.

    Raises `Error` where tables grow beyond ``limit`` and HiGHS is missing, or finds none in time.
    """
    run = Elimination(GraphicalModel.of(problem), limit)
    if not run.run():
        return highs.solve(problem)
    if not np.isfinite(run.value):
        return None
    found = run.assignment()[: len(problem.costs)]
    return Solution(tuple(found), problem.total(found), run.value)


def marginals(
    problem: AssignmentProblem, variable: int, *, limit: int = LIMIT
) -> tuple[Array, bool]:
    """For each value of a variable the least cost of an assignment with it, and whether exact.

    Where HiGHS did not prove an optimum in time, these are lower bounds.
    """
    count = len(problem.costs[variable])
    run = Elimination(GraphicalModel.of(problem), limit, kept=variable)
    if run.run():
        return run.value + joined([*run.tables.values()], (variable,)), True
    totals, exact = np.full(count, np.inf), True
    for value, cost in enumerate(problem.costs[variable]):
        only = np.where(np.arange(count) == value, cost, np.inf)
        costs = [*problem.costs[:variable], only, *problem.costs[variable + 1 :]]
        found = solve(replace(problem, costs=costs), limit=limit)
        if found is not None:
            totals[value], exact = found.bound, exact and found.exact
    return totals, exact
