"""The same problem for HiGHS, by highspy (extra ``solve``): dense networks and memory limits.

A mixed integer program. A value flows, for each of its readers, from the format that it is written
in to the one that is read, over reorders that the readers share. For such a model the linear
relaxation is nearly always integral; the model in which a reorder is merely at most what was made
takes a hundred times as long.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from importlib import import_module
from typing import Any

import numpy as np

from ..errors import Error
from .problem import ANY, AssignmentProblem, FormatSlot, ReorderedValue, Solution

SCALE = 1e6
"""HiGHS' absolute gap is 1e-6, and seconds are small: it is given microseconds."""
TIME_LIMIT = 120.0
"""Seconds that HiGHS may take."""
GAP = 1e-9
Terms = list[tuple[int, float]]
"""Columns with their coefficients; those of a column that occurs again add up."""


@dataclass(slots=True)
class IntegerProgram:
    """Columns with costs, bounds 0 and 1 (or less), and rows ``low <= sum <= high``."""

    costs: list[float] = field(default_factory=list)
    most: list[float] = field(default_factory=list)
    whole: list[int] = field(default_factory=list)
    rows: list[tuple[Terms, float, float]] = field(default_factory=list)

    def column(self, cost: float = 0.0, *, whole: bool = False) -> int:
        """Add a column; one of infinite cost stays 0."""
        self.costs.append(cost * SCALE if np.isfinite(cost) else 0.0)
        self.most.append(float(np.isfinite(cost)))
        self.whole.append(int(whole))
        return len(self.costs) - 1

    def row(self, terms: Terms, low: float = -np.inf, high: float = np.inf) -> None:
        """Add a row."""
        self.rows.append((terms, low, high))

    def solve(self) -> tuple[list[float] | None, float]:
        """Values of the columns (None where there are none), and a proven lower bound."""
        highs = _highspy()
        # Not its subclass Highs, which greets on the standard output before it can be told not to.
        model: Any = highs._core._Highs()  # noqa: SLF001
        for option, value in (("output_flag", False), ("mip_rel_gap", GAP),
                              ("time_limit", TIME_LIMIT)):  # fmt: skip
            model.setOptionValue(option, value)
        model.passModel(self._model(highs))
        model.run()
        if model.getModelStatus() == highs.HighsModelStatus.kInfeasible:
            return None, np.inf
        told = model.getInfo()
        bound = max(float(told.mip_dual_bound) / SCALE, 0.0)
        if told.primal_solution_status != highs.SolutionStatus.kSolutionStatusFeasible:
            return None, bound
        return list(model.getSolution().col_value), bound

    def _model(self, highs: Any) -> Any:
        """The program as HiGHS takes it: rows one after another, each column once."""
        rows: list[dict[int, float]] = []
        for terms, _, _ in self.rows:
            rows.append({})
            for column, factor in terms:
                rows[-1][column] = rows[-1].get(column, 0.0) + factor
        found = highs.HighsLp()
        found.num_col_, found.num_row_ = len(self.costs), len(rows)
        found.col_cost_, found.col_upper_ = np.array(self.costs), np.array(self.most)
        found.col_lower_ = np.zeros(len(self.costs))
        found.row_lower_ = np.array([low for _, low, _ in self.rows])
        found.row_upper_ = np.array([high for _, _, high in self.rows])
        kinds = highs.HighsVarType.kContinuous, highs.HighsVarType.kInteger
        found.integrality_ = [kinds[whole] for whole in self.whole]
        matrix = found.a_matrix_
        matrix.format_ = highs.MatrixFormat.kRowwise
        matrix.start_ = np.cumsum([0, *map(len, rows)])
        matrix.index_ = np.array([column for row in rows for column in row])
        matrix.value_ = np.array([factor for row in rows for factor in row.values()])
        return found


def _highspy() -> Any:
    try:
        return import_module("highspy")
    except ImportError as error:
        raise Error(
            "this needs HiGHS, for a memory limit or because tables of costs grow beyond the limit "
            "of `propagate`: pip install 'clformats[solve]'"
        ) from error


