"""Exchanging records: other machines' files, and the T4 format of tuners."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from pathlib import Path
from statistics import median
from typing import Any

from ..errors import Error
from ..records import DeviceNames, Rejected, TuningRecord, add, forget, path_of, wanted_folder
from ..records.kernels import SUFFIX, KernelRecord, file_of, parse_any
from ..records.store import read_lines

Same = tuple[DeviceNames, tuple[str, ...]]
"""What two records have in common of which only the newer one counts."""
T4_VERSION = "1.0.0"


@dataclass(frozen=True, slots=True)
class Merged:
    """What `merge` did: the records ``added``, the number ``known`` before, the lines left out."""

    added: tuple[TuningRecord | KernelRecord, ...]
    known: int
    rejected: tuple[tuple[Path, Rejected], ...]


def merge(paths: Iterable[Path]) -> Merged:
    """Add the records of other files, and of all files of other folders.

    Each record goes to the file of its device. A record that is there already, or older than the
    one for the same problem, is left out. Raises `Error`; records added before stay.
    """
    where = wanted_folder()
    added: list[TuningRecord | KernelRecord] = []
    known = 0
    rejected: list[tuple[Path, Rejected]] = []
    here: dict[Path, dict[Same, str]] = {}
    for file in _files(paths):
        records, wrong = read_lines(file, parse_any)
        rejected += [(file, r) for r in wrong]
        for record in records:
            place = file_of if isinstance(record, KernelRecord) else path_of
            target = place(record.device, where)
            if target not in here:
                here[target] = {_same(r): r.date for r in read_lines(target, parse_any)[0]}
            if here[target].get(_same(record), "") < record.date:
                add(target, record)
                here[target][_same(record)] = record.date
                added.append(record)
            else:
                known += 1
    forget()
    return Merged(tuple(added), known, tuple(rejected))


def _files(paths: Iterable[Path]) -> Iterator[Path]:
    """The files that are named, and those in the folders that are. Raises `Error`."""
    for path in paths:
        if path.is_dir():
            found = sorted(f for end in (".jsonl", SUFFIX) for f in path.glob(f"*{end}"))
            if not found:
                raise Error(f"cannot merge {path}: no file there ends in .jsonl or {SUFFIX}")
            yield from found
        elif path.is_file():
            yield path
        else:
            raise Error(f"cannot merge {path}: it is no file; see `clformats tune show`")


def _same(record: TuningRecord | KernelRecord) -> Same:
    return record.device, record.key


def t4(records: Iterable[TuningRecord]) -> dict[str, Any]:
    """Records in the T4 format: two results for each, by the rules and by the choices."""
    results = []
    for record in records:
        about = [
            {"name": "src", "value": record.src, "unit": ""},
            {"name": "dst", "value": record.dst, "unit": ""},
            {"name": "device", "value": ", ".join(record.device), "unit": ""},
            {"name": "kernels", "value": record.kernels, "unit": ""},
        ]
        for chosen, times in (({}, record.default), (record.choices.chosen(), record.tuned)):
            milliseconds = [1e3 * t for t in times]
            middle = {"name": "time", "value": median(milliseconds), "unit": "ms"}
            results.append({
                "timestamp": record.date,
                "configuration": chosen,
                "objectives": ["time"],
                "times": {"runtimes": milliseconds},
                "invalidity": "correct",
                "correctness": 1,
                "measurements": [middle, *about],
            })  # fmt: skip
    return {
        "schema_version": T4_VERSION,
        "results": results,
        "metadata": {"timeunit": "milliseconds"},
    }
