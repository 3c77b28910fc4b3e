"""An optimum is an optimum: plans of small random networks cost what the best of all costs."""

from __future__ import annotations

import itertools
import sys
from math import inf, isclose

import numpy as np
import pytest

import clformats as cf
from clformats.solver import highs, model, solve
from clformats.solver.problem import AssignmentProblem, FormatSlot, ReorderedValue
from clformats.solver.trees import Distances
from tests.networks_support import cheapest, random_network


def check(seed: int) -> None:
    net, price = random_network(seed)
    best = cheapest(net, price)
    if best == inf:
        with pytest.raises(cf.InvalidNetwork):
            cf.propagate(net, reorder_cost=price)
        return
    plan = cf.propagate(net, reorder_cost=price)
    assert plan.exact
    assert isclose(plan.seconds, best, abs_tol=1e-9)
    told = sum(plan.cost(name).seconds for name in plan.choices)
    told += sum(price(r.value, r.src, r.dst) for r in plan.reorders)
    assert isclose(told, best, abs_tol=1e-9)
    follows(plan)


def follows(plan: cf.FormatPlan) -> None:
    """Every node finds its inputs in the formats that it reads, made before."""
    made = {(name, fmt) for name, fmt in plan.formats.items()}
    for reorder in plan.reorders:
        assert (reorder.value, reorder.src) in made
        made.add((reorder.value, reorder.dst))
    for name, choice in plan.choices.items():
        node = plan.network.nodes[name]
        for value, fmt in zip(node.inputs, choice.ins, strict=True):
            assert fmt is None or (value.name, fmt) in made
    for name in {v.name for v in plan.network.outputs} & set(plan.network.fixed):
        assert (name, plan.network.fixed[name]) in made


@pytest.mark.parametrize("block", range(2))
def test_random_networks_cost_what_the_best_of_all_costs(block: int) -> None:
    for seed in range(50 * block, 50 * block + 50):
        check(seed)


@pytest.mark.slow
@pytest.mark.timeout(3000)
@pytest.mark.parametrize("block", range(10))
def test_ten_thousand_random_networks(block: int) -> None:
    for seed in range(1000 * block, 1000 * block + 1000):
        check(seed)


def test_highs_finds_the_same_optimum() -> None:
    pytest.importorskip("highspy", reason="pip install 'clformats[solve]'")
    for seed in range(25):
        net, price = random_network(seed)
        if cheapest(net, price) < inf:
            plan = cf.propagate(net, reorder_cost=price)
            judged = highs.solve(plan.built.problem)
            assert judged is not None
            assert judged.exact
            assert isclose(judged.cost, plan.seconds, abs_tol=1e-9)


def random_problem(seed: int) -> AssignmentProblem:
    rng = np.random.default_rng(seed)
    count, formats = 2 + seed % 5, 2 + seed % 3
    problem = AssignmentProblem()
    for k in range(count):
        problem.add(f"n{k}", rng.random(int(rng.integers(1, 4))) * 3)
    readers: dict[int, list[int]] = {k: [] for k in range(count)}
    for k in range(1, count):
        for source in rng.choice(k, size=min(k, int(rng.integers(1, 3)))):
            readers[int(source)].append(k)

    def slot(v: int, least: int) -> FormatSlot:
        return FormatSlot(v, rng.integers(least, formats, len(problem.costs[v])))

    for k, reading in readers.items():
        costs = rng.random((formats, formats)) * 2
        costs[rng.random((formats, formats)) < 0.1] = inf
        slots = tuple(slot(j, -1) for j in reading)
        problem.tensors.append(ReorderedValue(f"t{k}", Distances(costs), slot(k, 0), slots))
    return problem


def best_of(problem: AssignmentProblem) -> float:
    return min(problem.total(a) for a in itertools.product(*(range(len(c)) for c in problem.costs)))


@pytest.mark.parametrize("set_formats", [0, 8])
def test_values_with_many_readers_are_exact_in_both_forms(
    set_formats: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(model, "SET_FORMATS", set_formats)
    for seed in range(150):
        problem = random_problem(seed)
        best, found = best_of(problem), solve.solve(problem)
        if found is None:
            assert best == inf
            continue
        assert isclose(found.cost, best, abs_tol=1e-9)
        assert isclose(found.bound, best, abs_tol=1e-9)
        assert found.exact


def test_where_tables_grow_too_large_highs_finds_the_optimum() -> None:
    pytest.importorskip("highspy", reason="pip install 'clformats[solve]'")
    for seed in range(50):
        problem = random_problem(seed)
        best, found = best_of(problem), solve.solve(problem, limit=1)
        assert (found is None) == (best == inf)
        assert found is None or (found.exact and isclose(found.cost, best, abs_tol=1e-9))


def test_without_highs_the_error_says_what_to_install(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "highspy", None)
    with pytest.raises(cf.Error, match=r"beyond the limit.*clformats\[solve\]"):
        solve.solve(random_problem(0), limit=1)


@pytest.mark.parametrize(("limit", "count"), [(solve.LIMIT, 40), (1, 4)])
def test_marginals_are_what_the_best_with_each_choice_costs(limit: int, count: int) -> None:
    if limit == 1:
        pytest.importorskip("highspy", reason="pip install 'clformats[solve]'")
    for seed in range(count):
        problem = random_problem(seed)
        for v, costs in enumerate(problem.costs):
            totals, exact = solve.marginals(problem, v, limit=limit)
            assert exact
            others = [range(len(c)) for c in problem.costs]
            for value in range(len(costs)):
                held = [*others[:v], [value], *others[v + 1 :]]
                best = min(problem.total(a) for a in itertools.product(*held))
                assert best == totals[value] or isclose(best, totals[value], abs_tol=1e-9)
