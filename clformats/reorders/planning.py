"""Requests to plans with their kernels: by the rules, the tuner's records, or few programs for all.

A record counts while its kernel is the one that was measured, of which it holds a hash. The kernel
that is rendered anyway mostly has the same source, whatever its sizes, and nothing else is then.
"""

from __future__ import annotations

from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass, field, replace
from functools import lru_cache

from ..errors import Error, Unsupported
from ..kernels import render, sums
from ..kernels.source import Launch
from ..problems.refine import problem
from ..problems.twins import by_buffers
from ..programs.background import background
from ..records import DeviceNames, Lookup, TuningRecord, lookup
from ..runtime import Engine
from ..schedule import Plan, Request, Traits, plan_for
from ..schedule.anysize import as_pattern, plan_for_all
from ..schedule.choices import RULES
from ..schedule.sums import plan_for_all as sums_for_all
from ..tensors.desc import MemoryDesc
from . import kept

Made = tuple[Plan, Launch | None]
"""A plan and its kernel; None where there is nothing to do."""
KEPT_PLANS = 512
"""How many plans are cached, so that preparing a reorder again neither plans nor renders."""


def planned(request: Request, records: Lookup | None = None) -> Made:
    """The plan for a request and its kernel, made once; by records where nothing is chosen."""
    # Equal descriptors may name their formats differently, and a plan prints the names.
    names = request.src.format.name, request.dst.format.name
    return _planned(request, records, names)


@lru_cache(maxsize=KEPT_PLANS)
def _planned(request: Request, records: Lookup | None, names: tuple[str, str]) -> Made:
    del names
    may_choose = request.choices == RULES and not request.computation
    found = planned_by_record(request, records) if records and may_choose else None
    return found or _by_rules(request)


def _by_rules(request: Request) -> Made:
    """The same by what is chosen and the rules; kept on disk for later processes."""

    def make() -> Made:
        plan = plan_for(request)
        return plan, render(plan)

    return kept.made(request, make)


def plan_again(before: Traits, now: Traits) -> None:
    """Plan for later processes what this one has planned before more was known of the device.

    As far as it gets: a process that ends waits for the task under way.
    """
    for request in kept.written(before):
        if background.ends:
            return
        _by_rules(replace(request, traits=now))


# --- records of the tuner -------------------------------------------------------------------------


def records_of(engine: Engine) -> Lookup | None:
    """The tuner's records of a device, if there are any that apply."""
    return lookup(DeviceNames(*engine.names))


def planned_by_record(request: Request, records: Lookup) -> Made | None:
    """The plan by a record, and its kernel; None where there is none that counts."""
    src, dst = request.src, request.dst
    if not dst.nelems:
        return None
    asked = by_buffers(problem(src, dst, transform=request.transform), request.traits)
    record = records.find(asked)
    if not record:
        return None
    found: Made | None = None
    with suppress(Unsupported):  # a family that has gone, or takes no other shapes of its class
        found = _by_rules(replace(request, choices=record.choices))
    if not _is_measured(found, record) and not is_current(record, request.traits):
        records.refuse(record)
        return None
    if found is None or not _covers(found[0], record):
        return None
    return replace(found[0], record=record.praise), found[1]


def _covers(plan: Plan, record: TuningRecord) -> bool:
    """Whether the schedule of a record, if it has one, covers what is planned."""
    return plan.body is not None and plan.body.follows(record.choices)


def _is_measured(found: Made | None, record: TuningRecord) -> bool:
    """Whether a kernel is the one that was measured."""
    if found is None or found[1] is None:
        return False
    return _covers(found[0], record) and found[1].digest == record.kernels


def is_current(record: TuningRecord, traits: Traits) -> bool:
    """Whether the kernel that a record is about is the one that was measured."""
    try:
        src, dst = MemoryDesc.parse(record.src), MemoryDesc.parse(record.dst)
        return _is_measured(_by_rules(Request(src, dst, traits, choices=record.choices)), record)
    except Error:  # the format has gone, or the family refuses
        return False


def staleness(record: TuningRecord, device: DeviceNames, traits: Traits) -> str:
    """Why a record does not count on a device with the kernels of today; empty if it does."""
    reason = record.device.staleness(device)
    return reason or ("" if is_current(record, traits) else "of other kernels")


def kernel_digest(request: Request) -> str:
    """`Launch.digest` of the kernel for a request; empty where there is no kernel.

    Raises `Unsupported` and `InvalidDescriptor`.
    """
    _, made = _by_rules(request)
    return made.digest if made else ""


# --- sizes that come with the calls ---------------------------------------------------------------


PROGRAMS = 4
"""How many programs are built for the first shapes. Of random activations of 12 pairs of formats,
60 shapes each, which would have 6 to 27 programs, 82 of 100 then have a fast one."""
SUMS = 8
"""How many programs of sums are built: all that blocks or ``hwio`` need."""


@dataclass
class FewPrograms:
    """Plans for descriptors that fit the patterns ``src`` and ``dst``, by few programs.

    The first shapes have the plans that are best for them. When `PROGRAMS` programs are built, a
    shape has the best schedule that one of these serves, or else the kernel for all sizes. So it is
    with the kernels of sums, of which `SUMS` are built. ``request`` makes that of two descriptors.
    """

    src: MemoryDesc
    dst: MemoryDesc
    request: Callable[[MemoryDesc, MemoryDesc], Request]
    _sources: set[str] = field(default_factory=set)
    _programs: set[tuple[object, ...]] = field(default_factory=set)
    _sums: set[str] = field(default_factory=set)

    def planned(self, src: MemoryDesc, dst: MemoryDesc) -> Made:
        """The plan for two descriptors, and its kernel."""
        plan, made = self._moved(src, dst)
        if made is None or made.then is None or made.then.source in self._sums:
            return plan, made
        if len(self._sums) < SUMS:
            self._sums.add(made.then.source)
            return plan, made
        found = sums_for_all(as_pattern(dst, self.dst), plan.request.traits)
        return replace(plan, sums=found), replace(made, then=sums.render(found))

    def _moved(self, src: MemoryDesc, dst: MemoryDesc) -> Made:
        """The same without regard to sums."""
        plan, made = planned(self.request(src, dst))
        if made is None or plan.body is None or made.source in self._sources:
            return plan, made
        if len(self._sources) < PROGRAMS:
            self._sources.add(made.source)
            self._programs.add(plan.body.program)
            return plan, made
        if found := self._served(plan):
            return found
        plan = plan_for_all(self.request(as_pattern(src, self.src), as_pattern(dst, self.dst)))
        return plan, render(plan)

    def _served(self, plan: Plan) -> Made | None:
        """The best plan of the same family whose program is built."""
        left = set(self._programs)
        for body in plan.body.others(plan.request.traits) if plan.body else ():
            if body.program in left:
                left.remove(body.program)
                other = replace(plan, body=body)
                made = render(other)
                if made and made.source in self._sources:
                    return other, made
        return None
