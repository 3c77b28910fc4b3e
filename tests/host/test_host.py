"""Packing on the host, and the conversions between element types."""

from __future__ import annotations

import ml_dtypes
import numpy as np
import pytest

import clformats as cf
from clformats.host.memory import places
from clformats.tensors.dtypes import DTYPES, as_dtype, convert


def _convert(values: list[float], src: str, dst: str) -> list[float]:
    s, d = as_dtype(src), as_dtype(dst)
    return [float(v) for v in convert(np.array(values, s.numpy), s, d)]


@pytest.mark.parametrize(
    ("src", "dst", "values", "results"),
    [
        (
            "f32",
            "s8",
            [0.5, 1.5, 2.5, -2.5, 127.5, -128.5, 1e10, np.inf, -np.inf, np.nan],
            [0, 2, 2, -2, 127, -128, 127, 127, -128, 0],
        ),
        ("f32", "u8", [-0.5, 254.5, 255.5, -7, 1e10], [0, 254, 255, 0, 255]),
        (
            "f32",
            "s32",
            [2147483520, 2147483648, -2147483904, 0.5],
            [2147483520, 2147483647, -2147483648, 0],
        ),
        ("s32", "f32", [16777217, 16777219, 2147483647], [16777216, 16777220, 2147483648]),
        ("s32", "s8", [2147483647, -129, 5], [127, -128, 5]),
        ("s32", "u8", [-1, 256, 7], [0, 255, 7]),
        ("s8", "u8", [-1, 127], [0, 127]),
        ("u8", "s8", [200, 3], [127, 3]),
        ("f16", "s8", [0.5, 1.5, 300], [0, 2, 127]),
        ("u8", "f16", [0, 255], [0, 255]),
    ],
)
def test_conversion(src: str, dst: str, values: list[float], results: list[float]) -> None:
    assert _convert(values, src, dst) == results


def test_float_to_half() -> None:
    """Ties to even, overflow at 65520, subnormals kept, -0 kept, NaN stays NaN."""
    values = np.array([65519.99, 65520, 2**-25, 2**-25 * (1 + 2**-23), -0.0, np.nan], np.float32)
    bits = convert(values, as_dtype("f32"), as_dtype("f16")).view(np.uint16)
    assert list(bits[:5]) == [0x7BFF, 0x7C00, 0, 1, 0x8000]
    assert np.isnan(bits[5:].view(np.float16)).all()


def test_float_to_bfloat16() -> None:
    bits = np.array([0x3F808000, 0x3F818000, 0x7F7F7FFF, 0x7F7F8000, 0x80000000], np.uint32)
    got = convert(bits.view(np.float32), as_dtype("f32"), as_dtype("bf16")).view(np.uint16)
    assert list(got) == [0x3F80, 0x3F82, 0x7F7F, 0x7F80, 0x8000]
    nans = np.array([0x7F800001, 0x7FFFFFFF, 0xFF800001], np.uint32).view(np.float32)
    got = convert(nans, as_dtype("f32"), as_dtype("bf16"))
    assert np.isnan(got.astype(np.float32)).all()


def test_element_types_are_found_by_name_and_by_numpy_type() -> None:
    assert as_dtype("bf16") == as_dtype(ml_dtypes.bfloat16) == as_dtype(as_dtype("bf16"))
    assert as_dtype(np.float32).name == as_dtype("float32").name == "f32"
    assert as_dtype(np.dtype("int8")).nbytes == 1
    assert set(cf.DTYPES) >= {"f32", "f16", "bf16", "f64", "s32", "s8", "u8"}


def test_pack_converts_to_the_descriptors_type() -> None:
    desc = cf.MemoryDesc((3, 2), "s8", "ba")
    assert list(cf.pack([[0.5, 1.5], [2.5, -300], [300, 7]], desc)) == [0, 2, 127, 2, -128, 7]


def test_pack_of_a_view_with_odd_strides() -> None:
    array = np.arange(24, dtype=np.float32).reshape(4, 3, 2).transpose(2, 0, 1)[::-1]
    desc = cf.MemoryDesc(array.shape, "f32", "aBc4b")
    assert (cf.unpack(cf.pack(array, desc), desc) == array).all()


def test_pack_and_unpack_tell_what_does_not_fit() -> None:
    desc = cf.MemoryDesc((2, 17), "f32", "aB16b")
    with pytest.raises(cf.InvalidDescriptor, match=r"shape \(17, 2\), expected \(2, 17\)"):
        cf.pack(np.zeros((17, 2), np.float32), desc)
    for flat in (np.zeros(63, np.float32), np.zeros(64, np.float64), np.zeros((2, 32), np.float32)):
        with pytest.raises(cf.InvalidDescriptor, match="at least 64 elements"):
            cf.unpack(flat, desc)
    with pytest.raises(cf.InvalidDescriptor, match="unknown element type"):
        cf.pack(np.zeros((2, 17), complex), desc)


def test_a_longer_buffer_unpacks() -> None:
    desc = cf.MemoryDesc((2, 3), "f32")
    assert cf.unpack(np.arange(10, dtype=np.float32), desc)[1, 2] == 5


@pytest.mark.parametrize("kind", ["<i8", ">i4", ">f4", "?", "<u2", "<f8"])
def test_arrays_of_other_types_are_converted(kind: str) -> None:
    desc = cf.MemoryDesc((3,), "s8", "a")
    assert list(cf.pack(np.array([0, 1, 1], kind), desc)) == [0, 1, 1]
    assert list(cf.pack([7, -1000, 1000], desc)) == [7, -128, 127]


def test_a_single_value_is_no_tensor() -> None:
    with pytest.raises(cf.InvalidDescriptor, match="single value"):
        cf.pack(3.0, cf.MemoryDesc((1,), "f32"))
    nothing = cf.MemoryDesc((), "f32")
    for job in (cf.pack, cf.unpack):
        with pytest.raises(cf.InvalidDescriptor, match=r"no dims.* by the dims \(1,\)"):
            job(np.zeros((), np.float32), nothing)
    with pytest.raises(IndexError, match="no element"):
        nothing.offset()


@pytest.mark.parametrize("name", DTYPES)
def test_arrays_of_every_type_pack_to_another_type_and_show_their_places(name: str) -> None:
    dims = (2, 17, 5, 4)
    array = np.ones(dims, as_dtype(name).numpy)
    desc = cf.MemoryDesc(dims, "f32", "nChw16c")
    assert (cf.unpack(cf.pack(array, desc), desc) == 1).all()
    own = cf.MemoryDesc(dims, name, "nChw16c")
    flat = cf.pack(array, own)
    shown = places(flat, own)
    assert shown.dtype == own.dtype.storage
    if not own.dtype.is_packed:
        assert shown.shape == (2, 2, 5, 4, 16)
        assert np.array_equal(shown.reshape(-1).view(np.uint8), flat.view(np.uint8))
