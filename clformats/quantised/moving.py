"""The kernel that moves a quantised tensor between two layouts of its type: bits, a tile each.

Every byte of the destination is put together from parts of codes; bytes that follow each other and
have the same parts are one vector.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from math import prod

from ..errors import Unsupported
from .apart import PlaneMove, moves_apart
from .desc import QuantisedDesc
from .kernel import Grid, Kernel, Program
from .lanes import WIDTHS, At, NotInTilesError, Placed, Symbols, Tile, loaded, placed_planes
from .planes import Field, Plane
from .values import codes

Cell = tuple[int, int]
TILES = ((1, 32), (8, 32), (16, 32), (32, 16), (1, 64), (1, 128), (1, 256), (4, 32), (32, 8),
         (8, 8), (1, 16), (1, 8), (8, 1), (1, 1))  # fmt: skip
"""Rows and columns that are tried; of those that fit the cheapest is taken."""
LARGE = ((32, 32), (64, 16), (4, 256), (8, 256))
"""What is tried where none of these fits: more code."""
ROWS = ((1, 256), (1, 128), (1, 64), (1, 32))
"""What is tried where bytes may stay what they are."""
TOGETHER = 1.0
"""Up to this cost of an element one kernel writes all buffers."""
LINE = 16
"""A line of 64 bytes that a tile touches costs as much as so many instructions."""


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


def moving(src: QuantisedDesc, dst: QuantisedDesc) -> list[Kernel | PlaneMove]:
    """What moves a tensor between two layouts of its type.

    One kernel where bytes stay what they are, so that each line is read and written once. Else each
    buffer of the destination by itself: its planes by plain reorders, or in tiles, bit by bit.
    Raises `Unsupported` (code QUANTISED) where bytes hold elements that no tile has together.
    """
    buffers = [[p.name for p in dst.planes.values() if p.buffer == b]
               for b in range(len(dst.buffers))]  # fmt: skip
    for names, buffer in zip(buffers, dst.buffers, strict=True):
        bits = sum(prod(dst.planes[n].padded) * dst.planes[n].bits for n in names)
        if bits != 8 * buffer.nbytes:
            raise Unsupported("QUANTISED", f"no kernel writes the padding of {dst}")
    whole = _best(src, dst, list(dst.planes), ROWS)
    if whole and whole[0] <= TOGETHER:
        return [whole[1]]
    found: list[Kernel | PlaneMove] = []
    for b, names in enumerate(buffers):
        found += moves_apart(src, dst, b) or [_in_tiles(src, dst, names)]
    return found


def _in_tiles(src: QuantisedDesc, dst: QuantisedDesc, planes: list[str]) -> Kernel:
    """The kernel that writes some planes in the tiles that take the fewest instructions."""
    best = _best(src, dst, planes, TILES) or _best(src, dst, planes, LARGE)
    if best is None:
        raise Unsupported(
            "QUANTISED", f"no kernel moves {src} to {dst}: bytes hold parts of many elements"
        )
    return best[1]


def _best(
    src: QuantisedDesc, dst: QuantisedDesc, planes: list[str], tiles: Sequence[tuple[int, int]]
) -> tuple[float, Kernel] | None:
    """What a kernel costs for each element, and the kernel: in the tiles where that is least."""
    _, n, k = src.extents
    best: tuple[float, Kernel] | None = None
    for rows, columns in tiles:
        if n % rows or k % columns:
            continue
        try:
            mover = _Mover(src, dst, Tile(rows, columns), planes)
            made = mover.kernel()
        except NotInTilesError:
            continue
        body = made.source[made.source.index("kernel void") :]
        cost: float = sum(body.count(w) for w in ("[", "vload", "PUT", "STORE", "LOAD_"))
        cost = (cost + LINE * mover.lines()) / (rows * columns)
        if best is None or cost < best[0]:
            best = cost, made
    return best


class _Mover:
    def __init__(
        self, src: QuantisedDesc, dst: QuantisedDesc, tile: Tile, planes: Sequence[str]
    ) -> None:
        self.src, self.dst, self.tile = src, dst, tile
        self.fields = [f for f in dst.fields.values() if any(p.name in planes for p in f.planes)]
        names = {f.name for f in self.fields}
        self.symbols = Symbols("s")
        self.read = placed_planes(src, self.symbols, names)
        written = placed_planes(dst, self.symbols, names)
        self.write = {name: p for name, p in written.items() if name in planes}
        if any(dst.planes[name].padded != f.extents for f in self.fields
               for name in planes if dst.planes[name] in f.planes):  # fmt: skip
            raise NotInTilesError

    def lines(self) -> int:
        """The lines of 64 bytes that a tile touches."""
        found = set()
        for of in (self.read, self.write):
            for name, plane in of.items():
                own = next(f for f in self.fields if name in {p.name for p in self._planes(f)})
                for cell in self._cells(own):
                    at = plane.place(self.tile, *cell)
                    found.add((id(of), plane.base(self.tile), at.symbols, at.bits // 512))
        return len(found)

    def _planes(self, own: Field) -> list[Plane]:
        """The planes of a field on both sides."""
        return [*self.src.fields[own.name].planes, *own.planes]

    def kernel(self) -> Kernel:
        e, n, k = self.src.extents
        tile = self.tile
        lines = [line for p in self.read.values() for line in p.pointers(tile, "w")]
        if any(p.phase(tile) for p in self.write.values()):
            raise NotInTilesError
        bases = list(dict.fromkeys(p.base(tile) for p in self.write.values()))
        lines += [f"  global uchar *d{i} = d + {base};" for i, base in enumerate(bases)]
        for i, base in enumerate(bases):
            own = [name for name, p in self.write.items() if p.base(tile) == base]
            lines += self._words(own, f"d{i}")
            lines += self._bytes(own, f"d{i}")
        size = [e, n // tile.rows, k // tile.columns]
        for dim in (1, 2):  # one value for all of a dimension is moved once
            if all(not f.group[dim - 1] for f in self.fields):
                size[dim] = 1
        what = f"a work-item moves the bits of {tile.rows} x {tile.columns} elements"
        grid = Grid(tile, (size[0], size[1], size[2]))
        return grid.kernel("move", Program(lines), self.symbols, what)

    def _cells(self, own: Field) -> Iterator[Cell]:
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
            placed = [(plane.place(self.tile, *c), c) for c in self._cells(own)]
            if any(at.shift for at, _ in placed) or len(own.planes) > 1 or own.bias:
                raise NotInTilesError
            for run in _runs(sorted(placed, key=_key), plane.bits):
                found = codes(self.src.fields[own.name], self.read, self.tile, [c for _, c in run])
                at = f"{pointer} + {run[0][0].byte}"
                if len(run) > 1 and plane.aligned_to(plane.bits):
                    yield f"  PUT(({found}), {kind}, {len(run)}, {at});"
                else:
                    for place, cell in run:
                        one = codes(self.src.fields[own.name], self.read, self.tile, [cell])
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
        for cell in self._cells(own):
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
            text = self._part(part, [b.cells[i] for b in own])
            wide = f"(uchar){part.shift}"
            texts.append(f"({text}) << {wide}" if part.shift else f"({text})")
        kind = f"uchar{width}" if width > 1 else "uchar"
        joined = " | ".join(f"({t})" for t in texts)
        return joined if width > 1 else f"({kind})({joined})"

    def _part(self, part: Part, cells: Sequence[Cell]) -> str:
        """C of some bits of codes of the source, as bytes."""
        read, write = self.src.fields[part.field], self.dst.fields[part.field]
        if read.bias == write.bias:
            low = 0
            for plane in read.planes:
                if (low, plane.bits) == (part.low, part.bits):
                    return loaded(f"p_{plane.name}", self.read[plane.name], self.tile, cells)
                low += plane.bits
        text = codes(read, self.read, self.tile, cells)
        wide = "uchar" if read.bits <= 8 else "ushort" if read.bits <= 16 else "uint"
        if write.bias:
            text = f"(({text}) + ({wide}){write.bias} & ({wide}){(1 << read.bits) - 1})"
        shown = f"({text}) >> ({wide}){part.low} & ({wide}){(1 << part.bits) - 1}"
        lanes = str(len(cells)) if len(cells) > 1 else ""
        return f"convert_uchar{lanes}({shown})" if wide != "uchar" or not lanes else f"({shown})"


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
