"""Descriptors: oneDNN's numbers, strides, padding, text, equality, and what is refused."""

from __future__ import annotations

import pickle
import random
from collections.abc import Callable
from itertools import product

import numpy as np
import pytest

import clformats as cf
from tests.support import brute_force_offsets

D = cf.MemoryDesc


@pytest.mark.parametrize(
    ("name", "dims", "padded", "strides", "nbytes", "offsets"),
    [
        (
            "nChw8c",
            (2, 17, 5, 4),
            (2, 24, 5, 4),
            (480, 160, 32, 8),
            960,
            {(1, 16, 4, 3): 952, (0, 9, 2, 1): 233},
        ),
        (
            "OIhw4i16o4i",
            (20, 37, 3, 2),
            (32, 48, 3, 2),
            (4608, 1536, 512, 256),
            9216,
            {(17, 21, 2, 1): 7493, (5, 6, 0, 0): 86, (19, 36, 1, 1): 8524},
        ),
        (
            "OIhw8i16o2i",
            (20, 37, 3, 2),
            (32, 48, 3, 2),
            (4608, 1536, 512, 256),
            9216,
            {(17, 21, 2, 1): 7491, (5, 6, 0, 0): 106, (19, 36, 1, 1): 8518},
        ),
        (
            "OIhw8o16i2o",
            (20, 37, 3, 2),
            (32, 48, 3, 2),
            (4608, 1536, 512, 256),
            9216,
            {(17, 21, 2, 1): 7435, (5, 6, 0, 0): 77, (19, 36, 1, 1): 8489},
        ),
        (
            "OIhw4o8i8o4i",
            (20, 37, 3, 2),
            (32, 64, 3, 2),
            (12288, 6144, 2048, 1024),
            12288,
            {(17, 21, 2, 1): 5797, (5, 6, 0, 0): 54, (19, 36, 1, 1): 9772},
        ),
        (
            "IOhw16o16i",
            (20, 37, 3, 2),
            (32, 48, 3, 2),
            (1536, 3072, 512, 256),
            9216,
            {(17, 21, 2, 1): 5909, (5, 6, 0, 0): 86, (19, 36, 1, 1): 8500},
        ),
        ("OIhw2i8o4i", (20, 37, 3, 2), (24, 40, 3, 2), (1920, 384, 128, 64), 5760, {}),
        (
            "Goihw16g",
            (19, 1, 1, 3, 3),
            (32, 1, 1, 3, 3),
            (144, 144, 144, 48, 16),
            288,
            {(18, 0, 0, 2, 1): 258},
        ),
        (
            "NChw16n16c",
            (17, 5, 2, 2),
            (32, 16, 2, 2),
            (1024, 1024, 512, 256),
            2048,
            {(16, 4, 1, 1): 1796},
        ),
        ("aBcd16b", (1, 1, 1, 1), (1, 16, 1, 1), (16, 16, 16, 16), 16, {}),
        ("ABcd16b16a", (1, 16, 1, 1), (16, 16, 1, 1), (256, 256, 256, 256), 256, {}),
        ("OhwI32o", (33, 5, 1, 2), (64, 5, 1, 2), (320, 32, 320, 160), 640, {}),
        ("giodhw", (2, 3, 5, 1, 1, 2), (2, 3, 5, 1, 1, 2), (30, 2, 6, 2, 2, 1), 60, {}),
        ("nt", (7, 5), (7, 5), (1, 7), 35, {}),
        ("ldgoi", (1, 2, 3, 4, 5), (1, 2, 3, 4, 5), (120, 60, 1, 15, 3), 120, {}),
    ],
)
def test_numbers_of_onednn(
    name: str,
    dims: tuple[int, ...],
    padded: tuple[int, ...],
    strides: tuple[int, ...],
    nbytes: int,
    offsets: dict[tuple[int, ...], int],
) -> None:
    desc = D(dims, "s8", name)
    assert desc.padded_dims == padded
    assert desc.strides == strides
    assert desc.nbytes == nbytes
    assert D(dims, "f32", name).nbytes == 4 * nbytes
    assert desc.padded_offsets == (0,) * len(dims)
    for index, offset in offsets.items():
        assert desc.offset(*index) == offset
        assert desc.coords(offset) == index


def test_twelve_dimensions() -> None:
    desc = D((2,) * 12, "f32", "abcdefghijkl")
    assert desc.strides == tuple(2**k for k in range(11, -1, -1))
    assert desc.nbytes == 16384


