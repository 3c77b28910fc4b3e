"""HiGHS as judge of plans, and how fast large networks are planned."""

from __future__ import annotations

import importlib.util
import subprocess
import sys
import time

import numpy as np
import pytest

from clformats.solver import highs
from clformats.solver.problem import AssignmentProblem, FormatSlot, ReorderedValue
from clformats.solver.solve import solve
from clformats.solver.trees import Distances


def blocks(count: int, formats: int, seed: int, *, skips: bool = False) -> AssignmentProblem:
    """A network of chains, residual and inception blocks; or of a chain with random skips."""
    rng = np.random.default_rng(seed)
    problem = AssignmentProblem()
    readers: dict[int, list[int]] = {}
    ident = np.arange(formats)
    distances = [Distances(rng.uniform(0.1, 0.4, (formats, formats))) for _ in range(40)]

    def node(*sources: int) -> int:
        v = problem.add(f"n{len(problem.names)}", rng.uniform(1, 2, formats))
        readers[v] = []
        for s in dict.fromkeys(sources):
            readers[s].append(v)
        return v

    now = node()
    while len(problem.names) < count:
        kind = int(rng.integers(0, 4))
        if skips:
            now = node(now, int(rng.integers(max(0, now - 5), now + 1)))
        elif kind == 0:
            now = node(now)
        elif kind == 1:
            now = node(node(node(now)), now)
        elif kind == 2:
            now = node(*[node(node(now)) for _ in range(4)])
        else:
            now = node(node(now), node(now))
    for v, reading in readers.items():
        slots = tuple(FormatSlot(j, ident) for j in reading)
        problem.tensors.append(
            ReorderedValue(f"t{v}", distances[v % 40], FormatSlot(v, ident), slots)
        )
    return problem


needs_highs = pytest.mark.skipif(
    importlib.util.find_spec("highspy") is None, reason="pip install 'clformats[solve]'"
)


@needs_highs
@pytest.mark.parametrize(("count", "formats", "skips"), [(40, 4, False), (25, 4, True)])
def test_highs_finds_the_same_optimum(count: int, formats: int, skips: bool) -> None:
    for seed in range(3):
        problem = blocks(count, formats, seed, skips=skips)
        found = solve(problem)
        assert found is not None
        assert found.exact
        judged = highs.solve(problem)
        assert judged is not None
        assert judged.exact
        assert judged.cost == pytest.approx(found.cost, rel=1e-6)
        assert problem.total(judged.assignment) == judged.cost


def test_five_hundred_nodes_of_sixty_formats() -> None:
    problem = blocks(500, 60, 0)
    start = time.process_time()
    found = solve(problem)
    assert found is not None
    assert found.exact
    assert time.process_time() - start < 10


@pytest.mark.slow
def test_five_thousand_nodes_of_sixty_formats() -> None:
    problem = blocks(5000, 60, 0)
    start = time.process_time()
    found = solve(problem)
    assert found is not None
    assert (found.cost - found.bound) / found.cost <= 0.01
    assert time.process_time() - start < 20  # 10 s on a quiet core


@needs_highs
@pytest.mark.slow
@pytest.mark.timeout(900)
def test_networks_that_are_no_trees_of_blocks_are_planned_exactly() -> None:
    for seed in range(3):
        problem = blocks(150, 8, seed, skips=True)
        found = solve(problem, limit=200_000)
        assert found is not None
        assert found.exact
        assert problem.total(found.assignment) == found.cost


@needs_highs
def test_highs_prints_nothing() -> None:
    """It would greet, once a process, on a standard output that may be read by a program."""
    code = (
        "from clformats.solver.highs import IntegerProgram; p = IntegerProgram();"
        "p.column(1.0, whole=True); p.row([(0, 1.0)], low=1.0); assert p.solve() == ([1.0], 1.0)"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout + done.stderr == ""
