"""Law 8 for GPUs: whatever tile a work-group is given, the bytes are the same."""

from __future__ import annotations

import os
import random

import pytest

import clformats as cf
from clformats.schedule.local import GroupPlan
from clformats.schedule.schedule import ALL, VECTORS, Loop, Schedule, Store, Tile
from tests.choices_support import HURTING
from tests.device_support import check_reorder

COUNT = int(os.environ.get("CLFORMATS_TILES", "16"))


def random_schedule(rng: random.Random, plan: GroupPlan) -> Schedule:
    """Any schedule of a problem's loops, possible or not."""
    loops = range(len(plan.problem.nodes))
    steps = [rng.choice((ALL, 1, 1, 2, 3, 8, 32, 128)) for _ in loops]
    tile = Tile.of(steps, rng.choice(VECTORS), rng.choice(VECTORS))
    nest = tuple(Loop(k, spread=True) for k in rng.sample(loops, rng.randrange(len(loops) + 1)))
    store = plan.schedule.store
    if store.local:
        store = Store(local=rng.choice(VECTORS), dense=rng.random() < 0.5)
    return Schedule(tile, nest, store=store, group=1 << rng.randrange(3, 9))


@pytest.mark.parametrize("seed", range(COUNT))
def test_any_tile_moves_the_right_bytes(seed: int, as_gpu: cf.Stream) -> None:
    rng = random.Random(seed)  # noqa: S311  # tiles, not secrets
    bodies = [cf.make_plan(*p, as_gpu.engine.traits).body for p in HURTING]
    moved = [(p, b) for p, b in zip(HURTING, bodies, strict=True) if isinstance(b, GroupPlan)]
    (src, dst), rules = moved[seed % len(moved)]
    wish = random_schedule(rng, rules)
    choices = cf.Choices(schedule=str(wish), baked=rng.choice((None, True)))
    made = check_reorder(src, dst, as_gpu, seed=seed, front=5 * (seed % 2), choices=choices)
    body = made.plan.body
    assert isinstance(body, GroupPlan)
    own = made.plan.again(choices=cf.Choices(schedule=str(body))).body
    assert str(own) == str(body), "what a plan has can be asked for"
    # Memory that begins anywhere takes shorter vectors, and perhaps other words.
    if seed % 2 == 0:
        assert body.schedule.group == min(wish.group, as_gpu.engine.traits.group_size)


def test_a_tile_gives_the_same_bytes_where_values_are_computed(as_gpu: cf.Stream) -> None:
    """Padding stays zero, and what is summed onto is read once."""
    src, dst = HURTING[6]
    line = "tile b2 c16 d2 e of 4 | c* b* a* of 64 | ahead 0 | local 2 dense"
    for attr in (cf.Attr(src_scale=0.5), cf.Attr(beta=1)):
        for choices in (cf.Choices(), cf.Choices(schedule=line)):
            check_reorder(src, dst, as_gpu, attr=attr, choices=choices)
