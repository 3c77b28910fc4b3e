"""The box of a GPU's work-group as a line of text, and the boxes that the tuner tries."""

from __future__ import annotations

import random
from dataclasses import replace

import pytest

import clformats as cf
from clformats.kernels import render
from clformats.schedule.boxes import ALL, EXAMPLE, BoxSchedule
from clformats.schedule.choices import RULES, Choices
from clformats.schedule.local import LocalPlan
from clformats.schedule.space import BOX, EACH, NEAR, PROGRAMS, Space, space
from clformats.schedule.traits import Traits
from tests.support import BUFFERS, random_pair

D = cf.MemoryDesc
GPU = Traits(is_cpu=False, compute_units=108, cache_bytes=40 << 20)
LARGE = D((32, 256, 56, 56), "f16", "bfyx"), D((32, 256, 56, 56), "f16", "byxf")


def body(pair: tuple[D, D], line: str | None = None, traits: Traits = GPU) -> LocalPlan:
    """The plan of the local family, by a line or by the rules."""
    found = cf.make_plan(*pair, traits, choices=Choices(box=line)).body
    assert isinstance(found, LocalPlan)
    return found


def space_of(pair: tuple[D, D]) -> Space:
    found = space(*pair, GPU)
    assert found is not None
    assert found.parameter == BOX
    return found


def random_pairs(count: int, seed: int) -> list[tuple[D, D]]:
    """Random reorders that GPUs take through local memory."""
    rng = random.Random(seed)  # noqa: S311  # shapes, not secrets
    formats: dict[int, list[cf.Format]] = {}
    for fmt in BUFFERS:
        formats.setdefault(fmt.ndims, []).append(fmt)
    found: list[tuple[D, D]] = []
    while len(found) < count:
        dims, a, b = random_pair(rng, formats)
        try:
            pair = D(dims, rng.choice(["f32", "u8"]), a), D(dims, rng.choice(["f32", "u8"]), b)
            if cf.make_plan(*pair, GPU).family == "local":
                found.append(pair)
        except cf.Error:
            continue
    return found


@pytest.mark.parametrize(
    "line",
    [
        EXAMPLE,
        "b64 c128 | vectors 8 8 by 2 | gaps | 256 along a b c",
        "b2 c d16 e | vectors 8 2 by 1 | dense | 64 along d b a",
        "a | vectors 1 16 by 1 | gaps | 32 once",
    ],
)
def test_a_box_prints_and_parses_back(line: str) -> None:
    assert str(BoxSchedule.parse(line)) == line
    assert Choices(box=f" {line.replace('|', ' |  ')} ").box
    assert f"box {line}" in str(Choices(box=line))


def test_what_a_box_says() -> None:
    found = BoxSchedule.parse(EXAMPLE)
    assert found == BoxSchedule((1, 1, 64, ALL), (4, 8), 2, True, 256, (0, 2))


@pytest.mark.parametrize(
    ("line", "word"),
    [
        ("b64 c128", "four parts between bars"),
        ("b64 | vectors 8 8 by 1 | gaps |", "four parts between bars"),
        ("64b | vectors 8 8 by 1 | gaps | 256 once", "instead of '64b'"),
        ("b1 | vectors 8 8 by 1 | gaps | 256 once", "instead of 'b1'"),
        ("b64 | vectors 8 8 | gaps | 256 once", "'vectors 4 8 by 2'"),
        ("b64 | vectors 8 3 by 1 | gaps | 256 once", "of 1, 2, 4, 8 or 16 elements"),
        ("b64 | vectors 8 8 by 1 | swizzle | 256 once", "'gaps' or 'dense'"),
        ("b64 | vectors 8 8 by 1 | gaps | many once", "'256 along a c'"),
        ("b64 | vectors 8 8 by 1 | gaps | 0 once", "'256 along a c'"),
        ("b64 | vectors 8 8 by 1 | gaps | 256 along", "each once, or 'once'"),
        ("b64 | vectors 8 8 by 1 | gaps | 256 along a a", "each once, or 'once'"),
        ("b64 | vectors 8 8 by 1 | gaps | 256 along ab", "each once, or 'once'"),
    ],
)
def test_a_wrong_box_is_refused(line: str, word: str) -> None:
    with pytest.raises(cf.InvalidArgument, match=word):
        Choices(box=line)
    with pytest.raises(cf.InvalidArgument, match="a line such as 'c64 d"):
        Choices(box=3)  # type: ignore[arg-type]


