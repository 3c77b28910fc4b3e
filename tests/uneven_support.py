"""Random pairs of the grammar of blocks: of any size from 2 to 64, up to four, two in one."""

from __future__ import annotations

import random
from collections.abc import Iterator
from math import prod

import clformats as cf

LARGEST = 512
"""Blocks are added while they have fewer elements together."""


def tag(rng: random.Random, letters: str) -> str:
    """A tag with up to four blocks; no dimension has more than two."""
    wanted = rng.choice((0, 1, 1, 2, 2, 3, 4))
    blocks: list[tuple[int, str]] = []
    for letter in rng.choices(letters, k=4 * wanted):
        names = [name for _, name in blocks]
        if len(blocks) == wanted or prod(n for n, _ in blocks) >= LARGEST:
            break
        if names[-1:] != [letter] and names.count(letter) < 2:
            blocks.append((rng.randint(2, 64), letter))
    split = {letter for _, letter in blocks}
    outer = rng.sample(letters, len(letters))
    return "".join(x.upper() if x in split else x for x in outer) + "".join(
        f"{n}{letter}" for n, letter in blocks
    )


def uneven_pairs(
    seed: int, count: int, most: int = 1 << 40
) -> Iterator[tuple[cf.MemoryDesc, cf.MemoryDesc]]:
    """So many pairs, of at most so many bytes with all padding."""
    rng = random.Random(seed)  # noqa: S311  # formats, not secrets
    while count:
        letters = "abcd"[: rng.choice((1, 2, 3, 4))]
        dims = tuple(rng.choice((rng.randint(1, 300), 16, 48, 64, 100)) for _ in letters)
        if most < 1 << 40:
            dims = tuple(rng.randint(1, 40) for _ in letters)
        pair = (
            cf.MemoryDesc(dims, "f32", tag(rng, letters)),
            cf.MemoryDesc(dims, "f32", tag(rng, letters)),
        )
        if max(d.nbytes for d in pair) <= most:
            count -= 1
            yield pair
