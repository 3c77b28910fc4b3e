"""The layouts of engines, and a reader of their notation that shares nothing with the library's."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

import numpy as np

TABLE = Path(__file__).parent / "data" / "engine_layouts.tsv"
LAYOUTS = [s.split("\t") for s in TABLE.read_text().splitlines() if not s.startswith("#")]
TOKEN = re.compile(r"([0-9]+)([a-z])(?:\(([0-9]+)\))?|([A-Za-z])")


def placed_by(said: str, letters: str, dims: tuple[int, ...]) -> tuple[list[int], Any]:
    """The sizes of the axes, and where elements lie, by a reader of its own of the notation."""
    index = dict(zip(letters, np.indices(dims), strict=True))
    extent = dict(zip(letters, dims, strict=True))
    parts = said.split("|")
    tokens = [(axis, m) for axis, part in enumerate(parts) for m in TOKEN.finditer(part)]
    total, nested = dict.fromkeys(letters, 1), dict.fromkeys(letters, 1)
    digits: list[tuple[int, str, int, int]] = []
    for axis, match in reversed(tokens):
        size, letter, step, head = match.groups()
        if not head:
            digits.append((axis, letter, int(size), int(step or nested[letter])))
            total[letter] *= int(size)
            nested[letter] *= 1 if step else int(size)
        else:
            digits.append((axis, head.lower(), 0, 0))
    axes, places = [1] * len(parts), [np.zeros(dims, int)] * len(parts)
    for axis, letter, block, unit in reversed(digits):
        step = unit or total[letter]
        count = block or -(-extent[letter] // step)
        places[axis] = places[axis] * count + index[letter] // step % count
        axes[axis] *= count
    linear = np.zeros(dims, int)
    for size, place in zip(axes, places, strict=True):
        linear = linear * size + place
    return axes, linear
