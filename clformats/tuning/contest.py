"""The deciding measurement: reorders by several choices, checked, then timed in random order."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from itertools import cycle
from statistics import median
from time import monotonic

import numpy as np

from ..errors import DeviceError
from ..problems.traits import Traits
from ..reorders.profiles import traits_of
from ..reorders.reorder import Reorder
from ..reorders.trial import Case, DeviceTensor, with_canary
from ..runtime import Engine, Stream
from ..schedule.choices import RULES, Choices
from ..tensors.desc import MemoryDesc
from ..timing import Race, Settings, Slot, sampled, timed
from ..values.attr import Attr

LEAST_GAIN = 1.03
"""A smaller gain does not count."""
BAKED_GAIN = 1.05
"""The least gain of constant sizes, which cost a compilation for each shape."""
BATCH_SECONDS = 1e-3
"""Shorter reorders run several times before one wait."""
DEFAULT, AGAIN = "default", "default, again"
LEAST_SLOTS = 3
"""The plan by the rules, twice, and one other."""
IN_TURN_BYTES = 128 << 20
"""Of all pairs of tensors that take turns: four times a cache of 32 MB. Chosen."""


def turns(nbytes: int, traits: Traits) -> int:
    """With how many pairs of tensors of ``nbytes`` together a reorder is measured in turn.

    Programs seldom move a large tensor twice: again and again between the same two, a part of both
    stays in the cache, and stores that go through it seem faster than they are. Smaller tensors are
    measured in the cache, as programs use them right before and after.

    >>> [turns(n << 20, Traits()) for n in (16, 24, 100, 300)]
    [1, 6, 2, 1]
    """
    return math.ceil(IN_TURN_BYTES / nbytes) if traits.streams(nbytes) else 1


class Contest:
    """Reorders of one problem on an engine, by several choices."""

    def __init__(self, src: MemoryDesc, dst: MemoryDesc, engine: Engine) -> None:
        self.pair = src, dst
        self.engine = engine
        self.stream = Stream(engine)
        self._case = Case(src, dst, Attr(), 0)
        self._expected = self._case.answer
        case, count = self._case, turns(src.nbytes + dst.nbytes, traits_of(engine))
        self._places = [(DeviceTensor(src, case.source, engine),
                         DeviceTensor(dst, case.before, engine)) for _ in range(count)]  # fmt: skip
        self._turn = cycle([(read.memory, written.memory) for read, written in self._places])
        self._before = with_canary(self._case.before)
        self.rng = np.random.default_rng(0)

    def checked(self, choices: Choices) -> Reorder:
        """The reorder, after a run into the destination full of poison whose bytes were all right.

        Raises `DeviceError` if a byte is wrong.
        """
        (src, dst), engine = self.pair, self.engine
        reorder = Reorder(src, dst, engine, tuned=choices)
        read, written = self._places[0]
        written.write(self._before)
        reorder(self.stream, read.memory, written.memory).wait()
        got = written.read()
        if not np.array_equal(got, self._expected):
            wrong = np.flatnonzero(got != self._expected)
            raise DeviceError(
                f"{src} -> {dst} with {choices} moves {wrong.size} bytes wrong on "
                f"{engine.device.name}, the first at {wrong[0]}: please report this"
            )
        return reorder

    def times(
        self, contestants: Mapping[str, Choices], settings: Settings, end: float = math.inf
    ) -> dict[str, list[float]]:
        """Seconds of every run of each, and of the plan by the rules, which takes part twice.

        Kernels that are not built when half of the time until ``end`` (by ``monotonic``) is over
        do not take part. The result is empty if the others cannot be measured until ``end``.
        """
        everyone = {DEFAULT: RULES, AGAIN: RULES, **contestants}
        now = monotonic()
        slots: list[Slot] = []
        for name, choices in everyone.items():
            if len(slots) >= LEAST_SLOTS and monotonic() > (now + end) / 2:
                break
            slots.append(self.slot(name, choices))
        return sampled(slots, settings, self.rng, end)

    def slot(self, name: str, choices: Choices) -> Slot:
        """A contestant whose bytes were all right, in batches. Raises as `checked` does."""
        reorder = self.checked(choices)
        run = self._runner(reorder, 1)
        batch = max(1, min(100, int(BATCH_SECONDS / timed(run))))
        return Slot(name, self._runner(reorder, batch), batch)

    def _runner(self, reorder: Reorder, batch: int) -> Callable[[], object]:
        stream, turn = self.stream, self._turn

        def run() -> None:
            for _ in range(batch - 1):
                reorder(stream, *next(turn))
            reorder(stream, *next(turn)).wait()

        return run


def noise(times: Mapping[str, list[float]]) -> float:
    """The ratio of the two medians of the same kernel, at least 1."""
    one, other = median(times[DEFAULT]), median(times[AGAIN])
    return max(one, other) / min(one, other)


def is_faster(slow: list[float], fast: list[float], least: float, noisy: float = 1.0) -> bool:
    """Whether one is surely faster than another by more than ``least`` and the noise together."""
    return Race.unpaired(fast, slow).is_faster_by(least * noisy)
