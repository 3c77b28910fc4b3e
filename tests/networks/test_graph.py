"""Networks, costs and tables of kernels: what they hold, and how bad ones are refused."""

from __future__ import annotations

import itertools
import json
import re
from math import inf, nan
from pathlib import Path

import pytest

import clformats as cf
from clformats.networks import picture
from clformats.networks.named import named
from clformats.networks.rates import PROCESSOR
from clformats.schedule.scheduled import ScheduledPlan

DIMS = (1, 16, 6, 5)


def chain(*choices: cf.Choice) -> cf.Network:
    """x -> conv -> y -> relu -> z."""
    net = cf.Network()
    x, y, z = (net.value(n, DIMS) for n in "xyz")
    net.node("conv", [x], [y], "Conv", choices or [cf.Choice(("nchw",), ("nchw",), 1e-4)])
    net.node("relu", [y], [z], "Relu", [cf.Choice(("nhwc",), ("nhwc",), 1e-5)])
    return net


def refused(match: str, net: cf.Network, **options: object) -> None:
    with pytest.raises(cf.InvalidNetwork, match=match):
        cf.propagate(net, **options)  # type: ignore[arg-type]


def one(*_: str) -> float:
    return 1e-5


def test_the_page_of_the_api() -> None:
    net = cf.Network()
    net.value("x", (1, 64, 56, 56), "f32")
    net.value("y", (1, 64, 56, 56))
    net.node(
        "conv1",
        inputs=["x"],
        outputs=["y"],
        op="Conv",
        choices=[
            cf.Choice(ins=("nchw",), outs=("nChw16c",), cost=1e-4, kernel="any handle"),
            cf.Choice(ins=("nchw",), outs=("my own",), cost=2e-4),
        ],
    )
    net.fix("x", "nchw")
    plan = cf.propagate(net, reorder_cost=one)
    assert plan.formats["y"] == "nChw16c"
    assert plan.choices["conv1"].kernel == "any handle"
    assert list(plan.reorders) == []
    assert (plan.seconds, plan.bound, plan.exact) == (1e-4, 1e-4, True)


def test_names_of_one_structure_need_no_reorder() -> None:
    net = chain(cf.Choice(("bfyx",), ("byxf",), 1e-4))
    net.fix("x", "nchw")
    net.fix("z", cf.Format("byxf"))
    plan = cf.propagate(net, reorder_cost=one)
    assert not plan.reorders
    assert plan.formats == {"x": "nchw", "y": "byxf", "z": "nhwc"}


def test_a_reorder_serves_all_its_readers_and_chains_are_found() -> None:
    net = cf.Network()
    x = net.value("x", DIMS)
    for k, fmt in enumerate(["nhwc", "nhwc", "nChw16c"]):
        out = net.value(f"y{k}", DIMS)
        net.node(f"n{k}", [x], [out], "Relu", [cf.Choice((fmt,), (fmt,), 1.0)])
    net.fix("x", "nchw")
    table = {("nchw", "nhwc"): 4.0, ("nhwc", "nChw16c"): 1.0}
    plan = cf.propagate(net, reorder_cost=lambda _, a, b: table.get((a, b), 9.0))
    assert [tuple(r) for r in plan.reorders] == [
        ("x", "nchw", "nhwc", ("n0", "n1")),
        ("x", "nhwc", "nChw16c", ("n2",)),
    ]
    assert plan.seconds == 3 + 4 + 1


def test_chains_may_go_through_a_format_that_no_node_reads() -> None:
    net = chain()
    table = {("nchw", "nChw8c"): 1.0, ("nChw8c", "nhwc"): 1.0}

    def price(_: str, a: str, b: str) -> float:
        return table.get((a, b), 5.0)

    assert cf.propagate(net, reorder_cost=price).seconds == pytest.approx(5.00011)
    plan = cf.propagate(net, reorder_cost=price, via=["nChw8c"])
    assert [(r.dst, r.readers) for r in plan.reorders] == [("nChw8c", ()), ("nhwc", ("relu",))]


def test_a_fixed_value_inside_is_written_so() -> None:
    both = [cf.Choice(("nchw",), (f,), c) for f, c in (("nchw", 1.0), ("nhwc", 9.0))]
    net = chain(*both)
    net.fix("y", "nchw")
    assert cf.propagate(net, reorder_cost=lambda *_: 99.0).formats["y"] == "nchw"
    net.fix("y", "nChw16c")
    refused(r"node 'conv' \(Conv\): no choice of 2 is legal.*fixed as nChw16c", net,
            reorder_cost=one)  # fmt: skip


