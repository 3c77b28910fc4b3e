"""Lists of digits with bars, quotes and spaces on the command line."""

from __future__ import annotations

import json
import re
import shlex
import subprocess
import sys
from pathlib import Path

import pytest

import clformats as cf
from clformats.cli import main

SAID = ["nh|Cw|4c", "n h | c/4 w | c%4", "k/8 n k%8 dims kn", "(k b)/4 (k b)%4 dims bk"]


@pytest.mark.parametrize("said", SAID)
def test_commands_take_digits(
    said: str, capsys: pytest.CaptureFixture[str], tmp_path: Path
) -> None:
    fmt = cf.Format(said)
    shape = ",".join(map(str, (2, 5, 3, 4)[: fmt.ndims]))
    picture = tmp_path / f"{said.replace('/', 'd')}.svg"
    coord = ",".join("1" for _ in fmt.dims)
    for words in (
        ["explain", said, "--shape", shape], ["convert", said],
        ["draw", said, "--shape", shape, "-o", str(picture)],
        ["offset", said, "--shape", shape, "--coord", coord], ["header", said],
    ):  # fmt: skip
        assert main(words) == 0, words
    assert picture.read_text().startswith("<svg")
    capsys.readouterr()
    assert main(["explain", said, "--json"]) == 0
    assert cf.Format(json.loads(capsys.readouterr().out)["name"]) == fmt


def test_a_shell_hands_digits_on_and_takes_names_from_them(tmp_path: Path) -> None:
    """Quoted as the pages show them; a picture may be named as its format is."""
    words = ["-m", "clformats", "draw", "nh|Cw|4c", "--shape", "2,5,3,4", "-o", "nh|Cw|4c.svg"]
    line = shlex.join([sys.executable, *words])
    subprocess.run(["sh", "-c", line], check=True, cwd=tmp_path, capture_output=True)  # noqa: S607  # the shell of whoever runs it
    assert (tmp_path / "nh|Cw|4c.svg").read_text().startswith("<svg")


def test_a_header_has_names_of_c(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["header", *SAID, "nchw"]) == 0
    text = capsys.readouterr().out
    names = re.findall(r"^static inline uint (cf_\w+)\(", text, re.MULTILINE)
    assert "cf_nh_Cw_4c" in names
    assert len(set(names)) == len(names) >= len(SAID)


@pytest.mark.device
def test_explain_tells_whether_an_image_fits(
    capsys: pytest.CaptureFixture[str], engine: cf.Engine
) -> None:
    name = engine.device.platform.name
    words = ["explain", "nh|Cw|4c", "--device", name, "--shape"]
    assert main([*words, "1,3,8,8"]) == 0
    assert "\nfits " in capsys.readouterr().out
    assert main([*words, "1,3,1000000,8"]) == 0
    assert "does not fit: " in capsys.readouterr().out
    assert main(["explain", "nchw", "--device", name]) == 1
