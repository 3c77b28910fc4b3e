"""`Reorder`: a plan made ready on an engine, to be called many times."""

from __future__ import annotations

import threading
from collections import OrderedDict
from typing import TYPE_CHECKING

import numpy as np

from ..desc import RUNTIME_DIM, MemoryDesc
from ..errors import DeviceError, InvalidDescriptor, Unsupported
from ..planner import Plan, make_plan
from ..runtime import Engine, Event, Memory, Stream
from ..runtime.engine import default_engine
from ..runtime.image import check_pixels
from ..runtime.opencl import expect, named_errors, opencl
from . import launch
from .source import Launch

if TYPE_CHECKING:
    import pyopencl

KEPT_SHAPES = 64
"""How many shapes a reorder with sizes known at execution remembers."""


class Reorder:
    """Moves tensors of one descriptor to another: prepared once, called many times.

    ``Reorder(src_desc, dst_desc, engine)`` plans and builds; ``r(stream, src, dst)`` enqueues and
    returns an `Event`. Every element is converted by the rules of `clformats.dtypes`; every element
    of the destination's padding becomes zero, whatever was there; nothing else is touched.

    Descriptors may have `RUNTIME_DIM` in their dims: then the memories at a call say the sizes, and
    all shapes of one structure share one kernel.

    ``r.plan`` prints what will run and why; ``r.source`` is the OpenCL C (empty where there is
    nothing to do); with runtime dims both speak of the latest call. ``family`` asks for one family
    of kernels by name, for comparison. Safe to call from several threads. Raises
    `InvalidDescriptor`, `Unsupported` and `DeviceError`.
    """

    def __init__(
        self,
        src: MemoryDesc,
        dst: MemoryDesc,
        engine: Engine | None = None,
        *,
        family: str | None = None,
    ) -> None:
        expect(src, MemoryDesc, "src")
        expect(dst, MemoryDesc, "dst")
        expect(engine, Engine | None, "engine")
        self.engine = engine or default_engine()
        self.src, self.dst = src, dst
        self._family = family
        self._lock = threading.Lock()
        self._shapes: OrderedDict[tuple[MemoryDesc, MemoryDesc], _Ready] = OrderedDict()
        self._ready: _Ready | None = None
        if not (src.has_runtime or dst.has_runtime):
            self._ready = _Ready(make_plan(src, dst, self.engine.traits, family), self.engine)

    @property
    def plan(self) -> Plan:
        """What runs: the loops, the family, and why no better one."""
        return self._known().plan

    @property
    def source(self) -> str:
        """The OpenCL C that runs."""
        launched = self._known().launch
        return launched.source if launched else ""

    def _known(self) -> _Ready:
        if self._ready is None:
            raise InvalidDescriptor(
                f"{self.src} -> {self.dst} has sizes known at execution only: "
                f"there is a plan after the first call"
            )
        return self._ready

    def __call__(self, stream: Stream, src: Memory, dst: Memory) -> Event:
        """Enqueue the reorder of ``src`` into ``dst``.

        Raises `InvalidDescriptor` where a memory has another descriptor or both are one,
        `MappedError` where one is mapped, `DeviceError` where one has no buffer or belongs to
        another context, or OpenCL refuses.
        """
        expect(stream, Stream, "stream")
        expect(src, Memory, "src")
        expect(dst, Memory, "dst")
        # Always in one order, so that no two threads wait for each other.
        first, second = sorted((src.usage, dst.usage), key=id)
        with self._lock, first.lock, second.lock:
            self._check(src, self.src, "source")
            self._check(dst, self.dst, "destination")
            _check_places(self.engine, stream, src, dst)
            ready = self._ready_for(src.desc, dst.desc)
            waits = src.usage.to_wait_for(stream.order_key, writing=False)
            waits += dst.usage.to_wait_for(stream.order_key, writing=True)
            with named_errors("enqueueing", self):
                event = ready.enqueue(stream, src, dst, waits)
            src.usage.used(stream.order_key, event, writing=False)
            dst.usage.used(stream.order_key, event, writing=True)
        return Event(event)

    def _ready_for(self, src: MemoryDesc, dst: MemoryDesc) -> _Ready:
        if not (self.src.has_runtime or self.dst.has_runtime):
            return self._known()
        found = self._shapes.get((src, dst))
        if found is None:
            plan = make_plan(src, dst, self.engine.traits, self._family)
            found = self._shapes[src, dst] = _Ready(plan, self.engine)
            if len(self._shapes) > KEPT_SHAPES:
                self._shapes.popitem(last=False)
        self._ready = found
        return found

    def _check(self, memory: Memory, desc: MemoryDesc, name: str) -> None:
        if memory.desc is not desc and not _fits(memory.desc, desc):
            raise InvalidDescriptor(f"the {name} is {memory.desc}, the reorder was made for {desc}")
        memory.check_unmapped("reorder it")
        if memory.buffer is None and memory.nbytes:
            raise DeviceError(f"the {name} {memory!r} has no buffer: give it one by set_buffer()")

    def __repr__(self) -> str:
        return f"Reorder({self.src} -> {self.dst})"


