"""Schedules as text, and the vectors and shuffles of their tiles run in Python."""

from __future__ import annotations

import random
from collections.abc import Sequence
from dataclasses import replace
from itertools import product
from math import prod

import pytest

import clformats as cf
from clformats.errors import InvalidArgument
from clformats.problems.arithmetic import alignment, footprint
from clformats.problems.computation import from_attr
from clformats.problems.problem import Node, Problem
from clformats.problems.refine import problem
from clformats.problems.thresholds import LINE_BYTES
from clformats.problems.traits import Traits
from clformats.schedule import runs
from clformats.schedule.cost import CostModel
from clformats.schedule.extents import tiles
from clformats.schedule.layout import lay_out
from clformats.schedule.nest import counted, is_legal_extent
from clformats.schedule.runs import begins_blocks, moves, run_of, steady
from clformats.schedule.schedule import Schedule, Store, Tile
from clformats.schedule.search import best, ranked
from clformats.schedule.stores import streaming
from tests.schedules_support import parsed, random_problem, random_schedule

TEXT = "tile b16 c16 of 16 | a* c*98 b c | ahead 12 | stream 64"


def to_byxf(dims: tuple[int, ...] = (2, 64, 14, 14)) -> Problem:
    return problem(cf.MemoryDesc(dims, "f32", "bfyx"), cf.MemoryDesc(dims, "f32", "byxf"))


@pytest.mark.parametrize("store", ["ordinary", "stream 64", "stream 16", "staged 2", "lines"])
def test_a_schedule_prints_as_it_is_parsed(store: str) -> None:
    text = TEXT.replace("stream 64", store)
    schedule = Schedule.parse(text)
    assert str(schedule) == text
    assert schedule.store.is_ordinary == (store == "ordinary")


@pytest.mark.parametrize(
    ("streams", "lines", "staged"),
    [(64, True, 0), (64, False, 2), (0, True, 2), (48, False, 0), (-16, False, 0), (0, False, -1)],
)
def test_a_store_is_of_one_kind(streams: int, lines: bool, staged: int) -> None:
    with pytest.raises(cf.InvalidArgument, match="expected one of them"):
        Store(streams, lines, staged)


@pytest.mark.parametrize("text", [
    "", "tile b16 of 16 | a | ahead 0", "tile B16 of 16 | a | ahead 0 | ordinary",
    "tile b16 of x | a | ahead 0 | ordinary", "tile b16 of 16 | a? | ahead 0 | ordinary",
    "tile b16 of 16 | a | ahead | ordinary", "tile b16 of 16 | a | ahead 0 | stream",
    "tile b0 of 16 | a | ahead 0 | ordinary", "tile b16 of 16 | a*0 | ahead 0 | ordinary",
    "tile b16 of 16 | a | ahead 0 | stream 48", "tile b16 of 16 | a | ahead 0 | stream 128",
    "tile b16 of 16 | a | ahead 0 | staged 0", "tile b16 of 16 | a | ahead 0 | stream 8",
    "tile b16 of 16 | a | ahead 0 | stream 16 16",
    "tile b16 of \u00b2 | a | ahead 0 | ordinary", "tile | a | ahead 0 | ordinary",
    # Numbers that no kernel's argument holds.
    "tile b16 of 16 | a | ahead 9999999999999999999 | ordinary",
    "tile b16 of 16 | a*9999999999999999999 | ahead 0 | ordinary",
])  # fmt: skip
def test_another_text_is_refused(text: str) -> None:
    with pytest.raises(InvalidArgument, match="expected"):
        Schedule.parse(text)


@pytest.mark.parametrize("text", [
    "tile b16 c16 of 16 | a b | ahead 0 | ordinary",  # c is not visited
    "tile b16 c16 of 16 | a b c* | ahead 0 | ordinary",  # work-items inside
    "tile b16 c16 of 16 | a b c c:2 | ahead 0 | ordinary",  # blocks inside
    "tile b16 c16 d2 of 16 | a b c | ahead 0 | ordinary",  # no such loop
    "tile b512 c16 of 16 | a b c | ahead 0 | ordinary",  # longer than the loop
    "tile b16 c16 of 32 | a b c | ahead 0 | ordinary",
])  # fmt: skip
def test_a_schedule_that_does_not_fit_is_refused(text: str) -> None:
    with pytest.raises(InvalidArgument, match="does not fit"):
        counted(to_byxf(), Schedule.parse(text))


