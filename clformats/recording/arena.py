"""One arena for buffers that are not all alive at the same time: what lies where.

A piece is alive from the first step that uses it to the last. Offsets are found first fit, the
largest pieces first, in three orders of which the best is kept; where that leaves gaps, at random
too.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from random import Random

ALIGNMENT = 64
MOST_ORDERS = 100
ORDERED = 1_000_000
"""The product of tries and pairs of pieces, where pieces are placed at random."""


@dataclass(slots=True)
class Piece:
    """A piece of the arena: its bytes, the steps between which it is alive, and where it is."""

    nbytes: int
    first: int
    last: int
    offset: int = -1


def lower_bound(pieces: Iterable[Piece], alignment: int = ALIGNMENT) -> int:
    """The most bytes that are alive at one step, each piece rounded up to the alignment."""
    alive: dict[int, int] = {}
    for b in pieces:
        for step in range(b.first, b.last + 1):
            alive[step] = alive.get(step, 0) + rounded(b.nbytes, alignment)
    return max(alive.values(), default=0)


def rounded(nbytes: int, alignment: int = ALIGNMENT) -> int:
    """Up to the alignment."""
    return -(-nbytes // alignment) * alignment


def placed(pieces: Sequence[Piece], alignment: int = ALIGNMENT) -> int:
    """Give each piece an offset, a multiple of ``alignment``; the bytes of the arena."""
    orders: list[Callable[[Piece], tuple[float, ...]]] = [
        lambda b: (-b.nbytes, b.first),
        lambda b: (-b.nbytes * (b.last - b.first + 1), b.first),
        lambda b: (b.first, -b.nbytes),
    ]
    best: tuple[int, list[int]] = (-1, [0] * len(pieces))
    least = lower_bound(pieces, alignment)
    for order in (*orders, *_at_random(pieces)):
        size = _first_fit(sorted(pieces, key=order), alignment)
        if size < best[0] or best[0] < 0:
            best = size, [b.offset for b in pieces]
        if size == least:
            break
    for b, offset in zip(pieces, best[1], strict=True):
        b.offset = offset
    return best[0]


def _at_random(pieces: Sequence[Piece]) -> Iterator[Callable[[Piece], tuple[float, ...]]]:
    """More orders by size, each piece up to four times as large: as many as take little time."""
    draw = Random(0)  # noqa: S311  # no secret
    for _ in range(min(MOST_ORDERS, ORDERED // max(1, len(pieces) ** 2))):
        weights = {id(b): -b.nbytes * 4 ** draw.random() for b in pieces}
        yield lambda b, weights=weights: (weights[id(b)],)  # type: ignore[misc]


def _first_fit(pieces: Sequence[Piece], alignment: int) -> int:
    done: list[Piece] = []
    for piece in pieces:
        at = 0
        for other in sorted(done, key=lambda b: b.offset):
            apart = other.last < piece.first or piece.last < other.first
            if apart or other.offset + rounded(other.nbytes, alignment) <= at:
                continue
            if other.offset >= at + rounded(piece.nbytes, alignment):
                break
            at = other.offset + rounded(other.nbytes, alignment)
        piece.offset = at
        done.append(piece)
    return max((b.offset + rounded(b.nbytes, alignment) for b in pieces), default=0)
