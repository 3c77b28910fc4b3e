"""Boxes that are worth a try where a GPU is at hand: what the tuner measures in the local family.

What a box is worth depends on the memory, its banks and the compiler, so the candidates are spread
around the box of the rules: other runs on both sides and other sizes, each with the vectors, gaps,
groups and order of the rules; then, around the fastest, other ones of these.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from itertools import product

from .boxes import ALL, VECTORS, BoxSchedule
from .groupbox import GroupBox, order_of
from .local import LONGEST_VECTORS, LocalPlan
from .traits import Traits

RUNS = (256, 128, 512, 64)
"""Bytes of a run, the rules' first."""
BOXES = (16 << 10, 8 << 10, 32 << 10, 4 << 10)
"""Bytes of a box in local memory."""
GROUP_SIZES = (256, 128, 64, 512)
"""Work-items of a group."""


def boxes(plan: LocalPlan) -> Iterator[BoxSchedule]:
    """The schedules of other boxes for the problem of a plan; some may be equal."""
    nodes, items = plan.nodes, [t.nbytes for t in plan.problem.dtypes]
    for size, *runs in sorted(product(BOXES, RUNS, RUNS), key=_unusual):
        box = GroupBox(nodes)
        for side, run, item in zip(("src", "dst"), runs, items, strict=True):
            box.take(side, max(1, run // item))
        box.fill([*order_of(nodes, "src"), *order_of(nodes, "dst")], size // min(items))
        steps = tuple(ALL if k in box.whole else n for k, n in enumerate(box.sizes))
        yield replace(plan.schedule, steps=steps, vectors=LONGEST_VECTORS)


def _unusual(values: tuple[int, ...]) -> int:
    """How far a box and its runs are from what is usual."""
    size, *runs = values
    return BOXES.index(size) + sum(map(RUNS.index, runs))


def details(plan: LocalPlan, traits: Traits) -> Iterator[BoxSchedule]:
    """The schedules with the same box, those that differ in one thing first."""
    one = plan.schedule
    by_source = [k for k in reversed(order_of(plan.nodes, "src")) if k in one.order]
    orders = dict.fromkeys((one.order, tuple(sorted(one.order)), tuple(by_source)))
    longest = [max(n for n in VECTORS if n * t.nbytes <= 16) for t in plan.problem.dtypes]
    every = [
        replace(one, vectors=(load, store), tall=tall, gaps=gaps, group=group, order=order)
        for tall in VECTORS
        for load in (longest[0] >> n for n in range(3))
        for store in (longest[1] >> n for n in range(3))
        for gaps in (True, False)
        for group in GROUP_SIZES
        if group <= traits.group_size
        for order in orders
        if load and store
    ]
    yield from sorted(every, key=lambda other: _changes(one, other))


def _changes(one: BoxSchedule, other: BoxSchedule) -> int:
    """In how many things two schedules of one box differ."""
    pairs = [
        *zip(one.vectors, other.vectors, strict=True),
        (one.tall, other.tall), (one.gaps, other.gaps),
        (one.group, other.group), (one.order, other.order),
    ]  # fmt: skip
    return sum(a != b for a, b in pairs)
