"""The storage of a tensor: a buffer, one from a pool, shared virtual memory, or an image.

Each kind is allocated, checked, filled and mapped here. The driver keeps a buffer until running
commands are done with it. It does not do so for memory of a pool and shared virtual memory: wait
for the commands before you drop these.
"""

from __future__ import annotations

import ctypes
import mmap
import sys
from collections.abc import Callable, Sequence
from contextlib import suppress
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from ..errors import DeviceError, InvalidArgument, shown
from ..opencl import named_errors, opencl
from ..problems.thresholds import LINE_BYTES
from .engine import Engine, default_engine

if TYPE_CHECKING:
    import pyopencl

Allocator = Callable[[int], Any]
"""Makes storage of a number of bytes: pyopencl's ``MemoryPool``, ``ImmediateAllocator``, ..."""
LEAST_HUGE = 4 << 20
"""The bytes of memory from which on numpy asks for huge pages, too."""


def is_array(value: object) -> bool:
    """Whether it is a ``pyopencl.array.Array``."""
    arrays = sys.modules.get("pyopencl.array")
    return arrays is not None and isinstance(value, arrays.Array)


def is_plain(value: object) -> bool:
    """Whether it is pyopencl's storage itself, or an image."""
    return isinstance(value, opencl().MemoryObjectHolder | opencl().SVMPointer)


def is_svm(storage: object) -> bool:
    """Whether it is shared virtual memory."""
    return isinstance(storage, opencl().SVMPointer)


def is_kept_by_driver(storage: object) -> bool:
    """Whether the driver keeps it until the commands that use it are done."""
    return isinstance(storage, opencl().MemoryObject) and host_part(storage) is None


@dataclass(frozen=True, slots=True)
class HostPart:
    """The user's part of a buffer over host memory: ``array``, after ``front`` other bytes."""

    array: NDArray[Any]
    front: int


HOST_PART = "_clformats_host_part"
"""Of a buffer over host memory: its `HostPart`, which keeps the array alive."""


def host_part(storage: object) -> HostPart | None:
    """The user's part of a buffer that this library made over host memory; None for others."""
    return getattr(storage, HOST_PART, None)


def is_read_only(storage: Any) -> bool:
    """Whether kernels must not write it: it is over a read-only array, or was made read-only."""
    cl = opencl()
    if storage is None or is_svm(storage):
        return False
    try:
        return bool(storage.get_info(cl.mem_info.FLAGS) & cl.mem_flags.READ_ONLY)
    except cl.Error:  # as of a context that was released before its buffer
        return False


def begins_at(storage: Any) -> int:
    """The alignment of its address in bytes, a power of two, at most `LINE_BYTES`.

    Storage over host memory may begin anywhere.
    """
    if is_svm(storage):
        address = int(storage.svm_ptr)
    elif storage.flags & opencl().mem_flags.USE_HOST_PTR:
        address = int(storage.get_host_array((1,), np.dtype(np.uint8)).ctypes.data)
    else:
        return LINE_BYTES
    return min(address & -address, LINE_BYTES)


def expect_storage(storage: object) -> None:
    """Raise `InvalidArgument` unless it is storage for a buffer."""
    if not is_plain(storage) or isinstance(storage, opencl().Image):
        raise InvalidArgument(
            f"buffer: got {shown(storage)}, expected a pyopencl Buffer, a buffer of a MemoryPool, "
            f"an SVMAllocation or a pyopencl.array.Array"
        )


def check(storage: Any, nbytes: int, engine: Engine, about: object) -> None:
    """Raise `DeviceError` unless it has ``nbytes`` and is of the engine's context."""
    if storage.size is not None and storage.size < nbytes:
        raise DeviceError(f"the buffer has {storage.size} bytes, {about} needs {nbytes}")
    check_context(storage, engine)


def check_context(storage: Any, engine: Engine) -> None:
    """Raise `DeviceError` for a buffer of another context; that of SVM is not known."""
    if not is_svm(storage):
        check_same_context("the buffer", _context_of(storage), "the engine", engine.context)


def check_same_context(what: object, context: object, whose: object, wanted: object) -> None:
    """Raise `DeviceError` where something has another context than that with which it is used."""
    if context != wanted:
        raise DeviceError(
            f"{what} belongs to another OpenCL context than {whose}: make both from one engine"
        )


def engine_of(buffer: Any) -> Engine | None:
    """An engine in the context of a buffer or array of pyopencl's; None where it tells none."""
    context = _context_of(buffer)
    if not isinstance(context, opencl().Context):
        return None
    usual = default_engine()
    return usual if usual.context == context else Engine(context=context)


def _context_of(buffer: Any) -> Any:
    """The context of a buffer or an array; None of one that was released before its buffer."""
    cl = opencl()
    if not isinstance(buffer, cl.MemoryObjectHolder):
        return getattr(buffer, "context", None)
    with suppress(cl.Error):  # some drivers forget it then
        return buffer.get_info(cl.mem_info.CONTEXT)
    return None


