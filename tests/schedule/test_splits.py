"""Blocks that do not divide each other, as work-groups move them: loops of either side."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import product

import pytest

import clformats as cf
from bench.cases import CASES, UNEVEN, Case
from clformats.problems.problem import Problem
from clformats.problems.refine import problem
from clformats.problems.splits import by_padding, by_sides, refusal
from clformats.schedule import Traits
from clformats.schedule.banks import place
from clformats.schedule.local import GroupPlan
from tests.support import pair_of
from tests.uneven_support import uneven_pairs

D = cf.MemoryDesc
GPU = Traits(is_cpu=False, compute_units=132)


def steps(p: Problem, side: str) -> Iterator[tuple[tuple[int, ...], int, bool, bool]]:
    """Each step of a side's loops: the indices, the offset, whether it is an element, or stored."""
    nodes = [n for n in p.nodes if n.is_of(side)]
    for step in product(*(range(n.size.value) for n in nodes)):
        pairs = [*zip(step, nodes, strict=True)]
        shared = tuple(i for i, n in pairs if not n.split)
        guarded = [0] * len(p.guards)
        split, before = [0] * 4, dict[int, int]()
        for i, n in pairs:
            if n.split:
                split[n.split.index] += i * n.split.steps
                first = n.split.first * (side == "src")
                before[n.split.index] = first
                if n.guard is not None:
                    guarded[n.guard] = -first * (n.unit // n.split.steps)
        for index, first in before.items():
            split[index] -= first
        at = p.src0 if side == "src" else p.dst0
        at += sum(i * (n.src if side == "src" else n.dst).value for i, n in pairs)
        for i, n in pairs:
            if n.guard is not None:
                guarded[n.guard] += i * n.unit
        limits = [*zip(guarded, p.guards, strict=True)]
        inside = all(g.lo.value <= n < g.hi.value for n, g in limits)
        yield (*shared, *split), at, inside, all(n < g.end.value for n, g in limits)


def check(p: Problem) -> None:
    """Every place is stored once, elements from where the source has them."""
    read = {key: at for key, at, inside, _ in steps(p, "src") if inside}
    stored: dict[int, int | None] = {}
    for key, at, inside, exists in steps(p, "dst"):
        if exists:
            assert at not in stored
            stored[at] = read[key] if inside else None
    pairs = zip(p.dst.offsets().ravel().tolist(), p.src.offsets().ravel().tolist(), strict=True)
    assert {at: n for at, n in stored.items() if n is not None} == dict(pairs)
    every = 1
    for placed in p.dst.placed:
        every *= placed.size
    assert len(stored) == every


def test_each_side_has_its_loops() -> None:
    p = by_sides(problem(D((2, 144, 5, 7), "f32", "aBcd24b"), D((2, 144, 5, 7), "f32", "aBcd16b")))
    assert not p.tables
    assert str(p) == "(6:1680,1680) (3:-,560) (35:24,16) (2:-,8) (8:1,1) (2:840,-) (3:8,-)"
    few = by_sides(problem(D((2, 40), "f32", "aB63b"), D((2, 40), "f32", "aB16b")))
    assert str(few) == "(2:63,48) (48:1,1?0)  guards dim 1: [0, 40) of 48"
    image = by_sides(problem(D((2, 3, 5), "f32", "aBc3b"), D((2, 3, 5), "f32", "aBc16b")))
    assert str(image) == "(10:3,16) (16:1,1?0)  guards dim 1: [0, 3) of 16"


def test_a_plan_shows_them() -> None:
    src, dst = D((2, 144, 5, 7), "f32", "aBcd24b"), D((2, 144, 5, 7), "f32", "aBcd16b")
    text = str(cf.make_plan(src, dst, GPU))
    assert f"  sides   {by_sides(problem(src, dst))}\n" in text
    assert "sides" not in str(cf.make_plan(src, dst))


def test_they_move_every_element_and_zero_the_padding() -> None:
    uneven = [p for p in (problem(*pair) for pair in uneven_pairs(3, 300, 20_000)) if p.tables]
    found = [by_sides(p) for p in uneven]
    assert sum(p.is_split for p in found) > 40 < sum(not p.is_split for p in found)
    for p in found:
        check(p)


def test_padding_may_shift_blocks_against_each_other() -> None:
    for front, after in ((1, 0), (3, 0), (5, 2), (0, 3), (2, 7)):
        for names in (("aBcd8b", "aBcd6b"), ("aBcd8b", "aBcd8b"), ("aBcd4b", "acdb")):
            pads = [((0, 0), (n, 0), (0, 0), (0, 0)) for n in (front, after)]
            for size in (19, 90):
                src, dst = (D((2, size, 2, 3), "f32", name, padding=pad)
                            for name, pad in zip(names, pads, strict=True))  # fmt: skip
                p = by_sides(problem(src, dst))
                assert not p.tables
                check(p)


@pytest.mark.parametrize("first", [0, 2, 17])
def test_a_table_of_one_step_is_a_place(first: int) -> None:
    """One image behind padding, in blocks of 16 of them: no loop is left along the table."""
    src = D(
        (1, 17, 3, 5), "u8", "bs_fs_yx_bsv16_fsv16", padding=((first, 1), (1, 1), (0, 0), (0, 0))
    )
    for dst in (D(src.dims, "f32", "ioyx"), D(src.dims, "u8", "bfyx")):
        found = problem(src, dst)
        assert by_sides(found).tables == ()
        check(by_sides(found))
        cf.make_plan(src, dst, GPU)


def test_what_is_left_to_the_generic_family() -> None:
    """Elements of less than a byte, and blocks of which no tile has a common multiple."""
    plain = D((2, 48, 4, 4), "u4", "aBcd24b"), D((2, 48, 4, 4), "u4", "aBcd16b")
    large = D((9000, 9000), "f32", "AB63a64b"), D((9000, 9000), "f32", "AB64a63b")
    for pair in (plain, large):
        plan = cf.make_plan(*pair, GPU)
        assert plan.family == "generic", plan
    assert refusal(problem(*plain))
    assert not refusal(problem(*large))
    assert "in common" in str(cf.make_plan(*large, GPU))


@pytest.mark.parametrize("case", [c for c in CASES if c.group == UNEVEN], ids=lambda c: c.name)
def test_elements_have_places_of_their_own_in_local_memory(case: Case) -> None:
    body = cf.make_plan(*case.descriptors(), GPU).body
    assert isinstance(body, GroupPlan)
    moved = body.layout
    assert moved.banks
    for p, side in ((moved.read, "src"), (moved.write, "dst")):
        digits = moved.banks.digits(p)
        first = moved.banks.first * (side == "dst")
        every = {first + place(digits, n) for n in range(moved.elements(side))}
        assert len(every) == moved.elements(side)
        assert max(every) < moved.local_elements


@pytest.mark.parametrize(
    ("src", "dst", "dims", "side"),
    [
        ("u8:b_fs_yx_fsv16", "u8:byxf", (2, 17, 3, 4), "dst"),  # rows of 17 bytes
        ("u8:b_fs_yx_fsv16", "u8:bfyx", (2, 3, 3, 4), "dst"),  # 3 planes of 16 places
        ("s8:bfyx", "f16:b_fs_yx_fsv32", (2, 3, 3, 4), "src"),
        ("u8:bfyx", "u8:bs_fs_yx_bsv16_fsv16", (3, 40, 2, 5), "src"),
        ("u8:yxfb", "u8:bs_fs_yx_bsv16_fsv16", (3, 40, 2, 5), ""),
        ("u8:byxf", "u8:b_fs_yx_fsv16", (2, 3, 3, 4), ""),  # such rows are loaded one by one
        ("u8:b_fs_yx_fsv16", "u8:bfyx", (2, 17, 3, 4), ""),  # more than half of the places
        ("u8:b_fs_yx_fsv16", "u8:b_fs_yx_fsv32", (2, 3, 3, 4), ""),  # both have blocks
        ("f32:bfyx", "f32:b_fs_yx_fsv16", (2, 3, 3, 4), ""),  # elements of 4 bytes
        ("u8:b_fs_yx_fsv16", "u8:byxf", (2, 33, 3, 4), ""),
    ],
)
def test_blocks_with_few_elements(src: str, dst: str, dims: tuple[int, ...], side: str) -> None:
    """The side without blocks has a loop over the elements; the other one keeps its own."""
    p = by_padding(problem(*pair_of(src, dst, dims)))
    check(p)
    counts = {g.hi.value for g in p.guards}
    whole = {n.split.side for n in p.nodes if n.split and n.size.value in counts}
    assert whole == ({side} if side else set()), p
