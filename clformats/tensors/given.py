"""Descriptors and formats as users give them: as they are, or as their text."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import replace
from functools import lru_cache
from typing import Any

from ..errors import InvalidArgument, InvalidDescriptor, expect, shown
from ..formats import Format
from ..formats.registry import takes_rank, without_bits
from . import described, images
from .desc import MemoryDesc
from .geometry import check_size, int_tuple


def as_desc(value: object, what: str) -> MemoryDesc:
    """The descriptor, or the one that a text such as ``"f32:bfyx:2x17x5x4"`` means.

    ``what`` names the argument. Raises `InvalidArgument`, `InvalidDescriptor` and `InvalidFormat`.
    """
    if isinstance(value, str):
        value = MemoryDesc.parse(value)
    if isinstance(getattr(value, "desc", None), MemoryDesc):
        raise InvalidArgument(
            f"{what}: got {shown(value)}, expected its descriptor: give its .desc"
        )
    described.refuse(value, what)
    expect(value, MemoryDesc, what)
    return value  # type: ignore[return-value]


def as_any_desc(value: object, what: str) -> Any:
    """As `as_desc`, or a descriptor of another kind, such as of a quantised tensor."""
    if isinstance(value, str):
        value = MemoryDesc.parse(value)
    return value if isinstance(value, described.Described) else as_desc(value, what)


def require_memory(desc: MemoryDesc) -> None:
    """Raise `InvalidDescriptor` without dims or layout, and for more bytes than there can be."""
    if not desc.ndims:
        raise InvalidDescriptor(
            f"{desc} has no dims, and so no element: describe a single value by the dims (1,)"
        )
    desc.require_layout()
    check_size(desc.geometry, desc.dtype.bits)


def is_desc_text(text: str) -> bool:
    """Whether a text is that of a descriptor, not a format's name."""
    return ":" in without_bits(text)


def as_target(
    value: object, shape: Iterable[int] | None = None, dtype: object = None
) -> tuple[Format, MemoryDesc | None]:
    """A format, and the descriptor where there are sizes: in ``value`` itself, or as ``shape``.

    Raises `InvalidArgument`, `InvalidDescriptor` and `InvalidFormat`.
    """
    expect(value, Format | MemoryDesc | str, "what")
    if isinstance(value, MemoryDesc) or (isinstance(value, str) and is_desc_text(value)):
        desc = as_desc(value, "what")
        if shape is not None or dtype is not None:
            raise InvalidDescriptor(f"{desc} already has sizes and element type: leave shape out")
        return desc.format, desc
    dims = None if shape is None else int_tuple("shape", shape)
    rank = len(dims) if dims is not None and takes_rank(str(value)) else None
    fmt = Format(value, rank)  # type: ignore[arg-type]
    return (fmt, None) if dims is None else sized(fmt, dims, dtype)


def sized(fmt: Format, dims: Iterable[int], dtype: object = None) -> tuple[Format, MemoryDesc]:
    """A descriptor of a format, by default of `default_dtype`, and its format with the rank."""
    desc = MemoryDesc(dims, default_dtype(fmt) if dtype is None else dtype, fmt)
    return desc.format if desc.has_layout else fmt, desc


def default_dtype(fmt: Format) -> str:
    """The type that is most common, or the one that the format is for."""
    if without_bits(fmt.name) != fmt.name:
        return "u4"
    return "u8" if fmt.name in images.PICTURES else "f32"


def moved_by(desc: MemoryDesc, elements: int) -> MemoryDesc:
    """The same tensor, ``elements`` further on in its buffer."""
    if not elements:
        return desc
    moved = replace(desc.geometry, offset0=desc.offset0 + elements)
    return MemoryDesc.of(moved, desc.dtype)


@lru_cache(maxsize=4096)
def canonical(desc: MemoryDesc) -> MemoryDesc:
    """One object for all descriptors that are equal, so that calls compare them by identity.

    It may spell its format otherwise. One that has not been met for long may come back as another
    object: a comparison must look closer then.
    """
    return desc
