"""oneDNN as the engine of planned networks: each choice that it offers computes what numpy does."""

from __future__ import annotations

import importlib.util
import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import clformats as cf
from bench.__main__ import main
from bench.peers import onednn, onednn_network, onednn_steps
from bench.plans import Contest, example, settled
from clformats.networks.costs import ways

pytestmark = pytest.mark.skipif(onednn.available() is not None, reason=str(onednn.available()))

needs_onnx = pytest.mark.skipif(
    any(importlib.util.find_spec(m) is None for m in ("onnx", "onnxruntime")),
    reason="pip install onnx onnxruntime",
)


@pytest.fixture(autouse=True)
def _alone() -> None:
    onednn_steps.prepare()


def image() -> Any:
    return np.random.default_rng(1).standard_normal((1, 3, 30, 34), np.float32)


def test_the_small_network_in_every_way() -> None:
    loader = example()
    net = loader.small()
    wanted = loader.in_numpy(net, image())
    packed: onednn_network.Packed = {}
    plans = [
        cf.propagate(way, reorder_cost=lambda *_: 0.0)
        for way in ways(onednn_network.kernels().apply(net))
    ]
    assert len({str(p.formats) for p in plans}) >= 3
    for plan in plans:
        run = onednn_network.Run(plan, packed)
        assert not run.left_out
        run._room[:] = 0xFF  # not a number
        run.write("image", image())
        for step in run.steps:
            step()
        assert np.abs(run.read("out") - wanted).max() < 1e-5 * np.abs(wanted).max()


def test_only_own_implementations_are_offered() -> None:
    net = onednn_network.kernels().apply(example().small())
    for node in net.nodes.values():
        for choice in node.choices:
            assert choice.kernel == "view" or "ref" not in choice.kernel


def test_what_any_chooses_is_among_the_choices() -> None:
    net = onednn_network.kernels().apply(example().small())
    asked = onednn_network.by_any(net, in_place=False)
    for node in asked.nodes.values():
        if node.op == "Conv":
            assert len(node.choices) == 1
    assert not any(c.views for c in asked.nodes["concat"].choices)


def test_a_network_is_measured_planned_and_raced() -> None:
    contest = Contest(example().small(), rounds=2)
    contest.measure()
    plans = contest.plans()
    assert {"plan", "oneDNN's any", "oneDNN's any again", "fastest per layer"} <= set(plans)
    assert plans["plan"].seconds <= min(p.seconds for p in plans.values()) * (1 + 1e-9)
    times = contest.race({n: plans[n] for n in ("plan", "oneDNN's any", "oneDNN's any again")})
    assert {len(t) for t in times.values()} == {6}


def test_a_baseline_stays_unless_a_plan_is_surely_faster() -> None:
    noisy = [1.0, 0.9, 1.2, 0.8, 1.1, 0.9]
    assert settled({"plan": noisy, "oneDNN's any": [1.0] * 6}) == "oneDNN's any"
    assert settled({"plan": [0.9] * 6, "oneDNN's any": [1.0] * 6}) == "plan"


@pytest.mark.slow
@needs_onnx
def test_the_command(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["plans", "squeezenet", "--rounds", "2", "--json", str(tmp_path / "r.json")]) == 0
    said = capsys.readouterr().out
    assert "geometric mean of kept / oneDNN's any" in said
    (result,) = json.loads((tmp_path / "r.json").read_text())
    assert result["error"] < 1e-4
    assert result["left_out"] == 0


@pytest.mark.slow
@needs_onnx
@pytest.mark.parametrize("name", ["squeezenet", "bvlc_alexnet", "shufflenet", "densenet121"])
def test_light_models_equal_onnxruntime(name: str) -> None:
    loader = example()
    net, model = loader.light(name)
    (given,) = net.inputs
    array = np.random.default_rng(1).standard_normal(given.dims, np.float32)
    wanted = loader.reference(model, {given.name: array})
    contest = Contest(net, rounds=1)
    for way in list(ways(contest.network))[::3]:
        run = contest.run(cf.propagate(way, reorder_cost=lambda *_: 0.0))
        run()
        found = run.read(net.outputs[0].name)
        assert np.abs(found - wanted).max() < 1e-4 * np.abs(wanted).max()
