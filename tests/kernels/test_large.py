"""What is done for tensors that exceed the cache, on small ones: whole lines, prefetches, runs."""

from __future__ import annotations

import random

import pytest

import clformats as cf
from tests.device_support import as_large, check_reorder
from tests.support import BUFFERS, random_pair

pytestmark = [pytest.mark.sampled(12), pytest.mark.usefixtures("plans_for_cpus")]

D = cf.MemoryDesc


@pytest.fixture(scope="module")
def streaming(engine: cf.Engine) -> cf.Stream:
    """A stream of an engine whose kernels treat every tensor as a large one."""
    return as_large(engine, compute_units=1)


CASES = [
    ("f32", "byxf", "bfyx", (2, 48, 7, 16), "ahead"),
    ("f32", "byxf", "bfyx", (2, 250, 5, 16), "ahead"),
    ("f32", "byxf", "bfyx", (2, 250, 5, 7), ""),
    ("f16", "byxf", "bfyx", (3, 72, 16, 24), "ahead"),
    ("f16", "byxf", "bfyx", (3, 72, 4, 24), "in boxes"),
    ("u8", "byxf", "bfyx", (3, 64, 9, 8), ""),
    ("f32", "byxf", "b_fs_yx_fsv16", (2, 61, 5, 57), "ahead"),
    ("f16", "bfyx", "byxf", (1, 64, 16, 12), "ahead"),
    ("f16", "bfyx", "byxf", (1, 67, 16, 11), ""),
    ("f16", "bfyx", "b_fs_yx_fsv16", (2, 33, 9, 7), "non-temporal"),
    ("f16", "b_fs_yx_fsv16", "bfyx", (2, 33, 8, 8), ""),
    ("f32", "b_fs_yx_fsv16", "bfyx", (2, 50, 9, 7), ""),
    ("f32", "bfyx", "yxfb", (16, 19, 7, 5), ""),
    ("s8", "bfyx", "b_fs_yx_fsv32", (2, 45, 9, 7), ""),
    ("u8", "byxf", "bfyx", (2, 67, 8, 24), "non-temporal"),
    ("u8", "b_fs_yx_fsv16", "bfyx", (2, 37, 8, 24), "non-temporal"),
]


@pytest.mark.parametrize(("dtype", "src", "dst", "dims", "says"), CASES)
@pytest.mark.parametrize("front", [0, 1])
def test_large_data(
    dtype: str, src: str, dst: str, dims: tuple[int, ...], says: str, front: int,
    streaming: cf.Stream,
) -> None:  # fmt: skip
    made = check_reorder(D(dims, dtype, src), D(dims, dtype, dst), streaming, front=front)
    assert front or says in str(made.plan)


# Lines whose parts lie apart in a run of the source.
SPANS = [
    ("oiyx", "os_is_yx_isv16_osv16", (32, 48, 3, 3)),
    ("oiyx", "os_is_yx_isv16_osv16", (16, 64, 1, 3)),
    ("oiyx", "os_is_yx_isv16_osv16", (48, 16, 3, 5)),
    ("goiyx", "g_os_is_yx_isv16_osv16", (3, 16, 32, 3, 3)),
    ("oizyx", "os_is_zyx_isv16_osv16", (16, 32, 3, 1, 3)),
]


@pytest.mark.parametrize(("src", "dst", "dims"), SPANS)
@pytest.mark.parametrize(
    "types", [("f16", "f16"), ("f32", "f16"), ("f32", "bf16"), ("u8", "u8"), ("f32", "s8")]
)
def test_lines_are_put_together_from_parts(
    src: str, dst: str, dims: tuple[int, ...], types: tuple[str, str], streaming: cf.Stream
) -> None:
    a, b = (D(dims, dtype, fmt) for dtype, fmt in zip(types, (src, dst), strict=True))
    for front in (0, 32):
        made = check_reorder(a, b, streaming, front=front)
        assert ("vectors" in str(made.plan)) == (front * b.dtype.nbytes % 64 == 0)
    scaled = check_reorder(a, b, streaming, attr=cf.Attr(src_scale=0.5))
    assert "vectors" in str(scaled.plan)


