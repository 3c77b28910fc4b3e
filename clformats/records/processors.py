"""Records of processors: from how many bytes on streaming stores gain there, as it was measured.

They lie beside the tuner's other records, in a file of each device, a line of JSON for each
measurement. A folder may be shared by several machines, so each record names its processor; of one
processor and driver the newest counts.
"""

from __future__ import annotations

import json
from dataclasses import dataclass
from pathlib import Path

from ..errors import Error
from ..problems.thresholds import STREAMED_LEAST, STREAMED_MOST
from ..programs.processor import processor
from .record import DeviceNames, InvalidRecord, object_of, texts_of
from .store import path_of, read_lines

SCHEMA = 2
"""Numbers of the first one are of copies to and fro between two buffers."""


@dataclass(frozen=True, slots=True)
class ProcessorRecord:
    """What was measured of a processor: streaming stores gain from ``stream_bytes`` moved on."""

    device: DeviceNames
    processor: str
    stream_bytes: int
    date: str

    @property
    def line(self) -> str:
        """The record as a line of JSON, without its end."""
        return json.dumps({
            "clformats_processor": SCHEMA,
            "date": self.date,
            **self.device._asdict(),
            "processor": self.processor,
            "stream_bytes": self.stream_bytes,
        })  # fmt: skip

    @classmethod
    def parse(cls, line: str) -> ProcessorRecord:
        """The inverse of `line`. Raises `InvalidRecord`, also for a number that cannot be true."""
        found = object_of(line)
        nbytes = found.get("stream_bytes")
        if found.get("clformats_processor") != SCHEMA:
            raise InvalidRecord("no record of a processor, or of another version")
        if type(nbytes) is not int or not STREAMED_LEAST <= nbytes <= STREAMED_MOST:
            raise InvalidRecord(f"stream_bytes is {nbytes!r}, expected a number of bytes")
        *names, name, date = texts_of(found, (*DeviceNames._fields, "processor", "date"))
        return cls(DeviceNames(*names), name, nbytes, date)


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
