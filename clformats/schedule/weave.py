"""Words of elements that lie apart in the source: inputs that a block keeps side by side.

Int8 weights of 3 x 3 are multiplied four inputs at a time, so the blocks of ``os_is_yx_osv16_isv4``
have four inputs of one position in a word of 4 bytes; in ``oiyx`` they are 9 bytes apart. But the
36 bytes of all nine positions are nine words too, only woven otherwise: byte j of the destination's
word k is byte ``k + 9 j`` of the source's. So the tile moves and transposes words, as if nothing
were woven, and what it stores is put together at the end from four of its registers: byte j of the
word comes from place ``(k + 9 j) % 4`` of register ``(k + 9 j) / 4``. To turn the bytes of a word
and to choose between two registers is one instruction each, for 16 outputs at once.

Of a copy, 1024 x 1024 weights of 3 x 3: 0.6 to 1.0 by ordinary stores and 1.0 and more past the
cache, where bytes of 9 steps in vectors of 8 reach 0.35 to 0.55.
"""

from __future__ import annotations

from dataclasses import replace

from .coarse import words_of
from .lanes import LANES_LOG2, Bit, Span, Weave
from .problem import Node, Number, Problem, fixed
from .tile import TilePlan

WORD_BYTES = 4
"""A word: 16 of them are a cache line."""
MOST_WORDS = 32
"""Words that are woven together, at the most: all are held in registers until they are stored."""


def woven(p: Problem, begin_bytes: int) -> tuple[Problem, Weave] | None:
    """The problem in words; None where there are none, or where they are not whole everywhere.

    Memory begins at multiples of ``begin_bytes``.
    """
    count = WORD_BYTES // p.dst.dtype.nbytes
    found = _loops(p)
    plain = p.src.dtype == p.dst.dtype and not (p.guards or p.computation)
    if found is None or not plain or count < 2 or begin_bytes < WORD_BYTES:
        return None
    nodes = list(p.nodes or ())
    apart, run = found
    inner, pieces = nodes[run].size.value, nodes[apart].size
    nodes[apart] = replace(
        nodes[apart], size=Number(pieces.value // count, pieces.fixed),
        src=Number(nodes[apart].src.value * count), dst=fixed(count),
    )  # fmt: skip
    strides = [n for k, node in enumerate(nodes) for n in (node.src, node.dst)[k == run :]]
    numbers = [p.src0, p.dst0, *(n.value for n in strides)]
    if pieces.value % count or not _gains(inner, count) or any(n % count for n in numbers):
        return None
    nodes = [
        replace(n, src=n.src if k == run else _in_words(n.src, count), dst=_in_words(n.dst, count))
        for k, n in enumerate(nodes)
    ]
    left = [n for k, n in enumerate(nodes) if n.size.value > 1 or k == run]
    words = replace(
        p, nodes=tuple(left), src0=p.src0 // count, dst0=p.dst0 // count, word=words_of(WORD_BYTES)
    )
    return words, Weave(left.index(nodes[run]), inner, count)


def _loops(p: Problem) -> tuple[int, int] | None:
    """The loop of a word's elements, side by side in the destination, and that of the run."""
    nodes = p.nodes or ()
    apart = next((k for k, n in enumerate(nodes) if n.dst.value == 1 != n.src.value), None)
    run = next((k for k, n in enumerate(nodes) if n.src.value == 1 != n.dst.value), None)
    if apart is None or run is None or nodes[apart].src.value != nodes[run].size.value:
        return None
    return apart, run


def _gains(inner: int, count: int) -> bool:
    """Whether words are faster than elements.

    Runs that vectors divide are transposed by elements as well: from blocks of 32 bytes words reach
    0.85 of that, from blocks of 16 halves 0.9. But from blocks of 16 bytes they reach 1.2 times as
    much: vectors of 16 bytes take as many instructions as those of 16 words and move a quarter.
    """
    whole = inner & (inner - 1) == 0
    return inner == 1 << LANES_LOG2 and count == WORD_BYTES if whole else inner <= MOST_WORDS


def _in_words(n: Number, count: int) -> Number:
    return Number(n.value // count, n.fixed)


def weaving(plan: TilePlan, weave: Weave) -> TilePlan | None:
    """The tile with its words woven; None where it does not hold whole runs and lines of them."""
    size = plan.nodes[weave.node].size.value
    run = {Bit(weave.node, j) for j in range(plan.load_piece.bit_length() - 1)}
    held = {*plan.store_registers} == run and plan.store_piece == plan.lanes
    # Runs of 3 have no vectors, and their steps may be lanes of stores already.
    if not (run and held) or plan.bits[weave.node] != len(run):
        return None
    span = Span(weave.node, weave.inner, 1, 1, plan.load_piece)
    nodes: list[Node] = list(plan.nodes)
    nodes[weave.node] = replace(nodes[weave.node], size=fixed(size))
    return replace(plan, nodes=tuple(nodes), span=span, weave=weave)
