"""The tile and rows families: vectors on both sides, with a transposition in registers between.

The innermost loops of the source that are contiguous there give the lanes of a *load*; those of
the destination the lanes of a *store*. Where both are the same bits, rows are moved as they are
(family ``rows``). Where they differ, the tile that both span is loaded into registers, transposed
by the shuffles of `network`, and stored (family ``tile``). Rows also takes the case where only one
side has a contiguous run: the other side is then read or written element by element.

A loop that is longer than its part of the tile is walked in positions of that size; where it does
not divide, the last position overlaps the one before, so that there is no remainder. A guarded
loop must not overlap: there the lanes outside are masked, in a second pass over the edge tiles.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from math import prod

from .network import Step, network
from .problem import Node, Number, Problem, fixed
from .traits import Traits

LANES_LOG2 = 4
"""16 lanes: what one AVX-512 register holds of f32, and the widest OpenCL vector."""
TILES_PER_UNIT = 64
"""Work-items per core at the least, so that cores of unequal speed finish together."""
INNER_LIMIT = 64
"""The longest inner loop that is still run whole by one work-item."""


@dataclass(frozen=True, slots=True)
class Bit:
    """One bit of a position in the tile: it moves loop ``node`` by ``1 << place`` steps."""

    node: int
    place: int


@dataclass(frozen=True, slots=True)
class TilePlan:
    """How the tile lies in registers and how the loops walk over it.

    ``bits[k]`` is log2 of the tile's size along node k, 0 for none. ``outer`` nodes are spread over
    work-items; each work-item runs ``chunk`` positions of node ``middle`` and in each of them all
    positions of node ``inner`` (None: there is no such loop).
    """

    problem: Problem
    nodes: tuple[Node, ...]
    bits: tuple[int, ...]
    load: tuple[Bit, ...]
    registers: tuple[Bit, ...]
    steps: tuple[Step, ...]
    store: tuple[Bit, ...]
    store_registers: tuple[Bit, ...]
    load_is_vector: bool
    store_is_vector: bool
    outer: tuple[int, ...]
    middle: int | None
    inner: int | None
    chunk: int
    nontemporal: bool

    def positions(self, node: int) -> Number:
        """How many tiles follow each other along the node."""
        size, bits = self.nodes[node].size, self.bits[node]
        return Number(-(-size.value // (1 << bits)), size.fixed)

    @property
    def lanes(self) -> int:
        """Elements in a vector."""
        return 1 << len(self.store)

    @property
    def tiles(self) -> int:
        """Tiles in all."""
        return prod(self.positions(k).value for k in range(len(self.nodes)))

    def __str__(self) -> str:
        shape = "x".join(f"{1 << b} of loop {k}" for k, b in enumerate(self.bits) if b)
        walk = f"{self.chunk} of loop {self.middle}" if self.middle is not None else "1 tile"
        if self.inner is not None:
            walk += f" x all of loop {self.inner}"
        return (
            f"tile {shape}, {len(self.steps)} shuffle steps, "
            f"{'vector' if self.load_is_vector else 'element'} loads, "
            f"{'vector' if self.store_is_vector else 'element'} "
            f"{'non-temporal' if self.nontemporal else 'ordinary'} stores, "
            f"a work-item runs {walk}"
        )


def tile_refusal(p: Problem) -> str:
    """Why the tile family does not take the problem; empty if it does."""
    if p.nodes is None:
        return p.why
    load, store = _runs(p)
    if load == store:
        return "source and destination have the same contiguous run: nothing to transpose"
    short = min(len(load), len(store))
    if short < 2:
        side = "source" if len(load) < 2 else "destination"
        return f"the contiguous run of the {side} is shorter than 4 elements"
    return ""


def rows_refusal(p: Problem) -> str:
    """Why the rows family does not take the problem; empty if it does."""
    if p.nodes is None:
        return p.why
    load, store = _runs(p)
    if max(len(load), len(store)) < 2:
        return "neither side has a contiguous run of 4 elements"
    if load != store and min(len(load), len(store)) >= 2:
        return "source and destination have different contiguous runs"
    return ""


def tile_plan(p: Problem, traits: Traits, *, nontemporal: bool) -> TilePlan:
    """The plan of the tile family."""
    load, store = _runs(p)
    width = min(len(load), len(store))
    return _plan(p, traits, (load[:width], store[:width]), nontemporal=nontemporal)


def rows_plan(p: Problem, traits: Traits, *, nontemporal: bool) -> TilePlan:
    """The plan of the rows family."""
    load, store = _runs(p)
    run = store if len(store) >= len(load) else load
    return _plan(p, traits, (run, run), nontemporal=nontemporal)


def _runs(p: Problem) -> tuple[tuple[Bit, ...], tuple[Bit, ...]]:
    """The lanes that source and destination would have if each were alone."""
    nodes = p.nodes or ()
    return _run(nodes, [n.src.value for n in nodes]), _run(nodes, [n.dst.value for n in nodes])


def _run(nodes: Sequence[Node], strides: Sequence[int]) -> tuple[Bit, ...]:
    """The bits of the contiguous run on one side, lowest first, at most `LANES_LOG2`."""
    bits: list[Bit] = []
    reached = 1
    while len(bits) < LANES_LOG2 and reached in strides:
        k = strides.index(reached)
        size = nodes[k].size
        # A block of 24 gives tiles of 8; a free size of 24 gives 16 and an overlap.
        whole = (size.value & -size.value) if size.fixed else size.value
        take = min(whole.bit_length() - 1, LANES_LOG2 - len(bits))
        bits += [Bit(k, j) for j in range(take)]
        if 1 << take != size.value:
            break
        reached *= size.value
    return tuple(bits)


def _plan(
    p: Problem, traits: Traits, lanes: tuple[tuple[Bit, ...], tuple[Bit, ...]], *, nontemporal: bool
) -> TilePlan:
    load, store = lanes
    nodes = _promoted(p.nodes or (), load + store)
    bits = [0] * len(nodes)
    for bit in load + store:
        bits[bit.node] = max(bits[bit.node], bit.place + 1)
    registers = tuple(bit for bit in store if bit not in load)
    steps, store_registers = network(load, registers, store)
    draft = TilePlan(
        problem=p, nodes=nodes, bits=tuple(bits), load=load, registers=registers, steps=steps,
        store=store, store_registers=tuple(store_registers),  # type: ignore[arg-type]
        load_is_vector=_is_run(nodes, load, "src"), store_is_vector=_is_run(nodes, store, "dst"),
        outer=(), middle=None, inner=None, chunk=1, nontemporal=False,
    )  # fmt: skip
    walked = _walk(draft, traits)
    return replace(walked, nontemporal=nontemporal and _stores_whole_lines(walked))


def _promoted(nodes: Sequence[Node], lanes: Sequence[Bit]) -> tuple[Node, ...]:
    """Make constant what the lanes rely on: a run over several loops needs their exact sizes."""
    used = {bit.node for bit in lanes}
    result = []
    for k, node in enumerate(nodes):
        if k in used and len({b.node for b in lanes}) > 1:
            full = 1 << max(b.place + 1 for b in lanes if b.node == k) == node.size.value
            size = fixed(node.size.value) if full else node.size
            result.append(replace(node, size=size, src=_small(node.src), dst=_small(node.dst)))
        else:
            result.append(node)
    return tuple(result)


def _small(stride: Number) -> Number:
    """Strides inside a vector are below its width; they are part of the structure."""
    return fixed(stride.value) if stride.value < 1 << LANES_LOG2 else stride


def _is_run(nodes: Sequence[Node], lanes: Sequence[Bit], side: str) -> bool:
    return all(
        getattr(nodes[bit.node], side).value << bit.place == 1 << k for k, bit in enumerate(lanes)
    )


def _walk(plan: TilePlan, traits: Traits) -> TilePlan:
    """Choose the loops inside a work-item: the nearest on either side, the shorter one innermost.

    Completing the shorter of the two contiguous runs first keeps its cache lines alive until they
    are full; the longer one is cut into chunks for the work-items.
    """
    loops = [k for k in range(len(plan.nodes)) if plan.positions(k).value > 1]
    if not loops:
        return plan
    near_src = min(loops, key=lambda k: plan.nodes[k].src.value << plan.bits[k])
    near_dst = min(loops, key=lambda k: plan.nodes[k].dst.value << plan.bits[k])
    middle, inner = sorted((near_src, near_dst), key=lambda k: -plan.positions(k).value)
    inner_count = plan.positions(inner).value
    alone = middle == inner or inner_count > INNER_LIMIT
    outer = tuple(k for k in loops if k != middle and (alone or k != inner))
    share = plan.tiles // (traits.compute_units * TILES_PER_UNIT)
    chunk = max(1, min(share // (1 if alone else inner_count), plan.positions(middle).value))
    return replace(plan, outer=outer, middle=middle, inner=None if alone else inner, chunk=chunk)


def _stores_whole_lines(plan: TilePlan) -> bool:
    """Whether every store writes one whole, aligned cache line of 64 bytes."""
    item = plan.problem.dst.dtype.nbytes
    if not plan.store_is_vector or plan.lanes * item != 64:
        return False
    moves = [plan.problem.dst0]
    for k, node in enumerate(plan.nodes):
        overlaps = node.guard is None and node.size.value % (1 << plan.bits[k])
        moves.append(node.dst.value if overlaps else node.dst.value << plan.bits[k])
    moves += [plan.nodes[b.node].dst.value << b.place for b in plan.store_registers]
    return all(m * item % 64 == 0 for m in moves)
