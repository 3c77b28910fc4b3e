"""Sizes and strides that are known at execution only: what fits a pattern, and one plan for all.

A `Reorder` of descriptors with `RUNTIME_DIM` is there for those who cannot wait for a compiler: one
kernel, of the generic family, serves every size and every stride. For that each descriptor is
brought to the form of its pattern, because the same memory may be described with its digits in
another order (strides of other sizes fall in another order), and its kernel would be another text.
"""

from __future__ import annotations

from dataclasses import replace

from ..formats.digits import RUNTIME, Placed
from ..tensors.desc import MemoryDesc
from .computation import Computation
from .plan import Plan, families, make_plan
from .traits import Traits

WHY = "sizes known at execution only: one kernel for all of them"


def fits(desc: MemoryDesc, pattern: MemoryDesc) -> bool:
    """Whether a descriptor is what a reorder was made for: `RUNTIME` stands for any number.

    Strides that follow from unknown sizes are as unknown as those given so; the stride of a
    dimension of size 1 does not count.
    """
    if not pattern.has_runtime:
        return desc == pattern
    special = pattern.format.image or pattern.format.structure.tail
    if special and desc.format != pattern.format:
        return False
    known = {p.digit: p for p in pattern.placed}
    return (
        desc.dtype == pattern.dtype
        and desc.ndims == pattern.ndims
        and desc.format_kind == pattern.format_kind
        and all(p in (RUNTIME, n) for n, p in zip(desc.dims, pattern.dims, strict=True))
        and (desc.padding, desc.extra) == (pattern.padding, pattern.extra)
        and {p.digit for p in desc.placed} == set(known)
        and all(p.size == 1 or known[p.digit].stride in (RUNTIME, p.stride) for p in desc.placed)
    )


def as_pattern(desc: MemoryDesc, pattern: MemoryDesc) -> MemoryDesc:
    """The same memory, its digits in the pattern's order, constants where those have them."""
    mine = {p.digit: p for p in desc.placed}
    placed = tuple(
        Placed(
            p.digit,
            mine[p.digit].size,
            mine[p.digit].stride if p.stride == RUNTIME else p.stride,
            p.fixed_stride and p.stride != RUNTIME,
        )
        for p in pattern.placed
    )
    return MemoryDesc.of(replace(desc.geometry, format=pattern.format, placed=placed), desc.dtype)


def plan_for_all(
    src: MemoryDesc, dst: MemoryDesc, traits: Traits, computation: Computation | None
) -> Plan:
    """The plan whose kernel serves all sizes; ``src`` and ``dst`` come from `as_pattern`.

    There are two texts of it at most: for offsets of 32 and of 64 bits.
    """
    if computation is not None:
        operands = tuple(
            o if o.desc == dst else replace(o, desc=_in_logical_order(o.desc))
            for o in computation.operands
        )
        computation = replace(computation, operands=operands)
    plan = make_plan(src, dst, traits, "generic" if dst.nelems else None, computation)
    if plan.body is None:
        return plan
    names = [f.name for f in families(traits)]
    better = names[: names.index(plan.family)]
    return replace(plan, rejected=tuple((name, WHY) for name in better))


def _in_logical_order(desc: MemoryDesc) -> MemoryDesc:
    """A descriptor by strides, none of which is a constant."""
    placed = tuple(
        replace(p, fixed_stride=False) for p in sorted(desc.placed, key=lambda p: p.digit.dims)
    )
    return MemoryDesc.of(replace(desc.geometry, placed=placed), desc.dtype)
