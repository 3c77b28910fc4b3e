"""Winograd weights equal those of the real oneDNN, byte for byte; 2.6 was the last to have them."""

from __future__ import annotations

import ctypes
from typing import Any

import numpy as np
import pytest

import clformats as cf
from bench.peers import onednn
from tests.device_support import memory_of
from tests.support import garbage, same_bytes

pytestmark = pytest.mark.sampled(5)

D = cf.MemoryDesc
CASES = [
    ("wino_wei_aaOIoi", "s8"),
    ("wino_wei_aaOIoi", "f32"),
    ("wino_wei_aaOIoi_16o8i", "s8"),
    ("wino_wei_aaOio", "f32"),
    ("wino_wei_aaOio_8i16o", "f32"),
    ("wino_wei_aaOBiOo_16i2O16o", "f32"),
    ("wino_wei_aaOBiOo_16i4O16o", "f32"),
    ("wino_wei_OBaaIBOIio_2O2I16i16o", "f32"),
    ("wino_wei_OBaaIBOIio_4O1I16i16o", "f32"),
]
FORMATS = ("wino_wei_aaOIoi", "wino_wei_aaOio", "wino_wei_aaOBiOo", "wino_wei_OBaaIBOIio")


class _Wino(ctypes.Structure):
    """dnnl_wino_desc_t of 2.6."""

    _fields_ = (
        ("wino_format", ctypes.c_int),
        *((n, ctypes.c_int) for n in ("r", "alpha", "ic", "oc", "ic_block", "oc_block")),
        *((n, ctypes.c_int) for n in ("ic2_block", "oc2_block")),
        ("adj_scale", ctypes.c_float),
        ("size", ctypes.c_size_t),
    )


def _real_desc(plain: D, wino: D) -> onednn.Desc:
    """The library has no function that makes one; its convolutions fill the structure in."""
    fields = cf.WinogradDesc.of(wino)
    raw = onednn.Desc.by_tag(plain.dims, wino.dtype.name, "oihw").raw
    raw.format_kind = onednn.KINDS.index("wino")
    member = _Wino(
        **{name: getattr(fields, name) for name, *_ in _Wino._fields_[1:]},
        wino_format=1 + FORMATS.index(fields.wino_format),
    )
    place = ctypes.addressof(raw) + onednn.MemoryDesc.blocking.offset
    ctypes.memmove(place, ctypes.byref(member), ctypes.sizeof(member))
    return onednn.Desc(raw)


def _real(array: Any, src: D, dst: D, filled: Any) -> Any:
    """What oneDNN writes into a copy of ``filled``."""
    desc = _real_desc(src, dst)
    assert desc.size() == dst.nbytes
    result = filled.copy()
    source = onednn.Desc.by_tag(src.dims, "f32", src.format.name)
    onednn.Reorder(source, desc).execute(cf.pack(array, src), result)
    return result


@pytest.mark.parametrize("tag", ["oihw", "hwio"])
@pytest.mark.parametrize("channels", [(27, 29), (32, 32), (1, 1), (64, 61)])
@pytest.mark.parametrize(("name", "dtype"), CASES)
def test_weights_equal_onednn(
    name: str, dtype: str, channels: tuple[int, int], tag: str, stream: cf.Stream
) -> None:
    rng = np.random.default_rng(4)
    src = D((*channels, 3, 3), "f32", tag)
    dst = cf.winograd(src, name, dtype, padded=(64, 64))
    array = (rng.standard_normal(src.dims) * 60).astype(np.float32)
    filled = garbage(rng, dst)
    real = _real(array, src, dst, filled)
    assert same_bytes(cf.pack(cf.transform(array, src, dst), dst), real)
    a, b = memory_of(cf.pack(array, src), src, stream.engine), memory_of(filled, dst, stream.engine)
    cf.Reorder(src, dst, stream.engine)(stream, a, b).wait()
    with b.map("r") as ours:
        assert same_bytes(ours, real)