# Words of elements that lie apart in the source.
WEAVES = [
    ("s8", "oiyx", "os_is_yx_osv16_isv4", (16, 4, 3, 3)),
    ("s8", "oiyx", "os_is_yx_osv16_isv4", (48, 20, 3, 5)),
    ("u8", "oiyx", "os_is_yx_isa8_osv8_isv4", (24, 64, 3, 3)),
    ("bf16", "oiyx", "OIhw8i16o2i", (32, 48, 5, 5)),
    ("f16", "oiyx", "OIhw8i16o2i", (32, 48, 3, 3)),
    ("s8", "goiyx", "gOIhw16i16o4i", (3, 16, 64, 3, 3)),
    ("s8", "oizyx", "OIdhw16o4i", (32, 12, 3, 3, 3)),
    ("s8", "oiyx", "ohwi", (5, 64, 1, 5)),
    ("f16", "bfyx", "byxf", (5, 32, 3, 5)),
    ("s8", "oiyx", "os_is_yx_osv16_isv4", (32, 8, 4, 4)),
]


@pytest.mark.parametrize("case", WEAVES, ids=str)
@pytest.mark.parametrize("large", [False, True])
@pytest.mark.parametrize("front", [0, 1, 4])
def test_words_are_woven(
    case: tuple[str, str, str, tuple[int, ...]], front: int, stream: cf.Stream,
    streaming: cf.Stream, *, large: bool,
) -> None:  # fmt: skip
    dtype, src, dst, dims = case
    for choices in (cf.Choices(), cf.Choices(lanes=8), cf.Choices(lanes=4, baked=True)):
        made = check_reorder(
            D(dims, dtype, src), D(dims, dtype, dst), streaming if large else stream, front=front,
            choices=choices,
        )  # fmt: skip
        whole = front * D(dims, dtype, src).dtype.nbytes % 4 == 0
        assert ("woven" in str(made.plan)) == whole or choices.lanes


# Lines joined from several registers: windows whose positions fill no vector.
JOINED = [
    ("f32", "f32", "os_is_yx_osv16_isv4", "oiyx", (32, 16, 3, 3)),
    ("f32", "f32", "os_is_yx_osv16_isv16", "oiyx", (16, 48, 3, 3)),
    ("f32", "bf16", "OIhw16i16o4i", "oiyx", (32, 64, 3, 3)),
    ("f16", "f16", "OIhw8i8o", "oiyx", (24, 32, 3, 3)),
    ("f16", "f32", "OIhw8i8o", "oiyx", (24, 48, 1, 3)),
    ("s8", "s8", "os_is_yx_osv16_isv4", "oiyx", (32, 64, 3, 3)),
    ("s8", "f32", "os_is_yx_osv16_isv16", "oiyx", (32, 48, 7, 7)),
    ("f32", "s8", "os_is_yx_osv16_isv4", "oiyx", (48, 64, 1, 5)),
    ("f16", "f16", "OIhw8i16o2i", "oiyx", (32, 96, 3, 3)),
    ("f32", "f32", "ohwi", "oiyx", (5, 32, 5, 5)),
    ("u8", "u8", "gOIhw4i16o4i", "goiyx", (3, 16, 64, 1, 7)),
    ("bf16", "f32", "OIdhw16o4i", "oizyx", (16, 32, 3, 3, 3)),
    ("f64", "f64", "bfyx", "byxf", (3, 6, 5, 16)),
    ("f32", "f32", "bfyx", "byxf", (3, 12, 8, 14)),
    ("f32", "f32", "b_fs_yx_fsv16", "bfyx", (5, 48, 7, 7)),
]


@pytest.mark.parametrize("case", JOINED, ids=str)
@pytest.mark.parametrize("large", [False, True])
@pytest.mark.parametrize("front", [0, 1])
def test_lines_are_joined(
    case: tuple[str, str, str, str, tuple[int, ...]], front: int, stream: cf.Stream,
    streaming: cf.Stream, *, large: bool,
) -> None:  # fmt: skip
    read, written, src, dst, dims = case
    a, b = D(dims, read, src), D(dims, written, dst)
    for choices in (cf.Choices(), cf.Choices(lanes=8, chunk=1), cf.Choices(baked=True)):
        used = streaming if large else stream
        made = check_reorder(a, b, used, front=front, choices=choices)
        # Memory that begins inside a line has no whole ones; ordinary vectors may be as long.
        assert not large or front or choices.lanes or "join" in str(made.plan)


