"""A plan made ready on an engine, and its place among the other commands on its memories."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, replace
from functools import lru_cache
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from ..errors import DeviceError, InvalidAttr, InvalidDescriptor, Unsupported
from ..kernels import launch
from ..kernels.source import Launch
from ..runtime import Engine, Event, Memory, Stream
from ..runtime.engine import SharedKernel
from ..runtime.image import check_pixels
from ..runtime.opencl import error_name, named_errors, opencl
from ..runtime.strangers import unknown_commands
from ..runtime.usage import LOCK, Order, Usage, enqueued, events_before, flush
from ..schedule import Plan, Traits, make_plan, problem
from ..schedule.anysize import fits
from ..schedule.choices import RULES, Choices
from ..schedule.compare import overlap
from ..schedule.computation import Computation, Operand
from ..tensors.desc import MemoryDesc
from ..tuning.records import Device, Lookup, lookup
from ..values.attr import OLD

if TYPE_CHECKING:
    import pyopencl

Value = Memory | NDArray[Any]
"""What an operand or a scalar is given as: a memory object, or numbers on the host."""


Use = tuple[str, Memory, MemoryDesc]
"""A memory object that a command reads or writes: its name there, and what it was made for."""


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
        self._context = engine.context
        self.launch = launched
        self._values = values
        self._shared: SharedKernel | None = None
        self._others: list[tuple[int, str, Operand | None]] = []
        self._known: dict[int, Any] = {}
        self._alignment = plan.alignment
        self._elsewhere: dict[int, Ready] = {}
        # Says in the kernel, which others share, whose values are set.
        self._mark = object()
        if launched is None:
            return
        _check_fp64(plan, engine)
        for desc in (plan.problem.src, plan.problem.dst):
            if desc.format.image:
                check_pixels(engine, desc)
        index = np.int64 if launched.wide else np.int32
        self._shared = engine.shared_kernel(
            launched.source, Launch.KERNEL, launched.arguments, index
        )
        self._global, self._local = (launched.global_size,), (launched.local_size,)
        if plan.problem.computation is not None:
            self._others = self._places(2 + len(launched.arguments))
            self._known = self._as_arguments(values or {})

    @property
    def source(self) -> str:
        """The OpenCL C that runs; empty where there is nothing to do."""
        return self.launch.source if self.launch else ""

    def _beginning_at(self, nbytes: int) -> Ready:
        """The same for memory that begins at multiples of so many bytes alone."""
        found = self._elsewhere.get(nbytes)
        if found is None:
            plan = self.plan.beginning_at(nbytes, self.engine.traits)
            made = Ready(plan, launch(plan), self.engine, self._values)
            found = self._elsewhere.setdefault(nbytes, made)
        return found

    def _places(self, first: int) -> list[tuple[int, str, Operand | None]]:
        """(argument, name, operand or None for a scalar) of what the computation reads."""
        computation = self.plan.problem.computation
        if computation is None:
            return []
        operands = [(o.name, o) for o in computation.operands if o.name != OLD]
        named = [*operands, *((name, None) for name in computation.scalars)]
        return [(k, name, operand) for k, (name, operand) in enumerate(named, first)]

    def _as_arguments(self, values: Mapping[str, Value]) -> dict[int, Any]:
        """What is given, as the kernel takes it, by the number of the argument."""
        found: dict[int, Any] = {}
        for k, name, operand in self._others:
            value = values.get(name)
            if isinstance(value, Memory):
                found[k] = value.tracked_buffer
            elif value is not None:
                found[k] = value[0] if operand is None else self._uploaded(name, value)
        return found

    def _uploaded(self, name: str, values: NDArray[Any]) -> pyopencl.Buffer:
        """A buffer of its own: a call before may still read the one before."""
        cl = opencl()
        flags = cl.mem_flags.READ_ONLY | cl.mem_flags.COPY_HOST_PTR
        with named_errors(f"uploading {name} for", self.plan.problem.dst):
            return cl.Buffer(self.engine.context, flags, hostbuf=values)  # type: ignore[no-any-return]

    def move(
        self, stream: Stream, src: Memory, dst: Memory, descs: tuple[MemoryDesc, MemoryDesc],
        about: object,
    ) -> Event | None:  # fmt: skip
        """`call` with two memories of ``descs`` alone; None, and nothing done, where it must check.

        Most calls are so, and a kernel is enqueued in a few microseconds: where all is as it should
        be that is seen without calling anything, and where there is nothing to wait for, what
        `_run` does is done here.
        """
        cl, context, shared = opencl(), self._context, self._shared
        order = stream.order or Order(stream.tracked_queue)
        with LOCK:
            source, target = src.usage, dst.usage
            if (
                (src.sound is not descs[0] or dst.sound is not descs[1] or source is target)
                or (src.context is not context or dst.context is not context)
                or (source.mapping is not None or target.mapping is not None)
                or (stream.context is not context or shared is None)
            ):
                return None
            if (source.alone is not order or target.alone is not order) or (
                source.taken or target.taken
            ):
                return Event(self._run(stream, src, dst, [source], target, None, about))
            try:
                kernel = shared.kernel
                kernel.set_arg(0, src.tracked_buffer)
                kernel.set_arg(1, dst.tracked_buffer)
                if shared.mark is not self._mark and self._others:
                    self._set_others(shared, None)
                event = cl.enqueue_nd_range_kernel(
                    stream.tracked_queue, kernel, self._global, self._local, None, None
                )
                source.readers[order] = target.writer = event
                target.order = order
                if target.readers:
                    target.readers = {}
            except cl.Error as error:
                raise _refused([source, target], error, about) from error
            except BaseException:
                _may_be_under_way(stream, [source], target, order)
                raise
        return Event(event)

    def call(
        self,
        stream: Stream,
        uses: Sequence[Use],
        values: Mapping[str, Value] | None,
        about: object,
    ) -> Event:
        """Check the memories, and enqueue the kernel after what it must wait for.

        The last of ``uses`` is written, the first is the tensor that is moved; ``values`` are given
        at this call alone. Raises `InvalidDescriptor`, `MappedError` and `DeviceError`.
        """
        src, dst, context = uses[0][1], uses[-1][1], self._context
        begins = src.begins_at, dst.begins_at
        if begins[0] < self._alignment[0] or begins[1] < self._alignment[1]:
            return self._beginning_at(min(begins)).call(stream, uses, values, about)
        if stream.context is not context:
            _check_stream(stream, context)
        reading: list[Usage] = []
        with LOCK:
            for use in uses:
                _, memory, desc = use
                usage = memory.usage
                if memory.sound is not desc or usage.mapping or memory.context is not context:
                    _check(use, context, writes=use is uses[-1])
                reading.append(usage)
            target = reading.pop()
            if target in reading:
                _check_apart(uses)
            return Event(self._run(stream, src, dst, reading, target, values, about))

    def _run(
        self, stream: Stream, src: Memory, dst: Memory, reading: list[Usage], target: Usage,
        values: Mapping[str, Value] | None, about: object,
    ) -> pyopencl.Event:  # fmt: skip
        """Enqueue the kernel, `LOCK` held and all checked, and let others wait for it."""
        cl, shared, order = opencl(), self._shared, stream.order or Order(stream.tracked_queue)
        waits = events_before(reading, target, order)
        waits += unknown_commands(
            (*reading, target), self._context, stream.tracked_queue, in_order=stream.in_order
        )
        try:
            if waits:
                flush(waits)
            if shared is None:
                event = cl.enqueue_marker(stream.tracked_queue, wait_for=waits or None)
            else:
                kernel = shared.kernel
                kernel.set_arg(0, src.tracked_buffer)
                kernel.set_arg(1, dst.tracked_buffer)
                # A kernel does not keep its arguments alive before it is enqueued.
                _kept = self._set_others(shared, values) if self._others else None
                event = cl.enqueue_nd_range_kernel(
                    stream.tracked_queue, kernel, self._global, self._local, None, waits or None
                )
            enqueued(reading, target, order, event)
        except cl.Error as error:
            raise _refused([*reading, target], error, about) from error
        except BaseException:
            _may_be_under_way(stream, reading, target, order)
            raise
        return event  # type: ignore[no-any-return]

    def _set_others(self, shared: SharedKernel, values: Mapping[str, Value] | None) -> object:
        """Set the operands and scalars, unless they are set already; what must be kept now."""
        if values or shared.mark is not self._mark:
            shared.mark = None
            given = self._as_arguments(values) if values else {}
            for k, value in (self._known | given).items():
                shared.kernel.set_arg(k, value)
            shared.mark = self._mark
            return given
        return None


def _may_be_under_way(
    stream: Stream, reading: Sequence[Usage], target: Usage, order: object
) -> None:
    """Control-C came: the command may have been enqueued, and those after it must wait for it."""
    with suppress(opencl().Error):
        enqueued(reading, target, order, opencl().enqueue_marker(stream.tracked_queue))


def _check_fp64(plan: Plan, engine: Engine) -> None:
    p = plan.problem
    names = {t.name for t in (*p.dtypes, *(d.dtype for d in p.operand_descs))}
    computes = len(names) > 1 or p.computation is not None
    if "f64" in names and computes and not engine.traits.has_fp64:
        raise Unsupported("FP64", f"{engine.device.name} has no double precision to convert f64")


def _check(use: Use, context: object, *, writes: bool) -> None:
    name, memory, _ = use
    check_desc(use)
    if memory.usage.mapping is not None:
        memory.check_unmapped("reorder it")
    if memory.tracked_buffer is None:
        if memory.nbytes:
            raise DeviceError(f"the {name} {memory!r} has no buffer: give it one by set_buffer()")
    elif memory.context != context:
        raise DeviceError(
            f"{memory!r} belongs to another OpenCL context than the reorder: make both from one "
            f"engine"
        )
    if writes:
        memory.check_writable()


def check_desc(use: Use) -> None:
    """Raise `InvalidDescriptor` where a memory object is not of the descriptor it must have."""
    name, memory, desc = use
    if memory.desc is not desc and not fits(memory.desc, desc):
        raise InvalidDescriptor(f"the {name} is {memory.desc}, the reorder was made for {desc}")


def _check_stream(stream: Stream, context: object) -> None:
    if stream.context != context:
        raise DeviceError(
            "the stream belongs to another OpenCL context than the reorder: make both from one "
            "engine"
        )


def _check_apart(uses: Sequence[Use]) -> None:
    """What is read in the buffer that is written, the last, lies beside what is written."""
    dst = uses[-1][1]
    for name, memory, _ in uses[:-1]:
        shared = memory.usage is dst.usage and memory.tracked_buffer is not None
        if shared and overlap(memory.desc, dst.desc):
            raise InvalidDescriptor(
                f"{name} {memory.desc} and destination {dst.desc} share bytes of one buffer: a "
                f"reorder cannot work in place, give it another destination"
            )


def _refused(usages: Sequence[Usage], error: Exception, about: object) -> DeviceError:
    """An error of OpenCL's while enqueueing, told; later commands do not wait for failed ones."""
    for usage in usages:
        usage.forget_failed()
    name = error_name(error)
    return DeviceError(f"enqueueing {about} failed: {name} ({error})", name=name)


def values_on_device(name: str, memory: Memory, count: int, dtype: object) -> None:
    """Check that a memory object holds the values of an attribute. Raises `InvalidAttr`."""
    desc = memory.desc
    dense = desc.has_layout and desc.span_nbytes == desc.nelems * desc.dtype.nbytes
    if desc.dtype != dtype or desc.nelems != count or desc.offset0 or not dense:
        raise InvalidAttr(
            f"got {desc} for {name}, expected {count} values of {dtype}, dense and from the start "
            f"of their buffer"
        )
