"""The rules for tiles and their order, on plans alone: what is chosen, where its border lies."""

from __future__ import annotations

from itertools import permutations

import pytest

import clformats as cf
from clformats.formats.expr import Expr, Var
from clformats.kernels import launch
from clformats.kernels.ahead import Rows, asks_of
from clformats.schedule import make_plan
from clformats.schedule.carrying import KEPT_LINES, LEAST_CARRIED, LEAST_KEPT
from clformats.schedule.choices import Choices
from clformats.schedule.staging import STAGE_BYTES
from clformats.schedule.tile import TilePlan
from clformats.schedule.traits import CACHE_FLOOR, STREAMED_MOST, STREAMED_SHARE, Traits
from clformats.schedule.walk import (
    ASKED_BYTES,
    LEAD_BYTES,
    NEAR_BOX_BYTES,
    STREAMS,
    Kept,
    Reads,
    Tiles,
    walk,
)

ACT = (16, 64, 112, 112)
ODD = (16, 250, 55, 57)
W3 = (1024, 1024, 3, 3)


def _plan(dims: tuple[int, ...], src: str, dst: str) -> TilePlan:
    a, b = (cf.MemoryDesc(dims, *text.split(":")) for text in (src, dst))
    body = make_plan(a, b).body
    assert isinstance(body, TilePlan)
    return body


def _near(plan: TilePlan, side: str) -> int:
    """The moving loop that is nearest on a side."""
    steps = [getattr(n, side).value << b for n, b in zip(plan.nodes, plan.bits, strict=True)]
    moving = [k for k in range(len(steps)) if plan.positions(k).value > 1]
    return min(moving, key=steps.__getitem__)


@pytest.mark.parametrize("channels", [48, 64, 250, 448])
@pytest.mark.parametrize("dtype", ["f32", "f16"])
def test_a_source_that_is_one_piece_is_read_from_end_to_end(dtype: str, channels: int) -> None:
    plan = _plan((256, channels, 32, 32), f"{dtype}:byxf", f"{dtype}:bfyx")
    assert plan.walk.inner == _near(plan, "src")
    assert not plan.walk.swapped
    assert plan.walk.reads is Reads.PIECES
    assert plan.walk.ahead == 1


@pytest.mark.parametrize(
    ("dims", "src", "dst", "near"),
    [
        ((64, 64, 32, 32), "f32:byxf", "f32:bfyx", True),  # boxes of 4 KB
        ((64, 128, 32, 32), "f32:byxf", "f32:bfyx", True),  # 8
        ((64, 144, 32, 32), "f32:byxf", "f32:bfyx", False),  # 9
        ((128, 128, 32, 32), "f16:byxf", "f16:bfyx", True),
        ((128, 256, 32, 32), "f16:byxf", "f16:bfyx", False),
        ((128, 128, 32, 32), "u8:byxf", "u8:bfyx", True),
        ((128, 144, 32, 32), "u8:byxf", "u8:bfyx", False),
        ((256, 512, 8, 8), "f32:bfyx", "f32:b_fs_yx_fsv16", True),
        ((64, 512, 16, 16), "f32:bfyx", "f32:b_fs_yx_fsv16", False),
    ],
)
def test_the_next_box_is_asked_into_the_nearest_cache_that_holds_two(
    dims: tuple[int, ...], src: str, dst: str, *, near: bool
) -> None:
    plan = _plan(dims, src, dst)
    assert plan.walk.middle is not None
    step = plan.nodes[plan.walk.middle].src.value * plan.steps_along(plan.walk.middle)
    assert (step * plan.problem.src.dtype.nbytes <= NEAR_BOX_BYTES) is near
    assert (plan.walk.reads, plan.walk.near) == (Reads.PIECES, near)
    assert plan.walk.lead == LEAD_BYTES[not near]
    assert ("second-level" in str(plan.walk)) is not near


def test_short_rows_of_a_block_are_one_piece_too_and_long_ones_are_not() -> None:
    short, long = (_plan((64, 512, n, n), "f32:bfyx", "f32:b_fs_yx_fsv16") for n in (16, 32))
    assert short.walk.reads is Reads.PIECES
    assert short.walk.inner == _near(short, "src")
    assert long.walk.reads is not Reads.PIECES


