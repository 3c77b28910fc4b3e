"""Blocks of which the source has few steps: 2 batches of 16, 3 inputs of 16."""

from __future__ import annotations

from math import prod

import pytest

import clformats as cf
from clformats.kernels.source import IDLE_BYTES
from clformats.problems.problem import Problem
from clformats.problems.refine import problem
from clformats.problems.traits import Traits
from clformats.schedule.cost import CostModel
from clformats.schedule.extents import tiles
from clformats.schedule.layout import lay_out
from clformats.schedule.nest import ordered, why_illegal
from clformats.schedule.runs import filled, lacking, moved, text_share, there, vectors
from clformats.schedule.schedule import Schedule, Tile
from clformats.schedule.search import best
from clformats.schedule.traffic import digits, traffic
from tests.schedules_support import parsed

CORES = Traits(compute_units=2, vector_bytes=32)
SCHEDULE = "tile b16 c16 d16 of 16 | a* b | ahead 4 | stream 64"


def of_batches(batches: int, read: str = "bfyx", block: int = 16, width: int = 112) -> Problem:
    """To blocks of batches and channels: a channels / block, b places, c batches, d channels."""
    dims, blocked = (batches, 256, width, width), f"bs_fs_yx_bsv{block}_fsv{block}"
    src, dst = (cf.MemoryDesc(dims, "f32", name) for name in (read, blocked))
    return problem(src, dst)


def tile(text: str) -> Tile:
    return Schedule.parse(f"tile {text} | a* b | ahead 0 | ordinary").tile


@pytest.mark.parametrize(("src", "dst", "lacks", "places"), [
    ("f32:oiyx:64x3x7x7", "f32:OIhw16i16o:64x3x7x7", [3], []),
    ("f32:oiyx:64x3x7x7", "f32:OIhw4i16o4i:64x3x7x7", [1, 3], []),
    ("f32:oiyx:64x6x7x7", "f32:OIhw4i16o4i:64x6x7x7", [2], []),
    ("f32:oiyx:64x16x7x7", "f32:OIhw4i16o4i:64x16x7x7", [], []),
    ("f32:oiyx:64x17x7x7", "f32:OIhw16i16o:64x17x7x7", [], []),
    ("f32:bfyx:2x3x5x7", "f32:aBcd16b:2x3x5x7:pad=0+0x2+4x0+0x0+0", [3], []),
    ("f32:aBcd16b:2x3x5x7", "f32:bfyx:2x3x5x7", [3], [3]),
])  # fmt: skip
def test_loops_have_the_steps_that_a_side_has(
    src: str, dst: str, lacks: list[int], places: list[int]
) -> None:
    p = parsed(src, dst)
    assert sorted(steps for _, steps in lacking(p, "src")) == lacks
    assert sorted(steps for _, steps in lacking(p, "dst")) == places


@pytest.mark.parametrize(("text", "loaded", "share"), [
    ("b16 c16 d16 of 16", 3 * 16, 3 / 16), ("b16 c8 d16 of 16", 8 * 16, 1),
    ("b16 d16 of 16", 16, 1),
])  # fmt: skip
def test_tiles_of_whole_blocks_know_what_is_padding(text: str, loaded: int, share: float) -> None:
    p = of_batches(3)
    assert vectors(p, tile(text), "src") == loaded
    assert moved(p, tile(text), "src") == 16 * loaded
    assert there(p, tile(text), of="src", on="src") == filled(p, tile(text)) == share


def test_what_the_destination_has_no_place_for_is_not_stored() -> None:
    """3 channels of a block of 16: rows of `bfyx` are those of 3."""
    p, whole = parsed("f32:aBcd16b:2x3x40x50", "f32:bfyx:2x3x40x50"), tile("b16 c16 of 16")
    assert (vectors(p, whole, "dst"), filled(p, whole)) == (3, 1)


