"""What `clformats calibrate` and `clformats doctor` say of a processor's numbers."""

from __future__ import annotations

import json
from functools import cache
from pathlib import Path

import pytest

import clformats as cf
from clformats import cli
from clformats.cli import calibrate, doctor
from clformats.doctor import probe
from clformats.problems.traits import Traits
from clformats.programs.processor import processor
from clformats.records import DeviceNames, add
from clformats.records.processors import ProcessorRecord, find_processor, processors_file
from clformats.records.record import now
from clformats.reorders import calibration, profiles
from tests.tuned_support import DEVICE

Capture = pytest.CaptureFixture[str]
MB = 1 << 20


@pytest.fixture
def where(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("CLFORMATS_TUNED", str(tmp_path))
    monkeypatch.setattr(profiles, "_kept", cache(find_processor))
    monkeypatch.setattr(profiles, "_tried", set())
    return tmp_path


def test_every_number_is_shown_with_what_it_means() -> None:
    kept = ProcessorRecord(DEVICE, "x", 18 * MB, 40, "2026-01-02T03:04:05")
    lines = [*calibrate.lines(kept.added_to(Traits()), kept)]
    assert lines[0] == "profile: measured on 2026-01-02"
    assert [line.split()[0] for line in lines[1:]] == [*calibrate.MEANINGS]
    assert "18 MiB  measured  from how many bytes moved on streaming stores gain" in lines[1]
    assert "40      measured  gigabytes a second that a copy reads and writes" in lines[2]
    assert next(line for line in lines if "compute_units" in line).split()[1:3] == ["2", "device"]


def test_without_a_measurement_all_are_defaults() -> None:
    lines = [*calibrate.lines(Traits(), None)]
    assert lines[0] == "profile: not measured yet"
    assert not any(" measured " in line for line in lines[1:])


def test_show_measures_nothing(engine: cf.Engine, where: Path, capsys: Capture) -> None:
    name = engine.device.name.strip()
    assert cli.main(["calibrate", "--show", "--device", name]) == 0
    assert "not measured yet" in capsys.readouterr().out
    assert not [*where.iterdir()]
    assert cli.main(["calibrate", "--show", "--json", "--device", name]) == 0
    found = json.loads(capsys.readouterr().out)
    assert (found["measured"], found["date"], found["trouble"]) == ([], None, "")
    assert found["profile"].keys() == calibrate.MEANINGS.keys()


def test_a_busy_machine_is_told(
    engine: cf.Engine, where: Path, monkeypatch: pytest.MonkeyPatch, capsys: Capture,
    plans_for_cpus: None,
) -> None:  # fmt: skip
    monkeypatch.setattr(calibration, "busy", lambda: "the machine is busy")
    assert cli.main(["calibrate", "--device", engine.device.name.strip()]) == 1
    assert capsys.readouterr().out.endswith("not measured: the machine is busy\n")


def test_what_is_kept_is_shown_everywhere(
    engine: cf.Engine, where: Path, capsys: Capture, plans_for_cpus: None
) -> None:
    device = DeviceNames(*engine.names)
    add(processors_file(device, where), ProcessorRecord(device, processor(), 33 * MB, 40, now()))
    assert cli.main(["calibrate", "--show", "--device", engine.device.name.strip()]) == 0
    row = next(x for x in capsys.readouterr().out.splitlines() if "stream_bytes" in x)
    assert row.split()[1:4] == ["33", "MiB", "measured"]
    assert cli.main(["calibrate", "--show", "--json", "--device", engine.names[0]]) == 0
    found = json.loads(capsys.readouterr().out)
    assert found["measured"] == ["stream_bytes", "copy_gb_s"]
    assert (found["profile"]["stream_bytes"], found["profile"]["copy_gb_s"]) == (33 * MB, 40)
    devices = [d for d in probe._ask("list")["devices"] if d["device"] == engine.names[0]]
    told = [*doctor.profile_lines({**devices[0], "seconds": 0.1}, verbose=True)]
    assert row in told
    assert told[0].startswith("profile: measured on 20")
    assert [*doctor.profile_lines({**devices[0], "seconds": 0.1}, verbose=False)] == told[:1]


def test_the_doctor_says_how_to_measure(
    engine: cf.Engine, where: Path, plans_for_cpus: None
) -> None:
    device = probe._ask("list")["devices"][0]
    for verbose in (False, True):
        told = [*doctor.profile_lines({**device, "type": "CPU", "seconds": 0.1}, verbose=verbose)]
        assert told[0] == "profile: not measured yet"
        assert "clformats calibrate" in told[-1]
        assert (len(told) > 2) == verbose
    assert not [*doctor.profile_lines({**device, "type": "GPU", "seconds": 0.1}, verbose=True)]
    assert not [*doctor.profile_lines({**device, "type": "CPU", "error": "none"}, verbose=True)]
