"""A work-group on GPUs that quantises blocks together: each work-item has up to 32 values of one.

Neighbours load neighbours. A block's work-items put what its rule asks for of their values into
local memory, each takes the greatest of all, and makes the parameters and its own codes. Codes and
parameters lie in local memory as in the destination, and are stored as runs of bytes.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from math import gcd

import numpy as np

from ..problems.thresholds import TILE_BYTES, VECTOR_BYTES
from ..problems.traits import Traits
from ..quantised import QuantisedDesc
from ..quantised.lanes import NotInTilesError, Symbols, Tile, follow, kind_of
from ..quantised.values import Tables, source
from ..tensors.desc import MemoryDesc
from ..tensors.dtypes import as_dtype
from .grouped import LOCALLY, into_local
from .kernel import Kernel, outer_strides
from .plain import numbers_in_tiles
from .records import LEAST_ITEMS, runs_of
from .rules import BlockKey, block_rule, filled_in, for_template, most_of, places
from .vectors import LANES
from .writing import Cell, Writer, lanes_of

MOST_ITEMS = 256
"""Work-items of a group."""
MOST_VALUES = 2 * LANES
"""Values of a work-item: neighbours read 64 bytes of f16 apart, as with records of 32."""
DIVISION, BY_INVERSE = "{x} / {t}", "quotient({x}, {t}, {it})"
QUOTIENT = """// x / t, correctly rounded, where 1 / t is normal: remainders correct its product.
static inline float16 quotient(float16 x, float t, float it) {
  float16 q = x * it;
  q = fma(fma(-q, (float16)t, x), (float16)it, q);
  return fma(fma(-q, (float16)t, x), (float16)it, q);
}
"""
LARGEST_DIVISOR = "1e37f"
"""Up to there an inverse is one."""


def quantising_together(src: MemoryDesc, dst: QuantisedDesc, block: int, traits: Traits) -> Kernel:
    """The kernel from rows of f32 or f16 to rows of a type whose blocks have so many columns.

    Raises `NotInTilesError` for layouts whose rows are no runs of bytes.
    """
    items = 1 << min(MOST_ITEMS, traits.group_size).bit_length() - 1
    values = MOST_VALUES if block % MOST_VALUES == 0 else LANES
    small = traits.local_bytes < 2 * TILE_BYTES or traits.begin_bytes < VECTOR_BYTES
    if small or items < LEAST_ITEMS or block % LANES or items % (block // values):
        raise NotInTilesError
    return _Together(src, dst, block, (items, values)).kernel()


class _OwnCodes(Writer):
    """The codes of a work-item's values, in vectors ``q0`` .. ."""

    def codes(self, _: str, cells: Sequence[Cell]) -> str:
        """Lanes of the vectors."""
        return lanes_of("uchar", [(f"q{c // LANES}", c % LANES) for _, c in cells])


class _Parameters(Writer):
    """The parameters of blocks of so many columns, ``kept_<field>`` in local memory."""

    def __init__(self, dst: QuantisedDesc, tile: Tile, block: int, symbols: Symbols) -> None:
        planes = [p.name for f in dst.fields.values() if f.name != "q" for p in f.planes]
        super().__init__(dst, tile, planes, symbols)
        self.block = block

    def codes(self, field: str, cells: Sequence[Cell]) -> str:
        """Those of a work-item's blocks."""
        count = self.tile.columns // self.block
        texts = [f"kept_{field}[mine * {count} + {c // self.block}]" for _, c in cells]
        kind = kept_type(self.dst, field)
        return texts[0] if len(texts) == 1 else f"({kind}{len(texts)})({', '.join(texts)})"


def kept_type(dst: QuantisedDesc, field: str) -> str:
    """The C type of a parameter."""
    return kind_of(8 * dst.fields[field].dtype.nbytes)


