"""Walks in boxes of several loops, where two loops read too little from end to end.

A walk of two loops (`clformats.schedule.walk`) reads what lies along them. Between formats whose
blocks hold the batch too, or that have the features outermost, that is little: from
``bs_fs_yx_bsv32_fsv32`` to ``bfyx`` 128 bytes of every 4 KB, because the batch lies between the
features and the positions. So there a work-item goes along one loop, ``middle``, in boxes: some
positions of it, and all of other loops, as many as it takes to read a kilobyte from end to end and
to write whole lines. While a box is moved, each tile asks for some lines of the next one, in the
order of addresses.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from math import prod

from .tile import TilePlan
from .traits import LINE_BYTES, Traits
from .walk import (
    ASKED_BYTES,
    DENSE_BYTES,
    ITEM_BYTES,
    PREFETCH_RUN_BYTES,
    Reads,
    Tiles,
    Walk,
    share_of,
)

LEAST_BOX_BYTES = 16 << 10
"""What is read of a box at the least, so that the next one is asked for early enough. 64 and 128 KB
do as well."""
CHAIN_BYTES = 4 << 10
"""Loops that are near in the source are taken into the box until it has runs of so much: weights of
`OIhw8i8o` to `os_is_yx_isv16_osv16` reach 0.89 so, and 0.83 with `PREFETCH_RUN_BYTES`."""

Limits = Sequence[tuple[int, int]]
"""(what is written of a row at the least, what is read of a box at the most): the first that can be
had."""
WHOLE_LINES: Limits = ((LINE_BYTES, ASKED_BYTES), (LINE_BYTES, 2 * ASKED_BYTES))
PARTS_OF_LINES: Limits = ((1024, ASKED_BYTES), (256, 2 * ASKED_BYTES))
"""By ordinary stores a line is to be whole before it leaves the cache, and rows start anywhere in
it. Where `ioyx` to `oiyx` with 3 x 3 weights has no such box, 72 bytes are 0.14 instead of 0.25."""
NARROWING_PARTS: Limits = (*PARTS_OF_LINES, (LINE_BYTES, 2 * ASKED_BYTES))
"""Where more is read than is written, reading counts for more: from f32 to s8
`bs_fs_yx_bsv32_fsv32` to `bfyx` reaches 0.33 instead of 0.16."""

Runs = list[tuple[int, int]]
"""(how many, how far apart) in elements, the nearest first."""


def boxed(plan: TilePlan, tiles: Tiles, path: Walk, traits: Traits) -> Walk | None:
    """The walk in boxes; None where ``path`` reads long runs already, or no box does.

    Of several loops along which boxes could follow each other, the one with the most of them.
    """
    woven = plan.comb is not None and plan.comb.is_woven
    plain = not woven and plan.span is None and not any(n.parts for n in plan.nodes)
    # Joined lines fill the registers: of their source a dense walk asks for less, 1.0 and not 0.75.
    joined = plan.join is not None and path.reads is Reads.PIECES
    if path.middle is None or not plain or joined or not _is_poor(plan, tiles, path, path.middle):
        return None
    loops = [k for k, count in enumerate(tiles.counts) if count > 1]
    narrows = tiles.src_bytes > tiles.dst_bytes
    parts = NARROWING_PARTS if narrows else PARTS_OF_LINES
    for written, largest in WHOLE_LINES if plan.nontemporal else parts:
        # Nothing is longer in a source with holes, such as blocks that the batch does not fill.
        longest = _run_bytes(plan, "src", dict(enumerate(tiles.counts)))
        least = {"src": min(PREFETCH_RUN_BYTES, longest), "dst": written}
        boxes = [box for k in loops if (box := _box(plan, tiles, loops, k, least, largest))]
        if boxes:
            # The most of them follow each other.
            box = max(boxes, key=lambda one: tiles.counts[one.middle or 0] // one.ahead)
            return _shared(box, tiles, loops, traits)
    return None


def source_runs(plan: TilePlan, path: Walk) -> Runs:
    """What a box of the walk reads."""
    tiles = {k: plan.positions(k).value for k in path.inside}
    return _runs(plan, "src", tiles | ({} if path.middle is None else {path.middle: path.ahead}))


def _is_poor(plan: TilePlan, tiles: Tiles, path: Walk, middle: int) -> bool:
    """Whether a work-item reads short runs, or has little to do.

    Runs that nobody asks for are short up to `DENSE_BYTES`: `b_fs_yx_fsv16` to
    `bs_fs_yx_bsv32_fsv32`, 6 KB of each of 64 rows in turn, reaches 0.65 so and 0.95 in boxes.
    """
    if path.reads is Reads.ROWS and path.ahead:
        return False
    across = {} if path.inner is None else {path.inner: tiles.counts[path.inner]}
    if tiles.counts[middle] * prod(across.values()) * tiles.nbytes < ITEM_BYTES:
        return True
    read = {middle: path.chunk} if path.swapped else {middle: tiles.counts[middle]} | across
    # The next work-item may go on where this one ends.
    farthest = max(tiles.src_steps[k] for k in read)
    read |= {k: tiles.counts[k] for k in path.outer if tiles.src_steps[k] > farthest}
    return _run_bytes(plan, "src", read) < (PREFETCH_RUN_BYTES if path.ahead else DENSE_BYTES)


def _box(
    plan: TilePlan,
    tiles: Tiles,
    loops: Sequence[int],
    middle: int,
    least: Mapping[str, int],
    largest: int,
) -> Walk | None:
    """The least box along a loop that reads and writes long runs; None where that is large.

    It has all positions of those loops that are nearer in the source until they make a run, and of
    those nearer in the destination, too; of those with padding, always. Whole lines are written in
    the order of the source, by ordinary stores in that of the destination.
    """
    inside: dict[int, int] = {}
    for k in _nearer(loops, tiles.src_steps, middle):
        if _run_bytes(plan, "src", inside) < CHAIN_BYTES:
            inside[k] = tiles.counts[k]
    for k in _nearer(loops, tiles.dst_steps, middle):
        if plan.nodes[k].guard is not None or _run_bytes(plan, "dst", inside) < least["dst"]:
            inside[k] = tiles.counts[k]
    one = prod(inside.values()) * tiles.elements * tiles.src_bytes
    count, positions = tiles.counts[middle], 1
    while one * positions <= largest:
        box = inside | {middle: min(positions, count)}
        long = all(_run_bytes(plan, side, box) >= size for side, size in least.items())
        if long and (one * positions >= LEAST_BOX_BYTES or positions >= count):
            boxes = -(-count // positions)
            steps = tiles.src_steps if plan.nontemporal else tiles.dst_steps
            order = sorted(box, key=lambda k: -steps[k])
            return Walk(
                (), middle, reads=Reads.BOXES, ahead=-(-count // boxes), near=False,
                inside=tuple(order),
            )  # fmt: skip
        if positions >= count:
            break
        positions *= 2
    return None


def _shared(box: Walk, tiles: Tiles, loops: Sequence[int], traits: Traits) -> Walk:
    """The walk with loops around it, and as many boxes as a work-item is to take."""
    middle = box.middle or 0
    across = prod(tiles.counts[k] for k in box.inside if k != middle)
    boxes = max(1, share_of(tiles, traits) // (across * box.ahead))
    # The last of the outer loops runs fastest: there the box behind the last one lies.
    outer = sorted((k for k in loops if k not in box.inside), key=lambda k: -tiles.src_steps[k])
    return replace(box, outer=tuple(outer), chunk=min(boxes * box.ahead, tiles.counts[middle]))


def _nearer(loops: Sequence[int], steps: Sequence[int], middle: int) -> Iterator[int]:
    """The loops whose steps are shorter than those of ``middle``, the shortest first."""
    return (k for k in sorted(loops, key=steps.__getitem__) if steps[k] < steps[middle])


def _run_bytes(plan: TilePlan, side: str, box: Mapping[int, int]) -> int:
    """How long the runs of a box are on a side; so many tiles of each loop make it."""
    count, step = _runs(plan, side, box)[0]
    return (count if step == 1 else 1) * plan.problem.dtypes[side == "dst"].nbytes


def _runs(plan: TilePlan, side: str, box: Mapping[int, int]) -> Runs:
    """What a box reads or writes, the elements of runs first."""
    pieces = []
    for k, node in enumerate(plan.nodes):
        count = min(box.get(k, 1) * plan.steps_along(k), node.size.value)
        pieces.append((getattr(node, side).value, count))
    runs: Runs = [(1, 1)]
    for step, count in sorted(pieces):
        last, apart = runs[-1]
        # The last block of a run may reach beyond its end: then it counts as less than two.
        if count > 1 and step <= last * apart < 2 * step:
            runs[-1] = ((count - 1) * step // apart + last, apart)
        elif count > 1:
            runs.append((count, step))
    return runs
