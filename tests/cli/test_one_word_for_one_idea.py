"""What commands have in common: -o, --force, -, --match, --json, the usage text, completion."""

from __future__ import annotations

import json
import re
import subprocess
import sys
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import clformats as cf
from clformats import cli
from clformats.cli import completion

Capture = pytest.CaptureFixture[str]
SHAPE = ["--shape", "2,17,5,4"]
WRITERS = {
    "draw": ["draw", "nChw16c", *SHAPE],
    "kernel": ["kernel", "nChw16c", *SHAPE],
    "header": ["header", "nchw", "nChw16c"],
}


@pytest.mark.parametrize("words", WRITERS.values(), ids=WRITERS)
def test_files_are_replaced_with_force_only(
    words: list[str], tmp_path: Path, capsys: Capture
) -> None:
    file = tmp_path / "out"
    assert cli.main([*words, "-o", str(file)]) == 0
    assert capsys.readouterr().out.endswith(f"wrote {file}\n")
    text = file.read_text("utf-8")
    file.write_text("mine")
    assert cli.main([*words, "-o", str(file)]) == 1
    assert "--force" in capsys.readouterr().err
    assert file.read_text() == "mine"
    assert cli.main([*words, "--output", str(file), "--force"]) == 0
    assert file.read_text("utf-8") == text
    capsys.readouterr()
    assert cli.main([*words, "-o", "-"]) == 0
    assert capsys.readouterr().out == text


def test_what_is_no_text_does_not_go_to_the_terminal(tmp_path: Path, capsys: Capture) -> None:
    np.save(tmp_path / "w.npy", np.zeros((3, 5, 3, 3), np.float32))
    words = ["pack", str(tmp_path / "w.npy"), "--to", "OIhw16i16o", "-o", "-"]
    assert cli.main(words) == 1
    assert "expected a name that ends in .npy" in capsys.readouterr().err
    words = ["reorder", str(tmp_path / "w.npy"), "--from", "oiyx", "--to", "oiyx", "-o", "w.txt"]
    assert cli.main(words) == 1
    assert ".npy file, name it so" in capsys.readouterr().err


# --- for programs ---------------------------------------------------------------------------------


def printed(capsys: Capture, *words: str) -> Any:
    assert cli.main([*words, "--json"]) == 0
    return json.loads(capsys.readouterr().out)


def test_json_of_lists_and_offsets(capsys: Capture) -> None:
    found = printed(capsys, "list", "--match", "^b_fs_yx_fsv16$")
    row = {"name": "b_fs_yx_fsv16", "dims": list("bfyx"), "role": "data", "other": "aBcd16b"}
    assert found[0] == row
    desc = cf.MemoryDesc((2, 17, 5, 4), "f32", "b_fs_yx_fsv16")
    words = ["offset", str(desc)]
    forth = printed(capsys, *words, "--coord", "1,16,4,3")
    assert forth == {"desc": str(desc), "coord": [1, 16, 4, 3], "offset": 1264, "bit": 40448}
    assert printed(capsys, *words, "--at", "1264") == forth
    assert printed(capsys, *words, "--at", "1265")["coord"] is None
    assert cli.main([*words, "--at", "999999", "--json"]) == 1


def test_json_of_packing(tmp_path: Path, capsys: Capture) -> None:
    file = tmp_path / "w.npy"
    np.save(file, np.zeros((3, 5, 3, 3), np.float32))
    target = tmp_path / "packed.npy"
    found = printed(capsys, "pack", str(file), "--to", "OIhw16i16o", "-o", str(target))
    assert found["output"] == str(target)
    assert list(found["packed"].values()) == ["f32:OIhw16i16o:3x5x3x3"]
    back = printed(capsys, "unpack", str(target), "-o", str(tmp_path / "back.npy"))
    assert list(back["unpacked"].values()) == ["f32:oihw:3x5x3x3"]


def test_fractions_that_are_rounded_are_told(tmp_path: Path, capsys: Capture) -> None:
    file = tmp_path / "w.npy"
    np.save(file, np.full((3, 5, 3, 3), 0.4, np.float32))
    words = ["pack", str(file), "--to", "OIhw16i16o", "-o", str(tmp_path / "packed.npy")]
    assert cli.main([*words, "--dtype", "s8"]) == 0
    assert "rounded to whole numbers without a scale" in capsys.readouterr().out
    assert cli.main([*words, "--dtype", "f16", "--force"]) == 0
    assert "rounded" not in capsys.readouterr().out


def test_elements_that_saturate_are_counted(tmp_path: Path, capsys: Capture) -> None:
    file = tmp_path / "w.npy"
    np.save(file, np.array([[1, 300, -5], [70000, 7, np.nan]], np.float32))
    words = ["pack", str(file), "--to", "ba", "-o", str(tmp_path / "packed.npy"), "--force"]
    for dtype, count in (("u8", 3), ("f16", 1), ("s8", 2), ("bf16", 0), ("f32", 0)):
        assert cli.main([*words, "--dtype", dtype]) == 0
        told = capsys.readouterr().out
        assert (f" {count} of " in told and f"became {dtype}" in told) == (count > 0)


