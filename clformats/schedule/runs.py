"""Where the steps of loops lie in memory: contiguous runs, alignment, footprints.

Each question about strides has its answer here, once. A side is ``"src"`` or ``"dst"``.
"""

from __future__ import annotations

from collections.abc import Sequence
from math import gcd, lcm, prod

from ..problems.arithmetic import footprint
from ..problems.problem import Guard, Node, Problem, remembered
from ..problems.thresholds import (
    APART_SHARE,
    APART_SHARE_OF_BYTES,
    FEW_PATTERNS,
    MOST_ELEMENTS,
    MOST_PLACES_STORED,
    PADDING_TEXT,
    STREAMED_LEAST,
)
from .schedule import Tile


def strides(nodes: Sequence[Node], side: str) -> list[int]:
    """The stride of each loop on a side, in elements; the mean one where a table has the places."""
    return [n.src.value if side == "src" else n.dst.value for n in nodes]


def steady(nodes: Sequence[Node], side: str) -> list[int]:
    """The strides of the loops; 0 where a table has the places."""
    return [0 if n.table and side == "src" else stride
            for n, stride in zip(nodes, strides(nodes, side), strict=True)]  # fmt: skip


def steps_on(p: Problem, axis: int, side: str) -> int:
    """Steps of a loop that are elements of the source, or have a place in the destination.

    Of a block of 16 these are 3, where the dimension has 3; of two loops of 4, they are 1 and 3.
    """
    node = p.nodes[axis]
    if node.guard is None:
        return node.size.value
    guard, unit = p.guards[node.guard], node.unit
    first, end = (guard.lo.value, guard.hi.value) if side == "src" else (0, guard.end.value)
    return min(node.size.value, -(-end // unit) - first // unit)


@remembered
def lacking(p: Problem, side: str) -> list[tuple[int, int]]:
    """(loop, steps) of the loops of which a side has fewer steps than they take: see `steps_on`."""
    found = [(axis, steps_on(p, axis, side)) for axis in range(len(p.nodes))]
    return [(axis, steps) for axis, steps in found if steps < p.nodes[axis].size.value]


@remembered
def chain(p: Problem, side: str, *, counted: bool = True) -> list[tuple[int, int, int]]:
    """The loops that are one run on a side, innermost first, as (loop, steps, stride).

    Each continues where the one before it ends; the last need not be taken as a whole. Of loops
    with the same stride it is the one of which the side has the most steps. Unless they are
    ``counted``, steps without a place in the destination are taken for some that have one.
    """
    all_strides = steady(p.nodes, side)
    found: list[tuple[int, int, int]] = []
    reached = 1
    while reached in all_strides:
        alike = (k for k, stride in enumerate(all_strides) if stride == reached)
        axis = max(alike, key=lambda k: steps_on(p, k, side))
        if any(axis == a for a, _, _ in found) or axis in p.rolled:
            break
        steps = p.nodes[axis].size.value
        if side == "dst" and counted:
            steps = steps_on(p, axis, "dst")
        found.append((axis, steps, reached))
        if steps == 1:
            break
        reached *= steps
    return found


def is_shifted(p: Problem, node: Node) -> bool:
    """Whether a last tile that a loop does not fill begins earlier, instead of reaching beyond it.

    So do loops without a guard; with tables, whose blocks have any size, also a guard's inner ones.
    """
    return node.guard is None or (bool(p.tables) and is_inner(p, node))


def ends_at(p: Problem, node: Node, steps: int) -> int:
    """How far tiles of so many steps go along a loop: to its end, or beyond it."""
    size = node.size.value
    return size if is_shifted(p, node) else -(-size // steps) * steps


def is_inner(p: Problem, node: Node) -> bool:
    """Whether other loops of its guard are around a loop."""
    guard = node.guard
    return guard is not None and any(n.guard == guard and n.unit > node.unit for n in p.nodes)


def begins_blocks(p: Problem, table: int, extents: Sequence[int]) -> int:
    """The steps of a block of the source where each tile begins with one, along a table; else 0.

    Then it is known which steps of a tile are in one block: these lie one after the other.
    """
    _, *coarse = p.tables[table].jumps
    found = [p.tables[table].first]
    for node, extent in zip(p.nodes, extents, strict=True):
        if node.size.value > extent:
            rest = node.size.value - extent if is_shifted(p, node) else extent
            found += [extent * node.steps_of(table), rest * node.steps_of(table)]
    every = coarse[0][0] if coarse else 0
    return 0 if not every or any(n % every for n in found) else every


def crosses_blocks(p: Problem, table: int, lanes: int) -> bool:
    """Whether vectors are loaded across the blocks of a table: single elements that are neighbours.

    A vector has a part in two blocks at the most: it is put together of two, one for each.
    """
    (_, near), *coarse = p.tables[table].jumps
    whole = p.dtypes[0].bits % 8 == 0 and not p.inside
    return (
        whole
        and near == 1
        and bool(coarse)
        and coarse[0][0] >= lanes > 1
        and all(jump >= 0 for _, jump in coarse)
    )


def moves(p: Problem, side: str, extents: Sequence[int]) -> list[int]:
    """Every number of elements by which a tile may begin after another, and the first offset."""
    found = [p.src0 if side == "src" else p.dst0]
    if side == "src":
        found += [jump for table in p.tables for _, jump in table.jumps]
    for node, stride, extent in zip(p.nodes, steady(p.nodes, side), extents, strict=True):
        if node.size.value > extent:
            found.append(extent * stride)
            if is_shifted(p, node):
                found.append((node.size.value - extent) * stride)
    return found


def guard_range(p: Problem, number: int, extents: Sequence[int]) -> tuple[int, int]:
    """How far the index of a guard gets in a tile, and over all tiles: (inside one, the last)."""
    inside = last = p.guards[number].word - 1
    for node, extent in zip(p.nodes, extents, strict=True):
        if node.guard == number:
            inside += node.unit * (extent - 1)
            last += node.unit * (-(-node.size.value // extent) * extent - 1)
    return inside, last


def is_settled(p: Problem, number: int, extents: Sequence[int]) -> bool:
    """Whether a tile covers all of a guard's loops: then it is known which steps are elements."""
    pairs = zip(p.nodes, extents, strict=True)
    return all(extent >= n.size.value for n, extent in pairs if n.guard == number)


def asks_anything(p: Problem, number: int, extents: Sequence[int]) -> bool:
    """Whether some tile reaches beyond the elements that a guard lets through."""
    guard: Guard = p.guards[number]
    return guard.lo.value > 0 or guard_range(p, number, extents)[1] >= guard.hi.value


def run_of(p: Problem, tile: Tile, side: str) -> int:
    """The elements of a tile that are one run on a side."""
    run = 1
    for axis, steps, reached in chain(p, side):
        run = reached * min(steps, tile.steps(axis))
        if tile.steps(axis) < steps:
            break
    return max(1, run)


@remembered
def row_apart(p: Problem, tile: Tile) -> int | None:
    """The loop along rows of the source that are loaded by themselves; None where they go on.

    The last vector of a row overlaps the one before, or has lanes beyond the row. So each row has
    the same shuffles: of a window of 5 x 5, or of a batch of 14. Rows of less than a vector fill
    most of it, see `APART_SHARE`, and would each have others: `has_unlike_rows`. Not of elements
    that share bytes, inside which such rows would begin.
    """
    row, has_bytes = odd_row(p, tile), min(t.nbytes for t in p.dtypes) == 1
    fills = row > tile.lanes * (APART_SHARE_OF_BYTES if has_bytes else APART_SHARE)
    apart = row > tile.lanes or (fills and has_unlike_rows(p, tile))
    return chain(p, "src")[0][0] if apart and not p.dtypes[0].is_packed else None


def odd_row(p: Problem, tile: Tile) -> int:
    """The elements of the source's rows, where a tile takes whole ones of no whole vectors; else 0.

    Rows that the destination takes apart, and after which the next one begins.
    """
    read, written = chain(p, "src"), chain(p, "dst")
    if p.tables or not read or not written or read[0][0] == written[0][0]:
        return 0
    axis, steps, _ = read[0]
    row = steps_on(p, axis, "src")
    goes_on = row in strides(p.nodes, "src")
    return row if goes_on and tile.steps(axis) == steps and row % tile.lanes else 0


def has_unlike_rows(p: Problem, tile: Tile) -> bool:
    """Whether a vector of the destination has elements of several rows that go on: see `odd_row`.

    Where vectors of the source go on from row to row, each has shuffles of its own then, of which
    compilers make slow ones. Those recur after ``row / gcd(row, lanes)`` vectors: `FEW_PATTERNS`.
    """
    row, along = odd_row(p, tile), strides(p.nodes, "src")
    if _recurs(row, tile.lanes):
        return False
    after = along.index(row)
    return any(k == after and at < tile.lanes and tile.steps(k) > 1 for k, _, at in chain(p, "dst"))


def _recurs(row: int, lanes: int) -> bool:
    """Whether rows that follow each other have alike vectors after a few: `FEW_PATTERNS`."""
    return row <= FEW_PATTERNS * gcd(row, lanes)


@remembered
def mixed(p: Problem, tile: Tile) -> int:
    """How many loaded vectors are shuffled together where stored ones cross rows; 0 elsewhere.

    Where a row of the destination ends inside a vector, and the next row goes on there, each vector
    has other shuffles until a row and a vector end together: 16 rows of 9 places are 9 vectors. All
    that is loaded for them waits in registers. Not where shuffles recur after a few vectors, as of
    rows of 12 or 24: see `FEW_PATTERNS`. Rows of 40 to 64 places count in vectors of 8, though they
    end with vectors: without it tiles of narrow vectors are taken, which are 1.3 to 1.9 times as
    slow with AVX-512, but faster where registers are narrow.
    """
    read, written, lanes = chain(p, "src"), chain(p, "dst"), tile.lanes
    if p.tables or len(written) < 2 or not read or written[0][0] == read[0][0]:
        return 0
    (axis, row, _), (after, *_) = written[:2]
    if tile.steps(axis) < row or tile.steps(after) < 2 or _recurs(row, lanes):
        return 0
    run, loaded = run_of(p, tile, "dst"), min(lanes, run_of(p, tile, "src"))
    along = {k for k, _, reached in written if reached < run}
    taken = prod(min(tile.steps(k), loaded // reached)
                 for k, _, reached in read if reached < loaded and k in along)  # fmt: skip
    group = min(run, lcm(lanes, row * taken))
    return -(-group // taken) if taken > 1 else 0


def loaded_run(p: Problem, tile: Tile) -> int:
    """The elements of a tile that are one run in the source, blocks of tables counted."""
    extents = tile.all_steps(len(p.nodes))
    levels = [*zip(extents, steady(p.nodes, "src"), strict=True)]
    for number, table in enumerate(p.tables):
        both = zip(p.nodes, extents, strict=True)
        reached = 1 + sum(n.steps_of(number) * (extent - 1) for n, extent in both)
        every = begins_blocks(p, number, extents)
        if every or crosses_blocks(p, number, tile.lanes):
            levels.append((min(every or reached, reached), table.jumps[0][1]))
    innermost = footprint(levels)[:1]
    return innermost[0][0] if innermost and innermost[0][1] == 1 else 1


def vectors(p: Problem, tile: Tile, side: str) -> int:
    """How many vectors of a tile are loaded or stored; in each turn, where words are apart."""
    run = loaded_run(p, tile) if p.tables and side == "src" else run_of(p, tile, side)
    if side == "src" and (row := row_apart(p, tile)) is not None:
        run = tile.steps(row)
    every = max(1, moved(p, tile, side) // turns(p, side))
    run = min(run, every)  # Steps that a side lacks are in no vector.
    return every // run * -(-run // tile.lanes)


def there(p: Problem, tile: Tile, *, of: str, on: str) -> float:
    """The share of a tile's vectors ``on`` a side of which the side ``of`` has elements or places.

    As far as the tile knows: it covers a block of 16 batches, of which the source has 2. Loops
    inside a vector do not count, nor those whose places in the source a table has.
    """
    share, every = 1.0, tile.all_steps(len(p.nodes))
    inside = {axis for axis, _, reached in chain(p, on) if reached < tile.lanes}
    for axis, (node, taken) in enumerate(zip(p.nodes, every, strict=True)):
        if node.guard is None or (on == "src" and node.table):
            continue
        steps = steps_on(p, axis, of)
        if steps < taken and axis not in inside and is_settled(p, node.guard, every):
            share *= steps / taken
    return share


@remembered
def filled(p: Problem, tile: Tile) -> float:
    """The share of a tile's stored vectors that have elements; the others are known as padding."""
    return there(p, tile, of="src", on="dst") / there(p, tile, of="dst", on="dst")


def text_share(p: Problem, tile: Tile) -> float:
    """How much text the stores of a tile are, compared with others: see `PADDING_TEXT`.

    Each is its own where values are computed, or elements of words moved, and in small tensors.
    """
    own = p.computation or any(p.words) or p.nbytes < STREAMED_LEAST
    share = 1 if own else filled(p, tile)
    return share + (1 - share) * PADDING_TEXT


def is_too_large(p: Problem, tile: Tile) -> bool:
    """Whether compilers would take long for a tile: `MOST_ELEMENTS`, `MOST_PLACES_STORED`."""
    places = moved(p, tile)
    return places > MOST_PLACES_STORED or places * text_share(p, tile) > MOST_ELEMENTS


@remembered
def moved(p: Problem, tile: Tile, side: str = "") -> int:
    """The elements, or words, of a tile that a side loads or stores; on the way where none is.

    Vectors that the side lacks are left out: see `there`.
    """
    sides = [side] if side else ["src", "dst"]
    places = prod(tile.extents) // prod(map(p.held, sides))
    return round(places * there(p, tile, of=side, on=side)) if side else places


def turns(p: Problem, side: str) -> int:
    """How often vectors of a side are loaded or stored for one turn of shuffles."""
    return 1 if p.held(side) > 1 else prod(p.nodes[k].size.value for k in p.rolled)


def common(p: Problem, tile: Tile) -> int:
    """The neighbouring elements that are neighbours on both sides."""
    run = 1
    for (axis, steps, a), (other, _, b) in zip(chain(p, "src"), chain(p, "dst"), strict=False):
        if (axis, a) != (other, b):
            break
        run = a * min(steps, tile.steps(axis))
        if tile.steps(axis) < steps:
            break
    return max(1, run)
