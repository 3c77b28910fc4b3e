"""4-bit elements go as bytes that exchange halves where they can, one by one where they cannot."""

from __future__ import annotations

import random

import pytest

import clformats as cf
from clformats.problems.refine import problem
from clformats.problems.words import in_words
from clformats.schedule.scheduled import ScheduledPlan
from tests.device_support import check_reorder
from tests.strategies import BY_RANK
from tests.tiers import tiered

D = cf.MemoryDesc
PAIRS = [
    ("bfyx", "byxf", (2, 34, 3, 10)),
    ("byxf", "bfyx", (2, 34, 3, 10)),
    ("bfyx", "b_fs_yx_fsv16", (2, 18, 6, 20)),
    ("b_fs_yx_fsv16", "bfyx", (3, 34, 5, 6)),
    ("b_fs_yx_fsv32", "b_fs_yx_fsv16", (3, 34, 5, 6)),
    ("bfyx", "b_fs_yx_fsv4", (2, 6, 5, 22)),
    ("oiyx", "os_is_yx_osv16_isv4", (34, 22, 1, 2)),
    ("oi", "os_is_osv16_isv2", (34, 46)),
    ("ab", "ba", (2, 2)),
    ("ab", "ba", (130, 514)),
]


@pytest.mark.parametrize(("src", "dst", "dims"), PAIRS)
@pytest.mark.parametrize("dtype", tiered(["s4", "u4"], ["s4"]))
def test_whole_bytes_are_scheduled(
    src: str, dst: str, dims: tuple[int, ...], dtype: str, stream: cf.Stream
) -> None:
    for front in (0, 2, 130):
        reorder = check_reorder(D(dims, dtype, src), D(dims, dtype, dst), stream, front=front)
        if stream.engine.traits.is_cpu:
            assert isinstance(reorder.plan.body, ScheduledPlan)
            assert reorder.plan.body.problem.word


@pytest.mark.parametrize(
    ("src", "dst", "why"),
    [
        (D((2, 17, 6, 20), "s4", "bfyx"), D((2, 17, 6, 20), "s4", "byxf"), "is odd"),
        (D((2, 17, 6, 20), "s4", "bfyx"), D((2, 17, 6, 20), "s4", "b_fs_yx_fsv16"), "end within"),
        (cf.MemoryDesc.parse("s4:ab:4x6:offset=1"), D((4, 6), "s4", "ba"), "is odd"),
        (D((4, 6), "s4", strides=(7, 1)), D((4, 6), "s4", "ba"), "is odd"),
        (D((4, 6), "s4", strides=(12, 2)), D((4, 6), "s4", "ba"), "lie apart"),
        (D((4, 6), "s4"), D((4, 6), "u4", "ba"), "change on the way"),
        (D((4, 6), "s4"), D((4, 6), "s8", "ba"), "change on the way"),
    ],
)
def test_what_is_no_whole_byte_goes_element_by_element(
    src: cf.MemoryDesc, dst: cf.MemoryDesc, why: str, stream: cf.Stream
) -> None:
    p = problem(src, dst)
    assert in_words(p, 64) is p
    family = check_reorder(src, dst, stream).plan.family
    assert family == "scheduled" or not stream.engine.traits.is_cpu


@pytest.mark.parametrize("seed", tiered(range(6), [0]))
def test_random_formats(seed: int, stream: cf.Stream) -> None:
    """Even sizes, padding and offsets: most are scheduled, and all are right."""
    rng, taken = random.Random(seed), 0  # noqa: S311  # formats, not secrets
    for _ in range(6):
        dims = tuple(2 * n for n in rng.sample([1, 2, 3, 4, 9, 17], 4))
        pads = [tuple((2 * rng.randrange(2), 2 * rng.randrange(3)) for _ in dims), None]
        names, dtype = rng.choices(BY_RANK[4], k=2), rng.choice(["s4", "u4"])
        try:
            src, dst = (D(dims, dtype, name, padding=rng.choice(pads)) for name in names)
            taken += check_reorder(src, dst, stream).plan.family == "scheduled"
        except cf.InvalidDescriptor:  # a format of weights has no padding
            continue
    assert taken or not stream.engine.traits.is_cpu


def test_any_schedule_moves_the_same(stream: cf.Stream) -> None:
    """A schedule that does not cover both bytes is another one, and the plan tells why."""
    src, dst = D((32, 64, 5, 6), "s4", "bfyx"), D((32, 64, 5, 6), "s4", "byxf")
    for line in (
        "tile b2 c2 d4 of 8 | a* b d | ahead 0 | ordinary",
        "tile b15 c2 of 4 | a* d | ahead 2 | ordinary",
        "tile c2 of 1 | a* b d | ahead 0 | ordinary",
    ):
        chosen = cf.Choices(schedule=line)
        assert str(cf.make_plan(src, dst, choices=chosen).body) == line
        check_reorder(src, dst, stream, choices=chosen)
    chosen = cf.Choices(schedule="tile b15 d16 of 16 | a* c | ahead 0 | ordinary")
    plan = cf.make_plan(src, dst, choices=chosen)
    assert "\n  words   (32:960,960) (15:1,64) (2:15,32) (32:30,1)\n" in str(plan)
    assert "2 steps of c, which move elements in words" in str(plan)
