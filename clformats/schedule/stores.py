"""How the lines of a tile may reach memory: which stores are legal for a schedule."""

from __future__ import annotations

from collections.abc import Sequence
from math import prod

from ..problems.arithmetic import alignment, footprint
from ..problems.problem import Problem, remembered
from ..problems.thresholds import (
    LEAST_STREAM,
    LEAST_WORD,
    LINE_BYTES,
    LONG_RUN_BYTES,
    MOST_ROWS,
    OPEN_LINES,
    STAGE_BYTES,
)
from .layout import lay_out
from .line_buffer import LineBuffer
from .nest import going_on, positions, rounds_of
from .runs import asks_anything, chain, common, guard_range, is_settled, moves, run_of
from .schedule import Loop, Store, Tile


def legal(p: Problem, tile: Tile, nest: tuple[Loop, ...], begin_bytes: int) -> list[Store]:
    """Ordinary stores, and the other kinds that a tile and the loops around it allow.

    Memory begins at multiples of ``begin_bytes``. Where whole lines may be streamed, only ordinary
    stores are worth a try beside; where old values are read, nothing else: their lines are in the
    cache then. Measured, 0.4 to 64 MB on a Zen 5: others take 0.8 to 2.9 times as long.
    """
    found = [Store()]
    if p.reads_old:
        return found
    if streams := streaming(p, tile, begin_bytes):
        return [*found, Store(streams)]
    if begin_bytes < LINE_BYTES or p.inside or tile.lanes == 1 or p.dtypes[1].is_packed:
        return found
    extents = tile.all_steps(len(p.nodes))
    if any(n.guard is not None and is_settled(p, n.guard, extents) for n in p.nodes):
        return found  # a tile that covers a whole padded dimension stores no whole vectors
    if can_buffer_lines(p, tile, nest):
        found.append(Store(lines=True))
    staged = _most_staged(p, tile, nest)
    return [*found, Store(staged=staged)] if staged else found


