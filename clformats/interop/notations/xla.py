"""XLA's layouts: ``{3,2,1,0}``, ``{3,2,1,0:T(16,1,1)}``, ``bf16[8,16]{1,0:T(8,128)(2,1)}``.

Grammar (xla/layout.cc; the meaning is in XLA's page "Tiled layout")::

    text   = [type [size , ...]] { minor-to-major [: T tile+] [S(memory space)] }
    tile   = ( entry , ... )         entry = a number, or * for "join with the next more minor one"

The logical dimensions, the most major first, are the shape. A tile of k entries takes the k most
minor dimensions of the shape and replaces them by 2k: first the counts of tiles, ``ceil(d / t)``,
then the entries ``t``, both in the order they had. The next tile does it with the new shape.

An entry 1 leaves a dimension whole, so a tile with one larger entry splits one dimension and puts
the block after everything else. One such tile for each block, from the outermost in, says every
layout whose open digits all stand before its blocks, whatever the order of the blocks: each
oneDNN tag, swizzled blocks, and with ``*`` blocks of fused indices. Printed are as few tiles as
possible: neighbouring blocks share one where their order is that of the shape.

It cannot say: a block before an open digit (tiling always puts it after), flipped indices, and
rounding up without splitting. Where the rounded dimension is the innermost one, the tag with a
block there has the same bytes: ``byxf__af32`` lies as ``acdB32b`` does, ``{1,3,2,0:T(32)}``; the
text is read as the tag. Tiles that do not divide those before them leave padding inside a block,
which no format here has. XLA promises nothing about the values of padding.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass, replace

from ...errors import InvalidDescriptor, InvalidFormat
from ...formats import Digit, Format, Layout
from ...tensors.desc import MemoryDesc
from ...tensors.dtypes import named
from .shared import format_of, need, no_format, no_notation

Shape = list[Digit | None]
"""The dimensions of a shape; None has the size 1 and belongs to nothing."""

Tile = Sequence[int | None]
"""The entries of a tile; None is ``*``."""

_TEXT = re.compile(
    r"(?:(?P<dtype>\w+)\[(?P<dims>\d+(?:,\d+)*)\])?"
    r"\{(?P<order>\d+(?:,\d+)*)(?::(?:T(?P<tiles>(?:\((?:\d+|\*)(?:,(?:\d+|\*))*\))+))?(?:S\(\d+\))?)?\}"
)
_FROM_XLA = named("xla")


@dataclass(frozen=True)
class _Text:
    """An XLA text taken apart. ``order``: the dimensions, the most minor first."""

    text: str
    order: tuple[int, ...]
    tiles: tuple[Tile, ...]
    dtype: str = ""
    dims: tuple[int, ...] = ()


# --- reading --------------------------------------------------------------------------------------


def parse(text: str) -> Format:
    """Read a layout; type and sizes may stand before it. Raises `InvalidFormat`, `Unsupported`."""
    return _format(_read(text))


def parse_desc(text: str) -> MemoryDesc:
    """Read a shape with its layout: ``bf16[8,16]{1,0:T(8,128)(2,1)}``."""
    found = _read(text)
    if not found.dims:
        raise InvalidDescriptor(f"{text!r} has no sizes: expected them as in f32[2,17]{{1,0}}")
    return MemoryDesc(found.dims, _FROM_XLA.get(found.dtype, found.dtype), _format(found))


def _read(text: str) -> _Text:
    match = _TEXT.fullmatch(re.sub(r"\s", "", text))
    if not match:
        raise InvalidFormat(
            f"cannot read {text!r} as XLA: expected {{3,2,1,0}} or {{1,0:T(8,128)(2,1)}}"
        )
    order = _ints(match["order"])
    dims = _ints(match["dims"] or "")
    if sorted(order) != list(range(len(order))) or len(dims) not in (0, len(order)):
        raise InvalidFormat(
            f"{text!r} must name each dimension from 0 on once, the most minor first"
        )
    tiles = tuple(
        tuple(None if n == "*" else int(n) for n in tile.split(","))
        for tile in re.findall(r"\(([^)]*)\)", match["tiles"] or "")
    )
    return _Text(text, order, tiles, match["dtype"] or "", dims)


def _ints(text: str) -> tuple[int, ...]:
    return tuple(int(n) for n in text.split(",") if n)


def _format(found: _Text) -> Format:
    shape: Shape = [Digit(d, None) for d in reversed(found.order)]
    for tile in found.tiles:
        if len(tile) > len(shape) or 0 in tile or tile[-1] is None:
            raise InvalidFormat(f"{found.text!r}: the tile {_tile_text(tile)} does not fit")
        shape = _tiled(*_joined(shape, tile, found.text), found.text)
    digits = tuple(d for d in shape if d)
    return format_of(Layout(len(found.order), digits))


def _joined(shape: Shape, tile: Tile, text: str) -> tuple[Shape, list[int]]:
    """The shape and the tile after the joins that ``*`` asks for."""
    start = len(shape) - len(tile)
    head, joined, entries = shape[:start], [shape[start]], []
    for entry, following in zip(tile, [*shape[start + 1 :], None], strict=True):
        if entry is None:
            joined[-1] = _join(joined[-1], following, text)
        else:
            entries.append(entry)
            joined.append(following)
    return head + joined[:-1], entries


def _join(major: Digit | None, minor: Digit | None, text: str) -> Digit | None:
    if major is None or minor is None:
        return major or minor
    if (major.size, major.step, minor.size, minor.step) != (None, 1, None, 1):
        raise no_format(text, "a * joins dimensions that are split already")
    return Digit(major.dims + minor.dims, None)


def _tiled(shape: Shape, tile: Sequence[int], text: str = "") -> Shape:
    """XLA's rule: counts of tiles, then what is in a tile."""
    start = len(shape) - len(tile)
    halves = [_split(d, t, text) for d, t in zip(shape[start:], tile, strict=True)]
    return [*shape[:start], *(count for count, _ in halves), *(inside for _, inside in halves)]


