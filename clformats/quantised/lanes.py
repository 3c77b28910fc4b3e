"""Where the codes of planes lie in tiles, as constants of OpenCL C.

A *tile* is some rows and columns, whose first row and column are multiples of the tile's size. In
it the place of an element, counted from the place of the first, is a constant, or a multiple of a
stride that depends on the tensor's sizes: a *symbol*, which is an argument of the kernel. So one
program serves all sizes of a layout.
"""

from __future__ import annotations

from collections.abc import Container, Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from functools import lru_cache
from itertools import pairwise
from operator import attrgetter

from .desc import QuantisedDesc
from .planes import Plane, PlaneDigit
from .types import WHOLE

NAMES = ("e", "n", "k")
"""The C variables of the tile's first expert, row and column."""
HEX = "0123456789abcdef"
WIDTHS = (16, 8, 4, 2)
KINDS = {8: "uchar", 16: "ushort", 32: "uint"}
"""The unsigned types of so many bits."""


def kind_of(bits: int) -> str:
    """The shortest unsigned type that holds so many bits."""
    return next(kind for most, kind in KINDS.items() if bits <= most)


@dataclass(frozen=True, slots=True)
class Tile:
    """So many rows and columns."""

    rows: int
    columns: int

    def size(self, dim: int) -> int:
        """Its size along a dimension."""
        return (1, self.rows, self.columns)[dim]


Multiples = tuple[tuple[str, int], ...]
"""Symbols, and how often each is added."""


@dataclass(frozen=True, slots=True)
class At:
    """A place: bits, and multiples of symbols, which count bytes."""

    bits: int
    symbols: Multiples = ()

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

    def after(self, bits: int) -> At:
        """The place so many bits after it."""
        return At(self.bits + bits, self.symbols)

    def line(self, nbytes: int) -> tuple[Multiples, int]:
        """The line of so many bytes that it is in: the symbols, and a number."""
        return self.symbols, self.bits // (8 * nbytes)


BY_PLACE = attrgetter("symbols", "bits")
"""What places are put in order by."""


def follow(places: Sequence[At], bits: int) -> bool:
    """Whether each place is so many bits after the one before it."""
    steps = pairwise(places)
    return all(b.bits - a.bits == bits and b.symbols == a.symbols for a, b in steps)


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
        new = f"{self.prefix}{len(self.values)}"
        name = next((name for name, known in self.values.items() if known == value), new)
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

    def in_order(
        self, tile: Tile, cells: Iterable[tuple[int, int]]
    ) -> list[tuple[At, tuple[int, int]]]:
        """Elements of a tile, rows and columns, in the order of their places."""
        return sorted(((self.place(tile, *c), c) for c in cells), key=lambda x: BY_PLACE(x[0]))

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
