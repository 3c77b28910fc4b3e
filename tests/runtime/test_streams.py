"""Streams, events and threads; several devices, for which pocl is started anew with two."""

from __future__ import annotations

import gc
import os
import random
import subprocess
import sys
import threading
import time
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import clformats as cf
from tests.support import random_values

ROOT = Path(__file__).resolve().parents[2]
D = cf.MemoryDesc
BIG, TURNED = D((1500, 1501), "f32"), D((1500, 1501), "f32", "ba")
SRC, DST = D((2, 17, 5, 3), "f32", "bfyx"), D((2, 17, 5, 3), "f32", "b_fs_yx_fsv16")


def values(desc: cf.MemoryDesc, seed: int = 0) -> Any:
    return random_values(np.random.default_rng(seed), desc.dims, desc.dtype.name)


@pytest.mark.parametrize("out_of_order", [False, True])
def test_threads_share_a_stream(out_of_order: bool, engine: cf.Engine) -> None:
    stream, wrong = cf.Stream(engine, out_of_order=out_of_order), []
    there, back = cf.Reorder(SRC, DST, engine), cf.Reorder(DST, SRC, engine)

    def work(seed: int) -> None:
        array = values(SRC, seed)
        source = cf.from_numpy(array, engine)
        for _ in range(50):
            middle, result = cf.Memory(DST, engine), cf.Memory(SRC, engine)
            there(stream, source, middle)
            back(stream, middle, result)
            del middle
            if not (cf.to_numpy(result, stream=stream) == array).all():
                wrong.append(seed)

    threads = [threading.Thread(target=work, args=(seed,)) for seed in range(8)]
    for t in threads:
        t.start()
    for t in threads:
        t.join()
    assert not wrong


def test_dropping_a_stream_without_order_waits_for_its_commands(engine: cf.Engine) -> None:
    """Intel's runtime loses commands of other queues where one goes while it works."""
    source, target = cf.from_numpy(values(BIG), engine), cf.Memory(TURNED, engine)
    reorder = cf.Reorder(BIG, TURNED, engine)
    for _ in range(5):
        stream = cf.Stream(engine, out_of_order=True)
        event = reorder(stream, source, target)
        del stream
        gc.collect()
        ends = time.monotonic() + 10  # a driver may tell of the end a little later
        while not event.done:
            assert time.monotonic() < ends


def test_readers_and_writers_on_many_streams(engine: cf.Engine) -> None:
    """A writer waits for all readers before it, and they for the writer before them."""
    streams = [cf.Stream(engine, out_of_order=k % 2 == 1) for k in range(4)]
    source, target = cf.Memory(BIG, engine), cf.Memory(TURNED, engine)
    copies = [cf.Memory(BIG, engine) for _ in streams]
    there, back = cf.Reorder(BIG, TURNED, engine), cf.Reorder(TURNED, BIG, engine)
    for turn in range(3):
        array = values(BIG, turn)
        with source.map("w") as flat:
            flat[:] = array.ravel()
        there(streams[turn], source, target)
        for stream, copy in zip(streams, copies, strict=True):
            back(stream, target, copy)
        there(streams[3 - turn], cf.from_numpy(np.zeros_like(array), engine), target)
        for copy in copies:
            assert (cf.to_numpy(copy) == array).all()
        assert not cf.to_numpy(target).any()


def test_a_stream_comes_after_events(engine: cf.Engine) -> None:
    import pyopencl as cl

    first, second = cf.Stream(engine), cf.Stream(engine)
    source, target = cf.from_numpy(values(BIG), engine), cf.Memory(TURNED, engine)
    event = cf.Reorder(BIG, TURNED, engine)(first, source, target)
    second.after(event, event.event)
    own = np.empty(BIG.nelems, np.float32)
    cl.enqueue_copy(second.queue, own, target.buffer)  # unknown to the memory object
    assert event.done
    assert (values(BIG) == own.reshape(1501, 1500).T).all()
    second.after()
    with pytest.raises(cf.InvalidArgument, match="event"):
        second.after(5)  # type: ignore[arg-type]
    other = cl.CommandQueue(cl.Context([engine.device]))
    with pytest.raises(cf.DeviceError, match="INVALID_CONTEXT"):
        second.after(cl.enqueue_marker(other))


