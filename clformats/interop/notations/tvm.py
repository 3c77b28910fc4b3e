"""TVM's layouts: ``NCHW16c``, ``OIHW16i16o``, ``OIHW[4o4i]``.

Grammar (`tvm::tir::Layout`, src/tir/ir/data_layout.cc in TVM's repository)::

    layout  = PRIMAL+ (factor subordinate)*      the order here; TVM allows any mixture
    PRIMAL  = A-Z       one for each dimension, outermost in memory first
    factor subordinate  = 16c: a block of 16 along C; of several blocks the first is the coarsest

It is oneDNN's notation with every dimension in capitals, so each tag has one such name and the
other way round. Square brackets (since 2026) pack several subordinate axes into one axis of the
tensor; the memory stays the same, so they are read and not printed.

A layout of TVM says the order in memory only. The logical order is the field's: N C D H W, G O I D
H W, oneDNN's recurrent orders, or A B C ... where none of these fits. oneDNN's generic tags of 2
to 5 dimensions are printed as data (``aBcd16b`` is ``NCHW16c``).
"""

from __future__ import annotations

import re

from ...errors import InvalidFormat
from ...formats import Format
from ...formats.names import ABSTRACT, GrammarError
from ...formats.tags import parse_onednn, print_onednn
from .shared import need

LOOKS = r"(?=.*[A-Z])(?:[A-Z]|\d+[a-z]|[\[\]])+"
"""What a text of TVM looks like, right or wrong."""

_AS_DATA = {2: "nc", 3: "ncw", 4: "nchw", 5: "ncdhw"}
_FROM_CLDNN = str.maketrans("bfzyx", "ncdhw")


def parse(text: str) -> Format:
    """Read a TVM layout. Raises `InvalidFormat`, and `Unsupported` for blocks amid dimensions."""
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


def render(fmt: Format) -> str:
    """Print ``NCHW16c``. Raises `Unsupported`."""
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
