"""What a run found, and its form as JSON."""

from __future__ import annotations

import json
from dataclasses import asdict, dataclass, field
from math import exp, log
from pathlib import Path

from clformats.timing import Times

from .cases import GROUPS, MB, Group

VERSION = 1
OURS, AGAIN, COPY, COMMAND, EMPTY = "clformats", "clformats again", "copy kernel", "copy", "empty"
BAKED, TUNED = "clformats, sizes baked", "clformats, tuned"
"""Ours by the rules but for the sizes, which are constants; and as the tuner's record has it."""
PEERS = ("oneDNN", "torch", "numpy")
CUPY = "CuPy"
"""On a GPU only; its times are in the file, the table and the picture have torch's."""


@dataclass(frozen=True)
class Record:
    """One case: what ran, the times of every contestant, and why others are missing.

    ``error`` says why there are no times at all. ``onednn`` names oneDNN's implementation.
    """

    name: str
    group: str
    src: str
    dst: str
    moved: int = 0
    copied: int = 0
    family: str = ""
    plan: str = ""
    times: dict[str, Times] = field(default_factory=dict)
    notes: dict[str, str] = field(default_factory=dict)
    onednn: str = ""
    error: str = ""

    @property
    def mb(self) -> float:
        """Megabytes read and written."""
        return self.moved / MB

    def speed(self, slot: str = OURS) -> float | None:
        """GB/s by the median: bytes read and written, padding included."""
        times = self.times.get(slot)
        return self.moved / times.median / 1e9 if times else None

    @property
    def ceiling(self) -> float | None:
        """GB/s of the faster of the plain copies."""
        medians = [self.times[s].median for s in (COPY, COMMAND) if s in self.times]
        return 2 * self.copied / min(medians) / 1e9 if medians else None

    @property
    def share(self) -> float | None:
        """Our speed as a share of the ceiling."""
        speed, ceiling = self.speed(), self.ceiling
        return speed / ceiling if speed and ceiling else None

    def ratio(self, slot: str) -> float | None:
        """How many times as fast as a contestant we are, by the medians."""
        ours, other = self.times.get(OURS), self.times.get(slot)
        return other.median / ours.median if ours and other else None

    @property
    def is_fair(self) -> bool:
        """Whether oneDNN ran generated code: a ratio to its reference says nothing."""
        return bool(self.onednn) and not self.onednn.startswith("simple")


@dataclass(frozen=True)
class Report:
    """A run: when, on what, how it was measured, the cases, and what a first use costs."""

    date: str
    machine: dict[str, str]
    settings: dict[str, float]
    records: list[Record]
    first_use: dict[str, float] = field(default_factory=dict)

    def write(self, path: Path) -> None:
        """Write the report as JSON."""
        text = json.dumps({"version": VERSION, **asdict(self)}, indent=1)
        path.write_text(text + "\n", encoding="utf-8")

    @classmethod
    def read(cls, path: Path) -> Report:
        """Read what `write` wrote. Raises ValueError where the file is something else."""
        try:
            data = json.loads(path.read_text(encoding="utf-8"))
            if data.pop("version") == VERSION:
                records = [_record(item) for item in data.pop("records")]
                return cls(records=records, **data)
        except (ValueError, KeyError, TypeError, AttributeError) as error:
            raise ValueError(f"{path} holds no results of this benchmark: {error!r}") from error
        raise ValueError(f"{path} holds results of another version than {VERSION}: run it again")


def _record(item: dict[str, object]) -> Record:
    times = item.pop("times")
    assert isinstance(times, dict)
    known = {slot: Times(**t) for slot, t in times.items()}
    if not all(t.median > 0 for t in known.values()):
        raise ValueError(f"got medians {[t.median for t in known.values()]}, expected seconds")
    return Record(times=known, **item)  # type: ignore[arg-type]


@dataclass(frozen=True, slots=True)
class Summary:
    """The geometric means over a group; ``lowest`` is its lowest ratio to oneDNN."""

    group: Group
    count: int
    share: float | None
    ratios: dict[str, float | None]
    lowest: float | None


def summaries(records: list[Record]) -> list[Summary]:
    """One line for each group that has a case."""
    found = []
    for group in GROUPS:
        members = [r for r in records if r.times and group.takes(r.name, r.group, r.mb)]
        if members:
            found.append(_summary(group, members))
    return found


def _summary(group: Group, members: list[Record]) -> Summary:
    fair = [r.ratio("oneDNN") for r in members if r.is_fair]
    ratios = {slot: geomean([r.ratio(slot) for r in members]) for slot in (*PEERS, EMPTY)}
    ratios["oneDNN"] = geomean(fair)
    lowest = min((f for f in fair if f), default=None)
    return Summary(group, len(members), geomean([r.share for r in members]), ratios, lowest)


def geomean(values: list[float | None]) -> float | None:
    """The geometric mean of what is there."""
    logs = [log(v) for v in values if v]
    return exp(sum(logs) / len(logs)) if logs else None
