"""Which tiles write whole cache lines, so that the destination need not be read before."""

from __future__ import annotations

from math import gcd

from .lanes import Bit
from .problem import FAR
from .tile import TilePlan
from .traits import LEAST_STREAMED_BYTES, LINE_BYTES
from .walk import Tiles

LONG_RUN_BYTES = 256
"""A run of a tile's from which on it need not start at a line."""
VECTOR_REGISTERS = 32
"""What holds a tile and the lines that it carries on: what does not stay in registers is stored in
between the lines, and that costs as much as is gained."""


def streamed_piece(plan: TilePlan) -> int:
    """How many lanes are stored past the cache at once; 0 where stores do not fill whole lines.

    They do by vectors that follow each other at once, one or several side by side. Where a tile has
    many of these in one run, the run need not start at a line: the next tile continues it. A store
    itself must be aligned, so that it may take a part of a vector alone.
    """
    item = plan.problem.dtypes[1].nbytes
    if plan.store_piece != plan.lanes:
        return 0
    stored, moves = _stored_run(plan)
    run = stored * item
    moves.append(plan.problem.dst0)
    if plan.comb and not plan.comb.joined[1]:
        moves.append(plan.nodes[plan.comb.node].dst.value)
    for k, node in enumerate(plan.nodes):
        if plan.positions(k).value > 1 and node.dst.value != FAR:
            moves.append(node.dst.value << plan.bits[k])
            if node.guard is None:
                # The last tile may overlap the one before: it ends where the loop does.
                moves.append(node.dst.value * (node.size.value - (1 << plan.bits[k])))
    starts = gcd(LINE_BYTES, *(m * item for m in moves))
    least = LEAST_STREAMED_BYTES if run >= LONG_RUN_BYTES else LINE_BYTES
    return min(plan.lanes, starts // item) if run >= LINE_BYTES and starts >= least else 0


def carrying_loop(plan: TilePlan, tiles: Tiles, *, kept: bool = False) -> int | None:
    """The loop along which each tile goes on by one line in every row; None where there is none.

    There rows that start anywhere in a line can be written in whole lines all the same. ``kept``
    says that the lines wait in memory: then registers need not hold them.
    """
    item = plan.problem.dtypes[1].nbytes
    line = LINE_BYTES // item
    run, _ = _stored_run(plan)
    plain = (item > 1 or kept) and plan.comb is None and not any(n.parts for n in plan.nodes)
    lines = plan.register_count * plan.lanes // line
    fits = kept or lines + len(plan.groups[0]) <= VECTOR_REGISTERS
    if not (plain and fits) or plan.store_piece != plan.lanes or run != line:
        return None
    for k, node in enumerate(plan.nodes):
        if tiles.dst_steps[k] == line and tiles.counts[k] > 1 and node.guard is None:
            return k
    return None


def rows_follow(plan: TilePlan, along: int) -> bool:
    """Whether each row of a tile ends where the next one begins, so that they are one run."""
    _, moves = _stored_run(plan)
    size, step = plan.nodes[along].size.value, plan.nodes[along].dst.value
    return step == 1 and moves == [size << j for j in range(len(moves))] != []


def _stored_run(plan: TilePlan) -> tuple[int, list[int]]:
    """Elements that registers store side by side, and how far those move that do not."""
    times = plan.comb.size if plan.comb and plan.interleaves[1] else 1
    run, moves = plan.lanes * times, []
    for stride in sorted(n for b in plan.store_registers for n in _moves(plan, b)):
        if stride == run:
            run *= 2
        else:
            moves.append(stride)
    return run, moves


def _moves(plan: TilePlan, bit: Bit) -> list[int]:
    """How far a bit of the registers moves in the destination."""
    node = plan.nodes[bit.node]
    if node.dst.value == FAR:
        return [part.dst.value for part in node.parts]
    return [node.dst.value << bit.place]
