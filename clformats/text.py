"""Descriptors as text: ``f32:b_fs_yx_fsv16:2x17x5x4``, printed and read."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING

from .errors import InvalidDescriptor
from .formats.digits import RUNTIME, place
from .formats.registry import for_bits
from .geometry import extents

if TYPE_CHECKING:
    from .desc import MemoryDesc

_OPTIONS = {
    "pad": "pad=0+0x1+1",
    "padded": "padded=2x32x3",
    "strides": "strides=12x1x3",
    "offset": "offset=48",
}


def printed(desc: MemoryDesc) -> str:
    """The text of a descriptor, which `MemoryDesc.parse` reads."""
    name = for_bits(str(desc.format), 0)  # without ":i4", which the element type tells
    dims = "x".join(map(_size_text, desc.dims))
    return ":".join([str(desc.dtype), name, dims, *_options(desc)])


def _options(desc: MemoryDesc) -> Iterator[str]:
    """What dtype, format and dims do not tell, each as ``key=value``."""
    if any(map(any, desc.padding)):
        yield "pad=" + "x".join(f"{lower}+{upper}" for lower, upper in desc.padding)
    if not desc.has_layout:
        return
    layout = desc.format.structure
    if desc.padded_dims != layout.padded(extents(desc.dims, desc.padding)):
        yield "padded=" + "x".join(map(_size_text, desc.padded_dims))
    natural = {p.digit: p.stride for p in place(layout, desc.padded_dims)}
    if any(p.stride != natural[p.digit] for p in desc.placed):
        strides = desc.strides if layout.is_tag else [p.stride for p in desc.placed]
        yield "strides=" + "x".join(map(_size_text, strides))
    if desc.offset0:
        yield f"offset={desc.offset0}"


def read(text: str) -> tuple[str, str, list[int], dict[str, list[int]]]:
    """Element type, format, dims and options of a text. Raises `InvalidDescriptor`."""
    dtype, name, dims, *rest = (*text.strip().split(":"), "", "")
    try:
        options = {k: _numbers(v) for k, _, v in (o.partition("=") for o in rest if o)}
        sizes = _numbers(dims)
        if text.count(":") < 2 or not options.keys() <= set(_OPTIONS):
            raise ValueError(text)  # noqa: TRY301  # one message for all that cannot be read
    except ValueError:
        raise InvalidDescriptor(
            f"cannot read the descriptor {text!r}: expected dtype:format:dims such as "
            f"f32:b_fs_yx_fsv16:2x17x5x4, then perhaps {', '.join(_OPTIONS.values())}"
        ) from None
    return dtype, name, sizes, options


def pairs(numbers: Sequence[int]) -> list[tuple[int, int]]:
    """Neighbours as pairs: the lower and upper padding of each dimension."""
    return list(zip(numbers[::2], numbers[1::2], strict=False))


def _size_text(n: int) -> str:
    return "*" if n == RUNTIME else str(n)


def _numbers(text: str) -> list[int]:
    """The numbers of ``"2x17x*"``, ``"0+0x1+1"`` or ``""``; raises ValueError."""
    return [RUNTIME if n == "*" else int(n) for n in re.split("[x+]", text)] if text else []
