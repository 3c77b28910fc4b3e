"""`Tracked`: a buffer whose commands are known, which is what commands see of a memory object.

It says which bytes belong to the tensor, who uses them, and whether a command may.
"""

from __future__ import annotations

from contextlib import suppress
from math import prod
from typing import TYPE_CHECKING, Any

from ..errors import DeviceError, MappedError, expect
from ..host.packing import whole_nbytes
from ..opencl import OnDevice, named_errors, opencl
from ..problems.thresholds import LINE_BYTES
from ..tensors.desc import MemoryDesc
from ..tensors.given import moved_by
from ..tensors.images import STACK
from . import storage
from .engine import Engine
from .event import Event
from .external import commands_before, handed_out
from .image import is_volume
from .order import (
    FAILED,
    LOCK,
    Usage,
    enqueued,
    error_of,
    events_before,
    order_of,
    queue_of,
)
from .views import Lent

if TYPE_CHECKING:
    import pyopencl


class Tracked(OnDevice):
    """What commands use: ``tracked_buffer``, in ``context``, and its ``usage`` by others.

    ``under`` is the buffer of an image over one, None of another image; of a buffer it is itself.
    ``sound`` is the descriptor where any command may use the buffer so, else None: then it must be
    checked. The buffer begins at a multiple of ``begins_at`` bytes.
    """

    desc: MemoryDesc
    engine: Engine
    context: pyopencl.Context
    tracked_buffer: Any = None
    under: Any = None
    usage: Usage
    sound: MemoryDesc | None = None
    begins_at: int = LINE_BYTES
    is_read_only: bool = False
    lent: Lent | None = None
    _is_view: bool = False

    @property
    def nbytes(self) -> int:
        """The least number of bytes that the buffer must have."""
        return whole_nbytes(self.desc)

    @property
    def buffer(self) -> Any:
        """The pyopencl buffer or image, for commands of your own; None where there is none.

        Give the memory object itself to `Stream.run`, or report your commands by `written_by` and
        `read_by`. Else later commands on it wait for all that is on the queues of the library's
        (``stream.queue``, ``engine.queue``, those that streams were made of) in its context.

        Where an image is lent (see `copied_because`) it is a copy of what the buffer holds now, and
        what you write to it is lost.
        """
        found = self._lent_image(self.lent) if self.lent else self.tracked_buffer
        self.usage.exposed = True
        return found

    def _lent_image(self, lent: Lent) -> pyopencl.Image:
        """The image in place of a buffer, filled."""
        queue = self.engine.tracked_queue
        self.check_unmapped("copy it to an image")
        with LOCK, named_errors("copying to an image", self):
            waits = commands_before([], [self.usage], object(), queue, self.context, in_order=True)
            event = lent.fill(queue, waits)[0]
            enqueued([], [self.usage], object(), event)
        event.wait()
        return lent.image

    @property
    def copied_because(self) -> str:
        """Why an image format over a buffer is no view of it; empty where it is, and elsewhere.

        Then the buffer holds the values. Reorders and mappings use it; a kernel in `Stream.run`
        gets an image with a copy of them, which is copied back where the kernel may have written.
        """
        return self.lent.reason if self.lent else ""

    @property
    def is_reached_as_twin(self) -> bool:
        """Whether kernels that read or write pixels of images cannot take it."""
        held, counts = self.tracked_buffer, self.desc.format.image or ()
        is_one = len(counts) == STACK and held is not None and self.lent is None
        return self.lent is not None or (is_one and is_volume(held))

    @property
    def events(self) -> list[pyopencl.Event]:
        """What a command of yours that writes must wait for: ``wait_for=memory.events``."""
        with LOCK:
            return events_before([], [self.usage], object())

    def written_by(self, event: Event | pyopencl.Event) -> None:
        """Let later commands on this memory wait for one of yours that writes it.

        ``event`` is what pyopencl gave for it. Raises `InvalidArgument` and `DeviceError`.
        """
        self._told(event, writes=True)

    def read_by(self, event: Event | pyopencl.Event) -> None:
        """Let later commands that write this memory wait for one of yours that reads it."""
        self._told(event, writes=False)

    def _told(self, event: Event | pyopencl.Event, *, writes: bool) -> None:
        """Remember a command of the user's. Raises `InvalidArgument` and `DeviceError`."""
        cl, usage = opencl(), self.usage
        expect(event, Event | cl.Event, "event")
        found = event.event if isinstance(event, Event) else event
        context = None
        with suppress(cl.Error):  # Intel's runtime forgets a context that only an event keeps
            context = found.get_info(cl.event_info.CONTEXT)
        storage.check_same_context("the event", context, self, self.context)
        if error := error_of(found):
            raise DeviceError(f"the command on {self!r} has failed ({error})", name=FAILED)
        with LOCK, named_errors("remembering a command on", self):
            queue = queue_of(found)
            order: object = (order_of(handed_out(queue)) if queue else None) or object()
            reads, written = ([], [usage]) if writes else ([usage], [])
            before = events_before([], written, order)
            if before:  # the command may have waited for none of them
                target = queue or self.engine.tracked_queue
                found, order = cl.enqueue_marker(target, wait_for=[found, *before]), object()
            enqueued(reads, written, order, found)
            usage.exposed = False

    @property
    def mapped(self) -> MemoryDesc:
        """The descriptor of the elements in the array that `map` gives.

        It equals ``desc``, except for a view of `submemory` and for memory of `from_host`: there
        the array begins at the first element of the region, or of your array.
        """
        return moved_by(self.desc, -(self.mapped_bytes.start * 8 // self.desc.dtype.bits))

    @property
    def mapped_bytes(self) -> slice:
        """The range of the buffer that `map` gives, in bytes."""
        if self._is_view:
            dtype, first = self.desc.dtype, self.desc.offset0
            # Of elements that share bytes from the first of a unit on.
            start = first // dtype.unit * dtype.unit * dtype.bits // 8
            return slice(start, self.desc.span_nbytes)
        part = storage.host_part(self.tracked_buffer)
        # What lies before the user's array is not the user's.
        return slice(part.front if part else 0, self.nbytes)

    @property
    def is_dense(self) -> bool:
        """Whether all bytes that `map` gives belong to this tensor."""
        desc = self.desc
        if not self._is_view:
            return True
        where = self.mapped_bytes
        bits: int = 8 * (where.stop - where.start)
        return bits == prod(p.size for p in desc.placed) * desc.dtype.bits

    def check_unmapped(self, wish: str) -> None:
        """Raise `MappedError` if the buffer is mapped; ``wish`` says what was attempted."""
        if not self.usage.unmapped():
            raise MappedError(
                f"{self.usage.mapping}, cannot {wish}: leave its `with memory.map(...)` block first"
            )

    def check_place(self, context: object, whose: str) -> None:
        """Raise `DeviceError` where it has no buffer, or one of another context than ``whose``."""
        if self.tracked_buffer is None:
            if self.nbytes:
                raise DeviceError(
                    f"{self!r} has no buffer: give it one by set_buffer(), or those of its parts, "
                    f"where it has several"
                )
        else:
            storage.check_same_context(self, self.context, whose, context)

    def check_use(self, wish: str, context: object, whose: str, *, writes: bool = False) -> None:
        """Raise where no command of ``whose`` can take it; ``wish`` says what it would do."""
        self.check_unmapped(wish)
        self.check_place(context, whose)
        if writes:
            self.check_writable()

    def check_writable(self) -> None:
        """Raise `DeviceError` if the buffer, or the array that it is over, is read-only."""
        if self.is_read_only:
            raise DeviceError(f"{self!r} is read-only: give another destination, or a copy of it")
