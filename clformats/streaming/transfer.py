"""`transfer`: one call from any memory to any other, on the host or on a device, reordering."""

from __future__ import annotations

import sys
from collections.abc import Callable, Sequence
from contextlib import ExitStack
from typing import Any

import numpy as np

from ..desc import MemoryDesc
from ..errors import DeviceError, InvalidDescriptor
from ..hostmemory import HostMemory
from ..planner import problem
from ..planner.pieces import Piece, dense, pieces
from ..runtime import Engine, Memory, Stream, unified
from ..runtime.engine import default_engine
from ..runtime.opencl import expect
from .ends import end_of, is_copied
from .leg import Leg, Pair

PIECE_NBYTES = 64 << 20
"""What a piece has if nothing is said: long enough to hide what starting it costs, on a GPU some
milliseconds of copying."""

Progress = Callable[[int, int], object]


def transfer(
    src: HostMemory | Memory | Any,
    dst: HostMemory | Memory | Any,
    *,
    engine: Engine | None = None,
    piece_nbytes: int | None = None,
    progress: Progress | None = None,
) -> None:
    """Move ``src`` into ``dst`` and reorder it on the way; it is done when the call returns.

    Each side is a `Memory` on any device, a `HostMemory`, or a numpy array as it lies (its shape is
    the logical dims). What is best for the device is done: where it shares memory with the host,
    host memory is used where it lies, without a copy; else the tensor goes in pieces through two
    streams, so that copies and kernels overlap. Between two devices it goes through the host.
    ``engine`` says where to work if both sides are on the host.

    ``piece_nbytes``: the most bytes of a piece, source and destination together; two pieces are on
    the device at a time, so a tensor may be larger than its memory. Without it: one piece where
    nothing is copied, else 64 MiB or what the blocks of the formats allow. ``progress`` is called
    with the bytes done and the bytes in all, first with 0, then after each piece.

    The bytes are those of one `Reorder` of the whole, and as there nothing outside the destination
    is touched. After an exception, from ``progress`` too, all device memory is given back and the
    source is as it was, but the destination may be written in part.

    Raises `InvalidDescriptor` where the two sides do not fit or share memory, `Unsupported` (code
    PIECE_SIZE) where the tensor cannot be cut so fine, `MappedError` and `DeviceError`.
    """
    expect(engine, Engine | None, "engine")
    if piece_nbytes is not None and piece_nbytes < 1:
        raise InvalidDescriptor(f"piece_nbytes: got {piece_nbytes}, expected 1 or more")
    src, dst = _side(src, "src"), _side(dst, "dst")
    _check(src, dst, engine)
    if not src.desc.nelems:
        return
    with ExitStack() as stack:
        if isinstance(src, Memory) and isinstance(dst, Memory) and not _together(src, dst):
            src, dst = _mapped(src, dst, stack)
        _Route(src, dst, engine).run(piece_nbytes, progress, stack)


def _side(value: Any, name: str) -> HostMemory | Memory:
    if isinstance(value, np.ndarray):
        return HostMemory.of(value)
    expect(value, HostMemory | Memory, name)
    return value  # type: ignore[no-any-return]


def _check(src: HostMemory | Memory, dst: HostMemory | Memory, engine: Engine | None) -> None:
    problem(src.desc, dst.desc)
    hosts = [side for side in (src, dst) if isinstance(side, HostMemory)]
    if engine is not None and len(hosts) < 2:
        raise DeviceError(
            f"got {engine!r} and a side on a device: the work is done there, leave the engine out"
        )
    if isinstance(dst, HostMemory) and not dst.array.flags.writeable:
        raise InvalidDescriptor(f"the destination {dst!r} is read-only: give it another array")
    if len(hosts) == 2 and np.may_share_memory(hosts[0].array, hosts[1].array):
        raise InvalidDescriptor(
            f"source {src!r} and destination {dst!r} share memory: a reorder cannot work in place, "
            f"give it another destination"
        )


def _together(src: Memory, dst: Memory) -> bool:
    return bool(src.engine.context == dst.engine.context)


def _mapped(src: Memory, dst: Memory, stack: ExitStack) -> tuple[HostMemory | Memory, ...]:
    """Two devices: the one that shares memory with the host is mapped for as long as it takes."""
    if unified.shares_host_memory(src.engine.device) and not src.desc.format.image:
        return HostMemory(src.desc, stack.enter_context(src.map("r"))), dst
    if unified.shares_host_memory(dst.engine.device) and not dst.desc.format.image:
        return src, HostMemory(dst.desc, stack.enter_context(dst.map("rw")))
    return src, dst