def test_a_constant_is_no_output() -> None:
    net = cf.Network()
    net.value("w", (16, 16, 3, 3), constant=True)
    with pytest.raises(cf.InvalidNetwork, match="'w' is a constant"):
        net.output("w")


def test_constants_are_packed_once_and_cost_nothing() -> None:
    net = cf.Network()
    x, y = net.value("x", DIMS), net.value("y", DIMS)
    w = net.value("w", (16, 16, 3, 3), constant=True)
    net.node("conv", [x, w], [y], "Conv", [cf.Choice(("nchw", "OIhw16i16o"), ("nchw",), 1.0)])
    plan = cf.propagate(net, reorder_cost=lambda *_: 7.0)
    assert [tuple(p) for p in plan.pack] == [("w", "OIhw16i16o", ("conv",))]
    assert plan.seconds == 1.0


# --- refusals -------------------------------------------------------------------------------------


def test_a_cycle_is_refused_by_the_name_of_a_node_of_it() -> None:
    net = cf.Network()
    a, b = net.value("a", DIMS), net.value("b", DIMS)
    net.node("one", [a], [b], "Relu", [cf.Choice(("nchw",), ("nchw",), 1)])
    net.node("two", [b], [a], "Relu", [cf.Choice(("nchw",), ("nchw",), 1)])
    refused("node 'one' .* is part of a cycle", net)


@pytest.mark.parametrize("cost", [-1.0, nan, -inf, "fast", True])
def test_bad_costs_of_choices_name_the_node(cost: object) -> None:
    choice = cf.Choice(("nchw",), ("nchw",), cost)  # type: ignore[arg-type]
    with pytest.raises(cf.InvalidNetwork, match=r"node 'conv' \(Conv\), choice 0"):
        chain(choice)


@pytest.mark.parametrize("cost", [-1.0, nan, None])
def test_bad_costs_of_reorders_name_the_value(cost: float) -> None:
    refused("the reorder of 'y' from nchw to nhwc", chain(), reorder_cost=lambda *_: cost)


def test_formats_of_a_wrong_rank_name_node_and_value() -> None:
    with pytest.raises(cf.InvalidNetwork, match=r"node 'conv'.*value 'x'.*5 dimensions"):
        chain(cf.Choice(("ncdhw",), ("nchw",), 1))
    with pytest.raises(cf.InvalidNetwork, match="ins has 2 formats, the node has 1"):
        chain(cf.Choice(("nchw", "nchw"), ("nchw",), 1))
    with pytest.raises(cf.InvalidNetwork, match="value 'x'"):
        chain().fix("x", "nc")


@pytest.mark.parametrize("dims", [None, (1, 0, 2), (1, -3), (2.5, 1), ("N", 3)])
def test_missing_shapes_name_the_value(dims: object) -> None:
    with pytest.raises(cf.InvalidNetwork, match="'x'"):
        cf.Network().value("x", dims)  # type: ignore[arg-type]


def test_other_bad_networks() -> None:
    net = chain()
    with pytest.raises(cf.InvalidNetwork, match="there is a value 'x' already"):
        net.value("x", DIMS)
    with pytest.raises(cf.InvalidNetwork, match="there is no value 'q'"):
        net.node("more", ["q"], ["x"])
    with pytest.raises(cf.InvalidNetwork, match="already written by 'conv'"):
        net.node("more", ["x"], ["y"])
    net.value("w", DIMS)
    net.node("bare", ["z"], ["w"], "Conv")
    refused(r"node 'bare' \(Conv\) has no choice", net)
    refused("the network has no nodes", cf.Network())
    refused("no reorder of 'y' leads from", chain(), reorder_cost=lambda *_: inf)
    free = chain(cf.Choice(("nchw",), ("nchw",)))
    refused(r"node 'conv' \(Conv\): the choice nchw -> nchw has no cost", free, reorder_cost=one)
    refused(r"node 'conv' \(Conv\): the choice nchw -> nchw has no cost, and bytes", free)


# --- costs ----------------------------------------------------------------------------------------


