"""What stores may rely on: runs that fit a stage, and vectors that begin where they are said to."""

from __future__ import annotations

import random
import re
from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import replace
from itertools import product
from math import prod

import numpy as np
import pytest

import clformats as cf
from clformats.kernels.scheduled import render_schedule
from clformats.problems.computation import from_attr
from clformats.problems.problem import Problem
from clformats.problems.refine import problem
from clformats.problems.thresholds import LINE_BYTES, LONG_RUN_BYTES, OPEN_LINES, STAGE_BYTES
from clformats.problems.words import in_words
from clformats.schedule.extents import tiles
from clformats.schedule.layout import lay_out
from clformats.schedule.nest import ordered
from clformats.schedule.runs import run_of, steps_on
from clformats.schedule.schedule import Loop, Schedule, Store, Tile
from clformats.schedule.scheduled import as_scheduled
from clformats.schedule.stores import (
    _ends_inside,
    legal,
    line_buffer,
    steps_together,
    streaming,
)
from tests.schedules_support import random_problem

LARGE = [
    ("f32:bfyx", "f32:byxf", (2, 96, 14, 14)),
    ("f32:b_fs_yx_fsv16", "f32:bfyx", (1, 64, 56, 56)),
    ("f16:ioyx", "f16:oiyx", (64, 73, 7, 7)),
    ("u8:byxf", "u8:bfyx", (2, 67, 61, 83)),
    ("f64:b_fs_yx_fsv8", "f64:bfyx", (2, 37, 23, 29)),
]
WORDS = [
    ("s4:cAB32a4b", "s4:Abc32a", (16, 4, 6)),
    ("u4:ABC2c16a4b", "u4:cbA4a", (96, 12, 3)),
    ("u4:CaB16b4c", "u4:cBa8b", (8, 40, 8)),
    ("s4:ABC8b16c2a", "s4:bac", (136, 64, 96)),
    ("u4:abdc", "u4:abcd", (64, 32, 4, 2)),
    ("s4:abcd", "s4:aBcd32b", (33, 72, 1, 36)),
]
"""Words whose rows lie apart where they exchange elements: 24 bytes, of which 16 are a vector."""


def problems() -> list[Problem]:
    """Small ones of all kinds, some whose runs are longer than a stage, and words of elements."""
    pairs = [(src.split(":"), dst.split(":"), dims) for src, dst, dims in (*LARGE, *WORDS)]
    named = [problem(cf.MemoryDesc(dims, *a), cf.MemoryDesc(dims, *b)) for a, b, dims in pairs]
    return [
        *(random_problem(random.Random(seed)) for seed in range(200)),  # noqa: S311  # cases
        *(in_words(p, 64) for p in named),
    ]


def begins(p: Problem, steps: Sequence[int], together: Sequence[int]) -> Iterator[int]:
    """Where tiles begin along loops, from the first one: the last of a loop may overlap others."""
    along = []
    for node, step, size in zip(p.nodes, steps, together, strict=True):
        last = size - step if node.guard is None else size
        firsts = {min(n, last) for n in range(0, size, step)}
        along.append([n * node.dst.value for n in firsts])
    return map(sum, product(*along))


def test_what_is_staged_is_one_run_that_fits() -> None:
    """The tiles of the innermost loops are all of it, and no other tile comes between them."""
    found = {"whole": 0, "blocks": 0}
    for p in problems():
        for tile in tiles(p):
            for nest in nests(p, tile):
                staged = next((s.staged for s in legal(p, tile, nest, 64) if s.staged), 0)
                if not staged:
                    continue
                inner, outer = nest[-staged:], nest[:-staged]
                in_blocks = {loop.axis for loop in inner} & {loop.axis for loop in outer}
                found["blocks" if in_blocks else "whole"] += 1
                assert not any(loop.spread for loop in inner)
                together = steps_together(p, tile, nest, staged)
                run = prod(together)
                assert run * p.dtypes[1].nbytes <= STAGE_BYTES
                steps = tile.all_steps(len(p.nodes))
                inside = [0]
                for k, n in enumerate(steps):
                    inside = [at + i * p.nodes[k].dst.value for at in inside
                              for i in range(n)]  # fmt: skip
                every = {at + i for at in begins(p, steps, together) for i in inside}
                assert every == {*range(run)}
    assert found["whole"] > 100
    assert found["blocks"] > 20


