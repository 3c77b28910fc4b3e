"""The gather family: rows of the destination that are gathered from blocks of the source.

``b_fs_yx_fsv16`` to ``byxf`` with 40 channels: each row of the destination, the channels of a
position, is a piece of three blocks, the last of which is half empty, and begins where the row
before ends. So a work-item puts whole pieces one behind the other into a small box in private
memory, where what is too much of the last piece is overwritten by the row that follows, and sends
that in whole lines. Nothing is masked, and no tile is at an edge. In the mean of 80 random cases
that is 0.8 of a copy, where tiles reach 0.55; among them:

=======================================  ========  =======
blocks to ``byxf``                       gathered  in rows
=======================================  ========  =======
u8, ``fsv32``, 80 channels               1.1        0.15
f32 to s8, ``fsv16``, 40 channels        1.0        0.35
f32 to f16, ``fsv32``, 72 channels       0.9        0.7
u8, ``fsv16``, 96 channels               1.1        0.55
f16, ``fsv16``, 400 channels             0.95       0.5
u8, ``fsv32``, 80 channels, in a cache   0.95       0.3
=======================================  ========  =======
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from math import prod

from .choices import either
from .nibbles import refusal_of_loops
from .problem import Node, Number, Problem, fixed
from .request import Request
from .traits import LEAST_STREAMED_BYTES, LINE_BYTES, Traits
from .walk import ITEM_BYTES, ITEMS_PER_UNIT

PIECES = (4, 64)
"""Elements of a piece, at the least and at the most."""
FILLED = 3 / 4
"""How much of a single piece belongs to the row: with 24 channels in a block of 32 1.0 instead of
0.5, but with 9 in one of 16 0.65 instead of 0.8."""
BLOCK_BYTES = (512, 8 << 10)
"""What lies together in a block of the source, at the least, and where there are more pieces than
`ROW_PIECES`: f32 ``byxf`` to ``b_fs_yx_fsv8`` with 256 channels of 13 x 13, which are 169 pieces, 1
KB of each together, reaches 0.27 instead of 1.0; but ``fsv16`` with 1000 of 14 x 14 1.0, not
0.75."""
BOX_BYTES = 2 << 10
"""What is gathered at once: with 8 KB of it u8 with 80 channels reaches 0.7 instead of 0.9."""
STAGE_BYTES = (4 << 10, 16 << 10)
"""The private memory for a box."""
ROW_PIECES = 32
"""Pieces of a row up to which it is gathered from end to end, where each is a line or more: f32 to
s8 with 40 and 255 channels 0.86 and 1.0, with a run of each block after the other 0.53 and 0.9.
More streams of reads evict each other, as do those of lines that several rows share: f16 with 400
channels 0.94 block by block instead of 0.58, u8 with 240 of 160 x 160 1.0 instead of 0.54, with 96
of 7 x 7 1.1 instead of 0.8."""
BLOCK_RUN_BYTES = 256
"""Such a run, at the least. With 128 bytes u8 to f16 with 1000 channels reaches 0.19, in tiles
0.28, f32 from ``fsv4`` with 500 channels 0.5, not 0.9."""
ASKED_BYTES = 2 << 10
"""How far ahead a block is asked for, into the second-level cache. With 325 channels of f32 0.93,
into the nearest cache 0.5; in f32 to f16 0.9, and without 0.73."""


@dataclass(frozen=True, slots=True)
class Rows:
    """How rows are put together: ``pieces`` of ``width`` elements, ``step`` apart in the source.

    ``size`` elements of them make a row. There are ``count`` rows, ``width`` apart in the source;
    ``images`` of them follow each other in the destination, where there are several.
    """

    width: int
    pieces: int
    step: Number
    size: int
    count: Number
    images: Node | None
    outer: tuple[Node, ...]

    def block_bytes(self, p: Problem) -> int:
        """The bytes of the pieces that follow each other in the source, one of each row."""
        return self.count.value * self.width * p.dtypes[0].nbytes

    def has_runs(self, p: Problem) -> bool:
        """Whether a box has room for a run of each block that is worth going along."""
        src, dst = (t.nbytes for t in p.dtypes)
        return STAGE_BYTES[-1] // (self.size * dst) * self.width * src >= BLOCK_RUN_BYTES


@dataclass(frozen=True, slots=True)
class GatherPlan:
    """Work-items of ``chunk`` rows, gathered in boxes of ``held``; ``by_blocks``: in runs of each.

    ``nontemporal``: the lines pass by the cache, and what is read is asked for ahead.
    """

    problem: Problem
    rows: Rows
    chunk: int
    held: int
    by_blocks: bool
    nontemporal: bool

    @property
    def ahead(self) -> int:
        """How many elements further on in the source pieces are asked for."""
        images, item = self.rows.images, self.problem.dtypes[0].nbytes
        if images and self.rows.block_bytes(self.problem) < 2 * ASKED_BYTES:
            return images.src.value
        return ASKED_BYTES // item

    @property
    def alignment(self) -> tuple[int, int]:
        """At multiples of how many bytes source and destination must begin; see `Plan`."""
        return 1, self.problem.dst.dtype.nbytes

    @property
    def total(self) -> int:
        """Rows that follow each other."""
        images = self.rows.images
        return self.rows.count.value * (images.size.value if images else 1)

    @property
    def parts(self) -> int:
        """The work-items that share these rows."""
        return -(-self.total // self.chunk)

    @property
    def work_items(self) -> int:
        """All work-items."""
        return self.parts * prod(n.size.value for n in self.rows.outer)

    @property
    def stage_bytes(self) -> int:
        """The private memory for a box, without what a piece and lines reach beyond it."""
        return _stage(self.held * self.rows.size * self.problem.dtypes[1].nbytes)

    def __str__(self) -> str:
        r = self.rows
        order = "block by block" if self.by_blocks else "row by row"
        stores = "non-temporal" if self.nontemporal else "ordinary"
        return (
            f"rows of {r.size} elements from {r.pieces} pieces of {r.width}, {stores} stores, "
            f"a work-item gathers {self.chunk} rows in boxes of {self.held}, {order}"
        )


def refusal(p: Problem) -> str:
    """Why the family does not take the problem; empty if it does."""
    if reason := refusal_of_loops(p):
        return reason
    if p.computation:
        return "values are computed"
    found = rows_of(p)
    return found if isinstance(found, str) else _loss(p, found)


def _loss(p: Problem, rows: Rows) -> str:
    """Why other families are faster with such rows; empty where they are not."""
    item, least = p.dtypes[1].nbytes, BLOCK_BYTES[rows.pieces > ROW_PIECES]
    nbytes = rows.size * item
    if not p.guards and (nbytes % LINE_BYTES == 0 or LINE_BYTES % nbytes == 0):
        return "rows make whole lines"
    if min(nbytes, rows.width * item) < LEAST_STREAMED_BYTES:
        return f"rows or their pieces are shorter than {LEAST_STREAMED_BYTES} bytes"
    if rows.block_bytes(p) < least:
        return f"blocks of the source have less than {least} bytes"
    many = rows.pieces > ROW_PIECES
    too_long = not rows.has_runs(p) if many else nbytes > STAGE_BYTES[-1]
    return f"rows of {nbytes} bytes are too long" if too_long else ""


def needs(p: Problem, traits: Traits) -> str:
    """What is missing for the family to gain something."""
    if traits.begin_bytes < p.dtypes[1].nbytes:
        return f"elements of {p.dtypes[1].nbytes} bytes may begin anywhere"
    if p.guards or traits.streams(p.nbytes):
        return ""
    return "the cache holds what is moved, and all blocks are full"


def plan(request: Request) -> GatherPlan:
    """The plan for a problem that `refusal` and `needs` accept."""
    p, traits, choices = request.problem, request.traits, request.choices
    rows = rows_of(p)
    if isinstance(rows, str):
        raise TypeError(rows)
    src, dst = p.dtypes
    nbytes = rows.size * dst.nbytes
    is_short = rows.width * src.nbytes < LINE_BYTES and rows.has_runs(p)
    by_blocks = rows.pieces > ROW_PIECES or is_short
    run = -(-BLOCK_RUN_BYTES // (rows.width * src.nbytes)) if by_blocks else 1
    held = max(1, BOX_BYTES // nbytes, min(run, STAGE_BYTES[-1] // nbytes))
    total = prod(n.size.value for n in p.nodes or ()) // (rows.width * rows.pieces)
    least, most = (n * traits.compute_units for n in ITEMS_PER_UNIT)
    items = min(max(p.nbytes // ITEM_BYTES, least), most)
    streams = either(choices.nontemporal, request.is_large)
    draft = GatherPlan(p, rows, 1, held, by_blocks, streams)
    chunk = either(choices.chunk, max(held, -(-total // items)))
    return replace(draft, chunk=min(chunk, draft.total))


def rows_of(p: Problem) -> Rows | str:
    """The rows, or why there are none."""
    nodes = list(p.nodes or ())
    lanes = next((n for n in nodes if n.src.value == n.dst.value == 1), None)
    if lanes is None:
        return "neither side has pieces of the other one's rows"
    width = lanes.size.value
    if not PIECES[0] <= width <= PIECES[1] or width & (width - 1):
        return f"{width} elements are no piece"
    nodes.remove(lanes)
    block = next((n for n in nodes if n.dst.value == width), None)
    if block:
        nodes.remove(block)
    pieces = block.size.value if block else 1
    size = _size(p, lanes, block, width * pieces)
    row = next((n for n in nodes if n.dst.value == size and n.src.value == width), None)
    if not size or row is None or any(n.guard is not None for n in nodes):
        return "rows do not follow each other on both sides"
    if size < width * FILLED:
        return f"{size} of {width} elements of a piece are too few"
    nodes.remove(row)
    follows = row.size.value * size
    images = next((n for n in nodes if n.dst.value == follows), None)
    if images:
        nodes.remove(images)
    step = block.src if block else fixed(0)
    return Rows(width, pieces, step, size, row.size, images, tuple(nodes))


def _size(p: Problem, lanes: Node, block: Node | None, full: int) -> int:
    """Elements of a row; 0 where some of it are padding, or some of a piece not in memory."""
    if not p.guards:
        return full
    guard, *others = p.guards
    if others or any(n.guard is None for n in (lanes, block) if n):
        return 0
    padded = guard.lo.value > 0 or guard.hi.value < guard.end.value
    missing = guard.source[0] > 0 or guard.source[1] < full
    return 0 if padded or missing else guard.hi.value


def _stage(nbytes: int) -> int:
    """The memory for a box of so many bytes."""
    return next(size for size in STAGE_BYTES if nbytes <= size)
