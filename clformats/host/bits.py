"""Codes of less than a byte to the bytes that they share, and back, at numpy's speed.

Eight codes of b bits are b bytes. Eight bytes of memory with a code in each are one word, in which
neighbours are joined: pairs of codes in three steps, until the codes of a word follow each other
without a gap. In the other direction the same steps are taken backwards.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from .copying import move

Bytes = NDArray[np.uint8]
_WORD = np.dtype("<u8")
_EACH = 8
"""The codes of a word, and the bits that each has there."""


def joined(codes: Bytes, bits: int) -> Bytes:
    """The bytes of codes that follow each other, the first in the lowest bits.

    ``codes`` is 1-D, of bytes below ``1 << bits``; what is left of the last byte is 0.
    """
    nbytes = -(-codes.size * bits // 8)
    words = -(-codes.size // _EACH)
    if codes.size % _EACH or not codes.flags.c_contiguous or codes.ctypes.data % _EACH:
        whole = np.zeros(words * _EACH, np.uint8)
        whole[: codes.size] = codes
        codes = whole
    result = np.empty((words, bits), np.uint8)
    if words:
        move([(result, codes.reshape(words, _EACH))], lambda part: _joined(part, bits))
    return result.reshape(-1)[:nbytes]


def apart(bytes_: Bytes, bits: int) -> Bytes:
    """The inverse of `joined`: as many codes as have all of their bits in the bytes."""
    count = bytes_.size * 8 // bits
    words = -(-bytes_.size // bits)
    if bytes_.size % bits:
        bytes_ = np.concatenate([bytes_, np.zeros(words * bits - bytes_.size, np.uint8)])
    result = np.empty((words, _EACH), np.uint8)
    if words:
        move([(result, bytes_.reshape(words, bits))], lambda part: _apart(part, bits))
    return result.reshape(-1)[:count]


def _joined(codes: Bytes, bits: int) -> Bytes:
    word = np.ascontiguousarray(codes).view(_WORD)
    for width in (8, 16, 32):  # of a lane, with (width // 8) codes in its lowest bits
        low = _every(2 * width, width)
        gap = np.uint64(width - width // 8 * bits)
        word = word & low | (word & ~low) >> gap
    return word.view(np.uint8).reshape(-1, _EACH)[:, :bits]


def _apart(bytes_: Bytes, bits: int) -> Bytes:
    padded = np.zeros((len(bytes_), _EACH), np.uint8)
    padded[:, :bits] = bytes_
    word = padded.view(_WORD)
    for width in (32, 16, 8):
        filled = width // 8 * bits
        low = _every(2 * width, filled)
        word = word & low | (word & low << np.uint64(filled)) << np.uint64(width - filled)
    return word.view(np.uint8).reshape(-1, _EACH)


def _every(period: int, ones: int) -> Any:
    """A word with so many ones at the low end of each period."""
    return np.uint64(sum(((1 << ones) - 1) << at for at in range(0, 64, period)))
