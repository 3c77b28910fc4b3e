"""The kernel that moves records to planes and back on CPUs, in words: one pass over both tensors.

A *word* of the destination has codes of several elements. For each of its places the words of the
source that hold these codes are in a vector (see `clformats.recoding.vectors`); a shift and a mask
bring all that are as far from their places at once. So words change places while they are packed,
and scales are moved with the codes that lie beside them.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from itertools import pairwise

from ..problems.thresholds import LINE_BYTES
from ..problems.traits import Traits
from ..quantised import QuantisedDesc
from ..quantised.lanes import (
    HEX,
    KINDS,
    At,
    NotInTilesError,
    Placed,
    Symbols,
    Tile,
    follow,
    placed_planes,
)
from ..quantised.planes import Field
from ..quantised.types import WHOLE
from .decoding import LINE_COLUMNS, LINE_COST
from .kernel import Grid, Kernel, TileCode, asked, blocks_of, fitting, groups_of, outer_strides
from .vectors import LANES, Cell, words_of

WORD_TILES = ((32, 32), (16, 32), (64, 32), (16, 64))
"""Rows and columns that are tried: the cheapest is taken."""
LONG_COLUMNS = 1024
"""Columns that a work-item moves at most, one tile after the other."""
ROWS_OF_PARTS = 16
"""Rows of a tile that writes parts of lines: a core follows about so many."""
SETS_BYTES = 4096
"""Lines so far apart, or a multiple of it, are in the same set of a core's first cache."""
TILES_AHEAD = 16
"""By how many tiles lines of the source are asked for before they are loaded."""
MOST_COST = 1.25
"""What an element may take; planes by themselves are faster than more."""


def rearranging(src: QuantisedDesc, dst: QuantisedDesc, traits: Traits) -> Kernel:
    """The kernel between records, of several planes side by side, and another layout of the type.

    Raises `NotInTilesError` for other layouts, and where planes move faster by themselves.
    """
    if all(len(d.buffers) == len(d.planes) for d in (src, dst)):
        raise NotInTilesError
    every = fitting(src.extents, WORD_TILES, lambda tile: _Rearranger(src, dst, tile, traits))
    found = (r for r in every if r.writes_lines or r.tile.rows <= r.most_rows)
    best = min(found, key=lambda r: r.cost, default=None)
    if best is None or best.cost >= MOST_COST:
        raise NotInTilesError
    return best.kernel()


@dataclass(frozen=True, slots=True)
class _Word:
    """A word of the destination: where it begins, and the element in each of its places."""

    at: At
    cells: tuple[Cell, ...]


_Pieces = list[list[_Word]]
"""A vector of 16 words: pieces of equal length, each of neighbours in memory."""


