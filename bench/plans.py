"""Plans of networks with oneDNN 2.6 as the engine, raced against oneDNN's own ways to choose.

The networks are the light models of the package onnx with random weights. One thread, CPU time of
that thread, all contestants turn by turn, medians of paired ratios; what oneDNN chooses by ``any``
runs twice, as its own control. ``DNNL_MAX_CPU_ISA=AVX2`` in the environment makes another machine
of it.
"""

from __future__ import annotations

import argparse
import importlib.util
import json
import sys
import time
from collections.abc import Mapping
from dataclasses import asdict, dataclass
from pathlib import Path
from statistics import geometric_mean, median
from typing import Any

import numpy as np

import clformats as cf
from clformats.networks.racing import turn_by_turn
from clformats.timing import Race

from .peers import onednn, onednn_network, onednn_steps

LIGHT = ("bvlc_alexnet", "zfnet512", "vgg19", "squeezenet", "inception_v1", "inception_v2",
         "resnet50", "shufflenet", "densenet121")  # fmt: skip
GREEDY, IN_PLACE, CONTROL = "oneDNN's any", "oneDNN's any, concat in place", "oneDNN's any again"
FASTEST, KEPT = "fastest per layer", "kept"
FAR = 1.6
"""Baselines that cost so many times the plan's seconds are not raced."""
PLAN, CAUTIOUS = "plan", "plan of few reorders"


@dataclass(frozen=True, slots=True)
class Result:
    """A network: what was kept, its time over others', and how the plans compare by their costs.

    ``ratios`` are times of the kept plan over those of each baseline; ``control`` is greedy over
    itself. ``error`` is the largest difference to onnxruntime, relative to the largest element.
    """

    name: str
    kept: str
    seconds: Mapping[str, float]
    ratios: Mapping[str, float]
    control: float
    predicted: float
    error: float | None
    left_out: int

    @property
    def best(self) -> str:
        """The fastest baseline."""
        return min((n for n in self.ratios if n != CONTROL), key=lambda n: self.seconds[n])


class _Dear:
    """Reorders priced half as high again and 5 us more: a plan with fewer of them."""

    def __init__(self, costs: cf.Costs) -> None:
        self.costs = costs

    def reorder(self, value: cf.Value, src: str, dst: str) -> cf.Cost:
        return cf.Cost(1.5 * self.costs.reorder(value, src, dst).seconds + 5e-6)

    def choice(self, node: cf.Node, choice: cf.Choice) -> cf.Cost:
        return self.costs.choice(node, choice)


def example() -> Any:
    """`examples/plan_network.py`, which knows how to load the light models."""
    path = Path(__file__).parent.parent / "examples" / "plan_network.py"
    spec = importlib.util.spec_from_file_location("plan_network", path)
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


class Contest:
    """A network that is measured in place, planned, and raced."""

    def __init__(self, network: cf.Network, rounds: int) -> None:
        for value in (*network.inputs, *network.outputs):
            network.fix(value, "abcd"[: value.rank])
        self.network = onednn_network.kernels().apply(network)
        self.rounds, self.costs = rounds, cf.Costs()
        self.packed: onednn_network.Packed = {}

    def run(self, plan: cf.FormatPlan) -> onednn_network.Run:
        """A plan, ready."""
        made = onednn_network.Run(plan, self.packed)
        rng = np.random.default_rng(1)
        for value in plan.network.inputs:
            made.write(value.name, rng.standard_normal(value.dims, np.float32))
        return made

    def measure(self) -> None:
        """Every choice in place."""
        self.costs.measure_steps(
            self.network, lambda p: self.run(p).steps, rounds=self.rounds, clock=time.thread_time
        )

    def plans(self) -> dict[str, cf.FormatPlan]:
        """The plan, a cautious one, and all others."""
        plan = self._plan(self.network)
        found = {PLAN: plan, CAUTIOUS: cf.propagate(self.network, reorder_cost=_Dear(self.costs))}
        for name, in_place in ((GREEDY, False), (IN_PLACE, True)):
            asked = self._plan(onednn_network.by_any(self.network, in_place=in_place))
            found[name] = asked.compare(["greedy any"])["greedy any"].plan
        found[CONTROL] = found[GREEDY]
        rows = [r for r in plan.compare().rows if r.plan is not plan and r.name != "greedy any"]
        near = [r for r in rows if r.name == FASTEST or r.seconds < FAR * plan.seconds]
        return found | {r.name: r.plan for r in near}

    def _plan(self, network: cf.Network) -> cf.FormatPlan:
        return cf.propagate(network, reorder_cost=self.costs)

    def race(self, plans: Mapping[str, cf.FormatPlan]) -> dict[str, list[float]]:
        """Seconds of each plan in each round."""
        runs = {name: self.run(plan) for name, plan in plans.items()}
        return turn_by_turn(runs, self.rounds * 3, time.thread_time)


