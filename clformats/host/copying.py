"""Numpy's assignments in pieces: on several threads, and with small arrays between.

Numpy lets other threads run while it copies, so pieces of a large tensor go at the speed of the
memory. What a conversion makes on the way stays in the caches, and takes little memory.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Iterable, Iterator
from concurrent.futures import ThreadPoolExecutor
from typing import Any

from numpy.typing import NDArray

Array = NDArray[Any]

PIECE = 1 << 21
"""The elements of a piece that is copied as it is."""
CONVERTED = 1 << 18
"""The same where conversions make arrays between, of 8 bytes for each element some three times."""
MOST_THREADS = 8
THREADS_FROM = 4 << 20
"""From how many bytes on threads pay."""


def move(
    pairs: Iterable[tuple[Array, Array]], converted: Callable[[Array], Array] | None = None
) -> None:
    """Write the second array of each pair, ``converted`` if need be, to the first.

    The pairs are taken in order, the pieces of one in any order. Of elements that have one place,
    a stride being 0, the last is written.
    """
    most = PIECE if converted is None else CONVERTED

    def write(piece: tuple[Array, Array]) -> None:
        to, source = piece
        to[...] = source if converted is None else converted(source)

    for pair in pairs:
        to, source = pair
        if 0 in to.strides:
            last = tuple(slice(None if step else -1, None) for step in to.strides)
            to, source = to[last], source[last]
        pieces = list(_pieces(to, source, most))
        workers = min(_processors(), MOST_THREADS) if to.nbytes >= THREADS_FROM else 1
        if workers == 1 or len(pieces) == 1:
            for piece in pieces:
                write(piece)
        else:
            with ThreadPoolExecutor(workers) as pool:
                for _ in pool.map(write, pieces):
                    pass


def _pieces(to: Array, source: Array, most: int) -> Iterator[tuple[Array, Array]]:
    """Parts of both, cut along the first axis that has a length, and so on in each."""
    if to.size <= most:
        yield to, source
        return
    axis = next(k for k, n in enumerate(to.shape) if n > 1)
    length = to.shape[axis]
    rows = max(1, most * length // to.size)
    for at in range(0, length, rows):
        part = (*(slice(None),) * axis, slice(at, at + rows))
        yield from _pieces(to[part], source[part], most)


def _processors() -> int:
    """How many of them this process may use."""
    affinity = getattr(os, "sched_getaffinity", None)
    return len(affinity(0)) if affinity else os.cpu_count() or 1
