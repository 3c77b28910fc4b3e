"""Measures a processor: from how many bytes on streaming stores gain, and how fast copies are.

It takes about a second. What is measured is what is planned: schedules of the library's own
kernels. Two programs serve, one with ordinary stores and one with streaming stores; sizes are
arguments. The runs that are compared take turns, and medians count; a size whose rounds differ too
much is left out. Of the speed the best round counts.

Copies go round in a ring of buffers that no cache holds as a whole: as in a network, what is read
was just written, and what is written was not used for long. On a 2-core guest with an AMD EPYC (Zen
5) and 32 MB of cache, streaming stores gain there from 12 to 19 MB on: 0.9 at 9 MB, 1.2 at 30. Two
buffers would tell of the benchmark only: to and fro within the cache streaming stores take twice
the time up to 30 MB, and where it holds neither buffer they gain a half from 9 MB on.

Rows that no line divides need line buffers to be streamed, so `stream_bytes` is halfway, by
logarithms, between where copies gain and the default.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Sequence
from math import exp, log, prod, sqrt
from statistics import median, quantiles
from typing import NamedTuple

import numpy as np

from ..errors import Error
from ..kernels.scheduled import render_schedule
from ..opencl import named_errors, opencl
from ..problems.refine import problem
from ..problems.thresholds import ITEMS, LINE_BYTES, MOST_AHEAD, STREAMED_MOST, STREAMED_USUAL
from ..records.processors import FASTEST_GB_S
from ..runtime import Engine
from ..schedule.schedule import Loop, Schedule, Store, Tile
from ..tensors.desc import MemoryDesc
from ..timing import CLOCK, turns

MB = 1 << 20
SIZES = (4 * MB, 6 * MB, 9 * MB, 14 * MB, 20 * MB, 30 * MB, 44 * MB)
"""Bytes of source and destination together: from a part of a cache to more than a guest's share."""
ROUNDS = 5
RING_BYTES = 256 * MB
"""The buffers that copies go round in: more than a guest's share of a cache. On a Xeon (Emerald
Rapids) whose host has 260 MB streaming stores gain 1.0 to 1.2 in 96 MB, at all sizes and without a
prefetch, so the number was 9 or 37 MB, as it happened; 1.2 to 1.4 in 256 MB, 1.2 to 1.45 in 512."""
RUN_BYTES = 96 * MB
"""What a run writes: by so much it goes on round the ring."""
SPREAD = 0.3
"""How far apart the quartiles of a size's rounds may be, as a share of their median."""
LEAST_STEADY = 5
"""How many sizes must be measured well; on a busy machine fewer are."""
GAIN = 1.1
"""What streaming stores must gain. Up to 15 MB ordinary ones take 0.8 to 1.2 of their time, by what
else the machine does: with 1.05 the number was 9 to 28 MB, with 1.1 it is 16 to 20 MB there.
"""
COPIED_TILE = Tile((64,), 16)
"""Four vectors of a run: what takes the time is memory."""
COPIED_AHEAD = {Store(): 0, Store(LINE_BYTES): MOST_AHEAD}
"""How many tiles ahead copies prefetch, by their stores: as reorders of such stores do."""

Run = Callable[[], float]
"""Moves some bytes round a ring of buffers, and gives the seconds of a copy."""


class Calibration(NamedTuple):
    """From how many moved bytes on streaming stores gain, and what copies move outside caches."""

    stream_bytes: int
    copy_gb_s: int


def measured(engine: Engine) -> Calibration:
    """Measure a processor.

    Raises `Error` where the machine is too busy to tell or its memory too small, and `DeviceError`.
    """
    if trouble := busy() or small(engine.device.global_mem_size):
        raise Error(trouble)
    with named_errors("measuring the processor"):
        times = _times(engine)
    if len(times) < LEAST_STEADY:
        raise Error("the machine is busy: times differ from run to run")
    copies = crossing([*times], [one.gain for one in times.values()])
    found = round(sqrt(min(copies, STREAMED_MOST) * STREAMED_USUAL))
    largest = max(times)
    copied = round(largest / times[largest].streaming / 1e9)
    return Calibration(found, min(max(copied, 1), FASTEST_GB_S))


def busy() -> str:
    """Why the machine cannot be measured now; "" if it can."""
    load, cores = os.getloadavg()[0], os.cpu_count() or 1
    return f"the machine is busy: its load is {load:.1f} on {cores} cores" if load > cores else ""


