"""Tiles that work-groups move together: what they cover, and the two passes that move one.

A work-group loads its tile in the order of the source and stores it in that of the destination. On
its way the tile lies in local memory, or in registers where both orders are one.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from math import gcd, prod

from ..problems.problem import Node, Number, Problem, fixed
from ..problems.thresholds import BANK_BYTES, SHORT_LOOP
from .banks import BankLayout, Pass, dense, layout
from .extents import run_of_whole_loops
from .runs import chain, power_of_two, strides
from .schedule import ALL, Schedule, Tile


def order_of(nodes: Sequence[Node], side: str) -> tuple[int, ...]:
    """A side's loops of more than one step by their stride; those that stand still last."""
    loops = [k for k, n in enumerate(nodes) if n.size.value > 1 and n.is_of(side)]
    along = strides(nodes, side)
    return tuple(sorted(loops, key=lambda k: (along[k] == 0, along[k], -k)))


def moving_bytes(p: Problem) -> int:
    """The bytes of an element between load and store: f16 may be on its way as f32."""
    src, dst = p.dtypes
    if src.name == "f16" and dst != src and (dst.nbytes > src.nbytes or p.computation):
        return 4
    return src.nbytes if p.computation else min(src.nbytes, dst.nbytes)


def elements_of(sizes: Sequence[int], nodes: Sequence[Node], side: str) -> int:
    """How many elements a side's loops of a tile have."""
    return prod(size for size, n in zip(sizes, nodes, strict=True) if n.is_of(side))