def _split(digit: Digit | None, size: int, text: str) -> tuple[Digit | None, Digit | None]:
    """What counts the tiles along a dimension, and what counts inside one; None counts nothing."""
    if size == 1:
        return digit, None
    if digit is None or (digit.size or 0) % size:
        raise no_format(text, f"a tile entry {size} does not divide the block that it splits")
    inside = Digit(digit.dim, size, digit.step)
    count = None if digit.size is None else digit.size // size
    return (None if count == 1 else Digit(digit.dim, count, digit.step * size)), inside


# --- printing -------------------------------------------------------------------------------------


def render(fmt: Format) -> str:
    """Print ``{minor-to-major:T(tiles)}``. Raises `Unsupported`."""
    layout = need(fmt, "xla", can=("fused", "swizzle"))
    order = ",".join(str(d) for digit in reversed(layout.outer) for d in reversed(digit.dims))
    tiles = "".join(map(_tile_text, _tiles(layout)))
    return f"{{{order}{':T' * bool(tiles)}{tiles}}}"


def render_desc(desc: MemoryDesc) -> str:
    """Print type, sizes and layout. Raises `Unsupported` for padding, gaps and offsets."""
    layout = render(desc.format)
    if desc != MemoryDesc(desc.dims, desc.dtype, desc.format):
        raise no_notation(desc.format, "xla", f"{desc} has padding, gaps or an offset")
    if desc.has_runtime:
        raise no_notation(desc.format, "xla", f"{desc} has sizes known at execution only")
    dtype = desc.dtype.names.get("xla", desc.dtype.name)
    return f"{dtype}[{','.join(map(str, desc.dims))}]{layout}"


def _tiles(layout: Layout) -> list[Tile]:
    """The tiles that make the layout of its whole dimensions; few, by taking blocks greedily."""
    shape: Shape = [replace(d, step=1) for d in layout.outer]
    blocks = list(layout.inner)
    fused = [k for k, d in enumerate(layout.outer) if len(d.dims) > 1]
    result: list[Tile] = []
    while blocks or (fused and not result):
        entries = _next_tile(shape, blocks)
        start = min(entries.keys() | set(() if result else fused))
        tile = [entries.get(k, 1) for k in range(start, len(shape))]
        result.append(tile if result else _with_joins(tile, layout.outer[start:]))
        shape = _tiled(shape, tile)
    return result


def _next_tile(shape: Shape, blocks: list[Digit]) -> dict[int, int]:
    """Take the blocks that one tile can split off, from the front: position -> entry.

    An entry comprises the finer blocks that lie between: they are split off it later.
    """
    entries: dict[int, int] = {}
    while blocks:
        block = blocks[0]
        place = next(k for k, d in enumerate(shape) if d and _holds(d, block))
        if place <= max(entries, default=-1):
            break
        digit = shape[place] or block
        entries[place] = block.step * (block.size or 1) // digit.step
        blocks.pop(0)
    return entries


def _holds(digit: Digit, block: Digit) -> bool:
    end = block.step * (block.size or 1)
    inside = digit.size is None or digit.step * digit.size >= end
    return digit.dims == block.dims and digit.step <= block.step and inside


def _with_joins(tile: Sequence[int], outer: Sequence[Digit]) -> Tile:
    """The first tile with a ``*`` for each dimension that is fused with the next one."""
    result: list[int | None] = []
    for entry, digit in zip(tile, outer, strict=True):
        result += [None] * (len(digit.dims) - 1) + [entry]
    return result


def _tile_text(tile: Tile) -> str:
    return f"({','.join('*' if n is None else str(n) for n in tile)})"
