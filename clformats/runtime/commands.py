"""Commands beside reorders: kernels of users' own, and fills."""

from __future__ import annotations

from collections.abc import Callable, Collection, Sequence
from functools import partial
from typing import TYPE_CHECKING, Any, Protocol

import numpy as np

from ..errors import (
    InvalidArgument,
    InvalidDescriptor,
    Unsupported,
    expect,
    expect_int,
    shown,
)
from ..opencl import error_name, failure, named_errors, opencl
from . import storage
from .arguments import check_no_pointer, set_arguments
from .event import Event
from .external import commands_before
from .order import LOCK, QueueOrder, Usage, enqueued, usage_of
from .tracked import Tracked

if TYPE_CHECKING:
    import pyopencl


class Recorder(Protocol):
    """What takes commands instead of a queue: see `clformats.recording`."""

    def moved(self, ready: Any, src: Any, dst: Any, values: Any) -> Event:
        """Take a reorder that was checked; `order.LOCK` is held."""

    def ran(
        self,
        kernel: pyopencl.Kernel,
        global_size: Sequence[int],
        local_size: Sequence[int] | None,
        args: Sequence[Any],
        reads: Sequence[Any],
    ) -> Event:
        """Take a kernel of the user's; see `Stream.run`."""

    def filled(self, memory: Any, value: int, where: slice) -> Event:
        """Take the filling of these bytes of a memory object's buffer."""


class Queue(Protocol):
    """A stream as commands know it; ``order`` is None out of order."""

    tracked_queue: pyopencl.CommandQueue
    context: pyopencl.Context
    order: QueueOrder | None
    in_order: bool
    recorder: Recorder | None


def run(
    stream: Queue,
    kernel: pyopencl.Kernel,
    global_size: Sequence[int],
    local_size: Sequence[int] | None,
    args: Sequence[Any],
    reads: Sequence[Any],
) -> Event:
    """See `Stream.run`."""
    expect(kernel, opencl().Kernel, "kernel")
    _check_reads(args, reads)
    if stream.recorder is not None:
        return stream.recorder.ran(kernel, global_size, local_size, args, reads)
    order = stream.order or QueueOrder(stream.tracked_queue)
    with LOCK:
        given, writing, reading, alone = _uses(stream, order, args, reads)
        waits = None
        if not alone:
            reading = [usage for usage in reading if usage not in writing]
            waits = _waits(stream, order, reading, writing)
        set_arguments(kernel, given, args)
        enqueue = partial(_enqueue, stream, kernel, global_size, local_size)
        event = (
            enqueue(waits) if waits is None else _with_images(stream, args, reads, waits, enqueue)
        )
        enqueued(reading, writing, order, event)
    return Event(event)


def _check_reads(args: Sequence[Any], reads: Sequence[Any]) -> None:
    """Raise `InvalidArgument` unless what is read is memory among the arguments."""
    if not isinstance(reads, _SEQUENCES) and (
        isinstance(reads, Tracked) or not isinstance(reads, Collection)
    ):
        raise InvalidArgument(f"reads: got {shown(reads)}, expected a list of memory: [memory]")
    for memory in reads:
        for a in args:
            if memory is a:
                break
        else:
            raise InvalidArgument(f"reads: {memory!r} is none of the kernel's arguments")


