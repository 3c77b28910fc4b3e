"""The use of a buffer: its mapping to the host, and the commands that others must wait for.

Several memory objects may share a buffer (regions of a tensor), so this is kept for each buffer,
not for each memory object. It has the last command that wrote the buffer, and those that have read
it since; a command on the same in-order queue follows them without events.
"""

from __future__ import annotations

import _thread
import os
import threading
from collections.abc import Iterable, Sequence
from contextlib import suppress
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any
from weakref import WeakValueDictionary, ref

from ..errors import DeviceError
from ..opencl import opencl
from ..tensors.desc import MemoryDesc

if TYPE_CHECKING:
    import pyopencl

PRUNE_AT = 16
"""The number of events at which those of finished commands are dropped."""

LOCK = threading.RLock()
"""Guards every `Usage` and the arguments of every kernel; held from the checks to the enqueueing.

There is one lock for all, since enqueueing takes microseconds and Python runs one thread at a time;
no thread waits for a device or builds a program while holding it. It is reentrant because garbage
collection may need it meanwhile.
"""
if hasattr(os, "register_at_fork"):
    # A process that is forked while another thread holds it could never have it.
    os.register_at_fork(
        before=LOCK.acquire, after_in_parent=LOCK.release, after_in_child=LOCK.release
    )


def interrupt_later() -> None:
    """Let Control-C come again, after a ``__del__``: Python drops what is raised there."""
    threading.Timer(0.01, _thread.interrupt_main).start()


class QueueOrder:
    """An in-order queue: commands on it come one after the other without events.

    It keeps the queue alive, so that no other queue gets its address meanwhile, and that its events
    stay valid. Each command on an out-of-order queue has a new order of its own.
    """

    __slots__ = ("__weakref__", "_queue", "address")

    def __init__(self, queue: pyopencl.CommandQueue) -> None:
        self._queue, self.address = queue, int(queue.int_ptr)


@dataclass(slots=True)
class Claim:
    """A mapped buffer: its descriptor, the mode, and the line of the call.

    It does not keep the mapping alive, so that one which is dropped releases the buffer. ``owner``
    is None once it is gone, though Control-C kept it from saying so.
    """

    desc: MemoryDesc
    mode: str
    where: str
    queue: pyopencl.CommandQueue
    owner: ref[Any]

    def __str__(self) -> str:
        return f"Memory({str(self.desc)!r}) is mapped with mode {self.mode!r} since {self.where}"


_NONE, _SEVERAL = object(), object()


class Usage:
    """The use of one buffer: its mapping, and the commands on it by their orders.

    ``order`` is that of the ``writer``. ``only_order`` is the common order of all commands here, if
    they have one: a command on the same in-order queue waits for none of them. ``exposed`` says
    that users have the buffer and may use it in commands that are not reported (see `external`).
    """

    __slots__ = ("__weakref__", "exposed", "mapping", "only_order", "order", "readers", "writer")

    def __init__(self) -> None:
        self.mapping: Claim | None = None
        self.only_order: object = _NONE
        self.order: object = None
        self.writer: pyopencl.Event | None = None
        self.readers: dict[object, pyopencl.Event] = {}
        self.exposed = False

    def unmapped(self) -> bool:
        """Whether no mapping is alive; forgets one that is gone and could not say so.

        Pyopencl ends what is mapped when its object goes: later commands come after that.
        """
        claim = self.mapping
        if claim is not None and claim.owner() is None:
            with LOCK:
                enqueued([], [self], object(), end_of(claim.queue, self))
                self.mapping = None
        return self.mapping is None


def events_before(
    reads: Iterable[Usage], writes: Iterable[Usage], order: object
) -> list[pyopencl.Event]:
    """The events that a command on ``order`` must wait for if it uses these buffers.

    None of them has ended. Raises `DeviceError` where what is read was written by a command that
    failed: once, since it is forgotten then.
    """
    waits: list[pyopencl.Event] = []
    for usage in reads:
        if error := _take_writer(usage, order, waits):
            raise DeviceError(
                f"a command that wrote what is read here has failed ({error}): the contents of the "
                f"memory object are undefined. This is told once; write it anew",
                name=FAILED,
            )
    for usage in writes:
        _take_writer(usage, order, waits)  # though it failed: what it wrote is overwritten
        if usage.readers:
            waits += [
                event
                for other, event in usage.readers.items()
                if other is not order and error_of(event) is None
            ]
    return waits


