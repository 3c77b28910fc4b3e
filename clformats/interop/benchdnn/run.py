"""Running a task: from a problem to its outcome, on the device that it asks for."""

from __future__ import annotations

import os
import zlib
from collections.abc import Iterator
from contextlib import contextmanager
from time import monotonic

from ...errors import DeviceError, InvalidAttr, InvalidDescriptor, InvalidFormat, Unsupported
from ...opencl import devices, opencl
from ...problems.computation import from_attr
from ...reorders.reorder import Reorder
from ...reorders.trial import BEHIND, FRONT, Case, moved
from ...runtime import Engine, Stream
from ...schedule import families, make_plan
from ...tensors.desc import MemoryDesc
from ...values.attr import Attr
from .check import compare, is_trusted
from .knobs import Filter
from .moves import BetweenEngines, DeviceMove, measured
from .outcome import (
    EXECUTED,
    FAILED,
    INITIALIZED,
    INVALID_ARGUMENTS,
    LISTED,
    MISTRUSTED,
    NO_MEMORY,
    PASSED,
    SKIPPED,
    SKIPPED_IMPL,
    SKIPPED_START,
    UNIMPLEMENTED,
    CaseOutcome,
)
from .parse import Common, Task

HOST_BYTES = 48
"""Bytes of host memory that checking takes for each element, beside the tensors themselves."""
HOST_SHARE = 0.75
_NO_ROOM = ("MEM_OBJECT_ALLOCATION_FAILURE", "OUT_OF_RESOURCES", "OUT_OF_HOST_MEMORY",
            "INVALID_BUFFER_SIZE")  # fmt: skip


class Runner:
    """Runs tasks; an engine and a stream for each device that they ask for are made once."""

    def __init__(self) -> None:
        self._streams: dict[tuple[str, str], Stream] = {}

    def stream(self, common: Common) -> Stream:
        """The stream of the device that is asked for. Raises `DeviceError`."""
        key = common.engine, common.device
        if key not in self._streams:
            self._streams[key] = Stream(engine_of(common), profiling=True)
        return self._streams[key]

    def outcome(self, task: Task, number: int) -> CaseOutcome:
        """What comes of the ``number``-th task. Raises `DeviceError` where there is no device."""
        outcome = CaseOutcome(LISTED)
        if number < task.common.start:
            outcome.status, outcome.reason = SKIPPED, SKIPPED_START
        if number < task.common.start or task.common.mode == "L":
            return outcome
        stream = self.stream(task.common)
        try:
            _run(task, stream, outcome)
        except Unsupported as error:
            outcome.status, outcome.reason, outcome.message = UNIMPLEMENTED, error.code, str(error)
        except (InvalidAttr, InvalidDescriptor, InvalidFormat) as error:
            outcome.status, outcome.reason = INVALID_ARGUMENTS, str(error)
        except MemoryError:
            outcome.status, outcome.reason = SKIPPED, NO_MEMORY
        except DeviceError as error:
            outcome.status, outcome.reason = FAILED, error.name or "DeviceError"
            outcome.message = str(error)
            if error.name in _NO_ROOM:
                outcome.status, outcome.reason = SKIPPED, NO_MEMORY
        return outcome


def engine_of(common: Common) -> Engine:
    """The device that ``--device`` or ``--engine`` names. Raises `DeviceError`."""
    if common.device or not common.engine:
        return Engine(common.device or None)
    kind, _, index = common.engine.partition(":")
    types = opencl().device_type
    wanted = types.GPU if kind == "gpu" else types.CPU
    found = [d for d in devices() if d.type & wanted]
    if int(index or 0) >= len(found):
        raise DeviceError(
            f"--engine={common.engine}: there are {len(found)} OpenCL devices of this kind; "
            f"`clformats doctor` lists all"
        )
    return Engine(device=found[int(index or 0)])


@contextmanager
def _timed(outcome: CaseOutcome, what: str) -> Iterator[None]:
    start = monotonic()
    try:
        yield
    finally:
        outcome.spent[what] = outcome.spent.get(what, 0.0) + monotonic() - start


# --- one task -------------------------------------------------------------------------------------


