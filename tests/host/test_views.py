"""Packing by strided views gives the bytes of packing by offsets, for every layout there is."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import clformats as cf
from clformats.host import copying, packing
from clformats.host.oracle import pack_by_offsets, padding_offsets, unpack_by_offsets
from tests.strategies import pairs
from tests.support import dtype_for, hurting_dims, random_values

UNIQUE = list(dict.fromkeys(cf.formats()))


def _check(desc: cf.MemoryDesc, array: Any) -> None:
    flat = pack_by_offsets(array, desc)
    assert cf.pack(array, desc).tobytes() == flat.tobytes(), desc
    assert cf.unpack(flat, desc).tobytes() == unpack_by_offsets(flat, desc).tobytes(), desc
    dirty = np.full_like(flat.view(np.uint8), 0xA5).view(flat.dtype)
    packing.pack_into(dirty, array, desc)
    assert dirty.tobytes() == flat.tobytes(), desc
    _check_padding(desc, flat.size)


def _check_padding(desc: cf.MemoryDesc, size: int) -> None:
    """It becomes zero, and nothing else."""
    bits = desc.dtype.bits
    want = np.ones((size * desc.dtype.storage.itemsize * 8 // bits, bits), np.uint8)
    want[padding_offsets(desc)] = 0
    got = np.full(size * desc.dtype.storage.itemsize, 0xFF, np.uint8).view(desc.dtype.storage)
    packing.zero_padding(got, desc)
    assert (np.unpackbits(got.view(np.uint8), bitorder="little") == want.ravel()).all(), desc


@pytest.mark.parametrize("shift", [0, 1, 2])
def test_every_format(shift: int) -> None:
    rng = np.random.default_rng(shift)
    for fmt in UNIQUE:
        dtype = dtype_for(fmt, ("s8", "f16", "s4")[shift])
        desc = cf.MemoryDesc(hurting_dims(fmt, shift), dtype, fmt)
        _check(desc, random_values(rng, desc.dims, dtype))


@settings(max_examples=100, deadline=None)
@given(pairs(), st.integers(0, 2**31), st.data())
def test_random_descriptors(
    pair: tuple[cf.MemoryDesc, cf.MemoryDesc], seed: int, data: st.DataObject
) -> None:
    """Strides, padding and formats, of arrays of other types with axes in any order."""
    src, dst = pair
    array = random_values(np.random.default_rng(seed), src.dims, src.dtype.name)
    order = data.draw(st.permutations(range(array.ndim)))
    turned = np.ascontiguousarray(array.transpose(order)).transpose(np.argsort(order))
    backwards = tuple(slice(None, None, data.draw(st.sampled_from([1, -1]))) for _ in order)
    _check(src, turned[backwards])
    _check(dst, turned[backwards])


@settings(max_examples=40, deadline=None)
@given(pairs(), st.data())
def test_regions(pair: tuple[cf.MemoryDesc, cf.MemoryDesc], data: st.DataObject) -> None:
    """Parts of blocks, offsets, axes turned."""
    desc, _ = pair
    sizes, starts = list(desc.dims), [0] * desc.ndims
    for d in range(desc.ndims):
        try:
            crops = desc.legal_crops(d)
        except cf.Error:
            continue
        if crops:
            starts[d] = data.draw(st.sampled_from(list(crops)))
            sizes[d] = data.draw(st.sampled_from(list(crops[starts[d]])))
    try:
        desc = desc.submemory(sizes, starts)
        desc = desc.permute_axes(data.draw(st.permutations(range(desc.ndims))))
    except cf.Error:
        pass
    _check(desc, random_values(np.random.default_rng(1), desc.dims, desc.dtype.name))


@pytest.mark.parametrize(
    "text",
    [
        "f32:bfyx:2x3x4x5:strides=60x20x0x1",
        "s8:aBcd16b:2x17x3x4:offset=5",
        "u8:bf8_xy16:2x9x5x7",
        "u8:bf8_xy16:2x9x5x7:padded=2x16x6x8",
        "s4:iy_xs_os_xsv2_osv8__ao32:37x2x3x5",
    ],
)
def test_what_the_strategies_leave_out(text: str) -> None:
    desc = cf.MemoryDesc.parse(text)
    array = random_values(np.random.default_rng(2), desc.dims, desc.dtype.name)
    flat = pack_by_offsets(array, desc)
    assert cf.pack(array, desc).tobytes() == flat.tobytes()
    assert (cf.unpack(flat, desc) == unpack_by_offsets(flat, desc)).all()
    if len(desc.dims) > 2:
        turned = np.asfortranarray(array)
        assert cf.pack(turned, desc).tobytes() == flat.tobytes()


def test_broadcast_dimensions_take_the_last_value() -> None:
    desc = cf.MemoryDesc((3, 1), "s8", "aB4b").broadcast_to((3, 5))
    array = np.arange(15, dtype=np.int8).reshape(3, 5)
    assert cf.pack(array, desc).tobytes() == pack_by_offsets(array, desc).tobytes()
    assert (cf.unpack(cf.pack(array, desc), desc) == array[:, -1:]).all()


@pytest.mark.parametrize("dtype", ["f32", "bf16", "u8"])
def test_threads_and_small_pieces_change_nothing(
    dtype: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(copying, "PIECE", 100)
    monkeypatch.setattr(copying, "CONVERTED", 70)
    monkeypatch.setattr(copying, "THREADS_FROM", 0)
    monkeypatch.setattr(copying, "_processors", lambda: 3)
    for fmt in ("b_fs_yx_fsv16", "byxf", "bs_fs_yx_bsv16_fsv16"):
        desc = cf.MemoryDesc((5, 19, 7, 3), dtype, fmt)
        _check(desc, random_values(np.random.default_rng(3), desc.dims, "f32"))


def test_small_copies_start_no_threads(monkeypatch: pytest.MonkeyPatch) -> None:
    """Not even in many pieces."""
    monkeypatch.setattr(copying, "CONVERTED", 70)
    monkeypatch.setattr(copying, "_processors", lambda: 3)
    monkeypatch.setattr(copying, "ThreadPoolExecutor", None)
    desc = cf.MemoryDesc((5, 19, 7, 3), "f32", "byxf")
    _check(desc, random_values(np.random.default_rng(3), desc.dims, "f64"))


def test_an_error_in_a_thread_reaches_the_caller(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(copying, "CONVERTED", 70)
    monkeypatch.setattr(copying, "THREADS_FROM", 0)
    monkeypatch.setattr(copying, "_processors", lambda: 3)
    with pytest.raises(cf.InvalidDescriptor, match="unknown element type"):
        cf.pack(np.zeros((5, 19, 7), complex), cf.MemoryDesc((5, 19, 7), "f32"))
