"""Lines joined from several registers, where a short loop lies inside the lanes' own in a run.

``oiyx`` weights of 3 x 3 are runs of 9 positions times the inputs; in ``os_is_yx_osv16_isv4`` four
inputs of one position lie side by side. Of the 9 positions a vector takes 8: stored so, they are
pieces of a line. But 16 inputs are 144 steps of the run, 9 whole lines. So a tile has all
positions, in groups of powers of two, 8 and 1. Each group is transposed by itself, which leaves two
inputs of 8 positions in a register; and each line is joined from those registers that have a part
of it, mostly three, by shuffles of two whose patterns are known beforehand. These are 4 to 5 for a
vector. Of a copy that is 1.0 where vectors of 8 positions reach 0.35; ``bfyx`` to ``byxf`` with 12
channels, whose vectors are of 4, 1.0 instead of 0.55.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import lru_cache
from itertools import groupby, product, takewhile

from .lanes import LANES_LOG2, Bit, run_of
from .network import network
from .problem import Node, Problem
from .traits import LINE_BYTES

MOST_VECTORS = 160
"""Vectors of a tile at the most: each is six statements, and 144 take two seconds to compile."""
MOST_STEPS = 64
"""Steps of the short loop at the most."""
LEAST_BYTES = 8
"""Shorter vectors are not put together to lines."""

Label = tuple[int, int]
"""An element of the tile: its row, and its place in the row."""


@dataclass(frozen=True, slots=True)
class Join:
    """How the lines of a tile are made of what it loads; values are numbered in this order.

    ``loads``: (step of loop ``node``, register) of each vector; ``size`` is how many steps there
    are. ``mixes``: (a, b, pattern), whose lanes are those of values a and b, one behind the other,
    that the pattern names. ``stores``: (value, row, place in the row) of each vector.
    """

    node: int
    size: int
    loads: tuple[tuple[int, int], ...]
    mixes: tuple[tuple[int, int, tuple[int, ...]], ...]
    stores: tuple[tuple[int, int, int], ...]

    @property
    def patterns(self) -> list[tuple[int, ...]]:
        """The patterns of the shuffles, each once."""
        return sorted({pattern for _, _, pattern in self.mixes})

    def lines(self, length: int) -> list[tuple[int, int, list[int]]]:
        """(row, place in it, values) of each line of so many elements."""
        near = sorted((place // length, row, place, value) for value, row, place in self.stores)
        return [(row, line * length, [value for *_, value in parts])
                for (line, row), parts in groupby(near, lambda s: s[:2])]  # fmt: skip

    def needed(self, value: int, ready: set[int]) -> Iterator[int]:
        """The values that are to be computed for one, itself last, but those that are ready."""
        if value in ready:
            return
        ready.add(value)
        if value >= len(self.loads):
            for part in self.mixes[value - len(self.loads)][:2]:
                yield from self.needed(part, ready)
        yield value

    def __str__(self) -> str:
        return f"x all {self.size} of loop {self.node}, {len(self.mixes)} shuffles to join lines"


@dataclass(frozen=True, slots=True)
class Shape:
    """What a tile that joins lines covers: all of loop ``node``, and these bits.

    ``load`` are the lanes of a load, ``inside`` the bits that lie around the loop in a row of the
    tile, lowest first.
    """

    node: int
    size: int
    load: tuple[Bit, ...]
    inside: tuple[Bit, ...]

    @property
    def lanes(self) -> range:
        """The lanes of a vector."""
        return range(1 << len(self.load))

    @property
    def rows(self) -> tuple[Bit, ...]:
        """The bits of the rows."""
        return tuple(b for b in self.load if b not in self.inside)

    @property
    def registers(self) -> tuple[Bit, ...]:
        """The bits that lead to other vectors of the source, for each step of the loop."""
        return tuple(b for b in self.inside if b not in self.load)

    def bits_of(self, node: int) -> int:
        """Log2 of how many steps of another loop the tile covers."""
        return max((b.place + 1 for b in (*self.load, *self.inside) if b.node == node), default=0)

    def label(self, step: int, register: int, lane: int) -> Label:
        """What a load has in a lane."""
        on = {b: lane >> j & 1 for j, b in enumerate(self.load)}
        on |= {b: register >> j & 1 for j, b in enumerate(self.registers)}
        row = sum(on[b] << j for j, b in enumerate(self.rows))
        return row, step + self.size * sum(on[b] << j for j, b in enumerate(self.inside))


def shape_of(p: Problem, lanes: int = LANES_LOG2, *, whole: bool = True) -> Shape | None:
    """The tile that joins lines; None where the problem has none.

    ``lanes`` is log2 of a vector's. ``whole``: only where all lines are those of memory.
    """
    nodes, item = p.nodes or (), p.dtypes[1].nbytes
    node = next((k for k, n in enumerate(nodes) if n.dst.value == 1 != n.src.value), None)
    if node is None or p.guards or p.computation or item << lanes < LEAST_BYTES:
        return None
    size, load = nodes[node].size.value, run_of(p, "src", lanes)
    divides = size & -size
    if divides == size or size > MOST_STEPS or len(load) < lanes or node in {b.node for b in load}:
        return None
    line = max(LINE_BYTES // item, 1 << lanes)
    least = (line // min(divides, line)).bit_length() - 1
    inside, more = (_around(nodes, size, n, whole=whole) for n in (least, max(least, lanes)))
    inside += tuple(takewhile(load.__contains__, more[len(inside) :]))
    shape = Shape(node, size, load, inside)
    fills = (size << len(inside)) % line == 0
    if not fills or not {*inside} & {*load} or size << len(shape.registers) > MOST_VECTORS:
        return None
    return shape if not whole or _starts_at_lines(p, shape, line) else None


def _around(nodes: Sequence[Node], size: int, count: int, *, whole: bool) -> tuple[Bit, ...]:
    """The lowest bits of the loops around the short one in its run, so many at the most."""
    strides = [n.dst.value for n in nodes]
    bits: list[Bit] = []
    reached = size
    while len(bits) < count and reached in strides:
        k = strides.index(reached)
        steps = nodes[k].size.value
        block = steps & -steps
        take = min((block if whole else steps).bit_length() - 1, count - len(bits))
        if nodes[k].size.fixed and block == steps:
            # Of a block no part is left: what is left would lie between what other tiles read.
            take = block.bit_length() - 1
        bits += [Bit(k, j) for j in range(take)]
        if 1 << take != steps:
            break
        reached *= steps
    return tuple(bits)


def _starts_at_lines(p: Problem, shape: Shape, line: int) -> bool:
    """Whether all tiles, and all rows in them, start at lines of the destination."""
    nodes = p.nodes or ()
    moves = [p.dst0, *(nodes[b.node].dst.value << b.place for b in shape.rows)]
    for k, node in enumerate(nodes):
        steps = 1 << shape.bits_of(k)
        if k != shape.node and node.size.value > steps:
            # The last tile overlaps the one before where it must.
            moves.append(node.dst.value * (1 if node.size.value % steps else steps))
    return all(n % line == 0 for n in moves)


@lru_cache(maxsize=64)
def join_of(shape: Shape, near: int) -> Join:
    """How the tile's lines are made; ``near``: see `clformats.schedule.network.network`."""
    registers = range(1 << len(shape.registers))
    loads = [(step, r) for step in range(shape.size) for r in registers]
    work = _Values(shape, [[shape.label(*load, lane) for lane in shape.lanes] for load in loads])
    final: list[int] = []
    for first, bits in groups(shape.size, len(shape.load)):
        final += work.transposed(first, bits, near)
    found = {label: value for value in final for label in work.holds[value]}
    places = range(0, shape.size << len(shape.inside), len(shape.lanes))
    stores = [(work.joined(row, place, found), row, place)
              for place, row in product(places, range(1 << len(shape.rows)))]  # fmt: skip
    return Join(shape.node, shape.size, tuple(loads), tuple(work.mixes), tuple(stores))


