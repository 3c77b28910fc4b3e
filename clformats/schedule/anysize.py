"""Sizes and strides known at execution only: one plan for all descriptors of a pattern.

A `Reorder` of descriptors with `RUNTIME_DIM` builds a few programs, and waits for the compiler no
more: one kernel, of the generic family, serves every size and stride that they do not. Descriptors
of other sizes may list their digits in another order, because digits are ordered by stride. So each
descriptor is first brought to the order of its pattern; otherwise it would need another kernel.
"""

from __future__ import annotations

from dataclasses import replace

from ..formats.digits import RUNTIME
from ..tensors.desc import MemoryDesc
from .choices import RULES, Choices
from .plan import Plan, Request, families, plan_for

WHY = "sizes known at execution only, and enough programs built: one for all other sizes"


def fits(desc: MemoryDesc, pattern: MemoryDesc) -> bool:
    """Whether a descriptor fits the pattern of a reorder: `RUNTIME` stands for any number.

    Strides that follow from unknown sizes are unknown too; that of a dimension of 1 does not count.
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
    """The same memory, with the digits in the pattern's order and its constant strides."""
    mine = {p.digit: p for p in desc.placed}
    placed = tuple(
        replace(mine[p.digit], fixed_stride=False) if p.stride == RUNTIME
        else replace(p, size=mine[p.digit].size)
        for p in pattern.placed
    )  # fmt: skip
    return MemoryDesc.of(replace(desc.geometry, format=pattern.format, placed=placed), desc.dtype)


def plan_for_all(request: Request) -> Plan:
    """The plan whose kernel serves all sizes, of descriptors that come from `as_pattern`.

    There are at most two such kernels: for offsets of 32 and of 64 bits; where elements share
    bytes, one for each order of the strides in the destination.
    """
    dst, computation = request.dst, request.computation
    if computation is not None:
        operands = tuple(
            o if o.desc == dst else replace(o, desc=_in_logical_order(o.desc))
            for o in computation.operands
        )
        computation = replace(computation, operands=operands)
    generic = Choices(family="generic")
    plan = plan_for(replace(request, computation=computation, choices=generic))
    if plan.body is None:
        return plan
    names = [f.name for f in families(request.traits)]
    better = names[: names.index("generic")]
    return replace(plan, rejected=tuple((name, WHY) for name in better), choices=RULES)


def _in_logical_order(desc: MemoryDesc) -> MemoryDesc:
    """The same memory by strides in logical order, none of them a constant."""
    placed = tuple(
        replace(p, fixed_stride=False) for p in sorted(desc.placed, key=lambda p: p.digit.dims)
    )
    return MemoryDesc.of(replace(desc.geometry, placed=placed), desc.dtype)
