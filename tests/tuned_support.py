"""Records of the tuner to test with."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import clformats as cf
from clformats.problems.refine import problem
from clformats.problems.traits import DEFAULT
from clformats.records import DeviceNames, TuningRecord
from clformats.records.record import keys_of, now
from clformats.reorders.planning import kernel_digest
from clformats.schedule import Request, Traits

DEVICE = DeviceNames("cpu-of-a-test", "Portable", "3.1, OpenCL 3.0")
D = cf.MemoryDesc
SRC, DST = D((2, 37, 11, 19), "f32", "bfyx"), D((2, 37, 11, 19), "f32", "byxf")


def ahead(lead: int) -> cf.Choices:
    """Choices that differ from each other, and fit every reorder of three loops such as ours."""
    return cf.Choices(schedule=f"tile b16 c16 of 8 | a* c b | ahead {lead} | ordinary")


def record_of(
    src: cf.MemoryDesc = SRC,
    dst: cf.MemoryDesc = DST,
    choices: cf.Choices | None = None,
    device: DeviceNames = DEVICE,
    traits: Traits = DEFAULT,
    **changes: Any,
) -> TuningRecord:
    """A record that counts: half the time of the rules."""
    choices = choices or ahead(8)
    exact, shape = keys_of(problem(src, dst))
    key = exact if choices.baked else shape
    try:
        digest = kernel_digest(Request(src, dst, traits, choices=choices))
    except cf.Unsupported:
        digest = "none"
    record = TuningRecord(device, digest, key, str(src), str(dst), choices,
                    (2e-3, 2.5e-3, 2.1e-3), (1e-3, 1.2e-3, 1.1e-3), now())  # fmt: skip
    return replace(record, **changes)
