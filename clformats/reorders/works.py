"""What a reorder of a quantised tensor runs: kernels, and plain reorders before and after them.

`works` decides. Moves: each plane by a plain reorder, or bits in tiles. Decoding: rows of records
and maps over planes on GPUs, else tiles, or rows and then a plain reorder. Quantising: rows.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from contextlib import suppress
from dataclasses import dataclass, replace
from functools import partial
from typing import Any, TypeVar

from ..errors import InvalidDescriptor, Unsupported
from ..host.packing import whole_nbytes
from ..kernels.source import Launch
from ..programs.guard import FirstLaunch
from ..programs.outcomes import CompilerDied
from ..quantised import QuantisedDesc
from ..quantised.lanes import NotInTilesError
from ..quantised.rules import check_rule
from ..recoding.apart import PlaneMove, in_buffer
from ..recoding.decoding import TARGETS, decoding
from ..recoding.kernel import Kernel
from ..recoding.mapped import adding, buffers_of, decoding_by_map
from ..recoding.moving import moving
from ..recoding.quantising import quantising
from ..recoding.records import decoding_in_groups
from ..recoding.repacking import repacking
from ..runtime import Engine, Event, Memory, Stream
from ..runtime.engine import SharedKernel
from ..schedule import Plan, Request, Traits
from ..schedule.local import GroupPlan
from ..tensors.desc import MemoryDesc
from . import kept
from .building import launch_within
from .planning import planned

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


@dataclass(frozen=True, slots=True)
class Work:
    """The kernels of a plan, built, and other reorders that run before and after them."""

    plan: QuantisedPlan
    kernels: tuple[tuple[Kernel, SharedKernel], ...] = ()
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
            sizes = kernel.global_size, kernel.local_size
            first, *others = (src.parts.get(name, src) for name in kernel.reads)
            buffers = first, dst.parts.get(kernel.writes, dst), *others
            event = stream.run_shared(built, sizes, buffers, kernel.numbers, (first, *others))
        assert event is not None  # noqa: S101  # there is a kernel
        return event


def works(maker: Maker, src: AnyDesc, dst: AnyDesc, engine: Engine, traits: Traits) -> Work:
    """What brings one into the other. Raises `CompilerDied` and `Unsupported`."""
    if isinstance(dst, QuantisedDesc) and (
        not isinstance(src, QuantisedDesc) or src.dtype != dst.dtype
    ):
        return _quantising(maker, src, dst, engine, traits)
    if not dst.nelems:
        return Work(QuantisedPlan("host", ("nothing to do: no elements",)))
    assert isinstance(src, QuantisedDesc)  # noqa: S101  # one of the two is
    if isinstance(dst, QuantisedDesc):
        return _moving(src, dst, engine, traits)
    return _decoding(maker, src, dst, engine, traits)


def works_on_buffers(
    src: AnyDesc, dst: AnyDesc, apart: tuple[bool, bool], engine: Engine, traits: Traits
) -> Work | None:
    """The same for tensors in several buffers, by kernels of which each reads and writes planes.

    ``apart``: whether the source is, and the destination. None where kernels want whole tensors.
    Raises `CompilerDied`.
    """
    if not isinstance(src, QuantisedDesc):
        return None
    if isinstance(dst, QuantisedDesc):
        return _moving_apart(src, dst, apart, engine, traits) if src.dtype == dst.dtype else None
    kernel = None if traits.is_cpu else _mapped(src, dst, traits, apart=True)
    if kernel is None:
        return None
    return Work(QuantisedPlan("decodes", (kernel.what,)), _built([kernel], src, dst, engine))


def _moving_apart(
    src: QuantisedDesc, dst: QuantisedDesc, apart: tuple[bool, bool], engine: Engine, traits: Traits
) -> Work | None:
    try:
        moves = _kept(moving, src, dst, traits)
    except Unsupported:
        return None
    made = []
    for move in moves:
        if isinstance(move, Kernel):
            return None
        read, written = (d.buffers[n] for d, n in zip((src, dst), move.buffers, strict=True))
        own = replace(move, src=in_buffer(move.src, read) if apart[0] else move.src,
                      dst=in_buffer(move.dst, written) if apart[1] else move.dst)  # fmt: skip
        reads, writes = (read.first if apart[0] else "",), written.first if apart[1] else ""
        made += [replace(k, reads=reads, writes=writes) for k in _kernels(own, traits)]
    return Work(QuantisedPlan("moves", tuple(k.what for k in made)), _built(made, src, dst, engine))


def _built(
    kernels: Sequence[Kernel], src: AnyDesc, dst: AnyDesc, engine: Engine
) -> tuple[tuple[Kernel, SharedKernel], ...]:
    """Raises `CompilerDied`."""
    return tuple(
        (k, engine.shared_kernel(k.source, k.name, k.numbers, _trial(k, src, dst))) for k in kernels
    )


def _trial(kernel: Kernel, src: AnyDesc, dst: AnyDesc) -> FirstLaunch | None:
    """One work-group of a kernel, with memory as large as that which it will have."""
    read, *operands = (_nbytes(src, name) for name in kernel.reads)
    local = kernel.local_size or (1,) * len(kernel.global_size)
    buffers = read, _nbytes(dst, kernel.writes)
    return launch_within(kernel.name, local, (*buffers, *kernel.numbers, *operands))


def _nbytes(desc: AnyDesc, first: str) -> int:
    """The bytes of a tensor, or of the buffer that begins with a plane."""
    if not isinstance(desc, QuantisedDesc):
        return max(64, whole_nbytes(desc))
    return max(64, next((b.nbytes for b in desc.buffers if b.first == first), desc.nbytes))


def _moving(src: QuantisedDesc, dst: QuantisedDesc, engine: Engine, traits: Traits) -> Work:
    if not traits.is_cpu:
        with suppress(NotInTilesError):
            kernel = repacking(src, dst, traits)
            return Work(QuantisedPlan("moves", (kernel.what,)), _built([kernel], src, dst, engine))
    try:
        moves = _kept(moving, src, dst, traits)
    except Unsupported as error:
        return Work(QuantisedPlan("host", (f"moves bits on the host: {error}",)))
    made = [k for move in moves for k in _kernels(move, traits)]
    return Work(QuantisedPlan("moves", tuple(k.what for k in made)), _built(made, src, dst, engine))


def _decoding(
    maker: Maker, src: QuantisedDesc, dst: MemoryDesc, engine: Engine, traits: Traits
) -> Work:
    why: tuple[str, ...] = ()
    if not traits.is_cpu and (found := _on_groups(maker, src, dst, engine, traits)):
        return found
    try:
        kernel = _kept(decoding, src, dst, traits)
        return Work(QuantisedPlan("decodes", (kernel.what,)), _built([kernel], src, dst, engine))
    except Unsupported:
        pass
    except CompilerDied as death:
        why = (f"not by one kernel: {death.outcome}",)
    rows = MemoryDesc(dst.dims, "f32")
    try:
        kernel = _kept(decoding, src, rows, traits)
    except Unsupported as error:
        return Work(QuantisedPlan("host", (f"unpacks on the host: {error}",)))
    return _by_rows(maker, kernel, why, (src, rows, dst), engine)


def _by_rows(
    maker: Maker, kernel: Kernel, why: tuple[str, ...],
    descs: tuple[QuantisedDesc, MemoryDesc, MemoryDesc], engine: Engine,
) -> Work:  # fmt: skip
    """To rows by a kernel, and from there by a plain reorder."""
    src, rows, dst = descs
    steps = (*why, kernel.what, f"then a reorder {rows} -> {dst}")
    after = maker(rows, dst, engine)
    return Work(QuantisedPlan("decodes twice", steps), _built([kernel], src, rows, engine), after)


def _on_groups(
    maker: Maker, src: QuantisedDesc, dst: MemoryDesc, engine: Engine, traits: Traits
) -> Work | None:
    """What decodes on GPUs with all loads and stores of neighbours side by side, if there is any.

    Rows of records through local memory; planes as a plain reorder moves tensors; rows first.
    """
    if kernel := _in_groups(src, dst, traits) or _mapped(src, dst, traits):
        return Work(QuantisedPlan("decodes", (kernel.what,)), _built([kernel], src, dst, engine))
    rows = MemoryDesc(dst.dims, dst.dtype)
    kernel = _in_groups(src, rows, traits)
    return _by_rows(maker, kernel, (), (src, rows, dst), engine) if kernel else None


def _in_groups(src: QuantisedDesc, dst: MemoryDesc, traits: Traits) -> Kernel | None:
    """The kernel from rows of records to rows."""
    if dst.dtype.name in TARGETS:
        with suppress(NotInTilesError):
            return decoding_in_groups(src, dst, traits)
    return None


def _mapped(
    src: QuantisedDesc, dst: MemoryDesc, traits: Traits, *, apart: bool = False
) -> Kernel | None:
    """The kernel of a map over planes, of a family for GPUs; None where there is none."""
    if found := decoding_by_map(src, dst, apart=apart):
        moved, computation = found
        with suppress(Unsupported):
            plan, made = planned(Request(moved, dst, traits, computation))
            if made and not made.then and isinstance(plan.body, GroupPlan):
                what = f"{computation}: {plan.family}, {plan.body}"
                names = buffers_of(src, computation)
                reads = names if apart else ("",) * len(names)
                return replace(_of_plan(plan, made, what), reads=reads)
    return None


def _kept(make: Callable[..., T], *asked: AnyDesc | Traits) -> T:
    """What takes 50 ms and more, as an earlier process has made it of a type of the library's."""
    types = [one.dtype for one in asked if isinstance(one, QuantisedDesc)]
    if all(t.is_built_in for t in types):
        return kept.made(asked, partial(make, *asked))
    return make(*asked)


