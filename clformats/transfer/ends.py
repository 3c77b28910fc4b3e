"""The two ends of a transfer: where a chunk comes from and where it goes.

A tensor is on the device of the kernel already (`There`), lies in host memory that this device
shares (`Wrapped`), or is copied chunk by chunk through staging buffers (`Staged`). All three have
the same methods: ``source`` or ``target`` gives the kernel its memory
object, ``fetch`` enqueues the copy behind the kernel, ``finish`` does the host's part once that is
over, ``close`` releases everything.

``slot`` alternates between 0 and 1: two chunks are in flight, each on a stream of its own.
"""

from __future__ import annotations

from contextlib import ExitStack

from ..formats.sums import Sums
from ..host.memory import HostMemory, behind, places
from ..runtime import Engine, Memory, Stream, unified
from ..runtime.staging import Staging
from ..tensors.desc import MemoryDesc
from ..tensors.geometry import moved_by
from .pieces import dense, nbytes_of

Streams = tuple[Stream, Stream]


class There:
    """A tensor in the memory of the device that works on it; nothing is copied."""

    def __init__(self, memory: Memory) -> None:
        self._memory = memory

    def source(self, desc: MemoryDesc, slot: int) -> Memory:
        """The memory that the kernel reads; the copy into it may still be running."""
        del slot
        if desc is self._memory.desc:
            return self._memory
        return Memory(desc, self._memory.engine, buffer=self._memory.buffer)

    def target(self, desc: MemoryDesc, slot: int, *, keeps: bool) -> Memory:
        """The memory that the kernel writes; with ``keeps`` it has the destination's old values."""
        del keeps
        return self.source(desc, slot)

    def fetch(self, slot: int) -> None:
        """Enqueue the copy that follows the kernel, if any."""

    def finish(self, slot: int) -> None:
        """Put the result where it belongs; the kernel is done."""

    def close(self) -> None:
        """Release all memory; nothing is running any more."""


class Wrapped(There):
    """A tensor in host memory that the device shares: used where it lies."""

    def __init__(self, host: HostMemory, stream: Stream, front: int, *, writing: bool) -> None:
        self._buffer = unified.wrapped(stream.engine, host.array, front, writing=writing)
        self._host, self._queue, self._writing, self._front = host, stream.queue, writing, front
        super().__init__(Memory(self._moved(host.desc), stream.engine, buffer=self._buffer))

    def _moved(self, desc: MemoryDesc) -> MemoryDesc:
        """The same place, counted from where the buffer begins."""
        return MemoryDesc.of(
            moved_by(desc.geometry, self._front * 8 // desc.dtype.bits), desc.dtype
        )

    def source(self, desc: MemoryDesc, slot: int) -> Memory:
        """The chunk where it lies."""
        return super().source(self._moved(desc), slot)

    def close(self) -> None:
        """Make the result visible in the array, and release it."""
        if self._writing:
            unified.settle(self._queue, self._buffer, self._front)
        self._buffer.release()


class Staged:
    """A tensor in host memory that is copied to the device or back, two chunks at a time.

    On the device a chunk is dense, however it lies in the tensor: only its own bytes are copied,
    and only they are written.
    """

    def __init__(self, host: HostMemory, streams: Streams, nbytes: int) -> None:
        self._host = host
        self._stages: list[Staging] = []
        self._descs = [host.desc, host.desc]
        try:
            for stream in streams:
                self._stages.append(Staging(stream, nbytes))
        except BaseException:
            self.close()
            raise

    def source(self, desc: MemoryDesc, slot: int) -> Memory:
        """The chunk on the device; its copy there is enqueued."""
        stage, own = self._stages[slot], dense(desc)
        stage.wait()
        places(stage.host(own), own)[...] = self._host.places(desc)
        stage.upload(nbytes_of(desc))
        return Memory(own, stage.engine, buffer=stage.buffer)

    def target(self, desc: MemoryDesc, slot: int, *, keeps: bool) -> Memory:
        """Memory on the device for the chunk."""
        self._descs[slot] = desc
        if keeps:
            return self.source(desc, slot)
        return Memory(dense(desc), self._stages[slot].engine, buffer=self._stages[slot].buffer)

    def fetch(self, slot: int) -> None:
        """Enqueue the copy to the host."""
        self._stages[slot].download(nbytes_of(self._descs[slot]))

    def finish(self, slot: int) -> None:
        """Copy the chunk into the tensor."""
        stage, desc = self._stages[slot], self._descs[slot]
        stage.wait()
        own = dense(desc)
        flat = stage.host(own)
        self._host.places(desc)[...] = places(flat, own)
        behind(self._host.array, desc)[:] = behind(flat, own)

    def close(self) -> None:
        """Release the staging buffers."""
        with ExitStack() as all_of_them:
            while self._stages:
                all_of_them.callback(self._stages.pop().close)


End = There | Staged


def end_of(memory: HostMemory | Memory, streams: Streams, nbytes: int, *, writing: bool) -> End:
    """The end that suits the device; ``nbytes`` is the size of the largest chunk on this side."""
    if isinstance(memory, Memory):
        return There(memory)
    front = _bytes_in_front(memory, streams[0].engine)
    if front is None:
        return Staged(memory, streams, nbytes)
    return Wrapped(memory, streams[0], front, writing=writing)


def is_copied(memory: HostMemory | Memory, engine: Engine) -> bool:
    """Whether this side is copied through staging buffers."""
    return isinstance(memory, HostMemory) and _bytes_in_front(memory, engine) is None


def _bytes_in_front(memory: HostMemory, engine: Engine) -> int | None:
    """As `unified.bytes_in_front`; sums need an address of their own width, as in the array."""
    front = unified.bytes_in_front(engine, memory.array)
    return None if front and memory.desc.sums and front % Sums.ITEM else front
