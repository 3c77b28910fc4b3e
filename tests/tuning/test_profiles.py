"""The file of a device's profile: whole or not there, whatever happens to it."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import threading
import time
from pathlib import Path
from typing import Any

import pytest

from clformats.programs.processor import processor
from clformats.records import profiles
from clformats.records.profiles import Kept, alone, profile_path, read_profile, write_profile
from clformats.schedule.profile import RANGES, Profile
from tests.tuned_support import DEVICE

NUMBERS = {name: float(getattr(Profile(), name)) for name in RANGES}


@pytest.fixture
def kept(tmp_path: Path) -> dict[str, Any]:
    """What a file holds, after it was written and read."""
    write_profile(DEVICE, tmp_path, NUMBERS)
    found = read_profile(DEVICE, tmp_path)
    assert found is not None
    assert found.numbers == NUMBERS
    return dict(json.loads(profile_path(DEVICE, tmp_path).read_text()))


def test_nothing_is_kept_at_first(tmp_path: Path) -> None:
    assert read_profile(DEVICE, tmp_path / "nowhere") is None
    assert not (tmp_path / "nowhere").exists()


def test_the_processor_has_a_name_and_cores() -> None:
    assert f"{os.cpu_count()} cores" in processor()
    assert len(processor()) > len(f", {os.cpu_count()} cores")


@pytest.mark.parametrize(
    "text",
    ["", "{", "[]", "null", "7", '"x"', "\0" * 99, "{}", '{"numbers": 3}', "[" * 10_000_000],
    ids=range(10),
)
def test_a_spoilt_file_is_a_miss(kept: dict[str, Any], tmp_path: Path, text: str) -> None:
    profile_path(DEVICE, tmp_path).write_text(text)
    assert read_profile(DEVICE, tmp_path) is None


def test_a_part_of_a_file_is_a_miss(kept: dict[str, Any], tmp_path: Path) -> None:
    path = profile_path(DEVICE, tmp_path)
    whole = path.read_bytes()
    for length in range(0, len(whole) - 2, 7):
        path.write_bytes(whole[:length])
        assert read_profile(DEVICE, tmp_path) is None, length
    path.unlink()
    path.mkdir()
    assert read_profile(DEVICE, tmp_path) is None


@pytest.mark.parametrize(
    ("name", "value"),
    [("clformats_profile", 0), ("driver", "another"), ("platform", "another"), ("name", "another"),
     ("processor", "another"), ("date", 7), ("numbers", {}), ("numbers", {"unknown": 1.0}),
     ("numbers", {"stream_bytes": float("nan")}), ("numbers", {"stream_bytes": 1e12}),
     ("numbers", {"stream_bytes": "fast"}), ("numbers", {"stream_bytes": -0.1})],
)  # fmt: skip
def test_what_is_of_others_or_cannot_be_true_is_a_miss(
    kept: dict[str, Any], tmp_path: Path, name: str, value: object
) -> None:
    profile_path(DEVICE, tmp_path).write_text(json.dumps({**kept, name: value}))
    assert read_profile(DEVICE, tmp_path) is None
    profile_path(DEVICE, tmp_path).write_text(json.dumps(kept))
    assert read_profile(DEVICE, tmp_path) == Kept(NUMBERS, kept["date"])


def test_another_processor_has_another_file(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    here = profile_path(DEVICE, tmp_path)
    write_profile(DEVICE, tmp_path, NUMBERS)
    monkeypatch.setattr(profiles, "processor", lambda: "another")
    assert profile_path(DEVICE, tmp_path) != here
    assert read_profile(DEVICE, tmp_path) is None


def test_a_write_that_fails_changes_nothing(
    kept: dict[str, Any], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def full(*_: object) -> str:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(json, "dumps", full)
    with pytest.raises(OSError, match="space"):
        write_profile(DEVICE, tmp_path, {})
    monkeypatch.undo()
    assert read_profile(DEVICE, tmp_path) == Kept(NUMBERS, kept["date"])
    assert [*tmp_path.iterdir()] == [profile_path(DEVICE, tmp_path)]


def test_one_measures_at_a_time(tmp_path: Path) -> None:
    """The second one waits, and finds what the first one has kept."""
    order: list[str] = []

    def second() -> None:
        with alone(tmp_path):
            order.append("second")

    with alone(tmp_path):
        thread = threading.Thread(target=second)
        thread.start()
        time.sleep(0.05)
        order.append("first")
    thread.join()
    assert order == ["first", "second"]


def test_who_does_not_end_is_not_waited_for(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(profiles, "LOCK_SECONDS", 0.05)
    with alone(tmp_path), alone(tmp_path):
        pass


def test_readers_see_a_whole_file_while_others_write(tmp_path: Path) -> None:
    write = (
        "import sys; from pathlib import Path\n"
        "from clformats.records.profiles import write_profile\n"
        "from tests.tuned_support import DEVICE\n"
        "numbers = {'stream_bytes': float(sys.argv[2])}\n"
        "for k in range(100): write_profile(DEVICE, Path(sys.argv[1]), numbers)"
    )
    write_profile(DEVICE, tmp_path, {"stream_bytes": 1e7})
    root = Path(__file__).resolve().parents[2]
    writers = [
        subprocess.Popen([sys.executable, "-c", write, str(tmp_path), value], cwd=root)
        for value in ("9e6", "2e7")
    ]
    seen = set()
    while any(w.poll() is None for w in writers):
        found = read_profile(DEVICE, tmp_path)
        assert found is not None
        seen.add(found.numbers["stream_bytes"])
    assert [w.returncode for w in writers] == [0, 0]
    assert seen <= {9e6, 1e7, 2e7}
