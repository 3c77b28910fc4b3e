"""Laws 3, 4, 7 and 8 of schedules on a device."""

from __future__ import annotations

import os
import random
import re
import subprocess
import sys

import numpy as np
import pytest

import clformats as cf
from clformats.kernels import universal
from clformats.kernels.scheduled import render_schedule
from clformats.kernels.source import IDLE_BYTES, idle
from clformats.problems.computation import from_attr
from clformats.problems.refine import problem, separate
from clformats.problems.thresholds import ASKED_LINES
from clformats.problems.traits import Traits
from clformats.problems.words import in_words
from clformats.schedule.layout import lay_out
from clformats.schedule.schedule import Schedule
from clformats.schedule.search import ranked, spread
from clformats.schedule.stores import legal
from clformats.schedule.universal import CONVERTED, serves
from clformats.tensors.dtypes import as_dtype, convert
from tests.schedules_support import (
    before_and_after,
    check_written,
    parsed,
    ran,
    random_problem,
    random_schedules,
    with_garbage,
    written,
)
from tests.support import random_values

COUNT = int(os.environ.get("CLFORMATS_SCHEDULES", "12"))
"""How many problems; with ten schedules of two tiles each."""


@pytest.mark.sampled(3)
@pytest.mark.parametrize("seed", range(COUNT))
def test_a_schedule_never_changes_a_result(engine: cf.Engine, seed: int) -> None:
    r = random.Random(seed)  # noqa: S311  # cases, not secrets
    p = random_problem(r)
    source, expected = before_and_after(p, seed)
    if serves(p):
        got = ran(engine, p, universal.render_problem(p, r.choice([1, 3, 32])), source, "universal")
        assert np.array_equal(got, expected), f"{p.src} -> {p.dst} by the universal program"
    schedules = *random_schedules(r, p), *random_schedules(r, p)
    for number, schedule in enumerate(schedules):
        assert Schedule.parse(str(schedule)) == schedule
        got = written(engine, p, schedule, source, baked=number == len(schedules) - 1)
        assert np.array_equal(got, expected), f"{p.src} -> {p.dst} by {schedule}"


@pytest.mark.parametrize("text", [
    "tile c4 d5 of 4 | a b c d | ahead 0 | staged 1",
    "tile c4 d5 of 4 | a* b c d | ahead 3 | staged 1",
    "tile c4 d5 of 4 | a* b* c d | ahead 0 | staged 1",
    "tile c16 d16 of 8 | a b d | ahead 0 | stream 64",
    "tile c16 d16 of 16 | a b d | ahead 0 | stream 64",
    "tile c16 d32 of 16 | a b | ahead 0 | lines",
])  # fmt: skip
def test_lines_without_elements_are_not_sent(engine: cf.Engine, text: str) -> None:
    """Channels 37 to 47 of the last block have no place: runs of them, and lines of a tile."""
    dims = (2, 37, 4, 8)
    p = problem(cf.MemoryDesc(dims, "f32", "b_fs_yx_fsv16"), cf.MemoryDesc(dims, "f32", "bfyx"))
    schedule = Schedule.parse(text)
    # Where vectors may pass the cache, none needs a buffer: then it is no candidate.
    assert schedule.store.lines or schedule.store in legal(p, schedule.tile, schedule.nest, 64)
    array = random_values(np.random.default_rng(0), dims, "f32")
    got = written(engine, p, schedule, with_garbage(p.src, array, 0))
    assert np.array_equal(got, cf.pack(array, p.dst).view(np.uint8))


@pytest.mark.parametrize("text", [
    "tile b8 c8 of 8 | a b:4 c b | ahead 3 | staged 2",
    "tile b8 c8 of 8 | a* b*5 b:2 c b | ahead 12 | staged 3",
    "tile b8 c8 of 8 | a* b*111 b:2 c b | ahead 12 | staged 2",
    "tile b8 c8 of 8 | a b:2 b c | ahead 5 | staged 2",
    "tile b8 c8 of 8 | a* b*4 c b | ahead 0 | staged 2",
    "tile b16 c37 of 16 | a* b*7 b | ahead 1 | staged 1",
])  # fmt: skip
def test_blocks_of_loops_are_runs(engine: cf.Engine, text: str) -> None:
    """Of 963 places the last block has three, mostly: its only tile begins before it."""
    src, dst = (cf.MemoryDesc((2, 37, 9, 107), *x) for x in (("f32", "bfyx"), ("u8", "byxf")))
    p, schedule = problem(src, dst), Schedule.parse(text)
    assert schedule.store in legal(p, schedule.tile, schedule.nest, 64)
    check_written(engine, p, schedule)


