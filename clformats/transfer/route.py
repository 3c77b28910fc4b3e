"""`transfer`: one call from any memory to any other, on the host or on a device, reordering."""

from __future__ import annotations

import sys
from collections.abc import Callable, Sequence
from contextlib import ExitStack
from typing import Any

import numpy as np

from ..errors import (
    DeviceError,
    InvalidArgument,
    InvalidAttr,
    InvalidDescriptor,
    expect,
    expect_int,
)
from ..host.memory import HostMemory
from ..runtime import Engine, Memory, Stream, unified
from ..runtime.engine import default_engine
from ..schedule import problem
from ..schedule.computation import from_attr
from ..tensors.desc import MemoryDesc
from ..values.attr import Attr
from .ends import end_of, is_copied
from .leg import Job, Leg
from .pieces import Chunk, chunks, dense, nbytes_of

CHUNK_NBYTES = 64 << 20
"""The default size of a chunk: large enough to hide the cost of starting one, which on a GPU equals
some milliseconds of copying."""

Progress = Callable[[int, int], object]


def transfer(
    src: HostMemory | Memory | Any,
    dst: HostMemory | Memory | Any,
    *,
    attr: Attr | None = None,
    engine: Engine | None = None,
    chunk_nbytes: int | None = None,
    progress: Progress | None = None,
) -> None:
    """Reorder ``src`` into ``dst``, wherever the two lie; the call returns when it is done.

    Each side is a `Memory` on any device, a `HostMemory`, or a numpy array, whose shape is the
    logical dims. A device that shares memory with the host reads and writes host memory in place,
    without a copy. On other devices the tensor goes in chunks through two streams, so that copies
    and kernels overlap. Between two devices it goes through the host.
    ``attr`` is as for `Reorder`; ``engine`` says where to work if both sides are on the host.

    ``chunk_nbytes``: the most bytes of a chunk, source and destination together. Two chunks are on
    the device at a time, so a tensor may be larger than its memory. By default a transfer without
    copies is one chunk, any other has chunks of 64 MiB, or more where the blocks of the formats
    need it. ``progress`` is called with the bytes done and the total number of bytes, first with 0,
    then after each chunk.

    The result has the bytes that one `Reorder` of the whole gives; nothing outside the destination
    is touched. After an exception, also one raised by ``progress``, all device memory is released
    and the source is unchanged, but the destination may be partly written.

    Raises `InvalidDescriptor` where the two sides do not fit or share memory, `InvalidAttr`,
    `Unsupported` (code CHUNK_SIZE where the tensor cannot be cut so finely), `MappedError` and
    `DeviceError`.
    """
    _check_types(attr, engine, chunk_nbytes, progress)
    attr = attr or Attr()
    src, dst = _side(src, "src"), _side(dst, "dst")
    _check_attr(attr, src.desc, dst.desc)
    _check(src, dst, engine)
    if not src.desc.nelems:
        return
    with ExitStack() as stack:
        if isinstance(src, Memory) and isinstance(dst, Memory) and not _together(src, dst):
            src, dst = _mapped(src, dst, stack)
        _Route(src, dst, engine, attr).run(chunk_nbytes, progress, stack)


def _check_types(attr: Any, engine: Any, chunk_nbytes: Any, progress: Any) -> None:
    expect(attr, Attr | None, "attr")
    expect(engine, Engine | None, "engine")
    if chunk_nbytes is not None and expect_int(chunk_nbytes, "chunk_nbytes") < 1:
        raise InvalidArgument(f"chunk_nbytes: got {chunk_nbytes}, expected 1 or more")
    if progress is not None and not callable(progress):
        raise InvalidArgument(f"progress: got {progress!r}, expected a function of two numbers")


def _side(value: Any, name: str) -> HostMemory | Memory:
    if isinstance(value, np.ndarray):
        return HostMemory.of(value)
    expect(value, HostMemory | Memory, name)
    return value  # type: ignore[no-any-return]


def _check_attr(attr: Attr, src: MemoryDesc, dst: MemoryDesc) -> None:
    """The checks of a reorder, before anything is started. Raises `InvalidAttr`."""
    problem(src, dst)
    for name, term in attr.terms.items():
        if term.values is None:
            raise InvalidAttr(
                f"{name} is to be given at execution, but a transfer is a single call: give its "
                f"values in the attributes"
            )
    problem(src, dst, from_attr(attr, src, dst))


def _check(src: HostMemory | Memory, dst: HostMemory | Memory, engine: Engine | None) -> None:
    hosts = [side for side in (src, dst) if isinstance(side, HostMemory)]
    if engine is not None and len(hosts) < 2:
        raise DeviceError(
            f"got {engine!r} and a side on a device, which does the work: leave the engine out"
        )
    if isinstance(dst, HostMemory) and not dst.array.flags.writeable:
        raise InvalidDescriptor(f"the destination {dst!r} is read-only: give a writable array")
    if len(hosts) == 2 and np.may_share_memory(hosts[0].array, hosts[1].array):
        raise InvalidDescriptor(
            f"source {src!r} and destination {dst!r} share memory: a reorder cannot work in place, "
            f"give another destination"
        )


