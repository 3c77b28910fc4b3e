"""The loops of a problem visit the same elements, however they are ordered and fused."""

from __future__ import annotations

import random
from typing import Any

import numpy as np
import pytest

import clformats as cf
from clformats.problems.problem import Problem
from clformats.problems.refine import problem, refine
from tests.schedules_support import ACTIVATIONS, SIZES, WEIGHTS, parsed

SWIZZLED = (
    "os_is_yx_isa8_osv8_isv4_swizzled_by_4", "os_is_yx_osa4_isa8_osv8_isv4_swizzled_by_4",
    "os_is_yx_osv32_isv4_swizzled_by_2", "is_o32_yx_isv32_swizzled_by_4",
)  # fmt: skip


def visited(p: Problem) -> Any:
    """The places on both sides and the guarded indices of every step of the loops, in order."""
    steps = np.zeros((1, 2 + len(p.guards)), np.int64)
    steps[0, :2] = p.src0, p.dst0
    for node in p.nodes:
        units = [node.unit if node.guard == g else 0 for g in range(len(p.guards))]
        along = np.array([node.src.value, node.dst.value, *units])
        more = np.arange(node.size.value)[:, None] * along
        steps = (steps[:, None] + more).reshape(-1, steps.shape[1])
    return steps[np.lexsort(steps.T)]


@pytest.mark.parametrize("seed", range(30))
def test_fused_loops_visit_what_the_digits_do(seed: int) -> None:
    """Also where blocks of a dimension are contiguous, and their indices are not."""
    r = random.Random(seed)  # noqa: S311  # cases, not secrets
    formats = r.choice([ACTIVATIONS, WEIGHTS, WEIGHTS + SWIZZLED])
    src, dst = r.choices(formats, k=2)
    dims = (r.choice(SIZES), r.choice(SIZES), r.choice((1, 3)), r.choice((1, 5)))
    check_visited(src, dst, dims)


@pytest.mark.parametrize("name", SWIZZLED)
def test_dealt_blocks_are_not_fused(name: str) -> None:
    """Their steps follow each other in memory; the index goes on elsewhere."""
    check_visited(name, name, (37, 45, 2, 3))


def check_visited(src: str, dst: str, dims: tuple[int, ...]) -> None:
    pair = cf.MemoryDesc(dims, "f32", src), cf.MemoryDesc(dims, "f16", dst)
    np.testing.assert_array_equal(visited(problem(*pair)), visited(refine(*pair)))


@pytest.mark.parametrize(
    ("src", "dst", "block"),
    [
        ("u8:b_fs_yx_fsv16:2x17x3x3", "u8:bfyx:2x17x3x3", 16),
        ("u8:bfyx:2x17x3x3", "u8:b_fs_yx_fsv16:2x17x3x3", 1),
        ("u8:OIhw4i16o4i:16x17x3x3", "u8:oiyx:16x17x3x3", 16),
        # The source begins two places before the destination: its blocks do not begin with those.
        ("u8:b_fs_yx_fsv16:2x17x3x3:pad=0+0x2+0x0+0x0+0", "u8:bfyx:2x17x3x3", 1),
        ("u8:b_fs_yx_fsv16:2x17x3x3:pad=0+0x16+0x0+0x0+0", "u8:bfyx:2x17x3x3", 16),
        # A part of a larger tensor may lie at the end of its memory.
        ("u8:aBcd16b:2x17x3x3:padded=2x17x3x3:strides=288x144x48x16", "u8:bfyx:2x17x3x3", 1),
    ],
)
def test_blocks_that_lie_in_memory_as_a_whole(src: str, dst: str, block: int) -> None:
    """Of the source, wherever it has an element of one."""
    p = parsed(src, dst)
    assert [g.block for g in p.guards] == [block] * len(p.guards)
    assert p.guards
