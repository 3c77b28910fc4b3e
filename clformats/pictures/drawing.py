"""The picture of a tensor in memory: what it shows, and its text for a terminal.

Memory is one line of elements; a picture folds it three times. The innermost digits make the
*columns* of a row, the next ones the *rows* of a box, all others the *boxes*. Memory order is left
to right, then down, then box by box. `svg` draws the same `Picture` in colour.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from math import prod
from typing import Any

from numpy.typing import NDArray

from ..errors import InvalidDescriptor
from ..formats.digits import Placed
from ..host.packing import places
from ..tensors.desc import MemoryDesc
from .words import digit_labels, formula

PADDING = "░"
ELLIPSIS = "…"


@dataclass(frozen=True)
class Cell:
    """One element in memory; ``index`` is None where it is padding."""

    text: str
    index: tuple[int, ...] | None


@dataclass(frozen=True)
class Row:
    """Elements side by side; None stands for those left out."""

    label: str
    offset: int
    cells: tuple[Cell | None, ...]


@dataclass(frozen=True)
class Box:
    """Rows one under the other; None stands for those left out."""

    title: str
    offset: int
    rows: tuple[Row | None, ...]


@dataclass(frozen=True)
class Fold:
    """How memory is folded: the digits that make boxes, rows and columns, outermost first."""

    boxes: tuple[Placed, ...]
    rows: tuple[Placed, ...]
    columns: tuple[Placed, ...]


@dataclass(frozen=True)
class Picture:
    """What is drawn. Between the boxes a number stands for that many left out."""

    desc: MemoryDesc
    fold: Fold
    boxes: tuple[Box | int, ...]

    @property
    def summary(self) -> str:
        """How much memory there is, and how much of it is padding."""
        elements = places(self.desc)
        text = f"{elements} element{'s' * (elements != 1)} in memory"
        unused = elements - self.desc.nelems
        if unused <= 0:
            return text
        return f"{text}, {unused} of them padding ({100 * unused / elements:.1f} %)"

    @property
    def has_padding(self) -> bool:
        """Whether some of the memory belongs to no element."""
        return places(self.desc) > self.desc.nelems


def picture(
    desc: MemoryDesc, *, boxes: int = 4, widest: int = 16, values: NDArray[Any] | None = None
) -> Picture:
    """The picture of a tensor, with at most so many boxes, and rows and columns of a box.

    Where there are more, the first ones and the last are shown. Cells show coordinates, or the
    elements of ``values``, which are the physical elements in memory order.
    """
    if not desc.has_layout:
        raise InvalidDescriptor(f"{desc} has no layout to draw: choose a concrete format")
    if desc.has_runtime:
        raise InvalidDescriptor(f"{desc} has sizes that are known at execution only: draw it then")
    fold = _fold(desc, widest)
    artist = _Artist(desc, fold, widest, values)
    if 0 in desc.dims:
        return Picture(desc, fold, ())
    count = prod(p.size for p in fold.boxes)
    chosen = [k if k is None else artist.box(k) for k in _shown(count, boxes)]
    left_out = count - sum(box is not None for box in chosen)
    return Picture(desc, fold, tuple(left_out if box is None else box for box in chosen))


def _fold(desc: MemoryDesc, widest: int) -> Fold:
    """Digits from the inner end: columns, then rows. Blocks that fit together stay together."""
    rest = [p for p in desc.placed if p.size != 1 and p.stride]
    columns, rows = _take(rest, widest), _take(rest, widest)
    return Fold(tuple(rest), rows, columns)


def _take(rest: list[Placed], most: int) -> tuple[Placed, ...]:
    """Remove the innermost digit, and further blocks while all are at most ``most`` elements."""
    taken: list[Placed] = []
    while rest and (not taken or _fits(rest[-1], taken, most)):
        taken.insert(0, rest.pop())
    return tuple(taken)


def _fits(digit: Placed, taken: list[Placed], most: int) -> bool:
    blocks = digit.fixed_size and all(p.fixed_size for p in taken)
    return blocks and digit.size * prod(p.size for p in taken) <= most


def _shown(count: int, most: int) -> list[int | None]:
    """Which of ``count`` things are shown: all, or the first ones, None, and the last."""
    if count <= most:
        return list(range(count))
    if most == 1:
        return [0, None]
    return [*range(most - 1), None, count - 1]


@dataclass(frozen=True)
class _Artist:
    """Makes the boxes of one picture."""

    desc: MemoryDesc
    fold: Fold
    widest: int
    values: NDArray[Any] | None

    def box(self, number: int) -> Box:
        digits = _split(self.fold.boxes, number)
        start = self.desc.offset0 + _offset(self.fold.boxes, digits)
        count = prod(p.size for p in self.fold.rows)
        # A block is worth seeing whole; an open digit, the width of a photograph say, is not.
        blocks = all(p.fixed_size for p in self.fold.rows)
        chosen = _shown(count, self.widest if blocks else self.widest // 2)
        rows = [None if k is None else self.row(start, k) for k in chosen]
        return Box(self._title(digits), start, tuple(rows))

    def row(self, start: int, number: int) -> Row:
        start += _offset(self.fold.rows, _split(self.fold.rows, number))
        columns = self.fold.columns
        count = prod(p.size for p in columns)
        cells = [
            None if k is None else self.cell(start + _offset(columns, _split(columns, k)))
            for k in _shown(count, self.widest)
        ]
        return Row(self._row_label(start), start, tuple(cells))

    def cell(self, offset: int) -> Cell:
        index = self.desc.coords(offset)
        if index is None:
            return Cell(PADDING, None)
        if self.values is not None:
            return Cell(f"{self.values[offset]:g}", index)
        return Cell(self._named(index, self._cell_dims()), index)

    def _title(self, values: list[int]) -> str:
        labels = dict(zip(self.desc.format.digits, digit_labels(self.desc.format), strict=True))
        named = zip(self.fold.boxes, values, strict=True)
        return " ".join(f"{labels[p.digit]}={value}" for p, value in named)

    def _row_label(self, offset: int) -> str:
        found = self.desc.place_at(offset)
        if found is None:
            return ""
        dims = [d for d in _dims(self.fold.rows) if d not in self._cell_dims()]
        lower = self.desc.padded_offsets
        letters = self.desc.format.dims
        return " ".join(f"{letters[d]}={found[d] - lower[d]}" for d in dims)

    def _cell_dims(self) -> list[int]:
        return _dims(self.fold.columns) or list(range(self.desc.ndims))

    def _named(self, index: tuple[int, ...], dims: list[int]) -> str:
        return " ".join(f"{self.desc.format.dims[d]}{index[d]}" for d in dims)


def _split(places: Sequence[Placed], number: int) -> list[int]:
    """The digits of a number, outermost first."""
    digits: list[int] = []
    for p in reversed(places):
        number, digit = divmod(number, p.size)
        digits.insert(0, digit)
    return digits


def _offset(places: Sequence[Placed], digits: Sequence[int]) -> int:
    return sum(p.stride * digit for p, digit in zip(places, digits, strict=True))


def _dims(places: Sequence[Placed]) -> list[int]:
    """The dimensions of the digits, in logical order."""
    return sorted({d for p in places for d in p.digit.dims})


# --- in a terminal --------------------------------------------------------------------------------


def terminal(drawn: Picture, width: int = 80) -> Iterator[str]:
    """The picture as lines of text; boxes stand side by side where they fit in ``width``."""
    yield str(drawn.desc)
    yield drawn.summary
    if not drawn.boxes:
        return
    yield _legend(drawn)
    cell = max(len(c.text) for box in drawn.boxes for c in _cells(box))
    margin = max((len(r.label) for box in drawn.boxes for r in _rows(box)), default=0)
    line: list[list[str]] = []
    for box in drawn.boxes:
        text = _box_text(box, cell, margin)
        if line and sum(len(block[0]) + 3 for block in [*line, text]) > width:
            yield from _side_by_side(line)
            line = []
        line.append(text)
    yield from _side_by_side(line)


def _side_by_side(blocks: list[list[str]]) -> Iterator[str]:
    """Blocks of text, each with lines of one length, in one line."""
    yield ""
    height = max(map(len, blocks))
    full = [_filled(block, height) for block in blocks]
    for parts in zip(*full, strict=True):
        yield "   ".join(parts).rstrip()


def _filled(block: list[str], height: int) -> list[str]:
    """A block with empty lines after it; what is one line, the count of boxes, in the middle."""
    empty = [" " * len(block[0])]
    above = (height - 1) // 2 if len(block) == 1 else 0
    return empty * above + block + empty * (height - above - len(block))


def _box_text(box: Box | int, cell: int, margin: int) -> list[str]:
    """The lines of a box, all of one length."""
    if isinstance(box, int):
        return [f"{ELLIPSIS} {box} more box{'es' * (box != 1)} {ELLIPSIS}"]
    lines = list(_terminal_box(box, cell, margin))
    length = max(map(len, lines))
    return [line.ljust(length) for line in lines]


def _legend(drawn: Picture) -> str:
    fmt = drawn.desc.format
    parts = []
    for name in ("boxes", "rows", "columns"):
        digits = [formula(fmt, p.digit, drawn.desc) for p in getattr(drawn.fold, name)]
        if digits:
            parts.append(f"{name}: {', '.join(digits)}")
    return "; ".join([*parts, "@ offset", *[f"{PADDING} padding"] * drawn.has_padding])


def _rows(box: Box | int) -> list[Row]:
    return [] if isinstance(box, int) else [row for row in box.rows if row]


def _cells(box: Box | int) -> list[Cell]:
    return [cell for row in _rows(box) for cell in row.cells if cell]


def _terminal_box(box: Box, cell: int, margin: int) -> Iterator[str]:
    indent = " " * margin
    columns = _rows(box)[0].cells
    # Sixteen cells with a space on both sides would not fit in 80 columns.
    space = " " * (len(columns) <= 8)
    widths = [1 if c is None else cell + 2 * len(space) for c in columns]
    yield f"{indent}  {box.title or 'all of it'}  @{box.offset}"
    yield f"{indent} ┌{'┬'.join('─' * w for w in widths)}┐"
    for row in box.rows:
        if row is None:
            yield f"{indent} {ELLIPSIS}"
            continue
        cells = [_cell_text(c, w, space) for c, w in zip(row.cells, widths, strict=True)]
        yield f"{row.label:>{margin}} │{'│'.join(cells)}│"
    yield f"{indent} └{'┴'.join('─' * w for w in widths)}┘"


def _cell_text(cell: Cell | None, width: int, space: str) -> str:
    if cell is None:
        return ELLIPSIS
    if cell.index is None:
        return PADDING * width
    return f"{cell.text}{space}".rjust(width)
