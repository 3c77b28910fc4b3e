"""`Leg`: pieces through the kernels of one engine, two of them under way at a time.

Each piece has a stream to itself, so that the copies of one overlap the kernel of the other; the
host copies a third meanwhile.
"""

from __future__ import annotations

from collections.abc import Sequence

from ..desc import MemoryDesc
from ..kernels.reorder import Reorder
from ..runtime import Event
from ..runtime.opencl import named_errors
from .ends import End, Streams

Pair = tuple[MemoryDesc, MemoryDesc]


class Leg:
    """The way of pieces from ``source`` to ``target``; ``pairs`` are their descriptors."""

    def __init__(self, streams: Streams, source: End, target: End, pairs: Sequence[Pair]) -> None:
        self._streams = streams
        self._source, self._target, self._pairs = source, target, pairs
        self._reorders: dict[Pair, Reorder] = {}
        self._events: list[Event | None] = [None, None]

    def start(self, k: int) -> None:
        """Enqueue all that piece ``k`` needs."""
        src, dst = self._pairs[k]
        slot = k % 2
        stream = self._streams[slot]
        source = self._source.source(src, slot)
        target = self._target.target(dst, slot, keeps=_is_part_of_a_block(dst))
        self._events[slot] = self._reorder(source.desc, target.desc)(stream, source, target)
        self._target.fetch(slot)
        with named_errors("starting a piece"):
            stream.queue.flush()

    def _reorder(self, src: MemoryDesc, dst: MemoryDesc) -> Reorder:
        found = self._reorders.get((src, dst))
        if found is None:
            if len(self._reorders) > 8:  # staged pieces repeat; those in place never do
                self._reorders.clear()
            found = self._reorders[src, dst] = Reorder(src, dst, self._streams[0].engine)
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
    """Whether a region ends inside a block, whose other elements are not its own."""
    blocks = desc.format.structure.blocks
    return any(n % block for n, block in zip(desc.padded_dims, blocks, strict=True))