def nests(p: Problem, tile: Tile) -> list[tuple[Loop, ...]]:
    """Loops in the destination's order, alone and with each of them blocked."""
    plain = ordered(p, tile, range(len(p.nodes)), 2)
    blocked = [
        (*plain[:k], Loop(loop.axis, 2), *plain[k:])
        for k, loop in enumerate(plain)
        if not loop.spread and loop.tiles == 1 and loop.axis not in {x.axis for x in plain[:k]}
    ]
    return [plain, *blocked]


@pytest.mark.parametrize("begin", [16, 32, 64])
def test_streamed_vectors_begin_at_multiples_of_the_store(begin: int) -> None:
    """Whole lines that are stored at once, unless a tile is one long run."""
    found = set()
    for p in problems():
        nbytes = p.dtypes[1].nbytes
        for tile in tiles(p):
            stored = streaming(p, tile, begin)
            if not stored:
                continue
            found.add(stored)
            assert stored <= begin
            layout = lay_out(p, tile)
            steps = tile.all_steps(len(p.nodes))
            strides = [p.nodes[k].dst.value for k in layout.axes]
            rows = {sum(a * b for a, b in zip(v.row, strides, strict=True))
                    for v in layout.stores}  # fmt: skip
            one_run = rows == {0} or bool(p.exchanges)
            assert run_of(p, tile, "dst") * nbytes % stored == 0
            assert (one_run and prod(tile.extents) * nbytes >= LONG_RUN_BYTES) or (
                stored == LINE_BYTES and run_of(p, tile, "dst") * nbytes % LINE_BYTES == 0
            )
            firsts = {p.dst0 + at for at in begins(p, steps, [n.size.value for n in p.nodes])}
            # Rows of words may be parts of a line, which follow each other.
            least = min(stored, tile.lanes * nbytes) if p.exchanges else stored
            assert all((at + row) * nbytes % least == 0 for at in firsts for row in rows)
    assert begin in found


def test_rows_that_wait_are_those_that_are_stored() -> None:
    """Where words exchange elements, vectors of a run may lie apart: none of it would go on.

    Tiles that are all at an edge do not wait: they reach beyond what has a place.
    """
    found = 0
    for p in problems():
        for tile in tiles(p):
            at_edges = any(tile.steps(k) > steps_on(p, k, "dst") for k in range(len(p.nodes)))
            stores = {s for nest in nests(p, tile) for s in legal(p, tile, nest, LINE_BYTES)}
            if at_edges or Store(lines=True) not in stores:
                continue
            stored, buffer = Counter[tuple[int, ...]](), line_buffer(p, tile)
            for v in lay_out(p, tile).stores:
                stored[v.row] += v.width
            assert [*stored.values()] == [buffer.width] * buffer.count
            found += 1
    assert found > 100


def test_stores_of_one_long_run_divide_it() -> None:
    """17 x 32 bytes are 8.5 lines: the last store would have half of one."""
    src = cf.MemoryDesc((60000, 17, 32), "u8", "cab")
    dst = cf.MemoryDesc((60000, 17, 32), "u8", strides=(576, 32, 1))
    assert streaming(problem(src, dst), Tile.of((1, 17, 32), 16), 64) == 32