def test_a_block_that_lies_in_order_needs_no_asking_ahead() -> None:
    assert not _plan((64, 512, 16, 16), "f32:b_fs_yx_fsv16", "f32:bfyx").walk.ahead


def test_it_is_not_where_lines_would_be_written_in_parts() -> None:
    src, dst = cf.MemoryDesc(ODD, "f32", "byxf"), cf.MemoryDesc(ODD, "f32", "bfyx")
    plan = make_plan(src, dst, choices=Choices(nontemporal=False)).body
    assert isinstance(plan, TilePlan)
    assert not plan.nontemporal
    assert plan.walk.reads is not Reads.PIECES


@pytest.mark.parametrize(
    ("dims", "types", "rows", "box"),
    [
        (ACT, "f32:bfyx f32:byxf", 16, 1024),
        (ACT, "f16:bfyx f16:byxf", 32, 1024),
        (ACT, "u8:bfyx u8:byxf", 64, 1024),
        (ACT, "f32:bfyx s8:byxf", 16, 1024),
        (ACT, "f32:bfyx f32:b_fs_yx_fsv16", 16, 1024),
        ((64, 256, 28, 28), "f16:bfyx f16:byxf", 32, 832),  # half of the row: whole lines
        ((512, 64, 28, 28), "u8:bfyx u8:byxf", 64, 784),  # the row
        ((64, 256, 112, 112), "f32:b_fs_yx_fsv16 f32:bfyx", 1, 0),  # few rows
        ((1, 64, 112, 112), "f32:bfyx f32:byxf", 16, 0),  # the cache holds it
    ],
)
def test_many_rows_are_asked_for_in_boxes(
    dims: tuple[int, ...], types: str, rows: int, box: int
) -> None:
    src, dst = types.split()
    plan = _plan(dims, src, dst)
    path, middle = plan.walk, plan.walk.middle
    assert middle is not None
    step = plan.nodes[middle].src.value << plan.bits[middle]
    assert path.ahead * step * plan.problem.src.dtype.nbytes == box
    if path.ahead:
        assert path.reads is Reads.ROWS
        assert plan.register_count == rows >= STREAMS
        assert path.chunk % path.ahead == 0 or path.chunk == plan.positions(middle).value
        nearest = max(path.outer, key=lambda k: -plan.nodes[k].src.value << plan.bits[k])
        assert path.outer[-1] == nearest


@pytest.mark.parametrize(
    ("dims", "types", "steps"),
    [
        ((512, 1024, 3, 3), "f32:hwio f32:oiyx", 16),
        ((1024, 1024, 3, 3), "f16:hwio f16:oiyx", 32),
        ((128, 4096, 3, 3), "f32:hwio f16:oiyx", 32),
        ((2048, 2048, 3, 3), "s8:hwio s8:oiyx", 64),
    ],
)
def test_rows_that_are_steps_of_a_run_are_asked_for(
    dims: tuple[int, ...], types: str, steps: int
) -> None:
    """All outputs are gone through: behind them those of the run's next steps follow."""
    plan = _plan(dims, *types.split())
    (run,) = (k for k, n in enumerate(plan.nodes) if n.parts)
    outputs, path = 1 - run, plan.walk
    assert (path.outer, path.middle, path.inner) == ((run,), outputs, None)
    assert path.reads is Reads.ROWS
    assert path.ahead
    assert plan.steps_along(run) == steps
    strides: list[Expr] = [Var(f"s{k}") for k in range(len(plan.nodes))]
    asks = asks_of(plan, strides, {outputs: Var("count")})
    assert isinstance(asks, Rows)
    assert asks.rows == steps
    assert f"PLACE{run}(x{run} + (goes_on ? 0 : {steps}) + row)" in asks.row


