"""Blocks that do not divide each other, for work-groups: loops that only one side has.

A `Table` says where the steps of the destination's loops lie in the source. A work-group that moves
a common multiple of both blocks needs none: it reads it by the loops of the source, and writes it
by those of the destination. For blocks of 24 that become blocks of 16::

    tables    c/16 (9: ~51072,51072)  c/8%2 (2: ~25536,8)  c%8 (8: 1,1)
    splits    c/48 (3: 153216,153216)  c%8 (8: 1,1)      48 channels are two blocks, or three
              c/24%2 (2: 76608,-)  c/8%3 (3: 8,-)        the loops of the source
              c/16%3 (3: -,51072)  c/8%2 (2: -,8)        those of the destination

Where there are no more steps than a common multiple has, the loops cover all of them, and where the
elements are in one block of the source, its loops are those of the destination. Where padding
shifts blocks against each other, the source's loops begin earlier, with a block.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from math import lcm

from .guards import places
from .problem import Guard, Node, Number, Problem, Split, Table, fixed
from .refine import fuse, normalise
from .thresholds import BANK_BYTES, FEW_OF_BLOCK, MOST_PLACES, SHIFTED_BLOCKS, WHOLE_LOOP


def refusal(p: Problem) -> str:
    """Why the tables of a problem cannot be replaced; empty if they can."""
    packed = p.dst.dtype.is_packed or p.src.dtype.is_packed
    return p.tables[0].why if p.tables and packed else ""


def by_sides(p: Problem) -> Problem:
    """The problem with loops of each side in place of its tables."""
    if not p.tables or refusal(p):
        return p
    for number, table in enumerate(p.tables):
        p = _replaced(p, number, table)
    return fuse(normalise(replace(p, tables=())))


def by_padding(p: Problem) -> Problem:
    """The problem with loops of each side along dimensions of which blocks hold few elements.

    So a tile has no places for the padding of blocks on the side that has none. Not where elements
    have 32 bits and more, which lose little by it. 3 channels that become blocks of 16::

        one loop  c (16: 50176,1) of which 3 are elements
        splits    c (3: 50176,-), c (16: -,1)
    """
    if p.computation or p.is_split:
        return p
    for g in range(len(p.guards)):
        mine = sorted((n for n in p.nodes if n.guard == g), key=lambda n: n.unit)
        if mine and (side := _side_without_blocks(p, p.guards[g], mine)):
            p = _by_one_side(p, g, mine, side)
    return p


def _side_without_blocks(p: Problem, guard: Guard, mine: Sequence[Node]) -> str:
    """The side without blocks along a guard, if it gains by a loop of its own; else empty."""
    count, cover = guard.hi.value, places(mine)
    in_blocks = guard.block > 1, guard.end.value > count
    few = 1 < count <= WHOLE_LOOP and MOST_PLACES * count < cover <= 2 * WHOLE_LOOP
    if not few or guard.lo.value or mine[0].unit > 1 or in_blocks[0] == in_blocks[1]:
        return ""
    side = "dst" if in_blocks[0] else "src"
    strides = [(n.dst if side == "dst" else n.src).value for n in mine]
    is_row = all(a == n.unit * strides[0] for n, a in zip(mine, strides, strict=True))
    if not is_row or p.dtypes[side == "dst"].bits >= 8 * BANK_BYTES:
        return ""
    if strides[0] == 1:  # Work-items that store blocks load the few elements of a row one by one.
        return "" if side == "src" else side
    return side if FEW_OF_BLOCK * count <= cover else ""


def _by_one_side(p: Problem, g: int, mine: Sequence[Node], side: str) -> Problem:
    """The problem with one loop over a guard's elements on a ``side``, the blocks on the other."""
    index = 1 + max((n.split.index for n in p.nodes if n.split), default=-1)
    rest = [n for n in p.nodes if n.guard != g]
    elements = replace(mine[0], size=fixed(p.guards[g].hi.value))
    found = [_of_one_side(elements, Split(side, index, 1))]
    other = "dst" if side == "src" else "src"
    found += [_of_one_side(n, Split(other, index, n.unit)) for n in mine]
    return normalise(replace(p, nodes=(*rest, *found)))


