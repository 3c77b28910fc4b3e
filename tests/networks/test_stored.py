"""Plans in JSON: what was written is read back, without what led to it."""

from __future__ import annotations

import json

import numpy as np
import pytest

import clformats as cf
from tests.networks_support import random_network

D = (1, 32, 14, 14)


def small() -> cf.FormatPlan:
    net = cf.Network()
    for name in "xabcy":
        net.value(name, D)
    net.value("w", (32, 32, 3, 3), constant=np.zeros((32, 32, 3, 3), np.float32))
    blocked = cf.Choice(("nChw16c", "OIhw16i16o"), ("nChw16c",), 1e-5, kernel={"tile": 8})
    plain = cf.Choice(("nchw", "oihw"), ("nchw",), 9e-5, kernel="plain")
    net.node("conv", ["x", "w"], ["a"], "Conv", [blocked, plain], pads=(1, 1), group=np.int64(1))
    net.node(
        "relu", ["a"], ["b"], "Relu", [cf.Choice((f,), (f,), 1e-6) for f in ("nChw16c", "mine")]
    )
    net.node("sum", ["a", "b"], ["y"], "Add", [cf.Choice(("nchw", "nhwc"), ("nhwc",), 1e-6)])
    net.fix("y", "nchw")
    return cf.propagate(net, reorder_cost=lambda _v, _s, _d: 2e-6)


def assert_equal(one: cf.FormatPlan, other: cf.FormatPlan) -> None:
    assert dict(one.formats) == dict(other.formats)
    assert [(c.ins, c.outs, c.views) for c in one.choices.values()] == [
        (c.ins, c.outs, c.views) for c in other.choices.values()
    ]
    assert set(one.reorders) == set(other.reorders)
    assert one.pack == other.pack
    assert one.seconds == pytest.approx(other.seconds)
    assert one.memory.nbytes == other.memory.nbytes


def test_a_plan_is_read_back_from_its_text_alone() -> None:
    plan = small()
    back = cf.FormatPlan.from_json(plan.to_json())
    assert_equal(back, plan)
    assert back.choices["conv"].kernel == {"tile": 8}
    assert back.network.nodes["conv"].attributes == {"pads": [1, 1], "group": 1}
    assert cf.FormatPlan.from_json(back.to_json()).to_json() == back.to_json()


def test_what_is_added_to_a_network_later_is_not_in_its_plan() -> None:
    net = cf.Network()
    for name in "xyz":
        net.value(name, D)
    as_it_is = [cf.Choice(("nchw",), ("nchw",), 1e-6)]
    net.node("a", ["x"], ["y"], "R", as_it_is)
    plan = cf.propagate(net, reorder_cost=lambda _v, _s, _d: 2e-6)
    text = plan.to_json()
    net.node("b", ["y"], ["z"], "R", as_it_is)
    assert plan.to_json() == text


def test_kernels_and_constants_are_given_by_name() -> None:
    text = small().to_json()
    weights, handle = np.ones((32, 32, 3, 3), np.float32), object()
    back = cf.FormatPlan.from_json(text, kernels={"relu": handle}, constants={"w": weights})
    assert back.choices["relu"].kernel is handle
    assert back.network.values["w"].constant is weights
    with pytest.raises(cf.InvalidNetwork, match="no 'lost'"):
        cf.FormatPlan.from_json(text, kernels={"lost": 1})


@pytest.mark.parametrize("seed", range(30))
def test_random_plans_are_read_back(seed: int) -> None:
    network, prices = random_network(seed)
    try:
        plan = cf.propagate(network, reorder_cost=prices)
    except cf.InvalidNetwork:
        return  # nothing of it has a finite cost
    assert_equal(cf.FormatPlan.from_json(plan.to_json()), plan)


def test_what_is_no_plan_is_refused() -> None:
    good = json.loads(small().to_json())
    with pytest.raises(cf.InvalidNetwork, match="no JSON"):
        cf.FormatPlan.from_json("{")
    wrong: object
    for wrong in ([], {**good, "version": 1}):
        with pytest.raises(cf.InvalidNetwork, match="this library reads 2"):
            cf.FormatPlan.from_json(json.dumps(wrong))
    for key in ("values", "nodes", "formats", "reorders"):
        with pytest.raises(cf.InvalidNetwork):
            cf.FormatPlan.from_json(json.dumps({k: v for k, v in good.items() if k != key}))
    with pytest.raises(cf.InvalidNetwork, match="contradicts itself"):
        cf.FormatPlan.from_json(json.dumps({**good, "formats": {**good["formats"], "b": "nhwc"}}))