@pytest.mark.parametrize(
    ("dims", "src", "dst", "registers", "nontemporal"),
    [
        (ACT, "f32:bfyx", "f32:byxf", 16, True),
        (ACT, "f16:bfyx", "f16:byxf", 32, True),
        (ACT, "f32:bfyx", "s8:byxf", 16, False),  # whole lines would take 64 registers
        ((32, 64, 112, 112), "u8:bfyx", "u8:byxf", 64, True),  # and are worth them here
        (ODD, "f16:bfyx", "f16:b_fs_yx_fsv16", 16, True),  # rows start at half a line
        (ODD, "f32:b_fs_yx_fsv16", "f32:bfyx", 16, False),  # rows start anywhere
        ((1, 64, 112, 112), "f32:bfyx", "f32:byxf", 16, False),  # the cache holds it
    ],
)
def test_tiles_are_longer_where_that_makes_whole_lines(
    dims: tuple[int, ...], src: str, dst: str, registers: int, nontemporal: bool
) -> None:
    plan = _plan(dims, src, dst)
    assert (plan.register_count, plan.nontemporal) == (registers, nontemporal)


@pytest.mark.parametrize(
    ("dims", "src", "dst", "rows", "groups"),
    [
        (ODD, "f32:b_fs_yx_fsv16", "f32:bfyx", 16, 1),
        (ODD, "f16:b_fs_yx_fsv16", "f16:bfyx", 16, 2),  # of 16 half vectors each
        (ODD, "u8:b_fs_yx_fsv16", "f32:bfyx", 16, 1),
        (ODD, "f32:b_fs_yx_fsv4", "f32:bfyx", 4, 1),
        ((64, 250, 19, 19), "f32:b_fs_yx_fsv16", "f32:bfyx", 16, 1),
        ((64, 250, 17, 17), "f32:b_fs_yx_fsv16", "f32:bfyx", 16, 1),
        ((128, 250, 14, 14), "f16:byxf", "f32:bfyx", 16, 1),
        (ODD, "f32:b_fs_yx_fsv8", "f16:bfyx", 8, 1),
    ],
)
def test_lines_are_carried_along_rows_that_start_anywhere(
    dims: tuple[int, ...], src: str, dst: str, rows: int, groups: int
) -> None:
    plan = _plan(dims, src, dst)
    assert plan.walk.carries
    assert not plan.nontemporal
    assert plan.walk.innermost == _near(plan, "dst")
    assert plan.register_count * plan.lanes * plan.problem.dst.dtype.nbytes == 64 * rows
    assert len(plan.groups) == groups


@pytest.mark.parametrize(
    ("dims", "src", "dst"),
    [
        (ACT, "f32:b_fs_yx_fsv16", "f32:bfyx"),  # rows start at lines
        ((999, 250, 3, 5), "f32:b_fs_yx_fsv16", "f32:bfyx"),  # rows are shorter than a line
        ((999, 250, 5, 5), "f32:b_fs_yx_fsv8", "f32:bfyx"),  # 8 rows of 2 tiles
        ((16, 32, 55, 57), "f16:bfyx", "f16:byxf"),  # rows are whole lines
        ((1, 250, 55, 57), "f32:bfyx", "f32:byxf"),  # the cache holds it
        (ODD, "u8:b_fs_yx_fsv16", "u8:bfyx"),  # no instruction turns 64 bytes
        ((1, 250, 55, 57), "f32:b_fs_yx_fsv16", "f32:bfyx"),  # the cache holds it
    ],
)
def test_lines_are_not_carried(dims: tuple[int, ...], src: str, dst: str) -> None:
    assert not _plan(dims, src, dst).walk.carries


@pytest.mark.parametrize(
    ("dims", "src", "middle", "ahead"),
    [
        ((64, 256, 14, 14), "f32:b_fs_yx_fsv16", 3136, False),  # the next block
        ((64, 250, 14, 14), "f32:b_fs_yx_fsv16", 3136, False),
        ((999, 250, 5, 5), "f32:b_fs_yx_fsv16", 400, False),  # 2 tiles, of 16 rows each
        ((999, 512, 5, 7), "f32:b_fs_yx_fsv8", 280, False),
        ((64, 256, 14, 14), "f32:byxf", 3136, True),  # the other channels
        ((64, 256, 14, 14), "f32:b_fs_yx_fsv32", 3136, True),  # the other half of a block
        ((64, 256, 14, 14), "f32:bs_fs_yx_bsv16_fsv16", 50176, True),  # the other images of a block
    ],
)
def test_rows_that_follow_each_other_are_linked(
    dims: tuple[int, ...], src: str, middle: int, *, ahead: bool
) -> None:
    plan = _plan(dims, src, "f32:bfyx")
    assert plan.walk.links
    assert plan.walk.innermost == _near(plan, "dst")
    node = plan.walk.middle or 0
    assert plan.nodes[node].dst.value << plan.bits[node] == middle
    assert (plan.walk.ahead > 0) == ahead


