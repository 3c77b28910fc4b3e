"""Problems of 4-bit elements as problems of bytes.

Where both sides have the same two elements in a byte, bytes are moved as they are. Otherwise a byte
of the source has two steps of one loop, a byte of the destination two steps of another one. Two by
two elements are then two bytes on either side, and one half of each goes to the other byte. With
the loops a and b, and ``|`` between the bytes::

    source        a0b0 a1b0 | a0b1 a1b1        a is contiguous in the source
    destination   a0b0 a0b1 | a1b0 a1b1        b is contiguous in the destination

So both loops go in steps of two, and a loop over these two bytes is added, `Problem.exchange`. It
moves by b's stride in the source and by a's in the destination. Kernels exchange the halves as they
load: of each step they read both bytes.
"""

from __future__ import annotations

from dataclasses import replace

from ..tensors.dtypes import as_dtype
from .coarse import part, whole_at
from .nibbles import refusal_elsewhere
from .problem import Node, Problem, fixed
from .refine import normalise


def refusal(p: Problem) -> str:
    """Why 4-bit elements are not moved in bytes; empty if they are, or none is so narrow."""
    if not refusal_elsewhere(p):
        return ""
    if p.src.dtype != p.dst.dtype or p.computation:
        return "values of four bits change on the way"
    inner = _inner(p)
    if inner is None or inner[1].src.value == 0:
        return "elements of a byte lie apart on the other side"
    if any(n % 2 for n in _moves(p, *inner)):
        return "a size or a stride is odd: elements begin within a byte"
    if any(n.guard is not None and not whole_at(p, n, 2) for n in inner):
        return "the elements of a dimension end within a byte"
    return ""


def _moves(p: Problem, a: Node, b: Node) -> list[int]:
    """Offsets, sizes and strides that are even where loops of two elements have whole bytes."""
    nodes = p.nodes or ()
    across = [n.src.value for n in nodes if n is not a] + [n.dst.value for n in nodes if n is not b]
    return [p.src0, p.dst0, a.size.value, b.size.value, *across]


def in_bytes(p: Problem) -> Problem:
    """The problem in bytes if it is one of 4-bit elements that `refusal` accepts; else itself."""
    inner = _inner(p) if refusal_elsewhere(p) else None
    if inner is None or refusal(p):
        return p
    a, b = inner
    nodes = [_halved(n, a, b) for n in p.nodes or ()]
    exchanged = None
    if a is not b:
        exchanged = Node(fixed(2), part(b.src, 2), part(a.dst, 2))
        nodes.append(exchanged)
    whole = normalise(replace(p, nodes=tuple(nodes), src0=p.src0 // 2, dst0=p.dst0 // 2,
                              word=as_dtype("u8")))  # fmt: skip
    at = next((k for k, n in enumerate(whole.nodes or ()) if n is exchanged), None)
    return replace(whole, exchange=at)


def _inner(p: Problem) -> tuple[Node, Node] | None:
    """The loops that are contiguous in the source and in the destination, which may be one."""
    nodes = p.nodes or ()
    a = next((n for n in nodes if n.src.value == 1), None)
    b = next((n for n in nodes if n.dst.value == 1), None)
    return (a, b) if a and b else None


def _halved(n: Node, a: Node, b: Node) -> Node:
    """A loop with strides in bytes, in steps of two elements where bytes have those."""
    if n is not a and n is not b:
        return replace(n, src=part(n.src, 2), dst=part(n.dst, 2))
    # Two steps are twice as far, in units of half the size.
    src, dst = (fixed(1) if a is b or n is side else stride
                for side, stride in ((a, n.src), (b, n.dst)))  # fmt: skip
    return replace(n, size=part(n.size, 2), src=src, dst=dst, unit=2 * n.unit)
