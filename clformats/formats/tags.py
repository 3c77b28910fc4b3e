"""oneDNN's tags <-> layouts, with blocks anywhere, explicit steps and bars.

A tag is ``OUTER INNER``, as in ``aBcd16b`` or ``OIhw4i16o4i``. OUTER has one letter per dimension,
outermost first, upper case if the dimension is blocked; INNER is a list of (block size, letter),
outermost block first. Abstract tags use the letters ``a b c ...`` for the logical dimensions in
order; domain names use ``n c d h w``, ``g o i d h w`` and the recurrent ``l d t n c i g o``. Meta
tags (``aBx16b``, ``axb``) write ``x`` for all the dimensions that they do not name, and need a
rank. The first block of a dimension from the left is its most significant one.

`parse_short` reads more, as a shorthand for lists of digits: blocks between the letters
(``OhIw4i4o`` or ``O4ohi``), a block with the step that its place does not say (``4m(1)``, the digit
``m % 4``), and the bars of an image (``nh|Cw|4c``: rows, columns, components).
"""

from __future__ import annotations

import re
from typing import NamedTuple

from .digits import MAX_NDIMS, Digit, Layout
from .names import ABSTRACT, GrammarError, Parsed, Role, order_of
from .text import layout_of


class _Token(NamedTuple):
    """A letter of the order (no ``size``), or a block, perhaps with its ``step``."""

    letter: str
    size: int | None = None
    step: int | None = None

    def __str__(self) -> str:
        return f"{self.size or ''}{self.letter}"


_TOKEN = re.compile(r"([1-9][0-9]*)([A-Za-z])(?:\(([1-9][0-9]*)\))?|([A-Za-z])")


def parse_onednn(name: str) -> Parsed:
    """Read a oneDNN tag or domain name. Raises `GrammarError`."""
    if not re.fullmatch(r"[A-Za-z]+(?:[1-9][0-9]*[A-Za-z])*", name):
        raise GrammarError(name, "a oneDNN tag is letters, then pairs of block size and letter")
    return _parsed([_tokens(name)], None, cldnn=False)


def parse_short(name: str, letters: str | None = None) -> Parsed:
    """Read a tag with blocks anywhere, explicit steps and bars. Raises `GrammarError`.

    ``letters``: the logical dimensions in order, where the letters do not say it.
    """
    return _parsed([_tokens(part.strip()) for part in name.split("|")], letters)


def is_short(name: str) -> bool:
    """Whether a name can only be a shorthand, right or wrong: it has bars or explicit steps."""
    return bool(re.fullmatch(r"[A-Za-z0-9|()\s]+", name)) and ("|" in name or "(" in name)


def _tokens(part: str) -> list[_Token]:
    found = list(_TOKEN.finditer(part))
    if "".join(m[0] for m in found) != part:
        raise GrammarError(part, "expected letters and blocks, such as C, 4c or 4c(1)")
    return [
        _Token(m[4]) if m[4] else _Token(m[2], int(m[1]), int(m[3]) if m[3] else None)
        for m in found
    ]


def _parsed(parts: list[list[_Token]], letters: str | None, *, cldnn: bool = True) -> Parsed:
    tokens = [t for part in parts for t in part]
    outer = "".join(t.letter for t in tokens if t.size is None)
    _check_letters(outer, [t for t in tokens if t.size is not None])
    order, role = _order(outer.lower(), letters, cldnn=cldnn)
    digits = _digits(tokens, order)
    layout = layout_of(order, tuple(d for d in digits if d is not None))
    if len(parts) == 1:
        return Parsed(layout, order, role)
    rest = iter(digits)
    counts = tuple(sum(next(rest) is not None for _ in part) for part in parts)
    return Parsed(layout, order, role, "image", counts)


def _check_letters(outer: str, inner: list[_Token]) -> None:
    for letter in outer:
        if outer.lower().count(letter.lower()) > 1:
            raise GrammarError(letter, f"this dimension occurs twice in the order {outer!r}")
        blocked = letter.lower() in {t.letter for t in inner}
        if letter.isupper() and not blocked:
            raise GrammarError(letter, "upper case means blocked, but no block of it follows")
        if blocked and letter.islower():
            raise GrammarError(letter, f"a block of it follows, so it is written {letter.upper()}")
    for token in inner:
        if token.letter not in outer.lower():
            raise GrammarError(str(token), f"the order {outer!r} has no such dimension")
        if max(t.size or 1 for t in inner if t.letter == token.letter) < 2:
            raise GrammarError(str(token), "a block has at least 2 elements")


def _order(outer: str, letters: str | None, *, cldnn: bool) -> tuple[str, Role]:
    """The logical order of the dimensions, and what they are for."""
    if len(outer) > MAX_NDIMS:
        raise GrammarError(outer, f"{len(outer)} dimensions, at most {MAX_NDIMS} are possible")
    known = order_of(outer, cldnn=cldnn)
    if letters is not None:
        if sorted(letters) != sorted(outer):
            raise GrammarError(outer, f"expected each of the dims {letters!r} once")
        return letters, known[1] if known and known[0] == letters else "generic"
    if known is None:
        strange = next((c for c in outer if c not in ABSTRACT + "nowtx"), outer)
        said = "no oneDNN tensor has these dimensions; dims= gives letters of one's own an order"
        raise GrammarError(strange, said)
    return known


def _digits(tokens: list[_Token], letters: str) -> list[Digit | None]:
    """The digit of each token, None for a block of 1; blocks nest from right to left."""
    step, total = dict.fromkeys(letters, 1), dict.fromkeys(letters, 1)
    blocks: list[Digit | None] = []
    for t in reversed(tokens):
        size, dim = t.size or 1, letters.index(t.letter.lower())
        if t.size is not None:
            at = step[t.letter] if t.step is None else t.step
            step[t.letter] *= 1 if t.step else size
            total[t.letter] *= size
            blocks.append(Digit(dim, size, at) if size > 1 else None)
        else:
            blocks.append(Digit(dim, None, 1))
    return [
        Digit(d.dim, None, total[t.letter.lower()]) if d and d.size is None else d
        for d, t in zip(reversed(blocks), tokens, strict=True)
    ]


def expand_meta(name: str, ndims: int) -> str:
    """The tag that a meta tag stands for at a rank: ``aBx16b`` at 5 is ``aBcde16b``."""
    named = {c for c in name.lower() if c.isalpha() and c != "x"}
    rest = [c for c in ABSTRACT[:ndims] if c not in named]
    return name.replace("x", "".join(rest))


def is_meta(name: str) -> bool:
    """Whether the name is a meta tag: the first abstract letters, and one x for the others."""
    match = re.fullmatch(r"([a-lA-L]*)x([a-lA-L]*)((?:[0-9]+[a-l])*)", name)
    if not match:
        return False
    named = (match[1] + match[2]).lower()
    return bool(named) and sorted(named) == list(ABSTRACT[: len(named)])


def print_onednn(layout: Layout, letters: str = ABSTRACT) -> str | None:
    """The tag of a layout with these letters for its dimensions; None if no tag can say it."""
    if not layout.is_tag:
        return None
    names = [
        letters[d.dims[0]].upper() if layout.blocks[d.dims[0]] > 1 else letters[d.dims[0]]
        for d in layout.outer
    ]
    return "".join(names) + "".join(f"{d.size}{letters[d.dims[0]]}" for d in layout.inner)