@pytest.mark.parametrize(
    ("dims", "types"),
    [
        (ODD, "f32:bfyx f32:byxf"),
        (ODD, "f16:bfyx f16:byxf"),
        (ODD, "u8:bfyx f32:byxf"),
        ((16, 997, 55, 57), "f32:bfyx f32:byxf"),
        ((64, 35, 55, 57), "f32:bfyx f32:byxf"),
        ((16, 250, 5, 11, 57), "f32:bfzyx f32:bzyxf"),
    ],
)
def test_rows_that_are_read_far_apart_are_linked_in_boxes(
    dims: tuple[int, ...], types: str
) -> None:
    plan = _plan(dims, *types.split())
    path = plan.walk
    assert path.links
    assert (path.middle, path.innermost) == (_near(plan, "src"), _near(plan, "dst"))
    assert path.middle is not None
    row = plan.steps_along(path.middle) * plan.problem.src.dtype.nbytes
    assert 0 < path.ahead * row * dims[1] <= ASKED_BYTES


@pytest.mark.parametrize(
    ("dims", "src", "dst", "registers"),
    [
        (ODD, "f32:byxf", "f32:bfyx", 16),
        (ODD, "f16:byxf", "f16:bfyx", 32),
        (ODD, "f32:byxf", "s8:bfyx", 64),  # whole lines, though they narrow
        (ODD, "u8:byxf", "u8:bfyx", 64),  # a box has 128 bytes of each row
        ((8, 250, 112, 112), "f32:byxf", "s8:bfyx", 64),  # a tile of f32 has no whole lines
        ((64, 500, 27, 29), "f32:bfyx", "f32:byxf", 16),  # rows are positions
        ((16, 250, 113, 113), "f32:b_fs_yx_fsv32", "f32:bfyx", 16),
        ((64, 1280, 33, 33), "f16:byxf", "f16:bfyx", 32),
    ],
)
def test_lines_wait_in_memory_where_tiles_lie_between_those_of_a_row(
    dims: tuple[int, ...], src: str, dst: str, registers: int
) -> None:
    plan = _plan(dims, src, dst)
    path, item = plan.walk, plan.problem.dst.dtype.nbytes
    assert path.carries
    assert path.reads is Reads.PIECES
    assert path.ahead
    assert (path.inner, path.middle) == (_near(plan, "src"), _near(plan, "dst"))
    assert plan.register_count == registers
    assert path.inner is not None
    lines = plan.positions(path.inner).value * plan.register_count * plan.lanes * item // 64
    assert isinstance(path.lines, Kept)
    assert lines <= path.lines.room in KEPT_LINES
    count = plan.positions(path.middle or 0).value
    assert path.chunk >= LEAST_KEPT or path.chunk == count


@pytest.mark.parametrize(
    ("dims", "src", "dst"),
    [
        (ODD, "f32:b_fs_yx_fsv16", "f32:bfyx"),  # nothing lies between
        ((64, 256, 14, 14), "f32:byxf", "f32:bfyx"),  # rows of 13 tiles, the cache holds an image
        ((16, 64, 55, 57), "f16:byxf", "f32:bfyx"),  # the cache holds an image: linked
        ((64, 67, 55, 57), "u8:byxf", "u8:bfyx"),  # collected in long runs
        ((4, 24, 150, 150), "f32:b_fs_yx_fsv32", "f32:bfyx"),  # half of the tiles are at an edge
        ((16, 12, 224, 224), "f32:bs_fs_yx_bsv16_fsv16", "s8:bfyx"),  # and all of them
        ((8, 2500, 33, 33), "f16:byxf", "f16:bfyx"),  # too many rows
        ((1, 250, 55, 57), "f32:byxf", "f32:bfyx"),  # the cache holds it
        (ODD, "f32:bfyx", "f32:byxf"),  # rows are read here and there
    ],
)
def test_lines_do_not_wait_in_memory(dims: tuple[int, ...], src: str, dst: str) -> None:
    assert not isinstance(_plan(dims, src, dst).walk.lines, Kept)


