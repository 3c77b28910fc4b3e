"""A plan in a few lines, with what may be a mistake."""

from __future__ import annotations

from collections.abc import Sequence

from .cost import Cost
from .decision import Decision
from .kernels import UNKNOWN

SHOWN = 6
"""A list shows this many things, and counts the others."""


def summary(plan: Decision) -> str:
    """The plan in a few lines."""
    proof = (
        "the least there is" if plan.exact else f"at most {100 * plan.gap:.2g} % above the least"
    )
    lines = [
        f"{len(plan.choices)} nodes, {plan.seconds * 1e3:.4g} ms by these costs, {proof}",
        f"{len(plan.reorders)} reorders, {plan.reorder_seconds * 1e3:.4g} ms",
    ]
    for r in plan.reorders:
        cost = plan.cost(r)
        lines.append(
            f"  {r.value}: {r.src} -> {r.dst} for {', '.join(r.readers) or 'other reorders'}, "
            f"{cost.seconds * 1e6:.4g} us ({cost.source})"
        )
    return "\n".join([*lines, *_doubts(plan)])


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