def test_costs_say_where_they_come_from() -> None:
    costs = cf.Costs(bandwidth=1e9, latency=0.0)
    net = cf.Network()
    small, large = net.value("s", (1, 16, 10, 10)), net.value("l", (1, 16, 20, 20))
    other = net.value("o", (1, 16, 15, 15))
    guess = costs.reorder(small, "nchw", "nhwc")
    assert (guess.seconds, guess.source) == (2 * 6400 / 1e9, "bytes over bandwidth")
    costs.record_reorder("f32:1x16x10x10", "nchw", "nhwc", [3e-6, 1e-6, 2e-6])
    assert costs.reorder(small, "bfyx", "byxf").seconds == 2e-6
    assert costs.reorder(small, "bfyx", "byxf").source == "measured"
    assert costs.reorder(large, "nchw", "nhwc").source == "bytes over bandwidth"
    costs.record_reorder("f32:1x16x20x20", "nchw", "nhwc", 8e-6)
    fit = costs.reorder(other, "nchw", "nhwc")
    assert fit.source == "fitted"
    assert fit.seconds == pytest.approx(2e-6 * 2.25, rel=1e-6)
    assert fit.low <= fit.seconds <= fit.high


def test_reorders_that_nobody_measured_cost_what_the_library_plans() -> None:
    net, costs = cf.Network(), cf.Costs()
    small, flat = net.value("s", (1, 64, 56, 56)), net.value("f", (1, 512, 14, 14))
    nbytes = {v.name: 2 * v.nbytes() for v in (small, flat)}
    rates = {}
    for value in (small, flat):
        for src, dst in (("nhwc", "nChw16c"), ("nchw", "nhwc")):
            cost = costs.reorder(value, src, dst)
            assert cost.source == "the cost model"
            rates[value.name, dst] = (cost.seconds - costs.latency) / nbytes[value.name]
            plan = cf.make_plan(value.desc(src), value.desc(dst))
            assert isinstance(plan.body, ScheduledPlan)
            own = plan.body.seconds(PROCESSOR)
            assert cost.seconds == pytest.approx(costs.latency + own, rel=0.2)
    assert all(rates[name, "nhwc"] > 2 * rates[name, "nChw16c"] for name in "sf")
    assert costs.reorder(small, "nchw", "my own").source == "bytes over bandwidth"
    assert cf.Costs(10e9).reorder(small, "nchw", "nhwc").source == "bytes over bandwidth"


def test_costs_are_saved_and_loaded(tmp_path: Path) -> None:
    costs = cf.Costs(5e9, 1e-6)
    costs.record_reorder("f32:1x16x10x10", "nchw", "mine", cf.Cost(1e-3, 9e-4, 2e-3, "measured"))
    costs.record_choice("conv", "nchw -> nhwc", [1e-3])
    costs.save(tmp_path / "costs.json")
    back = cf.Costs.load(tmp_path / "costs.json")
    assert (back.reorders, back.choices) == (costs.reorders, costs.choices)
    (tmp_path / "costs.json").write_text("{}")
    with pytest.raises(cf.InvalidNetwork, match=r"costs\.json"):
        cf.Costs.load(tmp_path / "costs.json")
    with pytest.raises(cf.InvalidNetwork, match="low <= seconds <= high"):
        cf.Cost(1.0, high=0.5)
    with pytest.raises(cf.InvalidNetwork, match="low <= seconds <= high"):
        cf.Cost(1.0, 2.0, 3.0)
    with pytest.raises(cf.InvalidNetwork, match="beyond a double"):
        cf.Cost(10**400)


# --- kernels --------------------------------------------------------------------------------------


def test_rules_give_choices() -> None:
    net = chain()
    bare = net.with_choices({"conv": [], "relu": []})
    kernels = cf.Kernels()
    kernels.same("Relu", formats=["nchw", "nhwc"], cost=lambda node, fmt: 2e-5)

    @kernels.of("Conv")
    def _(node: cf.Node) -> list[cf.Choice]:
        assert node.inputs[0].dims == DIMS
        return [cf.Choice(("nchw",), ("nhwc",), 1e-4)]

    plan = cf.propagate(bare, kernels, reorder_cost=one)
    assert plan.seconds == pytest.approx(1.2e-4)
    assert plan.formats["z"] == "nhwc"
    with pytest.raises(cf.InvalidNetwork, match=r"node 'relu' \(Relu\) has no choice"):
        cf.propagate(bare.with_choices({"conv": net.nodes["conv"].choices}), cf.Kernels())
    plain = cf.propagate(bare, cf.Kernels(plain=True))
    assert plain.formats["z"] == "abcd"