class _Ready:
    """A plan with its kernel built and its scalar arguments set."""

    def __init__(self, plan: Plan, engine: Engine) -> None:
        self.plan = plan
        self.launch: Launch | None = launch(plan)
        self._kernel: pyopencl.Kernel | None = None
        if self.launch:
            _check_fp64(plan, engine)
            for desc in (plan.problem.src, plan.problem.dst):
                if desc.format.image:
                    check_pixels(engine, desc)
            self._kernel = engine.kernel(self.launch.source, Launch.KERNEL)
            index = np.int64 if self.launch.wide else np.int32
            for k, value in enumerate(self.launch.arguments, 2):
                self._kernel.set_arg(k, index(value))

    def enqueue(
        self, stream: Stream, src: Memory, dst: Memory, waits: list[pyopencl.Event]
    ) -> pyopencl.Event:
        """Enqueue the kernel; the caller holds the lock that guards its arguments."""
        cl = opencl()
        if self.launch is None or self._kernel is None:
            return cl.enqueue_marker(stream.queue, wait_for=waits or None)  # type: ignore[no-any-return]
        self._kernel.set_arg(0, src.buffer)
        self._kernel.set_arg(1, dst.buffer)
        sizes = (self.launch.global_size,), (self.launch.local_size,)
        return cl.enqueue_nd_range_kernel(  # type: ignore[no-any-return]
            stream.queue, self._kernel, *sizes, wait_for=waits or None
        )


def _fits(desc: MemoryDesc, pattern: MemoryDesc) -> bool:
    """Whether a descriptor is what a reorder was made for, runtime dims standing for any size."""
    if not pattern.has_runtime:
        return desc == pattern
    return (
        desc.dtype == pattern.dtype
        and desc.ndims == pattern.ndims
        and (RUNTIME_DIM in pattern.strides or desc.format == pattern.format)
        and all(p in (RUNTIME_DIM, n) for n, p in zip(desc.dims, pattern.dims, strict=True))
    )


def _check_places(engine: Engine, stream: Stream, src: Memory, dst: Memory) -> None:
    """All in one context; the memories not in one buffer, unless as regions side by side."""
    if stream.queue.context != engine.context:
        raise DeviceError(
            "the stream belongs to another OpenCL context than the reorder: make both from one "
            "engine"
        )
    for memory in (src, dst):
        if memory.buffer is not None and memory.engine.context != engine.context:
            raise DeviceError(
                f"{memory!r} belongs to another OpenCL context than the reorder: make both from "
                f"one engine"
            )
    same = src.buffer is not None and src.buffer == dst.buffer
    if same and src.desc.overlaps(dst.desc):
        raise InvalidDescriptor(
            f"source {src.desc} and destination {dst.desc} share bytes of one buffer: a reorder "
            f"cannot work in place, give it another destination"
        )


def _check_fp64(plan: Plan, engine: Engine) -> None:
    names = {t.name for t in plan.problem.dtypes}
    if "f64" in names and len(names) > 1 and not engine.traits.has_fp64:
        raise Unsupported("FP64", f"{engine.device.name} has no double precision to convert f64")


def reorder(
    memory: Memory, format: object = None, *, dtype: object = None, stream: Stream | None = None
) -> Memory:  # fmt: skip
    """A new memory object with the elements of ``memory`` in another format and element type.

    What is not given stays as it is; the result is dense and has no padding around it, whatever
    ``memory`` has. With ``stream`` the reorder is enqueued there and may still be
    running; without, it is done when the call returns.
    """
    src = memory.desc
    dst = MemoryDesc(src.dims, dtype or src.dtype, format or src.format)  # type: ignore[arg-type]
    result = Memory(dst, memory.engine)
    own = stream or Stream(memory.engine, queue=memory.engine.queue)
    event = Reorder(src, dst, memory.engine)(own, memory, result)
    if stream is None:
        event.wait()
    return result
