"""Kernels of the gather family: rows put together in boxes, which leave in whole lines."""

from __future__ import annotations

from ..schedule.gather import GatherPlan
from ..schedule.plan import Plan
from ..schedule.traits import LINE_BYTES
from ..templates import render
from .ahead import SECOND
from .computation import types_of
from .source import Arguments, Launch

WIDTH = 16


def launch(plan: Plan, body: GatherPlan) -> Launch:
    """The kernel and its arguments."""
    p, rows = plan.problem, body.rows
    types = types_of(p)
    item, line = p.dtypes[1].nbytes, LINE_BYTES // p.dtypes[0].nbytes
    width = min(WIDTH, rows.width)
    # Where bits are moved, a vector of words has as many of them as an instruction takes.
    moved = min(rows.width, LINE_BYTES // item) if types.moves_bits else width
    arguments = _arguments(plan, body)
    source = render(
        "gather",
        title=f"{p.src.format} -> {p.dst.format}: rows gathered from pieces of {rows.width}",
        wide=p.is_wide,
        types=types,
        width=width,
        piece=rows.width,
        moved=moved,
        words=moved * item // 4 if types.moves_bits else 0,
        moves=[(k, types.value_to_store(types.load(f"from + {k}", width), width))
               for k in range(0, rows.width, moved)],
        outer=len(rows.outer),
        images=rows.images is not None,
        by_blocks=body.by_blocks,
        nontemporal=body.nontemporal,
        asks=range(0, rows.width, line),
        turns=max(1, line // rows.width),
        hint=SECOND,
        # What a piece reaches beyond a row, and the lines that a box begins and ends in.
        lines=body.stage_bytes // LINE_BYTES + -(-rows.width * item // LINE_BYTES) + 2,
        declarations=arguments.declarations,
        constants=arguments.constants,
    )  # fmt: skip
    return Launch(source, arguments.given, p.is_wide, body.work_items, 1, types.buffers)


def _arguments(plan: Plan, body: GatherPlan) -> Arguments:
    """The numbers that the kernel is given."""
    p, rows = plan.problem, body.rows
    arguments = Arguments(plan.choices.baked)
    values = arguments.values
    values.update(total=body.total, chunk=body.chunk, held=body.held, size=rows.size)
    values.update(pieces=rows.pieces, step=rows.step.value, src0=p.src0, dst0=p.dst0)
    if body.nontemporal:
        values["ahead"] = body.ahead
    if rows.images:
        values.update(rows=rows.count.value, image=rows.images.src.value)
    for k, node in enumerate(rows.outer):
        values[f"size{k}"] = node.size.value
        values[f"src_stride{k}"], values[f"dst_stride{k}"] = node.src.value, node.dst.value
    return arguments