def test_rows_are_not_linked_where_something_lies_between_or_work_is_short() -> None:
    dims = (16, 64, 55, 57)
    src = cf.MemoryDesc(dims, "f32", "b_fs_yx_fsv16")
    for row, links in ((3135, True), (3136, False), (3137, False)):
        dst = cf.MemoryDesc(dims, "f32", strides=(64 * row, row, 57, 1))
        plan = make_plan(src, dst).body
        assert isinstance(plan, TilePlan)
        assert plan.walk.links == links
        assert plan.walk.carries
    few = _plan((1, 64, 501, 503), "f32:b_fs_yx_fsv16", "f32:bfyx")
    assert few.walk.carries
    assert not few.walk.links


@pytest.mark.parametrize(
    ("dims", "types", "span"),
    [
        ((1024, 1024, 3, 3), "f16 f16", (18, (0, 2))),
        ((1024, 1024, 3, 3), "f32 bf16", (18, (0, 2))),
        ((2048, 1024, 3, 3), "u8 u8", (36, (0, 16, 20))),
        ((2048, 2048, 1, 3), "f16 f16", (24, (0, 8))),  # 6 steps fill no vector
        ((1024, 1024, 3, 3), "f32 f32", None),  # a vector is a line
        ((1024, 1000, 3, 3), "f16 f16", None),  # the last block has fewer inputs
        ((256, 256, 3, 3), "f16 f16", None),  # the cache holds it
    ],
)
def test_lines_are_put_together_from_steps_of_a_run_that_lie_apart(
    dims: tuple[int, ...], types: str, span: tuple[int, tuple[int, ...]] | None
) -> None:
    read, written = types.split()
    plan = _plan(dims, f"{read}:oiyx", f"{written}:os_is_yx_isv16_osv16")
    assert (plan.span and (plan.span.size, plan.span.starts)) == span
    if plan.span:
        assert plan.nontemporal
        assert sorted(s for line in plan.span.lines for s in line) == [*range(plan.span.size)]
        for line in plan.span.lines:
            assert all(plan.span.starts[v] + k in line for v, k in map(plan.span.place, line))


