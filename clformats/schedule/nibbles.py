"""The nibbles family: reorders from or to 4-bit elements, two to a byte.

On CPUs only what no tile covers by whole bytes comes here. *Runs* of 16 elements are moved at a
time if the innermost loop is contiguous on both sides, has no guard, and begins with whole bytes.
All other reorders go element by element as in the generic family; a work-item then writes one byte,
two elements, of a 4-bit destination. Destinations that share a byte with anything else, see
`clformats.tensors.nibbles`, and elements of other widths are the generic family's.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from math import prod
from typing import ClassVar

from ..tensors import nibbles as tensors
from .body import Body
from .choices import Choices
from .problem import Node, Problem
from .traits import Traits

BITS = 4
RUN_ELEMENTS = 4096
"""The most elements of a run for one work-item."""
SHORTEST_RUN = 8
"""Shorter runs gain nothing by vectors."""


@dataclass(frozen=True, slots=True)
class NibblesPlan(Body):
    """``items`` work-items, for runs along ``inner`` inside the loops ``outer``, or for elements.

    ``inner`` is None for elements; ``why`` then gives the reason.
    """

    serves_any_size: ClassVar[bool] = True
    problem: Problem
    items: int
    inner: Node | None
    outer: tuple[Node, ...]
    why: str

    def __str__(self) -> str:
        if self.inner is not None:
            return (
                f"runs of {self.inner.size} elements, 16 at a time, "
                f"{RUN_ELEMENTS} at most for each of {self.items} work-items"
            )
        unit = "bytes" if self.problem.dst.dtype.is_packed else "places"
        return f"one work-item for each of {self.items} {unit}, no runs: {self.why}"


def refusal(p: Problem) -> str:
    """Why the family does not take the problem; empty if it does."""
    if p.has_image or p.step is not None:
        return p.why
    packed = [d.dtype for d in (p.src, p.dst, *p.operand_descs) if d.dtype.is_packed]
    if not packed:
        return "no element is narrower than a byte"
    if any(t.bits != BITS or t.is_float for t in packed):
        return "not all elements narrower than a byte are integers of four bits"
    return tensors.refusal(p.dst) if p.dst.dtype.is_packed else ""


def refusal_elsewhere(p: Problem) -> str:
    """Why families for whole bytes refuse a problem; empty if all elements are whole bytes."""
    packed = any(d.dtype.is_packed for d in (p.src, p.dst, *p.operand_descs))
    return "elements of less than a byte have no address of their own" if packed else ""


def refusal_of_loops(p: Problem) -> str:
    """Why no family for whole bytes takes a problem; empty if one may."""
    return p.why if p.nodes is None else refusal_elsewhere(p)


def plan(p: Problem, traits: Traits, choices: Choices) -> NibblesPlan:
    """The plan for a problem that `refusal` accepts."""
    del traits, choices
    why = _no_runs(p)
    if why:
        places = prod(d.size for d in p.dst.placed)
        return NibblesPlan(p, places // (2 if p.dst.dtype.is_packed else 1), None, (), why)
    *outer, inner = p.nodes or ()
    pieces = -(-inner.size.value // RUN_ELEMENTS)
    return NibblesPlan(p, pieces * prod(n.size.value for n in outer), inner, tuple(outer), "")


def _no_runs(p: Problem) -> str:
    if p.nodes is None:
        return p.why
    if p.guards:
        return "a side has padding, or a dimension that is no multiple of a block"
    if not p.nodes or (p.nodes[-1].src.value, p.nodes[-1].dst.value) != (1, 1):
        return "the elements are not contiguous on both sides"
    if p.nodes[-1].size.value < SHORTEST_RUN:
        return f"runs of {p.nodes[-1].size} elements are too short"
    return _no_vectors(p, p.nodes)


def _no_vectors(p: Problem, nodes: Sequence[Node]) -> str:
    *outer, inner = nodes
    if p.src.dtype.is_packed and (p.src0 % 2 or any(n.src.value % 2 for n in outer)):
        return "the source's runs start within a byte"
    # Two runs may make the bytes between them whole.
    if p.dst.dtype.is_packed and any(n.dst.value % 2 for n in outer):
        return "the destination's runs start within a byte"
    if any(d.dtype.is_packed for d in p.operand_descs):
        return "other values that are read have four bits too"
    if any(stride.value not in (0, 1) for stride in inner.operands):
        return "the values of an operand do not lie in the same order"
    return ""
