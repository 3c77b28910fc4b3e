"""Every kernel is on record: what a change of the planner or of the templates changes is told.

A change of a kernel fails here and names the problems; if it was meant, write the record anew by

    UPDATE_REPLAY=1 pytest tests/kernels/test_replay.py

and look at its difference; ``python -m tests.replay diff HEAD`` shows that of the kernels' text.
"""

from __future__ import annotations

import os
import subprocess
import sys
from collections import Counter

import pytest

from clformats.kernels.source import without_comments
from clformats.schedule import families
from tests.replay import differences
from tests.replay_problems import problems
from tests.replay_support import (
    DEVICES,
    FIRST,
    FOLDER,
    OTHERS,
    Kernel,
    changes,
    kernels,
    message,
    recorded,
    write,
)

KERNEL = Kernel("scheduled", "a;\n", "arguments 1")
OTHER = Kernel("scheduled", "a;\n", "arguments 2")


@pytest.mark.parametrize("device", DEVICES)
def test_kernels_are_as_recorded(device: str) -> None:
    found = {name: made.row for name, made in kernels(device).items()}
    if os.environ.get("UPDATE_REPLAY"):
        write(device, found)
    changed = changes(recorded(device), found)
    if changed:
        pytest.fail(message(device, changed, len(found)), pytrace=False)


def test_every_problem_is_on_two_devices() -> None:
    names = [p.name for p in problems()]
    assert len(names) > 1000
    assert {*recorded(FIRST)} == set(names)
    shares = Counter(name for device in OTHERS for name in recorded(device))
    assert set(shares) == set(names)
    assert {file.stem for file in FOLDER.iterdir()} == set(DEVICES)


def test_every_family_is_on_record() -> None:
    for device, traits in DEVICES.items():
        seen = {row.family for row in recorded(device).values()}
        assert {family.name for family in families(traits)} <= seen


def test_no_opencl_is_needed() -> None:
    code = (
        "import sys, tests.replay_support as s; k = s.kernel(s.problems()[0], s.DEVICES[s.FIRST]);"
        "sys.exit('pyopencl' in sys.modules or '__kernel' not in k.source)"
    )
    subprocess.run([sys.executable, "-c", code], check=True)


def test_comments_do_not_count() -> None:
    source = "// one\nint a; // two\n\n/* three\n   four */ int b = 6 / 2;\n"
    assert without_comments(source) == "int a;\n int b = 6 / 2;\n"


def test_a_change_is_told_by_its_name() -> None:
    new = {f"problem {k}": KERNEL.row for k in range(20)}
    assert not message(FIRST, changes(new, new), 20)
    old = dict.fromkeys(new, OTHER.row) | {"left": KERNEL.row}
    old["problem 3"] = Kernel("copy", "b;\n", "arguments 1").row
    del old["problem 5"]
    changed = changes(old, new)
    assert changed["left"] == "on record only"
    assert changed["problem 3"] == "family, source"
    assert changed["problem 5"] == "not on record"
    assert {changed[f"problem {k}"] for k in range(20) if k not in {3, 5}} == {"launch"}
    text = message(FIRST, changed, 20)
    assert "21 of 20 kernels" in text
    assert "18 by launch" in text
    assert "problem 0 (launch)" in text


def test_equal_differences_are_shown_once() -> None:
    old = {name: f"{name}\na\nb\nc\n" for name in "xyz"}
    new = {"x": "x\na\nB\nc\n", "y": "y\na\nB\nc\n", "z": "z\na\nb\n"}
    text = "\n".join(differences(old, new, 1))
    assert text.startswith("  3 changed, in 2 ways\n  2 as x\n")
    assert "-b\n    +B" in text
    assert "1 more ways" in text
    assert "-c" not in text
