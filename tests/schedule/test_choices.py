"""What may be chosen otherwise than by the rules, and the spaces of it; plans alone, no device."""

from __future__ import annotations

import random
from dataclasses import replace
from typing import Any

import pytest

import clformats as cf
from clformats.kernels import render
from clformats.kernels.scheduled import render_schedule
from clformats.problems.refine import problem
from clformats.problems.thresholds import EACH, NEAR, PROGRAMS
from clformats.problems.traits import DEFAULT, Traits
from clformats.schedule.choices import RULES, Choices
from clformats.schedule.generic import GenericPlan
from clformats.schedule.plan import FAMILIES, GPU_FAMILIES
from clformats.schedule.schedule import Schedule
from clformats.schedule.scheduled import ScheduledPlan
from clformats.schedule.search import ranked
from clformats.spaces.space import space, spaces
from tests.support import BUFFERS, random_pair

D = cf.MemoryDesc
LINE = "tile b8 of 8 | a b c | ahead 0 | ordinary"
WISHES = Choices(schedule=LINE, local_size=32, baked=True)


def pairs(count: int, seed: int) -> list[tuple[cf.MemoryDesc, cf.MemoryDesc]]:
    """Random reorders of any two formats that plain values move between."""
    rng = random.Random(seed)  # noqa: S311  # shapes, not secrets
    formats: dict[int, list[cf.Format]] = {}
    for fmt in BUFFERS:
        formats.setdefault(fmt.ndims, []).append(fmt)
    found: list[tuple[cf.MemoryDesc, cf.MemoryDesc]] = []
    while len(found) < count:
        dims, a, b = random_pair(rng, formats)
        try:
            src = D(dims, rng.choice(["f32", "u8", "f16"]), a)
            dst = D(dims, rng.choice(["f32", "u8", "f16"]), b)
            space(src, dst, DEFAULT)
        except cf.Error:
            continue
        found.append((src, dst))
    return found


def test_without_choices_the_rules_decide_and_the_plan_says_nothing() -> None:
    src, dst = D((2, 17, 5, 19), "f32", "bfyx"), D((2, 17, 5, 19), "f32", "byxf")
    assert cf.make_plan(src, dst, choices=Choices()) == cf.make_plan(src, dst)
    assert "chosen" not in str(cf.make_plan(src, dst))
    assert str(RULES) == "by the rules"


def test_a_plan_prints_what_was_chosen() -> None:
    src, dst = D((2, 17, 5, 19), "f32", "bfyx"), D((2, 17, 5, 19), "f32", "byxf")
    plan = cf.make_plan(src, dst, choices=Choices(schedule=LINE, local_size=32))
    assert f"  chosen  schedule {LINE}" in str(plan)
    assert f"scheduled: {LINE}\n" in str(plan)


@pytest.mark.parametrize(
    ("values", "word"),
    [
        ({"local_size": 0}, "1 to 65536"),
        ({"local_size": 1 << 17}, "1 to 65536"),
        ({"local_size": True}, "True of type bool"),
        ({"local_size": "8"}, "'8' of type str"),
        ({"local_size": 2.0}, "2.0 of type float"),
        ({"baked": 1}, "True or False"),
        ({"family": 3}, "a name"),
        ({"schedule": 3}, "a line such as 'tile"),
        ({"schedule": "tile b8"}, "four parts between bars, as in 'tile"),
        ({"lanes": 8}, "got choices 'lanes', expected some of baked, family, local_size"),
    ],
)
def test_a_wrong_choice_is_refused(values: dict[str, Any], word: str) -> None:
    with pytest.raises(cf.InvalidArgument, match=word):
        Choices.of(values)


def test_a_family_that_refuses_is_named() -> None:
    src = D((2, 17, 5, 19), "f32", "bfyx")
    with pytest.raises(cf.Unsupported, match="FAMILY"):
        cf.make_plan(src, D(src.dims, "f32", "byxf"), choices=Choices(family="image"))


def test_an_unknown_family_is_refused_with_the_names_of_all() -> None:
    """One that is gone, too: records and scripts may still name it."""
    src, dst = D((2, 17, 5, 19), "f32", "bfyx"), D((2, 17, 5, 19), "f32", "byxf")
    names = r"'subgroup'.*expected one of scheduled.*local"
    for given in ({"family": "subgroup"}, {"choices": Choices(family="subgroup")}):
        with pytest.raises(cf.Unsupported, match=names) as told:
            cf.make_plan(src, dst, **given)
        assert told.value.code == "FAMILY"


