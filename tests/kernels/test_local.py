"""The families of GPUs, on whatever device there is: their kernels are plain OpenCL C 1.2."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace

import numpy as np
import pytest

import clformats as cf
from clformats.reorders import planning
from clformats.schedule.local import GroupPlan
from tests.device_support import check_reorder
from tests.reorders.test_reorder import NO_TAG, check_both_ways
from tests.support import BUFFERS, hurting_dims, pair_of

pytestmark = pytest.mark.sampled(12)

D = cf.MemoryDesc

# Sizes next to blocks, runs and vectors; and those that vectors divide.
PAIRS = [
    ("bfyx", "b_fs_yx_fsv16", [(2, 35, 5, 7), (3, 48, 8, 8), (1, 15, 1, 67)]),
    ("b_fs_yx_fsv16", "bfyx", [(2, 35, 5, 8), (2, 33, 9, 16)]),
    ("bfyx", "byxf", [(2, 18, 5, 7), (2, 68, 12, 4), (3, 3, 11, 13), (2, 3, 20, 16)]),
    ("byxf", "bfyx", [(2, 3, 40, 41), (2, 4, 16, 20), (2, 65, 3, 5)]),
    ("b_fs_yx_fsv4", "b_fs_yx_fsv32", [(2, 67, 5, 7), (1, 64, 4, 4)]),
    ("bfyx", "bs_fs_yx_bsv16_fsv16", [(17, 19, 3, 5)]),
    ("oiyx", "os_is_yx_isa8_osv8_isv4_swizzled_by_4", [(35, 37, 3, 3)]),
    ("oiyx", "os_is_yx_isv16_osv16", [(17, 33, 3, 3), (32, 16, 5, 5)]),
    ("oiyx", "hwio", [(19, 21, 3, 3)]),
    ("bfyx", "yxfb", [(7, 5, 6, 4)]),
]
TYPES = ["f32 f32", "f16 f16", "u8 u8", "bf16 f64", "f32 s8", "u8 f32", "f16 f32", "f32 bf16",
         "f16 u8", "f8_e4m3 f16"]  # fmt: skip
CASES = [(n, *case) for n, case in enumerate(
    (src, dst, dims) for src, dst, sizes in PAIRS for dims in sizes
)]  # fmt: skip


@pytest.mark.parametrize("turn", range(4))
@pytest.mark.parametrize(("number", "src", "dst", "dims"), CASES)
def test_through_local_memory(
    number: int, src: str, dst: str, dims: tuple[int, ...], turn: int, stream: cf.Stream
) -> None:
    """By name on any device, aligned and not; each case with four of the types."""
    types = TYPES[(3 * turn + number) % len(TYPES)].split()
    a, b = (D(dims, t, name) for t, name in zip(types, (src, dst), strict=True))
    for front in (0, 5):
        check_reorder(a, b, stream, family="local", front=front)


PACKED = [
    ("local", "u4:ab", "u4:ba", (40, 24)),
    ("local", "s4:ab", "s4:ba", (512, 520)),
    ("local", "u4:Ab8a", "u4:aB8b", (64, 72)),
    ("local", "u2:ab", "u2:ba", (64, 96)),
    ("local", "u1:ab", "u1:ba", (64, 96)),
    ("local", "u4:ab", "u4:ba", (18, 6)),
    ("local", "u3:ab", "u3:ba", (40, 64)),
    ("local", "u4:ab", "f16:BA16b16a", (35, 50)),
    ("local", "s4:ab", "f32:ba", (66, 98)),
    ("local", "u5:ab", "f32:ba", (32, 64)),
    ("local", "f6_e2m3:ab", "f32:ba", (32, 64)),
    ("local", "f16:ab", "s4:ba", (34, 65)),
    ("local", "f32:ab", "f6_e2m3:ba", (36, 64)),
    ("local", "u2:ab", "u4:ba", (12, 20)),
    ("local", "s8:oiyx", "s4:os_is_yx_osv16_isv4", (19, 32, 3, 5)),
    ("local", "s4:os_is_yx_osv16_isv4", "f16:oiyx", (19, 32, 3, 5)),
    ("rows", "s4:ab", "f16:ab", (33, 64)),
    ("rows", "f4_e2m1:ab", "f32:ab", (33, 64)),
    ("rows", "f32:ab", "u4:ab", (33, 64)),
    ("generic", "u4:ab", "u4:ba", (7, 5)),
]
GROUPS = cf.Attr(
    src_scale=cf.Grouped([[0.5, 2, 1], [1, 0.25, 3], [2, 1, 1]], (16, 16)),
    src_zero_point=cf.Grouped([[3, 0, 5], [7, 8, 1], [1, 2, 3]], (16, 16)),
)


@pytest.mark.parametrize(("family", "src", "dst", "dims"), PACKED)
def test_elements_of_less_than_a_byte(
    family: str, src: str, dst: str, dims: tuple[int, ...], as_gpu: cf.Stream
) -> None:
    """From places that vectors divide on, and others; neighbours in a byte stay what they are."""
    a, b = pair_of(src, dst, dims)
    for front in (0, 16, 8):
        plan = check_reorder(a, b, as_gpu, front=front).plan
        assert front == 8 or plan.family == family, plan


@pytest.mark.parametrize("dst", ["f16:BA16b16a", "f16:ba", "f32:ab", "u4:ba"])
@pytest.mark.parametrize("src", ["u4:ab", "s2:aB16b"])
def test_groups_of_elements_of_less_than_a_byte(src: str, dst: str, as_gpu: cf.Stream) -> None:
    a, b = pair_of(src, dst, (40, 48))
    assert check_reorder(a, b, as_gpu, attr=GROUPS).plan.family in ("local", "rows")


@pytest.mark.parametrize("fmt", NO_TAG[::4], ids=str)
def test_formats_without_a_tag(fmt: cf.Format, as_gpu: cf.Stream) -> None:
    check_both_ways(fmt, as_gpu)


@pytest.mark.parametrize("number", range(0, len(BUFFERS), 41))
def test_formats_with_vectors(number: int, as_gpu: cf.Stream) -> None:
    """Some of all formats, from and to the plain one: rows of whole vectors, blocks that end."""
    fmt, dtype = BUFFERS[number], ("f32", "u8", "f16", "f64")[number % 4]
    dims = (*hurting_dims(fmt)[:-1], 48)
    blocked, plain = D(dims, dtype, fmt), D(dims, dtype)
    check_reorder(plain, blocked, as_gpu)
    check_reorder(blocked, plain, as_gpu)


@pytest.mark.parametrize(
    ("src", "dst"),
    [
        (
            "f32:bfyx:2x36x5x16:pad=0+0x0+0x3+1x0+0",
            "f32:b_fs_yx_fsv16:2x36x5x16:pad=0+0x16+9x0+2x1+0",
        ),
        (
            "u8:b_fs_yx_fsv16:2x36x5x16:pad=0+0x16+0x1+1x0+0",
            "u8:bfyx:2x36x5x16:pad=0+0x16+2x1+1x0+0",
        ),
        ("f16:bfyx:2x40x6x16:pad=0+0x5+0x0+0x0+0", "f32:byxf:2x40x6x16:pad=0+0x8+0x3+1x2+6"),
    ],
)
def test_padding_around(src: str, dst: str, stream: cf.Stream) -> None:
    """Padding before and behind becomes zero, whatever the source has there."""
    check_reorder(D.parse(src), D.parse(dst), stream, family="local")


def test_regions(stream: cf.Stream) -> None:
    """A part of a buffer: nothing around it is touched."""
    parent = D((4, 64, 6, 16), "f32", "b_fs_yx_fsv16")
    part = parent.submemory((2, 32, 3, 16), (1, 16, 2, 0))
    check_reorder(D(part.dims, "f32"), part, stream, family="local")
    check_reorder(part, D(part.dims, "f32"), stream, family="local")


FAMILY_CASES = [
    ("rows", "f32:bfyx", "f32:bfyx", (3, 5, 7, 9)),
    ("rows", "u8:bfyx", "u8:bfyx", (3, 5, 7, 9)),
    ("rows", "u8:b_fs_yx_fsv16", "u8:b_fs_yx_fsv16", (2, 32, 33, 65)),
    ("rows", "f16:bfyx", "f32:bfyx", (5, 6, 16, 17)),
    ("rows", "s4:ab", "s4:ab", (6, 10)),
    ("rows", "f32:a", "f32:a", (1,)),
    ("rows", "f32:byxf", "f32:b_fs_yx_fsv16", (2, 36, 9, 5)),
    ("rows", "f16:b_fs_yx_fsv16", "f16:byxf", (2, 48, 3, 5)),
    ("rows", "u8:b_fs_yx_fsv32", "f32:byxf", (2, 67, 3, 5)),
    ("rows", "u8:bfyx", "u8:bfyx:pad=0+0x3+2x1+1x4+0", (2, 9, 5, 16)),
    ("local", "f32:bfyx:pad=0+0x0+3x1+1x3+0", "u8:byxf:pad=0+0x3+2x1+1x4+0", (2, 36, 5, 17)),
    ("local", "u8:bfyx:pad=0+0x0+0x1+1x4+8", "u8:byxf:pad=0+0x4+8x1+1x4+0", (2, 36, 5, 20)),
    ("local", "s32:aBcd24b", "s32:aBcd16b", (2, 40, 3, 3)),
    ("local", "f16:aBcd3b", "f16:aBcd16b", (2, 100, 3, 5)),
    ("local", "u8:aBcd63b", "u8:aBcd64b", (2, 150, 3, 7)),
    ("local", "u8:aBcd18b", "u8:aBcd16b", (2, 288, 4, 8)),
    ("local", "f32:aBcd16b", "s8:aBcd12b", (3, 97, 3, 8)),
    ("local", "f32:ABcd6a5b", "f16:ABcd4b9a", (25, 31, 3, 2)),
    ("local", "u8:AB24a2b6a", "u8:bA16a", (600, 4)),
    ("local", "u8:aBcd12b", "u8:aBcd8b:pad=0+0x12+9x1+1x4+0", (2, 36, 5, 20)),
    ("local", "f32:aBcd24b", "f32:aBcd16b", (2, 97, 4, 8)),
    ("local", "bf16:aBcd15b", "f32:aBcd8b:pad=0+0x15+2x0+0x0+0", (2, 143, 4, 8)),
    ("local", "s32:aBcd12b:pad=0+0x4+0x0+0x0+0", "s32:aBcd16b", (2, 40, 3, 3)),
    ("local", "u8:aBcd16b", "u8:aBcd16b:pad=0+0x8+0x0+0x0+0", (2, 400, 3, 8)),
    ("local", "f16:aBcd15b:pad=0+0x4+0x0+0x0+0", "f32:aBcd8b:pad=0+0x9+3x0+1x0+0", (2, 77, 4, 8)),
    ("generic", "u4:aBcd24b", "u4:aBcd16b", (2, 48, 3, 4)),
]


@pytest.mark.parametrize("front", [0, 1, 16])
@pytest.mark.parametrize(("family", "src", "dst", "dims"), FAMILY_CASES)
def test_each_family(
    family: str, src: str, dst: str, dims: tuple[int, ...], front: int, as_gpu: cf.Stream
) -> None:
    a, b = pair_of(src, dst, dims)
    front *= 2 if a.dtype.bits == 4 else 1
    assert check_reorder(a, b, as_gpu, front=front).plan.family == family


@pytest.mark.parametrize(
    ("src", "dst", "dims", "given"),
    [
        ("f32:bfyx", "s8:bfyx", (2, 17, 5, 4), {"src_scale": 0.5, "beta": 2}),
        ("f32:bfyx", "f16:b_fs_yx_fsv16", (2, 17, 5, 4), {"dst_scale": (range(1, 18), 2)}),
        ("f32:bfyx", "u8:b_fs_yx_fsv16", (2, 32, 5, 4),
         {"dst_scale": (range(1, 33), 2), "beta": 1}),
        ("u8:byxf", "f32:bfyx", (1, 17, 8, 4), {"src_zero_point": (range(17), 2), "beta": 0.5}),
        ("f16:b_fs_yx_fsv16", "f16:byxf", (2, 17, 5, 4),
         {"src_scale": (range(1, 18), 2), "beta": 1, "expression": "x + 1"}),
        ("f32:aBcd3b", "s8:aBcd16b", (2, 50, 5, 4),
         {"dst_scale": (range(1, 51), 2), "beta": 1}),
        ("u8:byxf", "u8:b_fs_yx_fsv4", (2, 6, 5, 4), {"expression": "max(x, 3)", "src_scale": 2}),
        ("f16:bfyx", "s8:byxf", (2, 8, 4, 4), {"src_scale": (range(1, 17), 3), "beta": 1}),
    ],
)  # fmt: skip
def test_attributes(
    src: str, dst: str, dims: tuple[int, ...], given: dict[str, object], as_gpu: cf.Stream
) -> None:
    """Padding stays zero whatever is computed, and what is summed onto is read once."""
    a, b = pair_of(src, dst, dims)
    done = check_reorder(a, b, as_gpu, attr=cf.Attr(**given))  # type: ignore[arg-type]
    assert done.plan.family in ("rows", "local")
    check_reorder(a, b, as_gpu, attr=cf.Attr(**given), front=3)  # type: ignore[arg-type]


@pytest.mark.sampled(4)
@pytest.mark.parametrize("formats", [("byxf", "byxf"), ("oiyx", "yxfb"), ("bfyx", "byxf")])
@pytest.mark.parametrize("dims", [(8, 3, 56, 40), (5, 40, 56, 3), (6, 12, 31, 7), (3, 24, 9, 20)])
@pytest.mark.parametrize("dtypes", [("u8", "f32"), ("f16", "f16"), ("f32", "s8")])
def test_vectors_that_begin_within_a_short_row_have_the_operands_of_their_elements(
    formats: tuple[str, str], dims: tuple[int, ...], dtypes: tuple[str, str], as_gpu: cf.Stream
) -> None:
    """A vector of 8 goes on through rows of 3 channels, from the first, second or third."""
    src, dst = (D(dims, t, f) for t, f in zip(dtypes, formats, strict=True))
    for mask in (1, 2, 3, 8):
        shape = [n if mask >> d & 1 else 1 for d, n in enumerate(dims)]
        values = np.random.default_rng(mask).integers(1, 32, shape).ravel() / np.float32(8)
        attr = cf.Attr(src_scale=(values, mask), src_zero_point=(values[::-1] * 2, mask))
        check_reorder(src, dst, as_gpu, attr=attr)


@pytest.mark.parametrize("blocks", [(24, 16), (16, 24), (3, 16), (12, 8)])
def test_blocks_that_do_not_divide_each_other_without_gaps(
    blocks: tuple[int, int], as_gpu: cf.Stream
) -> None:
    src, dst = (D((2, 40, 3, 5), "u8", f"aBcd{n}b") for n in blocks)
    chosen = cf.Choices(
        schedule="tile a2 b c8 d e f g of 1 | a* c* of 256 | ahead 0 | local 1 dense"
    )
    assert check_reorder(src, dst, as_gpu, choices=chosen).plan.family == "local"


@pytest.mark.parametrize(
    ("dtype", "to"), [("u8", "u8"), ("f16", "f16"), ("s8", "f32"), ("bf16", "s8")]
)
@pytest.mark.parametrize("dims", [(2, 20, 3, 333), (1, 7, 101, 55), (4, 33, 5, 57), (1, 1, 7, 255)])
def test_rows_that_begin_anywhere_are_loaded_by_words(
    dims: tuple[int, ...], dtype: str, to: str, as_gpu: cf.Stream
) -> None:
    """Out of words of the tensor; what follows its whole words is put together once."""
    src = D(dims, dtype, "bfyx")
    for fmt, front in (("b_fs_yx_fsv16", 0), ("byxf", 0), ("b_fs_yx_fsv16", 3)):
        made = check_reorder(src, D(dims, to, fmt), as_gpu, front=front)
        if isinstance(made.plan.body, GroupPlan):
            assert ("words_at(" in made.source) == made.plan.body.layout.loose[0]
    whole = D((4, 33, 5, 57), "u8", "bfyx"), D((4, 33, 5, 57), "u8", "b_fs_yx_fsv16")
    assert "words_at(" in cf.Reorder(*whole, as_gpu.engine).source


@pytest.fixture
def for_large(engine: cf.Engine, monkeypatch: pytest.MonkeyPatch) -> Iterator[cf.Stream]:
    """A stream whose kernels are planned as if for a GPU and for large tensors.

    It has one multiprocessor: tensors that leave some of them idle have smaller tiles.
    """
    other = cf.Engine(device=engine.device)
    other.__dict__["traits"] = replace(engine.traits, is_cpu=False, compute_units=1)
    planning._planned.cache_clear()
    monkeypatch.setattr("clformats.problems.thresholds.LARGE_TENSOR", 0)
    yield cf.Stream(other)
    planning._planned.cache_clear()


@pytest.mark.parametrize(
    ("src", "dst", "dims"),
    [
        ("u8:gs_oiyx_gsv32", "u8:goiyx", (301, 1, 1, 5, 5)),
        ("f16:goiyx", "s8:gs_oiyx_gsv16", (100, 1, 1, 5, 5)),
        ("u8:oyxi", "u8:oiyx", (3, 301, 5, 5)),
        ("s8:b_fs_yx_fsv16", "f16:byxf", (2, 17, 13, 31)),
        ("u8:nChw16c", "u8:byxf", (5, 3, 31, 33)),
        ("u8:b_fs_yx_fsv32", "u8:b_fs_yx_fsv16", (3, 33, 19, 31)),
        ("s8:bfyx", "s8:nChw16c", (5, 3, 14, 15)),
        ("u8:yxfb", "u8:nChw8c", (33, 3, 7, 5)),
        ("s8:oiyx", "s8:OIhw16i16o", (33, 45, 3, 3)),
        ("f16:oiyx", "s8:os_is_yx_osv16_isv4", (17, 39, 5, 5)),
    ],
)
def test_rows_of_odd_sizes(src: str, dst: str, dims: tuple[int, ...], for_large: cf.Stream) -> None:
    """Vectors that begin anywhere, also where padding becomes zeros, and the ends of their runs."""
    a, b = pair_of(src, dst, dims)
    for front in (0, 1, 5, 16):
        check_reorder(a, b, for_large, front=front)


@pytest.mark.parametrize(
    ("batch", "src", "dst"), [(33, "f32", "s8"), (36, "bf16", "bf16"), (72, "u8", "f16")]
)
def test_rows_are_taken_whole_where_parts_would_be_short(
    batch: int, src: str, dst: str, for_large: cf.Stream
) -> None:
    """Powers of two would leave places of tiles empty, or be runs of 8 of the 33 elements."""
    dims = (batch, 48, 5, 7)
    made = check_reorder(D(dims, src, "yxfb"), D(dims, dst, "nChw16c"), for_large)
    assert isinstance(made.plan.body, GroupPlan)
    layout = made.plan.body.layout
    assert batch in [layout.nodes[k].size.value for k in layout.whole], str(made.plan.body)


def test_long_runs_are_stored_by_vectors(for_large: cf.Stream) -> None:
    """So are bytes of images with 3 channels; rows of 57 bytes are not."""
    for dims, runs in (((2, 3, 64, 65), True), ((2, 40, 7, 57), False)):
        made = cf.Reorder(D(dims, "u8", "nChw16c"), D(dims, "u8", "byxf"), for_large.engine)
        assert isinstance(made.plan.body, GroupPlan)
        assert made.plan.body.layout.loose[1] == ("within" in made.source) == runs, made.source


@pytest.mark.parametrize("dims", [(128, 512), (200, 512), (64, 130)])
@pytest.mark.parametrize(("mask", "group"), [(2, None), (1, None), (3, (1, 128))])
def test_values_that_a_tile_shares(
    dims: tuple[int, int], mask: int, group: tuple[int, int] | None, as_gpu: cf.Stream
) -> None:
    """A scale and a zero point for each row, each column, or each group of columns."""
    sizes = [n if mask >> d & 1 else 1 for d, n in enumerate(dims)]
    sizes = [-(-n // g) for n, g in zip(sizes, group or (1, 1), strict=True)]
    values = np.random.default_rng(1).integers(1, 32, sizes) / np.float32(8)
    scale: object = cf.Grouped(values, group) if group else (values.ravel(), mask)
    attr = cf.Attr(src_scale=scale, src_zero_point=scale)
    made = check_reorder(D(dims, "u8", "ab"), D(dims, "f16", "ba"), as_gpu, attr=attr)
    shared = "kept_src_scale[" in made.source
    assert shared == (dims[1] % 128 == 0 or group is None), made.source


def test_a_smaller_work_group(engine: cf.Engine) -> None:
    """Some devices have none of 256 work-items."""
    small = cf.Engine(device=engine.device)
    small.__dict__["traits"] = replace(engine.traits, is_cpu=False, group_size=24)
    stream = cf.Stream(small)
    for a, b in (("bfyx", "b_fs_yx_fsv16"), ("byxf", "b_fs_yx_fsv16"), ("bfyx", "bfyx")):
        check_reorder(D((2, 35, 5, 8), "f32", a), D((2, 35, 5, 8), "f32", b), stream)


def test_a_new_shape_compiles_nothing(engine: cf.Engine) -> None:
    """Law 7 for the families of GPUs, for shapes of one class: longer than a box, unaligned."""
    fresh = cf.Engine(device=engine.device)
    fresh.__dict__["traits"] = replace(engine.traits, is_cpu=False)
    stream = cf.Stream(fresh)
    for src, dst in (("bfyx", "b_fs_yx_fsv16"), ("bfyx", "byxf"), ("byxf", "b_fs_yx_fsv16")):
        before = fresh.programs_built
        for dims in ((2, 35, 37, 31), (3, 99, 29, 41), (2, 67, 47, 23), (3, 67, 33, 35)):
            check_reorder(D(dims, "f32", src), D(dims, "f32", dst), stream)
        assert fresh.programs_built == before + 1
