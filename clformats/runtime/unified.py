"""Host memory under a buffer: which devices use it in place, and which need a copy.

A device that shares memory with the host takes a host pointer (``CL_MEM_USE_HOST_PTR``), but
silently makes a copy unless the pointer is aligned. A CPU needs multiples of
``CL_DEVICE_MEM_BASE_ADDR_ALIGN``, which numpy's arrays are not. So the buffer begins up to that
many bytes before the array, on the same page, and kernels touch only the array. An integrated GPU
needs whole pages and whole cache lines. There the buffer never begins before the array: a driver
that copies all the same would write back bytes that are not the array's.
"""

from __future__ import annotations

import ctypes
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from ..opencl import named_errors, opencl
from ..problems.thresholds import LINE_BYTES
from .engine import Engine
from .order import usage_of
from .storage import HOST_PART, HostPart

if TYPE_CHECKING:
    import pyopencl

PAGE = 4096


def shares_host_memory(device: pyopencl.Device) -> bool:
    """Whether a device works in host memory, which is then mapped or wrapped, not copied."""
    return bool(device.host_unified_memory)


def bytes_in_front(engine: Engine, array: NDArray[Any]) -> int | None:
    """The bytes by which a buffer begins before a 1-D array; None if the array must be copied."""
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

    It keeps the array alive (see `storage.host_part`). The results of kernels are in the array
    after the next mapping.
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
    setattr(buffer, HOST_PART, HostPart(array, front))
    usage_of(buffer)  # no user has it
    return buffer
