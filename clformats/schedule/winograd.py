"""The winograd family: the values of the destination are computed from windows of the source.

A work-item takes a run of windows along the innermost digit of the destination, or a single one if
there are enough cores. It reads the 3 to 16 values of a window and stores its 2 to 36 results. This
needs a destination whose transformed axes are neither split, fused nor padded, as in every Winograd
format. Some formats of convolution outputs are otherwise: for these each place of the destination
is a window of its own, of which one result is stored.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

from ..problems.problem import Problem
from ..problems.thresholds import WINDOWS
from ..problems.traits import Traits
from ..tensors.desc import MemoryDesc
from ..values.transforms import Step
from .body import Body
from .choices import Choices
from .generic import places


@dataclass(frozen=True, slots=True)
class WinogradPlan(Body):
    """``items`` work-items, each for ``run`` windows.

    ``windows``: the destination with one value for each window, or itself where each place is one.
    """

    problem: Problem
    step: Step
    windows: MemoryDesc
    items: int
    run: int

    @property
    def by_places(self) -> bool:
        """Whether each place of the destination is a window."""
        return self.windows is self.problem.dst

    def __str__(self) -> str:
        why = ", one for each place, as y or x is split, fused or padded" * self.by_places
        return f"{self.step}: {self.items} work-items of {self.run} windows each{why}"


def refusal(p: Problem) -> str:
    """Why the family does not take the problem; empty if it does."""
    return "the values are not transformed" if p.step is None else ""


def plan(p: Problem, traits: Traits, choices: Choices) -> WinogradPlan:
    """The plan for a problem that `refusal` accepts."""
    del choices
    if p.step is None:
        raise TypeError("not a transform")
    windows = _windows(p.dst, p.step) or p.dst
    run, along = (WINDOWS if traits.is_cpu else 1), windows.placed[-1].size
    return WinogradPlan(p, p.step, windows, places(windows) // along * -(-along // run), run)


def _windows(dst: MemoryDesc, step: Step) -> MemoryDesc | None:
    """The first values of all windows as a tensor in the same memory."""
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
