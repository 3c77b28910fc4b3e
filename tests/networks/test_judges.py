"""HiGHS as judge of plans, and how fast large networks are planned."""

from __future__ import annotations

import time
from typing import Any

import numpy as np
import pytest

from clformats.networks.problem import ANY, Problem, Slot, Tensor
from clformats.networks.solve import solve
from clformats.networks.trees import Distances


def blocks(count: int, formats: int, seed: int, *, skips: bool = False) -> Problem:
    """A network of chains, residual and inception blocks; or of a chain with random skips."""
    rng = np.random.default_rng(seed)
    problem = Problem()
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
    names = tuple(map(str, range(formats)))
    for v, reading in readers.items():
        slots = tuple(Slot(j, ident) for j in reading)
        problem.tensors.append(Tensor(f"t{v}", names, distances[v % 40], Slot(v, ident), slots))
    return problem


def judged(problem: Problem) -> float:
    """The optimum by HiGHS: a flow from the format written to each one read, over shared steps."""
    optimize = pytest.importorskip("scipy.optimize", reason="scipy is not installed")
    sparse = pytest.importorskip("scipy.sparse")
    costs: list[float] = []
    rows: list[tuple[dict[int, float], float, float]] = []
    scale = 1e6  # HiGHS' absolute gap is 1e-6

    def variable(cost: float) -> int:
        costs.append(cost * scale)
        return len(costs) - 1

    chosen = [[variable(float(c)) for c in own] for own in problem.costs]
    rows += [(dict.fromkeys(own, 1.0), 1.0, 1.0) for own in chosen]
    for tensor in problem.tensors:
        n, table = len(tensor.formats), tensor.distances.table
        steps = {(a, b): variable(float(table[a, b])) for a in range(n) for b in range(n) if a != b}
        for slot in tensor.readers:
            flows = {step: variable(0.0) for step in steps}
            rows += [({flows[s]: 1.0, steps[s]: -1.0}, -np.inf, 0.0) for s in steps]
            for f in range(n):
                row: dict[int, float] = {}
                for (a, b), k in flows.items():
                    row[k] = float(b == f) - float(a == f)
                _balance(row, chosen, tensor.source, f, 1.0)
                _balance(row, chosen, slot, f, -1.0)
                rows.append((row, 0.0, 0.0))
    assert not any(ANY in s.formats for t in problem.tensors for s in t.readers)
    data = [(v, r, k) for r, (row, _, _) in enumerate(rows) for k, v in row.items()]
    values, at, column = (np.array(x) for x in zip(*data, strict=True))
    matrix = sparse.csr_array((values, (at, column)), shape=(len(rows), len(costs)))
    limits = optimize.LinearConstraint(matrix, [r[1] for r in rows], [r[2] for r in rows])
    whole = np.zeros(len(costs))
    whole[: sum(map(len, chosen))] = 1
    done: Any = optimize.milp(
        costs, constraints=limits, integrality=whole, bounds=optimize.Bounds(0, 1)
    )
    assert done.status == 0, done.message
    return float(done.fun) / scale


def _balance(
    row: dict[int, float], chosen: list[list[int]], slot: Slot, f: int, sign: float
) -> None:
    for k, fmt in zip(chosen[slot.variable], slot.formats, strict=True):
        if fmt == f:
            row[k] = row.get(k, 0.0) + sign


@pytest.mark.parametrize(("count", "formats", "skips"), [(40, 4, False), (25, 4, True)])
def test_highs_finds_the_same_optimum(count: int, formats: int, skips: bool) -> None:
    for seed in range(3):
        problem = blocks(count, formats, seed, skips=skips)
        found = solve(problem)
        assert found is not None
        assert found.exact
        assert judged(problem) == pytest.approx(found.cost, rel=1e-6)


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


@pytest.mark.slow
@pytest.mark.timeout(900)
def test_networks_that_are_no_trees_of_blocks_have_a_good_bound() -> None:
    for seed in range(3):
        found = solve(blocks(150, 8, seed, skips=True), limit=200_000)
        assert found is not None
        assert found.bound <= found.cost
        assert (found.cost - found.bound) / found.cost <= 0.05
