"""Schedules of work-groups that move tiles together, and those that the tuner tries."""

from __future__ import annotations

import random
from dataclasses import replace

import pytest

import clformats as cf
from clformats.kernels import render
from clformats.problems.thresholds import MOST_TURNS, NEAR
from clformats.problems.traits import DEFAULT, Traits
from clformats.schedule.choices import RULES, Choices
from clformats.schedule.grouped import GroupTile
from clformats.schedule.local import GroupPlan, _narrower, _turns
from clformats.schedule.schedule import ALL, EXAMPLE, Loop, Schedule, Store, Tile
from clformats.spaces.space import Space, space
from tests.support import BUFFERS, random_pair

D = cf.MemoryDesc
GPU = Traits(is_cpu=False, compute_units=108)
GROUP_EXAMPLE = "tile c64 d of 4 8 | a* c* of 256 | ahead 0 | local 2"
LARGE = D((32, 256, 56, 56), "f16", "bfyx"), D((32, 256, 56, 56), "f16", "byxf")


def body(pair: tuple[D, D], line: str | None = None, traits: Traits = GPU) -> GroupPlan:
    """The plan of the local family, by a line or by the rules."""
    found = cf.make_plan(*pair, traits, choices=Choices(schedule=line)).body
    assert isinstance(found, GroupPlan)
    return found


def space_of(pair: tuple[D, D]) -> Space:
    found = space(*pair, GPU)
    assert found is not None
    assert found.parameter == "schedule"
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
        GROUP_EXAMPLE,
        "tile a8 of 4 | once | ahead 0 | local 1",
        "tile a2048 of 4 | a* of 256 | ahead 0 | ordinary",
        "tile b64 c128 of 8 | a* b* c* of 256 | ahead 0 | local 2",
        "tile b2 c d16 e of 8 2 | d* b* a* of 64 | ahead 0 | local 1 dense",
        "tile a of 1 16 | once of 32 | ahead 0 | local 1",
    ],
)
def test_a_schedule_of_groups_prints_and_parses_back(line: str) -> None:
    assert str(Schedule.parse(line)) == line
    assert str(Schedule.parse(f" {line.replace('|', ' |  ')} ")) == line
    assert f"schedule {line}" in str(Choices(schedule=line))


def test_what_a_schedule_of_groups_says() -> None:
    found = Schedule.parse(GROUP_EXAMPLE)
    assert found == Schedule(
        Tile((1, 1, 64, ALL), 4, 8), (Loop(0, spread=True), Loop(2, spread=True)),
        store=Store(local=2), group=256,
    )  # fmt: skip
    assert found.tile.widths == (4, 8)
    assert Tile.of([1, 2, 1], 8, 8) == Tile((1, 2), 8)


@pytest.mark.parametrize(
    ("line", "word"),
    [
        ("tile b0 of 8 | a* of 256 | ahead 0 | local 1", "instead of 'b0'"),
        ("tile b64 of 8 0 | a* of 256 | ahead 0 | local 1", "'tile b16 c16 of 16'"),
        ("tile b64 of 8 8 8 | a* of 256 | ahead 0 | local 1", "'tile b16 c16 of 16'"),
        ("tile b64 of 8 | a* of 0 | ahead 0 | local 1", "at least one work-item"),
        ("tile b64 of 8 | a* of many | ahead 0 | local 1", "'of' with a number"),
        ("tile b64 of 8 | a* of 2 3 | ahead 0 | local 1", "'of' with a number"),
        ("tile b64 of 8 | of 256 | ahead 0 | local 1", "loops or 'once'"),
        ("tile b64 of 8 | a* of 256 | ahead 0 | local 0", "at least one element"),
        ("tile b64 of 8 | a* of 256 | ahead 0 | local 1 swizzled", "'local' with a number"),
    ],
)
def test_a_wrong_schedule_of_groups_is_refused(line: str, word: str) -> None:
    with pytest.raises(cf.InvalidArgument, match=word):
        Choices(schedule=line)


def test_each_part_of_a_schedule_counts() -> None:
    rules = body(LARGE)
    assert str(rules.schedule) == "tile b64 c128 of 8 | a* b* c* of 256 | ahead 0 | local 2"
    found = body(LARGE, "tile b32 c256 of 4 2 | c* a* b* of 64 | ahead 0 | local 1 dense")
    assert found.layout.sizes == (1, 32, 256)
    assert (found.layout.read.width, found.layout.write.width) == (4, 2)
    assert found.layout.local_elements == 32 * 256 < rules.layout.local_elements
    assert found.schedule.group == 64
    assert [loop.axis for loop in found.schedule.nest] == [2, 0, 1]
    made = render(cf.make_plan(*LARGE, GPU, choices=Choices(schedule=str(found.schedule))))
    assert made is not None
    assert made.local_size == 64
    # The last loop of the order is the one that neighbours differ in.
    assert "rest / " not in made.source
    assert "x1 = (idx)(rest - rest1 * count1) * 32" in made.source


