"""A plan with its kernel built on an engine, and the order of its calls among other commands."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from concurrent.futures import Future
from contextlib import suppress
from functools import partial
from typing import TYPE_CHECKING, Any

from numpy.typing import NDArray

from ..errors import InvalidArgument
from ..kernels import render
from ..kernels.source import Launch
from ..opencl import failure, named_errors, opencl
from ..problems.computation import Operand
from ..runtime import Engine, Event, Memory, Stream
from ..runtime.engine import SharedKernel
from ..runtime.external import commands_before, only_on
from ..runtime.order import LOCK, QueueOrder, Usage, end_of, enqueued
from ..runtime.scalar import Scalar
from ..runtime.storage import check_same_context
from ..runtime.twins import Twins
from ..schedule import Plan
from ..tensors.desc import MemoryDesc
from ..values.attr import OLD
from .building import BuiltPlan, Sizes
from .given import Use, check_apart, check_desc

if TYPE_CHECKING:
    import pyopencl

Value = Memory | NDArray[Any] | Scalar
"""The values of an operand or a scalar: a memory object, numbers on the host, or those that are
given when a recording runs."""
_AS_TWINS = 0
"""The kind of memory that kernels of pixels do not take, see `Memory.is_reached_as_twin`."""


class Ready(BuiltPlan):
    """A plan with its kernel built and its sizes set; ``values`` are those known already."""

    def __init__(
        self,
        plan: Plan,
        launched: Launch | None,
        engine: Engine,
        values: Mapping[str, NDArray[Any]] | None = None,
        *,
        wait: bool = True,
        may_change: bool = True,
    ) -> None:
        self._context = engine.context
        self.values = values
        # What the kernel reads after its own arguments: the name, and None for a scalar.
        self.others: list[tuple[str, Operand | None]] = []
        self._known: dict[int, Any] = {}
        # Where memory must begin for the plan as it was made; one in its place asks for no more.
        self.alignment = plan.alignment
        self._elsewhere: dict[int, Ready] = {}
        self._takes_pixels = plan.problem.has_image
        # Says in the kernel, which others share, whose values are set.
        self._mark = object()
        super().__init__(plan, launched, engine, wait=wait, may_change=may_change)
        self._twins = Twins(engine, plan.twinned, copied=plan.is_copied) if plan.has_twin else None
        if self.launch is not None and (computation := plan.problem.computation) is not None:
            self.others += [(o.name, o) for o in computation.operands if o.name != OLD]
            self.others += [(name, None) for name in computation.scalars]
            self._first_other = 2 + len(self.launch.arguments)
            self._known = self._as_arguments(values or {})

    @property
    def builds(self) -> list[Future[None]]:
        """What was to be built in the background, also for memory that begins elsewhere."""
        known = (self, *self._elsewhere.copy().values())
        return [ready.building for ready in known if ready.building is not None]

    def _for(self, kind: int, planned: Callable[[], Plan]) -> Ready:
        """The same for memory of another kind, by a plan that is made once.

        Of memory that begins only at multiples of so many bytes, or `_AS_TWINS`.
        """
        found = self._elsewhere.get(kind)
        if found is None:
            plan = planned()
            made = Ready(plan, render(plan), self.engine, self.values, wait=self._wait,
                         may_change=self._may_change)  # fmt: skip
            found = self._elsewhere.setdefault(kind, made)
        return found

    def _as_arguments(self, values: Mapping[str, Value]) -> dict[int, Any]:
        """The given values, as the kernel takes them, by the number of the argument."""
        found: dict[int, Any] = {}
        for k, (name, operand) in enumerate(self.others, self._first_other):
            value = values.get(name)
            if isinstance(value, Memory):
                found[k] = value.tracked_buffer
            elif isinstance(value, Scalar):
                raise InvalidArgument(
                    f"{name}: {value} is given when a recording runs, give a number here"
                )
            elif value is not None:
                found[k] = value[0] if operand is None else self._uploaded(name, value)
        return found

    def _uploaded(self, name: str, values: NDArray[Any]) -> pyopencl.Buffer:
        """A new buffer, because an earlier call may still read the old one."""
        cl = opencl()
        flags = cl.mem_flags.READ_ONLY | cl.mem_flags.COPY_HOST_PTR
        with named_errors(f"uploading {name} for", self.plan.problem.dst):
            return cl.Buffer(self.engine.context, flags, hostbuf=values)  # type: ignore[no-any-return]

    def move(
        self, stream: Stream, src: Memory, dst: Memory, descs: tuple[MemoryDesc, MemoryDesc],
        about: object,
    ) -> Event | None:  # fmt: skip
        """The fast path of `call` for two memory objects; None, and nothing done, if it must check.

        Most calls are of this kind, and enqueueing a kernel takes a few microseconds. So this makes
        no function calls where everything is in order, and if there is nothing to wait for it does
        the work of `_run` itself.
        """
        cl, context = opencl(), self._context
        order = stream.order or QueueOrder(stream.tracked_queue)
        with LOCK:
            shared, source, target = self._shared, src.usage, dst.usage
            if (
                (src.sound is not descs[0] or dst.sound is not descs[1] or source is target)
                or (src.context is not context or dst.context is not context)
                or (source.mapping is not None or target.mapping is not None)
                or (stream.context is not context or shared is None or self._then is not None)
            ):
                return None
            alone = source.only_order is order is target.only_order and self._twins is None
            if not alone or ((source.exposed or target.exposed) and not only_on(stream.order)):
                return self._run(stream, src, dst, [source], target, None, about)
            try:
                kernel = shared.kernel
                kernel.set_arg(0, src.tracked_buffer)
                kernel.set_arg(1, dst.tracked_buffer)
                if shared.mark is not self._mark and self.others:
                    self._set_others(shared, None)
                event = cl.enqueue_nd_range_kernel(
                    stream.tracked_queue, kernel, *self._sizes, None, None
                )
                source.readers[order] = target.writer = event
                target.order = order
                if target.readers:
                    target.readers = {}
            except cl.Error as error:
                if error.code == cl.status_code.INVALID_KERNEL_ARGS:
                    return None
                raise failure(f"enqueueing {about}", error) from error
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
        """Check the memory objects, and enqueue the kernel after the commands it must wait for.

        The last of ``uses`` is written, the first is the tensor that is moved; ``values`` apply to
        this call only. Raises `InvalidDescriptor`, `MappedError` and `DeviceError`.
        """
        src, dst, context = uses[0][1], uses[-1][1], self._context
        if self._takes_pixels and (src.is_reached_as_twin or dst.is_reached_as_twin):
            return self._for(_AS_TWINS, self.plan.by_buffers).call(stream, uses, values, about)
        begins = src.begins_at, dst.begins_at
        if begins[0] < self.alignment[0] or begins[1] < self.alignment[1]:
            least = min(begins)
            plan = partial(self.plan.beginning_at, least)
            return self._for(least, plan).call(stream, uses, values, about)
        if stream.context is not context:
            check_same_context("the stream", stream.context, "the reorder", context)
        reading: list[Usage] = []
        with LOCK:
            for use in uses:
                _, memory, desc = use
                usage = memory.usage
                if memory.sound is not desc or usage.mapping or memory.context is not context:
                    check_desc(use)
                    memory.check_use("reorder it", context, "the reorder", writes=use is uses[-1])
                reading.append(usage)
            target = reading.pop()
            if target in reading:
                check_apart(uses)
            return self._run(stream, src, dst, reading, target, values, about)

    def _run(
        self, stream: Stream, src: Memory, dst: Memory, reading: list[Usage], target: Usage,
        values: Mapping[str, Value] | None, about: object,
    ) -> Event:  # fmt: skip
        """Enqueue the kernels, with `LOCK` held and all checked; later commands wait for them."""
        if stream.recorder is not None:
            return stream.recorder.moved(self, src, dst, values)  # type: ignore[no-any-return]
        cl, shared, order = opencl(), self._shared, stream.order or QueueOrder(stream.tracked_queue)
        queue, context = stream.tracked_queue, self._context
        waits = commands_before(reading, [target], order, queue, context, in_order=stream.in_order)
        first: pyopencl.Event | None = None
        try:
            if shared is None:
                event = cl.enqueue_marker(queue, wait_for=waits or None)
            else:
                kernel = partial(shared.fitting, self._enqueued, self._sizes, stream, values)
                if self._twins:
                    first, event = self._twins.enqueue(stream, order, (src, dst), waits, kernel)
                else:
                    event = kernel((src.tracked_buffer, dst.tracked_buffer), waits)
                if then := self._then:
                    # Should the second be refused, later commands still wait for this one.
                    enqueued(reading, [target], order, event)
                    first = first or event
                    # It reads what lies in the destination: the source may be an image.
                    sides = dst.tracked_buffer, dst.tracked_buffer
                    event = then[0].fitting(self._enqueued, then[1], stream, None, sides, [event])
            enqueued(reading, [target], order, event)
        except cl.Error as error:
            raise failure(f"enqueueing {about}", error) from error
        except BaseException:
            _may_be_under_way(stream, reading, target, order)
            raise
        return Event(event, first)

    def _enqueued(
        self, shared: SharedKernel, sizes: Sizes, stream: Stream,
        values: Mapping[str, Value] | None, sides: tuple[Any, Any], waits: list[pyopencl.Event],
    ) -> pyopencl.Event:  # fmt: skip
        kernel = shared.kernel
        kernel.set_arg(0, sides[0])
        kernel.set_arg(1, sides[1])
        # A kernel does not keep them alive before it is enqueued; one that follows has none.
        reads_others = self.others and shared is self._shared
        _kept = self._set_others(shared, values) if reads_others else None
        return opencl().enqueue_nd_range_kernel(  # type: ignore[no-any-return]
            stream.tracked_queue, kernel, *sizes, None, waits or None
        )

    def _set_others(self, shared: SharedKernel, values: Mapping[str, Value] | None) -> object:
        """Set the operands and scalars, unless they are set already; returns what must be kept."""
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
    """After Control-C: the command may have been enqueued, so that later ones must wait for it."""
    with suppress(opencl().Error):
        enqueued(reading, [target], order, end_of(stream.tracked_queue, *reading, target))
