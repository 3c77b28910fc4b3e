"""What may be chosen otherwise than by the rules, and the spaces of it; plans alone, no device."""

from __future__ import annotations

import random
from dataclasses import replace
from typing import Any

import pytest

import clformats as cf
from clformats.kernels import launch
from clformats.schedule.choices import RULES, Choices
from clformats.schedule.copy import CopyPlan
from clformats.schedule.generic import GenericPlan
from clformats.schedule.local import LocalPlan
from clformats.schedule.plan import FAMILIES, GPU_FAMILIES
from clformats.schedule.space import TABLES, families, outcome, space
from clformats.schedule.traits import DEFAULT, Traits
from tests.support import BUFFERS, random_pair

D = cf.MemoryDesc
WISHES = Choices(lanes=4, registers=64, chunk=5, swapped=True, ahead=3, nontemporal=True,
                 run_bytes=4096, local_size=32, baked=True)  # fmt: skip


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
    text = "tile b8 of 8 | a b c | ahead 0 | ordinary"
    plan = cf.make_plan(src, dst, choices=Choices(schedule=text, run_bytes=4096))
    assert f"  chosen  schedule {text}\n" in str(plan)
    assert f"scheduled: {text}\n" in str(plan)


@pytest.mark.parametrize(
    ("values", "word"),
    [
        ({"lanes": 12}, "power of two"),
        ({"lanes": 0}, "4 to 16"),
        ({"lanes": 2}, "4 to 16"),
        ({"lanes": 32}, "4 to 16"),
        ({"lanes": True}, "True of type bool"),
        ({"lanes": "8"}, "'8' of type str"),
        ({"chunk": 0}, "1 to 1073741824"),
        ({"ahead": -1}, "0 to 1048576"),
        ({"chunk": 2.0}, "2.0 of type float"),
        ({"run_bytes": 1 << 31}, "1 to 1073741824"),
        ({"baked": 1}, "True or False"),
        ({"family": 3}, "a name"),
        ({"schedule": 3}, "a schedule"),
        ({"lane": 8}, "'lane'"),
    ],
)
def test_a_wrong_choice_is_refused(values: dict[str, Any], word: str) -> None:
    with pytest.raises(cf.InvalidArgument, match=word):
        Choices.of(values)


def test_a_family_that_refuses_is_named() -> None:
    src = D((2, 17, 5, 19), "f32", "bfyx")
    with pytest.raises(cf.Unsupported, match="FAMILY"):
        cf.make_plan(src, D(src.dims, "f32", "byxf"), choices=Choices(family="copy"))


def test_every_problem_takes_every_wish() -> None:
    """A wish that cannot be granted changes the plan at most; it never makes an error."""
    for src, dst in pairs(150, 1):
        plan = cf.make_plan(src, dst, choices=WISHES)
        takes = {f.name: f.takes for f in FAMILIES}.get(plan.family, ())
        assert set(plan.choices.chosen()) <= set(takes)
        made = launch(plan)
        if made is not None and "baked" in takes:
            assert made.arguments == ()
            assert "const idx src0 = " in made.source


def test_tables_name_what_the_families_take() -> None:
    bodies = {"copy": CopyPlan, "generic": GenericPlan}
    # The schedules that are worth a try depend on the problem.
    for family in (f for f in FAMILIES if f.name != "scheduled"):
        table = TABLES.get(bodies[family.name]) if family.name in bodies else None
        assert set(table or ()) == set(family.takes) - {"baked"}
    for family in GPU_FAMILIES[:3]:
        assert set(TABLES[LocalPlan]) == set(family.takes) - {"baked"}


def test_the_search_takes_the_rules_family_first() -> None:
    def names(src: str, dst: str) -> list[str]:
        dims = (2, 17, 9, 9)
        return families(D(dims, "f32", src), D(dims, "f32", dst), DEFAULT)

    assert names("bfyx", "byxf") == ["scheduled"]
    assert names("aBcd24b", "aBcd16b") == ["generic"]
    assert names("bfyx", "bfyx")[0] == "copy"