@pytest.mark.parametrize(("src", "dst", "schedule"), [
    # The source ends inside the last tiles, whose loops are not in the order of the run.
    ("u8:oiyx:3x8x7x7", "u8:hwio:3x8x7x7",
     "tile a3 b4 c2 of 8 | a*2 c a b | ahead 7 | staged 3"),
    ("f32:oiyx:3x33x3x3", "f32:ioyx:3x33x3x3",
     "tile a5 b2 c3 of 4 | a*2 a c:2 b c | ahead 50 | staged 4"),
    # Runs without a whole tile follow others, in memory too.
    ("u8:b_fs_yx_fsv32:17x7x3x17", "f32:bfyx:17x7x3x17:pad=1+0x1+1x0+0x0+0",
     "tile c16 of 8 | c:2 a b c | ahead 1 | staged 1"),
])  # fmt: skip
def test_runs_with_tiles_at_edges(engine: cf.Engine, src: str, dst: str, schedule: str) -> None:
    p = parsed(src, dst)
    check_written(engine, p, Schedule.parse(schedule))


@pytest.mark.parametrize(("src", "dst"), [
    ("f32:aBcd31b:2x70x3x5", "f32:aBcd64b:2x70x3x5"),
    ("u8:aBcd33b:1x150x3x5", "u8:aBcd64b:1x150x3x5"),
    ("f16:aBcd17b:3x40x2x3", "f32:aBcd24b:3x40x2x3"),
    ("f32:aBcd31b:1x63x3x1", "f32:abcd:1x63x3x1:pad=5+2x1+0x0+0x0+0"),  # begins in padding
    ("s8:aBcd16b:2x50x2x9:pad=0+0x3+0x0+0x0+0", "s8:aBcd32b:2x50x2x9"),
    ("bf16:aBcd16b:2x50x2x9", "f32:aBcd16b:2x50x2x9:pad=0+0x1+6x0+0x0+0"),
])  # fmt: skip
def test_vectors_cross_blocks_that_no_tile_begins_with(
    engine: cf.Engine, src: str, dst: str
) -> None:
    """Each is put together of a part in one block and a part in the next one."""
    p = parsed(src, dst)
    source, expected = before_and_after(p, 0)
    crossing = 0
    for schedule in spread(ranked(p, Traits(vector_bytes=32))):
        crossing += any(v.last for v in lay_out(p, schedule.tile).loads)
        got = written(engine, p, schedule, source)
        assert np.array_equal(got, expected), schedule
    assert crossing > 2


@pytest.mark.parametrize(("src", "dst", "schedule"), [
    ("f64:Ab100a:249x4", "f64:Ab36a:249x4", "tile b2 c2 d4 of 8 | c b a | ahead 3 | lines"),
    ("s8:BAcd4b8a8b2a:1x98x1x9", "bf16:cBdA31a56b:1x98x1x9",
     "tile d4 e8 of 8 | a d b c | ahead 3 | lines"),
])  # fmt: skip
def test_lines_of_rows_that_lie_before_the_last_ones(
    engine: cf.Engine, src: str, dst: str, schedule: str
) -> None:
    p = parsed(src, dst)
    check_written(engine, p, Schedule.parse(schedule))


def test_a_tile_of_one_element_looks_its_place_up(engine: cf.Engine) -> None:
    p = parsed("u8:abC12c:2x3x20", "u8:abC7c:2x3x20")
    check_written(engine, p, Schedule.parse("tile of 1 | b c a | ahead 0 | ordinary"))


