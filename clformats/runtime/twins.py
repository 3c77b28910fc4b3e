"""Images that kernels reach as buffers: what lies under them, and copies where nothing does.

Which images these are says `clformats.problems.twins`. Images are copied to and from buffers of the
engine, one for sources and one for destinations: they grow to the largest image, and commands take
turns at them.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import partial
from threading import Lock
from typing import TYPE_CHECKING, Any
from weakref import WeakKeyDictionary

from ..tensors.desc import MemoryDesc
from ..tensors.images import is_over_buffer
from . import image, storage
from .engine import Engine
from .memory import Memory
from .order import Usage, enqueued, events_before, flush, usage_of
from .stream import Stream

if TYPE_CHECKING:
    import pyopencl

Enqueue = Callable[["tuple[Any, Any]", "list[pyopencl.Event]"], "pyopencl.Event"]
"""Enqueues a kernel on the buffers of both sides, after some events."""
Step = Callable[["list[pyopencl.Event]"], "pyopencl.Event"]


_scratch: WeakKeyDictionary[Engine, list[pyopencl.Buffer | None]] = WeakKeyDictionary()
_growing = Lock()
"""Held while these buffers grow: of two threads the one with the smaller image may come last."""


class Twins:
    """How a kernel on buffers moves ``images``: those of the source and the destination, or None.

    With ``copied`` both have the same bytes, so that OpenCL's copies do without the kernel. Raises
    `DeviceError` where there is no memory for copies.
    """

    def __init__(
        self, engine: Engine, images: Sequence[MemoryDesc | None], *, copied: bool
    ) -> None:
        self._images, self._copied = images, copied
        self._regions = [image.region_of(desc) if desc else (0, 0, 0) for desc in images]
        with _growing:
            self._scratch = _scratch.setdefault(engine, [None, None])
            for side, desc in enumerate(images):
                if desc and not is_over_buffer(desc):
                    self._grow(engine, side, desc)

    def _grow(self, engine: Engine, side: int, desc: MemoryDesc) -> None:
        """Have a buffer that holds an image; the driver keeps a smaller one while it is used."""
        held = self._scratch[side]
        if held is None or held.size < desc.nbytes:
            self._scratch[side] = storage.allocated(engine, desc.nbytes, None, desc, fill=False)

    def enqueue(
        self, stream: Stream, order: object, memories: Sequence[Memory],
        waits: list[pyopencl.Event], kernel: Enqueue,
    ) -> tuple[pyopencl.Event, pyopencl.Event]:  # fmt: skip
        """Enqueue copies and kernel, with `order.LOCK` held; the first and the last event."""
        queue, used = stream.tracked_queue, list[Usage]()
        src, dst = memories
        a, b = (
            m.under if d else m.tracked_buffer for m, d in zip(memories, self._images, strict=True)
        )
        into, out = a is None, b is None
        # Shared virtual memory is not copied to images.
        svm = any(storage.is_svm(m.tracked_buffer) for m in memories)
        alone = self._copied and (into or out) and not svm
        if alone:
            a = b = a or b or self._taken(0, used)
        a, b = a or self._taken(0, used), b or self._taken(1, used)
        others = events_before([], used, order)
        flush(others)
        steps: list[Step] = []
        if into:
            steps.append(partial(image.copied, queue, self._regions[0], a, src.tracked_buffer))
        if not alone:
            steps.append(partial(kernel, (a, b)))
        if out:
            steps.append(partial(image.copied, queue, self._regions[1], dst.tracked_buffer, b))
        events: list[pyopencl.Event] = []
        waits = waits + others
        try:
            for step in steps:
                events.append(step(waits))
                waits = [] if stream.in_order else events[-1:]
        finally:  # should one be refused, later commands still wait for those before it
            if events:
                enqueued([], used, order, events[-1])
        return events[0], events[-1]

    def _taken(self, side: int, used: list[Usage]) -> Any:
        """The engine's buffer for the image of a side."""
        buffer = self._scratch[side]
        used.append(usage_of(buffer))
        return buffer
