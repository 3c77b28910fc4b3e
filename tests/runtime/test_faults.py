"""Whatever OpenCL call fails: a clean exception, nothing kept, and later work is right."""

from __future__ import annotations

import gc
import os
import signal
import sys
import threading
import time
from collections.abc import Callable
from pathlib import Path
from types import FrameType
from typing import Any

import numpy as np
import pytest

import clformats as cf
from clformats.runtime import unified
from clformats.runtime.mapping import Mapping
from clformats.runtime.order import LOCK
from tests.faults_support import Faults, injected
from tests.support import random_values

D = cf.MemoryDesc
SRC, DST = D((2, 17, 5, 3), "f32", "bfyx"), D((2, 17, 5, 3), "f32", "b_fs_yx_fsv16")
ARRAY = random_values(np.random.default_rng(0), SRC.dims, "f32")


def reorders(engine: cf.Engine) -> None:
    """Allocations, maps, and calls over several streams; with operands and without."""
    source, target = cf.from_numpy(ARRAY, engine), cf.Memory(DST, engine)
    streams = [cf.Stream(engine), cf.Stream(engine, out_of_order=True), cf.Stream(engine)]
    scaled = cf.Attr(src_scale=2.0, dst_zero_point=([3] * 17, 2))
    result = cf.Memory(SRC, engine)
    cf.Reorder(SRC, DST, engine, attr=scaled)(streams[0], source, target)
    cf.Reorder(DST, SRC, engine)(streams[1], target, result)
    given = cf.Reorder(SRC, DST, engine, attr=cf.Attr(src_scale=cf.at_execution(2)))
    given(streams[2], result, target, src_scale=[0.5] * 17).wait()
    streams[0].wait()
    assert (cf.to_numpy(target) == (ARRAY * 2 + 3) / 2).all()
    assert (cf.to_numpy(cf.reorder(target, "byxf")) == (ARRAY * 2 + 3) / 2).all()


def views(engine: cf.Engine) -> None:
    """Parts of a buffer, early mappings, arrays, padding."""
    stream = cf.Stream(engine)
    whole = cf.Memory(D((3, 48, 5, 3), "f32", "b_fs_yx_fsv16"), engine)
    view = whole.submemory((2, 16, 5, 3), (1, 16, 0, 0))
    source = cf.from_numpy(ARRAY[:, :16], engine)
    cf.Reorder(source.desc, view.desc, engine)(stream, source, view)
    with view.map("r").start() as flat:
        assert (cf.unpack(flat, view.mapped) == ARRAY[:, :16]).all()
    with view.map("w") as flat:
        flat[view.mapped.offsets()] = 1
    whole.clear_padding()
    assert np.asarray(whole).sum() == view.desc.nelems
    again = cf.from_array(cf.to_array(source))
    assert (again.numpy() == ARRAY[:, :16]).all()


def maps(engine: cf.Engine) -> None:
    """An expression, sizes at execution, profiling."""
    stream = cf.Stream(engine, profiling=True)
    a, b, c = cf.from_numpy(ARRAY, engine), cf.Memory(DST, engine), cf.Memory(SRC, engine)
    any_size = D((cf.RUNTIME_DIM, 17, 5, 3), "f32", "bfyx")
    cf.Reorder(any_size, D((cf.RUNTIME_DIM, 17, 5, 3), "f32", "b_fs_yx_fsv16"), engine)(
        stream, a, b
    )
    event = cf.Map("z = x * 2 + y", engine, x=DST, y=SRC, z=SRC)(stream, x=b, y=a, z=c)
    assert event.seconds() > 0
    assert (cf.to_numpy(c) == ARRAY * 2 + ARRAY).all()


def transfers(engine: cf.Engine) -> None:
    """Pieces through two streams, and host memory where it lies."""
    target = cf.Memory(D((2, 64, 9, 8), "f32", "b_fs_yx_fsv16"), engine)
    host = random_values(np.random.default_rng(1), target.desc.dims, "f32")
    cf.transfer(host, target, piece_nbytes=30_000)
    back = np.zeros_like(host)
    cf.transfer(target, back, piece_nbytes=30_000)
    assert (back == host).all()


