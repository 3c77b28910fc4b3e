"""A plan made ready on an engine, and its place among the other commands on its memories."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import lru_cache
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from ..attr import OLD
from ..compare import overlap
from ..desc import MemoryDesc
from ..errors import DeviceError, InvalidAttr, InvalidDescriptor, Unsupported
from ..planner import Plan, Traits, make_plan, problem
from ..planner.anysize import fits
from ..planner.choices import RULES, Choices
from ..planner.computation import Computation, Operand
from ..runtime import Engine, Event, Memory, Stream
from ..runtime.image import check_pixels
from ..runtime.opencl import named_errors, opencl
from ..tuned import Device, Lookup, lookup
from . import launch
from .source import Launch

if TYPE_CHECKING:
    import pyopencl

Value = Memory | NDArray[Any]
"""What an operand or a scalar is given as: a memory object, or numbers on the host."""


class Use(NamedTuple):
    """A memory object that a command reads or writes, and what it was made for."""

    name: str
    memory: Memory
    desc: MemoryDesc


@dataclass(frozen=True, slots=True)
class Wish:
    """What is asked of a plan: a family, a transform, choices, or what the tuner's records say."""

    family: str | None = None
    transform: bool | None = None
    choices: Choices | None = None
    records: Lookup | None = None


def records_of(engine: Engine) -> Lookup | None:
    """The tuner's records of a device, where there are some that count."""
    return lookup(Device(*engine.names))


KEPT_PLANS = 512
"""How many plans are remembered, so that what is prepared again is neither planned nor rendered."""


def planned(
    src: MemoryDesc,
    dst: MemoryDesc,
    traits: Traits,
    computation: Computation | None,
    wish: Wish,
) -> tuple[Plan, Launch | None]:
    """The plan and its kernel, made once."""
    # Equal descriptors may name their formats differently, and a plan prints the names.
    names = (src.format.name, dst.format.name)
    return _planned(src, dst, traits, computation, wish, names)


@lru_cache(maxsize=KEPT_PLANS)
def _planned(
    src: MemoryDesc,
    dst: MemoryDesc,
    traits: Traits,
    computation: Computation | None,
    wish: Wish,
    names: tuple[str, str],
) -> tuple[Plan, Launch | None]:
    del names
    plan = _recorded(src, dst, traits, computation, wish) or make_plan(
        src, dst, traits, wish.family, computation,
        transform=wish.transform, choices=wish.choices or RULES,
    )  # fmt: skip
    return plan, launch(plan)


def _recorded(
    src: MemoryDesc,
    dst: MemoryDesc,
    traits: Traits,
    computation: Computation | None,
    wish: Wish,
) -> Plan | None:
    """The plan by the tuner's record; None where there is none, or the user has other wishes."""
    if wish.records is None or wish.choices or wish.family or computation:
        return None
    p = problem(src, dst, transform=wish.transform)
    found = wish.records.find(p) if dst.nelems else None
    if found is None:
        return None
    try:
        plan = make_plan(src, dst, traits, transform=wish.transform, choices=found[0])
    except Unsupported:  # a family that does not take the other shapes of its class
        return None
    return replace(plan, record=found[1])


class Ready:
    """A plan with its kernel built and its sizes set.

    ``values`` are those of its operands and scalars that are known already. Raises `Unsupported`
    and `DeviceError`.
    """

    def __init__(
        self,
        plan: Plan,
        launched: Launch | None,
        engine: Engine,
        values: Mapping[str, NDArray[Any]] | None = None,
    ) -> None:
        self.plan = plan
        self.engine = engine
        self.launch = launched
        self._kernel: pyopencl.Kernel | None = None
        self._others: list[tuple[int, str, Operand | None]] = []
        self._kept: dict[str, pyopencl.Buffer] = {}
        if not self.launch:
            return
        _check_fp64(plan, engine)
        for desc in (plan.problem.src, plan.problem.dst):
            if desc.format.image:
                check_pixels(engine, desc)
        self._kernel = engine.kernel(self.launch.source, Launch.KERNEL)
        index = np.int64 if self.launch.wide else np.int32
        for k, value in enumerate(self.launch.arguments, 2):
            self._kernel.set_arg(k, index(value))
        self._others = self._places(2 + len(self.launch.arguments))
        self._set(values or {})

    @property
    def source(self) -> str:
        """The OpenCL C that runs; empty where there is nothing to do."""
        return self.launch.source if self.launch else ""

    def _places(self, first: int) -> list[tuple[int, str, Operand | None]]:
        """(argument, name, operand or None for a scalar) of what the computation reads."""
        computation = self.plan.problem.computation
        if computation is None:
            return []
        operands = [(o.name, o) for o in computation.operands if o.name != OLD]
        named = [*operands, *((name, None) for name in computation.scalars)]
        return [(k, name, operand) for k, (name, operand) in enumerate(named, first)]

    def _set(self, values: Mapping[str, Value]) -> None:
        """Set the arguments that have a value now."""
        computation = self.plan.problem.computation
        if computation is None or self._kernel is None:
            return
        for k, name, operand in self._others:
            value = values.get(name)
            if value is None:
                continue
            if isinstance(value, Memory):
                self._kernel.set_arg(k, value.buffer)
            elif operand is None:
                self._kernel.set_arg(k, value[0])
            else:
                # A kernel does not keep its arguments alive before it is enqueued.
                self._kept[name] = self._uploaded(name, value)
                self._kernel.set_arg(k, self._kept[name])

    def _uploaded(self, name: str, values: NDArray[Any]) -> pyopencl.Buffer:
        """A buffer of its own: a call before may still read the one before."""
        cl = opencl()
        flags = cl.mem_flags.READ_ONLY | cl.mem_flags.COPY_HOST_PTR
        with named_errors(f"uploading {name} for", self.plan.problem.dst):
            return cl.Buffer(self.engine.context, flags, hostbuf=values)  # type: ignore[no-any-return]

    def enqueue(
        self,
        stream: Stream,
        src: Memory,
        dst: Memory,
        waits: list[pyopencl.Event],
        values: Mapping[str, Value] | None = None,
    ) -> pyopencl.Event:
        """Enqueue the kernel; the caller holds the lock that guards its arguments."""
        cl = opencl()
        if self.launch is None or self._kernel is None:
            return cl.enqueue_marker(stream.queue, wait_for=waits or None)  # type: ignore[no-any-return]
        self._kernel.set_arg(0, src.buffer)
        self._kernel.set_arg(1, dst.buffer)
        if values:
            self._set(values)
        sizes = (self.launch.global_size,), (self.launch.local_size,)
        return cl.enqueue_nd_range_kernel(  # type: ignore[no-any-return]
            stream.queue, self._kernel, *sizes, wait_for=waits or None
        )


