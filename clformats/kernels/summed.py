"""Kernels of the summed family: int8 weights, and the sums of them that follow."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from ..formats.expr import Expr, Var, total
from ..formats.sums import Sums
from ..schedule.generic import LOCAL_SIZE
from ..schedule.plan import Plan
from ..schedule.problem import Problem
from ..schedule.summed import SummedPlan
from ..templates import render
from ..tensors.desc import MemoryDesc
from .computation import Computed
from .generic import common_parts, operand_texts, place_offset
from .source import Arguments, Launch
from .winograd import conversions, step_text

_NUMBERS = {"s32": "int", "f32": "float"}


def launch(plan: Plan, body: SummedPlan) -> Launch:
    """The kernel and its arguments."""
    p = plan.problem
    sums = p.dst.sums[0]
    arguments = Arguments()
    arguments.values["rows"] = body.rows
    parts = common_parts(p, arguments)
    parts["reads"], parts["writes"] = conversions(p)
    parts["step"] = step_text(p, arguments)
    parts["dst_offset"] = place_offset(p.dst, arguments)
    extents = [(d, arguments.text(f"extent{d}", p.dst.padded_dims[d])) for d in sums.dims]
    parts["moved"] = _moved(p, parts, arguments)
    over = [(d, arguments.text(f"over_end{d}", p.dst.padded_dims[d])) for d in sums.over]
    starts = list(_starts(p.dst, arguments))
    bounds = {d: parts["bounds"][d] for d in sums.dims}
    counted = "" if sums.padded else " || ".join(f"{q} >= {hi}" for q, _, hi, _ in bounds.values())
    source = render(
        "summed",
        **parts,
        kept=extents[::-1],
        over=over,
        counted=counted,
        none_at=" && ".join(f"p{d} == {n}" for d, n in sums.none_at),
        number=_NUMBERS[sums.dtype],
        stores=[(s.factor, start) for s, start in zip(p.dst.sums, starts, strict=True)],
        sum_index=_sum_index(sums, dict(extents), bounds),
        declarations=arguments.declarations + parts["writes"].parameters,
    )
    rounded = -(-body.rows // LOCAL_SIZE) * LOCAL_SIZE
    return Launch(source, tuple(arguments.values.values()), p.is_wide, rounded, LOCAL_SIZE)


def _moved(p: Problem, parts: dict[str, Any], arguments: Arguments) -> str:
    """The value of an element that is not transformed."""
    if p.step:
        return ""
    types, pointer = parts["writes"], f"src + ({parts['src_offset']})"
    if not isinstance(types, Computed):
        return str(types.read(pointer))
    texts = operand_texts(types, arguments, parts["dst_offset"])
    return types.call(types.load(pointer, 1), texts, 1)


def _starts(dst: MemoryDesc, arguments: Arguments) -> Iterator[str]:
    """The bytes where the arrays of sums begin, one behind the other."""
    at = dst.sums_at
    for k, sums in enumerate(dst.sums):
        yield arguments.text(f"sums_at{k}", at)
        at += sums.nbytes(dst.dims, dst.padded_dims)


def _sum_index(
    sums: Sums, extents: dict[int, str], bounds: dict[int, tuple[str, str, str, str]]
) -> Expr:
    """Row-major over the dimensions of the sums."""
    index: Expr = total([])
    for d in sums.dims:
        extent = extents[d] if sums.padded else bounds[d][2]
        index = index * Var(extent) + Var(f"p{d}")
    return index
