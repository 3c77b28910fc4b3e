"""`Stream`: the order in which commands run."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import partial
from typing import TYPE_CHECKING, Any
from weakref import finalize

import numpy as np

from ..errors import (
    DeviceError,
    InvalidArgument,
    InvalidDescriptor,
    Unsupported,
    expect,
    expect_int,
    shown,
)
from ..opencl import OnDevice, error_name, failure, named_errors, opencl
from . import storage
from .arguments import check_no_pointer, check_reads, check_run_sizes, set_arguments
from .engine import FIRST_NUMBER, Engine, SharedKernel, default_engine
from .event import Event
from .external import commands_before, handed_out, only_on
from .order import (
    FAILED,
    LOCK,
    QueueOrder,
    Usage,
    enqueued,
    error_of,
    finish,
    order_of,
    usage_of,
)
from .tracked import Tracked

if TYPE_CHECKING:
    import pyopencl


class Stream(OnDevice):
    """A queue of commands on an engine.

    In order by default. ``out_of_order=True`` lets the device run commands as their dependencies
    allow, which memory objects keep track of; dropping such a stream waits for its commands.
    ``profiling=True`` makes events measure their times. ``Stream(queue=...)`` takes a pyopencl
    queue of yours. Several threads may use one stream: their commands never mix.
    """

    _travels_as = "make another by Stream(engine) there"
    recorder: Any = None
    """What takes reorders instead of the queue, by ``moved``: a recording."""

    def __init__(
        self,
        engine: Engine | None = None,
        *,
        out_of_order: bool = False,
        profiling: bool = False,
        queue: pyopencl.CommandQueue | None = None,
    ) -> None:
        cl = opencl()
        expect(engine, Engine | None, "engine")
        expect(out_of_order, bool, "out_of_order")
        expect(profiling, bool, "profiling")
        expect(queue, cl.CommandQueue | None, "queue")
        if queue is not None:
            _check_queue(queue, engine, asked=out_of_order or profiling)
            if engine is None or queue is not engine.tracked_queue:
                handed_out(queue)
        else:
            engine = engine or default_engine()
            properties = 0
            if out_of_order:
                properties |= cl.command_queue_properties.OUT_OF_ORDER_EXEC_MODE_ENABLE
            if profiling:
                properties |= cl.command_queue_properties.PROFILING_ENABLE
            with named_errors("making a stream"):
                queue = cl.CommandQueue(engine.context, engine.device, properties)
            if out_of_order:
                # Where it goes earlier, Intel's runtime now and then never ends other queues'.
                finalize(self, finish, queue).atexit = False
        self.tracked_queue: pyopencl.CommandQueue = queue
        self.engine = engine or Engine(context=queue.context, device=queue.device)
        self.context: pyopencl.Context = self.engine.context
        self.order: QueueOrder | None = order_of(queue)
        self.in_order = self.order is not None

    @property
    def queue(self) -> pyopencl.CommandQueue:
        """The pyopencl queue, for commands of your own.

        `run` is the better way, or `Memory.written_by` and `Memory.read_by`: the library then knows
        what must wait for what. Otherwise a memory object whose ``buffer`` you have
        taken waits for all that is on the queues which it handed out.
        """
        return handed_out(self.tracked_queue)  # type: ignore[no-any-return]

    def run(
        self,
        kernel: pyopencl.Kernel,
        global_size: Sequence[int],
        local_size: Sequence[int] | None,
        *args: Any,
        reads: Sequence[Tracked | pyopencl.MemoryObject] = (),
    ) -> Event:
        """Enqueue a kernel of yours; `Memory` arguments wait for each other as in reorders.

        ``global_size`` and ``local_size`` (or None) count work-items; other arguments are as
        pyopencl takes them. Every memory object counts as written, but those that ``reads`` names
        again: they may be read by others at the same time. So do images and buffers of pyopencl's,
        which you may use in commands of your own as well, see `queue`. On a `Recording`, numbers
        are numpy's (``np.float32(3)``) or `Recording.scalar`. Raises `InvalidArgument`,
        `MappedError` and `DeviceError`; on a recording also `Unsupported` (code RECORDING) where
        the kernel's source is not known or other files are part of it: `Engine.kernel` knows it.

            kernel = engine.kernel("kernel void f(global float *p) { *p = 2; }", "f")
            stream.run(kernel, (memory.desc.nelems,), None, memory)
            memory.numpy()  # waits for it
        """
        check_run_sizes(global_size, local_size)
        expect(kernel, opencl().Kernel, "kernel")
        check_reads(args, reads)
        return self._ran(kernel, global_size, local_size, args, reads)

    def fill(self, memory: Tracked, value: int = 0) -> Event:
        """Enqueue the filling of a memory object, padding included, with a byte.

        Every byte that `Memory.map` gives is written: those of a region, or the whole buffer.
        Raises `InvalidArgument` for a value beyond 0 to 255, `Unsupported` (code FILL) for images
        and shared virtual memory, `InvalidDescriptor` for a region with bytes of others in between,
        `MappedError` and `DeviceError`.

            stream.fill(memory)  # zeros
        """
        return self._filled(memory, value, _check_fill(memory, value))

    def __enter__(self) -> Stream:  # noqa: PYI034  # Self is of Python 3.11
        return self

    def __exit__(self, *_: object) -> None:
        self.wait()

    def wait(self) -> None:
        """Wait until everything enqueued so far is done. Raises `DeviceError`."""
        with named_errors("waiting for a stream"):
            self.tracked_queue.finish()

    def after(self, *events: Event | pyopencl.Event) -> None:
        """Let all later commands of this stream wait for ``events``, of any stream.

        Commands on memory objects wait for each other by themselves: this is for others, such as
        commands that you enqueue yourself. The host does not wait. Raises `DeviceError` for an
        event of another OpenCL context, and for one that has failed.
        """
        cl = opencl()
        for event in events:
            if not isinstance(event, Event | cl.Event):
                raise InvalidArgument(
                    f"event: got {shown(event)}, expected an Event of clformats or pyopencl"
                )
        found = [e.event if isinstance(e, Event) else e for e in events]
        if error := next(filter(None, map(error_of, found)), None):
            raise DeviceError(f"a command to wait for has failed: {error}", name=FAILED)
        if found:
            with named_errors("ordering a stream"):
                cl.enqueue_barrier(self.tracked_queue, wait_for=found)

    def __repr__(self) -> str:
        return f"Stream({self.engine!r}, out_of_order={not self.in_order})"

    # --- kernels and fills ------------------------------------------------------------------------

    def _ran(
        self,
        kernel: pyopencl.Kernel,
        global_size: Sequence[int],
        local_size: Sequence[int] | None,
        args: Sequence[Any],
        reads: Sequence[Any],
    ) -> Event:
        """See `run`."""
        launch = partial(self._with_arguments, kernel, args, global_size, local_size)
        return self._in_order(args, reads, launch)

    def run_shared(
        self,
        shared: SharedKernel,
        sizes: tuple[Sequence[int], Sequence[int] | None],
        args: Sequence[Tracked],
        numbers: Sequence[bytes],
        reads: Sequence[Tracked],
    ) -> Event:
        """Enqueue a kernel of the library's as `run` does: its ``numbers`` are set already.

        They stand after the first two of ``args``, which are all memory objects.
        """
        return self._in_order(args, reads, partial(self._with_buffers, shared, len(numbers), sizes))

    def _in_order(
        self,
        args: Sequence[Any],
        reads: Sequence[Any],
        launch: Callable[[list[Any], list[pyopencl.Event] | None], pyopencl.Event],
    ) -> Event:
        """Enqueue a kernel after the commands that it must wait for: ``launch(given, waits)``."""
        order = self.order or QueueOrder(self.tracked_queue)
        with LOCK:
            given, writing, reading, alone = self._uses(order, args, reads)
            if alone:
                event = launch(given, None)
            else:
                reading = [usage for usage in reading if usage not in writing]
                waits = self._waits(order, reading, writing)
                event = self._with_images(args, reads, waits, partial(launch, given))
            enqueued(reading, writing, order, event)
        return Event(event)

    def _uses(
        self, order: object, args: Sequence[Any], reads: Sequence[Any]
    ) -> tuple[list[Any], list[Usage], list[Usage], bool]:
        """The arguments as OpenCL takes them, what is written and read, checked.

        And whether all commands on these buffers are in this order: then there are none to wait
        for.
        """
        given: list[Any] = []
        writing: list[Usage] = []
        reading: list[Usage] = []
        alone = True
        for k, a in enumerate(args, 1):
            is_read = False
            for memory in reads:
                is_read = is_read or memory is a
            if not isinstance(a, Tracked):
                check_no_pointer(k, a)
                given.append(a)
                if isinstance(a, opencl().MemoryObject):  # users may use theirs elsewhere, too
                    usage = usage_of(a)
                    usage.exposed = True
                    alone = alone and usage.only_order is order and only_on(self.order)
                    (reading if is_read else writing).append(usage)
                continue
            usage = a.usage
            if usage.mapping is not None or a.context is not self.context or a.sound is None:
                wish = "run a kernel on it"
                a.check_use(wish, self.context, "the stream", writes=not is_read)
                if a.lent is not None:  # one kernel at a time has the image
                    writing.append(usage)
                    given.append(a.lent.image)
                    alone = False
                    continue
            (reading if is_read else writing).append(usage)
            alone = alone and usage.only_order is order
            alone = alone and (not usage.exposed or only_on(self.order))
            given.append(a.tracked_buffer)
        return given, writing, reading, alone

    def _with_images(
        self, args: Sequence[Any], reads: Sequence[Any], waits: list[pyopencl.Event],
        enqueue: Callable[[list[pyopencl.Event]], pyopencl.Event],
    ) -> pyopencl.Event:  # fmt: skip
        """Enqueue a kernel between the copies to the images that it is lent and those back."""
        queue = self.tracked_queue
        lent = [(a, a.lent) for a in args if isinstance(a, Tracked) and a.lent]
        for _, image in lent:
            waits = image.fill(queue, waits)
        event = enqueue(waits)
        for a, image in lent:
            if not any(a is memory for memory in reads):
                event = image.bring_back(queue, event)
        return event

    def _waits(
        self, order: object, reading: Sequence[Usage], writing: Sequence[Usage]
    ) -> list[pyopencl.Event]:
        once = [*dict.fromkeys(reading)], [*dict.fromkeys(writing)]
        queue, context = self.tracked_queue, self.context
        return commands_before(*once, order, queue, context, in_order=self.in_order)

    def _with_arguments(
        self,
        kernel: Any,
        args: Sequence[Any],
        global_size: Sequence[int],
        local_size: Sequence[int] | None,
        given: list[Any],
        waits: list[pyopencl.Event] | None,
    ) -> pyopencl.Event:
        """Enqueue a kernel with all of its arguments, after these events."""
        cl = opencl()
        set_arguments(kernel, given, args)
        try:
            return cl.enqueue_nd_range_kernel(  # type: ignore[no-any-return]
                self.tracked_queue, kernel, tuple(global_size),
                None if local_size is None else tuple(local_size), None, waits or None,
            )  # fmt: skip
        except cl.Error as error:
            name, advice = error_name(error), ""
            if "WORK_GROUP_SIZE" in name or "WORK_ITEM_SIZE" in name:
                advice = f"; global_size is {tuple(global_size)}, local_size {local_size}"
                advice += ": None leaves the choice to the device" * (local_size is not None)
            raise failure(f"enqueueing {kernel.function_name}", error, advice) from error

    def _with_buffers(
        self, shared: SharedKernel, numbers: int,
        sizes: tuple[Sequence[int], Sequence[int] | None],
        given: list[Any], waits: list[pyopencl.Event] | None,
    ) -> pyopencl.Event:  # fmt: skip
        """Enqueue a kernel with its buffers, before and after so many numbers."""
        cl = opencl()

        def enqueue(one: SharedKernel) -> pyopencl.Event:
            for k, buffer in enumerate(given):
                one.kernel.set_arg(k if k < FIRST_NUMBER else k + numbers, buffer)
            return cl.enqueue_nd_range_kernel(  # type: ignore[no-any-return]
                self.tracked_queue, one.kernel, *sizes, None, waits or None
            )

        try:
            return shared.fitting(enqueue)
        except cl.Error as error:
            raise failure(f"enqueueing {shared.kernel.function_name}", error) from error

    def _filled(self, memory: Tracked, value: int, where: slice) -> Event:
        """See `fill`."""
        cl, order = opencl(), self.order or QueueOrder(self.tracked_queue)
        with LOCK, named_errors("filling", memory):
            memory.check_use("fill it", self.context, "the stream", writes=True)
            if where.start == where.stop:
                return Event(cl.enqueue_marker(self.tracked_queue))
            waits = self._waits(order, [], [memory.usage])
            event = cl.enqueue_fill_buffer(
                self.tracked_queue, memory.tracked_buffer, np.uint8(value), where.start,
                where.stop - where.start, wait_for=waits or None,
            )  # fmt: skip
            enqueued([], [memory.usage], order, event)
        return Event(event)


def _check_fill(memory: object, value: object) -> slice:
    """The bytes of a buffer that `Stream.fill` writes. Raises as it does."""
    if not isinstance(memory, Tracked):
        raise InvalidArgument(f"memory: got {shown(memory)}, expected Memory")
    if not 0 <= expect_int(value, "value") <= 255:
        raise InvalidArgument(f"value: got {value}, expected a byte, 0 to 255")
    desc = memory.desc
    if desc.format.image or (memory.tracked_buffer and storage.is_svm(memory.tracked_buffer)):
        raise Unsupported(
            "FILL", f"{memory!r} is no buffer of OpenCL's: map it, and fill the array"
        )
    if not memory.is_dense:
        raise InvalidDescriptor(
            f"{memory!r} is a region with bytes of others in between: fill the whole tensor, or "
            f"reorder zeros into the region"
        )
    return memory.mapped_bytes


def _check_queue(queue: pyopencl.CommandQueue, engine: Engine | None, *, asked: bool) -> None:
    if asked:
        raise DeviceError(
            "got a queue together with out_of_order or profiling: make the queue with these "
            "properties"
        )
    if engine is not None:
        storage.check_same_context("the queue", queue.context, "the engine", engine.context)
