"""Measuring records again: after an update of the library or of a driver they are not used."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

from ..errors import Error
from ..records import (
    DeviceNames,
    TuningRecord,
    add,
    forget,
    path_of,
    read,
    rewrite,
    wanted_folder,
)
from ..records.record import Key
from ..reorders.planning import staleness
from ..reorders.profiles import traits_of
from ..runtime import Engine
from ..schedule import Request, Traits, plan_for
from ..tensors.desc import MemoryDesc
from .contest import AGAIN, DEFAULT, LEAST_GAIN, Contest, is_faster, noise
from .run import CONTEST, record_of


def revalidate(
    engine: Engine,
    *,
    everything: bool = False,
    watch: Callable[[TuningRecord, TuningRecord | None], None] = lambda _old, _new: None,
) -> tuple[int, int]:
    """Measure a device's records of other kernels or drivers again; how many of how many hold.

    With ``everything`` also the records in use. A kernel that is still faster than the rules is
    recorded at once; at the end old records and unreadable lines are removed. ``watch`` is called
    with each record and its new one, or None. Raises `Error`.
    """
    device = DeviceNames(*engine.names)
    path = path_of(device, wanted_folder())
    latest: dict[Key, TuningRecord] = {}
    for record in read(path)[0]:
        latest.pop(record.key, None)
        latest[record.key] = record
    old = [r for r in latest.values() if everything or staleness(r, device, traits_of(engine))]
    held = 0
    for record in old:
        new = measured(record, engine)
        if new:
            add(path, new)
            held += 1
        watch(record, new)
    if path.exists():
        _tidy(path, device, traits_of(engine), set(old))
    forget()
    return held, len(old)


def _tidy(path: Path, device: DeviceNames, traits: Traits, old: set[TuningRecord]) -> None:
    """Leave the newest record of each key: those that count, and others' that came meanwhile."""

    def change(records: list[TuningRecord]) -> list[TuningRecord]:
        kept: dict[tuple[DeviceNames, Key], TuningRecord] = {}
        for record in records:
            if record not in old and not staleness(record, device, traits):
                kept.pop((record.device, record.key), None)
                kept[record.device, record.key] = record
        return list(kept.values())

    rewrite(path, change)


def measured(record: TuningRecord, engine: Engine) -> TuningRecord | None:
    """The record measured again; None if its choices are not faster than the rules any more."""
    try:
        src, dst = MemoryDesc.parse(record.src), MemoryDesc.parse(record.dst)
        body = plan_for(Request(src, dst, traits_of(engine), choices=record.choices)).body
        if body is None or not body.follows(record.choices):
            return None
        run = Contest(src, dst, engine)
        times = run.times({"best": record.choices}, CONTEST)
    except Error:
        return None  # the format has gone, the family refuses, or the result is wrong
    rules = [*times[DEFAULT], *times[AGAIN]]
    if not is_faster(rules, times["best"], LEAST_GAIN, noise(times)):
        return None
    return record_of(run, record.choices, rules, times["best"])
