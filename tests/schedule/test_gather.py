"""Rows gathered from blocks: where, how many, in which order, and what nothing may be read of."""

from __future__ import annotations

from dataclasses import replace

import pytest

import clformats as cf
from clformats.kernels import launch
from clformats.schedule import Traits, make_plan
from clformats.schedule.gather import STAGE_BYTES, GatherPlan, rows_of
from clformats.schedule.refine import problem
from clformats.schedule.tile import TilePlan

D = cf.MemoryDesc
LARGE, SMALL = Traits(streamed_bytes=0), Traits()


def _sides(dims: tuple[int, ...], types: str) -> tuple[D, D]:
    src, dst = (D(dims, *text.split(":")) for text in types.split())
    return src, dst


def _family(dims: tuple[int, ...], types: str, traits: Traits = LARGE) -> str:
    return make_plan(*_sides(dims, types), traits).family


def _body(dims: tuple[int, ...], types: str, traits: Traits = LARGE) -> GatherPlan:
    body = make_plan(*_sides(dims, types), traits).body
    assert isinstance(body, GatherPlan)
    return body


@pytest.mark.parametrize(
    ("dims", "types", "width", "pieces", "size", "images"),
    [
        ((2, 80, 31, 53), "u8:b_fs_yx_fsv32 u8:byxf", 32, 3, 80, 2),
        ((3, 40, 31, 53), "f32:b_fs_yx_fsv16 s8:byxf", 16, 3, 40, 3),
        ((3, 24, 31, 53), "u8:b_fs_yx_fsv32 f32:byxf", 32, 1, 24, None),
        ((3, 96, 31, 53), "u8:b_fs_yx_fsv16 u8:byxf", 16, 6, 96, 3),
        ((3, 40, 31, 53), "f32:fs_b_yx_fsv32 f32:byxf", 32, 2, 40, None),
        ((3, 40, 5, 31, 53), "f16:b_fs_zyx_fsv16 f16:bzyxf", 16, 3, 40, 3),
        ((3, 100, 31, 53), "f32:b_fs_yx_fsv4 f32:byxf", 4, 25, 100, 3),
    ],
)
def test_rows_are_the_channels_of_a_position(
    dims: tuple[int, ...], types: str, width: int, pieces: int, size: int, images: int | None
) -> None:
    rows = _body(dims, types).rows
    assert (rows.width, rows.pieces, rows.size) == (width, pieces, size)
    assert (rows.images and rows.images.size.value) == images


@pytest.mark.parametrize(
    ("dims", "types"),
    [
        ((3, 64, 31, 53), "f32:b_fs_yx_fsv16 f32:byxf"),  # rows of whole lines
        ((3, 32, 31, 53), "u8:b_fs_yx_fsv16 u8:byxf"),  # two rows are one
        ((3, 9, 31, 53), "u8:b_fs_yx_fsv16 u8:byxf"),  # most of a block is empty
        ((3, 40, 31, 53), "u8:b_fs_yx_fsv4 u8:byxf"),  # pieces of 4 bytes
        ((3, 40, 3, 5), "u8:b_fs_yx_fsv16 u8:byxf"),  # blocks of 240 bytes
        ((1, 600, 7, 7), "f32:b_fs_yx_fsv16 f32:byxf"),  # short ones, and many
        ((3, 40, 31, 53), "f32:byxf f32:b_fs_yx_fsv16"),
        ((3, 40, 31, 53), "f32:b_fs_yx_fsv16 f32:bfyx"),
        ((64, 40, 31, 53), "f32:bs_fs_yx_bsv32_fsv32 f32:byxf"),  # no piece follows another one
        ((3, 40, 31, 53), "f32:b_fs_yx_fsv16 f32:b_fs_yx_fsv32"),
    ],
)
def test_other_families_are_faster_or_alone(dims: tuple[int, ...], types: str) -> None:
    assert _family(dims, types) != "gather"


def test_in_a_cache_full_blocks_are_left_to_others() -> None:
    full, part = "u8:b_fs_yx_fsv16 u8:byxf", (1, 88, 31, 53)
    assert _family((1, 96, 31, 53), full) == "gather"
    assert _family((1, 96, 31, 53), full, SMALL) != "gather"
    assert _family(part, full, SMALL) == "gather"
    assert not _body(part, full, SMALL).nontemporal


