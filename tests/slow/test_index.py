"""Index source as compilers make it when they optimise, on every device there is; and oclgrind."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from collections.abc import Iterator
from functools import cache
from pathlib import Path

import pytest

import clformats as cf
from tests.index_support import (
    FORMS,
    Case,
    Runner,
    by_header,
    hurting,
    one_for_each_structure,
    padded_data,
)

ROOT = Path(__file__).parent.parent.parent
FORMATS = one_for_each_structure(cf.formats())
GROUP = 61
DEVICES = ("pocl", "Intel")
REPORTS = ("Invalid", "Uninitialized", "OCLGRIND", "Oclgrind")


@cache
def _engine(name: str) -> cf.Engine:
    try:
        return cf.Engine(name)
    except cf.DeviceError:
        pytest.skip(f"no OpenCL device of {name} here; for Intel's: pip install 'clformats[cpu]'")


@pytest.mark.parametrize("start", range(0, len(FORMATS), GROUP))
@pytest.mark.parametrize("form", FORMS)
@pytest.mark.parametrize("device", DEVICES)
def test_every_format(device: str, form: str, start: int) -> None:
    descs = [hurting(fmt) for fmt in FORMATS[start : start + GROUP]]
    Runner(_engine(device), [FORMS[form](desc, k) for k, desc in enumerate(descs)]).check()


@pytest.mark.parametrize("form", FORMS)
@pytest.mark.parametrize("device", DEVICES)
def test_every_padded_data_format(device: str, form: str) -> None:
    cases = [FORMS[form](desc, k) for k, desc in enumerate(padded_data())]
    Runner(_engine(device), cases).check()


@pytest.mark.parametrize("start", range(0, len(FORMATS), GROUP))
@pytest.mark.parametrize("device", DEVICES)
def test_every_format_of_the_header(device: str, start: int) -> None:
    descs = [hurting(fmt) for fmt in FORMATS[start : start + GROUP]]
    Runner(_engine(device), [by_header(desc, k) for k, desc in enumerate(descs)]).check()


# --- oclgrind -------------------------------------------------------------------------------------


def _sample() -> Iterator[list[Case]]:
    """Small tensors: the simulator runs some thousand times slower than a device."""
    small = [desc for desc in map(hurting, FORMATS[::12]) if desc.nelems < 500]
    for form in FORMS.values():
        yield [form(desc, k) for k, desc in enumerate([*small, *padded_data()[:4]])]


def test_oclgrind_sees_nothing_wrong() -> None:
    if not shutil.which("oclgrind"):
        pytest.skip("oclgrind is not installed: apt-get install oclgrind")
    # Its optimiser makes instructions that it cannot run, so kernels are built without.
    command = ["oclgrind", "--build-options", "-cl-opt-disable", "--uninitialized"]
    environment = {**os.environ, "PYOPENCL_NO_CACHE": "1", "PYTHONPATH": str(ROOT)}
    done = subprocess.run(
        [*command, sys.executable, __file__],
        env=environment,
        capture_output=True,
        text=True,
        check=False,
        cwd=ROOT,
    )
    output = done.stdout + done.stderr
    assert done.returncode == 0, output
    assert "every sample agrees" in done.stdout
    assert not [s for s in output.splitlines() if s.startswith(REPORTS)], output


if __name__ == "__main__":
    count = 0
    for cases in _sample():
        Runner(cf.Engine("oclgrind"), cases, threads=64).check()
        count += len(cases)
    assert count > 60
    print("every sample agrees")  # noqa: T201  # the test reads it