@pytest.mark.parametrize("seed", range(40))
def test_shuffles_bring_every_element_to_its_place(seed: int) -> None:
    r = random.Random(seed)  # noqa: S311  # cases, not secrets
    p = random_problem(r)
    schedule = random_schedule(r, p)
    assert Schedule.parse(str(schedule)) == schedule
    layout = lay_out(p, schedule.tile)
    program = layout.program(p.dtypes[1].nbytes, p.dtypes[1].nbytes)
    stored = program.run([v.elements for v in layout.loads])
    for vector, lanes in zip(layout.stores, stored, strict=True):
        wanted = [None if n is None else layout.loaded[n] for n in vector.elements[: vector.width]]
        assert lanes[: vector.width] == wanted


def _place(p: Problem, nodes: Sequence[Node], side: str, row: Sequence[int]) -> int:
    """How far a step of each of these loops is from the first one, by the tables, too."""
    at = sum(a * b for a, b in zip(row, steady(nodes, side), strict=True))
    for t, table in enumerate(p.tables if side == "src" else ()):
        moved = sum(a * n.steps_of(t) for a, n in zip(row, nodes, strict=True))
        at += table.place(table.first + moved) - table.place(table.first)
    return at


@pytest.mark.parametrize("seed", range(40))
def test_the_loads_of_a_tile_are_neighbours_and_have_all_elements(seed: int) -> None:
    r = random.Random(seed)  # noqa: S311  # cases, not secrets
    p = random_problem(r)
    for tile in tiles(p):
        layout = lay_out(p, tile)
        nodes = [p.nodes[k] for k in layout.axes]
        for side, vectors in (("src", layout.loads), ("dst", layout.stores)):
            for v in vectors:
                first = _place(p, nodes, side, v.row) + v.shift
                found = [n for n in v.elements if n is not None]
                second = _place(p, nodes, side, v.last or v.row) + v.shift - (len(found) - 1)
                places = [_place(p, nodes, side, layout.steps[n]) - k for k, n in enumerate(found)]
                before = places.count(first)
                parts = [second] * (len(found) - before) if v.last else []
                assert places == [first] * before + parts
        loaded = {n for v in layout.loads for n in v.elements if n is not None}
        assert loaded == {n for n in layout.loaded if n is not None}


def test_the_best_schedule_is_a_candidate_that_streams_large_tensors_only() -> None:
    traits = Traits()
    small, large = to_byxf((1, 64, 14, 14)), to_byxf((16, 64, 112, 112))
    assert best(small, traits) in set(ranked(small, traits))
    assert best(small, traits).store.streams == 0
    assert best(large, traits).store.streams > 0


@pytest.mark.parametrize("nbytes", [0, 12345, 100 << 20])
def test_streaming_stores_are_used_from_where_one_says(nbytes: int) -> None:
    assert Traits(streamed_bytes=nbytes).stream_bytes == nbytes


CHANNELS = 20
"""Whole blocks of 16 and a part of one."""


@pytest.mark.parametrize("gap", [0, 4, 12])
@pytest.mark.parametrize("dtype", ["u8", "f16", "f32", "f64"])
def test_streaming_stores_are_aligned_wherever_rows_begin(dtype: str, gap: int) -> None:
    dims, row = (3, CHANNELS, 8, 16), CHANNELS + gap
    src = cf.MemoryDesc(dims, dtype, "b_fs_yx_fsv16")
    p = problem(src, cf.MemoryDesc(dims, dtype, strides=(128 * row, 1, 16 * row, row)))
    nbytes, nodes = src.dtype.nbytes, p.nodes
    for tile in (Tile.of(e, 16) for e in product((1, 2, 4, 32), (1, 2, 8), (1, 2), (1, 16))):
        if not all(is_legal_extent(p, k, tile.steps(k)) for k in range(len(nodes))):
            continue
        layout, streams = lay_out(p, tile), streaming(p, tile, 64)
        along = [nodes[k].dst.value for k in layout.axes]
        behind = moves(p, "dst", tile.all_steps(len(nodes)))
        for v in layout.stores if streams else ():
            first = sum(a * b for a, b in zip(v.row, along, strict=True)) + v.shift
            if v.width == tile.lanes:
                assert alignment([first, *behind], 8 * nbytes) >= min(streams, tile.lanes * nbytes)


def test_alignment_and_footprints() -> None:
    assert alignment([16, 48], 32) == 64
    assert alignment([16, 50], 32) == 8
    assert footprint([(3, 1), (4, 3), (2, 100), (1, 7)]) == [(12, 1), (2, 100)]


