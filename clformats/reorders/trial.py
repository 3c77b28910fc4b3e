"""Checking a reorder: its data, the expected result by the host, and canaries around both.

The source's padding is garbage; the destination and the canaries before and after it are filled
with 0xA5. After the reorder the elements must equal the host's, all padding must be zero, and all
other bytes unchanged.
"""

from __future__ import annotations

from dataclasses import replace
from functools import cached_property
from math import prod
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ..host.memory import HostMemory, behind
from ..host.oracle import pack_by_offsets, put
from ..host.packing import places, storage_size
from ..opencl import named_errors, opencl
from ..runtime import Engine, Memory
from ..tensors.desc import MemoryDesc
from ..tensors.dtypes import DType, as_dtype, convert
from ..tensors.given import moved_by
from ..values.attr import Attr

POISON = 0xA5
FRONT = 64
"""Elements of canary before a tensor; a multiple of its alignment."""
BEHIND = 256
"""Bytes of canary after it."""
POOL = 1_048_573
"""The number of random values that large tensors repeat: a prime, so no size is a multiple."""

Bytes = NDArray[np.uint8]

# Values that saturate, that lie on a tie, and plain ones, as benchdnn fills tensors with.
_TABLE = np.array([2.0**24, -(2.0**24), 0, 0.25, 0.5, 1, 1.5, 2, 16, 64])


def values(rng: np.random.Generator, dims: tuple[int, ...], dtype: DType) -> NDArray[Any]:
    """Finite values of logical shape: extremes, ties and random ones, at most `POOL` different."""
    count = min(prod(dims), POOL)
    often = rng.random(count) < 0.3
    if dtype.is_float:
        mixed = np.where(often, rng.choice(_TABLE, count), rng.standard_normal(count) * 60)
        pool = convert(np.clip(mixed, -dtype.largest, dtype.largest), as_dtype("f64"), dtype)
    else:
        low, high = dtype.limits
        edges = np.array([low, high, *range(max(low, -2), min(high, 3) + 1)])
        some = rng.integers(low, high, count, np.int64, endpoint=True)
        pool = np.where(often, rng.choice(edges, count), some).astype(dtype.numpy)
    return np.resize(pool, dims)


# --- bits of memory -------------------------------------------------------------------------------


def element_bits(desc: MemoryDesc) -> Bytes:
    """Memory in which the bits of elements are set, and no others; sums are no elements."""
    if desc.nelems == places(desc) - desc.offset0:
        return _all_bits(desc)
    bits: Bytes = np.zeros(_size(desc), np.uint8)
    if desc.nelems:
        most = (1 << desc.dtype.bits) - 1
        put(bits, desc.offsets(), np.full(desc.dims, most, desc.dtype.raw), desc.dtype.bits)
    return bits


def owned_bits(desc: MemoryDesc) -> Bytes:
    """As `element_bits`, with padding and sums; not the bytes before the tensor, nor gaps."""
    whole = prod(desc.padded_dims) == places(desc) - desc.offset0
    if whole or any(len(p.digit.dims) > 1 for p in desc.placed):
        # What lies after the end of a fused index is padding too.
        bits = _all_bits(desc)
    else:
        unpadded = tuple((0, 0) for _ in desc.dims)
        padded = replace(desc.geometry, dims=desc.padded_dims, padding=unpadded)
        bits = element_bits(MemoryDesc.of(padded, desc.dtype))
    behind(bits, desc)[:] = 0xFF
    return bits


