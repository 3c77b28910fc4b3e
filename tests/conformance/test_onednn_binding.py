"""The oneDNN binding itself: known answers of 2.6.3, so that the oracle can be trusted."""

from __future__ import annotations

import ctypes
import gc
import math
import re
from typing import TYPE_CHECKING

import numpy as np
import pytest

from bench.peers import onednn
from bench.peers.onednn import RUNTIME_DIM, RUNTIME_SIZE, Desc, Reorder, Status

if TYPE_CHECKING:
    from contextlib import AbstractContextManager

pytestmark = pytest.mark.skipif(
    onednn.available() is not None, reason=onednn.available() or "oneDNN is there"
)

RT = RUNTIME_DIM
INVALID, UNIMPLEMENTED = "invalid_arguments", "unimplemented"

# Primes whose block counts differ for every block size up to 64. Only plain tags have more than 6
# dims; smaller primes keep their strides inside 64 bits.
BIG_DIMS = (131, 257, 389, 521, 653, 787)
SMALL_DIMS = (2, 3, 5, 7, 11, 13, 17, 19, 23, 29, 31, 37)


def refused(name: str) -> AbstractContextManager[pytest.ExceptionInfo[Status]]:
    """Expect the library to refuse with this status."""
    return pytest.raises(Status, match=rf"\({name}\)$")


def letters(tag: str) -> tuple[list[int], list[tuple[int, int]]]:
    """Split a tag into its outer dims and its (size, dim) blocks, outermost first."""
    outer = re.match(r"[a-zA-Z]+", tag)
    assert outer is not None
    inner = re.findall(r"(\d+)([a-l])", tag[outer.end() :])
    number = "abcdefghijkl".index
    return [number(c) for c in outer[0].lower()], [(int(n), number(c)) for n, c in inner]


