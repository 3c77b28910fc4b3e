"""Reading codes of planes as vectors in OpenCL C: which bytes hold them, and how they are shifted.

A *tile* is some rows and columns, whose first row and column are multiples of the tile's size. In
it the place of an element, counted from the place of the first, is a constant, or a multiple of a
stride that depends on the tensor's sizes: a *symbol*, which is an argument of the kernel. So one
program serves all sizes of a layout.
"""

from __future__ import annotations

from collections.abc import Container, Iterator, Sequence
from dataclasses import dataclass, field
from functools import lru_cache
from itertools import groupby, pairwise

from .desc import QuantisedDesc
from .planes import Plane, PlaneDigit
from .types import WHOLE

NAMES = ("e", "n", "k")
"""The C variables of the tile's first expert, row and column."""
HEX = "0123456789abcdef"
WIDTHS = (16, 8, 4, 2)


@dataclass(frozen=True, slots=True)
class Tile:
    """So many rows and columns."""

    rows: int
    columns: int

    def size(self, dim: int) -> int:
        """Its size along a dimension."""
        return (1, self.rows, self.columns)[dim]


@dataclass(frozen=True, slots=True)
class At:
    """A place: bits, and multiples of symbols, which count bytes."""

    bits: int
    symbols: tuple[tuple[str, int], ...] = ()

    @property
    def byte(self) -> str:
        """The byte of it, as C."""
        terms = [str(self.bits // 8)] if self.bits // 8 or not self.symbols else []
        terms += [s if c == 1 else f"{c} * {s}" for s, c in self.symbols]
        return " + ".join(terms)

    @property
    def shift(self) -> int:
        """The bit in that byte."""
        return self.bits % 8


@dataclass(frozen=True, slots=True)
class SymbolicDigit:
    """A digit whose steps count elements, and the symbol of its stride, if it has one.

    ``bytes_`` is what the symbol stands for.
    """

    dim: int
    step: int
    size: int
    stride: int
    symbol: str
    is_open: bool
    bytes_: int = 0


class NotInTilesError(Exception):
    """A layout's places are no constants in tiles: its parts of bytes begin anywhere."""


@dataclass
class Symbols:
    """The arguments of a kernel that stand for strides and starts: names and values, in bytes."""

    prefix: str
    values: dict[str, int] = field(default_factory=dict)

    def of(self, value: int) -> str:
        """The symbol of a number of bytes."""
        for name, known in self.values.items():
            if known == value:
                return name
        name = f"{self.prefix}{len(self.values)}"
        self.values[name] = value
        return name


@dataclass(frozen=True, slots=True)
class Placed:
    """A plane in tiles: its digits by elements, and where it begins."""

    name: str
    bits: int
    digits: tuple[SymbolicDigit, ...]
    start: At

    def aligned_to(self, bits: int) -> bool:
        """Whether every place is a multiple of so many bits."""
        return self.start.bits % bits == 0 and all(
            d.stride % bits == 0 and d.bytes_ * 8 % bits == 0 for d in self.digits
        )

    def pointers(self, tile: Tile, memory: str) -> list[str]:
        """C that declares where the tile begins, for `loaded`: ``p_<plane>`` and ``b_<plane>``."""
        lines = [f"  global const uchar *p_{self.name} = {memory} + {self.base(tile)};"]
        phase = self.phase(tile)
        return [*lines, f"  const uint b_{self.name} = {phase};"] if phase else lines

    def place(self, tile: Tile, row: int, column: int) -> At:
        """The place of an element of a tile, counted from that of its first one."""
        bits = 0
        symbols: dict[str, int] = {}
        for d in self.digits:
            _check(d, tile)
            inside = (0, row, column)[d.dim] // d.step
            value = inside if d.is_open else inside % d.size
            if tile.size(d.dim) <= d.step or not value:
                continue
            if d.symbol:
                symbols[d.symbol] = symbols.get(d.symbol, 0) + value
            else:
                bits += value * d.stride
        return At(self.start.bits + bits, tuple(symbols.items()))

    def base(self, tile: Tile) -> str:
        """The byte from which `place` counts, as C over `NAMES`: that of the tile."""
        terms = [s for s, _ in self.start.symbols]
        for d, index, factor in self._outside(tile):
            if d.symbol:
                terms.append(f"({index}) * {d.symbol}" + (f" * {factor}" if factor > 1 else ""))
            else:
                whole, rest = divmod(factor * d.stride, 8)
                terms.append(f"({index}) * {whole}")
                if rest and _turns(d, tile, rest) > 1:
                    terms.append(f"({index}) / {8 // rest}")
        return " + ".join(t for t in terms if t != "0" and not t.endswith("* 0")) or "0"

    def phase(self, tile: Tile) -> str:
        """The bits that tiles begin behind a byte, as C; empty where all begin alike.

        Raises `NotInTilesError` where a code would lie in two bytes in some tiles only.
        """
        return _phase(self, tile)

    def phase_of(self, tile: Tile) -> str:
        """As `phase`, computed."""
        terms = []
        most = max((self.place(tile, r, c).shift for r in range(min(tile.rows, 8))
                    for c in range(tile.columns)), default=0)  # fmt: skip
        for d, index, factor in self._outside(tile):
            rest = factor * d.stride % 8
            if rest and _turns(d, tile, rest) > 1:
                most += 8 - rest
                terms.append(f"({index}) % {8 // rest} * {rest}")
            elif rest:
                most += (_count(d, tile) - 1) * rest
                terms.append(f"({index}) * {rest}")
        if terms and most + self.bits > 8:
            raise NotInTilesError
        return " + ".join(terms)

    def _outside(self, tile: Tile) -> Iterator[tuple[SymbolicDigit, str, int]]:
        """The digits that differ between tiles: their value as C, and its factor."""
        for d in self.digits:
            _check(d, tile)
            size, span = tile.size(d.dim), d.step * d.size
            if not d.is_open and size % span == 0:
                continue
            whole = max(size, d.step)
            index = f"{NAMES[d.dim]} / {whole}" if whole > 1 else NAMES[d.dim]
            if not d.is_open:
                index = f"{index} % {span // whole}"
            yield d, index, whole // d.step


def _count(d: SymbolicDigit, tile: Tile) -> int:
    """The values of a digit that tiles begin at."""
    return -(-d.size * d.step // max(tile.size(d.dim), d.step))


def _turns(d: SymbolicDigit, tile: Tile, rest: int) -> int:
    """The bytes that a digit goes through in parts of ``rest`` bits. Raises `NotInTilesError`."""
    if _count(d, tile) * rest <= 8 and not d.is_open:
        return 1
    if 8 % rest:
        raise NotInTilesError
    return 2


@lru_cache(maxsize=1024)
def _phase(plane: Placed, tile: Tile) -> str:
    return plane.phase_of(tile)


def _check(d: SymbolicDigit, tile: Tile) -> None:
    size, span = tile.size(d.dim), d.step * d.size
    nested = d.is_open or size % span == 0 or span % size == 0
    if d.step % size and (size % d.step or not nested):
        raise NotInTilesError


def placed_planes(
    desc: QuantisedDesc,
    symbols: Symbols,
    fields: Container[str] | None = None,
    *,
    apart: bool = False,
) -> dict[str, Placed]:
    """The planes of a tensor, or of some fields; strides that change with the sizes are symbols.

    Planes begin where the tensor does, or with ``apart`` their buffer. Raises `NotInTilesError`.
    """
    e, n, k = desc.extents
    other = QuantisedDesc((2 * e, 2 * n, 2 * k) if e > 1 or desc.ndims > 2 else (2 * n, 2 * k),
                          desc.dtype, desc.text)  # fmt: skip
    result = {}
    for own in desc.fields.values():
        if fields is not None and own.name not in fields:
            continue
        for plane in own.planes:
            scaled = other.planes[plane.name]
            begins = [8 * d.buffers[plane.buffer].start for d in (desc, other)]
            inside = plane.first_bit - begins[0], scaled.first_bit - begins[1]
            start = At(inside[0])
            if inside[0] != inside[1]:
                first = inside[0] if apart else plane.first_bit
                start = At(first % 8, ((symbols.of(first // 8), 1),))
            elif begins[0] and not apart:
                start = At(inside[0], ((symbols.of(begins[0] // 8), 1),))
            result[plane.name] = _placed(plane, scaled, own.group, start, symbols)
    return result


def _placed(
    plane: Plane, scaled: Plane, group: tuple[int, int], start: At, symbols: Symbols
) -> Placed:
    if not plane.is_plain:
        raise NotInTilesError
    digits = []
    last = {d: max((x.step for x in plane.digits if x.dim == d), default=0) for d in range(3)}
    for d, s in zip(plane.digits, scaled.digits, strict=True):
        own = (1, *group)[d.dim]
        if own == WHOLE:
            continue
        digits.append(
            symbolic(d, d.step * own, s.stride != d.stride, d.step == last[d.dim], symbols)
        )
    return Placed(plane.name, plane.bits, tuple(digits), start)


def symbolic(
    d: PlaneDigit,
    step: int,
    varies: bool,  # noqa: FBT001  # one of two answers
    is_open: bool,  # noqa: FBT001  # likewise
    symbols: Symbols,
) -> SymbolicDigit:
    """A digit with its symbol. Raises `NotInTilesError` where a stride is no whole bytes."""
    if varies and d.size > 1:
        if d.stride % 8:
            raise NotInTilesError
        return SymbolicDigit(
            d.dim, step, d.size, 0, symbols.of(d.stride // 8), is_open, d.stride // 8
        )
    return SymbolicDigit(d.dim, step, d.size, 0 if varies else d.stride, "", is_open)


def loaded(pointer: str, plane: Placed, tile: Tile, lanes: Sequence[tuple[int, int]]) -> str:
    """C of the codes of some elements in one plane: ``uchar``, ``ushort`` or ``uint``, or vectors.

    ``lanes`` are rows and columns in the tile: one, or 2, 4, 8 or 16.
    """
    places = [plane.place(tile, *lane) for lane in lanes]
    if plane.bits == 16 and all(p.shift == 0 for p in places):
        return _wide(pointer, places, "ushort", aligned=plane.aligned_to(16))
    if plane.bits == 32 and all(p.shift == 0 for p in places):
        return _wide(pointer, places, "uint", aligned=plane.aligned_to(32))
    if any(p.shift + plane.bits > 8 for p in places):
        scalars = [straddling(pointer, p, plane.bits) for p in places]
        kind = "uchar" if plane.bits <= 8 else "ushort" if plane.bits <= 16 else "uint"
        return scalars[0] if len(places) == 1 else vector(kind, scalars)
    phase = f"b_{plane.name}" if plane.phase(tile) else ""
    if len(places) == 1:
        return _one(pointer, places[0], plane.bits, phase)
    parts = [[i for i, p in enumerate(places) if p.shift == s]
             for s in sorted({p.shift for p in places})]  # fmt: skip
    texts = []
    for at in parts:
        first = places[at[0]]
        if len(at) == 1:
            texts.append(_one(pointer, first, plane.bits, phase))
        else:
            found = _bytes(pointer, [places[i] for i in at])
            texts.append(vector_masked(found, first.shift, plane.bits, phase))
    return texts[0] if len(parts) == 1 else merged(texts, parts, len(places))


def _one(pointer: str, at: At, bits: int, phase: str) -> str:
    """One code that lies in one byte."""
    return f"(uchar)({masked(f'{pointer}[{at.byte}]', at.shift, bits, phase)})"


def merged(texts: Sequence[str], lanes: Sequence[list[int]], width: int) -> str:
    """Vectors of some lanes as one: a call of a helper where it is even and odd or low and high."""
    if list(lanes) == [list(range(0, width, 2)), list(range(1, width, 2))]:
        return f"ZIP{width}({texts[0]}, {texts[1]})"
    if [i for at in lanes for i in at] == list(range(width)):
        return f"(uchar{width})({', '.join(texts)})"
    named = {
        i: f"({text}){'' if len(at) == 1 else '.s' + HEX[j]}"
        for text, at in zip(texts, lanes, strict=True)
        for j, i in enumerate(at)
    }
    return vector("uchar", [named[i] for i in range(width)])


def _bytes(pointer: str, places: Sequence[At]) -> str:
    """The bytes of places: one load where they follow each other."""
    if len(places) == 1:
        return f"{pointer}[{places[0].byte}]"
    runs = list(_runs(places))
    if len(runs) == 1 and len(places) in WIDTHS:
        return f"vload{len(places)}(0, {pointer} + {places[0].byte})"
    lengths = {len(r) for r in runs}
    if len(lengths) == 1 and lengths <= set(WIDTHS):
        size = lengths.pop()
        loads = [f"vload{size}(0, {pointer} + {r[0].byte})" for r in runs]
        return f"(uchar{len(places)})({', '.join(loads)})"
    return vector("uchar", [f"{pointer}[{p.byte}]" for p in places])


def _runs(places: Sequence[At]) -> list[list[At]]:
    """Places in runs of neighbouring bytes."""
    keyed = groupby(enumerate(places), lambda x: (x[1].bits // 8 - x[0], x[1].symbols))
    return [[p for _, p in run] for _, run in keyed]


def _wide(pointer: str, places: Sequence[At], kind: str, *, aligned: bool) -> str:
    """Words at places; as a vector where each begins at a multiple of its size."""
    size = 2 if kind == "ushort" else 4
    if len(places) == 1:
        return f"LOAD_{kind.upper()}({pointer} + {places[0].byte})"
    follow = aligned and all(
        q.symbols == p.symbols and q.bits - p.bits == 8 * size for p, q in pairwise(places)
    )
    if follow:
        return f"vload{len(places)}(0, (global const {kind} *)({pointer} + {places[0].byte}))"
    return vector(kind, [f"LOAD_{kind.upper()}({pointer} + {p.byte})" for p in places])


def straddling(pointer: str, at: At, bits: int) -> str:
    """A code that lies in more than one byte."""
    count = -(-(at.shift + bits) // 8)
    parts = [f"(uint){pointer}[{At(at.bits + 8 * b, at.symbols).byte}] << {8 * b}"
             for b in range(count)]  # fmt: skip
    return f"(({' | '.join(parts)}) >> {at.shift} & {(1 << bits) - 1}u)"


def masked(text: str, shift: int, bits: int, phase: str) -> str:
    """One byte shifted, by a phase too, and masked."""
    if phase:
        return f"{text} >> ({shift} + {phase}) & {(1 << bits) - 1}"
    shown = f"{text} >> {shift}" if shift else text
    return shown if shift + bits == 8 else f"{shown} & {(1 << bits) - 1}"


def vector_masked(text: str, shift: int, bits: int, phase: str) -> str:
    """A vector of bytes shifted, by a phase too, and masked."""
    if phase:
        return f"(({text} >> (uchar)({shift} + {phase})) & (uchar){(1 << bits) - 1})"
    shown = f"({text} >> (uchar){shift})" if shift else text
    return shown if shift + bits == 8 else f"({shown} & (uchar){(1 << bits) - 1})"


def vector(kind: str, scalars: Sequence[str]) -> str:
    """A vector of scalars."""
    return f"({kind}{len(scalars)})({', '.join(scalars)})"
