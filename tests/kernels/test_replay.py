"""Every kernel is on record: what a change of the planner or of the templates changes is told.

A change of a kernel fails here and names the first problem of each source; if it was meant, write
the record anew by

    UPDATE_REPLAY=1 pytest tests/kernels/test_replay.py

and look at its difference; ``python -m tests.replay diff HEAD`` shows that of the kernels' text.
"""

from __future__ import annotations

import os
import subprocess
import sys

import pytest

from clformats.kernels.source import without_comments
from clformats.schedule import families
from tests.replay import differences, shown
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
    problems_of,
    recorded,
    rows,
    write,
)

KERNEL = Kernel("scheduled", "a;\n", "arguments 1")
OTHER = Kernel("scheduled", "a;\n", "arguments 2")


@pytest.mark.parametrize("device", DEVICES)
def test_kernels_are_as_recorded(device: str) -> None:
    found = rows(kernels(device))
    if os.environ.get("UPDATE_REPLAY"):
        write(device, found)
    changed = changes(recorded(device), found)
    if changed:
        pytest.fail(message(device, changed, len(found)), pytrace=False)


def test_every_problem_is_on_two_devices() -> None:
    names = [p.name for p in problems()]
    assert len({*names}) == len(names) > 1000
    assert sum(row.problems for row in recorded(FIRST)) == len(names)
    shares = {device: {p.name for p in problems_of(device)} for device in OTHERS}
    assert set.union(*shares.values()) == set(names)
    for device, share in shares.items():
        assert sum(row.problems for row in recorded(device)) == len(share)
    assert {file.stem for file in FOLDER.iterdir()} == set(DEVICES)


def test_every_family_is_on_record() -> None:
    for device, traits in DEVICES.items():
        seen = {row.family for row in recorded(device)}
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


def test_a_row_is_a_source() -> None:
    """Each problem is in one row, and whatever changes of it changes that row."""
    made = {"b": KERNEL, "c": OTHER, "a": KERNEL, "d": Kernel("copy", "b;\n", "arguments 1")}
    record = rows(made)
    assert [(row.first, row.family, row.problems) for row in record] == [
        ("a", "scheduled", 3), ("d", "copy", 1),
    ]  # fmt: skip
    moved = {name if name != "c" else "e": kernel for name, kernel in made.items()}
    for other in (made | {"b": OTHER}, made | {"d": OTHER}, moved, made | {"e": KERNEL}):
        assert changes(record, rows(other))
    assert not changes(record, rows(dict(reversed(made.items()))))


def test_a_change_is_told_by_its_name() -> None:
    new = rows({f"problem {k:2}": Kernel("scheduled", f"{k};\n", "l") for k in range(20)})
    assert not message(FIRST, changes(new, new), 20)
    old = [row._replace(launches="") for row in new]
    old[3] = new[3]._replace(family="copy", source="")
    del old[5]
    old.append(new[0]._replace(first="left"))
    changed = changes(old, new)
    assert changed["left"] == "on record only"
    assert changed["problem  3"] == "source, family"
    assert changed["problem  5"] == "not on record"
    assert {changed[f"problem {k:2}"] for k in range(20) if k not in {3, 5}} == {"launches"}
    text = message(FIRST, changed, 20)
    assert "21 of 20 sources" in text
    assert "18 by launches" in text
    assert "problem  0 (launches)" in text


def test_a_row_can_be_shown_by_its_hash() -> None:
    row = recorded("gpu")[0]
    assert shown(row.source, "gpu") == shown(row.first, "gpu")


def test_equal_differences_are_shown_once() -> None:
    old = {name: f"{name}\na\nb\nc\n" for name in "xyz"}
    new = {"x": "x\na\nB\nc\n", "y": "y\na\nB\nc\n", "z": "z\na\nb\n"}
    text = "\n".join(differences(old, new, 1))
    assert text.startswith("  3 changed, in 2 ways\n  2 as x\n")
    assert "-b\n    +B" in text
    assert "1 more ways" in text
    assert "-c" not in text