def _together(src: Memory, dst: Memory) -> bool:
    return bool(src.engine.context == dst.engine.context)


def _mapped(src: Memory, dst: Memory, stack: ExitStack) -> tuple[HostMemory | Memory, ...]:
    """Of two devices, the memory on the one that shares it with the host, mapped until the end."""
    if unified.shares_host_memory(src.engine.device) and not src.desc.format.image:
        return HostMemory(src.mapped, stack.enter_context(src.map("r"))), dst
    if unified.shares_host_memory(dst.engine.device) and not dst.desc.format.image:
        return src, HostMemory(dst.mapped, stack.enter_context(dst.map("rw")))
    return src, dst


class _Route:
    """The engines on the way, and the legs between them."""

    def __init__(
        self,
        src: HostMemory | Memory,
        dst: HostMemory | Memory,
        engine: Engine | None,
        attr: Attr,
    ) -> None:
        self.src, self.dst, self.attr = src, dst, attr
        on_devices = [m.engine for m in (src, dst) if isinstance(m, Memory)]
        if len(on_devices) == 2 and on_devices[0].context == on_devices[1].context:
            del on_devices[0]
        self.engines = on_devices or [engine or default_engine()]

    def run(self, most: int | None, progress: Progress | None, stack: ExitStack) -> None:
        """Move all chunks."""
        todo = self._chunks(most, asked=progress is not None)
        legs = [self._direct(todo, stack)] if len(self.engines) == 1 else self._two(todo, stack)
        for leg in legs:
            stack.callback(leg.settle)
        report = progress or (lambda _done, _total: None)
        done, total = 0, sum(chunk.nbytes for chunk in todo)
        report(done, total)
        # A chunk of one leg is finished two steps after its start, then the next leg takes it.
        for step in range(len(todo) + 2 * len(legs)):
            for k, leg in zip(range(step, -1, -2), legs, strict=False):
                if 0 <= k - 2 < len(todo):
                    leg.finish(k - 2)
                    if leg is legs[-1]:
                        done += todo[k - 2].nbytes
                        report(done, total)
                if k < len(todo):
                    leg.start(k)

    def _chunks(self, most: int | None, *, asked: bool) -> list[Chunk]:
        src, dst = self.src.desc, self.dst.desc
        if most is not None:
            return chunks(src, dst, most)
        copied = len(self.engines) == 2 or any(
            is_copied(side, self.engines[0]) for side in (self.src, self.dst)
        )
        if copied:
            # Two chunks on each side: half of the memory, and no buffer above the device's limit.
            limits = ((e.device.max_mem_alloc_size, e.device.global_mem_size // 4)
                      for e in self.engines)  # fmt: skip
            room = min(map(min, limits))
            return chunks(src, dst, min(CHUNK_NBYTES, room), or_up_to=room)
        return chunks(src, dst, CHUNK_NBYTES if asked else sys.maxsize, or_up_to=sys.maxsize)

    def _direct(self, todo: Sequence[Chunk], stack: ExitStack) -> Leg:
        """A single engine moves everything."""
        dims = self.dst.desc.dims
        jobs = [Job(chunk.src, chunk.dst, chunk.attr(self.attr, dims)) for chunk in todo]
        return _leg(self.engines[0], self.src, self.dst, jobs, stack)

    def _two(self, todo: Sequence[Chunk], stack: ExitStack) -> list[Leg]:
        """From one device to the host, in the smaller of the two layouts, and on to the other."""
        nothing, dims = Attr(), self.dst.desc.dims
        between = [self._between(chunk) for chunk in todo]
        scratch = HostMemory(max(between, key=nbytes_of))
        there = [Job(chunk.src, desc, nothing) for chunk, desc in zip(todo, between, strict=True)]
        onward = [
            Job(desc, chunk.dst, chunk.attr(self.attr, dims))
            for chunk, desc in zip(todo, between, strict=True)
        ]
        return [
            _leg(self.engines[0], self.src, scratch, there, stack),
            _leg(self.engines[1], scratch, self.dst, onward, stack),
        ]

    def _between(self, chunk: Chunk) -> MemoryDesc:
        src, dst = self.src.desc, self.dst.desc
        # Attributes are computed on the second leg, on the way into the destination.
        moves = self.attr.is_empty and not dst.extra
        if moves and dst.nbytes < src.nbytes and not dst.format.image:
            return dense(chunk.dst)
        return MemoryDesc(chunk.src.dims, src.dtype) if src.format.image else dense(chunk.src)


def _leg(
    engine: Engine,
    src: HostMemory | Memory,
    dst: HostMemory | Memory,
    jobs: Sequence[Job],
    stack: ExitStack,
) -> Leg:
    """A leg; the stack releases its ends, also if making the second one fails."""
    streams = Stream(engine), Stream(engine)
    read = max(nbytes_of(job.src) for job in jobs)
    source = end_of(src, streams, read, writing=False)
    stack.callback(source.close)
    written = max(nbytes_of(job.dst) for job in jobs)
    target = end_of(dst, streams, written, writing=True)
    stack.callback(target.close)
    return Leg(streams, source, target, jobs)
