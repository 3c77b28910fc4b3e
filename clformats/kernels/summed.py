"""Kernels of the summed family: int8 weights, and the sums of them that follow."""

from __future__ import annotations

from ..formats.expr import Expr, Var, total
from ..formats.sums import Sums
from ..planner.plan import Plan
from ..planner.summed import SummedPlan
from .generic import LOCAL_SIZE, common_parts, place_offset
from .source import Arguments, Launch, render
from .winograd import conversions, step_text

_NUMBERS = {"s32": "int", "f32": "float"}


def launch(plan: Plan, body: SummedPlan) -> Launch:
    """The kernel and its arguments."""
    p = plan.problem
    sums = p.dst.sums
    if sums is None:
        raise TypeError("no sums follow the elements")
    arguments = Arguments()
    arguments.values["rows"] = body.rows
    parts = common_parts(p, arguments)
    parts["reads"], parts["writes"] = conversions(p)
    parts["step"] = step_text(p, arguments)
    parts["dst_offset"] = place_offset(p.dst, arguments)
    extents = [(d, arguments.text(f"extent{d}", p.dst.padded_dims[d])) for d in sums.dims]
    arguments.values["over_end"] = p.dst.padded_dims[sums.over]
    arguments.values["sums_at"] = p.dst.span_nbytes - p.dst.sums_nbytes
    bounds = {d: parts["bounds"][d] for d in sums.dims}
    counted = "" if sums.padded else " || ".join(f"{q} >= {hi}" for q, _, hi, _ in bounds.values())
    source = render(
        "summed",
        **parts,
        kept=extents[::-1],
        over=sums.over,
        counted=counted,
        none_at=" && ".join(f"p{d} == {n}" for d, n in sums.none_at),
        number=_NUMBERS[sums.dtype],
        factor=sums.factor,
        sum_index=_sum_index(sums, dict(extents), bounds),
        declarations=arguments.declarations,
    )
    rounded = -(-body.rows // LOCAL_SIZE) * LOCAL_SIZE
    return Launch(source, tuple(arguments.values.values()), p.is_wide, rounded, LOCAL_SIZE)


def _sum_index(
    sums: Sums, extents: dict[int, str], bounds: dict[int, tuple[str, str, str, str]]
) -> Expr:
    """Row-major over the dimensions of the sums."""
    index: Expr = total([])
    for d in sums.dims:
        extent = extents[d] if sums.padded else bounds[d][2]
        index = index * Var(extent) + Var(f"p{d}")
    return index