class _Prepared:
    """What is made before a run: the descriptors, the values of attributes, and the move itself."""

    def __init__(self, task: Task, engine: Engine) -> None:
        problem = task.problem
        self.src, self.dst = problem.descriptors()
        problem.check()
        self.attr, self.given = problem.attr()
        self.move: DeviceMove | BetweenEngines | None = None
        if task.common.mem_check and not fits(self.src, self.dst, engine):
            raise MemoryError
        if task.common.checks:
            self.src, self.dst = moved(self.src), moved(self.dst)
        way = problem.cross_engine
        if way != "none":
            self.implementation = self._between_engines(way, problem.impl, engine)
            return
        family, self.implementation = self._chosen(problem.impl, engine)
        if self.implementation:
            src, dst = problem.patterns()
            if not (src.has_runtime or dst.has_runtime):
                src, dst = self.src, self.dst
            self.move = DeviceMove(reorder_of(src, dst, engine, self.attr, family), self.given)

    def _between_engines(self, way: str, impl: Filter, engine: Engine) -> str:
        """Make the move; its name, which is empty if it may not run."""
        computation = from_attr(self.attr, self.src, self.dst)
        make_plan(self.src, self.dst, engine.traits, None, computation)  # raises what it refuses
        if not impl.accepts(BetweenEngines.NAME):
            return ""
        self.move = BetweenEngines(way, self.src, self.dst, self.attr, self.given)
        return BetweenEngines.NAME

    def _chosen(self, impl: Filter, engine: Engine) -> tuple[str | None, str]:
        """The family to ask for, None for the usual one, and its name; no name if none may run."""
        computation = from_attr(self.attr, self.src, self.dst)
        for family in (None, *(f.name for f in families(engine.traits))):
            try:
                plan = make_plan(self.src, self.dst, engine.traits, family, computation)
            except Unsupported as error:
                if error.code != "FAMILY":
                    raise
                continue
            name = f"ocl:{plan.family}"
            if impl.accepts(name):
                return family, name
        return None, ""


def reorder_of(
    src: MemoryDesc, dst: MemoryDesc, engine: Engine, attr: Attr, family: str | None
) -> Reorder:
    """The reorder, made ready."""
    return Reorder(src, dst, engine, attr=attr, family=family, wait=True)


def _run(task: Task, stream: Stream, outcome: CaseOutcome) -> None:
    """The steps of benchdnn's modes, as far as the task's goes."""
    common = task.common
    with _timed(outcome, "create"):
        made = _Prepared(task, stream.engine)
    outcome.create_ms = outcome.spent["create"] * 1e3
    outcome.implementation = made.implementation
    outcome.ibytes, outcome.obytes = made.src.nbytes, made.dst.nbytes
    if made.move is None:
        outcome.status, outcome.reason = SKIPPED, SKIPPED_IMPL
        return
    outcome.status = INITIALIZED
    if common.mode == "I":
        return
    with _timed(outcome, "fill"):
        case = Case(made.src, made.dst, made.attr, zlib.crc32(str(task.problem).encode()))
        move = made.move.filled(case, stream)
    with _timed(outcome, "execute"):
        move.once()
    outcome.status = EXECUTED
    if common.checks:
        with _timed(outcome, "compute_ref"):
            expected = case.expected(made.given)
        with _timed(outcome, "compare"):
            compare(move.read(), expected, made.dst, outcome)
        if outcome.status == PASSED and not is_trusted(case):
            outcome.status = MISTRUSTED
    if common.measures:
        outcome.times = measured(move.seconds, common)


def fits(src: MemoryDesc, dst: MemoryDesc, engine: Engine) -> bool:
    """Whether tensors, and what checking them takes, fit into the memory of device and host."""
    sizes = [max(d.nbytes, d.span_nbytes) + FRONT * d.dtype.nbytes + BEHIND for d in (src, dst)]
    device = engine.device
    if max(sizes) > device.max_mem_alloc_size or sum(sizes) > device.global_mem_size:
        return False
    if not hasattr(os, "sysconf"):
        return True  # a system that does not say
    memory = os.sysconf("SC_PHYS_PAGES") * os.sysconf("SC_PAGE_SIZE")
    return 4 * sum(sizes) + HOST_BYTES * src.nelems < HOST_SHARE * memory
