"""The generic family: element by element. It takes every reorder between buffers.

Source and destination need no common digits: the digits of the destination give the logical index,
and the offset formula of the source gives the address to read. On a CPU a work-item takes a run of
elements and counts their digits up. On a GPU, where neighbouring work-items should move neighbours,
it takes one element and computes its digits by division. This is a tenth to a third as fast as the
other families; with one element for each work-item it would be a quarter of that on a CPU.

Where elements of the destination share bytes, work-items take *units* instead: the fewest whole
bytes that hold whole elements, two of 4 bits, four of 6 bits in three bytes. Each place of a unit
is looked up from its offset, so that bits that belong to nothing, or to another tensor, stay.
"""

from __future__ import annotations

from dataclasses import dataclass
from math import prod

from ..tensors.desc import MemoryDesc
from . import nibbles
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
    There are ``group`` work-items in a work-group. Places are units where elements share bytes:
    ``unit`` elements each.
    """

    problem: Problem
    places: int
    run: int = 1
    counts: bool = False
    unit: int = 1

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
        what = "places" if self.unit == 1 else f"units of {self.unit} elements, which share bytes"
        return f"one work-item for {each} {self.places} {what}"


def refusal(p: Problem) -> str:
    """Why the family does not take the problem; it takes all moves between buffers.

    4-bit elements of whole bytes have a family of their own.
    """
    if p.has_image or p.step is not None:
        return p.why
    return "" if nibbles.refusal(p) else "two elements of each byte are taken together"


def plan(request: Request) -> GenericPlan:
    """The plan. Its kernel heeds the choices; stores of single elements are never non-temporal."""
    p, traits = request.problem, request.traits
    unit = p.dst.dtype.unit
    count = places(p.dst) if unit == 1 else len(units(p.dst))
    if not traits.is_cpu:
        return GenericPlan(p, count, unit=unit)
    share = count // (ITEMS_PER_UNIT * traits.compute_units)
    return GenericPlan(p, count, max(1, min(RUN // unit, share)), counts=True, unit=unit)


def units(dst: MemoryDesc) -> range:
    """The units in which elements or padding of a destination lie, those between them too."""
    last = dst.offset0 + sum((p.size - 1) * p.stride for p in dst.placed)
    return range(dst.offset0 // dst.dtype.unit, last // dst.dtype.unit + 1)


def places(dst: MemoryDesc) -> int:
    """The number of elements of the destination, padding included; a pixel counts as one."""
    return prod(d.size for d in dst.placed)
