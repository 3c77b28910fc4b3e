"""How many steps of each loop a tile covers: one rule, for several target run lengths.

A tile takes a run of the source and a run of the destination, each as long as is wanted. A block is
taken whole, and so is a short loop after which the run goes on, or one of whole vectors; others
are cut to a power of two. A short row that both sides have as it is, such as a window of weights or
a head of attention, is taken whole however long runs are wanted, and may be followed by the next
ones: 16 rows of 25 bytes are whole vectors.
"""

from __future__ import annotations

from collections.abc import Container, Iterator, Sequence
from math import gcd, prod

from ..problems.arithmetic import alignment, power_of_two
from ..problems.problem import Problem, remembered
from ..problems.thresholds import (
    FEW_ELEMENTS,
    LINE_BYTES,
    LONG_RUN_BYTES,
    LONGEST_ROW,
    LONGEST_SPLIT,
    MOST_LANES,
    MOST_VECTORS,
    OVERLAP,
    PREFETCHED_PLACES,
    SAME_BANK,
    SHORT,
    STREAMED_LEAST,
)
from .layout import stores_units
from .nest import is_legal_extent
from .runs import (
    asks_anything,
    begins_blocks,
    chain,
    crosses_blocks,
    guard_range,
    is_too_large,
    lacking,
    loaded_run,
    row_apart,
    run_of,
    strides,
    text_share,
    vectors,
)
from .schedule import ALL, Tile

LANES = (16, 8)
"""Of the vectors of tiles."""
TAKEN_WHOLE = (*range(1, SHORT + 1), *range(MOST_LANES, LONGEST_SPLIT + 1, MOST_LANES))
"""The steps of a loop that is taken whole where the run goes on after it: see `SHORT`."""


def extents(p: Problem, source_run: int, stored_run: int) -> tuple[int, ...]:
    """The steps of each loop that have such runs, or the longest that there are."""
    whole = {*(axis for axis, _ in (*p.exchanges, *p.inside)), *_shared_row(p)}
    taken = [n.size.value if axis in whole else 1 for axis, n in enumerate(p.nodes)]
    for side, wanted in (("src", source_run), ("dst", stored_run)):
        _take(p, taken, side, wanted)
    return tuple(taken)


@remembered
def _shared_row(p: Problem) -> list[int]:
    """The loop along the rows that both sides have as they are, if they are short.

    Loops of two or three tiles, the last of which begins earlier, cost more than the moves.
    """
    (src, row, _), (dst, *_) = ((*chain(p, side), (-1, 0, 0))[0] for side in ("src", "dst"))
    return [src] if src == dst and row <= LONGEST_ROW and len(p.nodes) > 1 else []


def _take(p: Problem, taken: list[int], side: str, wanted: int) -> None:
    run = chain(p, side)
    reached = prod(steps for _, steps, _ in run)
    rest = {k for k, n in enumerate(p.nodes) if not n.table} - {axis for axis, _, _ in run}
    if side == "src" and p.tables and reached < wanted and rest:
        # What is looked up in a table serves all steps of the next loop.
        axis = min(rest, key=lambda k: p.nodes[k].src.value)
        run = [*run, (axis, p.nodes[axis].size.value, reached)]
    run = [*run, *_rows_after(p, run, side)]
    if run and run[0][0] in _shared_row(p):
        run = run[1:]  # It is taken, and the run goes on after it.
    whole = TAKEN_WHOLE if p.nbytes >= STREAMED_LEAST else range(1, SHORT + 1)
    for axis, steps, most in run_of_whole_loops(p, run, wanted, whole):
        part = p.nodes[axis].size.value if most == ALL else power_of_two(min(most, steps))
        while part > 1 and not is_legal_extent(p, axis, part):
            part //= 2
        taken[axis] = max(taken[axis], part)