# --- words ----------------------------------------------------------------------------------------


def test_match_is_a_regular_expression(capsys: Capture) -> None:
    assert cli.main(["list", "--match", "^BYX[Ff]$"]) == 0
    assert capsys.readouterr().out.splitlines()[1].split()[0] == "byxf"
    assert cli.main(["list", "--match", "("]) == 1
    assert "is no regular expression" in capsys.readouterr().err


@pytest.mark.parametrize("shape", ["2,17,5,4", "(2, 17, 5, 4)", "[2,17,5,4]", "(2,17,5,4,)"])
def test_shapes_as_python_prints_them(shape: str, capsys: Capture) -> None:
    assert cli.main(["offset", "nChw16c", "--shape", shape, "--coord", f"({shape[-9:]}"]) == 1
    capsys.readouterr()
    assert cli.main(["offset", "nChw16c", "--shape", shape, "--at", "1264"]) == 0
    assert "n=1, c=16, h=4, w=3" in capsys.readouterr().out


@pytest.mark.parametrize("command", ["list", "draw", "tune"])
def test_an_unknown_option_shows_the_commands_own_usage(command: str, capsys: Capture) -> None:
    with pytest.raises(SystemExit) as done:
        cli.main([command, *(["bfyx"] if command != "list" else []), "--frobnicate"])
    assert done.value.code == 2
    said = capsys.readouterr().err
    assert said.startswith(f"usage: clformats {command}")
    assert "unrecognized arguments: --frobnicate" in said


def test_drawings_fit_the_terminal(monkeypatch: pytest.MonkeyPatch, capsys: Capture) -> None:
    widths = []
    for columns in (60, 80, 200):
        monkeypatch.setenv("COLUMNS", str(columns))
        assert cli.main(["draw", "bfyx", "--shape", "2,3,224,224"]) == 0
        widths.append(max(map(len, capsys.readouterr().out.splitlines()[3:])))
        assert widths[-1] <= columns
    assert widths[0] < widths[-1] > 80


def test_the_count_of_boxes_stands_beside_them(capsys: Capture) -> None:
    assert cli.main(["draw", "nChw16c", "--shape", "9,18,1,2", "--boxes", "2"]) == 0
    lines = capsys.readouterr().out.splitlines()
    told = next(line for line in lines if "more boxes" in line)
    assert "@" not in told


def test_a_terminal_without_boxes_gets_ascii() -> None:
    code = "from clformats import cli; cli.main(['draw', 'nChw16c', '--shape', '1,18,1,2'])"
    done = subprocess.run(
        [sys.executable, "-c", code],
        env={"PYTHONIOENCODING": "ascii", "PYTHONPATH": str(Path(cf.__file__).parents[1])},
        capture_output=True, text=True, check=True,
    )  # fmt: skip
    assert "?" not in done.stdout
    assert re.search(r"\+-+\+", done.stdout)
    assert "|" in done.stdout


# --- completion -----------------------------------------------------------------------------------


def test_completion_needs_shtab(monkeypatch: pytest.MonkeyPatch, capsys: Capture) -> None:
    monkeypatch.setitem(sys.modules, "shtab", None)
    assert cli.main(["completion", "bash"]) == 1
    assert "pip install shtab" in capsys.readouterr().err


@pytest.mark.parametrize("shell", completion.SHELLS)
def test_the_script_knows_every_command_and_format(shell: str, capsys: Capture) -> None:
    pytest.importorskip("shtab", reason="needs shtab: pip install shtab")
    assert cli.main(["completion", shell]) == 0
    script = capsys.readouterr().out
    assert all(command in script for command in cli.COMMANDS)
    assert all(fmt.name in script for fmt in cf.formats() if ":" not in fmt.name)


@pytest.mark.parametrize(
    ("line", "offered"),
    [
        ("clformats exp", {"explain"}),
        ("clformats explain b_fs_yx_fsv1", {"b_fs_yx_fsv16"}),
        ("clformats draw --sh", {"--shape"}),
        ("clformats convert nchw --to ei", {"einops"}),
    ],
)
def test_bash_completes(line: str, offered: set[str], tmp_path: Path) -> None:
    pytest.importorskip("shtab", reason="needs shtab: pip install shtab")
    script = tmp_path / "clformats.bash"
    script.write_text(completion.script("bash"))
    words = line.split()
    asked = (
        f"source {script}; COMP_WORDS=({' '.join(words)}); COMP_CWORD={len(words) - 1}; "
        f"COMP_LINE='{line}'; _shtab_clformats; printf '%s\\n' \"${{COMPREPLY[@]}}\""
    )
    done = subprocess.run(["/bin/bash", "-c", asked], capture_output=True, text=True, check=True)
    assert offered <= set(done.stdout.split())
