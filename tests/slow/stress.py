"""Many threads at random reorders, maps, parts of one buffer and frees; prints figures as JSON.

    python tests/slow/stress.py DEVICE SECONDS SEED

Every result is compared to the byte. A thread that makes no step for `PATIENCE` seconds is a hang:
then all stacks are printed and the process ends with 3.
"""

from __future__ import annotations

import faulthandler
import gc
import json
import os
import sys
import threading
import time
from collections import Counter
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np

import clformats as cf
from clformats.runtime import external
from tests.support import random_values

THREADS = 8
PATIENCE = 120.0
FORMATS = ("bfyx", "byxf", "yxfb", "b_fs_yx_fsv16", "b_fs_yx_fsv4", "bs_fs_yx_bsv16_fsv16")
TYPES = ("f32", "s8", "u8")
SHAPES = ((2, 17, 5, 3), (1, 33, 7, 9), (3, 16, 12, 11))
RING = ("bfyx", "b_fs_yx_fsv16", "byxf", "yxfb")
"""Every chain goes round these."""
SLICE = 16
"""Channels that each thread owns of the tensor that all of them share."""


def resident() -> int:
    """Bytes of this process in memory."""
    pages = int(Path("/proc/self/statm").read_text().split()[1])
    return pages * os.sysconf("SC_PAGE_SIZE")


def pairs() -> list[tuple[cf.MemoryDesc, cf.MemoryDesc]]:
    """A few of all reorders: each structure is a program to build."""
    rng = np.random.default_rng(0)
    found = []
    for dims in SHAPES:
        for _ in range(10):
            src, dst = (
                cf.MemoryDesc(dims, str(rng.choice(TYPES)), str(rng.choice(FORMATS)))
                for _ in range(2)
            )
            found.append((src, dst))
    return found


PAIRS = pairs()


class Shared:
    """What the threads have in common: an engine, a stream, a tensor, a pool."""

    def __init__(self, engine: cf.Engine) -> None:
        from pyopencl import tools

        self.engine = engine
        self.stream = cf.Stream(engine)
        self.whole = cf.Memory(
            cf.MemoryDesc((2, SLICE * THREADS, 9, 5), "f32", "b_fs_yx_fsv16"), engine
        )
        self.pool = tools.MemoryPool(tools.ImmediateAllocator(engine.queue))
        self.stop = False


class Worker(threading.Thread):
    """One thread, with streams of its own and the shared one."""

    def __init__(self, shared: Shared, number: int, seed: int) -> None:
        super().__init__(name=f"worker {number}", daemon=True)
        self.shared, self.number = shared, number
        self.rng = np.random.default_rng([seed, number])
        self.done: Counter[str] = Counter()
        self.seen = time.monotonic()
        self.error: BaseException | None = None
        engine = shared.engine
        self.streams = [cf.Stream(engine), cf.Stream(engine, out_of_order=True), shared.stream]
        self.kept: list[tuple[cf.Memory, Any]] = []

    def run(self) -> None:
        steps = (self.reorder, self.chain, self.map, self.part, self.free)
        try:
            while not self.shared.stop:
                step = steps[self.rng.integers(len(steps))]
                self.until_unmapped(step)
                self.done[step.__name__] += 1
                self.seen = time.monotonic()
        except BaseException as error:  # noqa: BLE001  # whatever it is, the main thread tells it
            self.error = error
            self.shared.stop = True
        self.kept.clear()

    def until_unmapped(self, step: Callable[[], object]) -> None:
        """Again and again while another thread maps the shared tensor."""
        while not self.shared.stop:
            try:
                step()
            except cf.MappedError:
                self.done["mapped by another"] += 1
                time.sleep(0.0005)
            else:
                return

    def pick(self, values: Any) -> Any:
        return values[self.rng.integers(len(values))]

    def memory(self, desc: cf.MemoryDesc) -> cf.Memory:
        pooled = self.rng.random() < 0.3
        return cf.Memory(desc, self.shared.engine, allocator=self.shared.pool if pooled else None)

    def filled(self, desc: cf.MemoryDesc) -> tuple[cf.Memory, Any]:
        array = random_values(self.rng, desc.dims, desc.dtype.name)
        memory = self.memory(desc)
        with memory.map("w", stream=self.pick(self.streams[:2])) as flat:
            flat[:] = cf.pack(array, memory.desc)
        return memory, array

    def check(self, memory: cf.Memory, array: Any) -> None:
        with memory.map("r", stream=self.pick(self.streams)) as flat:
            same = flat.tobytes() == cf.pack(array, memory.desc).tobytes()
        if not same:
            raise AssertionError(f"{memory} is wrong in {self.name}")

    def reorder(self) -> None:
        src, dst = self.pick(PAIRS)
        memory, array = self.filled(src)
        target = self.memory(dst)
        event = cf.Reorder(memory.desc, dst, self.shared.engine)(
            self.pick(self.streams), memory, target
        )
        if self.rng.random() < 0.5:
            event.wait()
        self.check(target, cf.transform(array, memory.desc, dst))
        self.kept.append((memory, array))

    def chain(self) -> None:
        """Over several streams, the memories between dropped at once."""
        dims = self.pick(SHAPES)
        memory, array = self.filled(cf.MemoryDesc(dims, "f32", RING[0]))
        for name in (*RING[1:], RING[0]):
            dst = cf.MemoryDesc(dims, "f32", name)
            target = self.memory(dst)
            cf.Reorder(memory.desc, dst, self.shared.engine)(
                self.pick(self.streams), memory, target
            )
            memory = target
        self.check(memory, array)

    def map(self) -> None:
        if not self.kept:
            return
        k = self.rng.integers(len(self.kept))
        memory, array = self.kept[k]
        self.check(memory, array)
        array = random_values(self.rng, memory.desc.dims, memory.desc.dtype.name)
        mapping = memory.map("rw")
        if self.rng.random() < 0.5:
            mapping.start()
        with mapping as flat:
            flat[memory.desc.offsets()] = array
        self.kept[k] = memory, array

    def part(self) -> None:
        """Write the channels that are this thread's, and read them back."""
        dims = (2, SLICE, 9, 5)
        view = self.shared.whole.submemory(dims, (0, SLICE * self.number, 0, 0))
        array = random_values(self.rng, dims, "f32")
        if self.rng.random() < 0.5:
            source = cf.from_numpy(array, self.shared.engine, format=self.pick(RING))
            reorder = cf.Reorder(source.desc, view.desc, self.shared.engine)
            self.until_unmapped(lambda: reorder(self.pick(self.streams), source, view))
        else:
            self.until_unmapped(lambda: self.write(view, array))
        self.until_unmapped(lambda: self.compare(view, array))

    def write(self, view: cf.Memory, array: Any) -> None:
        with view.map("rw") as flat:
            flat[view.mapped.offsets()] = array

    def compare(self, view: cf.Memory, array: Any) -> None:
        if view.numpy().tobytes() != array.tobytes():
            raise AssertionError(f"part {self.number} is wrong")

    def free(self) -> None:
        while len(self.kept) > 6 or (self.kept and self.rng.random() < 0.7):
            self.kept.pop(self.rng.integers(len(self.kept)))


