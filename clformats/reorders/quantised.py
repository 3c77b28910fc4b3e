"""`QuantisedReorder`: reorders from and to quantised tensors. `Reorder` makes them.

A layout of the same type: bits are moved by kernels. To numbers: one kernel decodes; where the
destination has a layout that tiles do not reach, it decodes to rows, and a plain reorder follows.
From numbers, and what no kernel does: on the host, and the plan says so.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from ..errors import InvalidArgument, InvalidDescriptor, Unsupported, expect
from ..host.packing import pack, pack_into, unpack
from ..quantised import QuantisedDesc
from ..quantised.decoding import Kernel, decoding
from ..quantised.host import moved
from ..quantised.moving import moving
from ..quantised.rules import check_rule
from ..runtime import Engine, Event, Memory, Stream
from ..runtime.engine import default_engine
from ..runtime.opencl import OnDevice, opencl
from ..tensors.desc import MemoryDesc
from ..tensors.given import as_any_desc
from .reorder import Reorder

if TYPE_CHECKING:
    import pyopencl

AnyDesc = MemoryDesc | QuantisedDesc


@dataclass(frozen=True, slots=True)
class QuantisedPlan:
    """What a reorder of a quantised tensor does: ``family``, and its steps in words.

    ``family`` is ``"moves"``, ``"decodes"``, ``"decodes twice"`` or ``"host"``.
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

    def __init__(self, src: Any, dst: Any, engine: Engine | None = None, **others: Any) -> None:
        given = [name for name, value in others.items() if value not in (None, True, False)]
        if given:
            raise InvalidArgument(f"{', '.join(given)}: reorders of quantised tensors take none")
        self.src: AnyDesc = as_any_desc(src, "src")
        self.dst: AnyDesc = as_any_desc(dst, "dst")
        expect(engine, Engine | None, "engine")
        self.engine = engine or default_engine()
        if self.src.dims != self.dst.dims:
            raise InvalidDescriptor(f"got {self.src} and {self.dst}, expected equal dims")
        self._kernels: list[Kernel] = []
        self._between: Reorder | None = None
        self.plan = self._planned()
        self._built = [self.engine.kernel(k.source, k.name) for k in self._kernels]

    def _planned(self) -> QuantisedPlan:
        if isinstance(self.dst, QuantisedDesc):
            return self._to_quantised(self.dst)
        assert isinstance(self.src, QuantisedDesc)  # noqa: S101  # one of the two is
        cpu = self.engine.traits.is_cpu
        try:
            self._kernels = [decoding(self.src, self.dst, fp16_lanes=cpu)]
            return QuantisedPlan("decodes", (self._kernels[0].what,))
        except Unsupported:
            pass
        rows = MemoryDesc(self.dst.dims, "f32")
        try:
            self._kernels = [decoding(self.src, rows, fp16_lanes=cpu)]
        except Unsupported as error:
            return QuantisedPlan("host", (f"unpacks on the host: {error}",))
        self._between = Reorder(rows, self.dst, self.engine)
        steps = (self._kernels[0].what, f"then a reorder {rows} -> {self.dst}")
        return QuantisedPlan("decodes twice", steps)

    def _to_quantised(self, dst: QuantisedDesc) -> QuantisedPlan:
        if isinstance(self.src, QuantisedDesc) and self.src.dtype == dst.dtype:
            try:
                self._kernels = moving(self.src, dst)
            except Unsupported as error:
                return QuantisedPlan("host", (f"moves bits on the host: {error}",))
            return QuantisedPlan("moves", tuple(k.what for k in self._kernels))
        check_rule(dst.dtype)
        step = "quantises on the host"
        if isinstance(self.src, QuantisedDesc):
            step = f"decodes {self.src.dtype} and {step}"
        return QuantisedPlan("host", (step,))

    @property
    def source(self) -> str:
        """The OpenCL C that runs; empty where the host does the work."""
        texts = [k.source for k in self._kernels]
        return "\n".join([*texts, *([self._between.source] if self._between else [])])

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

    def __call__(self, stream: Stream, src: Memory, dst: Memory) -> Event:
        """Enqueue the reorder; work of the host is done when this returns.

        Raises `InvalidArgument`, `InvalidDescriptor`, `MappedError` and `DeviceError`.
        """
        expect(stream, Stream, "stream")
        for memory, desc, what in ((src, self.src, "src"), (dst, self.dst, "dst")):
            expect(memory, Memory, what)
            if memory.desc != desc:
                raise InvalidDescriptor(
                    f"the {what} is {memory.desc}, the reorder was made for {desc}"
                )
        if not self.dst.nelems:
            return self._done(stream)
        if not self._kernels:
            return self._on_host(stream, src, dst)
        if self._between is None:
            return self._run(stream, src, dst)
        rows = Memory.unfilled(self._between.src, self.engine)
        self._run(stream, src, rows)
        return self._between(stream, rows, dst)

    def _run(self, stream: Stream, src: Memory, dst: Memory) -> Event:
        event: Event | None = None
        for kernel, built in zip(self._kernels, self._built, strict=True):
            numbers = [np.uint64(a) for a in kernel.arguments]
            event = stream.run(built, kernel.global_size, None, src, dst, *numbers, reads=[src])
        assert event is not None  # noqa: S101  # there is a kernel
        return event

    def _on_host(self, stream: Stream, src: Memory, dst: Memory) -> Event:
        with src.map("r", stream=stream) as read:
            if isinstance(self.src, QuantisedDesc) and isinstance(self.dst, QuantisedDesc) and (
                self.src.dtype == self.dst.dtype
            ):  # fmt: skip
                found = moved(read, self.src, self.dst)
            else:
                values = unpack(read, self.src)
                if isinstance(self.dst, MemoryDesc):
                    with dst.map("rw", stream=stream) as written:
                        pack_into(written, values, self.dst)
                    return self._done(stream)
                found = pack(values, self.dst)
        with dst.map("w", stream=stream) as written:
            written[: found.size] = found
        return self._done(stream)

    def _done(self, stream: Stream) -> Event:
        queue: pyopencl.CommandQueue = stream.tracked_queue
        return Event(opencl().enqueue_marker(queue))

    def __repr__(self) -> str:
        return f"Reorder({self.src} -> {self.dst})"
