"""Laws 1 to 5 on the host, over every row of the table of types and rows of one's own."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np
import pytest

import clformats as cf
from clformats.host import oracle
from clformats.host.packing import zero_padding
from clformats.tensors.dtypes import codes, from_codes
from clformats.tensors.rows import DType
from tests.types_support import PACKED, each_type, known

D = cf.MemoryDesc


def descriptors(row: DType) -> list[D]:
    """Dense, blocked with padding, with gaps, an offset, clDNN's padding, a region, empty."""
    gaps = D((3, 5), row, strides=(11, 2))
    whole = D((7, 9, 5), row, "aBc4b")
    return [
        D((3, 5), row),
        D((1,), row),
        D((7, 17, 3), row, "aBc16b"),
        gaps,
        D.of(replace(gaps.geometry, offset0=3), row),
        D((2, 3, 5, 7), row, "b_fs_yx_fsv4", padding=((0, 0), (1, 0), (0, 2), (1, 1))),
        D((5, 37, 2, 3), row, "fs_b_yx_fsv32"),
        whole.submemory((7, 4, 5), (0, 4, 0)),
        D((2, 3, 0), row),
    ]


def as_one_number(desc: D, found: Any) -> int:
    """Memory as a number in which bit k is bit k of the tensor."""
    places = zip(desc.offsets().ravel().tolist(), found.ravel().tolist(), strict=True)
    return sum(code << at * desc.dtype.bits for at, code in places)


def some_codes(desc: D, seed: int = 1) -> Any:
    raw = np.random.default_rng(seed).integers(0, 256, (*desc.dims, desc.dtype.nbytes), np.uint8)
    return (
        raw.view(desc.dtype.raw)[..., 0] & desc.dtype.raw.type((1 << desc.dtype.bits) - 1)
    ).copy()


@each_type
def test_codes_lie_where_bits_are_counted(row: DType) -> None:
    """Law 3, and law 4 of what `pack` makes: by arithmetic with one long number."""
    for desc in descriptors(row):
        found = some_codes(desc)
        flat = cf.pack(found, desc, raw=True)
        assert flat.dtype == row.storage
        assert flat.nbytes == max(desc.nbytes, desc.span_nbytes)
        assert int.from_bytes(flat.tobytes(), "little") == as_one_number(desc, found), desc
        assert (cf.unpack(flat, desc, raw=True) == found).all()


@each_type
def test_values_make_the_round_trip(row: DType) -> None:
    """Law 3: with values, whose codes lie anywhere; what lies around them does not count."""
    for desc in descriptors(row):
        values = from_codes(codes(from_codes(some_codes(desc), row), row), row)
        flat = cf.pack(values, desc)
        assert flat.tobytes() == oracle.pack_by_offsets(values, desc).tobytes()
        noise = np.random.default_rng(2).integers(0, 256, flat.nbytes, np.uint8)
        owned = int.from_bytes(
            cf.pack(~(some_codes(desc) * 0) & row_ones(row), desc, raw=True).tobytes(), "little"
        )
        mixed = int.from_bytes(noise.tobytes(), "little") & ~owned | int.from_bytes(
            flat.tobytes(), "little"
        )
        bytes_ = np.frombuffer(mixed.to_bytes(flat.nbytes, "little"), np.uint8).view(row.storage)
        for back in (cf.unpack(bytes_, desc), oracle.unpack_by_offsets(bytes_, desc)):
            assert back.dtype == row.numpy
            assert back.tobytes() == values.tobytes()


def row_ones(row: DType) -> Any:
    return row.raw.type((1 << row.bits) - 1)


@each_type
def test_offsets_and_coordinates(row: DType) -> None:
    """Laws 1 and 5: bits of elements are apart and inside; descriptors print and parse."""
    with known(row):
        for desc in descriptors(row):
            offsets = desc.offsets().ravel()
            assert np.unique(offsets).size == desc.nelems
            assert not desc.nelems or (offsets.max() + 1) * row.bits <= 8 * desc.span_nbytes
            for at, index in zip(offsets.tolist(), np.ndindex(*desc.dims), strict=True):
                assert desc.coords(at) == index
                assert desc.offset(*index) == at
            assert D.parse(str(desc)) == desc


@each_type
def test_padding_becomes_zero_and_no_other_bit(row: DType) -> None:
    """Law 4."""
    for desc in descriptors(row):
        before = np.random.default_rng(3).integers(
            0, 256, max(desc.nbytes, desc.span_nbytes), np.uint8
        )
        number = int.from_bytes(before.tobytes(), "little")
        for at in oracle.padding_offsets(desc).tolist() if desc.nelems else ():
            number &= ~(int(row_ones(row)) << at * row.bits)
        flat = before.view(row.storage)
        zero_padding(flat, desc)
        assert int.from_bytes(flat.tobytes(), "little") == number, desc


@pytest.mark.parametrize("row", PACKED, ids=str)
@pytest.mark.parametrize("count", [1, 2, 7, 8, 9, 1000, 300_001])
def test_long_runs(row: DType, count: int) -> None:
    """Bits one after the other, by numpy's own bits."""
    desc = D((count,), row)
    found = some_codes(desc)
    bits = np.unpackbits(found[:, None], axis=1, bitorder="little")[:, : row.bits]
    flat = cf.pack(found, desc, raw=True)
    assert (flat == np.packbits(bits.ravel(), bitorder="little")).all()
    assert (cf.unpack(flat, desc, raw=True) == found).all()


def test_nibbles_and_dense_bits_by_hand() -> None:
    assert cf.pack(np.array([1, -1, 7]), D((3,), "s4")).tolist() == [0xF1, 0x07]
    assert cf.pack(np.array([1, 2, 3, 4]), D((4,), "u6"), raw=True).tolist() == [0x81, 0x30, 0x10]
    assert cf.pack(np.array([1, 2, 3, 4, 5]), D((5,), "u3"), raw=True).tolist() == [0xD1, 0x58]
    assert cf.pack(np.array([1, 2, 3, 4]), D((4,), "u5"), raw=True).tolist() == [0x41, 0x0C, 0x02]
    assert cf.pack(np.array([0.5, 6, -1, 0]), D((4,), "f4_e2m1")).tolist() == [0x71, 0x0A]


def test_codes_and_values_are_told_apart() -> None:
    nibbles = np.array([15, 8, 3], np.uint8)
    desc = D((3,), "s4")
    assert cf.unpack(cf.pack(nibbles, desc), desc).tolist() == [7, 7, 3]
    assert cf.unpack(cf.pack(nibbles, desc, raw=True), desc).tolist() == [-1, -8, 3]
    with pytest.raises(cf.InvalidArgument, match=r"codes from 3 to 16, expected 0 to 15 for s4"):
        cf.pack(np.array([3, 16, 3]), desc, raw=True)
    with pytest.raises(cf.InvalidArgument, match="codes are integers"):
        cf.pack(np.array([3.0, 1, 3]), desc, raw=True)
    with pytest.raises(cf.InvalidArgument, match="codes do not say"):
        cf.pack(nibbles, "a", raw=True)


def test_sums_follow_codes_as_values() -> None:
    desc = D((3, 5, 3, 3), "s8", "oihw", extra=cf.Extra(1, s8s8=True, asymmetric=True))
    found = some_codes(desc)
    flat = cf.pack(found, desc, raw=True)
    assert flat.tobytes() == cf.pack(found.view(np.int8), desc).tobytes()
    assert flat.tobytes() == oracle.pack_by_offsets(found.view(np.int8), desc).tobytes()
