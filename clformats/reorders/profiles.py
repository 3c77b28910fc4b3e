"""The traits of a device, with what was measured of it and kept.

Planning never measures. `calibrate` does, where the user asks for it, and the background thread,
once on a machine, when a large tensor is moved first.
"""

from __future__ import annotations

from functools import cache, lru_cache, partial
from pathlib import Path

from ..errors import DeviceError, Error, expect
from ..problems.thresholds import STREAMED_LEAST
from ..problems.traits import Traits
from ..programs.background import background
from ..programs.processor import processor
from ..records import DeviceNames, folder
from ..records.processors import ProcessorRecord, find_processor, processors_file
from ..records.record import now
from ..records.store import appending
from ..runtime import Engine
from ..runtime.engine import default_engine
from .building import all_wait
from .planning import plan_again

NO_CPU = "it is no CPU"
NOTHING_KEPT = "CLFORMATS_TUNED=off keeps nothing"

_tried: set[tuple[DeviceNames, Path] | None] = set()
_kept = cache(find_processor)
_added = lru_cache(maxsize=64)(ProcessorRecord.added_to)


def traits_of(engine: Engine) -> Traits:
    """What plans depend on: the device's own traits, with what was measured of it."""
    kept = kept_of(engine)
    return _added(kept, engine.traits) if kept else engine.traits


def kept_of(engine: Engine) -> ProcessorRecord | None:
    """What was measured of a device and kept; a process reads each file once."""
    key = _key(engine)
    return _kept(*key) if key else None


def wants_measuring(engine: Engine) -> bool:
    """Whether nothing was kept of a device, and this process has not tried to measure it."""
    key = _key(engine)
    return key is not None and key not in _tried and kept_of(engine) is None


def measure_later(engine: Engine, nbytes: int) -> None:
    """Measure a device in the background, once on a machine, where so many bytes may depend on it.

    Reorders that are made afterwards use the numbers. A busy machine is tried again by the next
    process. Nothing is measured where reorders wait for their kernels: a benchmark may follow.
    """
    if nbytes >= STREAMED_LEAST and not all_wait() and wants_measuring(engine):
        _tried.add(_key(engine))
        background.later(partial(_measure, engine))


def _measure(engine: Engine) -> None:
    """Measure a device, and plan for the next process by what was found."""
    before = traits_of(engine)
    attempt(engine, again=False)
    if (after := traits_of(engine)) != before:
        plan_again(before, after)


def calibrate(engine: Engine | None = None) -> Traits:
    """Measure the processor of a CPU device, keep the numbers, and return what the device is like.

    Takes about a second, and the build of two programs before. The result orders the
    schedules that a reorder may have, see docs/schedules.md; reorders made from now on use it, in
    every process. Of other devices nothing is measured. On a busy machine nothing is kept, and the
    result is what it was before. Raises `DeviceError`.

    >>> traits = calibrate()  # doctest: +SKIP
    >>> traits.stream_bytes  # streaming stores gain from so many bytes on  # doctest: +SKIP
    18874368
    >>> traits.copy_gb_s  # what a copy reads and writes, in GB/s  # doctest: +SKIP
    49
    """
    expect(engine, Engine | None, "engine")
    engine = engine or default_engine()
    attempt(engine)
    return traits_of(engine)


def attempt(engine: Engine, *, again: bool = True) -> str:
    """Measure and keep; returns why nothing was kept, "" if it was.

    Where another process has measured meanwhile, its numbers count. With ``again=False`` anything
    that is kept does, so that processes that start at once agree.
    """
    from . import calibration

    key = _key(engine)
    if key is None:
        return NO_CPU if not engine.traits.is_cpu else NOTHING_KEPT
    before = find_processor(*key)
    _tried.add(key)
    try:
        with appending(processors_file(*key)) as append:
            kept = find_processor(*key)
            if not kept or (again and kept == before):
                append(ProcessorRecord(key[0], processor(), *calibration.measured(engine), now()))
    except DeviceError:
        raise
    except Error as error:
        return str(error)
    _kept.cache_clear()
    return ""


def _key(engine: Engine) -> tuple[DeviceNames, Path] | None:
    """A device and where its records are; None for one without, and where they are off."""
    where = folder()
    return (DeviceNames(*engine.names), where) if where and engine.traits.is_cpu else None
