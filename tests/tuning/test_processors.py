"""Records of processors: whole or not there, whatever happens to their file."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from clformats.errors import Error
from clformats.problems.thresholds import STREAMED_LEAST, STREAMED_MOST
from clformats.programs.processor import processor
from clformats.records import add, processors
from clformats.records.processors import ProcessorRecord, find_processor, processors_file
from tests.tuned_support import DEVICE

RECORD = ProcessorRecord(DEVICE, processor(), 9_000_000, 40, "2026-01-02T03:04:05+00:00")


@pytest.fixture
def kept(tmp_path: Path) -> dict[str, Any]:
    """What a record holds, after it was written and read."""
    add(processors_file(DEVICE, tmp_path), RECORD)
    assert find_processor(DEVICE, tmp_path) == RECORD
    return dict(json.loads(processors_file(DEVICE, tmp_path).read_text()))


def test_nothing_is_kept_at_first(tmp_path: Path) -> None:
    assert find_processor(DEVICE, tmp_path / "nowhere") is None
    assert not (tmp_path / "nowhere").exists()


def test_the_processor_has_a_name_and_cores() -> None:
    assert f"{os.cpu_count()} cores" in processor()
    assert len(processor()) > len(f", {os.cpu_count()} cores")


def test_the_newest_record_counts(kept: dict[str, Any], tmp_path: Path) -> None:
    add(processors_file(DEVICE, tmp_path), ProcessorRecord(DEVICE, processor(), 8 << 20, 40, "now"))
    found = find_processor(DEVICE, tmp_path)
    assert found is not None
    assert found.stream_bytes == 8 << 20


@pytest.mark.parametrize(
    "text",
    ["", "{", "[]", "null", "7", '"x"', "\0" * 99, "{}", '{"stream_bytes": 3}', "[" * 5_000_000],
    ids=range(10),
)
def test_a_spoilt_file_is_a_miss(kept: dict[str, Any], tmp_path: Path, text: str) -> None:
    processors_file(DEVICE, tmp_path).write_text(text)
    assert find_processor(DEVICE, tmp_path) is None


def test_a_part_of_a_file_is_a_miss(kept: dict[str, Any], tmp_path: Path) -> None:
    path = processors_file(DEVICE, tmp_path)
    whole = path.read_bytes()
    for length in range(0, len(whole) - 2, 7):
        path.write_bytes(whole[:length])
        assert find_processor(DEVICE, tmp_path) is None, length
    path.unlink()
    path.mkdir()
    assert find_processor(DEVICE, tmp_path) is None


@pytest.mark.parametrize(
    ("name", "value"),
    [("clformats_processor", 0), ("driver", "another"), ("platform", "another"),
     ("name", "another"), ("processor", "another"), ("processor", 7), ("date", 7),
     ("stream_bytes", float("nan")), ("stream_bytes", STREAMED_MOST + 1),
     ("stream_bytes", STREAMED_LEAST - 1), ("stream_bytes", "fast"), ("stream_bytes", 9e6),
     ("copy_gb_s", 0), ("copy_gb_s", -40), ("copy_gb_s", 40.5), ("copy_gb_s", 1 << 40),
     ("copy_gb_s", None)],
)  # fmt: skip
def test_what_is_of_others_or_cannot_be_true_is_a_miss(
    kept: dict[str, Any], tmp_path: Path, name: str, value: object
) -> None:
    path = processors_file(DEVICE, tmp_path)
    path.write_text(json.dumps({**kept, name: value}))
    assert find_processor(DEVICE, tmp_path) is None
    path.write_text(json.dumps(kept))
    assert find_processor(DEVICE, tmp_path) == RECORD


def test_another_processor_does_not_count(
    kept: dict[str, Any], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(processors, "processor", lambda: "another")
    assert find_processor(DEVICE, tmp_path) is None


def test_a_write_that_fails_changes_nothing(
    kept: dict[str, Any], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def full(*_: object) -> None:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(os, "fsync", full)
    with pytest.raises(Error, match="space"):
        add(processors_file(DEVICE, tmp_path), ProcessorRecord(DEVICE, "x", 8 << 20, 40, "now"))
    monkeypatch.undo()
    text = processors_file(DEVICE, tmp_path).read_text()
    assert [json.loads(line) for line in text.splitlines()] == [kept]


def test_readers_see_whole_records_while_others_write(tmp_path: Path) -> None:
    write = (
        "import sys; from pathlib import Path\n"
        "from clformats.records import add\n"
        "from clformats.records.processors import ProcessorRecord, processors_file\n"
        "from clformats.programs.processor import processor\n"
        "from tests.tuned_support import DEVICE\n"
        "record = ProcessorRecord(DEVICE, processor(), int(sys.argv[2]), 40, 'now')\n"
        "for k in range(30): add(processors_file(DEVICE, Path(sys.argv[1])), record)"
    )
    add(processors_file(DEVICE, tmp_path), RECORD)
    root = Path(__file__).resolve().parents[2]
    writers = [
        subprocess.Popen([sys.executable, "-c", write, str(tmp_path), value], cwd=root)
        for value in ("8000000", "20000000")
    ]
    seen = set()
    while any(w.poll() is None for w in writers):
        found = find_processor(DEVICE, tmp_path)
        assert found is not None
        seen.add(found.stream_bytes)
    assert [w.returncode for w in writers] == [0, 0]
    assert seen <= {8_000_000, 9_000_000, 20_000_000}
