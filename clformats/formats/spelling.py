"""The name of a list of digits: the shortest that is known, else the digits as text."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import suppress
from functools import cache

from ..errors import InvalidFormat
from . import registry, text
from .digits import Layout
from .names import Parsed, cldnn_letters, print_cldnn
from .tags import print_onednn

_AS_ONEDNN = str.maketrans("bfzyx", "ncdhw")


def spelled(p: Parsed) -> str:
    """The shortest name that means these digits for these dimensions, else the digits."""
    for name in sorted(_names(p), key=len):
        with suppress(InvalidFormat):
            found = registry.parse(name)
            if (found.layout, found.kind, found.image) == (p.layout, p.kind, p.image):
                return name
    return text.written(p)


def _names(p: Parsed) -> Iterator[str]:
    """Names that may mean it; one that keeps the letters stands before others of its length."""
    if p.kind == "image":
        images = (n for n in registry.listed("cldnn") if "|" in registry.DIGITS.get(n, ""))
        yield from (n for n in images if registry.parse(n).letters == p.letters)
        return
    roles = (p.role,) if p.role in ("data", "weights") else ("data", "weights")
    if p.role != "generic" or not p.layout.is_tag:
        known = (by_structure().get((p.layout, r, p.letters.startswith("g"))) for r in roles)
        yield from (n for n in known if n)
    if p.role in ("data", "weights"):
        letters = cldnn_letters(len(p.letters), p.role, grouped=p.letters.startswith("g"))
        yield (letters and print_cldnn(p.layout, letters)) or ""
    if p.role != "generic":
        yield print_onednn(p.layout, p.letters.translate(_AS_ONEDNN)) or ""
    yield print_onednn(p.layout) or ""


@cache
def by_structure() -> dict[tuple[Layout, str, bool], str]:
    """Structure, role, grouped -> the current clDNN name."""
    table: dict[tuple[Layout, str, bool], str] = {}
    for name in registry.listed("cldnn"):
        if name not in registry.RENAMED:
            p = registry.parse(name)
            if p.kind == "blocked" and registry.without_bits(name) == name:
                table.setdefault((p.layout, p.role, p.letters.startswith("g")), name)
    return table
