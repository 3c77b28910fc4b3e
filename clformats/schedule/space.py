"""The search space of a reorder: what is worth a try, as data.

Each family of kernels has one parameter. That of the scheduled family is the whole schedule: its
values are those that the cost model puts first, a few of each tile and store, because each of these
is a program to compile, and the orders of its loops are free to try. That of the local family of
GPUs is the whole box. The plan by the rules is one of the values.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, replace
from itertools import islice
from typing import Any

from ..tensors.desc import MemoryDesc
from .boxes import BoxSchedule
from .boxsearch import boxes, details
from .choices import RULES, Choices, either
from .copy import CopyPlan
from .cost import Model
from .generic import GenericPlan
from .local import LocalPlan
from .parts import BoxParts, Parts, ScheduleParts
from .plan import Body, Plan, make_plan
from .plan import families as families_on
from .problem import Problem
from .profile import Profile, profile_of
from .schedule import Prefetch, Schedule, Store, Tile
from .scheduled import ScheduledPlan
from .search import ITEMS, nests, ranked
from .traits import Traits

TABLES: Mapping[type[Body], tuple[str, tuple[int, ...]]] = {
    CopyPlan: ("run_bytes", tuple(1 << n for n in range(12, 21))),
    LocalPlan: ("local_size", (32, 64, 128, 256)),
    GenericPlan: ("local_size", (1, 8, 16, 32, 64, 128, 256)),
}
"""The parameter, a number, of some families, by the type of their plans, and its values."""
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

    def near(self, value: object) -> list[Any]:
        """Values like one: schedules of its program that differ in nest or prefetch, or one box."""
        body = self.plan(value).body
        if isinstance(body, LocalPlan) and self.parameter == BOX:
            return [*islice(self.resolved(details(body, self.traits), value), NEAR)]
        if not isinstance(body, ScheduledPlan):
            return []
        found = neighbours(body.problem, profile_of(self.traits), body.schedule)
        values = islice(map(str, found), NEAR)
        return [v for v in values if value_of(self.plan(v)) == v]

    def parts(self) -> Parts | None:
        """The questions of a schedule or a box as parameters of their own; None for numbers."""
        body = make_plan(self.src, self.dst, self.traits, self.family).body
        if isinstance(body, ScheduledPlan):
            return ScheduleParts(body.problem, profile_of(self.traits))
        if isinstance(body, LocalPlan) and self.parameter == BOX:
            return BoxParts(body, self.traits, lambda text: value_of(self.plan(text)))
        return None

    def resolved(self, wishes: Iterable[BoxSchedule], known: object) -> Iterator[Any]:
        """What plans have where they are asked for these boxes, each once, but for a known one."""
        seen = {known}
        for wish in wishes:
            value = value_of(self.plan(str(wish)))
            if value not in seen:
                seen.add(value)
                yield value

    def __str__(self) -> str:
        count = f"{self.family}: {len(self.values)} values of {self.parameter}"
        lines = [f"{count}, each moves {self.nbytes} bytes", *(f"  {v}" for v in self.values)]
        return "\n".join(lines)


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
    model = Model(p, profile)
    yield from sorted(found - {schedule}, key=lambda s: (model.seconds(s), s))


def value_of(plan: Plan) -> object:
    """What a plan has of its family's parameter."""
    body = plan.body
    if isinstance(body, CopyPlan):
        return body.run_bytes
    if isinstance(body, GenericPlan):
        return either(plan.choices.local_size, body.group)
    if isinstance(body, LocalPlan):
        return str(body.schedule) if body.layout else body.group
    return str(body)


def space(
    src: MemoryDesc, dst: MemoryDesc, traits: Traits, family: str | None = None
) -> Space | None:
    """The search space of a reorder, in the family of the rules or in another one.

    None if there is nothing to choose: nothing is moved, or the family has no parameter.
    Raises `InvalidDescriptor`, and `Unsupported` if the family does not take the reorder.
    """
    plan = make_plan(src, dst, traits, family)
    if plan.body is None or plan.sums:
        return None
    default = value_of(plan)
    if isinstance(plan.body, ScheduledPlan):
        found = spread(ranked(plan.body.problem, profile_of(traits)))
        return _space(plan, traits, SCHEDULE, [*map(str, found)])
    if isinstance(plan.body, LocalPlan) and plan.body.layout:
        return _boxes(plan, plan.body, traits, default)
    if type(plan.body) not in TABLES:
        return None
    parameter, values = TABLES[type(plan.body)]
    whole = _space(plan, traits, parameter, [default, *values])
    return replace(whole, values=tuple(v for v in whole.values if value_of(whole.plan(v)) == v))


def _boxes(plan: Plan, body: LocalPlan, traits: Traits, default: object) -> Space:
    """Boxes of other sizes than that of the rules, then what differs from it in one thing."""
    one = _space(plan, traits, BOX, [default])
    half = PROGRAMS * EACH // 2
    sized = islice(one.resolved(boxes(body), default), half)
    return replace(one, values=(default, *sized, *one.near(default)[: half - 1]))


def _space(plan: Plan, traits: Traits, parameter: str, values: list[Any]) -> Space:
    p = plan.problem
    return Space(
        p.src, p.dst, traits, plan.family, parameter, (*dict.fromkeys(values),), p.nbytes
    )  # fmt: skip


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