def test_each_part_of_a_box_is_heeded() -> None:
    rules = body(LARGE)
    assert str(rules.schedule) == "b64 c128 | vectors 8 8 by 2 | gaps | 256 along a b c"
    found = body(LARGE, "b32 c256 | vectors 4 2 by 1 | dense | 64 along c a b")
    assert found.box == (1, 32, 256)
    assert (found.read.width, found.write.width) == (4, 2)
    assert found.local_elements == 32 * 256 < rules.local_elements
    assert found.group == 64
    assert found.order == (2, 0, 1)
    made = render(cf.make_plan(*LARGE, GPU, choices=Choices(box=str(found.schedule))))
    assert made is not None
    assert made.local_size == 64
    # The last loop of the order is the one that neighbours differ in.
    assert "rest / " not in made.source
    assert "x1 = (idx)(rest - rest1 * count1) * 32" in made.source


def test_a_wish_that_cannot_be_had_is_met_as_nearly_as_it_can() -> None:
    """It never makes an error, and the plan says what has become of it."""
    odd = D((3, 17, 5, 7), "f32", "bfyx"), D((3, 17, 5, 7), "f32", "byxf")
    assert body(
        odd, "b500 c9 | vectors 8 16 by 1 | gaps | 1000 along a"
    ).schedule == BoxSchedule.parse("b64 c8 | vectors 1 1 by 1 | gaps | 256 along a b c")
    # All of a long loop would be a program for each size of it.
    assert body(LARGE, "b c | vectors 8 8 by 1 | gaps | 256 along a b c").schedule.steps == (
        1,
        64,
        128,
    )
    # More than local memory has, and more than a work-item can move.
    for line in (
        "b4096 c4096 | vectors 8 8 by 1 | gaps | 256 once",
        "b64 c128 | vectors 8 8 by 1 | gaps | 1 once",
    ):
        found = body(LARGE, line)
        assert found.local_elements * 2 <= GPU.local_bytes
        assert found.local_elements <= 300 * found.group
    # Loops that the problem has not.
    assert body(odd, "z4 | vectors 1 1 by 1 | gaps | 64 along a") == body(odd)
    assert body(odd, "b4 c4 | vectors 1 1 by 1 | gaps | 64 along z") == body(odd)
    # Of memory that begins anywhere vectors are shorter.
    line = "b64 c128 | vectors 8 8 by 2 | gaps | 256 along a b c"
    short = replace(GPU, begin_bytes=4)
    assert body(LARGE, line, short).schedule.vectors == (2, 2)


def test_cpus_and_other_families_leave_a_box_alone() -> None:
    choices = Choices(box=EXAMPLE)
    assert cf.make_plan(*LARGE, choices=choices).choices == RULES
    assert cf.make_plan(LARGE[0], LARGE[0], GPU, choices=choices).choices == RULES


def test_a_box_says_all_that_is_a_choice() -> None:
    """So the plan of a plan's own box is the same plan, whatever the problem."""
    for pair in random_pairs(60, 1):
        found = body(pair)
        assert body(pair, str(found.schedule)) == found, pair


def test_the_boxes_of_the_tuner_are_spread_around_those_of_the_rules() -> None:
    found = space_of(LARGE)
    assert found.values[0] == str(body(LARGE).schedule)
    assert found.choices(found.values[0]) == RULES
    assert 15 < len(set(found.values)) == len(found.values) <= PROGRAMS * EACH
    tried = [BoxSchedule.parse(value) for value in found.values]
    assert len({one.steps for one in tried}) > 8
    # Runs of both sides, vectors, gaps, and size and order of the groups.
    for k in (1, 2):
        assert len({one.steps[k] for one in tried}) >= 3
    for part in ("vectors", "tall", "gaps", "group", "order"):
        assert len({getattr(one, part) for one in tried}) > 1, part
    near = [BoxSchedule.parse(value) for value in found.near(found.values[2])]
    assert len({*near}) == NEAR
    assert {one.steps for one in near} == {tried[2].steps}
    assert tried[2] not in near


def test_a_box_of_the_space_is_what_the_plan_then_has() -> None:
    for pair in random_pairs(15, 2):
        found = space_of(pair)
        for value in (*found.values, *found.near(found.values[-1])[::4]):
            plan = cf.make_plan(*pair, GPU, choices=found.choices(value))
            assert plan.family == "local"
            assert isinstance(plan.body, LocalPlan)
            assert plan.body.value == value
            nbytes = min(t.nbytes for t in plan.problem.dtypes)
            assert plan.body.local_elements * nbytes <= GPU.local_bytes


def test_a_new_order_of_groups_needs_no_division() -> None:
    line = "b64 c128 | vectors 8 8 by 1 | gaps | 256 along"
    for order in ("a b c", "a c b", "c b a", "b a c"):
        made = render(cf.make_plan(*LARGE, GPU, choices=Choices(box=f"{line} {order}")))
        assert made is not None
        assert made.groups == 3136
        assert " / count" not in made.source
