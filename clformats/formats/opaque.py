"""Weight formats that DNNL does not document: Winograd-transformed and packed recurrent ones.

The four Winograd formats are named after their loops, outermost first: ``a`` twice for the indices
u, v of the transform, ``O`` and ``I`` for blocks of output and input channels, ``o`` and ``i`` for
the channels in a block, and ``B`` where the letter before or after it is a block of blocks. The
sizes of the inner loops follow, in the order of their letters, as in oneDNN's tags::

    wino_wei_aaOIoi_16o4i             u  v  o/16  i/4  o%16  i%4
    wino_wei_aaOio_16i16o             u  v  o/16  i/16  i%16  o%16
    wino_wei_aaOBiOo_16i4O16o         u  v  o/64  i/16  i%16  (o/16)%4  o%16
    wino_wei_OBaaIBOIio_4O2I16i16o    o/64  u  v  i/32  (o/16)%4  (i/16)%2  i%16  o%16

``wino_wei_aaOIoi`` and ``wino_wei_aaOio`` without sizes mean the sizes above, DNNL's on AVX-512.
For the other two DNNL chooses the sizes for each convolution, so they must be given.

DNNL's packing of recurrent weights is not documented. The packing of ``ldigo_p`` and ``ldgoi_p`` is
this library's own: for each layer, direction and gate a matrix in panels of 16 columns, each panel
row by row. Rows and columns of ``ldigo_p`` are input and output channels, of ``ldgoi_p`` the other
way round. Gates follow each other, so that the *parts* which DNNL packs separately (GRU: two gates,
then one) are contiguous.
"""

from __future__ import annotations

import re
from dataclasses import replace
from math import prod

from ..errors import InvalidFormat
from . import text
from .digits import Digit, Layout
from .names import Parsed
from .sums import Sums

_LETTERS = "oihw"
_OUTER = {"aaOIoi": "hwoi", "aaOio": "hwoi", "aaOBiOo": "hwoi", "OBaaIBOIio": "ohwi"}
INNER = {"aaOIoi": "oi", "aaOio": "io", "aaOBiOo": "iOo", "OBaaIBOIio": "OIio"}
"""The inner loops of each Winograd format, capitals for blocks of blocks."""
_USUAL = {"aaOIoi": "16o4i", "aaOio": "16i16o"}
_EXAMPLE = _USUAL | {"aaOBiOo": "16i4O16o", "OBaaIBOIio": "4O2I16i16o"}

_WINOGRAD_SUMS = Sums(dims=(2, 3, 0), over=(1,), factor=-128, dtype="s32", none_at=((2, 1), (3, 1)))
_RNN_SUMS = Sums(dims=(0, 1, 3, 4), over=(2,), factor=1, dtype="f32", padded=False)

PANEL = 16
"""Columns of a panel of packed recurrent weights."""
_PACKED = {
    "ldigo_p": (f"l d g o/{PANEL} i o%{PANEL}", _RNN_SUMS),
    "ldgoi_p": (f"l d g i/{PANEL} o i%{PANEL}", None),
}


def is_opaque(name: str) -> bool:
    """Whether a name is one of these, to be read here."""
    return name in _PACKED or name.startswith("wino_wei_")


NAMES = (*(f"wino_wei_{loops}_{sizes}" for loops, sizes in _EXAMPLE.items()), *_PACKED)
"""The names that `clformats.formats` lists: each format once, with sizes that DNNL uses."""

NOTES = {
    **dict.fromkeys(_PACKED, "this library's packing, DNNL documents none; see cf.RnnPackedDesc"),
    **dict.fromkeys(
        (*NAMES[: len(INNER)], *(f"wino_wei_{loops}" for loops in _USUAL)),
        "h and w are the indices u and v of transformed values: see cf.winograd",
    ),
}


def parse_opaque(name: str) -> Parsed | None:
    """The meaning of such a name; None for other names. Raises `InvalidFormat` for wrong sizes."""
    if name in _PACKED:
        digits, sums = _PACKED[name]
        return replace(text.read(digits), kind="rnn_packed", sums=sums)
    if not is_opaque(name):
        return None
    loops, sizes = winograd_sizes(name)
    step = {c: sizes[c] * sizes.get(c.upper(), 1) for c in "oi"}
    outer = [Digit(_LETTERS.index(c), None, step.get(c, 1)) for c in _OUTER[loops]]
    inner = [
        Digit(_LETTERS.index(c.lower()), sizes[c], sizes[c.lower()] if c.isupper() else 1)
        for c in INNER[loops]
        if sizes[c] > 1
    ]
    sums = _WINOGRAD_SUMS if loops == "aaOIoi" else None
    return Parsed(Layout(4, (*outer, *inner)), _LETTERS, "weights", "wino", sums=sums)


def winograd_sizes(name: str) -> tuple[str, dict[str, int]]:
    """The loops of a Winograd format, such as ``aaOIoi``, and the size of each inner loop."""
    loops, _, text = name.removeprefix("wino_wei_").partition("_")
    if loops not in INNER:
        raise InvalidFormat(
            f"unknown format {name!r}: expected wino_wei_ and one of {', '.join(INNER)}"
        )
    text = text or _USUAL.get(loops, "")
    found = re.findall(r"([1-9][0-9]*)([OIoi])", text)
    fits = "".join(c for _, c in found) == INNER[loops]
    if not fits or "".join(map("".join, found)) != text or prod(int(n) for n, _ in found) > 2**20:
        raise InvalidFormat(
            f"{name!r} lacks the sizes of its inner loops {' '.join(INNER[loops])}: expected them "
            f"in this order, such as wino_wei_{loops}_{_EXAMPLE[loops]}"
        )
    return loops, {c: int(n) for n, c in found}


def winograd_name(loops: str, sizes: dict[str, int]) -> str:
    """The name with these sizes: the inverse of `winograd_sizes`."""
    return f"wino_wei_{loops}_" + "".join(f"{sizes[c]}{c}" for c in INNER[loops])