def test_a_program_serves_other_shapes_orders_and_splits() -> None:
    sources = set()
    for dims, text in (
        ((2, 64, 14, 14), "tile b16 c16 of 16 | a* b* c | ahead 0 | ordinary"),
        ((2, 64, 14, 14), "tile b16 c16 of 16 | a* c:3 b c | ahead 5 | ordinary"),
        ((5, 96, 31, 9), "tile b16 c16 of 16 | c*4 a b c | ahead 1 | ordinary"),
    ):
        p = problem(cf.MemoryDesc(dims, "f32", "bfyx"), cf.MemoryDesc(dims, "f32", "byxf"))
        sources.add(render_schedule(p, Schedule.parse(text)).source)
    assert len(sources) == 1


def asked(source: str) -> list[str]:
    """What tiles ask for at a time, part by part."""
    return [text.partition("\n        }")[0] for text in source.split("        if (asked) {")[1:]]


@pytest.mark.parametrize(
    ("dtype", "groups"),
    [("u8", [[16] * 4]), ("f16", [[16] * 2] * 2), ("f32", [[21], [21], [22]])],
)
def test_a_line_is_asked_for_once(dtype: str, groups: list[list[int]]) -> None:
    """By tiles in turn that share it, and no more than `ASKED_LINES` at a time."""
    src, dst = (cf.MemoryDesc((2, 64, 56, 56), dtype, name) for name in ("bfyx", "byxf"))
    schedule = Schedule.parse("tile b16 c64 of 16 | a* b | ahead 16 | stream 64")
    source = render_schedule(problem(src, dst), schedule).source
    by_turn = [re.split("if .turn", part) for part in asked(source)]
    counts = [[text.count("PREFETCH(") for text in part] for part in by_turn]
    assert [[n for n in part if n] for part in counts] == groups
    assert len({*re.findall("PREFETCH.*;", source)}) == sum(map(sum, groups))


def test_lines_that_are_claimed_are_asked_for_with_those_that_are_read() -> None:
    src, dst = (cf.MemoryDesc((2, 64, 56, 56), "f32", name) for name in ("byxf", "bfyx"))
    schedule = Schedule.parse("tile b16 c64 of 16 | a* c b | ahead 16 | ordinary")
    source = render_schedule(problem(src, dst), schedule).source
    counts = [(part.count("PREFETCH("), part.count("CLAIM(")) for part in asked(source)]
    assert tuple(map(sum, zip(*counts, strict=True))) == (64, 64)
    assert all(20 <= read + claimed <= ASKED_LINES for read, claimed in counts)


def test_tiles_at_edges_ask_for_all_lines() -> None:
    """What others ask for between their statements, they ask for before they wait."""
    src, dst = (cf.MemoryDesc((2, 60, 56, 56), "f32", name) for name in ("bfyx", "b_fs_yx_fsv16"))
    schedule = Schedule.parse("tile c32 d16 of 16 | a* b c | ahead 16 | ordinary")
    source = render_schedule(problem(src, dst), schedule).source
    before, _, after = source.partition("at_edges[count++] = now")
    ask, at_edge, between = (set(re.findall("(?:PREFETCH|CLAIM).*;", text)) for text in (
        asked(before)[0], before.rpartition("if (!(")[2], after))  # fmt: skip
    assert at_edge == between
    assert ask
    assert at_edge
    assert not ask & at_edge


@pytest.mark.parametrize(("dtype", "last"), [("u8", {31}), ("f16", {31}), ("f32", {15, 31})])
def test_lines_are_asked_for_by_the_last_element(dtype: str, last: set[int]) -> None:
    """Rows of 3135 elements begin anywhere in a line, which the tile before has read."""
    src, dst = (cf.MemoryDesc((2, 64, 55, 57), dtype, name) for name in ("bfyx", "byxf"))
    schedule = Schedule.parse("tile b32 c16 of 16 | a* b c | ahead 16 | ordinary")
    source = render_schedule(problem(src, dst), schedule).source
    asked = re.findall(r"PREFETCH\(ahead(?: \+ (?:\d+ \* )?s1)?(?: \+ (\d+))?\);", source)
    assert len(asked) == 16 * len(last)
    assert {int(n or 0) for n in asked} == last


