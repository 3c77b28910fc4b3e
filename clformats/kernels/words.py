"""Words of several elements on one side: how a kernel takes them apart, or puts them together.

See `clformats.problems.words`. The vectors that move are words; a loop over the elements of a word
is around the stores that take them out of it, or around the loads that put them in.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, replace

from ..problems.problem import Problem
from ..schedule.layout import TileLayout, TileVector
from .codecs import WORDS
from .exchange import Exchanges
from .types import Helpers, KernelConversion, mask_type


def in_words(lanes: KernelConversion, p: Problem) -> KernelConversion:
    """The types of a kernel whose problem has words on a side, by those of single elements."""
    read, written = p.words
    if read:
        return replace(lanes, word=read, work=WORDS[read.nbytes], early=False)
    if not written:
        return lanes
    raw = WORDS[written.nbytes]
    return PackedConversion(written, written, lanes.src, raw, raw, early=False, lanes=lanes)


def turns(layout: TileLayout, statements: Iterable[str]) -> str:
    """One statement: others in the loops over the elements of words."""
    loops = [f"for (int f{k} = 0; f{k} < {n}; ++f{k})" for k, n in layout.rolled]
    return "\n".join([*loops, "{", *(f"    {text}" for text in statements), "}"])


def turn(layout: TileLayout, inside: Exchanges) -> str:
    """The bit at which an element of a word begins in a turn of the loops."""
    by = dict(inside)
    return " + ".join(f"f{k} * {by[k]}" for k, _ in layout.rolled) or "0"


def taken(
    types: KernelConversion, layout: TileLayout, inside: Exchanges, vector: TileVector, value: str
) -> str:
    """The elements that a vector stores, of words."""
    steps = [layout.steps[k] for k in vector.elements if k is not None]
    places = [sum(s[k] * distance for k, distance in inside) for s in steps]
    places += places[:1] * (layout.lanes - len(places))
    begin, n = turn(layout, inside), str(layout.lanes) if layout.lanes > 1 else ""
    bits, word, most = types.src_type.bits, types.work, types.moved.bits
    top, sign = (most - bits, "-") if types.src == "char" else (0, "+")
    after = [abs(top - place) for place in places]
    if len({*after}) > 1:
        by = f"(({word}{n})({', '.join(map(str, after))}) {sign} ({word})({begin}))"
    else:
        by = f"({word})({after[0]} {sign} ({begin}))"
    if top:
        mask = mask_type(word)
        signed = f"as_{mask}{n}(({word}{n})({value} << {by}))"
        return f"convert_char{n}({signed} >> ({mask}){top})"
    return f"convert_uchar{n}({value} >> {by} & ({word}){(1 << bits) - 1})"


@dataclass(frozen=True, slots=True)
class PackedConversion(KernelConversion):
    """The types of a kernel that stores words, of elements that are loaded as ``lanes`` say."""

    lanes: KernelConversion

    @property
    def loaded(self) -> str:
        """The type of what is loaded."""
        return self.lanes.work

    @property
    def read_bits(self) -> int:
        """The bits of an element of the source."""
        return self.lanes.read_bits

    @property
    def helpers(self) -> Helpers:
        """What converts the elements."""
        return self.lanes.helpers

    def load(self, pointer: str, width: int, *, aligned: bool = False) -> str:
        """An expression: ``width`` elements from ``pointer``."""
        return self.lanes.load(pointer, width, aligned=aligned)

    def put(self, value: str, at: str, n: str) -> str:
        """Words of ``n`` elements that lie at bit ``at``, the others 0."""
        mask = (1 << self.lanes.dst_type.bits) - 1
        as_code = f"as_uchar{n}" if n else "(uchar)"  # one that a guard chooses is an int
        code = f"{as_code}({value}) & (uchar){mask}"
        return f"convert_{self.work}{n}({code}) << ({self.work})({at})"