def test_joined_rows_may_start_anywhere(stream: cf.Stream, streaming: cf.Stream) -> None:
    """The last tile overlaps; rows have gaps, or are part of a larger tensor."""
    for inputs in (20, 28, 100):
        dims = (16, inputs, 3, 3)
        a = D(dims, "f32", "os_is_yx_osv16_isv4")
        gaps = D(dims, "f32", strides=(inputs * 9 + 7, 9, 3, 1))
        part = D((20, inputs + 3, 3, 3), "f32", "oiyx").submemory(dims, (3, 2, 0, 0))
        for b in (D(dims, "f32", "oiyx"), gaps, part):
            for used in (stream, streaming):
                assert "join" in str(check_reorder(a, b, used).plan)


# Windows of 3 positions: shorter than the shortest vector, and once next to too few inputs for one.
@pytest.mark.parametrize(
    ("dtype", "dst", "dims"),
    [
        ("s8", "ohwi", (5, 4, 1, 3)),
        ("s8", "ohwi", (3, 8, 1, 3)),
        ("u8", "ohwi", (7, 64, 3, 1)),
        ("f16", "ohwi", (3, 2, 1, 3)),
        ("f16", "ohwi", (48, 16, 1, 3)),
        ("s8", "hwio", (1, 4, 1, 3)),
        ("s8", "os_is_yx_osv16_isv4", (32, 8, 1, 3)),
    ],
)
@pytest.mark.parametrize("large", [False, True])
def test_words_of_short_runs_stay_inside(
    dtype: str, dst: str, dims: tuple[int, ...], stream: cf.Stream, streaming: cf.Stream, *,
    large: bool,
) -> None:  # fmt: skip
    a, b = D(dims, dtype, "oiyx"), D(dims, dtype, dst)
    check_reorder(a, b, streaming if large else stream)


# Lines that go across tiles: rows of 20 tiles and more, some with one that overlaps.
CARRIED = [
    ("f32", "f32", "b_fs_yx_fsv16", "bfyx", (3, 37, 17, 23)),
    ("f32", "f32", "b_fs_yx_fsv16", "bfyx", (2, 32, 16, 21)),
    ("f32", "f32", "b_fs_yx_fsv4", "bfyx", (2, 5, 19, 31)),
    ("f32", "f32", "b_fs_yx_fsv8", "bfyx", (2, 19, 18, 29)),
    ("f16", "f16", "b_fs_yx_fsv16", "bfyx", (3, 37, 17, 43)),
    ("bf16", "bf16", "b_fs_yx_fsv4", "bfyx", (2, 9, 16, 41)),
    ("f16", "f32", "b_fs_yx_fsv16", "bfyx", (2, 37, 19, 23)),
    ("s8", "f32", "b_fs_yx_fsv16", "bfyx", (2, 37, 19, 23)),
    ("u8", "f16", "b_fs_yx_fsv16", "bfyx", (2, 37, 19, 43)),
    ("f32", "f32", "b_fs_zyx_fsv16", "bfzyx", (2, 37, 5, 17, 7)),
]


@pytest.mark.parametrize("case", CARRIED, ids=str)
@pytest.mark.parametrize("front", [0, 1, 13])
@pytest.mark.parametrize("chunk", [None, 1, 7])
def test_lines_go_across_tiles(
    case: tuple[str, str, str, str, tuple[int, ...]], front: int, chunk: int | None,
    streaming: cf.Stream,
) -> None:  # fmt: skip
    read, written, src, dst, dims = case
    a, b = D(dims, read, src), D(dims, written, dst)
    choices = cf.Choices(chunk=chunk, baked=front == 13)
    made = check_reorder(a, b, streaming, front=front, choices=choices)
    assert "carried" in str(made.plan) or (front == 0 and b.strides[1] * b.dtype.nbytes % 64 == 0)


