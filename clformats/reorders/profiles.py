"""The profile of a device: what was measured and kept, else the defaults.

Planning never measures. `calibrate` does, where the user asks for it, and the background thread,
once on a machine, when a large tensor is moved first.
"""

from __future__ import annotations

import threading
from collections.abc import Mapping
from contextlib import suppress
from functools import partial
from pathlib import Path

from ..errors import expect
from ..problems.traits import Traits
from ..programs.background import background
from ..records import DeviceNames, folder
from ..records.profiles import Kept, alone, profile_path, read_profile, write_profile
from ..runtime import Engine
from ..runtime.engine import default_engine
from ..schedule.profile import RANGES, Profile, profile_of, sanely, with_measured
from . import calibration
from .building import all_wait

NO_CPU = "it is no CPU"
NOTHING_KEPT = "CLFORMATS_TUNED=off keeps nothing"

_kept: dict[tuple[Path, DeviceNames], Kept | None] = {}
_tried: set[tuple[Path, DeviceNames] | None] = set()
_lock = threading.Lock()


def traits_of(engine: Engine) -> Traits:
    """What plans depend on: the device's own traits, with what was measured of it."""
    kept = kept_of(engine)
    return with_measured(engine.traits, kept.numbers) if kept else engine.traits


def profile_for(engine: Engine) -> Profile:
    """The profile of a device: what was measured and kept, else the defaults. Never measures."""
    return profile_of(traits_of(engine))


def kept_of(engine: Engine) -> Kept | None:
    """What was measured of a device and kept; a process reads each file once."""
    key = _key(engine)
    if key is None:
        return None
    with _lock:
        if key not in _kept:
            _kept[key] = read_profile(key[1], key[0])
        return _kept[key]


def wants_measuring(engine: Engine) -> bool:
    """Whether nothing was kept of a device, and this process has not tried to measure it."""
    key = _key(engine)
    return key is not None and key not in _tried and kept_of(engine) is None


def measure_later(engine: Engine, nbytes: int) -> None:
    """Measure a device in the background, once on a machine, where so many bytes may depend on it.

    Reorders that are made afterwards use the numbers. A busy machine is tried again by the next
    process. Nothing is measured where reorders wait for their kernels: a benchmark may follow.
    """
    if nbytes >= RANGES["stream_bytes"][0] and not all_wait() and wants_measuring(engine):
        _tried.add(_key(engine))
        background.later(partial(attempt, engine, again=False))


def calibrate(engine: Engine | None = None) -> Profile:
    """Measure the processor of a CPU device, keep the numbers, and return its profile.

    Takes about half a second, and the build of two programs before. The profile orders the
    schedules that a reorder may have, see docs/schedules.md; reorders made from now on use it, in
    every process. Of other devices nothing is measured. On a busy machine nothing is kept, and the
    profile is what it was before. Raises `DeviceError`.

    >>> profile = calibrate()  # doctest: +SKIP
    >>> profile.stream_bytes  # streaming stores gain from so many bytes on  # doctest: +SKIP
    18874368
    """
    expect(engine, Engine | None, "engine")
    engine = engine or default_engine()
    attempt(engine)
    return profile_for(engine)


def attempt(engine: Engine, *, again: bool = True) -> str:
    """Measure and keep; returns why nothing was kept, "" if it was.

    Where another process has measured meanwhile, its numbers count. With ``again=False`` anything
    that is kept does, so that processes that start at once agree.
    """
    key = _key(engine)
    if key is None:
        return NO_CPU if not engine.traits.is_cpu else NOTHING_KEPT
    where, device = key
    before = _stamp(device, where)
    with alone(where):
        _tried.add(key)
        kept, trouble = read_profile(device, where), ""
        if not kept or (again and _stamp(device, where) == before):
            numbers, trouble = calibration.measured(engine)
            trouble = trouble or _keep(device, where, numbers)
            kept = read_profile(device, where)
    with _lock:
        _kept[key] = kept
    return trouble


def _keep(device: DeviceNames, where: Path, numbers: Mapping[str, float]) -> str:
    """Write the numbers; returns why they could not be written, "" if they were."""
    try:
        write_profile(device, where, {k: sanely(k, v) for k, v in numbers.items()})
    except OSError as error:
        return f"{where} cannot be written: {error.strerror or error}"
    return ""


def _key(engine: Engine) -> tuple[Path, DeviceNames] | None:
    """Where a device's profile is kept; None for devices without, and where they are off."""
    where = folder()
    return (where, DeviceNames(*engine.names)) if where and engine.traits.is_cpu else None


def _stamp(device: DeviceNames, where: Path) -> tuple[int, int] | None:
    """Which file is there."""
    with suppress(OSError):
        found = profile_path(device, where).stat()
        return found.st_ino, found.st_mtime_ns
    return None
