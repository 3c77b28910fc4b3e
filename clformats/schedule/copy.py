"""The copy family: source and destination are one contiguous run in the same order."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

from ..tensors.dtypes import DType
from .body import Body
from .choices import Choices, either
from .coarse import words_of
from .nibbles import refusal_elsewhere
from .problem import Problem
from .traits import LINE_BYTES, Traits

RUN_BYTES = 16 << 10
"""The bytes for each work-item: enough to hide its start, few enough to balance the cores."""


@dataclass(frozen=True, slots=True)
class CopyPlan(Body):
    """A run of ``count`` elements, or of words of type ``word`` if nothing is converted."""

    parameter: ClassVar[str] = "run_bytes"
    problem: Problem
    count: int
    src0: int
    dst0: int
    word: DType | None
    nontemporal: bool
    run_bytes: int = RUN_BYTES

    @property
    def alignment(self) -> tuple[int, int]:
        """At multiples of how many bytes source and destination must begin."""
        word = self.word.nbytes if self.word else 1
        return word, LINE_BYTES if self.nontemporal else word

    @property
    def value(self) -> int:
        """What it has of the parameter."""
        return self.run_bytes

    @property
    def candidates(self) -> tuple[int, ...]:
        """The values of the parameter that are worth a try."""
        return tuple(1 << n for n in range(12, 21))

    def __str__(self) -> str:
        unit = f"{self.word.nbytes}-byte words" if self.word else "elements, converted"
        return f"{self.count} {unit}, {'non-temporal' if self.nontemporal else 'ordinary'} stores"


def refusal(p: Problem) -> str:
    """Why the family does not take the problem; empty if it does."""
    if p.nodes is None:
        return p.why
    if p.guards:
        return "a side has padding: its elements are not one run"
    if len(p.nodes) > 1:
        return f"{len(p.nodes)} loops do not fuse into one"
    if any(n.src.value != 1 or n.dst.value != 1 for n in p.nodes):
        return "the elements are not contiguous on both sides"
    if any(stride.value not in (0, 1) for n in p.nodes for stride in n.operands):
        return "the values of an operand do not lie in the same order"
    count, unit = p.nodes[0].size.value if p.nodes else 1, p.dst.dtype.unit
    whole = not any(n % unit for n in (count, p.src0, p.dst0))
    return "" if _moves_words(p) and whole else refusal_elsewhere(p)


def _moves_words(p: Problem) -> bool:
    """Whether the bytes of the run are moved unchanged."""
    src, dst = p.dtypes
    return src == dst and not p.computation


def plan(p: Problem, traits: Traits, choices: Choices) -> CopyPlan:
    """The plan for a problem that `refusal` accepts."""
    # Stores past the cache are of whole lines.
    nontemporal = traits.streams(p.nbytes) and traits.begin_bytes >= LINE_BYTES
    run_bytes = either(choices.run_bytes, RUN_BYTES)
    count = p.nodes[0].size.value if p.nodes else 1
    dst = p.dst.dtype
    if not _moves_words(p):
        streams = nontemporal and p.dst0 * dst.nbytes % 64 == 0
        return CopyPlan(p, count, p.src0, p.dst0, None, streams, run_bytes)
    sizes = tuple(n * dst.bits // 8 for n in (count, p.src0, p.dst0))
    word = max(w for w in (1, 2, 4) if all(n % w == 0 for n in (*sizes, traits.begin_bytes)))
    count, src0, dst0 = (n // word for n in sizes)
    aligned = word == 4 and dst0 % 16 == 0
    return CopyPlan(p, count, src0, dst0, words_of(word), nontemporal and aligned, run_bytes)
