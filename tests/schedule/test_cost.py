"""The cost model's laws of caches and memory, by numbers worked out by hand."""

from __future__ import annotations

from dataclasses import replace
from math import inf

import pytest

import clformats as cf
from clformats.problems import thresholds
from clformats.problems.computation import from_attr, over_tensors
from clformats.problems.problem import Problem
from clformats.problems.refine import problem, separate
from clformats.problems.traits import Traits
from clformats.schedule.cost import CostModel, _stored
from clformats.schedule.schedule import Schedule, Tile
from clformats.schedule.search import best, prefetch, ranked
from clformats.schedule.stores import line_groups
from clformats.schedule.traffic import Traffic, covered, traffic
from clformats.values.formula import parse
from tests.schedules_support import parsed

CORES = Traits(compute_units=2, vector_bytes=64)
PLAIN = Traffic(run=64, jumps=9.0, rows=9, lasts=1, ended=9, apart=4096, between=16, begins=64)


def written(src: str, dst: str, schedule: str) -> Traffic:
    p, s = parsed(src, dst), Schedule.parse(schedule)
    return traffic(p, s, "dst")


@pytest.mark.parametrize(
    ("nest", "between"),
    [("b*16 c b", 9 * 16), ("b*16 b:4 c b", 9 * 4), ("c* b*512 b", 9 * 1024), ("b*16 b c", 9)],
)
def test_rows_are_counted_until_one_goes_on(nest: str, between: float) -> None:
    """Tiles of 9 rows: those of all steps of b that come before the next one along c."""
    text = f"tile a9 c16 of 16 | {nest} | ahead 0 | stream 64"
    src, dst = "f32:oiyx:1024x1024x3x3", "f32:hwio:1024x1024x3x3"
    assert written(src, dst, text).between == between


@pytest.mark.parametrize(("apart", "between", "missed"), [
    (4096, 48, 0), (4096, 49, 9), (512, inf, 9), (256, inf, 0),
])  # fmt: skip
def test_few_rows_in_few_banks_stay_open(apart: int, between: float, missed: int) -> None:
    rows = replace(PLAIN, apart=apart, between=between)
    assert rows.missed(cached=False) == missed


@pytest.mark.parametrize(("run", "begins", "lines"), [
    (64, 64, 1), (16, 16, 4), (36, 4, 96 / 36), (144, 16, 192 / 144), (1 << 20, 1, 1),
])  # fmt: skip
def test_runs_that_begin_anywhere_touch_parts_of_lines(run: int, begins: int, lines: float) -> None:
    assert replace(PLAIN, run=run, begins=begins).whole == pytest.approx(lines, rel=1e-3)


@pytest.mark.parametrize(("tile", "share"), [
    ("c16 e16", 3), ("c8 d2 e16", 3 / 2), ("b3 d2 e16", 1), ("b2 d2 e16", 6 / 4), ("b5 d2 e16", 1),
])  # fmt: skip
def test_parts_of_blocks_are_read_with_the_rest_of_them(tile: str, share: float) -> None:
    """Blocks of 48 channels in parts of 16: a tile of two parts has a third one beside them."""
    src, dst = "f32:aBcd48b:16x144x28x28", "f32:aBcd32b:16x144x28x28"
    p = parsed(src, dst)
    assert covered(p, Schedule.parse(f"tile {tile} of 16 | a* | ahead 0 | ordinary").tile) == share


@pytest.mark.parametrize(("dtype", "src", "dims", "read"), [
    ("f32", "b_fs_yx_fsv16", "16x8x28x28", 32 + 32),
    ("f32", "b_fs_yx_fsv32", "16x8x28x28", 32 + 64),
    ("s8", "bs_fs_yx_bsv16_fsv16", "2x16x28x28", 32 + 64),
    ("f32", "bfyx", "16x8x28x28", 32),
])  # fmt: skip
def test_a_gap_costs_a_line_at_the_most(dtype: str, src: str, dims: str, read: int) -> None:
    """32 bytes of larger blocks: 8 channels, or 2 batches of 16 channels."""
    p = parsed(f"{dtype}:{src}:{dims}", f"{dtype}:byxf:{dims}")
    assert CostModel(p, CORES)._sparse == read / 32


@pytest.mark.parametrize(("dst", "channels"), [("bfyx", 8), ("b_fs_yx_fsv16", 16)])
@pytest.mark.parametrize("store", ["ordinary", "stream 64"])
def test_what_has_no_place_is_not_stored(dst: str, channels: int, store: str) -> None:
    """8 channels of a block of 32 go to rows of their own, or to a block of 16."""
    p = parsed("f32:b_fs_yx_fsv32:16x8x28x28", f"f32:{dst}:16x8x28x28")
    schedule = next(s for s in ranked(p, replace(CORES, streamed_bytes=0)) if str(s.store) == store)
    model, tile = CostModel(p, CORES), schedule.tile
    stored = model.stored if schedule.store.is_ordinary else _stored(p, tile)
    assert stored == 16 * channels * 28 * 28


