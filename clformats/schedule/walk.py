"""In which order the tiles are visited, and how they are shared among work-items.

Two loops decide: the one that is nearest in the source and the one nearest in the destination,
``S`` and ``D``. A work-item takes a *box*: a chunk of one of them and the whole of the other. What
the rules rest on was measured with tensors of 25 MB and more (pocl, 2 cores, shares of a copy):

* whole lines written far apart cost nothing; lines *read* far apart cost much. So a source that a
  box reads from end to end is read so, wherever that writes;
* a core reads from end to end alone only where it need not look ahead over what a tile computes:
  byxf -> bfyx reaches 0.5, with each tile asking for its part of the next box, in the order of
  addresses, 0.9 to 1.0; for its own lines of that box, which are not in this order, 0.66;
* a core follows up to about 16 streams of addresses at once. bfyx -> byxf with the short ``D``
  innermost reads 64 of them, 0.2; with the long ``S`` innermost it reads 16, 1.0. Where a tile
  itself reads as many or more, its rows are read in boxes: while the tiles of one are moved, they
  ask for the next one, each for some rows of it, those from end to end, into the second-level
  cache. A kilobyte of a row, or less, is long enough. With 32 rows of f16 that is 1.0 instead of
  0.55 to 0.75, with 64 of u8 0.75 instead of 0.5, with 16 of f32 1.07 instead of 1.0. The nearest
  cache is too small for a box: asked for there, it is 0.85. Asking for the whole box at once gains
  little, asking each row for a little more nothing, nor does either in tensors that the cache
  holds;
* so also rows of the destination that begin where the one before ends can be what is innermost:
  with 250 channels of f32 the 250 rows of a box are asked for, and lines are carried from row to
  row (`clformats.schedule.carrying`), 0.7 instead of 0.35.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from enum import Enum
from math import prod

from .choices import Choices, either
from .traits import LINE_BYTES, Traits

ITEMS_PER_UNIT = (4, 64)
"""Work-items per core, at the least and at the most, so that cores of unequal speed finish
together; in between there are as many as `ITEM_BYTES` asks for."""
ITEM_BYTES = 32 << 10
"""What a work-item moves at the least: starting one costs as much as moving some kilobytes, and a
reorder of 0.4 MB in 196 of them takes 1.3 times as long as in 12."""
INNER_LIMIT = 64
"""The longest inner loop that is still run whole by one work-item."""
STREAMS = 16
"""Addresses far apart that a core can follow at once."""
FEW_TILES = 8
"""Fewer tiles than this do not pay for starting a work-item: it takes another loop as well."""
BOX_BYTES = 256 << 10
"""Bytes of a box whose lines are touched more than once: a part of the second-level cache."""
ROW_BYTES = 2 << 10
"""What is read of a row before the next one, where there are many rows; where less is read than is
written, a row as long as what is written: u8 ``b_fs_yx_fsv4`` to f32 ``byxf`` with 512 channels 0.8
instead of 0.6."""
DENSE_BYTES = 32 << 10
"""The longest piece of a source whose rows are rather read as one: longer rows do well alone."""
NEAR_BOX_BYTES = 8 << 10
"""A box of a source that is read from end to end, at the most, of which the next one is asked into
the nearest cache. That has 32 KB, of which this box and the next one take the half. Boxes of 16 KB
(byxf -> bfyx with 256 channels) reach 0.73 so, and 0.87 where they are asked into the second-level
cache; those of 32 KB (bfyx -> b_fs_yx_fsv16 of 16 x 16) 0.91 and 1.03."""
LEAD_BYTES = (1 << 10, 8 << 10)
"""How much earlier than one box before, into the nearest cache and into the second-level one. With
a whole box more byxf -> bfyx with 128 channels loses a tenth, in the nearest cache."""
PREFETCH_RUN_BYTES = 1 << 10
"""What is asked for of a row at once: a box of many rows is as long. 512 do as well, 256 lose a
tenth, with 4096 a box of 64 rows and the next one are too much for the second-level cache."""
ASKED_BYTES = 128 << 10
"""The largest box that is asked for: two are in the second-level cache at once."""


@dataclass(frozen=True, slots=True)
class Tiles:
    """What the walk needs to know of the tiles.

    ``counts[k]`` of them follow each other along node k, ``src_steps[k]`` and ``dst_steps[k]``
    elements apart. A tile has ``elements``, of ``src_bytes`` and ``dst_bytes``; it loads from
    ``reads`` places far apart and stores to ``writes``; ``whole_lines`` says that what it stores
    completes lines at once, past the cache; ``mingled`` that it reads here and there, not in the
    order of addresses; ``scattered`` that its rows in the source are steps of a run of several
    loops in the destination (`clformats.schedule.flat`).
    """

    counts: Sequence[int]
    src_steps: Sequence[int]
    dst_steps: Sequence[int]
    elements: int
    src_bytes: int
    dst_bytes: int
    reads: int
    writes: int
    whole_lines: bool
    mingled: bool = False
    scattered: bool = False

    def joins(self, node: int) -> bool:
        """Whether each tile along a node goes on in the source where the one before has ended."""
        return self.src_steps[node] * self.reads == self.elements

    @property
    def total(self) -> int:
        """How many tiles there are."""
        return prod(self.counts)

    @property
    def nbytes(self) -> int:
        """Bytes that a tile reads and writes."""
        return self.elements * (self.src_bytes + self.dst_bytes)


class Reads(Enum):
    """How what the tiles of a work-item read lies together, which decides what they ask for."""

    APART = "apart"
    """Here and there: nothing is asked for."""
    PIECES = "pieces"
    """All tiles of the inner loop read a piece from end to end, and pieces follow each other along
    the middle loop. A tile asks for its share of a later piece."""
    ROWS = "rows"
    """Tiles follow each other along the rows that they read. Some of them are a box, and each asks
    for some rows of the next one."""
    BOXES = "boxes"
    """Boxes of several loops (`clformats.schedule.boxes`). A tile asks for some lines of the next
    one."""


@dataclass(frozen=True, slots=True)
class Carried:
    """Along the innermost loop each tile ends the lines that the one before has begun.

    ``links``: so do rows, each the line that the row before has begun.
    """

    links: bool = False

    def __str__(self) -> str:
        return "carried to whole lines" + (" and on to the next row" if self.links else "")


@dataclass(frozen=True, slots=True)
class Kept:
    """Along the middle loop each tile ends lines that wait in private memory, ``room`` of them.

    They are those of all tiles of the inner loop.
    """

    room: int

    def __str__(self) -> str:
        return "carried to whole lines in memory"


@dataclass(frozen=True, slots=True)
class Stage:
    """A box that a work-item collects before its lines are sent: `clformats.schedule.staging`.

    It has ``held`` positions of the walk's middle loop. Its rows are steps of the loop ``row`` and
    lie along the loop ``along``, ``pitch`` elements apart in the stage: 0 stands for as far as in
    the destination, where each begins where the one before has ended. A box takes ``nbytes``.
    ``holds_all``: the middle loop is ``along``, and all of it belongs to one box.
    """

    row: int
    along: int
    held: int
    pitch: int
    nbytes: int
    holds_all: bool = False

    def __str__(self) -> str:
        return "collected in boxes"


@dataclass(frozen=True, slots=True)
class Walk:
    """The loops over the tiles.

    ``outer`` nodes are spread over work-items; each work-item runs ``chunk`` positions of node
    ``middle`` and all positions of node ``inner`` (None: no such loop), the latter in the inner
    loop, or in the outer one if ``swapped``.

    ``reads`` says what is asked for, and ``ahead`` how many positions of ``middle`` ahead: those of
    a box, where there are boxes. ``near``: into the nearest cache, not the second-level one.

    ``inside``: the loops of a box of several loops, from the outermost: ``ahead`` positions of
    ``middle``, which is one of them, and all of the others. There is no ``inner`` then.

    ``lines``: how lines become whole of which a tile has but a part; None where tiles store what
    they have.
    """

    outer: tuple[int, ...] = ()
    middle: int | None = None
    inner: int | None = None
    chunk: int = 1
    swapped: bool = False
    reads: Reads = Reads.APART
    ahead: int = 0
    near: bool = True
    inside: tuple[int, ...] = ()
    lines: Carried | Kept | Stage | None = None

    @property
    def stage(self) -> Stage | None:
        """The box that is collected, if any."""
        return self.lines if isinstance(self.lines, Stage) else None

    @property
    def carries(self) -> bool:
        """Whether tiles end lines that others have begun."""
        return isinstance(self.lines, Carried | Kept)

    @property
    def links(self) -> bool:
        """Whether rows do, too."""
        return isinstance(self.lines, Carried) and self.lines.links

    @property
    def lead(self) -> int:
        """Bytes that boxes which follow each other are asked for earlier than the box before."""
        return LEAD_BYTES[not self.near]

    @property
    def loops(self) -> tuple[int, ...]:
        """All loops over tiles."""
        inside = self.inside or tuple(k for k in (self.middle, self.inner) if k is not None)
        return (*self.outer, *inside)

    @property
    def innermost(self) -> int | None:
        """The loop that runs innermost in a work-item; None where it runs one tile."""
        if self.reads is Reads.BOXES:
            return self.inside[-1]
        return self.middle if self.inner is None or self.swapped else self.inner

    def __str__(self) -> str:
        if self.middle is None:
            return "a work-item runs 1 tile"
        loops = [f"{self.chunk} of loop {self.middle}"]
        if self.reads is Reads.BOXES:
            box = " x ".join(f"{self.ahead if k == self.middle else 'all'} of loop {k}"
                             for k in self.inside)  # fmt: skip
            return f"a work-item runs {loops[0]} in boxes of {box}, prefetching the next one"
        if self.inner is not None:
            loops.append(f"all of loop {self.inner}")
        order = " x ".join(reversed(loops) if self.swapped else loops)
        asks = f", prefetching {self.ahead} of loop {self.middle} ahead" if self.ahead else ""
        asks += "" if self.near else " into the second-level cache"
        return f"a work-item runs {order}{asks}"


def walk(tiles: Tiles, traits: Traits, *, large: bool) -> Walk:
    """The walk over the tiles; ``large`` says that the tensors exceed the cache."""
    counts = tiles.counts
    loops = [k for k, count in enumerate(counts) if count > 1]
    if not loops:
        return Walk()
    near_src = min(loops, key=tiles.src_steps.__getitem__)
    near_dst = min(loops, key=tiles.dst_steps.__getitem__)
    share = share_of(tiles, traits)
    following = _following(tiles, loops, near_src, near_dst)
    if following is not None:
        return _dense(tiles, loops, following, near_src, share)
    if tiles.mingled and tiles.src_steps[near_src] == tiles.elements:
        return _dense(tiles, loops, near_src, None, share)
    short, long = sorted((near_src, near_dst), key=lambda k: counts[k])
    nearest = short == long
    if nearest and counts[short] <= FEW_TILES and len(loops) > 1:
        # What is read goes on where the short loop has ended: OIhw8i8o to os_is_yx_isv16_osv16
        # 1.15, and 0.75 with what goes on in the destination.
        long = min((k for k in loops if k != short), key=tiles.src_steps.__getitem__)
    along_rows = large and _follows_rows(tiles, near_src)
    if short == long or counts[short] > INNER_LIMIT or along_rows:
        middle = near_src if counts[near_src] > INNER_LIMIT or along_rows else long
        return _one_loop(tiles, loops, middle, share, large=large)
    across = tiles.reads if short == near_dst else tiles.writes
    # What is nearest on both sides lies inside the rows: it adds no streams.
    swapped = not nearest and across * counts[short] >= STREAMS
    chunk = share // counts[short]
    if swapped and (short == near_src or not large):
        chunk = min(chunk, BOX_BYTES // (tiles.nbytes * counts[short]))
    chunk = max(1, min(chunk, counts[long]))
    moved = chunk * tiles.src_steps[long] * max(tiles.src_bytes, tiles.dst_bytes)
    if tiles.whole_lines and swapped and short == near_dst and moved < ROW_BYTES:
        return _one_loop(tiles, loops, long, share, large=large)
    outer = tuple(k for k in loops if k not in (short, long))
    path = Walk(outer, long, short, chunk, swapped)
    return in_boxes(path, tiles, large=large)


def share_of(tiles: Tiles, traits: Traits) -> int:
    """How many tiles a work-item is to take."""
    least, most = (n * traits.compute_units for n in ITEMS_PER_UNIT)
    items = min(max(tiles.total * tiles.nbytes // ITEM_BYTES, least), most)
    return tiles.total // items


def _following(tiles: Tiles, loops: Sequence[int], near_src: int, near_dst: int) -> int | None:
    """The loop along which pieces of the source follow each other, each all of ``near_src``.

    None where there is none, the pieces are long, or that loop goes through them from end to end.
    """
    others = [k for k in loops if k != near_src and tiles.src_steps[k]]
    piece = tiles.elements * tiles.counts[near_src]
    ordered = near_src == near_dst and tiles.src_steps[near_src] == tiles.elements
    stands = not tiles.src_steps[near_src]
    longest = ASKED_BYTES if tiles.mingled else DENSE_BYTES
    is_long = piece * tiles.src_bytes > longest
    if not (others and (tiles.whole_lines or tiles.mingled)) or ordered or stands or is_long:
        return None
    following = min(others, key=tiles.src_steps.__getitem__)
    step = tiles.src_steps[following]
    # The last tile of a piece may overlap the one before: a piece counts as less than two.
    return following if step <= piece < 2 * step else None


def _follows_rows(tiles: Tiles, near_src: int) -> bool:
    """Whether scattered rows are read along them, longer ones than a line.

    There are no boxes of several loops for them. f32 ``hwio`` to ``oiyx`` reaches 0.8 so, not 0.25.
    """
    row = tiles.counts[near_src] * tiles.src_steps[near_src] * tiles.src_bytes
    many = tiles.reads >= STREAMS and row > LINE_BYTES
    return tiles.scattered and tiles.joins(near_src) and many


def _dense(tiles: Tiles, loops: Sequence[int], middle: int, inner: int | None, share: int) -> Walk:
    """A work-item reads pieces of the source from end to end, one after the other.

    The tiles along ``inner`` make a piece; None where one tile does.
    """
    count = 1 if inner is None else tiles.counts[inner]
    chunk = max(1, min(share // count, tiles.counts[middle]))
    near = tiles.src_steps[middle] * tiles.src_bytes <= NEAR_BOX_BYTES
    outer = tuple(k for k in loops if k not in (middle, inner))
    return Walk(outer, middle, inner, chunk, reads=Reads.PIECES, ahead=1, near=near)


def _one_loop(tiles: Tiles, loops: Sequence[int], middle: int, share: int, *, large: bool) -> Walk:
    """A work-item runs along one loop, all others are shared among the work-items."""
    outer = tuple(k for k in loops if k != middle)
    chunk = max(1, min(share, tiles.counts[middle]))
    return in_boxes(Walk(outer, middle, None, chunk), tiles, large=large)


def in_boxes(path: Walk, tiles: Tiles, *, large: bool) -> Walk:
    """The walk with boxes that are asked for, where it goes along the rows of its tiles.

    The boxes of a row are nearly equal, and of whole lines. What follows the last one is the first
    one of the rows that the next work-item takes: those of the outer loop that is nearest in the
    source, which therefore runs fastest.
    """
    middle = path.middle
    if middle is None or not tiles.joins(middle):
        return path
    path = replace(path, reads=Reads.ROWS)
    if tiles.reads < STREAMS or not large:
        return path
    count, step = tiles.counts[middle], tiles.src_steps[middle] * tiles.src_bytes
    across = 1 if path.inner is None or path.swapped else tiles.counts[path.inner]
    longest = asked_of_row(tiles, across)
    boxes = -(-count // max(1, longest // step))
    line = max(1, LINE_BYTES // step)
    ahead = min(-(-count // (boxes * line)) * line, count)
    chunk = max(1, round(path.chunk / ahead)) * ahead
    outer = tuple(sorted(path.outer, key=lambda k: -tiles.src_steps[k]))
    return replace(path, outer=outer, chunk=min(chunk, count), ahead=ahead)


def asked_of_row(tiles: Tiles, across: int) -> int:
    """Bytes of a row that are asked for at once where so many tiles lie across the rows."""
    return min(PREFETCH_RUN_BYTES, ASKED_BYTES // (tiles.reads * across))


def with_choices(path: Walk, choices: Choices, counts: Sequence[int]) -> Walk:
    """The walk with what was chosen otherwise, as far as it has such loops."""
    if path.middle is None:
        return path
    chunk = min(either(choices.chunk, path.chunk), counts[path.middle])
    if path.stage and path.stage.holds_all:
        chunk = path.chunk
    ahead = path.ahead
    if choices.ahead is not None and path.reads is not Reads.APART:
        least = 1 if path.reads is Reads.BOXES else 0  # a box has a position at the least
        ahead = max(least, min(choices.ahead, _farthest(counts[path.middle])))
    # Pieces that follow each other are read from end to end, or else they are none.
    turns = path.inner is not None and path.reads is not Reads.PIECES and not path.lines
    swapped = either(choices.swapped, path.swapped) if turns else path.swapped
    return replace(path, chunk=chunk, ahead=ahead, swapped=swapped)


def _farthest(count: int) -> int:
    """Farther ahead nothing is left to read. A power of two, so that sizes make few kernels."""
    return 1 << (count - 1).bit_length() >> 1
