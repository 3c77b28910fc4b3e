"""Sums behind int8 weights: where they lie, their values, and what is refused."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import clformats as cf

D = cf.MemoryDesc
S8S8, BOTH = cf.Extra(1, s8s8=True), cf.Extra(1, s8s8=True, asymmetric=True)


def test_sizes_are_onednn_s() -> None:
    """18 x 21 weights in blocks of 16 x 16: 4096 bytes, then 32 sums of 4 bytes for each flag."""
    d = D((18, 21, 2, 2), "s8", "OIhw4i16o4i", extra=S8S8)
    assert (d.nbytes, d.span_nbytes, d.sums_at) == (4224, 4224, 4096)
    assert D(d.dims, "s8", "OIhw4i16o4i", extra=BOTH).nbytes == 4352
    odd = D((5, 21, 3, 2), "s8", "hwio", extra=S8S8)
    assert (odd.sums_at, odd.nbytes) == (632, 652)  # 630 bytes of weights, rounded up to 4


def test_sums_are_over_all_other_dimensions_and_zero_for_padding() -> None:
    weights = np.random.default_rng(3).integers(-128, 128, (3, 18, 21, 2, 2)).astype(np.int8)
    extra = cf.Extra(3, s8s8=True, asymmetric=True)
    d = D(weights.shape, "s8", "gOIhw4i16o4i", extra=extra)
    flat = cf.pack(weights, d)
    assert flat.size == d.nbytes
    first, second = flat[d.sums_at :].view(np.int32).reshape(2, 3, 32)
    sums = weights.sum((2, 3, 4), dtype=np.int32)
    np.testing.assert_array_equal(first[:, :18], -128 * sums)
    np.testing.assert_array_equal(second[:, :18], -sums)
    assert not first[:, 18:].any()
    assert not second[:, 18:].any()
    np.testing.assert_array_equal(cf.unpack(flat, d), weights)


@pytest.mark.parametrize("extra", [S8S8, BOTH, cf.Extra(1, asymmetric=True),
                                   cf.Extra(3, s8s8=True, scale_adjust=0.5),
                                   cf.Extra(1, scale_adjust=0.3)])  # fmt: skip
def test_what_is_printed_reads_back(extra: cf.Extra) -> None:
    for d in (D((3, 5, 4, 2, 2), "s8", "gOIhw4o4i", extra=extra),
              D((3, 5, 4, 2, 2), "s8", strides=(100, 16, 4, 2, 1), extra=extra)):  # fmt: skip
        assert D.parse(str(d)) == d
        assert D.parse(str(d)).extra == extra
        assert d != D((3, 5, 4, 2, 2), "s8", "gOIhw4o4i")
    assert str(D((5, 4), "s8", "oi", extra=S8S8)).endswith(":s8s8=1")


@pytest.mark.parametrize(
    ("given", "said"),
    [
        ({"dtype": "f32"}, "weights of s8, got f32"),
        ({"extra": cf.Extra(0, s8s8=True)}, "the mask"),
        ({"extra": cf.Extra(15, s8s8=True)}, "the mask"),
        ({"extra": cf.Extra(16, s8s8=True)}, "the mask"),
        ({"extra": cf.Extra(1)}, "asks for nothing"),
        ({"extra": cf.Extra(1, scale_adjust=0.0)}, "scale_adjust"),
        ({"extra": cf.Extra(1, scale_adjust=float("nan"))}, "scale_adjust"),
        ({"extra": cf.Extra(1, scale_adjust=1e300)}, "scale_adjust"),
        ({"extra": cf.Extra(1, scale_adjust=1e-60)}, "scale_adjust"),
        ({"format": "os_iyx_osv16_rotate_180"}, "oneDNN's formats"),
        ({"padding": ((0, 0), (0, 1), (0, 0), (0, 0))}, "padding"),
        ({"format": "any"}, "oneDNN's formats"),
    ],
)  # fmt: skip
def test_what_cannot_have_sums_is_refused(given: dict[str, Any], said: str) -> None:
    usual: dict[str, Any] = {"dtype": "s8", "format": "oihw", "extra": S8S8}
    with pytest.raises(cf.InvalidDescriptor, match=said) as refusal:
        D((5, 4, 3, 3), **(usual | given))
    assert refusal.value.code == "EXTRA"


def test_bad_texts_are_refused() -> None:
    for text in ("s8s8=1:asymmetric=3", "s8s8=x", "adjust=0.5", "adjust=@1", "s8s8=1:s8s8=1"):
        with pytest.raises(cf.InvalidDescriptor):
            D.parse(f"s8:oihw:5x4x3x3:{text}")


def test_operations_are_refused() -> None:
    d = D((6, 4, 3, 3), "s8", "oihw", extra=S8S8)
    for operation in (lambda: d.reshape((6, 4, 9)), lambda: d.permute_axes((1, 0, 2, 3)),
                      lambda: d.submemory((2, 4, 3, 3), (0, 0, 0, 0)),
                      lambda: d.broadcast_to((6, 4, 3, 3)), lambda: d.legal_crops(0)):  # fmt: skip
        with pytest.raises(cf.InvalidDescriptor, match="sums follow") as refusal:
            operation()
        assert refusal.value.code == "EXTRA"