def small(memory: int) -> str:
    """Why a device of so many bytes of memory is not measured; "" if it is.

    PoCL hands out memory that is not there, and ends the process where it is touched.

    >>> small(1 << 30)
    'the device has 1024 MB of memory, of which the measurement would take more than an eighth'
    """
    what = "of which the measurement would take more than an eighth"
    return f"the device has {memory >> 20} MB of memory, {what}" if memory < 8 * RING_BYTES else ""


class CopyTimes(NamedTuple):
    """How much faster a copy is with streaming stores, and the least seconds that it takes so."""

    gain: float
    streaming: float


def _times(engine: Engine) -> dict[int, CopyTimes]:
    """The times of copies of those of `SIZES` whose rounds agree.

    Their source was just written, as the next layer of a network finds it.
    """
    ring = Ring(engine)
    runs = {(size, store): ring.run(size, store) for size in SIZES for store in COPIED_AHEAD}
    samples = turns(runs, ROUNDS, in_order=True)
    found = {}
    for size in SIZES:
        ordinary, streaming = (samples[size, store] for store in COPIED_AHEAD)
        ratios = [a / b for a, b in zip(ordinary, streaming, strict=True)]
        if is_steady(ratios):
            found[size] = CopyTimes(median(ratios), min(streaming))
    return found


class Ring:
    """Parts of one buffer, of the size of a tensor: each copy reads what the last one wrote.

    All runs go on where the last one has stopped: what they write was not used for long.
    """

    def __init__(self, engine: Engine) -> None:
        cl, self.at = opencl(), 0
        self.engine, self.queue = engine, cl.CommandQueue(engine.context, engine.device)
        self.buffer = cl.Buffer(engine.context, cl.mem_flags.READ_WRITE, RING_BYTES)
        # Memory is there once it was written.
        cl.enqueue_fill_buffer(self.queue, self.buffer, np.uint32(0), 0, RING_BYTES).wait()

    def run(self, nbytes: int, store: Store) -> Run:
        """Copies of ``nbytes``, read and written, for `RUN_BYTES`; one more before is not timed."""
        desc = MemoryDesc((nbytes // 8,), "f32", "a")
        tiles = desc.nelems // prod(COPIED_TILE.extents)
        each = -(-tiles // (ITEMS * self.engine.traits.compute_units))
        nest = Loop(0, each, spread=True), Loop(0)
        schedule = Schedule(COPIED_TILE, nest, COPIED_AHEAD[store], store)
        made = render_schedule(problem(desc, desc), schedule)
        kernel = self.engine.kernel(made.source, made.KERNEL)
        parts = [self.buffer.get_sub_region(start, desc.nbytes)
                 for start in range(0, RING_BYTES - desc.nbytes + 1, desc.nbytes)]  # fmt: skip
        sizes = (made.global_size,), (made.local_size,)
        count = RUN_BYTES // desc.nbytes

        def copy() -> None:
            k = -(-self.at // desc.nbytes)
            k = k if k < len(parts) else 0
            kernel.set_args(parts[k - 1], parts[k], *made.arguments)
            opencl().enqueue_nd_range_kernel(self.queue, kernel, *sizes)
            self.at = (k + 1) * desc.nbytes

        def run() -> float:
            copy()
            self.queue.finish()
            start = CLOCK()
            for _ in range(count):
                copy()
            self.queue.finish()
            return (CLOCK() - start) / count

        return run


def is_steady(samples: Sequence[float]) -> bool:
    """Whether repeated measurements are near each other."""
    low, middle, high = quantiles(samples, n=4, method="inclusive")
    return high - low <= SPREAD * middle


def crossing(sizes: Sequence[float], gains: Sequence[float]) -> float:
    """From which size on there is a gain: between the last without and the next, by logarithms.

    >>> round(crossing((4, 16, 64), (0.5, 0.9, 1.4)), 1)
    30.0
    """
    last = max((k for k, gain in enumerate(gains) if gain < GAIN), default=-1)
    if last == len(sizes) - 1:
        return float("inf")
    if last < 0:
        return sizes[0]
    around = slice(last, last + 2)
    return exp(np.interp(log(GAIN), np.log(gains[around]), np.log(sizes[around])))
