"""What a name says, and clDNN's names <-> layouts; oneDNN's are in `tags`, digits in `text`.

clDNN: ``OUTER_..._INNER_...``, as in ``b_fs_yx_fsv16`` or ``os_is_yx_isa8_osv8_isv4``.
    Outer tokens are letters, outermost first; ``fs`` marks a sliced dimension. Inner tokens are
    ``fsv16`` (a block of 16), or ``isa8 ... isv4`` for two blocks of one dimension. Data has the
    letters ``b f v u w z y x``, weights ``g o i z y x``. ``yxs ... yxsv2`` slices the fused index
    y*X + x; a number after a plain letter (``x8``) and a suffix ``__ai8`` round a dimension up;
    ``_swizzled_by_4`` deals the block of o like cards; ``_rotate_180`` turns y and x around.

The first block of a dimension from the left is its most significant one.
"""

from __future__ import annotations

import re
from dataclasses import dataclass, replace
from itertools import islice
from math import prod
from string import ascii_lowercase
from typing import Literal

from .digits import MAX_NDIMS, Digit, Layout
from .sums import Sums

ABSTRACT = ascii_lowercase[:MAX_NDIMS]
"""oneDNN's letters of the logical dimensions, where a name does not say what they are for."""

DATA_ORDER = "bfvuwzyx"
WEIGHTS_ORDER = "goizyx"
# The logical orders of the recurrent names cannot be read off the letters; oneDNN fixes them.
Role = Literal["data", "weights", "rnn", "generic"]
# "wino": the values are Winograd-transformed, the dims those of the transformed tensor.
Kind = Literal["blocked", "wino", "rnn_packed", "image", "any", "undef"]
RNN_ORDERS = ("tn", "tnc", "ldnc", "ldigo", "ldio", "ldgo")
_SPATIAL = ("", "w", "hw", "dhw")
# Some of these dimensions, in this order: ``ghw`` of depthwise filters, ``chw`` of one picture.
_ONEDNN_PARTS: dict[str, Role] = {"ncdhw": "data", "goidhw": "weights"}
_CLDNN_PARTS: dict[str, Role] = {DATA_ORDER: "data", WEIGHTS_ORDER: "weights"}
_DOMAIN_ORDERS: dict[str, Role] = {
    "x": "generic",
    **{"nc" + s: "data" for s in _SPATIAL},
    **{g + "oi" + s: "weights" for s in _SPATIAL for g in ("", "g")},
    **dict.fromkeys(RNN_ORDERS, "rnn"),
}


@dataclass(frozen=True, slots=True)
class Parsed:
    """What a name says: the layout, the letters of its logical dimensions, its role and kind.

    ``image`` is None where the memory is a buffer, else the number of digits, from the outermost,
    of each of its axes: pixels and components; rows, columns and components; or layers, rows,
    columns and components. ``sums``: what follows elements of type s8.

    Raises `GrammarError` where a pixel cannot have these components.
    """

    layout: Layout
    letters: str
    role: Role
    kind: Kind = "blocked"
    image: tuple[int, ...] | None = None
    sums: Sums | None = None

    def __post_init__(self) -> None:
        """Check the axes of an image."""
        if self.image is None:
            return
        if not 2 <= len(self.image) <= 4 or sum(self.image) != len(self.layout.digits):
            raise GrammarError(
                "|", "one bar cuts pixels and components, two rows, columns and components, three "
                "layers, rows, columns and components"
            )  # fmt: skip
        last = self.parts()[-1]
        count = prod(d.size for d in last if d.size is not None)
        if count not in (1, 2, 4):
            raise GrammarError(
                "|", f"a pixel of {count} elements: it has 1, 2 or 4 components, behind the last "
                f"bar, of one element each; several elements in a component are no digits"
            )  # fmt: skip

    def parts(self) -> list[tuple[Digit, ...]]:
        """The digits of each axis of an image; of a buffer all of them."""
        rest = iter(self.layout.digits)
        return [tuple(islice(rest, n)) for n in self.image or (len(self.layout.digits),)]


class GrammarError(Exception):
    """A name does not follow the grammar; ``token`` is the part at fault."""

    def __init__(self, token: str, reason: str) -> None:
        super().__init__(f"{token!r}: {reason}")
        self.token = token


def order_of(letters: str, *, cldnn: bool = True) -> tuple[str, Role] | None:
    """The logical order of the dimensions that letters name, and what they are for.

    ``a b c ...``, the orders of oneDNN's names, or some of their letters, and, unless ``cldnn`` is
    false, clDNN's; None for others.
    """
    seen = sorted(letters)
    if seen == list(ABSTRACT[: len(seen)]):
        return ABSTRACT[: len(seen)], "generic"
    known = next(((o, r) for o, r in _DOMAIN_ORDERS.items() if sorted(o) == seen), None)
    for order, role in (_ONEDNN_PARTS | (_CLDNN_PARTS if cldnn else {})).items():
        if known is None and set(seen) <= set(order) and len(set(seen)) == len(seen):
            known = "".join(c for c in order if c in seen), role
    return known


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
