"""Costs in place and races, with a clock that is turned by hand."""

from __future__ import annotations

from collections.abc import Callable

import pytest

import clformats as cf
from clformats.networks import Race, settle
from clformats.networks.costs import ways


class Clock:
    """Seconds that pass only when a step says so."""

    def __init__(self) -> None:
        self.now = 0.0

    def __call__(self) -> float:
        return self.now

    def passing(self, seconds: float) -> Callable[[], None]:
        def step() -> None:
            self.now += seconds

        return step


TRUE = {("nchw", "nchw"): 3.0, ("nhwc", "nhwc"): 2.0, ("nchw", "nhwc"): 1.0}
REORDER = 0.4


def chain(count: int = 4) -> cf.Network:
    net = cf.Network()
    net.value("v0", (1, 16, 8, 8))
    for k in range(count):
        net.value(f"v{k + 1}", (1, 16, 8, 8))
        choices = [cf.Choice((a,), (b,)) for a, b in TRUE]
        net.node(f"n{k}", [f"v{k}"], [f"v{k + 1}"], "Conv", choices)
    net.fix("v0", "nchw")
    return net


def steps(plan: cf.FormatPlan, clock: Clock) -> list[Callable[[], None]]:
    found = []
    for step in plan.memory.steps:
        if isinstance(step, cf.Node):
            choice = plan.choices[step.name]
            found.append(clock.passing(TRUE[str(choice.ins[0]), choice.outs[0]]))
        else:
            found.append(clock.passing(REORDER))
    return found


def test_every_choice_is_timed_where_it_stands() -> None:
    net, clock, costs = chain(), Clock(), cf.Costs()
    count = costs.measure_steps(net, lambda plan: steps(plan, clock), rounds=2, clock=clock)
    assert count >= len(list(ways(net))) == 5
    for node in net.nodes.values():
        for choice in node.choices:
            cost = costs.choice(node, choice)
            assert cost.seconds == pytest.approx(TRUE[str(choice.ins[0]), choice.outs[0]])
            assert cost.source == "measured in place"
    plan = cf.propagate(net, reorder_cost=costs)
    assert plan.seconds == pytest.approx(4 * 1.0 + 3 * REORDER)
    assert {plan.cost(r).source for r in plan.reorders} == {"measured in place"}


def test_a_step_for_each_step_is_asked_for() -> None:
    with pytest.raises(cf.InvalidNetwork, match="prepare: got 0 functions, expected 4"):
        cf.Costs().measure_steps(chain(), lambda _: [])


def test_choices_that_exclude_each_other_are_timed_all_the_same() -> None:
    """A value can be part of one concatenation only; the other one copies."""
    net = cf.Network()
    for name, channels in {"x": 8, "a": 8, "b": 8, "one": 16, "two": 16}.items():
        net.value(name, (1, channels, 4, 4))
    for name in ("a", "b"):
        net.node(name, ["x"], [name], "Conv", [cf.Choice(("nchw",), ("nchw",))])
    for name in ("one", "two"):
        ins, outs = ("nchw", "nchw"), ("nchw",)
        both = [cf.Choice(ins, outs, views={0: 0, 1: 0}), cf.Choice(ins, outs)]
        net.node(name, ["a", "b"], [name], "Concat", both, axis=1)
    for way in ways(net):
        plan = cf.propagate(way, reorder_cost=lambda *_: 0.0)
        assert sum(bool(plan.choices[n].views) for n in ("one", "two")) <= 1


# --- races ----------------------------------------------------------------------------------------


def planned() -> cf.FormatPlan:
    net = chain()
    costs = {n: [cf.Choice(c.ins, c.outs, TRUE[str(c.ins[0]), c.outs[0]]) for c in node.choices]
             for n, node in net.nodes.items()}  # fmt: skip
    return cf.propagate(net.with_choices(costs), reorder_cost=lambda *_: REORDER)


def test_a_plan_that_is_surely_faster_is_kept() -> None:
    plan, clock = planned(), Clock()
    found = settle(plan, lambda p: clock.passing(p.seconds), rounds=8, clock=clock)
    assert found.kept is plan
    assert found.name == "this plan"
    assert found.race is not None
    assert found.race.is_faster
    rows = {r.name: r.seconds for r in plan.compare().rows}
    assert found.race.ratio == pytest.approx(plan.seconds / rows[found.against])
    assert 2 <= len(found.seconds) <= 4
    assert str(found).endswith("kept: this plan")


@pytest.mark.parametrize("factor", [1.0, 1.1])
def test_a_baseline_stays_unless_it_is_beaten(factor: float) -> None:
    """The costs were wrong: on the clock the plan is no faster."""
    plan, clock = planned(), Clock()
    best = next(r for r in plan.compare().rows if r.plan.assignment != plan.assignment)

    def prepare(other: cf.FormatPlan) -> Callable[[], None]:
        return clock.passing(factor if other is plan else other.seconds / best.seconds)

    found = settle(plan, prepare, rounds=8, clock=clock)
    assert found.kept.assignment == best.plan.assignment
    assert found.name == found.against
    assert found.race is not None
    assert found.race.ratio == pytest.approx(factor)


def test_a_plan_without_rivals_is_kept() -> None:
    net = cf.Network()
    net.value("x", (1, 2, 3, 4)), net.value("y", (1, 2, 3, 4))
    net.node("n", ["x"], ["y"], "Conv", [cf.Choice(("nchw",), ("nchw",), 1.0)])
    plan, clock = cf.propagate(net), Clock()
    for found in (
        settle(plan, lambda _: clock.passing(1.0), clock=clock),
        plan.settle(lambda _: clock.passing(1.0), rounds=4),
    ):
        assert (found.kept, found.race) == (plan, None)


def test_noise_is_no_proof() -> None:
    noisy = [1.0, 0.9, 1.2, 0.8, 1.1, 0.9, 1.3, 0.8]
    assert not Race.of(noisy, [1.0] * 8).is_faster
    assert Race.of([0.9] * 8, [1.0] * 8).is_faster
    with pytest.raises(cf.InvalidNetwork, match="rounds: got 3"):
        settle(planned(), lambda _: lambda: None, rounds=3)


def test_a_uniform_plan_is_uniform_whatever_its_weights_are_called() -> None:
    net = cf.Network()
    for name in "xyz":
        net.value(name, (1, 16, 8, 8))
    net.value("w", (16, 16, 1, 1), constant=0)
    for name, src, dst in (("one", "x", "y"), ("two", "y", "z")):
        net.node(name, [src, "w"], [dst], "Conv", [
            cf.Choice((a, "oiyx"), (b,), 1.0 if a == b else 0.5)
            for a in ("nchw", "nhwc") for b in ("nchw", "nhwc")
        ])  # fmt: skip
    rows = cf.propagate(net, reorder_cost=lambda *_: 1.0).compare()
    for name in ("nchw", "nhwc"):
        assert {rows[f"uniform {name}"].plan.formats[v] for v in "yz"} == {name}