class GroupTile:
    """How many steps of each loop a work-group takes; ``whole`` are those of which it takes all.

    Among these are the loops of words that trade elements, ``traded``, and those of one side.
    """

    def __init__(self, p: Problem, tile: Tile | None = None) -> None:
        self.p, self.nodes = p, p.nodes
        steps = [tile.steps(k) if tile else 1 for k in range(len(self.nodes))]
        self.traded = tuple(k for k, _ in p.exchanges)
        self.kept = {*self.traded, *(k for k, n in enumerate(self.nodes) if n.split)}
        self.whole = {*self.kept, *(k for k, n in enumerate(steps) if n == ALL)}
        self.sizes = [self.nodes[k].size.value if k in self.whole else n
                      for k, n in enumerate(steps)]  # fmt: skip

    @property
    def elements(self) -> int:
        """How many elements it has, or places for them, on the side that has more."""
        return max(elements_of(self.sizes, self.nodes, side) for side in ("src", "dst"))

    def tile(self, lanes: int, stored: int) -> Tile:
        """The same, moved by vectors of so many elements."""
        steps = [ALL if k in self.whole else n for k, n in enumerate(self.sizes)]
        return Tile.of(steps, lanes, stored)

    def take(self, side: str, wanted: int) -> None:
        """A contiguous run of up to ``wanted`` elements on a side.

        A block is taken whole, and so is a short loop after which the run goes on; others are cut
        to a power of two, so that its size is no part of the structure.
        """
        run = chain(self.p, side, counted=False)
        for k, steps, most in run_of_whole_loops(self.p, run, wanted, SHORT_LOOP):
            if most == ALL:
                self.sizes[k] = steps
                self.whole.add(k)
            elif k not in self.whole:
                part = min(power_of_two(most), power_of_two(2 * steps - 1))
                self.sizes[k] = max(self.sizes[k], part)

    def fill(self, order: Sequence[int], goal: int) -> None:
        """More of the loops, until there are ``goal`` elements."""
        for k in order:
            most = 0 if k in self.whole else self.nodes[k].size.value
            while 2 * self.elements <= goal and 2 * self.sizes[k] <= most:
                self.sizes[k] *= 2

    def fit(self, most: int, twice: Sequence[int]) -> bool:
        """Make it one of ``most`` elements that the loops have; whether there is such a tile.

        It has two steps at least of the loops that are to be taken ``twice``.
        """
        for k, node in enumerate(self.nodes):
            size = node.size.value
            if k in self.whole - self.kept and not (node.size.fixed or size <= SHORT_LOOP):
                self.whole.remove(k)
                self.sizes[k] = 2 * size
            if k not in self.whole:
                self.sizes[k] = power_of_two(min(self.sizes[k], 2 * size - 1))
        for k in twice:
            self.sizes[k] = max(2, self.sizes[k])
        return self.shrink(most, 2)

    def shrink(self, most: int, least: int = 1) -> bool:
        """Take fewer steps of its loops, ``least``, until there are ``most`` elements; or False."""
        while self.elements > most:
            left = [k for k, n in enumerate(self.sizes) if k not in self.whole and n > least]
            if not left:
                return False
            self.sizes[max(left, key=lambda k: self.sizes[k])] //= 2
        return True

    def count(self) -> int:
        """How many tiles there are."""
        return prod(-(-n.size.value // s) for n, s in zip(self.nodes, self.sizes, strict=True))

    def order(self, side: str) -> tuple[int, ...]:
        """The loops that it has more than one step of, by their stride on a side."""
        return tuple(k for k in order_of(self.nodes, side) if self.sizes[k] > 1)

    def reads(self, width: int) -> tuple[int, ...]:
        """The loops in the order in which vectors of ``width`` elements are loaded.

        A work-item loads all words that trade elements: steps apart in the tile, or in one vector.
        """
        order, reached = self.order("src"), 1
        apart = []
        for k in order:
            if k in self.traded and width % (2 * reached):
                apart.append(k)
            reached *= self.sizes[k]
        return (*(k for k in order if k not in apart), *apart)

    def trades_in(self, width: int) -> bool:
        """Whether such vectors trade elements: with each other, or halves, quarters, .. of one."""
        reached = 1
        for k in self.reads(width):
            if k in self.traded and width % (2 * reached) and reached % width:
                return False
            reached *= self.sizes[k]
        return True

    @property
    def below(self) -> tuple[int, ...]:
        """The loops that are nearer in the destination than the nearest of the source."""
        after, near = self.order("dst"), self.order("src")[0]
        return after[: after.index(near)] if near in after else ()

    def loose(self) -> int:
        """How many elements of the source a word has that may begin at any of them; 1: none do.

        Rows of bytes and of 16-bit elements that begin anywhere are loaded so, out of two words
        that lie in the tensor. Where a row ends inside, there are elements of the next one, which
        no work-item stores.
        """
        p, order = self.p, self.reads(1)
        (one, other), nbytes = p.dtypes, p.src.span_nbytes
        if not order or p.exchanges or p.is_split or p.src.dtype.is_packed or one.bits >= 32:
            return 1
        node, wide = self.nodes[order[0]], 8 * BANK_BYTES // one.bits
        becomes_float = one.name == "f16" and (one != other or p.computation)
        is_run = node.src.value == 1 and node.guard is None and not self.sizes[order[0]] % wide
        in_words = nbytes % BANK_BYTES == 0 and nbytes >= 2 * BANK_BYTES
        return wide if is_run and in_words and not becomes_float else 1

    def is_loose(self, loaded: int) -> bool:
        """Whether as many elements are loaded as such a word, not as a vector."""
        return loaded == self.loose() > self.width("src", self.reads(loaded), loaded)

    def run(self, side: str) -> int:
        """How many of its elements follow each other on a side."""
        return prod(self.sizes[k] for k in self._in_a_row(side, self.order(side)))

    def _in_a_row(self, side: str, order: Sequence[int]) -> list[int]:
        """The first loops of an order whose steps follow each other on a side."""
        along, reached, found = strides(self.nodes, side), 1, []
        for k in order:
            if along[k] != reached:
                break
            found.append(k)
            reached *= self.sizes[k]
        return found

    def width(self, side: str, order: Sequence[int], most: int, *, stored: bool = False) -> int:
        """How many elements a work-item may access as one aligned vector, ``most`` at most.

        The tile falls into such vectors, so that all elements of one are there or none is; at a
        guard they are of one loop. ``order``: the loops of the pass.
        ``stored``: values are stored as they lie, zeros too. Where `block_of` says so, vectors are
        loaded if some of one is.
        """
        p, nodes, along = self.p, self.nodes, strides(self.nodes, side)
        run = self._in_a_row(side, order)
        if not run:
            return 1
        ends = next((n for n, k in enumerate(run) if k not in self.whole), len(run) - 1)
        run = run[: ends + 1]
        reached = prod(self.sizes[k] for k in run)
        inner, last = run[0], run[-1]
        moves = [p.src0 if side == "src" else p.dst0, nodes[last].size.value * along[last]]
        moves += [s for k, s in enumerate(along) if k not in run and nodes[k].size.value > 1]
        guards = {nodes[k].guard for k in run} - {None}
        if side == "src" and p.is_split:
            loose = {g for g in guards if g is not None and block_of(p, g)}
            guards -= loose
            coarse = [k for k in run for g in loose & {nodes[k].guard}
                      if nodes[k].unit >= block_of(p, g)]  # fmt: skip
            moves += [prod(self.sizes[j] for j in run[: run.index(k)]) for k in coarse]
        if guards:
            moves += [self.sizes[inner], *limits(p, nodes[inner], side, stored=stored)]
        return gcd(power_of_two(max(1, most)), reached, *moves)


@dataclass(frozen=True, slots=True)
class GroupLayout:
    """A tile of ``sizes`` steps of each loop; it has all of those that are ``whole``.

    It is loaded as ``read`` says and stored as ``write`` says; between, it lies in local memory as
    ``banks`` says, or, where that is None, in registers. ``nodes`` are the loops: what the tile
    decides of their sizes and strides is a constant of the kernel. ``is_loose``: what is loaded at
    once is no vector, but see `GroupTile.loose`.
    """

    nodes: tuple[Node, ...]
    sizes: tuple[int, ...]
    whole: frozenset[int]
    read: Pass
    write: Pass
    banks: BankLayout | None
    is_loose: bool = False

    def positions(self, node: int) -> Number:
        """How many tiles follow each other along a loop."""
        size = self.nodes[node].size
        return Number(-(-size.value // self.sizes[node]), size.fixed)

    @property
    def count(self) -> int:
        """How many tiles there are."""
        return prod(self.positions(k).value for k in range(len(self.nodes)))

    def elements(self, side: str) -> int:
        """How many elements a side's pass has, or places for them."""
        return elements_of(self.sizes, self.nodes, side)

    @property
    def local_elements(self) -> int:
        """Elements of local memory that a work-group takes."""
        return self.banks.extent if self.banks else 0


def lay_out_group(p: Problem, schedule: Schedule) -> GroupLayout:
    """The two passes of a schedule's tile, and where it lies between them."""
    tile, store = GroupTile(p, schedule.tile), schedule.store
    nodes, sizes = tile.nodes, tuple(tile.sizes)
    known = {side: _known_strides(p, side, tile.whole) for side in ("src", "dst")}
    marked = tuple(
        replace(
            n, size=fixed(n.size.value) if k in tile.whole else n.size,
            src=fixed(n.src.value) if k in known["src"] else n.src,
            dst=fixed(n.dst.value) if k in known["dst"] else n.dst,
        )
        for k, n in enumerate(nodes)
    )  # fmt: skip
    lanes, stored = schedule.tile.widths
    after = tile.order("dst")
    before = tile.reads(lanes) if store.local else after
    across = before[0] if store.local > 1 else -1
    read, write = Pass(before, lanes), Pass(after, stored, max(1, store.local), across)
    banks = None
    if store.local:
        item = moving_bytes(p)
        spare = 4 if p.exchanges else 8  # words that were neighbours in the source lie apart
        splits = tuple(n.split for n in nodes)
        banks = (dense(sizes, read, splits) if store.dense
                 else layout(sizes, read, write, item, spare, splits))  # fmt: skip
    is_loose = bool(banks) and tile.is_loose(lanes)
    return GroupLayout(marked, sizes, frozenset(tile.whole), read, write, banks, is_loose)


def _known_strides(p: Problem, side: str, whole: set[int]) -> set[int]:
    """The loops whose stride is part of the structure: the run of whole loops below them."""
    known = set()
    for k, _, _ in chain(p, side, counted=False):
        known.add(k)
        if k not in whole:
            break
    return known


def block_of(p: Problem, guard: int) -> int:
    """The units of a block of the source that is loaded if some of it is there; else 0.

    So it is where both sides split the index of a guard differently: a tile has whole blocks, and
    what is no element is replaced by zero before it is stored.
    """
    mine = (n for n in p.nodes if n.guard == guard and n.split and n.split.side == "src")
    return max((n.unit for n in mine), default=0)


def limits(p: Problem, node: Node, side: str, *, stored: bool) -> list[int]:
    """The limits of a node's guard in steps of it; 1 for one that lies between two steps.

    Where values are ``stored`` as they lie in local memory, zeros among them, only the end counts.
    """
    if node.guard is None:
        return []
    guard = p.guards[node.guard]
    found = [n.value for n in ((guard.end,) if stored else (guard.lo, guard.hi, guard.end))]
    found += [n.unit for n in p.nodes if n.guard == node.guard and n.is_of(side) and n is not node]
    return [1 if n % node.unit else n // node.unit for n in found]
