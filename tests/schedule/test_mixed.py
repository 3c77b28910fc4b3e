"""Vectors that cross rows of the destination: shuffled together, and streamed."""

from __future__ import annotations

import pytest

import clformats as cf
from clformats.problems.problem import Problem
from clformats.schedule.extents import tiles
from clformats.schedule.layout import lay_out
from clformats.schedule.runs import mixed
from clformats.schedule.schedule import Schedule, Tile
from clformats.schedule.stores import streaming
from clformats.shuffles.sets import connected, mask_of, union
from tests.schedules_support import parsed

PAIRS = (
    ("f16:gs_oiyx_gsv16:4096x1x1x3x3", "f16:goiyx:4096x1x1x3x3"),
    ("f32:hwio:512x1024x5x5", "f32:ioyx:512x1024x5x5"),
    ("f16:OIhw16o16i:512x512x7x7", "f16:oiyx:512x512x7x7"),
    ("u8:OIhw4i16o4i:512x512x3x3", "u8:oiyx:512x512x3x3"),
    ("bf16:nChw8c:800x192x7x7", "bf16:bfyx:800x192x7x7"),
    ("f16:b_fs_yx_fsv4:11x256x57x57", "f16:yxfb:11x256x57x57"),
)


def tile_of(text: str) -> Tile:
    """The tile of ``"a16 b9 of 16"``."""
    return Schedule.parse(f"tile {text} | a | ahead 0 | ordinary").tile


def loads_together(p: Problem, tile: Tile) -> int:
    """The most loads of which stores are made that share one, at some remove."""
    layout = lay_out(p, tile)
    where = {e: k for k, load in enumerate(layout.loads) for e in load.elements if e is not None}
    masks = [mask_of(where[e] for n in store.elements[: store.width]
                     if n is not None and (e := layout.loaded[n]) is not None)
             for store in layout.stores]  # fmt: skip
    return max(union(masks[k] for k in part).bit_count() for part in connected(masks))


@pytest.mark.parametrize(("src", "dst"), PAIRS)
def test_mixed_vectors_are_those_that_stores_share(src: str, dst: str) -> None:
    p = parsed(src, dst)
    across = [tile for tile in tiles(p) if mixed(p, tile)]
    assert across
    for tile in across:
        assert mixed(p, tile) == loads_together(p, tile)


@pytest.mark.parametrize(("src", "dst", "tile", "expected"), [
    (*PAIRS[1], "a16 b25 of 16", 25),
    (*PAIRS[1], "a32 b25 of 16", 25),  # twice: 16 rows of 25 are whole vectors
    (*PAIRS[1], "a16 b16 of 16", 0),  # rows are not taken whole
    (*PAIRS[4], "b8 c49 of 16", 25),
    ("f32:OIhw8i8o:64x64x3x3", "f32:oiyx:64x64x3x3", "b8 d8 e9 of 8", 0),  # 8 runs, each the same
    ("f32:bfyx:16x48x56x56", "f32:byxf:16x48x56x56", "b16 c48 of 16", 0),  # rows of whole vectors
])  # fmt: skip
def test_rows_that_end_inside_vectors_are_mixed(
    src: str, dst: str, tile: str, expected: int
) -> None:
    assert mixed(parsed(src, dst), tile_of(tile)) == expected


def test_mixed_vectors_are_streamed_as_whole_lines_where_tiles_begin_with_lines() -> None:
    p = parsed(*PAIRS[0])
    narrow, wide = tile_of("b16 c9 of 16"), tile_of("a2 b16 c9 of 16")
    assert mixed(p, narrow)
    assert streaming(p, narrow, 64) == 32  # 288 bytes: every second tile begins inside a line
    assert streaming(p, wide, 64) == 64


@pytest.mark.parametrize(("src", "dst", "row"), [
    ("f16:bfyx:11x64x112x112", "f16:yxfb:11x64x112x112", 11),
    ("f16:OIhw8i8o:1000x560x5x5", "f16:ioyx:1000x560x5x5", 25),
])  # fmt: skip
def test_short_rows_of_the_destination_are_taken_whole(src: str, dst: str, row: int) -> None:
    tile = Schedule.parse(str(cf.make_plan(src, dst).body)).tile
    assert row in tile.extents
