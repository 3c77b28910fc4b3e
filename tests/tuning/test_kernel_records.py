"""Records of kernels of one's own: kept by device and sizes, found again, merged."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

import clformats as cf
from clformats import cli
from clformats import records as tuned
from clformats.records.kernels import KernelRecord, file_of
from clformats.records.record import InvalidRecord
from clformats.tuning.exchange import merge

HERE: Any = SimpleNamespace(names=("a device", "a platform", "driver 1"))
UPDATED: Any = SimpleNamespace(names=("a device", "a platform", "driver 2"))
SRC = cf.MemoryDesc((2, 64, 56, 56), "f32", "nChw16c")
NEAR = cf.MemoryDesc((2, 65, 63, 57), "f32", "nChw16c")
FAR = cf.MemoryDesc((2, 64, 128, 56), "f32", "nChw16c")


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    monkeypatch.setenv("CLFORMATS_TUNED", str(tmp_path / "tuned"))
    tuned.forget()
    yield tmp_path / "tuned"
    tuned.forget()


@pytest.mark.usefixtures("folder")
def test_exact_sizes_come_before_their_class() -> None:
    book = cf.KernelRecords("conv")
    assert book.find(HERE, [SRC]) is None
    book.add(HERE, [SRC, str(FAR)], {"TILE": 8, "unroll": True}, [2e-4, 1e-4])
    book.add(HERE, [NEAR, FAR], {"TILE": 4}, 3e-4)
    exact, near = book.find(HERE, [SRC, FAR]), book.find(HERE, ["f32:nChw16c:2x70x60x60", FAR])
    assert exact is not None
    assert near is not None
    assert exact.parameters == {"TILE": 8, "unroll": True}
    assert near.parameters == {"TILE": 4}
    assert str(exact) == f"conv {SRC} {FAR}: TILE=8, unroll=True, 150 us"
    assert book.find(HERE, [SRC]) is None
    assert book.find(HERE, [FAR, FAR]) is None
    assert book.find(UPDATED, [SRC, FAR]) is None
    assert cf.KernelRecords("pool").find(HERE, [SRC, FAR]) is None
    book.add(HERE, [SRC, FAR], {"TILE": 16}, 1e-4)
    newest = book.find(HERE, [SRC, FAR])
    assert newest is not None
    assert newest.parameters == {"TILE": 16}


def test_records_of_both_kinds_are_merged(folder: Path, tmp_path: Path) -> None:
    other = tmp_path / "other"
    record = cf.KernelRecords("conv").add(HERE, [SRC], {"TILE": 8}, 1e-4)
    folder.rename(other)
    merged = merge([other])
    assert (merged.added, merged.known) == ((record,), 0)
    assert cf.KernelRecords("conv").find(HERE, [SRC]) == record
    assert merge([file_of(record.device, other)]).known == 1
    assert cli.main(["tune", "merge", str(other)]) == 0


@pytest.mark.usefixtures("folder")
@pytest.mark.parametrize(
    ("tensors", "parameters", "seconds"),
    [
        ([], {}, 1.0),
        ([3], {}, 1.0),
        ([SRC], {"TILE": object()}, 1.0),
        ([SRC], [8], 1.0),
        ([SRC], {"TILE": 8}, []),
        ([SRC], {"TILE": 8}, [-1.0]),
        ([SRC], {"TILE": 8}, ["fast"]),
        (["nonsense"], {"TILE": 8}, 1.0),
    ],
)
def test_what_is_no_record_is_refused(tensors: Any, parameters: Any, seconds: Any) -> None:
    with pytest.raises((cf.InvalidArgument, cf.InvalidDescriptor)):
        cf.KernelRecords("conv").add(HERE, tensors, parameters, seconds)


@pytest.mark.parametrize(
    "change",
    [
        {"clformats_kernel": 2},
        {"tensors": "f32:ab:2x3"},
        {"tensors": [3]},
        {"tensors": []},
        {"tensors": ["f32:nonsense:2"]},
        {"parameters": [1]},
        {"seconds": []},
        {"kernel": 3},
        {"driver": None},
    ],
)
def test_damaged_lines_are_rejected(change: dict[str, Any]) -> None:
    good = KernelRecord(
        tuned.DeviceNames("a", "b", "c"), "k", (str(SRC),), {}, (1.0,), "2026-01-01"
    )
    assert KernelRecord.parse(good.line) == good
    with pytest.raises(InvalidRecord):
        KernelRecord.parse(json.dumps(json.loads(good.line) | change))


def test_a_kernel_has_a_name() -> None:
    for wrong in ("", " ", 3):
        with pytest.raises(cf.InvalidArgument):
            cf.KernelRecords(wrong)  # type: ignore[arg-type]
