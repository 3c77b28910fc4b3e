"""Law 8 for GPUs: whatever box a work-group is given, the bytes are the same."""

from __future__ import annotations

import os
import random

import pytest

import clformats as cf
from clformats.schedule.boxes import ALL, VECTORS, BoxSchedule
from clformats.schedule.local import LocalPlan
from tests.choices_support import HURTING
from tests.device_support import check_reorder

COUNT = int(os.environ.get("CLFORMATS_BOXES", "16"))


def random_box(rng: random.Random, plan: LocalPlan) -> BoxSchedule:
    """Any box of a problem's loops, possible or not."""
    loops = range(len(plan.nodes))
    steps = [rng.choice((ALL, 1, 1, 2, 3, 8, 32, 128)) for _ in loops]
    # A box has more than one step of some loop, else it is no line.
    steps[rng.choice(loops)] = rng.choice((2, 4, 16))
    while steps[-1] == 1:
        steps.pop()
    vectors = rng.choice(VECTORS), rng.choice(VECTORS)
    order = tuple(rng.sample(loops, rng.randrange(len(loops) + 1)))
    gaps, group = rng.random() < 0.5, 1 << rng.randrange(3, 9)
    return BoxSchedule(tuple(steps), vectors, rng.choice(VECTORS), gaps, group, order)


@pytest.mark.parametrize("seed", range(COUNT))
def test_any_box_moves_the_right_bytes(seed: int, as_gpu: cf.Stream) -> None:
    rng = random.Random(seed)  # noqa: S311  # boxes, not secrets
    local = [p for p in HURTING if cf.make_plan(*p, as_gpu.engine.traits).family == "local"]
    src, dst = local[seed % len(local)]
    rules = cf.make_plan(src, dst, as_gpu.engine.traits).body
    assert isinstance(rules, LocalPlan)
    box = random_box(rng, rules)
    choices = cf.Choices(box=str(box), baked=rng.choice((None, True)))
    made = check_reorder(src, dst, as_gpu, seed=seed, front=5 * (seed % 2), choices=choices)
    body = made.plan.body
    assert isinstance(body, LocalPlan)
    # Memory that begins anywhere takes shorter vectors, and perhaps other words.
    if seed % 2 == 0:
        assert body.group == min(box.group, as_gpu.engine.traits.group_size)


def test_a_box_gives_the_same_bytes_where_values_are_computed(as_gpu: cf.Stream) -> None:
    """Padding stays zero, and what is summed onto is read once."""
    src, dst = HURTING[6]
    line = "b2 c16 d2 e | vectors 4 4 by 2 | dense | 64 along c b a"
    for attr in (cf.Attr(src_scale=0.5), cf.Attr(beta=1)):
        for choices in (cf.Choices(), cf.Choices(box=line)):
            check_reorder(src, dst, as_gpu, attr=attr, choices=choices)
