"""Which tiles write whole cache lines, so that the destination need not be read before."""

from __future__ import annotations

from .lanes import Bit
from .problem import FAR
from .tile import TilePlan
from .traits import LINE_BYTES
from .walk import Tiles

LONG_RUN_BYTES = 256
"""A run of a tile's from which on it need not start at a line."""
VECTOR_REGISTERS = 32
"""What holds a tile and the lines that it carries on: what does not stay in registers is stored in
between the lines, and that costs as much as is gained."""


def stores_whole_lines(plan: TilePlan) -> bool:
    """Whether stores fill whole cache lines, each by stores that follow each other at once.

    That is one vector, or several side by side; where a tile has many of these in one run, the run
    need not start at a line: the next tile continues it. A vector itself must be aligned.
    """
    item = plan.problem.dtypes[1].nbytes
    if plan.store_piece != plan.lanes:
        return False
    stored, moves = _stored_run(plan)
    vector, run = plan.lanes * item, stored * item
    moves.append(plan.problem.dst0)
    if plan.comb and not plan.comb.joined[1]:
        moves.append(plan.nodes[plan.comb.node].dst.value)
    for k, node in enumerate(plan.nodes):
        overlaps = node.guard is None and node.size.value % (1 << plan.bits[k])
        if plan.positions(k).value > 1 and node.dst.value != FAR:
            moves.append(node.dst.value if overlaps else node.dst.value << plan.bits[k])
    unit = vector if run >= LONG_RUN_BYTES else LINE_BYTES
    return run >= LINE_BYTES and all(m * item % unit == 0 for m in moves)


def carrying_loop(plan: TilePlan, tiles: Tiles) -> int | None:
    """The loop along which each tile goes on by one line in every row; None where there is none.

    There rows that start anywhere in a line can be written in whole lines all the same.
    """
    item = plan.problem.dtypes[1].nbytes
    line = LINE_BYTES // item
    run, _ = _stored_run(plan)
    plain = item > 1 and plan.comb is None and not any(n.parts for n in plan.nodes)
    lines = plan.register_count * plan.lanes // line
    fits = lines + len(plan.groups[0]) <= VECTOR_REGISTERS
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
    run, moves = plan.lanes, []
    for stride in sorted(n for b in plan.store_registers for n in _moves(plan, b)):
        if stride == run:
            run *= 2
        else:
            moves.append(stride)
    return run, moves


def _moves(plan: TilePlan, bit: Bit) -> list[int]:
    """How far a bit of the registers moves in the destination."""
    node = plan.nodes[bit.node]
    return [part.dst.value for part in node.parts] or [node.dst.value << bit.place]
