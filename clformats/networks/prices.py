"""`Prices`: what reorders and choices cost, and how that is known.

In this order: a record (measured or given), a line fitted through records of the same two formats,
the library's cost model for reorders between formats that it knows, and bytes over bandwidth. Each
`Cost` says which.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import astuple
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from ..errors import InvalidNetwork, expect
from ..problems.thresholds import BYTE_NS
from ..tensors.desc import MemoryDesc
from .choice import Choice
from .cost import Cost, as_cost, as_float
from .graph import Node, Value
from .named import FormatName, listed, named, path_of
from .rates import PROCESSOR, seconds_a_byte

if TYPE_CHECKING:
    from typing_extensions import Self

BANDWIDTH = 1e9 / BYTE_NS
"""Bytes a second, read and written together, where nothing was measured."""
LATENCY = 5e-6
"""Seconds to launch a kernel."""
COMPUTE = ("Conv", "ConvTranspose", "Gemm", "MatMul", "MatMulInteger", "ConvInteger", "LSTM", "GRU")
"""Operations whose time does not follow from their bytes."""
_SPREAD = 0.3
"""How far off a figure may be that was not measured, for its low and high end."""

ReorderKey = tuple[str, str, str]
"""Dims and type as ``"f32:1x64x56x56"``, and two formats."""


class Prices:
    """What `Costs` knows; see there."""

    def __init__(self, bandwidth: float | None = None, latency: float = LATENCY) -> None:
        latency = as_float(latency, "latency")
        bandwidth = None if bandwidth is None else as_float(bandwidth, "bandwidth")
        if not (bandwidth is None or bandwidth > 0) or not latency >= 0:
            raise InvalidNetwork(
                f"got bandwidth={bandwidth!r}, latency={latency!r}: both in SI units"
            )
        self.bandwidth, self.latency = bandwidth, latency
        self.reorders: dict[ReorderKey, Cost] = {}
        self.choices: dict[tuple[str, str], Cost] = {}
        self._fits: dict[tuple[str, str], tuple[float, float, float] | None] = {}

    # --- records ----------------------------------------------------------------------------------

    def record_reorder(
        self, shape: str, src: str, dst: str, seconds: Cost | float | Iterable[float],
        source: str = "measured",
    ) -> None:  # fmt: skip
        """Record a reorder of a shape such as ``"f32:1x64x56x56"``: a `Cost`, or samples."""
        expect(shape, str, "shape")
        names = named(src, "src"), named(dst, "dst")
        rank = shape.count("x") + 1
        key = (shape, names[0].of_rank(rank).canonical, names[1].of_rank(rank).canonical)
        self.reorders[key] = _sampled(seconds, f"the reorder {src} -> {dst} of {shape}", source)
        self._fits.clear()

    def record_choice(
        self, node: str, choice: Choice | str, seconds: Cost | float | Iterable[float],
        source: str = "measured",
    ) -> None:  # fmt: skip
        """Record what a choice of a node costs: a `Cost`, or samples."""
        self.choices[node, str(choice)] = _sampled(seconds, f"node {node!r}", source)

    # --- prices -----------------------------------------------------------------------------------

    def reorder(self, value: Value, src: str, dst: str) -> Cost:
        """The cost of a reorder of a value."""
        sides = named(src).of_rank(value.rank), named(dst).of_rank(value.rank)
        nbytes = value.nbytes(sides[0]) + value.nbytes(sides[1])
        if not self.reorders:
            return self._unmeasured(value, *sides, nbytes)
        names = sides[0].canonical, sides[1].canonical
        found = self.reorders.get((shape_text(value), *names))
        if found is not None:
            return found
        fit = self._fitted(*names)
        if fit is not None:
            latency, per_byte, off = fit
            seconds = latency + per_byte * nbytes
            return Cost(seconds, seconds * (1 - off), seconds * (1 + off), "fitted")
        return self._unmeasured(value, *sides, nbytes)

    def choice(self, node: Node, choice: Choice) -> Cost:
        """The cost of a choice: a record, nothing for a view, else bytes over bandwidth.

        Raises `InvalidNetwork` for operations whose time does not follow from their bytes.
        """
        found = self.choices.get((node.name, str(choice)))
        if found is not None:
            return found
        if node.op in COMPUTE:
            raise InvalidNetwork(
                f"{node}: the choice {choice} has no cost, and bytes do not tell how long "
                f"{node.op} takes: give its cost in seconds, or record what was measured"
            )
        viewed = {i for i, _ in choice.shared}
        inputs = enumerate(zip(node.inputs, choice.ins, strict=True))
        read = [v.nbytes(f) for k, (v, f) in inputs if k not in viewed and not v.is_constant]
        if viewed and not read:
            return Cost(0.0, source="a view")
        outputs = zip(node.outputs, choice.outs, strict=True)
        written = read if viewed else [v.nbytes(f) for v, f in outputs]
        return self._by_bytes(sum(read) + sum(written))

    def _unmeasured(self, value: Value, src: FormatName, dst: FormatName, nbytes: int) -> Cost:
        rate = None
        if self.bandwidth is None and src.means is not None and dst.means is not None:
            is_large = PROCESSOR.is_large(nbytes)
            rate = seconds_a_byte(src.means, dst.means, value.dtype, is_large=is_large)
        if rate is None:
            return self._by_bytes(nbytes)
        return _spread(self.latency + nbytes * rate, "the cost model")

    def _by_bytes(self, nbytes: int) -> Cost:
        seconds = self.latency + nbytes / (self.bandwidth or BANDWIDTH)
        return _spread(seconds, "bytes over bandwidth")

    def _fitted(self, src: str, dst: str) -> tuple[float, float, float] | None:
        """Latency, seconds a byte and spread of a pair of formats; None below two sizes."""
        if (src, dst) not in self._fits:
            points = [
                (2 * _nbytes(shape), cost.seconds)
                for (shape, a, b), cost in self.reorders.items()
                if (a, b) == (src, dst)
            ]
            self._fits[src, dst] = _line(points)
        return self._fits[src, dst]

    # --- files ------------------------------------------------------------------------------------

    def save(self, path: str | Path) -> None:
        """Write all records as JSON."""
        content = {
            "bandwidth": self.bandwidth,
            "latency": self.latency,
            "reorders": [[*k, *astuple(c)] for k, c in self.reorders.items()],
            "choices": [[*k, *astuple(c)] for k, c in self.choices.items()],
        }
        Path(path).write_text(json.dumps(content, indent=1), encoding="utf-8")

    @classmethod
    def load(cls, path: str | Path) -> Self:
        """Read what `save` wrote. Raises `InvalidNetwork`."""
        try:
            content: Mapping[str, Any] = json.loads(path_of(path).read_text(encoding="utf-8"))
            result = cls(content["bandwidth"], content["latency"])
            for shape, src, dst, *cost in content["reorders"]:
                result.record_reorder(shape, src, dst, Cost(*cost))
            for node, choice, *cost in content["choices"]:
                result.record_choice(node, choice, Cost(*cost))
        except (OSError, ValueError, KeyError, TypeError) as error:
            raise InvalidNetwork(f"{path} has no costs that Costs.save wrote: {error}") from error
        return result


def _spread(seconds: float, source: str) -> Cost:
    return Cost(seconds, seconds * (1 - _SPREAD), seconds * (1 + _SPREAD), source)


def shape_text(value: Value) -> str:
    """``"f32:1x64x56x56"``."""
    return f"{value.dtype}:{'x'.join(map(str, value.dims))}"


def _nbytes(shape: str) -> int:
    dtype, _, dims = shape.partition(":")
    return MemoryDesc([int(n) for n in dims.split("x")], dtype).nbytes


def _sampled(seconds: Cost | float | Iterable[float], what: str, source: str) -> Cost:
    if isinstance(seconds, Cost) or not isinstance(seconds, Iterable):
        return as_cost(seconds, what)
    samples = np.array([as_float(s, what) for s in listed(seconds, what)], float)
    if not samples.size or not (samples >= 0).all():
        raise InvalidNetwork(f"{what}: got {list(samples)}, expected seconds, 0 or more")
    low, middle, high = np.quantile(samples, [0.1, 0.5, 0.9])
    return Cost(float(middle), float(low), float(high), source)


def _line(points: Sequence[tuple[int, float]]) -> tuple[float, float, float] | None:
    """Least squares of relative errors, nothing negative: latency, seconds a byte, spread."""
    if len({n for n, _ in points}) < 2:
        return None
    sizes, times = (np.array(column, float) for column in zip(*points, strict=True))
    weights = 1 / np.maximum(times, 1e-12)
    matrix = np.stack([weights, sizes * weights], axis=1)
    latency, slope = np.linalg.lstsq(matrix, np.ones(len(times)), rcond=None)[0]
    latency, slope = max(float(latency), 0.0), max(float(slope), 0.0)
    off = np.abs((latency + slope * sizes) * weights - 1)
    return latency, slope, float(min(off.max(), 0.9))
