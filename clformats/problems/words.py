"""Elements moved several at a time, as words: what stays together, what changes places inside.

Where values are only moved, an element is a number of binary *digits*, the steps of its loops. The
lowest of them on a side say where it lies in a word. Digits that are so on both sides stay in the
word. Of the others, each of the source's trades places with one of the destination's: two words
that differ in this digit *exchange* the halves, quarters, .. whose first element lies an odd number
of times ``distance`` bits after the word's beginning. With the loops a and b, ``|`` between words,
and a distance of one element::

    source        a0b0 a1b0 | a0b1 a1b1        a is contiguous in the source
    destination   a0b0 a0b1 | a1b0 a1b1        b is contiguous in the destination

So both loops lose this digit, and a loop over the two words is added, which moves by b's stride in
the source and by a's in the destination. For 4-bit elements in words of 32 bits there are three of
them. Digits of a word that lie in another order afterwards are *swapped* inside it. Elements of
whole bytes, which shuffles move, become words where nothing trades places, and where schedules ask
for it: vectors of OpenCL have 16 elements, which are 16 bytes, or words of 64 bytes.

Where values change, or the other side has bytes, only one side has words: they are taken apart
after shuffles have moved them, or put together before. Then the digits of a word are loops in which
this side stays where it is, and the shuffles of one turn serve all of them.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import replace
from functools import partial
from math import gcd

from ..tensors import nibbles
from ..tensors.dtypes import DType, as_dtype
from . import splits, thresholds
from .problem import Node, Number, Problem, fixed
from .refine import fuse, join, normalise
from .splits import by_sides
from .thresholds import LEAST_APART, LINE_BYTES

Digit = tuple[int, int]
"""A loop's number, and which of its binary digits."""
WORDS = (4, 2, 1)
"""Bytes of words, the widest first: it has most elements in a vector."""


def words_of(nbytes: int) -> DType:
    """A type for words of 1, 2 or 4 bytes whose bits are only moved."""
    return as_dtype({1: "u8", 2: "f16", 4: "f32"}[nbytes])


def in_words(p: Problem, begin_bytes: int, *, trades: bool = True, cuts: bool = False) -> Problem:
    """The problem in words where elements are only moved, several together; else itself.

    Words are no longer than ``begin_bytes``, at multiples of which memory begins. ``trades``:
    whether elements may change places in them; ``cuts``: whether some of a word may be padding.
    """
    src, dst = p.dtypes
    loops = not (p.why or p.tables)
    if src != dst or p.computation or not loops or (8 % src.bits and src.is_packed):
        return p
    return _widest(p, src.bits, begin_bytes, partial(_in_words, trades=trades, cuts=cuts))


def is_run(p: Problem) -> bool:
    """Whether one run of bytes is moved as it is, and nothing else."""
    moves = p.src.dtype == p.dst.dtype and not (p.why or p.computation or p.tables)
    alike = len(p.nodes) <= 1 and all(n.src.value == n.dst.value == 1 for n in p.nodes)
    return moves and alike and not p.guards


def on_groups(p: Problem, begin_bytes: int = WORDS[0], *, local: bool) -> Problem:
    """The problem as GPUs move it: in words, which trade elements on their way to local memory.

    Blocks that do not divide each other are loops of each side.
    """
    p = by_sides(p)
    if local and p.nbytes >= thresholds.LARGE_TENSOR:
        p = splits.by_padding(p)
    found = in_words(p, begin_bytes, trades=p.src.dtype.is_packed)
    return in_words(p, begin_bytes, trades=False) if found.exchanges and not local else found


def refusal_of_loops(p: Problem) -> str:
    """Why no family of GPUs takes the loops of a problem; empty if one does."""
    return p.why or splits.refusal(p) or nibbles.refusal(p.dst)