@pytest.mark.parametrize(
    ("dims", "src", "dst", "row", "whole"),
    [
        (ODD, "u8:b_fs_yx_fsv16", "u8:bfyx", 3135, True),
        ((8, 64, 97, 131), "f32:b_fs_yx_fsv16", "s8:bfyx", 97 * 131, False),
        (ODD, "u8:b_fs_yx_fsv32", "u8:bfyx", 3135, False),
        ((32, 100, 35, 35), "f32:b_fs_yx_fsv4", "s8:bfyx", 4900, True),  # blocks of 4 rows
        ((128, 256, 14, 14), "f32:fs_b_yx_fsv32", "s8:bfyx", 196, True),
        ((64, 1280, 7, 7), "f32:b_fs_yx_fsv16", "s8:bfyx", 784, True),
        ((64, 256, 14, 14), "f32:b_fs_yx_fsv16", "f16:bfyx", 3136, True),  # too many registers
        ((2, 64, 301, 303), "f32:b_fs_yx_fsv16", "bf16:bfyx", 301 * 303, False),
        (ODD, "u8:bfyx", "u8:byxf", 250, True),
        (ODD, "f32:bfyx", "s8:byxf", 250, True),  # rows that start at no piece
        ((10, 256, 56, 56), "f32:bfyx", "s8:byxf", 256, True),  # long ones
        ((12, 67, 112, 112), "u8:bfyx", "u8:byxf", 67, True),  # one short box of many
        ((150, 512, 14, 14), "f32:bfyx", "s8:byxf", 512, False),  # the last box were one tile
        ((64, 67, 55, 57), "u8:byxf", "u8:bfyx", 3135, False),  # runs are long
        (ACT, "f32:b_fs_yx_fsv32", "s8:bfyx", 112 * 112, False),  # lines take 64 registers
    ],
)
def test_boxes_are_collected_where_lines_are_not_carried(
    dims: tuple[int, ...], src: str, dst: str, row: int, *, whole: bool
) -> None:
    plan = _plan(dims, src, dst)
    path, stage, item = plan.walk, plan.walk.stage, plan.problem.dst.dtype.nbytes
    assert stage is not None
    assert not path.carries
    assert path.ahead
    assert plan.nodes[stage.row].dst.value == row
    assert (stage.pitch == 0) == whole
    assert stage.along == _near(plan, "dst")
    assert {path.middle, path.inner} == {stage.row, stage.along}
    rows = plan.positions(stage.row).value * plan.steps_along(stage.row)
    held = stage.held * plan.steps_along(path.middle or 0)
    if whole:
        assert held * row * item <= STAGE_BYTES[0] or stage.holds_all
        assert rows * row * item <= STAGE_BYTES[1] or not stage.holds_all
        assert stage.holds_all == (path.middle == stage.along)
    else:
        line = 64 // item
        assert held % line == 0
        assert stage.pitch % line == row % line
        # A tile that overlaps begins less than a line in front of its row's part.
        assert stage.pitch >= held + line
        assert rows * stage.pitch * item <= STAGE_BYTES[1]


@pytest.mark.parametrize(
    "dims",
    [
        (24, 72, 77, 79),
        (5, 96, 160, 160),
        (200, 160, 27, 29),  # a box is half a row, the second one shorter
        (60, 250, 28, 28),
    ],
)
def test_collected_bytes_are_loaded_by_lines_of_rows(dims: tuple[int, ...]) -> None:
    src, dst = (cf.MemoryDesc(dims, "u8", fmt) for fmt in ("bfyx", "byxf"))
    whole = make_plan(src, dst)
    plan = whole.body
    assert isinstance(plan, TilePlan)
    along = _near(plan, "src")
    assert plan.steps_along(along) == 64
    assert plan.steps_along(_near(plan, "dst")) == 16
    assert {len(group) for group in plan.groups} == {16}
    path = plan.walk
    assert path.stage is not None
    assert (path.reads, path.middle) == (Reads.ROWS, along)
    # With each tile as many lines as make all of a box, the shorter one at the end of a row too.
    kernel = launch(whole)
    assert kernel is not None
    asked = kernel.source.count("ASK_NEXT\n")
    last = plan.positions(along).value % path.ahead or path.ahead
    assert asked * last >= 16 * path.ahead
    # Not one kernel for each number: that would be one for each size.
    assert asked in (16, 24, 32)


def test_collected_bytes_have_the_registers_that_are_chosen() -> None:
    src, dst = (cf.MemoryDesc((24, 72, 77, 79), "u8", fmt) for fmt in ("bfyx", "byxf"))
    plan = make_plan(src, dst, choices=Choices(registers=64)).body
    assert isinstance(plan, TilePlan)
    assert plan.register_count == 64
    assert not plan.passes


@pytest.mark.parametrize(
    ("dims", "src", "dst"),
    [
        (ODD, "f32:b_fs_yx_fsv16", "f32:bfyx"),  # lines are carried
        ((32, 100, 35, 35), "f32:b_fs_yx_fsv8", "f16:bfyx"),
        ((20, 128, 56, 56), "f32:bfyx", "s8:byxf"),  # in boxes of rows, to shorter elements
        ((60, 24, 113, 113), "f32:bfyx", "s8:byxf"),
        (ODD, "f16:bfyx", "f16:byxf"),  # rows are linked
        ((512, 512, 7, 7), "u8:b_fs_yx_fsv32", "u8:bfyx"),  # rows of 49, blocks of 2 tiles
        ((32, 100, 35, 35), "f32:bs_fs_yx_bsv32_fsv32", "s8:bfyx"),  # nothing is asked for
        (ACT, "u8:b_fs_yx_fsv16", "u8:bfyx"),  # tiles store whole lines
        ((1, 250, 55, 57), "u8:b_fs_yx_fsv16", "u8:bfyx"),  # the cache holds it
    ],
)
def test_boxes_are_not_collected(dims: tuple[int, ...], src: str, dst: str) -> None:
    assert _plan(dims, src, dst).walk.stage is None


