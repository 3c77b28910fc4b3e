"""Names <-> layouts: the two notations of the field.

oneDNN: ``OUTER INNER``, as in ``aBcd16b`` or ``OIhw4i16o4i``.
    OUTER has one letter per dimension, outermost first, upper case if the dimension is blocked;
    INNER is a list of (block size, letter), outermost block first. Abstract tags use the letters
    ``a b c ...`` for the logical dimensions in order; domain names use ``n c d h w``,
    ``g o i d h w`` and the recurrent ``l d t n c i g o``. Meta tags (``aBx16b``, ``axb``) write
    ``x`` for all the dimensions that they do not name, and need a rank.

clDNN: ``OUTER_..._INNER_...``, as in ``b_fs_yx_fsv16`` or ``os_is_yx_isa8_osv8_isv4``.
    Outer tokens are letters, outermost first; ``fs`` marks a sliced dimension. Inner tokens are
    ``fsv16`` (a block of 16), or ``isa8 ... isv4`` for two blocks of one dimension. Data has the
    letters ``b f v u w z y x``, weights ``g o i z y x``. ``yxs ... yxsv2`` slices the fused index
    y*X + x; a number behind a plain letter (``x8``) and a suffix ``__ai8`` round a dimension up;
    ``_swizzled_by_4`` deals the block of o like cards; ``_rotate_180`` turns y and x around.

In both, the first block of a dimension from the left is its most significant one.
"""

from __future__ import annotations

import re
from dataclasses import dataclass, replace
from math import prod
from typing import Literal

from .digits import Digit, Layout
from .sums import Sums

ABSTRACT = "abcdefghijkl"
MAX_NDIMS = len(ABSTRACT)

DATA_ORDER = "bfvuwzyx"
WEIGHTS_ORDER = "goizyx"
# The logical orders of the recurrent names cannot be read off the letters; oneDNN fixes them.
Role = Literal["data", "weights", "rnn", "generic"]
# "wino": the values are Winograd-transformed, the dims those of the transformed tensor.
Kind = Literal["blocked", "wino", "rnn_packed", "image", "any", "undef"]
RNN_ORDERS = ("tn", "tnc", "ldnc", "ldigo", "ldio", "ldgo")
_SPATIAL = ("", "w", "hw", "dhw")
_DOMAIN_ORDERS: dict[str, Role] = {
    "x": "generic",
    **{"nc" + s: "data" for s in _SPATIAL},
    **{g + "oi" + s: "weights" for s in _SPATIAL for g in ("", "g")},
    **dict.fromkeys(RNN_ORDERS, "rnn"),
}


@dataclass(frozen=True, slots=True)
class Parsed:
    """What a name says: the layout, the letters of its logical dimensions, its role and kind.

    ``image`` is the number of digits, from the outermost, that number the pixel rows, then the
    pixel columns, then the channels; None where the memory is a buffer. ``sums``: what lies behind
    elements of type s8.
    """

    layout: Layout
    letters: str
    role: Role
    kind: Kind = "blocked"
    image: tuple[int, int, int] | None = None
    sums: Sums | None = None


class GrammarError(Exception):
    """A name does not follow the grammar; ``token`` is the part at fault."""

    def __init__(self, token: str, reason: str) -> None:
        super().__init__(f"{token!r}: {reason}")
        self.token = token


# --- oneDNN ---------------------------------------------------------------------------------------


def parse_onednn(name: str) -> Parsed:
    """Read a oneDNN tag or domain name. Raises `GrammarError`."""
    match = re.fullmatch(r"([A-Za-z]+)((?:[1-9][0-9]*[A-Za-z])*)", name)
    if not match:
        raise GrammarError(name, "a oneDNN tag is letters, then pairs of block size and letter")
    outer, inner_text = match.groups()
    inner = [(int(n), letter) for n, letter in re.findall(r"([0-9]+)([A-Za-z])", inner_text)]
    _check_onednn_letters(outer, inner)
    letters = _onednn_order(outer.lower())
    role: Role = "generic" if ABSTRACT.startswith(letters) else _DOMAIN_ORDERS[letters]
    return Parsed(_blocked_layout(letters, outer.lower(), inner), letters, role)


def _check_onednn_letters(outer: str, inner: list[tuple[int, str]]) -> None:
    for letter in outer:
        if outer.lower().count(letter.lower()) > 1:
            raise GrammarError(letter, f"this dimension occurs twice in the order {outer!r}")
        blocked = letter.lower() in {b for _, b in inner}
        if letter.isupper() and not blocked:
            raise GrammarError(letter, "upper case means blocked, but no block of it follows")
        if blocked and letter.islower():
            raise GrammarError(letter, f"a block of it follows, so it is written {letter.upper()}")
    for size, letter in inner:
        if letter not in outer.lower():
            raise GrammarError(f"{size}{letter}", f"the order {outer!r} has no such dimension")
        if size < 2:
            raise GrammarError(f"{size}{letter}", "a block has at least 2 elements")


