"""The loops of a kernel over the tiles of a plan, as texts: which there are, where tiles start."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from ..formats.expr import Expr, Var, total
from ..schedule.tile import TilePlan
from ..schedule.walk import Reads


@dataclass(frozen=True, slots=True)
class Loop:
    """A loop of the kernel: ``variable`` runs from ``first`` to below ``last`` by ``step``."""

    variable: str
    first: str
    last: str
    step: str = "1"


@dataclass(frozen=True, slots=True)
class Loops:
    """The loops over the tiles; ``sizes`` of the plan's nodes. ``at<k>`` counts tiles of node k."""

    plan: TilePlan
    sizes: Sequence[Expr]

    def positions(self, node: int) -> Expr:
        """How many tiles follow each other along a node."""
        steps, size = self.plan.steps_along(node), self.sizes[node]
        if self._spans(node):
            return size // steps
        return (size + (steps - 1)) // steps

    def along(self, node: int) -> Loop:
        """The loop over all tiles of a node."""
        return Loop(f"at{node}", "0", str(self.positions(node)))

    def inside(self, first: str = "first", last: str = "last") -> list[Loop]:
        """Those inside a work-item, from the outermost; the middle one from ``first`` on."""
        walk = self.plan.walk
        if walk.reads is Reads.BOXES:
            of_box = Loop(f"at{walk.middle}", "start", "min(start + box, last)")
            box = [of_box if k == walk.middle else self.along(k) for k in walk.inside]
            return [Loop("start", "first", "last", "box"), *box]
        loops = [Loop(f"at{walk.middle}", first, last)] if walk.middle is not None else []
        loops += [self.along(walk.inner)] if walk.inner is not None else []
        return loops[::-1] if walk.swapped else loops

    def starts(self) -> list[tuple[str, str]]:
        """The variables that say where the tile starts: ``x<k>`` along node k."""
        return [(f"x{k}", str(self._start(k))) for k in sorted(self.plan.walk.loops)]

    def base(self, start: str, strides: Sequence[Expr]) -> str:
        """Where the tile starts on a side, from the variables, in elements."""
        moving = self.plan.walk.loops
        products = [Var(f"x{k}") * s for k, s in enumerate(strides) if k in moving]
        return str(total([Var(start), *products]))

    def _start(self, node: int) -> Expr:
        """Where the tile starts along a node; the last tile of an unguarded one overlaps."""
        plan, steps = self.plan, self.plan.steps_along(node)
        start = Var(f"at{node}") * steps
        size = plan.nodes[node].size
        divides = steps == 1 or (size.fixed and size.value % steps == 0)
        if divides or self._spans(node) or plan.nodes[node].guard is not None:
            return start
        return Var(f"min({start}, {self.sizes[node] - steps})")

    def _spans(self, node: int) -> bool:
        """Whether tiles go along a span, which has no part of one left."""
        return self.plan.span is not None and node == self.plan.span.node