def test_cores_do_not_write_the_same_lines_at_the_same_time() -> None:
    """Rows of 15 bytes: two cores that take half of each write all lines together."""
    dims = (15, 192, 56, 56)
    src, dst = (cf.MemoryDesc(dims, "u8", name) for name in ("b_fs_yx_fsv32", "yxfb"))
    p = problem(src, dst)
    model = CostModel(p, CORES)
    shared, apart = (
        Schedule.parse(f"tile c32 d8 of 16 | {nest} a*1045 a | ahead 0 | ordinary")
        for nest in ("d* b*", "b* d*")
    )
    assert model.seconds(shared) > 1.5 * model.seconds(apart)
    assert best(p, CORES).nest[0].axis != shared.nest[0].axis
    alone = CostModel(p, replace(CORES, compute_units=1))
    assert alone.seconds(shared) == pytest.approx(alone.seconds(apart), rel=0.1)


@pytest.mark.parametrize(("inputs", "outputs", "dearer"), [(1024, 64, 1.8), (1024, 16, 1.0)])
def test_rows_in_one_set_are_read_again(inputs: int, outputs: int, dearer: float) -> None:
    """Rows of 9 elements 36,864 bytes apart share a set of 8 to 12 lines; 37,008 apart none do."""

    def each(width: int) -> float:
        dims = (1040, width, 3, 3)
        src, dst = (cf.MemoryDesc(dims, "f32", name) for name in ("oiyx", "hwio"))
        text = f"tile a9 c{outputs} of 16 | c* b | ahead 16 | stream 64"
        return CostModel(problem(src, dst), CORES).seconds(Schedule.parse(text)) / width

    assert each(inputs) == pytest.approx(each(1028) * dearer, rel=0.1)


def test_rows_that_wait_cost_as_much_as_all_buffers(monkeypatch: pytest.MonkeyPatch) -> None:
    """Those of a tile, 16 rows of 256 bytes, are a page: of four tiles in turn they are four."""
    src, dst = "f32:byxf:19x192x55x55", "u8:bfyx:19x192x55x55"
    p = parsed(src, dst)

    def seconds(nest: str, price: float) -> float:
        monkeypatch.setattr(thresholds, "KEPT_ROW_BYTES", price)
        text = f"tile b16 c64 of 16 | {nest} | ahead 4 | lines"
        return CostModel(p, CORES).seconds(Schedule.parse(text))

    def price(nest: str) -> float:
        return seconds(nest, 34) - seconds(nest, 0)

    assert price("a* b*6 b:4 c b") == pytest.approx(4 * price("a* b*6 b c"))


