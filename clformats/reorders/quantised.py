"""`QuantisedReorder`: reorders from and to quantised tensors. `Reorder` makes them.

A layout of the same type: bits are moved by kernels. To numbers: one kernel decodes; where the
destination has a layout that tiles do not reach, it decodes to rows, and a plain reorder follows.
From numbers: one kernel quantises rows. What no kernel does goes by the host, and the plan says so.
`Reorder` hands itself over, as the maker of the reorders before and after these kernels.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from contextlib import suppress
from dataclasses import dataclass, replace
from functools import partial
from typing import TYPE_CHECKING, Any, TypeVar

from ..errors import InvalidArgument, InvalidDescriptor, Unsupported, expect
from ..host.packing import pack, unpack, whole_nbytes
from ..opencl import OnDevice, opencl
from ..problems.thresholds import LINE_BYTES
from ..programs.guard import FirstLaunch
from ..programs.outcomes import CompilerDied
from ..quantised import QuantisedDesc
from ..quantised.host import moved
from ..quantised.lanes import NotInTilesError
from ..quantised.rules import check_rule
from ..recoding.apart import PlaneMove
from ..recoding.decoding import decoding
from ..recoding.kernel import Kernel
from ..recoding.moving import moving
from ..recoding.quantising import quantising
from ..recoding.repacking import repacking
from ..runtime import Engine, Event, Memory, Stream
from ..runtime.engine import default_engine
from ..runtime.interop import from_numpy
from ..schedule import Request, Traits
from ..tensors.desc import MemoryDesc
from ..tensors.given import as_any_desc
from . import kept
from .building import launch_within
from .given import as_memory, as_stream, check_apart, check_desc, let_arrays_wait
from .planning import planned
from .profiles import traits_of

if TYPE_CHECKING:
    import pyopencl

    from .given import AnyMemory, AnyStream

T = TypeVar("T")

AnyDesc = MemoryDesc | QuantisedDesc
Maker = Callable[[AnyDesc, AnyDesc, Engine], Any]
"""What makes a reorder."""


@dataclass(frozen=True, slots=True)
class QuantisedPlan:
    """What a reorder of a quantised tensor does: ``family``, and its steps in words.

    ``family`` is ``"moves"``, ``"decodes"``, ``"decodes twice"``, ``"quantises"`` or ``"host"``.
    """

    family: str
    steps: tuple[str, ...]

    def __str__(self) -> str:
        return "\n".join([f"family {self.family}", *self.steps])


class QuantisedReorder(OnDevice):
    """Moves a quantised tensor to another layout of its type, to numbers, or numbers to it.

    ``Reorder(src, dst, engine)`` makes one where ``src`` or ``dst`` is of a quantised type, and it
    is called like a `Reorder`: ``reorder(stream, src, dst)`` gives an `Event`. Layouts of one type
    hold the same bits; numbers are those of `clformats.unpack`, to the bit. ``plan`` tells what
    runs, ``source`` is the OpenCL C.

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
        self._works: dict[int, _Work] = {}
        self._work = self._beginning_at(LINE_BYTES)
        self.plan = self._work.plan

    def _beginning_at(self, nbytes: int) -> _Work:
        """What runs for memory that begins at multiples of so many bytes.

        The host does, where its kernels end the compiler. Raises `Unsupported`.
        """
        if nbytes not in self._works:
            traits = replace(traits_of(self.engine), begin_bytes=nbytes)
            try:
                made = _by_kernels(self._maker, self.src, self.dst, self.engine, traits)
            except CompilerDied as death:
                made = _Work(QuantisedPlan("host", (f"works on the host: {death.outcome}",)))
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


@dataclass(frozen=True, slots=True)
class _Work:
    """The kernels of a plan, built, and other reorders that run before and after them."""

    plan: QuantisedPlan
    kernels: tuple[tuple[Kernel, pyopencl.Kernel], ...] = ()
    after: Any = None
    before: Any = None

    @property
    def source(self) -> str:
        """The OpenCL C of all."""
        own = [k.source for k, _ in self.kernels]
        others = [[r.source] if r else [] for r in (self.before, self.after)]
        return "\n".join([*others[0], *own, *others[1]])

    def run(self, stream: Stream, src: Memory, dst: Memory) -> Event:
        """Enqueue everything."""
        if self.before is not None:
            first = Memory.unfilled(self.before.dst, dst.engine)
            self.before(stream, src, first)
            src = first
        if self.after is None:
            return self._run(stream, src, dst)
        last = Memory.unfilled(self.after.src, dst.engine)
        self._run(stream, src, last)
        result: Event = self.after(stream, last, dst)
        return result

    def _run(self, stream: Stream, src: Memory, dst: Memory) -> Event:
        event: Event | None = None
        for kernel, built in self.kernels:
            event = stream.run(built, kernel.global_size, kernel.local_size, src, dst,
                               *kernel.arguments, reads=[src])  # fmt: skip
        assert event is not None  # noqa: S101  # there is a kernel
        return event


def _by_kernels(maker: Maker, src: AnyDesc, dst: AnyDesc, engine: Engine, traits: Traits) -> _Work:
    """What brings one into the other. Raises `CompilerDied` and `Unsupported`."""
    if isinstance(dst, QuantisedDesc) and (
        not isinstance(src, QuantisedDesc) or src.dtype != dst.dtype
    ):
        return _quantising(maker, src, dst, engine, traits)
    if not dst.nelems:
        return _Work(QuantisedPlan("host", ("nothing to do: no elements",)))
    assert isinstance(src, QuantisedDesc)  # noqa: S101  # one of the two is
    if isinstance(dst, QuantisedDesc):
        return _moving(src, dst, engine, traits)
    return _decoding(maker, src, dst, engine, traits)


