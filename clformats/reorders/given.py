"""What calls are given: pyopencl's own objects, wrapped for the call, and what is to be made."""

from __future__ import annotations

import sys
from collections.abc import Iterable
from typing import TYPE_CHECKING, Any, TypeAlias

from ..errors import InvalidArgument, shown
from ..host.packing import is_gapless
from ..runtime import Engine, Event, Memory, Stream
from ..runtime.opencl import opencl
from ..tensors.desc import MemoryDesc
from ..tensors.described import is_described
from ..tensors.given import as_desc, is_desc_text
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


def as_memory(value: Any, desc: MemoryDesc, engine: Engine, name: str) -> Memory:
    """The memory object, or one over pyopencl's storage as ``desc``.

    Raises `InvalidArgument`, and `DeviceError` where the storage does not fit.
    """
    if isinstance(value, Memory):
        return value
    cl = opencl()
    is_storage = isinstance(value, cl.MemoryObjectHolder | cl.SVMPointer) or is_array(value)
    if not is_storage or desc.has_runtime:
        why = f" ({desc} has open sizes, which only a Memory tells)" if is_storage else ""
        raise InvalidArgument(
            f"{name}: got {shown(value)}, expected Memory, or pyopencl's Buffer or Array{why}"
        )
    return Memory(desc, engine, buffer=value)


def is_array(value: object) -> bool:
    """Whether it is a ``pyopencl.array.Array``."""
    arrays = sys.modules.get("pyopencl.array")
    return arrays is not None and isinstance(value, arrays.Array)


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
    if isinstance(format, MemoryDesc) or (isinstance(format, str) and is_desc_text(format)):
        dst = as_desc(format, "format")
        if dtype is not None:
            raise InvalidArgument(f"got dtype={dtype!r}, but {dst} says it: leave dtype out")
        return Memory(dst, memory.engine), transform
    given = src.format if format is None else format
    wanted = joins_winograd(src.format, given) if transform is None else transform
    if wanted:
        dst = winograd(src, given, dtype)
    else:
        dst = MemoryDesc(src.dims, src.dtype if dtype is None else dtype, given)
    new = Memory.unfilled if not is_described(dst) and is_gapless(dst) else Memory
    return new(dst, memory.engine), wanted
