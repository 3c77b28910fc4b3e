"""The specialisation key of a schedule's kernel: all that its source depends on.

Reorders of other shapes, and other schedules of the same tile, have one key: their kernels differ
only in the numbers of their argument.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

from ..problems.problem import Problem
from ..problems.thresholds import LINE_BYTES
from ..schedule.layout import TileLayout, begins_units, exchanged
from ..schedule.schedule import Store, Tile
from . import exchange, tables
from .computation import types_of
from .masks import Edge, reads_outside
from .types import KernelConversion


@dataclass(frozen=True, slots=True)
class KernelKey:
    """What the source of a kernel depends on.

    ``outside``: whether vectors at an edge may lie outside of the source, see `reads_outside`.
    ``operands[j]`` are the strides of operand ``j`` along the tile's loops, one for each of
    ``layout.axes``. ``exchanges`` are those of these along which words exchange elements as vectors
    are loaded, and as they are stored; ``inside`` are those over the elements of a word; ``swaps``:
    see `Problem`.
    """

    types: KernelConversion
    layout: TileLayout
    store: Store
    edges: tuple[Edge, ...]
    outside: bool
    exchanges: tuple[exchange.Exchanges, exchange.Exchanges]
    inside: exchange.Exchanges
    swaps: exchange.Exchanges
    operands: tuple[tuple[int, ...], ...]
    tables: tuple[tables.TableKey, ...]

    @property
    def trades(self) -> bool:
        """Whether vectors exchange elements, or move some inside words."""
        return bool(self.inside or self.swaps or any(self.exchanges))

    @property
    def reads_plainly(self) -> bool:
        """Whether vectors are plain: of elements that need no exchange, codec, table or loop.

        And all that tiles load lies in the source's memory.
        """
        shares = self.types.source or self.types.target or self.types.word
        return not (self.trades or shares or self.tables or self.outside or self.layout.rolled)

    @property
    def lines_shared(self) -> int:
        """How many tiles one after the other along the source read one line of each row.

        1 where kernels do not make use of it.
        """
        line, bits = 8 * LINE_BYTES, self.layout.read_run * self.types.read_bits
        shares = bits and line % bits == 0 and not (self.layout.rolled or self.tables)
        return line // bits if shares else 1


def keyed(p: Problem, tile: Tile, layout: TileLayout, store: Store, edges: list[Edge]) -> KernelKey:
    """The key of the kernel for a tile of a problem."""
    nodes, axes = p.nodes, layout.axes
    early, late, inside = (tuple((axes.index(k), distance) for k, distance in some)
                           for some in (*exchanged(p), p.inside))  # fmt: skip
    operands = tuple(
        tuple(nodes[k].operands[j].value for k in axes) for j in range(len(p.operands0))
    )
    # How many tiles are staged is one of the argument's numbers.
    store = replace(store, staged=min(store.staged, 1))
    types = types_of(p)
    if types.source or types.target:
        types = types.in_units(loads=begins_units(p, tile, "src"))
    outside = (bool(edges) or layout.reach) and reads_outside(p, tile, layout)
    return KernelKey(types, layout, store, tuple(edges), outside, (early, late), inside, p.swaps,
                     operands, tables.keyed(p, axes))  # fmt: skip
