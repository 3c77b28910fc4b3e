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
from dataclasses import replace
from functools import partial
from math import prod

from .boxes import boxed
from .carrying import carrying_walk, keeping_walk, linking_walk
from .choices import Choices, either
from .combs import Arrangement, arranged, most_registers
from .flat import flattened
from .join import join_of, shape_of
from .lanes import LANES_LOG2, Bit, Comb, run_of
from .lines import VECTOR_REGISTERS, carrying_loop, rows_follow, streamed_piece
from .network import network
from .nibbles import refusal_of_loops
from .problem import FAR, Node, Number, Problem, fixed
from .refine import separate
from .request import Request
from .span import span_of
from .staging import has_long_boxes, is_roomy, staged
from .tile import Edge, TilePlan, tiles_of
from .traits import LINE_BYTES, Traits
from .walk import STREAMS, Reads, Walk, walk, with_choices
from .weave import weaving, woven
from .windows import possible_windows, windows_of

REGISTERS = 16
"""The most registers that a tile is made longer for, to store whole cache lines."""
STREAMED_LINES = 16
"""Whole cache lines in a tile where the tensors exceed the cache: lines that are written whole are
not read before. For bytes that is worth twice the registers that there are: 0.5 to 0.7 instead of
0.3 to 0.5 to and from byxf, 0.9 instead of 0.6 from a block."""
STREAMED_REGISTERS = 64
"""Registers of such lines of bytes."""
NARROWING_REGISTERS = 32
"""The most registers of such a tile where more is read than is written: 64 lose up to a tenth."""


def tile_refusal(p: Problem) -> str:
    """Why the tile family does not take the problem; empty if it does."""
    if reason := refusal_of_loops(p):
        return reason
    arrangement = arranged(flattened(separate(p)))
    if arrangement.load == arrangement.store:
        return "source and destination have the same lanes: nothing to transpose"
    return ""


def rows_refusal(p: Problem) -> str:
    """Why the rows family does not take the problem; empty if it does."""
    if reason := refusal_of_loops(p):
        return reason
    arrangement = arranged(separate(p))
    if not arrangement.load:
        return "neither side has a contiguous run of 4 elements"
    if arrangement.load != arrangement.store:
        return "source and destination have different contiguous runs"
    return ""


def tile_plan(request: Request) -> TilePlan:
    """The plan of both families; rows are tiles without a step.

    Of the ways to write lines of the destination whole the first that there is: a tile's vectors
    are lines, a span has them, several registers are joined, lines are carried on or collected.
    Without any, vectors are stored, joined ones where they would be stored in parts.
    """
    traits, choices, large = request.traits, request.choices, request.is_large
    p = separate(request.problem)
    streams = either(choices.nontemporal, large)
    draft = _woven_tile(p, traits, choices, large=large) or _plain_tile(p, choices, large=large)
    whole = streams and traits.begin_bytes >= LINE_BYTES
    join = partial(_joining_tile, p, traits, choices, large=large)
    if _joins_rather(draft) and (joining := (whole and join(whole=True)) or join(whole=False)):
        return joining
    if whole and (piece := streamed_piece(draft)):
        draft = replace(draft, nontemporal=True, streamed_piece=piece)
    elif whole and not draft.span and (span := span_of(draft)):
        draft = replace(draft, nontemporal=True, span=span)
    elif not draft.weave:
        if whole and (joining := join(whole=True)):
            return joining
        if streams and (better := _in_lines(draft, traits, choices)):
            return better
        parts = draft.store_piece < draft.lanes
        if parts and (joining := join(whole=False)):
            return joining
    return _walked(draft, traits, choices, large=large)


def _joins_rather(plan: TilePlan) -> bool:
    """Whether lines that are put together are rather joined, where they can be.

    That takes fewer shuffles, 1.0 instead of 0.85 in the mean of 11 cases; but for 3 channels.
    """
    if plan.comb is None or not plan.interleaves[1]:
        return False
    return plan.comb.size > 3 or plan.register_count > plan.comb.size or bool(plan.steps)


def _walked(plan: TilePlan, traits: Traits, choices: Choices, *, large: bool) -> TilePlan:
    """The tile with the walk that the rules, and the choices, give it."""
    tiles = tiles_of(plan)
    path = walk(tiles, traits, large=large)
    if large:
        path = boxed(plan, tiles, path, traits) or path
    return replace(plan, walk=with_choices(path, choices, tiles.counts))


def _woven_tile(p: Problem, traits: Traits, choices: Choices, *, large: bool) -> TilePlan | None:
    """The tile of words of elements that lie apart in the source; None where there are none."""
    found = woven(p, traits.begin_bytes)
    if found is None:
        return None
    words, weave = found
    return weaving(_tile(words, choices, large=large), weave)


