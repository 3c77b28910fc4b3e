"""A schedule: everything about a kernel that is a choice, as data.

A reorder is ``for tile in nest: load vectors -> shuffle -> store vectors``. A `Schedule` says how
many steps of each loop of the problem a tile covers, how the loops over tiles are ordered and
split, how far ahead of the tile the prefetch runs, and how vectors reach memory. It prints in one
line::

    tile b16 c16 of 16 | a* c*98 b c | ahead 12 | stream 64

Loops of the problem have letters, from the outermost in the destination: ``a`` is the first one. A
tile takes 16 steps of ``b`` and of ``c`` in vectors of 16 lanes. The nest, outermost first: each
iteration of ``a``, and each 98 tiles of ``c``, is a work-item of its own (``*``); inside, ``b`` and
``c`` go on by one tile. ``c:12`` would be a loop in steps of 12 tiles inside a work-item.

On GPUs a work-group moves a tile together, mostly through local memory::

    tile c64 d of 4 8 | a* c* of 256 | ahead 0 | local 2

A tile takes all steps of ``d``. A work-item loads 4 elements at once and stores 8. Each tile is
that of a group of 256 work-items; consecutive groups go along ``c``, then along ``a``. Local memory
is read by words of 2 elements, which are neighbours in the source; it has gaps where they save bank
conflicts, and with ``local 2 dense`` none.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from string import ascii_lowercase
from typing import NoReturn

from ..errors import InvalidArgument

LETTERS = ascii_lowercase
"""The names of a problem's loops."""
NUMBER = "[0-9]{1,9}"
ALL = 0
"""Stands for all steps of a loop, whose number is then part of the kernel."""
VECTORS = (1, 2, 4, 8, 16)
"""The elements that OpenCL's vectors have."""
STREAMS = (64, 32, 16)
"""The bytes of stores that pass the cache."""
STAGED = "staged"
STORES = ("ordinary", *(f"stream {n}" for n in STREAMS), "lines", STAGED)
"""The kinds of stores of CPUs by their texts; staged ones take the loops that they can."""
EXAMPLE = "tile b16 c16 of 16 | a* c*98 b c | ahead 12 | stream 64"


@dataclass(frozen=True, slots=True)
class Tile:
    """``extents[k]`` steps of loop k, 1 for loops after the last, in vectors of ``lanes``.

    `ALL` stands for the steps that a loop has. Stored vectors have ``stored`` lanes; 0: as many.
    """

    extents: tuple[int, ...]
    lanes: int
    stored: int = 0

    @classmethod
    def of(cls, extents: tuple[int, ...] | list[int], lanes: int, stored: int = 0) -> Tile:
        """The tile without ones at the end: equal tiles are equal."""
        while extents and extents[-1] == 1:
            extents = extents[:-1]
        return cls(tuple(extents), lanes, 0 if stored == lanes else stored)

    @property
    def widths(self) -> tuple[int, int]:
        """The lanes of the vectors that are loaded and stored."""
        return self.lanes, self.stored or self.lanes

    def steps(self, axis: int) -> int:
        """How many steps of a loop a tile covers."""
        return self.extents[axis] if axis < len(self.extents) else 1

    def all_steps(self, loops: int) -> list[int]:
        """How many steps of each of so many loops a tile covers."""
        taken = self.extents[:loops]
        return [*taken, *(1,) * (loops - len(taken))]

    def __str__(self) -> str:
        parts = [f"{LETTERS[k]}{n or ''}" for k, n in enumerate(self.extents) if n != 1]
        lanes = [str(n) for n in (self.lanes, self.stored) if n]
        return " ".join(["tile", *parts, "of", *lanes])


@dataclass(frozen=True, slots=True)
class Loop:
    """A loop along ``axis`` in steps of ``tiles`` tiles; ``spread`` over work-groups, or inside."""

    axis: int
    tiles: int = 1
    spread: bool = False

    def __str__(self) -> str:
        many = str(self.tiles) if self.tiles > 1 else ""
        return f"{LETTERS[self.axis]}{'*' if self.spread else ':' if many else ''}{many}"


@dataclass(frozen=True, slots=True)
class Store:
    """One of five kinds; without arguments ordinary stores, through the cache.

    ``streams``: bytes of a store that passes the cache, 16, 32 or 64.
    ``lines``: rows that start anywhere wait in a buffer, and leave it as whole lines that pass the
    cache. ``staged``: so do the tiles of that many innermost loops, which are one run together.
    ``local``: a work-group's tile goes through local memory, which is read by words of so many
    elements; ``dense``: without gaps against bank conflicts.
    Raises `InvalidArgument` for two kinds at once, and for other numbers.
    """

    streams: int = 0
    lines: bool = False
    staged: int = 0
    local: int = 0
    dense: bool = False

    def __post_init__(self) -> None:
        kinds = (self.streams != 0) + self.lines + (self.staged != 0) + (self.local != 0)
        wrong = self.streams not in (0, *STREAMS) or self.staged < 0 or self.local < 0
        if kinds > 1 or wrong or (self.dense and not self.local):
            raise InvalidArgument(
                f"got {self!r}, expected one of them: streams of 16, 32 or 64, lines, staged above "
                f"0, or local above 0, which may be dense"
            )

    @property
    def is_ordinary(self) -> bool:
        """Whether each vector is stored as it is ready, through the cache."""
        return not self.streams and not self.is_buffered and not self.local

    @property
    def is_buffered(self) -> bool:
        """Whether elements wait in private memory until lines are whole."""
        return self.lines or self.staged > 0

    def __str__(self) -> str:
        if self.lines:
            return "lines"
        if self.staged:
            return f"staged {self.staged}"
        if self.local:
            return f"local {self.local}{' dense' * self.dense}"
        return f"stream {self.streams}" if self.streams else "ordinary"


