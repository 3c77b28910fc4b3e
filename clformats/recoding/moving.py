"""The kernel that moves a quantised tensor between two layouts of its type: bits, a tile each.

Every byte of the destination is put together from parts of codes; bytes that follow each other and
have the same parts are one vector.
"""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import suppress
from math import prod

from ..errors import Unsupported
from ..problems.thresholds import LINE_BYTES
from ..problems.traits import DEFAULT, Traits
from ..quantised.desc import QuantisedDesc
from ..quantised.lanes import NotInTilesError, Symbols, Tile, placed_planes
from ..quantised.loads import loaded
from ..quantised.values import codes
from .apart import PlaneMove, moves_apart
from .kernel import Grid, Kernel, TileCode, fitting
from .rearranging import rearranging
from .writing import Cell, Part, Writer

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


def moving(
    src: QuantisedDesc, dst: QuantisedDesc, traits: Traits = DEFAULT
) -> list[Kernel | PlaneMove]:
    """What moves a tensor between two layouts of its type.

    On CPUs one kernel where bytes stay what they are, so that each line is read and written once,
    and where words of records are taken apart or put together. Else each
    buffer of the destination by itself: its planes by plain reorders, or in tiles, bit by bit.
    GPUs do so wherever plain reorders move all, which keep neighbours side by side.
    Raises `Unsupported` (code QUANTISED) where bytes hold elements that no tile has together.
    """
    buffers = [[p.name for p in dst.planes.values() if p.buffer == b]
               for b in range(len(dst.buffers))]  # fmt: skip
    for names, buffer in zip(buffers, dst.buffers, strict=True):
        bits = sum(prod(dst.planes[n].padded) * dst.planes[n].bits for n in names)
        if bits != 8 * buffer.nbytes:
            raise Unsupported("QUANTISED", f"no kernel writes the padding of {dst}")
    apart: list[list[PlaneMove] | None] = []
    if not traits.is_cpu:
        apart = [moves_apart(src, dst, b, adding=True) for b in range(len(buffers))]
        if all(apart):
            return [move for moves in apart for move in moves or ()]
    whole = _best(src, dst, list(dst.planes), ROWS)
    if whole and whole[0] <= TOGETHER:
        return [whole[1]]
    if traits.is_cpu:
        with suppress(NotInTilesError):
            return [rearranging(src, dst, traits)]
    found: list[Kernel | PlaneMove] = []
    for b, names in enumerate(buffers):
        alone = moves_apart(src, dst, b, adding=not traits.is_cpu)
        found += alone or [_in_tiles(src, dst, names)]
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

    def priced(tile: Tile) -> tuple[float, Kernel]:
        mover = BitMover(src, dst, tile, planes)
        made = mover.kernel()
        body = made.source[made.source.index("kernel void") :]
        cost: float = sum(body.count(w) for w in ("[", "vload", "PUT", "STORE", "LOAD_"))
        return (cost + LINE * mover.lines()) / (tile.rows * tile.columns), made

    return min(fitting(src.extents, tiles, priced), key=lambda found: found[0], default=None)


class BitMover(Writer):
    """Some planes of a destination, from the same fields of a source. Raises `NotInTilesError`."""

    def __init__(
        self, src: QuantisedDesc, dst: QuantisedDesc, tile: Tile, planes: Sequence[str]
    ) -> None:
        symbols = Symbols("s")
        names = {f.name for f in dst.fields.values() if any(p.name in planes for p in f.planes)}
        self.src, self.read = src, placed_planes(src, symbols, names)
        super().__init__(dst, tile, planes, symbols)

    def lines(self) -> int:
        """The lines of 64 bytes that a tile touches."""
        found = set()
        for own in self.fields:
            sides = (self.read, self.src.fields[own.name]), (self.write, own)
            planes = [(k, placed[p.name]) for k, (placed, f) in enumerate(sides)
                      for p in f.planes if p.name in placed]  # fmt: skip
            for cell in self.cells(own):
                for side, plane in planes:
                    line = plane.place(self.tile, *cell).line(LINE_BYTES)
                    found.add((side, plane.base(self.tile), line))
        return len(found)

    def kernel(self) -> Kernel:
        """The kernel of a tile for each work-item."""
        e, n, k = self.src.extents
        tile = self.tile
        lines = [line for p in self.read.values() for line in p.pointers(tile, "w")]
        lines += self.stores()
        size = [e, n // tile.rows, k // tile.columns]
        for dim in (1, 2):  # one value for all of a dimension is moved once
            if all(not f.group[dim - 1] for f in self.fields):
                size[dim] = 1
        what = f"a work-item moves the bits of {tile.rows} x {tile.columns} elements"
        grid = Grid(tile, (size[0], size[1], size[2]))
        return grid.kernel("move", TileCode(lines), self.symbols, what)

    def part(self, part: Part, cells: Sequence[Cell]) -> str:
        """C of some bits of codes of the source, as bytes."""
        read, write = self.src.fields[part.field], self.dst.fields[part.field]
        if read.bias == write.bias:
            for low, plane in read.parts:
                if (low, plane.bits) == (part.low, part.bits):
                    return loaded(f"p_{plane.name}", self.read[plane.name], self.tile, cells)
        return super().part(part, cells)

    def codes(self, field: str, cells: Sequence[Cell]) -> str:
        """Those of the source."""
        return codes(self.src.fields[field], self.read, self.tile, cells)
