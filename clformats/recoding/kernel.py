"""A kernel over tiles of a quantised tensor: what moving and decoding have in common."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field, replace
from itertools import product
from typing import Any, TypeVar

import numpy as np

from ..problems.thresholds import LINE_BYTES, LONG_RUN_BYTES
from ..quantised.lanes import NAMES, At, NotInTilesError, Placed, Symbols, Tile, follow
from ..quantised.planes import Field
from ..quantised.values import Tables, source

T = TypeVar("T")

GROUP = 64
"""Work-items of a group, at most, that decode or move one tile of one row."""


@dataclass(frozen=True, slots=True)
class Kernel:
    """A generated kernel: its source and name, the work-items, and the arguments after memory.

    ``what`` says in words what a work-item does. Source and destination must begin at multiples of
    ``alignment`` bytes. Where ``local_size`` is None, the device chooses. ``reads`` are the planes
    that begin the buffers of the source and, after the arguments, of operands; ``writes`` that of
    the destination: what it has where tensors lie in several buffers, and "" for a whole one.
    """

    source: str
    name: str
    global_size: tuple[int, ...]
    arguments: tuple[Any, ...]
    what: str
    local_size: tuple[int, ...] | None = None
    alignment: int = 1
    reads: tuple[str, ...] = ("",)
    writes: str = ""

    @property
    def numbers(self) -> tuple[bytes, ...]:
        """The arguments as a device has them."""
        return tuple(a if isinstance(a, bytes) else a.tobytes() for a in self.arguments)


@dataclass(frozen=True, slots=True)
class TileCode:
    """The lines of a kernel, in which e, n and k are where a tile begins, and what they use.

    ``before`` are those that run once for all turns of a work-item; ``values`` declare those of
    their variables that the body reads.
    """

    body: Sequence[str]
    before: Sequence[str] = ()
    values: Sequence[str] = ()
    tables: Tables = field(default_factory=Tables)
    fp16_lanes: bool = False
    alignment: int = 1
    rules: Mapping[str, object] | None = None


@dataclass(frozen=True, slots=True)
class Grid:
    """Work-items over a tensor, a tile each: how many there are along experts, rows and columns.

    ``order`` are the dimensions of the work-items, that of neighbours first; ``turns``: so many
    tiles along the columns one after the other; ``blocks``: in each turn so many along the rows.
    """

    tile: Tile
    counts: tuple[int, int, int]
    order: tuple[int, int, int] = (2, 1, 0)
    turns: int = 1
    blocks: int = 1

    def kernel(self, name: str, program: TileCode, symbols: Symbols, what: str) -> Kernel:
        """The kernel of such code."""
        columns, step = self.tile.columns, self.tile.columns * self.turns
        places = [f"get_global_id({self.order.index(dim)})" for dim in range(3)]
        starts = [f"  const size_t {NAMES[0]} = {places[0]} * 1;"]
        body, before, first = program.body, program.before, f"{places[2]} * {step}"
        rows = f"{places[1]} * {self.tile.rows * self.blocks}"
        if self.blocks == 1:
            starts.append(f"  const size_t {NAMES[1]} = {rows};")
        else:
            starts.append(f"  const size_t rows = {rows};")
            before, body = self._in_blocks(program)
        if self.turns == 1:
            starts, end = [*starts, f"  const size_t k = {first};", *before], ["}"]
        else:
            loop = f"  for (size_t k = first; k < first + {step}; k += {columns}) {{"
            starts += [f"  const size_t first = {first}, k = first;", *before, loop]
            end = ["  }", "}"]
        names = "".join(f", const ulong {s}" for s in symbols.values)
        head = [f"kernel void {name}(global const uchar *w, global uchar *d{names})", "{"]
        text = source("\n".join([*head, *starts, *body, *end]), program.tables,
                      fp16_lanes=program.fp16_lanes, more=program.rules)  # fmt: skip
        counts = self.counts[0], self.counts[1] // self.blocks, self.counts[2] // self.turns
        arguments = tuple(map(np.uint64, symbols.values.values()))
        size = tuple(counts[dim] for dim in self.order)
        return Kernel(text, name, size, arguments, what, self.group(size), program.alignment)

    def _in_blocks(self, program: TileCode) -> tuple[Sequence[str], Sequence[str]]:
        """The lines before all turns, and those of one: values of each block are kept between."""
        loop = (f"  for (uint block = 0; block < {self.blocks}; block++) {{",
                f"  const size_t n = rows + block * {self.tile.rows};")  # fmt: skip
        kept = [(value, f"kept_{value.split()[1]}") for value in program.values]
        arrays = [f"  {value.split()[0]} {name}[{self.blocks}];" for value, name in kept]
        keeps = [f"  {name}[block] = {value.split()[1]};" for value, name in kept]
        takes = [f"  const {value} = {name}[block];" for value, name in kept]
        before = [*arrays, *loop, *program.before, *keeps, "  }"] if kept else []
        return before, [*loop, *takes, *program.body, "  }"]

    def group(self, size: tuple[int, ...]) -> tuple[int, ...]:
        """The work-items of a group: neighbours in memory, part of a line of tiles or whole lines.

        They are few, since PoCL's stack grows with them.
        """
        most = GROUP if self.tile.rows == self.turns == 1 else GROUP // 16
        first = _divisor(size[0], most)
        return first, _divisor(size[1], most // first) if first == size[0] else 1, 1


def fitting(
    extents: tuple[int, int, int], shapes: Iterable[tuple[int, int]], make: Callable[[Tile], T]
) -> Iterator[T]:
    """What ``make`` makes of each tile of whole rows and columns that it does not refuse.

    It refuses one by `NotInTilesError`.
    """
    _, n, k = extents
    for rows, columns in shapes:
        if n % rows or k % columns:
            continue
        try:
            made = make(Tile(rows, columns))
        except NotInTilesError:
            continue
        yield made


def groups_of(own: Field, tile: Tile) -> list[tuple[int, int]]:
    """The groups of a tile, or their parts, by their first elements."""
    sizes = zip(own.group, (tile.rows, tile.columns), strict=True)
    rows, columns = (range(0, size, group or size) for group, size in sizes)
    return [*product(rows, columns)]


def _divisor(size: int, most: int) -> int:
    """The greatest divisor of a size up to a bound."""
    return next(d for d in range(min(size, most), 0, -1) if size % d == 0)


def asked(
    sources: Iterable[tuple[Placed, Sequence[tuple[int, int]]]], tile: Tile, along: str, far: int
) -> Iterator[str]:
    """The statements that ask for the lines of a tile ``far`` rows, n, or columns, k, after this.

    ``sources``: planes, and their elements in a tile. What is after the tensor does no harm. Planes
    that such tiles cut are left out.
    """
    lines: dict[tuple[str, Any], None] = {}
    for plane, cells in sources:
        with suppress(NotInTilesError):
            lines |= dict.fromkeys((plane.base(tile), plane.place(tile, *cell).line(LINE_BYTES))
                                   for cell in cells)  # fmt: skip
    yield f"  {{ const size_t later = {along} + {far}; {{ const size_t {along} = later;"
    for base, (symbols, number) in lines:
        yield f"  PREFETCH(w + {base} + {At(number * 8 * LINE_BYTES, symbols).byte});"
    yield "  } }"


def blocks_of(plane: Placed, tile: Tile, rows: int, run: int) -> int:
    """How many tiles along the rows, of which a tensor has so many, a work-item does in turn.

    So that runs of ``run`` bits, which go on in the next tiles, are long.
    """
    blocks = 8 * LONG_RUN_BYTES // run
    while blocks > 1:
        tall = replace(tile, rows=tile.rows * blocks)
        with suppress(NotInTilesError):
            places = [plane.place(tall, row, 0) for row in range(0, tall.rows, tile.rows)]
            if rows % tall.rows == 0 and follow(places, run):
                break
        blocks //= 2
    return max(1, blocks)


def outer_strides(plane: Placed, tile: Tile, symbols: Symbols) -> Iterator[int]:
    """The bytes by which tiles, and lines of a tile, are apart."""
    used = {d.symbol for d in plane.digits} | {s for s, _ in plane.start.symbols}
    yield from (symbols.values[s] for s in used if s)
    yield from (d.stride // 8 for d in plane.digits
                if d.step * d.size > tile.size(d.dim) and d.step >= tile.size(d.dim))  # fmt: skip
