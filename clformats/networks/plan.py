"""`propagate`: the format of every value of a network, at the least cost there is."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from functools import cached_property, partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

from ..errors import InvalidNetwork, expect, expect_int, shown
from ..solver.solve import LIMIT
from .baselines import Comparison, compare
from .build import FunctionPricing, Misfit, Pricing, ReorderCost
from .cost import Cost
from .decision import Decision
from .export import to_onnx
from .graph import Network
from .kernels import UNKNOWN, Kernels
from .limited import fitted
from .memory import MemoryPlan, plan_memory
from .named import listed, named
from .picture import dot, svg
from .prices import Prices
from .racing import Run, Settled, settle
from .stored import from_json, to_json

if TYPE_CHECKING:
    from ..runtime import Engine
    from .schedule import Launch, PreparedPlan

SHOWN = 6
"""A list in a printed plan shows this many things, and counts the others."""


class FormatPlan(Decision):
    """What `propagate` decided.

    ``formats`` has the format in which each value is written (or given), ``choices`` the choice of
    each node, ``reorders`` what is reordered, ``pack`` the constants. ``seconds`` is what it costs
    by the given costs, ``bound`` a proven lower bound, ``exact`` whether they are equal.
    """

    def __repr__(self) -> str:
        return (
            f"FormatPlan({len(self.choices)} nodes, {len(self.reorders)} reorders, "
            f"{self.seconds * 1e3:.4g} ms)"
        )

    def _repr_svg_(self) -> str:
        return self.svg()

    def compare(self, baselines: Iterable[str] | None = None) -> Comparison[FormatPlan]:
        """What other ways to choose cost by the same costs: `clformats.networks.baselines`."""
        return compare(self, baselines)

    def settle(
        self, prepare: Callable[[FormatPlan], Run], baselines: Iterable[str] | None = None,
        *, rounds: int = 20,
    ) -> Settled[FormatPlan]:  # fmt: skip
        """Race this plan against baselines on the clock: which to keep, see `Settled`.

        ``prepare`` makes a plan ready, and gives a function that runs it once and waits, such as
        ``lambda p: partial(p.schedule(engine, launch), stream, image=array)``. The fastest baseline
        stays unless this plan is surely faster. ``baselines`` are names of `compare`, by default
        the three cheapest that differ. Raises `InvalidNetwork` for other names.
        """
        return settle(self, prepare, baselines=baselines, rounds=rounds)

    @cached_property
    def memory(self) -> MemoryPlan:
        """One arena for all values: `clformats.networks.memory`."""
        return plan_memory(self)

    def schedule(self, engine: Engine, launch: Launch, **options: Any) -> PreparedPlan:
        """The plan on a device, with your function that launches kernels: see `PreparedPlan`."""
        from .schedule import PreparedPlan

        return PreparedPlan(self, self.memory, engine, launch, **options)

    def to_json(self) -> str:
        """The plan as JSON, which `from_json` reads."""
        return to_json(self)

    @classmethod
    def from_json(
        cls, text: str, *, kernels: Mapping[str, Any] | None = None,
        constants: Mapping[str, Any] | None = None,
    ) -> FormatPlan:  # fmt: skip
        """The plan that `to_json` wrote, without the tables and costs that led to it.

        ``kernels`` gives handles by the names of nodes, in place of those that JSON could hold;
        ``constants`` gives arrays by the names of values. The choices that were not taken are not
        in the text: `why` and `compare` know the plan's own. Raises `InvalidNetwork`.
        """
        return from_json(cls, text, kernels=kernels, constants=constants)

    def to_onnx(self, path: str | Path) -> None:
        """Write the plan as an ONNX model, its reorders as nodes (extra ``onnx``)."""
        to_onnx(self, path)

    def to_dot(self) -> str:
        """The plan as a graph for Graphviz."""
        return dot(self)

    def svg(self) -> str:
        """A picture of the network, coloured by format, its reorders marked."""
        return svg(self)

    def draw(self, path: str | Path) -> None:
        """Write the picture to a file, SVG."""
        Path(path).write_text(self.svg(), encoding="utf-8")

    def __str__(self) -> str:
        above = f"at most {100 * self.gap:.2g} % above the least"
        proof = "the least there is" if self.exact else above
        lines = [
            f"{len(self.choices)} nodes, {self.seconds * 1e3:.4g} ms by these costs, {proof}",
            f"{len(self.reorders)} reorders, {self.reorder_seconds * 1e3:.4g} ms",
        ]
        for r in self.reorders:
            cost = self.cost(r)
            lines.append(
                f"  {r.value}: {r.src} -> {r.dst} for {', '.join(r.readers) or 'other reorders'}, "
                f"{cost.seconds * 1e6:.4g} us ({cost.source})"
            )
        return "\n".join([*lines, *_doubts(self)])


def _doubts(plan: Decision) -> list[str]:
    """What may be a mistake: nodes without a kernel, names that are no known format, notes."""
    nodes = [
        f"{name} ({plan.network.nodes[name].op})"
        for name, c in plan.choices.items()
        if isinstance(c.cost, Cost) and c.cost.source == UNKNOWN
    ]
    own = {f for f in plan.formats.values() if f.means is None}
    return [
        *_some("no kernel, so plain and at no cost: ", nodes),
        *_some("not known to clformats, so opaque: ", sorted(own)),
        *_some("left out: ", plan.built.misfits, "\n"),
        *_some("", plan.network.notes, "\n"),
    ]


def _some(what: str, found: Sequence[str], between: str = ", ") -> list[str]:
    """One text of the first few; none of none."""
    rest = [f"and {len(found) - SHOWN} more"] if len(found) > SHOWN else []
    return [what + between.join([*found[:SHOWN], *rest])] if found else []


def propagate(  # each is one question
    network: Network,
    kernels: Kernels | None = None,
    *,
    reorder_cost: ReorderCost | Pricing | None = None,
    via: Iterable[str] = (),
    limit: int = LIMIT,
    memory_limit: int | None = None,
    engine: Engine | None = None,
) -> FormatPlan:
    """Choose for each node how it runs, so that nodes and reorders together cost the least.

    ``kernels`` gives choices to nodes that have none. ``reorder_cost`` is a function of a value's
    name and two formats, in seconds, or a `Costs`; without one, the library's cost model. A reorder
    serves every reader of its result; where a chain of reorders is cheaper, the plan has the chain.
    ``via`` names formats through which chains may go though no node reads them. ``limit`` is the
    number of entries of the largest table that the solver may make. ``memory_limit`` is the most
    bytes that `FormatPlan.memory` may have; it may need HiGHS, the extra ``solve``. Choices with
    images that the device of ``engine`` cannot have are left out; the plan, printed, says which.

    >>> import clformats as cf
    >>> net = cf.Network()
    >>> _ = net.value("x", (1, 16, 8, 8)), net.value("y", (1, 16, 8, 8))
    >>> fast = cf.Choice(("nChw16c",), ("nChw16c",), 1e-5)
    >>> slow = cf.Choice(("nchw",), ("nchw",), 9e-5)
    >>> _ = net.node("conv", ["x"], ["y"], "Conv", [fast, slow])
    >>> net.fix("x", "nchw")
    >>> plan = cf.propagate(net, reorder_cost=lambda value, src, dst: 2e-5)
    >>> plan.formats["y"], plan.reorders[0].dst, plan.exact
    ('nChw16c', 'nChw16c', True)

    Raises `InvalidNetwork`, which names the node or the value.
    """
    names = [named(name, "via") for name in listed(via, "via")]
    most = _positive(limit, "limit")
    ready, pricing = _with_choices(network, kernels), as_pricing(reorder_cost)
    plan = FormatPlan.cheapest(ready, pricing, names, most, _misfit(engine))
    return plan if memory_limit is None else fitted(plan, _positive(memory_limit, "memory_limit"))


def _misfit(engine: Engine | None) -> Misfit | None:
    """What tells why a device cannot have an image. Planning for none loads no runtime."""
    if engine is None:
        return None
    from ..runtime import Engine
    from ..runtime.image import misfit

    expect(engine, Engine, "engine")
    return partial(misfit, engine)


def _with_choices(network: Network, kernels: Kernels | None) -> Network:
    if not isinstance(network, Network):
        raise InvalidNetwork(f"got {network!r}, expected a cf.Network")
    if kernels is not None and not hasattr(kernels, "apply"):
        raise InvalidNetwork(f"kernels: got {shown(kernels)}, expected a cf.Kernels")
    # The plan keeps it: what is added to the caller's later has no place in the plan.
    return network.with_checked({}) if kernels is None else kernels.apply(network)


def _positive(number: int, what: str) -> int:
    if expect_int(number, what) < 1:
        raise InvalidNetwork(f"{what}: got {number}, expected 1 or more")
    return number


def as_pricing(given: ReorderCost | Pricing | None) -> Pricing:
    """What prices reorders: the given one, or the library's cost model."""
    if given is None:
        return Prices()
    if hasattr(given, "reorder") and hasattr(given, "choice"):
        return given
    if not callable(given):
        raise InvalidNetwork(f"reorder_cost: got {shown(given)}, expected a function or a cf.Costs")
    return FunctionPricing(given)
