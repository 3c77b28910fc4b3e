"""The order of commands, on a fake OpenCL: what conflicts is ordered, and nothing else waits."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import combinations
from random import Random
from types import SimpleNamespace
from typing import Any

import pytest

import clformats as cf
from clformats.runtime import external
from clformats.runtime.order import PRUNE_AT, QueueOrder, Usage, order_of
from clformats.runtime.tracked import Tracked
from tests.fake_opencl_support import FAILED, OUT_OF_ORDER, Event, use

DESC = cf.MemoryDesc((16,), "u8", "a")


@pytest.fixture
def fake(monkeypatch: pytest.MonkeyPatch) -> Iterator[SimpleNamespace]:
    yield from use(monkeypatch)


class Held(Tracked):
    """A memory object over a buffer of the fake."""

    def __init__(self, fake: SimpleNamespace, context: Any) -> None:
        self.desc = self.sound = DESC
        self.context, self.tracked_buffer, self.usage = context, fake.Buffer(), Usage()
        self.is_read_only = self._is_view = False


class Queue(cf.Stream):
    """A stream on a queue of the fake."""

    def __init__(self, queue: Any) -> None:
        self.tracked_queue, self.context, self.order = queue, queue.context, order_of(queue)
        self.in_order = self.order is not None


class Machine:
    """Streams and memory objects of one context; ``did`` are the library's commands."""

    def __init__(self, fake: SimpleNamespace, streams: str = "iio", memories: int = 3) -> None:
        self.fake, self.context = fake, fake.Context()
        self.streams = [self.stream(kind) for kind in streams]
        self.memories = [Held(fake, self.context) for _ in range(memories)]
        self.did: list[Event] = []

    def stream(self, kind: str) -> Any:
        """A stream; ``kind`` is "i" in order, "o" out of order."""
        queue = self.fake.CommandQueue(self.context, OUT_OF_ORDER if kind == "o" else 0)
        return Queue(queue)

    def run(self, stream: Any, writes: list[Held], reads: list[Held]) -> Event:
        """A kernel by the library."""
        kernel = self.fake.Kernel([m.tracked_buffer for m in writes])
        event: Any = stream.run(kernel, (1,), None, *writes, *reads, reads=reads).event
        self.did.append(event)
        return event  # type: ignore[no-any-return]

    def fill(self, stream: Any, memory: Held) -> Event:
        """A fill by the library."""
        event: Any = stream.fill(memory).event
        self.did.append(event)
        return event  # type: ignore[no-any-return]

    def step(self, rng: Random) -> None:
        """A random command, or one that is ready runs."""
        stream, memories = rng.choice(self.streams), rng.sample(self.memories, 2)
        kind = rng.choice(("run", "read", "fill", "done"))
        if kind == "run":
            self.run(stream, memories[:1], memories[1:])
        elif kind == "read":
            self.run(stream, [], memories)
        elif kind == "fill":
            self.fill(stream, memories[0])
        elif ready := [e for e in self.did if e.is_ready]:
            rng.choice(ready).run()


def conflict(one: Event, other: Event) -> bool:
    """Whether one of them writes what the other uses."""
    both = one.uses.keys() & other.uses.keys()
    return any(one.uses[buffer] or other.uses[buffer] for buffer in both)


@pytest.mark.parametrize("streams", ["i", "ii", "o", "oo", "iio"])
@pytest.mark.parametrize("seed", range(6))
def test_what_conflicts_is_ordered_and_nothing_else_waits(
    fake: SimpleNamespace, streams: str, seed: int
) -> None:
    rng, machine = Random(seed), Machine(fake, streams)  # noqa: S311  # cases, not secrets
    for _ in range(60):
        machine.step(rng)
    for first, later in combinations(machine.did, 2):
        if conflict(first, later):
            assert later.comes_after(first)
    for event in machine.did:
        assert all(conflict(other, event) for other in event.waits)
        if streams == "i":
            assert not event.waits, "on one in-order queue nobody waits for events"
    for event in reversed(machine.did):
        event.wait()  # fails where a command was not flushed