def test_streams_and_events_come_and_go(engine: cf.Engine) -> None:
    """What a stream enqueued is done though nobody keeps the stream, the event or the memory."""
    import pyopencl as cl

    own = cf.Engine(context=cl.Context([engine.device]), device=engine.device)
    target = cf.Memory(TURNED, own)
    reorder = cf.Reorder(BIG, TURNED, own)
    gc.collect()
    before = own.context.reference_count
    for turn in range(8):
        array = values(BIG, turn)
        reorder(cf.Stream(own, profiling=True), cf.from_numpy(array, own), target)
        assert (cf.to_numpy(target) == array).all()
    target = cf.Memory(TURNED, own)
    gc.collect()
    own.tracked_queue.finish()
    # One queue is kept by what it wrote last, if that buffer is.
    assert own.context.reference_count <= before + 1


# ---- several devices -----------------------------------------------------------------------------


def two_devices(engine: cf.Engine) -> list[Any]:
    found = engine.device.platform.get_devices()
    if len(found) < 2:
        pytest.skip("needs two devices of one platform, such as POCL_DEVICES='pthread pthread'")
    return list(found[:2])


def test_two_devices_in_one_context(engine: cf.Engine) -> None:
    import pyopencl as cl

    devices = two_devices(engine)
    context = cl.Context(devices)
    engines = [cf.Engine(context=context, device=device) for device in devices]
    streams = [cf.Stream(e) for e in engines]
    array = values(BIG)
    for _ in range(3):
        a, b, c = (cf.Memory(d, engines[0]) for d in (BIG, TURNED, BIG))
        with a.map("w") as flat:
            flat[:] = array.ravel()
        cf.Reorder(BIG, TURNED, engines[0])(streams[0], a, b)
        cf.Reorder(TURNED, BIG, engines[1])(streams[1], b, c)
        assert (cf.to_numpy(c, stream=streams[0]) == array).all()
        array = array + 1


def test_two_devices_with_contexts_of_their_own(engine: cf.Engine) -> None:
    one, other = (cf.Engine(device=device) for device in two_devices(engine))
    array = values(SRC)
    a, b = cf.from_numpy(array, one), cf.Memory(DST, other)
    with pytest.raises(cf.DeviceError, match="another OpenCL context"):
        cf.Reorder(SRC, DST, one)(cf.Stream(one), a, b)
    with pytest.raises(cf.DeviceError, match="another OpenCL context"):
        b.map("r", stream=cf.Stream(one))
    cf.transfer(a, b)
    assert (cf.to_numpy(b) == array).all()
    wrong = []

    def work(own: cf.Engine, seed: int) -> None:
        mine = values(SRC, seed)
        for _ in range(30):
            moved = cf.reorder(cf.from_numpy(mine, own), "b_fs_yx_fsv16")
            if not (cf.to_numpy(moved) == mine).all():
                wrong.append(seed)

    threads = [threading.Thread(target=work, args=((one, other)[k % 2], k)) for k in range(6)]
    for t in threads:
        t.start()
    for t in threads:
        t.join()
    assert not wrong


def test_pocl_with_two_devices(engine: cf.Engine) -> None:
    """The tests above that need two, where this machine shows one."""
    if "Portable Computing Language" not in engine.device.platform.name:
        pytest.skip("pocl is asked for two devices")
    if len(engine.device.platform.get_devices()) > 1:
        pytest.skip("there are two already")
    done = subprocess.run(
        [sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider",
         "-p", "no:hypothesispytest", "-k", "two_devices_", str(Path(__file__))],
        cwd=ROOT,
        env={**os.environ, "POCL_DEVICES": "pthread pthread"},
        capture_output=True,
        text=True,
        check=False,
    )  # fmt: skip
    assert done.returncode == 0, done.stdout
    assert "2 passed" in done.stdout