# Rows that are linked: each ends in the line where the next one begins.
LINKED = [
    ("f32", "f32", "b_fs_yx_fsv16", "bfyx", (3, 64, 13, 17)),
    ("f32", "f32", "b_fs_yx_fsv16", "bfyx", (3, 61, 7, 7)),  # the last block is not whole
    ("f32", "f32", "b_fs_yx_fsv16", "bfyx", (3, 37, 4, 5)),  # 2 tiles
    ("f32", "f32", "b_fs_yx_fsv16", "bfyx", (5, 41, 1, 31)),
    ("f32", "f32", "b_fs_yx_fsv4", "bfyx", (2, 11, 5, 7)),
    ("f16", "f16", "b_fs_yx_fsv16", "bfyx", (3, 37, 7, 7)),
    ("bf16", "bf16", "b_fs_yx_fsv8", "bfyx", (3, 21, 5, 13)),
    ("f32", "f16", "b_fs_yx_fsv8", "bfyx", (3, 37, 5, 13)),
    ("u8", "f32", "b_fs_yx_fsv32", "bfyx", (4, 69, 5, 13)),
    ("f32", "f32", "byxf", "bfyx", (5, 48, 1, 67)),
    ("f32", "f32", "byxf", "bfyx", (5, 37, 3, 17)),  # the last tile overlaps
    ("f16", "f16", "byxf", "bfyx", (4, 35, 5, 13)),
    ("f16", "f32", "byxf", "bfyx", (4, 35, 5, 13)),
    ("f32", "f32", "bs_fs_yx_bsv16_fsv16", "bfyx", (19, 65, 5, 7)),
    ("f32", "f32", "b_fs_zyx_fsv16", "bfzyx", (3, 50, 3, 5, 7)),
]


@pytest.mark.parametrize("case", LINKED, ids=str)
@pytest.mark.parametrize("front", [0, 1, 13])
@pytest.mark.parametrize("chunk", [None, 1, 3])
def test_rows_go_across_lines(
    case: tuple[str, str, str, str, tuple[int, ...]], front: int, chunk: int | None,
    streaming: cf.Stream,
) -> None:  # fmt: skip
    read, written, src, dst, dims = case
    a, b = D(dims, read, src), D(dims, written, dst)
    choices = cf.Choices(chunk=chunk, baked=front == 13)
    assert "next row" in str(check_reorder(a, b, streaming, front=front, choices=choices).plan)


def test_rows_of_doubles_and_of_values_go_across_lines(streaming: cf.Stream) -> None:
    dims = (3, 19, 3, 17)
    src, dst = D(dims, "f64", "b_fs_yx_fsv8"), D(dims, "f64", "bfyx")
    for front in (0, 3):
        made = check_reorder(src, dst, streaming, front=front, choices=cf.Choices(lanes=8))
        assert "next row" in str(made.plan)
    scaled = cf.Attr(src_scale=([0.5 + k for k in range(37)], 2))
    src, dst = D((3, 37, 7, 7), "f32", "b_fs_yx_fsv16"), D((3, 37, 7, 7), "f32", "bfyx")
    assert "next row" in str(check_reorder(src, dst, streaming, attr=scaled).plan)


def test_lines_go_across_tiles_in_padded_rows_and_with_values(streaming: cf.Stream) -> None:
    src = D((2, 40, 19, 23), "f32", "b_fs_yx_fsv16")
    dst = D((2, 40, 19, 23), "f32", strides=(40 * 441 + 5, 441, 23, 1))
    attr = cf.Attr(src_scale=([0.5 + k for k in range(40)], 2))
    for given in (None, attr):
        assert "carried" in str(check_reorder(src, dst, streaming, attr=given).plan)


def test_lines_of_doubles_go_across_tiles(streaming: cf.Stream) -> None:
    dims = (2, 11, 13, 17)
    src, dst = D(dims, "f64", "b_fs_yx_fsv8"), D(dims, "f64", "bfyx")
    assert "carried" in str(check_reorder(src, dst, streaming, choices=cf.Choices(lanes=8)).plan)


def test_a_row_shared_among_work_items_ends_and_begins_lines(streaming: cf.Stream) -> None:
    dims = (1, 16, 101, 103)
    src, dst = D(dims, "f32", "b_fs_yx_fsv16"), D(dims, "f32", "bfyx")
    for chunk in (20, 21, 64, 650, 651):
        made = check_reorder(src, dst, streaming, choices=cf.Choices(chunk=chunk))
        assert "carried" in str(made.plan)