def by_letters(tag: str, dims: tuple[int, ...]) -> tuple[tuple[int, ...], tuple[int, ...]]:
    """Derive padded dims and strides from the letters of a tag alone."""
    order, inner = letters(tag)
    block = [math.prod(n for n, dim in inner if dim == d) for d in range(len(dims))]
    counts = [-(-size // width) for size, width in zip(dims, block, strict=True)]
    strides = [0] * len(dims)
    step = math.prod(block)
    for dim in reversed(order):
        strides[dim] = step
        step *= counts[dim]
    padded = tuple(n * width for n, width in zip(counts, block, strict=True))
    return padded, tuple(strides)


def test_structure_has_the_size_and_offsets_of_the_c_structure() -> None:
    """Numbers printed by a C compiler from the 2.6.3 header."""
    assert ctypes.sizeof(onednn.MemoryDesc) == 696
    fields = ("data_type", "padded_dims", "offset0", "format_kind", "blocking", "extra")
    offsets = [getattr(onednn.MemoryDesc, name).offset for name in fields]
    assert offsets == [104, 112, 304, 312, 320, 616]


def test_runtime_dims_make_a_descriptor_but_no_reorder() -> None:
    desc = Desc.by_tag((RT, 17, 3), "f32", "aBc16b")
    assert desc.span() == RUNTIME_SIZE
    with refused(INVALID):
        Reorder(desc, desc)


def test_tables_are_complete() -> None:
    assert sorted(onednn.TAGS.values()) == list(range(2, 514))
    assert len(onednn.ALIASES) == 475
    assert set(onednn.ALIASES.values()) <= set(onednn.TAGS)
    assert not set(onednn.ALIASES) & set(onednn.TAGS)


@pytest.mark.parametrize("tag", onednn.TAGS)
def test_number_of_tag_gives_the_layout_of_its_letters(tag: str) -> None:
    order, inner = letters(tag)
    dims = (BIG_DIMS if len(order) <= 6 else SMALL_DIMS)[: len(order)]
    desc = Desc.by_tag(dims, "s8", tag)
    padded, strides = by_letters(tag, dims)
    assert (desc.dims, desc.padded_dims, desc.strides) == (dims, padded, strides)
    assert list(zip(desc.inner_blks, desc.inner_idxs, strict=True)) == inner
    assert (desc.kind, desc.offset0, set(desc.padded_offsets)) == ("blocked", 0, {0})
    assert desc.size() == desc.span() == math.prod(padded)


@pytest.mark.parametrize(
    ("alias", "tag"),
    [
        ("nChw16c", "aBcd16b"),
        ("giodhw", "acbdef"),
        ("ldoi", "abdc"),
        ("OIhw4i16o4i", "ABcd4b16a4b"),
        ("OhwI32o", "Acdb32a"),
        ("gIOhw2i8o16i2o", "aBCde2c8b16c2b"),
    ],
)
def test_aliases_including_misnamed_ones(alias: str, tag: str) -> None:
    assert onednn.ALIASES[alias] == tag


@pytest.mark.parametrize(
    ("dims", "dtype", "tag", "padded", "strides", "size"),
    [
        ((2, 17, 5, 4), "f32", "nChw8c", (2, 24, 5, 4), (480, 160, 32, 8), 3840),
        ((20, 37, 3, 2), "s8", "OIhw4i16o4i", (32, 48, 3, 2), (4608, 1536, 512, 256), 9216),
        ((20, 37, 3, 2), "s8", "IOhw16o16i", (32, 48, 3, 2), (1536, 3072, 512, 256), 9216),
        ((19, 1, 1, 3, 3), "s8", "Goihw16g", (32, 1, 1, 3, 3), (144, 144, 144, 48, 16), 288),
        ((1, 1, 1, 1), "f32", "aBcd16b", (1, 16, 1, 1), (16, 16, 16, 16), 64),
        ((33, 5, 1, 2), "f32", "OhwI32o", (64, 5, 1, 2), (320, 32, 320, 160), 2560),
        ((2, 0, 3, 5), "f32", "aBcd16b", (2, 0, 3, 5), (240, 240, 80, 16), 0),
        ((RT, 17, 3), "f32", "aBc16b", (RT, 32, 3), (96, 48, 16), RUNTIME_SIZE),
        ((2, 3), "f32", "any", (2, 3), (), 0),
        ((), "f32", "abc", (), (), 0),
        ((2, -3), "f32", "undef", (), (), 0),
    ],
)
def test_by_tag(
    dims: tuple[int, ...],
    dtype: str,
    tag: str,
    padded: tuple[int, ...],
    strides: tuple[int, ...],
    size: int,
) -> None:
    desc = Desc.by_tag(dims, dtype, tag)
    assert (desc.padded_dims, desc.strides, desc.size()) == (padded, strides, size)


def test_refusals_carry_code_and_names() -> None:
    with pytest.raises(Status, match=r"dnnl_memory_desc_init_by_tag returned 2") as info:
        Desc.by_tag((2, 3), "f32", "abc")
    assert (info.value.code, info.value.name) == (2, INVALID)
    with refused(INVALID):
        Desc.by_tag((2,) * 13, "f32", "abcdefghijkl")
    with refused(INVALID):
        Desc.by_tag((2, RT), "f32", "any")
    with pytest.raises(ValueError, match="no format tag 'abx'"):
        Desc.by_tag((2, 3), "f32", "abx")


@pytest.mark.parametrize(
    ("dims", "strides", "size", "span"),
    [
        ((2, 3), (1, 2), 24, 24),
        ((2, 3), (4, 1), 32, 28),
        ((2, 3), (1, 0), 8, 8),
        ((2, 3), (0, 0), 0, 4),
        ((3, 1), (1, 77), 12, 12),
        ((1, 3), (-5, 1), 12, 12),
        ((2, 3, 4), (4, 8, 1), 96, 96),
        ((2, 0, 4), None, 0, 0),
    ],
)
def test_by_strides(
    dims: tuple[int, ...], strides: tuple[int, ...] | None, size: int, span: int
) -> None:
    desc = Desc.by_strides(dims, "f32", strides)
    assert desc.strides == ((0, 4, 1) if strides is None else strides)
    assert (desc.size(), desc.span()) == (size, span)


@pytest.mark.parametrize("strides", [(2, 1), (1, 1), (3, -1), (5, 2)])
def test_by_strides_refuses_overlap(strides: tuple[int, ...]) -> None:
    with refused(INVALID):
        Desc.by_strides((2, 3), "f32", strides)


def test_submemory() -> None:
    parent = Desc.by_tag((2, 32, 3), "f32", "aBc16b")
    part = parent.submemory((2, 8, 3), (0, 16, 0))
    assert (part.padded_dims, part.offset0, part.strides) == ((2, 8, 3), 48, (96, 48, 16))
    assert (part.size(), part.span()) == (0, 768)
    with refused(UNIMPLEMENTED):
        parent.submemory((2, 8, 3), (0, 8, 0))
    with refused(INVALID):
        Desc.by_tag((4, 6), "f32", "ab").submemory((2, 3), (3, 2))
    inner = Desc.by_tag((4, 6), "f32", "ab").submemory((3, 4), (1, 2)).submemory((2, 2), (1, 1))
    assert inner.offset0 == 15


def test_reshape() -> None:
    channels = Desc.by_tag((2, 20, 3), "f32", "aBc16b")
    assert channels.reshape((2, 1, 20, 3)).strides[1] == 60
    assert channels.reshape((2, 20, 3, 1)).strides[3] == 16
    assert Desc.by_tag((6, 4), "f32", "ba").reshape((2, 3, 4)).strides == (3, 1, 6)
    assert Desc.by_tag((1, 1, 1), "f32", "abc").reshape(()).ndims == 0
    with refused(INVALID):
        Desc.by_tag((2, 32, 3), "f32", "aBc16b").reshape((2, 2, 16, 3))


def test_permute_axes() -> None:
    desc = Desc.by_tag((2, 20, 4), "f32", "aBc16b").permute_axes((1, 0, 2))
    assert (desc.dims, desc.padded_dims) == ((20, 2, 4), (32, 2, 4))
    assert (desc.strides, desc.inner_idxs) == ((64, 128, 16), (0,))
    assert Desc.by_tag((2, 3, 4), "f32", "abc").permute_axes((1, 2, 0)).dims == (4, 2, 3)
    with refused(INVALID):
        desc.permute_axes((0, 2, 2))


def test_a_list_of_the_wrong_length_never_reaches_the_library() -> None:
    desc = Desc.by_tag((2, 3), "f32", "ab")
    with pytest.raises(ValueError, match="perm"):
        desc.permute_axes((0,))
    with pytest.raises(ValueError, match="offsets"):
        desc.submemory((1, 1), (0, 0, 0))
    with pytest.raises(ValueError, match="strides"):
        Desc.by_strides((2, 3), "f32", (1,))


def test_equality_follows_the_library() -> None:
    def same(dims: tuple[int, ...], one: str, other: str) -> bool:
        return Desc.by_tag(dims, "f32", one) == Desc.by_tag(dims, "f32", other)

    assert same((2, 3, 1, 1), "nchw", "nhwc")
    assert not same((2, 3, 4, 1), "nchw", "nhwc")
    assert not same((2, 16, 1, 1), "nChw16c", "nhwc")
    assert Desc.by_tag((2, 3), "f32", "undef") == Desc.by_tag((), "s8", "a")
    assert Desc.by_strides((2, 3, 4), "f32", (12, 1, 3)) == Desc.by_tag((2, 3, 4), "f32", "acb")
    assert Desc.by_tag((2,), "f32", "a") != "a"


def test_reorder_pads_with_zeros_and_stays_inside() -> None:
    dims = (2, 17, 5, 4)
    src = np.arange(math.prod(dims), dtype=np.float32).reshape(dims) + 1
    to = Desc.by_tag(dims, "f32", "aBcd16b")
    buffer = np.full(64 + to.size() + 64, 0xA5, np.uint8)
    reorder = Reorder(Desc.by_tag(dims, "f32", "abcd"), to)
    reorder.execute(src, buffer[64:-64])

    padded = np.zeros((2, 32, 5, 4), np.float32)
    padded[:, :17] = src
    blocks = padded.reshape(2, 2, 16, 5, 4).transpose(0, 1, 3, 4, 2)
    assert buffer[64:-64].tobytes() == blocks.tobytes()
    assert set(buffer[:64]) == set(buffer[-64:]) == {0xA5}
    assert reorder.impl


@pytest.mark.parametrize("shift", [1, 2, 4, 13])
def test_reorder_takes_any_alignment(shift: int) -> None:
    dims = (3, 33, 7, 5)
    plain, blocked = (Desc.by_tag(dims, "f32", tag) for tag in ("nchw", "nChw16c"))
    data = np.random.default_rng(7).random(dims, np.float32)
    src = np.empty(plain.size() + shift, np.uint8)[shift:]
    mid = np.empty(blocked.size() + shift, np.uint8)[shift:]
    out = np.empty_like(data)
    src[:] = data.ravel().view(np.uint8)
    Reorder(plain, blocked).execute(src, mid)
    Reorder(blocked, plain).execute(mid, out)
    np.testing.assert_array_equal(out, data)


def test_reorder_into_a_region_leaves_its_neighbours_alone() -> None:
    region = Desc.by_tag((4, 6), "s8", "ab").submemory((2, 3), (1, 2))
    out = np.full((4, 6), 9, np.int8)
    Reorder(Desc.by_tag((2, 3), "s8", "ab"), region).execute(np.zeros((2, 3), np.int8), out)
    expected = np.full((4, 6), 9, np.int8)
    expected[1:3, 2:5] = 0
    np.testing.assert_array_equal(out, expected)


def test_reorder_rounds_half_to_even_and_saturates() -> None:
    src = np.array([0.5, 1.5, 2.5, -2.5, 127.5, -128.5, 1e10, np.inf], np.float32)
    dst = np.empty(8, np.int8)
    Reorder(Desc.by_tag((8,), "f32", "a"), Desc.by_tag((8,), "s8", "a")).execute(src, dst)
    assert dst.tolist() == [0, 2, 2, -2, 127, -128, 127, 127]


def test_compensation_asked_for_through_raw() -> None:
    """18 values of -128 * sum behind 4096 bytes of weights; 2.6.3 counts their 128 bytes thrice."""
    weights = np.random.default_rng(3).integers(-128, 128, (18, 21, 2, 2), np.int8)
    to = Desc.by_tag(weights.shape, "s8", "OIhw4i16o4i")
    to.raw.extra.flags = 1
    to.raw.extra.compensation_mask = 1
    assert to.size() == to.span() == 4096 + 3 * 128
    out = np.full(to.size(), 0xA5, np.uint8)
    Reorder(Desc.by_tag(weights.shape, "s8", "oihw"), to).execute(weights, out)
    sums = np.zeros(32, np.int32)
    sums[:18] = -128 * weights.sum((1, 2, 3), dtype=np.int32)
    np.testing.assert_array_equal(out[4096:4224].view(np.int32), sums)
    assert set(out[4224:]) == {0xA5}


def test_zero_volume_reorder_is_legal() -> None:
    desc = Desc.by_tag((2, 0), "f32", "ab")
    Reorder(desc, desc).execute(np.empty(0, np.uint8), np.empty(0, np.uint8))


def test_reorder_refusals() -> None:
    with refused(INVALID):
        Reorder(Desc.by_tag((2, 3), "f32", "ab"), Desc.by_tag((3, 2), "f32", "ab"))
    with refused(UNIMPLEMENTED):
        Reorder(Desc.by_tag((2,), "f16", "a"), Desc.by_tag((2,), "s8", "a"))


def test_unfit_arrays_never_reach_the_library() -> None:
    desc = Desc.by_tag((2, 3), "f32", "ab")
    good = np.zeros((2, 3), np.float32)
    bad = {
        "short": np.zeros(5, np.float32),
        "scattered": np.zeros((3, 2), np.float32).T,
        "read-only": np.zeros((2, 3), np.float32),
    }
    bad["read-only"].flags.writeable = False
    for dst in bad.values():
        with pytest.raises(ValueError, match=r"contiguous|read-only"):
            Reorder(desc, desc).execute(good, dst)


def test_objects_are_destroyed_with_their_owner(monkeypatch: pytest.MonkeyPatch) -> None:
    calls: list[str] = []
    real = onednn._call

    def spy(name: str, *args: object) -> None:
        calls.append(name)
        real(name, *args)

    monkeypatch.setattr(onednn, "_call", spy)
    desc = Desc.by_tag((2, 3), "f32", "ab")
    reorder = Reorder(desc, desc)
    del reorder
    gc.collect()
    destroyed = sorted(name for name in calls if name.endswith("_destroy"))
    assert destroyed == [
        "memory_destroy",
        "memory_destroy",
        "primitive_desc_destroy",
        "primitive_destroy",
    ]
