"""The search space of a reorder: what is worth a try, as data.

Each family of kernels has one parameter: the whole schedule, or the size of work-groups. Its values
are those that the family's plans put first: by the cost model on CPUs, where each tile and store is
a program to compile and the orders of its loops are free to try; on GPUs around the tile of the
rules. The plan by the rules is one of the values.
"""

from __future__ import annotations

from dataclasses import dataclass
from itertools import islice
from typing import Any, cast

from ..problems.thresholds import NEAR
from ..problems.traits import Traits
from ..schedule.body import Body
from ..schedule.choices import RULES, Choices
from ..schedule.plan import Plan, make_plan
from ..schedule.plan import families as families_on
from ..tensors.desc import MemoryDesc
from .parts import Parts, parts_of


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
        """Values like one, such as schedules of its program that differ in nest or prefetch."""
        found = dict.fromkeys(body.value for body in self._body(value).near(self.traits))
        return [*islice(found, NEAR)]

    def parts(self) -> Parts | None:
        """The questions of a schedule as parameters of their own; None for numbers."""
        return parts_of(self._body(self.values[0]), self.traits)

    def _body(self, value: object) -> Body:
        return cast("Body", self.plan(value).body)

    def __str__(self) -> str:
        count = f"{self.family}: {len(self.values)} values of {self.parameter}"
        lines = [f"{count}, each moves {self.nbytes} bytes", *(f"  {v}" for v in self.values)]
        return "\n".join(lines)


def space(
    src: MemoryDesc, dst: MemoryDesc, traits: Traits, family: str | None = None
) -> Space | None:
    """The search space of a reorder, in the family of the rules or in another one.

    None if there is nothing to choose: nothing or pixels are moved, or the family has no parameter.
    The space of an image that goes by its buffer twin is the twin's. Raises `InvalidDescriptor`,
    and `Unsupported` if the family does not take the reorder.
    """
    plan = make_plan(src, dst, traits, family)
    p, body = plan.problem, plan.body
    if body is None or plan.sums or p.has_image or not body.parameter:
        return None
    values = dict.fromkeys((body.value, *(b.value for b in body.candidates(traits))))
    return Space(p.src, p.dst, traits, plan.family, body.parameter, (*values,), p.nbytes)


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
