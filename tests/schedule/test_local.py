"""Plans for GPUs, without one: which family, and that neighbours are moved by neighbours."""

from __future__ import annotations

import random

import numpy as np
import pytest
from numpy.typing import NDArray

import clformats as cf
from bench.cases import CASES, Case
from clformats.kernels import render
from clformats.kernels.source import reciprocal
from clformats.problems.thresholds import IN_STEP, SECTOR_BYTES
from clformats.schedule import GPU_FAMILIES, Traits
from clformats.schedule.banks import TURN_BYTES, BankLayout, Pass, bank_cycles, layout, place
from clformats.schedule.grouped import GroupLayout, moving_bytes
from clformats.schedule.local import GroupPlan, fitted
from tests.support import BUFFERS, hurting_dims
from tests.tiers import tiered

Numbers = NDArray[np.int64]
D = cf.MemoryDesc
GPU = Traits(is_cpu=False, compute_units=108)

WHOLE = [case for case in CASES if not any(d.dtype.is_packed for d in case.descriptors())]
"""Elements of less than a byte have a test of their own."""
# Features are together on both sides: 16 of them are 64 bytes, or all that there are.
ROWS = {"byxf_fsv16_f32", "fsv16_byxf_f32", "odd_byxf_fsv16_f32", "im3_byxf_fsv16_u8_f16",
        "cv_bfyx_bfyx_f32_f16", "tiny_bfyx_bfyx_u8_f32"}  # fmt: skip


def planned(case: Case) -> tuple[GroupPlan, GroupLayout]:
    body = cf.make_plan(*case.descriptors(), GPU).body
    assert isinstance(body, GroupPlan)
    return body, body.layout


