"""The grammars: every name means the digits that its kernels use, and prints back."""

from __future__ import annotations

import csv
import pickle
import re
from pathlib import Path

import pytest

import clformats as cf
from clformats.formats import names, registry, text

DATA = Path(__file__).parent.parent / "data" / "cldnn_digits.tsv"
ROWS = [
    row
    for row in csv.reader(DATA.read_text().splitlines(), delimiter="\t")
    if not row[0].startswith("#")
]
ALL = list(cf.formats())


# What the row of an image leaves out: dimensions that are 1 there, and all of nv12.
IMAGE_EXTRA = {"image_2d_rgba": "b f/4 ", "nv12": "b f | y | x"}


@pytest.mark.parametrize("row", ROWS, ids=lambda row: row[0])
def test_cldnn_name_means_its_measured_digits(row: list[str]) -> None:
    name, letters, digits, alignment = row
    fmt = cf.Format(name)
    got = re.split(" align | tail | dims ", text.written(fmt.parsed))[0]
    if name.endswith(":i4"):
        # Measured at 1x1 filters, so the rows have no y and x.
        got = " ".join(d for d in got.split() if d not in ("y", "x"))
        assert "".join(fmt.dims).removesuffix("yx") == letters
    else:
        assert "".join(fmt.dims) == letters
    assert got == IMAGE_EXTRA.get(name, "") + digits.strip("-")
    align = {f"{c}%{n}" for c, n in zip(fmt.letters, fmt.structure.align, strict=True) if n > 1}
    assert align == (set() if alignment == "-" else set(alignment.split()))


def test_the_table_of_measured_digits_is_whole() -> None:
    assert len(ROWS) == 252
    assert {row[0] for row in ROWS} == set(registry.listed("cldnn"))


def test_every_tag_prints_back() -> None:
    tags = [n for n in registry.listed("onednn") if names.ABSTRACT.startswith(
        "".join(sorted({c.lower() for c in n if c.isalpha()})))]  # fmt: skip
    assert len(tags) == 873
    for tag in tags:
        assert cf.Format(tag).onednn == tag


def test_every_listed_name_is_canonical_and_parses_to_itself() -> None:
    assert len(ALL) == len(set(map(str, ALL))) > 1800
    for fmt in ALL:
        assert cf.Format(fmt.name) == fmt
        for other in (fmt.onednn, fmt.cldnn):
            assert other is None or cf.Format(other) == fmt


def test_the_digits_of_every_name_are_a_text_of_it() -> None:
    for fmt in ALL:
        again = text.read(text.written(fmt.parsed))
        assert (again.layout, again.letters, again.image) == (fmt.layout, fmt.letters, fmt.image)


@pytest.mark.parametrize(
    ("name", "tag"),
    [
        ("OhwI32o", "Acdb32a"),
        ("gOhwI32o", "aBdec32b"),
        ("OhwI24o", "Acdb24a"),
        ("gOhwI24o", "aBdec24b"),
        ("gIOhw2i8o16i2o", "aBCde2c8b16c2b"),
        ("gIOdhw2i8o16i2o", "aBCdef2c8b16c2b"),
        ("giodhw", "acbdef"),
        ("nt", "ba"),
        ("ldgoi", "abdec"),
        ("ldoi", "abdc"),
        ("wigo", "dcab"),
        ("nChw16c", "aBcd16b"),
        ("NChw16n16c", "ABcd16a16b"),
        ("OIhw4o8i8o4i", "ABcd4a8b8a4b"),
        ("x", "a"),
    ],
)
def test_alias(name: str, tag: str) -> None:
    assert cf.Format(name).onednn == tag


def test_names_that_are_not_listed_parse_too() -> None:
    assert cf.Format("aBc12b").structure.blocks == (1, 12, 1)
    assert cf.Format("b_fs_yx_fsv24") == cf.Format("aBcd24b")
    assert cf.Format("ABcd2a3b4a5b").structure.blocks == (8, 15, 1, 1)
    assert cf.Format("lkjihgfedcba").ndims == 12
    assert cf.Format("os_is_yx_osa2_isv4_osv8") == cf.Format("ABcd2a4b8a")


