"""Arguments of calls: wrapped if they are pyopencl's own, and checked; memory for results."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import TYPE_CHECKING, Any, TypeAlias

from ..errors import InvalidArgument, InvalidAttr, InvalidDescriptor, shown
from ..host.packing import is_gapless
from ..opencl import opencl
from ..problems.compare import overlap
from ..runtime import Engine, Event, Memory, Stream
from ..runtime.scalar import Scalar
from ..runtime.storage import is_array, is_plain
from ..schedule.anysize import fits
from ..tensors.desc import MemoryDesc
from ..tensors.described import Described, element_type, is_described
from ..tensors.given import as_any_desc, is_desc_text
from ..values.transforms import joins_winograd, winograd

if TYPE_CHECKING:
    import pyopencl
    import pyopencl.array

    AnyStream: TypeAlias = Stream | pyopencl.CommandQueue
    AnyMemory: TypeAlias = Memory | pyopencl.Buffer | pyopencl.SVMPointer | pyopencl.array.Array


def as_stream(stream: Any, engine: Engine) -> Stream:
    """The stream, or one on a pyopencl queue. Raises `InvalidArgument`."""
    if isinstance(stream, Stream):
        return stream
    if stream is None or isinstance(stream, Memory):
        raise InvalidArgument(
            f"stream: got {shown(stream)}, expected a stream too, in front: cf.Stream(engine)"
        )
    if not isinstance(stream, opencl().CommandQueue):
        raise InvalidArgument(
            f"stream: got {shown(stream)}, expected Stream or pyopencl's CommandQueue"
        )
    return Stream(engine if engine.context == stream.context else None, queue=stream)


def as_memory(value: Any, desc: MemoryDesc | Described, engine: Engine, name: str) -> Memory:
    """The memory object, or one over pyopencl's storage as ``desc``.

    Raises `InvalidArgument`, and `DeviceError` where the storage does not fit.
    """
    if isinstance(value, Memory):
        return value
    is_storage = is_plain(value) or is_array(value)
    if not is_storage or desc.has_runtime:
        why = f" ({desc} has open sizes, which only a Memory tells)" if is_storage else ""
        raise InvalidArgument(
            f"{name}: got {shown(value)}, expected Memory, or pyopencl's Buffer or Array{why}"
        )
    return Memory(desc, engine, buffer=value)


def let_arrays_wait(values: Iterable[Any], event: Event) -> None:
    """Let what is done with pyopencl's arrays later come after the call."""
    for value in values:
        if is_array(value):
            value.add_event(event.event)


def made_for(
    memory: Memory,
    format: Any,  # the field's word for it
    dtype: object,
    transform: bool | None,  # noqa: FBT001  # handed on
) -> tuple[Memory, bool | None]:
    """Memory for the result, and whether values are transformed; None: as the dims say."""
    src = memory.desc
    is_text = isinstance(format, str) and is_desc_text(format)
    if isinstance(format, MemoryDesc | Described) or is_text:
        dst = as_any_desc(format, "format")
        if dtype is not None:
            raise InvalidArgument(f"got dtype={dtype!r}, but {dst} says it: leave dtype out")
        return Memory(dst, memory.engine), transform
    stays = dtype is None or is_described(src) == (element_type(dtype) is not None)
    given = src.format if format is None and stays else format
    wanted = joins_winograd(src.format, given) if transform is None else transform
    if wanted:
        dst = winograd(src, given, dtype)
    else:
        dst = MemoryDesc(src.dims, src.dtype if dtype is None else dtype, given)
    new = Memory.unfilled if not is_described(dst) and is_gapless(dst) else Memory
    return new(dst, memory.engine), wanted


# --- checks ---------------------------------------------------------------------------------------

Use = tuple[str, Memory, MemoryDesc]
"""A memory object of a command: its name in messages, itself, and the descriptor it must have."""


def check_desc(use: tuple[str, Memory, Any]) -> None:
    """Raise `InvalidDescriptor` where a memory object is not of the descriptor it must have."""
    name, memory, desc = use
    if memory.desc is not desc and not fits(memory.desc, desc):
        raise InvalidDescriptor(f"the {name} is {memory.desc}, the reorder was made for {desc}")


def check_apart(uses: Sequence[Use]) -> None:
    """Raise if the last tensor, which is written, shares bytes with one that is read."""
    dst = uses[-1][1]
    for name, memory, _ in uses[:-1]:
        shared = memory.usage is dst.usage and memory.tracked_buffer is not None
        if shared and overlap(memory.desc, dst.desc):
            raise InvalidDescriptor(
                f"{name} {memory.desc} and destination {dst.desc} share bytes of one buffer: a "
                f"reorder cannot work in place, give it another destination"
            )


def values_on_device(name: str, memory: Memory, count: int, dtype: object) -> None:
    """Check that a memory object holds the values of an attribute. Raises `InvalidAttr`."""
    desc = memory.desc
    dense = desc.has_layout and desc.span_nbytes == desc.nelems * desc.dtype.nbytes
    if desc.dtype != dtype or desc.nelems != count or desc.offset0 or not dense:
        raise InvalidAttr(
            f"got {desc} for {name}, expected {count} values of {dtype}, dense and from the start "
            f"of their buffer"
        )


def scalar_of(name: str, scalar: Scalar, mask: int, dtype: object) -> None:
    """Check that a scalar of a recording can be an attribute's value. Raises `InvalidAttr`."""
    if mask or scalar.dtype != str(dtype):
        raise InvalidAttr(
            f"got the {scalar.dtype} scalar {scalar.name} for {name}, expected "
            f"{'a memory object, for a mask' if mask else f'one of {dtype}'}"
        )