def test_padding_of_rows_is_nothing_to_gather() -> None:
    dims = (2, 40, 31, 53)
    padded = D(dims, "f32", "byxf", padding=((0, 0), (3, 2), (0, 0), (0, 0)))
    shifted = D(dims, "f32", "b_fs_yx_fsv16", padding=((0, 0), (16, 0), (0, 0), (0, 0)))
    assert make_plan(D(dims, "f32", "b_fs_yx_fsv16"), padded, LARGE).family != "gather"
    assert make_plan(shifted, D(dims, "f32", "byxf"), LARGE).family == "gather"
    spatial = D(dims, "f32", "byxf", padding=((0, 0), (0, 0), (1, 0), (0, 2)))
    assert make_plan(D(dims, "f32", "b_fs_yx_fsv16"), spatial, LARGE).family != "gather"


@pytest.mark.parametrize("channels", [40, 100, 303, 511])
@pytest.mark.parametrize("types", ["f32 f32", "f32 u8", "u8 u8", "u8 f32"])
def test_a_box_fits_into_its_stage(channels: int, types: str) -> None:
    src, dst = types.split()
    body = _body((2, channels, 131, 53), f"{src}:b_fs_yx_fsv16 {dst}:byxf")
    nbytes = body.held * body.rows.size * body.problem.dtypes[1].nbytes
    assert body.stage_bytes in STAGE_BYTES
    assert 64 <= nbytes <= body.stage_bytes
    # Lines that several rows share are gone along, where a box has room for it.
    row = body.rows.size * body.problem.dtypes[1].nbytes
    short = src == "u8" and STAGE_BYTES[-1] // row * 16 >= 256
    assert body.by_blocks == short
    assert body.parts * body.chunk >= body.total > (body.parts - 1) * body.chunk


@pytest.mark.parametrize("channels", [520, 600, 1000, 1030, 2047])
def test_many_pieces_are_gathered_in_runs_or_not_at_all(channels: int) -> None:
    for types in ("f32 f32", "f32 u8", "u8 u8", "u8 f16", "u8 f32", "f16 f16"):
        src, dst = (D((2, channels, 131, 53), *t.split(":")) for t in (
            f"{types.split()[0]}:b_fs_yx_fsv16", f"{types.split()[1]}:byxf"))  # fmt: skip
        body = make_plan(src, dst, LARGE).body
        runs = 16384 // (channels * dst.dtype.nbytes) * 16 * src.dtype.nbytes
        assert isinstance(body, GatherPlan) == (runs >= 256)
        if isinstance(body, GatherPlan):
            assert body.by_blocks
            assert body.held * 16 * src.dtype.nbytes >= 256
            assert body.held * channels * dst.dtype.nbytes <= body.stage_bytes


@pytest.mark.parametrize("types", ["f32:b_fs_yx_fsv16 s8:byxf", "u8:b_fs_yx_fsv32 u8:byxf"])
def test_every_shape_of_a_structure_has_one_kernel(types: str) -> None:
    sources = {
        made.source
        for dims in ((2, 40, 31, 53), (5, 72, 17, 19), (3, 250, 9, 31))
        if (made := launch(make_plan(*_sides(dims, types), LARGE)))
    }
    assert len(sources) == 1


def test_all_of_a_piece_lies_in_memory() -> None:
    """A source that ends with its elements, inside a block, is not read beyond them."""
    dims = (1, 40, 31, 53)
    src, dst = D(dims, "f32", "b_fs_yx_fsv16"), D(dims, "f32", "byxf")
    rows = rows_of(problem(src, dst))
    assert not isinstance(rows, str)
    last = src.offset(0, 39, 30, 52) - 7 + rows.width
    assert last <= src.nbytes // 4


def test_where_elements_may_begin_anywhere_another_family_takes_over() -> None:
    sides = _sides((3, 40, 31, 53), "f32:b_fs_yx_fsv16 f16:byxf")
    plan = make_plan(*sides, LARGE)
    assert (plan.family, plan.alignment) == ("gather", (1, 2))
    assert isinstance(plan.beginning_at(2, LARGE).body, GatherPlan)
    other = plan.beginning_at(1, LARGE)
    assert (other.family, type(other.body), other.alignment) == ("rows", TilePlan, (1, 1))
    reasons = dict(other.rejected)
    assert reasons["gather"] == "elements of 2 bytes may begin anywhere"
    assert launch(other).source != launch(plan).source  # type: ignore[union-attr]
    with pytest.raises(cf.Unsupported, match="may begin anywhere"):
        make_plan(*sides, replace(LARGE, begin_bytes=1), "gather")
