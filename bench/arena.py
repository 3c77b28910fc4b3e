"""Where a case is run: its data, the truth from the host, and buffers that every contestant shares.

On a CPU the device and the peers use the same page-aligned pieces of memory, so none of them is
favoured by where its data lies; what caches do not hold takes turns over several pairs of pieces.
On other devices the kernels have buffers of their own.
"""

from __future__ import annotations

import mmap
from copy import copy
from functools import lru_cache
from typing import Any

import numpy as np
from numpy.typing import NDArray

import clformats as cf
from clformats.reorders.profiles import traits_of
from clformats.tuning.contest import turns

from .cases import Case

Bytes = NDArray[np.uint8]
LINE = 64


class NotComparableError(Exception):
    """A peer cannot do this case; the text says why."""


class WrongResultError(Exception):
    """A result is not the truth."""


def pages(size: int) -> Bytes:
    """Zeroed memory that starts at a page."""
    return np.frombuffer(mmap.mmap(-1, max(size, mmap.PAGESIZE)), np.uint8)


@lru_cache(maxsize=1)
def random_tensor(dims: tuple[int, ...], dtype: str) -> NDArray[Any]:
    """Random values: all bytes for integers; for floats some that saturate 8 bits, no NaN."""
    rng = np.random.default_rng(1)
    kind = cf.MemoryDesc(dims, dtype).dtype
    if kind.is_packed:
        return rng.integers(*kind.limits, dims, np.int8, endpoint=True).astype(kind.numpy)
    if not kind.is_float:
        return np.frombuffer(rng.bytes(int(np.prod(dims)) * kind.nbytes), kind.numpy).reshape(dims)
    return (rng.standard_normal(dims, np.float32) * 60).astype(kind.numpy)


class Data:
    """The data of a case and the truth; `read` and `written` are the buffers' bytes on the host.

    ``memory``: bytes of the device's memory. ``is_nvidia``: whether CUDA's libraries can use it.
    """

    def __init__(self, case: Case, memory: int, *, is_nvidia: bool = True) -> None:
        self.case, self.memory, self.is_nvidia = case, memory, is_nvidia
        self.src, self.dst = case.descriptors()
        array = random_tensor(case.dims, self.src.dtype.name)
        source = cf.pack(array, self.src).view(np.uint8)
        attr = case.attr()
        wanted = array if attr.is_empty else attr.apply(array, self.src.dtype, self.dst.dtype)
        self.truth: Bytes = cf.pack(wanted, self.dst).view(np.uint8)
        self.copied = max(LINE, (source.size + self.truth.size) // 2 // LINE * LINE)
        self.read = pages(max(source.size, self.copied))
        self.written = pages(max(self.truth.size, self.copied))
        # What copies move beyond the source is no zeros: some processors move those faster.
        self.read[:] = np.resize(source, self.read.size)

    @property
    def moved(self) -> int:
        """Bytes read and written, padding included."""
        return self.src.nbytes + self.dst.nbytes

    def compare(self, got: Bytes) -> None:
        """Raise `WrongResultError` unless these bytes of a destination are the truth."""
        differ = np.flatnonzero(got[: self.truth.size] != self.truth)
        if differ.size:
            first = int(differ[0]) // self.dst.dtype.nbytes
            raise WrongResultError(
                f"{differ.size} bytes differ from the truth, the first in element {first} "
                f"(logical index {self.dst.coords(first)})"
            )


class Arena(Data):
    """A case on a device of OpenCL: the two buffers, filled."""

    def __init__(self, case: Case, engine: cf.Engine) -> None:
        memory, vendor = int(engine.device.global_mem_size), engine.device.vendor
        super().__init__(case, memory, is_nvidia="NVIDIA" in vendor)
        self.on_host = bool(engine.traits.is_cpu)
        # One queue for all: commands on a second one would wait for markers on the first.
        self.engine, self.stream = engine, cf.Stream(engine, profiling=not self.on_host)
        self.allocate()

    def turns(self) -> list[Arena]:
        """Itself, and others of the same data that take turns with it: see `contest.turns`."""
        found = [self]
        for _ in range(turns(self.moved, traits_of(self.engine)) - 1):
            other = copy(self)
            other.read, other.written = pages(self.read.size), pages(self.written.size)
            other.read[:], other.written[:] = self.read, 0  # an untouched page has no memory yet
            other.allocate()
            found.append(other)
        return found

    def allocate(self) -> None:
        """Make the buffers: of the memory on the host, or of their own."""
        import pyopencl as cl

        where = cl.mem_flags.USE_HOST_PTR if self.on_host else cl.mem_flags.COPY_HOST_PTR
        flags, context = cl.mem_flags.READ_WRITE | where, self.engine.context
        read, written = (cl.Buffer(context, flags, hostbuf=d) for d in (self.read, self.written))
        self.buffers = read, written

    def memories(self, src: cf.MemoryDesc, dst: cf.MemoryDesc) -> tuple[cf.Memory, cf.Memory]:
        """The two buffers under these descriptors."""
        read, written = self.buffers
        return cf.Memory(src, self.engine, buffer=read), cf.Memory(dst, self.engine, buffer=written)

    def check_device(self, run: Any) -> None:
        """Run a move on the device over a destination full of rubbish, and compare every byte."""
        import pyopencl as cl

        queue, (_, written) = self.stream.queue, self.buffers
        cl.enqueue_fill_buffer(queue, written, np.uint8(0xA5), 0, self.truth.size).wait()
        run()
        with self.memories(self.src, self.dst)[1].map("r", stream=self.stream) as flat:
            self.compare(flat.view(np.uint8))

    def check_host(self, run: Any, *, pads: bool) -> None:
        """The same for a peer that writes `written`; ``pads`` says whether it zeroes padding."""
        self.written[: self.truth.size] = 0xA5 if pads else 0
        run()
        self.compare(self.written)
