"""Boxes that are collected in private memory before their lines are sent.

Where rows of the destination start anywhere and lines are not carried on in registers
(`clformats.schedule.carrying`), a work-item stores the tiles of a box to a *stage*: each row at the
place in a line where it starts in the destination. When the box is full its lines are sent, whole
and past the cache. Rows that follow each other in the destination do so in the stage as well, and
are one run. Of other rows a box has a part, and what is left of the last line of each waits for the
next box.

That is worth while where the source is read in order and asked for ahead of it: with f32 to s8,
`fs_b_yx_fsv32` to `bfyx` with images of 14 x 14, ordinary stores reach 0.21 of a copy, with asking
0.45, and with boxes that are asked for 0.8 to 1.0. Where boxes of many rows are read, `bfyx` to
`byxf` with any number of channels, u8 reaches 0.5 to 0.9 instead of 0.2 to 0.7, f32 to s8 0.6 to
0.8 instead of 0.4 to 0.6, but not where ordinary stores fill lines soon: with 64 channels 0.5
instead of 0.65. Such tiles have lines of 16 rows (`clformats.schedule.tiling`).
"""

from __future__ import annotations

from dataclasses import replace

from .problem import FAR, fixed
from .tile import TilePlan
from .traits import LEAST_STREAMED_BYTES, LINE_BYTES, Traits
from .walk import Reads, Stage, Tiles, Walk, in_boxes, share_of

STAGE_BYTES = (16 << 10, 64 << 10)
"""The private memory that holds a box: half of the nearest cache, and what is taken of the second
one where so many rows are read together that the nearest does not hold a run of each. With 8 KB
some cases reach 0.4 instead of 0.6, with 32 KB as many gain as lose a little; `byxf` to `bfyx` with
128 channels of u8 reaches 0.6 with 64 KB, with 16 KB no more than without."""
LEAST_RUN_BYTES = 128
"""A run of a row in a box, at the least."""
LONG_RUN_BYTES = 512
"""Runs from which on rows of bytes are collected in the second-level cache, too: `byxf` to `bfyx`
with 67 channels 0.52, carried through memory 0.43, but 0.51 and 0.61 with 100 channels, 0.37 and
0.55 with 250. In the nearest cache f32 to s8 `b_fs_yx_fsv32` to `bfyx` reaches 0.71, not 0.5."""
LEAST_ROW_BYTES = 512
"""Rows that are taken in runs are as long, at the least: the lines at the ends of one that are not
whole count for more than is gained."""
LEAST_SPLIT_BYTES = (256, 32)
"""Rows from which on they are rather collected than stored the ordinary way, f32 to s8 `bfyx` to
`byxf`: those of whole pieces, 0.7 instead of 0.5 with 256 to 1024 channels, but 0.49 instead of
0.67 with 64 and 0.65 instead of 0.9 with 128, and others, 0.65 instead of 0.5 with 40 to 250
channels, but less with 24."""
MANY_BOXES = 4
"""More boxes of a row than these, and what is not asked for early counts little."""
LEAST_BOX_BYTES = 4 << 10
"""A box of rows that follow each other, at the least."""


def staged(plan: TilePlan, tiles: Tiles, traits: Traits) -> TilePlan | None:
    """The tile with a walk in boxes that are collected; None where that gains nothing."""
    row = _row(plan)
    if row is None:
        return None
    block = _block(plan, row)
    paths = (
        None if block == row else _in_whole_rows(plan, tiles, traits, block),
        _of_all_rows(plan, tiles, row),
        _in_whole_rows(plan, tiles, traits, row),
        _in_runs(plan, tiles, traits, row),
    )
    narrows = tiles.src_bytes > tiles.dst_bytes
    for path in paths:
        collected = replace(plan, walk=path or Walk())
        in_rows = collected.walk.reads is Reads.ROWS
        pays = _splits_lines(plan, row) and has_long_boxes(collected)
        if collected.walk.ahead and (pays or not (narrows and in_rows)):
            return collected
    return None


def has_long_boxes(plan: TilePlan) -> bool:
    """Whether rows are read in boxes, and the last one of a row is not too short.

    It asks for the first box of the rows behind: f32 to s8 `bfyx` to `byxf` with 512 channels of
    14 x 14, boxes of 4, 4, 4 and 1 tiles, reaches 0.35, in runs 0.7. Of many boxes one may be.
    """
    path = plan.walk
    if path.middle is None or path.reads is not Reads.ROWS:
        return False
    count = plan.positions(path.middle).value
    return count > MANY_BOXES * path.ahead or 2 * ((count - 1) % path.ahead + 1) >= path.ahead


def is_roomy(plan: TilePlan) -> bool:
    """Whether a box has whole rows or long runs, or is in the nearest cache.

    Else rows of bytes do better where they are carried through memory.
    """
    stage, item = plan.walk.stage, plan.problem.dtypes[1].nbytes
    if stage is None:
        return False
    run = stage.held * plan.steps_along(stage.along) * item
    return not stage.pitch or stage.nbytes <= STAGE_BYTES[0] or run >= LONG_RUN_BYTES


def _splits_lines(plan: TilePlan, row: int) -> bool:
    """Whether ordinary stores of rows of bytes leave lines in part for long, or lie across them."""
    item = plan.problem.dtypes[1].nbytes
    step = plan.nodes[row].dst.value * item
    return item == 1 and step >= LEAST_SPLIT_BYTES[step % LEAST_STREAMED_BYTES > 0]