def build_all(shared: Shared) -> None:
    """Every program at once, so that it is the runtime which is tested, and not the compiler."""
    ring = [*zip(RING, (*RING[1:], RING[0]), strict=True)]
    for src, dst in PAIRS:
        cf.Reorder(src, dst, shared.engine)
    for dims in SHAPES:
        for a, b in ring:
            src, dst = (cf.MemoryDesc(dims, "f32", name) for name in (a, b))
            cf.Reorder(src, dst, shared.engine)
    for number in range(THREADS):
        dims = (2, SLICE, 9, 5)
        view = shared.whole.desc.submemory(dims, (0, SLICE * number, 0, 0))
        for name in RING:
            cf.Reorder(cf.MemoryDesc(dims, "f32", name), view, shared.engine)


def watch(workers: list[Worker], seconds: float) -> list[int]:
    """Wait, look after the workers, and sample the memory of the process."""
    samples, end = [], time.monotonic() + seconds
    while time.monotonic() < end and not workers[0].shared.stop:
        time.sleep(0.5)
        samples.append(resident())
        late = [w.name for w in workers if time.monotonic() - w.seen > PATIENCE]
        if late:
            print(f"no step for {PATIENCE} s: {late}", file=sys.stderr)
            faulthandler.dump_traceback(all_threads=True)
            os._exit(3)
    workers[0].shared.stop = True
    faulthandler.dump_traceback_later(PATIENCE, exit=True)
    for worker in workers:
        worker.join()
    faulthandler.cancel_dump_traceback_later()
    return samples


def finish_dropped() -> None:
    """End the pool's queue, which was handed out: it is kept, for commands that may be on it."""
    for entry in [entry for entry in external._handed_out if entry.is_dropped]:
        external._handed_out.remove(entry)
        entry.queue.finish()


def main(device: str, seconds: float, seed: int) -> int:
    import pyopencl as cl

    found = cf.Engine(device).device
    engine = cf.Engine(context=cl.Context([found]), device=found)
    shared = Shared(engine)
    build_all(shared)
    workers = [Worker(shared, k, seed) for k in range(THREADS)]
    for worker in workers:
        worker.start()
    samples = watch(workers, seconds)
    errors = [f"{w.name}: {w.error!r}" for w in workers if w.error is not None]
    done: Counter[str] = Counter()
    for worker in workers:
        done.update(worker.done)
    context, built = engine.context, engine.programs_built
    del worker, workers, shared, engine
    gc.collect()
    finish_dropped()
    third = max(len(samples) // 3, 1)
    figures = {
        "device": found.name,
        "seconds": seconds,
        "steps": dict(sorted(done.items())),
        "programs": built,
        "resident, median of the middle third": int(np.median(samples[third : 2 * third] or [0])),
        "resident, median of the last third": int(np.median(samples[2 * third :] or [0])),
        "alive in the context at the end": context.reference_count,
        "errors": errors,
    }
    print(json.dumps(figures, indent=2))
    return 1 if errors else 0


if __name__ == "__main__":
    faulthandler.enable()
    sys.exit(main(sys.argv[1], float(sys.argv[2]), int(sys.argv[3])))
