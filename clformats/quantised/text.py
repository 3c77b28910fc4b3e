"""The text of layouts: fields, and for each plane its digits; outermost first.

    q=k/8 n k%8; d=g n                       planes in buffers of their own, dense
    q=4 n k + 1 k/8 n k%8                    two planes: four low bits of a value, and one
    {n k/32 * 18; d=@0; q=@16 k/16%2:4 k%16:8}   records of 18 bytes in one buffer

Letters are n (rows), k (columns), r and g (groups of them, of the field's size) and e (experts),
which stands outermost where a layout does not name it. A digit may have a stride in bits:
``k%16:8``; the letters of a stride stand for extents: ``8n``. ``n^32``: the stride is rounded up
to 32 bits.
``@16``: the first bit. ``q+8``: a code is stored with 8 added, modulo its range.
``(3k+1)/32``: a digit of another index, here the second bit of a stream of values of 3 bits.
"""

from __future__ import annotations

import re
from dataclasses import dataclass

from ..errors import InvalidFormat

_DIGIT = re.compile(
    r"(?:(?P<letter>[enkrg])|\((?P<mul>\d+)(?P<other>[nkrg])(?:\+(?P<add>\d+))?\))"
    r"(?:/(?P<step>[1-9]\d*))?(?:%(?P<size>[1-9]\d*))?(?:\^(?P<round>[1-9]\d*))?"
    r"(?::(?P<stride>\d+[nk]?(?:\+\d+[nk]?)*))?"
)
_PART = re.compile(r"\s*(?P<name>[a-z][a-z0-9_]*)(?P<bias>[+-]\d+)?\s*=(?P<planes>.*)", re.DOTALL)
_PLANE = re.compile(
    r"\s*(?P<bits>\d+)?(?:@(?P<first>\d+[nk]?(?:\+\d+[nk]?)*))?(?P<digits>.*)", re.DOTALL
)
_ITEMS = re.compile(r"\{([^{}]*)\}|([^{};]+)")


@dataclass(frozen=True, slots=True)
class TextDigit:
    """A digit as written; ``stride`` is a text such as ``4+32n``, None where it is dense."""

    letter: str
    step: int = 1
    size: int | None = None
    stride: str | None = None
    rounded: int = 1
    mul: int = 1
    add: int = 0


@dataclass(frozen=True, slots=True)
class TextPlane:
    """A plane as written: ``bits`` None for all of the field's, whose plane ``number`` it is."""

    bits: int | None
    first: str
    digits: tuple[TextDigit, ...]
    number: int


@dataclass(frozen=True, slots=True)
class TextField:
    """A field as written."""

    name: str
    bias: int
    planes: tuple[TextPlane, ...]


@dataclass(frozen=True, slots=True)
class TextBuffer:
    """Fields in one buffer: records of ``nbytes`` under the digits ``outer``, or none of both."""

    fields: tuple[TextField, ...]
    outer: tuple[TextDigit, ...] = ()
    nbytes: int = 0
    shared: bool = False


def read(text: str) -> tuple[TextBuffer, ...]:
    """The buffers of a layout's text. Raises `InvalidFormat`."""
    found = []
    for braced, plain in _ITEMS.findall(text):
        if braced:
            found.append(_shared(braced, text))
        elif plain.strip():
            found.append(TextBuffer((_field(plain, text),)))
    rest = _ITEMS.sub("", text).replace(";", "").strip()
    if rest or not found:
        raise _refused(rest or text, text)
    return tuple(found)


def _shared(braced: str, text: str) -> TextBuffer:
    first, *rest = braced.split(";")
    head = re.fullmatch(r"\s*([^=@]*?)\s*\*\s*(\d+)\s*", first)
    if head is None:
        return TextBuffer(tuple(_field(p, text) for p in braced.split(";")), shared=True)
    outer = tuple(_digit(w, text) for w in head[1].split())
    if int(head[2]) == 0 or any(d.stride or d.size for d in outer):
        raise _refused(first, text)
    return TextBuffer(tuple(_field(p, text) for p in rest), outer, int(head[2]), shared=True)


def _field(part: str, text: str) -> TextField:
    found = _PART.fullmatch(part)
    if found is None:
        raise _refused(part, text)
    parts = re.split(r"\s\+\s", found["planes"])
    planes = tuple(_plane(p, number, text) for number, p in enumerate(parts))
    return TextField(found["name"], int(found["bias"] or 0), planes)


def _plane(plane: str, number: int, text: str) -> TextPlane:
    found = _PLANE.fullmatch(plane)
    if found is None:
        raise _refused(plane, text)
    digits = tuple(_digit(w, text) for w in found["digits"].split())
    if len({d.stride is None for d in digits}) > 1:
        raise InvalidFormat(
            f"{plane.strip()!r} in {text!r}: give a stride to all digits or to none"
        )
    bits = int(found["bits"]) if found["bits"] else None
    return TextPlane(bits, found["first"] or "0", digits, number)


def _digit(word: str, text: str) -> TextDigit:
    found = _DIGIT.fullmatch(word)
    if found is None:
        raise _refused(word, text)
    return TextDigit(
        found["letter"] or found["other"],
        int(found["step"] or 1),
        int(found["size"]) if found["size"] else None,
        found["stride"],
        int(found["round"] or 1),
        int(found["mul"] or 1),
        int(found["add"] or 0),
    )


def _refused(part: str, text: str) -> InvalidFormat:
    return InvalidFormat(
        f"cannot read {part.strip()!r} in the layout {text!r}: expected fields such as "
        f"q=k/8 n k%8, or records such as {{n k/32 * 18; d=@0; q=@16 k%32:4}}"
    )
