"""Networks timed on a device: reorders alone, everything in place, and plans against each other.

A kernel that is timed alone finds its inputs in the cache. In a run of the whole network it does
not, so costs are best measured in place: plans that try every choice in turn
run as a whole, and every step of them is timed.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from random import Random
from statistics import median
from time import perf_counter
from typing import TYPE_CHECKING, Any

from ..errors import InvalidNetwork
from .build import build
from .choice import Choice
from .cost import Cost
from .costs import Costs, shape_text
from .graph import Network, Node
from .named import key_of
from .plan import propagate

if TYPE_CHECKING:
    from ..runtime import Engine, Stream
    from .graph import Value
    from .schedule import Launch, Schedule

SURE = 0.98
"""The share of drawn samples in which a plan must be faster to be surely so."""


class _Nothing:
    """Prices nothing: only the formats are wanted."""

    def reorder(self, value: Value, src: str, dst: str) -> Cost:
        del value, src, dst
        return Cost(0.0)

    def choice(self, node: Node, choice: Choice) -> Cost:
        del node, choice
        return Cost(0.0)


def measure_reorders(costs: Costs, network: Network, engine: Engine, repeats: int) -> int:
    """Time what is not recorded yet, and record it."""
    from ..reorders.reorder import Reorder
    from ..runtime import Memory, Stream
    from ..tensors.desc import MemoryDesc

    stream, count = Stream(engine), 0
    for tensor in build(network, _Nothing()).problem.tensors:
        value = network.values[tensor.name]
        names = [n for n in tensor.formats if not isinstance(key_of(n, value.rank), str)]
        for src, dst in ((a, b) for a in names for b in names if a != b):
            if costs.reorder(value, src, dst).source == "measured":
                continue
            sides = [MemoryDesc(value.dims, value.dtype, n) for n in (src, dst)]
            source, target = (Memory(d, engine) for d in sides)
            move = Reorder(sides[0], sides[1], engine, wait=True)
            samples = []
            for _ in range(repeats + 1):
                start = perf_counter()
                move(stream, source, target).wait()
                samples.append(perf_counter() - start)
            costs.record_reorder(shape_text(value), src, dst, samples[1:])
            count += 1
    return count


# --- in place -------------------------------------------------------------------------------------


def measure_in_place(
    costs: Costs,
    network: Network,
    stream: Stream,
    launch: Launch,
    inputs: Mapping[str, Any],
    *,
    rounds: int = 5,
) -> int:
    """Time every choice of a network's nodes, and the reorders between, in runs of the whole.

    Each way gives every node another one of its choices, so there are as many ways as the node with
    the most choices has. ``launch`` is as of `FormatPlan.schedule`. The number of ways.
    """
    ways = max(len(n.choices) for n in network.nodes.values())
    samples: dict[Node | tuple[str, str, str], dict[str, list[float]]] = {}
    for way in range(ways):
        plan = propagate(held(network, way), reorder_cost=lambda *_: 0.0)
        schedule = plan.schedule(stream.engine, launch)
        schedule(stream, **inputs)
        for _ in range(rounds):
            for number, step in enumerate(plan.memory.steps):
                seconds = _timed(schedule, stream, number)
                if isinstance(step, Node):
                    how = str(plan.choices[step.name])
                    samples.setdefault(network.nodes[step.name], {}).setdefault(how, [])
                    samples[network.nodes[step.name]][how].append(seconds)
                else:
                    key = shape_text(network.values[step.value]), step.src, step.dst
                    samples.setdefault(key, {}).setdefault("", []).append(seconds)
    for what, found in samples.items():
        for how, seconds_ in found.items():
            if isinstance(what, Node):
                costs.record_choice(what.name, how, seconds_, "measured in place")
            else:
                costs.record_reorder(*what, seconds_, "measured in place")
    return ways


def held(network: Network, way: int) -> Network:
    """The network with one choice for each node, another one in each way; all cost nothing."""
    chosen = {}
    for number, node in enumerate(network.nodes.values()):
        c = node.choices[(number + way) % len(node.choices)]
        chosen[node.name] = [Choice(c.ins, c.outs, 0.0, c.kernel, c.workspace, c.views)]
    return network.with_choices(chosen)


def _timed(schedule: Schedule, stream: Stream, number: int) -> float:
    stream.wait()
    start = perf_counter()
    schedule.run_step(stream, number)
    stream.wait()
    return perf_counter() - start


# --- against each other ---------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class Race:
    """How a schedule did against a baseline: the ratio of their times, turn by turn.

    ``ratio`` is the median, below 1 where the schedule is faster; ``low`` and ``high`` are what
    medians of samples drawn with replacement lie between, 98 of 100. ``is_faster`` is whether even
    ``high`` is below 1: only then a plan should replace the baseline.
    """

    ratio: float
    low: float
    high: float

    @property
    def is_faster(self) -> bool:
        """Whether the schedule is surely faster."""
        return self.high < 1


def race(
    schedule: Schedule,
    baseline: Schedule,
    stream: Stream,
    inputs: Mapping[str, Any],
    *,
    rounds: int = 20,
) -> Race:
    """Run two schedules in turn, each first as often as second, and compare each pair."""
    if rounds < 4:
        raise InvalidNetwork(f"rounds: got {rounds}, expected 4 or more")
    for each in (schedule, baseline):
        each(stream, **inputs)
    ratios = []
    for k in range(rounds):
        times = {}
        for each in (schedule, baseline) if k % 2 else (baseline, schedule):
            start = perf_counter()
            each(stream, **inputs)
            times[each is schedule] = perf_counter() - start
        ratios.append(times[True] / times[False])
    draw = Random(0)  # noqa: S311  # no secret
    medians = sorted(median(draw.choices(ratios, k=rounds)) for _ in range(1000))
    cut = int((1 - SURE) / 2 * len(medians))
    return Race(median(ratios), medians[cut], medians[-cut - 1])