def test_sizes_never_overflow() -> None:
    desc = D((2**40, 2**40, 3), "f32", "aBc16b")
    assert desc.nbytes == 2**80 * 3 * 4
    assert desc.offset(2**40 - 1, 2**40 - 1, 2) == 2**80 * 3 - 1
    assert desc.coords(desc.offset(2**39, 77, 1)) == (2**39, 77, 1)


@pytest.mark.parametrize(
    ("dims", "strides", "nbytes"),
    [
        ((2, 3), (1, 2), 24),
        ((2, 3), (4, 1), 32),
        ((2, 3), (6, 2), 48),
        ((2, 3), (0, 1), 12),
        ((2, 3), (1, 0), 8),
        ((2, 3), (0, 0), 4),  # oneDNN says 0, but element 0 is read
        ((1, 3), (-5, 1), 12),
        ((3, 1), (1, 77), 12),
        ((0, 3), (-1, -7), 0),
        ((2, 3, 4), (4, 8, 1), 96),
        ((1, 1), (0, 0), 4),
    ],
)
def test_strides_that_onednn_accepts(
    dims: tuple[int, ...], strides: tuple[int, ...], nbytes: int
) -> None:
    desc = D(dims, "f32", strides=strides)
    assert desc.nbytes == nbytes
    assert desc.strides == strides
    assert D.parse(str(desc)) == desc


@pytest.mark.parametrize(
    ("dims", "strides"),
    [
        ((2, 3), (2, 1)),
        ((2, 3), (1, 1)),
        ((2, 3), (3, -1)),
        ((2, 3), (5, 2)),
        ((2, 3, 4), (3, 8, 1)),
        ((2, 2), (2, 2)),
        ((2, 2, 3), (12, 8, 1)),
    ],
)
def test_overlapping_strides_are_refused(dims: tuple[int, ...], strides: tuple[int, ...]) -> None:
    with pytest.raises(cf.InvalidDescriptor, match="overlap" if min(strides) >= 0 else "negative"):
        D(dims, "f32", strides=strides)


def test_random_strides_by_brute_force() -> None:
    """What is accepted numbers each element on its own, except along repeated dimensions."""
    rng = random.Random(3)  # noqa: S311  # sizes, not secrets
    accepted = 0
    for _ in range(3000):
        dims = tuple(rng.choice([1, 2, 3, 4]) for _ in range(rng.choice([1, 2, 3])))
        strides = tuple(rng.choice([0, 1, 2, 3, 4, 6, 8, 12, 16, 24]) for _ in dims)
        try:
            desc = D(dims, "u8", strides=strides)
        except cf.InvalidDescriptor:
            continue
        accepted += 1
        table = dict(np.ndenumerate(brute_force_offsets(desc)))
        repeated = [d for d, s in enumerate(strides) if s == 0]
        distinct = {i: o for i, o in table.items() if all(i[d] == 0 for d in repeated)}
        assert len(set(distinct.values())) == len(distinct)
        assert max(table.values()) + 1 == desc.span_nbytes
        assert (desc.offsets().ravel() == list(table.values())).all()
        for index, offset in distinct.items():
            assert desc.coords(offset) == index
    assert accepted > 500


@pytest.mark.parametrize(
    ("name", "dims"), [("abcd", (2, 0, 3, 5)), ("acdb", (2, 0, 3, 5)), ("aBcd16b", (2, 0, 3, 5))]
)
def test_zero_volume(name: str, dims: tuple[int, ...]) -> None:
    desc = D(dims, "f32", name)
    strides = {"abcd": (15, 15, 5, 1), "acdb": (15, 1, 5, 1), "aBcd16b": (240, 240, 80, 16)}
    assert desc.strides == strides[name]
    assert (desc.nbytes, desc.nelems, desc.span_nbytes) == (0, 0, 0)
    assert desc.offsets().shape == dims
    assert cf.pack(np.zeros(dims, np.float32), desc).size == 0
    assert cf.unpack(np.zeros(0, np.float32), desc).shape == dims
    with pytest.raises(IndexError):
        desc.coords(0)


def test_zero_volume_descriptors_still_compare_their_strides() -> None:
    assert D((2, 0, 4), "f32", "abc") != D((2, 0, 4), "f32", "acb")


def test_any_and_undef() -> None:
    desc = D((2, 0, 3), "f32", "any")
    assert (desc.format_kind, desc.nbytes, desc.padded_dims) == ("any", 0, (2, 0, 3))
    assert desc == D((2, 0, 3), "f32", "any") != D((2, 0, 3), "s8", "any")
    assert D.parse(str(desc)) == desc
    for use in (lambda: desc.offset(0, 0, 0), desc.offsets, lambda: desc.coords(0)):
        with pytest.raises((cf.InvalidDescriptor, IndexError)):
            use()
    empty = D((), "f32")
    assert (empty.ndims, empty.nbytes, empty.format_kind) == (0, 0, "undef")
    assert empty == D((), "s8")
    assert D.parse(str(empty)) == empty


