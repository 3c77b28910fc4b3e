"""A fake pyopencl: commands run when a test lets them, and it is known what runs before what.

It has what `clformats.runtime.order`, `stream` and `external` ask of pyopencl. A command becomes
ready when its queue was flushed and what it waits for is done; on an in-order queue it waits for
the one before, too.
"""

from __future__ import annotations

import sys
from collections.abc import Iterator, Sequence
from itertools import count
from types import SimpleNamespace
from typing import Any

import pytest

QUEUED, COMPLETE, FAILED = 3, 0, -5
OUT_OF_ORDER = 1
_addresses = count(1)


class Error(Exception):
    """An error of the fake."""

    code = FAILED


class Context:
    """Nothing but itself."""


class State:
    """A queue of the driver, to which any number of `CommandQueue` objects may lead."""

    def __init__(self, context: Context, properties: int) -> None:
        self.context, self.properties, self.int_ptr = context, properties, next(_addresses)
        self.commands: list[Event] = []
        self.flushed = 0


class CommandQueue:
    """A reference to a queue, as pyopencl's."""

    _known: dict[int, State] = {}  # noqa: RUF012  # of the driver

    def __init__(self, context: Context, properties: int = 0) -> None:
        self.state = State(context, properties)
        self._known[self.state.int_ptr] = self.state

    @classmethod
    def from_int_ptr(cls, address: int, *, retain: bool) -> CommandQueue:
        """Another reference."""
        assert retain
        found = cls.__new__(cls)
        found.state = cls._known[address]
        return found

    @property
    def int_ptr(self) -> int:
        """The address."""
        return self.state.int_ptr

    @property
    def context(self) -> Context:
        """The context."""
        return self.state.context

    def get_info(self, _: object) -> int:
        """Its properties, which is all that is asked."""
        return self.state.properties

    def flush(self) -> None:
        """Let its commands run."""
        self.state.flushed = len(self.state.commands)

    def finish(self) -> None:
        """Flush, and run all."""
        self.flush()
        for event in self.state.commands:
            event.wait()


class Event:
    """A command: ``uses`` are the buffers it has, with whether it writes them.

    ``is_silent``: waiting for it raises nothing where it failed, as on NVIDIA's driver.
    """

    is_silent = False

    def __init__(
        self, queue: CommandQueue, waits: Sequence[Event] | None, uses: dict[Any, bool]
    ) -> None:
        assert waits is None or len(waits), "an empty list is an error of OpenCL's"
        self.state, self.waits, self.uses = queue.state, list(waits or ()), uses
        self.status = QUEUED
        earlier = self.state.commands
        in_order = not self.state.properties & OUT_OF_ORDER
        # A marker, which uses nothing and waits for nothing, comes after all before it.
        after_all = not in_order and not uses and waits is None
        self.after = [*self.waits, *(earlier[-1:] if in_order else earlier if after_all else [])]
        self.done_before = {e for e in _every if e.status == COMPLETE}
        earlier.append(self)
        _every.append(self)

    @property
    def command_queue(self) -> CommandQueue:
        """A reference to its queue."""
        return CommandQueue.from_int_ptr(self.state.int_ptr, retain=True)

    @property
    def command_execution_status(self) -> int:
        """OpenCL's number."""
        return self.status

    @property
    def is_ready(self) -> bool:
        """Whether it may run now."""
        flushed = self.state.commands.index(self) < self.state.flushed
        done = all(e.status == COMPLETE for e in self.after)
        return flushed and self.status == QUEUED and done

    def run(self) -> None:
        """Run it."""
        assert self.is_ready
        self.status = COMPLETE

    def wait(self) -> None:
        """Run what must be run before it, and itself. Fails where that is not possible."""
        if self.status == FAILED:
            if self.is_silent:
                return
            raise Error("failed")
        self.command_queue.flush()
        for event in self.after:
            if event.status == QUEUED:
                assert event.state.commands.index(event) < event.state.flushed, (
                    "it waits for a command that no driver need start"
                )
                event.wait()
        if self.status == QUEUED:
            self.run()

    def comes_after(self, other: Event) -> bool:
        """Whether it cannot run before ``other`` is done."""
        seen: set[Event] = set()
        todo = [self]
        while todo:
            event = todo.pop()
            if event is other or other in event.done_before:
                return True
            if event not in seen:
                seen.add(event)
                todo += event.after
        return False


_every: list[Event] = []


class Kernel:
    """A kernel; ``writes`` are the buffers that it writes, others are read."""

    function_name = "fake"

    def __init__(self, writes: Sequence[Any]) -> None:
        self.writes = writes
        self.given: tuple[Any, ...] = ()

    def set_args(self, *given: Any) -> None:
        """Its arguments."""
        self.given = given


class SVMPointer:
    """Of shared virtual memory, of which there is none."""


class Image:
    """A picture, of which there is none."""


class Buffer:
    """An address."""

    def __init__(self) -> None:
        self.int_ptr = next(_addresses)


def enqueue_nd_range_kernel(
    queue: CommandQueue, kernel: Kernel, _size: object, _local: object,
    _offset: object = None, wait_for: Sequence[Event] | None = None,
) -> Event:  # fmt: skip
    """A kernel, by its arguments."""
    return Event(queue, wait_for, {b: b in kernel.writes for b in kernel.given})


def enqueue_fill_buffer(
    queue: CommandQueue, buffer: Buffer, _value: object, _first: int, _count: int,
    wait_for: Sequence[Event] | None = None,
) -> Event:  # fmt: skip
    """A fill."""
    return Event(queue, wait_for, {buffer: True})


def enqueue_marker(queue: CommandQueue, wait_for: Sequence[Event] | None = None) -> Event:
    """A marker."""
    return Event(queue, wait_for, {})


FAKE = SimpleNamespace(
    Error=Error, Context=Context, CommandQueue=CommandQueue, Event=Event, Kernel=Kernel,
    Buffer=Buffer, Image=Image, MemoryObject=Buffer, SVMPointer=SVMPointer, LogicError=Error,
    enqueue_nd_range_kernel=enqueue_nd_range_kernel,
    enqueue_marker=enqueue_marker,
    enqueue_fill_buffer=enqueue_fill_buffer,
    command_queue_info=SimpleNamespace(PROPERTIES=0),
    status_code=SimpleNamespace(to_string=lambda code, _: f"status {code}"),
    command_queue_properties=SimpleNamespace(OUT_OF_ORDER_EXEC_MODE_ENABLE=OUT_OF_ORDER),
)  # fmt: skip


def use(monkeypatch: pytest.MonkeyPatch) -> Iterator[SimpleNamespace]:
    """The fake in place of pyopencl, wherever the runtime asks for it."""
    from clformats.runtime import external

    for name, module in list(sys.modules.items()):
        if name.startswith("clformats.runtime.") and hasattr(module, "opencl"):
            monkeypatch.setattr(module, "opencl", lambda: FAKE)
    monkeypatch.setattr(external, "_handed_out", [])
    _every.clear()
    yield FAKE
    CommandQueue._known.clear()
