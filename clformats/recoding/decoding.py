"""The kernel that decodes a quantised tensor into numbers: a work-item decodes tiles.

A tile's elements are written in vectors of 16 that are contiguous in the destination. For each the
fields of the formula are codes in 16 lanes (see `clformats.recoding.vectors`), or one number where
all lanes share it; parameters are read once for a tile.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Sequence
from contextlib import suppress
from dataclasses import replace
from itertools import takewhile

from ..errors import Unsupported
from ..problems.thresholds import LINE_BYTES
from ..problems.traits import DEFAULT, Traits
from ..quantised import QuantisedDesc
from ..quantised.lanes import (
    KINDS,
    NotInTilesError,
    Symbols,
    Tile,
    follow,
    kind_of,
    placed_planes,
)
from ..quantised.planes import Field
from ..quantised.types import WHOLE
from ..quantised.values import Tables, of_codes, value
from ..tensors.desc import MemoryDesc
from ..values.formula import Formula
from .kernel import Grid, Kernel, TileCode, asked, blocks_of, fitting, groups_of, outer_strides
from .plain import numbers_in_tiles
from .records import decoding_in_groups
from .vectors import LANES, Cell, Lanes, Words, words_of

TARGETS = ("f32", "f16")
"""The element types that a decoding kernel writes."""
ALONG_COLUMNS = ((1, 256), (1, 32), (1, 16), (16, 32), (16, 16))
ALONG_ROWS = ((32, 32), (32, 8), (16, 32), (16, 8), (16, 4), (16, 1))
"""Rows and columns that are tried where the destination's runs go along columns, or rows."""
LONG_ROWS = ((16, 64),)
"""What is tried too where such a tile writes whole lines along rows: it reads more of a row."""
LINE_COST = 8
"""A line of 64 bytes that a tile touches costs as much as so many instructions."""
LINE_COLUMNS = 128
"""Columns that a work-item decodes where its tiles have several rows: about a line of each."""
ITEMS_AHEAD = 2
"""How many work-items before they are loaded lines are asked for, where rows are far apart."""
ENOUGH_GROUPS = 4
"""So many groups of a tile are worth a vector of parameters."""


def decoding(src: QuantisedDesc, dst: MemoryDesc, traits: Traits = DEFAULT) -> Kernel:
    """The kernel from a quantised tensor to f32 or f16 in a layout that tiles reach.

    Raises `Unsupported` (code QUANTISED) where there is none.
    """
    if not traits.is_cpu and dst.dtype.name in TARGETS:
        with suppress(NotInTilesError):
            return decoding_in_groups(src, dst, traits)
    shapes = (*ALONG_COLUMNS, *ALONG_ROWS, *LONG_ROWS) if dst.dtype.name in TARGETS else ()
    every = fitting(src.extents, shapes, lambda tile: _Decoder(src, dst, tile, traits))
    found = (d for d in every if not d.is_long or d.writes_lines_along_rows)
    best = min(found, key=lambda d: d.cost, default=None)
    if best is None:
        raise Unsupported("QUANTISED", f"no kernel decodes {src} into {dst}: unpack it on the host")
    return best.kernel()


