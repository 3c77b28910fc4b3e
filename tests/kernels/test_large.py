"""What is done for tensors that exceed the cache, on small ones: streaming stores, whole lines."""

from __future__ import annotations

import random

import pytest

import clformats as cf
from tests.device_support import as_large, check_reorder
from tests.schedules_support import some_schedule
from tests.support import BUFFERS, pair_of, random_pair

pytestmark = [pytest.mark.sampled(24), pytest.mark.usefixtures("plans_for_cpus")]

D = cf.MemoryDesc


@pytest.fixture(scope="module")
def streaming(engine: cf.Engine) -> cf.Stream:
    """A stream of an engine whose kernels treat every tensor as a large one."""
    return as_large(engine, compute_units=1)


ROWS_OF_LINES = """
f32:byxf f32:bfyx 2x48x7x16 | f32:byxf f32:bfyx 2x250x5x16 | f16:byxf f16:bfyx 3x72x16x24
u8:byxf u8:bfyx 2x67x8x24 | f32:byxf f32:b_fs_yx_fsv16 2x61x5x57 | f16:bfyx f16:byxf 1x64x16x12
f16:bfyx f16:b_fs_yx_fsv16 2x33x9x7 | f16:b_fs_yx_fsv16 f16:bfyx 2x33x8x8
s8:bfyx s8:b_fs_yx_fsv32 2x45x9x7 | u8:b_fs_yx_fsv16 u8:bfyx 2x37x8x24
f32:bfyx f32:b_fs_yx_fsv4 2x24x5x7 | u8:bfyx f32:b_fs_yx_fsv8 3x17x7x7
"""
ROWS_ANYWHERE = """
f32:b_fs_yx_fsv16 f32:bfyx 3x37x17x23 | f32:b_fs_yx_fsv4 f32:bfyx 2x5x19x31
f32:b_fs_yx_fsv8 f32:bfyx 2x19x18x29 | f16:b_fs_yx_fsv16 f16:bfyx 3x37x17x43
bf16:b_fs_yx_fsv4 bf16:bfyx 2x9x16x41 | f16:b_fs_yx_fsv16 f32:bfyx 2x37x19x23
u8:b_fs_yx_fsv16 f16:bfyx 2x37x19x43 | f32:b_fs_zyx_fsv16 f32:bfzyx 2x37x5x17x7
f32:b_fs_yx_fsv16 f32:bfyx 3x37x4x5 | f32:b_fs_yx_fsv16 f32:bfyx 5x41x1x31
f32:b_fs_yx_fsv16 f32:bfyx 3x61x7x7 | f32:bs_fs_yx_bsv16_fsv16 f32:bfyx 19x65x5x7
f32:byxf f32:bfyx 5x37x3x17 | f16:byxf f32:bfyx 4x35x5x13 | f64:b_fs_yx_fsv8 f64:bfyx 2x11x13x17
f32:bfyx f32:byxf 2x250x7x11 | f32:bfyx s32:byxf 2x111x3x7 | bf16:bfyx f16:byxf 2x239x5x9
f16:bfzyx f32:bzyxf 2x113x3x5x7 | f32:byxf bf16:bfyx 2x35x23x29 | u8:byxf u8:bfyx 2x100x37x39
f32:fs_b_yx_fsv32 f16:bfyx 3x40x21x33 | f32:byxf f32:b_fs_yx_fsv8 2x45x13x17
f32:fs_b_yx_fsv32 f32:b_fs_yx_fsv4 3x72x13x17 | f64:b_fs_yx_fsv16 f64:bfyx 2x37x38x43
"""
BYTES = """
u8:b_fs_yx_fsv16 u8:bfyx 2x37x23x41 | s8:b_fs_yx_fsv32 s8:bfyx 2x85x23x41
f32:b_fs_yx_fsv16 s8:bfyx 3x55x31x37 | f32:fs_b_yx_fsv32 s8:bfyx 3x71x14x13
f16:b_fs_yx_fsv16 u8:bfyx 3x133x7x7 | u8:b_fs_yx_fsv4 u8:bfyx 5x91x9x17
u8:bfyx u8:byxf 2x250x7x11 | s8:bfyx u8:byxf 2x131x9x19 | f32:bfyx u8:byxf 2x272x9x31
u8:bs_fs_yx_bsv32_fsv32 f32:bfyx 5x65x9x15 | u8:byxf u8:bs_fs_yx_bsv32_fsv32 9x96x17x16
u8:yxfb f32:fs_b_yx_fsv32 64x96x5x7 | u8:bs_fs_yx_bsv16_fsv16 u8:byxf 16x160x13x9
"""
BLOCKS_TO_IMAGES = """
u8:b_fs_yx_fsv4 u8:byxf 2x37x19x17 | f16:b_fs_yx_fsv8 f16:byxf 3x23x11x17
f32:b_fs_yx_fsv16 s8:byxf 3x40x7x11 | f32:b_fs_yx_fsv16 bf16:byxf 2x233x33x1
u8:b_fs_yx_fsv32 f32:byxf 2x80x5x13 | f64:b_fs_yx_fsv32 f64:byxf 5x24x3x11
f32:b_fs_yx_fsv16 f32:byxf 129x100x2x5 | u8:b_fs_yx_fsv16 u8:byxf 1x530x17x31
f32:b_fs_yx_fsv16:pad=0+0x0+0x1+2x3+1 f32:byxf 3x40x7x31 | f32:fs_b_yx_fsv32 f16:byxf 3x40x7x13
u8:b_fs_yx_fsv32:pad=1+0x32+0x0+0x0+0 u8:byxf 3x75x7x13 | f16:b_fs_zyx_fsv16 f16:bzyxf 2x24x3x5x7
f32:b_fs_yx_fsv16:pad=0+0x16+16x0+1x0+1 s8:byxf 3x47x7x31
"""
SHORT_LOOPS = """
u8:byxf u8:b_fs_yx_fsv4 2x3x5x7 | u8:byxf f16:b_fs_yx_fsv16 2x5x5x7
f32:byxf f32:b_fs_yx_fsv8 2x7x5x7
f32:byxf f16:b_fs_yx_fsv32 2x20x5x7 | f16:byxf f32:b_fs_yx_fsv16 1x3x1x1
f32:yxfb f32:bs_fs_yx_bsv16_fsv16 3x2x1x3 | f32:b_fs_yx_fsv4 f32:b_fs_yx_fsv16 1x15x1x17
f32:yxfb f16:b_fs_yx_fsv8 3x48x5x7 | u8:yxfb u8:b_fs_yx_fsv4 5x37x3x11
f32:b_fs_yx_fsv8 bf16:yxfb 6x65x4x5 | u8:b_fs_yx_fsv32 f32:yxfb 7x32x16x8
u8:byxf u8:bfyx 2x3x37x29 | f32:bfyx s8:byxf 1x5x16x31 | f16:byxf f32:bfyx 1x13x33x9
u8:b_fs_yx_fsv4 u8:bfyx 8x12x4x3 | f16:bfyx f16:b_fs_yx_fsv4 5x16x2x5
f32:b_fs_yx_fsv8:pad=0+0x2+5x0+0x0+0 f32:yxfb 3x41x6x7
f32:yxfb:pad=0+0x0+0x1+2x3+0 f32:b_fs_yx_fsv8:pad=0+0x0+0x1+2x3+0 3x41x6x7
"""
WEIGHTS = """
f16:oiyx f16:os_is_yx_isv16_osv16 32x48x3x3 | f32:oiyx bf16:os_is_yx_isv16_osv16 16x64x1x3
u8:oiyx u8:os_is_yx_isv16_osv16 48x16x3x5 | f32:goiyx s8:g_os_is_yx_isv16_osv16 3x16x32x3x3
s8:oiyx s8:os_is_yx_osv16_isv4 48x20x3x5 | u8:oiyx u8:os_is_yx_isa8_osv8_isv4 24x64x3x3
bf16:oiyx bf16:OIhw8i16o2i 32x48x5x5 | s8:goiyx s8:gOIhw16i16o4i 3x16x64x3x3
s8:oiyx s8:ohwi 5x64x1x5 | s8:oizyx s8:OIdhw16o4i 32x12x3x3x3 | s8:oiyx s8:ohwi 3x8x1x3
f32:os_is_yx_osv16_isv4 f32:oiyx 32x16x3x3 | f32:OIhw16i16o4i bf16:oiyx 32x64x3x3
f16:OIhw8i8o f16:oiyx 24x32x3x3 | s8:os_is_yx_osv16_isv16 f32:oiyx 32x48x7x7
u8:gOIhw4i16o4i u8:goiyx 3x16x64x1x7 | bf16:OIdhw16o4i f32:oizyx 16x32x3x3x3
f32:oiyx f32:hwio 37x21x3x5 | s8:hwio f32:oiyx 21x37x5x3 | f32:oizyx s8:dhwio 17x19x3x5x7
f16:oiyx f16:ioyx 35x18x3x3 | f32:ioyx f16:oiyx 33x40x7x1 | f32:ohwi f32:OIhw16i16o 17x5x1x3
f32:goiyx f32:gs_oiyx_gsv16 48x3x5x3x3 | f32:oiyx f32:iyxo 67x65x1x7
"""
CASES = [
    tuple(case.split())
    for table in (ROWS_OF_LINES, ROWS_ANYWHERE, BYTES, BLOCKS_TO_IMAGES, SHORT_LOOPS, WEIGHTS)
    for case in table.replace("\n", " | ").split(" | ")
    if case.strip()
]


