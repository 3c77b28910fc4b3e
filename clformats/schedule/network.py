"""Transposing a tile in registers: which shuffles turn one arrangement of bits into another.

A tile of 2**n elements lies in vectors. An element's position is n bits: the low ones say which
*lane* of the vector, the others which *register*. Loading gives one assignment of tile bits to
lanes and registers, storing wants another. One step swaps one register bit with one lane bit, for
all pairs of registers that differ in the register bit, by two shuffles of two inputs each. So a
16 x 16 transposition of 16-lane vectors takes 4 steps of 16 shuffles.

Bits are any hashable values; lanes and registers are tuples of them, least significant first.
"""

from __future__ import annotations

from collections.abc import Hashable, Iterator, Sequence
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


Mix = tuple[tuple[int, ...], ...]
"""How one register is put together from all: its lanes are taken from registers 0 and 1 by the
first pattern, from the result and register 2 by the next, and so on."""


def deinterleave(count: int, lanes: int) -> tuple[Mix, ...]:
    """From ``count`` registers that hold a0 b0 .. a1 b1 .. to one each of a, b, .."""
    return tuple(
        _mix([lane * count + c for lane in range(lanes)], count, lanes) for c in range(count)
    )


def interleave(count: int, lanes: int) -> tuple[Mix, ...]:
    """The other way round."""
    places = [[r * lanes + lane for lane in range(lanes)] for r in range(count)]
    return tuple(
        _mix([e % count * lanes + e // count for e in places[r]], count, lanes)
        for r in range(count)
    )


def _mix(elements: Sequence[int], count: int, lanes: int) -> Mix:
    """The patterns that gather ``elements`` of the registers' joint numbering."""
    first = tuple(e if e < 2 * lanes else 0 for e in elements)
    later = (
        tuple(e - (r - 1) * lanes if e // lanes == r else lane for lane, e in enumerate(elements))
        for r in range(2, count)
    )
    return (first, *later)


def network(
    lanes: Bits, registers: Bits, wanted: Bits, near: int = 0
) -> tuple[tuple[Step, ...], Bits]:
    """The steps that bring the bits ``wanted`` into the lanes, and the register bits afterwards.

    ``near`` is how many of the low lane bits stay inside 128 bits. A step that puts its bit at lane
    bit 0 and moves the others up is the one instruction that interleaves two registers (punpckl,
    punpckh), where an arbitrary one takes up to five for bytes and shorts: 20 GB/s against 72.
    """
    steps: list[Step] = []
    settled = _settled(lanes, wanted, near)
    if settled != lanes and any(bit not in lanes for bit in wanted):
        steps.append(Step(None, _sources(lanes, settled, {}), ()))
        lanes = settled
    missing = sorted((bit for bit in wanted if bit not in lanes), key=wanted.index, reverse=True)
    regs = list(registers)
    for count, bit in enumerate(missing, 1):
        after, outward = _insert(bit, lanes, wanted, near)
        register = regs.index(bit)
        after = wanted if count == len(missing) else after
        steps.append(_swap(lanes, after, register, bit, outward))
        regs[register] = outward
        lanes = after
    if lanes != wanted:
        steps.append(Step(None, _sources(lanes, wanted, {}), ()))
    return tuple(steps), tuple(regs)


def _settled(lanes: Bits, wanted: Bits, near: int) -> Bits:
    """The lanes with the near bits that stay below those that leave: steps then move them up."""
    if all(bit in wanted for bit in lanes[:near]):
        return lanes
    stay = sorted((bit for bit in lanes[:near] if bit in wanted), key=wanted.index)
    return (*stay, *(bit for bit in lanes[:near] if bit not in wanted), *lanes[near:])


def _insert(bit: Hashable, lanes: Bits, wanted: Bits, near: int) -> tuple[Bits, Hashable]:
    """The lanes with ``bit`` among them, and the lane bit that leaves for it."""
    leaving = [k for k in range(near) if k < len(lanes) and lanes[k] not in wanted]
    if wanted.index(bit) < near and leaving:
        rest = (*lanes[: leaving[-1]], *lanes[leaving[-1] + 1 :])
        return (bit, *rest), lanes[leaving[-1]]
    place = _place_for(bit, lanes, wanted)
    return (*lanes[:place], bit, *lanes[place + 1 :]), lanes[place]


def _place_for(bit: Hashable, lanes: Bits, wanted: Bits) -> int:
    """The lane bit to give away: where ``bit`` finally belongs, if that one is not needed."""
    here = wanted.index(bit)
    if lanes[here] not in wanted:
        return here
    return next(k for k, lane in enumerate(lanes) if lane not in wanted)


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


def in_turn(
    steps: Sequence[Step],
    registers: Sequence[int],
    lines: Sequence[Sequence[int]],
    *,
    at_once: bool = False,
) -> Iterator[tuple[str, tuple[int, ...]]]:
    """What to do in which order, so that each line is stored as soon as its registers are ready.

    ``("load", (register,))``; ``("step", (number, *registers))`` for one pair, or for one register
    by itself; ``("line", (number,))``. ``at_once``: all steps come before the first line. Lines may
    need other registers too, which are ready.
    """
    for register in registers:
        yield "load", (register,)
    reached = dict.fromkeys(registers, 0)

    def bring(register: int, wanted: int) -> Iterator[tuple[str, tuple[int, ...]]]:
        if reached.get(register, wanted) >= wanted:
            return
        bit = steps[wanted - 1].register
        pair = (register,) if bit is None else (register & ~(1 << bit), register | 1 << bit)
        for one in pair:
            yield from bring(one, wanted - 1)
            reached[one] = wanted
        yield "step", (wanted - 1, *pair)

    if at_once or not lines:
        for wanted in range(1, len(steps) + 1):
            for register in registers:
                yield from bring(register, wanted)
    for number, needed in enumerate(lines):
        for register in needed:
            yield from bring(register, len(steps))
        yield "line", (number,)


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