def _of_one_side(n: Node, split: Split) -> Node:
    """A loop that only one side has."""
    if split.side == "src":
        return replace(n, dst=fixed(0), split=split)
    return replace(n, src=fixed(0), split=split)


def _replaced(p: Problem, number: int, table: Table) -> Problem:
    """The problem without the loops along a table, which is none for them any more."""
    mine = sorted((n for n in p.nodes if n.table and n.table[0] == number),
                  key=lambda n: n.steps_of(number))  # fmt: skip
    if not mine:  # there is only one step
        return replace(p, src0=p.src0 + table.place(table.first))
    rest = [n for n in p.nodes if not (n.table and n.table[0] == number)]
    every, (within, _), step = table.jumps[-1][0], table.jumps[1], table.jumps[0][1]
    count = 1 + sum((n.size.value - 1) * n.steps_of(number) for n in mine)
    begin, end = _elements(p, mine[0], number, count)
    if (table.first + begin) // within == (table.first + end - 1) // within:
        # All of it is in one block of the source.
        at = table.place(table.first + begin) - begin * step
        found = [replace(n, src=Number(n.steps_of(number) * step), table=None) for n in mine]
        return replace(p, nodes=(*rest, *found), src0=p.src0 + at)
    last, first = mine[-1], table.first % every
    p = replace(p, src0=p.src0 + table.place(table.first - first))
    largest = last.steps_of(number)
    whole = lcm(every, largest)
    if first:
        whole *= -(-SHIFTED_BLOCKS * every // whole)
    found = []
    if count > whole:
        times = fixed(whole // largest)
        outer = replace(last, size=Number(-(-count // whole)), src=Number(table.place(whole)),
                        dst=last.dst * times, operands=tuple(n * times for n in last.operands),
                        table=(number, whole))  # fmt: skip
        found, mine[-1] = [outer], replace(last, size=times)
    covered = min(end, whole) + first
    found += [replace(n, src=fixed(0), split=Split("dst", number, n.steps_of(number), first))
              for n in mine]  # fmt: skip
    ends = [begin for begin, _ in table.jumps[1:]] + [covered]
    still = tuple(fixed(0) for _ in last.operands)
    found += [
        Node(fixed(-(-min(end, covered) // begin)), Number(table.place(begin)), fixed(0),
             operands=still, table=(number, begin), split=Split("src", number, begin, first))
        for (begin, _), end in zip(table.jumps, ends, strict=True)
    ]  # fmt: skip
    p, guard, unit = _guarded(p, last, found, (number, count))
    found = [replace(n, guard=guard, unit=n.steps_of(number) * unit, table=None) for n in found]
    return replace(p, nodes=(*rest, *found))


def _elements(p: Problem, node: Node, number: int, count: int) -> tuple[int, int]:
    """Which of the steps of a table have elements, by a loop along it: the first, and their end."""
    if node.guard is None:
        return 0, count
    guard, unit = p.guards[node.guard], node.unit // node.steps_of(number)
    return guard.lo.value // unit, min(count, -(-guard.hi.value // unit))


def _guarded(
    p: Problem, last: Node, found: Sequence[Node], steps: tuple[int, int]
) -> tuple[Problem, int | None, int]:
    """The guard of loops that may reach beyond the steps, and by how much a step moves its index.

    ``steps``: the table, and how many of them there are.
    """
    number, count = steps
    if last.guard is not None:
        return p, last.guard, last.unit // last.steps_of(number)
    before = next(n.split.first for n in found if n.split)
    src, dst = (sum((n.size.value - 1) * n.steps_of(number) for n in found if n.is_of(side))
                for side in ("src", "dst"))  # fmt: skip
    if max(src - before, dst) < count:
        return p, None, 0
    end = Number(count)
    guard = Guard(f"index {number}", fixed(0), end, end)
    return replace(p, guards=(*p.guards, guard)), len(p.guards), 1