def _in_words(p: Problem, nbytes: int, count: int, *, trades: bool, cuts: bool) -> Problem | None:
    """The problem in words of ``nbytes``, which have ``count`` elements; None where that is not."""
    nodes, depth, bits = p.nodes, count.bit_length() - 1, p.src.dtype.bits
    before, after = (_digits(nodes, side, depth) for side in ("src", "dst"))
    taken = {*before, *after}
    # Words that are cut are read to their end: of those memory has to have all.
    cuts &= before == after and p.src.span_nbytes * 8 // bits % count == 0
    if len(before) < depth or len(after) < depth or not _keeps_guards(p, taken, cuts=cuts):
        return None
    pairs, swaps = _trades(before, after)
    if (pairs or swaps) and not trades:
        return None
    added = {
        at: Node(fixed(2), nodes[b].src * fixed(1 << tb), nodes[a].dst * fixed(1 << ta))
        for at, ((a, ta), (b, tb)) in pairs.items()
    }
    rest = _rest(nodes, taken)
    strides = [stride.value for n in (*rest, *added.values()) for stride in (n.src, n.dst)]
    moves = all(n.src.value for n in added.values())
    if not moves or any(n % count for n in (p.src0, p.dst0, *strides)):
        return None
    rest = [_in_steps(n, count) for n in rest]
    added = {bits << at: _in_steps(n, count) for at, n in added.items()}
    word = words_of(nbytes)
    words = fuse(normalise(replace(_in_units(p, rest, taken, count), src0=p.src0 // count,
                                   dst0=p.dst0 // count, words=(word, word))))  # fmt: skip
    swapped = tuple((bits << a, bits << b) for a, b in swaps)
    words, places = _with(words, [*added.items()])
    return replace(words, exchanges=places, swaps=swapped)


def in_words_of_a_side(p: Problem, begin_bytes: int, *, of_bytes: bool = False) -> Problem:
    """The problem whose source, or destination, is words; else itself.

    No lane of a vector has another element of its word than the others. ``of_bytes``: of a source
    of bytes, too, whose elements get two.
    """
    src, dst = p.dtypes
    loops = not (p.why or p.tables)
    packed = src.is_packed or (of_bytes and (src.bits, dst.bits) == (8, 16))
    side, bits = ("src", src.bits) if packed else ("dst", dst.bits)
    if not loops or packed == dst.is_packed or 8 % bits:
        return p
    if side == "dst" and p.computation:
        return p
    if side == "src" and not (p.computation or (src.starts_at_zero and dst.starts_at_zero)):
        return p  # Words of padding are zero.
    return _widest(p, bits, begin_bytes, partial(_of_a_side, side=side))


def _widest(
    p: Problem, bits: int, begin_bytes: int, in_words_of: Callable[..., Problem | None]
) -> Problem:
    """The problem by the widest words of elements of ``bits`` that it can be in; else itself."""
    counts = ((n, 8 * n // bits) for n in WORDS if n <= begin_bytes)
    found = (in_words_of(p, n, count) for n, count in counts if count > 1)
    return next(filter(None, found), p)


def _of_a_side(p: Problem, nbytes: int, count: int, *, side: str) -> Problem | None:
    """The problem with words of ``nbytes``, of ``count`` elements, on a side; None if none."""
    nodes, word = p.nodes, words_of(nbytes)
    digits = _digits(nodes, side, count.bit_length() - 1)
    if 1 << len(digits) < count or not _keeps_guards(p, {*digits}):
        return None
    rest, first = _rest(nodes, digits), p.src0 if side == "src" else p.dst0
    if any(n % count for n in (first, *(_stride(n, side).value for n in rest))):
        return None
    line = 8 * LINE_BYTES // p.dst.dtype.bits
    inside: list[tuple[int, Node]] = []
    for at, (k, t) in enumerate(digits):
        n = replace(_from(nodes[k], t), size=fixed(2), guard=None, unit=0)
        if _stride(n, "dst" if side == "src" else "src").value < LEAST_APART:
            return None
        n = _moved(n, side, fixed(0))
        distance, before = inside[-1] if inside else (0, n)
        goes_on = inside and (before.dst.value < line) == (n.dst.value < line)
        if goes_on and (joined := join(n, before)):
            inside[-1] = distance, joined
        else:
            inside.append((8 * nbytes // count << at, n))
    kept = tuple(_moved(n, side, part(_stride(n, side), count)) for n in rest)
    if side == "src":
        words = replace(p, nodes=kept, src0=first // count, words=(word, None))
    else:
        words = replace(p, nodes=kept, dst0=first // count, words=(None, word))
    words, places = _with(fuse(normalise(words)), inside)
    return replace(words, inside=places)


def _with(
    words: Problem, added: Sequence[tuple[int, Node]]
) -> tuple[Problem, tuple[tuple[int, int], ...]]:
    """The problem with more loops, and their places with the distances that stand before them."""
    words = normalise(replace(words, nodes=(*words.nodes, *(n for _, n in added))))
    return words, tuple(
        (next(k for k, n in enumerate(words.nodes) if n is node), distance)
        for distance, node in added
    )


def _digits(nodes: Sequence[Node], side: str, depth: int) -> list[Digit]:
    """The digits whose steps are 1, 2, 4, .. elements on a side, as far as there are any."""
    found: list[Digit] = []
    for at in range(depth):
        for k, n in enumerate(nodes):
            stride = _stride(n, side).value
            steps = (1 << at) // stride if stride and not (1 << at) % stride else 0
            if steps and not n.size.value % (2 * steps):
                found.append((k, steps.bit_length() - 1))
                break
        else:
            break
    return found


def _trades(
    before: list[Digit], after: list[Digit]
) -> tuple[dict[int, tuple[Digit, Digit]], list[tuple[int, int]]]:
    """By their place in the word digits that leave and enter it; and which places are swapped."""
    now = [digit if digit in after else None for digit in before]
    entering = [digit for digit in after if digit not in before]
    pairs = {}
    for at in sorted((k for k, digit in enumerate(now) if digit is None),
                     key=lambda k: after[k] not in entering):  # fmt: skip
        digit = after[at] if after[at] in entering else entering[0]
        entering.remove(digit)
        now[at], pairs[at] = digit, (before[at], digit)
    swaps = []
    for at, digit in enumerate(after):
        other = now.index(digit)
        if other != at:
            swaps.append((at, other))
            now[at], now[other] = now[other], now[at]
    return dict(sorted(pairs.items())), swaps


def _keeps_guards(p: Problem, taken: set[Digit], *, cuts: bool = False) -> bool:
    """Whether all elements of a word, and all words that trade some, are elements or none is.

    ``cuts``: or a word is a run of the guarded index, which elements may end inside.
    """
    for number, guard in enumerate(p.guards):
        inside = _units(p, taken, number)
        if not inside:
            continue
        step = 2 * max(inside)
        parts = [n for n in _rest(p.nodes, taken) if n.guard == number]
        small = sum(n.unit * (n.size.value - 1) for n in parts if n.unit % step)
        limits = [guard.lo.value, guard.end.value]
        if not (cuts and len(inside) == len(taken) and small == 0 and sum(inside) == step - 1):
            limits.append(guard.hi.value)
        if small + sum(inside) >= step or any(n % step for n in limits):
            return False
    return True


def _rest(nodes: Sequence[Node], taken: Iterable[Digit]) -> list[Node]:
    """The loops that are left without these digits."""
    return [
        part for k, n in enumerate(nodes) for part in _without(n, [t for j, t in taken if j == k])
    ]


def _without(n: Node, digits: Sequence[int]) -> list[Node]:
    """The loops that are left of one without some of its digits."""
    found, first = [], 0
    for digit in [*sorted(digits), None]:
        if digit is None or digit > first:
            size = part(n.size, 1 << first) if digit is None else fixed(1 << digit - first)
            found.append(replace(_from(n, first), size=size))
        first = (digit or 0) + 1
    return [n for n in found if n.size.value > 1]


def _from(n: Node, digit: int) -> Node:
    """A loop in steps of 2**digit of its own."""
    src, dst, *others = (stride * fixed(1 << digit) for stride in (n.src, n.dst, *n.operands))
    return replace(n, src=src, dst=dst, operands=tuple(others), unit=n.unit << digit)


def _units(p: Problem, taken: set[Digit], guard: int) -> list[int]:
    """How far those of the digits that have a guard move its index."""
    return [p.nodes[k].unit << t for k, t in taken if p.nodes[k].guard == guard]


def _in_units(p: Problem, nodes: Sequence[Node], taken: set[Digit], count: int) -> Problem:
    """The problem with these loops; guards count by ``count``, as far as all their steps do.

    ``taken``: the digits that are in words now.
    """
    found = []
    for number, g in enumerate(p.guards):
        units = [n.unit for n in nodes if n.guard == number]
        step = gcd(count, *units, g.lo.value, g.hi.value, g.end.value)
        block = g.block // step if g.block % step == 0 else 1
        cut = g.hi.value % (2 * max(_units(p, taken, number), default=0) or 1) > 0
        found.append(replace(g, lo=part(g.lo, step), hi=part(g.hi, step), end=part(g.end, step),
                             word=count // step if cut else 1, block=block))  # fmt: skip
        nodes = [replace(n, unit=n.unit // step) if n.guard == number else n for n in nodes]
    return replace(p, nodes=tuple(nodes), guards=tuple(found))


def _stride(n: Node, side: str) -> Number:
    return n.src if side == "src" else n.dst


def _moved(n: Node, side: str, stride: Number) -> Node:
    """A loop with another stride on a side."""
    return replace(n, src=stride) if side == "src" else replace(n, dst=stride)


def _in_steps(n: Node, count: int) -> Node:
    """A loop whose strides count words of ``count`` elements."""
    return replace(n, src=part(n.src, count), dst=part(n.dst, count))


def part(n: Number, count: int) -> Number:
    """A size, stride or limit in groups of ``count`` elements."""
    return Number(n.value // count, n.fixed)
