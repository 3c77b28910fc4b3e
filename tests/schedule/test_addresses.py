"""What plans rely on of the addresses at which memory begins, and that they can do without."""

from __future__ import annotations

import pytest

import clformats as cf
from bench.cases import CASES, Case
from clformats.problems.thresholds import LINE_BYTES
from clformats.schedule import Traits
from clformats.schedule.scheduled import ScheduledPlan

D = cf.MemoryDesc
CPU = Traits(streamed_bytes=0)
GPU = Traits(is_cpu=False)


@pytest.mark.parametrize("traits", [CPU, GPU], ids=["cpu", "gpu"])
@pytest.mark.parametrize("case", CASES, ids=lambda c: c.name)
def test_a_plan_for_memory_that_begins_anywhere_relies_on_no_more(
    case: Case, traits: Traits
) -> None:
    streams = "tile b16 c16 of 16 | a b c | ahead 0 | stream 64"
    for choices in (cf.Choices(), cf.Choices(schedule=streams)):
        plan = cf.make_plan(*case.descriptors(), traits, choices=choices)
        assert max(plan.alignment) <= LINE_BYTES
        assert plan.beginning_at(LINE_BYTES) == plan
        for nbytes in (1, 2, 4, 8, 16, 32):
            other = plan.beginning_at(nbytes)
            assert max(other.alignment) <= nbytes
            assert (other.family, other.choices) == (plan.family, plan.choices)


@pytest.mark.parametrize(
    ("src", "dst", "traits", "alignment"),
    [
        ("f32:nchw:2x16x8x8", "f32:nchw:2x16x8x8", CPU, (1, 64)),
        ("f32:nchw:2x16x8x8", "f32:nchw:2x16x8x8", Traits(), (1, 1)),
        ("u8:nchw:2x3x5x7", "u8:nchw:2x3x5x7", CPU, (2, 64)),  # 210 bytes are no words of 4
        ("f32:nchw:2x16x8x8", "f32:nChw16c:2x16x8x8", CPU, (1, 64)),
        ("f32:nchw:2x16x8x8", "f32:nchw:2x16x8x8", GPU, (16, 16)),
        ("f32:nhwc:2x17x5x7", "f32:nChw16c:2x17x5x7", GPU, (1, 16)),
        ("u8:nchw:2x16x8x8", "u8:nhwc:2x16x8x8", GPU, (16, 16)),
        ("s32:aBcd24b:2x40x3x3", "s32:aBcd16b:2x40x3x3", GPU, (16, 16)),
    ],
)
def test_what_a_plan_relies_on(
    src: str, dst: str, traits: Traits, alignment: tuple[int, int]
) -> None:
    plan = cf.make_plan(D.parse(src), D.parse(dst), traits)
    assert plan.alignment == alignment, plan


@pytest.mark.parametrize("dtype", ["f32", "s32"])
@pytest.mark.parametrize("offset", [0, 1, 4, 16, 20, 32])
def test_copies_pass_the_cache_where_lines_begin(offset: int, dtype: str) -> None:
    """As words and converted."""
    dst = D.parse(f"{dtype}:a:4096:offset={offset}" if offset else f"{dtype}:a:4096")
    plan = cf.make_plan(D((4096,), "f32"), dst, Traits(streamed_bytes=0))
    assert isinstance(plan.body, ScheduledPlan)
    longest = {0: 64, 1: 0, 4: 16, 16: 64, 20: 16, 32: 64}[offset]
    assert plan.body.schedule.store.streams == longest
