"""Elements of less than a byte: which tensors own whole bytes.

A device writes bytes. Where a byte holds one element of the destination and one of something else,
or nothing that is known, the bits of the other must stay: only the kernel that goes byte by byte
(`clformats.kernels.generic`) sees to that, the faster ones need whole bytes. Every tensor can be
read.
"""

from __future__ import annotations

from collections import defaultdict

from ..errors import Unsupported
from ..formats.digits import Digit, Placed
from .desc import MemoryDesc


def check(src: MemoryDesc, dst: MemoryDesc) -> None:
    """Raise `Unsupported` where no kernel moves ``src`` to ``dst`` because elements share bytes."""
    packed = src.dtype.is_packed or dst.dtype.is_packed
    if packed and (src.format.image or dst.format.image):
        raise Unsupported(
            "IMAGE",
            f"no kernel moves elements of less than a byte to or from an image ({src} -> {dst}): "
            f"reorder between the image and a buffer of f16 or f32 first",
        )


def refusal(desc: MemoryDesc) -> str:
    """Why a tensor does not own whole bytes; empty if it does.

    A tensor owns its elements and its padding. Those that follow each other without a gap are a
    *run*; a byte is shared exactly where a run does not start and end with units of elements, the
    fewest whole bytes. (A region that is a part of an odd block is refused even where it has whole
    bytes.)
    """
    unit = desc.dtype.unit
    if not desc.nelems or unit == 1:
        return ""
    if desc.offset0 % unit:
        return f"its first element is at offset {desc.offset0}, within a byte"
    digits = sorted((p for p in desc.placed if p.size > 1), key=lambda p: p.stride)
    run, outer = 1, list(digits)
    while outer and outer[0].stride == run:
        run *= outer.pop(0).size
    if run % unit:
        return f"{run} of its elements lie side by side, which ends within a byte"
    odd = [p.stride for p in outer if p.stride % unit]
    if odd:
        return f"a stride of {odd[0]} elements leads into the middle of a byte"
    return _refusal_inside(desc, digits[0], unit) if digits else ""


def _refusal_inside(desc: MemoryDesc, inner: Placed, unit: int) -> str:
    """The same for blocks that are only partly the tensor's, and for a tail in another order."""
    if desc.tail and not _units_alike(inner, desc.tail.layout.digits[-1], unit):
        return "its last elements lie in another order than the rest"
    cover: dict[int, int] = defaultdict(int)
    for p in desc.placed:
        if len(p.digit.dims) == 1:
            d = p.digit.dims[0]
            cover[d] = max(cover[d], p.digit.step * p.size)
    partial = [d for d, n in cover.items() if n != desc.padded_dims[d]]
    if not partial:
        return ""
    if inner.size % unit:
        return f"of the blocks of dimension {partial[0]} it has only a part"
    d = inner.digit.dims[-1]
    if d in partial and desc.padded_dims[d] % (unit * inner.digit.step):
        return f"it has {desc.padded_dims[d]} places of dimension {d}, which end within a byte"
    return ""


def _units_alike(inner: Placed, behind: Digit, unit: int) -> bool:
    """Whether neighbours in one order are neighbours in the other, where a byte starts."""
    same = (inner.digit.index, inner.digit.step) == (behind.index, behind.step)
    return same and inner.size % unit == 0 and (behind.size or 0) % unit == 0
