"""Where the pixels of an image lie, for kernels that read and write them: row, column, layer."""

from __future__ import annotations

from dataclasses import dataclass
from math import prod

from ..formats.digits import Digit, Placed, offset_expr
from ..formats.expr import Const, Expr, Var
from ..tensors.images import LINE, PICTURES, PLANE, STACK
from .tensor import IndexedTensor

_NAMES = {
    LINE: ("COLUMN",),
    PLANE: ("ROW", "COLUMN"),
    STACK: ("LAYER", "ROW", "COLUMN"),
}
_FUNCTIONS = {"u8": "ui", "s8": "i", "s32": "i"}
_STORED = {
    "u8": "convert_uint4(convert_uchar4_sat_rte(%s))",
    "s8": "convert_int4(convert_char4_sat_rte(%s))",
    "s32": "convert_int4_sat_rte(%s)",
}


@dataclass(frozen=True, slots=True)
class Pixel:
    """The axes of an image with the number of each as an expression, and how pixels are read.

    ``load`` and ``store`` have %s for the pixel that is read and the value that is written;
    ``function`` is what follows read_image and write_image in a name.
    """

    axes: tuple[tuple[str, Expr], ...]
    channels: Expr
    function: str
    load: str
    store: str

    def at(self, prefix: str, coordinates: str) -> str:
        """The coordinates of a pixel, as the image functions take them."""
        names = [f"{prefix}_{name}({coordinates})" for name, _ in reversed(self.axes)]
        if len(names) == 1:
            return names[0]
        return f"(int{len(names) + len(names) % 2})({', '.join(names + ['0'] * (len(names) % 2))})"

    @property
    def sampled(self) -> bool:
        """Whether it is read through a sampler; an image1d_buffer is not."""
        return len(self.axes) > 1


def pixel(t: IndexedTensor) -> Pixel | None:
    """The pixels of a tensor; None where its memory is a buffer."""
    if t.format.image is None:
        return None
    parts = t.format.parsed.parts()
    names = _NAMES[len(parts)]
    axes = tuple((name, _number(t, part)) for name, part in zip(names, parts, strict=False))
    dtype = t.known.desc.dtype.name if t.known.desc else ""
    function, load, store = _FUNCTIONS.get(dtype, "f"), "%s", _STORED.get(dtype, "%s")
    if t.format.name in PICTURES and dtype == "u8":
        function, load, store = "f", "%s * 255.0f", "%s / 255.0f"
    if function != "f":
        load = "convert_float4(%s)"
    return Pixel(axes, _count(t, parts[-1]), function, load, store)


def _number(t: IndexedTensor, digits: tuple[Digit, ...]) -> Expr:
    """The digits of one axis read as a number."""
    strides: list[Expr] = []
    for k, _ in enumerate(digits):
        strides.append(_count(t, digits[k + 1 :]))
    indices = [Var(c) + pad for c, pad in zip(t.letters, t.lower, strict=True)]
    placed = [Placed(d, d.size or 0, 0) for d in digits]
    return offset_expr(placed, indices, t.extents, strides)


def _count(t: IndexedTensor, digits: tuple[Digit, ...]) -> Expr:
    """How many values digits have together."""
    if t.numbers:
        sizes = {p.digit: p.size for p in t.numbers}
        return Const(prod(sizes[d] for d in digits))
    result: Expr = Const(1)
    for d in digits:
        result = result * (Const(d.size) if d.size else _open(t, d))
    return result


def _open(t: IndexedTensor, d: Digit) -> Expr:
    """The size of an open digit: whole blocks of its index."""
    extent: Expr = Const(1)
    for k in d.dims:
        extent = extent * t.extents[k]
    return (extent + (d.step - 1)) // d.step if len(d.dims) > 1 else extent // d.step