CSV = """node,op,ins,outs,seconds,low,high,kernel
conv,,nchw,nChw16c,1e-4,9e-5,2e-4,k16
,Relu,nChw16c,nChw16c,2e-5,,,relu
,Relu,nc,nc,1e-9,,,other rank
"""


@pytest.mark.parametrize("kind", ["csv", "json", "py"])
def test_tables_of_timings(kind: str, tmp_path: Path) -> None:
    file = tmp_path / f"kernels.{kind}"
    rows = [
        {"node": "conv", "ins": "nchw", "outs": ["nChw16c"], "seconds": 1e-4, "high": 2e-4},
        {"op": "Relu", "ins": "nChw16c", "outs": "nChw16c", "seconds": 2e-5},
    ]
    python = (
        "import clformats as cf\nkernels = cf.Kernels()\n"
        "kernels.same('Relu', formats=['nChw16c'], cost=2e-5)\n"
        "kernels.node('conv', [cf.Choice(('nchw',), ('nChw16c',), cf.Cost(1e-4, high=2e-4))])\n"
    )
    file.write_text({"csv": CSV, "json": json.dumps(rows), "py": python}[kind])
    bare = chain().with_choices({"conv": [], "relu": []})
    plan = cf.propagate(bare, cf.Kernels.load(file), reorder_cost=one)
    assert plan.seconds == pytest.approx(1.2e-4)
    assert plan.cost("conv").high == 2e-4


@pytest.mark.parametrize(
    ("text", "match"),
    [
        ("op,ins,outs,seconds\nRelu,nchw,nchw,-1", "line 2"),
        ("op,ins,outs,seconds\nRelu,nchw,nchw,1\nRelu,nchw,nchw,soon", "line 3"),
        ("op,ins,outs,seconds\nRelu,nchw", "line 2: expected 4 columns"),
        ("op,ins,outs,seconds\nRelu,nchw,*,1", "line 2"),
        ("name,what\n1,2", "line 1: got the columns name, what"),
        ("op,ins,outs,seconds\n", "no row"),
    ],
)
def test_bad_tables_name_the_line(text: str, match: str, tmp_path: Path) -> None:
    file = tmp_path / "kernels.csv"
    file.write_text(text)
    with pytest.raises(cf.InvalidNetwork, match=match):
        cf.Kernels.load(file)
    with pytest.raises(cf.InvalidNetwork, match="cannot read the kernels"):
        cf.Kernels.load(tmp_path / "none.csv")


def test_a_picture_has_every_box_inside_and_none_upon_another() -> None:
    """Five nodes beside each other, and more layers than one column has."""
    net, choice = cf.Network(), [cf.Choice(("bfyx",), ("bfyx",), 1.0)]
    first = net.value("x", (1, 3, 5, 7))
    net.fix("x", "bfyx")
    for branch in range(5):
        value = first
        for layer in range(picture.ROWS + 2):
            result = net.value(f"y{branch}.{layer}", (1, 3, 5, 7))
            net.node(f"n{branch}.{layer}", [value], [result], "Relu", choice)
            value = result
    text = cf.propagate(net, reorder_cost=lambda *_: 0.0).svg()
    width, height = map(float, re.findall(r'viewBox="0 0 (\d+) (\d+)"', text)[0])
    found = re.findall(r'<rect x="([^"]+)" y="([^"]+)" width="([^"]+)" height="([^"]+)"', text)
    boxes = {tuple(map(float, numbers)) for numbers in found}
    assert len(boxes) > 5 * picture.ROWS
    for x, y, w, h in boxes:
        assert 0 <= x <= x + w <= width
        assert 0 <= y <= y + h <= height
    for (x, y, w, h), (u, v, a, b) in itertools.combinations(boxes, 2):
        assert x + w <= u or u + a <= x or y + h <= v or v + b <= y


@pytest.mark.parametrize("text", ["nchww", "my own", "oihw|3"])
def test_an_opaque_name_says_why_and_holds_no_frames(text: str) -> None:
    """Also where it is read while another error is handled: frames keep tensors alive."""
    try:
        why = named(str(float(text))).why
    except ValueError:
        why = named(text).why
    assert why
    assert text in str(why)
    assert (why.__context__, why.__cause__, why.__traceback__) == (None, None, None)
