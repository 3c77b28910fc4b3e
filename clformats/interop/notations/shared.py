"""Common to all notations: the features that a layout needs, and the format of a layout."""

from __future__ import annotations

from collections.abc import Collection, Iterator
from contextlib import suppress
from functools import cache

from ...errors import Unsupported
from ...formats import Digit, Format, Layout, formats, names, tags

FEATURES = ("tail", "flip", "align", "fused", "between", "swizzle")
"""What a layout may have beyond whole dimensions followed by blocks; see `_features`."""


def need(fmt: Format, notation: str, can: Collection[str] = ()) -> Layout:
    """The layout of ``fmt``, if the notation can express it.

    ``can`` names the features of `_features` that it has beside plain blocks. Raises `Unsupported`.
    """
    if fmt.layout is None:
        raise no_notation(fmt, notation, "it has no layout yet")
    for feature, reason in _features(fmt):
        if feature not in can:
            raise no_notation(fmt, notation, reason)
    return fmt.layout


def no_notation(fmt: Format, notation: str, reason: str) -> Unsupported:
    """The error for a format that the notation cannot express."""
    return Unsupported("NO_NOTATION", f"{notation} has no name for {fmt}: {reason}")


def no_format(text: str, reason: str) -> Unsupported:
    """The error for a text that is legal in its notation, but no format here."""
    return Unsupported("NO_FORMAT", f"no format of clformats is {text}: {reason}")


def _features(fmt: Format) -> Iterator[tuple[str, str]]:
    """What the layout has beyond whole dimensions followed by blocks: feature and reason."""
    layout = fmt.structure
    if fmt.kind != "blocked":
        yield "kind", "it holds transformed or packed values, or pixels of an image"
    if layout.tail:
        yield "tail", "its last column has another order"
    if any(d.flip for d in layout.digits):
        yield "flip", "it counts an index from the far end"
    if aligned := [c for c, n in zip(fmt.letters, layout.align, strict=True) if n > 1]:
        yield "align", f"it rounds {' '.join(aligned)} up without splitting it"
    if any(len(d.dims) > 1 for d in layout.digits):
        yield "fused", "it splits two dimensions as one index"
    if layout.digits != layout.outer + layout.inner:
        yield "between", "a block stands before the open part of a dimension"
    if any(not _in_order(layout, d) for d in layout.outer):
        yield "swizzle", "it deals a block out like cards: its digits are not in their order"


def _in_order(layout: Layout, outer: Digit) -> bool:
    steps = [d.step for d in layout.digits if d.index == outer.index]
    return steps == sorted(steps, reverse=True)


def format_of(layout: Layout, letters: str = "") -> Format:
    """The format of a layout, by name in these letters, by tag, as listed, or by its digits.

    The letters of the dimensions distinguish data and weights.
    """
    if layout.is_tag:
        named = (Format(name) for name in _spelled(layout, letters))
        return next((f for f in named if f.layout == layout), Format.from_layout(layout))
    return _listed().get(layout) or Format.from_layout(layout)


def _spelled(layout: Layout, letters: str) -> Iterator[str]:
    """The names of a layout in these letters, where a notation has them: clDNN's, oneDNN's."""
    if len(letters) != layout.ndims:
        return
    for printer, reader in _OWN:
        name = printer(layout, letters) or ""
        with suppress(names.GrammarError):
            if reader(name).letters == letters:
                yield name


_OWN = (
    (names.print_cldnn, names.parse_cldnn),
    (tags.print_onednn, tags.parse_onednn),
)


@cache
def _listed() -> dict[Layout, Format]:
    return {fmt.structure: fmt for fmt in reversed(tuple(formats())) if fmt.kind == "blocked"}
