"""`QuantisedReorder`: reorders from and to quantised tensors. `Reorder` makes them.

A layout of the same type: bits are moved by kernels. To numbers: one kernel decodes; where the
destination has a layout that tiles do not reach, it decodes to rows, and a plain reorder follows.
From numbers: one kernel quantises rows. What no kernel does goes by the host, and the plan says so.
`Reorder` hands itself over, as the maker of the reorders before and after these kernels.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import suppress
from dataclasses import replace
from typing import TYPE_CHECKING, Any

from ..errors import InvalidArgument, InvalidDescriptor, Unsupported, expect
from ..host.packing import pack, unpack
from ..opencl import OnDevice, opencl
from ..problems.thresholds import LINE_BYTES
from ..programs.outcomes import CompilerDied
from ..quantised.host import moved
from ..runtime import Engine, Event, Memory, Stream
from ..runtime.engine import default_engine
from ..runtime.interop import from_numpy
from ..tensors.desc import MemoryDesc
from ..tensors.given import as_any_desc
from .given import as_memory, as_stream, check_apart, check_desc, let_arrays_wait
from .profiles import traits_of
from .works import AnyDesc, Maker, QuantisedPlan, Work, works, works_on_buffers

if TYPE_CHECKING:
    import pyopencl

    from .given import AnyMemory, AnyStream


class QuantisedReorder(OnDevice):
    """Moves a quantised tensor to another layout of its type, to numbers, or numbers to it.

    ``Reorder(src, dst, engine)`` makes one where ``src`` or ``dst`` is of a quantised type, and it
    is called like a `Reorder`: ``reorder(stream, src, dst)`` gives an `Event`. Layouts of one type
    hold the same bits; numbers are those of `clformats.unpack`, to the bit, but for the payload of
    a NaN. ``plan`` tells what runs, ``source`` is the OpenCL C.

    Raises `InvalidDescriptor` for other dims, `Unsupported` (code QUANTISE) for numbers to a type
    without a rule.
    """

    _travels_as = "send its src and dst, and make another by Reorder(src, dst) there"

    def __init__(
        self, maker: Maker, src: Any, dst: Any, engine: Engine | None = None, **others: Any
    ) -> None:
        given = [name for name, value in others.items() if value not in (None, True, False)]
        if given:
            raise InvalidArgument(f"{', '.join(given)}: reorders of quantised tensors take none")
        self.src: AnyDesc = as_any_desc(src, "src")
        self.dst: AnyDesc = as_any_desc(dst, "dst")
        expect(engine, Engine | None, "engine")
        self.engine = engine or default_engine()
        if self.src.dims != self.dst.dims:
            raise InvalidDescriptor(f"got {self.src} and {self.dst}, expected equal dims")
        self.src.require_layout()
        self.dst.require_layout()
        self._maker = maker
        self._works: dict[int, Work] = {}
        self._apart: dict[tuple[bool, bool, int], Work | None] = {}
        self._work = self._beginning_at(LINE_BYTES)
        self.plan = self._work.plan

    def _beginning_at(self, nbytes: int) -> Work:
        """What runs for memory that begins at multiples of so many bytes.

        The host does, where its kernels end the compiler. Raises `Unsupported`.
        """
        if nbytes not in self._works:
            traits = replace(traits_of(self.engine), begin_bytes=nbytes)
            try:
                made = works(self._maker, self.src, self.dst, self.engine, traits)
            except CompilerDied as death:
                made = Work(QuantisedPlan("host", (f"works on the host: {death.outcome}",)))
            self._works[nbytes] = made
        return self._works[nbytes]

    @property
    def source(self) -> str:
        """The OpenCL C that runs; empty where the host does the work."""
        return self._work.source

    def as_kernel_tuner(self, *_: Any, **__: Any) -> dict[str, Any]:
        """Raise `Unsupported` (code TUNING): kernels of quantised tensors have no parameters."""
        raise Unsupported("TUNING", f"{self} has no search space: its kernels follow from layouts")

    choices_of = as_kernel_tuner

    @property
    def is_built(self) -> bool:
        """True: kernels are built when the reorder is made."""
        return True

    def wait(self, timeout: float | None = None) -> None:
        """Return at once: there is nothing to wait for."""

    def __call__(self, stream: AnyStream, src: AnyMemory, dst: AnyMemory) -> Event:
        """Enqueue the reorder; work of the host is done when this returns.

        As in `Reorder`, pyopencl's queues, buffers and arrays are taken too.
        Raises `InvalidArgument`, `InvalidDescriptor`, `MappedError` and `DeviceError`.
        """
        source = as_memory(src, self.src, self.engine, "src")
        target = as_memory(dst, self.dst, self.engine, "dst")
        event = self._enqueued(as_stream(stream, self.engine), source, target)
        let_arrays_wait((src, dst), event)
        return event

    def _enqueued(self, stream: Stream, src: Memory, dst: Memory) -> Event:
        check_desc(("src", src, self.src))
        check_desc(("dst", dst, self.dst))
        if not self.dst.nelems:
            return self._done(stream)
        for written in _pieces(dst):
            read = [("source", piece, piece.desc) for piece in _pieces(src)]
            check_apart([*read, ("destination", written, written.desc)])
        if not (src.parts or dst.parts):
            return self._run(stream, src, dst)
        if work := self._on_buffers(src, dst):
            event = work.run(stream, src, dst)
            return self._done(stream) if dst.parts else event
        if src.parts:
            given, src = src, Memory.unfilled(src.desc, src.engine)
            for part, region in _regions(given, src):
                self._maker(part.desc, region.desc, self.engine)(stream, part, region)
        if not dst.parts:
            return self._run(stream, src, dst)
        whole = Memory.unfilled(dst.desc, dst.engine)
        self._run(stream, src, whole)
        for part, region in _regions(dst, whole):
            self._maker(region.desc, part.desc, self.engine)(stream, region, part)
        return self._done(stream)

    def _on_buffers(self, src: Memory, dst: Memory) -> Work | None:
        """What runs on several buffers as they are; None where it takes whole tensors."""
        apart = bool(src.parts), bool(dst.parts)
        begins = min(piece.begins_at for piece in (*_pieces(src), *_pieces(dst)))
        for nbytes in (LINE_BYTES, begins):
            key = *apart, nbytes
            if key not in self._apart:
                traits, self._apart[key] = replace(traits_of(self.engine), begin_bytes=nbytes), None
                with suppress(CompilerDied):
                    made = works_on_buffers(self.src, self.dst, apart, self.engine, traits)
                    self._apart[key] = made
            found = self._apart[key]
            if found and begins >= max(k.alignment for k, _ in found.kernels):
                return found
        return None

    def _run(self, stream: Stream, src: Memory, dst: Memory) -> Event:
        """Enqueue it for tensors of one buffer each."""
        begins, work = min(src.begins_at, dst.begins_at), self._work
        if begins < max((k.alignment for k, _ in work.kernels), default=1):
            work = self._beginning_at(begins)
        if not work.kernels:
            return self._on_host(stream, src, dst)
        return work.run(stream, src, dst)

    def _on_host(self, stream: Stream, src: Memory, dst: Memory) -> Event:
        to_numbers = isinstance(self.dst, MemoryDesc)
        with src.map("r", stream=stream) as read:
            if not to_numbers and self.src.dtype == self.dst.dtype:
                found = moved(read, self.src, self.dst)  # type: ignore[arg-type]  # both are
            else:
                found = unpack(read, self.src)
                found = found if to_numbers else pack(found, self.dst)
        if to_numbers:  # into what may be a region: nothing is written but elements and padding
            rows = from_numpy(found, self.engine, stream=stream)
            event: Event = self._maker(rows.desc, self.dst, self.engine)(stream, rows, dst)
            return event
        with dst.map("w", stream=stream) as written:
            written[: found.size] = found
        return self._done(stream)

    def _done(self, stream: Stream) -> Event:
        queue: pyopencl.CommandQueue = stream.tracked_queue
        return Event(opencl().enqueue_marker(queue))

    def __repr__(self) -> str:
        return f"Reorder({self.src} -> {self.dst})"


def _pieces(memory: Memory) -> list[Memory]:
    """The memory of each buffer of a tensor, or that of the one which holds it."""
    return [*memory.parts.values()] or [memory]


def _regions(memory: Memory, whole: Memory) -> Iterator[tuple[Memory, Memory]]:
    """Each buffer of a tensor in several, and its place in the bytes of one."""
    every = MemoryDesc((whole.desc.nbytes,), "u8")
    flat = Memory(every, whole.engine, buffer=whole.tracked_buffer)
    for b in memory.desc.buffers:  # type: ignore[attr-defined]  # it is quantised
        yield memory.parts[b.first], flat.submemory((b.nbytes,), (b.start,))