def test_what_is_waited_for_is_flushed(
    engine: cf.Engine, stream: cf.Stream, monkeypatch: pytest.MonkeyPatch
) -> None:
    """OpenCL wants it of a wait for another queue; some drivers hang without."""
    import pyopencl as cl

    flushed: list[int] = []
    real = cl.CommandQueue.flush

    def flush(queue: Any) -> None:
        flushed.append(queue.int_ptr)
        real(queue)

    monkeypatch.setattr(cl.CommandQueue, "flush", flush)
    desc = cf.MemoryDesc((5, 7), "f32")
    a, b, c = (cf.Memory(desc, engine) for _ in range(3))
    own, reorder = cf.Stream(engine), cf.Reorder(desc, desc, engine)
    gate = cl.UserEvent(engine.context)  # what has ended already is waited for no more
    own.after(gate)
    reorder(own, a, b)
    assert flushed == []
    reorder(stream, b, c)
    assert flushed == [own.queue.int_ptr]
    mapping = c.map("r").start()
    assert flushed == [own.queue.int_ptr, stream.queue.int_ptr]
    gate.set_status(cl.command_execution_status.COMPLETE)
    with mapping:
        pass


class Recorder:
    """Every kernel that is enqueued: its event, and those it comes after for sure."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch) -> None:
        import pyopencl as cl

        self.events: list[Any] = []
        self.before: list[set[int]] = []
        self._latest: dict[int, int] = {}
        real = cl.enqueue_nd_range_kernel

        def enqueue(queue: Any, *others: Any) -> Any:
            event = real(queue, *others)
            self._remember(queue, others[4] or [], event)
            return event

        monkeypatch.setattr(cl, "enqueue_nd_range_kernel", enqueue)

    def _remember(self, queue: Any, waits: list[Any], event: Any) -> None:
        import pyopencl as cl

        found = {k for k, e in enumerate(self.events) if any(e.int_ptr == w.int_ptr for w in waits)}
        if not queue.properties & cl.command_queue_properties.OUT_OF_ORDER_EXEC_MODE_ENABLE:
            found |= {self._latest[queue.int_ptr]} if queue.int_ptr in self._latest else set()
            self._latest[queue.int_ptr] = len(self.events)
        self.before.append(found.union(*(self.before[k] for k in found)))
        self.events.append(event)


@pytest.mark.parametrize("seed", range(8))
def test_commands_come_after_those_they_depend_on(
    seed: int, engine: cf.Engine, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Of two commands on one buffer, one of them writing, the later waits for the earlier."""
    import pyopencl as cl

    rng = random.Random(seed)  # noqa: S311  # orders, not secrets
    desc = D((5, 7), "f32")
    memories = [cf.Memory(desc, engine) for _ in range(4)]
    memories += [cf.Memory(desc, engine, buffer=m.buffer) for m in memories[:2]]
    streams = [cf.Stream(engine, out_of_order=k == 3) for k in range(4)]
    reorders = [cf.Reorder(desc, desc, engine, attr=cf.Attr(src_scale=k)) for k in (1, 2)]
    # Nothing runs before all is enqueued: what is done need not be waited for.
    gate = cl.UserEvent(engine.context)
    for stream in streams:
        stream.after(gate)
    seen = Recorder(monkeypatch)
    uses: list[tuple[int, int]] = []
    for _ in range(120):
        src, dst = rng.sample(range(6), 2)
        if src % 4 == dst % 4:
            continue
        stream = streams[0] if rng.random() < seed / 10 else rng.choice(streams)
        rng.choice(reorders)(stream, memories[src], memories[dst])
        uses.append((src % 4, dst % 4))
    gate.set_status(cl.command_execution_status.COMPLETE)
    for stream in streams:
        stream.wait()
    assert len(seen.events) == len(uses)
    for later, (src, dst) in enumerate(uses):
        for earlier, (read, written) in enumerate(uses[:later]):
            if written in (src, dst) or read == dst:
                assert earlier in seen.before[later], (earlier, later)