@dataclass(frozen=True, slots=True)
class Flows:
    """The columns of a value: is it written in a format, does a reader read it, and the reorders.

    ``written[f]`` and ``read[r][f]`` are columns to be added; ``moved[r][a, b]`` is a column.
    """

    written: Sequence[Sequence[int]]
    read: Sequence[Sequence[Sequence[int]]]
    moved: Sequence[Mapping[tuple[int, int], int]]


class FlowProgram:
    """An `AssignmentProblem` as an `IntegerProgram`.

    ``chosen[v][k]`` are columns, ``flows`` has those of each value.
    """

    def __init__(self, problem: AssignmentProblem, *, whole_flows: bool = False) -> None:
        self.problem, self.program, self.whole_flows = problem, IntegerProgram(), whole_flows
        self.chosen = [
            [self.program.column(float(c), whole=True) for c in costs] for costs in problem.costs
        ]
        for columns in self.chosen:
            self.program.row(times(1.0, columns), 1.0, 1.0)
        self.flows = [self._flows(t) for t in problem.tensors]
        for a, b, table in problem.pairs:
            for i, j in np.argwhere(table):
                self.program.row(times(1.0, [self.chosen[a][i], self.chosen[b][j]]), high=1.0)

    def solve(self) -> tuple[Solution | None, float]:
        """The assignment with its bound, and the bound, infinite where no assignment exists."""
        values, bound = self.program.solve()
        if values is None:
            return None, bound
        found = tuple(int(np.argmax([values[k] for k in columns])) for columns in self.chosen)
        cost = self.problem.total(found)
        if cost <= bound * (1 + 1e-6):  # HiGHS' own tolerance
            bound = cost
        return Solution(found, cost, min(bound, cost)), bound

    def _flows(self, tensor: ReorderedValue) -> Flows:
        table, last = tensor.distances.table, tensor.distances.last
        steps = {
            (a, b): self.program.column(float(table[a, b]))
            for a in range(len(table)) for b in range(len(table))
            if a != b and np.isfinite(table[a, b]) and last[a, b] == a
        }  # fmt: skip
        written = [self._columns(tensor.source, f) for f in range(len(table))]
        read, moved = [], []
        for slot in tensor.readers:
            flow = {step: self.program.column(whole=self.whole_flows) for step in steps}
            for step, column in flow.items():
                self.program.row([(column, 1.0), (steps[step], -1.0)], high=0.0)
            wanted = self._wanted(slot, written)
            for f, columns in enumerate(wanted):
                row = [(column, float(b == f) - float(a == f)) for (a, b), column in flow.items()]
                row += times(1.0, written[f]) + times(-1.0, columns)
                self.program.row(row, 0.0, 0.0)
            read.append(wanted)
            moved.append(flow)
        return Flows(written, read, moved)

    def _wanted(self, slot: FormatSlot, written: Sequence[Sequence[int]]) -> list[list[int]]:
        """What a reader reads in each format; as it is written where it takes any."""
        found = [self._columns(slot, f) for f in range(len(written))]
        any_ = self._columns(slot, ANY)
        if any_:
            as_written = [self.program.column() for _ in found]
            self.program.row(times(1.0, as_written) + times(-1.0, any_), 0.0, 0.0)
            for columns, column, source in zip(found, as_written, written, strict=True):
                self.program.row([(column, 1.0), *times(-1.0, source)], high=0.0)
                columns.append(column)
        return found

    def _columns(self, slot: FormatSlot, fmt: int) -> list[int]:
        """Those of the choices that write or read a format."""
        columns = zip(self.chosen[slot.variable], slot.formats, strict=True)
        return [column for column, f in columns if f == fmt]


def times(factor: float, columns: Iterable[int]) -> Terms:
    """The sum of columns, times a factor."""
    return [(column, factor) for column in columns]


def solve(problem: AssignmentProblem) -> Solution | None:
    """The cheapest assignment, with its bound; None where none has a finite cost.

    Raises `Error` where HiGHS finds none in time, and where highspy is missing.
    """
    found, bound = FlowProgram(problem).solve()
    if found is None and np.isfinite(bound):
        raise Error(f"HiGHS found no assignment within {TIME_LIMIT:.0f} s")
    return found
