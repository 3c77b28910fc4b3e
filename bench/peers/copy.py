"""The ceiling: plain copies that read and write as many bytes as the case does.

Two of them: the library's own copy kernel (its stores pass by the cache where the data is too large
for it), and the OpenCL runtime's copy command. The faster one counts.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import clformats as cf

from ..arena import Arena


def reorder(arena: Arena) -> cf.Reorder:
    """The copy kernel as a reorder."""
    flat = cf.MemoryDesc((arena.copied // 4,), "f32", "a")
    return cf.Reorder(flat, flat, arena.engine)


def kernel(arena: Arena) -> Callable[[], object]:
    """The copy kernel on the arena's buffers: enqueues, does not wait."""
    move = reorder(arena)
    src, dst = arena.memories(move.src, move.dst)
    return lambda: move(arena.stream, src, dst)


def command(arena: Arena) -> Callable[[], object]:
    """The runtime's copy command on the arena's buffers: enqueues, does not wait."""
    import pyopencl as cl

    src, dst = arena.buffers
    queue, size = arena.stream.queue, arena.copied
    return lambda: cl.enqueue_copy(queue, dst, src, byte_count=size)


_EMPTY = "__kernel void nothing(__global uchar *p) { }"


def empty(arena: Arena, stream: cf.Stream) -> Callable[[Any], object]:
    """A kernel that does nothing, for any pair of buffers: what a launch costs."""
    import pyopencl as cl

    launch = arena.engine.kernel(_EMPTY, "nothing")
    launch.set_arg(0, arena.buffers[0])
    return lambda _: cl.enqueue_nd_range_kernel(stream.queue, launch, (1,), (1,))
