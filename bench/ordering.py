"""How well the cost model orders schedules that were measured: `schedules.tsv`.

A line is a problem on a machine: the bytes of its vectors, the microseconds of a plain copy, and
those of some schedules, raced turn by turn, medians. Where the caches hold all that is moved only
ordinary stores are compared: others would slow down what reads the result next.
"""

from __future__ import annotations

import csv
from collections.abc import Iterable
from dataclasses import dataclass, replace
from itertools import combinations
from math import exp, log
from pathlib import Path
from statistics import mean

import clformats as cf
from clformats.problems.problem import Problem
from clformats.problems.traits import Traits
from clformats.schedule.cost import CostModel
from clformats.schedule.schedule import Schedule
from clformats.schedule.search import prefetch

FILE = Path(__file__).with_name("schedules.tsv")
COLUMNS = ("problem", "vector_bytes", "machine", "copy_us", "schedules")
APART = 1.15
"""Schedules whose times differ less are not told apart."""


@dataclass(frozen=True, slots=True)
class Measured:
    """A problem, what a machine is like, and the seconds of schedules there."""

    problem: Problem
    traits: Traits
    machine: str
    copy: float
    seconds: dict[Schedule, float]

    @property
    def compared(self) -> dict[Schedule, float]:
        """The schedules that a model may choose from: it does not choose how far they prefetch.

        Of those that differ in nothing else, the one whose lead is nearest to that of the rules.
        """
        p, traits = self.problem, self.traits
        is_large = traits.is_large(p.nbytes)

        def off(s: Schedule) -> int:
            return abs(s.ahead - prefetch(p, s.tile, s.nest, traits))

        nearest = {replace(s, ahead=0): s for s in sorted(self.seconds, key=off, reverse=True)}
        return {s: self.seconds[s] for s in nearest.values() if is_large or s.store.is_ordinary}


def measured(path: Path = FILE) -> list[Measured]:
    """Every line of the file."""
    with path.open(encoding="utf-8", newline="") as file:
        header, *lines = csv.reader(file, delimiter="\t")
    if tuple(header) != COLUMNS:
        raise ValueError(f"got the columns {header}, expected {COLUMNS}")
    return [_measured(*line) for line in lines]


def _measured(problem: str, vector_bytes: str, machine: str, copy: str, found: str) -> Measured:
    src, dst = map(cf.MemoryDesc.parse, problem.split(" -> "))
    traits = Traits(vector_bytes=int(vector_bytes))
    body = cf.make_plan(src, dst, traits, "scheduled").body
    assert body is not None
    pairs = (text.split(" ", 1) for text in found.split("; "))
    seconds = {Schedule.parse(text): float(us) * 1e-6 for us, text in pairs}
    copied = float(copy) * 1e-6
    traits = replace(traits, copied_gb_s=max(1, round(body.problem.nbytes / copied / 1e9)))
    return Measured(body.problem, traits, machine, copied, seconds)


@dataclass(frozen=True, slots=True)
class Order:
    """The share of the pairs that are ordered rightly, and what the fastest gains over the first.

    ``regret`` is a geometric mean, 1 where the model always puts the fastest first.
    """

    right: float
    pairs: int
    regret: float


def order(rows: Iterable[Measured]) -> Order:
    """How the cost model orders what was measured."""
    right, regrets = [], []
    for row in rows:
        model, times = CostModel(row.problem, row.traits), row.compared
        costs = {s: model.seconds(s) for s in times}
        right += [(costs[a] < costs[b]) == (times[a] < times[b])
                  for a, b in combinations(times, 2)
                  if max(times[a], times[b]) > APART * min(times[a], times[b])]  # fmt: skip
        if times:
            regrets.append(times[min(costs, key=costs.__getitem__)] / min(times.values()))
    return Order(mean(right), len(right), exp(mean(map(log, regrets))))


if __name__ == "__main__":
    every = measured()
    for name in sorted({row.machine for row in every}):
        print(name, order([row for row in every if row.machine == name]))
