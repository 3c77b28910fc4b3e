"""The generic family: one work-item for each place in the destination. Takes every buffer.

Every one, that is, whose elements have an address of their own: those of four bits have not. It
needs no common digits: the digits of the destination give the logical index, and the offset formula
of the source gives where to read. Slower than the others by a factor of two to ten.
"""

from __future__ import annotations

from dataclasses import dataclass
from math import prod

from ..desc import MemoryDesc
from .choices import RULES, Choices
from .nibbles import refusal_elsewhere
from .problem import Problem
from .traits import Traits


@dataclass(frozen=True, slots=True)
class GenericPlan:
    """``places`` work-items, one for each value of the destination's digits."""

    problem: Problem
    places: int

    def __str__(self) -> str:
        return f"one work-item for each of {self.places} places"


def refusal(p: Problem) -> str:
    """Why the family does not take the problem; it takes all buffers whose values are moved.

    Those of half bytes have their own.
    """
    return p.why if p.has_image or not p.moves_only else refusal_elsewhere(p)


def plan(p: Problem, traits: Traits, *, nontemporal: bool, choices: Choices = RULES) -> GenericPlan:
    """The plan; ``nontemporal`` has no meaning for single elements. Its kernel heeds choices."""
    del traits, nontemporal, choices
    return GenericPlan(p, places(p.dst))


def places(dst: MemoryDesc) -> int:
    """The number of values that the destination's digits have together; pixels have one channel."""
    return prod(d.size for d in dst.placed)
