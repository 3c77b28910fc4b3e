"""Memory objects from and to numpy, pyopencl arrays, DLPack tensors and host memory."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from numpy.typing import NDArray

from ..errors import DeviceError, InvalidDescriptor, expect
from ..host.axes import in_order
from ..host.memory import HostMemory
from ..host.packing import pack_into
from ..tensors.desc import MemoryDesc
from ..tensors.described import is_described
from ..tensors.dlpack import array_of
from ..tensors.dtypes import as_array, as_dtype
from ..tensors.given import moved_by
from . import unified
from .engine import Engine, default_engine
from .external import handed_out
from .memory import Memory
from .storage import Allocator, wait_for_array
from .stream import Stream

if TYPE_CHECKING:
    import pyopencl.array


def from_numpy(
    array: Any,
    engine: Engine | None = None,
    *,
    format: Any = None,  # the field's word for it
    dtype: object = None,
    stream: Stream | None = None,
) -> Memory:
    """As `clformats.from_numpy`, always by numpy."""
    array = as_array(array)
    return packed(array, desc_of(array, format, dtype), engine, stream)


def packed(
    array: Any, desc: MemoryDesc, engine: Engine | None, stream: Stream | None,
    allocator: Allocator | None = None,
) -> Memory:  # fmt: skip
    """A memory object of a descriptor, also of a quantised tensor, packed on the host."""
    memory = Memory.unfilled(desc, engine, allocator)
    with memory.map("w", stream=stream) as flat:
        pack_into(flat, array, desc)
    return memory


def desc_of(array: NDArray[Any], format: Any, dtype: object) -> MemoryDesc:  # the field's word
    """What memory for an array is to be. Raises `InvalidDescriptor`."""
    if array.ndim == 0:
        raise InvalidDescriptor(f"got the single value {array!r}, expected an array")
    return MemoryDesc(array.shape, as_dtype(array.dtype if dtype is None else dtype), format)


def from_dlpack(
    tensor: Any,
    engine: Engine | None = None,
    *,
    format: Any = None,  # the field's word for it
    axes: str | Sequence[str] | None = None,
    dtype: object = None,
    stream: Stream | None = None,
) -> Memory:
    """As `from_numpy`, of any tensor in host memory that speaks DLPack (torch, jax, ...).

    Of bf16 and f8 too. Raises `InvalidDescriptor` for one on a GPU and for other element types.
    """
    array = in_order(array_of(tensor), axes, format)
    return from_numpy(array, engine, format=format, dtype=dtype, stream=stream)


def from_host(array: Any, engine: Engine | None = None) -> Memory:
    """A memory object over host memory in place, without a copy.

    ``array`` is a dense numpy array or tensor that speaks DLPack (torch's), whose shape is the
    logical dims, or a `HostMemory`. It needs a
    device that shares the host's memory: a CPU takes any array, an integrated GPU one that begins
    at a page and ends at a cache line. The buffer may begin before the array, where the device
    needs that; then ``desc`` has an offset. Kernels' results are in the array after the next
    mapping; do not touch the array while a kernel may be running. Raises `DeviceError` if the
    device cannot use the memory in place.
    """
    expect(engine, Engine | None, "engine")
    host = array if isinstance(array, HostMemory) else HostMemory.of(array)
    engine = engine or default_engine()
    if not host.array.nbytes:
        return Memory(host.desc, engine)
    front = unified.bytes_in_front(engine, host.array)
    if front is None:
        raise DeviceError(
            f"{engine.device.name} cannot use {host.array.nbytes} bytes at address "
            f"{host.array.ctypes.data:#x} in place: copy them, by cf.from_numpy or cf.transfer"
        )
    elements, rest = divmod(front * 8, host.desc.dtype.bits)
    if rest or (front and is_described(host.desc)):
        where = "where its buffer does" if is_described(host.desc) else "at a whole element"
        raise DeviceError(
            f"{engine.device.name} shares memory from {front} bytes before the array on, and "
            f"{host.desc} must begin {where}: copy it, by cf.transfer, or begin it at a multiple "
            f"of {engine.device.mem_base_addr_align // 8} bytes"
        )
    writing = bool(host.array.flags.writeable)
    buffer = unified.wrapped(engine, host.array, front, writing=writing)
    return Memory(moved_by(host.desc, elements), engine, buffer=buffer)


def from_array(
    array: pyopencl.array.Array,
    engine: Engine | None = None,
    *,
    format: Any = None,  # the field's word for it
) -> Memory:
    """A memory object over a ``pyopencl.array.Array`` in place, without a copy.

    The array's shape is the logical dims; its strides must be positive. With ``format`` the array,
    dense and without blocks, lies in that format already: its shape is still the logical dims. For
    blocks and padding give the memory's own description, ``cf.Memory(desc, buffer=array)``. This
    waits for the commands that compute the array. Raises `InvalidDescriptor` and `DeviceError`.
    """
    from pyopencl.array import Array

    expect(array, Array, "array")
    expect(engine, Engine | None, "engine")
    if not array.shape:
        raise InvalidDescriptor("got an array of a single value, expected one with dimensions")
    engine = engine or Engine(array.queue or array.context)
    desc = _array_desc(array) if format is None else _array_in(array, format)
    wait_for_array(array)
    if array.queue is not None:
        handed_out(array.queue)
    return Memory(desc, engine, buffer=array.base_data if desc.nelems else None)


def _array_in(array: pyopencl.array.Array, format: Any) -> MemoryDesc:  # the field's word for it
    """The elements of a dense array as a format of the same size, in the order of memory."""
    desc = MemoryDesc(array.shape, as_dtype(array.dtype), format)
    desc.require_layout()
    first = _array_desc(array).offset0
    if not array.flags.c_contiguous or desc.nbytes != array.nbytes:
        raise InvalidDescriptor(
            f"got an array of shape {array.shape} and strides {array.strides}, expected the "
            f"{desc.nbytes} bytes of {desc} without gaps; for others cf.Memory(desc, buffer=array)"
        )
    return moved_by(desc, first)


def _array_desc(array: pyopencl.array.Array) -> MemoryDesc:
    """How an array lies, by its strides. Raises `InvalidDescriptor`."""
    item = array.dtype.itemsize
    if array.offset % item or any(step % item for step in array.strides):
        raise InvalidDescriptor(
            f"got strides of {array.strides} bytes from byte {array.offset} on, expected multiples "
            f"of the {item} bytes of an element"
        )
    desc = MemoryDesc(
        array.shape, as_dtype(array.dtype), strides=[step // item for step in array.strides]
    )
    return moved_by(desc, array.offset // item)


def to_array(
    memory: Memory, *, stream: Stream | None = None, physical: bool = False
) -> pyopencl.array.Array:
    """A ``pyopencl.array.Array`` over the buffer of a memory object, without a copy.

    Its shape is ``desc.dims``; with ``physical=True`` it has every element in memory, padding
    included, and one axis for each digit, as `Memory.physical`. Its commands run on ``stream``, or
    on the engine's own queue, and wait for all commands enqueued on the memory object so far. The
    memory object's next commands wait for all that is on that queue then.

    Raises `InvalidDescriptor` for elements that share bytes, for images, and without ``physical``
    unless the format is plain: one stride for each dimension.
    """
    from pyopencl.array import Array

    expect(memory, Memory, "memory")
    expect(stream, Stream | None, "stream")
    expect(physical, bool, "physical")
    desc = memory.desc
    plain = all(p.digit.size is None for p in desc.placed) and len(desc.placed) == desc.ndims
    if not (plain or physical) or desc.dtype.is_packed or desc.format.image or not desc.nelems:
        raise InvalidDescriptor(
            f"{desc} has no strides for an array: reorder it to a plain format with elements "
            f"first, or give physical=True, for one axis of each digit"
        )
    memory.check_use("make an array of it", memory.context, "its engine")
    queue, item = stream.queue if stream else memory.engine.queue, desc.dtype.nbytes
    if physical:
        first, shape = desc.offset0, tuple(p.size for p in desc.placed)
        steps = tuple(p.stride for p in desc.placed)
    else:
        first, shape, steps = desc.offset(*[0] * desc.ndims), desc.dims, desc.strides
    array = Array(
        queue,
        shape,
        desc.dtype.numpy,
        data=memory.buffer,
        offset=first * item,
        strides=tuple(step * item for step in steps),
    )
    for event in filter(None, (memory.usage.writer, *memory.usage.readers.values())):
        array.add_event(event)
    return array
