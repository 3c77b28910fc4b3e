"""`Hop`: pieces through the kernels of one engine, two of them under way at a time.

Each piece has a stream to itself, so that the copies of one overlap the kernel of the other; the
host copies a third meanwhile.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

from ..opencl import named_errors
from ..reorders.reorder import Reorder
from ..runtime import Event
from ..tensors.desc import MemoryDesc
from ..values.attr import OLD, Attr
from .ends import End, Streams

KEPT = 8
"""How many reorders a hop remembers: pieces that are copied repeat, those in place never do."""


class Job(NamedTuple):
    """What is to be done with one piece."""

    src: MemoryDesc
    dst: MemoryDesc
    attr: Attr


class Hop:
    """The way of pieces from ``source`` to ``target``; ``jobs`` says what each one needs."""

    def __init__(self, streams: Streams, source: End, target: End, jobs: Sequence[Job]) -> None:
        self._streams = streams
        self._source, self._target, self._jobs = source, target, jobs
        self._reorders: dict[tuple[MemoryDesc, MemoryDesc, int], Reorder] = {}
        self._events: list[Event | None] = [None, None]

    def start(self, k: int) -> None:
        """Enqueue all that piece ``k`` needs."""
        job, slot = self._jobs[k], k % 2
        stream = self._streams[slot]
        keeps = _is_part_of_a_block(job.dst) or OLD in job.attr.formula.names
        source = self._source.source(job.src, slot)
        target = self._target.target(job.dst, slot, keeps=keeps)
        reorder = self._reorder(source.desc, target.desc, job.attr)
        self._events[slot] = reorder(stream, source, target)
        self._target.fetch(slot)
        with named_errors("starting a piece"):
            stream.tracked_queue.flush()

    def _reorder(self, src: MemoryDesc, dst: MemoryDesc, attr: Attr) -> Reorder:
        found = self._reorders.get((src, dst, id(attr)))
        if found is None:
            if len(self._reorders) >= KEPT:
                self._reorders.clear()
            found = Reorder(src, dst, self._streams[0].engine, attr=attr)
            self._reorders[src, dst, id(attr)] = found
        return found

    def finish(self, k: int) -> None:
        """Wait until piece ``k`` is where it belongs."""
        slot = k % 2
        event, self._events[slot] = self._events[slot], None
        if event is not None:
            event.wait()
        self._target.finish(slot)

    def settle(self) -> None:
        """Wait for everything, also after an error: what runs uses memory that is then released."""
        for stream in self._streams:
            stream.wait()


def _is_part_of_a_block(desc: MemoryDesc) -> bool:
    """Whether bytes within a region are not its own: in a cut block, a byte, before sums."""
    blocks = desc.format.structure.blocks
    return bool(desc.dtype.is_packed or desc.sums) or any(
        n % block for n, block in zip(desc.padded_dims, blocks, strict=True)
    )
