"""Sums that follow int8 weights: what a second kernel adds up of the bytes that the first stored.

So any family moves or transforms the elements, and the sums are those of the rounded values. They
are read in the order of memory, whole vectors at a time; each lane of a vector has a sum of its
own. The innermost digits of the destination are the lanes. The other digits are loops: of a
work-item where their dimension is summed over, else over the work-items. For ``OIhw4i16o4i``::

    lanes    i%4 (4, summed)  o%16 (16)        64 sums, of 4 neighbours each in the end
    loops    i/4%4, y, x, i/16                 fused into one: 64 bytes apart
    items    o/16

Where the innermost size is not that of a block, a vector is cut of it: of ``oihw`` 64 bytes of one
sum, with a rest that goes byte by byte; of ``hwio`` 64 sums, where the last vector overlaps the one
before and writes the same again.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, replace
from math import gcd, prod

from ..formats.digits import Placed
from ..problems.problem import Number, fixed
from ..problems.thresholds import GROUP_ITEMS, MANY_SUMS, SUM_CUTS, SUM_LANES
from ..problems.traits import Traits
from ..problems.words import part
from ..tensors.desc import MemoryDesc


@dataclass(frozen=True, slots=True)
class SumLoop:
    """``size`` values of a digit, ``stride`` bytes apart.

    Each adds ``step`` to the index of ``dim``, which is None where the digit is summed over.
    """

    size: Number
    stride: Number
    dim: int | None
    step: int = 0


@dataclass(frozen=True, slots=True)
class SumsPlan:
    """``lanes`` lie one after the other, innermost first; ``loops`` by rising stride.

    ``cut`` is the size of the innermost digit where vectors are cut of it, into the first loop.
    ``local_size`` work-items form a group.
    """

    dst: MemoryDesc
    lanes: tuple[SumLoop, ...]
    loops: tuple[SumLoop, ...]
    cut: Number | None
    local_size: int

    @property
    def width(self) -> int:
        """The number of lanes."""
        return prod(lane.size.value for lane in self.lanes)

    @property
    def items(self) -> int:
        """The number of work-items."""
        return prod(loop.size.value for loop in self.loops if loop.dim is not None)

    def __str__(self) -> str:
        return f"{self.items} work-items read the elements again, in {self.width} lanes"


def plan(dst: MemoryDesc, traits: Traits) -> SumsPlan | None:
    """The plan for the sums of a destination; None if it has none."""
    if not dst.sums:
        return None
    loops = sorted((_loop(p, dst) for p in dst.placed if p.size != 1),
                   key=lambda loop: loop.stride.value)  # fmt: skip
    return _in_groups(_with_lanes(SumsPlan(dst, (), (*loops,), None, GROUP_ITEMS)), traits)


def plan_for_all(dst: MemoryDesc, traits: Traits) -> SumsPlan:
    """The plan whose kernel serves all sizes; ``dst`` comes from `anysize.as_pattern`.

    Only blocks are lanes: without any the elements go byte by byte.
    """
    loops = tuple(_loop(p, dst) for p in reversed(dst.placed))
    return _in_groups(_with_blocks(SumsPlan(dst, (), loops, None, GROUP_ITEMS)), traits)


def _in_groups(p: SumsPlan, traits: Traits) -> SumsPlan:
    """On CPUs a few work-items are groups of their own, so that all cores have some."""
    return replace(p, local_size=1) if traits.is_cpu and p.items < MANY_SUMS else p


def _loop(p: Placed, dst: MemoryDesc) -> SumLoop:
    """A digit; every format that sums may follow has one dimension for each."""
    (d,) = p.digit.dims
    size, stride = Number(p.size, p.fixed_size), Number(p.stride, p.fixed_stride)
    # Where there are several arrays of sums, they are over the same dimensions.
    if d in dst.sums[0].dims:
        return SumLoop(size, stride, d, p.digit.step)
    return SumLoop(size, stride, None)


def _fused(loops: Iterable[SumLoop]) -> tuple[SumLoop, ...]:
    """Neighbours that are summed over, and continue each other, as one."""
    found: list[SumLoop] = []
    for loop in loops:
        before = found[-1] if found else loop
        continues = loop.stride.value == before.size.value * before.stride.value
        if found and continues and loop.dim is None and before.dim is None:
            found[-1] = replace(before, size=before.size * loop.size)
        else:
            found.append(loop)
    return tuple(found)


def _with_blocks(p: SumsPlan) -> SumsPlan:
    """Make lanes of the innermost loops, as far as blocks go."""
    lanes: list[SumLoop] = []
    left, width = list(p.loops), 1
    while left and left[0].size.fixed and left[0].stride.value == width < SUM_LANES:
        inner, outer = _split(left[0], gcd(left[0].size.value, SUM_LANES // width))
        if inner.size.value == 1:
            break
        lanes.append(inner)
        width *= inner.size.value
        left[:1] = [outer] if outer.size.value > 1 else []
    return replace(p, lanes=tuple(lanes), loops=tuple(left))


def _with_lanes(p: SumsPlan) -> SumsPlan:
    """Make lanes of the innermost blocks; where there are none, cut vectors of the first loop."""
    found = _with_blocks(p)
    found = replace(found, loops=_fused(found.loops))
    left = found.loops
    if found.lanes or not left or left[0].stride.value != 1:
        return found
    whole = left[0].size
    length = next((n for n in SUM_CUTS if n <= whole.value), 1)
    inner, outer = _split(left[0], length)
    count = whole.value // length if inner.dim is None else -(-whole.value // length)
    outer = replace(outer, size=Number(count))
    return replace(p, lanes=(inner,), loops=(outer, *left[1:]), cut=whole)


def _split(loop: SumLoop, length: int) -> tuple[SumLoop, SumLoop]:
    """A loop over ``length`` values, and one over the others."""
    inner = replace(loop, size=fixed(length))
    outer = replace(
        loop,
        size=part(loop.size, length),
        stride=loop.stride * inner.size,
        step=loop.step * length,
    )
    return inner, outer