def _row(plan: TilePlan) -> int | None:
    """The loop whose steps are the rows of a tile; None where these are not plain."""
    along = plan.store[0].node
    rows = {b.node for b in plan.store_registers if b.node != along}
    if plan.comb or plan.span or plan.weave or plan.store_piece != plan.lanes or len(rows) != 1:
        return None
    if any(b.node != along for b in plan.store) or any(n.parts for n in plan.nodes):
        return None
    row = rows.pop()
    for g in range(len(plan.problem.guards)):
        members = [k for k, n in enumerate(plan.nodes) if n.guard == g]
        always = all(plan.positions(k).value == 1 for k in members)
        if along in members or always:
            return None
    return row if plan.nodes[row].dst.value != FAR and _begins_inside(plan, row) else None


def _begins_inside(plan: TilePlan, node: int) -> bool:
    """Whether the first tiles along a loop are those inside the tensor, if any are."""
    guard = plan.nodes[node].guard
    return guard is None or plan.problem.guards[guard].lo == fixed(0)


def _block(plan: TilePlan, row: int) -> int:
    """The loop of blocks of rows that follow each other, each a tile's; else that of the rows."""
    along = plan.nodes[plan.store[0].node]
    size = along.size.value << plan.bits[row]
    blocks = [
        k for k, node in enumerate(plan.nodes)
        if node.dst.value == size and not plan.bits[k] and plan.positions(k).value > 1
    ]  # fmt: skip
    one = plan.positions(row).value == 1 and plan.nodes[row].dst.value == along.size.value
    return blocks[0] if one and blocks and _begins_inside(plan, blocks[0]) else row


def _of_all_rows(plan: TilePlan, tiles: Tiles, row: int) -> Walk | None:
    """A box of all rows, which follow each other and lie across in the source; None without.

    Blocks of 32 features of 35 x 35 bytes, which take 39 KB, reach 0.6, and 0.43 in runs.
    """
    along, count = plan.store[0].node, tiles.counts[row]
    across = tiles.src_steps[row] < tiles.src_steps[along]
    nbytes = count * tiles.dst_steps[row] * tiles.dst_bytes
    follow = plan.nodes[row].dst.value == plan.nodes[along].size.value
    if not (across and follow and LEAST_BOX_BYTES <= nbytes <= STAGE_BYTES[1]):
        return None
    path = _asking(Walk(_outer(tiles, row, along), along, row, tiles.counts[along]), tiles)
    return replace(path, lines=Stage(row, along, path.chunk, 0, nbytes, holds_all=True))


def _in_whole_rows(plan: TilePlan, tiles: Tiles, traits: Traits, row: int) -> Walk | None:
    """Boxes of whole rows that follow each other; None where they do not, or are too long.

    ``row`` may be the loop of blocks of rows.
    """
    along, counts = plan.store[0].node, tiles.counts
    step, size = plan.nodes[row].dst.value, plan.nodes[along].size.value
    follow = step == size if plan.bits[row] else step % size == 0
    nbytes = tiles.dst_steps[row] * tiles.dst_bytes
    held = min(STAGE_BYTES[0] // nbytes, counts[row]) if follow else 0
    if not held or held * nbytes < LEAST_BOX_BYTES:
        return None
    share = share_of(tiles, traits) // (counts[along] * held) * held
    outer = _outer(tiles, row, along)
    path = _asking(Walk(outer, row, along, min(max(share, held), counts[row])), tiles)
    if path.reads is Reads.ROWS and path.ahead:
        # What is asked for at once is a number of boxes, nearly equal ones.
        held = -(-path.ahead // -(-path.ahead // held))
    return replace(path, lines=Stage(row, along, held, 0, held * nbytes))


def _in_runs(plan: TilePlan, tiles: Tiles, traits: Traits, row: int) -> Walk | None:
    """Boxes of a run of each row; None where rows are too short, or too many."""
    along, counts, item = plan.store[0].node, tiles.counts, tiles.dst_bytes
    step, rows = plan.steps_along(along) * item, counts[row] * plan.steps_along(row)
    unit = max(1, LINE_BYTES // step)
    least = max(LEAST_RUN_BYTES, unit * step) + 2 * LINE_BYTES
    room = next((size for size in STAGE_BYTES if rows * least <= size), None)
    if room is None or plan.nodes[along].size.value * item < LEAST_ROW_BYTES:
        return None
    held = (room // rows - 2 * LINE_BYTES) // (step * unit) * unit
    held = min(held, -(-counts[along] // unit) * unit)
    line, run = LINE_BYTES // item, held * plan.steps_along(along)
    # As far apart, by lines, as in the destination, with room for a tile that overlaps.
    pitch = run + line + (plan.nodes[row].dst.value - run) % line
    parts = max(1, counts[along] * counts[row] // max(1, share_of(tiles, traits)))
    chunk = min(-(-counts[along] // (parts * held)) * held, counts[along])
    path = _asking(Walk(_outer(tiles, along, row), along, row, chunk), tiles)
    return replace(path, lines=Stage(row, along, held, pitch, rows * pitch * item))


def _asking(path: Walk, tiles: Tiles) -> Walk:
    """The walk with what is asked for ahead, if anything, into the second-level cache.

    Into the nearest one, which holds the stage, f32 to s8 reaches 0.31 instead of 0.59.
    """
    middle, inner = path.middle, path.inner
    if middle is None or inner is None or tiles.src_steps[middle] < tiles.src_steps[inner]:
        return in_boxes(path, tiles, large=True)
    piece, step = tiles.elements * tiles.counts[inner], tiles.src_steps[middle]
    if step <= piece < 2 * step:
        return replace(path, reads=Reads.PIECES, ahead=1, near=False)
    return in_boxes(path, tiles, large=True)


def _outer(tiles: Tiles, *inner: int) -> tuple[int, ...]:
    """The loops that work-items share: what is nearest in the source runs fastest."""
    loops = [k for k, count in enumerate(tiles.counts) if count > 1 and k not in inner]
    return tuple(sorted(loops, key=lambda k: -tiles.src_steps[k]))