def shared(engine: cf.Engine) -> None:
    """Host memory and shared virtual memory, which no driver keeps."""
    import pyopencl as cl

    if not engine.traits.is_cpu:
        pytest.skip(f"{engine.device.name.strip()} does not use the host's memory")

    source, target = cf.from_host(ARRAY.copy(), engine), cf.Memory(DST, engine)
    cf.Reorder(source.desc, DST, engine)(cf.Stream(engine), source, target)
    del source
    svm = cl.SVMAllocation(engine.context, DST.nbytes, 64, cl.svm_mem_flags.READ_WRITE)
    other, result = cf.Memory(DST, engine, buffer=svm), cf.Memory(SRC, engine)
    cf.Reorder(DST, DST, engine)(cf.Stream(engine), target, other)
    cf.Reorder(DST, SRC, engine)(cf.Stream(engine), other, result)
    assert (cf.to_numpy(other) == ARRAY).all()
    del other, svm
    assert (cf.to_numpy(result) == ARRAY).all()


def images(engine: cf.Engine) -> None:
    """Pixels, copied to, and tried out before a kernel reads them."""
    desc = D((5, 3, 2, 7), "f32", "image_2d_weights_c1_b_fyx")
    array = random_values(np.random.default_rng(2), desc.dims, "f32")
    source = cf.from_numpy(array, engine, format="oiyx")
    target = cf.Memory(desc, engine)
    cf.Reorder(source.desc, desc, engine)(cf.Stream(engine), source, target)
    assert (cf.to_numpy(target) == array).all()
    with target.map("rw") as flat:
        flat[:] = 4
    cf.Reorder(desc, source.desc, engine, family="image")(cf.Stream(engine), target, source)
    assert (cf.to_numpy(source) == 4).all()


def builds(engine: cf.Engine) -> None:
    """Programs and kernels, made anew."""
    own = cf.Engine(context=engine.context, device=engine.device)
    source, target = cf.from_numpy(ARRAY, own), cf.Memory(DST, own)
    attr = cf.Attr(src_scale=2.0, src_zero_point=([1] * 17, 2))
    cf.Reorder(SRC, DST, own, attr=attr)(cf.Stream(own), source, target)
    assert (cf.to_numpy(target) == (ARRAY - 1) * 2).all()


def sums(engine: cf.Engine) -> None:
    """Two kernels for each call, in both kinds of streams."""
    dst = D((2, 17, 5, 3), "s8", "OIhw4i16o4i", extra=cf.Extra(1, s8s8=True))
    array = random_values(np.random.default_rng(3), dst.dims, "s8")
    source = cf.from_numpy(array, engine, format="oihw")
    reorder = cf.Reorder(source.desc, dst, engine)
    for stream in (cf.Stream(engine), cf.Stream(engine, out_of_order=True)):
        target = cf.Memory(dst, engine)
        reorder(stream, source, target)
        stream.wait()
        with target.map("r") as flat:
            assert (flat == cf.pack(array, dst)).all()


SCENARIOS = (reorders, views, maps, transfers, shared, images, builds, sums)


CASES = [
    pytest.param(s, i, id=f"{s.__name__}-{'interrupt' if i else 'error'}",
                 marks=[pytest.mark.slow] if s is builds or i != (k % 2 == 0) else [])
    for k, s in enumerate(SCENARIOS) for i in (False, True)
]  # fmt: skip
"""The fast tier has each scenario once, by turns with errors and interrupts."""


