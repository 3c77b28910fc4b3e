"""`Reorder`: a kernel planned and built for two descriptors, called many times."""

from __future__ import annotations

import threading
from collections.abc import Mapping
from concurrent.futures import CancelledError
from concurrent.futures import TimeoutError as NotYet
from dataclasses import replace
from functools import lru_cache
from math import inf, prod
from time import monotonic
from typing import TYPE_CHECKING, Any

from ..errors import (
    DeviceError,
    InvalidArgument,
    InvalidAttr,
    InvalidDescriptor,
    Unsupported,
    expect,
    shown,
)
from ..opencl import OnDevice, opencl
from ..problems.computation import from_attr
from ..problems.twins import in_buffers
from ..runtime import Engine, Event, Memory, Stream
from ..runtime.engine import default_engine
from ..runtime.interop import from_numpy
from ..runtime.scalar import Scalar
from ..schedule import Plan, Request
from ..schedule.choices import RULES, Choices
from ..tensors.desc import MemoryDesc
from ..tensors.described import Described, is_described
from ..tensors.given import as_desc, canonical
from ..values.attr import Attr, compute_type
from ..values.transforms import joins_winograd
from .given import (
    as_memory,
    as_stream,
    check_desc,
    let_arrays_wait,
    made_for,
    scalar_of,
    values_on_device,
)
from .planning import FewPrograms, planned, records_of
from .profiles import measure_later, traits_of
from .ready import Ready, Value

if TYPE_CHECKING:
    from .given import AnyMemory, AnyStream
    from .variants import Variants

KEPT_SHAPES = 64
"""How many shapes a reorder with sizes known at execution caches."""


