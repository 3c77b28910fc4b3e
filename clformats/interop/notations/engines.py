"""What engines call their layouts, by a table, and QNN's own lists: ``MNN NC4HW4``.

A name is the engine and its word for the layout; the table is `clformats.formats.engines`.

QNN writes a layout as ``ChunkedMemoryLayout<rank, dim,size, dim,size ...>``, outermost first; a
size of 0 is the rest of a dimension. It is a list of digits whose blocks nest from right to left.
"""

from __future__ import annotations

import re

from ...errors import InvalidFormat
from ...formats import Digit, Format, Layout
from ...formats.engines import rows
from .shared import need, no_format, no_notation


def parse(text: str) -> Format:
    """Read ``MNN NC4HW4``. Raises `InvalidFormat`, and `Unsupported` with the reason."""
    row = rows().get(text)
    if row is None:
        engines = ", ".join(dict.fromkeys(r.engine for r in rows().values()))
        mine = [n for n in rows() if n.split()[0] == text.split(" ", maxsplit=1)[0]]
        known = f"one of {', '.join(mine)}" if mine else f"a name of {engines}: MNN NC4HW4"
        raise InvalidFormat(f"unknown layout {text!r}: expected {known}")
    if row.digits.startswith("!"):
        raise no_format(text, row.digits.lstrip("! "))
    return Format(row.digits, dims=row.dims)


def render(fmt: Format) -> str:
    """The first name in the table. Raises `Unsupported` where there is none."""
    for text, row in rows().items():
        if not row.digits.startswith("!") and parse(text) == fmt:
            return text
    raise no_notation(fmt, "engines", "no engine in the table has a name for it")


QNN_LOOKS = r"(?:\w*Chunked)?\w*Layout<[\s\d,]*>"
"""What QNN's lists look like, right or wrong."""


def parse_qnn(text: str) -> Format:
    """Read ``ChunkedMemoryLayout<4, 0,0, 1,0, 2,0, 3,0, 1,8, 2,8, 3,32>``."""
    numbers = [int(n) for n in re.findall(r"\d+", text.partition("<")[2])]
    if not re.fullmatch(QNN_LOOKS, text) or len(numbers) % 2 != 1:
        raise InvalidFormat(f"cannot read {text!r} as QNN: expected a rank, then pairs dim,size")
    rank, pairs = numbers[0], list(zip(numbers[1::2], numbers[2::2], strict=True))
    if any(dim >= rank for dim, _ in pairs):
        raise InvalidFormat(f"cannot read {text!r} as QNN: its dims are 0 to {rank - 1}")
    step, digits = [1] * rank, list[Digit]()
    for dim, size in reversed(pairs):
        if size != 1:
            digits.insert(0, Digit(dim, size or None, step[dim]))
        step[dim] *= size or 1
    return Format.from_layout(Layout(rank, tuple(digits)))


def render_qnn(fmt: Format) -> str:
    """Print QNN's list of the digits. Raises `Unsupported`."""
    layout = need(fmt, "qnn", can=("between",))
    pairs = [f"{d.dims[0]},{d.size or 0}" for d in layout.digits]
    return f"ChunkedMemoryLayout<{', '.join([str(layout.ndims), *pairs])}>"
