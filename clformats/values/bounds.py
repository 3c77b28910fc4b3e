"""How far from zero a formula's value may be, whatever the elements are."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from math import inf

from .formula import Formula

FARTHEST = 2.0**100
"""What may be further from zero has no bound: a device may have an infinity there."""
ROUNDED_BELOW = 2.0**21
"""Half of the distance from zero up to which adding 1.5 * 2**23 to an f32 rounds it."""
HELD_WITHIN = 2.0**8
"""A factor further from zero takes every whole number but 0 out of the range of 8-bit integers."""
LARGEST_SHORT = 2.0**15 - 1
"""The largest distance from zero that an integer of 16 bits has on both sides."""
Range = tuple[float, float]
"""The least and the largest distance from zero."""
_UNKNOWN: Range = (0.0, inf)
_WITHIN = {"?:", "min", "max", "fmin", "fmax", "clamp", "fabs", "trunc"}
"""What is not further from zero than all of its parts."""
_WHOLE = {"+", "-", "*", "?:", "min", "max", "fmin", "fmax", "clamp"}
"""What makes whole numbers of whole numbers."""


def is_small(f: Formula, ranges: Mapping[str, Range]) -> bool:
    """Whether ``f`` is a number within `ROUNDED_BELOW` of zero; ``ranges``: see `largest`."""
    return largest(f, ranges) <= ROUNDED_BELOW


def is_whole(f: Formula, ranges: Mapping[str, Range]) -> bool:
    """Whether each step of ``f`` is a whole number of 16 bits: integers compute the same.

    ``ranges`` are those of variables that are whole numbers.
    """
    whole = f.text in _WHOLE or f.is_condition if f.parts else f.kind == "name"
    whole = whole or (f.kind == "number" and float(f.text).is_integer())
    return (
        whole and largest(f, ranges) <= LARGEST_SHORT and all(is_whole(p, ranges) for p in f.parts)
    )


def held(f: Formula, ranges: Mapping[str, Range]) -> str:
    """The factor, of which nothing is known, that may be clamped to `HELD_WITHIN` of zero.

    It multiplies a whole number. In 8-bit integers all products but 0 with what is further from
    zero saturate, and so do those with the limit; NaN as a factor makes 0 of everything, as 0 does.
    Empty where ``f`` is no such product. ``ranges`` are those of variables that are whole.

    >>> from .formula import parse
    >>> held(parse("(x - 3.f) * s", ("x", "s")), {"x": (0.0, 128.0)})
    's'
    """
    if f.text != "*":
        return ""
    whole, factor = f.parts
    is_unknown = factor.kind == "name" and factor.text not in ranges
    return factor.text if is_unknown and is_whole(whole, ranges) else ""


def largest(f: Formula, ranges: Mapping[str, Range]) -> float:
    """The largest distance from zero of ``f``; infinite where it may be infinite, or no number.

    ``ranges`` are those of variables; of others nothing is known. Steps are taken to be exact:
    rounding adds a millionth at the most with each.

    >>> from .formula import parse
    >>> largest(parse("x * 0.5f + 3.f", ("x",)), {"x": (0, 128)})
    67.0
    """
    found = _of_parts(f, [largest(p, ranges) for p in f.parts], ranges)
    return found if found <= FARTHEST else inf


def _of_parts(f: Formula, parts: Sequence[float], ranges: Mapping[str, Range]) -> float:
    if not parts:
        return _range(f, ranges)[1]
    if inf in parts:
        return inf
    if f.text in ("+", "-"):
        return sum(parts)
    if f.text == "*":
        return parts[0] * parts[1]
    if f.text == "/":
        least = _range(f.parts[1], ranges)[0]
        return parts[0] / least if least >= 1 / FARTHEST else inf  # smaller ones may count as zero
    return max(parts) if f.text in _WITHIN else 1.0 if f.is_condition else inf


def _range(f: Formula, ranges: Mapping[str, Range]) -> Range:
    if f.kind == "number":
        return abs(float(f.text)), abs(float(f.text))
    return ranges.get(f.text, _UNKNOWN) if f.kind == "name" else _UNKNOWN
