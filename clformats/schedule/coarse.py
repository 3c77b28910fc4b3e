"""Elements that stay together on both sides, moved as words: fewer of them, and as wide as banks.

Where the innermost loop is contiguous on both sides and bytes are moved as they are, two or four
elements of it are one word, if words start and end with blocks, guards and rows.
"""

from __future__ import annotations

from dataclasses import replace

from ..tensors.dtypes import DType, as_dtype
from .problem import Guard, Node, Number, Problem


def words_of(nbytes: int) -> DType:
    """A type for words of 1, 2 or 4 bytes whose bits are only moved."""
    return as_dtype({1: "u8", 2: "f16", 4: "f32"}[nbytes])


def coarse(p: Problem, most: int) -> Problem:
    """The problem in words of 4 or 2 bytes where elements keep together in those; else itself.

    No word is longer than ``most`` bytes.
    """
    nodes = p.nodes or ()
    src, dst = p.dtypes
    if src != dst or p.computation:
        return p
    inner = next((k for k, n in enumerate(nodes) if n.src.value == n.dst.value == 1), None)
    for word in (4, 2):
        count = word // dst.nbytes
        if inner is not None and count > 1 and word <= most and _keeps(p, inner, count):
            coarse = [_node_of(n, count, is_inner=k == inner, inside=nodes[inner].guard == n.guard)
                      for k, n in enumerate(nodes)]  # fmt: skip
            guards = tuple(
                _guard_of(g, count) if j == nodes[inner].guard else g
                for j, g in enumerate(p.guards)
            )
            left = tuple(n for n in coarse if n.size.value > 1)
            return replace(
                p, nodes=left, guards=guards, src0=p.src0 // count, dst0=p.dst0 // count,
                word=words_of(word),
            )  # fmt: skip
    return p


def _keeps(p: Problem, inner: int, count: int) -> bool:
    """Whether groups of ``count`` elements stay together and start at multiples of that."""
    nodes = p.nodes or ()
    numbers = [p.src0, p.dst0, nodes[inner].size.value]
    numbers += [s.value for k, n in enumerate(nodes) if k != inner for s in (n.src, n.dst)]
    if nodes[inner].guard is None:
        return not any(n % count for n in numbers)
    unit_is_one = nodes[inner].unit == 1
    return unit_is_one and not any(n % count for n in numbers) and whole_at(p, nodes[inner], count)


def _node_of(n: Node, count: int, *, is_inner: bool, inside: bool) -> Node:
    if is_inner:
        return replace(n, size=part(n.size, count))
    unit = n.unit // count if n.guard is not None and inside else n.unit
    return replace(n, src=part(n.src, count), dst=part(n.dst, count), unit=unit)


def _guard_of(g: Guard, count: int) -> Guard:
    return replace(
        g, lo=part(g.lo, count), hi=part(g.hi, count), end=part(g.end, count),
        source=(g.source[0] // count, g.source[1] // count), block=max(1, g.block // count),
    )  # fmt: skip


def part(n: Number, count: int) -> Number:
    """A size, stride or limit in groups of ``count`` elements."""
    return Number(n.value // count, n.fixed)


def whole_at(p: Problem, inner: Node, width: int, *, stored: bool = False) -> bool:
    """Whether the limits of a guard lie between vectors along the node.

    Where values are ``stored`` as they lie in local memory, zeros among them, only the end counts.
    """
    guard, step = p.guards[inner.guard or 0], inner.unit * width
    limits = [n.value for n in ((guard.end,) if stored else (guard.lo, guard.hi, guard.end))]
    others = [n.unit for n in p.nodes or () if n.guard == inner.guard and n is not inner]
    return not any(n % step for n in [*limits, *others])