def _check_fp64(plan: Plan, engine: Engine) -> None:
    p = plan.problem
    names = {t.name for t in (*p.dtypes, *(d.dtype for d in p.operand_descs))}
    computes = len(names) > 1 or p.computation is not None
    if "f64" in names and computes and not engine.traits.has_fp64:
        raise Unsupported("FP64", f"{engine.device.name} has no double precision to convert f64")


def in_order(
    engine: Engine,
    stream: Stream,
    reads: Sequence[Use],
    write: Use,
    start: Callable[[list[pyopencl.Event]], pyopencl.Event],
    about: object,
) -> Event:
    """Check the memories, and ``start`` a command after what it must wait for.

    Raises `InvalidDescriptor`, `MappedError` and `DeviceError`.
    """
    uses = (*reads, write)
    # Always in one order, so that no two threads wait for each other.
    usages = sorted({use.memory.usage for use in uses}, key=id)
    held = 0
    try:
        for usage in usages:
            usage.lock.acquire()
            held += 1
        for use in uses:
            _check(use)
        _check_places(engine, stream, reads, write)
        waits: list[pyopencl.Event] = []
        for use in uses:
            waits += use.memory.usage.to_wait_for(stream.order_key, writing=use is write)
        with named_errors("enqueueing", about):
            event = start(waits)
        for use in uses:
            use.memory.usage.used(stream.order_key, event, writing=use is write)
    finally:
        for usage in usages[:held]:
            usage.lock.release()
    return Event(event)


def _check(use: Use) -> None:
    name, memory, desc = use
    if memory.desc is not desc and not fits(memory.desc, desc):
        raise InvalidDescriptor(f"the {name} is {memory.desc}, the reorder was made for {desc}")
    memory.check_unmapped("reorder it")
    if memory.buffer is None and memory.nbytes:
        raise DeviceError(f"the {name} {memory!r} has no buffer: give it one by set_buffer()")


def _check_places(engine: Engine, stream: Stream, reads: Sequence[Use], write: Use) -> None:
    """All in one context; none that is read in the buffer that is written, but side by side."""
    if stream.queue.context != engine.context:
        raise DeviceError(
            "the stream belongs to another OpenCL context than the reorder: make both from one "
            "engine"
        )
    for _, memory, _ in (*reads, write):
        if memory.buffer is not None and memory.engine.context != engine.context:
            raise DeviceError(
                f"{memory!r} belongs to another OpenCL context than the reorder: make both from "
                f"one engine"
            )
    dst = write.memory
    for name, memory, _ in reads:
        same = memory.buffer is not None and memory.buffer == dst.buffer
        if same and overlap(memory.desc, dst.desc):
            raise InvalidDescriptor(
                f"{name} {memory.desc} and destination {dst.desc} share bytes of one buffer: a "
                f"reorder cannot work in place, give it another destination"
            )


def values_on_device(name: str, memory: Memory, count: int, dtype: object) -> None:
    """Check that a memory object holds the values of an attribute. Raises `InvalidAttr`."""
    desc = memory.desc
    dense = desc.has_layout and desc.span_nbytes == desc.nelems * desc.dtype.nbytes
    if desc.dtype != dtype or desc.nelems != count or desc.offset0 or not dense:
        raise InvalidAttr(
            f"got {desc} for {name}, expected {count} values of {dtype}, dense and from the start "
            f"of their buffer"
        )
