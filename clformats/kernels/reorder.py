"""`Reorder`: a plan made ready on an engine, to be called many times."""

from __future__ import annotations

import threading
from typing import TYPE_CHECKING

import numpy as np

from ..desc import MemoryDesc
from ..errors import DeviceError, InvalidDescriptor, Unsupported
from ..planner import Plan, make_plan
from ..runtime import Engine, Event, Memory, Stream
from ..runtime.opencl import named_errors, opencl
from . import launch
from .source import Launch

if TYPE_CHECKING:
    import pyopencl


class Reorder:
    """Moves tensors of one descriptor to another: prepared once, called many times.

    ``Reorder(src_desc, dst_desc, engine)`` plans and builds; ``r(stream, src, dst)`` enqueues and
    returns an `Event`. Every element is converted by the rules of `clformats.dtypes`; every element
    of the destination's padding becomes zero, whatever was there; nothing else is touched.

    ``r.plan`` prints what will run and why; ``r.source`` is the OpenCL C (empty where there is
    nothing to do). ``family`` asks for one family of kernels by name, for comparison. Raises
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
        self.engine = engine or Engine()
        self.src, self.dst = src, dst
        self.plan: Plan = make_plan(src, dst, self.engine.traits, family)
        self._launch: Launch | None = launch(self.plan)
        self._kernel: pyopencl.Kernel | None = None
        self._lock = threading.Lock()
        if self._launch:
            self._check_fp64()
            self._kernel = self.engine.kernel(self._launch.source, Launch.KERNEL)
            index = np.int64 if self._launch.wide else np.int32
            for k, value in enumerate(self._launch.arguments, 2):
                self._kernel.set_arg(k, index(value))

    @property
    def source(self) -> str:
        """The OpenCL C that runs."""
        return self._launch.source if self._launch else ""

    def __call__(self, stream: Stream, src: Memory, dst: Memory) -> Event:
        """Enqueue the reorder of ``src`` into ``dst``.

        Raises `InvalidDescriptor` where a memory has another descriptor, `MappedError` where one is
        mapped, `DeviceError` where one has no buffer or OpenCL refuses.
        """
        self._check(src, self.src, "source")
        self._check(dst, self.dst, "destination")
        waits = [*src.to_wait_for(stream, writing=False), *dst.to_wait_for(stream, writing=True)]
        cl = opencl()
        with named_errors("enqueueing", self):
            if self._launch is None or self._kernel is None:
                return Event(cl.enqueue_marker(stream.queue, wait_for=waits or None))
            with self._lock:
                self._kernel.set_arg(0, src.buffer)
                self._kernel.set_arg(1, dst.buffer)
                event = cl.enqueue_nd_range_kernel(
                    stream.queue,
                    self._kernel,
                    (self._launch.global_size,),
                    (self._launch.local_size,),
                    wait_for=waits or None,
                )
        src.used(stream, event, writing=False)
        dst.used(stream, event, writing=True)
        return Event(event)

    def _check(self, memory: Memory, desc: MemoryDesc, name: str) -> None:
        if memory.desc is not desc and memory.desc != desc:
            raise InvalidDescriptor(f"the {name} is {memory.desc}, the reorder was made for {desc}")
        memory.check_unmapped("reorder it")
        if memory.buffer is None and memory.nbytes:
            raise DeviceError(f"the {name} {memory!r} has no buffer: give it one by set_buffer()")

    def _check_fp64(self) -> None:
        names = {t.name for t in self.plan.problem.dtypes}
        if "f64" in names and len(names) > 1 and not self.engine.traits.has_fp64:
            raise Unsupported(
                "FP64", f"{self.engine.device.name} has no double precision to convert f64 with"
            )

    def __repr__(self) -> str:
        return f"Reorder({self.src} -> {self.dst}, family={self.plan.family})"


def reorder(
    memory: Memory, format: object = None, *, dtype: object = None, stream: Stream | None = None
) -> Memory:  # fmt: skip
    """A new memory object with the elements of ``memory`` in another format and element type.

    What is not given stays as it is. With ``stream`` the reorder is enqueued there and may still be
    running; without, it is done when the call returns.
    """
    src = memory.desc
    dst = MemoryDesc(src.dims, dtype or src.dtype, format or src.format)  # type: ignore[arg-type]
    result = Memory(dst, memory.engine)
    own = stream or Stream(memory.engine)
    event = Reorder(src, dst, memory.engine)(own, memory, result)
    if stream is None:
        event.wait()
    return result