def test_every_problem_takes_every_wish() -> None:
    """A wish that cannot be granted changes the plan at most; it never makes an error."""
    for src, dst in pairs(150, 1):
        plan = cf.make_plan(src, dst, choices=WISHES)
        takes = {f.name: f.takes for f in FAMILIES}.get(plan.family, ())
        assert set(plan.choices.chosen()) <= set(takes)
        made = render(plan)
        if made is not None and "baked" in takes:
            assert made.arguments == ()


def test_tables_name_what_the_families_take() -> None:
    takes = {f.name: {*f.takes} for f in FAMILIES}
    for name, body in (("generic", GenericPlan), ("scheduled", ScheduledPlan)):
        assert {body.parameter, "baked"} == takes[name]
    src, dst = D((8, 64, 32, 32), "f32", "bfyx"), D((8, 64, 32, 32), "f32", "byxf")
    for family in GPU_FAMILIES[:2]:
        sides = (src, src) if family.name == "rows" else (src, dst)
        found = cf.make_plan(*sides, Traits(is_cpu=False), family.name).body
        assert found
        assert {found.parameter, "local_size", "baked"} == {*family.takes}


def test_the_search_takes_the_rules_family_first() -> None:
    def names(src: str, dst: str) -> list[str]:
        dims = (2, 17, 9, 9)
        return [s.family for s in spaces(D(dims, "f32", src), D(dims, "f32", dst), DEFAULT)]

    assert names("bfyx", "byxf") == ["scheduled"]
    assert names("aBcd24b", "aBcd16b") == ["scheduled"]
    assert names("bfyx", "bf8_xy16") == ["generic"]
    assert names("bfyx", "bfyx") == ["scheduled"]


def test_a_value_is_what_the_plan_then_has() -> None:
    for src, dst in pairs(40, 2):
        for found in spaces(src, dst, DEFAULT):
            assert len(set(found.values)) == len(found.values)
            for value in (*found.values[:5], *found.near(found.values[0])[:5]):
                plan = cf.make_plan(src, dst, choices=found.choices(value))
                assert plan.family == found.family
                assert plan.body
                assert plan.body.value == value
        rules = spaces(src, dst, DEFAULT)[0]
        assert rules.choices(rules.values[0]) == RULES
        body = rules.plan(rules.values[0]).body
        assert body
        assert body.value == rules.values[0]


def test_choices_in_another_family_name_it() -> None:
    """Else they are measured, and recorded, as those of the family that the rules take."""
    src, dst = D((2, 17, 5, 19), "f32", "bfyx"), D((2, 17, 5, 19), "f16", "bfyx")
    found = space(src, dst, DEFAULT, "generic")
    assert found is not None
    for value in found.values[:2]:
        plan = cf.make_plan(src, dst, choices=found.choices(value))
        assert plan.body
        assert plan.body.value == value
        assert f"  chosen  family generic, local size {value}" in str(plan)


def test_schedules_are_spread_over_tiles_and_stores() -> None:
    """Each of these is a program to compile. The model's best of all comes first."""
    src, dst = D((8, 64, 113, 112), "f32", "bfyx"), D((8, 64, 113, 112), "f32", "byxf")
    found = space(src, dst, DEFAULT)
    assert found is not None
    p = problem(src, dst)
    every = ranked(p, DEFAULT)
    tried = [Schedule.parse(value) for value in found.values]
    assert tried[0] == every[0]
    programs = [*dict.fromkeys((s.tile, s.store) for s in tried)]
    assert len(programs) == PROGRAMS < len(tried) <= PROGRAMS * EACH
    assert programs == [*dict.fromkeys((s.tile, s.store) for s in every)][:PROGRAMS]
    for program in programs:
        mine = [s for s in every if (s.tile, s.store) == program]
        assert [s for s in tried if (s.tile, s.store) == program] == mine[:EACH]


def test_neighbours_are_other_schedules_of_one_program() -> None:
    src, dst = D((8, 64, 113, 112), "f32", "bfyx"), D((8, 64, 113, 112), "f32", "byxf")
    found = space(src, dst, DEFAULT)
    assert found is not None
    near = found.near(found.values[0])
    assert 5 < len(set(near)) == len(near) <= NEAR
    assert found.values[0] not in near
    sources = {render_schedule(problem(src, dst), Schedule.parse(line)).source for line in near}
    made = render(found.plan(found.values[0]))
    assert made is not None
    assert sources == {made.source}
    numbers = space(src, src, DEFAULT, "generic")
    assert numbers is not None
    assert numbers.near(numbers.values[0]) == []


