"""Writing the planes of a quantised tensor in tiles, from codes that are known as C.

Every byte of the destination is put together from parts of codes; bytes that follow each other and
have the same parts are one vector.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field

from ..quantised.desc import QuantisedDesc
from ..quantised.lanes import WIDTHS, At, NotInTilesError, Placed, Symbols, Tile, placed_planes
from ..quantised.planes import Field

Cell = tuple[int, int]


@dataclass(frozen=True, slots=True)
class Part:
    """Some bits of a code: of a field, from bit ``low`` on, to bit ``shift`` of a byte."""

    field: str
    low: int
    bits: int
    shift: int


@dataclass
class Byte:
    """A byte of the destination: its parts, and the cell of each."""

    parts: list[tuple[Part, Cell]] = field(default_factory=list)

    @property
    def shape(self) -> tuple[Part, ...]:
        """The parts without cells, as all bytes of one vector have them."""
        return tuple(p for p, _ in sorted(self.parts, key=lambda x: x[0].shift))

    @property
    def cells(self) -> tuple[Cell, ...]:
        """The cell of each part, in the same order."""
        return tuple(c for _, c in sorted(self.parts, key=lambda x: x[0].shift))


class Writer(ABC):
    """Some planes of a destination in one tile. Raises `NotInTilesError`."""

    def __init__(
        self, dst: QuantisedDesc, tile: Tile, planes: Sequence[str], symbols: Symbols
    ) -> None:
        self.dst, self.tile, self.symbols = dst, tile, symbols
        self.fields = [f for f in dst.fields.values() if any(p.name in planes for p in f.planes)]
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
        wide = "uchar" if own.bits <= 8 else "ushort" if own.bits <= 16 else "uint"
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

    def cells(self, own: Field) -> Iterator[Cell]:
        """One element of each group in the tile. Raises `NotInTilesError` for parts of groups."""
        spans = []
        for dim in (0, 1):
            group, size = own.group[dim], (self.tile.rows, self.tile.columns)[dim]
            if not group and any(f.group[dim] for f in self.fields):
                raise NotInTilesError
            if group and size % group:
                raise NotInTilesError
            spans.append(range(0, size, group or size))
        for r in spans[0]:
            for c in spans[1]:
                yield r, c

    def _words(self, names: Sequence[str], pointer: str) -> Iterator[str]:
        """Planes of whole bytes and more than one."""
        for name in names:
            plane = self.write[name]
            if plane.bits not in (16, 32):
                continue
            own = next(f for f in self.dst.fields.values() if any(p.name == name for p in f.planes))
            kind = "ushort" if plane.bits == 16 else "uint"
            placed = [(plane.place(self.tile, *c), c) for c in self.cells(own)]
            if any(at.shift for at, _ in placed) or len(own.planes) > 1 or own.bias:
                raise NotInTilesError
            for run in _runs(sorted(placed, key=_key), plane.bits):
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
        found: dict[tuple[tuple[tuple[str, int], ...], int], Byte] = {}
        for name in names:
            if self.write[name].bits not in (16, 32):
                self._collect(name, self.write[name], found)
        for byte in found.values():
            if sum(p.bits for p in byte.shape) != 8:
                raise NotInTilesError
        keys = sorted(found)
        at = 0
        while at < len(keys):
            width = self._width(keys, found, at)
            own = [found[key] for key in keys[at : at + width]]
            symbols, first = keys[at]
            place = f"{pointer} + {At(8 * first, symbols).byte}"
            text = self._joined(own)
            yield (
                f"  PUT(({text}), uchar, {width}, {place});"
                if width > 1
                else f"  *({place}) = {text};"
            )
            at += width

    def _collect(
        self,
        name: str,
        plane: Placed,
        found: dict[tuple[tuple[tuple[str, int], ...], int], Byte],
    ) -> None:
        own = next(f for f in self.dst.fields.values() if any(p.name == name for p in f.planes))
        low = 0
        for p in own.planes:
            if p.name == name:
                break
            low += p.bits
        for cell in self.cells(own):
            at = plane.place(self.tile, *cell)
            done = 0
            while done < plane.bits:  # a code may lie in two bytes
                bit = at.bits + done
                count = min(8 - bit % 8, plane.bits - done)
                part = Part(own.name, low + done, count, bit % 8)
                found.setdefault((at.symbols, bit // 8), Byte()).parts.append((part, cell))
                done += count

    def _width(
        self,
        keys: Sequence[tuple[tuple[tuple[str, int], ...], int]],
        found: dict[tuple[tuple[tuple[str, int], ...], int], Byte],
        at: int,
    ) -> int:
        """How many bytes from one on follow each other and have the same parts."""
        symbols, first = keys[at]
        shape = found[keys[at]].shape
        for width in WIDTHS:
            run = keys[at : at + width]
            if len(run) == width and all(
                key == (symbols, first + j) and found[key].shape == shape
                for j, key in enumerate(run)
            ):
                return width
        return 1

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


def _key(placed: tuple[At, Cell]) -> tuple[tuple[tuple[str, int], ...], int]:
    return placed[0].symbols, placed[0].bits


def _runs(placed: Sequence[tuple[At, Cell]], bits: int) -> Iterator[Sequence[tuple[At, Cell]]]:
    """Words that follow each other, up to 16."""
    at = 0
    while at < len(placed):
        first = placed[at][0]
        for width in (*WIDTHS, 1):
            run = placed[at : at + width]
            if len(run) == width and all(
                p == At(first.bits + j * bits, first.symbols) for j, (p, _) in enumerate(run)
            ):
                yield run
                at += width
                break
