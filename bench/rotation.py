"""Times of devices that are no CPU: by the device's clock, over buffers used in turn.

A GPU's second-level cache holds the data of a small case, so each run takes the next of several
pairs of buffers, which together are much larger. Runs follow each other without a wait between
them, ours and everybody else's: what counts is the time on the device from the start of the first
to the end of the last, and no contestant pays for the way from the host to it.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from itertools import cycle
from math import ceil
from typing import Any

import numpy as np

import clformats as cf
from clformats import timing
from clformats.timing import Settings, Times

from .arena import Data

TURN_BYTES = 512_000_000
"""All pairs together: twice the largest cache of today's GPUs (256 MB)."""
MOST_PAIRS = 64
BATCH_SECONDS = 3e-3
"""A batch lasts about so long; its first run is a small part of it."""
LONGEST_BATCH = 512

Batch = Callable[[int], float]
"""Runs a move so many times, and gives the seconds from the first's start to the last's end."""
Pair = tuple[Any, Any]


def pairs_of(data: Data) -> int:
    """How many pairs of buffers a case takes turns with."""
    return _turns(data.read.size + data.written.size, data.memory)


def _turns(pair: int, memory: int) -> int:
    """How many pairs of so many bytes: at most an eighth of the memory."""
    return max(1, min(ceil(TURN_BYTES / pair), MOST_PAIRS, memory // 8 // pair))


def buffers(stream: cf.Stream, first: Pair) -> list[Pair]:
    """Pairs of OpenCL buffers like the first, which is one of them, each with its source."""
    import pyopencl as cl

    result, (read, written) = [first], first
    memory = int(stream.engine.device.global_mem_size)
    for _ in range(_turns(read.size + written.size, memory) - 1):
        one, other = (
            cl.Buffer(stream.context, cl.mem_flags.READ_WRITE, b.size) for b in (read, written)
        )
        cl.enqueue_copy(stream.queue, one, read)
        result.append((one, other))
    stream.wait()
    return result


def opencl_batch(enqueue: Callable[[Pair], Any], pairs: list[Pair]) -> Batch:
    """Commands of a profiling queue, timed by their events; ``enqueue`` returns pyopencl's."""

    def run(count: int) -> float:
        turn = cycle(pairs)
        events = [enqueue(next(turn)) for _ in range(count)]
        events[-1].wait()
        return float(events[-1].profile.end - events[0].profile.start) * 1e-9

    return run


def ours(reorder: cf.Reorder, stream: cf.Stream, pairs: list[Pair]) -> Batch:
    """A reorder of ours."""
    memories = {
        id(pair): (
            cf.Memory(reorder.src, stream.engine, buffer=pair[0]),
            cf.Memory(reorder.dst, stream.engine, buffer=pair[1]),
        )
        for pair in pairs
    }
    return opencl_batch(lambda pair: reorder(stream, *memories[id(pair)]).event, pairs)


@dataclass(frozen=True, slots=True)
class Batches:
    """A contestant whose turn is a batch of ``count`` runs, after a short one to warm up."""

    name: str
    batch: Batch
    count: int

    def visit(self, _: Settings) -> list[float]:
        """The seconds of one run."""
        self.batch(max(1, self.count // 8))
        return [self.batch(self.count) / self.count]


def race(
    batches: Mapping[str, Batch], settings: Settings, rng: np.random.Generator
) -> dict[str, Times]:
    """All batches in shuffled rounds: the seconds of one run of each."""
    slots = [Batches(name, batch, _count(batch)) for name, batch in batches.items()]
    return timing.race(slots, settings, rng)


def _count(batch: Batch) -> int:
    """How many runs make a batch of the wanted length."""
    batch(2)
    once = batch(4) / 4
    return max(4, min(LONGEST_BATCH, int(BATCH_SECONDS / max(once, 1e-9))))
