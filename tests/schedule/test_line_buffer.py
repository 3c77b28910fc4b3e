"""Where rows of tiles wait: each has a place of its own, and short ones are on one page each."""

from __future__ import annotations

import re

import pytest
from hypothesis import given
from hypothesis import strategies as st

import clformats as cf
from clformats.kernels.scheduled import render_schedule
from clformats.problems.refine import problem
from clformats.problems.thresholds import PAGE_BYTES, STAGE_BYTES
from clformats.schedule.line_buffer import LineBuffer
from clformats.schedule.schedule import Schedule


@given(st.integers(1, 64), st.integers(1, 2100), st.sampled_from([1, 2, 4, 8]))
def test_each_row_has_a_place(count: int, width: int, nbytes: int) -> None:
    buffer, end = LineBuffer(count, width, nbytes), 0
    page = PAGE_BYTES // nbytes
    for tile in range(buffer.tiles):
        for row in range(count):
            first = buffer.place(row, tile)
            assert first >= end
            assert first % buffer.line == 0
            end = first + buffer.row
            if 2 * buffer.row <= page:
                assert first // page == (end - 1) // page
    assert end == buffer.size
    assert buffer.size * nbytes <= STAGE_BYTES or buffer.tiles == 1


@pytest.mark.parametrize("channels", [17, 64, 200, 700])
def test_kernels_have_these_places(channels: int) -> None:
    dims = (2, channels, 37, 39)
    src, dst = (cf.MemoryDesc(dims, "f32", name) for name in ("bfyx", "byxf"))
    schedule = Schedule.parse(f"tile b2 c{channels} of 16 | a* b | ahead 0 | lines")
    source = render_schedule(problem(src, dst), schedule).source
    width, room, size = (
        int(re.search(pattern, source)[1])  # type: ignore[index]
        for pattern in (r"#define WIDTH (\d+)", r"#define ROOM (\d+)", r" held\[(\d+)\]")
    )
    count = int(source.split("int r = 0; r < ")[1].split(";")[0])
    buffer = LineBuffer(count, width, 4)
    row, tile = (
        re.search(rf"#define {name}\(([rn])\) (.+)", source)[2].replace("/", "//")  # type: ignore[index]
        for name in ("ROW", "ROWS")
    )
    for n in range(buffer.tiles):
        for r in range(count):
            place = eval(tile, {"n": n, "ROOM": room}) + eval(row, {"r": r, "ROOM": room})  # noqa: S307
            assert place == buffer.place(r, n)
    assert (room, size) == (buffer.row, buffer.size)
