"""Kernels of the copy family: one pass over a contiguous run."""

from __future__ import annotations

from dataclasses import replace

from ..schedule.copy import CopyPlan
from ..schedule.plan import Plan
from ..schedule.problem import Problem
from ..templates import render
from ..values.attr import OLD
from .computation import Computed, operands_of, types_of
from .source import Arguments, Launch
from .types import KernelConversion, conversion

WIDTH = 16


def launch(plan: Plan, body: CopyPlan) -> Launch:
    """The kernel and its arguments."""
    p = plan.problem
    types = conversion(body.word, body.word) if body.word else types_of(p)
    width = min(WIDTH, 1 << (body.count.bit_length() - 1))
    item = body.word.nbytes if body.word else max(t.nbytes for t in p.dtypes)
    per_item = max(body.run_bytes // item // width, 1) * width
    items = -(-body.count // per_item)
    wide = replace(p, word=body.word).is_wide
    arguments = Arguments(plan.choices.baked)
    arguments.values.update(count=body.count, src0=body.src0, dst0=body.dst0)
    for operand, start in zip(operands_of(p), p.operands0, strict=True):
        if operand.name != OLD:  # the destination's pointer has moved to the start of the run
            arguments.values[f"{operand.name}0"] = start
    steps = {n: _step(p, types, n, nontemporal=body.nontemporal) for n in {1, width}}
    source = render(
        "copy",
        wide=wide,
        types=types,
        width=width,
        per_item=per_item,
        nontemporal=body.nontemporal,
        steps=steps,
        declarations=arguments.declarations + types.parameters,
        constants=arguments.constants,
    )
    return Launch(source, arguments.given, wide, items, 1, types.buffers)


def _step(p: Problem, types: KernelConversion, width: int, *, nontemporal: bool) -> str:
    """The statement that moves ``width`` elements from ``i`` on."""
    value = types.load("src + i", width)
    if isinstance(types, Computed):
        value = types.call(value, _operands(p, types, width), width)
    if nontemporal and width > 1:
        return types.store_nontemporal(value, "dst + i", width)
    return types.store(value, "dst + i", width)


def _operands(p: Problem, types: Computed, width: int) -> list[str]:
    """``width`` elements of each operand: those from ``i`` on, or one for all."""
    texts = []
    for k, operand in enumerate(operands_of(p)):
        start = [] if operand.name == OLD else [f"{operand.name}0"]
        if p.nodes and p.nodes[0].operands[k].value:
            texts.append(types.load_operand(operand, " + ".join([*start, "i"]), width))
        else:
            texts.append(types.spread(types.load_operand(operand, "".join(start) or "0", 1), width))
    return texts
