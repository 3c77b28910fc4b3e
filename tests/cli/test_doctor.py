"""`clformats doctor` on this machine, and on machines where much is missing."""

from __future__ import annotations

import argparse
import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

import clformats as cf
from clformats import opencl
from clformats.cli import doctor
from clformats.doctor import findings, icd, probe

ROOT = Path(__file__).resolve().parents[2]
START = (
    "import argparse, sys;"
    "from clformats.cli import doctor;"
    "parser = argparse.ArgumentParser();"
    "doctor.add_parser(parser.add_subparsers());"
    "args = parser.parse_args(['doctor', *sys.argv[1:]]);"
    "sys.exit(args.run(args))"
)

# A device as probe.py describes it, for the texts.
DEVICE: dict[str, Any] = {
    "platform_index": 0,
    "device_index": 1,
    "platform": "Some Platform",
    "device": "Some Device",
    "type": "GPU",
    "version": "OpenCL 3.0",
    "driver": "1.2",
    "fp16": True,
    "fp64": False,
    "subgroups": True,
    "compute_units": 8,
    "global_memory": 3 << 30,
    "largest_buffer": 1 << 29,
    "local_memory": 48 << 10,
}


def start(*arguments: str, **variables: str) -> subprocess.CompletedProcess[str]:
    """Run the doctor as a user does, in a process of its own."""
    return subprocess.run(
        [sys.executable, "-c", START, *arguments],
        cwd=ROOT,
        env={**os.environ, **variables},
        capture_output=True,
        text=True,
        check=False,
    )


def run(capsys: pytest.CaptureFixture[str], *, as_json: bool = False) -> tuple[int, str]:
    status = doctor.run(argparse.Namespace(json=as_json))
    return status, capsys.readouterr().out


# ---- this machine ------------------------------------------------------------------------------


def test_it_reports_this_machine() -> None:
    done = start("--json")
    report = json.loads(done.stdout)
    working = [device for device in report["devices"] if "seconds" in device]
    assert report["usable"] == bool(working)
    assert done.returncode == (0 if working else 1)
    assert {finding["level"] for finding in report["findings"]} <= {"ok", "note", "problem"}
    assert report["versions"]["python"].startswith("3.")
    assert done.stderr == ""


def test_a_cache_folder_that_cannot_be_written_is_told(tmp_path: Path) -> None:
    """And the devices work: a driver without its cache may show none."""
    (tmp_path / "file").write_text("no folder")
    usual = json.loads(start("--json").stdout)
    done = start("--json", XDG_CACHE_HOME=str(tmp_path / "file" / "cache"))
    report = json.loads(done.stdout)
    told = [f for f in report["findings"] if "XDG_CACHE_HOME" in f["remedy"]]
    assert [f["level"] for f in told] == ["note"]
    assert str(tmp_path / "file" / "cache") in told[0]["text"]
    assert report["usable"] == usual["usable"]


def test_a_device_that_works_is_described_in_words(capsys: pytest.CaptureFixture[str]) -> None:
    status, text = run(capsys)
    if status:
        pytest.skip("no OpenCL device works here; `clformats doctor` says why")
    assert "a kernel built and ran in" in text
    assert "clformats is ready" in text.splitlines()[-1]


def test_the_probing_program_answers_with_its_exit_status() -> None:
    command = [sys.executable, "-m", "clformats.doctor.probe"]
    done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=False)
    assert ("works" in done.stdout) == (done.returncode == 0)


# ---- machines where something is missing -------------------------------------------------------


def test_without_platforms_it_says_what_to_install(tmp_path: Path) -> None:
    done = start(OCL_ICD_VENDORS=str(tmp_path))
    assert done.returncode == 1
    assert "OCL_ICD_VENDORS" in done.stdout
    assert "pocl" in done.stdout
    assert "Traceback" not in done.stdout + done.stderr


def test_a_vendor_file_without_library_is_named(tmp_path: Path) -> None:
    (tmp_path / "gone.icd").write_text("/gone/libgone.so\n")
    done = start(OCL_ICD_VENDORS=str(tmp_path))
    assert done.returncode == 1
    assert "/gone/libgone.so" in done.stdout


def test_without_pyopencl_it_still_answers(tmp_path: Path) -> None:
    (tmp_path / "pyopencl.py").write_text("raise ImportError('broken on purpose')\n")
    done = start(PYTHONPATH=str(tmp_path))
    assert done.returncode == 1
    assert "broken on purpose" in done.stdout
    assert "Traceback" not in done.stdout + done.stderr


