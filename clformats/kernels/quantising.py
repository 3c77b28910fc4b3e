"""The kernel that quantises rows of numbers: a work-item makes the codes of whole blocks.

Each rule of `clformats.quantised.rules` that looks at one block is a few lines of OpenCL C here,
over vectors of 16 values; `clformats.quantised.writing` puts the codes in their places. Every step
is rounded to f32 as on the host, so that the bytes are equal.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from functools import cache

import numpy as np

from ..errors import Unsupported
from ..quantised import QuantisedDesc
from ..quantised.kernel import Grid, Kernel, TileCode
from ..quantised.lanes import HEX, At, NotInTilesError, Symbols, Tile
from ..quantised.rules import MIDPOINTS
from ..quantised.types import WHOLE, QuantisedType
from ..quantised.writing import Cell, Writer
from ..schedule.traits import Traits
from ..tensors.desc import MemoryDesc
from .decoding import numbers_in_tiles
from .vectors import LANES

SHAPES = ((1, 1), (1, 2), (1, 4), (1, 8), (2, 1), (8, 1), (8, 2), (4, 1))
"""Rows, and blocks along a row, that are tried: the first whose bytes are whole."""
QUANTISED_FROM = ("f32", "f16")


def quantising(src: MemoryDesc, dst: QuantisedDesc, traits: Traits) -> Kernel:
    """The kernel from rows of f32 or f16 to a quantised tensor, by its type's rule.

    Raises `Unsupported` (code QUANTISED) where there is none: for rules that look at whole rows,
    layouts that tiles do not reach, and on GPUs, whose divisions need not be exactly rounded.
    """
    kind = dst.dtype
    block = max(f.group[1] for f in kind.fields.values())
    whole = any(WHOLE in f.group for f in kind.fields.values())
    known = kind.rule in RULES and traits.is_cpu and src.dtype.name in QUANTISED_FROM
    _, n, k = dst.extents
    for rows, blocks in SHAPES if known and not whole and block % LANES == 0 else ():
        if n % rows or k % (blocks * block):
            continue
        try:
            return _Quantiser(src, dst, Tile(rows, blocks * block), block).kernel()
        except NotInTilesError:
            continue
    raise Unsupported("QUANTISED", f"no kernel quantises {src} to {dst}")


class _Quantiser(Writer):
    def __init__(self, src: MemoryDesc, dst: QuantisedDesc, tile: Tile, block: int) -> None:
        symbols = Symbols("s")
        self.src, self.block = src, block
        self.read = numbers_in_tiles(src, symbols)
        super().__init__(dst, tile, list(dst.planes), symbols)

    def kernel(self) -> Kernel:
        """The kernel."""
        tile, (e, n, k) = self.tile, self.dst.extents
        lines = [f"  global const uchar *in = w + {self.read.base(tile)};"]
        for r in range(tile.rows):
            for c in range(0, tile.columns, self.block):
                lines += self._block(r, c)
        lines += self.stores()
        what = f"a work-item quantises {tile.rows} x {tile.columns} values"
        grid = Grid(tile, (e, n // tile.rows, k // tile.columns))
        rules = {"midpoints": MIDPOINTS, "log2_begins": log2_begins()}
        program = TileCode(lines, fp16_lanes=True, rules=rules)
        return grid.kernel("quantise", program, self.symbols, what)

    def _block(self, row: int, column: int) -> Iterator[str]:
        """The statements that load a block and make its codes."""
        columns = range(column, column + self.block, LANES)
        for c in columns:
            first, *others = (self.read.place(self.tile, row, c + j) for j in range(LANES))
            bits = self.read.bits
            if any(p != At(first.bits + bits * j, first.symbols)
                   for j, p in enumerate(others, 1)):  # fmt: skip
                raise NotInTilesError
            at = f"in + {first.byte}"
            half = self.src.dtype.name == "f16"
            words, floats = ("ushort", "halves_of") if half else ("uint", "as_float16")
            text = f"{floats}(GET({words}, 16, {at}))"
            yield f"  const float16 x{row}_{c} = {text};"
        values = [f"x{row}_{c}" for c in columns]
        kind = self.dst.dtype
        names = {f: f"c_{f}{row}_{column}" for f in kind.fields if f != "q"}
        made = RULES[kind.rule](kind, values, f"{row}_{column}")
        for line in made:
            for name, own in names.items():
                line = line.replace(f"${name}$", own)  # noqa: PLW2901  # the same line, filled
            yield f"  {line}"

    def codes(self, field: str, cells: Sequence[Cell]) -> str:
        """Codes of values by vectors and lanes, those of parameters by blocks."""
        if field != "q":
            texts = [f"c_{field}{r}_{c // self.block * self.block}" for r, c in cells]
            wide = self.dst.fields[field].dtype.nbytes
            kind = {1: "uchar", 2: "ushort", 4: "uint"}[wide]
            return texts[0] if len(texts) == 1 else f"({kind}{len(texts)})({', '.join(texts)})"
        at = [(f"qx{r}_{c // LANES * LANES}", c % LANES) for r, c in cells]
        name = at[0][0]
        if at == [(name, j) for j in range(LANES)]:
            return name
        texts = [f"{v}.s{HEX[lane]}" for v, lane in at]
        return texts[0] if len(texts) == 1 else f"(uchar{len(texts)})({', '.join(texts)})"


@cache
def log2_begins() -> list[str]:
    """From which bits on numpy's log2 in f32 gives -149, -148, .. 128, as lines of C.

    It rounds to an integer what lies just below a power of two.
    """
    powers = np.arange(-149, 128)
    at = np.where(powers < -126, 1 << np.maximum(powers + 149, 0), (powers + 127) << 23)
    tried = at[:, None] - np.arange(256)
    with np.errstate(all="ignore"):
        found = np.log2(np.maximum(tried, 1).astype(np.uint32).view(np.float32))
    inside = (np.floor(found) == powers[:, None]) & (tried > 0)
    begins = at - (inside.cumprod(1).sum(1) - 1)
    numbers = [f"{n:#x}u" for n in [*begins, 0xFFFFFFFF]]
    return [", ".join(numbers[k : k + 8]) for k in range(0, len(numbers), 8)]


Lines = Iterator[str]
Rule = Callable[[QuantisedType, Sequence[str], str], Lines]


def _joined(function: str, texts: Sequence[str]) -> str:
    """A function of two, over all of them."""
    first, *others = texts
    for other in others:
        first = f"{function}({first}, {other})"
    return first


def _magnitude(values: Sequence[str], at: str) -> str:
    """The largest magnitude, as bits: those of NaN are the largest."""
    bits = [f"(as_uint16({x}) & 0x7fffffffu)" for x in values]
    return f"const uint a{at} = most_uint({_joined('MOST', bits)});"


def _places(values: Sequence[str], magnitude: str) -> list[str]:
    """For values of a magnitude, in bits, twice the place and the sign; for others more."""
    return [f"first_of({x}, {magnitude}, {LANES * j}u)" for j, x in enumerate(values)]


def _extremes(values: Sequence[str], at: str) -> Lines:
    """Least and most, NaN where a value is NaN."""
    yield _magnitude(values, at)
    yield f"const int nan{at} = a{at} > 0x7f800000u;"
    for name, function in (("least", "LEAST"), ("most", "MOST")):
        own = f"{name}_float({_joined(function, values)})"
        yield f"const float {name}{at} = nan{at} ? as_float(a{at}) : {own};"


def _half_scale(at: str, d: str) -> Lines:
    """A scale, its inverse, 0 where it is 0, and its code in f16."""
    yield f"const float d{at} = {d};"
    yield f"const float id{at} = d{at} == 0 ? 0.0f : 1.0f / d{at};"
    yield f"const ushort $d$ = half_bits(d{at});"


def _bits(kind: QuantisedType) -> int:
    return kind.fields["q"].dtype.bits


def _scale(kind: QuantisedType, name: str) -> str:
    """The function that makes the code of a scale."""
    return "bf16_bits" if kind.fields[name].dtype.name == "bf16" else "half_bits"


def _signed(kind: QuantisedType, values: Sequence[str], at: str) -> Lines:
    half = 1 << _bits(kind) - 1
    yield _magnitude(values, at)
    keys = _joined("LEAST", _places(values, f"a{at}"))
    yield f"const uint key{at} = least_uint({keys});"
    yield from _half_scale(at, f"as_float(a{at} | key{at} << 31) / -{half}.0f")
    for x in values:
        yield f"const uchar16 q{x} = cut({x} * id{at} + {half}.5f, {2 * half - 1}.0f);"


def _range(kind: QuantisedType, values: Sequence[str], at: str) -> Lines:
    most = (1 << _bits(kind)) - 1
    yield from _extremes(values, at)
    yield from _half_scale(at, f"(most{at} - least{at} + 0.0f) / {most}.0f")
    yield f"ushort $m$ = half_bits(least{at});"
    first = _joined("LEAST", _places(values, "0u"))
    yield f"if (least{at} == 0)  // of -0 and 0 the first"
    yield f"  $m$ = least_uint({first}) << 15;"
    for x in values:
        yield f"const uchar16 q{x} = cut(({x} - least{at}) * id{at} + 0.5f, {most}.0f);"


def _symmetric(kind: QuantisedType, values: Sequence[str], at: str) -> Lines:
    del kind
    yield _magnitude(values, at)
    yield from _half_scale(at, f"as_float(a{at}) / 127.0f")
    for x in values:
        yield f"const uchar16 q{x} = as_uchar16(away({x} * id{at}, -128));"


def _amax(kind: QuantisedType, values: Sequence[str], at: str) -> Lines:
    del kind
    yield _magnitude(values, at)
    yield from _half_scale(at, f"as_float(a{at})")
    for x in values:
        yield f"const uchar16 q{x} = cut(convert_float16(away({x} * id{at}, -1)) + 1.0f, 3.0f);"


def _doubled(values: Sequence[str], scale: str) -> Lines:
    for x in values:
        yield f"const uchar16 q{x} = doubled_codes({x}, {scale});"


def _mxfp4(kind: QuantisedType, values: Sequence[str], at: str) -> Lines:
    del kind
    yield _magnitude(values, at)
    yield f"const uchar $e$ = a{at} == 0 || a{at} >= 0x7f800000u ? 0 : log2_of(a{at}) + 125;"
    yield from _doubled(values, "e8m0_half($e$)")


def _nvfp4(kind: QuantisedType, values: Sequence[str], at: str) -> Lines:
    del kind
    yield _magnitude(values, at)
    yield f"const uchar $d$ = ue4m3_bits(as_float(a{at}) / 6.0f);"
    yield from _doubled(values, "ue4m3_half($d$)")


def _mx(kind: QuantisedType, values: Sequence[str], at: str) -> Lines:
    row = kind.fields["q"].dtype.floating
    yield _magnitude(values, at)
    high = f"(int)(a{at} >> 23) - {row.highest}"
    yield f"const uchar $e$ = a{at} > 0x7f800000u ? 255 : max({high}, 0);"
    yield f"const float p{at} = as_float(max((uint)$e$, 1u) << 23);"
    numbers = f"{row.largest!r}f, {row.mantissa}, {row.bias}, {row.bits}"
    for x in values:
        yield f"const uchar16 q{x} = narrowed({x} / p{at}, {numbers});"


def _zero_point(kind: QuantisedType, values: Sequence[str], at: str) -> Lines:
    most = f"{(1 << _bits(kind)) - 1}.0f"
    yield from _extremes(values, at)
    yield f"const float s{at} = fmax(most{at} - least{at}, {np.float32(1e-5)!s}f) / {most};"
    yield f"const float zero{at} = fmin(fmax(-rint(least{at} / s{at}), 0.0f), {most});"
    yield f"const uchar $z$ = (uchar)zero{at};"
    yield f"const ushort $s$ = {_scale(kind, 's')}(s{at});"
    for x in values:
        yield f"const uchar16 q{x} = cut(near({x} / s{at}) + zero{at}, {most});"


def _absolute(kind: QuantisedType, values: Sequence[str], at: str) -> Lines:
    bits = _bits(kind)
    most = (1 << bits - 1) - 1
    yield _magnitude(values, at)
    yield f"const float s{at} = fmax(as_float(a{at}), {np.float32(1e-5)!s}f) / {most}.0f;"
    yield f"const ushort $s$ = {_scale(kind, 's')}(s{at});"
    for x in values:
        q = f"as_uchar16(whole({x} / s{at}, {-most - 1}.0f, {most}.0f))"
        yield f"const uchar16 q{x} = {q} & (uchar){(1 << bits) - 1};"


RULES: Mapping[str, Rule] = {
    "signed": _signed, "range": _range, "symmetric": _symmetric, "amax": _amax, "mxfp4": _mxfp4,
    "nvfp4": _nvfp4, "mx": _mx, "zero_point": _zero_point, "absolute": _absolute,
}  # fmt: skip