# Rows that begin where the one before has ended, in the middle of a line, and are read far apart.
FAR_APART = [
    ("f32", "f32", "bfyx", "byxf", (2, 250, 7, 11)),
    ("f32", "f32", "bfyx", "byxf", (3, 101, 5, 16)),
    ("f32", "f32", "bfyx", "byxf", (1, 97, 17, 3)),
    ("f32", "s32", "bfyx", "byxf", (2, 111, 3, 7)),
    ("f16", "f16", "bfyx", "byxf", (2, 197, 7, 9)),
    ("bf16", "f16", "bfyx", "byxf", (2, 239, 5, 9)),
    ("u8", "f32", "bfyx", "byxf", (2, 129, 5, 13)),
    ("f16", "f32", "bfzyx", "bzyxf", (2, 113, 3, 5, 7)),
    ("f32", "f32", "bfyx", "byxf", (2, 112, 7, 11)),  # whole lines, but memory begins in one
]


@pytest.mark.parametrize("case", FAR_APART, ids=str)
@pytest.mark.parametrize("front", [0, 1, 13])
@pytest.mark.parametrize("chunk", [None, 1, 2])
def test_rows_that_are_read_far_apart_are_linked(
    case: tuple[str, str, str, str, tuple[int, ...]], front: int, chunk: int | None,
    streaming: cf.Stream,
) -> None:  # fmt: skip
    read, written, src, dst, dims = case
    a, b = D(dims, read, src), D(dims, written, dst)
    check_reorder(a, b, streaming, front=front, choices=cf.Choices(chunk=chunk, baked=front == 13))


def test_rows_of_parts_are_linked(streaming: cf.Stream) -> None:
    """Positions of an image that is part of a larger one, images that do not adjoin."""
    whole = D((2, 131, 9, 20), "f32", "bfyx")
    image = (1, 131, 1, 19)
    check_reorder(whole.submemory(image, (1, 0, 4, 1)), D(image, "f32", "byxf"), streaming)
    dims = (3, 131, 5, 7)
    for row in (131, 133):
        b = D(dims, "f32", strides=(row * 35 + 3, 1, row * 7, row))
        made = check_reorder(D(dims, "f32", "bfyx"), b, streaming)
        assert ("next row" in str(made.plan)) == (row == 131)


# Boxes that are collected before their lines are sent, since no register turns lines of bytes.
COLLECTED = [
    ("u8", "u8", "b_fs_yx_fsv16", "bfyx", (2, 32, 23, 41)),
    ("u8", "u8", "b_fs_yx_fsv16", "bfyx", (1, 32, 83, 61)),  # runs of rows
    ("f32", "bf16", "b_fs_yx_fsv16", "bfyx", (1, 37, 71, 47)),
    ("u8", "u8", "byxf", "bfyx", (1, 77, 31, 43)),
    ("u8", "u8", "b_fs_yx_fsv16", "bfyx", (2, 37, 23, 41)),  # the last block is not whole
    ("s8", "s8", "b_fs_yx_fsv32", "bfyx", (2, 85, 23, 41)),  # and its second half neither
    ("f32", "s8", "b_fs_yx_fsv16", "bfyx", (3, 55, 31, 37)),
    ("f32", "s8", "fs_b_yx_fsv32", "bfyx", (3, 71, 14, 13)),  # whole rows, across in the source
    ("f16", "u8", "b_fs_yx_fsv16", "bfyx", (3, 133, 7, 7)),  # whole blocks of rows
    ("u8", "u8", "b_fs_yx_fsv4", "bfyx", (5, 91, 9, 17)),
    ("f32", "f16", "b_fs_yx_fsv16", "bfyx", (3, 61, 17, 13)),
    ("f32", "s8", "b_fs_yx_fsv32", "bfyx", (3, 64, 21, 43)),
    ("u8", "u8", "bfyx", "byxf", (2, 250, 7, 11)),  # rows of channels
    ("s8", "s8", "bfyx", "byxf", (2, 101, 31, 5)),
    ("s8", "u8", "bfyx", "byxf", (2, 131, 9, 19)),
    ("u8", "u8", "bfyx", "byxf", (3, 72, 23, 29)),  # lines of 16 rows
    ("f32", "s8", "bfyx", "byxf", (3, 77, 17, 15)),
    ("f32", "u8", "bfyx", "byxf", (2, 272, 9, 31)),
    ("f16", "s8", "bfyx", "byxf", (3, 101, 23, 15)),
    ("u8", "s8", "bfyx", "byxf", (5, 145, 7, 9)),  # of which tiles have halves
    ("u8", "u8", "byxf", "bfyx", (2, 100, 23, 43)),
    ("f32", "s8", "byxf", "bfyx", (1, 50, 41, 83)),
    ("f64", "f64", "b_fs_yx_fsv16", "bfyx", (2, 37, 38, 43)),  # a vector is two lines
    ("s8", "s8", "b_fs_zyx_fsv16", "bfzyx", (2, 37, 5, 17, 13)),
]