def sides(case: tuple[str, ...]) -> tuple[cf.MemoryDesc, cf.MemoryDesc]:
    src, dst, dims = case
    return pair_of(src, dst, tuple(map(int, dims.split("x"))))


@pytest.mark.parametrize("case", CASES, ids=" ".join)
@pytest.mark.parametrize("front", [0, 1, 13])
def test_sizes_that_hurt(case: tuple[str, ...], front: int, streaming: cf.Stream) -> None:
    check_reorder(*sides(case), streaming, front=front)


NO_LOOPS = ("f32:b_fs_yx_fsv8:pad=0+0x2+5x0+0x0+0", "f32:yxfb", "3x41x6x7")
"""Its padding shifts the channels across their blocks, so no loop nest moves them."""


@pytest.mark.parametrize("case", [c for c in CASES if c != NO_LOOPS], ids=" ".join)
@pytest.mark.parametrize("front", [0, 3])
def test_any_schedule(case: tuple[str, ...], front: int, streaming: cf.Stream) -> None:
    src, dst = sides(case)
    choices = some_schedule(random.Random(f"{case} {front}"), src, dst)  # noqa: S311  # cases
    assert choices
    made = check_reorder(src, dst, streaming, front=front, choices=choices)
    assert front or str(made.plan.body) == choices.schedule


