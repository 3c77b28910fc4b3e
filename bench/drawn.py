"""Cases drawn at random: the formats, types, channels and windows that networks use.

The fixed cases are what networks have most, and what schedules were made for. Drawn ones say how
far that carries: `python -m bench --random 60`, and the same of `python -m bench gpu`.
"""

from __future__ import annotations

import random
from collections.abc import Callable

import clformats as cf

from .cases import DRAWN, MB, Case

SEED = 9292
TYPES = ("f32", "f16", "bf16", "s8", "u8")
SAME_TYPE = 0.6
"""The share of cases whose elements are only moved."""
SIZES = (18 * MB, 60 * MB)
"""Bytes that a case reads and writes, about, and without padding: weights may have fewer."""

CHANNELS = (3, 17, 64, 192, 1000, 48, 100, 256, 512)
SIDES = (7, 14, 28, 56, 55, 57, 112, 224)
WINDOWS = (1, 3, 3, 3, 5, 7)
OUTPUTS = (64, 96, 128, 256, 512, 720, 768, 1000, 1024, 2048)
MOST_INPUTS = 4096

Dims = tuple[int, ...]


def drawn(count: int, seed: int = SEED) -> list[Case]:
    """So many cases, always the same of a seed.

    >>> print(*(case.src for case in drawn(2)), drawn(1)[0].dims)
    s8:hwio bf16:bfyx (720, 2243, 3, 3)
    """
    rng, found = random.Random(seed), list[Case]()  # noqa: S311  # cases, not secrets
    while len(found) < count:
        if case := _case(rng, f"{seed}-{len(found)}"):
            found.append(case)
    return found


def _case(rng: random.Random, name: str) -> Case | None:
    """A case; None where what was drawn is far from the size that was drawn."""
    share = rng.random()
    src = rng.choice(TYPES)
    dst = src if rng.random() < SAME_TYPE else rng.choice(TYPES)
    count = rng.uniform(*SIZES) / sum(cf.MemoryDesc((1,), t).dtype.nbytes for t in (src, dst))
    dims_of, formats = next((dims, names) for limit, dims, names in KINDS if share < limit)
    dims = dims_of(rng, count)
    if not dims:
        return None
    one, other = rng.sample(formats, 2)
    return Case(name, DRAWN, dims, f"{src}:{one}", f"{dst}:{other}")


def _activations(rng: random.Random, count: float) -> Dims | None:
    """Batch, channels, rows and columns."""
    channels, side = rng.choice(CHANNELS), rng.choice(SIDES)
    image = channels * side * side
    batch = max(1, round(count / image))
    return None if batch * image > 2 * count else (batch, channels, side, side)


def _weights(rng: random.Random, count: float) -> Dims | None:
    """Outputs, inputs and a window; half of them with inputs by 16."""
    window, outputs = rng.choice(WINDOWS), rng.choice(OUTPUTS)
    row = outputs * window * window
    inputs = min(MOST_INPUTS, max(1, round(count / row)))
    if inputs * row < count / 3:
        return None
    if rng.random() < 0.5:
        inputs = max(16, inputs // 16 * 16)
    return outputs, inputs, window, window


def _depthwise(rng: random.Random, count: float) -> Dims:
    """Groups of one channel and a window."""
    window = rng.choice((3, 5))
    return round(count / (window * window)), 1, 1, window, window


KINDS: tuple[tuple[float, Callable[[random.Random, float], Dims | None], tuple[str, ...]], ...] = (
    (0.55, _activations, (
        "bfyx", "byxf", "yxfb", "b_fs_yx_fsv16", "b_fs_yx_fsv32", "b_fs_yx_fsv4",
        "bs_fs_yx_bsv16_fsv16", "fs_b_yx_fsv32", "nChw8c", "nChw16c",
    )),
    (0.93, _weights, (
        "oiyx", "hwio", "yxio", "ioyx", "oyxi", "OIhw16i16o", "OIhw16o16i", "OIhw8i8o",
        "os_is_yx_osv16_isv4", "OIhw4i16o4i", "os_is_yx_isv16_osv16", "OIhw8o8i",
    )),
    (1.0, _depthwise, ("goiyx", "gs_oiyx_gsv16", "gs_oiyx_gsv32", "gyxio")),
)  # fmt: skip
"""What is drawn: up to which share, sizes, and formats."""
