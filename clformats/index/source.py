"""`index_source`: the offsets of one tensor's elements, as self-contained OpenCL C."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from typing import cast

from ..errors import InvalidArgument, InvalidDescriptor, InvalidFormat, expect, expect_int
from ..formats.digits import RUNTIME
from ..formats.expr import Const, Expr
from ..formats.format import Format
from ..pictures.words import formula
from ..templates import filled
from ..tensors.desc import MemoryDesc
from ..tensors.described import Described, is_described
from ..tensors.given import as_any_desc, as_target
from .inverse import Inverse, inverse, inverse_of_tail
from .lines import folded
from .pixel import pixel
from .quantised import quantised_source
from .tensor import FORMS, Form, IndexedTensor, Known, of_desc, of_format, tensor
from .vector import vector as vector_of

OWN_LINES = "// From here on compilers count the lines of what follows.\n#line 1\n"
_IDENTIFIER = re.compile(r"[A-Za-z_][A-Za-z0-9_]*")


def index_source(  # noqa: PLR0913  # what can be asked about one tensor
    target: MemoryDesc | Described | Format | str,
    prefix: str = "SRC",
    *,
    wide: bool | None = None,
    sizes: str | None = None,
    padded: str = "",
    shape_info_at: int = 0,
    vector: str | None = None,
    buffers: bool = False,
) -> str:
    """Self-contained OpenCL C 1.2 with the offsets of a tensor's elements; see docs/kernels.md.

    ``target`` is a descriptor or a format, or the text of one. Macros for each dimension, here f:
    ``<prefix>_SIZE_F``; ``_PAD_BEFORE_F`` and ``_PAD_AFTER_F`` if there is padding; ``_EXTENT_F``,
    the size in memory, with padding and in whole blocks; ``_BLOCK_F`` and ``_BLOCKS_F`` if it is
    blocked; ``_PITCH_F``, the stride of the outermost digit, in elements. Macros of the tensor:
    ``_OFFSET`` of the first element, ``_LENGTH`` (elements) and ``_PLACES`` (elements that a buffer
    must hold, padding included). Functions, with coordinates in logical order: ``_INDEX(b, f, y,
    x)``, the offset in elements (in nibbles or bits if elements share bytes, in channels for an
    image); ``_INDEX_SAFE``, the same with each coordinate modulo its size; ``_COORDS(offset, &b,
    &f, &y, &x)``, the inverse, false if there is no element; ``_LOAD_F16(src, b, f, y, x)`` and
    ``_STORE_F16(value, dst, b, f, y, x)`` for vectors of 16 neighbours along f. An image has
    ``_ROW``, ``_COLUMN``, ``_LAYER``, ``_PIXEL(image, b, f, y, x)``, ``_STORE_PIXEL(value, ...)``.

    ``sizes`` says where unknown sizes come from (all of a format, RUNTIME_DIM of a descriptor):
    ``"macros"`` of these names that you define before, the default for a format; ``"arguments"`` of
    the kernel, declared by ``<prefix>_PARAMETERS``; or clDNN's ``"shape_info"``, from number
    ``shape_info_at`` on. ``padded`` has the letters of a format's dimensions with padding, which
    comes from the same place. ``wide`` counts in ulong instead of uint; by default only a
    descriptor that needs it does. ``vector="f16"`` names dimension and width of vectors, "o4i4" a
    block (lane 4 * o + i of ``_LOAD_O4I4``), "" none; by default they are a descriptor's innermost
    block. They load f16 as floats, with ``"half"`` at the end as half, bf16 and f8 as their bits.

    Of a quantised tensor it is functions that decode on load; ``buffers`` says that its fields have
    buffers of their own: see `clformats.index.quantised.quantised_source`. Compilers count the
    lines of your kernel from 1. Raises `InvalidFormat` for ``any`` and for a prefix that is no C
    identifier, `InvalidDescriptor`, `InvalidArgument` for the others.
    """
    checked_prefix(prefix)
    if is_described(target):
        return _quantised(target, prefix, sizes, buffers, (wide, vector, padded or None))
    if buffers:
        raise InvalidArgument(f"buffers={buffers!r} is for quantised tensors: leave it out")
    return _of_numbers(known_of(target, padded), prefix, wide, sizes, shape_info_at, vector)  # type: ignore[arg-type]


def _of_numbers(
    known: Known,
    prefix: str,
    wide: bool | None,  # noqa: FBT001  # as the user gave it
    sizes: str | None,
    at: int,
    vector: str | None,
) -> str:
    """The source of a tensor of one element type."""
    expect(vector, str | None, "vector")
    if expect_int(at, "shape_info_at") < 0:
        raise InvalidArgument(f"shape_info_at: got {at}, expected 0 or more")
    counted = _is_wide(known, wanted=wide)
    t = tensor(known, prefix, _form(known, sizes), wide=counted, at=at)
    return f"{render_tensor(t, vector)}\n{OWN_LINES}"


def _quantised(
    target: object, prefix: str, sizes: str | None, buffers: object, others: Sequence[object]
) -> str:
    """The functions of a quantised tensor; ``wide``, ``vector`` and ``padded`` are refused."""
    names = ("wide", "vector", "padded")
    given = [f"{n}={v!r}" for n, v in zip(names, others, strict=True) if v is not None]
    if given:
        raise InvalidArgument(
            f"{', '.join(given)}: the source of a quantised tensor has functions for 1, 4, 8 and "
            f"16 columns: leave it out"
        )
    expect(sizes, str | None, "sizes")
    expect(buffers, bool, "buffers")
    desc = as_any_desc(target, "target")
    return f"{quantised_source(desc, prefix, sizes, buffers=bool(buffers))}\n{OWN_LINES}"


def known_of(target: MemoryDesc | Format | str, padded: str = "") -> Known:
    """What is known of a descriptor, or of a format with unknown padding along some dimensions."""
    expect(target, MemoryDesc | Format | str, "target")
    expect(padded, str, "padded")
    fmt, desc = as_target(target)
    if desc is None:
        return of_format(fmt, padded)
    if padded:
        raise InvalidArgument(f"padded={padded!r} is for formats; {desc} has its own padding")
    return of_desc(desc)


def checked_prefix(prefix: str) -> str:
    """The prefix. Raises `InvalidFormat` where it is no C identifier."""
    expect(prefix, str, "prefix")
    if not _IDENTIFIER.fullmatch(prefix):
        raise InvalidFormat(f"the prefix {prefix!r} must be a C identifier, such as SRC or INPUT0")
    return prefix


def _is_wide(known: Known, *, wanted: bool | None) -> bool:
    expect(wanted, bool | None, "wide")
    if wanted is False and known.is_wide:
        raise InvalidArgument(f"wide=False: {known.desc} has more than 32 bits can count")
    return bool(wanted) or known.is_wide


def _form(known: Known, sizes: str | None) -> Form:
    expect(sizes, str | None, "sizes")
    if sizes not in (None, *FORMS):
        raise InvalidArgument(f"sizes: got {sizes!r}, expected {', '.join(FORMS)} or None")
    if sizes is not None and known.is_static:
        raise InvalidArgument(
            f"sizes={sizes!r}: every size of {known.desc} is known; give its format, or "
            f"RUNTIME_DIM for those that are not"
        )
    if sizes is None and known.desc is not None and not known.is_static:
        raise InvalidDescriptor(
            f"{known.desc} has sizes known at execution only: say where they come from, by "
            f"sizes={', '.join(FORMS)}"
        )
    return cast("Form", sizes or "macros")


def render_tensor(t: IndexedTensor, vector: str | None) -> str:
    """The source of a tensor whose numbers have names."""
    tail = t.tail
    behind = inverse_of_tail(t) if tail else None
    first = inverse(t)
    text = filled(
        "index",
        t=t,
        p=t.prefix,
        kind=t.index_type,
        head=list(_head(t)),
        wrapped=list(zip(t.letters, _moduli(t), strict=True)),
        inverse=first,
        behind=behind,
        tail=f"*{t.letters[tail.dim]} >= {tail.start}" if tail else "",
        inside=list(_inside(t, first)),
        vector=vector_of(t, vector),
        pixel=pixel(t),
    )
    return folded(text)


def _head(t: IndexedTensor) -> Iterator[str]:
    """What it is, in comments."""
    yield str(t.known.desc or t.format)
    yield f"digits, outermost first: {', '.join(formula(t.format, d) for d in t.format.digits)}"
    if t.form == "macros" and not t.known.is_static:
        names = [str(n) for n, size in zip(t.sizes, t.known.dims, strict=True) if size == RUNTIME]
        for c, pads in zip(t.letters.upper(), t.known.padding, strict=True):
            if RUNTIME in pads:
                names += [f"{t.prefix}_PAD_BEFORE_{c}", f"{t.prefix}_PAD_AFTER_{c}"]
        yield f"define before: {', '.join(names)}"


def _moduli(t: IndexedTensor) -> Iterator[Expr]:
    """What coordinates wrap at; an empty tensor has no place that they could."""
    for size, n in zip(t.sizes, t.known.dims, strict=True):
        yield size if n else Const(1)


def _inside(t: IndexedTensor, found: Inverse) -> Iterator[str]:
    """The conditions under which an element lies there."""
    if found.rest:
        yield "rest == 0"
    for step in found.steps:
        if step.most is not None:
            yield f"{step.name} < {step.most}"
    for c, size in zip(t.letters, t.sizes, strict=True):
        yield f"*{c} < {size}"
