"""identify and same_bytes."""

from __future__ import annotations

import random

import pytest

import clformats as cf
from tests.support import ANY_WIDTH, hurting_dims, random_pair

D = cf.MemoryDesc


def test_every_tag_is_identified_from_its_numbers() -> None:
    for fmt in dict.fromkeys(ANY_WIDTH):
        if fmt.onednn is None:
            continue
        dims = hurting_dims(fmt)
        desc = D(dims, "f32", fmt)
        blocks = list(zip(desc.inner_blks, desc.inner_idxs, strict=True))
        name = cf.identify(dims, desc.strides, blocks)
        assert name is not None
        assert D(dims, "f32", name) == desc


def test_dimensions_of_size_one_leave_the_plain_order() -> None:
    assert cf.identify((2, 3, 1, 1), (3, 1, 3, 3)) == "abcd"
    assert cf.identify((2, 3, 1, 1), (3, 1, 1, 1)) == "abcd"
    assert cf.identify((2, 3, 4, 5), (60, 1, 15, 3)) == "acdb"
    assert cf.identify((2, 17, 5, 4), (640, 320, 64, 16), [(16, 1)]) == "aBcd16b"


def test_what_has_no_name() -> None:
    assert cf.identify((2, 3), (4, 1)) is None
    assert cf.identify((2, 3), (0, 1)) is None
    with pytest.raises(cf.InvalidDescriptor, match="one each"):
        cf.identify((2, 3), (1,))
    with pytest.raises(cf.InvalidDescriptor, match="block"):
        cf.identify((2, 3), (3, 1), [(16, 2)])


def test_same_bytes_by_example() -> None:
    def same(dims: tuple[int, ...], a: str, b: str) -> bool:
        return cf.same_bytes(D(dims, "f32", a), D(dims, "s32", b))

    assert same((2, 16, 1, 1), "nChw16c", "nhwc")
    assert not same((2, 20, 1, 1), "nChw16c", "nhwc")
    assert same((1, 20, 1, 1), "nChw16c", "nhwc")
    assert same((2, 3, 1, 1), "nchw", "nhwc")
    assert same((1, 24, 1, 1), "aBcd24b", "aBcd16b")
    assert not same((1, 24, 2, 1), "aBcd24b", "aBcd16b")
    assert not cf.same_bytes(D((2, 3), "f32"), D((3, 2), "f32"))
    assert not cf.same_bytes(D((2, 3), "f32"), D((2, 3), "f16"))
    assert cf.same_bytes(D((2, 0), "f32"), D((2, 0), "f32", "ba"))


def test_same_bytes_is_what_the_offsets_say() -> None:
    rng = random.Random(8)  # noqa: S311  # shapes, not secrets
    formats: dict[int, list[cf.Format]] = {}
    for fmt in ANY_WIDTH:
        formats.setdefault(fmt.ndims, []).append(fmt)
    same = 0
    for _ in range(4000):
        dims, a, b = random_pair(rng, formats)
        dims = tuple(rng.choice([1, 1, n, 16]) for n in dims)
        x, y = D(dims, "f32", a), D(dims, "f32", b)
        if x.nelems > 20_000:
            continue
        truth = bool((x.offsets() == y.offsets()).all()) and x.format.image == y.format.image
        assert cf.same_bytes(x, y) == truth, (x, y)
        same += truth
    assert same > 100
