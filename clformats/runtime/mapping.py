"""`Mapping`: exclusive access to a memory object's bytes from the host."""

from __future__ import annotations

import sys
import threading
from contextlib import suppress
from functools import partial
from typing import TYPE_CHECKING, Any, Literal
from weakref import ref

import numpy as np
from numpy.typing import NDArray

from ..errors import DeviceError, MappedError, caller
from ..opencl import OnDevice, named_errors, opencl
from . import image
from .event import Event
from .external import commands_before
from .order import LOCK, Claim, Usage, end_of, enqueued, interrupt_later
from .storage import Mapped
from .tracked import Tracked

if TYPE_CHECKING:
    import pyopencl

Mode = Literal["r", "w", "rw"]


_in_use: dict[int, Mapping] = {}
"""Mappings without a holder, whose arrays are alive: these keep them, by number."""


class _Dropped:
    def references(self) -> int:
        return sys.getrefcount(self)


_OURS = _Dropped().references()
"""References to an object within its method where there are no others; versions differ."""


class Mapping(OnDevice):
    """A memory object mapped to the host; a context manager that is entered once.

    Made by `Memory.map`. Entering it maps and waits; calling `start` before that enqueues the
    mapping without waiting. It keeps the memory object, its buffer and its queue alive. A mapping
    that is dropped before its end releases itself, so that Control-C, wherever it comes, leaves no
    memory mapped: what a ``with`` block could not release goes with the block.
    """

    _travels_as = "copy the array"

    def __init__(self, memory: Tracked, mode: Mode, queue: pyopencl.CommandQueue) -> None:
        self._state: Literal["new", "started", "entered", "over"] = "new"
        self.memory, self.mode = memory, mode
        self._claim = Claim(memory.desc, mode, _caller(), queue, ref(self))
        self._queue = queue
        self._usage: Usage = memory.usage
        self._mapped: Mapped | None = None
        self._pixels: NDArray[Any] | None = None
        self._given: ref[NDArray[Any]] | None = None

    def start(self) -> Mapping:
        """Enqueue the mapping without waiting for it; it is exclusive from now on.

        Enter it later to wait and to get the array, or `release` it. An image is read at once, so
        that this waits. Raises what entering raises.
        """
        memory, first = self.memory, self._state == "new"
        try:
            with LOCK:
                self._check_new(memory)
                # The buffer may be another than when map() was called.
                self._usage = memory.usage
                self._state = "started"
                self._usage.mapping = self._claim
            if memory.nbytes:
                self._map(memory)
        except BaseException:
            if first:
                self._leave()
            raise
        return self

    def _check_new(self, memory: Tracked) -> None:
        if self._state != "new":
            raise MappedError("a mapping is made once: call memory.map() again")
        memory.check_unmapped("map it")

    @property
    def event(self) -> Event | None:
        """The event of a started mapping; None where there is nothing to wait for."""
        return Event(self._mapped.event) if self._mapped is not None else None

    def __enter__(self) -> NDArray[Any]:
        if self._state == "new":
            self.start()
        elif self._state != "started":
            raise MappedError("a mapping is entered once: call memory.map() again")
        self._state = "entered"
        # A ``with`` statement holds it, and lets go of it however the block ends.
        is_held = sys.getrefcount(self) > _OURS
        try:
            if self._mapped is not None:
                with named_errors("mapping", self.memory):
                    self._mapped.event.wait()
            return self._array(keeps=not is_held)
        except BaseException:
            self._leave()
            raise

    def _array(self, *, keeps: bool) -> NDArray[Any]:
        """The array for the user; ``keeps``: the mapping lives as long as it does."""
        storage = self.memory.desc.dtype.storage
        if self._mapped is not None:
            array: NDArray[Any] = self._mapped.array.view(storage)
        else:
            array = np.zeros(0, storage) if self._pixels is None else self._pixels.view(storage)
        array.flags.writeable = "w" in self.mode
        # Called as it is, without bytecodes of Python's where Control-C could come.
        self._given = ref(array, partial(_in_use.pop, id(self)))
        if keeps:
            _in_use[id(self)] = self
        return array

    def _map(self, memory: Tracked) -> None:
        if memory.tracked_buffer is None:
            raise DeviceError(f"{memory!r} cannot be mapped: give it a buffer by set_buffer()")
        with LOCK:
            writes = [self._usage] if "w" in self.mode else []
            reads = [] if self.mode == "w" and memory.is_dense else [self._usage]
            waits = commands_before(
                reads, writes, object(), self._queue, memory.context, in_order=True
            )
        if memory.under is None:
            with named_errors("reading", memory):
                self._pixels = image.read(self._queue, memory.tracked_buffer, memory.desc, waits)
            return
        flags = opencl().map_flags
        kinds = {
            "r": flags.READ,
            "w": flags.WRITE_INVALIDATE_REGION if memory.is_dense else flags.READ | flags.WRITE,
            "rw": flags.READ | flags.WRITE,
        }
        with named_errors("mapping", memory):
            self._mapped = mapped = Mapped(memory.mapped_bytes)
            mapped.map(self._queue, memory.under, kinds[self.mode], waits)

    def release(self) -> None:
        """Unmap, if it is mapped; the memory object then has what was written.

        The end of the ``with`` block calls this. Raises `DeviceError`.
        """
        memory, mapped, pixels = self.memory, self._mapped, self._pixels
        try:
            if mapped is not None:
                with named_errors("unmapping", memory):
                    event = mapped.unmap(self._queue)
                    if event is not None:
                        event.wait()
            elif pixels is not None and "w" in self.mode and self._state == "entered":
                with named_errors("writing", memory):
                    image.write(self._queue, memory.tracked_buffer, memory.desc, pixels)
            self._end()
        except BaseException:
            self._leave()
            raise

    def _leave(self) -> None:
        """End what was begun, however far it came, without waiting for the device.

        Later commands wait for it. Nothing is raised for what was never begun, or has ended.
        """
        if self._state in ("new", "over"):
            return
        cl, mapped = opencl(), self._mapped
        with LOCK:
            if mapped is not None:
                with suppress(cl.Error, AssertionError):  # it has ended already
                    mapped.unmap(self._queue)
                with suppress(cl.Error):
                    enqueued([], [self._usage], object(), end_of(self._queue, self._usage))
            self._end()

    def _end(self) -> None:
        given, self._pixels = self._given() if self._given else None, None
        if given is not None:
            _empty(given)
        _in_use.pop(id(self), None)
        if self._usage.mapping is self._claim:
            self._usage.mapping = None
        self._state = "over"
        self._mapped = self._given = None

    def __del__(self) -> None:
        """End a mapping that was begun and dropped, without waiting for the device."""
        if getattr(self, "_state", "new") in ("new", "over"):
            return
        try:
            self._leave()
        except KeyboardInterrupt:
            self._leave()
            interrupt_later()
        except DeviceError:
            self._end()  # this process was forked, and has no driver

    def __exit__(self, *_: object) -> None:
        self.release()

    def __str__(self) -> str:
        return str(self._claim)

    def __repr__(self) -> str:
        return f"Mapping({self.memory!r}, {self.mode!r}, {self._state})"


def _empty(array: NDArray[Any]) -> None:
    """Leave nothing in an array object whose memory is gone: to read an element is an IndexError.

    Numpy has no other way to take memory from an array that does not own it. Views that were made
    of it still point there.
    """
    empty: Any = (1, (0,), array.dtype, False, b"")
    array.__setstate__(empty)


def _caller() -> str:
    """The line outside the library, and the thread, that wants a mapping."""
    frame, _ = caller()
    thread = threading.current_thread().name
    return f"{frame.f_code.co_filename}:{frame.f_lineno} in {thread}"
