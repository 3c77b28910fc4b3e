"""The numbers of a processor: their meaning, their ranges, and how they reach a plan."""

from __future__ import annotations

from dataclasses import asdict, fields

import pytest

import clformats as cf
from clformats.problems.traits import Traits
from clformats.schedule.profile import (
    MEANINGS,
    RANGES,
    TOLD,
    Profile,
    profile_of,
    with_measured,
)

MB = 1 << 20


def test_every_number_has_a_meaning() -> None:
    assert list(MEANINGS) == [field.name for field in fields(Profile)]
    assert not {*TOLD} & {*RANGES}


def test_a_default_is_within_its_range() -> None:
    for name, (least, most) in RANGES.items():
        assert least < getattr(Profile(), name) < most, name


@pytest.mark.parametrize("name", RANGES)
@pytest.mark.parametrize("value", [1e-9, 1e12])
def test_what_cannot_be_true_is_brought_into_its_range(name: str, value: float) -> None:
    profile = profile_of(with_measured(Traits(), {name: value}))
    assert getattr(profile, name) == RANGES[name][value > 1]
    assert type(getattr(profile, name)) is type(getattr(Profile(), name))


def test_what_was_not_measured_is_as_it_was() -> None:
    traits = Traits(vector_bytes=32, compute_units=7)
    assert with_measured(traits, {}) == traits
    assert with_measured(traits, {"vector_bytes": 16, "unknown": 3.0}) == traits
    changed = asdict(profile_of(with_measured(traits, {"stream_bytes": 1e7})))
    assert changed == asdict(profile_of(traits)) | {"stream_bytes": 10_000_000}


def test_every_family_streams_from_where_it_was_measured() -> None:
    traits = with_measured(Traits(), {"stream_bytes": 40 * MB})
    assert profile_of(traits).stream_bytes == traits.streams_from == 40 * MB
    small = cf.MemoryDesc((3, MB), "f32", "ab")
    stores = [
        "stream" in str(cf.make_plan(small, small, with_measured(Traits(), {
            "stream_bytes": n})).body)
        for n in (23 * MB, 24 * MB, 25 * MB)
    ]  # fmt: skip
    assert stores == [True, True, False]


def test_plans_are_told_apart_by_what_was_measured() -> None:
    """A schedule is kept for a problem and a profile: none is taken for that of another one."""
    src = cf.MemoryDesc((4, 64, 56, 56), "f32", "bfyx")
    dst = cf.MemoryDesc(src.dims, "f32", "byxf")
    base = Traits()
    first = str(cf.make_plan(src, dst, base).body)
    other = str(cf.make_plan(src, dst, with_measured(base, {"stream_bytes": 4 * MB})).body)
    assert ("stream" in first, "stream" in other) == (False, True)
    assert str(cf.make_plan(src, dst, base).body) == first