class Reorder(OnDevice):
    """Moves tensors from one descriptor to another: prepared once, called many times.

    ``r = Reorder(src_desc, dst_desc, engine)`` plans and builds; ``r(stream, src, dst)`` enqueues
    and returns an `Event`. Elements are converted by the rules of docs/values.md. All padding of
    the destination becomes zero, whatever was there; nothing else is touched. ``attr``, an `Attr`,
    scales, shifts and sums on the way. Values that it leaves to the execution are given at the
    call, by name: numbers, or a memory object of f32 (f64 where one side is).

    Dims and strides may be `RUNTIME_DIM`. Then the memory objects of a call give the numbers. The
    first shapes build up to four programs, each of which serves many shapes. What none of them
    serves then goes by one kernel of the slow generic family, so that later calls never wait for
    the compiler. Transforms have one program, and so have images on GPUs. The sums of int8 weights
    take a second one, of which there are at most nine.

    A kernel that was never built on this machine takes the compiler up to a second. Meanwhile calls
    run a slower kernel that serves all moves between two types: the bytes are the same, and
    `is_built` tells which one runs. With ``wait=True`` the constructor waits, as benchmarks should;
    so it does for attributes, on GPUs, and where a slow call would take longer than the compiler.
    `wait` waits later.

    ``r.plan`` prints what runs and why; ``r.source`` is the OpenCL C, empty if there is nothing to
    do, and of both programs where sums follow int8 weights. With `RUNTIME_DIM` plan and source are
    those of the latest call. ``family`` asks for one family of kernels by name, for comparison.
    Records of `clformats.tune` for this device are used, unless ``tuned`` is False, or a `Choices`
    of yours.

    A reorder to a Winograd format, or back where that is defined, transforms the values if the
    destination has the dims that `clformats.winograd` gives, and moves them if the dims are equal;
    ``transform`` says which where both fit. Safe to call from several threads. Raises
    `InvalidDescriptor`, `InvalidAttr`, `Unsupported` and `DeviceError`.
    """

    _travels_as = "send its src and dst, and make another by Reorder(src, dst) there"

    def __new__(cls, src: Any, dst: Any, engine: Engine | None = None, **others: Any) -> Any:
        """Another kind of object, called alike, where one side is of a quantised type."""
        if is_described(src) or is_described(dst):
            from .quantised import QuantisedReorder

            return QuantisedReorder(cls, src, dst, engine, **others)
        return object.__new__(cls)

    def __init__(  # noqa: PLR0913  # each is a wish of its own
        self,
        src: MemoryDesc | Described | str,
        dst: MemoryDesc | Described | str,
        engine: Engine | None = None,
        *,
        attr: Attr | None = None,
        family: str | None = None,
        transform: bool | None = None,
        tuned: Choices | bool = True,
        wait: bool = False,
    ) -> None:
        src, dst = as_desc(src, "src"), as_desc(dst, "dst")
        expect(engine, Engine | None, "engine")
        expect(attr, Attr | None, "attr")
        expect(family, str | None, "family")
        expect(transform, bool | None, "transform")
        expect(tuned, Choices | bool, "tuned")
        expect(wait, bool, "wait")
        self.engine = engine or default_engine()
        self.src, self.dst = src, dst
        # Descriptors that are known to fit: those of the latest call, which most likely come again.
        self._fit = canonical(src), canonical(dst)
        self.attr = attr or Attr()
        self._transform, self._tuned = transform, tuned is True
        choices = tuned if isinstance(tuned, Choices) else RULES
        self._choices = replace(choices, family=family) if family else choices
        # Users who name kernels compare them, and want no other one timed.
        self._waits = wait or family is not None or isinstance(tuned, Choices)
        self._lock = threading.Lock()
        self._prepared_for = lru_cache(KEPT_SHAPES)(self._prepared)
        self._traits = traits_of(self.engine)
        self._few = FewPrograms(src, dst, self._request)
        self._ready: Ready | None = None
        self._has_runtime = src.has_runtime or dst.has_runtime
        self.attr.check_rank(dst.ndims)
        if not self._has_runtime:
            self._ready = self._prepared(src, dst)
        asks = any(term.values is None for term in self.attr.terms.values())
        # Where a call needs nothing but the two memories.
        self._plain = None if asks else self._ready

    @property
    def _serves_any_size(self) -> bool:
        """Whether few kernels are to serve all sizes: some are unknown, no family is asked for.

        Images that kernels reach as such, and transforms, have families of their own, whose kernels
        serve every size of a structure.
        """
        special = any(d.format.image for d in in_buffers(self.src, self.dst, self._traits))
        transforms = joins_winograd(self.src.format, self.dst.format)
        return self._has_runtime and not (special or transforms or self._choices.family)

    def _prepared(self, src: MemoryDesc, dst: MemoryDesc) -> Ready:
        """Plan and build for descriptors whose sizes are known."""
        if self._serves_any_size:
            plan, launched = self._few.planned(src, dst)
        else:
            records = records_of(self.engine) if self._tuned else None
            plan, launched = planned(self._request(src, dst), records)
        if not self._waits:
            measure_later(self.engine, plan.problem.nbytes)
        real = compute_type(src.dtype, dst.dtype)
        values = self.attr.resolve(dst.dims, None, real)
        # Users who name kernels get these, or an error.
        may_change = self._choices == RULES
        return Ready(plan, launched, self.engine, values, wait=self._waits, may_change=may_change)

    def _request(self, src: MemoryDesc, dst: MemoryDesc) -> Request:
        """What is asked of a plan for two descriptors."""
        fit = src.dims == dst.dims or joins_winograd(src.format, dst.format)
        computation = from_attr(self.attr, src, dst) if fit else None
        return Request(src, dst, self._traits, computation, self._transform, self._choices)

    @property
    def plan(self) -> Plan:
        """The plan: the loops, the family of kernels, and why no better one."""
        return self._known().plan

    @property
    def source(self) -> str:
        """The OpenCL C that runs."""
        return self._known().source

    @property
    def is_built(self) -> bool:
        """Whether calls run the plan's own kernel; False while a slower one stands in for it."""
        builds = self._known().builds
        return all(b.done() and not (b.cancelled() or b.exception()) for b in builds)

    def wait(self, timeout: float | None = None) -> None:
        """Wait until the plan's own kernel is built.

        Raises `DeviceError` where it is not in ``timeout`` seconds, or not at all because the
        process ends, and the error of the build where that failed; calls go on by the slower kernel
        then.
        """
        expect(timeout, float | int | None, "timeout")
        builds = self._known().builds
        if builds:
            opencl()  # refuses in a forked process, where no thread builds
        latest = inf if timeout is None else monotonic() + timeout
        try:
            for build in builds:
                build.result(None if timeout is None else max(0, latest - monotonic()))
        except NotYet as error:
            raise DeviceError(
                f"the kernel of {self} is not built after {timeout} s: the slower one serves on"
            ) from error
        except CancelledError as error:
            raise DeviceError(f"the kernel of {self} is not built: the process ends") from error

    def as_kernel_tuner(self, *, seed: int = 0, parts: bool = False) -> dict[str, Any]:
        """This reorder and its search space, for scripts that tune on their own.

        ``kernel_tuner.tune_kernel(**reorder.as_kernel_tuner())`` runs without further arguments;
        add a strategy and others as you like. The dictionary has the kernel source as a function
        of the parameters, the arguments (random elements, garbage in the source's padding, a
        destination full of poison), the expected bytes, and the parameters. Sizes and loops are
        constants in these kernels. The values of the space's one parameter are the schedules that
        the cost model puts first, each a line of text. With ``parts`` the questions of a schedule
        are parameters of their own (steps of a tile, lanes, order of the loops, prefetch, store),
        with a restriction to what fits together: a larger space, in which strategies find what is
        near. `choices_of` tells the choices of a result.

        Raises `Unsupported` (code TUNING) where there is nothing to choose: with attributes, sums
        that follow, sizes known at execution, or a family of kernels without a parameter.
        """
        expect(seed, int, "seed")
        expect(parts, bool, "parts")
        return self._variants().kernel_tuner(seed, parts=parts)

    def choices_of(self, result: Mapping[str, Any]) -> Choices:
        """The choices that make the kernel of a result of `as_kernel_tuner`'s parameters.

        Raises `InvalidArgument` where the parameters do not fit together, or some are missing.
        """
        expect(result, Mapping, "result")
        return self._variants().choices(result)

    def _variants(self) -> Variants:
        if self._has_runtime or self.attr.terms or self.attr.expression:
            raise Unsupported(
                "TUNING",
                f"{self} has attributes or sizes known at execution only, for which there is no "
                f"search space: tune the reorder without them",
            )
        from .variants import Variants

        return Variants(self.src, self.dst, self.engine, self._choices.family)

    def _known(self) -> Ready:
        if self._ready is None:
            raise InvalidDescriptor(
                f"{self.src} -> {self.dst} has sizes known at execution only: "
                f"it has a plan after the first call"
            )
        return self._ready

    def __call__(
        self,
        stream: AnyStream | None = None,
        src: AnyMemory | None = None,
        dst: AnyMemory | None = None,
        **given: Any,
    ) -> Event:
        """Enqueue the reorder of ``src`` into ``dst``; ``given`` are values of attributes.

        pyopencl's queues, buffers and arrays are wrapped for the call. Raises `InvalidDescriptor`
        if a memory object has another descriptor or the two share bytes, `InvalidAttr` if values
        are missing or their number is wrong, `MappedError` if a memory object is mapped,
        `DeviceError` if one has no buffer or belongs to another context, or if OpenCL refuses.
        """
        if self._plain is not None and not given:
            try:
                event = self._plain.move(stream, src, dst, self._fit, self)  # type: ignore[arg-type]
            except AttributeError:
                if _are_ours(stream, src, dst):
                    raise
                event = None
            if event is not None:
                return event
        if not _are_ours(stream, src, dst):
            own = as_stream(stream, self.engine)
            source = as_memory(src, self.src, self.engine, "src")
            target = as_memory(dst, self.dst, self.engine, "dst")
            event = self._enqueued(own, source, target, given)
            let_arrays_wait((src, dst), event)
            return event
        return self._enqueued(stream, src, dst, given)  # type: ignore[arg-type]

    def _enqueued(self, stream: Stream, src: Memory, dst: Memory, given: dict[str, Any]) -> Event:
        read, write = ("source", src, self.src), ("destination", dst, self.dst)
        check_desc(read)
        check_desc(write)
        self._fit = canonical(src.desc), canonical(dst.desc)
        others = [(n, m, m.desc) for n, m in given.items() if isinstance(m, Memory)]
        ready, values = self._ready_for(src.desc, dst.desc), self._values(given, dst)
        return ready.call(stream, (read, *others, write), values, self)

    def _values(self, given: dict[str, Any], dst: Memory) -> dict[str, Value]:
        """The values given at this call, checked."""
        if not (self.attr.terms or given):
            return {}
        dims, terms = dst.desc.dims, self.attr.terms
        real = compute_type(self.src.dtype, self.dst.dtype)
        values: dict[str, Value] = {}
        for name, value in given.items():
            if isinstance(value, Memory) and name in terms:
                if not terms[name].mask:
                    raise InvalidAttr(f"{name} is one number for all elements: give it as a number")
                values_on_device(name, value, prod(terms[name].sizes(dims)), real)
                values[name] = value
            elif isinstance(value, Scalar) and name in terms:
                scalar_of(name, value, terms[name].mask, real)
                values[name] = value
        known = self.attr.resolve(dims, given, real, elsewhere=values)
        return values | {name: known[name] for name in given if name not in values}

    def _ready_for(self, src: MemoryDesc, dst: MemoryDesc) -> Ready:
        if not self._has_runtime:
            return self._known()
        opencl()  # refuses in a forked process, where the lock may never be released
        with self._lock:
            self._ready = self._prepared_for(src, dst)
            return self._ready

    def __repr__(self) -> str:
        return f"Reorder({self.src} -> {self.dst})"


