"""Where guards end, and what of a guarded loop lies in memory together, as work-groups ask it."""

from __future__ import annotations

from collections.abc import Iterable

from .problem import Node, Problem


def places(nodes: Iterable[Node]) -> int:
    """How many indices of a guard its loops count: some of them, such as those of one side."""
    return 1 + sum((n.size.value - 1) * n.unit for n in nodes)


def is_limited(p: Problem, node: Node, side: str) -> bool:
    """Whether some steps of a loop are no elements of the source, or no places of the destination.

    With others of its guard on that side it counts more steps than there are.
    """
    if node.guard is None:
        return False
    guard = p.guards[node.guard]
    mine = [n for n in p.nodes if n.guard == node.guard and n.is_of(side)]
    end = guard.hi.value if side == "src" else guard.end.value
    return guard.lo.value > 0 or end < places(mine)


def block_of(p: Problem, guard: int) -> int:
    """The units of a block of the source that is loaded if some of it is there; else 0.

    The source has memory for all of it, padding too. What is no element is replaced by zero before
    it is stored. Where both sides split the index of a guard differently, a tile has whole blocks.
    """
    mine = [n for n in p.nodes if n.guard == guard and n.is_of("src")]
    block = p.guards[guard].block
    if splits := [n.split for n in p.nodes if n.guard == guard and n.split]:
        is_one = places(mine) <= block and not any(s.first for s in splits)
        return block if is_one else max((n.unit for n in mine if n.split), default=1)
    straddles = any(n.unit < block < n.unit * n.size.value for n in mine)
    return 0 if block == 1 or straddles or p.exchanges else block


def limits(p: Problem, node: Node, side: str, *, stored: bool) -> list[int]:
    """The limits of a node's guard in steps of it; 1 for one that lies between two steps.

    Where values are ``stored`` as they lie in local memory, zeros among them, only the end counts.
    """
    if node.guard is None:
        return []
    guard = p.guards[node.guard]
    found = [n.value for n in ((guard.end,) if stored else (guard.lo, guard.hi, guard.end))]
    found += [n.unit for n in p.nodes if n.guard == node.guard and n.is_of(side) and n is not node]
    return [1 if n % node.unit else n // node.unit for n in found]