def _uses(
    stream: Queue, order: object, args: Sequence[Any], reads: Sequence[Any]
) -> tuple[list[Any], list[Usage], list[Usage], bool]:
    """The arguments as OpenCL takes them, what is written and read, checked.

    And whether all commands on these buffers are in this order, so that there are none to wait for.
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
            if isinstance(a, opencl().MemoryObject):  # the user's, who may use it elsewhere, too
                usage = usage_of(a)
                usage.exposed, alone = True, False
                (reading if is_read else writing).append(usage)
            continue
        usage = a.usage
        if usage.mapping is not None or a.context is not stream.context or a.sound is None:
            wish = "run a kernel on it"
            a.check_use(wish, stream.context, "the stream", writes=not is_read)
            if a.lent is not None:  # one kernel at a time has the image
                writing.append(usage)
                given.append(a.lent.image)
                alone = False
                continue
        (reading if is_read else writing).append(usage)
        alone = alone and usage.only_order is order and not usage.exposed
        given.append(a.tracked_buffer)
    return given, writing, reading, alone


def _with_images(
    stream: Queue, args: Sequence[Any], reads: Sequence[Any], waits: list[pyopencl.Event],
    enqueue: Callable[[list[pyopencl.Event]], pyopencl.Event],
) -> pyopencl.Event:  # fmt: skip
    """Enqueue a kernel between the copies to the images that it is lent, and those from them."""
    queue = stream.tracked_queue
    lent = [(a, a.lent) for a in args if isinstance(a, Tracked) and a.lent]
    for _, image in lent:
        waits = image.fill(queue, waits)
    event = enqueue(waits)
    for a, image in lent:
        if not any(a is memory for memory in reads):
            event = image.bring_back(queue, event)
    return event


def _waits(
    stream: Queue, order: object, reading: Sequence[Usage], writing: Sequence[Usage]
) -> list[pyopencl.Event]:
    once = [*dict.fromkeys(reading)], [*dict.fromkeys(writing)]
    queue, context = stream.tracked_queue, stream.context
    return commands_before(*once, order, queue, context, in_order=stream.in_order)


def fill(stream: Queue, memory: Tracked, value: int) -> Event:
    """See `Stream.fill`."""
    cl, where = opencl(), check_fill(memory, value)
    if stream.recorder is not None:
        return stream.recorder.filled(memory, value, where)
    order = stream.order or QueueOrder(stream.tracked_queue)
    with LOCK, named_errors("filling", memory):
        memory.check_use("fill it", stream.context, "the stream", writes=True)
        if where.start == where.stop:
            return Event(cl.enqueue_marker(stream.tracked_queue))
        waits = _waits(stream, order, [], [memory.usage])
        event = cl.enqueue_fill_buffer(
            stream.tracked_queue, memory.tracked_buffer, np.uint8(value), where.start,
            where.stop - where.start, wait_for=waits or None,
        )  # fmt: skip
        enqueued([], [memory.usage], order, event)
    return Event(event)


def check_fill(memory: object, value: object) -> slice:
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


def _enqueue(
    stream: Queue,
    kernel: Any,
    global_size: Sequence[int],
    local_size: Sequence[int] | None,
    waits: list[pyopencl.Event] | None,
) -> pyopencl.Event:
    """Enqueue a kernel with the arguments that it has, after these events."""
    cl = opencl()
    try:
        return cl.enqueue_nd_range_kernel(  # type: ignore[no-any-return]
            stream.tracked_queue, kernel, tuple(global_size),
            None if local_size is None else tuple(local_size), None, waits or None,
        )  # fmt: skip
    except cl.Error as error:
        name, advice = error_name(error), ""
        if "WORK_GROUP_SIZE" in name or "WORK_ITEM_SIZE" in name:
            advice = f"; global_size is {tuple(global_size)}, local_size {local_size}"
            advice += ": None leaves the choice to the device" * (local_size is not None)
        raise failure(f"enqueueing {kernel.function_name}", error, advice) from error


_SEQUENCES = (tuple, list)


def check_run_sizes(global_size: object, local_size: object) -> None:
    """Raise `InvalidArgument` unless they are tuples of integers, or None for the second."""
    for name, size in (("global_size", global_size), ("local_size", local_size)):
        if name == "local_size" and size is None:
            continue
        if not isinstance(size, _SEQUENCES) or not size or not all(map(_counts, size)):
            got = shown(size) if not isinstance(size, tuple) else size
            raise InvalidArgument(
                f"{name}: got {got}, expected a tuple of integers such as (1024,)"
            )


def _counts(size: object) -> bool:
    return (type(size) is int or isinstance(size, np.integer)) and bool(size >= 0)
