"""Several steps of a run that make a line together, though they lie apart in it.

Weights of 3 x 3 in ``oiyx`` are read in runs of 9 positions times the inputs. In a block of 16
outputs of two bytes an input of one position is half a line, and the other half, the next input of
that position, is 9 steps further on in the run. So a tile covers 18 steps, by two vectors of 16 of
which the second overlaps the first, and what the transposition makes of steps k and k + 9 is stored
as one line. That is 1.0 of a copy where half lines reach 0.43.
"""

from __future__ import annotations

from math import prod

from .lanes import Span
from .tile import TilePlan
from .traits import LINE_BYTES

MOST_VECTORS = 8
"""Vectors of a span at the most: all that they make is held until the lines are whole."""


def span_of(plan: TilePlan) -> Span | None:
    """The span that lets a tile of vectors shorter than a line store whole ones; None without."""
    lanes, line = plan.lanes, LINE_BYTES // plan.problem.dtypes[1].nbytes
    node = next((k for k, n in enumerate(plan.nodes) if n.parts and n.src.value == 1), None)
    square = plan.store_piece == plan.load_piece == lanes == 1 << len(plan.registers)
    if node is None or plan.problem.guards or not square or lanes >= line:
        return None
    parts = plan.nodes[node].parts
    halves = next((j for j, part in enumerate(parts) if j and part.dst.value == lanes), None)
    if halves is None or not _starts_at_lines(plan, node, halves, line):
        return None
    inner, count = prod(part.size.value for part in parts[:halves]), line // lanes
    for repeats in range(1, parts[halves].size.value // count + 1):
        span = Span(node, inner, count, repeats, lanes)
        divides = parts[halves].size.value % (count * repeats) == 0
        if divides and span.size >= lanes:
            return span if len(span.starts) <= MOST_VECTORS else None
    return None


def _starts_at_lines(plan: TilePlan, run: int, halves: int, line: int) -> bool:
    """Whether all but the part of the run that fills lines moves by whole ones."""
    nodes = [k for k in range(len(plan.nodes)) if k != run and plan.positions(k).value > 1]
    moves = [plan.nodes[k].dst.value << plan.bits[k] for k in nodes]
    parts = [part.dst.value for j, part in enumerate(plan.nodes[run].parts) if j != halves]
    return all(n % line == 0 for n in (*moves, *parts, plan.problem.dst0))