def unwrapped(buffer: Any) -> Any:
    """The buffer under a ``pyopencl.array.Array`` that begins at its start; others unchanged.

    Waits for the array's commands. Raises `DeviceError` if it begins inside its buffer.
    """
    if not is_array(buffer):
        return buffer
    if buffer.offset:
        raise DeviceError(
            f"the array begins {buffer.offset} bytes after the start of its buffer: use "
            f"cf.from_array, or its base_data with a descriptor that has this offset"
        )
    wait_for_array(buffer)
    return buffer.base_data


def wait_for_array(array: Any) -> None:
    """Wait for the commands that compute a ``pyopencl.array.Array``. Raises `DeviceError`."""
    with named_errors("waiting for what computes an array"):
        for event in array.events:
            event.wait()


def allocated(
    engine: Engine, nbytes: int, allocator: Allocator | None, about: object, *, fill: bool = True
) -> Any:
    """New storage, all zero unless ``fill`` is False. Raises `DeviceError`."""
    cl = opencl()
    with named_errors(f"allocating {nbytes} bytes for", about):
        if allocator is None:
            storage = cl.Buffer(engine.context, cl.mem_flags.READ_WRITE, nbytes)
            _ask_for_huge_pages(engine.tracked_queue, storage)
        else:
            storage = _given_by(allocator, nbytes)
            expect_storage(storage)
            check(storage, nbytes, engine, about)
        if not fill:
            return storage
        zero = np.zeros(1, np.uint8)
        if is_svm(storage):
            cl.enqueue_svm_memfill(engine.tracked_queue, storage, zero, nbytes).wait()
        else:
            cl.enqueue_fill_buffer(engine.tracked_queue, storage, zero, 0, nbytes).wait()
    return storage


def _given_by(allocator: Allocator, nbytes: int) -> Any:
    try:
        return allocator(nbytes)
    except TypeError as error:
        raise InvalidArgument(
            f"allocator: {shown(allocator)} cannot be called with a number of bytes ({error}): "
            f"expected a pyopencl MemoryPool or another function of one"
        ) from error


def _ask_for_huge_pages(queue: pyopencl.CommandQueue, buffer: pyopencl.Buffer) -> None:
    """Ask the system for huge pages under a new buffer, as numpy does under its arrays.

    The first write to each page costs an interrupt: with pages of 4 KiB new memory of a CPU's
    driver takes three times as long to fill as a new array. Linux only; elsewhere nothing happens.
    Raises pyopencl's errors.
    """
    cl, advice = opencl(), getattr(mmap, "MADV_HUGEPAGE", None)
    on_cpu = queue.device.type & cl.device_type.CPU
    if advice is None or buffer.size < LEAST_HUGE or not on_cpu:
        return
    array, _ = map_bytes(queue, buffer, cl.map_flags.WRITE, slice(0, buffer.size))
    page = mmap.PAGESIZE
    start = -(-array.ctypes.data // page) * page
    length = (array.ctypes.data + buffer.size) // page * page - start
    madvise = ctypes.CDLL(None).madvise
    # A wish: where the system does not grant it, small pages are as good.
    madvise(ctypes.c_void_p(start), ctypes.c_size_t(length), ctypes.c_int(advice))
    array.base.release(queue).wait()


def map_bytes(
    queue: pyopencl.CommandQueue, buffer: Any, flags: int, where: slice,
    waits: Sequence[pyopencl.Event] = (), *, is_blocking: bool = True,
) -> Any:  # fmt: skip
    """Map bytes of a buffer: the array of them, and the event. Raises pyopencl's errors."""
    return opencl().enqueue_map_buffer(
        queue, buffer, flags, where.start, (where.stop - where.start,), np.dtype(np.uint8),
        wait_for=waits or None, is_blocking=is_blocking,
    )  # fmt: skip


class Mapped:
    """Storage mapped to the host: ``array`` holds the bytes once ``event`` is complete.

    Made before it is mapped, so that who holds it can end what `map` began, though Control-C came
    in the middle.
    """

    __slots__ = ("_found", "_where")

    def __init__(self, where: slice) -> None:
        self._where = where
        self._found: Any = None

    def map(
        self, queue: pyopencl.CommandQueue, storage: Any, flags: int, waits: list[pyopencl.Event]
    ) -> None:
        """Enqueue the mapping of the bytes ``where``; raises pyopencl's errors."""
        if is_svm(storage):
            self._found = storage.map(queue, flags=flags, is_blocking=False, wait_for=waits or None)
        else:
            self._found = map_bytes(queue, storage, flags, self._where, waits, is_blocking=False)

    @property
    def array(self) -> NDArray[np.uint8]:
        """The bytes."""
        found = self._found
        return found[0] if isinstance(found, tuple) else found.array[self._where]  # type: ignore[no-any-return]

    @property
    def event(self) -> pyopencl.Event:
        """The event of the mapping."""
        found = self._found
        return found[1] if isinstance(found, tuple) else found.event  # type: ignore[no-any-return]

    def unmap(self, queue: pyopencl.CommandQueue) -> pyopencl.Event | None:
        """Enqueue the end of the mapping; None where it never began. Raises pyopencl's errors."""
        if self._found is None:
            return None
        found = self._found[0].base if isinstance(self._found, tuple) else self._found
        return found.release(queue, wait_for=[self.event])  # type: ignore[no-any-return]
