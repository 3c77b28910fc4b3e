"""Short loops that lie one in the other on one side, seen as one long loop.

The innermost loop of 3x3 weights has 9 steps, which fill no vector. But in ``oiyx`` the next loop
follows it: 9 x 1024 elements in one run. Vectors are loaded from this run as if it were one loop,
and what the transposition makes of them, whole vectors of another loop, goes to places that are
computed: for step q of the run, ``q % 9`` of one stride and ``q / 9`` of the other. The same with
the sides exchanged.
"""

from __future__ import annotations

from dataclasses import replace
from math import prod

from .lanes import LANES_LOG2, run_of
from .problem import FAR, Node, Number, Problem, fixed

SHORT = 64
"""Longer loops end a run: what is below them is divided by, and so part of the structure."""


def flattened(p: Problem) -> Problem:
    """The problem with such loops as one; itself where a side has none or something is in the way.

    The values of operands would need places of their own, so there must be none.
    """
    if p.nodes is None or any(n.operands for n in p.nodes):
        return p
    for side, other in (("src", "dst"), ("dst", "src")):
        chain = _chain(p, side, other)
        if chain:
            return _joined(p, chain, other)
    return p


def _chain(p: Problem, side: str, other: str) -> list[int]:
    """The nodes, innermost first, that are one run on a side; none where that gains nothing."""
    nodes = p.nodes or ()
    strides = [getattr(n, side).value for n in nodes]
    taken = {bit.node for bit in run_of(p, other, LANES_LOG2)}
    chain: list[int] = []
    reached = 1
    while reached in strides:
        k = strides.index(reached)
        if k in taken or nodes[k].guard is not None:
            break
        chain.append(k)
        reached *= nodes[k].size.value
        if nodes[k].size.value > SHORT:
            break
    lanes = 1 << LANES_LOG2
    sizes = [nodes[k].size.value for k in chain]
    short = len(chain) > 1 and sizes[0] < lanes and sizes[0] & (sizes[0] - 1)
    return chain if short and taken and prod(sizes) >= lanes else []


def _joined(p: Problem, chain: list[int], other: str) -> Problem:
    nodes = p.nodes or ()
    parts = [nodes[k] for k in chain]
    sizes = [n.size for n in parts]
    # What is divided by is a constant; the outermost part is not.
    parts = [replace(n, size=fixed(n.size.value)) for n in parts[:-1]] + parts[-1:]
    size = Number(prod(s.value for s in sizes), all(s.fixed for s in sizes))
    one, far = fixed(1), Number(FAR)
    src, dst = (far, one) if other == "src" else (one, far)
    run = Node(size, src, dst, parts=tuple(parts))
    kept = [n for k, n in enumerate(nodes) if k not in chain]
    return replace(p, nodes=(*kept, run))
