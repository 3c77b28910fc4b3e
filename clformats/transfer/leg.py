"""`Leg`: one engine's part of a transfer, with two chunks in flight.

The two chunks are on different streams, so that the copies of one overlap the kernel of the other;
meanwhile the host copies a third.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

from ..reorders.reorder import Reorder
from ..runtime import Event
from ..runtime.opencl import named_errors
from ..tensors.desc import MemoryDesc
from ..values.attr import OLD, Attr
from .ends import End, Streams

KEPT = 8
"""How many reorders a leg caches. Descriptors of copied chunks repeat; those in place never do."""


class Job(NamedTuple):
    """The reorder of one chunk."""

    src: MemoryDesc
    dst: MemoryDesc
    attr: Attr


class Leg:
    """Moves chunks from ``source`` to ``target``, one for each of ``jobs``."""

    def __init__(self, streams: Streams, source: End, target: End, jobs: Sequence[Job]) -> None:
        self._streams = streams
        self._source, self._target, self._jobs = source, target, jobs
        self._reorders: dict[tuple[MemoryDesc, MemoryDesc, int], Reorder] = {}
        self._events: list[Event | None] = [None, None]

    def start(self, k: int) -> None:
        """Enqueue the copies and the kernel of chunk ``k``."""
        job, slot = self._jobs[k], k % 2
        stream = self._streams[slot]
        keeps = _is_part_of_a_block(job.dst) or OLD in job.attr.formula.names
        source = self._source.source(job.src, slot)
        target = self._target.target(job.dst, slot, keeps=keeps)
        reorder = self._reorder(source.desc, target.desc, job.attr)
        self._events[slot] = reorder(stream, source, target)
        self._target.fetch(slot)
        with named_errors("starting a chunk"):
            stream.queue.flush()

    def _reorder(self, src: MemoryDesc, dst: MemoryDesc, attr: Attr) -> Reorder:
        found = self._reorders.get((src, dst, id(attr)))
        if found is None:
            if len(self._reorders) >= KEPT:
                self._reorders.clear()
            found = Reorder(src, dst, self._streams[0].engine, attr=attr)
            self._reorders[src, dst, id(attr)] = found
        return found

    def finish(self, k: int) -> None:
        """Wait until chunk ``k`` is in the destination."""
        slot = k % 2
        event, self._events[slot] = self._events[slot], None
        if event is not None:
            event.wait()
        self._target.finish(slot)

    def settle(self) -> None:
        """Wait for everything, also after an error: its memory is released afterwards."""
        for stream in self._streams:
            stream.wait()


def _is_part_of_a_block(desc: MemoryDesc) -> bool:
    """Whether a region shares bytes with others: in a cut block, within a byte, before sums."""
    blocks = desc.format.structure.blocks
    return bool(desc.dtype.is_packed or desc.sums) or any(
        n % block for n, block in zip(desc.padded_dims, blocks, strict=True)
    )
