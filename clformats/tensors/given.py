"""Descriptors as users give them: as they are, or as their text."""

from __future__ import annotations

from ..errors import expect
from .desc import MemoryDesc


def as_desc(value: object, what: str) -> MemoryDesc:
    """The descriptor, or the one that a text such as ``"f32:bfyx:2x17x5x4"`` means.

    ``what`` names the argument. Raises `InvalidArgument`, `InvalidDescriptor` and `InvalidFormat`.
    """
    if isinstance(value, str):
        return MemoryDesc.parse(value)
    expect(value, MemoryDesc, what)
    return value  # type: ignore[return-value]
