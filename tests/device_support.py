"""Running a reorder on a device and comparing it with the host, byte for byte."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace
from typing import Any

import numpy as np
import pytest

import clformats as cf
from clformats.host.oracle import put
from tests.support import dirty_pack, garbage, put_values, random_values, same_bytes

CANARY = 256


def as_large(engine: cf.Engine, **traits: Any) -> cf.Stream:
    """A stream of the same device whose kernels treat every tensor as one that exceeds the cache.

    Vectors are of 64 bytes, as where whole lines are stored at once; ``traits`` are others to set.
    """
    large = cf.Engine(device=engine.device, context=engine.context)
    large.traits = replace(engine.traits, **{"streamed_bytes": 0, "vector_bytes": 64, **traits})
    return cf.Stream(large)


@contextmanager
def unless_refused(*, chosen: bool = False) -> Iterator[None]:
    """Let a device without double precision refuse f64: such a case is no test of it.

    Nor is one whose kernel was chosen, for which there is no fallback, where the compiler dies.
    """
    try:
        yield
    except (cf.Unsupported, cf.CompilerDied) as error:
        if not (chosen if isinstance(error, cf.CompilerDied) else error.code == "FP64"):
            raise
        hypothesis = sys.modules.get("hypothesis")  # half a second for those who do without it
        if hypothesis and hypothesis.currently_in_test_context():
            hypothesis.reject()
        pytest.skip(str(error))


def memory_of(flat: Any, desc: cf.MemoryDesc, engine: cf.Engine) -> cf.Memory:
    """A memory object whose physical elements are ``flat``."""
    memory = cf.Memory(desc, engine)
    with memory.map("w") as a:
        a[:] = flat
    return memory


def nbytes_of(desc: cf.MemoryDesc) -> int:
    """The bytes of memory under a descriptor."""
    return max(desc.nbytes, desc.span_nbytes)


def guarded(desc: cf.MemoryDesc, engine: cf.Engine) -> cf.Memory:
    """A memory object full of 0xA5, with a canary behind it in the same buffer.

    With a descriptor from `moved` there is one in front as well.
    """
    import pyopencl as cl

    nbytes = nbytes_of(desc) + CANARY
    buffer = cl.Buffer(engine.context, cl.mem_flags.READ_WRITE, nbytes)
    # Not filled: to Oclgrind what kernels write into a filled buffer stays uninitialised.
    cl.enqueue_copy(engine.queue, buffer, np.full(nbytes, 0xA5, np.uint8)).wait()
    return cf.Memory(desc, engine, buffer=buffer)


def on_host(memory: cf.Memory, begin: int) -> cf.Memory:
    """The same over memory of the host's that begins ``begin`` bytes behind a cache line."""
    import pyopencl as cl

    contents = raw_bytes(memory)
    room = np.full(contents.size + 128, 0xA5, np.uint8)
    at = -room.ctypes.data % 64 + begin
    own = room[at : at + contents.size]
    own[:] = contents
    flags = cl.mem_flags.READ_WRITE | cl.mem_flags.USE_HOST_PTR
    buffer = cl.Buffer(memory.engine.context, flags, hostbuf=own)
    return cf.Memory(memory.desc, memory.engine, buffer=buffer)


def moved(desc: cf.MemoryDesc, front: int) -> cf.MemoryDesc:
    """The descriptor ``front`` elements further on in its buffer."""
    geometry = replace(desc.geometry, offset0=desc.geometry.offset0 + front)
    return cf.MemoryDesc.of(geometry, desc.dtype)


def raw_bytes(memory: cf.Memory) -> Any:
    """Every byte of the buffer under a memory object, canary included."""
    import pyopencl as cl

    assert isinstance(memory.buffer, cl.Buffer)
    result = np.empty(memory.buffer.size, np.uint8)
    cl.enqueue_copy(memory.engine.queue, result, memory.buffer)
    return result


def expected(
    array: Any, src: cf.MemoryDesc, dst: cf.MemoryDesc, *, transform: bool | None = None
) -> Any:
    """What `guarded` memory must hold after the reorder: elements, zero padding, the rest 0xA5."""
    return holding(cf.transform(array, src, dst, transform=transform), dst)


