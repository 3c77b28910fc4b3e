"""TVM's layouts: ``NCHW16c``, ``OIHW16i16o``, ``OIHW[4o4i]``.

Grammar (`tvm::tir::Layout`, src/tir/ir/data_layout.cc in TVM's repository)::

    layout  = PRIMAL+ (factor subordinate)*      the order here; TVM allows any mixture
    PRIMAL  = A-Z       one for each dimension, outermost in memory first
    factor subordinate  = 16c: a block of 16 along C; of several blocks the first is the coarsest

It is oneDNN's notation with every dimension in capitals, so each tag has one such name and the
other way round. Square brackets (since 2026) pack several subordinate axes into one axis of the
tensor; the memory stays the same, so they are read and not printed.

Textures are images. The axis separators of a buffer are the bars of a list of digits: ``NCHW4c
axis_separators=[2, 4]`` is ``nC|hw|4c``. A scope cuts by a rule (texture_flatten.cc): the last axis
is the component; of those before the cut of the scope the last is the row, the others the layer:
``NCHW4c scope=global.texture`` is ``nC|h|w|4c``.

A layout of TVM says the order in memory only. The logical order is the field's: N C D H W, G O I D
H W, oneDNN's recurrent orders, or A B C ... where none of these fits. oneDNN's generic tags of 2
to 5 dimensions are printed as data (``aBcd16b`` is ``NCHW16c``).
"""

from __future__ import annotations

import re
from dataclasses import replace
from itertools import accumulate, pairwise

from ...errors import InvalidFormat
from ...formats import Format
from ...formats.names import ABSTRACT, GrammarError
from ...formats.tags import parse_onednn, print_onednn
from .shared import need

LOOKS = r"(?=.*[A-Z])(?:[A-Z]|\d+[a-z]|[\[\]])+"
"""What a text of TVM looks like, right or wrong."""

CUT = r"\s+(axis_separators|scope)=(.*)$"
"""What follows the layout of a texture."""
_SCOPES = {"global.texture": -2, "global.texture-weight": 1, "global.texture-nhwc": 2}
"""Where a scope cuts the axes, from the left, or from the right where negative."""
_AS_DATA = {2: "nc", 3: "ncw", 4: "nchw", 5: "ncdhw"}
_FROM_CLDNN = str.maketrans("bfzyx", "ncdhw")


def parse(text: str) -> Format:
    """Read a TVM layout. Raises `InvalidFormat`, and `Unsupported` for blocks amid dimensions."""
    if cut := re.search(CUT, text):
        return _texture(parse(text[: cut.start()]), cut[1], cut[2])
    bare = re.sub(r"\[((?:\d+[a-z])+)\]", r"\1", text)
    if not re.fullmatch(r"(?:[A-Z]|\d+[a-z])+", bare):
        raise InvalidFormat(
            f"cannot read {text!r} as TVM: expected capitals, and blocks such as 16c or [4o4i]"
        )
    outer = "".join(re.findall("[A-Z]", bare))
    blocked = set(re.findall("[a-z]", bare))
    for letter in sorted(blocked - set(outer.lower())):
        raise InvalidFormat(f"the TVM layout {text!r} splits {letter}, but has no {letter.upper()}")
    return Format(
        re.sub("[A-Z]", lambda m: m[0] if m[0].lower() in blocked else m[0].lower(), bare)
    )


def _texture(fmt: Format, how: str, said: str) -> Format:
    """The image of a buffer's axes, by its separators or by its scope."""
    rank = len(fmt.digits)
    if how == "scope":
        if said not in _SCOPES:
            raise InvalidFormat(f"unknown scope {said!r}: expected one of {', '.join(_SCOPES)}")
        cut = _SCOPES[said] % rank
        cuts = [cut - 1, cut, rank - 1]
    elif re.fullmatch(r"\[\s*\d+(?:\s*,\s*\d+)*\s*\]", said):
        cuts = [int(n) for n in re.findall(r"\d+", said)]
    else:
        raise InvalidFormat(f"cannot read the axis separators {said!r}: expected [2, 4]")
    if cuts != sorted(cuts) or not 0 <= cuts[0] <= cuts[-1] <= rank or len(cuts) > MOST_CUTS:
        raise InvalidFormat(f"{fmt} has {rank} axes: it cannot be cut at {cuts}")
    counts = tuple(b - a for a, b in pairwise([0, *cuts, rank]))
    try:
        return Format.of(replace(fmt.parsed, kind="image", image=counts))
    except GrammarError as error:
        raise InvalidFormat(f"{fmt} cannot be cut at {cuts}: {error}") from None


MOST_CUTS = 3
"""Layers, rows, columns and components."""


def render(fmt: Format) -> str:
    """Print ``NCHW16c``, of an image with its axis separators. Raises `Unsupported`."""
    if fmt.image:
        plain = Format.of(replace(fmt.parsed, kind="blocked", image=None))
        return f"{render(plain)} axis_separators={list(accumulate(fmt.image))[:-1]}"
    name = print_onednn(need(fmt, "tvm"), _letters(fmt)) or ""
    order = re.sub(r"\d.*", "", name)
    return order.upper() + name[len(order) :]


def _letters(fmt: Format) -> str:
    """TVM's letters for the logical dimensions."""
    if fmt.role == "generic":
        return _AS_DATA.get(fmt.ndims, ABSTRACT)
    letters = fmt.letters.translate(_FROM_CLDNN)
    try:
        parse_onednn(letters)
    except GrammarError:
        return ABSTRACT  # more spatial dimensions than TVM has letters for
    return letters
