"""The kernel that quantises rows of numbers: a work-item makes the codes of up to 16 blocks.

It goes over its blocks twice. First each block leaves its greatest value, or what else its rule of
`clformats.recoding.rules` asks for, in a lane of a vector; the parameters of all are then made
at once. Then codes are made, and `clformats.recoding.writing` puts them in their places.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from contextlib import suppress
from dataclasses import replace
from math import gcd

from ..errors import Unsupported
from ..problems.thresholds import TILE_BYTES, VECTOR_BYTES
from ..problems.traits import Traits
from ..quantised import QuantisedDesc
from ..quantised.lanes import NotInTilesError, Symbols, Tile, follow, kind_of
from ..quantised.types import WHOLE
from ..tensors.desc import MemoryDesc
from .grouped import WritingGroup
from .kernel import GROUP, Grid, Kernel, TileCode, asked, fitting, outer_strides
from .plain import numbers_in_tiles
from .records import LEAST_ITEMS, as_long_rows, columns_of_records, runs_of
from .rules import BLOCK_RULES, Plain, block_rule, filled_in, for_template, most_of, places
from .together import quantising_together
from .vectors import LANES
from .writing import Byte, Cell, Writer, lanes_of

SHAPES = ((1, 1), (1, 2), (1, 4), (1, 8), (2, 1), (8, 1), (8, 2), (4, 1))
"""Rows, and blocks along a row, that are tried after records: the first whose bytes are whole."""
QUANTISED_FROM = ("f32", "f16")
BLOCK_OF_ONE = 32
"""Blocks of so many columns are a work-item's on GPUs: neighbours read 64 bytes of f16 apart."""
COLUMNS_AHEAD = 2048
"""By how many columns lines of the source are asked for before they are loaded."""


def quantising(
    src: MemoryDesc, dst: QuantisedDesc, traits: Traits, *, in_tiles: bool = True
) -> Kernel:
    """The kernel from rows of f32 or f16 to a quantised tensor, by its type's rule.

    On GPUs it stores whole runs of bytes, or else tiles, if it may be ``in_tiles``. Raises
    `Unsupported` (code QUANTISED) where there is none: for rules that look at whole rows,
    layouts that tiles do not reach, padding, which no tile has, and on devices that do not compute
    in f32 as the host does.
    """
    kind = dst.dtype
    block = max(f.group[1] for f in kind.fields.values())
    whole = any(WHOLE in f.group for f in kind.fields.values())
    known = kind.rule in BLOCK_RULES and traits.has_ieee_f32 and src.dtype.name in QUANTISED_FROM
    known = known and not dst.has_padding and not whole and block % LANES == 0
    if known and not traits.is_cpu:
        row, numbers = as_long_rows(dst, src)
        for made in (quantising_together, _by_items)[:: 1 if block > BLOCK_OF_ONE else -1]:
            with suppress(NotInTilesError):
                return made(numbers, row, block, traits)
    record = columns_of_records(dst)
    whole_records = [(1, record)] if record % block == 0 and record <= block * LANES else []
    shapes = [*whole_records, *((r, n * block) for r, n in SHAPES)] if known and in_tiles else []
    every = fitting(dst.extents, shapes, lambda t: _Quantiser(src, dst, t, block, traits).kernel())
    found = next(every, None)
    if found is None:
        raise Unsupported("QUANTISED", f"no kernel quantises {src} to {dst}")
    return found


def _by_items(src: MemoryDesc, dst: QuantisedDesc, block: int, traits: Traits) -> Kernel:
    """The kernel of groups whose work-items have a record each."""
    return _GroupQuantiser(src, dst, block, traits).kernel()


