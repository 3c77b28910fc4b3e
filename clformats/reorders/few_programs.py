"""The kernels of a reorder whose sizes come with its calls: few programs for all of them."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field, replace

from ..kernels import launch, sums
from ..kernels.source import Launch
from ..schedule import Plan, Traits
from ..schedule.anysize import as_pattern, plan_for_all
from ..schedule.computation import Computation
from ..schedule.nibbles import NibblesPlan
from ..schedule.profile import profile_of
from ..schedule.schedule import Store, Tile
from ..schedule.scheduled import ScheduledPlan
from ..schedule.search import ranked
from ..schedule.sums import plan_for_all as sums_for_all
from ..tensors.desc import MemoryDesc
from .planning import Wish, planned

Kernel = tuple[Plan, Launch | None]

PROGRAMS = 4
"""So many are built for the shapes that come first. Of random activations of 12 pairs of formats,
60 shapes each, which would have 6 to 27 programs, 82 of 100 then have a fast one."""
SUMS = 8
"""So many add up the sums of the shapes that come first: all that blocks or ``hwio`` need."""


@dataclass
class FewPrograms:
    """Plans for descriptors that fit the patterns ``src`` and ``dst``.

    The first shapes have the plans that are best for them. When `PROGRAMS` programs are built, a
    shape has the best schedule that one of these serves, or else the kernel for all sizes. So it is
    with the kernels of sums, of which `SUMS` are built.
    """

    src: MemoryDesc
    dst: MemoryDesc
    traits: Traits
    _sources: set[str] = field(default_factory=set)
    _kinds: set[tuple[Tile, Store]] = field(default_factory=set)
    _sums: set[str] = field(default_factory=set)

    def planned(
        self,
        src: MemoryDesc,
        dst: MemoryDesc,
        computation: Callable[[MemoryDesc, MemoryDesc], Computation | None],
    ) -> Kernel:
        """The plan for two descriptors, and its kernel."""
        plan, made = self._moved(src, dst, computation)
        if made is None or made.then is None or made.then.source in self._sums:
            return plan, made
        if len(self._sums) < SUMS:
            self._sums.add(made.then.source)
            return plan, made
        found = sums_for_all(as_pattern(dst, self.dst), self.traits)
        return replace(plan, sums=found), replace(made, then=sums.launch(found))

    def _moved(
        self,
        src: MemoryDesc,
        dst: MemoryDesc,
        computation: Callable[[MemoryDesc, MemoryDesc], Computation | None],
    ) -> Kernel:
        """The same without regard to sums."""
        wish = Wish(None, None, None, None)
        plan, made = planned(src, dst, self.traits, computation(src, dst), wish)
        if made is None or made.source in self._sources:
            return plan, made
        # That of 4-bit elements one by one is no fast one: it is the kernel for all sizes.
        if len(self._sources) < PROGRAMS and not isinstance(plan.body, NibblesPlan):
            self._sources.add(made.source)
            if isinstance(plan.body, ScheduledPlan):
                self._kinds.add((plan.body.schedule.tile, plan.body.schedule.store))
            return plan, made
        if found := self._served(plan):
            return found
        a, b = as_pattern(src, self.src), as_pattern(dst, self.dst)
        plan = plan_for_all(a, b, self.traits, computation(a, b))
        return plan, launch(plan)

    def _served(self, plan: Plan) -> Kernel | None:
        """The best schedule of the same problem whose program is built."""
        if not isinstance(plan.body, ScheduledPlan):
            return None
        left = set(self._kinds)
        for schedule in ranked(plan.body.problem, profile_of(self.traits)):
            kind = schedule.tile, schedule.store
            if kind in left:
                left.remove(kind)
                other = replace(plan, body=replace(plan.body, schedule=schedule))
                made = launch(other)
                if made and made.source in self._sources:
                    return other, made
        return None
