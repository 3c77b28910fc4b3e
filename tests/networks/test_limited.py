"""Plans within a memory limit: no dearer than the best that fits; refused where none does."""

from __future__ import annotations

import itertools
from math import inf, isclose, prod

import pytest

import clformats as cf
from tests.networks_support import Prices, random_network
from tests.tiers import tiered

pytest.importorskip("highspy", reason="pip install 'clformats[solve]'")


def every_plan(plan: cf.FormatPlan) -> list[tuple[float, int]]:
    """Seconds and bytes of all assignments that have a finite cost."""
    problem = plan.built.problem
    found = []
    for assignment in itertools.product(*(range(len(c)) for c in problem.costs)):
        seconds = problem.total(assignment)
        if seconds < inf:
            found.append((seconds, plan.decided(plan.built, assignment, 0.0).memory.nbytes))
    return found


def small_networks(seeds: range) -> list[tuple[cf.Network, Prices, cf.FormatPlan]]:
    """Those of the random networks that have few plans."""
    found = []
    for seed in seeds:
        net, price = random_network(seed)
        try:
            plan = cf.propagate(net, reorder_cost=price)
        except cf.InvalidNetwork:
            continue
        if prod(len(c) for c in plan.built.problem.costs) <= 300:
            found.append((net, price, plan))
    return found


@pytest.mark.parametrize("seeds", tiered([range(40), range(40, 170)], [range(40)]))
def test_the_best_of_all_plans_that_fit(seeds: range) -> None:
    limited = answered = exact = missed = 0
    for net, price, plan in small_networks(seeds):
        every = every_plan(plan)
        limits = sorted({nbytes for _, nbytes in every if nbytes < plan.memory.nbytes})
        for limit in sorted({*limits[:1], *limits[-2:]}):
            best = min(seconds for seconds, nbytes in every if nbytes <= limit)
            limited += 1
            try:
                found = cf.propagate(net, reorder_cost=price, memory_limit=limit)
            except cf.InvalidNetwork as error:
                missed += "no plan was found" in str(error)
                continue
            assert found.memory.nbytes <= limit
            assert found.bound <= best + 1e-7
            assert found.seconds >= best - 1e-9
            assert not found.exact or isclose(found.seconds, best, abs_tol=1e-7)
            answered, exact = answered + 1, exact + found.exact
    assert limited == answered + missed >= 10
    assert exact >= 0.8 * limited
    assert missed <= 0.1 * limited


def test_what_is_made_of_an_input_right_before_its_reader_is_not_there_from_the_start() -> None:
    """The limit is what the plan with the choice of less workspace needs."""
    net = cf.Network()
    for name, dims in {"big": (1, 16, 4, 16), "small": (1, 3, 7, 16),
                       "v": (1, 16, 4, 4), "y": (1, 16, 4, 4)}.items():  # fmt: skip
        net.value(name, dims)
    plain, blocked = "nchw", "nChw16c"
    net.node("first", ["small", "big"], ["v"], "F", [cf.Choice((plain, plain), (blocked,), 1e-5)])
    lean = cf.Choice((blocked, blocked), (blocked,), 2e-5)
    fast = cf.Choice((blocked, blocked), (blocked,), 1e-5, workspace=100_000)
    net.node("second", ["v", "big"], ["y"], "F", [fast, lean])
    net.fix("big", blocked)
    net.fix("small", blocked)
    wanted = cf.propagate(net.with_choices({"second": [lean]}), reorder_cost=lambda *_: 1e-5)
    limit = wanted.memory.nbytes
    found = cf.propagate(net, reorder_cost=lambda *_: 1e-5, memory_limit=limit)
    assert found.exact
    assert (found.seconds, found.memory.nbytes) == (wanted.seconds, limit)


def test_what_cannot_fit_is_refused() -> None:
    proven = 0
    for net, price, plan in small_networks(range(10)):
        least = min(nbytes for _, nbytes in every_plan(plan))
        with pytest.raises(cf.InvalidNetwork, match=f"fits in {least - 64} bytes") as caught:
            cf.propagate(net, reorder_cost=price, memory_limit=least - 64)
        proven += "there is no plan" in str(caught.value)
    assert proven >= 2


def two_blocks() -> cf.Network:
    """Three channels, which blocks of 16 pad to more than five times the bytes."""
    net = cf.Network()
    for name in "xyz":
        net.value(name, (1, 3, 16, 16))
    both = [cf.Choice((f,), (f,), s) for f, s in (("nChw16c", 1e-5), ("nchw", 2e-5))]
    net.node("one", ["x"], ["y"], "Conv", both)
    net.node("two", ["y"], ["z"], "Conv", both)
    return net


def test_a_limit_keeps_padding_away() -> None:
    free = cf.propagate(two_blocks())
    assert free.formats["y"] == "nChw16c"
    plan = cf.propagate(two_blocks(), memory_limit=2 * 3 * 16 * 16 * 4)
    assert plan.formats["y"] == "nchw"
    assert plan.exact
    assert plan.memory.nbytes == 2 * 3 * 16 * 16 * 4
    assert plan.seconds == pytest.approx(4e-5)


def test_a_limit_that_does_not_bind_changes_nothing() -> None:
    free = cf.propagate(two_blocks())
    assert cf.propagate(two_blocks(), memory_limit=free.memory.nbytes).choices == free.choices


@pytest.mark.parametrize("limit", [0, -5])
def test_a_limit_is_a_number_of_bytes(limit: int) -> None:
    with pytest.raises(cf.InvalidNetwork, match="memory_limit: got"):
        cf.propagate(two_blocks(), memory_limit=limit)
