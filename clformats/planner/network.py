"""Transposing a tile in registers: which shuffles turn one arrangement of bits into another.

A tile of 2**n elements lies in vectors. An element's position is n bits: the low ones say which
*lane* of the vector, the others which *register*. Loading gives one assignment of tile bits to
lanes and registers, storing wants another. One step swaps one register bit with one lane bit, for
all pairs of registers that differ in the register bit, by two shuffles of two inputs each. So a
16 x 16 transposition of 16-lane vectors takes 4 steps of 16 shuffles.

Bits are any hashable values; lanes and registers are tuples of them, least significant first.
"""

from __future__ import annotations

from collections.abc import Hashable, Sequence
from dataclasses import dataclass

Bits = tuple[Hashable, ...]


@dataclass(frozen=True, slots=True)
class Step:
    """For each pair (a, b) of registers that differ in bit ``register``: a, b = low, high.

    ``low`` and ``high`` say for each lane of the new a and b where its value comes from: the lane
    number in a, or the number of lanes plus the lane number in b. ``register`` None: a permutation
    inside each register, by ``low`` alone.
    """

    register: int | None
    low: tuple[int, ...]
    high: tuple[int, ...]


def network(lanes: Bits, registers: Bits, wanted: Bits) -> tuple[tuple[Step, ...], Bits]:
    """The steps that bring the bits ``wanted`` into the lanes, and the register bits afterwards."""
    steps: list[Step] = []
    missing = [bit for bit in wanted if bit not in lanes]
    regs = list(registers)
    for count, bit in enumerate(missing, 1):
        place = _place_for(bit, lanes, wanted)
        register = regs.index(bit)
        after = wanted if count == len(missing) else _put(lanes, place, bit)
        steps.append(_swap(lanes, after, register, bit, lanes[place]))
        regs[register] = lanes[place]
        lanes = after
    if lanes != wanted:
        steps.append(Step(None, _sources(lanes, wanted, {}), ()))
    return tuple(steps), tuple(regs)


def _place_for(bit: Hashable, lanes: Bits, wanted: Bits) -> int:
    """The lane bit to give away: where ``bit`` finally belongs, if that one is not needed."""
    here = wanted.index(bit)
    if lanes[here] not in wanted:
        return here
    return next(k for k, lane in enumerate(lanes) if lane not in wanted)


def _put(lanes: Bits, place: int, bit: Hashable) -> Bits:
    return (*lanes[:place], bit, *lanes[place + 1 :])


def _swap(before: Bits, after: Bits, register: int, inward: Hashable, outward: Hashable) -> Step:
    low = _sources(before, after, {outward: 0}, inward)
    high = _sources(before, after, {outward: 1}, inward)
    return Step(register, low, high)


def _sources(
    before: Bits, after: Bits, known: dict[Hashable, int], inward: Hashable = None
) -> tuple[int, ...]:
    """For each lane of ``after`` the lane of ``before`` (second register: + number of lanes)."""
    count = 1 << len(after)
    result = []
    for lane in range(count):
        values = dict(known)
        values.update({bit: lane >> k & 1 for k, bit in enumerate(after)})
        source = sum(values[bit] << k for k, bit in enumerate(before))
        result.append(source + (count if inward is not None and values[inward] else 0))
    return tuple(result)


def apply(steps: Sequence[Step], registers: list[list[int]]) -> list[list[int]]:
    """Run the steps on lists; what the kernel does, for tests and for looking at it."""
    regs = [list(r) for r in registers]
    for step in steps:
        if step.register is None:
            regs = [[r[k] for k in step.low] for r in regs]
            continue
        for a in range(len(regs)):
            b = a | 1 << step.register
            if a != b:
                both = regs[a] + regs[b]
                regs[a], regs[b] = [both[k] for k in step.low], [both[k] for k in step.high]
    return regs
