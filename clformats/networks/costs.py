"""`Costs`: the prices of a network, measured: reorders in isolation, and everything in place.

A kernel that is timed in isolation finds its inputs in the cache. In a run of the whole network it
does not, so costs are best measured in place: plans that try every choice in turn run as a whole,
and every step of them is timed.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import replace
from functools import partial
from itertools import permutations
from typing import TYPE_CHECKING, Any

from ..errors import InvalidNetwork
from ..timing import CLOCK, Clock, repeated, timed, turns
from .baselines import is_uniform, written_formats
from .build import FunctionPricing, build
from .choice import Choice
from .decision import PlannedReorder
from .graph import Network, Node
from .named import FormatName
from .plan import FormatPlan, propagate
from .prices import Prices, shape_text

if TYPE_CHECKING:
    from ..reorders.reorder import Reorder
    from ..runtime import Engine, Memory, Stream
    from .schedule import Launch

Steps = Sequence[Callable[[], object]]
"""A function for each of ``plan.memory.steps``, which returns when the step is done."""
AGAIN = 3
"""How often the plan of the costs so far is run too, as long as it is a new one."""


class Costs(Prices):
    """Prices of reorders and of choices without a cost, in seconds.

    A reorder that no record knows costs what clformats' own plan takes by its cost model; with a
    ``bandwidth`` (bytes a second, read and written together), what its bytes take. ``latency``
    (seconds) comes on top. ``Costs.load`` reads what `save` wrote.

    >>> costs = Costs(bandwidth=20e9)
    >>> costs.record_reorder("f32:1x64x56x56", "nchw", "nChw16c", [9e-5, 1e-4, 1.2e-4])
    """

    def measure(self, network: Network, engine: Engine, repeats: int = 7) -> int:
        """Time every reorder that the network's choices may need, on a device; how many there were.

        Wall time from the call to its end, `repeats` times after one that does not count.
        """
        from ..reorders.reorder import Reorder
        from ..runtime import Memory, Stream

        stream, count = Stream(engine), 0
        free = build(held(network, 0), FunctionPricing(lambda *_: 0.0))
        for name, formats in free.formats.items():
            value, names = network.values[name], [n for n in formats if n.means is not None]
            for src, dst in permutations(names, 2):
                if self.reorder(value, src, dst).source == "measured":
                    continue
                source, target = (Memory(value.desc(n), engine) for n in (src, dst))
                move = Reorder(source.desc, target.desc, engine, wait=True)
                run = partial(_waited, move, stream, source, target)
                samples = repeated(partial(timed, run), repeats + 1)[1:]
                self.record_reorder(shape_text(value), src, dst, samples)
                count += 1
        return count

    def measure_in_place(
        self, network: Network, stream: Stream, launch: Launch, inputs: Mapping[str, Any],
        *, rounds: int = 5,
    ) -> int:  # fmt: skip
        """Time every choice and the reorders between in runs of the whole network, on a device.

        ``launch`` is as of `FormatPlan.schedule`, ``inputs`` are arrays by name. Gives the number
        of plans that ran. These costs are the most reliable: kernels timed in isolation mislead.
        """

        def prepare(plan: FormatPlan) -> Steps:
            schedule = plan.schedule(stream.engine, launch)
            schedule(stream, **inputs)

            def run(number: int) -> None:
                schedule.run_step(stream, number)
                stream.wait()

            return [partial(run, number) for number in range(len(plan.memory.steps))]

        return self.measure_steps(network, prepare, rounds=rounds)

    def measure_steps(
        self, network: Network, prepare: Callable[[FormatPlan], Steps], *, rounds: int = 5,
        clock: Clock = CLOCK,
    ) -> int:  # fmt: skip
        """The same where you run networks yourself: ``prepare`` makes a plan ready to run.

        It gives a function for each of ``plan.memory.steps``, which returns when the step is done;
        ``clock`` is in seconds. The plans are one format wherever nodes have it, for each format;
        every choice in turn; and the best plan by the costs so far, until that is no new one. Each
        runs ``rounds`` times after once to warm up.
        """
        ready = [propagate(net, reorder_cost=lambda *_: 0.0) for net in ways(network)]
        tally = _Tally(self, prepare, rounds, clock)
        for plan in ready:
            tally.run(plan)
        for count in range(AGAIN):
            plan = propagate(network, reorder_cost=self)
            if tally.key(plan) in tally.seen:
                return len(ready) + count
            tally.run(plan)
        return len(ready) + AGAIN


def _waited(move: Reorder, stream: Stream, source: Memory, target: Memory) -> None:
    move(stream, source, target).wait()


class _Tally:
    """Samples of steps, from as many plans as are run."""

    def __init__(
        self, costs: Prices, prepare: Callable[[FormatPlan], Steps], rounds: int, clock: Clock
    ) -> None:
        self.costs, self.prepare, self.rounds, self.clock = costs, prepare, rounds, clock
        self.samples: dict[tuple[str, ...], list[float]] = {}
        self.seen: set[tuple[object, ...]] = set()

    def key(self, plan: FormatPlan) -> tuple[object, ...]:
        """What makes two plans one run."""
        return plan.assignment, *plan.reorders

    def run(self, plan: FormatPlan) -> None:
        """Time the steps of a plan, and record what is known of each since the first plan."""
        self.seen.add(self.key(plan))
        steps, functions = plan.memory.steps, self.prepare(plan)
        if len(functions) != len(steps):
            raise InvalidNetwork(
                f"prepare: got {len(functions)} functions, expected {len(steps)}, one for each of "
                f"plan.memory.steps"
            )
        runs = {k: partial(timed, function, self.clock) for k, function in enumerate(functions)}
        for k, seconds in turns(runs, self.rounds, in_order=True).items():
            self._record(plan, steps[k], seconds)

    def _record(self, plan: FormatPlan, step: Node | PlannedReorder, seconds: list[float]) -> None:
        record: Callable[..., None] = self.costs.record_reorder
        if isinstance(step, Node):
            key: tuple[str, ...] = step.name, str(plan.choices[step.name])
            record = self.costs.record_choice
        else:
            key = shape_text(plan.network.values[step.value]), step.src, step.dst
        samples = self.samples.setdefault(key, [])
        samples += seconds
        record(*key, samples, "measured in place")


def ways(network: Network) -> Iterator[Network]:
    """The network with one choice asked for at each node, in as many ways as try them all.

    First one format wherever a node has a choice in it, for each format. Then another one of its
    choices for each node, so often that the node with the most choices has had them all.
    """
    for name in written_formats(network.nodes.values()):
        yield _asking(network, partial(_in_format, name=name))
    for way in range(max(len(n.choices) for n in network.nodes.values())):
        yield held(network, way)


def held(network: Network, way: int) -> Network:
    """The network with one choice asked for at each node, another one in each way."""
    numbers = {name: k + way for k, name in enumerate(network.nodes)}
    return _asking(network, lambda node: node.choices[numbers[node.name] % len(node.choices)])


def _in_format(node: Node, name: FormatName) -> Choice:
    """The choice that reads and writes one format only; the first one where no choice does."""
    return next((c for c in node.choices if is_uniform(node, c, name)), node.choices[0])


def _asking(network: Network, wanted: Callable[[Node], Choice]) -> Network:
    """Wanted choices cost nothing, others a second: taken only where views exclude the wanted."""
    asked = {node.name: wanted(node) for node in network.nodes.values()}
    return network.with_checked({
        name: tuple(replace(c, cost=float(c is not choice)) for c in network.nodes[name].choices)
        for name, choice in asked.items()
    })  # fmt: skip