@pytest.mark.parametrize(("dtype", "last"), [("u8", {24}), ("f16", {24}), ("f32", {15, 24})])
def test_all_lines_of_a_short_row_are_asked_for(dtype: str, last: set[int]) -> None:
    """Vectors of 25 elements overlap: the second one of f32 ends in another line."""
    src, dst = (cf.MemoryDesc((320, 1, 1, 5, 5), dtype, f) for f in ("goiyx", "gs_oiyx_gsv16"))
    schedule = Schedule.parse("tile b25 c16 of 16 | a* | ahead 4 | ordinary")
    source = render_schedule(problem(src, dst), schedule).source
    asked = re.findall(r"PREFETCH\(ahead(?: \+ (?:\d+ \* )?s1)?(?: \+ (\d+))?\);", source)
    assert len(asked) == 16 * len(last)
    assert {int(n) for n in asked} == last


@pytest.mark.parametrize(("dtype", "lines"), [("s8", 1), ("f16", 2), ("f32", 4)])
def test_what_the_destination_held_is_asked_for(dtype: str, lines: int) -> None:
    """Scales are not: all pixels have the same."""
    src, dst = (cf.MemoryDesc((2, 64, 56, 56), dtype, name) for name in ("bfyx", "byxf"))
    attr = cf.Attr(beta=0.5, src_scale=(np.ones(64), 2))
    p = problem(src, dst, from_attr(attr, src, dst))
    schedule = Schedule.parse("tile b16 c64 of 16 | a* b | ahead 16 | ordinary")
    source = render_schedule(p, schedule).source
    assert source.count("PREFETCH(dst + next.operand[1]") == 16 * lines
    assert "PREFETCH(src_scale" not in source


@pytest.mark.parametrize(("dtype", "lines"), [("s8", 1), ("f16", 2), ("f32", 4)])
def test_lines_are_claimed_where_stores_go_through_the_cache(dtype: str, lines: int) -> None:
    """A line once, however many vectors are stored to it; none that old values are read from."""
    src, dst = (cf.MemoryDesc((2, 64, 56, 56), dtype, name) for name in ("bfyx", "byxf"))
    tile = "tile b16 c64 of 16 | a* b | ahead 16"
    sums = from_attr(cf.Attr(beta=0.5), src, dst)
    for store, p, claims in (
        ("ordinary", problem(src, dst), 16 * lines),
        ("stream 64", problem(src, dst), 0),
        ("ordinary", problem(src, dst, sums), 0),
    ):
        source = render_schedule(p, Schedule.parse(f"{tile} | {store}")).source
        assert source.count("CLAIM(to_ahead") == claims
        assert ("#define CLAIM" in source) == bool(claims)


