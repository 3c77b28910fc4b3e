"""Names of engines, QNN's lists and TVM's textures."""

from __future__ import annotations

import pytest

import clformats as cf
from clformats.formats.engines import EngineRow, rows
from clformats.interop.notations import guess, parse, render
from tests.engine_layouts_support import LAYOUTS

NAMED = [row for row in rows().values() if not row.digits.startswith("!")]
REFUSED = [row for row in rows().values() if row.digits.startswith("!")]


@pytest.mark.parametrize("row", NAMED, ids=lambda row: f"{row.engine} {row.name}")
def test_a_name_means_its_digits_and_prints(row: EngineRow) -> None:
    text = f"{row.engine} {row.name}"
    fmt = parse(text)
    assert guess(text) == "engines"
    assert "".join(fmt.dims) == row.dims
    assert parse(render(fmt, "engines")) == fmt == cf.Format(row.digits, dims=row.dims)
    assert [row.dims, row.digits] in [known[2:] for known in LAYOUTS]  # as it was measured
    assert row.version


@pytest.mark.parametrize("row", REFUSED, ids=lambda row: f"{row.engine} {row.name}")
def test_what_is_no_list_of_digits_is_refused_with_the_reason(row: EngineRow) -> None:
    with pytest.raises(cf.Unsupported, match="NO_FORMAT") as caught:
        parse(f"{row.engine} {row.name}")
    assert row.digits.lstrip("! ") in str(caught.value)


def test_a_name_without_its_engine_is_told_what_it_is_there() -> None:
    with pytest.raises(cf.InvalidFormat, match="NC4HW4 is Cnhw4c in MNN"):
        cf.Format("NC4HW4")
    with pytest.raises(cf.InvalidFormat, match=r"is Ohw[|]i[|]4o in MNN, Ohw[|]i[|]4o in Mace"):
        cf.Format("conv2d_filter")


def test_unknown_names_are_told_with_those_of_the_engine() -> None:
    with pytest.raises(cf.InvalidFormat, match="one of MNN NC4HW4, MNN NC16HW16"):
        parse("MNN NC5HW5", "engines")
    with pytest.raises(cf.InvalidFormat, match="a name of MNN, LiteRT"):
        parse("Foo NC4HW4", "engines")
    with pytest.raises(cf.Unsupported, match="NO_NOTATION"):
        render("a/3 b a%3", "engines")


@pytest.mark.parametrize(
    ("said", "digits"),
    [
        ("R4CroutonLayout<4, 0,0, 1,0, 2,0, 3,0, 1,8, 2,8, 3,32>", "aBCD8b8c32d"),
        ("ChunkedMemoryLayout<4, 0,0, 1,0, 2,0, 3,0, 1,8, 2,2, 3,32, 2,2>", "aBCD8b2c32d2c"),
        ("ChunkedMemoryLayout<2, 0,0, 0,4, 1,0>", "a/4 a%4 b"),
    ],
)
def test_lists_of_qnn(said: str, digits: str) -> None:
    fmt = parse(said)
    assert fmt == cf.Format(digits)
    printed = render(fmt, "qnn")
    assert printed.partition("<")[2] == said.partition("<")[2]
    assert parse(printed) == fmt


@pytest.mark.parametrize(
    "said",
    ["ChunkedMemoryLayout<2, 0,0, 2,0>", "ChunkedMemoryLayout<2, 0>", "ChunkedMemoryLayout<>",
     "ChunkedMemoryLayout<2, 0,0>"],
)  # fmt: skip
def test_wrong_lists_of_qnn(said: str) -> None:
    with pytest.raises(cf.InvalidFormat):
        parse(said)


@pytest.mark.parametrize("digits", ["a%4 a/4", "b%16 a b/16", "a/4%4 b a/16 a%4", "a/16 a%4 a/4%4"])
def test_what_does_not_nest_is_no_list_of_qnn(digits: str) -> None:
    with pytest.raises(cf.Unsupported, match="not in their order"):
        render(cf.Format(digits), "qnn")


@pytest.mark.parametrize(
    ("said", "digits"),
    [
        ("NCHW4c scope=global.texture", "nC|h|w|4c"),
        ("OIHW4o scope=global.texture-weight", "|O|ihw|4o"),
        ("NHWC4c scope=global.texture-nhwc", "n|h|wC|4c"),
        ("NCHW4c axis_separators=[2, 4]", "nC|hw|4c"),
        ("NCHW4c axis_separators=[4]", "nChw|4c"),
    ],
)
def test_textures_of_tvm(said: str, digits: str) -> None:
    fmt = parse(said)
    assert guess(said) == "tvm"
    assert fmt == cf.Format(digits)
    assert parse(render(fmt, "tvm")) == fmt


@pytest.mark.parametrize(
    "said",
    ["NCHW4c scope=local", "NCHW4c axis_separators=[4, 2]", "NCHW4c axis_separators=[9]",
     "NCHW4c axis_separators=2", "NCHW16c axis_separators=[2, 4]"],
)  # fmt: skip
def test_wrong_textures_of_tvm(said: str) -> None:
    with pytest.raises(cf.InvalidFormat):
        parse(said)