def groups(size: int, most: int) -> Iterator[tuple[int, int]]:
    """The steps of the short loop in powers of two: the first step, and how many bits."""
    first = 0
    while first < size:
        bits = min(most, (size - first).bit_length() - 1)
        yield first, bits
        first += 1 << bits


class _Values:
    """What there is in each lane of each value, and how values are made from others."""

    def __init__(self, shape: Shape, loads: list[list[Label]]) -> None:
        self.shape = shape
        self.holds = loads
        self.mixes: list[tuple[int, int, tuple[int, ...]]] = []

    def mix(self, a: int, b: int, pattern: tuple[int, ...]) -> int:
        """The value that a pattern makes of two."""
        both = self.holds[a] + self.holds[b]
        self.mixes.append((a, b, pattern))
        self.holds.append([both[k] for k in pattern])
        return len(self.holds) - 1

    def transposed(self, first: int, bits: int, near: int) -> list[int]:
        """A group of steps from ``first`` on, with the steps and then the loops around in lanes."""
        shape = self.shape
        count = len(shape.registers)
        values = [*range(first << count, (first << count) + (1 << count + bits))]
        if not bits:
            return values
        steps = tuple(Bit(shape.node, j) for j in range(bits))
        wanted = (*steps, *shape.inside)[: len(shape.load)]
        rest = tuple(b for b in (*shape.rows, *shape.load) if b not in wanted)
        wanted = (*wanted, *rest)[: len(shape.load)]
        for step in network(shape.load, (*shape.registers, *steps), wanted, near)[0]:
            if step.register is None:
                values = [self.mix(v, v, step.low) for v in values]
                continue
            bit = 1 << step.register
            for a in (k for k in range(len(values)) if not k & bit):
                pair = values[a], values[a | bit]
                values[a], values[a | bit] = self.mix(*pair, step.low), self.mix(*pair, step.high)
        return values

    def joined(self, row: int, place: int, found: Mapping[Label, int]) -> int:
        """The vector of a row from a place on; ``found`` says in which value an element is."""
        lanes = self.shape.lanes
        wanted = [(row, place + lane) for lane in lanes]
        # Those first that have most: what is there stays where it is.
        parts = Counter(found[label] for label in wanted).most_common()
        value = parts[0][0]
        if len(parts) == 1 and self.holds[value] == wanted:
            return value
        for k, (other, _) in enumerate(parts[1:] or parts):
            here = [*lanes] if k else self._lanes(value, wanted)
            there = self._lanes(other, wanted)
            pattern = (a if b is None else b + len(lanes) for a, b in zip(here, there, strict=True))
            value = self.mix(value, other, tuple(n or 0 for n in pattern))
        return value

    def _lanes(self, value: int, wanted: Sequence[Label]) -> list[int | None]:
        """In which lane of a value each element is; None where it is in another one."""
        at = {label: lane for lane, label in enumerate(self.holds[value])}
        return [at.get(label) for label in wanted]