def _quantising(
    maker: Maker, src: AnyDesc, dst: QuantisedDesc, engine: Engine, traits: Traits
) -> Work:
    """From numbers, or from another type: by kernels over rows, else on the host.

    Raises `Unsupported` for types without a rule.
    """
    check_rule(dst.dtype)
    decodes = f"decodes {src.dtype} and " * isinstance(src, QuantisedDesc)
    if not dst.nelems:
        return Work(QuantisedPlan("host", ("nothing to do: no elements",)))
    rows = MemoryDesc(dst.dims, "f16" if src.dtype.name == "f16" else "f32")
    ways = [(made, quantising) for made in _layouts(dst)]
    if not traits.is_cpu:  # first what stores neighbours side by side
        ways = [(made, partial(quantising, in_tiles=False)) for made, _ in ways] + ways
    for made, way in ways:
        with suppress(Unsupported):
            kernel = _kept(way, rows, made, traits)
            before = maker(src, rows, engine) if src != rows else None
            after = maker(made, dst, engine) if made != dst else None
            steps = [f"{decodes}reorders to {rows}"] * bool(before) + [kernel.what]
            steps += [f"then to {dst}"] * bool(after)
            plan = QuantisedPlan("quantises", tuple(steps))
            return Work(plan, _built([kernel], rows, made, engine), after, before)
    return Work(QuantisedPlan("host", (f"{decodes}quantises on the host",)))


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
    plan, made = planned(Request(move.src, move.dst, traits, adding(move)))
    if made is None:
        return []
    more = f" + {move.added}" if move.added else ""
    return [_of_plan(plan, made, f"{', '.join(move.names)}{more}: {plan.family}, {plan.body}")]


def _of_plan(plan: Plan, made: Launch, what: str) -> Kernel:
    """The kernel of a plain reorder."""
    return Kernel(made.source, made.KERNEL, (made.global_size,), made.given, what,
                  (made.local_size,), max(plan.alignment))  # fmt: skip
