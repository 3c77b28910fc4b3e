"""The generic family: one element after the other. Takes every buffer.

Every one, that is, whose elements have an address of their own: those of four bits have not. It
needs no common digits: the digits of the destination give the logical index, and the offset formula
of the source gives where to read. On a CPU a work-item takes a run of places and counts their
digits up, on a GPU, where neighbours are to be moved together, one place, whose digits it divides
out. It reaches a tenth to a third of what the others reach; one place for each work-item would be a
quarter of that on a CPU.
"""

from __future__ import annotations

from dataclasses import dataclass
from math import prod

from ..tensors.desc import MemoryDesc
from .nibbles import refusal_elsewhere
from .problem import Problem
from .request import Request
from .walk import ITEMS_PER_UNIT

LOCAL_SIZE = 64
"""Work-items in a group, where each takes one place."""
RUN = 512
"""Places that a work-item counts up at the most. 64 reach three quarters of it, 4096 as much."""


@dataclass(frozen=True, slots=True)
class GenericPlan:
    """The destination's digits have ``places`` values; a work-item takes ``run`` of them.

    Whether it counts at all (``counts``) is part of the structure, how far is not. There are
    ``group`` work-items in a group.
    """

    problem: Problem
    places: int
    run: int = 1
    counts: bool = False

    @property
    def group(self) -> int:
        """Work-items in a group, where nothing else is chosen."""
        return 1 if self.counts else LOCAL_SIZE

    @property
    def items(self) -> int:
        """How many work-items have a place."""
        return -(-self.places // self.run)

    def __str__(self) -> str:
        each = f"{self.run} of" if self.counts else "each of"
        return f"one work-item for {each} {self.places} places"


def refusal(p: Problem) -> str:
    """Why the family does not take the problem; it takes all buffers whose values are moved.

    Those of half bytes have their own.
    """
    return p.why if p.has_image or not p.moves_only else refusal_elsewhere(p)


def plan(request: Request) -> GenericPlan:
    """The plan. Its kernel heeds the choices; stores of single elements are never non-temporal."""
    p, traits = request.problem, request.traits
    count = places(p.dst)
    if not traits.is_cpu:
        return GenericPlan(p, count)
    share = count // (ITEMS_PER_UNIT[0] * traits.compute_units)
    return GenericPlan(p, count, max(1, min(RUN, share)), counts=True)


def places(dst: MemoryDesc) -> int:
    """The number of values that the destination's digits have together; pixels have one channel."""
    return prod(d.size for d in dst.placed)
