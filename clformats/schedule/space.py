"""The search space of a reorder: what is worth a try, as data.

Each family of kernels has one parameter. That of the scheduled family is the whole schedule: its
values are those that the cost model puts first, a few of each tile and store, because each of these
is a program to compile, and the orders of its loops are free to try. That of the local family of
GPUs is the whole box. The plan by the rules is one of the values.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass, replace
from itertools import islice
from typing import Any, cast

from ..tensors.desc import MemoryDesc
from .body import Body
from .boxes import BoxSchedule
from .boxsearch import boxes, details
from .choices import RULES, Choices
from .cost import CostModel
from .local import LocalPlan
from .parts import BoxParts, Parts, ScheduleParts
from .plan import Plan, make_plan
from .plan import families as families_on
from .problem import Problem
from .profile import Profile, profile_of
from .schedule import Prefetch, Schedule, Store, Tile
from .search import ITEMS, nests, ranked
from .traits import Traits

SCHEDULE, BOX = "schedule", "box"
PROGRAMS, EACH = 6, 4
"""How many tiles and stores are worth a try, and how many nests and prefetches of each; as many
boxes all in all."""
NEAR = 24
LEADS = (0, 1, 2, 4, 8, 16, 32, 64)
"""How many neighbours of the best schedule are worth a try; how far ahead they prefetch."""


@dataclass(frozen=True)
class Space:
    """The search space of moving ``src`` to ``dst`` in one family: ``values`` of a ``parameter``.

    The first one is what the rules take. Each reads and writes ``nbytes``.
    """

    src: MemoryDesc
    dst: MemoryDesc
    traits: Traits
    family: str
    parameter: str
    values: tuple[Any, ...]
    nbytes: int

    def plan(self, value: object, *, baked: bool | None = None) -> Plan:
        """The plan of a value."""
        choices = Choices.of({self.parameter: value, "baked": baked})
        return make_plan(self.src, self.dst, self.traits, self.family, choices=choices)

    def choices(self, value: object) -> Choices:
        """The choices that lead to a value: none for that of the rules."""
        if make_plan(self.src, self.dst, self.traits).family == self.family:
            return RULES if value == self.values[0] else Choices.of({self.parameter: value})
        return Choices.of({"family": self.family, self.parameter: value})

    def value(self, wanted: object) -> object:
        """What the plan of a value has in its place, where it cannot have it."""
        body = self.plan(wanted).body
        return body and body.value

    def candidates(self, body: Body) -> Iterator[object]:
        """The values that are worth a try, that of the rules first."""
        yield body.value
        yield from (v for v in body.candidates if self.value(v) == v)

    def near(self, value: object) -> list[Any]:
        """Values like one: schedules of its program that differ in nest or prefetch, or one box."""
        del value
        return []

    def parts(self) -> Parts | None:
        """The questions of a schedule or a box as parameters of their own; None for numbers."""
        return None

    def __str__(self) -> str:
        count = f"{self.family}: {len(self.values)} values of {self.parameter}"
        lines = [f"{count}, each moves {self.nbytes} bytes", *(f"  {v}" for v in self.values)]
        return "\n".join(lines)


class ScheduleSpace(Space):
    """The schedules of a problem: each value is a line of text."""

    def candidates(self, body: Body) -> Iterator[object]:
        """The first of each of the first programs."""
        return map(str, spread(ranked(body.problem, profile_of(self.traits))))

    def near(self, value: object) -> list[Any]:
        """Schedules of its program that differ in nest or prefetch."""
        body = self._body(value)
        schedule = Schedule.parse(str(body.value))
        found = neighbours(body.problem, profile_of(self.traits), schedule)
        return [v for v in islice(map(str, found), NEAR) if self.value(v) == v]

    def parts(self) -> Parts:
        """The questions of a schedule."""
        return ScheduleParts(self._body(self.values[0]).problem, profile_of(self.traits))

    def _body(self, value: object) -> Body:
        return cast("Body", self.plan(value).body)


class BoxSpace(Space):
    """The boxes of a reorder through local memory: each value is a line of text."""

    def candidates(self, body: Body) -> Iterator[object]:
        """Boxes of other sizes than that of the rules, then what differs from it in one thing."""
        default, half = body.value, PROGRAMS * EACH // 2
        yield default
        yield from islice(self._resolved(boxes(cast("LocalPlan", body)), default), half)
        yield from self.near(default)[: half - 1]

    def near(self, value: object) -> list[Any]:
        """Boxes that differ in one thing."""
        return [*islice(self._resolved(details(self._body(value), self.traits), value), NEAR)]

    def parts(self) -> Parts:
        """The questions of a box."""
        return BoxParts(self._body(self.values[0]), self.traits, self.value)

    def _body(self, value: object) -> LocalPlan:
        return cast("LocalPlan", self.plan(value).body)

    def _resolved(self, wishes: Iterable[BoxSchedule], known: object) -> Iterator[Any]:
        """What plans have where they are asked for these boxes, each once, but for a known one."""
        seen = {known}
        for wish in wishes:
            value = self.value(str(wish))
            if value not in seen:
                seen.add(value)
                yield value


def spread(found: list[Schedule]) -> list[Schedule]:
    """The first schedules of each of the first tiles and stores, in their order."""
    programs: dict[tuple[Tile, Store], list[Schedule]] = {}
    for schedule in found:
        programs.setdefault((schedule.tile, schedule.store), []).append(schedule)
    return [s for program in islice(programs.values(), PROGRAMS) for s in program[:EACH]]


def neighbours(p: Problem, profile: Profile, schedule: Schedule) -> Iterator[Schedule]:
    """Other schedules of the same program, the one with the least estimated cost first."""
    found = {replace(schedule, prefetch=Prefetch(lead)) for lead in LEADS}
    for wanted in (profile.units, 4 * profile.units, ITEMS * profile.units):
        found |= {replace(schedule, nest=nest) for nest in nests(p, schedule.tile, wanted)}
    model = CostModel(p, profile)
    yield from sorted(found - {schedule}, key=lambda s: (model.seconds(s), s))


def space(
    src: MemoryDesc, dst: MemoryDesc, traits: Traits, family: str | None = None
) -> Space | None:
    """The search space of a reorder, in the family of the rules or in another one.

    None if there is nothing to choose: nothing is moved, or the family has no parameter. The space
    of an image that goes by its buffer twin is the twin's. Raises `InvalidDescriptor`, and
    `Unsupported` if the family does not take the reorder.
    """
    plan = make_plan(src, dst, traits, family)
    p, body = plan.problem, plan.body
    if body is None or plan.sums or not body.parameter:
        return None
    kind = {SCHEDULE: ScheduleSpace, BOX: BoxSpace}.get(body.parameter, Space)
    found = kind(p.src, p.dst, traits, plan.family, body.parameter, (body.value,), p.nbytes)
    return replace(found, values=(*dict.fromkeys(found.candidates(body)),))


def spaces(src: MemoryDesc, dst: MemoryDesc, traits: Traits) -> list[Space]:
    """The spaces of the families that take a reorder, that of the rules first; generic only so.

    Raises `InvalidDescriptor` and `Unsupported` for an impossible reorder.
    """
    plan = make_plan(src, dst, traits)
    if plan.body is None:
        return []
    others = [
        f.name for f in families_on(traits)
        if f.name not in (plan.family, "generic") and not f.refusal_on(plan.problem, traits)
    ]  # fmt: skip
    return [found for name in (plan.family, *others) if (found := space(src, dst, traits, name))]