def offsets(moved: GroupLayout, p: Pass, side: str, vectors: Numbers) -> Numbers:
    """Where the vectors with these numbers start in the tensor, from the first of the tile on."""
    at, e = np.zeros_like(vectors), vectors * p.width
    for k in p.order:
        steps = p.steps(moved.sizes, k)
        at += e % steps * (moved.sizes[k] // steps) * getattr(moved.nodes[k], side).value
        e //= steps
    return at


def efficiency(plan: GroupPlan, p: Pass, side: str, start: int = 0) -> float:
    """Bytes that work-items in step access, of those in the sectors that they touch."""
    item = plan.problem.dtypes[side == "dst"].nbytes
    vectors = offsets(plan.layout, p, side, np.arange(start, start + IN_STEP))
    touched = np.unique((vectors[:, None] + np.arange(p.width)) * item // SECTOR_BYTES)
    return IN_STEP * p.width * item / (len(touched) * SECTOR_BYTES)


@pytest.mark.parametrize("case", WHOLE, ids=lambda c: c.name)
def test_the_family_of_every_case_of_the_bench(case: Case) -> None:
    plan = cf.make_plan(*case.descriptors(), GPU)
    want = "rows" if case.name in ROWS else "local"
    assert plan.family == want, plan
    assert [name for name, _ in plan.rejected] == ["local", "rows"][: len(plan.rejected)]


@pytest.mark.sampled(2)
@pytest.mark.parametrize("case", WHOLE, ids=lambda c: c.name)
def test_both_sides_are_coalesced(case: Case) -> None:
    """Work-items in step use what they fetch, and store whole sectors, wherever they are."""
    plan, moved = planned(case)
    for p, side in ((moved.read, "src"), (moved.write, "dst")):
        vectors = moved.elements(side) // p.width
        for start in range(0, vectors - IN_STEP + 1, IN_STEP):
            # Three features lie in a source without padding; what lies in it is read from cache.
            least = 0.1 if case.name == "im3_byxf_fsv16_u8_f16" and side == "src" else 0.5
            assert efficiency(plan, p, side, start) >= least, plan


@pytest.mark.parametrize("case", WHOLE, ids=lambda c: c.name)
def test_work_items_move_words_at_least_where_they_are_aligned(case: Case) -> None:
    plan, moved = planned(case)
    if case.name.startswith(("odd", "d5_odd", "im3_byxf_fsv16")):
        return
    for p, dtype in zip((moved.read, moved.write), plan.problem.dtypes, strict=True):
        assert p.width * dtype.nbytes >= 4, plan
    if not moved.banks and case.group != "tiny":
        assert moved.read.width * max(t.nbytes for t in plan.problem.dtypes) == 16


PACKED = {
    "u4:ab u4:ba": "tile a16 b c d e32 of 4 | a* e* of 128 | ahead 0 | local 1",
    "u4:Ab8a u4:Ab8a": "tile a2048 of 4 | a* of 256 | ahead 0 | ordinary",
    "u4:Ab8a u4:aB8b": "tile b c d e512 of 4 | a* e* of 128 | ahead 0 | local 1",
    "u4:ab f16:ba": "tile a128 b128 of 16 8 | a* b* of 256 | ahead 0 | local 4",
    "u3:ab f32:ab": "tile a2048 of 4 | a* of 256 | ahead 0 | ordinary",
    "f16:ab s4:ba": "tile a128 b128 of 8 16 | a* b* of 256 | ahead 0 | local 4",
}


@pytest.mark.parametrize("pair", PACKED)
def test_elements_of_less_than_a_byte(pair: str) -> None:
    """As words that trade elements where they are moved only, else with a byte each on the way."""
    src, dst = (D.parse(f"{side}:4096x4096") for side in pair.split())
    plan = cf.make_plan(src, dst, GPU)
    assert str(plan.body) == PACKED[pair], plan
    assert isinstance(plan.body, GroupPlan)
    assert plan.body.layout.local_elements * moving_bytes(plan.body.problem) <= 20 << 10
    assert fitted(plan.body.problem, plan.body.schedule, GPU) == plan.body


@pytest.mark.parametrize(
    ("dst", "why"),
    [
        ("u4:ab:7x6:strides=7x1", "into the middle of a byte"),
        ("s4:ab:7x6:offset=1", "within a byte"),
        ("u3:ab:6x100", "holds elements of rows that no tile covers"),
    ],
)
def test_bytes_that_no_vector_fills_are_left_to_the_generic_family(dst: str, why: str) -> None:
    plan = cf.make_plan(D.parse("f16:ba:" + dst.split(":")[2]), D.parse(dst), GPU)
    assert plan.family == "generic", plan
    assert all(why in reason for _, reason in plan.rejected), plan


def _moving(plan: GroupPlan) -> int:
    """Bytes of an element in local memory."""
    src, dst = plan.problem.dtypes
    return 4 if src.name == "f16" and dst.name == "f32" else min(src.nbytes, dst.nbytes)


@pytest.mark.parametrize("case", [c for c in WHOLE if c.name not in ROWS], ids=lambda c: c.name)
def test_local_memory_is_read_and_written_in_few_turns(case: Case) -> None:
    plan, moved = planned(case)
    assert moved.banks
    for p in (moved.read, moved.write):
        nbytes = moved.banks.lanes(p)[0] * _moving(plan)
        fewest = max(nbytes, 4) / TURN_BYTES / moved.banks.lanes(p)[0]
        # Vectors of 16 bytes are stored whole, or of 32: of their words 4, or 8, lie in one bank.
        most = max(4, moved.read.width * _moving(plan) // 4)
        assert bank_cycles(moved.banks, p, _moving(plan)) <= most * fewest, plan


def test_gaps_against_bank_conflicts() -> None:
    """The classic: 32 x 32 words need a gap of one, without it 32 work-items wait in line."""
    rows, columns, sizes = Pass((1, 0), 1), Pass((0, 1), 1), (32, 32)
    dense, apart = BankLayout(sizes, (32, 1)), BankLayout(sizes, (33, 1))
    assert bank_cycles(dense, columns, 4) == 1
    assert layout(sizes, rows, columns, 4) == apart
    assert bank_cycles(apart, columns, 4) == bank_cycles(apart, rows, 4) == 1 / 32
    # 16 across and 2 along: only an even gap keeps them apart.
    assert layout((16, 64), rows, columns, 4) == BankLayout((16, 64), (66, 1))
    # Elements of 8 bytes are fetched by half as many at a time.
    assert bank_cycles(apart, columns, 8) == 1 / 16


def test_vectors_stay_whole_in_local_memory() -> None:
    """128 x 64 halves, by 8 on both sides: words of two are read, 16 bytes are stored at once."""
    read, write = Pass((0, 1), 8), Pass((1, 0), 8, tall=2, across=0)
    found = layout((128, 64), read, write, 2)
    assert found.lanes(read) == (8, (0,))
    assert found.lanes(write)[0] == 2
    assert bank_cycles(found, read, 2) == 2 / TURN_BYTES
    assert bank_cycles(found, write, 2) <= 2 * 2 / TURN_BYTES
    every = [place(found.digits(Pass((0, 1), 1)), n) for n in range(128 * 64)]
    assert len(set(every)) == 128 * 64
    assert max(every) + 1 == found.extent


def test_short_loops_that_go_on_are_one_digit() -> None:
    """3 x 3 taps of 16 channels, read as they lie: no digit of 9 is left."""
    read = Pass((0, 1, 2), 8)
    found = BankLayout((9, 16, 16), (1, 9, 152))
    assert found.digits(read) == [(144, 1), (16, 152)]
    assert found.lanes(read) == (8, (0,))
    # A vector across nine places is not the same for all.
    assert BankLayout((9, 16), (1, 10)).lanes(Pass((0, 1), 8)) == (1, None)


def test_division_by_multiplication() -> None:
    rng = random.Random(3)  # noqa: S311  # numbers, not secrets
    divisors = [*range(1, 70), 2**16 - 1, 2**30 + 1, 2**31 - 1, *rng.sample(range(1, 2**31), 50)]
    for divisor in divisors:
        multiplier, shift = reciprocal(divisor)
        assert 2**31 <= multiplier < 2**32
        near = [divisor * k + d for k in (1, 7, 2**31 // divisor - 1) for d in (-1, 0, 1)]
        for n in [0, 1, 2**31 - 1, *near, *rng.sample(range(2**31), 20)]:
            if 0 <= n < 2**31:
                assert (2 * n * multiplier >> 32) >> shift == n // divisor, (n, divisor)


@pytest.mark.parametrize("dtype", tiered(["s8", "f16", "f32", "f64"], ["f64"]))
def test_every_format_fits_the_smallest_local_memory(dtype: str) -> None:
    """18 KiB, so that three groups share a multiprocessor; and no pair falls to generic."""
    for fmt in dict.fromkeys(BUFFERS):
        dims = tuple(4 * n for n in hurting_dims(fmt))
        plain, other = D(dims, dtype), D(dims, dtype, fmt)
        nests = all(len(d.dims) == 1 and not d.flip for d in fmt.digits) and not fmt.structure.tail
        for pair in ((plain, other), (other, plain)):
            plan = cf.make_plan(*pair, GPU)
            moves = nests and not pair[1].sums
            assert plan.family in ("local", "rows") or not moves, plan
            if isinstance(plan.body, GroupPlan):
                assert plan.body.layout.local_elements * plain.dtype.nbytes <= 18 << 10, plan


def test_cpus_have_it_by_name_alone_and_gpus_have_theirs() -> None:
    src, dst = D((2, 35, 9, 8), "f32", "bfyx"), D((2, 35, 9, 8), "f32", "b_fs_yx_fsv16")
    assert cf.make_plan(src, dst).family == "scheduled"
    assert "local" not in str(cf.make_plan(src, dst))
    assert cf.make_plan(src, dst, family="local").family == "local"
    assert cf.make_plan(src, dst, GPU).family == "local"
    assert cf.make_plan(src, dst, GPU, family="scheduled").family == "scheduled"
    assert isinstance(cf.make_plan(src, src, GPU, family="rows").body, GroupPlan)
    with pytest.raises(cf.Unsupported, match="order"):
        cf.make_plan(src, src, family="local")
    with pytest.raises(cf.Unsupported, match="64 bytes"):
        cf.make_plan(D((2, 35, 9, 8), "f32", "byxf"), dst, family="local")
    assert [f.name for f in GPU_FAMILIES][:3] == ["local", "rows", "generic"]


def test_small_tensors_are_shared_by_more_groups() -> None:
    """A multiprocessor without a group does nothing."""
    small, large = (
        cf.make_plan(D((n,), "f32"), D((n,), "f32"), GPU).body for n in (1 << 17, 1 << 24)
    )
    assert isinstance(small, GroupPlan)
    assert isinstance(large, GroupPlan)
    assert small.layout.count == 128
    assert large.layout.sizes == (2048,)


@pytest.mark.parametrize(
    ("src", "dst", "most"),
    [
        ("f32:bfyx", "f32:b_fs_yx_fsv16", 6),
        ("u8:b_fs_yx_fsv16", "f16:bfyx", 12),
        ("f32:bfyx", "s8:byxf", 12),
        ("f16:bfyx", "f16:bfyx", 8),
    ],
)
def test_many_shapes_need_few_programs(src: str, dst: str, most: int) -> None:
    """Law 7 on a hundred shapes."""
    rng = random.Random(6)  # noqa: S311  # shapes, not secrets
    sources = set()
    for _ in range(100):
        sizes = rng.randrange(2, 9), 16 * rng.randrange(2, 9) + 3, *rng.choices(range(5, 40), k=2)
        dims = "x".join(map(str, sizes))
        launched = render(cf.make_plan(D.parse(f"{src}:{dims}"), D.parse(f"{dst}:{dims}"), GPU))
        assert launched is not None
        sources.add(launched.source)
    assert len(sources) <= most
