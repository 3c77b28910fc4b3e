"""`Stream`: the order in which commands run."""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import suppress
from typing import TYPE_CHECKING, Any
from weakref import finalize

from ..errors import DeviceError, InvalidArgument, expect, shown
from ..opencl import OnDevice, named_errors, opencl
from . import commands
from .commands import Recorder
from .engine import Engine, default_engine
from .event import Event
from .external import handed_out
from .order import FAILED, QueueOrder, error_of, is_in_order, order_of
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
    recorder: Recorder | None = None

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
                finalize(self, _finish, queue).atexit = False
        self.tracked_queue: pyopencl.CommandQueue = queue
        self.engine = engine or Engine(context=queue.context, device=queue.device)
        self.in_order = is_in_order(queue)
        self.context: pyopencl.Context = self.engine.context
        self.order: QueueOrder | None = order_of(queue) if self.in_order else None

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
        commands.check_run_sizes(global_size, local_size)
        return commands.run(self, kernel, global_size, local_size, args, reads)

    def fill(self, memory: Tracked, value: int = 0) -> Event:
        """Enqueue the filling of a memory object, padding included, with a byte.

        Every byte that `Memory.map` gives is written: those of a region, or the whole buffer.
        Raises `InvalidArgument` for a value beyond 0 to 255, `Unsupported` (code FILL) for images
        and shared virtual memory, `InvalidDescriptor` for a region with bytes of others in between,
        `MappedError` and `DeviceError`.

            stream.fill(memory)  # zeros
        """
        return commands.fill(self, memory, value)

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

    def check_context(self, context: object, whose: str) -> None:
        """Raise `DeviceError` where its context is another one than that of ``whose``."""
        if self.context != context:
            raise DeviceError(
                f"the stream belongs to another OpenCL context than {whose}: make both from one "
                f"engine"
            )

    def __repr__(self) -> str:
        return f"Stream({self.engine!r}, out_of_order={not self.in_order})"


def _finish(queue: pyopencl.CommandQueue) -> None:
    """Wait for the commands of a queue without order before it goes.

    Where one goes earlier, Intel's runtime now and then never ends those of other queues.
    """
    cl = opencl()
    with suppress(cl.Error):
        queue.finish()


def _check_queue(queue: pyopencl.CommandQueue, engine: Engine | None, *, asked: bool) -> None:
    if asked:
        raise DeviceError(
            "got a queue together with out_of_order or profiling: make the queue with these "
            "properties"
        )
    if engine is not None and engine.context != queue.context:
        raise DeviceError("the queue belongs to another OpenCL context than the engine")
