"""The generic family: element by element. It takes every reorder between buffers.

The only exception are 4-bit elements, which have no address of their own. Source and destination
need no common digits: the digits of the destination give the logical index, and the offset formula
of the source gives the address to read. On a CPU a work-item takes a run of elements and counts
their digits up. On a GPU, where neighbouring work-items should move neighbours, it takes one
element and computes its digits by division. This is a tenth to a third as fast as the other
families; with one element for each work-item it would be a quarter of that on a CPU.
"""

from __future__ import annotations

from dataclasses import dataclass
from math import prod

from ..tensors.desc import MemoryDesc
from .nibbles import refusal_elsewhere
from .problem import Problem
from .request import Request

LOCAL_SIZE = 64
"""The size of work-groups whose work-items take one element each."""
ITEMS_PER_UNIT = 4
"""Work-items per core, at the least, so that cores of unequal speed finish together."""
RUN = 512
"""The most elements of a work-item. 64 are three quarters as fast, 4096 as fast as 512."""


@dataclass(frozen=True, slots=True)
class GenericPlan:
    """The destination has ``places`` elements, padding included; a work-item takes ``run``.

    Whether work-items take runs at all (``counts``) is part of the structure, their length is not.
    There are ``group`` work-items in a work-group.
    """

    problem: Problem
    places: int
    run: int = 1
    counts: bool = False

    @property
    def group(self) -> int:
        """The work-items of a work-group, unless chosen otherwise."""
        return 1 if self.counts else LOCAL_SIZE

    @property
    def items(self) -> int:
        """The number of work-items."""
        return -(-self.places // self.run)

    def __str__(self) -> str:
        each = f"{self.run} of" if self.counts else "each of"
        return f"one work-item for {each} {self.places} places"


def refusal(p: Problem) -> str:
    """Why the family does not take the problem; it takes all moves between buffers.

    4-bit elements have a family of their own.
    """
    return p.why if p.has_image or p.step is not None else refusal_elsewhere(p)


def plan(request: Request) -> GenericPlan:
    """The plan. Its kernel heeds the choices; stores of single elements are never non-temporal."""
    p, traits = request.problem, request.traits
    count = places(p.dst)
    if not traits.is_cpu:
        return GenericPlan(p, count)
    share = count // (ITEMS_PER_UNIT * traits.compute_units)
    return GenericPlan(p, count, max(1, min(RUN, share)), counts=True)


def places(dst: MemoryDesc) -> int:
    """The number of elements of the destination, padding included; a pixel counts as one."""
    return prod(d.size for d in dst.placed)
