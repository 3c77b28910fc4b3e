"""Tensors of numbers as planes of quantised ones: one plane, of whole bytes."""

from __future__ import annotations

from ..quantised.lanes import At, NotInTilesError, Placed, Symbols, symbolic
from ..quantised.planes import PlaneDigit
from ..tensors.desc import MemoryDesc


def numbers_in_tiles(dst: MemoryDesc, symbols: Symbols) -> Placed:
    """The digits of a tensor of numbers, as those of a plane. Raises `NotInTilesError`."""
    whole = dst.padded_dims == dst.dims and not any(map(any, dst.padding))
    simple = all(isinstance(p.digit.dim, int) and not p.digit.flip for p in dst.placed)
    if not (whole and simple) or dst.tail or dst.ndims > 3 or dst.format.image or dst.sums:
        raise NotInTilesError
    bits = dst.dtype.bits
    digits = []
    for p in dst.placed:
        if p.stride == 0 and p.size > 1:
            raise NotInTilesError
        dim, step = p.digit.dims[0] + 3 - dst.ndims, p.digit.step
        stride = p.stride * bits if p.size > 1 else 0  # one program serves every size
        varies, is_open = not p.fixed_stride and p.stride != 1, p.digit.size is None
        own = PlaneDigit(dim, step, p.size, stride)
        digits.append(symbolic(own, step, varies, is_open, symbols))
    at = At(0)
    if dst.offset0:
        at = At(0, ((symbols.of(dst.offset0 * bits // 8), 1),))
    return Placed("out", bits, tuple(digits), at)
