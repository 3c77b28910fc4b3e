"""`clformats.draw`."""

from __future__ import annotations

import xml.etree.ElementTree as ET
from pathlib import Path

import numpy as np
import pytest

import clformats as cf
from clformats import cli

TEXT = "f32:b_fs_yx_fsv16:2x17x5x4"


def test_a_drawing_is_what_the_command_prints(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    drawn = cf.draw(TEXT, boxes=2)
    file = tmp_path / "command.svg"
    assert cli.main(["draw", TEXT, "--boxes", "2", "--svg", str(file)]) == 0
    assert capsys.readouterr().out == f"{drawn}\n\nwrote {file}\n"
    drawn.save(tmp_path / "call.svg")
    assert file.read_text("utf-8") == (tmp_path / "call.svg").read_text("utf-8")
    assert drawn._repr_svg_() == file.read_text("utf-8")
    assert ET.parse(file).getroot().tag.endswith("svg")  # noqa: S314  # our own
    assert repr(drawn) == f"Drawing({TEXT!r})"
    assert str(cf.draw(cf.MemoryDesc.parse(TEXT), boxes=2)) == str(drawn)


def test_values_stand_in_the_cells() -> None:
    desc = cf.MemoryDesc((1, 2, 1, 3), "s32")
    values = cf.pack(np.arange(70, 76).reshape(desc.dims), desc)
    assert all(str(n) in str(cf.draw(desc, values=values)) for n in range(70, 76))


def test_what_cannot_be_drawn_is_refused(tmp_path: Path) -> None:
    with pytest.raises(cf.InvalidDescriptor, match="boxes=0"):
        cf.draw(TEXT, boxes=0)
    with pytest.raises(cf.InvalidArgument, match="what: got 5"):
        cf.draw(5)  # type: ignore[arg-type]
    with pytest.raises(cf.InvalidDescriptor, match="known at execution"):
        cf.draw("f32:bfyx:*x3x5x7")
    with pytest.raises(cf.Error, match="cannot write"):
        cf.draw(TEXT).save(tmp_path / "no" / "such.svg")