@pytest.mark.parametrize("case", COLLECTED, ids=str)
@pytest.mark.parametrize("front", [0, 1, 77])
@pytest.mark.parametrize("chunk", [None, 1, 7])
def test_boxes_are_collected(
    case: tuple[str, str, str, str, tuple[int, ...]], front: int, chunk: int | None,
    streaming: cf.Stream,
) -> None:  # fmt: skip
    read, written, src, dst, dims = case
    a, b = D(dims, read, src), D(dims, written, dst)
    choices = cf.Choices(chunk=chunk, baked=front == 77)
    made = check_reorder(a, b, streaming, front=front, choices=choices)
    assert "collected in boxes" in str(made.plan)


def test_padded_rows_of_bytes_are_collected_and_values_computed(streaming: cf.Stream) -> None:
    scaled = cf.Attr(src_scale=([0.5 + k for k in range(40)], 2))
    for dims in ((2, 40, 23, 41), (2, 40, 24, 40)):
        src = D(dims, "u8", "b_fs_yx_fsv16")
        dst = D(dims, "u8", strides=(40 * 991 + 5, 991, dims[3], 1))
        for attr in (None, scaled, cf.Attr(beta=0.5)):
            made = check_reorder(src, dst, streaming, attr=attr)
            # A sum must not be made twice, as in a tile that overlaps.
            assert attr or "collected in boxes" in str(made.plan)
            assert attr != scaled or "collected in boxes" in str(made.plan)


@pytest.mark.parametrize("begins", [(0, 1), (3, 63), (1, 64)])
def test_boxes_are_collected_for_memory_that_begins_anywhere(
    begins: tuple[int, int], streaming: cf.Stream
) -> None:
    dims = (2, 37, 23, 41)
    src, dst = D(dims, "u8", "b_fs_yx_fsv16"), D(dims, "u8", "bfyx")
    check_reorder(src, dst, streaming, begins=begins)


@pytest.mark.parametrize("begins", [(0, 1), (5, 63)])
@pytest.mark.parametrize("types", [("u8", "u8"), ("f32", "s8")])
def test_lines_of_rows_are_collected_from_and_to_padded_sides(
    types: tuple[str, str], begins: tuple[int, int], streaming: cf.Stream
) -> None:
    read, written = types
    dims = (3, 77, 17, 23)
    whole, plane = D((3, 80, 19, 23), read, "bfyx"), 17 * 23
    part = whole.submemory(dims, (0, 2, 1, 0))
    item = part.dtype.nbytes
    for src in (part, D(dims, read, strides=(77 * 401, 401, 23, 1))):
        for dst in (
            D(dims, written, "byxf"),
            D(dims, written, strides=(77 * plane + 3, 1, 77 * 23, 77)),
            D(dims, written, strides=(79 * plane, 1, 79 * 23, 79)),
        ):
            made = check_reorder(src, dst, streaming, begins=(begins[0] * item, begins[1]))
            follows = dst.strides[-1] == 77
            assert ("collected in boxes" in str(made.plan)) >= follows


