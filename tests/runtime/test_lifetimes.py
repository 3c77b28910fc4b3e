"""What users' buffers, arrays, threads of control and processes may do to memory objects."""

from __future__ import annotations

import copy
import gc
import os
import pickle
import subprocess
import sys
import threading
import weakref
from typing import Any

import numpy as np
import pytest

import clformats as cf
from clformats.runtime import order
from clformats.runtime.order import enqueued
from tests.support import random_values

D = cf.MemoryDesc
DESC, TURNED = D((65, 67), "f32"), D((65, 67), "f32", "ba")


def values() -> Any:
    return random_values(np.random.default_rng(0), DESC.dims, "f32")


def within(front: int, nbytes: int) -> tuple[Any, Any]:
    """Bytes of 0xA5, and those of them that begin ``front`` bytes behind a multiple of 128."""
    room = np.full(nbytes + 512, 0xA5, np.uint8)
    first = -room.ctypes.data % 128 + front
    return room, room[first : first + nbytes]


def cpu_only(engine: cf.Engine) -> None:
    if not engine.traits.is_cpu:
        pytest.skip("only devices that share the host's memory")


# ---- host memory ---------------------------------------------------------------------------------


@pytest.mark.parametrize("mode", ["w", "rw"])
@pytest.mark.parametrize("front", [0, 4, 124])
def test_mapping_gives_the_users_array_alone(front: int, mode: Any, engine: cf.Engine) -> None:
    cpu_only(engine)
    room, part = within(front, DESC.nbytes)
    array = part.view(np.float32).reshape(DESC.dims)
    memory = cf.from_host(array, engine)
    with memory.map(mode) as flat:
        assert flat.size == DESC.nelems
        flat[:] = 0
    assert (array == 0).all()
    assert (room == 0).sum() == DESC.nbytes
    array[:] = host = values()
    assert (memory.numpy() == host).all()
    assert (memory.physical() == host).all()
    again = cf.Memory(memory.desc, engine, buffer=memory.buffer)
    with again.map("r") as flat:
        assert (flat == host.ravel()).all()


def test_a_buffer_keeps_the_array_under_it(engine: cf.Engine) -> None:
    cpu_only(engine)

    def users(memory: cf.Memory) -> dict[str, Any]:
        return {
            "buffer": memory.buffer,
            "array": cf.to_array(memory),
            "memory": cf.Memory(memory.desc, engine, buffer=memory.buffer),
            "part": memory.submemory(DESC.dims, (0, 0)),
        }

    for kind in ("buffer", "array", "memory", "part"):
        array = values()
        gone = weakref.ref(array)
        memory = cf.from_host(array, engine)
        user = users(memory)[kind]
        del array, memory
        gc.collect()
        assert gone() is not None, kind
        del user
        gc.collect()
        assert gone() is None, kind


def test_another_buffer_lets_the_array_go(engine: cf.Engine) -> None:
    cpu_only(engine)
    array = values()
    gone = weakref.ref(array)
    memory = cf.from_host(array, engine)
    del array
    memory.set_buffer(cf.Memory(memory.desc, engine).buffer)
    gc.collect()
    assert gone() is None
    with memory.map("r") as flat:
        assert cf.unpack(flat, memory.mapped).shape == DESC.dims


def test_what_is_read_only_is_not_written(engine: cf.Engine, stream: cf.Stream) -> None:
    import pyopencl as cl

    held = bytes(DESC.nbytes)
    flags = cl.mem_flags.READ_ONLY | cl.mem_flags.COPY_HOST_PTR
    given = cl.Buffer(engine.context, flags, hostbuf=values())
    targets = [cf.Memory(DESC, engine, buffer=given)]
    if engine.traits.is_cpu:
        targets.append(cf.from_host(np.frombuffer(held, np.float32).reshape(DESC.dims), engine))
    source = cf.from_numpy(values(), engine)
    for target in targets:
        reorder = cf.Reorder(source.desc, target.desc, engine)
        calls: list[Any] = [
            lambda t=target, r=reorder: r(stream, source, t),
            lambda t=target: t.map("w"),
            lambda t=target: t.map("rw"),
            target.clear_padding,
            lambda t=target: cf.transfer(source, t),
        ]
        for call in calls:
            with pytest.raises(cf.DeviceError, match="is read-only"):
                call()
        back = cf.Memory(TURNED, engine)
        cf.Reorder(target.desc, TURNED, engine)(stream, target, back)
        assert (back.numpy() == target.numpy()).all()
    assert held == bytes(DESC.nbytes)


