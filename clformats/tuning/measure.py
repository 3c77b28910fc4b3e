"""Reliable measurement: slots in random order, warm-up by time, medians.

The work before a slot affects its times (another library's threads still spin, the processor's
clock is low after an idle gap), and on a shared machine the best of many runs is misleading. So
every round runs all slots in a new random order, without pauses; each slot first runs untimed for
`Settings.warm` seconds; the result is the median, with the quartiles as the spread. One contestant
takes part twice: the difference of its two medians (A/A) is the resolution of the table.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from time import perf_counter

import numpy as np


@dataclass(frozen=True, slots=True)
class Settings:
    """The length of a measurement: the most ``seconds`` of a case, and the most ``rounds``."""

    rounds: int = 10
    warm: float = 0.025
    runs: int = 5
    timed: float = 0.04
    seconds: float = 4.0


QUICK = Settings(rounds=3, warm=0.002, runs=3, timed=0.005, seconds=0.5)
LEAST_ROUNDS = 3


@dataclass(frozen=True, slots=True)
class Slot:
    """A contestant: ``run()`` does the work ``batch`` times and waits until all of it is done."""

    name: str
    run: Callable[[], object]
    batch: int = 1


@dataclass(frozen=True, slots=True)
class Times:
    """Seconds of one run: the median, the quartiles around it, and how many runs were timed."""

    median: float
    q1: float
    q3: float
    count: int

    @classmethod
    def of(cls, samples: Sequence[float]) -> Times:
        """The summary of single times."""
        q1, median, q3 = np.percentile(samples, (25, 50, 75))
        return cls(float(median), float(q1), float(q3), len(samples))


def timed(run: Callable[[], object]) -> float:
    """The seconds of a call."""
    start = perf_counter()
    run()
    return perf_counter() - start


def visit(slot: Slot, settings: Settings) -> list[float]:
    """One turn of a slot: warm up by time, then at most ``runs`` timed runs, at least one."""
    end = perf_counter() + settings.warm
    while True:
        slot.run()
        if perf_counter() >= end:
            break
    samples: list[float] = []
    while not samples or (len(samples) < settings.runs and sum(samples) < settings.timed):
        samples.append(timed(slot.run))
    return [seconds / slot.batch for seconds in samples]


def race(slots: Sequence[Slot], settings: Settings, rng: np.random.Generator) -> dict[str, Times]:
    """Run all slots in shuffled rounds: the summary of each."""
    return {name: Times.of(values) for name, values in sampled(slots, settings, rng).items()}


def sampled(
    slots: Sequence[Slot],
    settings: Settings,
    rng: np.random.Generator,
    end: float = math.inf,
) -> dict[str, list[float]]:
    """Run all slots in shuffled rounds: seconds of each run.

    A slot that is so slow that it would take the time of the others leaves after the first rounds.
    Nothing begins after ``end``, by ``perf_counter``; if the first rounds are not done by then, the
    result is empty.
    """
    samples: dict[str, list[float]] = {slot.name: [] for slot in slots}
    spent = dict.fromkeys(samples, 0.0)
    began = perf_counter()
    for number in range(settings.rounds):
        if number >= LEAST_ROUNDS and perf_counter() - began > settings.seconds:
            break
        for k in rng.permutation(len(slots)):
            if perf_counter() > end:
                return samples if number >= LEAST_ROUNDS else {}
            slot = slots[k]
            if number < LEAST_ROUNDS or spent[slot.name] < settings.seconds / len(slots):
                start = perf_counter()
                samples[slot.name] += visit(slot, settings)
                spent[slot.name] += perf_counter() - start
    return samples