def _all_bits(desc: MemoryDesc) -> Bytes:
    first, end = (n * desc.dtype.bits for n in (desc.offset0, places(desc)))
    bits = np.full(_size(desc), 0xFF, np.uint8)
    bits[: first // 8] = bits[-(-end // 8) :] = 0
    if first % 8:
        bits[first // 8] &= 0xFF << first % 8 & 0xFF
    if end % 8:
        bits[end // 8] &= (1 << end % 8) - 1
    return bits


def blend(ours: Bytes, others: Bytes, bits: Bytes) -> Bytes:
    """``ours`` where bits are set, else ``others``."""
    return ours & bits | others & ~bits


def moved(desc: MemoryDesc) -> MemoryDesc:
    """The descriptor `FRONT` elements further on in its buffer; an image begins where it begins."""
    return desc if desc.format.image else moved_by(desc, FRONT)


# --- tensors --------------------------------------------------------------------------------------


class HostTensor:
    """As `DeviceTensor`, in host memory."""

    def __init__(self, desc: MemoryDesc, contents: Bytes) -> None:
        self._data: Bytes = with_canary(contents)
        self.memory = HostMemory(desc, self._data.view(desc.dtype.storage))

    def read(self) -> Bytes:
        """All bytes, canary included."""
        return np.array(self._data)


class DeviceTensor:
    """Memory on a device with given contents, and canaries around it in the same buffer."""

    def __init__(self, desc: MemoryDesc, contents: Bytes, engine: Engine) -> None:
        if desc.format.image or not contents.size:
            self.memory = Memory(desc, engine)
            with self.memory.map("w") as flat:
                flat.view(np.uint8)[:] = contents
            return
        cl = opencl()
        data = with_canary(contents)
        flags = cl.mem_flags.READ_WRITE | cl.mem_flags.COPY_HOST_PTR
        with named_errors(f"allocating {data.size} bytes for", desc):
            buffer = cl.Buffer(engine.context, flags, hostbuf=data)
        self.memory = Memory(desc, engine, buffer=buffer)

    def write(self, data: Bytes) -> None:
        """Other contents of a buffer, canary included."""
        with named_errors("writing", self.memory):
            opencl().enqueue_copy(
                self.memory.engine.tracked_queue, self.memory.tracked_buffer, data
            )

    def read(self) -> Bytes:
        """All bytes, canary included if there is one."""
        cl, memory = opencl(), self.memory
        if not isinstance(memory.tracked_buffer, cl.Buffer):
            with memory.map("r") as flat:
                return np.array(flat.view(np.uint8))
        result = np.empty(memory.tracked_buffer.size, np.uint8)
        with named_errors("reading", memory):
            cl.enqueue_copy(memory.engine.tracked_queue, result, memory.tracked_buffer)
        return result


class Case:
    """The data of a reorder. ``source`` and ``before`` are the bytes of the two tensors."""

    def __init__(self, src: MemoryDesc, dst: MemoryDesc, attr: Attr, seed: int) -> None:
        self.src, self.dst, self.attr = src, dst, attr
        rng = np.random.default_rng(seed)
        self.array = values(rng, src.dims, src.dtype)
        size = _size(src)
        garbage = np.resize(np.frombuffer(rng.bytes(min(size, POOL)), np.uint8), size)
        self.source = blend(_packed(self.array, src), garbage, element_bits(src))
        self.before: Bytes = np.full(_size(dst), POISON, np.uint8)
        self.old: NDArray[Any] | None = None
        self.zeros = 0
        if "beta" in attr.terms:
            self.old = values(rng, dst.dims, dst.dtype)
            self.before = blend(_packed(self.old, dst), self.before, element_bits(dst))

    def expected(self, given: dict[str, NDArray[Any]]) -> Bytes:
        """The bytes of the destination after the reorder, without the canary."""
        truth = self.attr.apply(self.array, self.src.dtype, self.dst.dtype, self.old, **given)
        self.zeros = truth.size - np.count_nonzero(truth)
        return blend(_packed(truth, self.dst), self.before, owned_bits(self.dst))

    @cached_property
    def answer(self) -> Bytes:
        """The same with the canary, if nothing is given at execution; computed once."""
        return with_canary(self.expected({}))


def with_canary(contents: Bytes) -> Bytes:
    """Bytes with poison after them, which no kernel may touch."""
    return np.concatenate([contents, np.full(BEHIND, POISON, np.uint8)])


def _packed(array: NDArray[Any], desc: MemoryDesc) -> Bytes:
    return pack_by_offsets(array, desc).view(np.uint8)


def _size(desc: MemoryDesc) -> int:
    return storage_size(desc) * desc.dtype.storage.itemsize
