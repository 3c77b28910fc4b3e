"""The bytes of the argument ``nest`` of a schedule's kernel, and those that move nothing."""

from __future__ import annotations

import struct
from collections.abc import Sequence

from ..problems.thresholds import MOST_ELEMENTS, MOST_LOOPS
from .source import Launch

SHORT_NEST = "const Short given"
"""How a kernel declares a nest whose numbers have 4 bytes."""
IDLE_BYTES = 8 * MOST_ELEMENTS
"""What the tile of an `idle` kernel touches on each side at the most."""


def packed(numbers: Sequence[int], width: int) -> bytes:
    """The bytes of numbers of 4 or 8 bytes."""
    return struct.pack(f"<{len(numbers)}{'q' if width == 8 else 'i'}", *numbers)


def idle(launched: Launch) -> bytes:
    """A nest of one tile, whose vectors lie within the first `IDLE_BYTES` of both sides.

    For a dummy launch: it touches no user's memory, but makes the driver compile the kernel.
    """
    (nest,) = (a for a in launched.arguments if isinstance(a, bytes))
    width = 4 if SHORT_NEST in launched.source else 8
    numbers = [0] * (len(nest) // width)
    head, column = len(("loops", "spread", "lead", "src0", "dst0")), MOST_LOOPS + 1
    step, size, outer = head, head + column, head + 3 * column
    numbers[0] = numbers[step] = numbers[size] = 1  # one loop of one step
    numbers[outer] = -1
    return packed(numbers, width)