def _are_ours(stream: object, src: object, dst: object) -> bool:
    return isinstance(stream, Stream) and isinstance(src, Memory) and isinstance(dst, Memory)


def reorder(
    memory: Memory | Any,
    format: Any = None,  # the field's word for it
    *,
    dtype: object = None,
    stream: Stream | None = None,
    transform: bool | None = None,
    out: Memory | None = None,
) -> Memory:
    """A new memory object with the elements of ``memory`` in another format and element type.

    A format or element type that is not given stays the same; a descriptor as ``format`` says both.
    Where one of the types is quantised and the other is not, it is the usual format of the result.
    Else the result is dense, without clDNN's padding. A Winograd format on one side transforms the
    values, to the dims that `clformats.winograd` gives; ``transform=False`` moves them instead.

    ``memory`` may be an array, which goes to the default engine, or to that of ``out`` or
    ``stream``. ``out`` is the memory object to write; it then says format and element type.

    With ``stream`` the reorder is enqueued there and may still be running when the call returns;
    without, it is done.
    """
    expect(stream, Stream | None, "stream")
    expect(transform, bool | None, "transform")
    expect(out, Memory | None, "out")
    if not isinstance(memory, Memory):
        if not hasattr(memory, "__array__"):
            raise InvalidArgument(f"memory: got {shown(memory)}, expected Memory or an array")
        engine = out.engine if out else stream.engine if stream else None
        memory = from_numpy(memory, engine)
    if out is None:
        out, transform = made_for(memory, format, dtype, transform)
    elif format is not None or dtype is not None:
        raise InvalidArgument(f"out={out!r} says format and element type: leave the others out")
    own = stream or Stream(memory.engine, queue=memory.engine.tracked_queue)
    event = Reorder(memory.desc, out.desc, memory.engine, transform=transform)(own, memory, out)
    if stream is None:
        event.wait()
    return out
