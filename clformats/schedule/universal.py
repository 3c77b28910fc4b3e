"""The universal family: what every schedule does, element by element, by one program for all.

The rules never take it. It stands in while a better kernel is built, and does the work where every
other kernel ends the compiler.
"""

from __future__ import annotations

from dataclasses import dataclass

from ..problems.problem import Problem
from ..problems.thresholds import ITEMS
from ..problems.traits import Traits
from ..problems.words import in_words
from .body import Body
from .choices import Choices

CONVERTED = ("f32", "f16", "bf16", "s32", "s8", "u8")
"""The types between which it converts; others it only moves."""
MOVED = {1: "u8", 2: "f16", 4: "f32", 8: "f64"}
"""A type of so many bytes, whose kernel moves the bits of every other one."""
LOOPS = GUARDS = 12


@dataclass(frozen=True, slots=True)
class UniversalPlan(Body):
    """The loops are an argument; about ``items`` work-items share them."""

    problem: Problem
    items: int

    @property
    def alignment(self) -> tuple[int, int]:
        """At multiples of how many bytes source and destination must begin: those of a word."""
        least = self.problem.word.nbytes if self.problem.word else 1
        return least, least

    def __str__(self) -> str:
        return f"element by element, in {self.items} work-items"


def serves(p: Problem) -> bool:
    """Whether the universal program executes a problem as it is."""
    src, dst = p.dtypes
    moves = src == dst and src.bits // 8 in MOVED and src.bits % 8 == 0
    return (
        not (p.exchanges or p.swaps)
        and (moves or {src.name, dst.name} <= set(CONVERTED))
        and (not p.why and len(p.nodes) <= LOOPS and len(p.guards) <= GUARDS)
        and (p.step is None and p.computation is None and not p.tables)
    )


def needs(p: Problem, traits: Traits) -> str:
    """Why the family does not take a problem that has loops; empty if it does."""
    served = serves(in_words(p, traits.begin_bytes))
    return "" if served else "the universal program has not its types, loops or computation"


def plan(p: Problem, traits: Traits, choices: Choices) -> UniversalPlan:
    """The plan for a problem that `needs` and the refusal of schedules accept."""
    del choices
    return UniversalPlan(in_words(p, traits.begin_bytes), ITEMS * traits.compute_units)
