"""Tiles whose sides are powers of two: the butterfly network.

The position of an element is a number of bits: the low ones say which *lane* of the vector, the
others which *register*. Where stores want the same bits in another order, one step exchanges a
register bit with a lane bit, for all pairs of registers that differ in the register bit, by two
shuffles of two inputs each. So a 16 x 16 transposition of 16-lane vectors takes 4 steps of 16
shuffles.

Bits are numbered by where loads have them: bits 0, 1, .. are those of the lane.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

Bits = tuple[int, ...]
Pattern = tuple[int | None, ...]


@dataclass(frozen=True, slots=True)
class ButterflyStep:
    """For each pair (a, b) of registers that differ in bit ``register``: a, b = low, high.

    ``low`` and ``high`` say for each lane of the new a and b where its value comes from: the lane
    number in a, or the number of lanes plus the lane number in b. ``register`` None: a permutation
    inside each register, by ``low`` only.
    """

    register: int | None
    low: Pattern
    high: Pattern


def bits_moved(places: Sequence[int]) -> Bits | None:
    """The bits of a permutation that only moves bits; None for any other.

    Bit ``k`` of a number comes to be bit ``bits[k]``.

    >>> bits_moved([0, 2, 1, 3]), bits_moved([0, 3, 2, 1])
    ((1, 0), None)
    """
    count = len(places)
    if count & (count - 1) or not count:
        return None
    powers = [places[1 << k] for k in range(count.bit_length() - 1)]
    if places[0] or any(n & (n - 1) or not n for n in powers) or len({*powers}) < len(powers):
        return None
    for number in range(count):
        rest = number & (number - 1)
        if places[number] != places[rest] | places[number ^ rest]:
            return None
    return tuple(n.bit_length() - 1 for n in powers)


def network(
    lanes: Bits, registers: Bits, wanted: Bits, near: int
) -> tuple[list[ButterflyStep], Bits]:
    """The steps that bring the bits ``wanted`` into the lanes, and the register bits afterwards.

    ``near`` is how many of the low lane bits stay inside 128 bits. A step that puts its bit at lane
    bit 0 and moves the others up is the one instruction that interleaves two registers (punpckl,
    punpckh), where an arbitrary one takes up to five for bytes and shorts: 20 GB/s against 72.
    """
    steps: list[ButterflyStep] = []
    settled = _settled(lanes, wanted, near)
    if settled != lanes and any(bit not in lanes for bit in wanted):
        steps.append(ButterflyStep(None, _sources(lanes, settled), ()))
        lanes = settled
    missing = sorted((bit for bit in wanted if bit not in lanes), key=wanted.index, reverse=True)
    rest = list(registers)
    for count, bit in enumerate(missing, 1):
        after, outward = _insert(bit, lanes, wanted, near)
        register = rest.index(bit)
        # The last step may bring all lanes in order: that costs nothing more.
        after = wanted if count == len(missing) else after
        low, high = (_sources(lanes, after, bit, {outward: side}) for side in (0, 1))
        steps.append(ButterflyStep(register, low, high))
        rest[register] = outward
        lanes = after
    if lanes != wanted:
        steps.append(ButterflyStep(None, _sources(lanes, wanted), ()))
    return steps, tuple(rest)


def _settled(lanes: Bits, wanted: Bits, near: int) -> Bits:
    """The lanes with the near bits that stay below those that leave: steps then move them up."""
    if all(bit in wanted for bit in lanes[:near]):
        return lanes
    stay = sorted((bit for bit in lanes[:near] if bit in wanted), key=wanted.index)
    return (*stay, *(bit for bit in lanes[:near] if bit not in wanted), *lanes[near:])


def _insert(bit: int, lanes: Bits, wanted: Bits, near: int) -> tuple[Bits, int]:
    """The lanes with ``bit`` among them, and the lane bit that leaves for it."""
    leaving = [k for k, lane in enumerate(lanes[:near]) if lane not in wanted]
    if wanted.index(bit) < near and leaving:
        return (bit, *(b for b in lanes if b != lanes[leaving[-1]])), lanes[leaving[-1]]
    here = wanted.index(bit)
    if lanes[here] in wanted:
        here = next(k for k, lane in enumerate(lanes) if lane not in wanted)
    return (*lanes[:here], bit, *lanes[here + 1 :]), lanes[here]


def _sources(
    before: Bits, after: Bits, inward: int | None = None, known: dict[int, int] | None = None
) -> Pattern:
    """For each lane of ``after`` the lane of ``before`` (second register: + number of lanes)."""
    count = 1 << len(after)
    result = []
    for lane in range(count):
        values = dict(known or {})
        values.update({bit: lane >> k & 1 for k, bit in enumerate(after)})
        source = sum(values[bit] << k for k, bit in enumerate(before))
        result.append(source + (count if inward is not None and values[inward] else 0))
    return tuple(result)


def transposed(
    loads: Sequence[Sequence[int]], stores: Sequence[Sequence[int]], near: int
) -> tuple[list[tuple[int, int, Pattern]], list[int]] | None:
    """(shuffles, value of each store) of vectors of equal lengths; None where bits do not do.

    Loads and stores may be in any order among themselves. Every element occurs once on each side.
    """
    lanes = len(loads[0])
    if lanes & (lanes - 1) or len(loads) != len(stores) or len(loads) > lanes:
        return None
    where = {e: (k, lane) for k, load in enumerate(loads) for lane, e in enumerate(load)}
    first = next((s for s in stores if where[s[0]][1] == 0), None)
    if first is None:
        return None
    order = [*dict.fromkeys(where[e][0] for e in first)]
    target = {e: k for k, store in enumerate(stores) for e in store}
    turn = [*dict.fromkeys(target[e] for e in loads[order[0]])]
    if len(order) < len(loads) or len(turn) < len(stores):
        return None
    number = {load: k for k, load in enumerate(order)}
    places = [number[where[e][0]] * lanes + where[e][1] for k in turn for e in stores[k]]
    bits = bits_moved(places)
    if bits is None:
        return None
    return _run(bits, order, turn, lanes.bit_length() - 1, near)


def _run(
    bits: Bits, order: Sequence[int], turn: Sequence[int], width: int, near: int
) -> tuple[list[tuple[int, int, Pattern]], list[int]]:
    """The network's shuffles; ``order`` and ``turn`` number its registers before and after."""
    registers = tuple(range(width, len(bits)))
    steps, after = network(tuple(range(width)), registers, bits[:width], near)
    values, shuffles = [*order], []

    def shuffle(a: int, b: int, pattern: Pattern) -> int:
        shuffles.append((a, b, pattern))
        return len(order) + len(shuffles) - 1

    for step in steps:
        if step.register is None:
            values = [shuffle(v, v, step.low) for v in values]
            continue
        bit = 1 << step.register
        for a in (k for k in range(len(values)) if not k & bit):
            pair = values[a], values[a | bit]
            values[a], values[a | bit] = shuffle(*pair, step.low), shuffle(*pair, step.high)
    outputs = [0] * len(turn)
    for k, value in enumerate(values):
        to = sum((k >> j & 1) << bits.index(bit) for j, bit in enumerate(after)) >> width
        outputs[turn[to]] = value
    return shuffles, outputs