class _Together:
    """Raises `NotInTilesError` for layouts whose rows are no runs of bytes."""

    def __init__(
        self, src: MemoryDesc, dst: QuantisedDesc, block: int, sizes: tuple[int, int]
    ) -> None:
        self.src, self.dst, self.block, (self.items, self.values) = src, dst, block, sizes
        self.symbols, self.each = Symbols("s"), block // self.values
        self.span, self.vectors = self.items * self.values, range(self.values // LANES)
        self.rule = block_rule(dst.dtype, as_dtype("f32"))  # GPUs compute by words
        self.parameters = [f for f in dst.fields.values() if f.name != "q"]
        if any(f.group != (1, block) for f in self.parameters):
            raise NotInTilesError
        self.read = numbers_in_tiles(src, self.symbols)
        tile = Tile(1, self.values)
        places_ = [self.read.place(tile, 0, c) for c in range(self.values)]
        strides = outer_strides(self.read, tile, self.symbols)
        if not follow(places_, self.read.bits) or any(n % VECTOR_BYTES for n in strides):
            raise NotInTilesError
        planes = [p.name for p in dst.fields["q"].planes]
        self.codes = _OwnCodes(dst, tile, planes, self.symbols)
        placed = dict(self.codes.write)
        placed |= _Parameters(dst, Tile(1, block), block, self.symbols).write
        in_order = [placed[name] for name in dst.planes]
        self.runs = list(runs_of(in_order, dst.extents[2], self.span))
        if not all(run.is_full for run in self.runs):
            raise NotInTilesError
        self.step = max(self.block, self.runs[0].block)
        wide = Tile(1, self.step)
        self.others = _Parameters(dst, wide, block, self.symbols)

    def kernel(self) -> Kernel:
        """The kernel."""
        e, n, k = self.dst.extents
        given = {**self.symbols.values, "columns": k}
        word = gcd(VECTOR_BYTES, *self.symbols.values.values(),
                   *(run.size(self.span) for run in self.runs))  # fmt: skip
        names = "".join(f", const ulong {name}" for name in given)
        lines = [
            LOCALLY,
            QUOTIENT,
            *_greatest(key for keys in self.rule.keys for key in keys),
            f"kernel __attribute__((reqd_work_group_size({self.items}, 1, 1)))",
            f"void quantise(global const uchar *w, global uchar *d{names})",
            "{",
            "  const size_t e = get_group_id(2), n = get_group_id(1);",
            f"  const size_t k = get_group_id(0) * {self.span};",
            f"  const uint count = min((ulong){self.span}, columns - k), mine = get_local_id(0);",
            f"  const uint block = mine / {self.each}, first = block * {self.each};",
            *(f"  {run.declared(f'out{j}', self.span)}" for j, run in enumerate(self.runs)),
            *self._made(),
            "  barrier(CLK_LOCAL_MEM_FENCE);",
            f"  if (mine * {self.step} < count) {{",
            *into_local(self.others, self.runs, self.step),
            "  }",
            "  barrier(CLK_LOCAL_MEM_FENCE);",
            *(line for j, run in enumerate(self.runs)
              for line in run.stores(f"out{j}", word, self.items, self.span)),
            "}",
        ]  # fmt: skip
        what = (f"a work-group of {self.items} quantises {self.span} values of a row, "
                f"{self.values} each, through local memory, stored by {word} bytes")  # fmt: skip
        text = source("\n".join(lines), Tables(), more=for_template())
        size = -(-k // self.span) * self.items, n, e
        arguments = tuple(map(np.uint64, given.values()))
        return Kernel(text, "quantise", size, arguments, what, (self.items, 1, 1), VECTOR_BYTES)

    def _made(self) -> Iterator[str]:
        """The statements that make codes, in local memory, and parameters, kept there."""
        kind = self.dst.dtype
        yield from self._loaded()
        for keys in self.rule.keys:
            for key in keys:
                text = most_of([
                    filled_in(key.text, kind, _of, x=f"x{v}", place=self._place(v))
                    for v in self.vectors
                ])  # fmt: skip
                yield f"  local {key.kind} every_{key.name}[{self.items}];"
                yield f"  every_{key.name}[mine] = greatest_{key.kind}({text});"
            yield "  barrier(CLK_LOCAL_MEM_FENCE);"
            for key in keys:
                yield f"  {key.kind} most_{key.name} = every_{key.name}[first];"
                yield f"  for (uint j = 1; j < {self.each}; j++)"
                yield (f"    most_{key.name} = MOST(most_{key.name}, "
                       f"every_{key.name}[first + j]);")  # fmt: skip
                yield f"  const {key.kind}16 all_{key.name} = most_{key.name};"
                yield f"  const lanes_{key.kind} of_{key.name} = {{all_{key.name}}};"
        yield from (f"  {line}" for line in self.rule.parameters(kind))
        yield f"  if (mine * {self.values} < count) {{"
        yield from (f"    {line}" for line in self._codes())
        yield from into_local(self.codes, self.runs, self.values)
        yield "  }"
        for f in self.parameters:
            of = kept_type(self.dst, f.name)
            yield f"  local {of} kept_{f.name}[{self.items // self.each}];"
            yield f"  if (mine == first) kept_{f.name}[block] = {_of(f.name)};"

    def _codes(self) -> Iterator[str]:
        """The statements that make the codes, ``q``; first those of almost all blocks."""
        kind, plain = self.dst.dtype, self.rule.plain
        yield f"uchar16 {', '.join(f'q{v}' for v in self.vectors)};"
        if plain is not None:
            yield f"int plain = ({plain.condition}).s0;"
            if DIVISION in plain.code:
                yield f"const float it = 1.0f / {_of('t')};"
                yield f"plain = plain && {_of('t')} < {LARGEST_DIVISOR};"
            fast = plain.code.replace(DIVISION, BY_INVERSE)
            yield "if (plain) {"
            for v in self.vectors:
                text = filled_in(fast, kind, _of, x=f"x{v}", it="it")
                yield f"  q{v} = convert_uchar16(({text}) & 255);"
            yield "} else"
        yield "{"
        for v in self.vectors:
            yield f"  q{v} = {filled_in(self.rule.code, kind, _of, x=f'x{v}')};"
        yield "}"

    def _loaded(self) -> Iterator[str]:
        """The statements that load the values, ``x0`` ..; zeros where the row has ended."""
        half, each = self.src.dtype.name == "f16", self.read.bits // 8
        count = self.values * each // VECTOR_BYTES
        yield f"  uint4 held[{count}] = {{{', '.join(['(uint4)(0)'] * count)}}};"
        yield f"  if (mine * {self.values} < count) {{"
        yield f"    const size_t begin = k + mine * {self.values};"
        base = self.read.base(Tile(1, self.values)).replace("k", "begin")
        yield f"    global const uint4 *in = (global const uint4 *)(w + {base});"
        yield from (f"    held[{j}] = in[{j}];" for j in range(count))
        yield "  }"
        words = LANES * each // VECTOR_BYTES
        for v in self.vectors:
            own = ", ".join(f"held[{v * words + j}]" for j in range(words))
            whole = f"(uint{4 * words})({own})"
            text = f"halves_of(as_ushort16({whole}))" if half else f"as_float16({whole})"
            yield f"  const float16 x{v} = {text};"

    def _place(self, vector: int) -> str:
        """Twice the number of places in the block after each of the values."""
        return f"({places(LANES * vector, self.block)} - {2 * self.values} * (mine - first))"


def _of(name: str) -> str:
    """What a parameter is in C."""
    return f"of_{name}.s[0]"


def _greatest(keys: Iterable[BlockKey]) -> Iterator[str]:
    """The functions that give the greatest lane of a vector."""
    for kind in dict.fromkeys(key.kind for key in keys):
        yield f"static inline {kind} greatest_{kind}({kind}16 v) {{"
        yield f"  const {kind}8 a = MOST(v.lo, v.hi);"
        yield f"  const {kind}4 b = MOST(a.lo, a.hi);"
        yield f"  const {kind}2 c = MOST(b.lo, b.hi);"
        yield "  return MOST(c.x, c.y);"
        yield "}"
