"""`explain`: what a format's name means, and where it puts the elements of a tensor."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from html import escape
from typing import Any

from ..formats import Format
from ..formats.digits import RUNTIME, Placed, offset_expr, place
from ..formats.expr import Expr, Var
from ..formats.sums import Sums
from ..formats.tags import print_onednn
from ..formats.text import written
from ..host.packing import places
from ..quantised import QuantisedDesc
from ..tensors.desc import MemoryDesc
from ..tensors.described import Described, is_described
from ..tensors.given import as_any_desc, as_target
from ..tensors.images import row_pitch
from .quantised import QuantisedExplanation
from .words import (
    axes,
    columns,
    digit_labels,
    dimension_words,
    formula,
    is_list,
    known_extents,
    size_text,
    spelled,
    token_words,
)

TABLE_LIMIT = 256


class Explanation:
    """What a format means, as text by ``str``; ``data`` has the same for programs.

    Made by `explain`. ``desc`` is None where no sizes were given.
    """

    def __init__(self, format: Format, desc: MemoryDesc | None = None) -> None:
        self.format, self.desc = format, desc

    @property
    def data(self) -> dict[str, Any]:
        """Names, dimensions, digits and sizes, of types that JSON has."""
        fmt, desc = self.format, self.desc
        found: dict[str, Any] = {
            "name": str(fmt), "kind": fmt.kind, "role": fmt.role, "dims": list(fmt.dims),
            "cldnn": fmt.cldnn, "onednn": fmt.onednn, "note": fmt.note,
            "digits": [{"formula": formula(fmt, d), "size": d.size} for d in fmt.digits],
        }  # fmt: skip
        return {**found, "desc": _data(desc)} if desc is not None else found

    def __str__(self) -> str:
        fmt, desc = self.format, self.desc
        if fmt.layout is None:
            return f"{fmt}: {_ABSTRACT[fmt.kind]}"
        sections = [_names(fmt), _dimensions(fmt), _tokens(fmt), _digits(fmt, desc)]
        if desc is not None:
            sections += [_sizes(desc), _table(desc)]
        texts = ["\n".join(section) for section in sections]
        return "\n\n".join(text for text in texts if text)

    def __repr__(self) -> str:
        return f"Explanation({str(self.desc or self.format)!r})"

    def _repr_html_(self) -> str:
        return f"<pre>{escape(str(self))}</pre>"


def explain(
    what: Format | MemoryDesc | Described | str,
    shape: Iterable[int] | None = None,
    *,
    dtype: object = None,
) -> Explanation | QuantisedExplanation:
    """What each part of a format's name means; with sizes also where elements lie.

    ``what`` is a format or a descriptor, or the text of one; ``shape`` and ``dtype`` give a format
    sizes (in logical order) and an element type, f32 if nothing is said. For a tensor of at most
    256 elements in memory there is a table of them. Raises `InvalidFormat` and `InvalidDescriptor`.

    >>> print(explain("nChw16c"))  # doctest: +ELLIPSIS
    nChw16c: data, 4 dimensions
      clDNN   b_fs_yx_fsv16
      oneDNN  aBcd16b = nChw16c
    ...
    """
    if is_described(what) and shape is None and dtype is None:
        return explanation(None, as_any_desc(what, "what"))
    return Explanation(*as_target(what, shape, dtype))


def explanation(
    fmt: Format | None, desc: MemoryDesc | QuantisedDesc | None
) -> Explanation | QuantisedExplanation:
    """As `explain`, of a format and the descriptor in it, or of a quantised tensor."""
    if isinstance(desc, QuantisedDesc):
        return QuantisedExplanation(desc)
    assert fmt is not None  # noqa: S101  # only quantised tensors have none
    return Explanation(fmt, desc)


def _data(desc: MemoryDesc) -> dict[str, Any]:
    known = None if desc.has_runtime else desc.nbytes
    return {
        "text": str(desc), "dtype": str(desc.dtype), "nbytes": known, "offset0": desc.offset0,
        "dims": _known(desc.dims), "padded_dims": _known(desc.padded_dims),
        "strides": _known(desc.strides) if desc.has_layout else None,
        "offset": offset_formula(desc) if desc.has_layout else None,
    }  # fmt: skip


def _known(numbers: Iterable[int]) -> list[int | None]:
    """Numbers, None for those that are known at execution only."""
    return [None if n == RUNTIME else n for n in numbers]


_ABSTRACT = {
    "any": "no layout yet; it stands for 'let the library choose'",
    "undef": "the format of the empty descriptor, which has no dimensions",
}

# --- the format -----------------------------------------------------------------------------------


def _names(fmt: Format) -> Iterator[str]:
    role = "recurrent networks" if fmt.role == "rnn" else fmt.role
    yield f"{fmt}: {role}, {fmt.ndims} dimension{'s' * (fmt.ndims != 1)}"
    yield f"  clDNN   {_cldnn(fmt)}"
    yield f"  oneDNN  {_onednn(fmt)}"
    yield f"  digits  {written(fmt.parsed)}"
    if fmt.note:
        yield f"  note    {fmt.note}"


def _cldnn(fmt: Format) -> str:
    as_data = " (as data)" if fmt.role == "generic" and fmt.cldnn else ""
    return (fmt.cldnn or "has no name for it") + as_data


def _onednn(fmt: Format) -> str:
    """The tag, and the names it has where the role of its dimensions is known."""
    if fmt.onednn is None:
        return "no tag: tags have whole dimensions, then blocks, and nothing else"
    spatial = "dhw"[-(fmt.ndims - 2) :] if fmt.ndims > 2 else ""
    orders = {"data": "nc" + spatial, "weights": "oi" + spatial}
    if fmt.letters.startswith("g"):
        orders["weights"] = "goi" + spatial[1:]
    names = [
        f"{print_onednn(fmt.structure, letters)}{f' (as {role})' * (fmt.role == 'generic')}"
        for role, letters in orders.items()
        if fmt.role in (role, "generic") and len(letters) == fmt.ndims
    ]
    if fmt.role == "rnn":
        names = [print_onednn(fmt.structure, fmt.letters) or ""]
    return " = ".join([fmt.onednn, *names])


def _dimensions(fmt: Format) -> Iterator[str]:
    yield "dimensions, in logical order (shapes and coordinates are given in this order)"
    yield from columns(list(zip(fmt.dims, dimension_words(fmt), strict=True)), "  ")


def _tokens(fmt: Format) -> Iterator[str]:
    if is_list(fmt):
        yield "the name is the list of its digits, from the outermost in memory to the innermost"
        return
    name = spelled(fmt)
    other = "" if name == fmt.name else f" {name}, which {fmt.name} is another name of"
    yield f"the name{other}, from the outermost in memory to the innermost (/ rounds down)"
    yield from columns(list(token_words(fmt)), "  ")


def _digits(fmt: Format, desc: MemoryDesc | None) -> Iterator[str]:
    """One line per digit; with sizes and strides where there is a descriptor."""
    yield "digits, outermost first"
    of = [[axis] for axis in axes(fmt)] or [[]] * len(fmt.digits)
    if desc is None:
        rows = [
            [formula(fmt, d), f"0..{d.size - 1}" if d.size else "as many as there are", *axis]
            for d, axis in zip(fmt.digits, of, strict=True)
        ]
        yield from columns(rows, "  ")
        return
    head = ["digit", "size", "stride", *(["axis"] if fmt.image else [])]
    sizes = [(formula(fmt, p.digit, desc), size_text(p.size)) for p in desc.placed]
    strides = map(str, named_strides(desc))
    rows = [[*row, n, *axis] for row, n, axis in zip(sizes, strides, of, strict=True)]
    yield from columns([head, *rows], "  ")


# --- a tensor in it -------------------------------------------------------------------------------


def _sizes(desc: MemoryDesc) -> Iterator[str]:
    yield str(desc)
    if desc.has_runtime:
        yield from _known_sizes(desc)
        return
    elements = places(desc)
    unused = elements - desc.nelems
    share = f", {unused} of them padding ({100 * unused / elements:.1f} %)" if unused > 0 else ""
    yield f"  dims     {_by(desc.dims)} = {desc.nelems} elements"
    yield f"  padded   {_by(desc.padded_dims)}, {elements} elements in memory{share}"
    yield f"  strides  {' '.join(map(str, desc.strides))} (of each dimension's outermost digit)"
    yield f"  bytes    {desc.nbytes}"
    if desc.image_shape:
        *rows, width, channels = desc.image_shape
        layers = f" in {rows[0]} layers" if len(rows) == 2 else ""
        size = f"{width} x {rows[-1]} pixels (width x height)" if rows else f"{width} pixels"
        pitch = row_pitch(desc) // channels
        apart = f", rows {pitch} pixels apart" * (pitch > width)
        yield f"  image    {size}{layers}, channels: {channels}{apart}"
    at = desc.sums_at
    for sums in desc.sums:
        yield f"  sums     {_sums(desc, sums, at)}"
        at += sums.nbytes(desc.dims, desc.padded_dims)
    yield f"  offset   {offset_formula(desc)}"


def _sums(desc: MemoryDesc, sums: Sums, at: int) -> str:
    """The sums that follow the elements, and their place."""
    letters = desc.format.dims
    index = "".join(f"[{letters[d]}]" for d in sums.dims)
    factor = f"{sums.factor} * " * (sums.factor != 1)
    zero = " and ".join(f"{letters[d]} = {n}" for d, n in sums.none_at)
    return (
        f"from byte {at} on {sums.dtype} {index} = {factor}sum over "
        f"{', '.join(letters[d] for d in sums.over)}" + (f", 0 for {zero}" if zero else "")
    )


def _known_sizes(desc: MemoryDesc) -> Iterator[str]:
    """What can be said before execution."""
    yield f"  dims     {_by(desc.dims)}, where * is known at execution only"
    yield f"  padded   {_by(desc.padded_dims)}"
    strides = " ".join(map(size_text, desc.strides))
    yield f"  strides  {strides} (of each dimension's outermost digit)"
    yield "  bytes    known at execution only"
    yield f"  offset   {offset_formula(desc)}"


def _by(numbers: tuple[int, ...]) -> str:
    return " x ".join(map(size_text, numbers))


def named_strides(desc: MemoryDesc) -> list[Expr | int]:
    """Each digit's stride; ``s0`` for the one of digit 0 where it is known at execution only."""
    strides = [p.stride for p in desc.placed]
    return [Var(f"s{k}") if n == RUNTIME else n for k, n in enumerate(strides)]


