"""Random lists of digits: any order and steps, fused, flipped, rounded up, with tails and bars."""

from __future__ import annotations

import random
from itertools import pairwise
from math import prod

import clformats as cf
from clformats.formats import Digit, Layout
from clformats.formats.digits import Tail

SIZES = (1, 2, 3, 4, 5, 6, 7, 8, 9, 11, 13, 15, 16, 17)
LIMIT = 3000
"""The most elements of a random tensor, padding not counted."""


def random_layout(rng: random.Random) -> Layout:
    """A list of digits over 1 to 6 dims; one of ten has a tail."""
    ndims = rng.randint(1, 6)
    digits = [d for index in _indices(rng, ndims) for d in _chain(rng, index)]
    if rng.random() < 0.7:
        rng.shuffle(digits)
    align = tuple(rng.choice((1, 1, 1, 2, 3, 8)) for _ in range(ndims))
    align = align if rng.random() < 0.2 else (1,) * ndims
    tail = _tail(rng, ndims, digits) if rng.random() < 0.3 else None
    return Layout(ndims, tuple(digits), align, tail)


def _indices(rng: random.Random, ndims: int) -> list[tuple[int, ...]]:
    order = list(range(ndims))
    rng.shuffle(order)
    indices: list[tuple[int, ...]] = []
    while order:
        count = rng.choice((1, 1, 1, 1, 2, 3)) if len(order) > 1 else 1
        indices.append(tuple(order[:count]))
        order = order[count:]
    return indices


def _chain(rng: random.Random, index: tuple[int, ...]) -> list[Digit]:
    """The digits of an index, the open one first."""
    flip = len(index) == 1 and rng.random() < 0.15
    dim = index if len(index) > 1 else index[0]
    step = 1
    blocks: list[Digit] = []
    for _ in range(rng.choice((0, 0, 1, 1, 2, 3))):
        size = rng.choice((2, 2, 3, 4, 4, 8))
        blocks.insert(0, Digit(dim, size, step, flip))
        step *= size
    return [Digit(dim, None, step, flip), *blocks]


def _tail(rng: random.Random, ndims: int, digits: list[Digit]) -> Tail | None:
    """The digits inside of the innermost open one in another order, behind whole pages of a dim."""
    page = max(k for k, d in enumerate(digits) if d.size is None)
    outside, inside = digits[: page + 1], digits[page + 1 :]
    steps = {
        dim: min((d.step for d in outside[:-1] if d.index == ((dim,), False)), default=0)
        for dim in range(ndims)
    }
    page_of = {dim: [d.step for d in digits[page:] if dim in d.dims] for dim in steps}
    able = [dim for dim, step in steps.items() if step and all(n < step for n in page_of[dim])]
    if not able or len(inside) < 2:
        return None
    rng.shuffle(inside)
    dim = rng.choice(able)
    size = steps[dim] * rng.choice((1, 2)) if steps[dim] > 1 else 2
    return Tail(dim, size, (*outside, *inside))


def random_bars(rng: random.Random, layout: Layout) -> tuple[int, ...] | None:
    """Where bars may stand in a list: the digits of each axis; None where it fits no pixel."""
    count = len(layout.digits)
    ends = [
        k for k in range(count + 1)
        if prod(d.size or 1 for d in layout.digits[k:]) in (1, 2, 4)
        and all(d.size for d in layout.digits[k:])
    ]  # fmt: skip
    if layout.tail or not ends:
        return None
    last = rng.choice(ends)
    cuts = sorted(rng.randint(0, last) for _ in range(rng.randint(0, 2)))
    edges = [0, *cuts, last, count]
    return tuple(b - a for a, b in pairwise(edges))


def random_format(rng: random.Random) -> cf.Format:
    """A buffer of any digits, or, one time of three, an image of them."""
    layout = random_layout(rng)
    while prod(layout.padded([1] * layout.ndims)) > 20_000:  # of padding for one element
        layout = random_layout(rng)
    image = random_bars(rng, layout) if rng.random() < 0.4 else None
    return cf.Format.from_layout(layout, image)


def random_desc(rng: random.Random, fmt: cf.Format, dtype: str = "s32") -> cf.MemoryDesc:
    """Sizes for a format; sometimes padding, strides beside it, or an offset."""
    dims = [rng.choice(SIZES) for _ in range(fmt.ndims)]
    while prod(dims) > LIMIT:
        dims[dims.index(max(dims))] = rng.choice((1, 2, 3))
    fused = any(len(d.dims) > 1 or d.flip for d in fmt.digits)
    whole = not (fused or fmt.structure.tail or fmt.image)
    pads = None
    if whole and rng.random() < 0.3:
        pads = [(rng.randint(0, 2), rng.randint(0, 2)) for _ in dims]
    desc = cf.MemoryDesc(dims, dtype, fmt, padding=pads)
    if not (fmt.image or fmt.structure.tail) and rng.random() < 0.4:
        desc = _strided(rng, desc)
    if fmt.image and rng.random() < 0.4:
        desc = _pitched(rng, desc)
    if rng.random() < 0.2:
        desc = cf.MemoryDesc.parse(f"{desc}:offset={rng.randint(1, 99)}")
    return desc


def _strided(rng: random.Random, desc: cf.MemoryDesc) -> cf.MemoryDesc:
    """The same digits with gaps between them; some that are 1 long repeat."""
    strides = [0] * desc.ndims
    room = 1
    for p in reversed(desc.placed):
        if p.digit.size is None:
            room += rng.choice((0, 0, 1, 3))
            strides = [room if d in p.digit.dims else n for d, n in enumerate(strides)]
        room *= max(p.size, 1)
    return cf.MemoryDesc(desc.dims, desc.dtype, desc.format, strides=strides, padding=desc.padding)


def _pitched(rng: random.Random, desc: cf.MemoryDesc) -> cf.MemoryDesc:
    """The same image with rows further apart, by whole pixels."""
    width, channels = (desc.image_shape or ())[-2:]
    rows, row = sum((desc.format.image or ())[:-2]), width * channels
    pitch = row + channels * rng.choice((0, 1, 3))
    strides = [p.stride // row * pitch if k < rows else p.stride for k, p in enumerate(desc.placed)]
    if len(strides) == desc.ndims and desc.format.structure.is_tag:  # then one for each dimension
        by_dim = {p.digit.dims[0]: n for p, n in zip(desc.placed, strides, strict=True)}
        strides = [by_dim[d] for d in range(desc.ndims)]
    return cf.MemoryDesc.parse(f"{desc}:strides={'x'.join(map(str, strides))}")