@pytest.mark.parametrize("units", [1, 2, 64])
@pytest.mark.parametrize("stream_bytes", [1 << 12, 1 << 26])
def test_the_best_schedule_is_found_without_a_look_at_all_of_them(
    units: int, stream_bytes: int
) -> None:
    r = random.Random(units)  # noqa: S311  # cases, not secrets
    traits = Traits(compute_units=units, vector_bytes=r.choice([32, 64]))
    traits = replace(traits, streamed_bytes=stream_bytes)
    for _ in range(25):
        p = random_problem(r)
        model, first = CostModel(p, traits), ranked(p, traits)[0]
        assert best(p, traits) == first, p
        for s in ranked(p, traits):
            assert model.least(s.tile) <= model.seconds(s), s


@pytest.mark.parametrize("dst", ["f32:a:1", "f32:A48a:1", "f16:A5a:1"])
def test_a_single_element_of_an_uneven_block_has_a_schedule(dst: str) -> None:
    """No loop moves along the table of its blocks."""
    p = parsed("f16:A32a:1:pad=5+3", dst)
    assert best(p, Traits()).nest == ()


@pytest.mark.parametrize("nbytes", [1 << 12, 1 << 26])
def test_stores_pass_the_caches_only_where_these_do_not_hold_what_is_moved(nbytes: int) -> None:
    """Who reads a small result next finds it in a cache."""
    p, traits = to_byxf(), Traits(streamed_bytes=nbytes)
    passing = [s for s in ranked(p, traits) if not s.store.is_ordinary]
    assert bool(passing) == traits.streams(p.nbytes)


@pytest.mark.parametrize("window", [5, 7])
@pytest.mark.parametrize("dtype", ["s8", "f16", "f32"])
def test_tiles_take_several_short_rows_of_both_sides(dtype: str, window: int) -> None:
    """Rows of 25 and 49 elements fill no whole vectors; 16 of them do."""
    dims = (640, 512, window, window)
    src, dst = (cf.MemoryDesc(dims, dtype, name) for name in ("oiyx", "ioyx"))
    tile = best(problem(src, dst), Traits()).tile
    assert prod(tile.extents) >= 16 * window**2


@pytest.mark.parametrize(("pixels", "step"), [(49, 49), (256, 256), (257, 8)])
def test_short_rows_of_both_sides_are_taken_whole(pixels: int, step: int) -> None:
    src, dst = (cf.MemoryDesc((640, 192, pixels), "f32", name) for name in ("abc", "bac"))
    p = problem(src, dst)
    row = next(k for k, n in enumerate(p.nodes) if n.src.value == n.dst.value == 1)
    assert {tile.steps(row) % step for tile in tiles(p)} == {0}


@pytest.mark.parametrize(("batch", "run"), [(12, 12), (16, 64), (24, 24), (32, 64)])
def test_batches_of_whole_vectors_are_taken_whole(batch: int, run: int) -> None:
    """A run of the destination has several channels of them, which lie side by side."""
    src, dst = (cf.MemoryDesc((batch, 64, 55, 56), "f32", name) for name in ("bfyx", "yxfb"))
    p = problem(src, dst)
    assert max(runs.run_of(p, tile, "dst") for tile in tiles(p)) == run


@pytest.mark.parametrize(("window", "loads"), [(25, 64), (49, 128), (9, 18), (32, 64)])
def test_rows_that_are_no_whole_vectors_are_loaded_by_themselves(window: int, loads: int) -> None:
    """So that all rows have the same shuffles; shorter ones than a vector follow each other."""
    src, dst = (cf.MemoryDesc((320, 1, 1, 1, window), "u8", f) for f in ("goiyx", "gs_oiyx_gsv32"))
    layout = lay_out(problem(src, dst), Tile.of((1, window, 32), 16))
    assert len(layout.loads) == loads
    if window == 25:
        assert {v.shift for v in layout.loads} == {0, 9}
        assert len(layout.program(1, 1).ops) < 2 * 128


@pytest.mark.parametrize(("window", "whole"), [(25, True), (49, True), (64, False), (70, False)])
def test_a_short_loop_is_one_tile_where_the_last_would_overlap_by_much(
    window: int, *, whole: bool
) -> None:
    src, dst = (
        cf.MemoryDesc((200000, 1, 1, 1, window), "u8", f) for f in ("goiyx", "gs_oiyx_gsv32")
    )
    tile = best(problem(src, dst), Traits(compute_units=2)).tile
    assert (tile.steps(1) == window) == whole


