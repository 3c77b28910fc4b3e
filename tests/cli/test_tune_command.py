"""What `clformats tune` does with its words, without searching."""

from __future__ import annotations

from pathlib import Path

import pytest

from clformats import cli, records
from clformats.cli import tune
from tests.tuned_support import DEVICE, record_of

Capture = pytest.CaptureFixture[str]
OTHER = records.DeviceNames("gpu", "Other", "1")


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("CLFORMATS_TUNED", str(tmp_path))
    for device in (DEVICE, OTHER):
        records.add(records.path_of(device, tmp_path), record_of(device=device))
    return tmp_path


def kept(folder: Path) -> set[str]:
    return {r.device.name for file in folder.glob("*.jsonl") for r in records.read(file)[0]}


@pytest.mark.parametrize(
    ("options", "left"),
    [([], set()), (["--device", "OTHER"], {DEVICE.name}), (["--device", "nowhere"], None)],
)
def test_clear_deletes_the_records_of_a_device(
    options: list[str], left: set[str] | None, folder: Path, capsys: Capture
) -> None:
    before = kept(folder)
    assert cli.main(["tune", "clear", *options]) == 0
    assert kept(folder) == (before if left is None else left)
    gone = len(before) - len(kept(folder))
    assert capsys.readouterr().out == f"{gone} records deleted in {folder}\n"


def test_from_and_to_are_the_two_words(monkeypatch: pytest.MonkeyPatch) -> None:
    asked: list[object] = []

    def search(args: object) -> int:
        asked.append(tune.pairs_of(args))  # type: ignore[arg-type]
        return 0

    monkeypatch.setattr(tune, "search", search)
    assert cli.main(["tune", "bfyx", "byxf", "--shape", "2,3,5,7"]) == 0
    assert cli.main(["tune", "--from", "bfyx", "--to", "byxf", "--shape", "2,3,5,7"]) == 0
    assert asked[0] == asked[1]


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (["--from", "bfyx", "--shape", "2,3,5,7"], "expected two formats, SRC and DST"),
        (["bfyx", "--to", "byxf", "--shape", "2,3,5,7"], "expected two formats"),
        (["show", "--from", "bfyx"], "does not take --from"),
        (["clear", "--shape", "2,3,5,7"], "does not take --shape; its options are: --device"),
    ],
)
def test_words_that_do_not_fit(words: list[str], said: str, folder: Path, capsys: Capture) -> None:
    assert cli.main(["tune", *words]) == 1
    assert said in capsys.readouterr().err
    assert len(kept(folder)) == 2
