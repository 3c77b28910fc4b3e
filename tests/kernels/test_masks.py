"""Which tiles read outside of the source's memory: counted tile by tile."""

from __future__ import annotations

from itertools import product

import pytest

import clformats as cf
from clformats.kernels.masks import reads_outside, source_end
from clformats.kernels.scheduled import render_schedule
from clformats.problems.problem import Problem
from clformats.problems.refine import problem
from clformats.problems.traits import Traits
from clformats.schedule.layout import lay_out
from clformats.schedule.runs import is_shifted, steady
from clformats.schedule.schedule import Schedule, Tile
from clformats.schedule.search import ranked

D = cf.MemoryDesc

MOVES = [
    # Blocks hold their padding: edges are inside.
    (D((2, 17, 5, 6), "f32", "aBcd16b"), D((2, 17, 5, 6), "f32", "abcd"), False),
    (D((2, 31, 5, 6), "f16", "aBcd16b"), D((2, 31, 5, 6), "s8", "acdb"), False),
    (D((20, 40, 7), "u8", "ABc32a32b"), D((20, 40, 7), "u8", "abc"), False),
    # The last pixel's 17 channels are followed by nothing.
    (D((2, 17, 5, 6), "f32", "acdb"), D((2, 17, 5, 6), "f32", "aBcd16b"), True),
    # The last rows of an image whose channels fill no block.
    (D((2, 17, 5, 6), "f32", "abcd"), D((2, 17, 5, 6), "f32", "aBcd16b"), True),
    # Words of eight elements, and elements of words.
    (D((64, 40), "u4", "aB16b"), D((64, 40), "u4", "ba"), None),
    (D((64, 40), "u4", "aB16b"), D((64, 40), "f16", "ab"), None),
    # Padding on the destination's side begins before the source.
    (D((2, 16, 5, 6), "f32", "abcd"), D((2, 16, 5, 6), "f32", "acdb",
                                       padding=((0, 0), (0, 0), (0, 0), (3, 3))), None),
]  # fmt: skip


def begins(p: Problem, tile: Tile) -> list[int]:
    """Where each tile of a problem begins in the source."""
    along = []
    for k, (node, stride) in enumerate(zip(p.nodes, steady(p.nodes, "src"), strict=True)):
        steps, size = tile.steps(k), node.size.value
        last = size - steps if is_shifted(p, node) else size
        along.append([min(at, last) * stride for at in range(0, size, steps)])
    return [p.src0 + sum(at) for at in product(*along)]


@pytest.mark.parametrize(("src", "dst", "outside"), MOVES)
def test_tiles_that_read_outside_are_found(
    src: cf.MemoryDesc, dst: cf.MemoryDesc, outside: bool | None
) -> None:
    p = problem(src, dst)
    found = set()
    for tile in dict.fromkeys(s.tile for s in ranked(p, Traits())):
        layout = lay_out(p, tile)
        places = layout.places(p, "src")
        read = [(at + first, at + first + v.width) for at in begins(p, tile)
                for first, v in zip(places, layout.loads, strict=True)]  # fmt: skip
        some = any(first < 0 or end > source_end(p) for first, end in read)
        assert reads_outside(p, tile, layout) == some, tile
        found.add(some)
    assert outside is None or outside in found


def test_only_edges_of_plain_channels_are_loaded_with_a_check() -> None:
    """17 channels in blocks of 16 are whole vectors; one of the last pixel's ends outside."""
    blocked, plain, channels = (D((2, 17, 16, 16), "f32", x) for x in ("aBcd16b", "abcd", "acdb"))
    for src, dst, text, checks in (
        (blocked, plain, "tile c16 d16 of 16 | a* b d | ahead 0 | ordinary", False),
        (channels, blocked, "tile c16 d16 of 16 | a* b c | ahead 0 | ordinary", True),
    ):
        source = render_schedule(problem(src, dst), Schedule.parse(text)).source
        assert "= masked_16(LOAD16(" in source or checks, text
        assert ("load_edge" in source) == checks, text
