"""Formats that are no plain arrangement of values in a buffer: Winograd, images, two orders."""

from __future__ import annotations

import numpy as np
import pytest

import clformats as cf

D = cf.MemoryDesc


# --- Winograd -------------------------------------------------------------------------------------


def test_winograd_layouts_hold_the_transformed_values() -> None:
    """The orders were read off clDNN's kernels: o innermost, in blocks where it is fused."""
    desc = D((16, 3, 3, 4), "f32", "winograd_2x3_s1_fused_weights")
    assert (desc.format_kind, desc.has_layout, desc.nbytes) == ("wino", True, 16 * 3 * 3 * 4 * 4)
    assert desc.offset(9, 2, 1, 3) == (((2 * 2 + 1) * 4 + 3) * 3 + 1) * 8 + 1
    array = np.arange(desc.nelems, dtype=np.float32).reshape(desc.dims)
    assert (cf.unpack(cf.pack(array, desc), desc) == array).all()
    plain = D((2, 5, 3, 8), "f32", "winograd_2x3_s1_data")
    assert plain.offset(1, 4, 2, 7) == ((1 * 8 + 7) * 3 + 2) * 5 + 4


def test_a_winograd_layout_is_no_other_name_of_a_plain_one() -> None:
    fmt = cf.Format("winograd_2x3_s1_data")
    assert fmt != cf.Format("adcb")
    assert (fmt.onednn, fmt.cldnn) == (None, "winograd_2x3_s1_data")
    assert cf.Format("adcb").cldnn == "bxyf"
    assert "transformed" in fmt.note


def test_what_is_not_blocked_cannot_be_cut_or_turned() -> None:
    desc = D((2, 5, 3, 8), "f32", "winograd_2x3_s1_data")
    for operation in (
        lambda: desc.submemory((1, 5, 3, 8), (0, 0, 0, 0)),
        lambda: desc.permute_axes((0, 1, 3, 2)),
        lambda: desc.reshape((10, 3, 8)),
    ):
        with pytest.raises(cf.Unsupported) as caught:
            operation()
        assert caught.value.code == "NOT_BLOCKED"
