"""The tile and rows families: vectors on both sides, with a transposition in registers between.

The innermost loops of the source that are contiguous there give the lanes of a *load*; those of
the destination the lanes of a *store*. Where both are the same bits, rows are moved as they are
(family ``rows``). Where they differ, the tile that both span is loaded into registers, transposed
by the shuffles of `network`, and stored (family ``tile``). Where one side's contiguous run is
shorter than the vector, its other lanes are bits of the other side: the vector is then put together
from, or taken apart into, *pieces*, down to single elements.

A loop that is longer than its part of the tile is walked in positions of that size; where it does
not divide, the last position overlaps the one before, so that there is no remainder. A guarded
loop must not overlap: there the lanes outside are masked, in a second pass over the edge tiles.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from math import prod

from .choices import RULES, Choices, either
from .flat import flattened
from .lanes import LANES_LOG2, Bit, Comb, comb_of, lane_run, lanes_of, run_of
from .network import Step, network
from .nibbles import refusal_elsewhere
from .problem import FAR, Node, Number, Problem, fixed
from .stages import separate
from .traits import LINE_BYTES, Traits
from .walk import Tiles, Walk, walk, with_choices

REGISTERS = 16
"""The most registers that a tile is made longer for, to store whole cache lines."""
LONG_RUN_BYTES = 256
STREAMED_REGISTERS = 32
"""The same where the tensors exceed the cache: lines that are written whole are not read before."""


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
    ``store_piece`` are how many lanes are contiguous in memory.
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

    def positions(self, node: int) -> Number:
        """How many tiles follow each other along the node."""
        if self.comb is not None and node == self.comb.node:
            return fixed(1)
        size, bits = self.nodes[node].size, self.bits[node]
        return Number(-(-size.value // (1 << bits)), size.fixed)

    @property
    def lanes(self) -> int:
        """Elements in a vector."""
        return 1 << len(self.store)

    @property
    def register_count(self) -> int:
        """How many registers hold a tile."""
        return self.comb.size if self.comb is not None else 1 << len(self.registers)

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
    def structure(self) -> str:
        """The tile in words, without what depends on sizes alone."""
        shape = "x".join(f"{1 << b} of loop {k}" for k, b in enumerate(self.bits) if b)
        if self.comb is not None:
            shape += str(self.comb)
        return (
            f"tile {shape}, {len(self.steps)} shuffle steps, "
            f"{self.lanes} lanes loaded by {self.load_piece} and stored by {self.store_piece}, "
            f"{'non-temporal' if self.nontemporal else 'ordinary'} stores"
        )

    def __str__(self) -> str:
        return f"{self.structure}, {self.walk}"


def tile_refusal(p: Problem) -> str:
    """Why the tile family does not take the problem; empty if it does."""
    if p.nodes is None:
        return p.why
    if reason := refusal_elsewhere(p):
        return reason
    load, store = lanes_of(flattened(separate(p)))
    if load == store:
        return "source and destination have the same lanes: nothing to transpose"
    return ""


def rows_refusal(p: Problem) -> str:
    """Why the rows family does not take the problem; empty if it does."""
    if p.nodes is None:
        return p.why
    if reason := refusal_elsewhere(p):
        return reason
    load, store = lanes_of(separate(p))
    if not load:
        return "neither side has a contiguous run of 4 elements"
    if load != store:
        return "source and destination have different contiguous runs"
    return ""


def tile_plan(
    p: Problem, traits: Traits, *, nontemporal: bool, choices: Choices = RULES
) -> TilePlan:
    """The plan of both families; rows are tiles without a step."""
    p = flattened(separate(p))
    most = either(choices.lanes, 1 << LANES_LOG2).bit_length() - 1
    load, store = lanes_of(p, most)
    comb = comb_of(p, load, store, most)
    registers = (
        *(b for b in store if b not in load),
        *([] if comb else _line_bits(p, load, store, large=nontemporal, chosen=choices.registers)),
    )
    nodes = _promoted(p.nodes or (), (*load, *registers))
    bits = [0] * len(nodes)
    for bit in (*load, *registers):
        bits[bit.node] = max(bits[bit.node], bit.place + 1)
    if comb:
        nodes = _promoted_comb(nodes, comb, load[0].node)
    steps, after = network(load, registers, store, _bits_near(p))
    draft = TilePlan(
        problem=p, nodes=nodes, bits=tuple(bits), load=load, registers=registers, steps=steps,
        store=store, store_registers=tuple(after),  # type: ignore[arg-type]
        load_piece=_piece(nodes, load, "src"), store_piece=_piece(nodes, store, "dst"),
        edges=(), walk=Walk(), nontemporal=False, comb=comb,
    )  # fmt: skip
    if comb:
        pieces = zip((draft.load_piece, draft.store_piece), comb.joined, strict=True)
        load_piece, store_piece = (draft.lanes if joined else piece for piece, joined in pieces)
        draft = replace(draft, load_piece=load_piece, store_piece=store_piece)
    draft = replace(draft, edges=_edges(draft))
    streams = either(choices.nontemporal, nontemporal) and _stores_whole_lines(draft)
    draft = replace(draft, nontemporal=streams)
    return replace(draft, walk=_walk(draft, traits, choices, large=nontemporal))


def _bits_near(p: Problem) -> int:
    """How many lane bits stay inside 128 bits, for the type that is shuffled."""
    return (16 // min(t.nbytes for t in p.dtypes)).bit_length() - 1


def _line_bits(
    p: Problem,
    load: tuple[Bit, ...],
    store: tuple[Bit, ...],
    *,
    large: bool,
    chosen: int | None,
) -> list[Bit]:
    """More register bits, so that a tile stores whole cache lines."""
    line = (LINE_BYTES // p.dst.dtype.nbytes).bit_length() - 1
    run = run_of(p, "dst", line)
    if run[: len(store)] != store:
        return []
    extra = [b for b in run if b not in store and b not in load]
    registers = 1 << len([b for b in store if b not in load])
    fills = large and registers << len(extra) <= STREAMED_REGISTERS
    most = either(chosen, STREAMED_REGISTERS if fills else REGISTERS)
    while registers << len(extra) > most and extra:
        extra.pop()
    return extra


def _promoted(nodes: Sequence[Node], tile: Sequence[Bit]) -> tuple[Node, ...]:
    """Make constant what the lanes rely on: a run over several loops needs their exact sizes."""
    used = {bit.node for bit in tile}
    result = []
    for k, node in enumerate(nodes):
        if k in used and len(used) > 1:
            full = 1 << max(b.place + 1 for b in tile if b.node == k) == node.size.value
            size = fixed(node.size.value) if full else node.size
            result.append(_with_small_strides(replace(node, size=size)))
        elif k in used:
            result.append(replace(node, operands=tuple(map(_small, node.operands))))
        else:
            result.append(node)
    return tuple(result)


def _promoted_comb(nodes: Sequence[Node], comb: Comb, long: int) -> tuple[Node, ...]:
    """Make constant what a comb relies on: its size and the strides inside it."""
    return tuple(
        _with_small_strides(replace(n, size=fixed(n.size.value) if k == comb.node else n.size))
        if k in (comb.node, long) else n
        for k, n in enumerate(nodes)
    )  # fmt: skip


def _with_small_strides(node: Node) -> Node:
    """The node with the strides inside a vector made constant, on every side."""
    operands = tuple(map(_small, node.operands))
    return replace(node, src=_small(node.src), dst=_small(node.dst), operands=operands)


def _small(stride: Number) -> Number:
    """Strides inside a vector are below its width; they are part of the structure."""
    return fixed(stride.value) if stride.value < 1 << LANES_LOG2 else stride


def _piece(nodes: Sequence[Node], lanes: Sequence[Bit], side: str) -> int:
    """How many of the lowest lanes are contiguous on one side."""
    return lane_run([getattr(n, side).value for n in nodes], lanes, 1)


def _edges(plan: TilePlan) -> tuple[Edge, ...]:
    p = plan.problem
    edges = []
    for g, guard in enumerate(p.guards):
        cover = 1 + sum(
            ((plan.positions(k).value << plan.bits[k]) - 1) * n.unit
            for k, n in enumerate(plan.nodes) if n.guard == g
        )  # fmt: skip
        reaches = guard.source[0] > 0 or cover > guard.source[1]
        pads = guard.lo.value > 0 or guard.hi.value < guard.end.value
        edges.append(Edge(pads or reaches, reaches, cover > guard.end.value))
    return tuple(edges)


def _walk(plan: TilePlan, traits: Traits, choices: Choices, *, large: bool) -> Walk:
    src, dst = plan.problem.dtypes
    tiles = Tiles(
        counts=[plan.positions(k).value for k in range(len(plan.nodes))],
        src_steps=_tile_steps(plan, "src"),
        dst_steps=_tile_steps(plan, "dst"),
        elements=plan.lanes * plan.register_count,
        src_bytes=src.nbytes,
        dst_bytes=dst.nbytes,
        reads=(plan.lanes // plan.load_piece) << _rows(plan, plan.registers, "src", src.nbytes),
        writes=(plan.lanes // plan.store_piece)
        << _rows(plan, plan.store_registers, "dst", dst.nbytes),
        whole_lines=plan.nontemporal,
    )
    return with_choices(walk(tiles, traits, large=large), choices, tiles.counts)


def _tile_steps(plan: TilePlan, side: str) -> list[int]:
    """How far the next tile along each node is; at the least, where the steps differ."""
    return [
        min(getattr(part, side).value for part in n.parts)
        if n.parts and getattr(n, side).value == FAR
        else getattr(n, side).value << b
        for n, b in zip(plan.nodes, plan.bits, strict=True)
    ]


def _rows(plan: TilePlan, registers: Sequence[Bit], side: str, item: int) -> int:
    """How many register bits lead to another cache line."""
    return sum(getattr(plan.nodes[b.node], side).value * item >= LINE_BYTES for b in registers)


def _stores_whole_lines(plan: TilePlan) -> bool:
    """Whether stores fill whole cache lines, each by stores that follow each other at once.

    That is one vector, or several side by side; where a tile has many of these in one run, the run
    need not start at a line: the next tile continues it. A vector itself must be aligned.
    """
    item = plan.problem.dst.dtype.nbytes
    if plan.store_piece != plan.lanes:
        return False
    vector = plan.lanes * item
    run = vector
    moves = [plan.problem.dst0]
    for stride in sorted(n for b in plan.store_registers for n in _moves(plan, b)):
        if stride * item == run:
            run *= 2
        else:
            moves.append(stride)
    for k, node in enumerate(plan.nodes):
        overlaps = node.guard is None and node.size.value % (1 << plan.bits[k])
        if plan.positions(k).value > 1 and not node.parts:
            moves.append(node.dst.value if overlaps else node.dst.value << plan.bits[k])
    unit = vector if run >= LONG_RUN_BYTES else LINE_BYTES
    return run >= LINE_BYTES and all(m * item % unit == 0 for m in moves)


def _moves(plan: TilePlan, bit: Bit) -> list[int]:
    """How far a bit of the registers moves in the destination."""
    node = plan.nodes[bit.node]
    return [part.dst.value for part in node.parts] or [node.dst.value << bit.place]
