"""Calls with pyopencl's own objects: queues, buffers and arrays, wrapped for the call."""

from __future__ import annotations

import sys
from collections.abc import Iterable
from typing import TYPE_CHECKING, Any, TypeAlias

from ..errors import InvalidArgument, shown
from ..runtime import Engine, Event, Memory, Stream
from ..runtime.opencl import opencl
from ..tensors.desc import MemoryDesc

if TYPE_CHECKING:
    import pyopencl
    import pyopencl.array

    AnyStream: TypeAlias = Stream | pyopencl.CommandQueue
    AnyMemory: TypeAlias = Memory | pyopencl.Buffer | pyopencl.SVMPointer | pyopencl.array.Array


def as_stream(stream: Any, engine: Engine) -> Stream:
    """The stream, or one on a pyopencl queue. Raises `InvalidArgument`."""
    if isinstance(stream, Stream):
        return stream
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