class _Quantiser(Writer):
    def __init__(
        self, src: MemoryDesc, dst: QuantisedDesc, tile: Tile, block: int, traits: Traits
    ) -> None:
        symbols = Symbols("s")
        self.src, self.block, self.is_cpu = src, block, traits.is_cpu
        rule = block_rule(dst.dtype, src.dtype)
        self.rule = rule if self.is_cpu else replace(rule, plain=None)  # that is for vectors
        self.read = numbers_in_tiles(src, symbols)
        super().__init__(dst, tile, list(dst.planes), symbols)
        self.blocks = [(r, c) for r in range(tile.rows) for c in range(0, tile.columns, block)]
        most = LANES // len(self.blocks) if self.is_cpu else 1  # others keep few in registers
        self.turns = gcd(most, dst.extents[2] // tile.columns)
        self.plain: Plain | None = None

    def kernel(self) -> Kernel:
        """The kernel."""
        tile, (e, n, k) = self.tile, self.dst.extents
        what = f"a work-item quantises {tile.rows} x {self.turns * tile.columns} values"
        grid = Grid(tile, (e, n // tile.rows, k // tile.columns), turns=self.turns)
        program = TileCode(list(self._body()), list(self._parameters()),
                           fp16_lanes=self.is_cpu, rules=for_template())  # fmt: skip
        return grid.kernel("quantise", program, self.symbols, what)

    def _parameters(self) -> Iterator[str]:
        """The statements that make the parameters of all blocks, a block in each lane."""
        kind, columns, count = self.dst.dtype, self.tile.columns, len(self.blocks)
        for keys in self.rule.keys:
            yield from (f"  {key.kind}16 keys_{key.name}[{LANES}];" for key in keys)
            for turn in range(self.turns):
                yield f"  {{ const size_t k = first + {turn * columns};" if turn else "  {"
                yield f"    global const uchar *in = w + {self.read.base(self.tile)};"
                for j, block in enumerate(self.blocks):
                    yield from (f"    {line}" for line in self._loads(*block))
                    for key in keys:
                        texts = [filled_in(key.text, kind, self._of(turn * count + j), x=x,
                                           place=places(LANES * m, self.block))
                                 for m, x in enumerate(self._vectors(*block))]  # fmt: skip
                        yield f"    keys_{key.name}[{turn * count + j}] = {most_of(texts)};"
                yield "  }"
            for key in keys:
                yield f"  FILL(keys_{key.name}, {self.turns * count})"
                yield f"  const {key.kind}16 all_{key.name} = most_{key.kind}(keys_{key.name});"
                yield f"  const lanes_{key.kind} of_{key.name} = {{all_{key.name}}};"
        yield from (f"  {line}" for line in self.rule.parameters(kind))
        if self.rule.plain:
            yield f"  const int plain = every({self.rule.plain.condition});"

    def _body(self) -> Iterator[str]:
        """The statements that make the codes of a tile, and write them."""
        turn = f"(k - first) / {self.tile.columns} * {len(self.blocks)}" if self.turns > 1 else "0"
        yield f"  const size_t at = {turn};"
        if self.is_cpu:
            cells = [
                (r, c) for r in range(self.tile.rows) for c in range(0, self.tile.columns, LANES)
            ]
            yield from asked([(self.read, cells)], self.tile, "k", COLUMNS_AHEAD)
        if self.rule.plain:
            self.plain = self.rule.plain
            yield from ("  if (plain) {", *self._codes(), *self.stored(), "  } else {")
            self.plain = None
        yield from (*self._codes(), *self.stored())
        if self.rule.plain:
            yield "  }"

    def _codes(self) -> Iterator[str]:
        """The statements that make the codes of a tile."""
        yield f"  global const uchar *in = w + {self.read.base(self.tile)};"
        plain = self.plain
        kind, code = (plain.kind, plain.code) if plain else ("uchar", self.rule.code)
        for j, block in enumerate(self.blocks):
            yield from (f"  {line}" for line in self._loads(*block))
            for x in self._vectors(*block):
                text = filled_in(code, self.dst.dtype, self._of(f"at + {j}"), x=x)
                yield f"  const {kind}{LANES} q{x} = {text};"

    def _of(self, block: int | str) -> Callable[[str], str]:
        """What a parameter of a block is in C."""
        return lambda name: f"of_{name}.s[{block}]"

    def _vectors(self, row: int, column: int) -> list[str]:
        """The names of the vectors of a block's values."""
        return [f"x{row}_{c}" for c in range(column, column + self.block, LANES)]

    def _loads(self, row: int, column: int) -> Iterator[str]:
        """The statements that load a block."""
        half, bits = self.src.dtype.name == "f16", self.read.bits
        for x, c in zip(self._vectors(row, column),
                        range(column, column + self.block, LANES), strict=True):  # fmt: skip
            places = [self.read.place(self.tile, row, c + j) for j in range(LANES)]
            if not follow(places, bits):
                raise NotInTilesError
            kind = "ushort" if half else "uint"
            loaded = self.loaded(kind, f"in + {places[0].byte}")
            if half:
                yield f"const ushort16 h{x} = {loaded};"
                yield f"const float16 {x} = halves_of(h{x});"
            else:
                yield f"const float16 {x} = as_float16({loaded});"

    def loaded(self, kind: str, at: str) -> str:
        """C of 16 numbers in memory."""
        return f"GET({kind}, 16, {at})"

    def stored(self) -> Iterator[str]:
        """The statements that write the codes of a tile."""
        return self.stores()

    def codes(self, field: str, cells: Sequence[Cell]) -> str:
        """Codes of values by vectors and lanes, those of parameters by blocks."""
        if field != "q":
            own = (self.blocks.index((r, c // self.block * self.block)) for r, c in cells)
            texts = [self._of(f"at + {j}")(field) for j in own]
            kind = kind_of(8 * self.dst.fields[field].dtype.nbytes)
            return texts[0] if len(texts) == 1 else f"({kind}{len(texts)})({', '.join(texts)})"
        if not self.plain:
            return self._lanes("uchar", cells)
        text, kind = self._lanes(self.plain.kind, cells), self.plain.kind
        lanes = len(cells)
        return f"(uchar){text}" if lanes == 1 else f"convert_uchar{lanes}({text} & ({kind})255)"

    def _lanes(self, kind: str, cells: Sequence[Cell]) -> str:
        """C of the codes of values, as vectors of a type: parts of vectors side by side."""
        return lanes_of(kind, [(f"qx{r}_{c // LANES * LANES}", c % LANES) for r, c in cells])

    def _joined(self, own: Sequence[Byte]) -> str:
        """C of bytes that have the same parts; codes that fill them are joined as they are."""
        shape, q = own[0].shape, self.dst.fields["q"]
        whole = {(p.field, p.bits) for p in shape} == {("q", q.bits)}
        if not self.plain or len(own) == 1 or not whole or q.bias:
            return super()._joined(own)
        kind = self.plain.kind
        texts = [f"{self._lanes(kind, [b.cells[i] for b in own])} << ({kind}){part.shift}"
                 for i, part in enumerate(shape)]  # fmt: skip
        return f"convert_uchar{len(own)}(({' | '.join(texts)}) & ({kind})255)"


class _GroupQuantiser(_Quantiser):
    """A work-item makes the codes of one record. Raises `NotInTilesError` for other layouts."""

    def __init__(self, src: MemoryDesc, dst: QuantisedDesc, block: int, traits: Traits) -> None:
        if traits.local_bytes < TILE_BYTES or traits.begin_bytes < VECTOR_BYTES:
            raise NotInTilesError
        record, k = columns_of_records(dst), dst.extents[2]
        nbytes = dst.nbytes * record // dst.nelems
        items = min(GROUP, traits.group_size, TILE_BYTES // max(1, nbytes))
        if record % block or record > block * LANES or items < LEAST_ITEMS:
            raise NotInTilesError
        items = 1 << items.bit_length() - 1
        super().__init__(src, dst, Tile(1, record), block, traits)
        if any(n % VECTOR_BYTES for n in outer_strides(self.read, self.tile, self.symbols)):
            raise NotInTilesError
        runs = runs_of([*self.write.values()], k, record * items)
        self.group = WritingGroup(self, items, record, list(runs))

    def kernel(self) -> Kernel:
        """The kernel."""
        group = self.group
        what = (f"a work-group of {group.items} quantises {group.span} values of a row, records "
                f"through local memory, stored by {group.word} bytes")  # fmt: skip
        return group.kernel("quantise", self._lines(), what, for_template())

    def _lines(self) -> Iterator[str]:
        """The statements of a work-item."""
        yield f"    const size_t first = k + mine * {self.tile.columns};"
        yield "    { const size_t k = first;"
        yield from (*self._parameters(), *self._body(), "    }")

    def stored(self) -> Iterator[str]:
        """To local memory."""
        return self.group.stores()

    def loaded(self, kind: str, at: str) -> str:
        """By whole words of the device."""
        parts = [f"((global const uint4 *)({at}))[{j}]" for j in range(4 if kind == "uint" else 2)]
        wide = 4 * len(parts)
        return f"as_{kind}16((uint{wide})({', '.join(parts)}))"