def _rows_after(
    p: Problem, run: Sequence[tuple[int, int, int]], side: str
) -> list[tuple[int, int, int]]:
    """The loop along which a run goes on where a dimension ends: 17 of 5 x 4 channels, and again.

    A tile that covers the dimension knows which of its steps are elements; others ask at an edge.
    """
    if not run:
        return []
    axis, steps, reached = run[-1]
    node = p.nodes[axis]
    if node.guard is None or node.unit != reached:
        return []
    guard, along = p.guards[node.guard], strides(p.nodes, side)
    row = guard.hi.value - guard.lo.value if side == "src" else guard.end.value
    if row >= steps * reached or row not in along:
        return []
    return [(along.index(row), p.nodes[along.index(row)].size.value, row)]


def run_of_whole_loops(
    p: Problem, run: Sequence[tuple[int, int, int]], wanted: int, whole: Container[int]
) -> Iterator[tuple[int, int, int]]:
    """(loop, its steps, how many to take) of ``wanted`` elements of a run, innermost first.

    `ALL` stands for blocks, and for loops of ``whole`` sizes after which the run goes on; of the
    last loop as many steps are left as fill the run.
    """
    for k, (axis, steps, reached) in enumerate(run):
        if reached >= wanted:
            return
        # The next row goes on within a byte of the destination: a tile covers rows together.
        cut = steps * reached % p.dtypes[1].unit > 0
        goes_on = k + 1 < len(run) and (steps in whole or cut)
        if steps * reached > wanted or not (p.nodes[axis].size.fixed or goes_on):
            yield axis, steps, wanted // reached
            return
        yield axis, steps, ALL


def tiles(p: Problem) -> Iterator[Tile]:
    """The tiles that are worth a thought, each once."""
    found: set[Tile] = set()
    most, first = 2 * MOST_VECTORS if p.inside else MOST_VECTORS, 0
    for lanes in LANES:
        runs = [steps * reached for _, steps, reached in chain(p, "src")]
        for source_run, sizes in _sizes(p, lanes):
            tile = Tile.of(sizes, min(lanes, power_of_two(prod(sizes))))
            if p.tables and tile.lanes > max([8, *runs, loaded_run(p, tile)]):
                continue  # Compilers are slow to put many short loads together.
            if tile in found or is_too_large(p, tile):
                continue
            loads, tables = vectors(p, tile, "src"), range(len(p.tables))
            begins = [begins_blocks(p, t, sizes) > 0 for t in tables]
            if p.tables and not any(begins[t] or crosses_blocks(p, t, tile.lanes) for t in tables):
                loads //= 4  # single elements
            both = loads + round(vectors(p, tile, "dst") * text_share(p, tile))
            # Words that trade elements may need runs of two lines: see `SAME_BANK`.
            limit = max(most, 2 * first) if p.exchanges and source_run == lanes else most
            wide = source_run == lanes and _has_two_lines_in_few_banks(p, tile)
            # There is little to compile where nothing is looked up.
            plain = bool(begins) and all(begins)
            if wide or plain or (p.nbytes >= STREAMED_LEAST and row_apart(p, tile) is not None):
                limit = max(limit, 2 * MOST_VECTORS)
            if (not found or both <= limit) and stores_units(p, tile):
                first = first or both
                found.add(tile)
                yield tile


def _sizes(p: Problem, lanes: int) -> Iterator[tuple[int, tuple[int, ...]]]:
    """The run of the source that is wanted, and the steps of each loop."""
    for source_run, stored_run in _wanted(p, lanes):
        found = extents(p, source_run, stored_run)
        several = _covering(p, found), _of_blocks(p, found, lanes), _without_overlaps(p, found)
        for sizes in dict.fromkeys((found, *several)):
            yield source_run, sizes


def _covering(p: Problem, sizes: tuple[int, ...]) -> tuple[int, ...]:
    """The same with all steps of dimensions that have few: no tile is at the edge of these.

    Of those that end within a run of the destination. Where they have rows of their own, as in
    `bfyx`, edges cost less than stores to all of these rows in turn. Each size is a program: so
    there may be more of them where tiles at the edge store lanes one by one. Blocks that are mostly
    padding are covered even if a run ends before them: tiles of 8 of 16 batches, of which the
    source has 2, ask whether each batch is there, and prefetch what is not.
    """
    found, near = [*sizes], 8 * LONG_RUN_BYTES // p.dtypes[1].bits
    for number, guard in enumerate(() if p.tables else p.guards):
        axes = [k for k, n in enumerate(p.nodes) if n.guard == number]
        spills = guard_range(p, number, sizes)[1] >= guard.end.value
        few = guard.end.value * (1 if spills else 2) <= FEW_ELEMENTS
        within = any(p.nodes[k].dst.value < near for k in axes)
        rest = [k for k in axes if sizes[k] < p.nodes[k].size.value]
        begun = len(rest) < len(axes) or any(axis in axes for axis, _ in lacking(p, "src"))
        if few and within and begun and asks_anything(p, number, sizes):
            for k in rest:
                found[k] = p.nodes[k].size.value
    return tuple(found)