class _Decoder:
    """The decoding of one tile. Raises `NotInTilesError`."""

    def __init__(self, src: QuantisedDesc, dst: MemoryDesc, tile: Tile, traits: Traits) -> None:
        self.src, self.dst, self.tile, self.traits = src, dst, tile, traits
        self.symbols, self.tables = Symbols("s"), Tables()
        self.planes = placed_planes(src, self.symbols)
        for plane in self.planes.values():
            plane.pointers(tile, "w")  # raises here, not when the kernel is written
        self.target = numbers_in_tiles(dst, self.symbols)
        self.vectors = list(self._vectors())
        self.fields = [src.fields[name] for name in src.dtype.formula.names]
        self.formula = src.dtype.formula.with_names(
            {f.name: Formula("name", f"v_{f.name}") for f in self.fields}
        )
        self.words: dict[str, Words] = {}
        self.turns = 1
        for f in self.fields:
            wanted = list(dict.fromkeys(x for lanes in self.vectors for x in self._asked(f, lanes)))
            if wanted and f.dtype.width == 1:
                own = {p.name: words_of(self.planes[p.name], tile, wanted) for p in f.planes}
                self.words |= own

    @property
    def is_long(self) -> bool:
        """Whether the tile is one of `LONG_ROWS`."""
        return (self.tile.rows, self.tile.columns) in LONG_ROWS

    def _vectors(self) -> Iterator[Lanes]:
        """The elements of each vector, in the order of the destination. Raises."""
        tile, bits = self.tile, self.target.bits
        cells = [(r, c) for r in range(tile.rows) for c in range(tile.columns)]
        placed = self.target.in_order(tile, cells)
        for k in range(0, len(placed), LANES):
            run = placed[k : k + LANES]
            if len(run) < LANES or not follow([at for at, _ in run], bits):
                raise NotInTilesError
            yield tuple(cell for _, cell in run)

    def _group(self, f: Field, cell: Cell) -> Cell:
        """The first element of the group that an element of the tile belongs to."""
        rows, columns = f.group[0] or self.tile.rows, f.group[1] or self.tile.columns
        return cell[0] // rows * rows, cell[1] // columns * columns

    def _is_shared(self, f: Field, lanes: Lanes) -> bool:
        """Whether the lanes have one value of a field."""
        return len({self._group(f, cell) for cell in lanes}) == 1 and f.dtype.width == 1

    def _asked(self, f: Field, lanes: Lanes) -> list[Lanes]:
        """The vectors of codes that a vector of elements needs of a field, if any."""
        if not self._is_shared(f, lanes):
            return [tuple(self._group(f, cell) for cell in lanes)]
        groups = groups_of(f, self.tile)
        at = groups.index(self._group(f, lanes[0])) // LANES * LANES
        own = groups[at : at + LANES]
        many = len(own) >= ENOUGH_GROUPS
        return [(*own, *[own[-1]] * (LANES - len(own)))] if many else []

    @property
    def writes_lines_along_rows(self) -> bool:
        """Whether vectors go along rows and make whole lines."""
        places = (self.target.place(self.tile, *lanes[0]) for lanes in self.vectors)
        written = Counter(at.line(LINE_BYTES) for at in places)
        least = 8 * LINE_BYTES // (LANES * self.target.bits)
        return self.goes_along_rows and min(written.values()) >= least

    @property
    def goes_along_rows(self) -> bool:
        """Whether the elements of a vector are of one column."""
        first, second, *_ = self.vectors[0]
        return first[1] == second[1]

    @property
    def cost(self) -> float:
        """About how many instructions an element takes, and the lines that it touches."""
        cost = sum(w.cost for w in self.words.values())
        scalars = {(f.name, self._group(f, lanes[0])) for f in self.fields for lanes in self.vectors
                   if not self._asked(f, lanes)}  # fmt: skip
        books = sum(4 * LANES * len(self.vectors) for f in self.fields if f.dtype.width > 1)
        lines = {(id(p), p.place(self.tile, r, c).line(LINE_BYTES))
                 for p in (*self.planes.values(), self.target)
                 for r in range(self.tile.rows) for c in (0, self.tile.columns - 1)}  # fmt: skip
        cost += 4 * len(scalars) + books + LINE_COST * len(lines) + 16
        return cost / (self.tile.rows * self.tile.columns)

    def kernel(self) -> Kernel:
        """The kernel."""
        tile, (e, n, k) = self.tile, self.src.extents
        turns = max(1, LINE_COLUMNS // tile.columns) if tile.rows > 1 else 1
        turns = self.turns = turns if k % (turns * tile.columns) == 0 else 1
        span = turns * tile.columns
        once = [f for f in self.fields if f.dtype.width == 1 and _is_fixed(f.group[1], span)]
        along = self.goes_along_rows
        grid = Grid(tile, (e, n // tile.rows, k // tile.columns),
                    (1, 2, 0) if along else (2, 1, 0), turns, self._blocks())  # fmt: skip
        streams = self._streams()
        known: dict[tuple[str, Lanes], str] = {}
        before = list(self._parameters(once, known))
        values = [line.strip().removeprefix("const ").split(" =")[0] for line in before
                  if line.startswith("  const float")]  # fmt: skip
        what = (f"a work-item decodes {tile.rows * grid.blocks} x {span} elements, {LANES} along "
                f"the {'rows' if along else 'columns'} at a time")  # fmt: skip
        body = list(self._lines(once, known, streams=streams))
        program = TileCode(body, before, values, self.tables, self.traits.is_cpu,
                           LINE_BYTES if streams else 1)  # fmt: skip
        return grid.kernel("decode", program, self.symbols, what)

    def _parameters(
        self, once: Sequence[Field], known: dict[tuple[str, Lanes], str]
    ) -> Iterator[str]:
        """The statements that read parameters which all turns share."""
        yield from self._read(once)
        for lanes in self.vectors:
            for f in once:
                yield from (f"  {line}" for line in self._value(f, lanes, known)[1])

    def _read(self, fields: Sequence[Field]) -> Iterator[str]:
        """The statements that load the words of fields and shuffle them."""
        for plane in (self.planes[p.name] for f in fields for p in f.planes):
            yield from plane.pointers(self.tile, "w")
            if plane.name in self.words:
                yield from (f"  {line}" for line in self.words[plane.name].lines())

    def _streams(self) -> bool:
        """Whether stores go past the caches: whole lines of a large result."""
        nbytes = self.src.nbytes + self.dst.nbytes
        lines = [self.target.place(self.tile, *v[0]).bits for v in self.vectors]
        size = LANES * self.target.bits
        pairs = all(b - a == size for a, b in zip(lines[::2], lines[1::2], strict=False))
        whole = size == 8 * LINE_BYTES or (len(lines) % 2 == 0 and pairs)
        starts = lines[:: 8 * LINE_BYTES // size]
        aligned = not any(at % (8 * LINE_BYTES) for at in starts) and all(
            number % LINE_BYTES == 0
            for number in outer_strides(self.target, self.tile, self.symbols)
        )
        begins = self.traits.begin_bytes >= LINE_BYTES
        return whole and aligned and begins and self.traits.streams(nbytes)

    def _blocks(self) -> int:
        """As `blocks_of`, where lines are streamed."""
        tile, bits = self.tile, LANES * self.target.bits
        if tile.rows == 1 or not self._streams():
            return 1
        places = [self.target.place(tile, *lanes[0]) for lanes in self.vectors]
        run = len([*takewhile(bool, (at == places[0].after(j * bits)
                                     for j, at in enumerate(places)))])  # fmt: skip
        return blocks_of(self.target, tile, self.src.extents[1], run * bits)

    def _lines(
        self, once: Sequence[Field], known: dict[tuple[str, Lanes], str], *, streams: bool
    ) -> Iterator[str]:
        """The statements of a tile, without those for the fields that are read once."""
        if streams and self.tile.rows > 1:
            yield from self._asks([p.name for f in self.fields if f not in once for p in f.planes])
        yield from self._read([f for f in self.fields if f not in once])
        yield f"  global uchar *out = d + {self.target.base(self.tile)};"
        for number, lanes in enumerate(self.vectors):
            names = {}
            for f in self.fields:
                text, own = self._value(f, lanes, known)
                yield from (f"  {line}" for line in own)
                names[f.name] = text
            formula = self.formula.with_names(
                {f"v_{name}": Formula("name", text) for name, text in names.items()}
            )
            yield f"  const float{LANES} r{number} = {formula.source('float', LANES)};"
            yield from self._stores(number, streams=streams)

    def _asks(self, planes: Sequence[str]) -> Iterator[str]:
        """The statements of the first turn that ask for lines: the rows after are decoded next."""
        span = replace(self.tile, columns=self.tile.columns * self.turns)
        cells = [(r, c) for r in range(span.rows) for c in range(0, span.columns, LANES)]
        far = ITEMS_AHEAD * self.tile.rows * self._blocks()
        yield "  if (k == first) {" if self.turns > 1 else "  {"
        yield from asked([(self.planes[name], cells) for name in planes], span, "n", far)
        yield "  }"

    def _value(
        self, f: Field, lanes: Lanes, known: dict[tuple[str, Lanes], str]
    ) -> tuple[str, Sequence[str]]:
        """The variable of a field's value in some lanes, and the statements that it takes."""
        from_book = f.dtype.width > 1  # columns of a group have values of their own
        asked = [lanes] if from_book else self._asked(f, lanes)
        key: tuple[str, Lanes] = (f.name, asked[0] if asked else (self._group(f, lanes[0]),))
        name, made = known.get(key), []
        if name is None:
            name = known[key] = f"v_{f.name}_{len(known)}"
            if asked and not from_book:
                text = self._values(f, asked[0])
            else:
                text = value(f, self.planes, self.tile, key[1], self.tables)
            made = [f"const float{LANES if asked else ''} {name} = {text};"]
        if asked and self._is_shared(f, lanes):
            at = groups_of(f, self.tile).index(self._group(f, lanes[0])) % LANES
            return f"{name}.s{at:x}", made
        return name, made

    def _values(self, f: Field, lanes: Lanes) -> str:
        """C of values in 16 lanes. Signed codes of one plane stay in words."""
        in_words = f.dtype.kind == "signed" and len(f.planes) == 1 and not f.bias
        if in_words and (text := self.words[f.planes[0].name].signed(lanes)):
            return text
        return of_codes(f.dtype, self._codes(f, lanes), LANES, self.tables)

    def _codes(self, f: Field, lanes: Lanes) -> str:
        """C of codes in 16 lanes, as vectors of the shortest type that holds them.

        Unsigned integers may stay in words.
        """
        least = (self.words[p.name].bits for p in f.planes if f.dtype.kind == "unsigned")
        kind = kind_of(max(f.bits, *least, 0))
        parts = []
        for low, plane in f.parts:
            words = self.words[plane.name]
            text = words.codes(lanes)
            text = text if KINDS[words.bits] == kind else f"convert_{kind}{LANES}({text})"
            parts.append(f"({text} << ({kind}){low})" if low else text)
        found = parts[0] if len(parts) == 1 else f"({' | '.join(parts)})"
        if f.bias:
            mask = (1 << f.bits) - 1
            found = f"({found} + ({kind}){-f.bias & mask} & ({kind}){mask})"
        return found

    def _stores(self, number: int, *, streams: bool) -> Iterator[str]:
        """What writes a vector; where lines are streamed, two of f16 at a time."""
        half = self.dst.dtype.name == "f16"
        place = self.target.place(self.tile, *self.vectors[number][0])
        if streams and half:
            if number % 2:
                place = self.target.place(self.tile, *self.vectors[number - 1][0])
                yield f"  STREAM_HALF32(r{number - 1}, r{number}, out + {place.byte});"
        elif streams:
            yield f"  STREAM(as_uint16(r{number}), out + {place.byte});"
        elif half:
            yield f"  STORE_HALF16(r{number}, out + {place.byte});"
        else:
            yield f"  PUT(r{number}, float, {LANES}, out + {place.byte});"


def _is_fixed(group: int, span: int) -> bool:
    """Whether so many columns, from a multiple of them on, lie in one group."""
    return group == WHOLE or group % span == 0