@pytest.mark.parametrize("case", CASES, ids=" ".join)
def test_values_that_are_computed(case: tuple[str, ...], streaming: cf.Stream) -> None:
    src, dst = sides(case)
    each = [0.5 + k / 8 for k in range(src.dims[1])], 2
    for attr in (cf.Attr(src_scale=each), cf.Attr(src_scale=0.5, beta=0.5)):
        check_reorder(src, dst, streaming, attr=attr)


@pytest.mark.parametrize("front", [0, 5])
@pytest.mark.parametrize(
    ("src", "dst", "dims", "strides"),
    [
        ("f32:byxf", "f32", (2, 37, 335), (37 * 336, 336, 1)),  # a place between rows
        ("f32:byxf", "f32", (2, 37, 336), (37 * 352, 352, 1)),
        ("f32:b_fs_yx_fsv16", "f32", (2, 40, 19, 23), (40 * 441 + 5, 441, 23, 1)),
        ("u8:b_fs_yx_fsv16", "u8", (2, 40, 23, 41), (40 * 991 + 5, 991, 41, 1)),
        ("f32:bfyx", "f32", (3, 131, 5, 7), (133 * 35 + 3, 1, 133 * 7, 133)),
        ("f32:b_fs_yx_fsv16", "s8", (3, 40, 7, 11), (40 * 77 + 13, 1, 440, 40)),
        ("u8:b_fs_yx_fsv16", "u8", (2, 40, 5, 37), (40 * 199, 1, 1531, 40)),
        ("f32:byxf", "f32", (1, 3, 5, 16), (256, 83, 16, 1)),
        ("f32:hwio", "f32", (16, 5, 3, 3), (48, 9, 3, 1)),
        ("f32:os_is_yx_osv16_isv4", "f32", (16, 20, 3, 3), (187, 9, 3, 1)),
    ],
)
def test_rows_with_gaps_between(
    src: str, dst: str, dims: tuple[int, ...], strides: tuple[int, ...], front: int,
    streaming: cf.Stream,
) -> None:  # fmt: skip
    """What lies between rows belongs to no one."""
    read = src.split(":")
    source = D(dims, read[0], strides=(37 * dims[2], 1, 37)) if len(dims) == 3 else D(dims, *read)
    check_reorder(source, D(dims, dst, strides=strides), streaming, front=front)


@pytest.mark.parametrize(
    ("src", "dst", "dims"),
    [
        ("b_fs_yx_fsv32", "bfyx", (2, 17, 11, 7)),
        ("b_fs_yx_fsv16", "bfyx", (2, 3, 9, 5)),
        ("b_fs_zyx_fsv16", "bfzyx", (2, 3, 5, 17, 7)),
        ("bfyx", "byxf", (2, 131, 1, 19)),
    ],
)
def test_a_part_is_read_to_its_end_alone(
    src: str, dst: str, dims: tuple[int, ...], streaming: cf.Stream
) -> None:
    batch, features, *rows, length = dims
    whole = D((batch, features + 3, *rows, length + 1), "f32", src)
    part = whole.submemory(dims, (0,) * (len(dims) - 1) + (1,))
    check_reorder(part, D(dims, "f32", dst), streaming)
    check_reorder(D(dims, "f32", dst), part, streaming)


@pytest.mark.parametrize("begins", [(0, 1), (4, 4), (0, 60), (12, 32), (3, 63), (1, 64)])
@pytest.mark.parametrize("case", [c for c in CASES if c[2] in ("2x37x23x41", "3x37x17x23")])
def test_memory_that_begins_anywhere(
    case: tuple[str, ...], begins: tuple[int, int], streaming: cf.Stream
) -> None:
    check_reorder(*sides(case), streaming, begins=begins)


@pytest.mark.parametrize("pairs", [8, 9])
def test_random_pairs(pairs: int, streaming: cf.Stream) -> None:
    rng = random.Random(pairs)  # noqa: S311  # shapes, not secrets
    formats: dict[int, list[cf.Format]] = {}
    for fmt in BUFFERS:
        formats.setdefault(fmt.ndims, []).append(fmt)
    for seed in range(12):
        dims, a, b = random_pair(rng, formats)
        dtype = rng.choice(["f32", "f16", "u8", "f64"])
        check_reorder(D(dims, dtype, a), D(dims, dtype, b), streaming, seed=seed)