def _joining_tile(
    p: Problem, traits: Traits, choices: Choices, *, large: bool, whole: bool
) -> TilePlan | None:
    """The tile whose lines are joined from several registers; None where there is none.

    ``whole``: they are lines of memory, and are written past the cache.
    """
    most = either(choices.lanes, 1 << LANES_LOG2).bit_length() - 1
    shape = shape_of(p, most, whole=whole)
    if shape is None:
        return None
    nodes = list(_promoted(p.nodes or (), (*shape.load, *shape.inside)))
    nodes[shape.node] = replace(nodes[shape.node], size=fixed(shape.size))
    lanes = len(shape.lanes)
    draft = TilePlan(
        problem=p, nodes=tuple(nodes), bits=tuple(map(shape.bits_of, range(len(nodes)))),
        load=shape.load, registers=shape.registers, steps=(),
        store=shape.load, store_registers=shape.rows, load_piece=lanes, store_piece=lanes,
        edges=(), walk=Walk(), nontemporal=whole, join=join_of(shape, _bits_near(p)),
    )  # fmt: skip
    plan = _walked(draft, traits, choices, large=large)
    few = max(shape.size, plan.register_count // 2) <= VECTOR_REGISTERS
    return plan if few or plan.walk.reads is Reads.PIECES else None


def _plain_tile(p: Problem, choices: Choices, *, large: bool) -> TilePlan:
    """The tile of elements, as long as what is loaded for its first line has elements for it."""
    draft = _tile(flattened(p), choices, large=large)
    if _reads_lanes_of_runs(draft):
        draft = _tile(p, choices, large=large)
    return _with_full_windows(draft, choices, large=large)


def _with_full_windows(draft: TilePlan, choices: Choices, *, large: bool) -> TilePlan:
    """The tile with all that its first window has elements for."""
    count, full = len(possible_windows(draft)), draft
    for beyond in range(1, LANES_LOG2) if count else ():
        longer = _tile(draft.problem, choices, large=large, beyond=beyond)
        if len(possible_windows(longer)) != count:
            break
        full = longer
    return full if windows_of(full) else draft


def _tile(
    p: Problem, choices: Choices, *, large: bool, read: int = LANES_LOG2, beyond: int = 0,
    loaded: int = 0,
) -> TilePlan:  # fmt: skip
    """The tile, without a walk.

    A vector takes ``1 << read`` elements of a run of the source at the most, others take the rest.
    The tile stores ``1 << beyond`` lines in one run, where there are registers for them. It has
    ``1 << loaded`` elements of a run of the source at the least, where that has them.
    """
    most = either(choices.lanes, 1 << LANES_LOG2).bit_length() - 1
    a = arranged(p, most, min(read, most))
    load, store, comb = a.load, a.store, a.comb
    rest = tuple(b for b in run_of(a.seen, "src", max(most, loaded)) if b not in (*load, *store))
    registers = (
        *(b for b in store if b not in load),
        *_line_bits(a, beyond, large=large, chosen=choices.registers),
        *rest,
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
        load_piece=a.piece("src"), store_piece=a.piece("dst"),
        edges=(), walk=Walk(), nontemporal=False, comb=comb, passes=rest,
    )  # fmt: skip
    return replace(draft, edges=_edges(draft))


def _reads_lanes_of_runs(plan: TilePlan) -> bool:
    """Whether single lanes are read at the ends of a source that has no stride along a run."""
    far = any(n.parts and n.src.value == FAR for n in plan.nodes)
    return far and any(edge.reaches for edge in plan.edges)


def _in_lines(draft: TilePlan, traits: Traits, choices: Choices) -> TilePlan | None:
    """The tile whose lines, of whole elements, are carried on or collected; None for neither.

    Lines that wait in private memory come first, bytes behind boxes that have room for them.

    What is carried shares the registers with a tile. Tiles of f32 that store 16 lines of f16 leave
    too few: `b_fs_yx_fsv16` to `bfyx` reaches 0.4 to 0.6, where lines are collected 0.7 to 0.9.
    With 4 and 8 rows it is 0.85 and 0.6. Where they are read in boxes of rows, carried lines do
    better, 0.66 and 0.42 with 250 channels of `bfyx` to `byxf`.
    """
    src, dst = draft.problem.dtypes
    if traits.begin_bytes < dst.nbytes or not traits.is_cpu:
        return None
    if rows := _collected_rows(draft.problem, traits, choices):
        return rows.walked(choices)
    carrying = _carrying_tile(draft.problem, traits, choices)
    crowded = carrying and src.nbytes > dst.nbytes and tiles_of(carrying).writes >= STREAMS
    collected = None if carrying and not crowded else staged(draft, tiles_of(draft), traits)
    links = carrying is not None and carrying.walk.links and not crowded
    keeping = _keeping_tile(draft.problem, traits, choices, links=links)
    if keeping and (dst.nbytes > 1 or not (collected and is_roomy(collected))):
        return keeping
    if collected and (not carrying or collected.walk.reads is Reads.PIECES):
        return collected.walked(choices)
    return carrying


def _collected_rows(p: Problem, traits: Traits, choices: Choices) -> TilePlan | None:
    """The tile of rows that become bytes and are collected; None where that gains nothing.

    It need not have whole lines of the destination. Rather it has a line of each row, and as many
    rows as a vector: of bytes 64 x 16 positions and channels, in four passes, not 16 x 64. A line
    is loaded at once, wherever in the nearest cache rows meet, 16 registers are full at a time, and
    5 tiles of 72 channels overlap by 8, where 2 do by 56. Longer elements are rather carried.
    """
    if p.dtypes[1].nbytes > 1 or choices.registers is not None:
        return None
    few = replace(choices, registers=1 << LANES_LOG2)
    draft = _tile(p, few, large=True, loaded=(LINE_BYTES // p.dtypes[0].nbytes).bit_length() - 1)
    collected = staged(draft, tiles_of(draft), traits)
    return collected if collected and has_long_boxes(collected) else None


def _keeping_tile(p: Problem, traits: Traits, choices: Choices, *, links: bool) -> TilePlan | None:
    """The tile whose lines wait in private memory; None where there is none.

    It has whole lines, whatever registers that takes. ``links``: rows can be linked in registers.
    """
    most = either(choices.registers, STREAMED_REGISTERS)
    draft = _tile(p, replace(choices, registers=most), large=True)
    tiles = tiles_of(draft)
    along = carrying_loop(draft, tiles, kept=True)
    if along is None or traits.vector_bytes < LINE_BYTES or not _has_few_edges(draft):
        return None
    path = keeping_walk(tiles, traits, along, links=links)
    if path is None:
        return None
    return replace(draft, walk=with_choices(path, choices, tiles.counts))


def _has_few_edges(plan: TilePlan) -> bool:
    """Whether less than half of the tiles are at an edge: these are moved in another pass."""
    members = ([plan.positions(k).value for k, n in enumerate(plan.nodes) if n.guard == g]
               for g in range(len(plan.problem.guards)))  # fmt: skip
    return all(prod(counts) > 2 for counts in members)


def _carrying_tile(p: Problem, traits: Traits, choices: Choices) -> TilePlan | None:
    """The tile that carries its lines on; None where there is none.

    Lanes are put in an order known at run time only, which takes vectors as long as a line.
    """
    if traits.vector_bytes < LINE_BYTES:
        return None
    for read in (LANES_LOG2, LANES_LOG2 - 1):
        draft = _tile(p, choices, large=True, read=read)
        tiles = tiles_of(draft)
        along = carrying_loop(draft, tiles)
        if along is None:
            continue
        path = linking_walk(tiles, traits, along) if rows_follow(draft, along) else None
        narrows = p.dtypes[0].nbytes > p.dtypes[1].nbytes
        path = path or (None if narrows else carrying_walk(tiles, traits, along))
        if path is not None:
            return replace(draft, walk=with_choices(path, choices, tiles.counts))
    return None


def _bits_near(p: Problem) -> int:
    """How many lane bits stay inside 128 bits, for the type that is shuffled."""
    return (16 // min(t.nbytes for t in p.dtypes)).bit_length() - 1


def _line_bits(a: Arrangement, beyond: int, *, large: bool, chosen: int | None) -> list[Bit]:
    """More register bits, so that a tile stores whole cache lines."""
    p, load, store = a.seen, a.load, a.store
    line = (LINE_BYTES // p.dtypes[1].nbytes).bit_length() - 1
    run = run_of(p, "dst", line + beyond)
    if run[: len(store)] != store:
        return []
    extra = [b for b in run if b not in store and b not in load]
    registers = (a.comb.size if a.comb else 1) << len([b for b in store if b not in load])
    item = p.dtypes[1].nbytes
    most = STREAMED_LINES * LINE_BYTES // (item << len(store))
    narrows = p.dtypes[0].nbytes > item
    if narrows:
        most = min(most, NARROWING_REGISTERS)
    if a.comb and not (narrows and item == 1):
        most = max(most, most_registers(p))
    fills = large and registers << len(extra) <= most
    most = either(chosen, most if fills else REGISTERS)
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
