"""The plan of a tile: how it lies in registers, and how the loops walk over the tiles."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from math import prod

from .choices import Choices
from .join import Join
from .lanes import Bit, Comb, Span, Weave
from .network import Step
from .problem import FAR, Node, Number, Problem
from .traits import LINE_BYTES
from .walk import Tiles, Walk, with_choices


@dataclass(frozen=True, slots=True)
class Edge:
    """What a guard asks of the tiles at the edge.

    ``zeroes``: lanes that are no element become zero, either because they are stored as padding or
    because the source has no memory there (then ``reaches`` is true too). ``spills``: the tiles
    cover more than the destination has, so that stores must stop at its end.
    """

    zeroes: bool
    reaches: bool
    spills: bool


@dataclass(frozen=True, slots=True)
class TilePlan:
    """How the tile lies in registers and how the loops walk over it.

    ``bits[k]`` is log2 of the tile's size along node k, 0 for none. ``load_piece`` and
    ``store_piece`` are how many lanes are contiguous in memory. ``passes`` are the bits of
    registers that are moved one after the other, so that fewer are full at a time. With a ``join``
    ``registers`` are those of each of its steps, and ``store_registers`` the rows of the tile.
    ``streamed_piece``: how many lanes one store past the cache takes; 0 for all of them.
    """

    problem: Problem
    nodes: tuple[Node, ...]
    bits: tuple[int, ...]
    load: tuple[Bit, ...]
    registers: tuple[Bit, ...]
    steps: tuple[Step, ...]
    store: tuple[Bit, ...]
    store_registers: tuple[Bit, ...]
    load_piece: int
    store_piece: int
    edges: tuple[Edge, ...]
    walk: Walk
    nontemporal: bool
    comb: Comb | None = None
    passes: tuple[Bit, ...] = ()
    span: Span | None = None
    weave: Weave | None = None
    join: Join | None = None
    streamed_piece: int = 0

    def steps_along(self, node: int) -> int:
        """How many steps of the node a tile covers."""
        if self.comb is not None and node == self.comb.node:
            return self.comb.size
        if self.span is not None and node == self.span.node:
            return self.span.size
        if self.join is not None and node == self.join.node:
            return self.join.size
        return 1 << self.bits[node]

    def positions(self, node: int) -> Number:
        """How many tiles follow each other along the node."""
        size = self.nodes[node].size
        return Number(-(-size.value // self.steps_along(node)), size.fixed)

    @property
    def lanes(self) -> int:
        """Elements in a vector."""
        return 1 << len(self.store)

    @property
    def register_count(self) -> int:
        """How many registers hold a tile."""
        if self.join is not None:
            return len(self.join.loads)
        times = self.comb.size if self.comb else len(self.span.starts) if self.span else 1
        return times << len(self.registers)

    @property
    def elements(self) -> int:
        """What a tile moves; vectors of a span overlap."""
        return self.lanes * (self.span.size if self.span else self.register_count)

    @property
    def interleaves(self) -> tuple[bool, bool]:
        """Whether what is loaded is taken apart, and whether what is stored is put together."""
        if self.comb is None or self.comb.is_woven:
            return False, False
        return self.comb.joined

    @property
    def gathered(self) -> TilePlan:
        """The tile with single elements in place of runs that are taken apart or put together."""
        apart, together = self.interleaves
        return replace(
            self, load_piece=1 if apart else self.load_piece,
            store_piece=1 if together else self.store_piece,
            nontemporal=self.nontemporal and not together,
        )  # fmt: skip

    @property
    def groups(self) -> list[list[int]]:
        """The registers of each pass."""
        if self.span is not None:
            count = 1 << len(self.registers)
            return [[*range(first, first + count)]
                    for first in range(0, self.register_count, count)]  # fmt: skip
        bits = [self.registers.index(b) for b in self.passes]
        groups: dict[tuple[int, ...], list[int]] = {}
        for register in range(self.register_count):
            groups.setdefault(tuple(register >> j & 1 for j in bits), []).append(register)
        return list(groups.values())

    @property
    def work_items(self) -> int:
        """How many work-items share the tiles."""
        path = self.walk
        middle = self.positions(path.middle).value if path.middle is not None else 1
        return prod(self.positions(k).value for k in path.outer) * -(-middle // path.chunk)

    def walked(self, choices: Choices) -> TilePlan:
        """The same tile with another walk."""
        counts = [self.positions(k).value for k in range(len(self.nodes))]
        return replace(self, walk=with_choices(self.walk, choices, counts))

    @property
    def alignment(self) -> tuple[int, int]:
        """At multiples of how many bytes source and destination must begin; see `Plan`.

        Stores past the cache are of whole lines, and lines that are carried on of whole elements.
        """
        if self.nontemporal or self.weave:
            least = self.problem.word.nbytes if self.problem.word else 1
            return least, LINE_BYTES if self.nontemporal else least
        return 1, self.problem.dst.dtype.nbytes if self.walk.lines else 1

    @property
    def structure(self) -> str:
        """The tile in words, without what depends on sizes alone."""
        shape = "x".join(f"{1 << b} of loop {k}" for k, b in enumerate(self.bits) if b)
        if self.comb is not None:
            shape += str(self.comb)
        if self.span is not None:
            shape += f", {self.span}"
        if self.weave is not None:
            shape += f", {self.weave}"
        if self.join is not None:
            shape += f" {self.join}"
        return (
            f"tile {shape}, {len(self.steps)} shuffle steps, "
            f"{self.lanes} lanes loaded by {self.load_piece} and stored by {self.store_piece}, "
            f"{self._stores} stores"
        )

    @property
    def _stores(self) -> str:
        if self.walk.lines:
            return f"non-temporal, {self.walk.lines},"
        parts = f" of {self.streamed_piece} lanes" if 0 < self.streamed_piece < self.lanes else ""
        return f"non-temporal{parts}" if self.nontemporal else "ordinary"

    @property
    def streams(self) -> bool:
        """Whether lines are written past the cache."""
        return self.nontemporal or self.walk.lines is not None

    def __str__(self) -> str:
        return f"{self.structure}, {self.walk}"


def tiles_of(plan: TilePlan) -> Tiles:
    """What a walk needs to know of the tiles."""
    src, dst = plan.problem.dtypes
    apart, together = plan.interleaves
    times = plan.comb.size if plan.comb else 1
    return Tiles(
        counts=[plan.positions(k).value for k in range(len(plan.nodes))],
        src_steps=_tile_steps(plan, "src"),
        dst_steps=_tile_steps(plan, "dst"),
        elements=plan.elements,
        src_bytes=src.nbytes,
        dst_bytes=dst.nbytes,
        reads=_streams_read(plan, src.nbytes) * (times if together else 1),
        writes=(times if apart else 1) * (plan.lanes // plan.store_piece)
        << _rows(plan, plan.store_registers, "dst", dst.nbytes),
        whole_lines=plan.nontemporal,
        mingled=plan.join is not None,
        scattered=any(n.parts and n.src.value == FAR for n in plan.nodes),
    )


def _streams_read(plan: TilePlan, item: int) -> int:
    """From how many places far apart a tile loads."""
    places = (plan.lanes // plan.load_piece) << _rows(plan, plan.registers, "src", item)
    far = plan.join and plan.nodes[plan.join.node].src.value * item >= LINE_BYTES
    return places * plan.join.size if plan.join and far else places


def _tile_steps(plan: TilePlan, side: str) -> list[int]:
    """How far the next tile along each node is; at the least, where the steps differ."""
    return [
        min(getattr(part, side).value for part in n.parts)
        if n.parts and getattr(n, side).value == FAR
        else getattr(n, side).value * plan.steps_along(k)
        for k, n in enumerate(plan.nodes)
    ]


def _rows(plan: TilePlan, registers: Sequence[Bit], side: str, item: int) -> int:
    """How many register bits lead to another cache line."""
    return sum(getattr(plan.nodes[b.node], side).value * item >= LINE_BYTES for b in registers)
