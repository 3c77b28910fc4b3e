"""The measured profile of a device: a file of its own beside the tuner's records.

A file is one line of JSON, written elsewhere and moved to its place: readers need no lock, and see
the whole of it or nothing. What cannot be read, is of another schema, device, driver or processor,
or has a number that cannot be true, is a miss. A folder may be shared by several machines: each
processor has its own file.
"""

from __future__ import annotations

import fcntl
import json
import math
import os
import time
from collections.abc import Iterator, Mapping
from contextlib import contextmanager, suppress
from hashlib import sha256
from pathlib import Path
from typing import NamedTuple

from .. import trust
from ..programs.processor import processor
from ..schedule.profile import RANGES
from .record import DeviceNames, now
from .store import check_trusted, make_folder, path_of

SCHEMA = 1
"""The version of the measurement: its profiles are not compared with those of another one."""
MOST_BYTES = 1 << 16
LOCK_SECONDS = 10.0


class Kept(NamedTuple):
    """The numbers that were measured, by their names in a `Profile`, and when."""

    numbers: dict[str, float]
    date: str


def profile_path(device: DeviceNames, where: Path) -> Path:
    """The file of a device on this processor, whatever its driver."""
    mark = sha256(processor().encode()).hexdigest()[:8]
    return path_of(device, where).with_suffix(f".{mark}.profile.json")


def read_profile(device: DeviceNames, where: Path) -> Kept | None:
    """What was measured of a device; None for a miss of any kind."""
    path = profile_path(device, where)
    try:
        check_trusted(path)
        with path.open("rb") as file:
            found = json.loads(file.read(MOST_BYTES))
        numbers, date = found["numbers"], found["date"]
        right = {key: found[key] for key in _key(device)} == _key(device) and isinstance(date, str)
        kept = {name: float(value) for name, value in numbers.items()}
    except (OSError, ValueError, TypeError, KeyError, AttributeError, RecursionError):
        return None
    return Kept(kept, date) if right and kept and _are_sane(kept) else None


def write_profile(device: DeviceNames, where: Path, numbers: Mapping[str, float]) -> None:
    """Replace the file of a device. Raises OSError; then nothing has changed."""
    path = profile_path(device, where)
    told = {**_key(device), "date": now(), "numbers": dict(numbers)}
    mode = make_folder(where)
    trust.write(path, f"{json.dumps(told)}\n".encode(), mode)


@contextmanager
def alone(where: Path) -> Iterator[None]:
    """Wait until no other process measures: each would find the machine busy with the other.

    After `LOCK_SECONDS`, or where folders cannot be locked, it goes on.
    """
    file = -1
    with suppress(OSError):
        make_folder(where)
        file = os.open(where, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
        end = time.monotonic() + LOCK_SECONDS
        while True:
            try:
                fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
                break
            except BlockingIOError:
                if time.monotonic() > end:
                    break
                time.sleep(0.01)
    try:
        yield
    finally:
        if file >= 0:
            os.close(file)  # and with it the lock


def _key(device: DeviceNames) -> dict[str, object]:
    return {"clformats_profile": SCHEMA, **device._asdict(), "processor": processor()}


def _are_sane(numbers: Mapping[str, float]) -> bool:
    """Whether all numbers are known, and within their ranges."""
    return all(
        name in RANGES and math.isfinite(value) and RANGES[name][0] <= value <= RANGES[name][1]
        for name, value in numbers.items()
    )
