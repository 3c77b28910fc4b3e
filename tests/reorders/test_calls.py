"""Calls are cheap and leave nothing behind; reorders that share a kernel keep apart."""

from __future__ import annotations

import gc
import os
import sys
import threading
import time
import tracemalloc
from collections.abc import Callable
from itertools import pairwise
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import clformats as cf
from clformats.reorders.ready import Ready

D = cf.MemoryDesc
SRC, DST = D((1, 33, 5, 3), "f32", "bfyx"), D((1, 33, 5, 3), "f32", "b_fs_yx_fsv16")
CALLS = 50_000
ROW = 500


def resident() -> int:
    """Bytes of this process in memory."""
    pages = int(Path("/proc/self/statm").read_text().split()[1])
    return pages * os.sysconf("SC_PAGE_SIZE")


def growth(call: Callable[[], object], stream: cf.Stream, calls: int) -> tuple[int, int]:
    """Bytes that Python's objects grow by in a fifth of the calls, and the process in all of them.

    The process: five times the least of four fifths, after the first. A driver takes room once, in
    one of them; what leaks takes it in each.
    """

    def run(count: int) -> None:
        for _ in range(count // ROW):
            for _ in range(ROW):
                call()
            stream.wait()
        gc.collect()

    run(calls // 5)
    sizes = [resident()]
    for _ in range(4):
        run(calls // 5)
        sizes.append(resident())
    grown = 5 * min(after - before for before, after in pairwise(sizes))
    tracemalloc.start()
    try:
        run(ROW)
        first = tracemalloc.get_traced_memory()[0]
        run(calls // 5)
        return tracemalloc.get_traced_memory()[0] - first, grown
    finally:
        tracemalloc.stop()


def affordable(call: Callable[[], object], stream: cf.Stream, calls: int) -> int:
    """So many calls, or those of ten seconds, where a device takes long for each."""
    call()
    begin = time.perf_counter()
    for _ in range(ROW):
        call()
    stream.wait()
    rows = int(10 / (time.perf_counter() - begin))
    return min(calls, max(5, rows) * ROW)


def kinds_of_calls(engine: cf.Engine, stream: cf.Stream) -> dict[str, Callable[[], object]]:
    """What a program does over and over."""
    a, b = cf.Memory(SRC, engine), cf.Memory(DST, engine)
    reorder = cf.Reorder(SRC, DST, engine)
    given = cf.Reorder(SRC, DST, engine, attr=cf.Attr(src_scale=cf.at_execution()))
    unordered = cf.Stream(engine, out_of_order=True)

    def mapped() -> None:
        with b.map("rw") as array:
            array[0] = 1

    def elsewhere() -> None:
        reorder(unordered, a, b).wait()

    return {
        "call": lambda: reorder(stream, a, b),
        "scaled": lambda: given(stream, a, b, src_scale=2.0),
        "prepare": lambda: cf.Reorder(SRC, DST, engine),
        "map": mapped,
        "out of order": elsewhere,
        "stream": lambda: cf.Stream(engine, queue=engine.queue),
        "memory": lambda: cf.Memory(SRC, engine),
    }


def calls_within(call: Callable[[], object]) -> int:
    """How many functions are called, in Python and in C; the one that switches it off is one."""
    seen: list[str] = []

    def count(_frame: object, event: str, _argument: object) -> None:
        seen.append(event)

    sys.setprofile(count)
    try:
        call()
    finally:
        sys.setprofile(None)
    return sum(event in ("call", "c_call") for event in seen) - 1


@pytest.mark.parametrize("same", [True, False])
def test_a_call_calls_little(same: bool, engine: cf.Engine, stream: cf.Stream) -> None:
    """As often repeated: by the same stream, with descriptors of the same or of equal objects."""
    descs = [SRC, DST] if same else [D(d.dims, d.dtype, d.format) for d in (SRC, DST)]
    a, b, c = (cf.Memory(d, engine) for d in (descs[0], descs[1], DST))
    scale = cf.Attr(src_scale=2.0)
    for there, target in ((cf.Reorder(SRC, DST, engine), b),
                          (cf.Reorder(SRC, DST, engine, attr=scale), c)):  # fmt: skip
        back = cf.Reorder(DST, SRC, engine)
        for _ in range(2):
            there(stream, a, target)
            back(stream, target, a)
        # The lambda, the call, `Ready.move`, Event(), and what Python counts of the lock.
        assert calls_within(lambda r=there, t=target: r(stream, a, t)) <= 8  # type: ignore[misc]
        assert calls_within(lambda r=back, t=target: r(stream, t, a)) <= 8  # type: ignore[misc]


@pytest.mark.parametrize(
    ("kind", "calls"),
    [("call", CALLS), ("scaled", CALLS // 5), ("prepare", CALLS // 10), ("map", CALLS // 10),
     ("out of order", CALLS // 10), ("stream", CALLS // 5), ("memory", CALLS // 10)],
)  # fmt: skip
def test_nothing_grows(kind: str, calls: int, engine: cf.Engine, stream: cf.Stream) -> None:
    call = kinds_of_calls(engine, stream)[kind]
    calls = affordable(call, stream, calls)
    python, process = growth(call, stream, calls)
    # Less than a byte for each call: a single leaked object is 16 at the least.
    assert python < max(calls // 5, 20_000), python
    assert process < max(16 * calls, 1 << 20), process


@pytest.mark.parametrize("attr", [None, cf.Attr(src_scale=3.0)], ids=["plain", "attr"])
def test_the_fast_path_does_what_the_checked_path_does(
    attr: cf.Attr | None, engine: cf.Engine, monkeypatch: pytest.MonkeyPatch
) -> None:
    """`Ready.move` and `Ready.call`: one command, the same bytes, the same to wait for."""
    import pyopencl as cl

    real, launched = cl.enqueue_nd_range_kernel, list[object]()

    def watched(queue: cl.CommandQueue, kernel: cl.Kernel, *how: Any) -> cl.Event:
        launched.append((queue is stream.queue, kernel.function_name, how))
        return real(queue, kernel, *how)

    stream, reorder = cf.Stream(engine), cf.Reorder(SRC, DST, engine, attr=attr, wait=True)
    ready, found = reorder._known(), []
    for fast in (True, False):
        src, dst, other = (cf.Memory(d, engine) for d in (SRC, DST, SRC))
        stream.fill(src, 64)
        cf.Reorder(DST, SRC, engine)(stream, dst, other)  # which reads what is written next
        launched.clear()
        with monkeypatch.context() as patch:
            patch.setattr(cl, "enqueue_nd_range_kernel", watched)
            if fast:
                patch.delattr(Ready, "_run")
                assert src.sound
                assert dst.sound
                event = ready.move(stream, src, dst, (src.sound, dst.sound), reorder)
            else:
                event = ready.call(stream, [("s", src, SRC), ("d", dst, DST)], None, reorder)
        assert event
        writers = [memory.usage.writer is event.event for memory in (src, dst)]
        uses = [
            (m.usage.only_order is stream.order, m.usage.order is stream.order,
             [order is stream.order for order in m.usage.readers], m.usage.exposed)
            for m in (src, dst)
        ]  # fmt: skip
        reads = src.usage.readers[stream.order] is event.event
        found.append((launched.copy(), writers, reads, uses, dst.physical().tobytes()))
    assert found[0] == found[1]
    assert len(launched) == 1


def test_preparing_again_makes_no_kernel(
    engine: cf.Engine, monkeypatch: pytest.MonkeyPatch
) -> None:
    import pyopencl as cl

    attr = cf.Attr(src_scale=0.5, dst_zero_point=([*range(33)], 2))
    kept = [cf.Reorder(SRC, DST, engine), cf.Reorder(SRC, DST, engine, attr=attr)]

    def fail(*arguments: object) -> None:
        raise AssertionError(f"made a kernel of {arguments}")

    monkeypatch.setattr(cl, "Kernel", fail)
    again = [cf.Reorder(SRC, DST, engine), cf.Reorder(SRC, DST, engine, attr=attr)]
    assert [r.source for r in again] == [r.source for r in kept]


def test_reorders_that_share_a_kernel_keep_their_values(
    engine: cf.Engine, stream: cf.Stream
) -> None:
    array = np.arange(33 * 15, dtype=np.float32).reshape(SRC.dims)
    a, b = cf.from_numpy(array, engine), cf.Memory(DST, engine)
    reorders = {
        k: cf.Reorder(SRC, DST, engine, attr=cf.Attr(src_scale=k, dst_zero_point=([k] * 33, 2)))
        for k in (2, 3)
    }
    open_ = cf.Reorder(SRC, DST, engine, attr=cf.Attr(src_scale=cf.at_execution(), dst_zero_point=(
        [5] * 33, 2)))  # fmt: skip
    for k in (2, 3, 3, 2, 2, 3):
        reorders[k](stream, a, b)
        assert (cf.to_numpy(b) == array * k + k).all()
        open_(stream, a, b, src_scale=7 * k)
        assert (cf.to_numpy(b) == array * 7 * k + 5).all()


def test_threads_share_a_kernel(engine: cf.Engine) -> None:
    array = np.arange(33 * 15, dtype=np.float32).reshape(SRC.dims)
    wrong: list[object] = []

    def work(k: int) -> None:
        stream, source = cf.Stream(engine), cf.from_numpy(array + k, engine)
        reorder = cf.Reorder(SRC, DST, engine, attr=cf.Attr(src_scale=k))
        target = cf.Memory(DST, engine)
        for _ in range(100):
            reorder(stream, source, target)
            if not (cf.to_numpy(target) == (array + k) * k).all():
                wrong.append(k)

    threads = [threading.Thread(target=work, args=(k,)) for k in range(1, 9)]
    for t in threads:
        t.start()
    for t in threads:
        t.join()
    assert not wrong


def test_a_buffer_wrapped_anew_still_waits(engine: cf.Engine) -> None:
    """Who drops a memory object and wraps its buffer again finds what was written before."""
    src, dst = D((1500, 1501), "f32"), D((1500, 1501), "f32", "ba")
    values = np.random.default_rng(0).standard_normal(src.dims).astype(np.float32)
    source, reorder = cf.from_numpy(values, engine), cf.Reorder(src, dst, engine)
    buffer = cf.Memory(dst, engine).buffer
    for _ in range(5):
        with cf.Memory(dst, engine, buffer=buffer).map("w") as flat:
            flat[:] = 0
        reorder(cf.Stream(engine), source, cf.Memory(dst, engine, buffer=buffer))
        assert (cf.to_numpy(cf.Memory(dst, engine, buffer=buffer)) == values).all()
