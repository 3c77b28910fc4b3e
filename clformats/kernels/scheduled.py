"""Kernels of schedules: the tile is compiled, the loops over tiles are an argument.

A source says which types it moves, what it computes, how vectors are shuffled, and how they are
stored. Everything else, sizes, strides, the order of the loops, their split over work-items, where
elements end and how far ahead the prefetch runs, is in the argument ``nest``. So reorders of other
shapes, and other schedules of the same tile, share one program.
"""

from __future__ import annotations

from collections.abc import Sequence
from math import prod

from ..problems.problem import Problem
from ..problems.thresholds import MOST_LOOPS
from ..schedule.layout import TileLayout, lay_out
from ..schedule.nest import Nest, counted, going_on
from ..schedule.plan import Plan
from ..schedule.runs import steady
from ..schedule.schedule import Schedule
from ..schedule.scheduled import ScheduledPlan
from ..schedule.stores import line_groups, steps_together
from .key import keyed
from .masks import Guarded, guarded, reach_of, source_end
from .source import MOST_ARGUMENT_BYTES, Launch, packed
from .writer import source


def render(plan: Plan, body: ScheduledPlan) -> Launch:
    """The kernel and its arguments."""
    return render_schedule(body.problem, body.schedule, baked=bool(plan.choices.baked))


def render_schedule(p: Problem, schedule: Schedule, *, baked: bool = False) -> Launch:
    """The kernel of a schedule and its arguments. Raises `InvalidArgument` where it is none.

    ``baked``: the nest is a constant of the kernel, which serves only this problem.
    """
    nest = counted(p, schedule)
    layout = lay_out(p, schedule.tile)
    guards = guarded(p, schedule.tile, layout)
    key = keyed(p, schedule.tile, layout, schedule.store, [g.edge for g in guards])
    numbers = _numbers(p, schedule, layout, guards, nest, shares_lines=key.lines_shared > 1)
    others = 8 * (2 + len(key.types.parameters))
    # Numbers of 4 bytes where those of 8 are too long; where that does not do, none.
    fits = [n for n in (8, 4) if others + n * len(numbers) <= MOST_ARGUMENT_BYTES]
    if len(fits) < 2 and max(map(abs, numbers)) >= 1 << 31:
        fits = []
    size = 0 if baked or not fits else fits[0]
    return Launch(
        source(key, () if size else tuple(numbers), len(numbers) if size == 4 else 0),
        (packed(numbers, size),) if size else (),
        wide=True, global_size=nest.items, local_size=1, buffers=key.types.buffers,
    )  # fmt: skip


def _numbers(
    p: Problem, schedule: Schedule, layout: TileLayout, guards: Sequence[Guarded], nest: Nest, *,
    shares_lines: bool,
) -> list[int]:  # fmt: skip
    """The fields of the kernel's structure ``Nest``, in their order."""
    nodes, loops = p.nodes, nest.loops
    along = [nodes[c.axis] for c in loops]
    once = len(loops) == len(nest.counts)  # no loop is left inside a work-item: one that runs once
    columns = [
        [*(c.step for c in loops), 1], [*(c.size for c in loops), 1],
        [*(c.extent for c in loops), 1], [*(c.outer for c in loops), -1], [*nest.counts],
        steady(along, "src"), steady(along, "dst"),
        *([n.operands[j].value for n in along] for j in range(len(p.operands0))),
        *([n.unit if n.guard == g.number else 0 for n in along] for g in guards),
        *([n.steps_of(t) for n in along] for t in range(len(p.tables))),
    ]  # fmt: skip
    rows = [len(loops) + once, len(nest.counts), schedule.ahead]
    rows += [p.src0, p.dst0, *p.operands0]
    for column in columns:
        rows += [*column, *[0] * (MOST_LOOPS + 1 - len(column))]
    for k in layout.axes:
        rows += [nodes[k].src.value, nodes[k].dst.value, *(n.value for n in nodes[k].operands)]
    for g in guards:
        rows += [g.lo, g.hi, g.end, g.top]
    rows += [source_end(p), source_end(p) - reach_of(p, layout, "src")]
    rows += [d.span_nbytes * 8 // d.dtype.bits - 1 for d in p.operand_descs]
    for table in p.tables:
        rows += [table.first, *(jump for _, jump in table.jumps)]
    if schedule.store.staged:
        run = prod(steps_together(p, schedule.tile, schedule.nest, schedule.store.staged))
        rows += [len(loops) - schedule.store.staged, reach_of(p, layout, "dst"), run]
    if schedule.store.lines:
        rows.append(line_groups(p, schedule.tile, schedule.nest))
    if shares_lines:
        rows.append(int(bool(loops) and loops[-1].axis in going_on(p, schedule.tile, "src")))
    return rows
