"""Kernels on record: a row for each source on several kinds of device, with hashes.

The record is a file for each device in ``tests/data/replay``. A row has the hash of a source, its
family, how many problems it serves, a hash of their names and launches, and the first of them by
name, whose text ``python -m tests.replay show`` prints. Comments in the OpenCL C do not count.
Nothing here needs OpenCL.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from hashlib import blake2b
from pathlib import Path
from typing import NamedTuple
from zlib import crc32

from clformats.kernels import render
from clformats.kernels.source import Launch, without_comments
from clformats.schedule import Plan, Traits
from tests.replay_problems import Problem, problems

FOLDER = Path(__file__).parent / "data" / "replay"
DEVICES = {
    "cpu": Traits(compute_units=2, vector_bytes=64),
    "cpu-32-cores": Traits(compute_units=32, streamed_bytes=64 << 20, vector_bytes=64),
    "cpu-avx2": Traits(compute_units=8, vector_bytes=32),
    "gpu": Traits(is_cpu=False, compute_units=108),
    "gpu-small": Traits(is_cpu=False, compute_units=32),
}
FIRST, *OTHERS = DEVICES
"""The first device has every problem; each of the others its share, chosen by the name."""
EVERYWHERE = {
    *("images", "nibbles", "winograd", "blocks to images", "few channels"),
    *("attributes", "any address", "any size", "padding", "strides", "orders"),
}
"""Groups of few problems, which all devices have."""
NAMED = 8
"""So many of the problems that changed are named in a message."""


class Row(NamedTuple):
    """What the record has of one source: see above."""

    source: str
    family: str
    problems: int
    launches: str
    first: str


@dataclass(frozen=True, slots=True)
class Kernel:
    """A kernel as it counts: its source without comments, and how it is launched."""

    family: str
    source: str
    launch: str

    @property
    def text(self) -> str:
        """All of it, to read and to compare."""
        return f"family {self.family}\n{self.launch}\n{self.source}"


def problems_of(device: str) -> Sequence[Problem]:
    """The problems that are rendered for a device of `DEVICES`."""
    every = problems()
    if device == FIRST:
        return every
    return [p for p in every if p.group in EVERYWHERE or _share(p) == device]


def _share(problem: Problem) -> str:
    """Which of the other devices has a problem."""
    return OTHERS[crc32(problem.name.encode()) % len(OTHERS)]


def kernel(problem: Problem, traits: Traits) -> Kernel:
    """What is made of a problem on a device."""
    plan = problem.plan(traits)
    made = render(plan)
    if made is None:
        return Kernel(plan.family, "", "")
    launches = [made, *([made.then] if made.then else [])]
    source = "\n".join(without_comments(one.source) for one in launches)
    numbers = "\n".join(_numbers(plan, one) for one in launches)
    return Kernel(plan.family, source, numbers)


def _numbers(plan: Plan, made: Launch) -> str:
    """How a kernel is launched."""
    return "\n".join(
        (
            f"arguments {' '.join(map(str, made.arguments))}",
            f"work-items {made.global_size} in groups of {made.local_size}",
            f"offsets of {64 if made.wide else 32} bits, alignment {plan.alignment}",
        )
    )


def kernels(device: str) -> dict[str, Kernel]:
    """The kernels of all problems that a device has, by the problems' names."""
    return {p.name: kernel(p, DEVICES[device]) for p in problems_of(device)}


def rows(made: Mapping[str, Kernel]) -> list[Row]:
    """The record of kernels by the problems' names, sorted by the first problem of each row."""
    found: dict[tuple[str, str], list[str]] = {}
    for name in sorted(made):
        found.setdefault((made[name].source, made[name].family), []).append(name)
    return [
        Row(
            digest(source), family, len(names),
            digest("\n".join(f"{name}\n{made[name].launch}" for name in names)), names[0],
        )
        for (source, family), names in found.items()
    ]  # fmt: skip


def digest(text: str) -> str:
    """A short hash."""
    return blake2b(text.encode(), digest_size=4).hexdigest()


def file_of(device: str) -> Path:
    """The record of a device."""
    return FOLDER / f"{device}.tsv"


def recorded(device: str) -> list[Row]:
    """What the record has for a device; nothing where there is no file."""
    file = file_of(device)
    lines = file.read_text(encoding="utf-8").splitlines()[1:] if file.exists() else []
    return [
        Row(source, family, int(count), launches, first)
        for source, family, count, launches, first in (line.split("\t") for line in lines)
    ]


def write(device: str, record: Iterable[Row]) -> None:
    """Write the record of a device anew."""
    FOLDER.mkdir(exist_ok=True)
    text = "".join("\t".join(map(str, line)) + "\n" for line in (Row._fields, *record))
    file_of(device).write_text(text, encoding="utf-8")


def changes(old: Sequence[Row], new: Sequence[Row]) -> dict[str, str]:
    """What changed, by the first problem of a row: some fields, or the row is new or gone."""
    before, after = ({row.first: row for row in record} for record in (old, new))
    found = {}
    for name in sorted({*before, *after}):
        if name not in before:
            found[name] = "not on record"
        elif name not in after:
            found[name] = "on record only"
        elif before[name] != after[name]:
            both = zip(Row._fields, before[name], after[name], strict=True)
            found[name] = ", ".join(field for field, a, b in both if a != b)
    return found


def message(device: str, changed: Mapping[str, str], count: int) -> str:
    """How many rows changed, and the first of them by name; empty where none did."""
    if not changed:
        return ""
    return "\n".join(
        (
            f"{len(changed)} of {count} sources for {device} are not as recorded:",
            *_kinds(changed.values()),
            *(f"    {name} ({what})" for name, what in list(changed.items())[:NAMED]),
            *(["    ..."] if len(changed) > NAMED else []),
            "lines of the difference: python -m tests.replay diff HEAD",
            "write the record anew:   UPDATE_REPLAY=1 pytest tests/kernels/test_replay.py",
        )
    )


def _kinds(what: Iterable[str]) -> list[str]:
    every = list(what)
    return [f"  {every.count(kind)} by {kind}" for kind in dict.fromkeys(every)]