def test_a_wish_that_cannot_be_had_is_met_as_nearly_as_it_can() -> None:
    """It never makes an error, and the plan says what has become of it."""
    odd = D((3, 17, 5, 7), "f32", "bfyx"), D((3, 17, 5, 7), "f32", "byxf")
    assert body(
        odd, "tile b500 c9 of 8 16 | a* of 1000 | ahead 0 | local 1"
    ).schedule == Schedule.parse("tile b64 c8 of 1 | a* b* c* of 256 | ahead 0 | local 1")
    # All of a long loop would be a program for each size of it.
    assert body(LARGE, "tile b c of 8 | a* b* c* of 256 | ahead 0 | local 1").layout.sizes == (
        1,
        64,
        128,
    )
    # More than local memory has, and more than a work-item can move.
    for line in (
        "tile b4096 c4096 of 8 | once of 256 | ahead 0 | local 1",
        "tile b64 c128 of 8 | once | ahead 0 | local 1",
    ):
        found = body(LARGE, line)
        assert found.layout.local_elements * 2 <= GPU.local_bytes
        assert found.layout.local_elements <= 300 * found.schedule.group
    # Loops that the problem has not, and what only CPUs do.
    for line in (
        "tile z4 of 1 | a* of 64 | ahead 0 | local 1",
        "tile b4 c4 of 1 | z* of 64 | ahead 0 | local 1",
        "tile b4 c4 of 1 | a* of 64 | ahead 0 | ordinary",
        EXAMPLE,
    ):
        assert str(body(odd, line)) == str(body(odd))
        assert f"the schedule {line} does not fit" in body(odd, line).instead
    # Of memory that begins anywhere vectors are shorter.
    line = "tile b64 c128 of 8 | a* b* c* of 256 | ahead 0 | local 2"
    short = replace(GPU, begin_bytes=4)
    assert body(LARGE, line, short).schedule.tile.widths == (2, 2)


def test_cpus_and_other_families_leave_a_schedule_of_groups_to_the_rules() -> None:
    for pair, traits in ((LARGE, DEFAULT), ((LARGE[0], LARGE[0]), GPU)):
        found = cf.make_plan(*pair, traits, choices=Choices(schedule=GROUP_EXAMPLE))
        assert str(found.body) == str(cf.make_plan(*pair, traits).body)
        assert f"not chosen    the schedule {GROUP_EXAMPLE} does not fit" in str(found)


def test_a_schedule_says_all_that_is_a_choice() -> None:
    """So the plan of a plan's own schedule is the same plan, whatever the problem."""
    for pair in random_pairs(60, 1):
        uneven = cf.make_plan(*pair, GPU).problem.tables  # these need local memory
        for family in ("local",) if uneven else ("local", "rows"):
            found = cf.make_plan(*pair, GPU, family).body
            assert isinstance(found, GroupPlan)
            own = Choices(schedule=str(found.schedule))
            assert cf.make_plan(*pair, GPU, family, choices=own).body == found, pair


def test_what_the_tuner_tries_is_spread_around_the_rules() -> None:
    found = space_of(LARGE)
    assert found.values[0] == str(body(LARGE).schedule)
    assert found.choices(found.values[0]) == RULES
    assert 15 < len(set(found.values)) == len(found.values) <= 24
    tried = [Schedule.parse(value) for value in found.values]
    assert len({one.tile.extents for one in tried}) > 8
    # Runs of both sides, vectors, gaps, and size and order of the groups.
    for k in (1, 2):
        assert len({one.tile.steps(k) for one in tried}) >= 3
    assert len({one.tile.widths for one in tried}) > 1
    for part in ("store", "group", "nest"):
        assert len({getattr(one, part) for one in tried}) > 1, part
    near = [Schedule.parse(value) for value in found.near(found.values[2])]
    assert len({*near}) == NEAR
    assert {one.tile.extents for one in near} == {tried[2].tile.extents}
    assert tried[2] not in near


def test_a_schedule_of_the_space_is_what_the_plan_then_has() -> None:
    for pair in random_pairs(15, 2):
        found = space_of(pair)
        for value in (*found.values, *found.near(found.values[-1])[::4]):
            plan = cf.make_plan(*pair, GPU, choices=found.choices(value))
            assert plan.family == "local"
            assert isinstance(plan.body, GroupPlan)
            assert plan.body.value == value
            nbytes = min(t.nbytes for t in plan.problem.dtypes)
            assert plan.body.layout.local_elements * nbytes <= GPU.local_bytes


def test_a_new_order_of_groups_needs_no_division() -> None:
    for order in ("a* b* c*", "a* c* b*", "c* b* a*", "b* a* c*"):
        line = f"tile b64 c128 of 8 | {order} of 256 | ahead 0 | local 1"
        made = render(cf.make_plan(*LARGE, GPU, choices=Choices(schedule=line)))
        assert made is not None
        assert made.groups == 3136
        assert " / count" not in made.source


PACES = [
    (D((64, 3, 512, 512), "u8", "byxf"), D((64, 3, 512, 512), "u8", "bfyx")),
    (D((32, 256, 56, 56), "f16", "b_fs_yx_fsv16"), D((32, 256, 56, 56), "f32", "bfyx")),
]


@pytest.mark.parametrize("pair", PACES, ids=lambda pair: f"{pair[0].dtype} {pair[0].format}")
def test_banks_keep_pace_with_memory(pair: tuple[D, D]) -> None:
    """By narrower stores, or by longer words of local memory: by the widest vectors they do not."""
    found = body(pair)
    plans = [*_narrower(GroupTile(found.problem, found.schedule.tile), 1, GPU)]
    assert _turns(plans[0]) > MOST_TURNS >= _turns(found)


def test_words_that_trade_elements_are_moved_by_whole_lines() -> None:
    """They lie far apart: a tile of the usual size has runs of half a line on one side."""
    dims = (4096, 14336)
    awq, plain = D(dims, "u4", "a b/8 b%2 b/2%4"), D(dims, "u4", "ba")
    for pair in ((awq, plain), (plain, awq)):
        for local_bytes, nbytes in ((32 << 10, 64), (48 << 10, 128)):
            found = body(pair, traits=replace(GPU, local_bytes=local_bytes))
            tile = GroupTile(found.problem, found.schedule.tile)
            assert min(4 * tile.run(side) for side in ("src", "dst")) == nbytes
            assert 4 * found.layout.local_elements <= local_bytes