def test_a_box_of_all_rows_is_not_divided_by_choice() -> None:
    src = cf.MemoryDesc((128, 256, 14, 14), "f32", "fs_b_yx_fsv32")
    dst = cf.MemoryDesc(src.dims, "s8", "bfyx")
    plan = make_plan(src, dst, choices=Choices(chunk=1)).body
    assert isinstance(plan, TilePlan)
    assert plan.walk.chunk == 13


@pytest.mark.parametrize(
    ("dims", "src", "dst"),
    [
        (W3, "f16:OIhw8i8o", "f16:os_is_yx_isv16_osv16"),  # the next position, not the next inputs
        ((256, 256, 3, 3), "f16:OIhw8i8o", "f16:os_is_yx_isv16_osv16"),
        (W3, "f32:os_is_yx_isv16_osv16", "f32:OIhw8i8o"),
        ((1, 512, 128, 128), "f32:byxf", "f32:fs_b_yx_fsv32"),
    ],
)
def test_what_follows_a_short_loop_in_the_source_is_read_next(
    dims: tuple[int, ...], src: str, dst: str
) -> None:
    plan = _plan(dims, src, dst)
    short = _near(plan, "src")
    assert short == _near(plan, "dst")
    inside = {*plan.walk.loops} - {*plan.walk.outer}
    assert short in inside
    steps = {k: plan.nodes[k].src.value << plan.bits[k] for k in range(len(plan.nodes))
             if k != short and plan.positions(k).value > 1}  # fmt: skip
    assert min(steps, key=steps.__getitem__) in inside


def test_lines_are_not_carried_by_devices_with_shorter_vectors() -> None:
    src, dst = (cf.MemoryDesc(ODD, "f32", fmt) for fmt in ("b_fs_yx_fsv16", "bfyx"))
    for traits in (Traits(vector_bytes=32), Traits(is_cpu=False)):
        plan = make_plan(src, dst, traits).body
        assert not (isinstance(plan, TilePlan) and plan.walk.carries)


def test_a_row_that_is_shared_among_work_items_is_long_enough_in_each() -> None:
    plan = _plan((1, 16, 1000, 1001), "f32:b_fs_yx_fsv16", "f32:bfyx")
    assert plan.walk.inner is None
    assert LEAST_CARRIED <= plan.walk.chunk < plan.positions(plan.walk.innermost or 0).value


def test_stores_pass_by_the_cache_from_a_share_of_it_on() -> None:
    traits, least = Traits(cache_bytes=1 << 20), int(CACHE_FLOOR * STREAMED_SHARE)
    assert not traits.streams(least - 1)
    assert traits.streams(least)
    assert not Traits(cache_bytes=64 << 20).streams(least)
    huge = Traits(cache_bytes=300 << 20)
    assert [huge.streams(n) for n in (STREAMED_MOST - 1, STREAMED_MOST)] == [False, True]
    assert Traits(streamed_bytes=0).streams(0)
    assert not Traits(is_cpu=False, streamed_bytes=0).streams(0)


@pytest.mark.parametrize(
    ("src", "dst", "run"),
    [
        ("f32:oiyx", "f32:os_is_yx_isv16_osv16", 9216),
        ("f32:oiyx", "f32:hwio", 9216),
        ("f32:hwio", "f32:oiyx", 9216),
        ("f32:oiyx", "f32:os_is_yx_osv16_isv4", 0),  # the block of 4 lies between
        ("f32:oiyx", "f32:oyxi", 0),  # two loops, not one in the other
    ],
)
def test_short_loops_are_one_run(src: str, dst: str, run: int) -> None:
    plan = _plan(W3, src, dst)
    assert [n.size.value for n in plan.nodes if n.parts] == ([run] if run else [])
    assert not run or plan.load_piece == plan.store_piece == 16