class _Plane:
    """A plane on both sides, in vectors of words. Raises `NotInTilesError`."""

    def __init__(self, read: Placed, write: Placed, tile: Tile, cells: Sequence[Cell]) -> None:
        if read.bits != write.bits or write.phase(tile):
            raise NotInTilesError
        self.write, self.tile, self.cells = write, tile, cells
        for self.bits in (b for b in (32, 16, 8) if b >= write.bits):
            words = self._words(cells)
            if words and len(words) % LANES == 0:
                break
        else:
            raise NotInTilesError
        self.vectors = list(self._vectors(words))
        places = range(self.bits // write.bits)
        self.wanted = [[tuple(w.cells[j] for piece in pieces for w in piece) for j in places]
                       for pieces in self.vectors]  # fmt: skip
        every = dict.fromkeys(lanes for v in self.wanted for lanes in v)
        self.read = words_of(read, tile, every, alike=True)

    def _words(self, cells: Sequence[Cell]) -> list[_Word] | None:
        """The words in the order of the destination; None where a run is no multiple of them."""
        placed = self.write.in_order(self.tile, cells)
        count, found = self.bits // self.write.bits, []
        for k in range(0, len(placed), count):
            places, own = zip(*placed[k : k + count], strict=True)
            if len(own) < count or not follow(places, self.write.bits) or places[0].shift:
                return None
            found.append(_Word(places[0], own))
        return found

    def _vectors(self, words: Sequence[_Word]) -> Iterator[_Pieces]:
        """Vectors of pieces: each of as many neighbours as all pieces have."""
        lengths, start = [], 0
        for k in range(1, len(words) + 1):
            if k == len(words) or words[k].at != words[k - 1].at.after(self.bits):
                lengths.append(k - start)
                start = k
        width = next((w for w in (16, 8, 4, 2) if all(n % w == 0 for n in lengths)), 1)
        pieces = [[*words[k : k + width]] for k in range(0, len(words), width)]
        for k in range(0, len(pieces), LANES // width):
            yield pieces[k : k + LANES // width]

    @cached_property
    def sums(self) -> list[list[tuple[str, int, int]]]:
        """For each vector of words the terms of its sum: a vector, how far right, and the mask."""
        bits, found = self.write.bits, []
        for wanted in self.wanted:
            terms: dict[tuple[str, int], int] = {}
            for j, lanes in enumerate(wanted):
                vector, shifts = self.read.held(lanes)
                key = vector, shifts[0] - j * bits
                terms[key] = terms.get(key, 0) | ((1 << bits) - 1) << j * bits
            found.append([(vector, by, mask) for (vector, by), mask in terms.items()])
        return found

    @property
    def cost(self) -> float:
        """About how many instructions it takes."""
        terms = sum(map(len, self.sums))
        return self.read.cost + 2 * terms + sum(map(len, self.vectors))

    def values(self) -> Iterator[str]:
        """C of each vector of words."""
        kind, wide = KINDS[self.bits], KINDS[max(self.bits, self.read.bits)]
        for terms in self.sums:
            texts = []
            for vector, by, mask in terms:
                text = vector if self.read.bits >= self.bits else f"convert_{wide}{LANES}({vector})"
                text = f"({text} {'>>' if by > 0 else '<<'} ({wide}){abs(by)})" if by else text
                whole = mask == (1 << self.bits) - 1 and self.bits >= self.read.bits
                texts.append(text if whole else f"({text} & ({wide}){mask:#x})")
            total = " | ".join(texts)
            yield total if wide == kind else f"convert_{kind}{LANES}({total})"


def _cells(own: Field, tile: Tile) -> list[Cell]:
    """One element of each group in a tile. Raises `NotInTilesError` for parts of groups."""
    if WHOLE in own.group or tile.rows % own.group[0] or tile.columns % own.group[1]:
        raise NotInTilesError
    return groups_of(own, tile)


class _Rearranger:
    """The moves of one tile. Raises `NotInTilesError`."""

    def __init__(self, src: QuantisedDesc, dst: QuantisedDesc, tile: Tile, traits: Traits) -> None:
        self.src, self.dst, self.tile, self.traits = src, dst, tile, traits
        self.symbols = Symbols("s")
        self.read, self.write = (placed_planes(d, self.symbols) for d in (src, dst))
        self.span = replace(tile, columns=tile.columns * self._turns(LINE_COLUMNS))
        self.planes = [plane for f in dst.fields.values() for plane in self._planes(f)]

    def _planes(self, own: Field) -> Iterator[_Plane]:
        """The planes of a field."""
        other, cells = self.src.fields[own.name], _cells(own, self.tile)
        if len(other.planes) != len(own.planes) or other.bias != own.bias:
            raise NotInTilesError
        for a, b in zip(other.planes, own.planes, strict=True):
            if b.padded != own.extents:
                raise NotInTilesError
            yield _Plane(self.read[a.name], self.write[b.name], self.tile, cells)

    @cached_property
    def cost(self) -> float:
        """About how many instructions an element takes, and the lines that it touches."""
        work = sum(p.cost for p in self.planes) / (self.tile.rows * self.tile.columns)
        return work + LINE_COST * self._lines_touched()

    @property
    def writes_lines(self) -> bool:
        """Whether runs of the destination are lines and more."""
        plane = self._largest
        return len(plane.vectors[0][0]) * plane.bits >= 8 * LINE_BYTES

    @property
    def most_rows(self) -> int:
        """How many rows the tile may have where it writes parts of lines: a core follows few.

        Whole lines of the source where those of other columns are in the same sets of a cache,
        which then keep none until the next rows are moved.
        """
        rows = self._lines_at((r, 0) for r in range(self.tile.rows))
        columns = self._lines_at((0, c) for c in range(self.tile.columns))
        apart = {b - a for a, b in pairwise(columns)} - {0}
        same_sets = apart and not any(n * LINE_BYTES % SETS_BYTES for n in apart)
        return max(ROWS_OF_PARTS, rows.count(rows[0]) if same_sets else 0)

    def _lines_at(self, cells: Iterable[Cell]) -> list[int]:
        """The lines of the source in which elements of the largest plane begin."""
        plane, found = self._largest.read.plane, []
        for at in (plane.place(self.tile, *cell) for cell in cells):
            outer = sum(n * self.symbols.values[symbol] for symbol, n in at.symbols)
            found.append((at.bits // 8 + outer) // LINE_BYTES)
        return found

    @property
    def _largest(self) -> _Plane:
        """The plane with most bits."""
        return max(self.planes, key=lambda p: len(p.vectors))

    @property
    def _reads_on(self) -> bool:
        """Whether the tiles that follow along a row read the rest of lines."""
        plane, counts = self._largest.read.plane, []
        for tile in (self.tile, self.span):
            cells = ((r, c) for r in range(tile.rows) for c in range(0, tile.columns, 2))
            counts.append(len({plane.place(tile, *cell).line(LINE_BYTES) for cell in cells}))
        turns = self.span.columns // self.tile.columns
        return 4 * counts[1] <= 3 * turns * counts[0]

    def _lines_touched(self) -> float:
        """The lines that a work-item touches for each element; in part counts twice."""
        span = self.span
        touched: Counter[object] = Counter()
        for f in self.dst.fields.values():
            cells = _cells(f, span)
            for own, placed in ((self.src.fields[f.name], self.read), (f, self.write)):
                for plane in (placed[p.name] for p in own.planes):
                    base = placed is self.read, plane.base(span)
                    for cell in cells:
                        touched[base, plane.place(span, *cell).line(LINE_BYTES)] += plane.bits
        lines = len(touched) + sum(bits < 8 * LINE_BYTES for bits in touched.values())
        return lines / (span.rows * span.columns)

    def _turns(self, columns: int) -> int:
        """How many tiles lie in so many columns, or in fewer where a row has no multiple."""
        count = self.src.extents[2] // self.tile.columns
        return next(n for n in range(max(1, columns // self.tile.columns), 0, -1) if count % n == 0)

    def kernel(self) -> Kernel:
        """The kernel."""
        tile, (e, n, k) = self.tile, self.src.extents
        turns, blocks = self._turns(LONG_COLUMNS), self._blocks()
        grid = Grid(tile, (e, n // tile.rows, k // tile.columns), turns=turns, blocks=blocks)
        what = (f"a work-item moves {tile.rows * blocks} x {turns * tile.columns} elements in "
                f"words")  # fmt: skip
        alignment = LINE_BYTES if self._streams() else 1
        program = TileCode(list(self._lines()), fp16_lanes=True, alignment=alignment)
        return grid.kernel("move", program, self.symbols, what)

    def _blocks(self) -> int:
        """As `blocks_of`, where runs are lines."""
        plane = self._largest
        run = len(plane.vectors[0][0]) * plane.bits
        rows = self.src.extents[1]
        return blocks_of(plane.write, self.tile, rows, run) if self.writes_lines else 1

    def _streams(self) -> bool:
        """Whether whole lines of a large tensor go past the caches."""
        begins = self.traits.begin_bytes >= LINE_BYTES
        return begins and self.traits.streams(self.src.nbytes + self.dst.nbytes)

    def _lines(self) -> Iterator[str]:
        """The statements of a tile."""
        if self._streams() and self._reads_on:
            sources = [(p.read.plane, p.cells) for p in self.planes]
            yield from asked(sources, self.tile, "k", TILES_AHEAD * self.tile.columns)
        for number, plane in enumerate(self.planes):
            yield from plane.read.plane.pointers(self.tile, "w")
            yield from (f"  {line}" for line in plane.read.lines())
            yield f"  global uchar *d{number} = d + {plane.write.base(self.tile)};"
            kind = KINDS[plane.bits]
            for k, (text, pieces) in enumerate(zip(plane.values(), plane.vectors, strict=True)):
                name, width = f"r{number}_{k}", len(pieces[0])
                yield f"  const {kind}{LANES} {name} = {text};"
                for j, piece in enumerate(pieces):
                    lanes = "".join(HEX[j * width : (j + 1) * width])
                    value = name if width == LANES else f"{name}.s{lanes}"
                    at = f"d{number} + {piece[0].at.byte}"
                    if width * plane.bits == 8 * LINE_BYTES and self._is_line(plane, piece[0].at):
                        yield f"  STREAM({value}, {at});"
                    elif width > 1:
                        yield f"  PUT({value}, {kind}, {width}, {at});"
                    elif plane.bits > 8:
                        yield f"  STORE_{kind.upper()}({value}, {at});"
                    else:
                        yield f"  *({at}) = {value};"

    def _is_line(self, plane: _Plane, at: At) -> bool:
        """Whether a place is that of a whole line in every tile, and lines are streamed."""
        strides = outer_strides(plane.write, self.tile, self.symbols)
        whole = not any(stride % LINE_BYTES for stride in strides)
        return self._streams() and whole and at.bits % (8 * LINE_BYTES) == 0
