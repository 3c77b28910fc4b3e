"""Where the elements of a tile lie in local memory, so that both passes find them quickly.

A tile is stored as the first pass reads it, whole vectors at once, and read as the second one
writes it. Local memory has banks, and gives a word of each in one turn: where the second pass would
ask one bank for several words, gaps move the elements apart.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import lru_cache
from itertools import product
from math import prod

from ..problems.thresholds import BANK_BYTES, BANKS, GAPS, IN_STEP
from .runs import joined

TURN_BYTES = BANKS * BANK_BYTES
"""What local memory gives in one turn at the most."""


BankDigits = list[tuple[int, int]]
"""(size, stride) of the digits of an element's number in local memory, the nearest first."""


@dataclass(frozen=True, slots=True)
class Pass:
    """One pass over a tile: its loops in ``order``, nearest first, ``width`` elements at a time.

    ``tall``: how many steps of the loop ``across`` are taken together, a vector for each. They are
    neighbours in local memory, which is read by words of as many elements.
    """

    order: tuple[int, ...]
    width: int
    tall: int = 1
    across: int = -1

    def steps(self, sizes: Sequence[int], loop: int) -> int:
        """How many steps of a loop the numbers of this pass count."""
        return sizes[loop] // (self.tall if loop == self.across else 1)


@dataclass(frozen=True, slots=True)
class BankLayout:
    """A step of loop k lies ``pitch[k]`` elements further, one of ``every`` steps of ``loop`` more.

    Every ``every`` steps of ``loop``, ``gap`` extra elements are skipped; 0: no padding.
    """

    sizes: tuple[int, ...]
    pitch: tuple[int, ...]
    loop: int = -1
    every: int = 1
    gap: int = 0

    @property
    def extent(self) -> int:
        """The elements of local memory that the tile takes."""
        return 1 + sum(
            (size - 1) * stride for k in range(len(self.sizes)) for size, stride in self._of(k, 1)
        )

    def digits(self, p: Pass) -> BankDigits:
        """How the number of an element in a pass gives its place."""
        found = (d for k in p.order for d in self._of(k, p.tall if k == p.across else 1))
        return joined(d for d in found if d[0] > 1)

    def _of(self, k: int, tall: int) -> BankDigits:
        if k == self.loop and self.gap:
            further = self.pitch[k] * self.every + self.gap
            return [(self.every, self.pitch[k]), (self.sizes[k] // self.every, further)]
        return [(self.sizes[k] // tall, self.pitch[k] * tall)]

    def lanes(self, p: Pass) -> tuple[int, tuple[int, ...] | None]:
        """How the elements of a vector are reached: (elements of one access, where each begins).

        That is from the place of the vector's first element on; None where it is not the same for
        all vectors.
        """
        digits = self.digits(p)
        if not stays(digits, p.width):
            return 1, None
        offsets = tuple(place(digits, j) for j in range(p.width))
        at_once = p.tall
        if p.tall == 1 and offsets == tuple(range(p.width)):
            at_once = p.width
        aligned = all(stride % at_once == 0 for _, stride in digits[p.tall == 1 :])
        if at_once > 1 and not aligned:
            return 1, offsets
        return at_once, offsets if at_once == p.tall else (0,)


def stays(digits: BankDigits, width: int) -> bool:
    """Whether the elements of a vector differ from its first by the same for all vectors."""
    for size, _ in digits:
        if size % width == 0:
            return True
        if width % size:
            return False
        width //= size
    return width == 1


def place(digits: BankDigits, number: int) -> int:
    """Where the element with a number lies."""
    at = 0
    for size, stride in digits:
        at += number % size * stride
        number //= size
    return at


def dense(sizes: tuple[int, ...], first: Pass) -> BankLayout:
    """The layout without gaps, in the order of the ``first`` pass."""
    return BankLayout(sizes, _pitches(sizes, first.order, None, 0))


@lru_cache(maxsize=512)
def layout(
    sizes: tuple[int, ...], first: Pass, second: Pass, item: int, spare: int = 8
) -> BankLayout:
    """The layout in which elements of ``item`` bytes are stored and read in the fewest cycles.

    Neighbours of the ``first`` pass are neighbours there. Its vectors stay whole. Gaps take one of
    ``spare`` parts of the tile more at the most.
    """
    unit = max(first.width, second.tall)
    tried = [dense(sizes, first)]
    loops = [k for k in second.order if k != first.order[0]]
    tried += [
        BankLayout(sizes, _pitches(sizes, first.order, k, gap * unit))
        for k, gap in product(loops, GAPS)
    ]
    near, every = second.order[0], second.width
    if near in loops and sizes[near] % every == 0 and sizes[near] > every:
        tried += [
            BankLayout(sizes, _pitches(sizes, first.order, near, 0, more), near, every, gap * unit)
            for gap in GAPS for more in [gap * unit * (sizes[near] // every)]
        ]  # fmt: skip
    most = prod(sizes) * (spare + 1) // spare
    small = [one for one in tried if one.extent <= most] or tried[:1]
    return min(small, key=lambda one: sum(bank_cycles(one, p, item) for p in (first, second)))


def _pitches(
    sizes: Sequence[int], order: Sequence[int], apart: int | None, gap: int, after: int = 0
) -> tuple[int, ...]:
    """Dense pitches, but for a ``gap`` before a loop and one ``after`` it."""
    result, reached = [0] * len(sizes), 1
    for k in order:
        if k == apart:
            reached += gap
        result[k] = reached
        reached *= sizes[k]
        if k == apart:
            reached += after
    return tuple(result)


def bank_cycles(one: BankLayout, p: Pass, item: int) -> float:
    """Cycles for each element in which the banks serve the first work-items of a pass."""
    at_once, offsets = one.lanes(p)
    digits, nbytes = one.digits(p), at_once * item
    together = min(IN_STEP, TURN_BYTES // max(nbytes, BANK_BYTES))
    count = 0
    for lane in range(len(offsets) if offsets else p.width):
        for begin in range(0, IN_STEP, together):
            words: dict[int, set[int]] = {}
            for n in range(begin, begin + together):
                at = place(digits, n * p.width + (0 if offsets else lane))
                at = (at + (offsets[lane] if offsets else 0)) * item
                for word in range(at // BANK_BYTES, (at + nbytes - 1) // BANK_BYTES + 1):
                    words.setdefault(word % BANKS, set()).add(word)
            count += max(map(len, words.values()))
    return count / (IN_STEP * p.width * p.tall)
