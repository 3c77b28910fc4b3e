"""Descriptors as text: ``f32:b_fs_yx_fsv16:2x17x5x4``, printed and read."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence

from ..errors import InvalidDescriptor
from ..formats.digits import RUNTIME, place
from ..formats.registry import for_bits, without_bits
from ..formats.sums import Extra
from .dtypes import DType
from .geometry import Geometry, extents, strides_of

_OPTIONS = {
    "pad": "pad=0+0x1+1",
    "padded": "padded=2x32x3",
    "strides": "strides=12x1x3",
    "offset": "offset=48",
    "s8s8": "s8s8=1",
    "asymmetric": "asymmetric=1",
    "adjust": "adjust=0.5@1",
}


def printed(g: Geometry, dtype: DType) -> str:
    """The text of a descriptor, which `MemoryDesc.parse` reads."""
    name = without_bits(str(g.format))  # the element type implies it
    return ":".join([str(dtype), name, "x".join(map(_size_text, g.dims)), *_options(g)])


def _options(g: Geometry) -> Iterator[str]:
    """What dtype, format and dims leave open, each as ``key=value``."""
    if any(map(any, g.padding)):
        yield "pad=" + "x".join(f"{lower}+{upper}" for lower, upper in g.padding)
    layout = g.format.layout
    if layout is None:
        return
    if g.padded_dims != layout.padded(extents(g.dims, g.padding)):
        yield "padded=" + "x".join(map(_size_text, g.padded_dims))
    natural = {p.digit: p.stride for p in place(layout, g.padded_dims)}
    if any(p.stride != natural[p.digit] for p in g.placed):
        blocks = all(p.stride == natural[p.digit] for p in g.placed if p.fixed_size)
        strides = strides_of(g) if layout.is_tag and blocks else [p.stride for p in g.placed]
        yield "strides=" + "x".join(map(_size_text, strides))
    if g.offset0:
        yield f"offset={g.offset0}"
    if extra := g.extra:
        yield from (f"{k}={extra.mask}" for k in ("s8s8", "asymmetric") if getattr(extra, k))
        if extra.scale_adjust != 1:
            yield f"adjust={extra.scale_adjust!r}@{extra.mask}"


def read(text: str) -> tuple[str, str, list[int], dict[str, list[int]], Extra | None]:
    """Element type, format, dims and options of a text. Raises `InvalidDescriptor`."""
    parts = text.strip().split(":")
    if parts[2:3] == ["i4"]:  # part of the name of a format
        parts[1:3] = [f"{parts[1]}:i4"]
    dtype, name, dims, *rest = (*parts, "", "")
    try:
        given = [o.partition("=") for o in rest if o]
        extra = _extra([(k, v) for k, _, v in given if k in ("s8s8", "asymmetric", "adjust")])
        options = {k: _numbers(v) for k, _, v in given if k not in ("s8s8", "asymmetric", "adjust")}
        sizes = _numbers(dims) if "+" not in dims else _numbers("?")
        repeated = len({k for k, _, _ in given}) != len(given)
        if len(parts) < 3 or repeated or not options.keys() <= set(_OPTIONS):
            raise ValueError(text)  # noqa: TRY301  # one message for all that cannot be read
    except ValueError:
        raise InvalidDescriptor(
            f"cannot read the descriptor {text!r}: expected dtype:format:dims such as "
            f"f32:b_fs_yx_fsv16:2x17x5x4, then perhaps {', '.join(_OPTIONS.values())}"
        ) from None
    return dtype, name, sizes, options, extra


def _extra(given: Sequence[tuple[str, str]]) -> Extra | None:
    """The extra of ``s8s8=1``, ``asymmetric=1`` and ``adjust=0.5@1``; raises ValueError."""
    if not given:
        return None
    factors = [v.partition("@") for k, v in given if k == "adjust"]
    masks = {int(v) for k, v in given if k != "adjust"} | {int(m) for _, _, m in factors}
    if len(masks) != 1:
        raise ValueError(given)
    asked = {k for k, _ in given}
    factor = float(factors[0][0]) if factors else 1.0
    return Extra(masks.pop(), "s8s8" in asked, "asymmetric" in asked, factor)


def pairs(numbers: Sequence[int]) -> list[tuple[int, int]]:
    """Neighbours as pairs: the lower and upper padding of each dimension."""
    return list(zip(numbers[::2], numbers[1::2], strict=False))


def _size_text(n: int) -> str:
    return "*" if n == RUNTIME else str(n)


def _numbers(text: str) -> list[int]:
    """The numbers of ``"2x17x*"``, ``"0+0x1+1"`` or ``""``; raises ValueError."""
    if not re.fullmatch(r"(?:(?:-?[0-9]+|\*)(?:[x+](?:-?[0-9]+|\*))*)?", text):
        raise ValueError(text)
    return [RUNTIME if n == "*" else int(n) for n in re.split("[x+]", text)] if text else []


def name_for(name: str, dtype: DType) -> str:
    """The name of a format for an element type; refuses the orders of 4-bit elements for others."""
    plain = without_bits(name)
    if plain != name and dtype.bits != 4:
        raise InvalidDescriptor(
            f"{name} is an order of elements of 4 bits (s4, u4), got {dtype}: leave :i4 out for "
            f"what clDNN means by {plain} at other widths"
        )
    return for_bits(name, dtype.bits)
