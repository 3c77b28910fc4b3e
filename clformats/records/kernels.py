"""Records of kernels of your own: which parameters were the fastest, by device and shapes.

A tuner measures; a program looks up. `KernelRecords` keeps what any tuner has found beside the
records of reorders, in the same folder, with the same locks: one file for each device, a line of
JSON for each record, of which the newest counts.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from statistics import median
from typing import Any, Protocol

from ..errors import Error, InvalidArgument, expect, shown
from ..tensors.desc import MemoryDesc
from ..tensors.given import as_desc
from .key import rounded
from .record import DeviceNames, InvalidRecord, TuningRecord, now, object_of, texts_of, times_of
from .store import add, folder, path_of, read_lines, wanted_folder

SCHEMA = 1
SUFFIX = ".kernels"
"""The end of the files' names."""


class NamedEngine(Protocol):
    """What is asked of a `clformats.Engine`: records need no OpenCL."""

    @property
    def names(self) -> tuple[str, str, str]:
        """The device, its platform, and the version of its driver."""
        ...


@dataclass(frozen=True)
class KernelRecord:
    """The result of tuning a kernel: its ``parameters``, and the times with them, in seconds.

    ``tensors`` are the descriptors that it was measured with, as texts.
    """

    device: DeviceNames
    kernel: str
    tensors: tuple[str, ...]
    parameters: Mapping[str, Any]
    seconds: tuple[float, ...]
    date: str

    @property
    def key(self) -> tuple[str, ...]:
        """What records have in common of which only the newest counts."""
        return self.kernel, *self.tensors

    @property
    def shape_class(self) -> str:
        """Types, formats, and sizes within a factor of two, exact up to 16."""
        return " ".join(_class_of(MemoryDesc.parse(text)) for text in self.tensors)

    @property
    def line(self) -> str:
        """The record as a line of JSON, without its end."""
        return json.dumps({
            "clformats_kernel": SCHEMA,
            "date": self.date,
            **self.device._asdict(),
            "kernel": self.kernel,
            "tensors": self.tensors,
            "parameters": self.parameters,
            "seconds": [float(f"{t:.4g}") for t in self.seconds],
        })  # fmt: skip

    @classmethod
    def parse(cls, line: str) -> KernelRecord:
        """The inverse of `line`. Raises `InvalidRecord`."""
        found = object_of(line)
        if found.get("clformats_kernel") != SCHEMA:
            raise InvalidRecord("no record of a kernel, or of another version")
        tensors, parameters = found.get("tensors"), found.get("parameters")
        if not isinstance(tensors, list) or not isinstance(parameters, dict) or not tensors:
            raise InvalidRecord("expected a list of tensors and an object of parameters")
        try:
            names = tuple(str(MemoryDesc.parse(text)) for text in tensors)
        except (Error, TypeError, AttributeError) as error:
            raise InvalidRecord(f"a tensor cannot be read: {error}") from error
        return cls(
            DeviceNames(*texts_of(found, DeviceNames._fields)),
            texts_of(found, ("kernel",))[0],
            names,
            parameters,
            times_of(found.get("seconds")),
            texts_of(found, ("date",))[0],
        )

    def __str__(self) -> str:
        values = ", ".join(f"{k}={v}" for k, v in self.parameters.items())
        sizes = " ".join(self.tensors)
        return f"{self.kernel} {sizes}: {values}, {1e6 * median(self.seconds):.4g} us"


class KernelRecords:
    """The records of one kernel of yours, by its name.

    >>> records = KernelRecords("conv3x3")  # doctest: +SKIP
    >>> records.add(engine, [src, weights, dst], {"TILE": 8}, [1.1e-4, 1.2e-4])  # doctest: +SKIP
    >>> records.find(engine, [src, weights, dst]).parameters  # doctest: +SKIP
    {'TILE': 8}

    They lie in the tuner's folder (``CLFORMATS_TUNED``), and ``clformats tune merge`` adds those of
    other machines. Raises `InvalidArgument` for a name that is no text.
    """

    def __init__(self, kernel: str) -> None:
        expect(kernel, str, "kernel")
        if not kernel.strip():
            raise InvalidArgument("kernel: got an empty text, expected the name of a kernel")
        self.kernel = kernel

    def add(
        self,
        engine: NamedEngine,
        tensors: Iterable[MemoryDesc | str],
        parameters: Mapping[str, Any],
        seconds: float | Sequence[float],
    ) -> KernelRecord:
        """Keep the parameters that were found for tensors of these descriptors.

        ``seconds`` has the times of single runs with them, or one time. The newest record of the
        same descriptors counts. Raises `InvalidArgument` for parameters that JSON cannot hold, and
        `Error` where nothing can be written.
        """
        expect(parameters, Mapping, "parameters")
        names = _texts(tensors)
        times = [seconds] if isinstance(seconds, int | float) else [*seconds]
        try:
            times_of([float(t) for t in times])
            plain = json.loads(json.dumps(dict(parameters)))
        except (InvalidRecord, TypeError, ValueError) as error:
            raise InvalidArgument(
                f"got parameters {shown(parameters)} and seconds {shown(seconds)}, expected what "
                f"JSON can hold, and positive numbers: {error}"
            ) from None
        device = DeviceNames(*engine.names)
        record = KernelRecord(
            device, self.kernel, names, plain, tuple(float(t) for t in times), now()
        )
        add(file_of(device, wanted_folder()), record)
        return record

    def find(self, engine: NamedEngine, tensors: Iterable[MemoryDesc | str]) -> KernelRecord | None:
        """The record of these descriptors, else the newest of their shape class; None if neither.

        Only records of this device and of this version of its driver count.
        """
        names = _texts(tensors)
        wanted = " ".join(_class_of(MemoryDesc.parse(text)) for text in names)
        found = self.all(engine)
        exact = [r for r in found if r.tensors == names]
        alike = [r for r in found if r.shape_class == wanted]
        best = exact or alike
        return best[-1] if best else None

    def all(self, engine: NamedEngine) -> list[KernelRecord]:
        """The records of this kernel on a device, oldest first."""
        where = folder()
        if where is None:
            return []
        device = DeviceNames(*engine.names)
        found, _ = read_lines(file_of(device, where), KernelRecord.parse)
        return [r for r in found if r.kernel == self.kernel and r.device == device]


def file_of(device: DeviceNames, where: Path) -> Path:
    """The file of a device's records of kernels."""
    return path_of(device, where).with_suffix(SUFFIX)


def _texts(tensors: Iterable[MemoryDesc | str]) -> tuple[str, ...]:
    if isinstance(tensors, MemoryDesc | str):
        tensors = [tensors]
    found = tuple(str(as_desc(t, f"tensor {k}")) for k, t in enumerate(tensors))
    if not found:
        raise InvalidArgument("tensors: got none, expected at least one descriptor")
    return found


def _class_of(desc: MemoryDesc) -> str:
    return f"{desc.dtype}:{desc.format}:{'x'.join(map(rounded, desc.dims))}"


def parse_any(line: str) -> TuningRecord | KernelRecord:
    """The record of a reorder or of a kernel. Raises `InvalidRecord`."""
    return KernelRecord.parse(line) if '"clformats_kernel"' in line else TuningRecord.parse(line)
