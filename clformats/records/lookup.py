"""Finding the record of a reorder by its keys; a process reads each file once."""

from __future__ import annotations

from collections import Counter
from functools import cache
from pathlib import Path

from ..errors import Error, warn
from ..problems.problem import Problem
from .record import OLD, DeviceNames, Key, TuningRecord, keys_of
from .store import folder, path_of, read


class TunedWarning(UserWarning):
    """Some records of the tuner cannot be used; the rules decide instead."""


class Lookup:
    """The usable records of a device. Equal only to itself, so that plans are cached by it."""

    def __init__(self, path: Path, device: DeviceNames) -> None:
        self.path = path
        self._found: dict[Key, TuningRecord] = {}
        self._unused: list[tuple[Key | None, str]] = []
        self._refused = False
        try:
            records, rejected = read(path)
        except Error as error:
            warn(f"{error}; the rules decide", TunedWarning)
            return
        for record in records:
            reason = record.device.staleness(device)
            if reason:
                self._unused.append((record.key, reason))
            else:
                self._found[record.key] = record
        self._unused += [
            (None, r.reason if r.reason == OLD or not r.line else f"unreadable in line {r.line}")
            for r in rejected
        ]
        self._tell()

    def _tell(self) -> None:
        """Warn about records that are not used, unless newer ones have replaced them."""
        missed = Counter(reason for key, reason in self._unused if key not in self._found)
        if missed:
            words = ", ".join(f"{count} {reason}" for reason, count in missed.most_common(5))
            more = ", ..." * (len(missed) > 5)
            self._warn_of(f"{words}{more}")

    def __len__(self) -> int:
        return len(self._found)

    def find(self, p: Problem) -> TuningRecord | None:
        """The record for a problem, of its exact sizes if there is one."""
        if p.computation is not None or p.step is not None or p.dst.sums:
            return None
        for key in keys_of(p):
            record = self._found.get(key)
            if record:
                return record
        return None

    def refuse(self, record: TuningRecord) -> None:
        """Leave out a record whose kernel is not the one that was measured; the first is told."""
        self._found.pop(record.key, None)
        if not self._refused:
            self._refused = True
            self._warn_of(f"1 or more of other kernels ({record.src} -> {record.dst})")

    def _warn_of(self, words: str) -> None:
        warn(
            f"records of the tuner in {self.path} are not used: {words}; the rules decide. "
            f"`clformats tune show` lists them, `clformats tune revalidate` measures them anew",
            TunedWarning,
        )


def lookup(device: DeviceNames) -> Lookup | None:
    """The usable records of a device; None if there are none, or they are switched off."""
    where = folder()
    return _lookup(device, where) if where else None


@cache
def _lookup(device: DeviceNames, where: Path) -> Lookup | None:
    return Lookup(path_of(device, where), device) or None


def forget() -> None:
    """Read the files again at the next lookup, because tuning has changed them."""
    _lookup.cache_clear()