def offset_formula(desc: MemoryDesc) -> str:
    """The offset in elements as a formula of the dimensions' letters."""
    indices = [Var(c) + n for c, n in zip(desc.format.dims, desc.padded_offsets, strict=True)]
    extents, strides = known_extents(desc), named_strides(desc)
    return str(offset_expr(desc.placed, indices, extents, strides, desc.offset0, desc.tail))


def _table(desc: MemoryDesc) -> Iterator[str]:
    """Element by element in memory order, as clDNN's own documentation prints it."""
    size = places(desc)
    if desc.has_runtime or not 0 < size <= TABLE_LIMIT:
        return
    yield "elements in memory order"
    for i in range(size):
        yield f"  i = {i:<{len(str(size))}} => {element(desc, i)}"


def element(desc: MemoryDesc, offset: int) -> str:
    """What lies at an offset: ``[b=0; f=2; y=0; x=0] == [b=0; fs=0; y=0; x=0; fsv=2]  padding``."""
    found = desc.place_at(offset)
    if found is None:
        return _beyond(desc, offset)
    index = [i - lower for i, lower in zip(found, desc.padded_offsets, strict=True)]
    text = _pairs(desc.format.dims, index)
    placed = placed_at(desc, offset)
    labels = digit_labels(desc.format)
    if placed is not desc.placed:
        labels = tuple(formula(desc.format, p.digit).replace(" ", "") for p in placed)
    if len(labels) != desc.ndims or any(d.flip for d in desc.format.digits):
        text += " == " + _pairs(labels, digit_values(desc, offset))
    return text if desc.coords(offset) is not None else text + "  padding"