class _Route:
    """The engines on the way, and the legs between them."""

    def __init__(
        self, src: HostMemory | Memory, dst: HostMemory | Memory, engine: Engine | None
    ) -> None:
        self.src, self.dst = src, dst
        on_devices = [m.engine for m in (src, dst) if isinstance(m, Memory)]
        if len(on_devices) == 2 and on_devices[0].context == on_devices[1].context:
            del on_devices[0]
        self.engines = on_devices or [engine or default_engine()]

    def run(self, most: int | None, progress: Progress | None, stack: ExitStack) -> None:
        """Move all pieces."""
        todo = self._pieces(most, asked=progress is not None)
        legs = [self._direct(todo, stack)] if len(self.engines) == 1 else self._two(todo, stack)
        for leg in legs:
            stack.callback(leg.settle)
        report = progress or (lambda _done, _total: None)
        done, total = 0, sum(piece.nbytes for piece in todo)
        report(done, total)
        # A piece of one leg is finished two steps after its start, then the next leg takes it.
        for step in range(len(todo) + 2 * len(legs)):
            for k, leg in zip(range(step, -1, -2), legs, strict=False):
                if 0 <= k - 2 < len(todo):
                    leg.finish(k - 2)
                    if leg is legs[-1]:
                        done += todo[k - 2].nbytes
                        report(done, total)
                if k < len(todo):
                    leg.start(k)

    def _pieces(self, most: int | None, *, asked: bool) -> list[Piece]:
        src, dst = self.src.desc, self.dst.desc
        if most is not None:
            return pieces(src, dst, most)
        copied = len(self.engines) == 2 or any(
            is_copied(side, self.engines[0]) for side in (self.src, self.dst)
        )
        if copied:
            # Of both sides two pieces each: half the memory, and no buffer larger than is allowed.
            limits = ((e.device.max_mem_alloc_size, e.device.global_mem_size // 4)
                      for e in self.engines)  # fmt: skip
            room = min(map(min, limits))
            return pieces(src, dst, min(PIECE_NBYTES, room), or_up_to=room)
        return pieces(src, dst, PIECE_NBYTES if asked else sys.maxsize, or_up_to=sys.maxsize)

    def _direct(self, todo: Sequence[Piece], stack: ExitStack) -> Leg:
        """One engine does it."""
        pairs = [(piece.src, piece.dst) for piece in todo]
        return _leg(self.engines[0], self.src, self.dst, pairs, stack)

    def _two(self, todo: Sequence[Piece], stack: ExitStack) -> list[Leg]:
        """From one device to the host, in the shorter of the two forms, and on to the other."""
        between = [self._between(piece) for piece in todo]
        scratch = HostMemory(max(between, key=lambda desc: desc.nbytes))
        there = [(piece.src, desc) for piece, desc in zip(todo, between, strict=True)]
        back = [(desc, piece.dst) for piece, desc in zip(todo, between, strict=True)]
        return [
            _leg(self.engines[0], self.src, scratch, there, stack),
            _leg(self.engines[1], scratch, self.dst, back, stack),
        ]

    def _between(self, piece: Piece) -> MemoryDesc:
        src, dst = self.src.desc, self.dst.desc
        forms = [(src.nbytes, piece.src), (dst.nbytes, piece.dst)]
        plain = [(size, desc) for size, desc in forms if not desc.format.image]
        if not plain:
            return MemoryDesc(piece.src.dims, src.dtype)
        return dense(min(plain, key=lambda form: form[0])[1])


def _leg(
    engine: Engine,
    src: HostMemory | Memory,
    dst: HostMemory | Memory,
    pairs: Sequence[Pair],
    stack: ExitStack,
) -> Leg:
    """A leg whose ends are released with the stack, also where the second cannot be made."""
    streams = Stream(engine), Stream(engine)
    ends = []
    for k, memory in enumerate((src, dst)):
        largest = max(dense(pair[k]).nbytes for pair in pairs)
        end = end_of(memory, streams, largest, writing=k == 1)
        stack.callback(end.close)
        ends.append(end)
    return Leg(streams, ends[0], ends[1], pairs)
