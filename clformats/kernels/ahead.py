"""The lines that a tile asks for, tiles before they are read or stored to."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from itertools import pairwise
from textwrap import indent

from ..problems.thresholds import ASKED_LINES, LINE_BYTES
from ..schedule.layout import TileVector
from ..values.attr import OLD
from .computation import Computed
from .key import KernelKey
from .source import moved
from .types import KernelConversion
from .words import turns

Place = Callable[[TileVector, str, int], str]
"""How far the element of a vector's lane is from the tile's first, on a side: C."""


class LinesAhead:
    """The statements that ask for lines; ``turned``: the side with loops over elements of words."""

    def __init__(self, key: KernelKey, types: KernelConversion, turned: str, at: Place) -> None:
        self.key, self.types, self.turned, self.at = key, types, turned, at

    @property
    def claims(self) -> bool:
        """Whether tiles ask for lines that they store to: if ordinary stores write them.

        A store that the cache has no line for waits, and so do later ones. Kernels that read old
        values have `Operands.prefetched` for this.
        """
        computed = self.types.computation.operands if isinstance(self.types, Computed) else ()
        return self.key.store.is_ordinary and all(operand.name != OLD for operand in computed)

    def parts(self) -> list[str]:
        """What asks for the last elements of lines that a tile reads, or claims.

        In parts of at most `ASKED_LINES`, where a loop over the elements of words counts as one
        line. Where rows do not begin with lines, the tile before has asked for the line that one
        begins in. Tiles that share lines each ask for those of other rows; where such tiles do not
        follow each other, the first asks for all. None are read ahead that tables have to find.
        """
        read = [] if self.key.tables else self._asked("PREFETCH", "ahead", "s")
        claimed = self._asked("CLAIM", "to_ahead", "d") if self.claims else []
        each = -(-len(read) // self.key.lines_shared)
        groups = [read[k : k + each] for k in range(0, len(read), each or 1)]
        count = each + len(claimed)
        parts = max(1, -(-count // ASKED_LINES))
        found = []
        for first, end in pairwise(n * count // parts for n in range(parts + 1)):
            texts = []
            for k, group in enumerate(groups):
                texts += self._in_its_turn(k, group[first:end])
            texts += claimed[max(0, first - each) : max(0, end - each)]
            found.append("\n".join(texts))
        return found

    def _in_its_turn(self, number: int, texts: Sequence[str]) -> list[str]:
        """Statements for the tile with this number, of those that share lines."""
        if self.key.lines_shared == 1 or not texts:
            return [*texts]
        return [f"if (turn == {number} * nest.follows) {{", *(f"    {t}" for t in texts), "}"]

    def _asked(self, macro: str, tile: str, side: str) -> list[str]:
        """Statements that ask for the last element of each line of a row; ``tile`` is the first."""
        types, layout, is_src = self.types, self.key.layout, side == "s"
        name, vectors, bits = (("src", layout.loads, types.read_bits) if is_src else
                               ("dst", layout.stores, types.write_bits))  # fmt: skip
        ends: dict[tuple[tuple[int, ...], int], str] = {}
        for v in vectors:
            last = (v.shift + v.width) * bits - 1
            ends[v.row, last // (8 * LINE_BYTES)] = self.at(v, side, v.width - 1)
        texts = [f"{macro}({types.address(moved(tile, at), name)});" for at in ends.values()]
        return [turns(layout, texts)] if layout.rolled and self.turned == side else texts


def among(statements: Sequence[str], asks: Sequence[str]) -> list[str]:
    """The statements of a tile, and evenly among them those that ask for lines."""
    parts = 1 + len(asks)
    cuts = [n * len(statements) // parts for n in range(parts + 1)]
    found = [*statements[: cuts[1]]]
    for text, (first, end) in zip(asks, pairwise(cuts[1:]), strict=True):
        found += ["if (asked) {", indent(text, "    "), "}", *statements[first:end]]
    return found
