"""`Costs`: the prices of a network, with what measures them."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING, Any

from ..timing import CLOCK, Clock
from . import measure
from .graph import Network
from .measure import Steps
from .plan import FormatPlan
from .prices import Prices
from .schedule import Launch

if TYPE_CHECKING:
    from ..runtime import Engine, Stream


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
        return measure.measure_reorders(self, network, engine, repeats)

    def measure_in_place(
        self, network: Network, stream: Stream, launch: Launch, inputs: Mapping[str, Any],
        *, rounds: int = 5,
    ) -> int:  # fmt: skip
        """Time every choice and the reorders between in runs of the whole network, on a device.

        ``launch`` is as of `FormatPlan.schedule`, ``inputs`` are arrays by name. Gives the number
        of plans that ran. These costs are the most reliable: kernels timed in isolation mislead.
        """
        return measure.measure_in_place(self, network, stream, launch, inputs, rounds=rounds)

    def measure_steps(
        self, network: Network, prepare: Callable[[FormatPlan], Steps], *, rounds: int = 5,
        clock: Clock = CLOCK,
    ) -> int:  # fmt: skip
        """The same where you run networks yourself: ``prepare`` makes a plan ready to run.

        It gives a function for each of ``plan.memory.steps``, which returns when the step is done;
        ``clock`` is in seconds. The plans are one format wherever nodes have it, for each format;
        every choice in turn; and the best plan by the costs so far, until that is no new one.
        """
        return measure.measure_steps(self, network, prepare, rounds=rounds, clock=clock)