def _take_writer(usage: Usage, order: object, waits: list[pyopencl.Event]) -> str | None:
    """Wait for the command that wrote a buffer; forget one that has ended, and give its error."""
    writer = usage.writer
    if usage.order is order or writer is None:
        return None
    error = error_of(writer)
    if error is None:
        waits.append(writer)
    else:
        usage.writer = None
    return error


FAILED = "EXEC_STATUS_ERROR_FOR_EVENTS_IN_WAIT_LIST"
"""OpenCL's name of the error of a command that waits for one that failed."""


def error_of(event: pyopencl.Event) -> str | None:
    """The error of a command that failed, "" of one that is done, None while it is under way.

    No command may wait for one that has failed: with PoCL it never ends. Intel's runtime calls some
    complete that failed, so they are waited for, which takes no time; NVIDIA's driver raises
    nothing then. What a complete one wrote can be seen by all queues from then on.
    """
    cl = opencl()
    try:
        status = event.command_execution_status
        if status > 0:
            return None
        event.wait()
    except cl.Error as error:
        return str(error)
    return str(cl.status_code.to_string(status, "UNKNOWN_%d")) if status < 0 else ""


def flush(waits: Sequence[pyopencl.Event]) -> None:
    """Send the commands waited for to their devices; raises pyopencl's errors.

    OpenCL requires it if a command waits for one of another queue: a driver need not start commands
    before a flush, and Intel's runtime then sometimes waits for ever.
    """
    for event in waits:
        queue = queue_of(event)
        if queue is not None:
            queue.flush()


def finish(queue: pyopencl.CommandQueue) -> None:
    """Wait for the commands of a queue; those that failed are over, too."""
    with suppress(opencl().Error):
        queue.finish()


def queue_of(event: pyopencl.Event) -> pyopencl.CommandQueue | None:
    """The queue of a command; None for a user's event, and where the queue is gone before it.

    Intel's events do not keep their queues.
    """
    try:
        return event.command_queue
    except opencl().LogicError:
        return None


def enqueued(
    reads: Iterable[Usage], writes: Iterable[Usage], order: object, event: pyopencl.Event
) -> None:
    """Remember a command on ``order``, `LOCK` held."""
    for usage in reads:
        usage.readers[order] = event
        if usage.only_order is not order:
            usage.only_order = order if usage.only_order is _NONE else _SEVERAL
        if len(usage.readers) > PRUNE_AT:
            running = {o: e for o, e in usage.readers.items() if e.command_execution_status > 0}
            usage.readers = running
    for usage in writes:
        usage.only_order = usage.order = order
        usage.writer = event
        if usage.readers:
            usage.readers = {}


def end_of(queue: pyopencl.CommandQueue, *usages: Usage) -> pyopencl.Event:
    """The end of all that is on a queue, and of the commands remembered here.

    It stands for a command that may have been enqueued, or not: then it waited for none of these.
    Raises pyopencl's errors.
    """
    cl = opencl()
    before = events_before([], usages, object())
    flush(before)
    event: pyopencl.Event = cl.enqueue_marker(queue)
    if before:
        event = cl.enqueue_marker(queue, wait_for=[event, *before])
    queue.flush()  # rusticl keeps what is not sent, and the queue with it
    return event


_usages: WeakValueDictionary[int, Usage] = WeakValueDictionary()
_orders: WeakValueDictionary[int, QueueOrder] = WeakValueDictionary()
_ATTRIBUTE = "_clformats_usage"


def usage_of(buffer: Any) -> Usage:
    """The usage of a buffer, shared by all memory objects in it; a new one if there is no buffer.

    The buffer keeps it, so that a second memory object over the buffer waits for the commands of
    the first.
    """
    if buffer is None:
        return Usage()
    found: Usage | None = getattr(buffer, _ATTRIBUTE, None)
    if found is None:
        address = buffer.svm_ptr if hasattr(buffer, "svm_ptr") else buffer.int_ptr
        with LOCK:
            found = _usages.setdefault(address, Usage())
        setattr(buffer, _ATTRIBUTE, found)
    return found


def is_known(buffer: Any) -> bool:
    """Whether `usage_of` has met this buffer object before."""
    return hasattr(buffer, _ATTRIBUTE)


def order_of(queue: pyopencl.CommandQueue) -> QueueOrder | None:
    """The order of an in-order queue, one for all streams on it; None of other queues."""
    cl = opencl()
    flags = queue.get_info(cl.command_queue_info.PROPERTIES)
    if flags & cl.command_queue_properties.OUT_OF_ORDER_EXEC_MODE_ENABLE:
        return None
    with LOCK:
        return _orders.setdefault(queue.int_ptr, QueueOrder(queue))
