"""The meaning of letters, tokens and digits in words, for the commands and the pictures."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence

from ..formats import Digit, Format
from ..formats.digits import RUNTIME, Placed, offset_expr
from ..formats.expr import Expr, Var
from ..formats.registry import DIGITS, MISNAMED, RENAMED
from ..formats.tags import is_short
from ..formats.text import is_digits
from ..tensors.desc import MemoryDesc

_ONEDNN = {
    "n": "batch",
    "c": "channels",
    "d": "depth",
    "h": "height",
    "w": "width",
    "x": "the only dimension",
    "g": "groups",
    "o": "output channels",
    "i": "input channels",
}
_CLDNN = {
    "b": "batch",
    "f": "features (channels)",
    "r": "region of interest",
    "v": "6th spatial dimension",
    "u": "5th spatial dimension",
    "w": "4th spatial dimension",
    "z": "depth",
    "y": "height",
    "x": "width",
    "g": "groups",
    "o": "output channels",
    "i": "input channels",
}
_RNN = {
    "l": "layers",
    "d": "directions (2 for a bidirectional network)",
    "t": "time steps",
    "n": "batch",
    "c": "channels",
    "i": "input channels",
    "g": "gates, in oneDNN's order: LSTM i f c o (input, forget, candidate, output), "
    "GRU u r o (update, reset, output), plain RNN one",
    "o": "output channels",
}


def dimension_words(fmt: Format) -> tuple[str, ...]:
    """The meaning of each logical dimension."""
    if fmt.name == "nv12":
        return "batch", "height", "width", "channels: 1 for luma, 2 for chroma"
    if fmt.role == "generic" and fmt.letters != "x":
        return tuple(f"dimension {k}" for k in range(fmt.ndims))
    if fmt.role == "rnn":
        return tuple(_RNN[c] for c in fmt.letters)
    words = _ONEDNN if _in_onednn_letters(fmt) else _CLDNN
    return tuple(words[c] for c in fmt.letters)


def _in_onednn_letters(fmt: Format) -> bool:
    """Whether the letters are oneDNN's dimensions; w is the width only where it comes last.

    Not the name: digits that a tag has, too, have its name, and letters of their own.
    """
    if fmt.role in ("generic", "rnn"):
        return True
    if set(fmt.letters) - set(_ONEDNN):
        return False
    domain = set(fmt.letters) & set("nch") or fmt.letters.endswith("w")
    return bool(domain) or any(c.isupper() for c in fmt.name)


def spelled(fmt: Format) -> str:
    """The name to explain token by token: the format's own, or the one it is an alias of."""
    name = fmt.name
    while name not in DIGITS and (name in RENAMED or name in MISNAMED):
        name = RENAMED.get(name) or MISNAMED[name]
    return name


# --- digits ---------------------------------------------------------------------------------------


def formula(fmt: Format, digit: Digit, desc: MemoryDesc | None = None) -> str:
    """A digit's value as a formula of the letters: ``f % 16``, ``(y * X + x) / 4``.

    ``/`` rounds down. Capital letters are padded extents; with a descriptor there are numbers for
    them, and indices count from the start of the padding.
    """
    indices: list[Expr] = [Var(c) for c in fmt.letters]
    extents: Sequence[Expr | int] = [Var(c.upper()) for c in fmt.letters]
    if desc is not None:
        indices = [i + lower for i, lower in zip(indices, desc.padded_offsets, strict=True)]
        extents = known_extents(desc)
    return str(offset_expr([Placed(digit, digit.size or 0, 1)], indices, extents))


def known_extents(desc: MemoryDesc) -> list[Expr | int]:
    """The padded extents; capital letters for those that are known at execution only."""
    extents = zip(desc.format.letters, desc.padded_dims, strict=True)
    return [Var(c.upper()) if n == RUNTIME else n for c, n in extents]


def size_text(n: int) -> str:
    """A size as descriptors print it: ``*`` where it is known at execution only."""
    return "*" if n == RUNTIME else str(n)


def digit_labels(fmt: Format) -> tuple[str, ...]:
    """A short name for each digit: ``fsv`` of ``fsv16``; its formula where no token is its own."""
    own = is_list(fmt) or named(fmt).letters != fmt.letters
    tokens = [] if own else _with_digits(fmt)
    labels = [re.sub(r"^([a-z]+)\d+$", r"\1", text) for text, digit in tokens if digit]
    if len(set(labels)) < len(fmt.digits):
        labels = [formula(fmt, d).replace(" ", "") for d in fmt.digits]
    return tuple(labels)


_KIND_WORDS = {
    "image": "pixels of an OpenCL image, in the order of the digits: row, column, channel",
    "rnn_packed": "recurrent weights in panels of columns, in the order of the digits",
    "wino": "Winograd-transformed values, F(outputs x filter taps), in the order of the digits",
}


def is_list(fmt: Format) -> bool:
    """Whether the name is the list of digits itself, with bars or as text."""
    return is_digits(fmt.name) or is_short(fmt.name)


def named(fmt: Format) -> Format:
    """The format with the letters of its name: those of a list of digits may be its user's."""
    return fmt if fmt.layout is None else Format(fmt.name)


_AXES = {2: ("pixel", "component"), 3: ("row", "column", "component"),
         4: ("layer", "row", "column", "component")}  # fmt: skip


