"""The winograd family: the values of the destination are computed from windows of the source.

A work-item takes a run of windows along the innermost digit of the destination, one where there
are cores enough. Of a window it reads 3 to 16 values and stores all that is computed of them, 2 to
36. That needs a destination in which the axes of the transform are neither split, fused nor padded,
as in every Winograd format. Where it is otherwise, in some formats that outputs can be wanted in,
there is one work-item for each place of the destination, which reads its window for one value.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

from ..tensors.desc import MemoryDesc
from ..values.transforms import Step
from .generic import places
from .problem import Problem
from .request import Request

RUN = 16
"""Windows of a run on a CPU: for single ones it divides more than it transforms."""


@dataclass(frozen=True, slots=True)
class WinogradPlan:
    """``items`` work-items, each of ``run`` windows, or of one place.

    ``windows``: the destination with one element for each window, where its first value lies; None
    where work-items are for single places.
    """

    problem: Problem
    step: Step
    windows: MemoryDesc | None
    items: int
    run: int = 1

    def __str__(self) -> str:
        if self.windows is None:
            places = f"{self.items} places, as y or x is split, fused or padded"
            return f"{self.step}: one work-item for each of {places}"
        return f"{self.step}: {self.items} work-items of {self.run} windows each"


def refusal(p: Problem) -> str:
    """Why the family does not take the problem; empty if it does."""
    if p.step is None:
        return "the values are not transformed"
    return "sums follow the elements" if p.dst.sums else ""


def plan(request: Request) -> WinogradPlan:
    """The plan for a problem that `refusal` accepts."""
    p, traits = request.problem, request.traits
    if p.step is None:
        raise TypeError("not a transform")
    windows = _windows(p.dst, p.step)
    if windows is None:
        return WinogradPlan(p, p.step, None, places(p.dst))
    run, along = (RUN if traits.is_cpu else 1), windows.placed[-1].size
    return WinogradPlan(p, p.step, windows, places(windows) // along * -(-along // run), run)


def _windows(dst: MemoryDesc, step: Step) -> MemoryDesc | None:
    """The first value of each window as a tensor of its own, in the same memory."""
    geometry = dst.geometry
    dims, placed = list(dst.dims), list(dst.placed)
    for d, rows in step.transform.results.items():
        mine = [k for k, p in enumerate(placed) if d in p.digit.dims]
        digit = placed[mine[0]].digit
        whole = len(mine) == len(digit.dims) == 1 and not digit.flip and dst.tail is None
        if not whole or any(dst.padding[d]) or dst.padded_dims[d] != dst.dims[d]:
            return None
        dims[d] = -(-dims[d] // rows)
        stride = placed[mine[0]].stride * rows
        placed[mine[0]] = replace(placed[mine[0]], size=dims[d], stride=stride, fixed_stride=False)
    padded = tuple(
        n if d in step.transform.results else p
        for d, (n, p) in enumerate(zip(dims, dst.padded_dims, strict=True))
    )
    geometry = replace(geometry, dims=tuple(dims), placed=tuple(placed), padded_dims=padded)
    return MemoryDesc.of(geometry, dst.dtype)
