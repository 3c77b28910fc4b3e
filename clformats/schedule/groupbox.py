"""Boxes of work-groups: how much of each loop one takes, by what its runs are worth."""

from __future__ import annotations

from collections.abc import Sequence
from math import prod

from .boxes import ALL
from .problem import Node
from .traits import Traits

BOX_RUN_BYTES = 256
"""The run of a box on each side where the tensor is large. Copies whose runs of 64, 128, 256 and
512 bytes lie apart in the destination have 0.68, 0.94, 1 and 1 of the speed on an H100; in the
source 0.82, 0.97, 1 and 1."""
RUN_ELEMENTS = (32, 128)
"""The least and the most elements of a box, however wide they are."""
BOX_BYTES = 16384
"""A box in local memory, where there are enough of them. A work-item moves 64 bytes of it."""
SINGLE_BOX_BYTES = 8192
"""The same where elements are loaded one by one. On an H100 bfyx to fsv32 of u8 with odd sizes has
0.86 of a copy so and 0.77 with boxes twice as large; bfyx to byxf of f32 0.97 and 0.93."""
SMALL_RUN_BYTES, SMALL_RUN_ELEMENTS, SMALL_BOX_BYTES = 128, (32, 64), 4096
"""The same for tensors that would not fill the device so."""
SHORT_LOOP = 16
"""Channels of an image, taps of a 3x3 window: a loop of so few steps fills no run by itself."""
GROUPS_PER_UNIT = 4
"""Work-groups for each multiprocessor that are better than longer ones."""


def boxed(
    nodes: Sequence[Node], items: tuple[int, ...], size: tuple[int, int], traits: Traits
) -> GroupBox:
    """The box: as large as is good, if there are enough of them for the device, else smaller.

    ``size``: the bytes of an element on its way, and of a large box.
    """
    moving, most = size
    large = _box_of(nodes, items, BOX_RUN_BYTES, RUN_ELEMENTS, most // moving)
    enough = large.count() >= traits.compute_units * GROUPS_PER_UNIT
    if prod(large.sizes) * moving <= most and enough:
        return large
    least = SMALL_BOX_BYTES // max(items)
    return _box_of(nodes, items, SMALL_RUN_BYTES, SMALL_RUN_ELEMENTS, least)


def _box_of(
    nodes: Sequence[Node], items: tuple[int, ...], run: int, limits: tuple[int, int], goal: int
) -> GroupBox:
    box = GroupBox(nodes)
    least, most = limits
    runs = [min(most, max(least, run // item)) for item in items]
    if run == BOX_RUN_BYTES and runs[0] * runs[1] > goal:
        runs[0] = max(least, goal // runs[1])
    for side, wanted in zip(("src", "dst"), runs, strict=True):
        box.take(side, wanted)
    box.fill([*order_of(nodes, "src"), *order_of(nodes, "dst")], goal)
    return box


def wished(nodes: Sequence[Node], steps: Sequence[int], most: int) -> GroupBox | None:
    """The box with these steps of each loop, as near as they can be had, `ALL` of short loops.

    At most ``most`` elements. None where there are no such loops.
    """
    if len(steps) > len(nodes):
        return None
    box = GroupBox(nodes)
    for k, wanted in enumerate(steps):
        size = nodes[k].size
        if wanted == ALL and (size.fixed or size.value <= SHORT_LOOP):
            box.sizes[k] = size.value
            box.whole.add(k)
        else:
            highest = power_of_two(2 * size.value - 1)
            box.sizes[k] = min(power_of_two(wanted), highest) if wanted != ALL else highest
    for side in ("src", "dst"):
        near = order_of(nodes, side)[0]
        box.sizes[near] = max(2, box.sizes[near])
    while prod(box.sizes) > most:
        left = [k for k in range(len(nodes)) if k not in box.whole and box.sizes[k] > 2]
        if not left:
            return None
        box.sizes[max(left, key=lambda k: box.sizes[k])] //= 2
    return box


def order_of(nodes: Sequence[Node], side: str) -> tuple[int, ...]:
    """The loops of more than one step by their stride on a side; those that stand still last."""
    loops = [k for k, n in enumerate(nodes) if n.size.value > 1]
    strides = [getattr(n, side).value for n in nodes]
    return tuple(sorted(loops, key=lambda k: (strides[k] == 0, strides[k], -k)))


class GroupBox:
    """How much of each loop a work-group takes."""

    def __init__(self, nodes: Sequence[Node]) -> None:
        self.nodes = nodes
        self.sizes = [1] * len(nodes)
        self.whole: set[int] = set()

    def take(self, side: str, wanted: int) -> None:
        """A contiguous run of up to ``wanted`` elements on a side.

        A block is taken whole, and so is a short loop after which the run goes on; others are cut
        to a power of two, so that its size is no part of the structure.
        """
        strides = [getattr(n, side).value for n in self.nodes]
        reached = 1
        while reached < wanted and reached in strides:
            k = strides.index(reached)
            size = self.nodes[k].size
            goes_on = size.value <= SHORT_LOOP and reached * size.value in strides
            if size.value * reached <= wanted and (size.fixed or goes_on):
                self.sizes[k] = size.value
                self.whole.add(k)
                reached *= size.value
                continue
            if k not in self.whole:
                part = min(power_of_two(wanted // reached), power_of_two(2 * size.value - 1))
                self.sizes[k] = max(self.sizes[k], part)
            break

    def fill(self, order: Sequence[int], goal: int) -> None:
        """More of the loops, until there are ``goal`` elements."""
        for k in order:
            size = self.nodes[k].size.value
            while (
                k not in self.whole and 2 * prod(self.sizes) <= goal and 2 * self.sizes[k] <= size
            ):
                self.sizes[k] *= 2

    def count(self) -> int:
        """How many boxes there are."""
        return prod(-(-n.size.value // s) for n, s in zip(self.nodes, self.sizes, strict=True))

    def inside(self, order: Sequence[int]) -> tuple[int, ...]:
        """Those loops of ``order`` that the box has more than one step of."""
        return tuple(k for k in order if self.sizes[k] > 1)


def power_of_two(n: int) -> int:
    """The largest power of two that is not above ``n``."""
    return 1 << (n.bit_length() - 1)