def contested(name: str, network: cf.Network, wanted: Any, rounds: int) -> Result:
    """One network: measured, planned, settled in a first race and told by a second one."""
    contest = Contest(network, rounds)
    contest.measure()
    plans = contest.plans()
    kept = settled(contest.race(plans))
    times = contest.race({KEPT: plans[kept], **_others(plans)})
    ratios = {n: Race.of(times[KEPT], t).ratio for n, t in times.items() if n != KEPT}
    run = contest.run(plans[kept])
    run()
    error = None
    if wanted is not None and not run.left_out:
        found = run.read(plans[kept].network.outputs[0].name)
        error = float(np.abs(found - wanted).max() / np.abs(wanted).max())
    return Result(
        name, kept, {n: median(t) for n, t in times.items()}, ratios,
        Race.of(times[CONTROL], times[GREEDY]).ratio, plans["plan"].seconds, error,
        len(run.left_out),
    )  # fmt: skip


def settled(times: Mapping[str, list[float]]) -> str:
    """The fastest baseline, or a plan that is surely faster."""
    medians = {n: median(t) for n, t in times.items()}
    base = min((n for n in _others(times) if n != CONTROL), key=medians.__getitem__)
    own = [n for n in (PLAN, CAUTIOUS) if n in times]
    sure = [n for n in own if Race.of(times[n], times[base]).is_faster]
    return min(sure, key=medians.__getitem__, default=base)


def _others(found: Mapping[str, Any]) -> dict[str, Any]:
    """All but our own plans."""
    return {name: value for name, value in found.items() if name not in (PLAN, CAUTIOUS)}


def line(r: Result) -> str:
    """A row of the table."""
    error = "-" if r.error is None else f"{r.error:.0e}"
    return (
        f"{r.name:<14}{r.seconds[KEPT] * 1e3:>9.2f}{r.ratios[r.best]:>8.3f}{r.ratios[GREEDY]:>8.3f}"
        f"{r.ratios.get(FASTEST, float('nan')):>9.3f}{r.ratios.get('rules', float('nan')):>8.3f}"
        f"{r.control:>9.3f}{error:>8}{r.left_out:>5}  {r.kept} (best other: {r.best})"
    )


def main(arguments: list[str]) -> int:
    """``python -m bench plans``."""
    parser = argparse.ArgumentParser(prog="python -m bench plans", description=__doc__)
    parser.add_argument("names", nargs="*", default=LIGHT, help="light models; all by default")
    parser.add_argument("--rounds", type=int, default=5, help="runs of each plan in place")
    parser.add_argument("--json", metavar="FILE", type=Path, help="write the results")
    options = parser.parse_args(arguments)
    if reason := onednn.available():
        print(f"bench: {reason}", file=sys.stderr)
        return 2
    onednn_steps.prepare()
    loader = example()
    print(f"{'kept / ...':<14}{'ms':>9}{'best':>8}{'any':>8}{'fastest':>9}{'rules':>8}"
          f"{'control':>9}{'error':>8}{'out':>5}")  # fmt: skip
    results = []
    for name in options.names:
        network, model = loader.light(name)
        (given,) = network.inputs
        image = np.random.default_rng(1).standard_normal(given.dims, np.float32)
        wanted = loader.reference(model, {given.name: image})
        results.append(contested(name, network, wanted, options.rounds))
        print(line(results[-1]), flush=True)
    for what in (GREEDY, FASTEST):
        every = geometric_mean([r.ratios[what] for r in results])
        print(f"geometric mean of kept / {what}: {every:.3f}")
    if options.json:
        options.json.write_text(json.dumps([asdict(r) for r in results], indent=1), "utf-8")
    return 0