def test_not_all_schedules_are_looked_at(monkeypatch: pytest.MonkeyPatch) -> None:
    p, traits = to_byxf(), Traits(compute_units=2, vector_bytes=64)
    looked: list[Schedule] = []
    seconds = CostModel.seconds

    def counted_seconds(model: CostModel, schedule: Schedule) -> float:
        looked.append(schedule)
        return seconds(model, schedule)

    monkeypatch.setattr(CostModel, "seconds", counted_seconds)
    best(p, traits)
    assert 0 < len(looked) < len(ranked(p, traits))


def test_a_row_goes_on_from_record_to_record() -> None:
    """Of 18 bytes each two are read: column by column each line would be read three times."""
    src = cf.MemoryDesc((4224, 144), "f16", "ab", strides=(144 * 9, 9))
    p, traits = (
        problem(src, cf.MemoryDesc(src.dims, "f16", "ba")),
        Traits(compute_units=2, vector_bytes=64),
    )
    strides = [n.src.value for n in p.nodes]
    assert strides[best(p, traits).nest[-1].axis] == 9


@pytest.mark.parametrize("dims", [(1, 7), (7, 1), (2, 64), (33, 1)])
def test_a_tensor_smaller_than_a_tile_has_whole_vectors(dims: tuple[int, int]) -> None:
    """Steps of several loops are the same element then, if there is one: guards know."""
    attr = cf.Attr(src_zero_point=cf.at_execution(group=(32, 64)),
                   dst_zero_point=cf.at_execution(group=(None, 16)))  # fmt: skip
    src, dst = cf.MemoryDesc(dims, "u4", "ba"), cf.MemoryDesc(dims, "u8", "ab")
    p = problem(src, dst, from_attr(attr, src, dst))
    layout = lay_out(p, next(tiles(p)))
    assert len(layout.loads) + len(layout.stores) <= 2 * layout.lanes


@pytest.mark.parametrize(("columns", "words"), [(8192, 32), (8704, 16)])
def test_runs_of_two_lines_are_written_to_rows_that_share_banks(columns: int, words: int) -> None:
    """A line of 16 words of AWQ's order in each of 128 rows took half again as long."""
    src, dst = (cf.MemoryDesc((columns, columns), "u4", f) for f in ("a b/8 b%2 b/2%4", "ba"))
    plan = cf.make_plan(src, dst, Traits())
    assert plan.body is not None
    assert str(plan.body).startswith(f"tile a16 b2 c2 d2 e{words} of 16"), plan.body


@pytest.mark.parametrize(("rows", "lines"), [(4096, 2), (4224, 1)])
def test_transposed_bytes_are_written_by_two_lines_where_rows_share_banks(
    rows: int, lines: int
) -> None:
    src, dst = (cf.MemoryDesc((rows, 4096), "u8", name) for name in ("ab", "ba"))
    p = problem(src, dst)
    assert run_of(p, best(p, Traits()).tile, "dst") == lines * LINE_BYTES


@pytest.mark.parametrize(("channels", "dst", "covered"), [
    (17, "nChw8c", True), (35, "nChw8c", True), (63, "nChw8c", False), (17, "yxfb", True),
    (17, "bfyx", False), (32, "nChw8c", False),
])  # fmt: skip
def test_a_tile_covers_few_blocks_that_end_within_a_run(
    channels: int, dst: str, covered: bool
) -> None:
    """All of the 17 channels that are in two blocks, and no tile is at an edge.

    Of 63 channels, which fill the destination's blocks, lanes are only loaded under masks.
    """
    dims = (16, channels, 40, 41)
    a, b = (cf.MemoryDesc(dims, "f16", fmt) for fmt in ("b_fs_yx_fsv16", dst))
    p = problem(a, b)
    sizes = [t.all_steps(len(p.nodes)) for t in tiles(p)]
    assert covered == any(
        all(steps == n.size.value for steps, n in zip(found, p.nodes, strict=True)
            if n.guard is not None)
        for found in sizes if p.guards
    )  # fmt: skip


