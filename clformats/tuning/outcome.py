"""What tuning a reorder has found: the records, and every measurement that led to them."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from statistics import median

from ..records import TuningRecord
from ..schedule.choices import RULES, Choices
from ..tensors.desc import MemoryDesc
from ..timing import Times


@dataclass(frozen=True, slots=True)
class Tried:
    """Choices that were tried: their times, or why they failed.

    ``times`` are seconds of one run each, of the search; ``final`` those of the contest of the best
    with the rules, interleaved with each other. ``failure`` says why a kernel did not build or was
    wrong. ``reason`` says why the choices are not recorded; it is empty for those that are, and for
    the rules, whose choices are `RULES`.
    """

    choices: Choices
    times: tuple[float, ...] = ()
    failure: str = ""
    final: tuple[float, ...] = ()
    reason: str = ""

    @property
    def seconds(self) -> float:
        """The median of the search; infinite without times."""
        return median(self.times) if self.times else math.inf

    @property
    def spread(self) -> Times | None:
        """Median and quartiles, of the contest where there was one; None without times."""
        samples = self.final or self.times
        return Times.of(samples) if samples else None


@dataclass(frozen=True, slots=True)
class Verdict:
    """The end of a contest: records, the times of each contestant, why others are not recorded.

    The times of the rules are those of both of its places.
    """

    records: tuple[TuningRecord, ...] = ()
    times: Mapping[Choices, Sequence[float]] = field(default_factory=dict)
    reasons: Mapping[Choices, str] = field(default_factory=dict)

    def measured(self, tried: Sequence[Tried], otherwise: str) -> tuple[Tried, ...]:
        """All that was tried, and what only the contest had, with its times and reasons.

        ``otherwise`` is the reason of those that did not take part in the contest.
        """
        known = {t.choices for t in tried}
        added = [Tried(c) for c in (*self.times, *self.reasons) if c not in known]
        return tuple(self._told(t, otherwise) for t in [*tried, *dict.fromkeys(added)])

    def _told(self, one: Tried, otherwise: str) -> Tried:
        recorded = one.choices == RULES or any(r.choices == one.choices for r in self.records)
        reason = self.reasons.get(one.choices, otherwise)
        if one.failure:
            reason = "it failed"
        elif not one.times and one.choices not in self.times:
            reason = "the time was up before it was measured"
        final = tuple(self.times.get(one.choices, ()))
        return Tried(one.choices, one.times, one.failure, final, "" if recorded else reason)


@dataclass(frozen=True, slots=True)
class Outcome:
    """The result of tuning a reorder: ``records``, empty if nothing was faster than the rules.

    ``measurements`` has every kernel that was tried, the fastest of the search first, with all its
    times, and why it is not recorded. ``tried`` is their number, ``failures`` has the messages of
    those that did not build or were wrong, ``seconds`` is the whole time. ``note`` has further
    remarks.
    """

    src: MemoryDesc
    dst: MemoryDesc
    records: tuple[TuningRecord, ...]
    tried: int
    failures: tuple[str, ...]
    seconds: float
    note: str
    measurements: tuple[Tried, ...] = ()

    def __str__(self) -> str:
        effort = f"{self.tried} kernel{'s' * (self.tried != 1)} in {self.seconds:.0f} s"
        lines = [f"{self.src} -> {self.dst}: {self.note} ({effort})"]
        lines += [f"  {r.choices}: {r.gain:.2f} times as fast as the rules" for r in self.records]
        lines += [f"  one kernel failed: {' '.join(text.split()):.200}" for text in self.failures]
        return "\n".join(lines)
