"""Where rows of tiles wait in private memory until their lines are whole.

No row that is shorter than half a page is on two of them: a store to two pages takes 33 cycles on a
Zen 4, and waits for all stores that pass the cache. Rows of 196 bytes which the end of a page cut
took six times as long on PoCL. Longer rows follow each other: on pages of their own all would begin
in the same sets of the nearest cache.
"""

from __future__ import annotations

from dataclasses import dataclass

from ..problems.thresholds import KEPT_LINES, LINE_BYTES, PAGE_BYTES, STAGE_BYTES


@dataclass(frozen=True, slots=True)
class LineBuffer:
    """The places of the ``count`` rows of a tile, each ``width`` elements of ``nbytes``.

    Rows of up to `tiles` tiles wait. Lengths and places are in elements.

    >>> buffer = LineBuffer(count=2, width=100, nbytes=4)
    >>> buffer.tiles, buffer.place(1, tile=1), buffer.size
    (16, 720, 8128)
    """

    count: int
    width: int
    nbytes: int

    @property
    def line(self) -> int:
        """A cache line."""
        return LINE_BYTES // self.nbytes

    @property
    def back(self) -> int:
        """Room before what waits: for a line that was begun, and what an overlapping tile has."""
        return -(-self.width // self.line) * self.line

    @property
    def full(self) -> int:
        """How much more than a tile may wait."""
        return KEPT_LINES * self.line

    @property
    def row(self) -> int:
        """A row with all that may wait of it, and the room before that."""
        return self.back + self.full + self.back

    @property
    def each(self) -> int:
        """How many rows there are between two places that begin with a page."""
        return PAGE_BYTES // self.nbytes // self.row if self._shares_pages else 1

    @property
    def page(self) -> int:
        """How far these places are apart."""
        return PAGE_BYTES // self.nbytes if self._shares_pages else self.row

    @property
    def _shares_pages(self) -> bool:
        return 2 * self.row * self.nbytes <= PAGE_BYTES

    @property
    def together(self) -> int:
        """How many tiles share a page."""
        return max(1, self.each // self.count)

    @property
    def step(self) -> int:
        """How far it is from the rows of so many tiles to those of the next ones."""
        return -(-self.count // self.each) * self.page

    @property
    def tiles(self) -> int:
        """Of how many tiles rows wait, until those of the first one go on."""
        return max(1, STAGE_BYTES // (self.step * self.nbytes) * self.together)

    @property
    def size(self) -> int:
        """The end of all rows."""
        return self.place(self.count - 1, self.tiles - 1) + self.row

    def place(self, row: int, tile: int = 0) -> int:
        """Where a row of a tile begins."""
        first = tile // self.together * self.step + tile % self.together * self.count * self.row
        return first + row // self.each * self.page + row % self.each * self.row