@pytest.mark.parametrize(("src", "dst", "channels", "together"), [
    ("aBcd3b", "aBcd16b", 144, 48), ("aBcd16b", "aBcd3b", 144, 48),
    ("aBcd18b", "aBcd16b", 144, 144), ("aBcd24b", "aBcd16b", 144, 48),
    ("aBcd48b", "aBcd32b", 192, 96), ("aBcd48b", "aBcd32b", 144, 160),
    ("aBcd63b", "aBcd64b", 144, 192), ("aBcd63b", "aBcd64b", 1008, 1024),
    ("aBcd3b", "aBcd16b", 160, 0), ("aBcd48b", "aBcd32b", 1000, 0),
])  # fmt: skip
def test_tiles_that_begin_with_blocks_load_whole_vectors_of_them(
    src: str, dst: str, channels: int, together: int
) -> None:
    """Of 3 and 16 channels 48 together: what lies in one block of the source is known then.

    All channels where 48 do not divide them, of 16 blocks of the source at most. Other tiles look
    each step up.
    """
    dims = (4, channels, 280, 290)
    a, b = (cf.MemoryDesc(dims, "f16", fmt) for fmt in (src, dst))
    p = problem(a, b)
    found = [t for t in tiles(p) if begins_blocks(p, 0, t.all_steps(len(p.nodes)))]
    assert bool(found) == bool(together)
    for tile in found:
        moved = (tile.steps(k) * n.steps_of(0) for k, n in enumerate(p.nodes) if n.table)
        assert max(moved) * p.tables[0].jumps[0][1] == together
        loads, counted_loads = len(lay_out(p, tile).loads), runs.vectors(p, tile, "src")
        assert loads <= counted_loads <= prod(tile.extents) / 6
        assert loads == counted_loads or together > channels  # Some of these are padding.


def test_small_tensors_look_up_blocks_that_do_not_divide_their_channels() -> None:
    """Each size would be a program. Periods of 96 channels are one for all of them."""
    for channels, together in ((144, False), (192, True)):
        dims = (4, channels, 28, 29)
        src, dst = (cf.MemoryDesc(dims, "f16", name) for name in ("aBcd48b", "aBcd32b"))
        p = problem(src, dst)
        steps = (t.all_steps(len(p.nodes)) for t in tiles(p))
        assert any(begins_blocks(p, 0, some) for some in steps) == together


@pytest.mark.parametrize(("src", "dst", "dims", "rows"), [
    ("f16:yxfb", "f16:b_fs_yx_fsv16", (14, 64, 99, 99), 14),
    ("f16:yxfb", "f16:bs_fs_yx_bsv16_fsv16", (14, 64, 99, 99), 14),
    ("f16:oiyx", "f16:OIhw8i8o", (640, 640, 3, 3), 9),
    ("f32:ioyx", "f16:OIhw16i16o", (640, 640, 3, 3), 9),
    ("f16:oiyx", "f16:OIhw16i16o", (640, 640, 3, 3), 0),
    ("u8:ioyx", "u8:OIhw16i16o", (640, 640, 3, 3), 0),
    ("u8:yxfb", "u8:nChw8c", (11, 64, 99, 99), 11),
    ("f16:yxfb", "f16:nChw8c", (8, 64, 99, 99), 0), ("f16:yxfb", "f16:nChw8c", (16, 64, 99, 99), 0),
    ("f16:yxfb", "f16:nChw8c", (12, 64, 99, 99), 0),
    ("f16:bfyx", "f16:byxf", (3000, 64, 5, 5), 25), ("u8:nChw16c", "u8:bfyx", (3, 14, 99, 99), 0),
    ("u8:Abcd14a", "u8:nChw12c", (7, 640, 99, 3), 0),
])  # fmt: skip
def test_rows_that_fill_most_of_a_vector_are_loaded_by_themselves(
    src: str, dst: str, dims: tuple[int, ...], rows: int
) -> None:
    """A batch of 14, windows of 9: each vector begins with a row, or ends with one.

    Not bytes of windows, nor rows after which places of a block are empty, nor windows of inputs
    where a vector has outputs, nor a batch of 12: their shuffles are alike as they go on.
    """
    (a, x), (b, y) = (text.split(":") for text in (src, dst))
    p = problem(cf.MemoryDesc(dims, a, x), cf.MemoryDesc(dims, b, y))
    found = [t for t in tiles(p) if t.lanes == 16 and runs.row_apart(p, t) is not None]
    assert bool(found) == bool(rows)
    for layout in (lay_out(p, t) for t in found):
        loads = [[n for n in v.elements if n is not None] for v in layout.loads]
        assert {len(some) for some in loads} == {min(rows, layout.lanes)}