@pytest.mark.parametrize(("src", "dst"), [("bfyx", "bfyx"), ("byxf", "b_fs_yx_fsv16")])
def test_gpus_choose_the_size_of_their_groups(src: str, dst: str) -> None:
    a, to = D((2, 40, 19, 23), "f32", src), D((2, 40, 19, 23), "f32", dst)
    gpu = replace(DEFAULT, is_cpu=False, group_size=128)
    found = space(a, to, gpu)
    assert found is not None
    groups = {Schedule.parse(line).group: line for line in found.values}
    assert groups.keys() >= {32, 64, 128}
    for size, line in groups.items():
        made = render(found.plan(line, baked=True))
        assert made is not None
        assert made.local_size == size
        assert made.arguments == ()


@pytest.mark.parametrize("traits", [DEFAULT, replace(DEFAULT, is_cpu=False)], ids=["cpu", "gpu"])
@pytest.mark.parametrize("types", ["f32 f32", "u8 u8", "f16 f32", "f64 f64", "f32 s8"])
@pytest.mark.parametrize("formats", ["bfyx bfyx", "bfyx byxf", "b_fs_yx_fsv16 byxf", "Ab24a aB24b"])
def test_a_kernel_with_choices_tells_the_types_of_its_buffers(
    formats: str, types: str, traits: Traits
) -> None:
    dims = (3, 40, 31, 33) if "y" in formats else (40, 60)
    src, dst = (D(dims, *pair) for pair in zip(types.split(), formats.split(), strict=True))
    every = spaces(src, dst, traits)
    assert every
    for found in every:
        made = render(found.plan(found.values[0]))
        assert made is not None
        read, written = made.buffers
        assert f"__global const {read} *restrict src" in made.source
        assert f"__global {written} *restrict dst" in made.source


def test_a_space_prints_its_values_and_the_bytes_that_each_moves() -> None:
    src, dst = D((2, 17, 5, 3), "f32", "bfyx"), D((2, 17, 5, 3), "f32", "bfyx")
    lines = str(space(src, dst, DEFAULT)).splitlines()
    count, first = len(lines) - 1, "  tile a128 of 16 | a | ahead 0 | ordinary"
    assert lines[:2] == [f"scheduled: {count} values of schedule, each moves 4080 bytes", first]


@pytest.mark.parametrize(
    "line",
    [
        "tile b99 of 16 | a | ahead 0 | ordinary",  # longer than its loop
        "tile b16 of 16 | a b | ahead 0 | ordinary",  # leaves loop c out
        "tile b16 of 16 | a b c d | ahead 0 | ordinary",  # there is no fourth loop
    ],
)
def test_a_schedule_that_does_not_fit_leaves_the_plan_to_the_rules(line: str) -> None:
    src, dst = D((2, 17, 5, 3), "f32", "bfyx"), D((2, 17, 5, 3), "f32", "byxf")
    plan = cf.make_plan(src, dst, choices=Choices(schedule=line))
    assert str(plan.body) == str(cf.make_plan(src, dst).body)


def test_a_tile_larger_than_any_that_is_made_is_not_taken() -> None:
    """Compilers would take minutes for it."""
    src, dst = D((2, 512, 64, 64), "f32", "bfyx"), D((2, 512, 64, 64), "f32", "byxf")
    for line, taken in (("b64 c64", True), ("b128 c64", False)):
        choices = Choices(schedule=f"tile {line} of 16 | a b c | ahead 0 | ordinary")
        plan = cf.make_plan(src, dst, choices=choices)
        assert (line in str(plan.body)) == taken


def test_there_is_nothing_to_choose_where_nothing_moves() -> None:
    assert space(D((0, 3), "f32"), D((0, 3), "f32"), DEFAULT) is None
    image = D((17, 3, 3, 3), "f32", "image_2d_weights_c1_b_fyx")
    gpu = replace(DEFAULT, is_cpu=False)
    assert space(D((17, 3, 3, 3), "f32", "oiyx"), image, gpu) is None
    assert spaces(D((0, 3), "f32"), D((0, 3), "f32"), DEFAULT) == []


@pytest.mark.parametrize(
    ("schedule", "why"),
    [
        ("tile d32 of 16 | a* c b | ahead 0 | ordinary", "a number of steps of d that divides 16"),
        ("tile b512 d16 of 16 | a* c | ahead 0 | ordinary", "expected 4096 elements at most"),
        ("tile d16 of 16 | a* c b | ahead 0 | stream 64", "store stream 64 is not legal there"),
        ("tile d16 of 16 | a* c b | ahead 0 | ordinary", ""),
    ],
)
def test_a_plan_tells_why_its_schedule_is_not_the_chosen_one(schedule: str, why: str) -> None:
    src, dst = cf.MemoryDesc((2, 31, 9, 41), "u8", "byxf"), "f16:b_fs_yx_fsv16:2x31x9x41"
    plan = cf.make_plan(src, dst, choices=cf.Choices(schedule=schedule))
    assert ("not chosen    the " in str(plan)) == bool(why)
    assert why in str(plan)