def axes(fmt: Format) -> list[str]:
    """Of each digit of an image the axis that it counts; empty for a buffer."""
    counts = fmt.image or ()
    return [
        word for word, n in zip(_AXES.get(len(counts), ()), counts, strict=True) for _ in range(n)
    ]


# --- tokens ---------------------------------------------------------------------------------------

_SUFFIX = re.compile(r"__a([a-z])(\d+)|_swizzled_by_(\d+)|_rotate_180|:i4")
_CLDNN_BLOCK = re.compile(r"([a-z]+)s([av])(\d+)")


def split(fmt: Format) -> list[str]:
    """The tokens of the name, ``b _ fs _ y x _ fsv16``; joined they give `spelled` back."""
    name = spelled(fmt)
    if fmt.kind in _KIND_WORDS:
        return [name]
    if _in_onednn_letters(fmt):
        return re.findall(r"\d+[a-z]|[A-Za-z]", name)
    fused = {m[1] + "s(?=_)" for m in _CLDNN_BLOCK.finditer(name) if len(m[1]) > 1}
    patterns = [_SUFFIX.pattern, r"(?<=_)[a-z]+s[av]\d+", *sorted(fused), r"[a-z]s?\d*", "_"]
    return [m[0] for m in re.finditer("|".join(patterns), name)]


def token_words(fmt: Format) -> Iterator[tuple[str, str]]:
    """Each token of the name with its meaning, in the order of the name: outermost first."""
    fmt = named(fmt)
    for text, digit in _with_digits(fmt):
        yield text.lstrip("_:"), _meaning(fmt, text, digit)


def _with_digits(fmt: Format) -> list[tuple[str, Digit | None]]:
    """The tokens with the digits they stand for; None for suffixes, and where digits differ."""
    tokens = [t for t in split(fmt) if t != "_"]
    plain = [t for t in tokens if not _SUFFIX.fullmatch(t)]
    swizzled = any("swizzled" in t or t == ":i4" for t in tokens)
    digits: list[Digit | None] = list(fmt.digits)
    if swizzled or len(plain) != len(digits):
        digits = [None] * len(plain)
    return [*zip(plain, digits, strict=True), *((t, None) for t in tokens if t not in plain)]


def _meaning(fmt: Format, text: str, digit: Digit | None) -> str:
    if suffix := _SUFFIX.fullmatch(text):
        return _suffix_words(suffix)
    if fmt.kind in _KIND_WORDS:
        return _KIND_WORDS[fmt.kind]
    where = f": {formula(fmt, digit)}" if digit else ""
    if block := _CLDNN_BLOCK.fullmatch(text):
        index, kind, size = block.groups()
        many = "neighbours" if digit else "values"
        if kind == "a":
            return f"array of {size} smaller blocks along {index}, inside a slice{where}"
        return f"vector of a slice: {size} {many} along {index} lie together{where}"
    if text[0].isdigit():
        return f"block: {text[:-1]} neighbours along {text[-1]} lie together{where}"
    return _order_words(fmt, text, where)


def _order_words(fmt: Format, text: str, where: str) -> str:
    """The meaning of a token of the order: ``b``, ``fs``, ``C``, ``yxs``, ``x8``."""
    match = re.fullmatch(r"([A-Za-z]+?)(s?)(\d*)", text)
    index, sliced, number = match.groups() if match else (text, "", "")
    if len(index) > 1:
        return f"{' and '.join(index)} fused into one index, in slices{where}"
    word = _word(fmt, index.lower())
    if sliced:
        return f"slices of {word}{where}"
    if index.isupper():
        return f"{word}; the capital says blocked, this is the number of the block{where}"
    return word + _plain_words(fmt, fmt.letters.index(index), number, where)


def _plain_words(fmt: Format, dim: int, number: str, where: str) -> str:
    """What is to be said of a dimension that has no slice: little, mostly nothing."""
    if number and fmt.structure.align[dim] == int(number):
        return f"; rounded up to a multiple of {number}, but not split"
    mine = [d for d in fmt.digits if dim in d.dims]
    blocks = f"; in blocks of {number}" if number else ""
    if len(mine[0].dims) > 1:
        return "; fused with its neighbour into one index" + blocks
    return f", counted from the far end{where}" if mine[0].flip else blocks


def _word(fmt: Format, letter: str) -> str:
    """A dimension's meaning without its details."""
    return re.split(r"[,(]", dimension_words(fmt)[fmt.letters.index(letter)])[0].strip()


def _suffix_words(suffix: re.Match[str]) -> str:
    letter, multiple, piles = suffix.groups()
    if suffix[0] == ":i4":
        return "elements of 4 bits, for which the same name means another order of digits"
    if letter:
        return f"{letter} is rounded up to a multiple of {multiple} without being split"
    if piles:
        return (
            f"the block of o is dealt like cards onto {piles} piles: o % {piles} is the outer "
            f"digit, o / {piles} the inner one"
        )
    return "the filter is turned by 180 degrees: its spatial indices count from the far end"


def columns(rows: Sequence[Sequence[str]], indent: str = "") -> Iterator[str]:
    """The rows as text in columns, each as wide as its widest entry."""
    widths = [max(map(len, column)) for column in zip(*rows, strict=True)]
    for entries in rows:
        cells = [entry.ljust(width) for entry, width in zip(entries, widths, strict=True)]
        yield indent + "  ".join(cells).rstrip()
