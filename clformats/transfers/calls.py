"""`from_numpy` and `to_numpy`: by numpy at first, by a kernel what comes often.

To build a kernel takes as long as numpy takes for some hundred megabytes; then it is two to four
times as fast, because it works in the host's memory as it lies, with vectors, past the cache.
"""

from __future__ import annotations

import threading
from collections.abc import Sequence
from typing import Any
from weakref import WeakKeyDictionary

import numpy as np
from numpy.typing import NDArray

from ..errors import InvalidArgument, InvalidDescriptor, Unsupported, expect, shown
from ..formats import Format
from ..host.axes import in_order
from ..host.memory import HostMemory
from ..host.packing import is_gapless
from ..opencl import opencl
from ..reorders.reorder import Reorder
from ..runtime import Engine, Memory, Stream, interop, unified
from ..runtime.engine import default_engine
from ..runtime.storage import Allocator
from ..tensors.desc import MemoryDesc
from ..tensors.described import element_type
from ..tensors.dtypes import as_array
from ..tensors.given import as_any_desc
from .ends import Wrapped

LEAST = 8 << 20
"""The bytes of a tensor from which on its calls are counted."""
WORTH = 512 << 20
"""How many bytes, read and written, numpy moves from one descriptor to another before a kernel is
built for the two."""
KEPT = 256
"""For how many pairs of descriptors an engine remembers how much was moved."""

_moved: WeakKeyDictionary[Engine, dict[tuple[MemoryDesc, MemoryDesc], int]] = WeakKeyDictionary()
_lock = threading.Lock()


def from_numpy(  # noqa: PLR0913  # each says another thing of the result
    array: Any,
    engine: Engine | None = None,
    *,
    format: Any = None,  # the field's word for it
    axes: str | Sequence[str] | None = None,
    dtype: object = None,
    stream: Stream | None = None,
    allocator: Allocator | None = None,
    desc: Any = None,
) -> Memory:
    """A memory object with the elements of ``array``.

    ``format`` defaults to dense row-major, ``dtype`` to the array's; ``allocator`` is as of
    `Memory`. ``array.shape`` is the logical dims, whatever the format, unless ``axes`` says what
    the array's axes are: ``from_numpy(photo, axes="hwc", format="b_fs_yx_fsv16")`` takes an array
    of height x width x channels. Dimensions that ``axes`` leaves out have size 1. ``desc``, instead
    of these, is the whole descriptor, also of a quantised tensor: then ``array`` may be a dict of
    its fields. ``dtype="q4_0", format="flat"`` quantises an array.

    Numpy packs on the host, with several threads. On a CPU a kernel takes over from numpy once
    512 MiB were moved between the same two descriptors, in calls of 8 MiB and more: the call that
    builds it takes some tenths of a second longer. Raises `InvalidDescriptor` and `DeviceError`.
    """
    if desc is not None:
        if not (format is axes is dtype is None):
            raise InvalidArgument(f"desc={desc} says all: leave format, axes and dtype out")
        return interop.packed(array, as_any_desc(desc, "desc"), engine, stream, allocator)
    if element_type(dtype) is not None and axes is None:
        made: Any = MemoryDesc(as_array(array).shape, dtype, format)
        return interop.packed(array, made, engine, stream, allocator)
    _check_engine(engine)
    array = in_order(as_array(array), axes, format)
    desc, host = interop.desc_of(array, format, dtype), _host_memory(array)
    expect(stream, Stream | None, "stream")
    engine = default_engine() if engine is None else engine
    # What a kernel does not write would not be zero.
    fits = host is not None and is_gapless(desc) and _suits(desc, engine)
    if host is not None and fits and _comes_often(engine, host.desc, desc):
        memory = Memory.unfilled(desc, engine, allocator)
        if _reordered(host, memory, stream, writing=False):
            return memory
    return interop.packed(array, desc, engine, stream, allocator)


def _check_engine(engine: object) -> None:
    """Refuse a format in the engine's place."""
    if isinstance(engine, str | Format):
        raise InvalidArgument(
            f"engine: got {shown(engine)}, expected Engine or None: a format is given by its name, "
            f"as format={str(engine)!r}"
        )


def to_numpy(memory: Memory, *, stream: Stream | None = None) -> NDArray[Any]:
    """The logical tensor of a memory object, of shape ``desc.dims``: a copy.

    By numpy, or by a kernel, as `from_numpy` says; ``memory.numpy()`` is always by numpy.
    """
    expect(memory, Memory, "memory")
    expect(stream, Stream | None, "stream")
    plain = MemoryDesc(memory.desc.dims, memory.desc.dtype)
    if _suits(memory.desc, memory.engine) and _comes_often(memory.engine, memory.desc, plain):
        memory.check_unmapped("map it")
        result = np.empty(plain.dims, plain.dtype.numpy)
        if _reordered(HostMemory.of(result), memory, stream, writing=True):
            return result
    return memory.numpy(stream=stream)


def _suits(desc: MemoryDesc, engine: Any) -> bool:
    """Whether a kernel may move such a tensor, working in the host's memory."""
    if not isinstance(engine, Engine) or desc.nbytes < LEAST or not engine.traits.is_cpu:
        return False
    special = desc.dtype.is_packed or desc.format.image or desc.sums
    return not special and unified.shares_host_memory(engine.device)


def _comes_often(engine: Engine, src: MemoryDesc, dst: MemoryDesc) -> bool:
    """Whether so much was moved from the one to the other that a kernel pays; this call counts.

    Each engine has counts of its own, since a kernel is built for one engine.
    """
    opencl()  # refuses in a forked process, where the lock may never be released
    with _lock:
        counts = _moved.setdefault(engine, {})
        if len(counts) >= KEPT:
            counts.clear()
        before = counts.get((src, dst), 0)
        counts[src, dst] = before + src.nbytes + dst.nbytes
    return before >= WORTH


def _host_memory(array: NDArray[Any]) -> HostMemory | None:
    """An array as a kernel can have it; None for gaps, and for types that devices have not."""
    if array.nbytes < LEAST:
        return None
    try:
        return HostMemory.of(array)
    except InvalidDescriptor:
        return None


def _reordered(host: HostMemory, memory: Memory, stream: Stream | None, *, writing: bool) -> bool:
    """Move between the host's memory as it lies and a memory object; False where that cannot be.

    ``writing``: to the host.
    """
    front = unified.bytes_in_front(memory.engine, host.array)
    if front is None:
        return False
    # In the order of the queue that mapping would have used.
    stream = stream or Stream(memory.engine, queue=memory.engine.tracked_queue)
    end = Wrapped(host, stream, front, writing=writing)
    try:
        there = end.source(host.desc, 0)
        src, dst = (memory, there) if writing else (there, memory)
        Reorder(src.desc, dst.desc, memory.engine)(stream, src, dst)
    except Unsupported:
        return False
    finally:
        stream.wait()  # also after an error: the array must not go before the kernel has ended
        end.close()
    return True