@pytest.mark.parametrize(("src", "dst"), [
    ("f32:fyxb:1x64x20x24", "f32:bs_fs_yx_bsv16_fsv16:1x64x20x24"),
    ("f16:yxfb:1x64x20x24", "f16:bs_fs_yx_bsv32_fsv32:1x64x20x24"),
    ("u8:byxf:64x1x20x24", "f32:b_fs_yx_fsv16:64x1x20x24"),
])  # fmt: skip
def test_a_loop_of_one_step_is_no_run(src: str, dst: str) -> None:
    """Its stride is that of the run beside it: of one batch, every batch would be in its place."""
    p = parsed(src, dst)
    for one in tiles(p):
        assert vectors(p, one, "src") == len(lay_out(p, one).loads), one


def test_a_run_goes_on_through_steps_that_the_source_lacks() -> None:
    """Of blocks of 8 x 24 the source has one row: 2 vectors for each step of the outermost loop."""
    p = parsed("u8:ABcde8b24a:60x1x1x12x2", "f16:cdeab:60x1x1x12x2")
    one = tile("a2 c8 d24 of 16")
    assert vectors(p, one, "src") <= len(lay_out(p, one).loads) == 4


@pytest.mark.parametrize("src", ["f32:aBcd24b:2x7x8x8", "f32:bs_fs_yx_bsv32_fsv32:2x7x8x8"])
def test_no_vector_of_a_block_that_tables_lead_to_is_left_out(src: str) -> None:
    p = parsed(src, "f32:aBcd16b:2x7x8x8")
    for one in tiles(p):
        layout = lay_out(p, one)
        assert 2 * vectors(p, one, "src") >= len(layout.loads), one


@pytest.mark.parametrize(("src", "dst"), [
    ("f16:b_fs_yx_fsv16:2x7x8x8", "f16:aBcd24b:2x7x8x8"),
    ("f32:aBcd3b:2x3x9x9", "f32:aBcd16b:2x3x9x9"),
])  # fmt: skip
def test_tables_lead_to_blocks_that_there_are(src: str, dst: str) -> None:
    """Both have one block of channels, however many steps of padding a tile takes."""
    p = parsed(src, dst)
    counts = [n.size.value for n in p.nodes]
    along = len(digits(p, "src", counts)) - len(counts)
    assert along
    assert digits(p, "src", counts)[-1] == 1


def test_stores_of_padding_are_little_text() -> None:
    """A tile has more than `MOST_ELEMENTS` places, 8 x 32 x 32, if most are padding."""
    whole, part = tile("b8 c32 d32 of 16"), tile("b8 c8 d32 of 16")
    one, full, small = (of_batches(n, block=32, width=w) for n, w in ((1, 112), (32, 112), (1, 7)))
    assert text_share(one, whole) == 1 / 32 + 31 / 32 / 16
    assert text_share(one, part) == text_share(full, whole) == text_share(small, whole) == 1
    schedule = Schedule(whole, ordered(one, whole, (0, 1), 2))
    assert not why_illegal(one, schedule)
    for p in (full, small):
        assert "4096 elements" in why_illegal(p, schedule)


@pytest.mark.parametrize("batches", [1, 2, 16])
def test_no_tile_is_larger_than_the_buffers_of_an_idle_launch(batches: int) -> None:
    for block in (16, 32):
        for one in tiles(of_batches(batches, block=block)):
            assert 8 * prod(one.extents) <= IDLE_BYTES


def test_padding_is_not_read() -> None:
    """Tiles of two batches go to the rows of two, and cost what stores of the padding cost."""
    two, all_of_them = of_batches(2), of_batches(16)
    schedule = Schedule.parse(SCHEDULE)
    assert traffic(two, schedule, "src").rows == 2 * 16
    assert traffic(all_of_them, schedule, "src").rows == 16 * 16
    seconds, most = (CostModel(p, CORES).seconds(schedule) for p in (two, all_of_them))
    assert seconds < 0.7 * most


@pytest.mark.parametrize("read", ["bfyx", "nChw8c", "b_fs_yx_fsv4"])
@pytest.mark.parametrize("batches", [1, 2, 3])
def test_blocks_of_mostly_padding_are_taken_whole(batches: int, read: str) -> None:
    """Else each tile asks which of its batches there are: two to three times the time."""
    p = of_batches(batches, read)
    block = next(axis for axis, _ in lacking(p, "src"))
    assert best(p, CORES).tile.steps(block) == 16
