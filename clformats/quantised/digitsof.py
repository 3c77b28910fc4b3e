"""From the places of indices along one dimension to digits."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray


def digits_of(places: NDArray[Any]) -> list[tuple[int, int, int]] | None:
    """Digits (step, size, stride), finest first, with which index i lies at ``places[i]``.

    ``places[0]`` is 0. None where there are no such digits. As few digits as possible.
    """
    found: list[tuple[int, int, int]] = []
    step, rest = 1, np.asarray(places, np.int64)
    while rest.size > 1:
        index = np.arange(rest.size)
        linear = rest == index * rest[1]
        run = rest.size if linear.all() else int((~linear).argmax())
        size = next((m for m in range(run, 1, -1) if _splits(rest, index, m)), 0)
        if not size:
            return None
        found.append((step, size, int(rest[1])))
        step, rest = step * size, rest[::size]
    return found


def _splits(places: NDArray[Any], index: NDArray[Any], size: int) -> bool:
    """Whether the place of an index is the sum of those of two digits, of ``size`` and the rest."""
    if size >= places.size:
        return True
    return bool((places == places[index % size] + places[index - index % size]).all())
