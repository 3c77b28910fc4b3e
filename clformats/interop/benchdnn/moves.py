"""The move of a problem: a reorder on one device, or a transfer between host and device."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import Any, NamedTuple

from numpy.typing import NDArray

from ...host.memory import HostMemory
from ...reorders.reorder import Reorder
from ...reorders.trial import Bytes, Case, DeviceTensor, HostTensor
from ...runtime import Event, Stream
from ...tensors.desc import MemoryDesc
from ...timing import repeated, timed
from ...transfers.route import transfer
from ...values.attr import Attr
from ...values.groups import Grouped
from .knobs import CPU2GPU
from .parse import Common

LEAST_RUNS = 5
"""Timed runs of a problem, whatever its time limit (benchdnn's)."""

Given = dict[str, NDArray[Any]]


class Filled(NamedTuple):
    """A move between filled tensors: it can run ``once``, or measure its ``seconds``.

    ``read`` gives the bytes of the destination.
    """

    once: Callable[[], object]
    seconds: Callable[[], float]
    read: Callable[[], Bytes]


class DeviceMove:
    """A reorder that is made, with the values of attributes that are given at each call."""

    def __init__(self, reorder: Reorder, given: Given) -> None:
        self._reorder, self._given = reorder, given

    def filled(self, case: Case, stream: Stream) -> Filled:
        """With the tensors of a case; the seconds are those of the device's clock."""
        src = DeviceTensor(case.src, case.source, stream.engine)
        dst = DeviceTensor(case.dst, case.before, stream.engine)

        def start() -> Event:
            return self._reorder(stream, src.memory, dst.memory, **self._given)

        return Filled(lambda: start().wait(), lambda: start().seconds(), dst.read)


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
        values: dict[str, Any] = {
            name: Grouped(given[name], t.group) if t.group else (given[name], t.mask)
            for name, t in attr.terms.items()
        }
        self._attr = Attr(**values)

    def filled(self, case: Case, stream: Stream) -> Filled:
        """With the tensors of a case; the seconds are the host's, who sees copies and kernels."""
        src: DeviceTensor | HostTensor
        dst: DeviceTensor | HostTensor
        if self._from_host:
            src = HostTensor(case.src, case.source)
            dst = DeviceTensor(case.dst, case.before, stream.engine)
        else:
            src = DeviceTensor(case.src, case.source, stream.engine)
            dst = HostTensor(case.dst, case.before)

        def run() -> None:
            transfer(src.memory, dst.memory, attr=self._attr)

        return Filled(run, partial(timed, run), dst.read)


def measured(run: Callable[[], float], common: Common) -> tuple[float, float, float]:
    """Milliseconds of a run: least, mean and largest.

    The caller has done one run to warm up. Runs follow until the time limit is over, at least
    `LEAST_RUNS`, or as many as ``--fix-times-per-prb`` says.
    """
    fixed = common.fix_times_per_prb
    seconds = repeated(run, fixed) if fixed else repeated(run, LEAST_RUNS, common.limit_ms * 1e-3)
    times = [1e3 * s for s in seconds]
    return min(times), sum(times) / len(times), max(times)
