"""Index source: the offset formula of a format as OpenCL C, for other people's kernels."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence

from .desc import MemoryDesc
from .errors import InvalidDescriptor, InvalidFormat, expect
from .formats.digits import Digit, Layout, Placed, offset_expr, place, tail_at
from .formats.expr import Const, Expr, Var
from .formats.format import Format
from .formats.names import print_digits

_IDENTIFIER = re.compile(r"[A-Za-z_][A-Za-z0-9_]*")
_INT_MAX = 2**31 - 1


def index_source(
    target: MemoryDesc | Format | str, prefix: str = "SRC", *, wide: bool | None = None
) -> str:
    """Self-contained OpenCL C that says where an element lies.

    For a descriptor: macros ``<prefix>_SIZE_F`` (logical extents, in elements), ``_PAD_BEFORE_F``
    and ``_PAD_AFTER_F`` where there is padding, ``_PITCH_F`` (elements between neighbours of the
    outermost digit of f), ``_OFFSET``, and a function ``<prefix>_INDEX(b, f, y, x)`` that takes the
    logical index in logical order and returns the offset in elements (nibbles or bits where they
    share bytes, pixels' channels in an image): an ``int``, or a ``long`` where the tensor needs it.
    For a format alone the same with the sizes left to the user, who defines ``<prefix>_SIZE_F`` and
    the others before, as numbers or as names of kernel arguments.

    ``wide`` asks for 64-bit arithmetic (True) or 32-bit (False); by default a descriptor's size
    decides, and a format alone counts in 32 bits. Raises `InvalidFormat` for ``any``, and for a
    prefix that is no C identifier.
    """
    expect(target, MemoryDesc | Format | str, "target")
    expect(prefix, str, "prefix")
    expect(wide, bool | None, "wide")
    if not _IDENTIFIER.fullmatch(prefix):
        raise InvalidFormat(f"the prefix {prefix!r} must be a C identifier, such as SRC or INPUT0")
    if isinstance(target, MemoryDesc):
        if not target.has_layout:
            raise InvalidDescriptor(f"{target} has no layout: choose a concrete format")
        if target.has_runtime:
            raise InvalidDescriptor(
                f"{target} has sizes known at execution only: ask for the index source of its "
                f"format {target.format}, and define the sizes yourself"
            )
        if wide is None:
            wide = target.span_nbytes * 8 // target.dtype.bits > _INT_MAX
        return "\n".join(_of_desc(target, prefix, wide=wide)) + "\n"
    return "\n".join(_of_format(Format(target), prefix, wide=bool(wide))) + "\n"


def _of_desc(desc: MemoryDesc, prefix: str, *, wide: bool) -> Iterator[str]:
    fmt = desc.format
    yield f"// {desc}: digits {print_digits(fmt.structure, fmt.letters)}"
    for letter, n, (lower, upper) in zip(fmt.letters, desc.dims, desc.padding, strict=True):
        yield f"#define {prefix}_SIZE_{letter.upper()} {n}"
        if lower or upper:
            yield f"#define {prefix}_PAD_BEFORE_{letter.upper()} {lower}"
            yield f"#define {prefix}_PAD_AFTER_{letter.upper()} {upper}"
    strides: list[Expr] = []
    for p in desc.placed:
        if p.digit.size is not None and p.fixed_stride:
            strides.append(Const(p.stride))
            continue
        name = _pitch_name(prefix, fmt.letters, p.digit)
        yield f"#define {name} {p.stride}"
        strides.append(Var(name))
    yield f"#define {prefix}_OFFSET {desc.offset0}"
    pads: list[Expr] = [
        Var(f"{prefix}_PAD_BEFORE_{c.upper()}") if a or b else Const(0)
        for c, (a, b) in zip(fmt.letters, desc.padding, strict=True)
    ]
    offset0 = Var(f"{prefix}_OFFSET") if desc.offset0 else Const(0)
    yield from _function(fmt, prefix, strides, desc.padded_dims, pads, offset0, wide=wide)


def _of_format(fmt: Format, prefix: str, *, wide: bool) -> Iterator[str]:
    layout, letters = fmt.structure, fmt.letters
    names = ", ".join(f"{prefix}_SIZE_{c.upper()}" for c in letters)
    yield f"// {fmt}: digits {print_digits(layout, letters)}; define {names} before"
    extents = [_extent(layout, d, prefix, letters) for d in range(layout.ndims)]
    strides: list[Expr] = []
    stride: Expr = Const(1)
    lines: list[str] = []
    for p in reversed(place(layout, [1] * layout.ndims)):
        digit = p.digit
        if digit.size is None or not p.fixed_stride:
            name = _pitch_name(prefix, letters, digit)
            lines.append(f"#define {name} ({stride})")
            stride = Var(name)
        strides.append(stride)
        if digit.size is not None:
            stride = stride * digit.size
        else:
            fused: Expr = Const(1)
            for d in digit.dims:
                fused = fused * extents[d]
            stride = stride * ((fused + (digit.step - 1)) // digit.step)
    yield from reversed(lines)
    yield from _function(fmt, prefix, strides[::-1], extents, [], Const(0), wide=wide)


def _extent(layout: Layout, dim: int, prefix: str, letters: str) -> Expr:
    """The extent of a dimension, rounded up where the format aligns it without a block."""
    size: Expr = Var(f"{prefix}_SIZE_{letters[dim].upper()}")
    align = layout.align[dim]
    return (size + (align - 1)) // align * align if align > 1 else size


def _pitch_name(prefix: str, letters: str, digit: Digit) -> str:
    """The macro for a digit's stride."""
    index = "".join(letters[d] for d in digit.dims).upper()
    if digit.size is None:
        return f"{prefix}_PITCH_{index}"
    return f"{prefix}_PITCH_{index}_BY_{digit.step}"


def _function(
    fmt: Format,
    prefix: str,
    strides: Sequence[Expr],
    extents: Sequence[Expr | int],
    lower: Sequence[Expr],
    offset0: Expr,
    *,
    wide: bool,
) -> Iterator[str]:
    kind = "long" if wide else "int"
    indices: list[Expr] = [Var(c) for c in fmt.letters]
    if lower:
        indices = [i + pad for i, pad in zip(indices, lower, strict=True)]
    placed = [Placed(d, d.size or 0, 0) for d in fmt.digits]
    tail = tail_at(fmt.structure, [Var(f"{prefix}_SIZE_{c.upper()}") for c in fmt.letters])
    expr = offset_expr(placed, indices, extents, strides, offset0, tail)
    parameters = ", ".join(f"{kind} {c}" for c in fmt.letters)
    yield f"static inline {kind} {prefix}_INDEX({parameters})"
    yield "{"
    yield f"    return {expr};"
    yield "}"
