"""What the template arranges of the two passes in which a work-group moves its tile.

Rows of 8- and 16-bit elements begin at any of them where sizes are odd: see `GroupTile.loose`.
"""

from __future__ import annotations

from dataclasses import dataclass

from ..problems.thresholds import BANK_BYTES


@dataclass(frozen=True, slots=True)
class Lane:
    """What is loaded at once: from where, if ``test`` holds; what is not ``inside`` is zero.

    ``part`` are the elements of the unit's vector, as a swizzle.
    """

    at: str
    test: str
    inside: str
    part: str


@dataclass(frozen=True, slots=True)
class GroupMove:
    """What a work-item stores at once: under which condition, what, and the statement.

    ``inside`` is the condition for elements where something is computed: padding is zero.
    """

    exists: str
    inside: str
    result: str
    stored: str


@dataclass(frozen=True, slots=True)
class PassText:
    """One pass in the kernel: a work-item takes each ``group``-th of ``count`` units.

    A unit begins with element ``e``, a multiple of ``width``, but for vectors that begin anywhere;
    ``digits`` are (variable, value).
    """

    width: int
    count: int
    digits: list[tuple[str, str]]


@dataclass(frozen=True, slots=True)
class Anywhere:
    """How vectors of ``wide`` elements of so many ``bits`` are loaded that begin at any of them.

    ``end``: how many elements the source has; ``has_rest``: not all of them lie in whole words.
    """

    wide: int
    end: str
    bits: int
    has_rest: bool

    @property
    def each(self) -> int:
        """The elements of a word."""
        return 8 * BANK_BYTES // self.bits

    @property
    def words(self) -> int:
        """The words of a vector."""
        return self.wide // self.each


@dataclass(frozen=True, slots=True)
class Runs:
    """How runs of ``size`` elements that begin anywhere are stored by vectors of ``wide`` elements.

    A run begins ``at`` in the destination, and has as many elements as the least of ``ends``, if
    ``exists`` holds; ``first`` are the digits of its first element. Then the digits and the store
    of a whole vector, and of one element.
    """

    size: int
    wide: int
    at: str
    exists: str
    ends: list[str]
    first: list[tuple[str, str]]
    whole: tuple[list[tuple[str, str]], str]
    one: tuple[list[tuple[str, str]], str]

    @property
    def count(self) -> int:
        """The vectors that a run may lie in."""
        return (self.size + self.wide - 2) // self.wide + 1
