"""Tiles that work-groups move together: what they cover, and the two passes that move one.

A work-group loads its tile in the order of the source and stores it in that of the destination. On
its way the tile lies in local memory, or in registers where both orders are one.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from math import gcd, prod

from ..problems import thresholds
from ..problems.arithmetic import power_of_two
from ..problems.guards import block_of, is_limited, limits
from ..problems.problem import Node, Number, Problem, fixed
from .banks import BankLayout, Pass, dense, layout
from .extents import run_of_whole_loops
from .runs import chain, strides
from .schedule import ALL, Schedule, Tile


def order_of(nodes: Sequence[Node], side: str) -> tuple[int, ...]:
    """A side's loops of more than one step by their stride; those that stand still last."""
    loops = [k for k, n in enumerate(nodes) if n.size.value > 1 and n.is_of(side)]
    along = strides(nodes, side)
    return tuple(sorted(loops, key=lambda k: (along[k] == 0, along[k], -k)))


def may_be_whole(size: Number) -> bool:
    """Whether a tile may have all of a loop: that of a block, or one of few steps.

    These may fill a run, unless they are a power of two. The size is part of the structure then.
    """
    odd = size.value & (size.value - 1)
    most = thresholds.RUN_ELEMENTS[1] if odd else thresholds.SHORT_LOOP
    return size.fixed or size.value <= most


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

        A block is taken whole, and so is a short loop after which the run goes on, or of which no
        part without many empty places would be a long run; others are cut to a power of two, so
        that its size is no part of the structure.
        """
        run = chain(self.p, side, counted=False)
        short = thresholds.WHOLE_LOOP if self.is_large else thresholds.SHORT_LOOP
        least = thresholds.GROUP_RUN_BYTES // self.p.dtypes[side == "dst"].nbytes
        loops = run_of_whole_loops(self.p, run, wanted, range(1, short + 1))
        for (k, steps, most), (*_, reached) in zip(loops, run, strict=False):
            part = self._part(steps, min(most or steps, 2 * steps - 1))
            fits = most == ALL or (part < steps <= most and reached * part < least)
            if fits and may_be_whole(self.nodes[k].size):
                self.sizes[k] = steps
                self.whole.add(k)
            elif k not in self.whole:
                self.sizes[k] = max(self.sizes[k], part)
        self._take_beside(side, wanted)

    def _take_beside(self, side: str, wanted: int) -> None:
        """More runs, with gaps between them, where several of them share what memory gives at once.

        So it is with the codes of records, which a scale keeps apart.
        """
        along, nbytes = strides(self.nodes, side), self.p.dtypes[side == "dst"].nbytes
        run = self._in_a_row(side, self.order(side))
        left = (k for k in order_of(self.nodes, side) if k not in run and along[k])
        if (k := next(left, None)) is None or k in self.whole:
            return
        if along[k] * nbytes <= thresholds.NEIGHBOURS_BYTES:
            steps = wanted // prod(self.sizes[j] for j in run)
            part = self._part(self.nodes[k].size.value, min(steps, self.nodes[k].size.value))
            self.sizes[k] = max(self.sizes[k], part)

    def fill(self, order: Sequence[int], goal: int) -> None:
        """More of the loops, until there are ``goal`` elements."""
        for k in order:
            size = 0 if k in self.whole else self.nodes[k].size.value
            while (twice := 2 * self.sizes[k]) <= size and self._part(size, twice) == twice:
                if 2 * self.elements > goal:
                    return
                self.sizes[k] = twice

    def _part(self, size: int, most: int) -> int:
        """A power of two of a loop's steps, ``most`` at most.

        Of large tensors one that leaves few places of tiles empty.
        """
        steps = power_of_two(max(1, most))
        while self.is_large and -(-size // steps) * steps > thresholds.MOST_PLACES * size:
            steps //= 2
        return steps

    @property
    def is_large(self) -> bool:
        """Whether the tensor is so large that sizes of its loops may decide about the structure."""
        return self.p.nbytes >= thresholds.LARGE_TENSOR

    def fit(self, most: int, twice: Sequence[int]) -> bool:
        """Make it one of ``most`` elements that the loops have; whether there is such a tile.

        It has two steps at least of the loops that are to be taken ``twice``.
        """
        for k, node in enumerate(self.nodes):
            size = node.size.value
            if k in self.whole - self.kept and not may_be_whole(node.size):
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

    def loose(self, side: str, most: int) -> int:
        """How many elements of a side a vector has that may begin at any of them; 1: none do.

        Rows of 8- and 16-bit elements that begin anywhere are moved so. A vector of the source is
        put together out of words. Where a row ends inside, there are elements of the next one,
        which no work-item stores. In the destination the vectors of memory are stored that a run
        fills, and its other elements one by one.
        """
        p, bits = self.p, self.p.dtypes[side == "dst"].bits
        element = (p.src if side == "src" else p.dst).dtype
        alone = not (p.inside or p.tables or (element.is_packed and not p.word))
        if bits >= 8 * thresholds.BANK_BYTES or not alone:
            return 1
        if side == "dst":
            is_long = self._stored() * bits >= 8 * thresholds.LEAST_STORED and not p.computation
            return power_of_two(max(1, most)) if is_long else 1
        wide = (
            1
            if p.exchanges or p.src.span_nbytes < thresholds.BANK_BYTES
            else power_of_two(max(1, most))
        )
        run = prod(self.sizes[k] for k in self.loose_run(side))
        wide = gcd(wide, run)
        return wide if wide * bits >= 8 * thresholds.BANK_BYTES else 1

    def _stored(self) -> int:
        """How many elements of a run the destination has, at the most."""
        run = 1
        for k in self.loose_run("dst"):
            node = self.nodes[k]
            if is_limited(self.p, node, "dst"):
                assert node.guard is not None  # noqa: S101  # it has one
                steps = -(-self.p.guards[node.guard].end.value // node.unit)
                return run * steps
            run *= min(self.sizes[k], node.size.value)
        return run

    def loose_run(self, side: str) -> list[int]:
        """The loops whose steps are elements of such vectors.

        In the source, and in a run of the destination, an element is there only if those before it
        in its vector are.
        """
        loops = self._in_a_row(side, self.reads(1) if side == "src" else self.order("dst"))
        loops = self._to_an_end(loops)
        guarded = [k for k in loops if is_limited(self.p, self.nodes[k], side)]
        if not guarded:
            return loops
        number, first = self.nodes[guarded[0]].guard, loops.index(guarded[0])
        assert number is not None  # noqa: S101  # it has one
        if side == "src" and self.p.guards[number].lo.value:
            return loops[:first]
        others = (n for n, k in enumerate(loops) if n > first and self.nodes[k].guard != number)
        return loops[: next(others, len(loops))]

    def _to_an_end(self, loops: list[int]) -> list[int]:
        """The loops as far as the first that a tile has not the whole of."""
        ends = next((n for n, k in enumerate(loops) if k not in self.whole), len(loops) - 1)
        return loops[: ends + 1]

    def is_loose(self, side: str, width: int) -> bool:
        """Whether as many elements are moved as a vector that begins anywhere."""
        order = self.reads(width) if side == "src" else self.order("dst")
        return width > self.width(side, order, width, stored=side == "dst")

    def blocks(self, *, loose: bool) -> dict[int, int]:
        """The guards for which all is loaded if some of it is there, with the units of that."""
        every = {g: block_of(self.p, g) for g in range(len(self.p.guards))}
        found = {g: block for g, block in every.items() if block}
        if loose:
            loops = (self.nodes[k].guard for k in self.loose_run("src"))
            found = {g: 1 for g in loops if g is not None} | found
        return found

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

        The tile falls into such vectors, so that memory has all of one or nothing: all elements or
        none, but in blocks of the source (`block_of`). At other guards they are of one loop.
        ``order``: the loops of the pass. ``stored``: values are stored as they lie, zeros too.
        """
        p, nodes, along = self.p, self.nodes, strides(self.nodes, side)
        run = self._in_a_row(side, order)
        if not run:
            return 1
        run = self._to_an_end(run)
        reached = prod(self.sizes[k] for k in run)
        inner, last = run[0], run[-1]
        moves = [p.src0 if side == "src" else p.dst0, nodes[last].size.value * along[last]]
        moves += [s for k, s in enumerate(along) if k not in run and nodes[k].size.value > 1]
        guards = {nodes[k].guard for k in run} - {None}
        if side == "src":
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
    decides of their sizes and strides is a constant of the kernel. ``loose``: whether the vectors
    that are loaded, and stored, begin anywhere, see `GroupTile.loose`; ``run``: the loops of a run
    that is stored so. ``blocks``: see `GroupTile.blocks`.
    """

    nodes: tuple[Node, ...]
    sizes: tuple[int, ...]
    whole: frozenset[int]
    read: Pass
    write: Pass
    banks: BankLayout | None
    blocks: dict[int, int]
    loose: tuple[bool, bool] = (False, False)
    run: tuple[int, ...] = ()

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
    src, dst = (bool(banks) and tile.is_loose(side, width)
                for side, width in (("src", lanes), ("dst", stored)))  # fmt: skip
    run = tuple(tile.loose_run("dst")) if dst else ()
    return GroupLayout(marked, sizes, frozenset(tile.whole), read, write, banks,
                       tile.blocks(loose=src), (src, dst), run)  # fmt: skip


def _known_strides(p: Problem, side: str, whole: set[int]) -> set[int]:
    """The loops whose stride is part of the structure: the run of whole loops below them."""
    known = set()
    for k, _, _ in chain(p, side, counted=False):
        known.add(k)
        if k not in whole:
            break
    return known