def _onednn_order(letters: str) -> str:
    """The logical order of the dimensions that the letters name."""
    if len(letters) > MAX_NDIMS:
        raise GrammarError(letters, f"{len(letters)} dimensions, at most {MAX_NDIMS} are possible")
    for order in (ABSTRACT[: len(letters)], *_DOMAIN_ORDERS):
        if sorted(order) == sorted(letters):
            return order
    strange = next((c for c in letters if c not in ABSTRACT + "nowtx"), letters)
    raise GrammarError(strange, "no oneDNN tensor has these dimensions")


def _blocked_layout(letters: str, outer: str, inner: list[tuple[int, str]]) -> Layout:
    """Open digits in the order ``outer``, then the blocks; dense steps, left most significant."""
    digits: list[Digit] = []
    step = dict.fromkeys(letters, 1)
    for size, letter in reversed(inner):
        digits.append(Digit(letters.index(letter), size, step[letter]))
        step[letter] *= size
    heads = [Digit(letters.index(c), None, step[c]) for c in outer]
    return Layout(len(letters), (*heads, *reversed(digits)))


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


# --- clDNN ----------------------------------------------------------------------------------------


@dataclass
class _Tokens:
    """A clDNN name taken apart. ``heads``: (letters of one index, sliced?), outermost first."""

    heads: list[tuple[str, bool]]
    blocks: list[tuple[str, int]]
    align: dict[str, int]


_BLOCK = re.compile(r"([a-z]+)s[av]([1-9][0-9]*)")


def parse_cldnn(name: str) -> Parsed:
    """Read a clDNN name. Raises `GrammarError`."""
    base, *suffixes = name.split("__")
    base, rotated = _strip(base, r"_rotate_180")
    base, swizzle = _strip(base, r"_swizzled_by_([1-9][0-9]*)")
    tokens = _tokenise(base)
    for suffix in suffixes:
        match = re.fullmatch(r"a([a-z])([1-9][0-9]*)", suffix)
        if not match:
            raise GrammarError(
                suffix, "expected an alignment such as ai8 behind the two underscores"
            )
        tokens.align[match[1]] = int(match[2])
    letters, role = _cldnn_order(tokens)
    digits = _cldnn_digits(tokens, letters)
    if swizzle:
        digits = _swizzled(digits, letters.find("o"), int(swizzle[1]), name)
    if rotated:
        turned = {letters.index(c) for c in "zyx" if c in letters}
        digits = [replace(d, flip=d.dim in turned) for d in digits]
    align = tuple(tokens.align.get(c, 1) for c in letters)
    return Parsed(_layout(len(letters), digits, align, name), letters, role)


def _strip(base: str, suffix: str) -> tuple[str, re.Match[str] | None]:
    match = re.search(suffix + "$", base)
    return (base[: match.start()], match) if match else (base, None)


def _tokenise(base: str) -> _Tokens:
    tokens = _Tokens([], [], {})
    parts = base.split("_")
    blocked = [m[1] for m in map(_BLOCK.fullmatch, parts) if m]
    for part in parts:
        if match := _BLOCK.fullmatch(part):
            tokens.blocks.append((match[1], int(match[2])))
        elif tokens.blocks:
            raise GrammarError(part, "an order token behind a block; blocks come last")
        elif re.fullmatch(r"[a-z]+s[av]", part):
            raise GrammarError(part, f"a block needs its size, as in {part}16")
        elif part[-1:] == "s" and part[:-1] in blocked:
            tokens.heads.append((part[:-1], True))
        else:
            _read_heads(part, tokens)
    return tokens


def _read_heads(part: str, tokens: _Tokens) -> None:
    if not re.fullmatch(r"(?:[a-z]s?(?:[1-9][0-9]*)?)+", part):
        raise GrammarError(part, "expected letters of dimensions, such as b, fs or yx")
    for letter, sliced, number in re.findall(r"([a-z])(s?)([0-9]*)", part):
        tokens.heads.append((letter, bool(sliced)))
        if number:
            tokens.align[letter] = int(number)


def _cldnn_order(tokens: _Tokens) -> tuple[str, Role]:
    """The logical dimensions of the tokens, in logical order, and the role they tell."""
    seen = "".join(letters for letters, _ in tokens.heads)
    role: Role = "weights" if set(seen) & set("goi") else "data"
    order = WEIGHTS_ORDER if role == "weights" else DATA_ORDER
    _check_letters(seen, role, order)
    _check_slices(tokens, seen)
    return "".join(c for c in order if c in seen), role


def _check_letters(seen: str, role: Role, order: str) -> None:
    for letter in seen:
        if letter not in order:
            raise GrammarError(letter, f"{role} formats have the dimensions {' '.join(order)}")
        if seen.count(letter) > 1:
            raise GrammarError(letter, "this dimension occurs twice")
    if not set(seen) & set("bfoi"):
        raise GrammarError(seen, "expected at least one of b, f, o, i")


