"""A `Picture` as SVG: cells in the order of memory, coloured by the blocked dimension's index."""

from __future__ import annotations

import os
from abc import ABC, abstractmethod
from collections.abc import Iterator, Sequence
from pathlib import Path

from ..errors import Error
from ..formats.digits import Placed
from .drawing import Box, Cell, Picture, Row
from .elements import INK, MONO, SANS, SOFT, document, rect_at, text_at
from .words import formula

_LINE = "#ffffff"
# Light enough for dark text, and told apart in grey as well as in colour.
_STOPS = ("#7aa7f0", "#67cfd3", "#93d67b", "#f6dc63", "#f6a15e", "#ee7f9d", "#b78ceb")
_GROUPS = (("boxes", "#e4e9ef"), ("rows", "#cfd9e6"), ("columns", "#b5c5da"))
_CELL, _GAP, _MARGIN, _HEAD = 26, 28, 32, 172
_WIDTH = 1400
_PATTERN = (
    '<defs><pattern id="padding" width="6" height="6" patternUnits="userSpaceOnUse" '
    'patternTransform="rotate(45)"><rect width="6" height="6" fill="#edf0f3"/>'
    '<rect width="2" height="6" fill="#cdd4db"/></pattern></defs>'
)


class Svg(ABC):
    """What is shown in notebooks and saved: the text of an SVG file, ``svg``."""

    @property
    @abstractmethod
    def svg(self) -> str:
        """The text of an SVG file."""

    def _repr_svg_(self) -> str:
        return self.svg

    def save(self, file: str | os.PathLike[str]) -> None:
        """Write the picture as SVG. Raises `Error` where the file cannot be written."""
        try:
            Path(file).write_text(self.svg, encoding="utf-8")
        except OSError as error:
            raise Error(f"cannot write {file}: {error.strerror}") from error


def svg(drawn: Picture) -> str:
    """The picture as the text of an SVG file."""
    body: list[str] = []
    width, height = _place_boxes(drawn, body)
    top = [*_header(drawn), *_digits(drawn)]
    legend = _legend(drawn, height)
    line = max(_digits_width(drawn) + 80, 8 * len(_subtitle(drawn)))
    width = max(width, 720, line + 2 * _MARGIN)
    height += 52
    return document(width, height, MONO, 12, _PATTERN, *top, *body, *legend)


# --- title and digits -----------------------------------------------------------------------------


def _header(drawn: Picture) -> Iterator[str]:
    style = {"font_family": SANS, "fill": INK}
    yield text_at(_MARGIN, 44, str(drawn.desc.format), **style, font_size=24, font_weight="bold")
    yield text_at(_MARGIN, 68, _subtitle(drawn), font_size=13, fill=SOFT)


def _subtitle(drawn: Picture) -> str:
    return f"{drawn.desc}: {drawn.summary}"


def _pills(drawn: Picture) -> Iterator[tuple[str, str, Placed, str, float]]:
    """For each digit that matters: its group, colour, itself, its text and width."""
    for group, colour in _GROUPS:
        for p in getattr(drawn.fold, group):
            text = formula(drawn.desc.format, p.digit, drawn.desc)
            yield group, colour, p, text, max(7.3 * len(text), 6.2 * len(_size(p))) + 20


def _size(p: Placed) -> str:
    return f"{p.size} by {p.stride}"


def _digits_width(drawn: Picture) -> float:
    return sum(width + 6 for *_, width in _pills(drawn))


def _digits(drawn: Picture) -> Iterator[str]:
    """The digits as a strip, outermost left, grouped into what makes boxes, rows and columns."""
    x, last = float(_MARGIN), ""
    for group, colour, p, text, width in _pills(drawn):
        if group != last:
            yield text_at(x, 97, group, font_size=11, font_family=SANS, fill=SOFT)
        last = group
        yield rect_at(x, 104, width, 26, colour, rx=6)
        yield text_at(x + width / 2, 121, text, text_anchor="middle", fill=INK)
        yield text_at(x + width / 2, 144, _size(p), text_anchor="middle", font_size=10, fill=SOFT)
        x += width + 6
    if last:
        yield text_at(x + 6, 144, "size by stride", font_size=10, font_family=SANS, fill=SOFT)


# --- boxes ----------------------------------------------------------------------------------------


def _place_boxes(drawn: Picture, body: list[str]) -> tuple[float, float]:
    """Put the boxes in lines, left to right; the width and height they need."""
    cell, labels = _cell_width(drawn), _labels_width(drawn)
    x, y, tallest, widest = float(_MARGIN), float(_HEAD), 0.0, 0.0
    for box in drawn.boxes:
        width, height = _box_size(box, cell, labels)
        if x > _MARGIN and x + width > _WIDTH - _MARGIN:
            x, y, tallest = float(_MARGIN), y + tallest + _GAP, 0.0
        if isinstance(box, int):
            body.append(text_at(x, y + 39, _left_out(box), font_family=SANS, fill=SOFT))
        else:
            body += _box(drawn, box, x + labels, y, cell)
        x += width + _GAP
        tallest, widest = max(tallest, height), max(widest, x - _GAP + _MARGIN)
    return widest, y + tallest + _GAP


