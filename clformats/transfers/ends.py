"""Where a piece comes from and where it goes, seen from the engine whose kernel reorders.

A tensor is *there* already (`There`), lies in host memory that the device shares (`Wrapped`), or is
copied piece by piece through memory of its own (`Staged`). All are used alike: ``source`` or
``target`` gives the kernel its memory object, ``fetch`` enqueues what follows the kernel,
``finish`` does what the host must do when that is over, ``close`` releases everything.

``slot`` is 0 and 1 in turns: two pieces are under way, each on a stream of its own.
"""

from __future__ import annotations

from contextlib import ExitStack

from ..formats.sums import Sums
from ..host.memory import HostMemory, behind, places
from ..runtime import Engine, Memory, Stream, unified
from ..runtime.staging import Staging
from ..tensors.desc import MemoryDesc
from ..tensors.given import moved_by
from .pieces import dense, nbytes_of

Side = HostMemory | Memory
Streams = tuple[Stream, Stream]


class There:
    """A tensor in the memory of the device that works on it; nothing is copied."""

    def __init__(self, memory: Memory) -> None:
        self._memory = memory

    def source(self, desc: MemoryDesc, slot: int) -> Memory:
        """The memory that the kernel reads, with the piece in it, or on its way there."""
        del slot
        if desc is self._memory.desc:
            return self._memory
        return Memory(desc, self._memory.engine, buffer=self._memory.tracked_buffer)

    def target(self, desc: MemoryDesc, slot: int, *, keeps: bool) -> Memory:
        """The memory that the kernel writes; ``keeps``: with what the destination holds now."""
        del keeps
        return self.source(desc, slot)

    def fetch(self, slot: int) -> None:
        """Enqueue what follows the kernel."""

    def finish(self, slot: int) -> None:
        """Bring what the kernel wrote to where it belongs; the kernel is done."""

    def close(self) -> None:
        """Release what was taken; nothing is running any more."""


class Wrapped(There):
    """A tensor in host memory that the device shares: used where it lies."""

    def __init__(self, host: HostMemory, stream: Stream, front: int, *, writing: bool) -> None:
        self._buffer = unified.wrapped(stream.engine, host.array, front, writing=writing)
        self._stream, self._writing, self._front = stream, writing, front
        super().__init__(Memory(self._moved(host.desc), stream.engine, buffer=self._buffer))

    def _moved(self, desc: MemoryDesc) -> MemoryDesc:
        """The same place, counted from where the buffer begins."""
        return moved_by(desc, self._front * 8 // desc.dtype.bits)

    def source(self, desc: MemoryDesc, slot: int) -> Memory:
        """The piece where it lies."""
        return super().source(self._moved(desc), slot)

    def close(self) -> None:
        """Make what was written visible, and let go of the array."""
        if self._writing:
            self._memory.map("r", stream=self._stream).start().release()
        self._buffer.release()


class Staged:
    """A tensor in host memory, of which two pieces at a time are copied to the device or back.

    On the device a piece has no gaps, however it lies in the tensor: nothing is copied that does
    not belong to it, and nothing beside it is written.
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
        """The piece; its copy to the device is enqueued."""
        stage, own = self._stages[slot], dense(desc)
        stage.wait()
        places(stage.host(own), own)[...] = self._host.places(desc)
        stage.upload(nbytes_of(desc))
        return Memory(own, stage.engine, buffer=stage.buffer)

    def target(self, desc: MemoryDesc, slot: int, *, keeps: bool) -> Memory:
        """Room for the piece."""
        self._descs[slot] = desc
        if keeps:
            return self.source(desc, slot)
        return Memory(dense(desc), self._stages[slot].engine, buffer=self._stages[slot].buffer)

    def fetch(self, slot: int) -> None:
        """Enqueue the copy to the host."""
        self._stages[slot].download(nbytes_of(self._descs[slot]))

    def finish(self, slot: int) -> None:
        """Put the piece among the others."""
        stage, desc = self._stages[slot], self._descs[slot]
        stage.wait()
        own = dense(desc)
        flat = stage.host(own)
        self._host.places(desc)[...] = places(flat, own)
        behind(self._host.array, desc)[:] = behind(flat, own)

    def close(self) -> None:
        """Give the memory back."""
        with ExitStack() as all_of_them:
            while self._stages:
                all_of_them.callback(self._stages.pop().close)


End = There | Staged


def end_of(memory: Side, streams: Streams, nbytes: int, *, writing: bool) -> End:
    """The kind that suits the device; ``nbytes`` is what the largest piece has on this side."""
    if isinstance(memory, Memory):
        return There(memory)
    front = _bytes_in_front(memory, streams[0].engine)
    if front is None:
        return Staged(memory, streams, nbytes)
    return Wrapped(memory, streams[0], front, writing=writing)


def is_copied(memory: Side, engine: Engine) -> bool:
    """Whether pieces of this side travel through memory of their own."""
    return isinstance(memory, HostMemory) and _bytes_in_front(memory, engine) is None


def _bytes_in_front(memory: HostMemory, engine: Engine) -> int | None:
    """As `unified.bytes_in_front`, for whole elements; sums need an address of their width, too."""
    front = unified.bytes_in_front(engine, memory.array)
    desc = memory.desc
    inside = front and (front * 8 % desc.dtype.bits or (desc.sums and front % Sums.ITEM))
    return None if inside else front