def _without_overlaps(p: Problem, sizes: tuple[int, ...]) -> tuple[int, ...]:
    """The same with all steps of short loops whose last tile would overlap the others: `OVERLAP`.

    Such as windows and batches: 25 elements are two tiles of 16, which move 32. For large tensors
    only: each size is a program to compile.
    """
    found = [*sizes]
    for k, node in enumerate(p.nodes if p.nbytes >= STREAMED_LEAST else ()):
        size, steps = node.size.value, sizes[k]
        cut = node.guard is None and 1 < steps < size <= LONGEST_SPLIT
        if cut and -(-size // steps) * steps >= OVERLAP * size and is_legal_extent(p, k, size):
            found[k] = size
    return tuple(found)


def _of_blocks(p: Problem, sizes: tuple[int, ...], lanes: int) -> tuple[int, ...]:
    """The same with so many steps along tables that tiles begin with blocks of the source.

    Where blocks of 3 are read for blocks of 16, a tile has 48 channels. Where this does not divide
    the channels of a large tensor, it has all of them, of as many blocks as processors follow. A
    tile of a part of a block would read its lines again for the next part. Loops without tables
    have no more steps than fit into `MOST_VECTORS`: nothing is looked up that they could share.
    """
    if not p.tables:
        return sizes
    found, most = [*sizes], PREFETCHED_PLACES if p.nbytes >= STREAMED_LEAST else 0
    for number, table in enumerate(p.tables):
        steps = [n.steps_of(number) for n in p.nodes]
        if not any(steps):
            return sizes
        outer, (block, _) = steps.index(max(steps)), table.jumps[-1]
        every = block // gcd(block, steps[outer])
        found = [n.size.value if along else taken
                 for n, along, taken in zip(p.nodes, steps, found, strict=True)]  # fmt: skip
        if found[outer] % every == 0:
            found[outer] = every
        elif (found[outer] - 1) * steps[outer] > most * block:
            return sizes
    for k in (k for k, n in enumerate(p.nodes) if not n.table):
        while (prod(found) > MOST_VECTORS * lanes and not found[k] % 2
               and is_legal_extent(p, k, found[k] // 2)):  # fmt: skip
            found[k] //= 2
    return tuple(found)


def _has_two_lines_in_few_banks(p: Problem, tile: Tile) -> bool:
    """Whether neighbours of the source go to rows of two lines each in few banks of memory."""
    axis = next((axis for axis, *_ in chain(p, "src")), None)
    if axis is None or run_of(p, tile, "dst") * p.dtypes[1].bits != 16 * LINE_BYTES:
        return False
    apart = p.nodes[axis].dst.value if tile.steps(axis) > 1 else 0
    return apart > 0 and alignment([apart], p.dtypes[1].bits, SAME_BANK) == SAME_BANK


def _wanted(p: Problem, lanes: int) -> Iterator[tuple[int, int]]:
    """Runs of the source and of the destination, in elements."""
    row = _shared_row(p)
    short = [
        next((steps for k, steps, _ in chain(p, side)[:1] if 1 < steps <= SHORT or k in row), 1)
        for side in ("src", "dst")
    ]
    for source_run in (lanes, 2 * lanes, lanes * short[0]):
        for stored_run in (lanes, 2 * lanes, 4 * lanes, 8 * lanes, lanes * short[1]):
            yield source_run, stored_run
        if p.tables:  # What is looked up serves all steps of the other loops.
            yield source_run, 16 * lanes
