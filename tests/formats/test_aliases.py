"""Names that frameworks use."""

from __future__ import annotations

import pytest

import clformats as cf
from clformats.formats.aliases import canonical

NAMES = {
    "NCHW": "abcd",
    "NHWC": "acdb",
    "NCDHW": "abcde",
    "NC": "ab",
    "OIHW": "abcd",
    "HWIO": "cdba",
    "NCHW16c": "aBcd16b",
    "OIHW4i16o4i": "ABcd4b16a4b",
    "OI16i16o": "AB16b16a",
    "channels_last": "acdb",
    "channels_first": "abcd",
    "channels_last_3d": "acdeb",
}


@pytest.mark.parametrize(("name", "tag"), NAMES.items())
def test_a_name_of_a_framework_is_a_format(name: str, tag: str) -> None:
    fmt = cf.Format(name)
    assert fmt.onednn == tag
    assert cf.Format(str(fmt)) == fmt
    assert cf.MemoryDesc((3,) * fmt.ndims, "f32", name).format == fmt
    if name.isalnum():
        assert cf.notations.parse(name) == fmt


@pytest.mark.parametrize(("ndims", "tag"), [(2, "ab"), (3, "acb"), (4, "acdb"), (5, "acdeb")])
def test_channels_last_takes_the_rank(ndims: int, tag: str) -> None:
    assert cf.Format("channels_last", ndims).onednn == tag
    assert cf.MemoryDesc((2, 3, 5, 7, 11)[:ndims], "f32", "channels_last").format.onednn == tag


def test_listed_names_are_their_own() -> None:
    for fmt in cf.formats():
        assert canonical(fmt.name, fmt.ndims) == fmt.name or fmt.onednn is not None
        assert cf.Format(fmt.name).name == fmt.name


@pytest.mark.parametrize(
    ("name", "near"),
    [
        ("B_FS_YX_FSV16", "b_fs_yx_fsv16"),
        ("nchw16C", "nChw16c"),
        ("Byxf", "byxf"),
        ("Channels_Last", "channels_last"),
    ],
)
def test_suggestions_do_not_mind_capitals(name: str, near: str) -> None:
    with pytest.raises(cf.InvalidFormat, match=rf"Did you mean .*\b{near}\b"):
        cf.Format(name)
