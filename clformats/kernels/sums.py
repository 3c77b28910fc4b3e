"""Kernels of the sums that follow int8 weights."""

from __future__ import annotations

from typing import Any

from ..formats.expr import Expr, Var, total
from ..problems.problem import needs_64_bits
from ..schedule.sums import SumsPlan
from ..templates import filled
from ..tensors.desc import MemoryDesc
from .source import Arguments, Launch

_NUMBERS = {"s32": "int", "f32": "float"}
_PART = 16
"""The widest vectors of OpenCL C."""


def render(plan: SumsPlan) -> Launch:
    """The kernel and its arguments."""
    dst, sums = plan.dst, plan.dst.sums[0]
    arguments = Arguments()
    arguments.values["items"] = plan.items
    parts = _parts(plan, arguments)
    extents = dst.padded_dims if sums.padded else dst.dims
    sizes = {d: arguments.text(f"extent{d}", extents[d]) for d in sums.dims}
    index: Expr = total([])
    for d in sums.dims:
        index = index * Var(sizes[d]) + Var(f"p{d}")
    wide = needs_64_bits(dst.span_nbytes)
    source = filled(
        "sums",
        **parts,
        dst=str(dst.format),
        wide=wide,
        vectors=_vectors(plan.width),
        width=plan.width,
        counted="" if sums.padded else " && ".join(f"p{d} < {n}" for d, n in sizes.items()),
        none_at=" && ".join(f"p{d} == {n}" for d, n in sums.none_at),
        number=_NUMBERS[sums.dtype],
        stores=_stores(dst, arguments),
        sum_index=index,
        declarations=arguments.declarations,
    )
    rounded = -(-plan.items // plan.local_size) * plan.local_size
    return Launch(source, arguments.given, wide, rounded, plan.local_size)


def _vectors(width: int) -> list[tuple[str, int]]:
    """The vectors of the lanes: the width as in names of types, and where each begins."""
    each = min(width, _PART)
    return [("" if each == 1 else str(each), k) for k in range(0, width, each)]


def _stores(dst: MemoryDesc, arguments: Arguments) -> list[tuple[int, str]]:
    """The factor of each array of sums and the byte where it begins, one after the other."""
    found, at = [], dst.sums_at
    for k, sums in enumerate(dst.sums):
        found.append((sums.factor, arguments.text(f"sums_at{k}", at)))
        at += sums.nbytes(dst.dims, dst.padded_dims)
    return found


def _parts(plan: SumsPlan, arguments: Arguments) -> dict[str, Any]:
    """The loops, the indices of the sums in the lanes, and where the elements lie."""
    loops, lanes = list(enumerate(plan.loops)), [(f"w{k}", x) for k, x in enumerate(plan.lanes)]
    sizes = {k: arguments.text(f"size{k}", loop.size) for k, loop in loops}
    terms: list[Expr] = [
        Var(f"v{k}") * arguments.expression(f"stride{k}", loop.stride) for k, loop in loops
    ]
    # The index along a dimension: what the work-item's loops and those of its lanes say.
    indices: dict[int, list[Expr]] = {d: [] for d in plan.dst.sums[0].dims}
    for name, around in (("v", plan.loops), ("w", plan.lanes)):
        for k, loop in enumerate(around):
            if loop.dim is not None:
                indices[loop.dim].append(Var(f"{name}{k}") * loop.step)
    first, tail = "", ""
    if plan.cut and plan.width > 1:
        whole = arguments.text("whole", plan.cut)
        if plan.lanes[0].dim is None:
            tail = f"{whole} % {plan.width}"
        else:
            # The last vector begins earlier, and its numbers with it.
            first = f"min(v0 * {plan.width}, {whole} - {plan.width})"
            terms[0] = Var("first")
            indices[plan.lanes[0].dim][0] = Var("first") * plan.lanes[0].step
    return {
        "kept": [(f"v{k}", sizes[k]) for k, loop in loops if loop.dim is not None],
        "first": first,
        "over": [(f"v{k}", sizes[k]) for k, loop in reversed(loops) if loop.dim is None],
        "indices": [(f"p{d}", total(found)) for d, found in indices.items()],
        "kept_lanes": [(w, lane.size) for w, lane in lanes if lane.dim is not None],
        "summed_lanes": [(w, lane.size) for w, lane in lanes if lane.dim is None],
        "lane": total([Var(w) * lane.stride.value for w, lane in lanes]),
        "at": total([*terms, Var(arguments.text("dst0", plan.dst.offset0))]),
        "tail": tail,
    }
