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

from collections.abc import Iterator
from dataclasses import dataclass, replace
from math import prod
from typing import ClassVar

from ..problems.problem import Problem
from ..problems.thresholds import GENERIC_GROUPS, GENERIC_RUN, GROUP_ITEMS, ITEMS_PER_UNIT
from ..problems.traits import Traits
from ..tensors.desc import MemoryDesc
from .body import Body
from .choices import Choices


@dataclass(frozen=True, slots=True)
class GenericPlan(Body):
    """The destination has ``places`` elements, padding included; a work-item takes ``run``.

    Whether work-items take runs at all (``counts``) is part of the structure, their length is not.
    There are ``group`` work-items in a work-group. Places are units where elements share bytes:
    ``unit`` elements each; in an image they are pixels.
    """

    parameter: ClassVar[str] = "local_size"
    problem: Problem
    places: int
    run: int = 1
    counts: bool = False
    unit: int = 1
    group: int = 1

    @property
    def value(self) -> int:
        """What it has of the parameter."""
        return self.group

    def candidates(self, traits: Traits) -> Iterator[GenericPlan]:
        """The same in groups of other sizes."""
        yield self
        sizes = (n for n in GENERIC_GROUPS if n <= traits.group_size)
        yield from (replace(self, group=n) for n in sizes)

    @property
    def items(self) -> int:
        """The number of work-items."""
        return -(-self.places // self.run)

    def __str__(self) -> str:
        each = f"{self.run} of" if self.counts else "each of"
        what = "pixels" if self.problem.dst.format.image else "places"
        what = what if self.unit == 1 else f"units of {self.unit} elements, which share bytes"
        return f"one work-item for {each} {self.places} {what}"


def refusal(p: Problem) -> str:
    """Why the family does not take the problem; it takes all moves between buffers."""
    return p.why if p.has_image or p.step is not None else ""


def plan(p: Problem, traits: Traits, choices: Choices) -> GenericPlan:
    """The plan; stores of single elements are never non-temporal."""
    group = choices.local_size or (1 if traits.is_cpu else GROUP_ITEMS)
    unit = p.dst.dtype.unit
    count = places(p.dst) if unit == 1 else len(units(p.dst))
    if not traits.is_cpu:
        return GenericPlan(p, count, unit=unit, group=group)
    share = count // (ITEMS_PER_UNIT * traits.compute_units)
    run = max(1, min(GENERIC_RUN // unit, share))
    return GenericPlan(p, count, run, counts=True, unit=unit, group=group)


def units(dst: MemoryDesc) -> range:
    """The units in which elements or padding of a destination lie, those between them too."""
    last = dst.offset0 + sum((p.size - 1) * p.stride for p in dst.placed)
    return range(dst.offset0 // dst.dtype.unit, last // dst.dtype.unit + 1)


def places(dst: MemoryDesc) -> int:
    """The number of elements of the destination, padding included; a pixel counts as one."""
    return prod(d.size for d in dst.placed)