def test_a_part_is_transferred_between_contexts(engine: cf.Engine) -> None:
    import pyopencl as cl

    other = cf.Engine(context=cl.Context([engine.device]), device=engine.device)
    host = values()
    part = cf.from_numpy(host, engine).submemory((31, 67), (34, 0))
    target = cf.Memory(D((65, 67), "f32", "ba"), other)
    there = target.submemory((31, 67), (3, 0))
    cf.transfer(part, there)
    assert (there.numpy() == host[34:]).all()
    assert (target.numpy()[34:] == 0).all()


# ---- interrupts, buffers exchanged, processes ----------------------------------------------------


def test_an_interrupted_call_is_not_forgotten(
    engine: cf.Engine, stream: cf.Stream, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Control-C between enqueueing and remembering: others still wait for the command."""
    import pyopencl as cl

    first, host = cl.UserEvent(engine.context), values()
    source, target = cf.from_numpy(host, engine), cf.Memory(TURNED, engine)
    reorder = cf.Reorder(DESC, TURNED, engine)
    own, calls = cf.Stream(engine), []

    def interrupted(*arguments: Any) -> None:
        calls.append(arguments)
        if len(calls) == 1:
            raise KeyboardInterrupt
        enqueued(*arguments)

    own.after(first)
    with monkeypatch.context() as patch:
        patch.setattr("clformats.reorders.ready.enqueued", interrupted)
        with pytest.raises(KeyboardInterrupt):
            reorder(own, source, target)
    complete = cl.command_execution_status.COMPLETE
    threading.Timer(0.3, first.set_status, (complete,)).start()
    assert (target.numpy(stream=stream) == host).all()


def test_an_interrupted_call_among_many_is_not_forgotten(
    engine: cf.Engine, stream: cf.Stream, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The same for a call as the stream had before, by which nothing was to be waited for."""
    import pyopencl as cl

    first, host, own = cl.UserEvent(engine.context), values(), cf.Stream(engine)
    source, target = cf.Memory(DESC, engine), cf.Memory(TURNED, engine)
    reorder = cf.Reorder(DESC, TURNED, engine)
    for _ in range(2):
        reorder(own, source, target)
    with source.map("w") as flat:
        flat[:] = host.ravel()
    own.after(first)
    real = cl.enqueue_nd_range_kernel

    def interrupted(*arguments: Any) -> None:
        real(*arguments)
        raise KeyboardInterrupt

    with monkeypatch.context() as patch:
        patch.setattr(cl, "enqueue_nd_range_kernel", interrupted)
        with pytest.raises(KeyboardInterrupt):
            reorder(own, source, target)
    complete = cl.command_execution_status.COMPLETE
    threading.Timer(0.3, first.set_status, (complete,)).start()
    assert (target.numpy(stream=stream) == host).all()


def test_control_c_where_memory_is_dropped_keeps_it_for_its_commands(
    engine: cf.Engine, stream: cf.Stream, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Host memory, written by a command that is done and read by one that is not."""
    import pyopencl as cl

    cpu_only(engine)
    source, target = cf.from_host(values(), engine), cf.Memory(TURNED, engine)
    host = cf.from_numpy(values(), engine)
    own, gates, calls = cf.Stream(engine), [cl.UserEvent(engine.context) for _ in "12"], list[Any]()
    complete = cl.command_execution_status.COMPLETE
    stream.after(gates[0])
    writing = cf.Reorder(DESC, source.desc, engine)(stream, host, source)
    own.after(gates[1])
    reading, real = cf.Reorder(source.desc, TURNED, engine)(own, source, target), cl.Event.wait
    gates[0].set_status(complete)
    writing.wait()

    def interrupted(event: Any) -> None:
        calls.append(event)
        if len(calls) == 1:
            raise KeyboardInterrupt
        real(event)

    threading.Timer(0.3, gates[1].set_status, (complete,)).start()
    with monkeypatch.context() as patch:
        patch.setattr(cl.Event, "wait", interrupted)
        patch.setattr("clformats.runtime.memory.interrupt_later", lambda: calls.append("later"))
        del source
    assert calls[1] == "later"
    assert reading.done


def test_a_mapping_holds_the_buffer_that_is_there(engine: cf.Engine, stream: cf.Stream) -> None:
    memory, other = cf.Memory(DESC, engine), cf.Memory(DESC, engine)
    old = memory.buffer
    mapping = memory.map("rw")
    memory.set_buffer(cf.Memory(DESC, engine).buffer)
    beside = cf.Memory(DESC, engine, buffer=old)
    with mapping:
        with pytest.raises(cf.MappedError):
            cf.Reorder(DESC, DESC, engine)(stream, other, memory)
        cf.Reorder(DESC, DESC, engine)(stream, other, beside)


def test_a_call_while_the_buffer_is_exchanged_is_waited_for(
    engine: cf.Engine, monkeypatch: pytest.MonkeyPatch
) -> None:
    """One by another thread, at the latest moment at which it still gets the old buffer."""
    import pyopencl as cl

    cpu_only(engine)
    host = np.zeros(DESC.dims, np.float32)
    target, source = cf.from_host(host, engine), cf.from_numpy(values(), engine)
    reorder, stream = cf.Reorder(DESC, target.desc, engine), cf.Stream(engine)
    gate, events = cl.UserEvent(engine.context), []
    stream.after(gate)

    def usage_of(buffer: Any) -> Any:
        thread = threading.Thread(target=lambda: events.append(reorder(stream, source, target)))
        thread.start()
        thread.join()
        threading.Timer(0.3, gate.set_status, (cl.command_execution_status.COMPLETE,)).start()
        return order.usage_of(buffer)

    with monkeypatch.context() as patch:
        patch.setattr("clformats.runtime.memory.usage_of", usage_of)
        target.set_buffer(None)
    assert events[0].done
    assert (host == source.numpy()).all()


def test_a_mapping_that_is_dropped_gives_the_buffer_back(
    engine: cf.Engine, stream: cf.Stream
) -> None:
    """Started and never entered: on whatever stream, before what it waits for is done."""
    import pyopencl as cl

    own, ordered = cf.Stream(engine), cf.Stream(engine, out_of_order=True)
    target, source = cf.Memory(TURNED, engine), cf.from_numpy(values(), engine)
    kept, reorder = target.buffer, cf.Reorder(DESC, TURNED, engine)
    modes: tuple[Any, ...] = ("r", "w", "rw")
    for mode in modes:
        for where in (None, own, ordered):
            gate = cl.UserEvent(engine.context)
            own.after(gate)
            reorder(own, cf.Memory(DESC, engine), target)
            mapping = target.map(mode, stream=where).start()
            with pytest.raises(cf.MappedError, match=r"test_lifetimes\.py"):
                target.numpy()
            del mapping
            reorder(stream, source, target)
            complete = cl.command_execution_status.COMPLETE
            threading.Timer(0.05, gate.set_status, (complete,)).start()
            assert (cf.Memory(TURNED, engine, buffer=kept).numpy() == source.numpy()).all()


def test_an_array_that_is_used_keeps_its_mapping(engine: cf.Engine, stream: cf.Stream) -> None:
    memory = cf.from_numpy(values(), engine)
    flat = memory.map("rw").__enter__()
    gc.collect()
    flat[:] = 3
    with pytest.raises(cf.MappedError, match=r"test_lifetimes\.py"):
        cf.Reorder(DESC, TURNED, engine)(stream, memory, cf.Memory(TURNED, engine))


_FORKING = """
import os, signal, sys
import numpy as np, clformats as cf
engine = cf.Engine(sys.argv[1])
memory = cf.from_numpy(np.ones((3, 5), np.float32), engine)
stream, target = cf.Stream(engine), cf.Memory(memory.desc, engine)
reorder = cf.Reorder(memory.desc, memory.desc, engine)
known = lambda: reorder(stream, memory, target)
for _ in range(3):
    known()
stream.wait()
child = os.fork()
if child == 0:
    signal.alarm(60)
    told = 0
    again = lambda: cf.reorder(memory, "ba")
    for call in (memory.numpy, cf.Engine, again, known, lambda: cf.Stream(engine)):
        try:
            call()
        except cf.DeviceError as error:
            told += "forked" in str(error)
    os._exit(0 if told == 5 else 1)
assert os.waitpid(child, 0)[1] == 0
assert memory.numpy().sum() == 15
"""


_FORKING_WITH_LOCKS = """
import os, signal, sys, threading, time
import numpy as np, clformats as cf
from clformats.runtime.order import LOCK
engine, D = cf.Engine(sys.argv[1]), cf.MemoryDesc
memory = cf.from_numpy(np.ones((3, 5), np.float32), engine)
host = cf.from_host(np.ones((3, 5), np.float32), engine) if engine.traits.is_cpu else memory
stream, target = cf.Stream(engine), cf.Memory(memory.desc, engine)
any_size = cf.Reorder(D((cf.RUNTIME_DIM, 5), "f32"), D((cf.RUNTIME_DIM, 5), "f32"), engine)
scaled = cf.Reorder(memory.desc, memory.desc, engine, attr=cf.Attr(src_scale=cf.at_execution()))
locks, held = [LOCK, engine._lock, any_size._lock], threading.Barrier(4)
def hold(lock):
    with lock:
        held.wait()
        time.sleep(0.5)
threads = [threading.Thread(target=hold, args=(lock,)) for lock in locks]
for thread in threads:
    thread.start()
held.wait()
child = os.fork()
if child == 0:
    signal.alarm(60)
    told = 0
    for call in (lambda: cf.Reorder(memory.desc, D((3, 5), "f32", "ba"), engine),
                 lambda: any_size(stream, memory, target),
                 lambda: scaled(stream, memory, target, src_scale=2.0)):
        try:
            call()
        except cf.DeviceError as error:
            told += "forked" in str(error)
    del host
    os._exit(0 if told == 3 else 1)
assert os.waitpid(child, 0)[1] == 0
for thread in threads:
    thread.join()
any_size(stream, memory, target)
assert target.numpy().sum() == 15
"""


@pytest.mark.skipif(not hasattr(os, "fork"), reason="this system has no fork")
@pytest.mark.parametrize("script", [_FORKING, _FORKING_WITH_LOCKS], ids=["plain", "locks"])
def test_a_forked_process_is_told(script: str, engine: cf.Engine) -> None:
    """A driver's threads do not come along: it would hang. Nor do those that hold our locks."""
    line = [sys.executable, "-c", script, engine.device.platform.name]
    done = subprocess.run(line, capture_output=True, text=True, timeout=300, check=False)
    assert done.returncode == 0, done.stderr


def test_attributes_travel(engine: cf.Engine) -> None:
    attr = cf.Attr(src_scale=2.0, dst_zero_point=([1, 2, 3], 2), beta=cf.at_execution(),
                   expression="max(x, 0.f)")  # fmt: skip
    for other in (pickle.loads(pickle.dumps(attr)), copy.deepcopy(attr)):  # noqa: S301  # our own
        assert str(other.formula) == str(attr.formula)
        assert {n: str(v) for n, v in other.terms.items()} == {
            n: str(v) for n, v in attr.terms.items()
        }


def test_what_is_on_a_device_does_not_travel(engine: cf.Engine, stream: cf.Stream) -> None:
    """Nor do copies share a lock or a mapping: each says what to send instead."""
    memory = cf.Memory(DESC, engine)
    reorder = cf.Reorder(DESC, TURNED, engine)
    event = reorder(stream, memory, cf.Memory(TURNED, engine))
    here = [engine, memory, stream, event, reorder, memory.map("r"),
            cf.Map("z = x + 1", engine, x=DESC, z=DESC), cf.IndexKernels(DESC, engine)]  # fmt: skip
    for what in here:
        for travel in (pickle.dumps, copy.copy, copy.deepcopy):
            with pytest.raises(cf.InvalidArgument, match="of this process") as error:
                travel(what)
            assert isinstance(error.value, TypeError)  # what pickle's users expect


def test_dlpack_never_shares(engine: cf.Engine) -> None:
    with pytest.raises(BufferError, match="by a copy"):
        cf.Memory(DESC, engine).__dlpack__(copy=False)
