"""A record of the tuner: one line of JSON that a person can read."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Any, NamedTuple

from ..errors import Error
from ..problems.problem import Problem
from ..schedule.choices import Choices
from .key import shape_class_of, sizes_of, structure_of

SCHEMA = 2
"""The version of the schema; records of another version are not read. 1: lanes, registers, loops
and stores were choices of their own, where schedules are now."""
OLD = "old"
"""Why a record of an older schema does not count."""


class InvalidRecord(Error, ValueError):
    """A line that is no record of this version."""


class DeviceNames(NamedTuple):
    """The names by which OpenCL knows a device, and the version of its driver."""

    name: str
    platform: str
    driver: str

    def staleness(self, now: DeviceNames) -> str:
        """Why what was measured here does not count on the device of now; empty if it does."""
        if self[:2] != now[:2]:
            return "of another device"
        return "of another driver" if self.driver != now.driver else ""


class Key(NamedTuple):
    """The key of a record; ``sizes`` is empty if it serves the whole shape class."""

    structure: str
    shape: str
    sizes: str = ""


def keys_of(p: Problem) -> tuple[Key, Key]:
    """The keys of a problem: of its exact sizes, then of its class."""
    structure, shape = structure_of(p), shape_class_of(p)
    return Key(structure, shape, sizes_of(p)), Key(structure, shape)


@dataclass(frozen=True, slots=True)
class TuningRecord:
    """A result of tuning a reorder: ``choices`` that are faster than the rules.

    ``default`` and ``tuned`` are all times that were measured, in seconds of one run, interleaved
    with each other. ``src`` and ``dst`` are the descriptors that were measured, ``kernels`` is a
    hash of the kernel by ``choices``, see `clformats.reorders.planning`.
    """

    device: DeviceNames
    kernels: str
    key: Key
    src: str
    dst: str
    choices: Choices
    default: tuple[float, ...]
    tuned: tuple[float, ...]
    date: str

    @property
    def gain(self) -> float:
        """The ratio of the rules' median time to that of the choices."""
        from statistics import median

        return median(self.default) / median(self.tuned)

    @property
    def praise(self) -> str:
        """What the record says for its choices."""
        return f"{self.gain:.2f} times as fast as the rules on {self.date[:10]}"

    @property
    def line(self) -> str:
        """The record as a line of JSON, without its end."""
        return json.dumps({
            "clformats": SCHEMA,
            "date": self.date,
            **self.device._asdict(),
            "kernels": self.kernels,
            "src": self.src,
            "dst": self.dst,
            **self.key._asdict(),
            "choices": self.choices.chosen(),
            "default_seconds": [float(f"{t:.4g}") for t in self.default],
            "tuned_seconds": [float(f"{t:.4g}") for t in self.tuned],
        })  # fmt: skip

    @classmethod
    def parse(cls, line: str) -> TuningRecord:
        """The inverse of `line`. Raises `InvalidRecord`."""
        found = object_of(line)
        if "clformats" not in found:
            raise InvalidRecord("no record of clformats")
        if found["clformats"] in range(SCHEMA):
            raise InvalidRecord(OLD)
        if found["clformats"] != SCHEMA:
            raise InvalidRecord(f"of schema {found['clformats']!r}, this library reads {SCHEMA}")
        record = cls(
            device=DeviceNames(*texts_of(found, DeviceNames._fields)),
            kernels=texts_of(found, ("kernels",))[0],
            key=Key(*texts_of(found, Key._fields)),
            src=texts_of(found, ("src",))[0],
            dst=texts_of(found, ("dst",))[0],
            choices=_choices(found.get("choices")),
            default=times_of(found.get("default_seconds")),
            tuned=times_of(found.get("tuned_seconds")),
            date=texts_of(found, ("date",))[0],
        )
        if record.gain <= 1:
            raise InvalidRecord("not faster than the rules")
        return record

    def __str__(self) -> str:
        day = self.date[:10]
        return f"{self.src} -> {self.dst}: {self.choices}, {self.gain:.2f} times as fast ({day})"


def now() -> str:
    """The present time with its time zone, as text."""
    return datetime.now().astimezone().isoformat(timespec="seconds")


def object_of(line: str) -> dict[str, Any]:
    """The object that a line of JSON holds. Raises `InvalidRecord`."""
    try:
        found = json.loads(line)
    except (ValueError, RecursionError) as error:
        raise InvalidRecord(f"no JSON: {error}") from error
    if not isinstance(found, dict):
        raise InvalidRecord("no record of clformats")
    return found


def texts_of(found: Mapping[str, Any], names: Sequence[str]) -> list[str]:
    """The texts of these names. Raises `InvalidRecord`."""
    for name in names:
        if not isinstance(found.get(name), str):
            raise InvalidRecord(f"{name} is {found.get(name)!r}, expected a text")
    return [found[name] for name in names]


def _choices(found: object) -> Choices:
    if not isinstance(found, dict) or not found:
        raise InvalidRecord(f"choices are {found!r}, expected some")
    try:
        return Choices.of(found)
    except Error as error:
        raise InvalidRecord(str(error)) from error


def times_of(found: object) -> tuple[float, ...]:
    """Seconds. Raises `InvalidRecord`."""
    times = found if isinstance(found, list) else []
    if not times or not all(type(t) in (int, float) and 0 < t < 1e6 for t in times):
        raise InvalidRecord(f"got times {found!r:.60}, expected seconds")
    return tuple(map(float, times))
