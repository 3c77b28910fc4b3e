"""What a tile asks for before others read it: the texts for a walk that looks ahead.

The order is the point: addresses that follow each other are asked for one after the other, whatever
the order in which the tiles read them (`clformats.schedule.walk`).
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from ..formats.expr import Const, Expr, Var, total
from ..schedule.boxes import source_runs
from ..schedule.lanes import LANES_LOG2, Bit
from ..schedule.problem import FAR
from ..schedule.tile import TilePlan
from ..schedule.traits import LINE_BYTES
from ..schedule.walk import Reads
from .source import moved

NEAREST, SECOND = 3, 2
"""Into which cache: the hint of the builtin."""


@dataclass(frozen=True, slots=True)
class Share:
    """A tile's share of a piece of the source, of which tiles read parts that lie apart.

    ``lines``: where they begin, from ``next`` on, which is at ``begin``. That is where the tile
    would start if it overlapped none: to know where tiles overlap comes too late. With the address
    of the tile itself byxf -> bfyx reaches 0.75 of a copy, with this one 0.86.
    """

    begin: str
    lines: tuple[str, ...]
    hint: int = NEAREST


@dataclass(frozen=True, slots=True)
class Rows:
    """Some rows of the next box, each from end to end.

    A tile is number ``at`` of ``count`` along its rows, in boxes of ``box``, and asks for as many
    of the ``rows`` as make all of them in the end. ``row`` is how far one is, ``on`` the next box,
    where the row ``goes_on``, ``back`` the first one of the rows that follow; ``steps`` are those
    of a tile along a row, ``line`` of them are in a cache line.

    ``lines``: so many with each tile, between its stores, where boxes are collected; else 0, and
    each asks for whole rows first of all. With 100 channels of u8 it is 0.67 so, and 0.5 with whole
    rows, but tiles that store lines themselves, of 64 registers, lose up to a third.
    """

    at: str
    count: str
    rows: int
    row: str
    on: str
    back: str
    steps: int
    line: int
    lines: int
    hint: int = SECOND


@dataclass(frozen=True, slots=True)
class Box:
    """So many lines of the next box with each tile, or with every ``turns``-th one.

    The next box begins at ``begin``, which is known before the first tile. It has ``runs`` of
    ``lines`` lines each; behind a run ``skips`` elements are left out, more behind some of them:
    both are arguments, whose values `box_arguments` has.
    """

    begin: str
    lines: int
    turns: int
    line: int
    skips: int
    hint: int = SECOND


def box_arguments(plan: TilePlan) -> dict[str, int]:
    """The numbers that a kernel with a `Box` takes: how the lines of a box follow each other."""
    (run, _), *rows = source_runs(plan, plan.walk)
    line, counts = _line(plan), [-(-run // _line(plan)), *(count for count, _ in rows)]
    values, moved_on = {"box": plan.walk.ahead}, counts[0] * line
    for k, (count, step) in enumerate(rows):
        values[f"lines{k}"] = counts[k]
        values[f"skip{k}"] = step - moved_on
        moved_on = step * count
    return values


def asks_of(
    plan: TilePlan, src: Sequence[Expr], counts: Mapping[int, Expr]
) -> Share | Rows | Box | None:
    """The texts, if any; ``src``: strides, ``counts``: how many tiles follow each other."""
    path = plan.walk
    if path.reads is Reads.BOXES and path.middle is not None:
        return _box(plan, path.middle, src, str(counts[path.middle]))
    if path.middle is None or not path.ahead:
        return None
    if path.reads is Reads.ROWS:
        return _rows(plan, path.middle, src, str(counts[path.middle]))
    if path.reads is not Reads.PIECES:
        return None
    share = plan.lanes * plan.register_count
    step = src[path.middle] * (path.ahead * plan.steps_along(path.middle))
    lead = path.lead // plan.problem.dtypes[0].nbytes
    begin = total([Var("src0"), *(src[k] * (Var(f"at{k}") * plan.steps_along(k))
                                  for k in sorted((*path.outer, path.middle)))])  # fmt: skip
    at = (step if path.inner is None else step + Var(f"at{path.inner}") * share) + lead
    lines = tuple(moved("next", str(at + k)) for k in range(0, share, _line(plan)))
    return Share(str(begin), lines, NEAREST if path.near else SECOND)


def _box(plan: TilePlan, middle: int, src: Sequence[Expr], count: str) -> Box:
    outer, line = plan.walk.outer, _line(plan)
    steps = [plan.steps_along(k) for k in range(len(src))]
    others = total([Var("src0"), *(src[k] * (Var(f"at{k}") * steps[k]) for k in outer)])
    on = (Var("start") + Var("box")) * (src[middle] * steps[middle])
    back = src[outer[-1]] * steps[outer[-1]] if outer else Const(0)
    begin = f"{others} + (start + box < {count} ? {on} : {back})"
    read = plan.lanes * plan.register_count
    skips = len(source_runs(plan, plan.walk)) - 1
    return Box(begin, max(1, read // line), max(1, line // read), line, skips)


def _rows(plan: TilePlan, middle: int, src: Sequence[Expr], count: str) -> Rows:
    """The rows are what moves by a line or more; after them come those of the last outer loop."""
    outer, steps, line = plan.walk.outer, plan.steps_along(middle), _line(plan)
    apart = (*plan.load[plan.load_piece.bit_length() - 1 :], *plan.registers)
    far = [b for b in apart if plan.nodes[b.node].src.value << b.place >= line]
    bits = sorted(far, key=lambda b: (b.node, b.place))
    others = src[outer[-1]] * plan.steps_along(outer[-1]) if outer else Const(0)
    on = (Var("box") - Var("nth")) * (src[middle] * steps)
    back = others - Var(f"x{middle}") * src[middle]
    row, rows = _row("row", bits, src), 1 << len(bits)
    for k in {b.node for b in bits if plan.nodes[b.node].src.value == FAR}:
        # These rows are steps of a run: behind the last box those follow that are its next ones.
        start = f"x{k} + (goes_on ? 0 : {plan.steps_along(k)})" if k in outer[-1:] else f"x{k}"
        ones = [Const(int(n == k)) for n in range(len(src))]
        row = row + Var(f"PLACE{k}({start} + {_row('row', bits, ones)})")
    if plan.comb is not None and plan.interleaves[1]:
        # What is put together has such rows for each step of the short loop.
        row = _row(f"(row % {rows})", bits, src) + Var("row") // rows * src[plan.comb.node]
        rows *= plan.comb.size
    box = plan.walk.ahead
    # The last box of a row asks for as much as the others, if it has half as many tiles.
    last = max(plan.positions(middle).value % box or box, -(-box // 2))
    between = plan.walk.stage is not None and len(plan.groups[0]) <= 1 << LANES_LOG2
    lines = _in_halves(rows * -(-box * steps // line), last) if between else 0
    return Rows(f"at{middle}", count, rows, str(row), str(on), str(back), steps, line, lines)


def _in_halves(lines: int, tiles: int) -> int:
    """Lines for each of the tiles of a box; a half of the power of two below is the step.

    So sizes make few kernels.
    """
    each = -(-lines // tiles)
    half = max(1, (1 << each.bit_length() - 1) // 2)
    return -(-each // half) * half


def _row(number: str, bits: Sequence[Bit], src: Sequence[Expr]) -> Expr:
    """How far the row of a number is, of which each bit moves along a loop."""
    if bits and all(b == Bit(bits[0].node, bits[0].place + j) for j, b in enumerate(bits)):
        return Var(number) * (src[bits[0].node] * (1 << bits[0].place))
    moves = [src[b.node] * (1 << b.place) for b in bits]
    return total([Var(f"({number} >> {j} & 1)") * move for j, move in enumerate(moves)])


def _line(plan: TilePlan) -> int:
    """Elements of the source in a cache line."""
    return LINE_BYTES // plan.problem.dtypes[0].nbytes
