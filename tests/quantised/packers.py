"""Packing rules of others, written anew from what they are, element by element: the tests' oracle.

Each takes integers (rows n, columns k) and gives the bytes of what the name says. They know nothing
of digits.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

Array = NDArray[Any]


def words(columns: list[Array], bits: int) -> Array:
    """Values of ``bits`` bits, the first in the lowest bits, as words of 32 bits."""
    word = np.zeros(columns[0].shape, np.uint32)
    for j, c in enumerate(columns):
        word |= c.astype(np.uint32) << np.uint32(bits * j)
    return word


def gptq(q: Array, bits: int = 4) -> Array:
    """int32 [K / pack, N]: a word has neighbours along k."""
    t, per = q.T, 32 // bits
    return words([t[j::per] for j in range(per)], bits)


def gptq_zeros(z: Array, bits: int = 4) -> Array:
    """int32 [G, N / pack] of z - 1."""
    t, per = (z.T.astype(np.int64) - 1) & ((1 << bits) - 1), 32 // bits
    return words([t[:, j::per] for j in range(per)], bits)


def gptq3(q: Array) -> Array:
    """32 values of 3 bits along k in three words, as GPTQ's loop packs them."""
    t = q.T.astype(np.uint64)
    result = np.zeros((t.shape[0] // 32 * 3, t.shape[1]), np.uint32)
    for block in range(t.shape[0] // 32):
        for j in range(32):
            for b in range(3):
                at = 3 * j + b
                bit = (t[32 * block + j] >> np.uint64(b) & np.uint64(1)).astype(np.uint32)
                result[3 * block + at // 32] |= bit << np.uint32(at % 32)
    return result


AWQ_ORDER = (0, 2, 4, 6, 1, 3, 5, 7)


def awq(q: Array) -> Array:
    """int32 [K, N / 8]: nibble j of a word is output AWQ_ORDER[j]."""
    t = q.T
    return words([t[:, j::8] for j in AWQ_ORDER], 4)


def awq_gemv(q: Array) -> Array:
    """int32 [N, K / 8]: in order."""
    return words([q[:, j::8] for j in range(8)], 4)


def awq_gemv_fast(q: Array) -> Array:
    """int16 [N / 4, K]: pairs of 32 values dealt out, each 8 in AWQ's order, four rows in turn."""
    n, k = q.shape
    dealt = [8 * part + 2 * pair + one for pair in range(4) for part in range(4) for one in (0, 1)]
    order = [dealt[8 * part + j] for part in range(4) for j in AWQ_ORDER]
    mixed = q.reshape(n, k // 32, 32)[:, :, order].reshape(n // 4, 4, k // 64, 64)
    quads = mixed.transpose(0, 2, 1, 3).reshape(-1, 4)
    word = np.zeros(quads.shape[0], np.uint16)
    for j in range(4):
        word |= quads[:, j].astype(np.uint16) << np.uint16(4 * j)
    return word.reshape(n // 4, k)


def marlin(q: Array) -> Array:
    """int32 [K / 16, 2 N]: Marlin's permutation of 1024 values, in tiles of 16 by 64."""
    perm = []
    for i in range(32):
        own, column = [], i // 4
        for block in (0, 1):
            rows = (2 * (i % 4), 2 * (i % 4) + 1, 2 * (i % 4 + 4), 2 * (i % 4 + 4) + 1)
            own += [16 * row + column + 8 * block for row in rows]
        for j in range(4):
            perm += [p + 256 * j for p in own]
    interleave = np.array([0, 2, 4, 6, 1, 3, 5, 7])
    order = np.array(perm).reshape(-1, 8)[:, interleave].ravel()
    t = q.T
    k, n = t.shape
    tiles = t.reshape(k // 16, 16, n // 16, 16).transpose(0, 2, 1, 3).reshape(k // 16, 16 * n)
    mixed = tiles.reshape(-1, 1024)[:, order].reshape(tiles.shape)
    return words([mixed[:, j::8] for j in range(8)], 4)


def marlin_scales(s: Array) -> Array:
    """Groups: in each 64 outputs, 8 by 8 transposed."""
    order = [i + 8 * j for i in range(8) for j in range(8)]
    return np.ascontiguousarray(s.T.reshape(-1, 64)[:, order].reshape(s.T.shape))


def swizzled(scales: Array) -> Array:
    """Scale factors (m, g) in tiles of 128 x 4, as cuBLAS has them; zeros where there are none."""
    m, g = scales.shape
    rows, columns = -(-m // 128), -(-g // 4)
    padded = np.zeros((rows * 128, columns * 4), scales.dtype)
    padded[:m, :g] = scales
    tiles = padded.reshape(rows, 128, columns, 4).transpose(0, 2, 1, 3)
    return np.asarray(tiles.reshape(-1, 4, 32, 4).transpose(0, 2, 1, 3).reshape(-1))


def in_bits(q: Array, bits: int) -> Array:
    """Rows of values of ``bits`` bits, without gaps, filled up to words of 32 bits."""
    n, k = q.shape
    stream = (q.astype(np.int64)[..., None] >> np.arange(bits) & 1).reshape(n, k * bits)
    stream = np.pad(stream, ((0, 0), (0, -(k * bits) % 32)))
    return np.asarray(np.packbits(stream.astype(np.uint8), axis=1, bitorder="little"))


def offset_in_bits(q: Array, bits: int) -> Array:
    """As `in_bits`, of values with 2^(bits - 1) added."""
    return in_bits((q + (1 << bits - 1)) & ((1 << bits) - 1), bits)


def repacked(source: Array, rows: int, piece: int) -> Array:
    """Bytes (rows, blocks, B) of ggml's CPU backend: pieces of the rows in turn."""
    n, blocks, size = source.shape
    turned = source.reshape(n // rows, rows, blocks, size // piece, piece)
    return np.asarray(turned.transpose(0, 2, 3, 1, 4).reshape(n // rows, blocks, -1))


def six_bits(sc: Array, mn: Array) -> Array:
    """Eight pairs of six bits (..., 8) in twelve bytes, as Q4_K has them."""
    low, high = sc[..., :4] | (sc[..., 4:] >> 4) << 6, mn[..., :4] | (mn[..., 4:] >> 4) << 6
    both = (sc[..., 4:] & 15) | (mn[..., 4:] & 15) << 4
    return np.concatenate([low, high, both], -1).astype(np.uint8)
