"""Writing the planes of a quantised tensor in tiles, from codes that are known as C.

Every byte of the destination is put together from parts of codes; bytes that follow each other and
have the same parts are one vector.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from functools import partial
from itertools import groupby
from typing import TypeVar

from ..quantised.desc import QuantisedDesc
from ..quantised.lanes import (
    BY_PLACE,
    HEX,
    WIDTHS,
    At,
    NotInTilesError,
    Placed,
    Symbols,
    Tile,
    follow,
    kind_of,
    placed_planes,
)
from ..quantised.planes import Field
from .kernel import groups_of
from .vectors import LANES

Cell = tuple[int, int]
T = TypeVar("T")
PARTS = {"": range(LANES), ".lo": range(8), ".hi": range(8, LANES), ".even": range(0, LANES, 2),
         ".odd": range(1, LANES, 2)}  # fmt: skip
"""Parts of vectors that have a name, and their lanes."""


@dataclass(frozen=True, slots=True)
class Part:
    """Some bits of a code: of a field, from bit ``low`` on, to bit ``shift`` of a byte."""

    field: str
    low: int
    bits: int
    shift: int


@dataclass(frozen=True, slots=True)
class Byte:
    """A byte of the destination: where it is, its parts, and the cell of each.

    All bytes of one vector have the same parts, lowest first.
    """

    at: At
    shape: tuple[Part, ...]
    cells: tuple[Cell, ...]


class Writer(ABC):
    """Some planes of a destination in one tile. Raises `NotInTilesError`."""

    def __init__(
        self, dst: QuantisedDesc, tile: Tile, planes: Sequence[str], symbols: Symbols
    ) -> None:
        self.dst, self.tile, self.symbols = dst, tile, symbols
        self.fields = [f for f in dst.fields.values() if any(p.name in planes for p in f.planes)]
        self.lows = {p.name: (f, low) for f in self.fields for low, p in f.parts}
        written = placed_planes(dst, symbols, {f.name for f in self.fields})
        self.write = {name: p for name, p in written.items() if name in planes}
        if any(p.padded != f.extents for f in self.fields for p in f.planes if p.name in planes):
            raise NotInTilesError

    @abstractmethod
    def codes(self, field: str, cells: Sequence[Cell]) -> str:
        """C of the unsigned codes of a field in some cells."""

    def part(self, part: Part, cells: Sequence[Cell]) -> str:
        """C of some bits of codes, as bytes."""
        own = self.dst.fields[part.field]
        text = self.codes(part.field, cells)
        wide = kind_of(own.bits)
        if own.bias:
            text = f"(({text}) + ({wide}){own.bias} & ({wide}){(1 << own.bits) - 1})"
        if part.low or part.bits < own.bits:
            text = f"({text}) >> ({wide}){part.low} & ({wide}){(1 << part.bits) - 1}"
        lanes = str(len(cells)) if len(cells) > 1 else ""
        return f"convert_uchar{lanes}({text})" if wide != "uchar" or not lanes else f"({text})"

    def stores(self) -> Iterator[str]:
        """The statements that write the planes."""
        if any(p.phase(self.tile) for p in self.write.values()):
            raise NotInTilesError
        bases = list(dict.fromkeys(p.base(self.tile) for p in self.write.values()))
        yield from (f"  global uchar *d{i} = d + {base};" for i, base in enumerate(bases))
        for i, base in enumerate(bases):
            own = [name for name, p in self.write.items() if p.base(self.tile) == base]
            yield from self._words(own, f"d{i}")
            yield from self._bytes(own, f"d{i}")

    def cells(self, own: Field) -> list[Cell]:
        """One element of each group in the tile. Raises `NotInTilesError` for parts of groups."""
        for dim, size in enumerate((self.tile.rows, self.tile.columns)):
            group = own.group[dim]
            if size % group if group else any(f.group[dim] for f in self.fields):
                raise NotInTilesError
        return groups_of(own, self.tile)

    def _words(self, names: Sequence[str], pointer: str) -> Iterator[str]:
        """Planes of whole bytes and more than one."""
        for name in names:
            plane = self.write[name]
            if plane.bits not in (16, 32):
                continue
            own, _ = self.lows[name]
            kind = kind_of(plane.bits)
            placed = plane.in_order(self.tile, self.cells(own))
            if any(at.shift for at, _ in placed) or len(own.planes) > 1 or own.bias:
                raise NotInTilesError
            for run in _runs(placed, partial(_are_neighbours, plane.bits)):
                found = self.codes(own.name, [c for _, c in run])
                at = f"{pointer} + {run[0][0].byte}"
                if len(run) > 1 and plane.aligned_to(plane.bits):
                    yield f"  PUT(({found}), {kind}, {len(run)}, {at});"
                else:
                    for place, cell in run:
                        one = self.codes(own.name, [cell])
                        yield f"  STORE_{kind.upper()}({one}, {pointer} + {place.byte});"

    def _bytes(self, names: Sequence[str], pointer: str) -> Iterator[str]:
        """Planes of up to eight bits."""
        found: dict[At, list[tuple[Part, Cell]]] = {}
        for name in names:
            if self.write[name].bits not in (16, 32):
                self._collect(self.write[name], found)
        every = []
        for at in sorted(found, key=BY_PLACE):
            parts = sorted(found[at], key=lambda x: x[0].shift)
            if sum(p.bits for p, _ in parts) != 8:
                raise NotInTilesError
            every.append(Byte(at, tuple(p for p, _ in parts), tuple(c for _, c in parts)))
        for own in _runs(every, _are_alike):
            text, place = self._joined(own), f"{pointer} + {own[0].at.byte}"
            put = f"  PUT(({text}), uchar, {len(own)}, {place});"
            yield put if len(own) > 1 else f"  *({place}) = {text};"

    def _collect(self, plane: Placed, found: dict[At, list[tuple[Part, Cell]]]) -> None:
        own, low = self.lows[plane.name]
        for cell in self.cells(own):
            at, done = plane.place(self.tile, *cell), 0
            while done < plane.bits:  # a code may lie in two bytes
                bit = at.bits + done
                count = min(8 - bit % 8, plane.bits - done)
                part = Part(own.name, low + done, count, bit % 8)
                found.setdefault(At(bit // 8 * 8, at.symbols), []).append((part, cell))
                done += count

    def _joined(self, own: Sequence[Byte]) -> str:
        """C of bytes that have the same parts."""
        width = len(own)
        texts = []
        for i, part in enumerate(own[0].shape):
            text = self.part(part, [b.cells[i] for b in own])
            wide = f"(uchar){part.shift}"
            texts.append(f"({text}) << {wide}" if part.shift else f"({text})")
        kind = f"uchar{width}" if width > 1 else "uchar"
        joined = " | ".join(f"({t})" for t in texts)
        return joined if width > 1 else f"({kind})({joined})"


def lanes_of(kind: str, lanes: Sequence[tuple[str, int]]) -> str:
    """C of lanes of vectors, as one vector of a type: parts of vectors side by side."""
    parts = []
    for name, group in groupby(lanes, key=lambda x: x[0]):
        own = [lane for _, lane in group]
        part = next((p for p, wanted in PARTS.items() if own == [*wanted]), None)
        parts += [f"{name}{part}"] if part is not None else [f"{name}.s{HEX[j]}" for j in own]
    return parts[0] if len(parts) == 1 else f"({kind}{len(lanes)})({', '.join(parts)})"


def _are_neighbours(bits: int, run: Sequence[tuple[At, Cell]]) -> bool:
    return follow([at for at, _ in run], bits)


def _are_alike(run: Sequence[Byte]) -> bool:
    """Whether bytes follow each other and have the same parts."""
    return all(b.shape == run[0].shape for b in run) and follow([b.at for b in run], 8)


def _runs(items: Sequence[T], fits: Callable[[Sequence[T]], bool]) -> Iterator[Sequence[T]]:
    """The items in runs of up to 16, each as long as it fits a vector."""
    at = 0
    while at < len(items):
        runs = (items[at : at + width] for width in (*WIDTHS, 1) if at + width <= len(items))
        run = next(run for run in runs if fits(run))
        yield run
        at += len(run)
