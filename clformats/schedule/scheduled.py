"""The scheduled family: any problem whose digits nest, by the schedule that costs the least.

Its kernels get the loops over tiles as an argument, so that a program serves all shapes.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import lru_cache
from math import prod

from ..errors import InvalidArgument
from .choices import Choices
from .extents import MOST_ELEMENTS
from .nest import counted
from .nibbles import refusal_of_loops
from .problem import Problem
from .profile import Profile, profile_of
from .refine import separate
from .request import Request
from .schedule import Schedule, Store
from .search import best
from .stores import legal
from .traits import LINE_BYTES


@dataclass(frozen=True, slots=True)
class ScheduledPlan:
    """A problem and its schedule."""

    problem: Problem
    schedule: Schedule

    @property
    def alignment(self) -> tuple[int, int]:
        """At multiples of how many bytes source and destination must begin."""
        store = self.schedule.store
        return 1, LINE_BYTES if store.is_buffered else max(1, store.streams)

    def __str__(self) -> str:
        return str(self.schedule)


def refusal(p: Problem) -> str:
    """Why the family does not take a problem; empty if it does."""
    return refusal_of_loops(p)


def plan(request: Request) -> ScheduledPlan:
    """The plan: by the schedule that is chosen, where it fits, else by the one that costs least."""
    p, profile = separate(request.problem), profile_of(request.traits)
    return ScheduledPlan(p, _chosen(p, profile, request.choices) or _best(p, profile))


def fits(p: Problem, schedule: Schedule) -> bool:
    """Whether the tiles of a schedule cover a problem, and are no larger than any that is made."""
    try:
        counted(p, schedule)
    except InvalidArgument:
        return False
    return prod(schedule.tile.extents) <= MOST_ELEMENTS


def _chosen(p: Problem, profile: Profile, choices: Choices) -> Schedule | None:
    """The schedule that is chosen, as near as the problem can have it; None for none that fits."""
    if choices.schedule is None:
        return None
    schedule = Schedule.parse(choices.schedule)
    if not fits(p, schedule):
        return None
    possible = legal(p, schedule.tile, schedule.nest, profile.begin_bytes)
    if schedule.store in possible:
        return schedule
    streams = min(schedule.store.streams, max(store.streams for store in possible))
    return replace(schedule, store=Store(streams))


@lru_cache(maxsize=512)
def _best(p: Problem, profile: Profile) -> Schedule:
    return best(p, profile)