# --- clDNN's padding ------------------------------------------------------------------------------


@pytest.mark.parametrize("name", ["bfyx", "byxf", "b_fs_yx_fsv16", "bs_fs_yx_bsv4_fsv2", "byx8_f4"])
def test_padding_comes_before_blocking(name: str) -> None:
    dims, pads = (2, 5, 3, 4), ((1, 0), (3, 2), (0, 1), (2, 2))
    desc = D(dims, "f32", name, padding=pads)
    whole = D([a + n + b for n, (a, b) in zip(dims, pads, strict=True)], "f32", name)
    assert desc.padded_dims == whole.padded_dims
    assert desc.nbytes == whole.nbytes
    for index in product(*map(range, dims)):
        moved = [i + a for i, (a, _) in zip(index, pads, strict=True)]
        assert desc.offset(*index) == whole.offset(*moved)
        assert desc.coords(desc.offset(*index)) == index
    elements = {desc.offset(*i) for i in product(*map(range, dims))}
    for offset in set(range(desc.nbytes // 4)) - elements:
        assert desc.coords(offset) is None
    assert D.parse(str(desc)) == desc
    assert desc != D(dims, "f32", name)


def test_padding_of_a_fused_format_is_refused() -> None:
    with pytest.raises(cf.InvalidDescriptor, match="cannot have padding"):
        D((1, 16, 4, 4), "f32", "bf8_xy16", padding=((0, 0), (0, 0), (1, 1), (0, 0)))


# --- equality, text -------------------------------------------------------------------------------


def test_equality_is_onednns() -> None:
    def same(dims: tuple[int, ...], a: str, b: str) -> bool:
        left, right = D(dims, "f32", a), D(dims, "f32", b)
        assert (left == right) <= (hash(left) == hash(right))
        return left == right

    assert same((2, 3, 1, 1), "nchw", "nhwc")
    assert same((2, 1, 4, 5), "nchw", "nhwc")
    assert same((1, 3, 4, 5), "nchw", "chwn")
    assert same((2, 3, 4, 5), "nchw", "bfyx")
    assert not same((2, 3, 4, 1), "nchw", "nhwc")
    assert not same((1, 3, 1, 5), "nchw", "nhwc")
    assert not same((2, 16, 1, 1), "nChw16c", "nhwc")
    assert D((2, 3, 4), "f32", strides=(12, 1, 3)) == D((2, 3, 4), "f32", "acb")
    assert D((2, 3), "f32") == D((2, 3), "f32", "ab")
    assert D((2, 3), "f32") != D((2, 3), "s32")
    assert D((2, 3), "f32") != "f32:ab:2x3"


@pytest.mark.parametrize(
    "text",
    [
        "f32:b_fs_yx_fsv16:2x17x5x4",
        "s8:OIhw4i16o4i:20x37x3x2",
        "bf16:acb:2x3x4:strides=24x1x4",
        "u8:bfyx:1x3x5x7:pad=0+0x0+1x2+0x1+1",
        "f32:any:2x3",
        "f16:ab:0x3",
        "f32:undef:",
    ],
)
def test_text_round_trip(text: str) -> None:
    desc = D.parse(text)
    assert str(desc) == text
    assert D.parse(str(desc)) == desc == pickle.loads(pickle.dumps(desc))  # noqa: S301  # our own
    assert eval(repr(desc), {"MemoryDesc": D}) == desc  # noqa: S307  # our own


@pytest.mark.parametrize(
    "text",
    ["", "f32", "f32:bfyx", "f32:bfyx:2xx3", "f32:bfyx:1x2x3x4:what=1", "f32:ab:2x3:pad=1:2"],
)
def test_unreadable_text_is_told(text: str) -> None:
    with pytest.raises(cf.InvalidDescriptor):
        D.parse(text)


def test_descriptors_are_immutable() -> None:
    desc = D((2, 3), "f32")
    with pytest.raises(AttributeError):
        desc.dims = (3, 2)


# --- refusals -------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("make", "told"),
    [
        (lambda: D((2, -3), "f32"), "dimension 1 is -3"),
        (lambda: D((1,) * 13, "f32"), "at most 12"),
        (lambda: D((2, 3), "f32", "bfyx"), "(b, f, y, x)"),
        (lambda: D((2, 3), "q8"), "expected one of f32"),
        (lambda: D((2, 3), np.complex64), "unknown element type"),
        (lambda: D((2, 3), "f8"), "calls f64 so, names here count bits: write f64, f8_e4m3, f8_e5"),
        (lambda: D((2, 3), "i4"), "calls s32 so, names here count bits: write s32"),
        (lambda: D((2, 3.5), "f32"), "sequence of ints"),  # type: ignore[arg-type]
        (lambda: D(7, "f32"), "sequence of ints"),  # type: ignore[arg-type]
        (lambda: D((2, 3), "f32", strides=(1,)), "expected one each"),
        (lambda: D((2, 3), "f32", strides=(3, 1), padding=((0, 0),) * 2), "name the format"),
        (lambda: D((2, 3), "f32", "ab", strides=(3,)), "one stride for each"),
        (lambda: D((2, 3), "f32", "(a b)", strides=(1, 2)), "the same stride"),
        (lambda: D((4, 9), "f32", "a b/4 b%4", strides=(4, 4)), "overlap"),
        (lambda: D((2, 3), "f32", "ab", padding=((0, 0),)), "2 pairs"),
        (lambda: D((2, 3), "f32", "ab", padding=((0, 0), (0, -1))), "0 or more"),
        (lambda: D((2, 3), "f32", "any", padding=((0, 0), (0, 1))), "cannot have padding"),
    ],
)
def test_bad_descriptors_are_told(make: object, told: str) -> None:
    with pytest.raises(cf.InvalidDescriptor) as caught:
        make()  # type: ignore[operator]
    assert told in str(caught.value)
    assert isinstance(caught.value, ValueError)


def test_indices_outside_are_refused() -> None:
    desc = D((2, 3), "f32")
    for index in ((2, 0), (0, 3), (-1, 0), (0,), (0, 0, 0)):
        with pytest.raises(IndexError):
            desc.offset(*index)
    with pytest.raises(TypeError):
        desc.offset(0.5, 0)
    for offset in (-1, 6):
        with pytest.raises(IndexError):
            desc.coords(offset)


def test_offset_of_arrays_broadcasts() -> None:
    desc = D((2, 17, 5), "f32", "aBc16b")
    b = np.arange(17)[:, None]
    assert (desc.offset(1, b, np.arange(5)) == desc.offsets()[1]).all()
    with pytest.raises(IndexError):
        desc.offset(np.array([0, 2]), 0, 0)


def test_inner_blocks_of_what_is_no_tag() -> None:
    desc = D((32, 32, 2, 2), "s8", "is_o32_yx_isv32_swizzled_by_4")
    with pytest.raises(cf.Unsupported) as caught:
        _ = desc.inner_blks
    assert caught.value.code == "NOT_A_TAG"


def test_blocks_with_gaps_are_not_reshaped_as_dense_ones() -> None:
    """As repeating the other dimension of a tile of two blocks leaves them."""
    repeated = D((2, 8, 1, 1), "f32", "aBcD4b2d").broadcast_to((2, 8, 1, 3))
    gaps = cf.MemoryDesc.parse("f32:aB2b:2x4:strides=16x4x2")
    for refused in (lambda: repeated.reshape((2, 8, 3)), lambda: gaps.reshape((2, 4)),
                    lambda: gaps.inner_blks, lambda: gaps.inner_idxs):  # fmt: skip
        with pytest.raises(cf.Unsupported, match="has the stride 2, not 1"):
            refused()


def test_places_in_front_of_a_region_are_nobodys() -> None:
    """Also where the finer digit has the larger stride."""
    region = D((2, 10), "f32", "a b%5 b/5").submemory((1, 10), (1, 0))
    assert [region.coords(k) for k in range(10)] == [None] * 10
    assert {region.coords(int(k)) for k in region.offsets().flat} == {(0, b) for b in range(10)}


# --- operations -----------------------------------------------------------------------------------

RT = cf.RUNTIME_DIM


def _code(make: object) -> str:
    with pytest.raises((cf.InvalidDescriptor, cf.Unsupported)) as caught:
        make()  # type: ignore[operator]
    return str(caught.value.code)


def test_submemory_numbers() -> None:
    parent = D((2, 32, 3), "f32", "aBc16b")
    region = parent.submemory((2, 8, 3), (0, 16, 0))
    assert (region.padded_dims, region.offset0, region.strides) == ((2, 8, 3), 48, (96, 48, 16))
    assert _code(lambda: parent.submemory((2, 8, 3), (0, 8, 0))) == "NOT_ALIGNED"
    assert _code(lambda: parent.submemory((2, 24, 3), (0, 0, 0))) == "REGION_SIZE"
    odd = D((2, 20, 3), "f32", "aBc16b")
    assert odd.submemory((2, 4, 3), (0, 16, 0)).padded_dims == (2, 16, 3)
    assert odd.submemory((2, 2, 3), (0, 16, 0)).padded_dims == (2, 2, 3)
    assert odd.submemory((2, 20, 3), (0, 0, 0)) == odd
    assert odd.submemory((2, 0, 3), (0, 16, 0)).nbytes == 0
    assert _code(lambda: odd.submemory((2, 0, 3), (0, 20, 0))) == "NOT_ALIGNED"


def test_submemory_of_submemory_and_its_bytes() -> None:
    parent = D((4, 6), "f32", "ab")
    inner = parent.submemory((3, 4), (1, 2)).submemory((2, 2), (1, 1))
    assert inner.offset0 == 15
    region = parent.submemory((2, 3), (1, 2))
    assert (region.nbytes, region.span_nbytes) == (48, 68)
    assert region.offset(1, 2) == parent.offset(2, 4)
    assert region.coords(region.offset(1, 2)) == (1, 2)
    assert parent.submemory((0, 3), (4, 0)).offset0 == 24
    assert _code(lambda: parent.submemory((2, 3), (3, 2))) == "OUT_OF_BOUNDS"
    assert _code(lambda: parent.submemory((2,), (3, 2))) == "BAD_RANK"
    assert _code(lambda: D((4, 6), "f32", "any").submemory((4, 7), (0, 0))) == "OUT_OF_BOUNDS"
    assert _code(lambda: D((4, 6), "f32", "any").submemory((4, 6), (0, 0))) == "NO_LAYOUT"
    assert _code(lambda: D((1, 9, 4, 4), "f32", "bf8_xy16").submemory((1, 8, 4, 4), (0,) * 4))


def test_every_legal_crop_is_legal_and_no_other() -> None:
    for name, n in (("aB16b", 40), ("aB24b", 50), ("ab", 5), ("aB4b", 8)):
        desc = D((3, n), "f32", name)
        legal = desc.legal_crops(1)
        for at in range(n + 1):
            for size in range(n - at + 1):
                if size in legal.get(at, ()):
                    assert desc.submemory((3, size), (0, at)).dims == (3, size)
                else:
                    assert _code(lambda: desc.submemory((3, size), (0, at)))  # noqa: B023


def _listed_sizes(rest: int, block: int) -> list[int]:
    """By the rule in words: below a block, whole blocks, or up to the edge."""
    return [n for n in range(rest + 1) if n < block or n % block == 0 or n == rest]


def test_legal_crops_read_as_the_lists_they_stand_for() -> None:
    for name, n in (("aB16b", 49), ("aB16b", 48), ("aB16b", 15), ("ab", 7), ("aB3b", 1), ("ab", 0)):
        desc = D((3, n), "f32", name)
        legal, block = desc.legal_crops(1), desc.format.structure.blocks[1]
        want = {at: _listed_sizes(n - at, block) for at in range(0, n + 1, block)}
        assert legal == want
        assert (list(legal), len(legal)) == (list(want), len(want))
        for at, sizes in want.items():
            got = legal[at]
            assert (list(got), len(got), got[-1], got[1:3]) == (
                sizes, len(sizes), sizes[-1], sizes[1:3],
            )  # fmt: skip
            assert [got[k] for k in range(len(got))] == sizes
            assert [k in got for k in range(-1, n + 2)] == [k in sizes for k in range(-1, n + 2)]
            with pytest.raises(IndexError):
                got[len(sizes)]
        for at in (-1, n + 1, block + 1 if block > 1 else -2):
            assert legal.get(at) is None


def test_legal_crops_of_long_dimensions_cost_nothing() -> None:
    """A list of these would be larger than any memory."""
    legal = D((2**40 + 5, 3), "u8", "Ab16a").legal_crops(0)
    assert len(legal) == 2**36 + 1
    assert 2**39 in legal
    assert 2**39 + 1 not in legal
    sizes = legal[2**39]
    assert (len(sizes), sizes[15:18], sizes[-1]) == (16 + 2**35 + 1, [15, 16, 32], 2**39 + 5)
    assert eval(repr(legal[2**40])) == [0, 1, 2, 3, 4, 5]  # noqa: S307  # our own text


@pytest.mark.parametrize(
    ("name", "dims", "to", "strides"),
    [
        ("aBc16b", (2, 20, 3), (2, 1, 20, 3), (96, 60, 48, 16)),
        ("aBc16b", (2, 20, 3), (2, 20, 1, 3), (96, 48, 48, 16)),
        ("aBc16b", (2, 20, 3), (2, 20, 3, 1), (96, 48, 16, 16)),
        ("aBc16b", (2, 32, 4), (2, 32, 2, 2), (128, 64, 32, 16)),
        ("aBc16b", (2, 1, 4), (2, 1, 1, 4), (64, 4, 64, 16)),
        ("ba", (6, 4), (2, 3, 4), (3, 1, 6)),
        ("ba", (2, 12), (2, 3, 4), (1, 8, 2)),
        ("abc", (1, 1, 1), (), ()),
    ],
)
def test_reshape_numbers(
    name: str, dims: tuple[int, ...], to: tuple[int, ...], strides: tuple[int, ...]
) -> None:
    assert D(dims, "f32", name).reshape(to).strides == strides


def test_reshape_of_strides() -> None:
    def reshaped(dims: tuple[int, ...], strides: tuple[int, ...], to: tuple[int, ...]) -> object:
        return D(dims, "f32", strides=strides).reshape(to).strides

    assert reshaped((2, 3), (6, 2), (6,)) == (2,)
    assert reshaped((4, 2), (8, 1), (2, 2, 2)) == (16, 8, 1)
    assert reshaped((4, 3), (0, 1), (2, 2, 3)) == (0, 0, 1)
    assert _code(lambda: reshaped((2, 3), (6, 1), (6,))) == "RESHAPE_STRIDES"


def test_reshape_refusals() -> None:
    assert _code(lambda: D((2, 32, 3), "f32", "aBc16b").reshape((2, 2, 16, 3))) == "RESHAPE_BLOCKED"
    assert _code(lambda: D((2, 1, 4), "f32", "aBc16b").reshape((2, 4))) == "RESHAPE_BLOCKED"
    assert _code(lambda: D((2, 3, 4), "f32", "acb").reshape((6, 4))) == "RESHAPE_STRIDES"
    assert _code(lambda: D((2, 3), "f32", "any").reshape((7,))) == "RESHAPE_VOLUME"
    assert _code(lambda: D((), "f32").reshape((1,))) == "EMPTY"
    assert _code(lambda: D((2, RT), "f32", "ab").reshape((2, 1))) == "RUNTIME_SIZES"
    for dims, to in (((2, 0, 4), (0, 8)), ((2, 0, 4), (8, 0)), ((0,), (1,)), ((0, 4), (4,))):
        assert _code(lambda: D(dims, "f32").reshape(to))  # noqa: B023
    assert D((2, 0, 4), "f32").reshape((2, 0, 2, 2)).dims == (2, 0, 2, 2)
    assert D((2, 3), "f32", "any").reshape((6,)).format_kind == "any"


def test_reshape_keeps_every_element() -> None:
    desc = D((6, 4, 5), "f32", "cab")
    split = desc.reshape((2, 3, 1, 4, 5))
    assert (split.offsets().ravel() == desc.offsets().ravel()).all()


def test_permute_axes() -> None:
    assert D((2, 3, 4), "f32").permute_axes((1, 2, 0)).dims == (4, 2, 3)
    desc = D((2, 20, 4), "f32", "aBc16b").permute_axes((1, 0, 2))
    assert (desc.dims, desc.padded_dims, desc.strides) == ((20, 2, 4), (32, 2, 4), (64, 128, 16))
    assert (desc.inner_blks, desc.inner_idxs) == ((16,), (0,))
    for axes in ((0, 0), (-1, 0), (0, 2), (0,)):
        assert _code(lambda: D((2, 3), "f32").permute_axes(axes)) == "NOT_A_PERMUTATION"  # noqa: B023
    padded = D((2, 3), "f32", "ab", padding=((1, 0), (0, 2)))
    moved = padded.permute_axes((1, 0))
    assert moved.offset(2, 1) == padded.offset(1, 2)
    swizzled = D((32, 32, 2, 2), "s8", "is_o32_yx_isv32_swizzled_by_4")
    assert swizzled.permute_axes((1, 0, 2, 3)).offset(3, 17, 0, 1) == swizzled.offset(17, 3, 0, 1)
    tail = D((32, 32, 2, 3), "s8", "iy_xs_os_xsv2_osv8__ao32")
    assert _code(lambda: tail.permute_axes((1, 0, 2, 3))) == "FUSED_INDEX"


def test_runtime_dims() -> None:
    desc = D((RT, 17, 3), "f32", "aBc16b")
    assert (desc.padded_dims, desc.strides) == ((RT, 32, 3), (96, 48, 16))
    assert D((2, 17, RT), "f32", "aBc16b").strides == (RT, RT, 16)
    assert D((3, 2, RT), "f32").strides == (RT, RT, 1)  # oneDNN's [0, RT, 1] is an overflow
    assert D((RT, 3), "f32", strides=(-5, -5)).has_runtime
    assert desc.nbytes == 2**63
    assert str(desc) == "f32:aBc16b:*x17x3"
    assert D.parse(str(desc)) == desc
    for use in (desc.offsets, lambda: desc.coords(0), lambda: desc.offset(0, 0, 0)):
        with pytest.raises((cf.InvalidDescriptor, IndexError)):
            use()
    assert _code(lambda: desc.submemory((1, 16, 3), (0, 0, 0))) == "RUNTIME_DIMS"
    assert _code(lambda: desc.permute_axes((0, 2, 1))) == "RUNTIME_SIZES"
    with pytest.raises(cf.InvalidDescriptor):
        D((RT, 3), "f32", "any")


def test_undef_with_dims_is_the_empty_descriptor() -> None:
    assert D((2, -3), "f32", "undef") == D((), "s8")


# --- what a reviewer found ------------------------------------------------------------------------


@pytest.mark.parametrize(
    "text",
    [
        "f32:nchw:2x3x4x5:offset=-100",
        "f32:nchw:2x3x4x5:padded=1x1x1x1",
        "f32:nChw16c:2x17x4x5:padded=2x16x4x5",
        "f32:bf8_xy16:2x17x5x7:strides=1x1x1x1x1",
        "f32:aBc16b:2x16x3:strides=40x48x16",
        "f32:ab:2x3:offset=1:offset=2",
        "f32:ab:2+3",
        "f32:ab:1_0x3",
        "f32:ab:\uff12x3",
    ],
)
def test_text_cannot_make_a_descriptor_that_leaves_its_buffer(text: str) -> None:
    with pytest.raises(cf.InvalidDescriptor):
        D.parse(text)


def test_index_arrays_of_any_integer_type() -> None:
    desc = D((300, 300), "u8")
    for kind in (np.int8, np.uint8, np.int16, np.uint16, np.int64, np.uint64):
        got = desc.offset(np.array([100], kind), [3])
        assert got.dtype == np.int64
        assert got == [30003]
    huge = D((10**12, 10**12), "f32")
    assert huge.offset(np.array([10**12 - 1]), 10**12 - 1) == [10**24 - 1]
    for bad in (np.array([0.5]), np.array([True])):
        with pytest.raises(TypeError, match="integers"):
            desc.offset(bad, 0)


def test_a_forgotten_type_is_told() -> None:
    for bad in (None, "(2,", "f33"):
        with pytest.raises(cf.InvalidDescriptor, match="unknown element type"):
            D((2, 3), bad)


def test_refusals_can_be_pickled() -> None:
    with pytest.raises(cf.Unsupported) as caught:
        D((4, 6), "f32", "any").submemory((4, 6), (0, 0))
    again = pickle.loads(pickle.dumps(caught.value))  # noqa: S301  # our own
    assert (again.code, str(again)) == (caught.value.code, str(caught.value))


def test_a_reshape_never_moves_elements() -> None:
    """Not even of a region that cut a block down to one element, where oneDNN's does."""
    region = D((16, 32), "u8", "AB16a2b").submemory((16, 1), (0, 0))
    assert _code(lambda: region.reshape((16,))) == "RESHAPE_BLOCKED"
    kept = region.reshape((1, 16, 1))
    assert (kept.offsets().ravel() == region.offsets().ravel()).all()


def test_what_does_not_say_where_elements_lie_is_told() -> None:
    unknown, later = D((RT, 5), "f32", "ab"), D((2, 3), "f32", "any")
    for make in (
        lambda: cf.same_bytes(unknown, unknown),
        lambda: cf.same_bytes(later, D((2, 3), "f32")),
        lambda: cf.pack(np.zeros((2, 3), np.float32), later),
        lambda: cf.unpack(np.zeros(6, np.float32), later),
    ):
        with pytest.raises(cf.InvalidDescriptor):
            make()
    assert _code(lambda: unknown.legal_crops(1)) == "RUNTIME_DIMS"
    assert D((2, 3), "f32", "ab", padding=((0, 0), (1, 0))).legal_crops(0) == {}
    assert cf.Format("os_is_yx_osv32_isv2:i4") == cf.Format("os_is_yx_osv32_isv2")


def test_wide_integers_round_once() -> None:
    assert cf.pack(np.array([2**60 + 2**36 + 1]), D((1,), "f32"))[0] == 2.0**60 + 2.0**37


@pytest.mark.parametrize(
    "make",
    [
        lambda n: cf.MemoryDesc((n, 17), "s8"),
        lambda n: cf.MemoryDesc((n, 1), "f64", "Ab16a"),
        lambda n: cf.MemoryDesc((n, 4, 4), "f32", strides=(0, 0, 0)),
        lambda n: cf.MemoryDesc((2, 2), "f64", strides=(n, 1)),
        lambda n: cf.MemoryDesc((0, n, 4), "f32"),
        lambda n: cf.MemoryDesc((1, 1, 1, 1), "f32", "bfyx", padding=((0, n),) * 4),
    ],
)
@pytest.mark.parametrize("bits", [60, 61, 62])
def test_what_no_memory_can_hold_is_refused(
    make: Callable[[int], cf.MemoryDesc], bits: int
) -> None:
    desc = make(2**bits)
    for use in (
        cf.HostMemory,
        cf.MemoryDesc.offsets,
        lambda d: cf.make_plan(d, d),
        lambda d: cf.unpack(np.zeros(1, d.dtype.numpy), d),
        lambda d: cf.pack(np.broadcast_to(np.ones((), d.dtype.numpy), (1,) * d.ndims), d),
    ):
        with pytest.raises(cf.InvalidDescriptor, match="2\\*\\*63 bytes or more"):
            use(desc)


def test_the_largest_dimension() -> None:
    desc = cf.MemoryDesc((2**63 - 1,), "s8")
    assert desc.nbytes == 2**63 - 1
    assert desc.offset(2**63 - 2) == 2**63 - 2
    with pytest.raises(cf.InvalidDescriptor, match="expected less than 2"):
        cf.MemoryDesc((2**63,), "s8")
    with pytest.raises(cf.InvalidDescriptor, match="do not fit into memory"):
        cf.MemoryDesc((2**45,), "s8").offsets()
    for dims, strides in ((2**61, 1), (2, 2**61)):
        with pytest.raises(cf.InvalidDescriptor, match="does not fit into memory"):
            cf.pack(np.broadcast_to(np.uint8(1), (dims,)), D((dims,), "u8", strides=(strides,)))


def test_true_is_no_size() -> None:
    with pytest.raises(cf.InvalidDescriptor, match="sequence of ints"):
        cf.MemoryDesc((True, 17), "f32")


@pytest.mark.parametrize(
    ("text", "meant"),
    [("fp16", "f16"), ("F32", "f32"), ("torch.float16", "f16"), ("I8", "s8"), ("BF16", "bf16"),
     ("np.int32", "s32"), ("fp8_e4m3", "f8_e4m3")],
)  # fmt: skip
def test_other_spellings_of_types_are_guessed(text: str, meant: str) -> None:
    with pytest.raises(cf.InvalidDescriptor, match=f"Did you mean {meant}\\?$"):
        cf.MemoryDesc((2,), text)


@pytest.mark.parametrize("text", ["fp8", "np.f8", "quaternion", "int128"])
def test_no_type_is_guessed_where_none_is_alike(text: str) -> None:
    with pytest.raises(cf.InvalidDescriptor) as told:
        cf.MemoryDesc((2,), text)
    assert "Did you mean" not in str(told.value)


def test_hidden_elements_are_refused() -> None:
    array = np.ma.masked_array(np.ones((2, 3), np.float32), np.eye(2, 3, dtype=bool))
    calls: list[Callable[[], object]] = [
        lambda: cf.pack(array, "f32:ab:2x3"),
        lambda: cf.HostMemory.of(array),
        lambda: cf.HostMemory("f32:ab:2x3", array),
        lambda: cf.Attr(src_scale=array),
    ]
    for call in calls:
        with pytest.raises(cf.InvalidArgument, match="2 elements are hidden"):
            call()
    assert cf.pack(np.ma.masked_array(np.ones((2, 3), np.float32)), "f32:ab:2x3").all()


def test_a_layout_is_no_format_but_makes_one() -> None:
    """The order of nibbles in AWQ's words: the dead end that docs/refusals.md once had."""
    digit = cf.Digit
    layout = cf.Layout(2, (digit(1, None), digit(0, None, 8), digit(0, 2, 1), digit(0, 4, 2)))
    with pytest.raises(cf.InvalidFormat, match=r"Format\.from_layout"):
        cf.MemoryDesc((256, 512), "u4", layout)  # type: ignore[arg-type]
    desc = cf.MemoryDesc((256, 512), "u4", cf.Format.from_layout(layout))
    assert [desc.offset(k, 0) for k in range(8)] == [0, 4, 1, 5, 2, 6, 3, 7]