@pytest.mark.parametrize("seed", range(12))
def test_what_users_enqueue_is_waited_for(fake: SimpleNamespace, seed: int) -> None:
    """External commands on queues and buffers that were handed out; some queues are dropped."""
    rng, machine = Random(seed), Machine(fake)  # noqa: S311  # cases, not secrets
    theirs: list[Event] = []
    for _ in range(60):
        if rng.random() < 0.3:
            stream = rng.choice([*machine.streams, machine.stream(rng.choice("io"))])
            memory = rng.choice(machine.memories)
            queue, kernel = external.handed_out(stream.tracked_queue), fake.Kernel([memory.buffer])
            kernel.set_args(memory.buffer)
            theirs.append(fake.enqueue_nd_range_kernel(queue, kernel, (1,), None))
            del stream, queue
        else:
            before = len(machine.did)
            machine.step(rng)
            for event in machine.did[before:]:
                assert all(event.comes_after(e) for e in theirs if conflict(e, event))
    for event in machine.did:
        event.wait()


def test_a_dropped_queue_counts_for_every_buffer_until_it_is_done(fake: SimpleNamespace) -> None:
    machine = Machine(fake, "ii")
    a, b, c = machine.memories
    queue, kernel = external.handed_out(machine.stream("i").tracked_queue), fake.Kernel([])
    kernel.set_args(b.buffer, a.buffer)
    theirs = fake.enqueue_nd_range_kernel(queue, kernel, (1,), None)
    del queue
    assert c.buffer
    for k, memory in enumerate(machine.memories):
        assert machine.run(machine.streams[k % 2], [memory], []).comes_after(theirs)
    machine.did[0].wait()
    assert theirs.status == 0
    assert not machine.run(machine.streams[1], [c], [b]).waits[1:], "it is done"
    assert not external._handed_out


def test_commands_on_the_only_queue_that_is_known_wait_for_no_marker(fake: SimpleNamespace) -> None:
    machine = Machine(fake, "ii")
    a, b, _ = machine.memories
    external.handed_out(machine.streams[0].tracked_queue)
    assert a.buffer is a.tracked_buffer
    before = len(machine.streams[0].tracked_queue.state.commands)
    for count in (1, 2, 3):
        assert not machine.run(machine.streams[0], [b], [a]).waits
        assert len(machine.streams[0].tracked_queue.state.commands) == before + count
    external.handed_out(machine.streams[1].tracked_queue)
    assert len(machine.run(machine.streams[0], [b], [a]).waits) == 1


def test_what_nobody_was_given_waits_for_no_queue(fake: SimpleNamespace) -> None:
    machine = Machine(fake, "ii")
    external.handed_out(machine.streams[1].tracked_queue)
    a, b, _ = machine.memories
    assert not machine.run(machine.streams[0], [a], [b]).waits
    assert a.buffer is a.tracked_buffer  # now somebody has it
    assert len(machine.run(machine.streams[0], [a], [b]).waits) == 1
    assert not machine.run(machine.streams[0], [b], []).waits


@pytest.mark.parametrize("is_silent", [False, True])
def test_a_failed_command_is_told_to_the_first_reader(
    fake: SimpleNamespace, *, is_silent: bool
) -> None:
    machine = Machine(fake, "ii")
    one, other = machine.streams
    a, b, c = machine.memories
    failed = machine.run(one, [a], [])
    failed.status, failed.is_silent = FAILED, is_silent
    with pytest.raises(cf.DeviceError, match="a command that wrote what is read here has failed"):
        machine.run(other, [b], [a])
    assert not machine.run(other, [b], [a]).waits, "told once"
    machine.run(one, [c], []).status = FAILED
    assert not machine.run(other, [c], []).waits, "what it wrote is overwritten"


def test_readers_that_are_done_are_forgotten(fake: SimpleNamespace) -> None:
    machine = Machine(fake, "io")
    a, b, _ = machine.memories
    for _ in range(5 * PRUNE_AT):
        event = machine.run(machine.streams[1], [b], [a])
        event.wait()
        assert len(a.usage.readers) <= PRUNE_AT
    assert not machine.run(machine.streams[0], [a], []).waits


def test_orders_of_a_queue_are_one(fake: SimpleNamespace) -> None:
    queue = fake.CommandQueue(fake.Context())
    again = fake.CommandQueue.from_int_ptr(queue.int_ptr, retain=True)
    assert order_of(queue) is order_of(again)
    assert isinstance(order_of(queue), QueueOrder)
