"""The laws of layouts, for every listed format, on sizes that straddle the blocks."""

from __future__ import annotations

from itertools import pairwise
from math import prod

import numpy as np
import pytest

import clformats as cf
from clformats.formats.digits import Layout
from tests.support import (
    ANY_WIDTH,
    LIMIT,
    brute_force_offsets,
    dtype_for,
    hurting_dims,
    random_values,
)

# Many names share one structure; the laws are about structures.
UNIQUE = list(dict.fromkeys(cf.formats()))


def _descs(fmt: cf.Format) -> list[cf.MemoryDesc]:
    return [cf.MemoryDesc(hurting_dims(fmt, shift), dtype_for(fmt), fmt) for shift in (0, 1)]


def test_there_is_something_to_test() -> None:
    assert len(UNIQUE) > 900
    assert {f.kind for f in UNIQUE} == {"blocked", "wino", "rnn_packed", "image"}
    assert [f for f in UNIQUE if f.structure.tail]


@pytest.mark.parametrize("shift", [0, 1, 2])
def test_the_sizes_hurt(shift: int) -> None:
    """The rule of `hurting_dims`: no two equal dims, and blocked ones next to their block."""
    for fmt in UNIQUE:
        dims, layout = hurting_dims(fmt, shift), fmt.structure
        assert prod(dims) <= LIMIT, (fmt, dims)
        if fmt.ndims <= 8:
            assert len(set(dims)) == len(dims), (fmt, dims)
        assert all(a != b for a, b in pairwise(dims)), (fmt, dims)
        for n, block in zip(dims, map(max, layout.blocks, layout.align), strict=True):
            assert block == 1 or abs(n - block) <= 3, (fmt, dims)
            assert block == 1 or n > 1, (fmt, dims)


def test_bijection() -> None:
    """Law 1: distinct elements have distinct offsets inside the buffer, and `coords` inverts."""
    rng = np.random.default_rng(1)
    for fmt in UNIQUE:
        for desc in _descs(fmt):
            flat = desc.offsets().ravel()
            assert flat.min() >= 0, desc
            assert flat.max() < desc.nbytes * 8 // desc.dtype.bits, desc
            assert np.bincount(flat).max() == 1, desc
            for _ in range(8):
                index = tuple(int(rng.integers(n)) for n in desc.dims)
                assert desc.coords(desc.offset(*index)) == index, desc


def test_every_offset_is_an_element_or_padding() -> None:
    """Law 1, the other way: `coords` names each element once, all else is padding."""
    small = [d for d in (_descs(fmt)[0] for fmt in UNIQUE) if d.nbytes < 8_000]
    assert len(small) > 100
    for desc in small[::3]:
        found = [
            c for c in map(desc.coords, range(desc.nbytes * 8 // desc.dtype.bits)) if c is not None
        ]
        assert len(found) == len(set(found)) == prod(desc.dims), desc


def test_one_truth() -> None:
    """Law 2, without a device: `offset`, `offsets` and the definition of digits agree."""
    for fmt in UNIQUE:
        for desc in _descs(fmt):
            offsets = desc.offsets()
            assert (offsets == brute_force_offsets(desc)).all(), desc
            last = tuple(n - 1 for n in desc.dims)
            assert desc.offset(*last) == offsets[last], desc


def test_round_trip_on_the_host() -> None:
    """Law 3 and 4: unpack(pack(a)) == a, and the padding is zero."""
    rng = np.random.default_rng(2)
    for fmt in dict.fromkeys(ANY_WIDTH):
        desc = cf.MemoryDesc(hurting_dims(fmt, 2), "s8", fmt)
        array = random_values(rng, desc.dims, "s8")
        flat = cf.pack(array, desc)
        assert flat.nbytes == desc.nbytes
        assert (cf.unpack(flat, desc) == array).all(), desc
        flat[desc.offsets()] = 0
        assert not flat[: cf.host.packing.places(desc)].any(), desc


@pytest.mark.parametrize("dtype", ["s4", "u4", "u1"])
def test_round_trip_where_elements_share_bytes(dtype: str) -> None:
    """Laws 3 and 4 in bits."""
    rng = np.random.default_rng(4)
    for fmt in UNIQUE if dtype != "u1" else dict.fromkeys(ANY_WIDTH):
        desc = cf.MemoryDesc(hurting_dims(fmt, 2), dtype, fmt)
        array = random_values(rng, desc.dims, dtype)
        flat = cf.pack(array, desc)
        assert flat.nbytes == desc.nbytes
        assert (cf.unpack(flat, desc) == array).all(), desc
        bits = np.unpackbits(flat, bitorder="little").reshape(-1, desc.dtype.bits)
        bits[desc.offsets()] = 0
        assert not bits.any(), desc


def test_print_and_parse() -> None:
    """Law 5: what is printed can be pasted back."""
    for fmt in UNIQUE:
        for desc in _descs(fmt):
            assert cf.MemoryDesc.parse(str(desc)) == desc


@pytest.mark.parametrize(
    "digits",
    [
        (cf.Digit(0, None, 16), cf.Digit(0, 8, 1)),
        (cf.Digit(0, None, 1), cf.Digit(0, None, 1)),
        (cf.Digit(0, 8, 1),),
        (cf.Digit(1, None, 1),),
        (),
    ],
)
def test_a_layout_that_is_no_number_system_is_refused(digits: tuple[cf.Digit, ...]) -> None:
    with pytest.raises(ValueError, match=r"digits|dimension"):
        Layout(1, digits)
