"""Quantised tensors in words and pictures: bits where the descriptor says they are."""

from __future__ import annotations

import json
import re
from xml.etree import ElementTree as ET

import pytest

import clformats as cf
from clformats import cli
from tests.quantised.test_table import ALL, described

RECORD = """\
q4_0:gguf:8x64
bits from the lowest, left to right; a value by its plane and first row, column

d+q: a record of 18 bytes, 1 x 32 elements
    @0 |d 0                                                            |
    @2 |q 0            |q 16           |q 1            |q 17           |
"""


def test_a_record_is_drawn_as_fields_and_bits() -> None:
    drawn = cf.draw("q4_0:gguf:8x64")
    assert str(drawn).startswith(RECORD)
    assert len(str(drawn).splitlines()) == 13
    texts = [e.text for e in ET.fromstring(drawn.svg).iter() if (e.text or "").strip()]  # noqa: S314  # our own
    assert texts[:2] == ["q4_0:gguf:8x64", "d+q: a record of 18 bytes, 1 x 32 elements"]


@pytest.mark.sampled(12)
@pytest.mark.parametrize(("name", "layout"), ALL)
def test_labels_are_where_offsets_say(name: str, layout: str) -> None:
    """Every label of a line begins at the bit of its value, or inside of it."""
    desc = described((128, 256), name, layout)
    lines = str(cf.draw(desc, boxes=99)).split("\n\n", 1)[1]
    start, checked = 0, 0
    for line in lines.splitlines():
        if title := re.match(r"(\S+): ", line):
            start = next(b.start for b in desc.buffers if b.name == title[1])
        at, _, cells = line.partition(" |")
        bit = 8 * (start + int(at.strip("@ "))) if cells else 0
        for cell in cells[:-1].split("|") if cells else ():
            if found := re.fullmatch(r"([a-z]\w*) ((?:\d+,)?\d+) *", cell):
                index = [*map(int, found[2].split(","))]
                index = [0, *index][-2:]
                value = desc.offset(*index, plane=found[1])
                assert value <= bit < value + desc.planes[found[1]].bits, line
                checked += 1
            bit += (len(cell) + 1) // 4
    assert checked > 2
    assert name.split("_", maxsplit=1)[0] in str(cf.explain(desc))


def test_the_words_tell_fields_planes_and_buffers(capsys: pytest.CaptureFixture[str]) -> None:
    text = str(cf.explain("u4g32:gptq:8x64"))
    assert "s * (q - z), in f32" in text
    assert re.search(r"z +u4 +one for 32 columns +8 x 2 +stored with 15 added, modulo 16", text)
    assert re.search(r"q +4 +2048 +k/8%8:256 n%8:32 k%8:4", text)
    assert cli.main(["explain", "q4_0:gguf:8x64", "--json"]) == 0
    found = json.loads(capsys.readouterr().out)
    assert found["planes"]["q"]["first_bit"] == 16
    assert found["fields"]["d"]["dims"] == [8, 2]


def test_offsets_are_told_both_ways(capsys: pytest.CaptureFixture[str]) -> None:
    assert cli.main(["offset", "q4_0:gguf:8x64", "--coord", "1,2"]) == 0
    assert re.search(r"q +4 +1, 2 +320 +40", capsys.readouterr().out)
    assert cli.main(["offset", "q4_0:gguf:8x64", "--at", "321", "--json"]) == 0
    assert json.loads(capsys.readouterr().out)["planes"][0]["coord"] == [1, 2]
    for words in (["--coord", "9,0"], ["--at", "99999"]):
        assert cli.main(["offset", "q4_0:gguf:8x64", *words]) == 1
        assert "outside" in capsys.readouterr().err


def test_an_option_for_one_element_type_says_so(capsys: pytest.CaptureFixture[str]) -> None:
    assert cli.main(["kernel", "q4_0:gguf:8x64", "--padded", "n"]) == 1
    assert "leave it out" in capsys.readouterr().err
