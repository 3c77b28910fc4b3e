"""How everything is timed: by turns, warm, by medians; and when one is surely faster than another.

The work before a run affects its time (another library's threads still spin, the processor's clock
is low after an idle gap), and on a shared machine the best of many runs is misleading. So what is
compared takes turns without pauses, after runs that do not count; what counts is the median, with
the quartiles as the spread.

* `sampled`: contestants in rounds of random order, each warmed up by time, within a budget.
* `turns`: a few runs of equal worth, each once in every round.
* `Race`: the ratio of two contestants' times, and between what it surely lies.

Only this module reads the clock of measurements, `CLOCK`; deadlines are by ``time.monotonic``.
"""

from __future__ import annotations

import math
import os
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from time import monotonic, perf_counter
from typing import Protocol, TypeVar

import numpy as np
from numpy.typing import ArrayLike, NDArray

Clock = Callable[[], float]
CLOCK: Clock = perf_counter
"""Seconds; only differences mean something."""
SURE = 0.98
"""The share of drawn samples whose medians lie between `Race.low` and `Race.high`."""
DRAWS = 1000
LEAST_ROUNDS = 3

Name = TypeVar("Name")


def pin_threads() -> None:
    """Have PoCL keep its threads on a core each, unless the environment says otherwise.

    To be called before OpenCL is first asked for devices. Else two threads share a core in some
    launches, and in some processes in most: medians of 2.0 to 2.9 ms, where pinned threads take 1.8
    (2 cores of an AMD EPYC, Zen 5, PoCL 3.1).
    """
    os.environ.setdefault("POCL_AFFINITY", "1")


def timed(run: Callable[[], object], clock: Clock = CLOCK) -> float:
    """The seconds of a call.

    >>> 0 <= timed(lambda: None) < 1
    True
    """
    start = clock()
    run()
    return clock() - start


def repeated(
    run: Callable[[], float], least: int, seconds: float = 0.0, most: float = math.inf
) -> list[float]:
    """What ``run`` gives, again and again until ``seconds`` are over.

    At least ``least`` times, and then at most ``most`` times.
    """
    found: list[float] = []
    end = monotonic() + seconds
    while len(found) < least or (len(found) < most and monotonic() < end):
        found.append(run())
    return found


def turns(
    runs: Mapping[Name, Callable[[], float]], rounds: int, *, in_order: bool = False
) -> dict[Name, list[float]]:
    """What each run gives in each of ``rounds``, after one that does not count.

    Each is first, and last, as often as the others, unless they belong ``in_order``.
    """
    for run in runs.values():
        run()
    found: dict[Name, list[float]] = {name: [] for name in runs}
    names = list(runs)
    for k in range(rounds):
        first = 0 if in_order else k // 2 % len(names)
        turned = names[first:] + names[:first]
        for name in turned if k % 2 or in_order else turned[::-1]:
            found[name].append(runs[name]())
    return found


# --- contestants ----------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class Settings:
    """The length of a measurement: the most ``seconds`` of a case, and the most ``rounds``.

    In each round a slot runs untimed for ``warm`` seconds, and then at most ``runs`` times, until
    ``timed`` seconds are over.
    """

    rounds: int = 10
    warm: float = 0.025
    runs: int = 5
    timed: float = 0.04
    seconds: float = 4.0


QUICK = Settings(rounds=3, warm=0.002, runs=3, timed=0.005, seconds=0.5)


class Contestant(Protocol):
    """Who takes part: ``visit`` gives the seconds of one run, once or several times."""

    @property
    def name(self) -> str:
        """The name."""

    def visit(self, settings: Settings) -> list[float]:
        """One turn of a round."""


@dataclass(frozen=True, slots=True)
class Slot:
    """A contestant: ``run()`` does the work ``batch`` times and waits until all of it is done."""

    name: str
    run: Callable[[], object]
    batch: int = 1

    def visit(self, settings: Settings) -> list[float]:
        """Warm up by time, then at most ``settings.runs`` timed runs, at least one."""
        run = partial(timed, self.run)
        repeated(run, 1, settings.warm)
        return [s / self.batch for s in repeated(run, 1, settings.timed, settings.runs)]


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


def race(
    slots: Sequence[Contestant], settings: Settings, rng: np.random.Generator
) -> dict[str, Times]:
    """Run all slots in shuffled rounds: the summary of each."""
    return {name: Times.of(values) for name, values in sampled(slots, settings, rng).items()}


def sampled(
    slots: Sequence[Contestant],
    settings: Settings,
    rng: np.random.Generator,
    end: float = math.inf,
) -> dict[str, list[float]]:
    """Run all slots in shuffled rounds: seconds of each run.

    A slot that is so slow that it would take the time of the others leaves after the first rounds.
    Nothing begins after ``end``, by ``time.monotonic``; if the first rounds are not done by then,
    the result is empty.
    """
    samples: dict[str, list[float]] = {slot.name: [] for slot in slots}
    spent = dict.fromkeys(samples, 0.0)
    began = monotonic()
    for number in range(settings.rounds):
        if number >= LEAST_ROUNDS and monotonic() - began > settings.seconds:
            break
        for k in rng.permutation(len(slots)):
            if monotonic() > end:
                return samples if number >= LEAST_ROUNDS else {}
            slot = slots[k]
            if number < LEAST_ROUNDS or spent[slot.name] < settings.seconds / len(slots):
                start = monotonic()
                samples[slot.name] += slot.visit(settings)
                spent[slot.name] += monotonic() - start
    return samples


# --- surely faster --------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class Race:
    """How one did against a baseline: the ratio of their times.

    ``ratio`` is the median, below 1 where it is faster than the baseline; ``low`` and ``high`` are
    what medians of samples drawn with replacement lie between, 98 of 100. Only where even ``high``
    is below 1 it should replace the baseline.

    >>> Race.of([0.9, 0.8, 0.9], [1.0, 1.0, 1.0]).is_faster
    True
    """

    ratio: float
    low: float
    high: float

    @property
    def is_faster(self) -> bool:
        """Whether it is surely faster."""
        return self.is_faster_by(1)

    def is_faster_by(self, factor: float) -> bool:
        """Whether it is surely more than ``factor`` times as fast."""
        return self.high * factor < 1

    @classmethod
    def of(cls, times: Sequence[float], baseline: Sequence[float]) -> Race:
        """The race of seconds that belong together in pairs, turn by turn."""
        if len(times) != len(baseline):
            raise ValueError(f"got {len(times)} and {len(baseline)} seconds, expected pairs")
        ratios = np.divide(times, baseline)
        return cls._between(np.median(ratios), _medians(ratios, np.random.default_rng(0)))

    @classmethod
    def unpaired(cls, times: Sequence[float], baseline: Sequence[float]) -> Race:
        """The race of seconds that do not belong together, as many as there are of each."""
        rng = np.random.default_rng(0)
        drawn = _medians(times, rng) / _medians(baseline, rng)
        return cls._between(np.median(times) / np.median(baseline), drawn)

    @classmethod
    def _between(cls, ratio: np.floating, drawn: NDArray[np.float64]) -> Race:
        cut = (1 - SURE) / 2
        low, high = np.quantile(drawn, (cut, 1 - cut))
        return cls(float(ratio), float(low), float(high))


def _medians(samples: ArrayLike, rng: np.random.Generator) -> NDArray[np.float64]:
    """The medians of samples drawn with replacement."""
    values = np.asarray(samples, float)
    return np.asarray(np.median(rng.choice(values, (DRAWS, values.size)), axis=1))