def test_a_strange_machine_does_not_make_it_faint(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    def fail() -> list[findings.Finding]:
        raise PermissionError(13, "not for you")

    monkeypatch.setattr(doctor, "findings", fail)
    monkeypatch.setattr(doctor, "probe_devices", lambda: ([], "PLATFORM_NOT_FOUND_KHR"))
    status, text = run(capsys)
    assert status == 1
    assert "not for you" in text


# ---- what it says of devices -------------------------------------------------------------------


def test_one_broken_device_beside_a_good_one(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    broken = {**DEVICE, "device": "Old", "error": "RuntimeError: unknown target CPU 'generic'"}
    devices = [{**DEVICE, "seconds": 0.5}, broken]
    monkeypatch.setattr(doctor, "findings", list)
    monkeypatch.setattr(doctor, "probe_devices", lambda: (devices, ""))
    status, text = run(capsys)
    assert status == 0
    assert "PROBLEM  Old (Some Platform)" in text
    assert "uninstall pocl-binary-distribution" in text
    assert "fp16 yes, fp64 no, sub-groups yes, 8 compute units" in text
    assert "memory 3.0 GiB, largest buffer 512.0 MiB, local 48 KiB" in text
    assert text.splitlines()[-1].startswith("1 of 2 devices work")


@pytest.mark.parametrize(
    ("reason", "told"),
    [
        ("ModuleNotFoundError: No module named 'pyopencl'", "pip install pyopencl"),
        ("the process crashed with signal 11: no message", "signal 11"),
        ("", "no device"),
    ],
)
def test_no_device_listed_says_why(reason: str, told: str) -> None:
    (finding,) = doctor.nothing_findings([], reason)
    assert finding.level == "problem"
    assert told in finding.text + finding.remedy


def test_a_missing_platform_is_said_once() -> None:
    assert doctor.nothing_findings([], "LogicError: PLATFORM_NOT_FOUND_KHR") == []


def test_a_crash_of_the_probing_process_is_an_answer(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    code = "import os; os.kill(os.getpid(), 11)"
    monkeypatch.setattr(sys, "executable", shim(tmp_path, code))
    assert "signal 11" in probe.probe_devices()[1]


def shim(folder: Path, code: str) -> str:
    """The path of a program that runs this code whatever its arguments."""
    path = folder / "python"
    path.write_text(f"#!{sys.executable}\n{code}\n")
    path.chmod(0o755)
    return str(path)


# ---- who comes first -----------------------------------------------------------------------------

LIST = "import pyopencl as cl; [p.get_devices() for p in cl.get_platforms()]"
OURS = "import clformats as cf; cf.Engine('Intel')"


@pytest.mark.parametrize(
    ("lines", "said"),
    [(["import pyopencl", OURS], ""), (["import clformats", "import pyopencl", OURS], ""),
     (["import clformats as cf; cf.devices()", LIST, OURS], ""),
     (["import clformats", LIST, OURS], "intel-opencl-rt, installed by pip, cannot be found")],
)  # fmt: skip
def test_either_may_be_imported_first(lines: list[str], said: str) -> None:
    """But once platforms are listed without ours, the loader looks no more: that is told."""
    if icd.bundled_library("intel-opencl-rt") is None or icd.user_setting(os.environ):
        pytest.skip("needs python -m pip install intel-opencl-rt, and no variable against it")
    own = {k: v for k, v in os.environ.items() if k not in icd.VENDOR_VARIABLES}
    done = subprocess.run(
        [sys.executable, "-c", "\n".join(lines)],
        cwd=ROOT, env=own, capture_output=True, text=True, check=False,
    )  # fmt: skip
    assert (done.returncode == 0) is not bool(said), done.stderr
    assert said in done.stderr


def test_what_was_listed_too_early_is_told(monkeypatch: pytest.MonkeyPatch) -> None:
    late = icd.Exposed("intel-opencl-rt", Path("/nowhere/libintelocl.so"), "late", "")
    monkeypatch.setattr(opencl, "expose_bundled_runtimes", lambda: [late])
    with pytest.raises(cf.DeviceError, match=r"intel-opencl-rt.*clformats.devices\(\) first"):
        cf.Engine("no such device")
    monkeypatch.setattr(opencl, "_is_loaded", lambda library: True)
    with pytest.raises(cf.DeviceError, match="clformats doctor"):
        cf.Engine("no such device")