@dataclass(frozen=True, slots=True)
class Schedule:
    """The four answers that make a kernel of a problem.

    What is read is asked for ``ahead`` tiles before; 0: never. ``group`` work-items share a tile.

    >>> str(Schedule.parse("tile b16 c16 of 16 | a* c*98 b c | ahead 12 | stream 64"))
    'tile b16 c16 of 16 | a* c*98 b c | ahead 12 | stream 64'
    """

    tile: Tile
    nest: tuple[Loop, ...]
    ahead: int = 0
    store: Store = Store()
    group: int = 1

    def __str__(self) -> str:
        nest = " ".join(map(str, self.nest)) or "once"
        nest += f" of {self.group}" * (self.group > 1)
        return f"{self.tile} | {nest} | ahead {self.ahead} | {self.store}"

    def __lt__(self, other: Schedule) -> bool:
        """By their texts."""
        return str(self) < str(other)

    @classmethod
    def parse(cls, text: str) -> Schedule:
        """The schedule that prints so. Raises `InvalidArgument`."""
        parts = [part.split() for part in text.split("|")]
        if len(parts) != 4 or not all(parts):
            _refuse(text, "four parts between bars")
        tile, nest, prefetch, store = parts
        loops, group = _nest(text, nest)
        ahead = _number(text, prefetch, "ahead")
        return cls(_tile(text, tile), loops, ahead, _store(text, store), group)


def _tile(text: str, words: list[str]) -> Tile:
    lanes = re.fullmatch(rf"tile .*\bof ({NUMBER})(?: ({NUMBER}))?", " ".join(words))
    if not lanes or lanes[2] == "0":
        _refuse(text, "a first part such as 'tile b16 c16 of 16', a number of lanes at its end")
    extents: dict[int, int] = {}
    for word in words[1 : words.index("of")]:
        found = re.fullmatch(f"([a-z])({NUMBER})?", word)
        if not found or found[2] == "0":
            _refuse(text, f"a letter, or one and a number of steps, instead of {word!r}")
        extents[LETTERS.index(found[1])] = int(found[2] or ALL)
    steps = [extents.get(k, 1) for k in range(max(extents, default=-1) + 1)]
    return Tile.of(steps, int(lanes[1]), int(lanes[2] or 0))


def _nest(text: str, words: list[str]) -> tuple[tuple[Loop, ...], int]:
    group, loops = 1, words
    if "of" in words:
        group, loops = _number(text, words[-2:], "of"), words[:-2]
    if not loops or not group:
        _refuse(text, "loops or 'once', of at least one work-item")
    return () if loops == ["once"] else tuple(_loop(text, word) for word in loops), group


def _loop(text: str, word: str) -> Loop:
    found = re.fullmatch(rf"([a-z])(?:(\*)({NUMBER})?|:({NUMBER}))?", word)
    if not found:
        _refuse(text, f"a loop such as a, a*, a*98 or a:12 instead of {word!r}")
    tiles = int(found[3] or found[4] or 1)
    if tiles < 1:
        _refuse(text, f"at least one tile in {word!r}")
    return Loop(LETTERS.index(found[1]), tiles, bool(found[2]))


def _store(text: str, words: list[str]) -> Store:
    if words in (["ordinary"], ["lines"]):
        return Store(lines=words == ["lines"])
    if words[:1] == ["staged"]:
        staged = _number(text, words, "staged")
        if not staged:
            _refuse(text, "at least one staged loop")
        return Store(staged=staged)
    if words[:1] == ["local"]:
        dense = words[2:] == ["dense"]
        local = _number(text, words[:2] if dense else words, "local")
        if not local:
            _refuse(text, "words of at least one element in local memory")
        return Store(local=local, dense=dense)
    streams = _number(text, words, "stream")
    if streams not in STREAMS:
        _refuse(text, "streaming stores of 16, 32 or 64 bytes")
    return Store(streams)


def _number(text: str, words: list[str], name: str) -> int:
    if len(words) != 2 or words[0] != name or not re.fullmatch(NUMBER, words[1]):
        _refuse(text, f"a part '{name}' with a number")
    return int(words[1])


def _refuse(text: str, expected: str) -> NoReturn:
    raise InvalidArgument(f"got the schedule {text!r}, expected {expected}, as in {EXAMPLE!r}")
