"""Huge pages under large buffers of CPUs, as numpy has them under its arrays.

The first write to each page costs an interrupt: with pages of 4 KiB new memory of a CPU's driver
takes three times as long to fill as a new array of numpy's. Linux only; elsewhere nothing happens.
"""

from __future__ import annotations

import ctypes
import mmap
from typing import TYPE_CHECKING

import numpy as np

from ..opencl import opencl

if TYPE_CHECKING:
    import pyopencl

LEAST = 4 << 20
"""The bytes of memory from which on numpy asks too."""


def ask_for_huge(queue: pyopencl.CommandQueue, buffer: pyopencl.Buffer) -> None:
    """Ask the system for huge pages under a new buffer. Raises pyopencl's errors."""
    cl, advice = opencl(), getattr(mmap, "MADV_HUGEPAGE", None)
    on_cpu = queue.device.type & cl.device_type.CPU
    if advice is None or buffer.size < LEAST or not on_cpu:
        return
    array, _ = cl.enqueue_map_buffer(
        queue, buffer, cl.map_flags.WRITE, 0, (buffer.size,), np.dtype(np.uint8)
    )
    page = mmap.PAGESIZE
    start = -(-array.ctypes.data // page) * page
    length = (array.ctypes.data + buffer.size) // page * page - start
    madvise = ctypes.CDLL(None).madvise
    # A wish: where the system does not grant it, small pages are as good.
    madvise(ctypes.c_void_p(start), ctypes.c_size_t(length), ctypes.c_int(advice))
    array.base.release(queue).wait()
