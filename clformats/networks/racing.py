"""Plans against each other on the clock: a plan replaces its baseline where it is surely faster.

Costs are measured with noise, and the best of many noisy figures is a lucky one. So plans are run
again at the end, turn by turn, and a baseline stays unless the plan beats it beyond doubt.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from functools import partial
from statistics import median
from typing import TYPE_CHECKING, Any, Generic

from ..errors import InvalidNetwork, expect_int
from ..timing import CLOCK, Clock, Race, timed, turns
from .baselines import compare
from .decision import Plan

if TYPE_CHECKING:
    from ..runtime import Stream
    from .schedule import PreparedPlan

CONTENDERS = 3
"""How many baselines are raced where none are named."""
Run = Callable[[], object]
"""Runs a plan once and returns when it is done."""


@dataclass(frozen=True)
class Settled(Generic[Plan]):
    """What `settle` decided: the plan to keep, its name, and how the first plan did.

    ``race`` is that of the plan against ``against``, the fastest baseline on the clock; None where
    there was none to race. ``seconds`` are medians by name.
    """

    kept: Plan
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
    schedule: PreparedPlan,
    baseline: PreparedPlan,
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
    runs: Mapping[str, Run], rounds: int = 20, clock: Clock = CLOCK
) -> dict[str, list[float]]:
    """Seconds of each run in each round, after one that does not count; the order is turned."""
    if expect_int(rounds, "rounds") < 4:
        raise InvalidNetwork(f"rounds: got {rounds}, expected 4 or more")
    return turns({name: partial(timed, run, clock) for name, run in runs.items()}, rounds)


def _contenders(plan: Plan, names: Iterable[str] | None) -> dict[str, Plan]:
    """The baselines that differ from the plan, and from each other; by default the cheapest."""
    found: dict[tuple[int, ...], tuple[str, Plan]] = {}
    for row in compare(plan, names).rows:
        if row.plan.assignment != plan.assignment:
            found.setdefault(row.plan.assignment, (row.name, row.plan))
    return dict(list(found.values())[: CONTENDERS if names is None else None])


def settle(
    plan: Plan,
    prepare: Callable[[Plan], Run],
    *,
    baselines: Iterable[str] | None = None,
    rounds: int = 20,
    clock: Clock = CLOCK,
) -> Settled[Plan]:
    """Race a plan against its baselines, see `FormatPlan.settle`; ``clock`` is in seconds."""
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