@remembered
def streaming(p: Problem, tile: Tile, begin_bytes: int) -> int:
    """Bytes of a streaming store that every vector of a tile may have; 0 for none.

    A tile stores whole lines, each of them at once: parts of lines that are far apart in time are
    worse than ordinary stores. One long run may begin and end anywhere in a line, if its stores
    come in order, or nearly so: see `OPEN_LINES`.
    """
    bits = p.dtypes[1].bits
    extents = tile.all_steps(len(p.nodes))
    run = run_of(p, tile, "dst")
    one_run = prod(extents) == run and run * bits >= 8 * LONG_RUN_BYTES
    whole = one_run or run * bits % (8 * LINE_BYTES) == 0
    if p.dtypes[1].is_packed and (8 % bits or tile.lanes * bits < LEAST_WORD):
        return 0
    # Rows of words that exchange elements lie apart, where the loops are one run.
    cut = bool(p.exchanges) or _ends_inside(p, extents)
    if not whole or run % tile.lanes or tile.lanes == 1 or (cut and not _has_whole_lines(p, tile)):
        return 0
    inside = zip(p.nodes, extents, strict=True)
    rows = [n.dst.value for n, extent in inside if extent > 1 and n.dst.value >= run]
    every = [run, *moves(p, "dst", extents), *rows, *(p.nodes[k].dst.value for k in p.rolled)]
    least = alignment(every, bits, min(LINE_BYTES, begin_bytes))
    anywhere = one_run and _comes_in_order(p, tile, max(tile.lanes, 8 * least // bits))
    return least if least >= (LEAST_STREAM if anywhere else LINE_BYTES) else 0


def _comes_in_order(p: Problem, tile: Tile, width: int) -> bool:
    """Whether at most `OPEN_LINES` lines of one run wait for their other parts: two of each row."""
    lines = 1 + prod(tile.extents) * p.dtypes[1].bits // (8 * LINE_BYTES)
    return min(2 * _rows_in_turn(p, tile, width), lines) <= OPEN_LINES


def _rows_in_turn(p: Problem, tile: Tile, width: int) -> int:
    """To how many rows stores of ``width`` elements go in turn before one of them goes on; about.

    Stores come in the order of loads: of vectors that are shuffled together, and of what is nearer
    in the source than the next step of the run. They come in the order of the run where nothing is
    shuffled, or where loaded vectors have more steps of its next loop than stores.
    """
    loaded, stored = ({k: min(tile.steps(k), most // reached)
                       for k, _, reached in chain(p, side) if reached < most}
                      for side, most in (("src", tile.lanes), ("dst", width)))  # fmt: skip
    axis = next((k for k, *_ in chain(p, "dst") if stored.get(k, 1) < tile.steps(k)), None)
    shuffled = common(p, tile) % tile.lanes > 0
    if axis is None or not shuffled or loaded.get(axis, 1) > stored.get(axis, 1):
        return 1
    nearer = (k for k, n in enumerate(p.nodes) if n.src.value < p.nodes[axis].src.value)
    return prod(max(1, tile.steps(k) // stored.get(k, 1)) for k in nearer)


def _ends_inside(p: Problem, extents: Sequence[int]) -> bool:
    """Whether the destination ends inside a tile that covers several loops of a dimension.

    Of 2 x 16 channels there may be 20: rows are then shorter, and closer, than `run_of` says.
    """
    return any(
        is_settled(p, g, extents)
        and sum(n.guard == g for n in p.nodes) > 1
        and guard_range(p, g, extents)[0] >= guard.end.value
        for g, guard in enumerate(p.guards)
    )


def _has_whole_lines(p: Problem, tile: Tile) -> bool:
    """Whether the vectors that a tile stores one after the other are whole lines, by their places.

    Where words exchange elements, rows that follow each other in memory may not in this order.
    """
    layout, line = lay_out(p, tile), 8 * LINE_BYTES // p.dtypes[1].bits
    places, each = layout.places(p, "dst"), max(1, line // tile.lanes)
    firsts = [n - k % each * tile.lanes for k, n in enumerate(places)]
    whole = all(v.width == tile.lanes for v in layout.stores) and not len(places) % each
    return whole and all(n % line == 0 and n == firsts[k - k % each] for k, n in enumerate(firsts))


def can_buffer_lines(p: Problem, tile: Tile, nest: tuple[Loop, ...]) -> bool:
    """Whether a line buffer can hold the rows of a tile, until they go on: a line of each at least.

    Of shorter ones some have a full line and some have none, which processors guess wrongly. Rows
    of words that exchange elements as they are stored may be apart, and shorter.
    """
    buffer = line_buffer(p, tile)
    width = buffer.width * buffer.nbytes
    fits = buffer.count <= MOST_ROWS and buffer.count * width <= STAGE_BYTES // 4
    if p.exchanges and fits:
        fits = len({v.row for v in lay_out(p, tile).stores}) == buffer.count
    return width >= LINE_BYTES and fits and line_groups(p, tile, nest) <= buffer.tiles


def line_buffer(p: Problem, tile: Tile) -> LineBuffer:
    """Where the rows of a tile wait."""
    run = run_of(p, tile, "dst")
    return LineBuffer(prod(tile.extents) // run, run, p.dtypes[1].nbytes)


def line_groups(p: Problem, tile: Tile, nest: tuple[Loop, ...]) -> int:
    """How many tiles go by before the rows of the first one go on: those of the innermost loop.

    1 where the innermost loop goes on in them itself.
    """
    inner = [loop for loop in nest if not loop.spread]
    if not inner or inner[-1].axis in going_on(p, tile, "dst"):
        return 1
    return rounds_of(p, tile, nest)[-1]


def whole_row(p: Problem, tile: Tile, nest: tuple[Loop, ...]) -> int:
    """The elements of a row that a line buffer takes one after the other: by tile after tile.

    No more than those of a loop whose last tile overlaps: how many lines are full varies there.
    """
    run, counts = run_of(p, tile, "dst"), positions(p, tile)
    inner = [loop for loop in nest[::-1] if not loop.spread]
    loops = iter(inner if line_groups(p, tile, nest) == 1 else inner[1:])
    for axis, steps, reached in chain(p, "dst"):
        if tile.steps(axis) >= steps:
            continue
        loop = next(loops, None)
        if loop is None or loop.axis != axis:
            break
        rounds = min([counts[axis], *(x.tiles for x in nest if x.axis == axis and x.tiles > 1)])
        run = min(steps * reached, run * rounds)
        if rounds < counts[axis] or steps % tile.steps(axis):
            break
    return run


def _most_staged(p: Problem, tile: Tile, nest: tuple[Loop, ...]) -> int:
    """Of how many innermost loops the tiles are one run together that fits; 0 for none."""
    along = [n.dst.value for n in p.nodes]
    best, steps = 0, steps_together(p, tile, nest, 0)
    for number, loop in enumerate(reversed(nest), 1):
        guard = p.nodes[loop.axis].guard
        if loop.spread or (guard is not None and asks_anything(p, guard, steps)):
            break
        steps = steps_together(p, tile, nest, number)
        if prod(steps) * p.dtypes[1].nbytes > STAGE_BYTES:
            break
        run = footprint(zip(steps, along, strict=True))
        if len(run) == 1 and run[0][1] == 1:
            best = number
    return best


def steps_together(p: Problem, tile: Tile, nest: tuple[Loop, ...], inner: int) -> list[int]:
    """How many steps of each loop the tiles of so many innermost loops cover, at the most.

    Of their axes all steps, or those of a block where a loop around has it; of others a tile's.
    """
    around, inside = nest[: len(nest) - inner], nest[len(nest) - inner :]
    found = tile.all_steps(len(p.nodes))
    for axis in {loop.axis for loop in inside}:
        blocks = [loop.tiles * tile.steps(axis) for loop in around if loop.axis == axis]
        found[axis] = min([p.nodes[axis].size.value, *blocks])
    return found