@pytest.mark.parametrize(
    ("src", "dst", "tile", "streams"),
    [
        ("f16:goiyx:480000x1x1x5x5", "f16:gs_oiyx_gsv16:480000x1x1x5x5", "b25 c16 of 16", 32),
        ("u8:gyxio:840000x1x1x5x5", "u8:gs_oiyx_gsv16:840000x1x1x5x5", "b25 c16 of 16", 16),
        (
            "s8:gs_oiyx_gsv32:1124802x1x1x5x5",
            "s8:gs_oiyx_gsv16:1124802x1x1x5x5",
            "b2 c25 d4 of 8",
            32,
        ),
        ("f16:gs_oiyx_gsv16:524230x1x1x3x3", "f16:goiyx:524230x1x1x3x3", "b16 c9 of 16", 32),
        ("bf16:ioyx:720x208x7x7", "bf16:oiyx:720x208x7x7", "b16 c49 of 16", 32),
        ("f32:b_fs_yx_fsv4:2883x17x7x7", "f32:nChw8c:2883x17x7x7", "c49 d2 e4 of 8", 32),
        ("s8:bfyx:128x64x55x55", "s8:nChw16c:128x64x55x55", "b32 c16 of 16", 16),
        ("f32:byxf:2423x48x7x7", "f16:b_fs_yx_fsv4:2423x48x7x7", "b4 c49 d4 of 16", 0),
        ("f32:nChw16c:92x1000x7x7", "f32:b_fs_yx_fsv4:92x1000x7x7", "c4 d49 e4 of 16", 0),
        ("f16:b_fs_yx_fsv4:29x100x57x57", "f32:byxf:29x100x57x57", "b8 c25 d4 of 16", 0),
        ("f16:fs_b_yx_fsv32:226x1000x7x7", "f16:b_fs_yx_fsv4:226x1000x7x7", "c8 d49 e2 of 16", 0),
    ],
)
def test_few_lines_wait_for_their_other_parts(src: str, dst: str, tile: str, streams: int) -> None:
    """In a kernel whose stores are parts of lines: a core puts `OPEN_LINES` together."""
    p = as_scheduled(problem(cf.MemoryDesc.parse(src), cf.MemoryDesc.parse(dst)), LINE_BYTES)
    schedule = Schedule.parse(f"tile {tile} | a | ahead 0 | stream {streams or 16}")
    assert streaming(p, schedule.tile, LINE_BYTES) == streams
    assert (most_open(p, schedule) <= OPEN_LINES) == (streams > 0)


def most_open(p: Problem, schedule: Schedule) -> int:
    """The lines of a tile of which the kernel has stored parts at once, wherever the tile begins.

    Those at its ends, which the next tile goes on with, do not wait.
    """
    nest = ordered(p, schedule.tile, range(len(p.nodes)), 2)
    source = render_schedule(p, replace(schedule, nest=nest)).source
    streams, nbytes = schedule.store.streams, p.dtypes[1].nbytes
    texts = re.findall(r"STORE_STREAM\([^;]*?\(to((?: \+ \d+)*)\)\);", source)
    stored = dict.fromkeys(sum(map(int, re.findall(r"\d+", text))) * nbytes for text in texts)
    assert len(stored) * streams == prod(schedule.tile.extents) * nbytes
    most = 0
    for begin in range(0, LINE_BYTES, streams):
        lines = [(begin + at) // LINE_BYTES for at in stored]
        parts, found = Counter(lines), Counter[int]()
        for line in lines:
            found[line] += 1
            most = max(most, sum(count < parts[k] for k, count in found.items()))
    return most


@pytest.mark.parametrize(("channels", "ends"), [(17, True), (31, True), (32, False)])
def test_whether_the_destination_ends_inside_a_tile(channels: int, ends: bool) -> None:
    """A tile of two blocks of 16 channels; with 31 of them a single one is missing."""
    dims = (2, channels, 4, 8)
    p = problem(cf.MemoryDesc(dims, "f32", "b_fs_yx_fsv16"), cf.MemoryDesc(dims, "f32", "byxf"))
    assert _ends_inside(p, (1, 1, 2, 16)) == ends


def test_old_values_are_written_over_in_the_cache() -> None:
    """Reading them has brought their lines there; and the destination is not counted twice."""
    src, dst = (cf.MemoryDesc((48, 64, 3, 3), "s8", f) for f in ("oiyx", "OIhw4i16o4i"))
    plain = problem(src, dst)
    p = problem(src, dst, from_attr(cf.Attr(src_scale=0.5, beta=1.0), src, dst))
    assert any(streaming(plain, tile, 64) for tile in tiles(plain))
    for tile in tiles(p):
        assert all(legal(p, tile, nest, 64) == [Store()] for nest in nests(p, tile))
    assert p.reads_old
    assert p.nbytes == plain.nbytes


def test_computed_values_wait_as_others_do() -> None:
    """Of a map over two tensors and with a scale for each channel, as without."""
    src, dst = (cf.MemoryDesc((2, 37, 7, 9), "f32", f) for f in ("bfyx", "byxf"))
    scale = np.ones((1, 37, 1, 1), np.float32)
    kinds = []
    for attr in (cf.Attr(), cf.Attr(src_scale=scale)):
        p = problem(src, dst, from_attr(attr, src, dst))
        every = ((tile, nest) for tile in tiles(p) for nest in nests(p, tile))
        kinds.append({s.staged for tile, nest in every for s in legal(p, tile, nest, 64)})
    assert kinds[0] == kinds[1] > {0}
