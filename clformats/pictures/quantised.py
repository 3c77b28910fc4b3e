"""Quantised tensors for people: what type and layout say, and a record drawn as fields and bits."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from html import escape
from itertools import groupby
from typing import Any

from ..formats.expr import Var
from ..quantised import QuantisedDesc
from ..quantised.owners import value_at
from ..quantised.planes import Buffer, Field, Plane, PlaneDigit
from .elements import MONO, SOFT, document, rect_at, text_at
from .svg import Svg
from .words import columns

UNITS = {(1, 1): "one for each element", (0, 0): "one for all", (1, 0): "one for each row"}
BYTES_IN_A_LINE = 2
_BIT, _MOST_LINES, _MOST_BYTES = 4, 12, 4096
_COLOURS = ("#7aa7f0", "#f6dc63", "#93d67b", "#f6a15e", "#67cfd3", "#ee7f9d", "#b78ceb")
_CELL, _HIGH = 26, 24


# --- words ----------------------------------------------------------------------------------------


class QuantisedExplanation:
    """What a quantised type and its layout mean, as text by ``str``; ``data`` for programs."""

    def __init__(self, desc: QuantisedDesc) -> None:
        self.desc = desc

    @property
    def data(self) -> dict[str, Any]:
        """Formula, fields, planes and buffers, of types that JSON has."""
        desc = self.desc
        return {
            "desc": str(desc), "type": desc.dtype.name, "formula": desc.dtype.formula_text,
            "layout": desc.layout, "digits": desc.text, "dims": list(desc.dims),
            "nbytes": desc.nbytes,
            "fields": {n: {"dtype": f.dtype.name, "dims": list(f.dims), "group": list(f.group),
                           "added": f.bias, "planes": [p.name for p in f.planes]}
                       for n, f in desc.fields.items()},
            "planes": {n: {"bits": p.bits, "first_bit": p.first_bit, "buffer": p.buffer,
                           "digits": _digits(desc, p), "offset": _offset(desc, p)}
                       for n, p in desc.planes.items()},
            "buffers": [{"planes": b.name, "start": b.start, "nbytes": b.nbytes}
                        for b in desc.buffers],
        }  # fmt: skip

    def __str__(self) -> str:
        return "\n\n".join("\n".join(s) for s in (
            _tensor(self.desc), _fields(self.desc), _planes(self.desc), _buffers(self.desc),
        ))  # fmt: skip

    def __repr__(self) -> str:
        return f"Explanation({str(self.desc)!r})"

    def _repr_html_(self) -> str:
        return f"<pre>{escape(str(self))}</pre>"


def _tensor(desc: QuantisedDesc) -> Iterator[str]:
    share = f", {8 * desc.nbytes / desc.nelems:g} bits for an element" if desc.nelems else ""
    yield str(desc)
    yield f"  value   {desc.dtype.formula_text}, in f32, every step rounded"
    yield f"  dims    {' x '.join(map(str, desc.dims))}: rows (n) and columns (k) last"
    yield f"  bytes   {desc.nbytes}{share}"
    yield f"  layout  {desc.text}"


def _fields(desc: QuantisedDesc) -> Iterator[str]:
    yield "fields"
    yield from columns([
        (n, f.dtype.name, _unit(f), " x ".join(map(str, f.dims)),
         f"stored with {f.bias} added, modulo {1 << f.bits}" if f.bias else "")
        for n, f in desc.fields.items()
    ], "  ")  # fmt: skip


def _unit(field: Field) -> str:
    rows, count = field.group
    if field.group in UNITS:
        return UNITS[field.group]
    return f"one for {count or 'all'} columns{f' of {rows} rows' if rows != 1 else ''}"


def _planes(desc: QuantisedDesc) -> Iterator[str]:
    yield "planes: bits of each value, digits with strides in bits, outermost first"
    rows = [("plane", "bits", "first", "digits")]
    rows += [(n, str(p.bits), str(p.first_bit), _digits(desc, p)) for n, p in desc.planes.items()]
    yield from columns(rows, "  ")
    yield "the bit at which a value of e, n, k begins"
    yield from columns([(n, _offset(desc, p)) for n, p in desc.planes.items()], "  ")


def _digits(desc: QuantisedDesc, plane: Plane) -> str:
    """With r and g for rows and columns that are counted in groups."""
    rows, count = next(f.group for f in desc.fields.values() if plane in f.planes)
    letters = "e" + ("n" if rows == 1 else "r") + ("k" if count == 1 else "g")
    own = sorted((d for d in plane.digits if d.size > 1), key=lambda d: -d.stride)
    return " ".join(_digit(d, letters[d.dim]) for d in own) or "one value"


def _digit(d: PlaneDigit, letter: str) -> str:
    index = letter if d.is_plain else f"({d.mul}{letter}+{d.add})"
    step = f"/{d.step}" if d.step > 1 else ""
    return f"{index}{step}%{d.size}:{d.stride}"


def _offset(desc: QuantisedDesc, plane: Plane) -> str:
    return str(desc.address(plane, (Var("e"), Var("n"), Var("k"))))


def _buffers(desc: QuantisedDesc) -> Iterator[str]:
    yield "buffers"
    yield from columns([
        (b.name, f"from byte {b.start}", f"{b.nbytes} bytes") for b in desc.buffers
    ], "  ")  # fmt: skip


# --- a picture ------------------------------------------------------------------------------------


@dataclass(frozen=True)
class _Run:
    """Bits side by side of one value; ``plane`` is None for what belongs to no value."""

    bit: int
    size: int
    plane: Plane | None
    label: str


class QuantisedDrawing(Svg):
    """The bits of a quantised tensor: of each buffer the first record, or the first bytes.

    Bits count from the lowest of a byte, left to right. ``boxes`` is how many buffers are drawn.
    """

    def __init__(self, desc: QuantisedDesc, boxes: int) -> None:
        self.desc = desc
        self._boxes = [(b, list(_lines(desc, b))) for b in desc.buffers[:boxes]]

    def text(self, width: int = 80) -> str:
        """The picture in characters, 70 wide; ``width`` is as of other drawings."""
        del width
        return "\n".join(self._text())

    def _text(self) -> Iterator[str]:
        yield str(self.desc)
        yield "bits from the lowest, left to right; a value by its plane and first row, column"
        for buffer, lines in self._boxes:
            yield ""
            yield _title(self.desc, buffer)
            for at, runs in lines:
                if not runs:
                    yield "       ..."
                    continue
                cells = [r.label[: _BIT * r.size - 1].ljust(_BIT * r.size - 1) for r in runs]
                yield f"{f'@{at}':>6} |{'|'.join(cells)}|"

    def __str__(self) -> str:
        return self.text()

    def __repr__(self) -> str:
        return f"Drawing({str(self.desc)!r})"

    @property
    def svg(self) -> str:
        """The picture as the text of an SVG file."""
        return _svg(self.desc, self._boxes)


def _title(desc: QuantisedDesc, buffer: Buffer) -> str:
    size, rows, count = _record(desc, buffer)
    if size < buffer.nbytes:
        return f"{buffer.name}: a record of {size} bytes, {rows} x {count} elements"
    return f"{buffer.name}: {buffer.nbytes} bytes"


def _record(desc: QuantisedDesc, buffer: Buffer) -> tuple[int, int, int]:
    """The bytes of a record, and its rows and columns; of a plane all of the buffer."""
    first = desc.planes[buffer.first]
    name = next(n for n, f in desc.fields.items() if first in f.planes)
    text = next(t for t in desc.dtype.check_layout(desc.text) if name in {f.name for f in t.fields})
    steps = {d.letter: d.step for d in text.outer}
    if not text.outer:
        return buffer.nbytes, *desc.extents[1:]
    return text.nbytes, steps.get("n", desc.extents[1]), steps.get("k", desc.extents[2])


def _lines(desc: QuantisedDesc, buffer: Buffer) -> Iterator[tuple[int, list[_Run]]]:
    """The byte at which a line begins, and its runs; no runs where lines are left out."""
    size, rows, _ = _record(desc, buffer)
    starts = range(0, min(size, _MOST_BYTES), BYTES_IN_A_LINE)
    shown = list(starts) if len(starts) <= _MOST_LINES else [*starts[:8], -1, *starts[-3:]]
    for start in shown:
        if start < 0:
            yield start, []
            continue
        first, bits = 8 * (buffer.start + start), 8 * min(BYTES_IN_A_LINE, size - start)
        owners = [_owner(desc, buffer, bit) for bit in range(first, first + bits)]
        runs, at = [], 0
        for (plane, index), group in groupby(owners):
            count = len(list(group))
            label = _label(plane, index, rows, _BIT * count - 1)
            runs.append(_Run(at, count, plane, label))
            at += count
        yield start, runs


def _owner(
    desc: QuantisedDesc, buffer: Buffer, bit: int
) -> tuple[Plane | None, tuple[int, ...] | None]:
    """The plane that has a bit, and the first element that it is of."""
    number = desc.buffers.index(buffer)
    for name, plane in desc.planes.items():
        if plane.buffer == number and value_at(plane, bit) is not None:
            return plane, desc.coords(bit, name)
    return None, None


def _label(plane: Plane | None, index: tuple[int, ...] | None, rows: int, room: int) -> str:
    if plane is None or index is None:
        return "." * room
    at = index[-1:] if rows == 1 else index[-2:]
    number = ",".join(map(str, at))
    text = f"{plane.name} {number}"
    return text if len(text) <= room else number


def _svg(desc: QuantisedDesc, boxes: list[tuple[Buffer, list[Any]]]) -> str:
    lines = sum(len(own) + 2 for _, own in boxes)
    width, height = 120 + 8 * BYTES_IN_A_LINE * _CELL * 2, 70 + _HIGH * lines
    return document(width, height, MONO, 12, *_parts(desc, boxes))


def _parts(desc: QuantisedDesc, boxes: list[tuple[Buffer, list[Any]]]) -> Iterator[str]:
    yield text_at(20, 32, str(desc), font_size=18, font_weight="bold")
    colours = {n: _COLOURS[k % len(_COLOURS)] for k, n in enumerate(desc.planes)}
    y = 60
    for buffer, own in boxes:
        yield text_at(20, y + 16, _title(desc, buffer))
        y += _HIGH
        for at, runs in own:
            yield text_at(20, y + 16, f"@{at}" if runs else "...", fill=SOFT)
            for r in runs:
                x, wide = 90 + 2 * _CELL * r.bit, 2 * _CELL * r.size
                fill = colours[r.plane.name] if r.plane else "#edf0f3"
                yield rect_at(x, y, wide - 2, _HIGH - 3, fill, rx=3)
                yield text_at(x + wide / 2, y + 15, r.label, text_anchor="middle")
            y += _HIGH
        y += _HIGH
