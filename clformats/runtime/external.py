"""External commands: what users enqueue themselves, without telling the library.

Such a command needs two things that the library hands out: a queue, by ``stream.queue`` and
``engine.queue`` or a queue of the user's that a stream was made of, and a buffer, by
``memory.buffer``. When such a buffer is used is not known (`Usage.exposed`), so what the library
does with it comes after all commands on the queues that were handed out. Memory objects and queues
that stay inside the library pay nothing for this.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any
from weakref import ref

from ..opencl import named_errors, opencl
from .order import LOCK, QueueOrder, Usage, error_of, events_before, finish, flush

if TYPE_CHECKING:
    import pyopencl

MOST_DROPPED = 64
"""Queues kept that their users have dropped, for the commands that may still run on them."""

_MARK = "_clformats_handed_out"


class _Mark:
    """On the queue object that users have: while it lives, they may enqueue more."""

    __slots__ = ("__weakref__",)


class _HandedOut:
    """A queue that a user has, or has dropped; then ``last`` comes after its last command.

    Its context is kept as well: Intel's runtime forgets one that only a queue keeps.
    """

    __slots__ = ("_mark", "address", "context", "last", "queue")

    def __init__(self, mark: _Mark, queue: pyopencl.CommandQueue) -> None:
        self._mark, self.queue, self.context = ref(mark), queue, queue.context
        self.address = int(queue.int_ptr)
        self.last: pyopencl.Event | None = None

    @property
    def is_dropped(self) -> bool:
        """Whether its user can enqueue nothing more."""
        return self._mark() is None

    @property
    def is_over(self) -> bool:
        """Whether all of its commands have ended, and no more can come."""
        return self.last is not None and error_of(self.last) is not None

    def event(self) -> pyopencl.Event:
        """The end of all commands that are on it now; they are sent to the device."""
        event = self.last
        if event is None:
            event = opencl().enqueue_marker(self.queue)
            self.queue.flush()
            if self.is_dropped:
                self.last = event
        return event


_handed_out: list[_HandedOut] = []


def handed_out(queue: Any) -> Any:
    """The queue, remembered as one with commands that the library does not know."""
    if not hasattr(queue, _MARK):
        mark = _Mark()
        # An object of its own, so that the user's can go.
        own = opencl().CommandQueue.from_int_ptr(queue.int_ptr, retain=True)
        with LOCK:
            setattr(queue, _MARK, mark)
            _handed_out.append(_HandedOut(mark, own))
            dropped = [entry for entry in _handed_out if entry.is_dropped]
            if len(dropped) > MOST_DROPPED:
                for entry in dropped:
                    _handed_out.remove(entry)
                    finish(entry.queue)
    return queue


def only_on(order: QueueOrder | None) -> bool:
    """Whether all commands that the library does not know are on this in-order queue, if on any.

    Then a command there comes after them, whatever buffers they use. `LOCK` is held.
    """
    address = order and order.address
    return all(entry.address == address for entry in _handed_out)


def commands_before(
    reading: Sequence[Usage], writing: Sequence[Usage], order: object, queue: pyopencl.CommandQueue,
    context: object, *, in_order: bool,
) -> list[pyopencl.Event]:  # fmt: skip
    """All that a command on ``queue`` must wait for which uses these buffers, with `LOCK` held.

    The commands that are known, which are sent to their devices. And where one of the buffers was
    handed out, an event for each other queue of the context that was: complete when all is done
    that is on that queue now. These queues are flushed. One that its user has dropped is kept until
    its commands are done: they may use any of the buffers that were handed out, and a driver's
    event need not keep its queue. Raises `DeviceError`.
    """
    waits = events_before(reading, writing, order)
    if waits:
        with named_errors("waiting for other commands"):
            flush(waits)
    if not _handed_out or not any(usage.exposed for usage in (*reading, *writing)):
        return waits
    own = queue.int_ptr if in_order else None
    with named_errors("waiting for commands on a queue that was handed out"):
        _handed_out[:] = [entry for entry in _handed_out if not entry.is_over]
        found = {
            entry.address: entry
            for entry in sorted(_handed_out, key=lambda e: not e.is_dropped)  # who has it counts
            if entry.address != own and entry.context == context
        }
        return waits + [entry.event() for entry in found.values()]
