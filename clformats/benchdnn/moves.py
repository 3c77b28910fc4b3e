"""What a problem runs: a reorder on one device, or a transfer between the host and the device."""

from __future__ import annotations

from collections.abc import Callable
from time import perf_counter
from typing import Any

from numpy.typing import NDArray

from ..attr import Attr
from ..desc import MemoryDesc
from ..hostmemory import HostMemory
from ..kernels.reorder import Reorder
from ..runtime import Engine, Stream
from ..streaming import transfer
from .check import Case, HostTensor, Tensor
from .knobs import CPU2GPU
from .parse import Common

LEAST_RUNS = 5
"""Timed runs of a problem, whatever its time limit (benchdnn's)."""

Given = dict[str, NDArray[Any]]


class OnDevice:
    """A reorder that is made, with the values of attributes that are given at each call."""

    def __init__(self, reorder: Reorder, given: Given) -> None:
        self._reorder, self._given = reorder, given

    def tensors(
        self, src: MemoryDesc, dst: MemoryDesc, case: Case, engine: Engine
    ) -> tuple[Tensor, Tensor]:
        """Source and destination, filled."""
        return Tensor(src, case.source, engine), Tensor(dst, case.before, engine)

    def run(self, stream: Stream, src: Tensor, dst: Tensor) -> None:
        """Run once."""
        self._reorder(stream, src.memory, dst.memory, **self._given).wait()

    def seconds(self, stream: Stream, src: Tensor, dst: Tensor) -> float:
        """Run once; the seconds are those of the device's clock."""
        event = self._reorder(stream, src.memory, dst.memory, **self._given)
        return event.seconds()


class BetweenEngines:
    """A `clformats.transfer`, with one side on the host: nothing is made before the call.

    Raises `Unsupported` for an image on the host's side.
    """

    NAME = "ocl:cross_engine"
    """The implementation's name; the kernels of its pieces may be of any family."""

    def __init__(
        self, way: str, src: MemoryDesc, dst: MemoryDesc, attr: Attr, given: Given
    ) -> None:
        self._from_host = way == CPU2GPU
        HostMemory(src if self._from_host else dst)
        masks = {name: term.mask for name, term in attr.terms.items()}
        self._attr = Attr(**{name: (given[name], mask) for name, mask in masks.items()})

    def tensors(
        self, src: MemoryDesc, dst: MemoryDesc, case: Case, engine: Engine
    ) -> tuple[Tensor | HostTensor, Tensor | HostTensor]:
        """Source and destination, filled."""
        if self._from_host:
            return HostTensor(src, case.source), Tensor(dst, case.before, engine)
        return Tensor(src, case.source, engine), HostTensor(dst, case.before)

    def run(self, stream: Stream, src: Tensor | HostTensor, dst: Tensor | HostTensor) -> None:
        """Run once; a transfer has streams of its own."""
        del stream
        transfer(src.memory, dst.memory, attr=self._attr)

    def seconds(self, stream: Stream, src: Tensor | HostTensor, dst: Tensor | HostTensor) -> float:
        """Run once; the seconds are those of the host's clock, which sees copies and kernels."""
        start = perf_counter()
        self.run(stream, src, dst)
        return perf_counter() - start


def measured(run: Callable[[], float], common: Common) -> tuple[float, float, float]:
    """Milliseconds of a run, which tells its seconds: least, mean and most.

    One run, which the caller has done, warms up; then runs follow until the time limit is over,
    at the least `LEAST_RUNS`, or as many as ``--fix-times-per-prb`` says.
    """
    times: list[float] = []
    end = perf_counter() + common.limit_ms * 1e-3
    while len(times) < (common.fix_times_per_prb or LEAST_RUNS) or (
        not common.fix_times_per_prb and perf_counter() < end
    ):
        times.append(run() * 1e3)
    return min(times), sum(times) / len(times), max(times)
