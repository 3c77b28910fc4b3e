"""Tiles of as many vectors and lanes as powers of two: the butterfly network.

The position of an element is a number of bits: the low ones say which *lane* of the vector, the
others which *register*. Where stores want the same bits in another order, one step exchanges a
register bit with a lane bit, for all pairs of registers that differ in the register bit, by two
shuffles of two inputs each. So a 16 x 16 transposition of 16-lane vectors takes 4 steps of 16
shuffles. Of 9 x 16 elements, as 3 x 3 weights have, the 7 stores that are not wanted fall away,
with the shuffles that only they need: 47 are left.

Bits are numbered by where loads have them: bits 0, 1, .. are those of the lane.
"""

from __future__ import annotations

from collections.abc import Sequence
from itertools import count as counted

from .assembly import Made

Bits = tuple[int, ...]
Pattern = tuple[int | None, ...]
Vectors = list[Sequence[int]]


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


class _Network:
    """The ``values`` of the registers, the bits that the lanes and the registers stand for.

    ``near`` is how many of the low lane bits stay inside 128 bits. A step that puts its bit at lane
    bit 0 and moves the others up is the one instruction that interleaves two registers (punpckl,
    punpckh), where an arbitrary one takes up to five for bytes and shorts: 20 GB/s against 72.
    """

    def __init__(self, values: Sequence[int], width: int, near: int) -> None:
        self.values, self.loads, self.near = [*values], len(values), near
        self.lanes: Bits = tuple(range(width))
        self.registers = [*range(width, width + (self.loads - 1).bit_length())]
        self.shuffles: list[tuple[int, int, Pattern]] = []

    def bring(self, wanted: Bits) -> None:
        """Bring these bits into the lanes."""
        missing = sorted((b for b in wanted if b not in self.lanes), key=wanted.index, reverse=True)
        if missing:
            self._turn(_settled(self.lanes, wanted, self.near))
        for count, bit in enumerate(missing, 1):
            after, outward = _insert(bit, self.lanes, wanted, self.near)
            # The last step may bring all lanes in order: that costs nothing more.
            self._exchange(bit, outward, wanted if count == len(missing) else after)
        self._turn(wanted)

    def _turn(self, after: Bits) -> None:
        """Permute the lanes inside each register."""
        if after != self.lanes:
            pattern = _sources(self.lanes, after)
            self.values = [self._shuffle(v, v, pattern) for v in self.values]
            self.lanes = after

    def _exchange(self, bit: int, outward: int, after: Bits) -> None:
        """Exchange a bit of registers with one of the lanes, for each pair that differs in it."""
        register = self.registers.index(bit)
        low, high = (_sources(self.lanes, after, bit, {outward: side}) for side in (0, 1))
        for a in (k for k in range(len(self.values)) if not k >> register & 1):
            b = a | 1 << register
            pair = self.values[a], self.values[b]
            self.values[a], self.values[b] = self._shuffle(*pair, low), self._shuffle(*pair, high)
        self.registers[register], self.lanes = outward, after

    def _shuffle(self, a: int, b: int, pattern: Pattern) -> int:
        self.shuffles.append((a, b, pattern))
        return self.loads + len(self.shuffles) - 1


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


def completed(
    loads: Sequence[Sequence[int]], stores: Sequence[Sequence[int]]
) -> tuple[Vectors, Vectors] | None:
    """The loads with an element in each lane, and the stores with more for what these do not want.

    A lane that nothing wants is a negative number in ``loads``. Count places in the order in which
    the first store meets the loads: each store then has one pattern of places, XOR where it begins;
    so have those that are added. None where a store differs in this or lacks an element, where the
    first one does not meet every load, and for numbers of loads or lanes that are no powers of two.

    None, too, where fewer than half of the lanes are wanted: then what is routed has as few
    shuffles, and a network took 0.8 to 1.4 of its time.

    >>> completed([(0, 1), (2, -1)], [(0, 2)])
    ([[0, 1], [2, 3]], [(0, 2), [1, 3]])
    """
    if 2 * len(stores) < len(loads):
        return None
    lanes, fresh = len(loads[0]), counted(max(e for v in loads for e in v) + 1)
    whole: Vectors = [[e if e >= 0 else next(fresh) for e in load] for load in loads]
    where = {e: (k, lane) for k, load in enumerate(whole) for lane, e in enumerate(load)}
    if any(e not in where for store in stores for e in store):
        return None
    order = [*dict.fromkeys(where[e][0] for e in stores[0])]
    number = {load: k * lanes for k, load in enumerate(order)}
    if len(order) < len(loads) or len(loads) & (len(loads) - 1) or lanes & (lanes - 1):
        return None
    at = {number[k] | lane: e for e, (k, lane) in where.items()}
    place = {e: p for p, e in at.items()}
    apart = [place[e] ^ place[stores[0][0]] for e in stores[0]]
    if any([place[e] ^ place[store[0]] for e in store] != apart for store in stores):
        return None
    found: Vectors = [*stores]
    left = {*at} - {place[e] for store in stores for e in store}
    while left:
        more = [min(left) ^ n for n in apart]
        if not left.issuperset(more):
            return None
        found.append([at[p] for p in more])
        left -= {*more}
    return whole, found


def needed(network: Made, loads: int, stores: int) -> Made:
    """The network without the shuffles that none of the first ``stores`` needs.

    >>> needed(([(0, 1, (0, 2)), (0, 1, (1, 3))], [2, 3]), 2, 1)
    ([(0, 1, (0, 2))], [2])
    """
    shuffles, outputs = network[0], network[1][:stores]
    wanted = {*outputs}
    for k, (a, b, _) in reversed([*enumerate(shuffles, loads)]):
        wanted |= {a, b} if k in wanted else set()
    kept = [k for k in range(loads + len(shuffles)) if k < loads or k in wanted]
    name = {k: n for n, k in enumerate(kept)}
    made = [shuffles[k - loads] for k in kept[loads:]]
    return [(name[a], name[b], p) for a, b, p in made], [name[k] for k in outputs]


def transposed(
    loads: Sequence[Sequence[int]], stores: Sequence[Sequence[int]], near: int
) -> Made | None:
    """The network of vectors of equal lengths; None where bits do not do.

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
    width = lanes.bit_length() - 1
    network = _Network(order, width, near)
    network.bring(bits[:width])
    outputs = [0] * len(turn)
    for k, value in enumerate(network.values):
        to = sum((k >> j & 1) << bits.index(b) for j, b in enumerate(network.registers)) >> width
        outputs[turn[to]] = value
    return network.shuffles, outputs
