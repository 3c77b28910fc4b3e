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
from ..problems.computation import from_attr
from ..problems.refine import problem
from ..runtime import Engine, Memory, Stream, unified
from ..runtime.engine import default_engine
from ..tensors.desc import MemoryDesc
from ..tensors.described import is_described
from ..values.attr import Attr
from .ends import Side, end_of, is_copied
from .hop import Hop, Job
from .pieces import TensorPiece, dense, nbytes_of, pieces
from .quantised import transfer_quantised

PIECE_NBYTES = 64 << 20
"""What a piece has if nothing is said: long enough to hide what starting it costs, on a GPU some
milliseconds of copying."""

Progress = Callable[[int, int], object]


def transfer(
    src: Side | Any,
    dst: Side | Any,
    *,
    attr: Attr | None = None,
    engine: Engine | None = None,
    piece_nbytes: int | None = None,
    progress: Progress | None = None,
) -> None:
    """Move ``src`` into ``dst`` and reorder it on the way; it is done when the call returns.

    Each side is a `Memory` on any device, a `HostMemory`, or a numpy array or a tensor that speaks
    DLPack (torch's), as it lies (its shape is the logical dims). What is best for the device is
    done: where it shares memory with the host, host memory is used where it lies, without a copy;
    else the tensor goes in pieces through two streams, so that copies and kernels overlap. Between
    two devices it goes through the host. ``attr`` is as for `Reorder`; ``engine`` says where to
    work if both sides are on the host.

    ``piece_nbytes``: the most bytes of a piece, source and destination together; two pieces are on
    the device at a time, so a tensor may be larger than its memory. Without it: one piece where
    nothing is copied, else 64 MiB or what the blocks of the formats allow. ``progress`` is called
    with the bytes done and the bytes in all, first with 0, then after each piece.

    A quantised tensor goes in one piece. The bytes are those of one `Reorder` of the whole, and as
    there nothing outside the destination is touched. After an exception, from ``progress`` too, all
    device memory is given back and the source is as it was, but the destination may be written in
    part.

    Raises `InvalidDescriptor` where the two sides do not fit or share memory, `InvalidAttr`,
    `Unsupported` (code PIECE_SIZE where the tensor cannot be cut so fine), `MappedError` and
    `DeviceError`.
    """
    _check_types(attr, engine, piece_nbytes, progress)
    attr = attr or Attr()
    src, dst = _side(src, "src"), _side(dst, "dst")
    quantised = is_described(src.desc) or is_described(dst.desc)
    if not quantised:
        _check_attr(attr, src.desc, dst.desc)
    _check(src, dst, engine)
    move = transfer_quantised if quantised else _transfer
    move(src, dst, attr, engine, piece_nbytes, progress)


def _transfer(
    src: Side, dst: Side, attr: Attr, engine: Engine | None, piece_nbytes: int | None,
    progress: Progress | None,
) -> None:  # fmt: skip
    """As `transfer`, of sides that were looked at."""
    if not src.desc.nelems:
        return
    with ExitStack() as stack:
        if isinstance(src, Memory) and isinstance(dst, Memory) and src.context != dst.context:
            src, dst = _mapped(src, dst, stack)
        _Route(src, dst, engine, attr).run(piece_nbytes, progress, stack)


def _check_types(attr: Any, engine: Any, piece_nbytes: Any, progress: Any) -> None:
    expect(attr, Attr | None, "attr")
    expect(engine, Engine | None, "engine")
    if piece_nbytes is not None and expect_int(piece_nbytes, "piece_nbytes") < 1:
        raise InvalidArgument(f"piece_nbytes: got {piece_nbytes}, expected 1 or more")
    if progress is not None and not callable(progress):
        raise InvalidArgument(f"progress: got {progress!r}, expected a function of two numbers")


def _side(value: Any, name: str) -> Side:
    if isinstance(value, Side):
        return value
    if not isinstance(value, np.ndarray) and not hasattr(value, "__dlpack__"):
        expect(value, Side, name)
    return HostMemory.of(value)


def _check_attr(attr: Attr, src: MemoryDesc, dst: MemoryDesc) -> None:
    """What a reorder checks, before anything is begun. Raises `InvalidAttr`."""
    problem(src, dst)
    for name, term in attr.terms.items():
        if term.values is None:
            raise InvalidAttr(
                f"{name} is to be given at execution: a transfer is one call, give its values in "
                f"the attributes"
            )
    problem(src, dst, from_attr(attr, src, dst))


