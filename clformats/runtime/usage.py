"""Who uses a buffer: its mapping to the host, and the commands that others must wait for.

Several memory objects may lie in one buffer (regions of a tensor), so this is kept per buffer, not
per memory object. What is remembered is the last command that writes, and those that read since;
a command on the same in-order queue needs no event to come after them.
"""

from __future__ import annotations

import threading
from typing import TYPE_CHECKING
from weakref import WeakValueDictionary

if TYPE_CHECKING:
    import pyopencl

    from .memory import Mapping

PRUNE_AT = 16
"""Events kept before those of finished commands are dropped."""


class Usage:
    """The use of one buffer; ``lock`` guards it, and is held from a check to its enqueueing."""

    def __init__(self) -> None:
        self.lock = threading.RLock()
        self.mapping: Mapping | None = None
        self._writer: list[tuple[int, pyopencl.Event]] = []
        self._readers: list[tuple[int, pyopencl.Event]] = []

    def to_wait_for(self, queue: int, *, writing: bool) -> list[pyopencl.Event]:
        """The events that a command must wait for; ``queue`` is its in-order queue, or 0."""
        before = self._writer + self._readers if writing else self._writer
        return [event for other, event in before if not queue or other != queue]

    def used(self, queue: int, event: pyopencl.Event, *, writing: bool) -> None:
        """Remember a command; ``queue`` as for `to_wait_for`."""
        if writing:
            self._writer, self._readers = [(queue, event)], []
            return
        kept = self._readers
        if queue:
            kept = [r for r in kept if r[0] != queue]
        if len(kept) >= PRUNE_AT:
            kept = [r for r in kept if r[1].command_execution_status > 0]  # 0 is CL_COMPLETE
        self._readers = [*kept, (queue, event)]

    @property
    def remembered(self) -> int:
        """How many events are kept."""
        return len(self._writer) + len(self._readers)


_known: WeakValueDictionary[int, Usage] = WeakValueDictionary()
_known_lock = threading.Lock()


def usage_of(buffer: pyopencl.Buffer | pyopencl.Image | None) -> Usage:
    """The usage of a buffer: one for all memory objects in it. One of its own for no buffer."""
    if buffer is None:
        return Usage()
    with _known_lock:
        return _known.setdefault(buffer.int_ptr, Usage())
