"""Where the elements of a tile lie in local memory, so that both passes find them quickly.

A tile is stored as the first pass reads it, whole vectors at once, and read as the second one
writes it. Local memory has banks, and gives a word of each in one turn: where the second pass would
ask one bank for several words, gaps move the elements apart.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from functools import lru_cache
from itertools import product
from math import gcd

from ..problems.arithmetic import joined
from ..problems.problem import Split
from ..problems.thresholds import BANK_BYTES, BANKS, GAPS, IN_STEP, MUCH_SOONER

TURN_BYTES = BANKS * BANK_BYTES
"""What local memory gives in one turn at the most."""


Splits = tuple[Split | None, ...]
"""What makes loops of a tile those of one side: see `clformats.problems.splits`."""
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
    ``indices`` are those that both sides split differently: steps, and how far one goes; of these
    are the loops ``split``. ``first``: where the second pass begins.
    """

    sizes: tuple[int, ...]
    pitch: tuple[int, ...]
    loop: int = -1
    every: int = 1
    gap: int = 0
    split: frozenset[int] = frozenset()
    indices: tuple[tuple[int, int], ...] = ()
    first: int = 0

    @property
    def extent(self) -> int:
        """The elements of local memory that the tile takes."""
        loops = (k for k in range(len(self.sizes)) if k not in self.split)
        levels = [*self.indices, *(level for k in loops for level in self._of(k, 1))]
        return 1 + sum((size - 1) * stride for size, stride in levels)

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
        all vectors: then it is that of each access.
        """
        digits = self.digits(p)
        if not stays(digits, p.width):
            return self._piece(digits, p), None
        offsets = tuple(place(digits, j) for j in range(p.width))
        at_once = p.tall
        if p.tall == 1 and offsets == tuple(range(p.width)):
            at_once = p.width
        moves = (self.first, *(stride for _, stride in digits[p.tall == 1 :]))
        if at_once > 1 and any(n % at_once for n in moves):
            together = gcd(at_once, *moves) if p.tall == 1 and not self.split else 1
            return together, None if together > 1 else offsets
        return at_once, offsets if at_once == p.tall else (0,)

    def _piece(self, digits: BankDigits, p: Pass) -> int:
        """How many elements of a vector lie together and aligned, wherever it begins."""
        if p.tall > 1 or digits[0][1] != 1:
            return 1
        together = gcd(p.width, digits[0][0], self.first, *(stride for _, stride in digits[1:]))
        return together & -together


def stays(digits: Iterable[tuple[int, object]], width: int) -> bool:
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


def dense(sizes: tuple[int, ...], first: Pass, splits: Splits = ()) -> BankLayout:
    """The layout without gaps, in the order of the ``first`` pass."""
    room = _Room(sizes, splits)
    return room.laid_out(room.order(first))


@lru_cache(maxsize=512)
def layout(
    sizes: tuple[int, ...], first: Pass, second: Pass, item: int, spare: int = 8,
    splits: Splits = (),
) -> BankLayout:  # fmt: skip
    """The layout in which elements of ``item`` bytes are stored and read in the fewest cycles.

    Neighbours of the ``first`` pass are neighbours there. Its vectors stay whole, unless gaps of
    single words save most turns of the banks. Gaps add one of ``spare`` parts to the tile at most.
    """
    room, unit = _Room(sizes, splits), max(first.width, second.tall)
    word = max(second.tall, BANK_BYTES // item)
    usual = [*room.with_gaps(first, second, unit), *room.with_gaps_inside(first, second, unit)]
    most = usual[0].extent * (spare + 1) // spare

    def cost(one: BankLayout) -> tuple[float, int]:
        accesses = sum(p.width // one.lanes(p)[0] for p in (first, second)) if any(splits) else 0
        return sum(bank_cycles(one, p, item) for p in (first, second)), accesses

    found = min((one for one in usual if one.extent <= most), key=cost)
    if word < unit:
        parting = (one for one in room.with_gaps(first, second, word) if one.extent <= most)
        parted = min(parting, key=cost)
        return parted if MUCH_SOONER * cost(parted)[0] <= cost(found)[0] else found
    return found


class _Room:
    """The loops of a tile, and after them the indices that both sides split differently."""

    def __init__(self, sizes: tuple[int, ...], splits: Splits) -> None:
        self.sizes, self.splits = sizes, splits or (None,) * len(sizes)
        reached: dict[tuple[int, str], int] = {}
        self.first: dict[int, int] = {}
        for size, split in zip(sizes, self.splits, strict=True):
            if split:
                key, first = (split.index, split.side), split.first * (split.side == "dst")
                reached[key] = reached.get(key, 1 + first) + (size - 1) * split.steps
                self.first[split.index] = split.first
        last = max((index for index, _ in reached), default=-1)
        self.indices = [max([n for (index, _), n in reached.items() if index == k], default=1)
                        for k in range(last + 1)]  # fmt: skip

    def order(self, p: Pass) -> list[int]:
        """The loops of a pass, the nearest first, and indices in place of the first along them."""
        splits = ((k, self.splits[k]) for k in p.order)
        return [*dict.fromkeys(len(self.sizes) + s.index if s else k for k, s in splits)]

    def orders(self, p: Pass) -> list[list[int]]:
        """The same, and the same with the indices after all loops."""
        order = self.order(p)
        late = sorted(order, key=lambda k: k >= len(self.sizes))
        return [order, late] if late != order else [order]

    def with_gaps(self, first: Pass, second: Pass, unit: int) -> Iterator[BankLayout]:
        """The layouts in each order, and the same with gaps before the loops of the second pass.

        Gaps of so many ``unit`` elements; or of one, where vectors of one side lie apart.
        """
        units = dict.fromkeys((unit, 1)) if self.indices else (unit,)
        for order in self.orders(first):
            yield self.laid_out(order)
            loops = [k for k in self.order(second) if k != order[0]]
            for each, k, gap in product(units, loops, GAPS):
                yield self.laid_out(order, k, gap * each)

    def with_gaps_inside(self, first: Pass, second: Pass, unit: int) -> Iterator[BankLayout]:
        """The layouts with gaps after each vector of the second pass."""
        near, every = second.order[0], second.width
        steps = 0 if near == first.order[0] or self.splits[near] else self.sizes[near]
        for gap in (gap * unit for gap in GAPS if steps % every == 0 and steps > every):
            room = self.laid_out(self.order(first), near, 0, gap * (steps // every))
            yield replace(room, loop=near, every=every, gap=gap)

    def laid_out(
        self, order: Sequence[int], apart: int | None = None, gap: int = 0, after: int = 0
    ) -> BankLayout:
        """Dense in an order of them, but for a ``gap`` before one and one ``after`` it."""
        sizes, reached = [*self.sizes, *self.indices], 1
        result = [0] * len(sizes)
        for k in order:
            if k == apart:
                reached += gap
            result[k] = reached
            reached *= sizes[k]
            if k == apart:
                reached += after
        count = len(self.sizes)
        pitch = (result[count + s.index] * s.steps if s else result[k]
                 for k, s in enumerate(self.splits))  # fmt: skip
        split = frozenset(k for k, s in enumerate(self.splits) if s)
        indices = tuple(zip(self.indices, result[count:], strict=True))
        first = sum(n * result[count + index] for index, n in self.first.items())
        return BankLayout(self.sizes, tuple(pitch), split=split, indices=indices, first=first)


def bank_cycles(one: BankLayout, p: Pass, item: int) -> float:
    """Cycles for each element in which the banks serve the first work-items of a pass."""
    at_once, offsets = one.lanes(p)
    digits, nbytes = one.digits(p), at_once * item
    together = min(IN_STEP, TURN_BYTES // max(nbytes, BANK_BYTES))
    count = 0
    for lane in range(len(offsets)) if offsets else range(0, p.width, at_once):
        for begin in range(0, IN_STEP, together):
            words: dict[int, set[int]] = {}
            for n in range(begin, begin + together):
                at = place(digits, n * p.width + (0 if offsets else lane))
                at = (at + (offsets[lane] if offsets else 0)) * item
                for word in range(at // BANK_BYTES, (at + nbytes - 1) // BANK_BYTES + 1):
                    words.setdefault(word % BANKS, set()).add(word)
            count += max(map(len, words.values()))
    return count / (IN_STEP * p.width * p.tall)
