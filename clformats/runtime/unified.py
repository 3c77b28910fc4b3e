"""Host memory under a buffer: where a device works in it as it lies, and where it must be copied.

A device that shares memory with the host takes a pointer of the host's (``CL_MEM_USE_HOST_PTR``),
but silently makes a copy of its own unless the pointer is aligned. A CPU wants it at multiples of
``CL_DEVICE_MEM_BASE_ADDR_ALIGN``, which no array of numpy's is: the buffer begins up to that much
before the array, on the same page, and kernels touch only what belongs to the array. A GPU beside
the CPU wants whole pages and whole cache lines; there nothing is begun earlier, because a driver
that copies after all would write back what is not ours.
"""

from __future__ import annotations

import ctypes
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from ..schedule.traits import LINE_BYTES
from .engine import Engine
from .opencl import named_errors, opencl
from .storage import HostPart, keep_host_part
from .usage import usage_of

if TYPE_CHECKING:
    import pyopencl

PAGE = 4096


def shares_host_memory(device: pyopencl.Device) -> bool:
    """Whether a device works in the host's memory: then it is mapped or wrapped, not copied."""
    return bool(device.host_unified_memory)


def bytes_in_front(engine: Engine, array: NDArray[Any]) -> int | None:
    """How many bytes before a 1-D array a buffer over it begins; None where it must be copied."""
    device = engine.device
    if not shares_host_memory(device) or array.nbytes > device.max_mem_alloc_size:
        return None
    address = array.ctypes.data
    if device.type & opencl().device_type.CPU:
        front = address % (device.mem_base_addr_align // 8)
        return None if front % array.itemsize else front
    return None if address % PAGE or array.nbytes % LINE_BYTES else 0


def wrapped(engine: Engine, array: NDArray[Any], front: int, *, writing: bool) -> pyopencl.Buffer:
    """A buffer over a 1-D array and ``front`` bytes before it. Raises `DeviceError`.

    It keeps the array (see `storage.host_part`). What a kernel wrote is sure to be there after
    `settle`.
    """
    cl = opencl()
    size = front + array.nbytes
    memory = (ctypes.c_uint8 * size).from_address(array.ctypes.data - front)
    host = np.ctypeslib.as_array(memory)
    access = cl.mem_flags.READ_WRITE if writing else cl.mem_flags.READ_ONLY
    with named_errors(f"wrapping {size} bytes of host memory for", engine):
        buffer: pyopencl.Buffer = cl.Buffer(
            engine.context, access | cl.mem_flags.USE_HOST_PTR, hostbuf=host
        )
    keep_host_part(buffer, HostPart(array, front))
    usage_of(buffer)  # nobody else has it
    return buffer


def settle(queue: pyopencl.CommandQueue, buffer: pyopencl.Buffer, front: int) -> None:
    """Make what kernels wrote visible in the array under a buffer: by mapping it, says OpenCL."""
    cl = opencl()
    size = buffer.size - front
    with named_errors("mapping host memory"):
        array, _ = cl.enqueue_map_buffer(
            queue, buffer, cl.map_flags.READ, front, (size,), np.dtype(np.uint8)
        )
        array.base.release(queue).wait()
