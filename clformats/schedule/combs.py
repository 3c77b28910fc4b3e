"""Short loops that memory interleaves: channels of an image, a batch that lies innermost.

The innermost loop of ``yxfb`` with a batch of 3 fills no vector, and what lies around it, the
features, has its steps 3 apart. But 16 steps of that are 3 vectors in one run, and shuffles make of
them one vector for each of the batch. So the tile is planned as if the short loop were not there
and the others were nearer, and it is moved as often as the loop has steps; only that what is loaded
is taken apart first. The same with the sides exchanged: what is stored is put together last. Of a
copy, ``yxfb`` to blocks with a batch of 3 and 5: 0.8 to 1.1, where single elements
that are gathered reach 0.04 to 0.7; 0.35 to 0.6 where rows start anywhere. From padded blocks to
``yxfb`` 0.35 to 0.7 instead of 0.2 to 0.45; from whole ones lines are joined
(`clformats.schedule.join`).

Tiles at an edge are gathered: there the run is not whole.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

from .lanes import LANES_LOG2, Bit, Comb, lane_run, lanes_of, run_of
from .network import deinterleave, interleave
from .problem import FAR, Node, Number, Problem
from .traits import LEAST_STREAMED_BYTES

SIZES = (3, 5, 6, 7)
"""Loops that are taken apart or put together; powers of two are bits of a tile like others."""
LONGER_SIZES = (*SIZES, *range(9, 16))
"""Those that are put together from elements of two bytes and more: 0.7 to 0.9 instead of 0.35 to
0.55. Taken apart, and in bytes, these are as fast or slower than tiles of 8 that overlap."""
MOST_REGISTERS = 64
"""Registers of such a tile, at the most: twice as many as there are. 40 of them, five times the
lines of four positions in ``b_fs_yx_fsv4``, are 0.8 where halves of lines are 0.27. Half as many
where values become narrower, but for whole lines: 0.36 instead of 0.24 in f32 ``OIhw16i16o4i`` to
bf16 ``oiyx``."""
MOST_EDGE_REGISTERS = 36
"""Registers at the most where tiles lie at edges too, whose lanes are stored one by one: 60 of them
take compilers 5 to 6 seconds, 40 that become f64 4 seconds, 48 of f32, three times 16 x 16, one of
them more than a minute; 36, nine times four, 1 to 2."""


@dataclass(frozen=True, slots=True)
class Arrangement:
    """What lies in the lanes of loads and stores, and what is interleaved.

    ``seen`` is the problem as the lanes see it: without the comb's loop, the others nearer.
    """

    seen: Problem
    load: tuple[Bit, ...]
    store: tuple[Bit, ...]
    comb: Comb | None = None

    def piece(self, side: str) -> int:
        """How many of the lowest lanes are one run on a side."""
        lanes = self.load if side == "src" else self.store
        if self.comb is not None and self.comb.is_woven:
            return 1 << len(lanes)
        return lane_run([getattr(n, side).value for n in self.seen.nodes or ()], lanes, 1)


def arranged(p: Problem, most: int = LANES_LOG2, read: int = LANES_LOG2) -> Arrangement:
    """The arrangement; without lanes where neither side has a run of 4 elements.

    ``most`` is log2 of the longest vector, ``read`` that of what a load takes of a run.
    """
    if woven := _woven(p, most):
        bits = tuple(Bit(woven[1], j) for j in range(most))
        nodes = list(p.nodes or ())
        short = nodes[woven[0]]
        nodes[woven[0]] = replace(short, src=Number(FAR), dst=Number(FAR))
        seen = replace(p, nodes=tuple(nodes))
        return Arrangement(seen, bits, bits, Comb(woven[0], short.size.value, (True, True), ()))
    return (
        _combed(p, most, read, "src")
        or _combed(p, most, read, "dst")
        or Arrangement(p, *lanes_of(p, most, read))
    )


def _combed(p: Problem, most: int, read: int, side: str) -> Arrangement | None:
    """The arrangement with the loop that a side interleaves; None where there is none.

    Operands are read in the order of the destination, which must not interleave them alone.
    """
    found = next((k for k, n in enumerate(p.nodes or ()) if getattr(n, side).value == 1), None)
    if found is None or p.word:
        return None
    node = (p.nodes or ())[found]
    size = node.size.value
    if node.src.value == node.dst.value == 1:
        if side == "src" or not _gathers(p, size << most):
            return None
    elif found in {b.node for b in run_of(p, "dst" if side == "src" else "src", most)}:
        return None  # What is one run on the other side would be loaded or stored in pieces.
    longer = side == "dst" and min(t.nbytes for t in p.dtypes) > 1
    sizes = LONGER_SIZES if longer else SIZES
    if size not in sizes or node.guard is not None or (side == "dst" and node.operands):
        return None
    others = [_nearer(n, size, side) for n in p.nodes or ()]
    others[found] = replace(node, src=Number(FAR), dst=Number(FAR))
    seen = replace(p, nodes=tuple(others))
    load, store = lanes_of(seen, most, read)
    lanes = load if side == "src" else store
    registers = size << len([b for b in store if b not in load])
    narrows = p.dtypes[0].nbytes > p.dtypes[1].nbytes
    if len(lanes) < most or registers > most_registers(p, narrows=narrows):
        return None
    mixes = (deinterleave if side == "src" else interleave)(size, 1 << most)
    comb = Comb(found, size, (side == "src", side == "dst"), mixes)
    arrangement = Arrangement(seen, load, store, comb)
    return arrangement if arrangement.piece(side) == 1 << most else None


def most_registers(p: Problem, *, narrows: bool = False) -> int:
    """How many registers a tile with a comb has at the most; ``narrows``: values get shorter."""
    most = MOST_REGISTERS >> narrows
    return min(most, MOST_EDGE_REGISTERS) if p.guards else most


def _gathers(p: Problem, run: int) -> bool:
    """Whether elements are gathered where both sides have the loop innermost.

    In ``ioyx`` to ``oiyx`` of 3 x 3 that is 1.0 instead of 0.3 in f32, 0.6 instead of 0.2 in f16,
    but 0.16 instead of 0.31 where rows start anywhere. Written to single places instead of being
    read from such they are slower than runs of 8, and those that are converted are not faster.
    """
    item = p.dtypes[1].nbytes
    starts = [n.dst.value * item for n in p.nodes or () if n.dst.value > run]
    return p.dtypes[0] == p.dtypes[1] and (
        item > 2 or not any(n % LEAST_STREAMED_BYTES for n in starts)
    )


def _nearer(n: Node, size: int, side: str) -> Node:
    """A loop whose stride on a side counts runs of ``size``; far where it counts none."""
    stride = getattr(n, side).value
    number = Number(FAR if stride % size else stride // size, getattr(n, side).fixed)
    return replace(n, src=number) if side == "src" else replace(n, dst=number)


def _woven(p: Problem, most: int) -> tuple[int, int] | None:
    """The loop of channels and the long one around it, where both sides interleave them.

    Without operands the two are one loop.
    """
    nodes = p.nodes or ()
    for k, n in enumerate(nodes):
        count = n.size.value
        if p.guards or count not in (2, 3) or (n.src.value, n.dst.value) != (1, 1):
            continue
        for j, long in enumerate(nodes):
            strides = (long.src.value, long.dst.value)
            if strides == (count, count) and long.size.value >> most:
                return k, j
    return None
