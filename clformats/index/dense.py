"""The offset in a dense tensor as one nested number, and back: functions of extents and indices.

Digits in order, each with its size, are one number: ``((b * F + f) * Y + y) * X + x``, and with
blocks ``(((b * FS + f / 16) * Y + y) * X + x) * 16 + f % 16``. It is the offset of
`clformats.formats.digits.offset_expr` where nothing lies between the digits, and it needs no
strides: so it serves every tensor of a format, whose extents (sizes with padding) are arguments.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from math import lcm

from ..formats.digits import Digit, Layout
from ..formats.expr import Const, Expr, Select, Var
from ..formats.format import Format

Names = Mapping[int, Expr]
"""The names of block sizes and steps that are parameters instead of numbers."""


@dataclass(frozen=True, slots=True)
class _DensePart:
    """A digit: its index, step and size as expressions; ``is_open`` the outermost of its index."""

    index: Expr
    step: Expr
    size: Expr
    is_open: bool
    name: str
    digit: Digit

    @property
    def value(self) -> Expr:
        found = self.index // self.step
        return found if self.is_open else found % self.size


def dense_offset(fmt: Format, names: Names | None = None) -> Expr:
    """The offset over the format's letters, indices counted from the start of the padding.

    Their capitals are the extents; the offset is right only while it stays below 2**32.
    """
    layout, names = fmt.structure, names or {}
    offset = _nested(_parts(layout, fmt.letters, names))
    if layout.tail is None:
        return offset
    extent = Var(fmt.letters[layout.tail.dim].upper())
    behind = _nested(_parts(layout.behind, fmt.letters, names))
    start = extent - extent % layout.tail.size
    return Select(Var(fmt.letters[layout.tail.dim]), start, behind, offset)


def dense_places(fmt: Format) -> Expr:
    """The number of elements in memory, padding included, over the extents."""
    result: Expr = Const(1)
    for part in _parts(fmt.structure, fmt.letters, {}):
        result = result * part.size
    return result


def dense_coordinates(fmt: Format, layout: Layout) -> list[str]:
    """Statements that split the variable ``rest`` into digits, the innermost first.

    They assign to ``*b``, ``*f``, ... the indices, counted from the start of the padding.
    """
    lines: list[str] = []
    parts = _parts(layout, fmt.letters, {})
    for part in reversed(parts[1:]):
        lines += [f"const uint {part.name} = rest % ({part.size});", f"rest /= {part.size};"]
    lines.append(f"const uint {parts[0].name} = rest;")
    for (dims, flip), chain in layout.chains.items():
        mine = [p for digit in reversed(chain) for p in parts if p.digit == digit]
        index: Expr = Const(0)
        for part in mine:
            index = index + Var(part.name) * part.step
        extents = _extents(layout, fmt.letters, {})
        for d in reversed(dims[1:]):
            lines.append(f"*{fmt.letters[d]} = {index % extents[d]};")
            index = index // extents[d]
        outer = extents[dims[0]] - 1 - index if flip else index
        lines.append(f"*{fmt.letters[dims[0]]} = {outer};")
    return [re.sub(r"\((\w+)\)", r"\1", line) for line in lines]


def _nested(parts: Sequence[_DensePart]) -> Expr:
    result: Expr = Const(0)
    for part in parts:
        result = result * part.size + part.value
    return result


def _parts(layout: Layout, letters: str, names: Names) -> list[_DensePart]:
    extents = _extents(layout, letters, names)
    return [_part(layout, digit, letters, extents, names) for digit in layout.digits]


def _extents(layout: Layout, letters: str, names: Names) -> list[Expr]:
    """The extents in whole blocks; just the letter if there are no blocks."""
    result: list[Expr] = []
    for letter, block, align in zip(letters, layout.blocks, layout.align, strict=True):
        extent: Expr = Var(letter.upper())
        multiple = lcm(block, align)
        if multiple > 1:
            unit = names.get(multiple, Const(multiple))
            extent = (extent + (unit - 1)) // unit * unit
        result.append(extent)
    return result


def _part(
    layout: Layout, digit: Digit, letters: str, extents: Sequence[Expr], names: Names
) -> _DensePart:
    step = names.get(digit.step, Const(digit.step))
    index: Expr = Var(letters[digit.dims[0]])
    count = extents[digit.dims[0]]
    for d in digit.dims[1:]:
        index = index * extents[d] + Var(letters[d])
        count = count * extents[d]
    if digit.flip:
        index = extents[digit.dims[0]] - 1 - index
    first = digit.dims[0]
    if digit.size is not None:
        count = names.get(digit.size, Const(digit.size))
    elif len(digit.dims) > 1:
        count = (count + (step - 1)) // step
    elif digit.step > 1 and lcm(layout.blocks[first], layout.align[first]) == digit.step:
        count = (Var(letters[first].upper()) + (step - 1)) // step
    else:
        count = count // step
    name = f"{''.join(letters[d] for d in digit.dims)}_{digit.step}"
    return _DensePart(index, step, count, digit.size is None, name, digit)
