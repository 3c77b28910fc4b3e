"""The schedule of a box: everything about a kernel of the local family that is a choice, as data.

A work-group moves a box of the tensor through local memory, see `clformats.schedule.local`. A
`BoxSchedule` says how many steps of each loop a box has, how long vectors are on both sides, how a
box lies in local memory, how many work-items move it, and in which order the groups go through the
tensor. It prints in one line::

    c64 d | vectors 4 8 by 2 | gaps | 256 along a c

Loops of the problem have letters, from the outermost in the destination: ``a`` is the first one. A
box has 64 steps of ``c`` and all of ``d``, and one of each other loop. A work-item loads 4 elements
at once and stores 8, of 2 neighbours in the source together, which it fetches from local memory as
one word. Gaps keep apart what would lie in one bank; ``dense`` stands for none. Groups
have 256 work-items; consecutive ones go along ``c``, then along ``a``.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import NoReturn

from ..errors import InvalidArgument
from .schedule import LETTERS, NUMBER

EXAMPLE = "c64 d | vectors 4 8 by 2 | gaps | 256 along a c"
ALL = 0
"""Stands for all steps of a loop; their number is then part of the kernel."""
VECTORS = (1, 2, 4, 8, 16)
"""The elements that OpenCL's vectors have."""
LENGTH = "|".join(map(str, VECTORS))


@dataclass(frozen=True, slots=True)
class BoxSchedule:
    """``steps[k]`` of loop k, 1 for loops after the last; `ALL` stands for all of them.

    ``vectors``: elements that a work-item loads and stores at once. ``tall``: how many vectors
    it stores at once, made of words of as many elements of local memory. ``gaps``: local memory has
    gaps where they save bank conflicts. ``group``: work-items of a work-group. ``order``: the
    loops that the groups' numbers count, the outermost first.

    >>> str(BoxSchedule.parse("c64 d | vectors 4 8 by 2 | gaps | 256 along a c"))
    'c64 d | vectors 4 8 by 2 | gaps | 256 along a c'
    """

    steps: tuple[int, ...]
    vectors: tuple[int, int]
    tall: int
    gaps: bool
    group: int
    order: tuple[int, ...]

    def __str__(self) -> str:
        box = " ".join(
            f"{LETTERS[k]}{n if n != ALL else ''}" for k, n in enumerate(self.steps) if n != 1
        )
        along = " ".join(["along", *(LETTERS[k] for k in self.order)]) if self.order else "once"
        load, store = self.vectors
        lies = "gaps" if self.gaps else "dense"
        return f"{box} | vectors {load} {store} by {self.tall} | {lies} | {self.group} {along}"

    @classmethod
    def parse(cls, text: str) -> BoxSchedule:
        """The schedule that prints so. Raises `InvalidArgument`."""
        parts = [part.split() for part in text.split("|")]
        if len(parts) != 4 or not all(parts):
            _refuse(text, "four parts between bars")
        box, vectors, lies, groups = parts
        if lies not in (["gaps"], ["dense"]):
            _refuse(text, "'gaps' or 'dense' as its third part")
        load, store, tall = _vectors(text, vectors)
        steps, (group, order) = _steps(text, box), _groups(text, groups)
        return cls(steps, (load, store), tall, lies == ["gaps"], group, order)


def _steps(text: str, words: list[str]) -> tuple[int, ...]:
    steps: dict[int, int] = {}
    for word in words:
        found = re.fullmatch(f"([a-z])({NUMBER})?", word)
        if not found or found[2] in ("0", "1"):
            _refuse(text, f"a letter, or one and a number of steps, instead of {word!r}")
        steps[LETTERS.index(found[1])] = int(found[2]) if found[2] else ALL
    return tuple(steps.get(k, 1) for k in range(max(steps) + 1))


def _vectors(text: str, words: list[str]) -> tuple[int, int, int]:
    found = re.fullmatch(f"vectors ({LENGTH}) ({LENGTH}) by ({LENGTH})", " ".join(words))
    if not found:
        _refuse(text, "a second part such as 'vectors 4 8 by 2', of 1, 2, 4, 8 or 16 elements")
    return int(found[1]), int(found[2]), int(found[3])


def _groups(text: str, words: list[str]) -> tuple[int, tuple[int, ...]]:
    size, *rest = words
    if not re.fullmatch(NUMBER, size) or int(size) < 1:
        _refuse(text, "a last part such as '256 along a c'")
    if rest == ["once"]:
        return int(size), ()
    letters = rest[1:]
    known = all(len(word) == 1 and word in LETTERS for word in letters)
    if rest[:1] != ["along"] or not letters or not known or len({*letters}) < len(letters):
        _refuse(text, "'along' and the letters of loops, each once, or 'once'")
    return int(size), tuple(LETTERS.index(word) for word in letters)


def _refuse(text: str, expected: str) -> NoReturn:
    raise InvalidArgument(f"got the box {text!r}, expected {expected}, as in {EXAMPLE!r}")