def holding(values: Any, dst: cf.MemoryDesc) -> Any:
    """The bytes of `guarded` memory with the elements ``values`` and zero padding."""
    result = np.full(nbytes_of(dst) + CANARY, 0xA5, np.uint8)
    inside, mine = result[: nbytes_of(dst)], owned(dst)
    if isinstance(mine, slice):
        last = dst.offset0 + sum((p.size - 1) * p.stride for p in dst.placed)
        mine = np.arange(dst.offset0, last + 1)
    if dst.nelems:
        put(inside, mine, np.zeros(mine.shape, dst.dtype.raw), dst.dtype.bits)
    put_values(inside, dst, values)
    sums = [cf.host.packing.sums_of(values, dst, s).ravel().view(np.uint8) for s in dst.sums]
    result[dst.sums_at : dst.span_nbytes] = np.concatenate([*sums, np.empty(0, np.uint8)])
    return result


def owned(desc: cf.MemoryDesc) -> Any:
    """The offsets that belong to a descriptor: its elements and its padding, not the gaps."""
    if any(len(p.digit.dims) > 1 for p in desc.placed):
        # Dense: what lies behind the end of a fused index is padding too.
        return slice(desc.offset0, None)
    unpadded = tuple((0, 0) for _ in desc.dims)
    whole = replace(desc.geometry, dims=desc.padded_dims, padding=unpadded)
    return cf.MemoryDesc.of(whole, desc.dtype).offsets()


def check_bytes(target: cf.Memory, want: Any, why: object = "") -> None:
    """Every byte of the buffer, canaries too; the error tells the first that differ."""
    got = raw_bytes(target)
    if not same_bytes(got, want):
        wrong = np.flatnonzero(got != want)
        raise AssertionError(
            f"{wrong.size} bytes differ, the first at {wrong[:8]}: got {got[wrong[:8]]}, "
            f"expected {want[wrong[:8]]}\n{why}"
        )


def check_reorder(
    src: cf.MemoryDesc,
    dst: cf.MemoryDesc,
    stream: cf.Stream,
    *,
    seed: int = 0,
    array: Any = None,
    family: str | None = None,
    front: int = 0,
    attr: cf.Attr | None = None,
    transform: bool | None = None,
    choices: cf.Choices | None = None,
    begins: tuple[int, int] | None = None,
    **given: Any,
) -> cf.Reorder:
    """Reorder random values under garbage padding and compare every byte; returns the reorder.

    With ``attr`` the destination holds random values before, and garbage in its padding.

    ``front`` elements of canary lie before the destination, and as many of garbage before the
    source; behind the destination there is always a canary. ``begins`` puts source and destination
    into memory of the host's, so many bytes behind a cache line.
    """
    src, dst = moved(src, front), moved(dst, front)
    rng = np.random.default_rng(seed)
    engine = stream.engine
    if array is None:
        array = random_values(rng, src.dims, src.dtype.name)
    source = memory_of(dirty_pack(rng, array, src), src, engine)
    target = guarded(dst, engine)
    old = random_values(rng, dst.dims, dst.dtype.name)
    if attr is not None:
        fill(target, old)
    if begins is not None:
        source, target = on_host(source, begins[0]), on_host(target, begins[1])
    with unless_refused(chosen=bool(choices or family)):
        reorder = cf.Reorder(
            src, dst, engine, family=family, attr=attr, transform=transform, tuned=choices or True
        )
        reorder(stream, source, target, **given).wait()
    if attr is None:
        want = expected(array, src, dst, transform=transform)
    else:
        want = holding(attr.apply(array, src.dtype, dst.dtype, old, **given), dst)
    check_bytes(target, want, f"{reorder.plan}\n{attr}\nseed {seed}")
    return reorder


def fill(memory: cf.Memory, values: Any) -> None:
    """Write logical values, and nothing else, into a buffer."""
    import pyopencl as cl

    raw = raw_bytes(memory)
    put_values(raw[: nbytes_of(memory.desc)], memory.desc, values)
    assert isinstance(memory.buffer, cl.Buffer)
    cl.enqueue_copy(memory.engine.queue, memory.buffer, raw).wait()


__all__ = ["check_bytes", "check_reorder", "expected", "fill", "garbage", "guarded", "holding",
           "memory_of", "moved", "nbytes_of", "owned", "raw_bytes", "unless_refused"]  # fmt: skip
