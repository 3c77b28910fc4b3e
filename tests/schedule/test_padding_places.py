"""Where padding lies: places of fused indices, repeated elements amid padding, dimensions of 1."""

from __future__ import annotations

import itertools

import numpy as np
import pytest

import clformats as cf
from tests.support import ANY_WIDTH, hurting_dims

D = cf.MemoryDesc
FUSED = [f for f in ANY_WIDTH if any(len(d.dims) > 1 for d in f.structure.digits)]


@pytest.mark.parametrize("fmt", FUSED, ids=str)
def test_every_place_lies_inside_the_padding(fmt: cf.Format) -> None:
    """What fills up the last slice of a fused index has none, and no two places are one."""
    desc = D(hurting_dims(fmt), "f32", fmt)
    places = [desc.place_at(k) for k in range(desc.nbytes // 4)]
    found = [place for place in places if place is not None]
    assert len(set(found)) == len(found)
    for place in found:
        assert all(0 <= p < n for p, n in zip(place, desc.padded_dims, strict=True)), place
    assert [desc.coords(k) is not None for k in range(len(places))].count(True) == desc.nelems


def test_a_fused_index_that_is_not_whole_has_such_places() -> None:
    """The test above sees some of them."""
    descs = [D(hurting_dims(fmt), "f32", fmt) for fmt in FUSED]
    assert any(None in {d.place_at(k) for k in range(d.nbytes // 4)} for d in descs)


@pytest.mark.parametrize("name", ["abc", "cba", "aBc4b", "aBc16b", "aBc8b4b", "ABc3b4a5b"])
def test_elements_are_repeated_from_where_they_lie(name: str) -> None:
    """However far behind the start of the padding that is: inside a block, or blocks on."""
    for lower, upper in itertools.product((0, 1, 3, 5, 17, 35), (0, 2)):
        one = D((3, 1, 2), "f32", name, padding=((2, 0), (lower, upper), (0, 1)))
        many = one.broadcast_to((3, 7, 2))
        np.testing.assert_array_equal(many.offsets(), np.broadcast_to(one.offsets(), (3, 7, 2)))


def test_the_stride_of_one_element_counts_where_padding_lies_around_it() -> None:
    """The element lies behind the padding, and by another stride elsewhere."""
    pads = ((0, 0), (2, 1), (1, 1))
    a, b = (D((1, 1, 1), "f32", name, padding=pads) for name in ("abc", "acb"))
    assert a.offset(0, 0, 0) != b.offset(0, 0, 0)
    assert a != b
    assert a == D((1, 1, 1), "f32", "bac", padding=pads)


def test_the_stride_of_a_block_that_is_not_full_counts() -> None:
    whole = "f32:aBc16b:2x1x3"
    other = D.parse(f"{whole}:strides=48x999x16")
    assert other != D.parse(whole)
    assert D.parse(str(other)) == other
    assert D.parse("f32:abc:2x1x3:strides=3x999x1") == D.parse("f32:abc:2x1x3")


@pytest.mark.parametrize(("dims", "strides", "others"), [
    # Both dimensions are 1: the zeros that fill up the only slice lie two elements apart, or one.
    ("8x3x1x1", "96x32x16x8x2", "96x32x16x8x1"),
    # One of them is not: the second slice lies elsewhere.
    ("8x3x1x6", "384x128x32x8x2", "384x128x64x8x2"),
])  # fmt: skip
def test_the_stride_of_a_fused_index_counts(dims: str, strides: str, others: str) -> None:
    a, b = (D.parse(f"f32:os_i_yxs_osv4_yxsv4:{dims}:strides={text}") for text in (strides, others))
    assert a != b
