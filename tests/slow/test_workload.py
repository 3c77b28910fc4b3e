"""Every program that networks' reorders need writes what the universal program writes (law 8)."""

from __future__ import annotations

from functools import cache

import numpy as np
import pytest

import clformats as cf
from clformats.kernels import universal
from clformats.kernels.scheduled import render_schedule
from clformats.problems.problem import Problem
from clformats.problems.refine import problem, separate
from clformats.problems.traits import DEFAULT
from clformats.schedule.schedule import Schedule
from clformats.schedule.search import best
from tests.schedules_support import ran, with_garbage, written
from tests.support import random_values
from tests.workload import reorders

PARTS = 20


@cache
def programs() -> list[tuple[Problem, Schedule]]:
    """The smallest reorder of each program."""
    found: dict[str, tuple[Problem, Schedule]] = {}
    for _, src, dst in sorted(reorders(), key=lambda r: r[1].nbytes + r[2].nbytes):
        p = problem(src, dst)
        p = separate(p)
        schedule = best(p, DEFAULT)
        found.setdefault(render_schedule(p, schedule).source, (p, schedule))
    return list(found.values())


@pytest.mark.parametrize("part", range(PARTS))
def test_the_programs_of_networks(engine: cf.Engine, part: int) -> None:
    for p, schedule in programs()[part::PARTS]:
        array = random_values(np.random.default_rng(part), p.src.dims, p.src.dtype.name)
        source = with_garbage(p.src, array, part)
        got = written(engine, p, schedule, source)
        expected = ran(engine, p, universal.render_problem(p, 8), source, "the universal program")
        assert np.array_equal(got, expected), f"{p.src} -> {p.dst} by {schedule}"