# One loop of 9 steps inside another: one run on one side.
RUNS = [
    ("oiyx", "os_is_yx_isv16_osv16", (33, 35, 3, 3)),
    ("os_is_yx_isv16_osv16", "oiyx", (32, 48, 3, 3)),
    ("oiyx", "hwio", (37, 21, 3, 5)),
    ("hwio", "oiyx", (21, 37, 5, 3)),
    ("oiyx", "hwio", (5, 7, 3, 3)),
    ("goiyx", "gs_oiyx_gsv16", (48, 3, 5, 3, 3)),
    ("oizyx", "dhwio", (17, 19, 3, 5, 7)),
    ("oiyx", "iyxo", (67, 65, 1, 7)),
]


@pytest.mark.parametrize(("src", "dst", "dims"), RUNS)
@pytest.mark.parametrize("types", [("f32", "f32"), ("f16", "f16"), ("s8", "s8"), ("f32", "s8")])
@pytest.mark.parametrize("large", [False, True])
def test_short_loops_are_one_run(
    src: str, dst: str, dims: tuple[int, ...], types: tuple[str, str], large: bool,
    stream: cf.Stream, streaming: cf.Stream,
) -> None:  # fmt: skip
    a, b = (D(dims, dtype, fmt) for dtype, fmt in zip(types, (src, dst), strict=True))
    check_reorder(a, b, streaming if large else stream, seed=3)


def test_a_run_is_divided_by_constants_alone(stream: cf.Stream) -> None:
    dims = (32, 48, 3, 3)
    made = cf.Reorder(D(dims, "f32", "oiyx"), D(dims, "f32", "hwio"), stream.engine)
    assert "(uint)(q) % 9" in made.source
    other = (64, 16, 3, 3)
    same = cf.Reorder(D(other, "f32", "oiyx"), D(other, "f32", "hwio"), stream.engine)
    assert same.source == made.source


# The source ends at its last channels, its rows do not follow each other, and theirs are short.
PARTS = [
    ("b_fs_yx_fsv32", "bfyx", (2, 17, 11, 7), None),
    ("b_fs_yx_fsv16", "bfyx", (2, 11, 9, 7), 8),
    ("b_fs_yx_fsv16", "bfyx", (2, 3, 9, 5), 4),
    ("b_fs_zyx_fsv16", "bfzyx", (2, 3, 5, 17, 7), 4),
]


@pytest.mark.parametrize(("src", "dst", "dims", "lanes"), PARTS)
@pytest.mark.parametrize("large", [False, True])
def test_a_part_of_blocks_is_read_to_its_end_alone(
    src: str, dst: str, dims: tuple[int, ...], lanes: int | None, large: bool,
    stream: cf.Stream, streaming: cf.Stream,
) -> None:  # fmt: skip
    batch, features, *rows, length = dims
    whole = (batch, features + 3, *rows, length + 1)
    a = D(whole, "f32", src).submemory(dims, (0,) * (len(dims) - 1) + (1,))
    choices = cf.Choices(lanes=lanes)
    check_reorder(a, D(dims, "f32", dst), streaming if large else stream, choices=choices)


# Planes that begin anywhere, and a run in the destination whose last tile overlaps.
UNALIGNED = [
    ("byxf", (1, 3, 5, 16), (256, 83, 16, 1)),
    ("hwio", (16, 5, 3, 3), (48, 9, 3, 1)),
]


@pytest.mark.parametrize(("src", "dims", "strides"), UNALIGNED)
def test_vectors_past_the_cache_are_aligned(
    src: str, dims: tuple[int, ...], strides: tuple[int, ...], streaming: cf.Stream
) -> None:
    check_reorder(D(dims, "f32", src), D(dims, "f32", strides=strides), streaming)


def test_random_pairs(streaming: cf.Stream) -> None:
    rng = random.Random(8)  # noqa: S311  # shapes, not secrets
    formats: dict[int, list[cf.Format]] = {}
    for fmt in BUFFERS:
        formats.setdefault(fmt.ndims, []).append(fmt)
    for seed in range(25):
        dims, a, b = random_pair(rng, formats)
        dtype = rng.choice(["f32", "f16", "u8", "f64"])
        check_reorder(D(dims, dtype, a), D(dims, dtype, b), streaming, seed=seed)