def _built(
    kernels: Sequence[Kernel], src: AnyDesc, dst: AnyDesc, engine: Engine
) -> tuple[tuple[Kernel, pyopencl.Kernel], ...]:
    """Raises `CompilerDied`."""
    return tuple((k, engine.kernel(k.source, k.name, _trial(k, src, dst))) for k in kernels)


def _trial(kernel: Kernel, src: AnyDesc, dst: AnyDesc) -> FirstLaunch | None:
    """One work-group of a kernel, with memory as large as that which it will have."""
    sizes = [max(64, d.nbytes if isinstance(d, QuantisedDesc) else whole_nbytes(d))
             for d in (src, dst)]  # fmt: skip
    given = [a if isinstance(a, bytes) else a.tobytes() for a in kernel.arguments]
    local = kernel.local_size or (1,) * len(kernel.global_size)
    return launch_within(kernel.name, local, (*sizes, *given))


def _moving(src: QuantisedDesc, dst: QuantisedDesc, engine: Engine, traits: Traits) -> _Work:
    if not traits.is_cpu:
        with suppress(NotInTilesError):
            kernel = repacking(src, dst, traits)
            return _Work(QuantisedPlan("moves", (kernel.what,)), _built([kernel], src, dst, engine))
    try:
        moves = _kept(moving, src, dst, traits)
    except Unsupported as error:
        return _Work(QuantisedPlan("host", (f"moves bits on the host: {error}",)))
    made = [k for move in moves for k in _kernels(move, traits)]
    return _Work(
        QuantisedPlan("moves", tuple(k.what for k in made)), _built(made, src, dst, engine)
    )


def _decoding(
    maker: Maker, src: QuantisedDesc, dst: MemoryDesc, engine: Engine, traits: Traits
) -> _Work:
    why: tuple[str, ...] = ()
    try:
        kernel = _kept(decoding, src, dst, traits)
        return _Work(QuantisedPlan("decodes", (kernel.what,)), _built([kernel], src, dst, engine))
    except Unsupported:
        pass
    except CompilerDied as death:
        why = (f"not by one kernel: {death.outcome}",)
    rows = MemoryDesc(dst.dims, "f32")
    try:
        kernel = _kept(decoding, src, rows, traits)
    except Unsupported as error:
        return _Work(QuantisedPlan("host", (f"unpacks on the host: {error}",)))
    steps = (*why, kernel.what, f"then a reorder {rows} -> {dst}")
    after = maker(rows, dst, engine)
    return _Work(QuantisedPlan("decodes twice", steps), _built([kernel], src, rows, engine), after)


def _kept(make: Callable[..., T], *asked: AnyDesc | Traits) -> T:
    """What takes 50 ms and more, as an earlier process has made it of a type of the library's."""
    types = [one.dtype for one in asked if isinstance(one, QuantisedDesc)]
    if all(t.is_built_in for t in types):
        return kept.made(asked, partial(make, *asked))
    return make(*asked)


def _quantising(
    maker: Maker, src: AnyDesc, dst: QuantisedDesc, engine: Engine, traits: Traits
) -> _Work:
    """From numbers, or from another type: by kernels over rows, else on the host.

    Raises `Unsupported` for types without a rule.
    """
    check_rule(dst.dtype)
    decodes = f"decodes {src.dtype} and " * isinstance(src, QuantisedDesc)
    if not dst.nelems:
        return _Work(QuantisedPlan("host", ("nothing to do: no elements",)))
    rows = MemoryDesc(dst.dims, "f16" if src.dtype.name == "f16" else "f32")
    for made in _layouts(dst):
        with suppress(Unsupported):
            kernel = _kept(quantising, rows, made, traits)
            before = maker(src, rows, engine) if src != rows else None
            after = maker(made, dst, engine) if made != dst else None
            steps = [f"{decodes}reorders to {rows}"] * bool(before) + [kernel.what]
            steps += [f"then to {dst}"] * bool(after)
            plan = QuantisedPlan("quantises", tuple(steps))
            return _Work(plan, _built([kernel], rows, made, engine), after, before)
    return _Work(QuantisedPlan("host", (f"{decodes}quantises on the host",)))


def _layouts(dst: QuantisedDesc) -> Iterator[QuantisedDesc]:
    """The tensor as it is, and in layouts of its type that kernels write, if it fills records."""
    yield dst
    for layout in map(dst.dtype.layouts.get, ("gguf", "plain")):
        with suppress(InvalidDescriptor):
            yield dst.with_layout(layout)


def _kernels(move: Kernel | PlaneMove, traits: Traits) -> list[Kernel]:
    """The kernel of a move; of planes, that of a plain reorder, if there is anything to move."""
    if isinstance(move, Kernel):
        return [move]
    plan, made = planned(Request(move.src, move.dst, traits))
    if made is None:
        return []
    what = f"{', '.join(move.names)}: {plan.family}, {plan.body}"
    return [Kernel(made.source, made.KERNEL, (made.global_size,), made.given, what,
                   (made.local_size,), max(plan.alignment))]  # fmt: skip
