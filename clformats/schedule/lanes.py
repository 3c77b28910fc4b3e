"""Which elements share a vector: the lanes of loads and stores, and channels between them."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from .network import Mix
from .problem import Problem

LANES_LOG2 = 4
"""16 lanes: what one AVX-512 register holds of f32, and the widest OpenCL vector."""


@dataclass(frozen=True, slots=True)
class Bit:
    """One bit of a position in the tile: it moves loop ``node`` by ``1 << place`` steps."""

    node: int
    place: int


@dataclass(frozen=True, slots=True)
class Comb:
    """A short loop, ``node``, that lies inside the lanes' loops on a side: channels, a batch.

    Its steps are registers. On a side that is ``joined``, the source, the destination or both,
    memory interleaves them, and the registers together are one contiguous run; ``mixes`` takes them
    from one order to the other. See `clformats.schedule.combs`.
    """

    node: int
    size: int
    joined: tuple[bool, bool]
    mixes: tuple[Mix, ...]

    @property
    def is_woven(self) -> bool:
        """Whether both sides interleave them."""
        return all(self.joined)

    def __str__(self) -> str:
        sides = [
            s for s, joined in zip(("source", "destination"), self.joined, strict=True) if joined
        ]
        return f"x{self.size} of loop {self.node} interleaved in the {' and the '.join(sides)}"


@dataclass(frozen=True, slots=True)
class Span:
    """The steps of a run, ``node``, that a tile covers; see `clformats.schedule.span`.

    It has ``repeats`` rounds of ``inner`` lines with ``count`` pieces each: piece j of line k of a
    round is step ``k + j * inner`` in it. Vectors have ``lanes`` steps.
    """

    node: int
    inner: int
    count: int
    repeats: int
    lanes: int

    @property
    def size(self) -> int:
        """Steps."""
        return self.inner * self.count * self.repeats

    @property
    def starts(self) -> tuple[int, ...]:
        """The first step of each vector."""
        return (*range(0, self.size - self.lanes, self.lanes), self.size - self.lanes)

    @property
    def lines(self) -> list[range]:
        """The steps that make each line."""
        rounds = range(0, self.size, self.inner * self.count)
        return [range(first + k, first + self.inner * self.count, self.inner)
                for first in rounds for k in range(self.inner)]  # fmt: skip

    def place(self, step: int) -> tuple[int, int]:
        """In which vector, and at which lane of it, a step is."""
        vector = min(step // self.lanes, len(self.starts) - 1)
        return vector, step - self.starts[vector]

    def __str__(self) -> str:
        return f"{self.size} of loop {self.node} in {len(self.starts)} vectors"


@dataclass(frozen=True, slots=True)
class Weave:
    """``count`` elements make a word, ``inner`` words a run of the source along loop ``node``.

    See `clformats.schedule.weave`.
    Element j of word k of the destination is element ``k + j * inner`` of the run.
    """

    node: int
    inner: int
    count: int

    def elements(self, word: int) -> list[tuple[int, int]]:
        """For each element of a word of the destination: the source's word, and the place in it."""
        return [divmod(word + j * self.inner, self.count) for j in range(self.count)]

    def __str__(self) -> str:
        return f"words of {self.count} steps woven from {self.inner}"


def lanes_of(
    p: Problem, most: int = LANES_LOG2, read: int = LANES_LOG2
) -> tuple[tuple[Bit, ...], tuple[Bit, ...]]:
    """The lanes of loads and of stores; empty where neither side has a run of 4 elements.

    ``most`` is log2 of the longest vector, ``read`` that of what a load takes of a run.
    """
    load, store = run_of(p, "src", min(read, most)), run_of(p, "dst", most)
    width = min(most, len({*load, *store}))
    return _filled(load, store, width), _filled(store, load, width)


def _filled(run: tuple[Bit, ...], other: tuple[Bit, ...], width: int) -> tuple[Bit, ...]:
    """``run`` with bits of the other side on top, those first that need not move any more."""
    lanes = list(run)
    while len(lanes) < width:
        here = [b for b in other[len(lanes) : len(lanes) + 1] if b not in lanes]
        lanes += here or [next(b for b in other if b not in lanes)]
    return tuple(lanes)


def run_of(p: Problem, side: str, limit: int) -> tuple[Bit, ...]:
    """The bits of one side's contiguous run, lowest first, ``limit`` at most; none if under 4."""
    nodes = p.nodes or ()
    strides = [getattr(n, side).value for n in nodes]
    bits: list[Bit] = []
    reached = 1
    while len(bits) < limit and reached in strides:
        k = strides.index(reached)
        size = nodes[k].size
        # A block of 24 gives tiles of 8; a free size of 24 gives 16 and an overlap.
        whole = (size.value & -size.value) if size.fixed else size.value
        take = min(whole.bit_length() - 1, limit - len(bits))
        bits += [Bit(k, j) for j in range(take)]
        if 1 << take != size.value:
            break
        reached *= size.value
    return tuple(bits) if len(bits) > 1 else ()


def lane_run(strides: Sequence[int], lanes: Sequence[Bit], step: int) -> int:
    """How many of the lowest lanes lie ``step`` apart, 0 or 1, by the strides of the nodes."""
    run = 1
    for bit in lanes:
        if strides[bit.node] << bit.place != run * step:
            break
        run *= 2
    return run


def steps_of(*parts: tuple[Sequence[Bit], int]) -> dict[int, int]:
    """How many steps of each node the bits of the numbers make."""
    steps: dict[int, int] = {}
    for bits, number in parts:
        for j, b in enumerate(bits):
            if number >> j & 1:
                steps[b.node] = steps.get(b.node, 0) + (1 << b.place)
    return steps
