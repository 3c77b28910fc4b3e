"""The worked examples that this library grew from: oneDNN's and clDNN's own documents."""

from __future__ import annotations

from itertools import product

import numpy as np
import pytest

import clformats as cf

N, C, H, W = 2, 16, 5, 4


def _nchw(n: int, c: int, h: int, w: int) -> int:
    return n * C * H * W + c * H * W + h * W + w


def _nhwc(n: int, c: int, h: int, w: int) -> int:
    return n * H * W * C + h * W * C + w * C + c


def _chwn(n: int, c: int, h: int, w: int) -> int:
    return c * H * W * N + h * W * N + w * N + n


def _nchw8c(n: int, c: int, h: int, w: int) -> int:
    return n * C * H * W + (c // 8) * H * W * 8 + h * W * 8 + w * 8 + c % 8


@pytest.mark.parametrize(
    ("name", "formula"),
    [("nchw", _nchw), ("nhwc", _nhwc), ("chwn", _chwn), ("nChw8c", _nchw8c)],
)
def test_offset_formula(name: str, formula: object) -> None:
    desc = cf.MemoryDesc((N, C, H, W), "f32", name)
    for index in product(range(N), range(C), range(H), range(W)):
        assert desc.offset(*index) == formula(*index)  # type: ignore[operator]


def test_value_formula_comes_back_from_every_layout() -> None:
    values = np.arange(N * C * H * W, dtype=np.int32).reshape(N, C, H, W)
    for name in ("nchw", "nhwc", "chwn", "nChw8c"):
        flat = cf.pack(values, cf.MemoryDesc(values.shape, "s32", name))
        for index in ((0, 0, 0, 0), (1, 15, 4, 3), (0, 9, 2, 1)):
            offset = cf.MemoryDesc(values.shape, "s32", name).offset(*index)
            assert flat[offset] == _nchw(*index)


def test_seventeen_channels_in_blocks_of_eight() -> None:
    desc = cf.MemoryDesc((2, 17, 5, 4), "f32", "nChw8c")
    assert desc.padded_dims == (2, 24, 5, 4)
    assert desc.strides == (24 * 5 * 4, 5 * 4 * 8, 4 * 8, 8)
    assert (desc.inner_blks, desc.inner_idxs) == ((8,), (1,))
    assert desc.nbytes == 2 * 24 * 5 * 4 * 4
    assert desc.offset(1, 16, 4, 3) == 952
    assert desc.coords(953) is None


def test_bfyx_table() -> None:
    """clDNN's first table: i = 0..15 for [b: 2, f: 2, y: 2, x: 2]."""
    desc = cf.MemoryDesc((2, 2, 2, 2), "f32", "bfyx")
    assert [desc.coords(i) for i in range(16)] == list(product(range(2), repeat=4))


def test_b_fs_yx_fsv16_table() -> None:
    """clDNN's second table: 128 places, of which 16 hold elements and the rest is padding."""
    desc = cf.MemoryDesc((2, 2, 2, 2), "f32", "b_fs_yx_fsv16")
    assert desc.padded_dims == (2, 16, 2, 2)
    assert desc.nbytes == 128 * 4
    for i in range(128):
        b, y, x, f = i // 64, i // 32 % 2, i // 16 % 2, i % 16
        assert desc.coords(i) == ((b, f, y, x) if f < 2 else None)


def test_matrix_with_leading_dimension() -> None:
    """The seeds' M x N matrix, stored plain and transposed, with and without gaps."""
    m, n = 3, 5
    plain = cf.MemoryDesc((m, n), "f32", strides=(n, 1))
    transposed = cf.MemoryDesc((m, n), "f32", strides=(1, m))
    assert plain == cf.MemoryDesc((m, n), "f32", "ab")
    assert transposed == cf.MemoryDesc((m, n), "f32", "ba")
    gaps = cf.MemoryDesc((m, n), "f32", strides=(8, 1))
    assert gaps.offset(2, 4) == 20
    assert gaps.coords(6) is None