def _rows(drawn: Picture) -> Iterator[Row]:
    boxes = [box for box in drawn.boxes if isinstance(box, Box)]
    return (row for box in boxes for row in box.rows if row)


def _cell_width(drawn: Picture) -> float:
    texts = [cell.text for row in _rows(drawn) for cell in row.cells if cell]
    return max([34.0, *(7.3 * len(text) + 10 for text in texts)])


def _labels_width(drawn: Picture) -> float:
    return max((6.7 * len(_row_label(row)) for row in _rows(drawn)), default=0.0) + 10


def _row_label(row: Row) -> str:
    return f"{row.label} @{row.offset}".strip()


def _box_size(box: Box | int, cell: float, labels: float) -> tuple[float, float]:
    if isinstance(box, int):
        return 7.3 * len(_left_out(box)), 2.0 * _CELL
    columns = max(len(row.cells) for row in box.rows if row)
    return labels + max(columns * cell, 7.5 * len(box.title)), 22.0 + _CELL * len(box.rows)


def _left_out(count: int) -> str:
    return f"… {count} more box{'es' * (count != 1)} …"


def _box(drawn: Picture, box: Box, x: float, y: float, cell: float) -> list[str]:
    """A box whose first cell starts at ``x``; the labels of its rows stand left of that."""
    parts = [text_at(x, y + 13, box.title or "all of it", font_weight="bold", fill=INK)]
    for k, row in enumerate(box.rows):
        top = y + 22 + _CELL * k
        if row is None:
            parts.append(text_at(x + 8, top + 17, "⋮", fill=SOFT))
            continue
        style = {"text_anchor": "end", "font_size": 11, "fill": SOFT}
        parts.append(text_at(x - 8, top + 17, _row_label(row), **style))
        parts += _row(drawn, row, x, top, cell)
    return parts


def _row(drawn: Picture, row: Row, x: float, y: float, width: float) -> Iterator[str]:
    for k, cell in enumerate(row.cells):
        left = x + k * width
        if cell is None:
            yield text_at(left + width / 2, y + 17, "…", text_anchor="middle", fill=SOFT)
            continue
        fill = "url(#padding)" if cell.index is None else colour(drawn, cell)
        yield rect_at(left, y, width, _CELL, fill, stroke=_LINE, stroke_width=1.5, rx=3)
        if cell.index is not None:
            yield text_at(left + width / 2, y + 17, cell.text, text_anchor="middle", fill=INK)


# --- colour ---------------------------------------------------------------------------------------


def coloured_dims(drawn: Picture) -> tuple[int, int | None]:
    """The dimension that the hue stands for, and a second blocked one for the lightness.

    The innermost blocks' dimensions; where nothing is blocked the channels, so that the picture of
    a plain layout can be compared with that of a blocked one.
    """
    fmt = drawn.desc.format
    blocked = [d.digit.dims[-1] for d in reversed(drawn.desc.placed) if d.fixed_size]
    first = blocked[0] if blocked else min(1, fmt.ndims - 1)
    second = next((d for d in blocked if d != first), None)
    return first, second


def colour(drawn: Picture, cell: Cell) -> str:
    """The colour of an element."""
    first, second = coloured_dims(drawn)
    index, dims = cell.index or (), drawn.desc.dims
    mixed = _gradient(index[first] / max(dims[first] - 1, 1))
    if second is not None:
        mixed = _mix(mixed, (255.0, 255.0, 255.0), 0.55 * index[second] / max(dims[second] - 1, 1))
    return _hex(mixed)


def _gradient(at: float) -> Sequence[float]:
    """The colour at a place from 0 to 1 between the stops."""
    scaled = at * (len(_STOPS) - 1)
    k = min(int(scaled), len(_STOPS) - 2)
    return _mix(_rgb(_STOPS[k]), _rgb(_STOPS[k + 1]), scaled - k)


def _hex(channels: Sequence[float]) -> str:
    return "#" + "".join(f"{round(channel):02x}" for channel in channels)


def _rgb(text: str) -> Sequence[float]:
    return [int(text[k : k + 2], 16) for k in (1, 3, 5)]


def _mix(a: Sequence[float], b: Sequence[float], share: float) -> Sequence[float]:
    return [(1 - share) * p + share * q for p, q in zip(a, b, strict=True)]


def _legend(drawn: Picture, y: float) -> Iterator[str]:
    if not drawn.boxes:
        return
    first, second = coloured_dims(drawn)
    letters, dims = drawn.desc.format.dims, drawn.desc.dims
    style = {"font_family": SANS, "fill": SOFT}
    steps = min(dims[first], 17)
    for k in range(steps):
        yield rect_at(_MARGIN + 12 * k, y, 12.5, 16, _hex(_gradient(k / max(steps - 1, 1))))
    text = f"{letters[first]} = 0" + f" … {dims[first] - 1}" * (dims[first] > 1)
    if second is not None:
        text += f", lighter with growing {letters[second]}"
    x = _MARGIN + 12.0 * steps + 10
    yield text_at(x, y + 13, text, **style)
    x += 7.3 * len(text) + 24
    if drawn.has_padding:
        yield rect_at(x, y, 26, 16, "url(#padding)")
        yield text_at(x + 34, y + 13, "padding, always zero", **style)
        x += 190
    yield text_at(x, y + 13, "@ offset in elements", **style)