@pytest.mark.parametrize(
    ("meta", "ndims", "tag"),
    [
        ("abx", 5, "abcde"),
        ("axb", 4, "acdb"),
        ("xba", 5, "cdeba"),
        ("aBx16b", 5, "aBcde16b"),
        ("ABx16a16b", 3, "ABc16a16b"),
        ("aBx16b", 2, "aB16b"),
    ],
)
def test_meta_tag(meta: str, ndims: int, tag: str) -> None:
    assert cf.Format(meta, ndims=ndims).name == tag
    assert cf.MemoryDesc((2,) * ndims, "f32", meta).format.name == tag


@pytest.mark.parametrize(
    ("name", "bad", "near"),
    [
        ("b_fs_yx_fsv", "'fsv'", "b_fs_yx_fsv8"),
        ("nChw16d", "'C'", "nChw16c"),
        ("bfyxx", "'x'", "bfyx"),
        ("b_fs_yx_fsv16_z", "'z'", "b_fs_yx_fsv16"),
        ("b_fs_yx_isv16", "'isv'", "o_is_yx_isv16"),
        ("b_f_yx_fsv16", "'fsv'", "b_fs_yx_fsv16"),
        ("aBcd", "'B'", "aBcd8b"),
        ("abcd16b", "'b'", "aBcd16b"),
        ("aBcd1b", "'1b'", "aBcd8b"),
        ("os_iyx_osv16__aq8", "aligned", "os_iyx_osv16"),
        ("os_iyx_osv16_swizzled_by_3", "swizzled_by_3", "osv"),
        ("", "''", "clformats list"),
        ("lorem ipsum", "'lorem ipsum'", "clformats list"),
        ("bfyx;drop", "'bfyx;drop'", "bfyx"),
    ],
)
def test_a_bad_name_is_told_with_the_bad_token_and_near_names(
    name: str, bad: str, near: str
) -> None:
    with pytest.raises(cf.InvalidFormat) as caught:
        cf.Format(name)
    message = str(caught.value)
    assert bad in message
    assert near in message


def test_wrong_ranks_are_told() -> None:
    with pytest.raises(cf.InvalidFormat, match="say how many"):
        cf.Format("aBx16b")
    with pytest.raises(cf.InvalidFormat, match="2 to 12"):
        cf.Format("aBx16b", ndims=1)
    with pytest.raises(cf.InvalidFormat, match="has 4 dimensions"):
        cf.Format("bfyx", ndims=5)
    with pytest.raises(cf.InvalidFormat, match="given by its name"):
        cf.Format(7)  # type: ignore[arg-type]


def test_format_attributes() -> None:
    f = cf.Format("b_fs_yx_fsv16")
    assert f.dims == ("b", "f", "y", "x")
    assert (f.role, f.kind, f.ndims, str(f)) == ("data", "blocked", 4, "b_fs_yx_fsv16")
    assert f.digits[1] == cf.Digit(dim=1, size=None, step=16)
    assert f.digits[-1] == cf.Digit(dim=1, size=16, step=1)
    assert (f.onednn, f.cldnn) == ("aBcd16b", "b_fs_yx_fsv16")
    assert f == cf.Format("nChw16c") == cf.Format("aBcd16b") == cf.Format("bfyx_f16")
    assert hash(f) == hash(cf.Format("nChw16c"))
    assert f != cf.Format("b_fs_yx_fsv32")
    assert cf.Format("OIhw16i16o").cldnn == "os_is_yx_isv16_osv16"
    assert cf.Format("os_is_yx_osv32_isv4_swizzled_by_2").onednn is None
    assert cf.Format("ldigo").role == "rnn"
    assert cf.Format("any").digits == ()
    assert cf.Format("any") != cf.Format("undef")


@pytest.mark.parametrize("table", [registry.AS_WEIGHTS, registry.AS_GROUPED_WEIGHTS])
def test_a_data_format_as_weights(table: dict[str, str]) -> None:
    for data, weights in table.items():
        got = cf.Format(data).as_weights(grouped=table is registry.AS_GROUPED_WEIGHTS)
        assert (got.name, got.role) == (weights, "weights")


