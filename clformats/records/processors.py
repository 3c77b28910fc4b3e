"""Records of processors: what was measured of them.

They lie beside the tuner's other records, in a file of each device, a line of JSON for each
measurement. A folder may be shared by several machines, so each record names its processor; of one
processor and driver the newest counts.
"""

from __future__ import annotations

import json
from dataclasses import dataclass, replace
from pathlib import Path

from ..errors import Error
from ..problems.thresholds import STREAMED_LEAST, STREAMED_MOST
from ..problems.traits import Traits
from ..programs.processor import processor
from .record import DeviceNames, InvalidRecord, object_of, texts_of
from .store import path_of, read_lines

SCHEMA = 3
"""The second one has no speed of copies; in the first they go to and fro between two buffers."""
FASTEST_GB_S = 10_000
"""Faster copies are recorded as this fast."""


@dataclass(frozen=True, slots=True)
class ProcessorRecord:
    """What was measured of a processor.

    Streaming stores gain from ``stream_bytes`` moved on; ``copy_gb_s`` gigabytes a second are read
    and written by a copy outside the caches.
    """

    device: DeviceNames
    processor: str
    stream_bytes: int
    copy_gb_s: int
    date: str

    def added_to(self, traits: Traits) -> Traits:
        """The traits of the device, with what was measured of it."""
        return replace(traits, streamed_bytes=self.stream_bytes, copied_gb_s=self.copy_gb_s)

    @property
    def line(self) -> str:
        """The record as a line of JSON, without its end."""
        return json.dumps({
            "clformats_processor": SCHEMA,
            "date": self.date,
            **self.device._asdict(),
            "processor": self.processor,
            "stream_bytes": self.stream_bytes,
            "copy_gb_s": self.copy_gb_s,
        })  # fmt: skip

    @classmethod
    def parse(cls, line: str) -> ProcessorRecord:
        """The inverse of `line`. Raises `InvalidRecord`, also for a number that cannot be true."""
        found = object_of(line)
        nbytes, copied = found.get("stream_bytes"), found.get("copy_gb_s")
        if found.get("clformats_processor") != SCHEMA:
            raise InvalidRecord("no record of a processor, or of another version")
        if type(nbytes) is not int or not STREAMED_LEAST <= nbytes <= STREAMED_MOST:
            raise InvalidRecord(f"stream_bytes is {nbytes!r}, expected a number of bytes")
        if type(copied) is not int or not 1 <= copied <= FASTEST_GB_S:
            raise InvalidRecord(f"copy_gb_s is {copied!r}, expected a number of gigabytes a second")
        *names, name, date = texts_of(found, (*DeviceNames._fields, "processor", "date"))
        return cls(DeviceNames(*names), name, nbytes, copied, date)


def processors_file(device: DeviceNames, where: Path) -> Path:
    """The file of the records of a device's processors."""
    return path_of(device, where).with_suffix(".processors")


def find_processor(device: DeviceNames, where: Path) -> ProcessorRecord | None:
    """The newest record of this device, driver and processor; None where none can be read."""
    try:
        records, _ = read_lines(processors_file(device, where), ProcessorRecord.parse)
    except Error:
        return None
    here = device, processor()
    return next((r for r in reversed(records) if (r.device, r.processor) == here), None)
