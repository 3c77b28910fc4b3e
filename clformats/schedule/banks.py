"""How a box of elements lies in local memory so that work-items do not wait for each other there.

Local memory is made of 32 banks of 4 bytes on the GPUs of today (NVIDIA since Fermi, AMD since GCN;
published, not measured here): the word at byte ``a`` is in bank ``a / 4 % 32``. Work-items that run
in step and touch different words of one bank are served one after the other. A box that is stored
in the order in which it is read would be fetched, across that order, from few banks: a gap behind
each row turns the rows against each other. How long the gap should be depends on how many
work-items go along a row and how many across, so it is found by counting.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import lru_cache
from itertools import product

BANKS = 32
BANK_BYTES = 4
IN_STEP = 32
"""Work-items that access local memory together: NVIDIA's warp; AMD's 64 go in halves."""
GAPS = (1, 2, 4, 8)


@dataclass(frozen=True, slots=True)
class Pass:
    """One pass over a box: its loops in ``order``, nearest first, ``width`` elements at a time."""

    order: tuple[int, ...]
    width: int


@lru_cache(maxsize=512)
def pitches(box: tuple[int, ...], first: Pass, second: Pass, item: int) -> tuple[int, ...]:
    """How far apart the steps of each loop lie in local memory, in elements of ``item`` bytes.

    Neighbours of the ``first`` pass are neighbours there; the ``second`` asks for a gap somewhere.
    """
    loops = [k for k in second.order if k != first.order[0]]
    best, fewest = _pitches(box, first.order, None, 0), 0
    for loop, gap in [(None, 0), *product(loops, GAPS)]:
        pitch = _pitches(box, first.order, loop, gap)
        count = sum(turns(box, pitch, p, item) for p in (first, second))
        if not fewest or count < fewest:
            best, fewest = pitch, count
    return best


def _pitches(
    box: Sequence[int], order: Sequence[int], apart: int | None, gap: int
) -> tuple[int, ...]:
    result, reached = [0] * len(box), 1
    for k in order:
        if k == apart:
            reached += gap
        result[k] = reached
        reached *= box[k]
    return tuple(result)


def extent(box: Sequence[int], pitch: Sequence[int]) -> int:
    """The elements of local memory that a box takes."""
    return 1 + sum((n - 1) * p for n, p in zip(box, pitch, strict=True))


def turns(box: Sequence[int], pitch: Sequence[int], p: Pass, item: int) -> int:
    """In how many turns the first work-items of a pass are served, all its accesses together.

    Elements of more than a bank's bytes are fetched by as many fewer work-items at a time.
    """
    unit = max(item, BANK_BYTES)
    banks = BANKS * BANK_BYTES // unit
    count = 0
    for lane in range(p.width):
        words: dict[int, set[int]] = {}
        for n in range(IN_STEP * BANK_BYTES // unit):
            word = _place(box, pitch, p.order, n * p.width + lane) * item // unit
            words.setdefault(word % banks, set()).add(word)
        count += max(map(len, words.values()))
    return count


def _place(box: Sequence[int], pitch: Sequence[int], order: Sequence[int], element: int) -> int:
    place = 0
    for k in order:
        place += element % box[k] * pitch[k]
        element //= box[k]
    return place
