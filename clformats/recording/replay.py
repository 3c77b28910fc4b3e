"""`Replay`: a recorded program on an engine, run by one call."""

from __future__ import annotations

from collections.abc import Mapping
from threading import RLock
from typing import TYPE_CHECKING, Any

from ..errors import DeviceError, InvalidArgument, InvalidDescriptor
from ..opencl import OnDevice, failure, opencl
from ..reorders.given import as_memory, as_stream, let_arrays_wait
from ..runtime import Engine, Event, Memory
from ..runtime.external import commands_before
from ..runtime.order import LOCK, QueueOrder, Usage, end_of, enqueued, flush
from ..runtime.scalar import Scalar
from ..runtime.storage import check_same_context
from ..tensors.desc import MemoryDesc
from .binding import Bound, is_tuned
from .program import ANYWHERE, INPUT, OUTPUT, ROUNDED, Program, Variant
from .slots import check_storage

if TYPE_CHECKING:
    import pyopencl

    from ..reorders.given import AnyStream


class Replay(OnDevice):
    """A recorded program: ``replay(stream, photo=memory, alpha=0.5)`` runs all of its commands.

    Inputs and outputs are exchanged by name: memory objects of the same descriptor, that nothing
    else has mapped, in buffers of their own. Those not given are the ones of the call before, at
    first those that were recorded. Scalars are numbers by name. A call is one command: it waits for
    what was enqueued on its memory objects before, on whatever stream, and later commands wait for
    it. Safe to call from several threads; calls of one replay run one after the other, since they
    share its temporaries.

    ``inputs`` and ``outputs`` are descriptors by name, ``scalars`` types by name. Raises
    `InvalidArgument` for names that are unknown or missing, `InvalidDescriptor` for another
    descriptor, `MappedError` and `DeviceError`.
    """

    _travels_as = "send what recording.export() writes, and load it there by cf.load"

    def __init__(
        self,
        program: Program,
        variant: Variant,
        engine: Engine,
        memories: Mapping[str, Memory],
    ) -> None:
        self.engine, self.variant = engine, variant
        self._program = program
        self._bound = Bound(program, variant, engine)
        self._lock = RLock()
        self._memories: dict[str, Memory] = {}
        self._inside: dict[str, Any] = {}
        self._scalars: set[str] = set()
        self._last: tuple[Any, pyopencl.Event] | None = None
        self._writes = {b.name: b.role == OUTPUT for b in program.named}
        self._descs = {b.name: MemoryDesc.parse(b.desc) for b in program.named}
        self._needs = {b.name: b for b in program.named}
        self._given = {s.name: Scalar(s.name, s.dtype) for s in program.scalars}
        self._exchange({name: memories[name] for name in self._descs if name in memories})

    @property
    def inputs(self) -> dict[str, MemoryDesc]:
        """The descriptors of the inputs."""
        return {b.name: self._descs[b.name] for b in self._program.named if b.role == INPUT}

    @property
    def outputs(self) -> dict[str, MemoryDesc]:
        """The descriptors of the outputs."""
        return {b.name: self._descs[b.name] for b in self._program.named if b.role == OUTPUT}

    @property
    def scalars(self) -> dict[str, str]:
        """The types of the scalars."""
        return {s.name: s.dtype for s in self._program.scalars}

    @property
    def is_tuned(self) -> bool:
        """Whether the commands were planned for this device and its driver."""
        return is_tuned(self.variant, self.engine)

    @property
    def is_exact(self) -> bool:
        """Whether the bytes are those of the recording by the rules of OpenCL.

        They are not promised where a formula calls functions such as ``exp``, or a kernel is the
        user's, on another device than that of the recording.
        """
        rounded = self.variant.exact == ROUNDED and self.engine.rounds_divisions
        return self.variant.exact == ANYWHERE or self.is_tuned or rounded

    def __call__(self, stream: AnyStream, **given: Any) -> Event:
        """Enqueue all commands; ``given`` are memory objects and numbers by name."""
        own = as_stream(stream, self.engine)
        if own.recorder is not None:
            raise InvalidArgument(f"{self!r} cannot be recorded again: record its commands")
        check_same_context("the stream", own.context, "the replay", self.engine.context)
        order = own.order or QueueOrder(own.tracked_queue)
        with self._lock, LOCK:
            if given:
                self._take(given)
            if len(self._memories) + len(self._scalars) < len(self._descs) + len(self._given):
                self._tell_missing()
            event = self._enqueue(own.tracked_queue, order, in_order=own.in_order)
        let_arrays_wait(given.values(), event)
        return event

    # --- what is given ----------------------------------------------------------------------------

    def _take(self, given: Mapping[str, Any]) -> None:
        """Check all that is given, then bind it."""
        unknown = [n for n in given if n not in self._descs and n not in self._given]
        if unknown:
            known = ", ".join([*self._descs, *self._given]) or "no names"
            raise InvalidArgument(f"got {', '.join(unknown)}, expected some of {known}")
        numbers = {n: self._given[n].as_bytes(v) for n, v in given.items() if n in self._given}
        self._exchange({
            name: as_memory(value, self._descs[name], self.engine, name)
            for name, value in given.items()
            if name in self._descs and value is not self._memories.get(name)
        })  # fmt: skip
        for name, value in numbers.items():
            self._bound.set_scalar(name, value)
            self._scalars.add(name)

    def _exchange(self, memories: Mapping[str, Memory]) -> None:
        for name, memory in memories.items():
            self._check(name, memory)
        _check_apart({**self._memories, **memories}, self._writes)
        for name, memory in memories.items():
            self._memories[name] = memory
            self._rebind(name, memory)

    def _check(self, name: str, memory: Memory) -> None:
        desc, needs = self._descs[name], self._needs[name]
        if memory.desc is not desc and memory.desc != desc:
            raise InvalidDescriptor(f"{name} is {memory.desc}, the recording was made for {desc}")
        if memory.context != self.engine.context:
            raise DeviceError(f"{name}: {memory!r} belongs to another OpenCL context")
        check_storage(memory)
        buffer = memory.tracked_buffer
        if buffer is None and needs.nbytes:
            raise DeviceError(f"{name}: {memory!r} has no buffer: give it one by set_buffer()")
        if buffer is not None and buffer.size < needs.nbytes:
            raise DeviceError(
                f"{name}: the buffer has {buffer.size} bytes, the recording uses {needs.nbytes}"
            )
        if self._writes[name]:
            memory.check_writable()

    def _rebind(self, name: str, memory: Memory) -> None:
        self._inside[name] = memory.tracked_buffer
        if memory.tracked_buffer is not None:
            self._bound.set_buffer(name, memory.tracked_buffer)

    def _tell_missing(self) -> None:
        missing = [n for n in self._descs if n not in self._memories]
        missing += [n for n in self._given if n not in self._scalars]
        raise InvalidArgument(f"{', '.join(missing)} missing: give {missing[0]}=...")

    # --- enqueueing -------------------------------------------------------------------------------

    def _enqueue(self, queue: pyopencl.CommandQueue, order: object, *, in_order: bool) -> Event:
        """Enqueue the commands after those that the memory objects wait for, locks held."""
        cl = opencl()
        reads, writes = list[Usage](), list[Usage]()
        for name, memory in self._memories.items():
            usage = memory.usage
            if usage.mapping is not None:
                memory.check_unmapped("replay on it")
            if memory.tracked_buffer is not self._inside[name]:  # set_buffer() since the last call
                self._check(name, memory)
                _check_apart(self._memories, self._writes)
                self._rebind(name, memory)
            (writes if self._writes[name] else reads).append(usage)
        waits = self._before(order)
        flush(waits)
        context = self.engine.context
        waits += commands_before(reads, writes, order, queue, context, in_order=in_order)
        event = None
        try:
            event = self._bound.enqueue(queue, waits, in_order=in_order)
        except cl.Error as error:
            raise failure(f"enqueueing {self!r}", error) from error
        finally:
            if event is None:  # some commands may have been enqueued
                event = end_of(queue, *reads, *writes)
            enqueued(reads, writes, order, event)
            self._last = order, event
        return Event(event)

    def _before(self, order: object) -> list[pyopencl.Event]:
        """The call before, whose temporaries these are, where it was on another queue."""
        if self._last is None or self._last[0] is order:
            return []
        event = self._last[1]
        return [event] if event.command_execution_status >= 0 else []

    def __repr__(self) -> str:
        return f"Replay({self._program.name}, {len(self.variant.commands)} commands)"


def _check_apart(memories: Mapping[str, Memory], writes: Mapping[str, bool]) -> None:
    """Raise `InvalidArgument` where an output shares its buffer with another name."""
    names: dict[Any, str] = {}
    for name, memory in sorted(memories.items(), key=lambda item: not writes[item[0]]):
        if memory.tracked_buffer is None:
            continue
        other = names.setdefault(memory.usage, name)
        if other != name and (writes[other] or writes[name]):
            raise InvalidArgument(f"{other} and {name} are in one buffer: give two")
