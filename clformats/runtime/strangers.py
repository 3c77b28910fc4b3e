"""Commands that users enqueue themselves, of which nobody tells the library.

Such a command needs two things that the library hands out: a queue, by ``stream.queue`` and
``engine.queue`` or a queue of the user's that a stream was made of, and a buffer, by
``memory.buffer``. Of a buffer that was handed out (`Usage.taken`) nobody knows who uses it when, so
what the library does with it comes after all that is on the queues that were handed out. Memory
objects and queues that stay inside the library pay nothing for this.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import TYPE_CHECKING, Any
from weakref import ref

from .opencl import named_errors, opencl
from .order import LOCK, Usage

if TYPE_CHECKING:
    import pyopencl

MOST_GONE = 64
"""Queues kept that their users have dropped, for the commands which may still run on them."""

_MARK = "_clformats_handed_out"


class _Mark:
    """On the queue object that users have: while it lives, they may enqueue more."""

    __slots__ = ("__weakref__",)


_handed_out: list[tuple[ref[_Mark], pyopencl.CommandQueue]] = []


def handed_out(queue: Any) -> Any:
    """The queue, remembered as one with commands that the library does not know."""
    if not hasattr(queue, _MARK):
        mark = _Mark()
        # An object of its own, so that the user's can go.
        own = opencl().CommandQueue.from_int_ptr(queue.int_ptr, retain=True)
        with LOCK:
            setattr(queue, _MARK, mark)
            _handed_out.append((ref(mark), own))
            gone = [entry for entry in _handed_out if entry[0]() is None]
            if len(gone) > MOST_GONE:
                _drop(gone)
    return queue


def _drop(gone: list[tuple[ref[_Mark], pyopencl.CommandQueue]]) -> None:
    cl = opencl()
    for entry in gone:
        _handed_out.remove(entry)
        try:
            entry[1].finish()
        except cl.Error:  # its commands failed: they are over too
            continue


def unknown_commands(
    usages: Iterable[Usage], context: object, queue: pyopencl.CommandQueue, *, in_order: bool
) -> list[pyopencl.Event]:
    """What a command on ``queue`` must wait for, beside the known, that uses these buffers.

    One event for each other queue of the context that was handed out, where one of the buffers
    was; complete when all is done that is on that queue now. The queues are flushed: a queue that
    nobody has any more is released here, and a driver's event need not keep it. Raises
    `DeviceError`.
    """
    if not _handed_out or not any(usage.taken for usage in usages):
        return []
    cl, own = opencl(), queue.int_ptr if in_order else None
    with LOCK:
        found = {
            other.int_ptr: other
            for _, other in _handed_out
            if other.int_ptr != own and other.context == context
        }
        with named_errors("waiting for commands on a queue that was handed out"):
            events = [cl.enqueue_marker(other) for other in found.values()]
            for other in found.values():
                other.flush()
        # What is on a queue that nobody has any more is in its event.
        _handed_out[:] = [e for e in _handed_out if e[0]() is not None or e[1].int_ptr not in found]
    return events
