"""Plans against each other on the clock: a plan replaces its baseline where it is surely faster.

Costs are measured with noise, and the best of many noisy figures is a lucky one. So plans are run
again at the end, turn by turn, and a baseline stays unless the plan beats it beyond doubt.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from random import Random
from statistics import median
from time import perf_counter
from typing import TYPE_CHECKING, Any

from ..errors import InvalidNetwork, expect_int

if TYPE_CHECKING:
    from ..runtime import Stream
    from .plan import FormatPlan
    from .schedule import Schedule

SURE = 0.98
"""The share of drawn samples in which a plan must be faster to be surely so."""
CONTENDERS = 3
"""So many baselines are raced where none are named."""
Run = Callable[[], object]
"""Runs a plan once and returns when it is done."""


@dataclass(frozen=True, slots=True)
class Race:
    """How a schedule did against a baseline: the ratio of their times, turn by turn.

    ``ratio`` is the median, below 1 where the schedule is faster; ``low`` and ``high`` are what
    medians of samples drawn with replacement lie between, 98 of 100. ``is_faster`` is whether even
    ``high`` is below 1: only then a plan should replace the baseline.
    """

    ratio: float
    low: float
    high: float

    @property
    def is_faster(self) -> bool:
        """Whether the schedule is surely faster."""
        return self.high < 1

    @classmethod
    def of(cls, times: Sequence[float], baseline: Sequence[float]) -> Race:
        """The race of seconds that belong together in pairs."""
        ratios = [a / b for a, b in zip(times, baseline, strict=True)]
        draw = Random(0)  # noqa: S311  # no secret
        medians = sorted(median(draw.choices(ratios, k=len(ratios))) for _ in range(1000))
        cut = int((1 - SURE) / 2 * len(medians))
        return cls(median(ratios), medians[cut], medians[-cut - 1])


@dataclass(frozen=True)
class Settled:
    """What `settle` decided: the plan to keep, its name, and how the first plan did.

    ``race`` is that of the plan against ``against``, the fastest baseline on the clock; None where
    there was none to race. ``seconds`` are medians by name.
    """

    kept: FormatPlan
    name: str
    against: str
    race: Race | None
    seconds: Mapping[str, float]

    def __str__(self) -> str:
        lines = [f"{name:<28}{s * 1e3:>11.4f} ms" for name, s in self.seconds.items()]
        if self.race is not None:
            r = self.race
            lines.append(
                f"{r.ratio:.3f} of the time of {self.against} ({r.low:.3f} to {r.high:.3f})"
            )
        return "\n".join([*lines, f"kept: {self.name}"])


def race(
    schedule: Schedule,
    baseline: Schedule,
    stream: Stream,
    inputs: Mapping[str, Any],
    *,
    rounds: int = 20,
) -> Race:
    """Run two schedules in turn, each first as often as second, and compare each pair."""
    runs = {n: partial(s, stream, **inputs) for n, s in (("", schedule), ("base", baseline))}
    times = turn_by_turn(runs, rounds)
    return Race.of(times[""], times["base"])


def turn_by_turn(
    runs: Mapping[str, Run], rounds: int = 20, clock: Callable[[], float] = perf_counter
) -> dict[str, list[float]]:
    """Seconds of each run in each round, after one that does not count; the order is turned."""
    if expect_int(rounds, "rounds") < 4:
        raise InvalidNetwork(f"rounds: got {rounds}, expected 4 or more")
    for run in runs.values():
        run()
    times: dict[str, list[float]] = {name: [] for name in runs}
    names = list(runs)
    for k in range(rounds):
        turned = names[k // 2 % len(names) :] + names[: k // 2 % len(names)]
        for name in turned if k % 2 else turned[::-1]:
            start = clock()
            runs[name]()
            times[name].append(clock() - start)
    return times


def _contenders(plan: FormatPlan, names: Iterable[str] | None) -> dict[str, FormatPlan]:
    """The baselines that differ from the plan, and from each other; by default the cheapest."""
    found: dict[tuple[int, ...], tuple[str, FormatPlan]] = {}
    for row in plan.compare(names).rows:
        if row.plan.assignment != plan.assignment:
            found.setdefault(row.plan.assignment, (row.name, row.plan))
    return dict(list(found.values())[: CONTENDERS if names is None else None])


def settle(
    plan: FormatPlan,
    prepare: Callable[[FormatPlan], Run],
    *,
    baselines: Iterable[str] | None = None,
    rounds: int = 20,
    clock: Callable[[], float] = perf_counter,
) -> Settled:
    """Race a plan against its baselines; the fastest stays unless the plan surely beats it.

    ``prepare`` makes a plan ready, and gives a function that runs it once and waits::

        settle(plan, lambda p: partial(p.schedule(engine, launch), stream, image=array))

    ``baselines`` are names of `FormatPlan.compare`, by default the three cheapest by the plan's
    costs that differ from it; ``clock`` is in seconds. Raises `InvalidNetwork` for other names.
    """
    others = _contenders(plan, baselines)
    runs = {name: prepare(p) for name, p in {"this plan": plan, **others}.items()}
    times = turn_by_turn(runs, rounds, clock)
    seconds = {name: median(found) for name, found in times.items()}
    if not others:
        return Settled(plan, "this plan", "", None, seconds)
    best = min(others, key=lambda name: seconds[name])
    found = Race.of(times["this plan"], times[best])
    if found.is_faster:
        return Settled(plan, "this plan", best, found, seconds)
    return Settled(others[best], best, best, found, seconds)