@pytest.mark.parametrize(("scenario", "interrupt"), CASES)
def test_every_call_may_fail(
    scenario: Callable[[cf.Engine], None],
    interrupt: bool,
    engine: cf.Engine,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """The reference counts of a context and a queue tell what is alive in them."""
    import pyopencl as cl

    # An interrupt may come in the finalizer of a queue: pytest would keep it with all its frames.
    monkeypatch.setattr(sys, "unraisablehook", lambda _: None)
    if scenario is transfers:
        monkeypatch.setattr(unified, "shares_host_memory", lambda device: False)
    own = cf.Engine(context=cl.Context([engine.device]), device=engine.device)

    def alive() -> tuple[int, int]:
        gc.collect()
        queue = own.tracked_queue.reference_count
        return queue, own.context.reference_count

    scenario(own)
    before = alive()

    def nothing_is_kept() -> bool:
        nonlocal before
        if "rusticl" in engine.device.platform.name:
            return True  # it keeps commands that are not sent, and their queue
        # A mapping whose release failed is given up by pyopencl, which does not wait for it.
        for _ in range(60):
            # At first pocl's threads may hold an event of the scenario: the least counts are right.
            now = alive()
            before = min(now[0], before[0]), min(now[1], before[1])
            if now == before:
                return True
            time.sleep(0.05)
        return False

    at, seen = 0, set[str]()
    while True:
        faults = Faults(at, interrupt=interrupt)
        failed = run(scenario, own, faults)
        if not faults.happened:
            break
        wanted = KeyboardInterrupt if interrupt else cf.DeviceError
        # What fails where memory or a stream is dropped is told to nobody: it is gone all the same.
        # Whether that waits at all depends on how far the device is. Nor is it told that a command
        # failed whose result is overwritten.
        call, before_it = faults.calls[at], faults.calls[:at]
        dropped = call == "CommandQueue.finish" and call in before_it
        unseen = dropped or call == "Event.wait"
        seen.add(call if failed else "")
        assert failed is wanted or (failed is None and unseen), (at, faults.calls[at], failed)
        assert nothing_is_kept(), (at, faults.calls[at], before, alive())
        if scenario is not transfers or at % 5 == 0:  # the longest
            scenario(own)
            assert nothing_is_kept(), (at, faults.calls[at], before, alive())
        at += 1
    assert at > 20
    assert "Event.wait" in seen


def run(
    scenario: Callable[[cf.Engine], None], engine: cf.Engine, faults: Faults
) -> type[BaseException] | None:
    """The kind of what the scenario raised; nothing of it stays."""
    try:
        with injected(faults):
            scenario(engine)
            if scenario is shared and faults.interrupt and faults.happened:
                time.sleep(0.1)  # an interrupt where memory was dropped comes behind that
    except (cf.DeviceError, KeyboardInterrupt) as error:
        return type(error)
    return None


@pytest.mark.parametrize("first", [0, 3, 8, 15, 24, 33])
def test_a_lost_device(first: int, engine: cf.Engine) -> None:
    """From some call on every one fails: errors, no hang; a new engine works if it can."""
    import pyopencl as cl

    own = cf.Engine(context=cl.Context([engine.device]), device=engine.device)
    lost = Faults(first, for_ever=True)
    assert run(reorders, own, lost) is cf.DeviceError
    assert run(reorders, own, Faults(0, for_ever=True)) is cf.DeviceError
    reorders(own)
    del own
    reorders(engine)


def test_control_c_in_a_wait(engine: cf.Engine) -> None:
    # A shell starts what it runs in the background with Control-C ignored, and Python leaves it so.
    before = signal.signal(signal.SIGINT, signal.default_int_handler)
    try:
        _control_c_in_a_wait(engine)
    finally:
        signal.signal(signal.SIGINT, before)


def _control_c_in_a_wait(engine: cf.Engine) -> None:
    stream, big = cf.Stream(engine), D((1500, 1501), "f32")
    source = cf.from_numpy(random_values(np.random.default_rng(0), big.dims, "f32"), engine)
    target = cf.Memory(D(big.dims, "f32", "ba"), engine)
    reorder = cf.Reorder(big, target.desc, engine)
    timer = threading.Timer(0.02, os.kill, (os.getpid(), signal.SIGINT))

    def wait_long() -> None:
        timer.start()
        while True:
            reorder(stream, source, target).wait()

    with pytest.raises(KeyboardInterrupt):
        wait_long()
    timer.join()
    assert (cf.to_numpy(target) == cf.to_numpy(source)).all()
    reorders(engine)


def test_the_faults_happen_where_they_are_asked(engine: cf.Engine) -> None:
    """Else the test above could not fail."""
    faults = Faults(10**6)
    run(reorders, engine, faults)
    known = ("Buffer", "CommandQueue", "Event.wait", "Kernel.set_arg", "MemoryMap.release",
             "enqueue_fill_buffer", "enqueue_map_buffer", "enqueue_nd_range_kernel")  # fmt: skip
    for call in known:
        fault = Faults(faults.calls.index(call))
        with pytest.raises(cf.DeviceError, match=r"OUT_OF_RESOURCES.*on purpose"), injected(fault):
            reorders(engine)


# --- events that fail, and events of others -------------------------------------------------------


@pytest.mark.parametrize("same_stream", [True, False])
def test_a_failed_event_is_told_once_and_poisons_nothing(
    engine: cf.Engine, *, same_stream: bool
) -> None:
    import pyopencl as cl

    if same_stream and "rusticl" in engine.device.platform.name:
        pytest.skip("rusticl's queue fails for ever after a command that failed: take another one")
    stream = cf.Stream(engine)
    source, target = cf.from_numpy(ARRAY, engine), cf.Memory(DST, engine)
    reorder = cf.Reorder(SRC, DST, engine, wait=True)
    mine = cl.UserEvent(engine.context)
    source.written_by(mine)
    waiting = reorder(stream, source, target)
    mine.set_status(-5)
    with pytest.raises(cf.DeviceError):
        waiting.wait()
    with pytest.raises(cf.DeviceError, match="told once"):
        reorder(stream, source, target)
    for _ in range(3):
        reorder(stream if same_stream else cf.Stream(engine), source, target).wait()
        assert (target.numpy() == ARRAY).all()
    with source.map("rw") as flat:
        flat[:] = 0
    with pytest.raises(cf.DeviceError, match="has failed"):
        source.written_by(mine)
    with pytest.raises(cf.DeviceError, match="has failed"):
        stream.after(mine)
    assert source.numpy().sum() == 0


def test_what_overwrites_a_failed_command_is_told_nothing(engine: cf.Engine) -> None:
    import pyopencl as cl

    memory, mine = cf.Memory(SRC, engine), cl.UserEvent(engine.context)
    memory.written_by(mine)
    mine.set_status(-5)
    with memory.map("w") as flat:
        flat[:] = 3
    assert (memory.numpy() == 3).all()


@pytest.mark.parametrize("call", ["enqueue_map_buffer", "enqueue_nd_range_kernel"])
def test_what_was_not_enqueued_hides_no_earlier_command(
    engine: cf.Engine, monkeypatch: pytest.MonkeyPatch, call: str
) -> None:
    """It waited for none: later commands, and dropping the memory, still wait for each."""
    import pyopencl as cl

    def interrupted(*_: object, **__: object) -> None:
        raise KeyboardInterrupt

    stream, memory, mine = cf.Stream(engine), cf.Memory(DST, engine), cl.UserEvent(engine.context)
    source, reorder = cf.from_numpy(ARRAY, engine), cf.Reorder(SRC, DST, engine, wait=True)
    memory.read_by(mine)
    begin: dict[str, Callable[[], object]] = {
        "enqueue_map_buffer": memory.map("rw").start,
        "enqueue_nd_range_kernel": lambda: reorder(stream, source, memory),
    }
    with monkeypatch.context() as patch:
        patch.setattr(cl, call, interrupted)
        with pytest.raises(KeyboardInterrupt):
            begin[call]()
    for queue in (engine.tracked_queue, stream.tracked_queue):
        queue.flush()
    time.sleep(0.05)
    assert any(event.command_execution_status > 0 for event in memory.events)
    mine.set_status(0)
    reorder(stream, source, memory).wait()
    assert (memory.numpy() == ARRAY).all()


def test_an_event_of_another_context_is_refused(engine: cf.Engine) -> None:
    import pyopencl as cl

    other = cl.UserEvent(cl.Context([engine.device]))
    memory = cf.from_numpy(ARRAY, engine)
    for tell in (memory.written_by, memory.read_by):
        with pytest.raises(cf.DeviceError, match="another OpenCL context"):
            tell(other)
    assert (memory.numpy() == ARRAY).all()


# --- Control-C ------------------------------------------------------------------------------------


class At:
    """Raises `KeyboardInterrupt` at a step of the runtime's own code: a bytecode, or a line."""

    FILES = ("opencl", *(f"runtime/{n}" for n in ("mapping", "storage", "order", "memory")))

    def __init__(self, at: int, step: str) -> None:
        self.left, self._step = at, step
        folder = Path(cf.__file__).parent
        self._files = {str(folder / f"{name}.py") for name in self.FILES}

    def __call__(self, frame: FrameType, what: str, _: object) -> Any:
        if frame.f_code.co_filename not in self._files:
            return None
        frame.f_trace_opcodes = self._step == "opcode"
        if what in ("call", self._step):
            self.left -= 1
            if self.left < 0:
                raise KeyboardInterrupt
        return self


@pytest.mark.parametrize("mode", ["r", "w", "rw"])
@pytest.mark.parametrize("step", ["line", pytest.param("opcode", marks=pytest.mark.slow)])
def test_control_c_anywhere_leaves_memory_unmapped(
    mode: Any, step: str, engine: cf.Engine, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(sys, "unraisablehook", lambda _: None)  # it may come in a finalizer
    stream, target = cf.Stream(engine), cf.Memory(DST, engine)
    memory = cf.from_numpy(ARRAY, engine)
    reorder = cf.Reorder(SRC, DST, engine, wait=True)

    def interrupted(at: int) -> bool:
        control_c, before = At(at, step), sys.gettrace()
        sys.settrace(control_c)
        try:
            with memory.map(mode) as flat:
                flat.sum()
        except KeyboardInterrupt:
            pass
        finally:
            sys.settrace(before)
            # Tracing comes between the end of a `with` block and its __exit__, so that a lock stays
            # locked. No signal does: CPython delivers them after calls and jumps.
            while LOCK._is_owned():  # type: ignore[attr-defined]  # as threading.Condition asks
                LOCK.release()
        return control_c.left < 0

    at = 0
    while interrupted(at):
        with memory.map("w") as flat:
            flat[:] = cf.pack(ARRAY, SRC)
        reorder(stream, memory, target).wait()
        assert (target.numpy() == ARRAY).all(), at
        at += 1
    assert at > 100


def test_control_c_before_the_end_of_a_block_unmaps_while_the_array_lives(
    engine: cf.Engine,
) -> None:
    """The first bytecode of `__exit__`: nothing of ours runs, and the array's name stays."""
    memory, flat = cf.from_numpy(ARRAY, engine), ARRAY

    def at_the_end(frame: FrameType, what: str, _: object) -> None:
        if frame.f_code is Mapping.__exit__.__code__:
            raise KeyboardInterrupt

    before = sys.gettrace()
    try:
        with memory.map("rw") as flat:
            flat[:] = 3
            sys.settrace(at_the_end)
    except KeyboardInterrupt:
        pass
    finally:
        sys.settrace(before)
    assert flat.size == 0
    assert (memory.numpy() == 3).all()


def test_control_c_in_a_finalizer_unmaps(
    engine: cf.Engine, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Python drops what is raised there, and with it all that the finalizer would have done."""

    def never(_: object) -> None:
        raise KeyboardInterrupt

    monkeypatch.setattr(sys, "unraisablehook", lambda _: None)
    memory = cf.from_numpy(ARRAY, engine)
    mapping = memory.map("rw").start()
    with pytest.raises(cf.MappedError):
        memory.numpy()
    with monkeypatch.context() as patch:
        patch.setattr(Mapping, "__del__", never)
        del mapping
    reorder, target = cf.Reorder(SRC, DST, engine, wait=True), cf.Memory(DST, engine)
    reorder(cf.Stream(engine), memory, target).wait()
    assert (target.numpy() == ARRAY).all()
