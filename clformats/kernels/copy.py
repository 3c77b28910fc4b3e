"""Kernels of the copy family: one pass over a contiguous run."""

from __future__ import annotations

from ..dtypes import as_dtype
from ..planner.copy import RUN_BYTES, CopyPlan
from ..planner.plan import Plan
from .source import Arguments, Launch, render
from .types import conversion

WIDTH = 16


def launch(plan: Plan, body: CopyPlan) -> Launch:
    """The kernel and its arguments."""
    src, dst = plan.problem.dtypes
    if body.word:
        src = dst = as_dtype({1: "u8", 2: "f16", 4: "f32"}[body.word])
    width = min(WIDTH, 1 << (body.count.bit_length() - 1))
    per_item = RUN_BYTES // max(src.nbytes, dst.nbytes) // width * width
    items = -(-body.count // per_item)
    arguments = Arguments()
    arguments.values.update(count=body.count, src0=body.src0, dst0=body.dst0)
    source = render(
        "copy",
        wide=plan.problem.is_wide,
        types=conversion(src, dst),
        width=width,
        per_item=per_item,
        nontemporal=body.nontemporal,
        declarations=arguments.declarations,
    )
    return Launch(source, tuple(arguments.values.values()), plan.problem.is_wide, items, 1)