def test_a_legal_configuration_is_what_the_plan_then_has() -> None:
    for src, dst in pairs(12, 2):
        found = space(src, dst, DEFAULT)
        if found is None:
            continue
        configurations = list(found.configurations)
        assert found.default in configurations
        assert len(found) == len(configurations)
        for config in random.Random(3).sample(configurations, min(20, len(found))):  # noqa: S311
            assert found.is_legal(config)
            assert outcome(found.plan(config), found.table) == config
            # A record holds as little as leads to the same plan.
            again = cf.make_plan(src, dst, DEFAULT, choices=found.choices(config))
            assert outcome(again, found.table) == config
        assert found.choices(found.default) == RULES


def test_choices_in_another_family_name_it() -> None:
    """Else they are measured, and recorded, as those of the family that the rules take."""
    src, dst = D((2, 17, 5, 19), "f32", "bfyx"), D((2, 17, 5, 19), "f16", "bfyx")
    assert families(src, dst, DEFAULT) == ["copy", "scheduled"]
    found = space(src, dst, DEFAULT, "scheduled")
    assert found is not None
    for config in (found.default, next(found.configurations)):
        plan = cf.make_plan(src, dst, DEFAULT, choices=found.choices(config))
        assert plan.family == "scheduled"
        assert outcome(plan, found.table) == config
        assert "  chosen  family scheduled" in str(plan)


@pytest.mark.parametrize("dst", ["bfyx", "byxf", "b_fs_yx_fsv16"])
def test_gpus_choose_the_size_of_their_groups(dst: str) -> None:
    src, to = D((2, 40, 19, 23), "f32", "bfyx"), D((2, 40, 19, 23), "f32", dst)
    gpu = replace(DEFAULT, is_cpu=False, group_size=128)
    found = space(src, to, gpu)
    assert found is not None
    assert found.parameters == {"local_size": [32, 64, 128]}
    for config in found.configurations:
        made = launch(found.plan(config, baked=True))
        assert made is not None
        assert made.local_size == config["local_size"]
        assert made.arguments == ()


@pytest.mark.parametrize("traits", [DEFAULT, replace(DEFAULT, is_cpu=False)], ids=["cpu", "gpu"])
@pytest.mark.parametrize("types", ["f32 f32", "u8 u8", "f16 f32", "f64 f64", "f32 s8"])
@pytest.mark.parametrize("formats", ["bfyx bfyx", "bfyx byxf", "b_fs_yx_fsv16 byxf", "Ab24a aB24b"])
def test_a_kernel_with_choices_tells_the_types_of_its_buffers(
    formats: str, types: str, traits: Traits
) -> None:
    dims = (3, 40, 31, 33) if "y" in formats else (40, 60)
    src, dst = (D(dims, *pair) for pair in zip(types.split(), formats.split(), strict=True))
    names = families(src, dst, traits)
    assert names
    for name in names:
        made = launch(cf.make_plan(src, dst, traits, name))
        assert made is not None
        read, written = made.buffers
        assert f"__global const {read} *restrict src" in made.source
        assert f"__global {written} *restrict dst" in made.source


def test_illegal_configurations_are_told() -> None:
    src, dst = D((2, 17, 5, 3), "f32", "bfyx"), D((2, 17, 5, 3), "f32", "byxf")
    found = space(src, dst, DEFAULT)
    assert found is not None
    assert found.nbytes == src.nbytes + dst.nbytes
    assert not found.is_legal({"schedule": "tile b99 of 16 | a | ahead 0 | ordinary"})


def test_there_is_nothing_to_choose_where_nothing_moves() -> None:
    assert space(D((0, 3), "f32"), D((0, 3), "f32"), DEFAULT) is None
    image = D((17, 3, 3, 3), "f32", "image_2d_weights_c1_b_fyx")
    assert space(D((17, 3, 3, 3), "f32", "oiyx"), image, DEFAULT) is None
