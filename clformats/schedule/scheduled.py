"""The scheduled family: any problem whose digits nest, by the schedule that costs the least.

Its kernels get the loops over tiles as an argument, so that a program serves all shapes.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace
from functools import lru_cache
from typing import ClassVar

from ..problems.arithmetic import alignment
from ..problems.problem import Problem
from ..problems.refine import separate
from ..problems.thresholds import LINE_BYTES, ONE_SET
from ..problems.traits import Traits
from ..problems.words import in_words, in_words_of_a_side
from ..tensors import nibbles
from .body import ScheduleBody
from .choices import Choices
from .cost import CostModel
from .extents import tiles
from .nest import why_illegal
from .schedule import Schedule, Store, Tile
from .search import best, neighbours, ranked, spread
from .stores import legal


@dataclass(frozen=True, slots=True)
class ScheduledPlan(ScheduleBody):
    """Work-items that go from tile to tile; ``instead``: why not as the choices ask for."""

    has_nest: ClassVar[bool] = True

    @property
    def alignment(self) -> tuple[int, int]:
        """At multiples of how many bytes source and destination must begin."""
        store = self.schedule.store
        read, written = (word.nbytes if word else 1 for word in self.problem.words)
        return read, LINE_BYTES if store.is_buffered else max(written, store.streams)

    @property
    def program(self) -> tuple[Tile, Store]:
        """What decides the program beside the problem: compilers fail at tiles, if at all."""
        return self.schedule.tile, self.schedule.store

    def seconds(self, traits: Traits) -> float:
        """What a launch takes by the cost model."""
        return CostModel(self.problem, traits).seconds(self.schedule)

    def others(self, traits: Traits) -> Iterator[ScheduledPlan]:
        """The bodies of all schedules, the best first."""
        for schedule in ranked(self.problem, traits):
            yield replace(self, schedule=schedule)

    def candidates(self, traits: Traits) -> Iterator[ScheduledPlan]:
        """Some schedules of each of the first programs."""
        for schedule in spread(ranked(self.problem, traits)):
            yield replace(self, schedule=schedule)

    def near(self, traits: Traits) -> Iterator[ScheduledPlan]:
        """Schedules of its program that differ in nest or prefetch."""
        for schedule in neighbours(self.problem, traits, self.schedule):
            found = _chosen(self.problem, traits, schedule)
            if found.schedule == schedule:
                yield found

    def follows(self, choices: Choices) -> bool:
        """Whether it has the tile and the nest of the schedule that is chosen, if one is."""
        wanted = Schedule.parse(choices.schedule) if choices.schedule else self.schedule
        return (wanted.tile, wanted.nest) == (self.schedule.tile, self.schedule.nest)


def refusal(p: Problem) -> str:
    """Why the family does not take a problem; empty if it does."""
    if why := p.why or nibbles.refusal(p.dst):
        return why
    if not p.dtypes[1].is_packed or next(tiles(as_scheduled(p, LINE_BYTES)), None):
        return ""
    return "a byte of the destination holds elements of rows that no tile covers together"


def plan(p: Problem, traits: Traits, choices: Choices) -> ScheduledPlan:
    """The plan: by the schedule that is chosen, where it fits, else by the one that costs least."""
    p = as_scheduled(p, traits.begin_bytes)
    if choices.schedule is None:
        return ScheduledPlan(p, _best(p, traits))
    return _chosen(p, traits, Schedule.parse(choices.schedule))


def as_scheduled(p: Problem, begin_bytes: int) -> Problem:
    """The problem whose loops schedules name: in words where elements are moved together.

    Words are no longer than ``begin_bytes``, at multiples of which memory begins. They trade
    elements that share bytes, and those of rows whose lines push each other out of the cache: a
    tile of words reads whole lines.
    """
    crowded = _reads_one_set(p)
    words = in_words(p, begin_bytes, trades=p.src.dtype.is_packed or crowded, cuts=True)
    return separate(in_words_of_a_side(words, begin_bytes, of_bytes=crowded))


def _reads_one_set(p: Problem) -> bool:
    """Whether neighbours of the destination lie in one set of the nearest cache in the source."""
    apart = p.nodes[-1].src.value if p.nodes else 0
    return apart > 0 and alignment([apart], p.src.dtype.bits, ONE_SET) == ONE_SET


def _chosen(p: Problem, traits: Traits, schedule: Schedule) -> ScheduledPlan:
    """The plan by a schedule that is chosen, as near as the problem can have it."""
    if why := why_illegal(p, schedule):
        return ScheduledPlan(p, _best(p, traits), why)
    possible = legal(p, schedule.tile, schedule.nest, traits.begin_bytes)
    if schedule.store in possible:
        return ScheduledPlan(p, schedule)
    streams = min(schedule.store.streams, max(store.streams for store in possible))
    nearest = replace(schedule, store=Store(streams))
    kinds = ", ".join(map(str, possible))
    return ScheduledPlan(
        p, nearest, f"the store {schedule.store} is not legal there: expected one of {kinds}"
    )


@lru_cache(maxsize=512)
def _best(p: Problem, traits: Traits) -> Schedule:
    return best(p, traits)