def test_rows_are_read_long_rather_than_many() -> None:
    plan = _plan(W3, "f32:oiyx", "f32:hwio")
    assert plan.walk.inner is None
    assert plan.walk.chunk * 64 >= 2048


def test_every_walk_visits_every_tile_once() -> None:
    for counts in [(1, 1), (5, 1), (3, 70), (70, 3), (100, 100), (4, 4)]:
        for whole in (False, True):
            tiles = Tiles(counts, (1, 64), (64, 1), 16, 4, 4, 16, 16, whole_lines=whole)
            w = walk(tiles, Traits(), large=whole)
            visited = set(w.loops)
            assert visited == {k for k, count in enumerate(counts) if count > 1}
            assert w.middle is None or 1 <= w.chunk <= counts[w.middle]


@pytest.mark.parametrize("whole", [False, True])
@pytest.mark.parametrize("still", [(0,), (1,), (2,), (0, 1), (0, 1, 2)])
def test_loops_that_stand_still_in_the_source_are_not_asked_for_ahead(
    still: tuple[int, ...], *, whole: bool
) -> None:
    """A repeated source has strides of 0 there: neither ahead nor behind lies anything else."""
    for steps in permutations((1, 64, 4096)):
        sources = [0 if k in still else step for k, step in enumerate(steps)]
        tiles = Tiles((70, 90, 500), sources, (4096, 64, 16), 256, 4, 4, 32, 1, whole_lines=whole)
        w = walk(tiles, Traits(), large=whole)
        assert w.middle is not None
        assert not w.ahead or w.middle not in still


def test_a_repeated_source_has_a_plan() -> None:
    src = cf.MemoryDesc((1, 4000, 32, 3), "f16", "byxf").broadcast_to((100, 4000, 32, 3))
    for fmt in ("bfyx", "yxfb", "b_fs_yx_fsv16"):
        for traits in (Traits(), Traits(streamed_bytes=0)):
            assert make_plan(src, cf.MemoryDesc(src.dims, "f16", fmt), traits).body


@pytest.mark.parametrize("traits", [Traits(), Traits(streamed_bytes=0)])
@pytest.mark.parametrize(
    ("dims", "types"),
    [
        ((2, 16, 5003, 6007), "f32:bfyx f32:byxf"),
        ((2, 16, 5003, 6007), "u8:byxf u8:bfyx"),
        ((3, 64, 997, 1009), "f16:bfyx f16:b_fs_yx_fsv16"),
        ((5003, 64, 31, 37), "f32:b_fs_yx_fsv16 f32:bfyx"),
        ((16384, 4093, 3, 3), "f32:oiyx f32:os_is_yx_isv16_osv16"),
        ((512, 1021, 31, 37), "f32:byxf f32:b_fs_yx_fsv16"),
    ],
)
def test_what_is_asked_for_ahead_lies_in_the_source(
    dims: tuple[int, ...], types: str, traits: Traits
) -> None:
    """Whatever is chosen: kernels reckon its place in 32 bits, which sources of 2**31 just fit."""
    src, dst = (cf.MemoryDesc(dims, *text.split(":")) for text in types.split())
    for ahead in (0, 1, 2, 4, 32, 12345, 1 << 20):
        plan = make_plan(src, dst, traits, choices=cf.Choices(ahead=ahead, chunk=1 << 30))
        assert isinstance(plan.body, TilePlan)
        body, path = plan.body, plan.body.walk
        assert path.middle is not None
        counts = body.positions(path.middle).value
        assert path.ahead < counts
        assert path.chunk <= counts
        step = body.nodes[path.middle].src.value << body.bits[path.middle]
        assert path.ahead * step <= src.nelems, plan
        if path.reads is Reads.APART:
            assert not path.ahead
            continue
        least = 1 if path.reads is Reads.BOXES else 0  # a box has a position at the least
        assert path.ahead == max(ahead, least) or 2 * path.ahead >= counts - 1 or ahead > counts