def _beyond(desc: MemoryDesc, offset: int) -> str:
    """An offset that no coordinates lead to: the end of a fused index, or a gap of strides."""
    if all(len(d.dims) == 1 for d in desc.format.digits):
        return "a gap between strides"
    return _pairs(digit_labels(desc.format), digit_values(desc, offset)) + "  padding"


def placed_at(desc: MemoryDesc, offset: int) -> tuple[Placed, ...]:
    """The digits by which what lies at an offset is found: the descriptor's, or its tail's."""
    tail, found = desc.tail, desc.place_at(offset)
    if tail and found and found[tail.dim] >= tail.start.evaluate({}):
        return place(tail.layout, desc.padded_dims)
    return desc.placed


def digit_values(desc: MemoryDesc, offset: int) -> list[int]:
    """The value of each digit at an offset, outermost digit first; gaps count to the digit before.

    The digits are taken off from the largest stride down, as one reads a number.
    """
    placed = placed_at(desc, offset)
    values = [0] * len(placed)
    rest = offset - desc.offset0
    for k, p in sorted(enumerate(placed), key=lambda kp: -kp[1].stride):
        if p.stride and p.size > 1:
            values[k], rest = divmod(rest, p.stride)
    return values


def _pairs(names: tuple[str, ...], values: list[int]) -> str:
    return "[" + "; ".join(f"{n}={v}" for n, v in zip(names, values, strict=True)) + "]"