def _check(src: Side, dst: Side, engine: Engine | None) -> None:
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


def _mapped(src: Memory, dst: Memory, stack: ExitStack) -> tuple[Side, ...]:
    """Two devices: the one that shares memory with the host is mapped for as long as it takes."""
    if unified.shares_host_memory(src.engine.device) and not src.desc.format.image:
        return HostMemory(src.mapped, stack.enter_context(src.map("r"))), dst
    if unified.shares_host_memory(dst.engine.device) and not dst.desc.format.image:
        return src, HostMemory(dst.mapped, stack.enter_context(dst.map("rw")))
    return src, dst


class _Route:
    """The engines on the way, and the hops between them."""

    def __init__(self, src: Side, dst: Side, engine: Engine | None, attr: Attr) -> None:
        self.src, self.dst, self.attr = src, dst, attr
        # By context, so that one device is there once: the engine of the destination.
        engines = {m.engine.context: m.engine for m in (src, dst) if isinstance(m, Memory)}
        self.engines = [*engines.values()] or [engine or default_engine()]

    def run(self, most: int | None, progress: Progress | None, stack: ExitStack) -> None:
        """Move all pieces."""
        todo = self._pieces(most, asked=progress is not None)
        hops = [self._direct(todo, stack)] if len(self.engines) == 1 else self._two(todo, stack)
        for hop in hops:
            stack.callback(hop.settle)
        report = progress or (lambda _done, _total: None)
        done, total = 0, sum(piece.nbytes for piece in todo)
        report(done, total)
        # A piece of one hop is finished two steps after its start, then the next hop takes it.
        for step in range(len(todo) + 2 * len(hops)):
            for k, hop in zip(range(step, -1, -2), hops, strict=False):
                if 0 <= k - 2 < len(todo):
                    hop.finish(k - 2)
                    if hop is hops[-1]:
                        done += todo[k - 2].nbytes
                        report(done, total)
                if k < len(todo):
                    hop.start(k)

    def _pieces(self, most: int | None, *, asked: bool) -> list[TensorPiece]:
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

    def _direct(self, todo: Sequence[TensorPiece], stack: ExitStack) -> Hop:
        """One engine does it."""
        dims = self.dst.desc.dims
        jobs = [Job(piece.src, piece.dst, piece.attr(self.attr, dims)) for piece in todo]
        return _hop(self.engines[0], self.src, self.dst, jobs, stack)

    def _two(self, todo: Sequence[TensorPiece], stack: ExitStack) -> list[Hop]:
        """From one device to the host, in the shorter of the two forms, and on to the other."""
        nothing, dims = Attr(), self.dst.desc.dims
        between = [self._between(piece) for piece in todo]
        scratch = HostMemory(max(between, key=nbytes_of))
        there = [Job(piece.src, desc, nothing) for piece, desc in zip(todo, between, strict=True)]
        onward = [
            Job(desc, piece.dst, piece.attr(self.attr, dims))
            for piece, desc in zip(todo, between, strict=True)
        ]
        return [
            _hop(self.engines[0], self.src, scratch, there, stack),
            _hop(self.engines[1], scratch, self.dst, onward, stack),
        ]

    def _between(self, piece: TensorPiece) -> MemoryDesc:
        src, dst = self.src.desc, self.dst.desc
        # What attributes compute, they compute on the way into the destination.
        moves = self.attr.is_empty and not dst.extra
        if moves and dst.nbytes < src.nbytes and not dst.format.image:
            return dense(piece.dst)
        return MemoryDesc(piece.src.dims, src.dtype) if src.format.image else dense(piece.src)


def _hop(engine: Engine, src: Side, dst: Side, jobs: Sequence[Job], stack: ExitStack) -> Hop:
    """A hop whose ends are released with the stack, also where the second cannot be made."""
    streams = Stream(engine), Stream(engine)
    read = max(nbytes_of(job.src) for job in jobs)
    source = end_of(src, streams, read, writing=False)
    stack.callback(source.close)
    written = max(nbytes_of(job.dst) for job in jobs)
    target = end_of(dst, streams, written, writing=True)
    stack.callback(target.close)
    return Hop(streams, source, target, jobs)
