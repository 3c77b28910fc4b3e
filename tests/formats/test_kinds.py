"""Formats that are no plain arrangement of values in a buffer: Winograd, images, two orders."""

from __future__ import annotations

import numpy as np
import pytest

import clformats as cf
from clformats.formats.digits import Layout, Tail
from tests.support import random_values

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
    with pytest.raises(cf.Unsupported, match="NOT_BLOCKED"):
        desc.submemory((1, 5, 3, 8), (0, 0, 0, 0))
    with pytest.raises(cf.Unsupported, match="NOT_BLOCKED"):
        desc.permute_axes((0, 1, 3, 2))
    with pytest.raises(cf.Unsupported, match="NOT_BLOCKED"):
        desc.reshape((10, 3, 8))


# --- two orders -----------------------------------------------------------------------------------

TWO_ORDERS = [("", 8), ("", 16), ("g", 8), ("g", 16)]


@pytest.mark.parametrize(("group", "osv"), TWO_ORDERS)
@pytest.mark.parametrize("x", [1, 4, 5])
def test_the_last_odd_column_lies_in_slices_of_32(group: str, osv: int, x: int) -> None:
    """As clDNN's kernel computes it: pairs of columns, slices of osv; alone, slices of 32."""
    o, i, y = 40, 3, 2
    name = f"{group}iy_xs_os_xsv2_osv{osv}__ao32"
    desc = D((2, o, i, y, x)[not group :], "f32", name)
    line = 64 * 2
    for at in np.ndindex(desc.dims):
        g, (ao, ai, ay, ax) = (at[0] if group else 0), at[-4:]
        pair = ((g * i + ai) * y + ay) * -(-x // 2) + ax // 2
        if ax == x - 1 and x % 2:
            within = ao // 32 * 64 + ao % 32
        else:
            within = ao // osv * 2 * osv + ax % 2 * osv + ao % osv
        assert desc.offset(*at) == pair * line + within, at


def test_each_place_of_two_orders_is_one_element_or_padding() -> None:
    desc = D((33, 2, 2, 3), "f32", "iy_xs_os_xsv2_osv16__ao32")
    places = [desc.place_at(k) for k in range(desc.nbytes // 4)]
    assert len(set(places)) == len(places) == 64 * 2 * 2 * 4
    assert None not in places


def test_two_orders_are_told() -> None:
    name = "iy_xs_os_xsv2_osv16__ao32"
    assert cf.Format(name).structure.tail is not None
    assert "last column" in cf.Format(name).note
    assert D((32, 1, 1, 3), "f32", name) != D((32, 1, 1, 3), "f32", "iy_xs_os_xsv2_osv8__ao32")
    source = cf.index_source(name, "W")
    assert "(x >= W_SIZE_X - W_SIZE_X % 2 ? " in source


def test_two_orders_cannot_be_cut_padded_or_given_strides() -> None:
    name = "iy_xs_os_xsv2_osv16__ao32"
    desc = D((32, 1, 2, 3), "f32", name)
    with pytest.raises(cf.Unsupported, match="FUSED_INDEX"):
        desc.submemory((32, 1, 1, 3), (0, 0, 0, 0))
    with pytest.raises(cf.InvalidDescriptor, match="padding"):
        D((32, 1, 2, 3), "f32", name, padding=((0, 0),) * 3 + ((1, 0),))
    with pytest.raises(cf.InvalidDescriptor, match="two orders"):
        D.parse(f"{desc}:strides=512x256x128x32x16x1")


def test_a_tail_must_fill_the_same_memory() -> None:
    digits = (cf.Digit(0, None, 1), cf.Digit(1, None, 4), cf.Digit(1, 4, 1))
    Layout(2, digits, tail=Tail(0, 2, digits))
    with pytest.raises(ValueError, match="does not fit"):
        Layout(2, digits, tail=Tail(0, 2, (cf.Digit(1, None, 1), cf.Digit(0, None, 1))))


# --- elements that share bytes --------------------------------------------------------------------


@pytest.mark.parametrize("dtype", ["s4", "u4", "u1"])
@pytest.mark.parametrize("name", ["bfyx", "b_fs_yx_fsv16", "b_fs_yx_32fp"])
def test_packed_elements_round_trip(dtype: str, name: str) -> None:
    """Laws 3 and 4 with odd sizes: all values come back, the rest of the bytes is zero."""
    desc = D((2, 19, 3, 5), dtype, name)
    array = random_values(np.random.default_rng(3), desc.dims, dtype)
    flat = cf.pack(array, desc)
    assert flat.dtype == np.uint8
    assert flat.nbytes == desc.nbytes
    assert cf.unpack(flat, desc).dtype == desc.dtype.numpy
    assert (cf.unpack(flat, desc) == array).all()
    bits = np.unpackbits(flat, bitorder="little").reshape(-1, desc.dtype.bits)
    bits[desc.offsets()] = 0
    assert not bits.any()
    with pytest.raises(cf.InvalidDescriptor, match="uint8"):
        cf.unpack(flat.astype(np.int8), desc)


def test_the_first_element_lies_in_the_lowest_bits() -> None:
    assert cf.pack(np.array([1, -2, 7], np.int32), D((3,), "s4", "a")).tolist() == [0xE1, 0x07]
    assert cf.pack(np.array([1, 2, 15, 99], np.int32), D((4,), "u4", "a")).tolist() == [0x21, 0xFF]
    features = np.zeros((1, 40, 1, 1), np.float32)
    features[0, [0, 31, 33]] = 1
    packed = cf.pack(features, D(features.shape, "u1", "b_fs_yx_32fp"))
    assert packed.view("<u4").tolist() == [1 | 1 << 31, 1 << 1]


@pytest.mark.parametrize(
    ("name", "neighbours"),
    [
        ("os_iyx_osv16", ((3, 0), (3, 1))),
        ("os_iyx_osv32", ((3, 0), (19, 0))),
        ("os_iyx_osv64", ((35, 0), (51, 0))),
        ("os_is_yx_osv32_isv2", ((3, 0), (3, 1))),
    ],
)
def test_four_bits_change_the_order(name: str, neighbours: tuple[tuple[int, int], ...]) -> None:
    """What shares a byte was read off clDNN's kernels."""
    dims = (64, 4) + (1, 1) * (cf.Format(name).ndims == 4)
    desc = D(dims, "u4", name)
    low, high = (desc.offset(*at, *(0 for _ in dims[2:])) for at in neighbours)
    assert (low % 2, high) == (0, low + 1)
    assert str(desc).startswith(f"u4:{name}:64x4")
    assert D.parse(str(desc)) == desc
    assert D(dims, "s4", D(dims, "s8", name).format) == D(dims, "s4", name)


def test_an_order_of_four_bits_is_named_and_refuses_other_elements() -> None:
    """clDNN has one name for both orders; a silent choice could be wrong."""
    fmt, desc = cf.Format("os_iyx_osv16:i4"), D((32, 4, 1, 1), "u4", "os_iyx_osv16")
    assert desc.format == fmt != cf.Format("os_iyx_osv16")
    assert desc == D((32, 4, 1, 1), "u4", fmt) == D.parse("u4:os_iyx_osv16:i4:32x4x1x1")
    assert (str(desc), fmt.cldnn) == ("u4:os_iyx_osv16:32x4x1x1", "os_iyx_osv16:i4")
    for dtype in ("s8", "u1", "f32"):
        for given in (fmt, fmt.name):
            with pytest.raises(
                cf.InvalidDescriptor, match=r"4 bits \(s4, u4\), got .*leave :i4 out"
            ):
                D((32, 4, 1, 1), dtype, given)
    with pytest.raises(cf.InvalidFormat, match="the same order at any width"):
        cf.Format("b_fs_yx_fsv16:i4")
    with pytest.raises(cf.InvalidFormat, match="unknown format 'b_fs_yx_fs16'"):
        cf.Format("b_fs_yx_fs16:i4")


# --- images ---------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("name", "dims", "shape", "index", "pixel"),
    [
        ("image_2d_weights_c1_b_fyx", (5, 2, 3, 4), (24, 5, 1), (4, 1, 2, 3), (23, 4, 0)),
        ("image_2d_weights_c4_fyx_b", (5, 2, 3, 3), (5, 5, 4), (4, 1, 2, 1), (4, 4, 0)),
        ("image_2d_weights_winograd_6x3_s1_fbxyb", (17, 5, 3, 8), (5, 32 * 24, 1),
         (16, 4, 2, 7), (4, ((1 * 8 + 7) * 3 + 2) * 16, 0)),
        ("image_2d_weights_winograd_6x3_s1_xfbyb", (17, 5, 3, 8), (40, 32 * 3, 1),
         (16, 4, 2, 7), (39, (1 * 3 + 2) * 16, 0)),
        ("image_2d_rgba", (1, 3, 5, 7), (5, 7, 4), (0, 2, 4, 6), (4, 6, 2)),
        ("nv12", (1, 6, 8, 2), (6, 8, 2), (0, 5, 7, 1), (5, 7, 1)),
    ],
)  # fmt: skip
def test_an_image_is_an_array_of_pixels(
    name: str,
    dims: tuple[int, ...],
    shape: tuple[int, ...],
    index: tuple[int, ...],
    pixel: tuple[int, ...],
) -> None:
    desc = D(dims, "f32", name)
    assert (desc.format_kind, desc.image_shape) == ("image", shape)
    array = np.arange(1, desc.nelems + 1, dtype=np.float32).reshape(dims)
    assert cf.pack(array, desc).reshape(shape)[pixel] == array[index]
    assert D(dims, "f32", "abcd").image_shape is None


def test_an_image_is_no_buffer() -> None:
    image, buffer = D((1, 2, 3, 4), "u8", "nv12"), D((1, 2, 3, 4), "u8", "bfyx")
    assert image != buffer
    assert not cf.same_bytes(image, buffer)
    assert (image.format.onednn, cf.Format("abcd").cldnn) == (None, "bfyx")
    three = D((1, 2, 4, 3), "u8", "nv12"), D((1, 2, 4, 3), "u8", "bfyx")
    for pair in (three, three[::-1]):
        with pytest.raises(cf.Unsupported, match=r"1, 2 or 4 components, not 3.*IMAGE"):
            cf.make_plan(*pair)
    with pytest.raises(cf.InvalidDescriptor, match="padding"):
        D((1, 2, 3, 4), "u8", "nv12", padding=((0, 0),) * 3 + ((1, 0),))
    assert D.parse("u8:nv12:1x2x3x4:strides=24x12x4x1") == image
    with pytest.raises(cf.InvalidDescriptor, match=r"an image: expected .* by whole pixels"):
        D.parse("u8:nv12:1x2x3x4:strides=26x13x4x1")
