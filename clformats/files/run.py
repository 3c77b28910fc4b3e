"""Doing a job: write a file in which some tensors are others, and read it back before it counts."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ..errors import Error
from ..tensors.desc import MemoryDesc
from .common import Change, Container, Options, Tensor, Watch, shown
from .destination import destination
from .kinds import open_file


class Mismatch(Error):
    """What was read back is not what was to be written."""


@dataclass(frozen=True, slots=True)
class Summary:
    """What a job did: how the tensors lie that it moved, and why it did not move the others."""

    done: Mapping[str, MemoryDesc]
    untouched: Mapping[str, str]


@dataclass(frozen=True, slots=True)
class JobStep:
    """One tensor of a job: how it lies in the source and in the target, and what is written.

    ``expected`` computes the tensor's values from the source, ``found`` from the file written.
    """

    tensor: Tensor
    before: MemoryDesc
    after: MemoryDesc
    change: Change
    expected: Callable[[], NDArray[Any]]
    found: Callable[[Container], NDArray[Any]]


def run(
    file: Container,
    target: Path,
    steps: Mapping[str, JobStep],
    untouched: Mapping[str, str],
    options: Options,
) -> Summary:  # fmt: skip
    """Write ``target``, a copy of ``file`` with the steps' changes, and read it back.

    Raises `Error` where it cannot be written and `Mismatch` where it is not what it should be; then
    nothing has changed at ``target``.
    """
    if target.suffix != file.path.suffix:
        raise Error(
            f"got {shown(str(target))} for what comes from {shown(str(file.path))}: expected a "
            f"name that ends in {file.path.suffix}, kinds of files are not converted"
        )
    watch = options.watch
    with destination(
        target, file.inputs, companions=file.companions, force=options.force
    ) as written:
        watch.planned(sum(s.tensor.nbytes for s in steps.values()))
        file.write(written, {name: _watched(step, watch) for name, step in steps.items()})
        _check(file, written, steps, untouched, watch)
    for name, reason in untouched.items():
        watch.untouched(file.tensors[name], reason)
    return Summary({name: step.after for name, step in steps.items()}, untouched)


def _watched(step: JobStep, watch: Watch) -> Change:
    def make() -> NDArray[Any]:
        array = step.change.make()
        watch.moved(step.tensor, step.before, step.after)
        return array

    return replace(step.change, make=make)


def _check(
    file: Container,
    written: Path,
    steps: Mapping[str, JobStep],
    untouched: Iterable[str],
    watch: Watch,
) -> None:  # fmt: skip
    """Read the file that was written and compare each tensor. Raises `Mismatch`."""
    # A .npy file cannot say that its raw bytes are bf16; the job knows.
    raw = [s.change.dtype for s in steps.values() if s.change.dtype.numpy.isbuiltin != 1]
    result = open_file(written, raw[0] if raw and written.suffix == ".npy" else None)
    if result.tensors.keys() != file.tensors.keys():
        raise Mismatch(f"the file that was written has other tensors than {shown(str(file.path))}")
    for name in untouched:
        if not np.array_equal(file.raw(name), result.raw(name)):
            raise _mismatch(name)
    for name, step in steps.items():
        if not _equal(step.found(result), step.expected()):
            raise _mismatch(name)
        watch.checked(step.tensor)


def _equal(found: NDArray[Any], expected: NDArray[Any]) -> bool:
    """Whether the bits are the same; a NaN may be another NaN, as conversions have it."""
    if found.dtype != expected.dtype or found.shape != expected.shape:
        return False
    bits = np.dtype(f"u{found.dtype.itemsize}")
    a, b = np.ascontiguousarray(found).view(bits), np.ascontiguousarray(expected).view(bits)
    same = a == b
    if same.all():
        return True
    rest = ~same
    return bool((found[rest] != found[rest]).all() and (expected[rest] != expected[rest]).all())


def _mismatch(name: str) -> Mismatch:
    return Mismatch(
        f"tensor {shown(name)} read back from the file that was written is not what was written: "
        f"the target is as it was; check the disk, and --device if one was given"
    )
