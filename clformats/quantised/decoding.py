"""The kernel that decodes a quantised tensor into numbers: a work-item decodes a tile."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from ..errors import Unsupported
from ..tensors.desc import MemoryDesc
from .desc import QuantisedDesc
from .lanes import (
    At,
    NotInTilesError,
    Placed,
    SymbolicDigit,
    Symbols,
    Tile,
    placed_planes,
)
from .planes import PlaneDigit
from .values import Tables, source, value

LANES = 16
TARGETS = ("f32", "f16")
"""The element types that a decoding kernel writes."""


@dataclass(frozen=True, slots=True)
class Kernel:
    """A generated kernel: its source and name, the work-items, and the arguments behind memory.

    ``what`` says in words what a work-item does.
    """

    source: str
    name: str
    global_size: tuple[int, ...]
    arguments: tuple[int, ...]
    what: str


def decoding(src: QuantisedDesc, dst: MemoryDesc, *, fp16_lanes: bool = False) -> Kernel:
    """The kernel from a quantised tensor to f32 or f16 in a layout that tiles reach.

    Raises `Unsupported` (code QUANTISED) where there is none.
    """
    if dst.dtype.name not in TARGETS:
        raise _none(src, dst)
    best: tuple[float, Kernel] | None = None
    for tile, along in _tiles(src):
        try:
            made = _Decoder(src, dst, tile, along).kernel(fp16_lanes=fp16_lanes)
        except NotInTilesError:
            continue
        cost = _cost(made.source) / (tile.rows * tile.columns)
        if best is None or cost < best[0]:
            best = cost, made
    if best is None:
        raise _none(src, dst)
    return best[1]


def _none(src: QuantisedDesc, dst: MemoryDesc) -> Unsupported:
    return Unsupported("QUANTISED", f"no kernel decodes {src} into {dst}: unpack it on the host")


def _tiles(src: QuantisedDesc) -> Iterator[tuple[Tile, int]]:
    """Tiles that divide the tensor, and the dimension of the lanes."""
    _, n, k = src.extents
    for columns in (32, 16):
        if k % columns == 0:
            yield Tile(1, columns), 2
    for rows in (16,):
        for columns in (8, 4, 1):
            if n % rows == 0 and k % columns == 0:
                yield Tile(rows, columns), 1
    yield Tile(1, 1), 2


def _cost(text: str) -> float:
    """About how many instructions the body of a kernel has: loads, stores and conversions."""
    body = text[text.index("kernel void") :]
    return sum(body.count(word) for word in ("[", "vload", "vstore", "STORE", "LOAD_", "convert"))


class _Decoder:
    def __init__(self, src: QuantisedDesc, dst: MemoryDesc, tile: Tile, along: int) -> None:
        self.src, self.dst, self.tile, self.along = src, dst, tile, along
        self.symbols = Symbols("s")
        self.planes = placed_planes(src, self.symbols)
        self.target = _target(dst, self.symbols)
        self.tables = Tables()

    def kernel(self, *, fp16_lanes: bool) -> Kernel:
        e, n, k = self.src.extents
        tile = self.tile
        lines = [line for p in self.planes.values() for line in p.pointers(tile, "w")]
        lines.append(f"  global uchar *out = d + {self.target.base(tile)};")
        vectors = list(self._vectors())
        for lanes in vectors:
            lines += self._one(lanes)
        names = "".join(f", const ulong {s}" for s in self.symbols.values)
        head = [
            f"kernel void decode(global const uchar *w, global uchar *d{names})",
            "{",
            f"  const size_t k = get_global_id(0) * {tile.columns};",
            f"  const size_t n = get_global_id(1) * {tile.rows};",
            "  const size_t e = get_global_id(2);",
        ]
        text = source("\n".join([*head, *lines, "}"]), self.tables, fp16_lanes=fp16_lanes)
        size = (k // tile.columns, n // tile.rows, e)
        lanes_along = ("", "rows", "columns")[self.along]
        what = (f"a work-item decodes {tile.rows} x {tile.columns} elements, "
                f"{len(vectors[0])} along the {lanes_along} at a time")  # fmt: skip
        return Kernel(text, "decode", size, tuple(self.symbols.values.values()), what)

    def _vectors(self) -> Iterator[list[tuple[int, int]]]:
        rows, columns = self.tile.rows, self.tile.columns
        if rows * columns == 1:
            yield [(0, 0)]
        elif self.along == 2:
            for c in range(0, columns, LANES):
                yield [(0, c + j) for j in range(LANES)]
        else:
            for c in range(columns):
                yield [(j, c) for j in range(LANES)]

    def _one(self, lanes: list[tuple[int, int]]) -> Iterator[str]:
        real = "float16" if len(lanes) > 1 else "float"
        yield "  {"
        for name in self.src.dtype.formula.names:
            field = self.src.fields[name]
            text = value(field, self.planes, self.tile, lanes, self.tables)
            shared = _is_shared(field.group, self.tile, lanes) and field.dtype.width == 1
            yield f"    const {'float' if shared else real} {name} = {text};"
        yield f"    const {real} x = {self.src.dtype.formula.source('float', len(lanes))};"
        yield from self._stores(lanes)
        yield "  }"

    def _stores(self, lanes: list[tuple[int, int]]) -> Iterator[str]:
        places = [self.target.place(self.tile, *lane) for lane in lanes]
        size = self.target.bits // 8
        half = self.dst.dtype.name == "f16"
        if len(lanes) == 1:
            at = f"out + {places[0].byte}"
            yield (f"    vstore_half_rte(x, 0, (global half *)({at}));" if half
                   else f"    *(global float *)({at}) = x;")  # fmt: skip
            return
        first = places[0]
        follow = all(p == At(first.bits + 8 * size * j, first.symbols)
                     for j, p in enumerate(places))  # fmt: skip
        if follow:
            at = f"out + {first.byte}"
            yield (f"    STORE_HALF16(x, {at});" if half
                   else f"    vstore16(x, 0, (global float *)({at}));")  # fmt: skip
            return
        for j, p in enumerate(places):
            at, lane = f"out + {p.byte}", f"x.s{'0123456789abcdef'[j]}"
            yield (f"    vstore_half_rte({lane}, 0, (global half *)({at}));" if half
                   else f"    *(global float *)({at}) = {lane};")  # fmt: skip


def _is_shared(group: tuple[int, int], tile: Tile, lanes: list[tuple[int, int]]) -> bool:
    rows, columns = group[0] or tile.rows, group[1] or tile.columns
    return len({(r // rows, c // columns) for r, c in lanes}) == 1


def _target(dst: MemoryDesc, symbols: Symbols) -> Placed:
    """The digits of a tensor of numbers, as those of a plane. Raises `NotInTilesError`."""
    whole = dst.padded_dims == dst.dims and not any(map(any, dst.padding))
    simple = all(isinstance(p.digit.dim, int) and not p.digit.flip for p in dst.placed)
    if not (whole and simple) or dst.tail or dst.ndims > 3 or dst.format.image or dst.sums:
        raise NotInTilesError
    bits = dst.dtype.bits
    digits: list[SymbolicDigit] = []
    for p in dst.placed:
        dim = p.digit.dims[0] + 3 - dst.ndims
        varies = not p.fixed_stride and p.stride != 1
        if p.stride == 0 and p.size > 1:
            raise NotInTilesError
        is_open = p.digit.size is None
        one = PlaneDigit(dim, p.digit.step, p.size, p.stride * bits)
        if varies and p.size > 1:
            symbol = symbols.of(p.stride * bits // 8)
            digits.append(SymbolicDigit(dim, one.step, one.size, 0, symbol, is_open))
        else:
            digits.append(SymbolicDigit(dim, one.step, one.size, one.stride, "", is_open))
    at = At(0)
    if dst.offset0:
        at = At(0, ((symbols.of(dst.offset0 * bits // 8), 1),))
    return Placed("out", bits, tuple(digits), at)
