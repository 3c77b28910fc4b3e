"""Records of the tuner in use: a record counts while its kernel is the one that was measured.

A record holds a hash of that kernel's source. The kernel that is rendered anyway mostly has the
same source, whatever its sizes, and nothing else is rendered then.
"""

from __future__ import annotations

from contextlib import suppress
from dataclasses import replace

from ..errors import Error, Unsupported
from ..kernels import launch
from ..kernels.source import Launch
from ..schedule import Plan, Traits, make_plan, problem
from ..schedule.choices import Choices
from ..schedule.schedule import Schedule
from ..schedule.scheduled import ScheduledPlan, misfit
from ..tensors.desc import MemoryDesc
from ..tuning.records import Device, Lookup, Record


def planned_by_record(
    src: MemoryDesc, dst: MemoryDesc, traits: Traits, records: Lookup, *, transform: bool | None
) -> tuple[Plan, Launch | None] | None:
    """The plan by a record, and its kernel; None where there is none that counts."""
    record = records.find(problem(src, dst, transform=transform)) if dst.nelems else None
    if record is None:
        return None
    plan = made = None
    with suppress(Unsupported):  # a family that has gone, or takes no other shapes of its class
        plan = make_plan(src, dst, traits, transform=transform, choices=record.choices)
        made = launch(plan)
    covers = plan is not None and has_schedule(plan, record.choices)
    same = covers and made is not None and made.digest == record.kernels
    if not same and not is_current(record, traits):
        records.refuse(record)
        return None
    if plan is None or not covers:  # a schedule that covers no other shapes of its class
        return None
    return replace(plan, record=record.praise), made


def kernel_digest(src: MemoryDesc, dst: MemoryDesc, traits: Traits, choices: Choices) -> str:
    """`Launch.digest` of the kernel by some choices; empty where there is no kernel.

    Raises `Unsupported` and `InvalidDescriptor`.
    """
    made = launch(make_plan(src, dst, traits, choices=choices))
    return made.digest if made else ""


def has_schedule(plan: Plan, choices: Choices) -> bool:
    """Whether the schedule that was chosen, if one was, covers what is planned."""
    if choices.schedule is None:
        return True
    schedule = Schedule.parse(choices.schedule)
    return isinstance(plan.body, ScheduledPlan) and not misfit(plan.body.problem, schedule)


def is_current(record: Record, traits: Traits) -> bool:
    """Whether the kernel that a record is about is the one that was measured."""
    try:
        src, dst = MemoryDesc.parse(record.src), MemoryDesc.parse(record.dst)
        plan = make_plan(src, dst, traits, choices=record.choices)
        made = launch(plan)
        return (
            made is not None
            and made.digest == record.kernels
            and has_schedule(plan, record.choices)
        )
    except Error:  # the format has gone, or the family refuses
        return False


def staleness(record: Record, device: Device, traits: Traits) -> str:
    """Why a record does not count on a device with the kernels of today; empty if it does."""
    reason = record.device.staleness(device)
    return reason or ("" if is_current(record, traits) else "of other kernels")