def test_the_line_is_claimed_that_a_staged_run_ends_in(engine: cf.Engine) -> None:
    """Of runs of four tiles and 24.5 lines every other one ends inside a line: three ahead."""
    import pyopencl as cl

    src, dst = (cf.MemoryDesc((4, 672, 7, 7), "u8", name) for name in ("byxf", "bfyx"))
    schedule = Schedule.parse("tile b32 c16 of 16 | a b c | ahead 12 | staged 1")
    p = problem(src, dst)
    assert schedule.store in legal(p, schedule.tile, schedule.nest, 64)
    launch = render_schedule(p, schedule)
    source = launch.source.replace("const Nest nest)", "const Nest nest, __global int *claims)")
    source = source.replace("CLAIM(dst + stop);", "claims[stop / LINE] += 1;")
    kernel = engine.kernel(source, launch.KERNEL)
    flags = cl.mem_flags.READ_WRITE | cl.mem_flags.COPY_HOST_PTR
    claims = np.zeros(dst.nbytes // 64, np.int32)
    data = (np.zeros(src.nbytes, np.uint8), np.zeros(dst.nbytes, np.uint8), claims)
    a, b, log = (cl.Buffer(engine.context, flags, hostbuf=array) for array in data)
    kernel.set_args(a, b, *launch.given, log)
    cl.enqueue_nd_range_kernel(engine.queue, kernel, (launch.global_size,), (1,)).wait()
    cl.enqueue_copy(engine.queue, claims, log).wait()
    run = 32 * 49
    ends = [run * n for n in range(1, dst.nbytes // run + 1)][3:]
    assert [*np.flatnonzero(claims)] == [end // 64 for end in ends if end % 64]
    assert claims.max() == 1


@pytest.mark.parametrize("nest", ["a b c", "a* b c", "c b a", "c:4 a b c"])
def test_many_tiles_at_edges_wait(engine: cf.Engine, nest: str) -> None:
    """More of one work-item than a kernel keeps: 57 with four channels of a block of 16."""
    dims = (3, 20, 9, 33)
    p = problem(cf.MemoryDesc(dims, "f32", "bfyx"), cf.MemoryDesc(dims, "f32", "b_fs_yx_fsv16"))
    schedule = Schedule.parse(f"tile c16 d16 of 16 | {nest} | ahead 3 | ordinary")
    check_written(engine, p, schedule)


def test_parts_of_pairs_are_stored(engine: cf.Engine) -> None:
    """Rows of three elements: two lanes and one of a vector that is half a pair."""
    dims = (5, 3, 7, 16)
    p = problem(cf.MemoryDesc(dims, "u8", "abcd"), cf.MemoryDesc(dims, "u8", "adcb"))
    schedule = Schedule.parse("tile a2 b8 d3 of 8 | a* b c | ahead 0 | ordinary")
    assert "PAIR(" in render_schedule(p, schedule).source
    check_written(engine, p, schedule)


def test_the_universal_program_only_moves_and_converts() -> None:
    src, dst = (cf.MemoryDesc((2, 32), t, f) for t, f in (("f32", "ab"), ("s8", "ba")))
    assert serves(problem(src, dst))
    assert not serves(problem(src, dst, from_attr(cf.Attr(src_scale=2.0), src, dst)))
    words = in_words(problem(cf.MemoryDesc((2, 32), "s4"), cf.MemoryDesc((2, 32), "s4", "ba")), 64)
    assert words.dtypes == (as_dtype("f32"), as_dtype("f32"))
    assert not serves(words)


@pytest.mark.parametrize("src", CONVERTED)
def test_the_universal_program_converts_all_types(engine: cf.Engine, src: str) -> None:
    dims, pads = (2, 35, 3, 17), ((0, 0), (2, 3), (1, 0), (0, 5))
    for dst in CONVERTED:
        a = cf.MemoryDesc(dims, src, "bfyx", padding=pads)
        for b in (
            cf.MemoryDesc(dims, dst, "byxf"),
            cf.MemoryDesc(dims, dst, "aBcd16b", padding=pads),
        ):
            p = problem(a, b)
            assert serves(p)
            array = random_values(np.random.default_rng(3), dims, src)
            launch = universal.render_problem(p, 5)
            assert launch.source == universal.source()
            got = ran(engine, p, launch, with_garbage(a, array, 3), "the universal program")
            expected = array if src == dst else convert(array, a.dtype, b.dtype)
            assert np.array_equal(got, cf.pack(expected, b).view(np.uint8)), f"{a} -> {b}"


CHANNELS = "f32:b_fs_yx_fsv16:3x37x4x40", "f32:bfyx:3x37x4x40"
ONE_BATCH = "f64:bfyx:1x32x192x192", "f64:bs_fs_yx_bsv32_fsv32:1x32x192x192"


@pytest.mark.parametrize(("src", "dst", "text"), [
    (*CHANNELS, "tile c4 d5 of 4 | a b c d | ahead 0 | staged 1"),
    (*CHANNELS, "tile c16 d16 of 16 | a* b d | ahead 3 | stream 64"),
    (*CHANNELS, "tile c16 d32 of 16 | a b d | ahead 0 | lines"),
    (*CHANNELS, "tile c16 d16 of 8 | a b d | ahead 0 | ordinary"),
    (*ONE_BATCH, "tile a8 b32 c32 of 8 | a | ahead 4 | stream 64"),
])  # fmt: skip
def test_an_idle_launch_touches_the_beginning_alone(
    engine: cf.Engine, src: str, dst: str, text: str
) -> None:
    """It makes drivers generate code, on buffers of its own."""
    import pyopencl as cl

    p = parsed(src, dst)
    launch = render_schedule(p, Schedule.parse(text))
    kernel = engine.kernel(launch.source, launch.KERNEL)
    whole = np.full(2 * IDLE_BYTES, 0xA5, np.uint8)
    flags = cl.mem_flags.READ_WRITE | cl.mem_flags.COPY_HOST_PTR
    buffers = [cl.Buffer(engine.context, flags, hostbuf=given) for given in (~whole, whole)]
    kernel.set_args(*buffers, idle(launch))
    cl.enqueue_nd_range_kernel(engine.queue, kernel, (1,), (1,)).wait()
    cl.enqueue_copy(engine.queue, whole, buffers[1]).wait()
    assert (whole[IDLE_BYTES:] == 0xA5).all()


def test_an_idle_launch_divides_by_no_number_of_its_nest() -> None:
    """Those are zeros: PoCL survives that, unless someone else handles the signal."""
    test = f"{__file__}::test_an_idle_launch_touches_the_beginning_alone"
    words = [sys.executable, "-m", "pytest", "-q", "-p", "no:xdist", "-p", "no:cacheprovider", test]
    done = subprocess.run(words, env=os.environ | {"POCL_SIGFPE_HANDLER": "0"}, check=False,
                          capture_output=True, text=True, timeout=300)  # fmt: skip
    assert not done.returncode, done.stdout


@pytest.mark.parametrize(("before", "after"), [(8, 4), (8, 0), (3, 5), (0, 12)])
def test_padding_reads_no_operand(before: int, after: int) -> None:
    dims, pads = (2, 4, 8, 16), [(0, 0), (before, after), (0, 0), (0, 0)]
    src, dst = (
        cf.MemoryDesc(dims, "f32", "bfyx"),
        cf.MemoryDesc(dims, "f32", "aBcd8b", padding=pads),
    )
    computation = from_attr(cf.Attr(src_scale=([1.0, 2.0, 3.0, 4.0], 2)), src, dst)
    p = separate(problem(src, dst, computation))
    schedule = Schedule.parse("tile b2 c8 d8 of 8 | a c | ahead 0 | ordinary")
    axes = lay_out(p, schedule.tile).axes
    names = {f"o0_{k}": p.nodes[axis].operands[0].value for k, axis in enumerate(axes)}
    names["tile"] = p.operands0[0]
    source = render_schedule(p, schedule).source.replace("now.operand[0]", "tile")
    read = {eval(at, names.copy()) for at in re.findall(r"src_scale_values\[(.*?)\]", source)}  # noqa: S307  # sums
    assert read == {0, 1, 2, 3}


@pytest.mark.parametrize("attr", [
    cf.Attr(src_scale=([k / 8 + 1 for k in range(17)], 2), dst_zero_point=3),
    cf.Attr(src_scale=0.5, beta=2.0),
])  # fmt: skip
def test_attributes_give_the_bytes_of_the_other_families(engine: cf.Engine, attr: cf.Attr) -> None:
    dims = (2, 17, 5, 7)
    src, dst = cf.MemoryDesc(dims, "f32", "byxf"), cf.MemoryDesc(dims, "f32", "b_fs_yx_fsv16")
    array = random_values(np.random.default_rng(0), dims, "f32")
    results = []
    for family in ("scheduled", "generic"):
        source, target = cf.from_numpy(array, engine, format="byxf"), cf.Memory(dst, engine)
        with target.map("w") as flat:
            flat[:] = 7
        cf.Reorder(src, dst, engine, attr=attr, family=family)(cf.Stream(engine), source, target)
        with target.map("r") as flat:
            results.append(flat.copy())
    assert np.array_equal(results[0].view(np.uint8), results[1].view(np.uint8))


@pytest.mark.parametrize("nest", ["a b c", "a b:2 c b", "a* c:3 b:2 c b", "c:2 b a c"])
def test_no_tile_is_added_twice(engine: cf.Engine, nest: str) -> None:
    """Where old values are read, blocked loops end with their last tile, and begin no other."""
    dims = (2, 64, 8, 12)
    src, dst = cf.MemoryDesc(dims, "f32", "bfyx"), cf.MemoryDesc(dims, "f32", "byxf")
    array = np.random.default_rng(0).integers(-50, 50, dims).astype(np.float32)
    source, target = cf.from_numpy(array, engine), cf.Memory(dst, engine)
    with target.map("w") as flat:
        flat[:] = 7
    choices = cf.Choices(schedule=f"tile b16 c16 of 16 | {nest} | ahead 0 | ordinary")
    reorder = cf.Reorder(src, dst, engine, attr=cf.Attr(beta=1.0), tuned=choices)
    reorder(cf.Stream(engine), source, target)
    with target.map("r") as flat:
        assert np.array_equal(flat, cf.pack(array + 7, dst))
