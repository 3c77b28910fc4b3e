"""The lines of a run: a status for each problem, times, a summary, the counts; the exit code."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable

from . import outcome as o
from .knobs import SUMMARY
from .outcome import CaseOutcome
from .parse import Task
from .template import filled

LISTED_CASES = 10
"""How many failed cases a summary lists."""
_COUNTED = {
    o.PASSED: "passed",
    o.EXECUTED: "passed",
    o.INITIALIZED: "passed",
    o.SKIPPED: "skipped",
    o.MISTRUSTED: "mistrusted",
    o.UNIMPLEMENTED: "unimplemented",
    o.INVALID_ARGUMENTS: "invalid_arguments",
    o.FAILED: "failed",
    o.LISTED: "listed",
}
_ALSO_FAILED = (o.UNIMPLEMENTED, o.INVALID_ARGUMENTS)
"""Statuses that benchdnn counts as failed too; none of these problems ran."""
COUNTS = ("passed", "skipped", "mistrusted", "unimplemented", "invalid_arguments", "failed",
          "listed")  # fmt: skip
ACTIVITIES = ("create", "fill", "execute", "compute_ref", "compare")


class RunReport:
    """Writes a line by ``write`` for each problem, and the totals at the end."""

    def __init__(self, write: Callable[[str], object]) -> None:
        self._write = write
        self.tests = 0
        self._counts: Counter[str] = Counter()
        self._codes: Counter[str] = Counter()
        self._implementations: Counter[str] = Counter()
        self._spent: Counter[str] = Counter()
        self._times = [0.0, 0.0]
        self._measured = False
        self._failures: list[str] = []
        self._summary = SUMMARY

    def start(self, task: Task) -> None:
        """A problem begins; printed with ``-v1``."""
        if task.common.verbose >= 1:
            self._write(f"run: {task}")

    def add(self, task: Task, outcome: CaseOutcome) -> None:
        """The outcome of a problem."""
        common = task.common
        self._summary = common.summary
        for line in outcome.points:
            self._write(line)
        if outcome.message and (common.verbose >= 1 or outcome.status == o.FAILED):
            self._write(outcome.message)
        if outcome.implementation and common.verbose >= 5:
            self._write(f"implementation: {outcome.implementation}")
        line = f"{self.tests}:{outcome.status}{_why(outcome)} __REPRO: {task}"
        timed = common.measures and outcome.status in (o.EXECUTED, o.PASSED, o.MISTRUSTED, o.FAILED)
        if outcome.status != o.EXECUTED or common.mode == "R":
            self._write(line)
        if timed:
            self._add_times(task, outcome)
        self._count(outcome, line)

    def _count(self, outcome: CaseOutcome, line: str) -> None:
        self._counts[_COUNTED[outcome.status]] += 1
        if outcome.status in _ALSO_FAILED:
            self._counts["failed"] += 1
        if outcome.status in (*_ALSO_FAILED, o.FAILED):
            self._failures.append(line)
        if outcome.status == o.UNIMPLEMENTED:
            self._codes[outcome.reason] += 1
        if outcome.implementation and outcome.status not in _ALSO_FAILED:
            self._implementations[outcome.implementation] += 1
        for activity, seconds in outcome.spent.items():
            self._spent[activity] += seconds  # type: ignore[assignment]
        self.tests += 1

    def _add_times(self, task: Task, outcome: CaseOutcome) -> None:
        if not self._measured:
            self._write(f"Output template: {task.common.perf_template}")
        self._measured = True
        least, mean, _ = outcome.times
        self._times[0] += least
        self._times[1] += mean
        self._write(perf_line(task, outcome, self.tests))

    # --- the end ----------------------------------------------------------------------------------

    def finish(self, seconds: float) -> int:
        """Write the summary, the counts and the times. The exit code: 1 if a problem failed."""
        if "failures" in self._summary and self._failures:
            self._write_failures()
        if "impl" in self._summary and self._implementations:
            self._write_implementations()
        if "impl-csv" in self._summary and self._implementations:
            pairs = (f"{name}:{n}" for name, n in self._implementations.most_common())
            self._write(",".join(("benchdnn_summary,impl_names", *pairs)))
        if self._codes:
            codes = " ".join(f"{code}:{n}" for code, n in self._codes.most_common())
            self._write(f"unimplemented by code (docs/refusals.md): {codes}")
        self._write(" ".join((f"tests:{self.tests}", *(f"{c}:{self._counts[c]}" for c in COUNTS))))
        if self._measured:
            self._write(f"total perf: min(ms):{self._times[0]:g} avg(ms):{self._times[1]:g}")
        parts = [
            f" {name}: {spent:.2f}s ({100 * spent / seconds if seconds else 0:.0f}%);"
            for name in ACTIVITIES
            if (spent := self._spent[name])
        ]
        self._write(f"total: {seconds:.2f}s;{''.join(parts)}")
        return int(self._counts["failed"] > 0)

    def _write_failures(self) -> None:
        shown = self._failures[:LISTED_CASES]
        many = f"{len(shown)} of {len(self._failures)}"
        title = f"= Failed cases, {many} (--summary=no-failures to disable) ="
        rule = "=" * len(title)
        for line in (rule, title, rule, *shown, rule):
            self._write(line)

    def _write_implementations(self) -> None:
        total = sum(self._implementations.values())
        title = "= Implementation statistics (--summary=no-impl to disable) ="
        width = max(map(len, self._implementations))
        rule = "=" * len(title)
        rows = (
            f"| {name:>{width}} : {n} ({100 * n / total:.0f}%)"
            for name, n in self._implementations.most_common()
        )
        for line in (rule, title, rule, *(f"{row:<{len(title) - 1}}|" for row in rows), rule):
            self._write(line)


def _why(outcome: CaseOutcome) -> str:
    """The reason for a status, and how many elements are wrong."""
    reason = f" ({outcome.reason})" if outcome.reason else ""
    if outcome.errors:
        reason += f" (errors:{outcome.errors} total:{outcome.total})"
    return reason


def perf_line(task: Task, outcome: CaseOutcome, number: int) -> str:
    """The template of a task, filled with its times."""
    p = task.problem
    texts = {
        "attr": p.attributes, "ctx-exe": p.ctx_exe, "ctx-init": p.ctx_init, "ddt": p.ddt,
        "desc": p.descriptor, "DESC": p.descriptor, "driver": "reorder", "dtag": p.dtag,
        "engine": p.cross_engine if p.cross_engine != "none" else task.common.engine or "ocl",
        "flags": str(p.oflag), "idx": str(number), "impl": outcome.implementation, "name": p.name,
        "prb": str(task), "sdt": p.sdt, "stag": p.stag,
    }  # fmt: skip
    sizes = float(outcome.ibytes), float(outcome.obytes)
    amounts = {"ops": 0.0, "ibytes": sizes[0], "obytes": sizes[1], "iobytes": sum(sizes)}
    create = (outcome.create_ms,) * 3
    times = {"time": outcome.times, "ctime": create, "cptime": create, "cpdtime": (0.0,) * 3}
    return filled(task.common.perf_template, texts, amounts, times)