@pytest.mark.parametrize(("store", "dearer"), [("stream 64", 2.0), ("lines", 1.0)])
def test_streamed_rows_that_go_on_cost_half(
    store: str, dearer: float, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Two lines of each of 16 channels: channel after channel, or along them."""
    p = parsed("f32:byxf:16x64x112x112", "f32:bfyx:16x64x112x112")

    def price(nest: str) -> float:
        schedule = Schedule.parse(f"tile b16 c32 of 8 | {nest} | ahead 4 | {store}")
        found = []
        for nbytes in (1 << 30, 0):
            monkeypatch.setattr(thresholds, "SENT_BYTES", nbytes)
            found.append(CostModel(p, CORES).seconds(schedule))
        return found[0] - found[1]

    assert price("a* c b") == pytest.approx(dearer * price("a* b c"), rel=0.01)


@pytest.mark.parametrize(("streamed_bytes", "dearer"), [(1 << 20, 2.0), (1 << 30, 0.0)])
def test_larger_tiles_hide_less(
    streamed_bytes: int, dearer: float, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Twice the bytes of a tile expose twice as much, but where caches hold what is moved."""
    src, dst = "f32:bfyx:16x64x112x112", "f32:byxf:16x64x112x112"
    p = parsed(src, dst)
    traits = replace(CORES, streamed_bytes=streamed_bytes)

    def price(width: int) -> float:
        schedule = Schedule.parse(f"tile b{width} c16 of 8 | a* c*2 c b | ahead 0 | ordinary")
        found = []
        for nbytes in (32 << 10, 32 << 30):
            monkeypatch.setattr(thresholds, "EXPOSED_BYTES", nbytes)
            found.append(CostModel(p, traits).seconds(schedule))
        return found[0] - found[1]

    assert price(32) == pytest.approx(dearer * price(16), rel=0.15)
    assert (price(16) > 0) is (dearer > 0)


def test_few_banks_cost_more_where_memory_is_fast() -> None:
    """A miss takes as long everywhere: what slow memory could move meanwhile is less."""
    src, dst = "f32:oiyx:1024x1024x3x3", "f32:hwio:1024x1024x3x3"
    p = parsed(src, dst)
    slow, fast = (replace(CORES, vector_bytes=32, copied_gb_s=speed) for speed in (25, 100))
    lines = Schedule.parse("tile a9 c16 of 8 | c* b | ahead 16 | stream 64")
    costs = [CostModel(p, traits).seconds(lines) for traits in (slow, fast)]
    assert costs[0] < 0.6 * costs[1]
    assert best(p, slow).tile == lines.tile
    assert best(p, fast).tile == Tile((9, 1, 64), 8)
    assert best(p, replace(fast, copied_gb_s=70)) == best(p, replace(fast, copied_gb_s=None))
    cores = replace(slow, compute_units=16, copied_gb_s=8 * 25)
    assert best(p, cores).tile.extents == lines.tile.extents, "as slow for each core"


def test_in_caches_the_speed_of_memory_counts_nothing() -> None:
    src, dst = "f32:ab:256x256", "f32:ba:256x256"
    p = parsed(src, dst)
    slow, fast = (replace(CORES, copied_gb_s=speed) for speed in (25, 700))
    assert ranked(p, slow) == ranked(p, fast)


@pytest.mark.parametrize(("src", "dst", "in_turn"), [
    ("bf16:b_fs_yx_fsv32:14x192x55x55", "bf16:bfyx:14x192x55x55", False),
    ("u8:bs_fs_yx_bsv16_fsv16:16x256x57x57", "u8:bfyx:16x256x57x57", True),
])  # fmt: skip
def test_tiles_take_turns_to_read_whole_lines(src: str, dst: str, in_turn: bool) -> None:
    """One of 64 bytes is read at once anyway, of 16 with three others: the destination waits."""
    p = parsed(src, dst)
    found = best(p, CORES)
    assert found.store.lines
    assert (line_groups(p, found.tile, found.nest) > 1) is in_turn


def test_loops_of_whole_lines_follow_the_source() -> None:
    """A batch of 14 fills no block of 16: the rows of a tile go on in each other all the same."""
    dims = (14, 100, 112, 112)
    p = problem(
        cf.MemoryDesc(dims, "bf16", "yxfb"), cf.MemoryDesc(dims, "s8", "bs_fs_yx_bsv16_fsv16")
    )
    by_source, by_destination = (
        Schedule.parse(f"tile c16 d16 of 16 | {nest} | ahead 16 | stream 64")
        for nest in ("b*392 b a", "b*392 b:16 a b")
    )
    assert [traffic(p, by_source, "src").rows, traffic(p, by_source, "dst").rows] == [1, 1]
    assert traffic(p, by_source, "src").follows
    assert not traffic(p, by_destination, "src").follows
    assert best(p, replace(CORES, vector_bytes=32, copied_gb_s=30)).nest == by_source.nest


@pytest.mark.parametrize(("outputs", "tile", "lead"), [
    (2000, "a32 b32", 2), (2000, "a32 b8", 9), (200, "a32 b32", 8), (20, "a16 b16", 16),
])  # fmt: skip
def test_the_prefetch_is_ahead_by_few_pages(outputs: int, tile: str, lead: int) -> None:
    """32 rows of 4,000 bytes fill 31 pages, 8 of them 7: of 64. 16 KB where rows are shorter."""
    dims = (outputs, 1_000_000 // outputs, 3, 3)
    src, dst = (cf.MemoryDesc(dims, "bf16", name) for name in ("yxio", "oyxi"))
    p = problem(src, dst)
    found = Schedule.parse(f"tile {tile} of 16 | a* b | ahead 0 | lines")
    assert prefetch(p, found.tile, found.nest, CORES) == lead


@pytest.mark.parametrize(("tile", "nest", "lead"), [
    ("c25 e16 of 16", "a* b d", 10), ("c25 e16 of 16", "a* d b", 5),
    ("c25 d2 e16 of 16", "a* b d", 4), ("c25 d2 e16 of 16", "a* d b", 4),
])  # fmt: skip
def test_the_prefetch_is_ahead_by_what_the_nearest_cache_holds(
    tile: str, nest: str, lead: int
) -> None:
    """16 windows of 25 are 1.6 KB, 32 are 3.2: twice 8 KB where a tile is in other rows."""
    src, dst = (cf.MemoryDesc((4096, 64, 5, 5), *to.split(":")) for to in
                ("f32:oiyx", "f16:OIhw16o16i"))  # fmt: skip
    p = problem(src, dst)
    found = Schedule.parse(f"tile {tile} | {nest} | ahead 0 | ordinary")
    assert prefetch(p, found.tile, found.nest, CORES) == lead


def summed(src: str, dst: str) -> Problem:
    """The problem of adding what is there before."""
    a, b = cf.MemoryDesc.parse(src), cf.MemoryDesc.parse(dst)
    return separate(problem(a, b, from_attr(cf.Attr(beta=1), a, b)))


def test_old_values_of_half_a_line_take_as_long_as_those_of_a_line(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """Four inputs of 8 outputs are half of a line of bytes: a sum reads twice as many lines."""
    pair = "s8:oiyx:1024x1024x3x3", "s8:OIhw4i16o4i:1024x1024x3x3"
    half, whole = Tile((1, 1, 9, 4, 8, 4), 16), Tile((1, 1, 9, 1, 16, 4), 16)

    def price(p: Problem, tile: Tile) -> float:
        found = []
        for each in (12.0, 0.0):
            monkeypatch.setattr(thresholds, "OLD_LINE_NS", each)
            found.append(CostModel(p, CORES).least(tile))
        return found[0] - found[1]

    assert price(summed(*pair), half) == pytest.approx(2 * price(summed(*pair), whole), rel=1e-3)
    assert price(parsed(*pair), half) == 0


def test_operands_that_lie_as_the_source_are_loaded_as_it_is() -> None:
    """Sixteen of another order are put together one by one, or, as the result's, are neighbours."""
    dims = (16, 64, 112, 112)
    tile, dst = Tile((1, 16, 16), 16), cf.MemoryDesc(dims, "f32", "b_fs_yx_fsv16")

    def least(*others: str) -> float:
        names = "xyw"[: len(others) + 1]
        formats = zip(names, ("bfyx", *others), strict=True)
        inputs = [(n, cf.MemoryDesc(dims, "f32", f)) for n, f in formats]
        src, computation = over_tensors(parse(" + ".join(names), tuple(names)), inputs, dst, "x")
        return CostModel(problem(src, dst, computation), CORES).least(tile)

    alike, as_stored = least("bfyx"), least("b_fs_yx_fsv16")
    assert alike == pytest.approx(as_stored)
    assert least("yxfb") > 1.5 * alike
    # All are computed before they are moved, or none.
    assert least("bfyx", "bfyx") < 1.2 * alike
    assert least("bfyx", "b_fs_yx_fsv16") > 1.5 * alike


def test_at_any_edge_vectors_ask_for_their_lanes() -> None:
    """Every second tile is one window of nine: there lanes ask too whether inputs end, of pairs."""
    eight, pairs = Tile((1, 1, 8, 16, 4), 16), Tile((1, 2, 8, 16, 4), 16)

    def dearer(count: int) -> float:
        dims = f"256x{count}x3x3"
        model = CostModel(summed(f"u8:oyxi:{dims}", f"s8:os_is_yx_osv16_isv4:{dims}"), CORES)
        return model.least(pairs) / model.least(eight)

    assert dearer(3902) < 1.1
    assert dearer(3906) > 1.5


@pytest.mark.parametrize(("batch", "vector_bytes", "lanes"), [
    (7, 32, 8), (7, 64, 16), (8, 32, 16), (6, 32, 16),
])  # fmt: skip
def test_rows_inside_vectors_shuffle_halves_of_registers(
    batch: int, vector_bytes: int, lanes: int
) -> None:
    """Seven 16-bit elements of each row: 16 lanes are two parts where registers have 32 bytes."""
    dims = (batch, 64, 224, 112)
    p = problem(cf.MemoryDesc(dims, "bf16", "yxfb"), cf.MemoryDesc(dims, "bf16", "nChw8c"))
    assert best(p, replace(CORES, vector_bytes=vector_bytes)).tile.lanes == lanes


def test_vectors_that_cross_rows_are_shuffled() -> None:
    """Nine elements of each row: eight lanes do not take them as they are, as eight elements."""
    traits = replace(CORES, vector_bytes=32, copied_gb_s=30)
    nine, eight = (
        problem(
            cf.MemoryDesc((1000, 2096, *window), "s8", "ioyx"),
            cf.MemoryDesc((1000, 2096, *window), "s8", "oiyx"),
        )
        for window in ((3, 3), (4, 2))
    )
    crossed = CostModel(nine, traits).least(Tile((1, 8, 9), 8)) / 9
    assert crossed > 1.15 * CostModel(eight, traits).least(Tile((1, 8, 8), 8)) / 8
    assert best(nine, traits).tile.lanes == 16