def _check_slices(tokens: _Tokens, seen: str) -> None:
    """Every slice has a block, every block a slice, every alignment a dimension."""
    for index, _ in tokens.blocks:
        if (index, True) not in tokens.heads:
            raise GrammarError(index + "sv", f"a block, but the order has no slice {index}s")
    for index, sliced in tokens.heads:
        if sliced and index not in {b for b, _ in tokens.blocks}:
            raise GrammarError(index + "s", f"a slice, but no block {index}sv follows")
    for letter in tokens.align:
        if letter not in seen:
            raise GrammarError(letter, "aligned, but it is not in the order")


def _cldnn_digits(tokens: _Tokens, letters: str) -> list[Digit]:
    def dim(index: str) -> int | tuple[int, ...]:
        dims = tuple(letters.index(c) for c in index)
        return dims[0] if len(dims) == 1 else dims

    step = dict.fromkeys([index for index, _ in tokens.heads], 1)
    blocks: list[Digit] = []
    for index, size in reversed(tokens.blocks):
        if size < 2:
            raise GrammarError(f"{index}sv{size}", "a block has at least 2 elements")
        blocks.append(Digit(dim(index), size, step[index]))
        step[index] *= size
    heads = [Digit(dim(index), None, step[index]) for index, _ in tokens.heads]
    return heads + blocks[::-1]


def _swizzled(digits: list[Digit], o: int, n: int, name: str) -> list[Digit]:
    """Deal the block of dimension ``o`` like cards: its outer digit takes o % n, the inner o // n.

    A single block of B becomes the two digits n and B / n; of two blocks the outer must be n.
    """
    places = [k for k, d in enumerate(digits) if d.dim == o and d.size is not None]
    sizes = [digits[k].size or 0 for k in places]
    block = prod(sizes)
    fits = len(sizes) == 1 and block % n == 0 and block > n > 1
    if not fits and not (len(sizes) == 2 and sizes[0] == n):
        raise GrammarError(f"swizzled_by_{n}", f"{name} has no block of o that {n} can deal out")
    outer, inner = Digit(o, n, 1), Digit(o, block // n, n)
    if len(places) == 1:
        return [*digits[: places[0]], outer, inner, *digits[places[0] + 1 :]]
    result = list(digits)
    result[places[0]], result[places[1]] = outer, inner
    return result


def _layout(ndims: int, digits: list[Digit], align: tuple[int, ...], name: str) -> Layout:
    try:
        return Layout(ndims, tuple(digits), align)
    except ValueError as error:
        raise GrammarError(name, str(error)) from error


def cldnn_letters(ndims: int, role: str, *, grouped: bool = False) -> str | None:
    """ClDNN's letters for a rank: 4 is ``bfyx`` or ``oiyx``; None where clDNN has no such rank."""
    if role == "weights":
        spatial = ndims - (3 if grouped else 2)
        head = "goi" if grouped else "oi"
    else:
        spatial, head = ndims - 2, "bf"
    most = 3 if role == "weights" else 6
    if spatial == 1 or not 0 <= spatial <= most:
        return None
    return head + ("vuwzyx"[-spatial:] if spatial else "")


def print_cldnn(layout: Layout, letters: str) -> str | None:
    """The clDNN name of a layout, by the grammar; None if the grammar cannot say it."""
    if not layout.is_tag:
        return None
    parts: list[str] = []
    for d in layout.outer:
        letter = letters[d.dims[0]]
        if layout.blocks[d.dims[0]] > 1:
            parts.append(letter + "s")
        elif parts and not parts[-1].endswith("s"):
            parts[-1] += letter
        else:
            parts.append(letter)
    for d in layout.inner:
        kind = "sv" if d.step == 1 else "sa"
        parts.append(f"{letters[d.dims[0]]}{kind}{d.size}")
    return "_".join(parts)


# --- the digits themselves as text ----------------------------------------------------------------


def parse_digits(text: str, letters: str) -> tuple[Digit, ...]:
    """Read ``"o:*:32 i:*:1 o:32:1"``: index letters, size or ``*``, step; ``~y`` is flipped."""
    result = []
    for item in text.split():
        index, size, step = item.split(":")
        dims = tuple(letters.index(c) for c in index.lstrip("~"))
        dim = dims[0] if len(dims) == 1 else dims
        number = None if size == "*" else int(size)
        result.append(Digit(dim, number, int(step), index.startswith("~")))
    return tuple(result)


def print_digits(layout: Layout, letters: str) -> str:
    """The digits as text, outermost first; the inverse of `parse_digits`."""
    return " ".join(
        f"{'~' * d.flip}{''.join(letters[k] for k in d.dims)}:{d.size or '*'}:{d.step}"
        for d in layout.digits
    )