def test_a_data_format_as_weights_keeps_its_digits() -> None:
    """b is read as o and f as i: the bytes stay as they are, where the table has no alignment."""
    for data in registry.AS_WEIGHTS:
        fmt = cf.Format(data)
        weights = fmt.as_weights()
        if fmt.structure != weights.structure:
            assert max(weights.structure.align) == 8, data
            assert fmt.digits == weights.digits
    assert cf.Format("nChw16c").as_weights().name == "o_is_yx_isv16"
    assert cf.Format("oiyx").as_weights().name == "oiyx"
    assert cf.Format("bfzyx").as_weights(grouped=True).name == "goiyx"
    with pytest.raises(cf.InvalidFormat, match="no tensor of format b_fs_yx_fsv32"):
        cf.Format("b_fs_yx_fsv32").as_weights()


def test_every_name_without_a_measured_order_is_marked() -> None:
    for name in ("f", "brfyx", "bf_lyx_yx", "yxiog", "bs_fs_zyx_bsv4_fsv4", "bs_fs_zyx_bsv4_fsv2",
                 "bfzyx_f16", "bfzyx_b16f16", "o_i_zyx_i16_o16", "i_o_zyx_o16_i16", "nv12",
                 "image_2d_rgba", "os_is_yx_osv16_isv32", "os_is_yx_osv32_isv2",
                 "os_is_yx_osv64_isv2", "is_os_yx_isv16_osv8"):  # fmt: skip
        assert cf.Format(name).note, name
    for name in registry.NOTES:
        assert cf.Format(name).name == name


def test_listing_filters() -> None:
    assert {f.role for f in cf.formats(role="weights")} == {"weights"}
    assert {f.ndims for f in cf.formats(ndims=6)} == {6}
    assert "nChw16c" in [f.name for f in cf.formats(role="data", ndims=4)]


def test_similar_names_are_looked_for_when_the_message_is_read(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """Looking takes a hundred times as long as refusing; who tries names out reads no message."""
    asked: list[str] = []

    def near(name: str, *_: object, **__: object) -> list[str]:
        asked.append(name)
        return ["b_fs_yx_fsv16"]

    monkeypatch.setattr("difflib.get_close_matches", near)
    with pytest.raises(cf.InvalidFormat) as caught:
        cf.Format("b_fs_yx_fs16")
    assert not asked
    assert str(caught.value).endswith(" Did you mean b_fs_yx_fsv16?")
    assert asked == ["b_fs_yx_fs16"]
    again = pickle.loads(pickle.dumps(caught.value))  # noqa: S301  # our own
    assert (type(again), str(again)) == (cf.InvalidFormat, str(caught.value))


def test_the_ranks_that_cldnn_has() -> None:
    data = ["bf", None, "bfyx", "bfzyx", "bfwzyx", "bfuwzyx", "bfvuwzyx", None]
    assert [names.cldnn_letters(n, "data") for n in range(2, 10)] == data
    weights = ["oi", None, "oiyx", "oizyx", None, None]
    assert [names.cldnn_letters(n, "weights") for n in range(2, 8)] == weights
    for n, letters in enumerate(weights, 3):
        grouped = names.cldnn_letters(n, "weights", grouped=True)
        assert grouped == (letters and f"g{letters}")


def test_names_have_a_limit() -> None:
    with pytest.raises(cf.InvalidFormat, match="unknown format"):
        cf.Format("b" * 200)
    with pytest.raises(cf.InvalidFormat, match="a name of 201 characters"):
        cf.Format("b" * 201)
    assert cf.Format("wino_wei_aaOio_1024i1024o").kind == "wino"
    with pytest.raises(cf.InvalidFormat, match="lacks the sizes"):
        cf.Format("wino_wei_aaOio_1024i1025o")


def test_only_the_grammars_that_a_name_may_belong_to_say_why() -> None:
    """No oneDNN tag has an underscore."""
    with pytest.raises(cf.InvalidFormat) as both:
        cf.Format("abq")
    with pytest.raises(cf.InvalidFormat) as one:
        cf.Format("b_fs_yx_qsv16")
    assert ("a oneDNN tag" in str(both.value), "a clDNN name" in str(both.value)) == (True, True)
    assert ("a oneDNN tag" in str(one.value), "a clDNN name" in str(one.value)) == (False, True)


def test_the_grammar_names_what_cldnn_does_not_list() -> None:
    assert cf.Format("aBcd24b").cldnn == "b_fs_yx_fsv24"
