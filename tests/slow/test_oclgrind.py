"""Oclgrind watches a sample of reorders: no access out of bounds, no uninitialised value used."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

import clformats as cf

ROOT = Path(__file__).parent.parent.parent

# (source, destination), small: the simulator runs some thousand times slower than a device.
CASES = [
    ("f32:bfyx:1x3x5x7", "f32:bfyx:1x3x5x7"),
    ("f32:bfyx:1x3x5x7", "f16:bfyx:1x3x5x7"),
    ("f32:bfyx:2x17x5x4", "f32:b_fs_yx_fsv16:2x17x5x4"),
    ("f32:b_fs_yx_fsv16:2x17x5x4", "f32:bfyx:2x17x5x4"),
    ("u8:byxf:1x3x9x7", "f16:b_fs_yx_fsv16:1x3x9x7"),
    ("f16:b_fs_yx_fsv16:1x3x9x7", "u8:byxf:1x3x9x7"),
    ("u8:bfyx:1x18x5x5", "u8:byxf:1x18x5x5"),
    ("f32:byxf:2x19x3x5", "s8:b_fs_yx_fsv4:2x19x3x5"),
    ("s8:oiyx:19x21x3x3", "s8:os_is_yx_isa8_osv8_isv4:19x21x3x3"),
    ("bf16:oiyx:17x15x3x3", "f32:os_is_yx_isv16_osv16:17x15x3x3"),
    ("s32:aBcd24b:1x25x3x3", "s32:aBcd16b:1x25x3x3"),
    ("f32:bfyx:1x5x4x6", "f32:bfyx:1x5x4x6:pad=0+0x3+2x1+1x2+0"),
    ("f32:ab:5x7:strides=9x1", "f32:ab:5x7:strides=1x6"),
    ("s8:oiyx:33x5x3x3", "s8:os_iyx_osv16_rotate_180:33x5x3x3"),
]


def test_the_cases_reach_every_family() -> None:
    plans = [cf.make_plan(cf.MemoryDesc.parse(a), cf.MemoryDesc.parse(b)) for a, b in CASES]
    assert {p.family for p in plans} == {"copy", "rows", "tile", "generic"}


@pytest.mark.timeout(1500)
def test_no_report() -> None:
    if not shutil.which("oclgrind"):
        pytest.skip("oclgrind is not installed: apt-get install oclgrind")
    command = ["oclgrind", "--uninitialized", "--check-api", sys.executable, str(Path(__file__))]
    # Oclgrind reads each kernel as source; a program from a cache would be a foreign binary to it.
    environment = {**os.environ, "PYOPENCL_NO_CACHE": "1", "PYTHONPATH": str(ROOT)}
    done = subprocess.run(
        command, env=environment, capture_output=True, text=True, check=False, cwd=ROOT
    )
    assert done.returncode == 0, done.stdout + done.stderr
    assert f"{len(CASES)} reorders" in done.stdout
    complaints = [
        line
        for line in done.stderr.splitlines()
        if any(word in line for word in ("Invalid", "Uninitialized", "OCLGRIND", "error"))
    ]
    assert not complaints, done.stderr


def _main() -> None:
    """Run the cases on the device that oclgrind simulates, checked against the host."""
    from tests.device_support import check_reorder

    stream = cf.Stream(cf.Engine("oclgrind"))
    for source, target in CASES:
        check_reorder(cf.MemoryDesc.parse(source), cf.MemoryDesc.parse(target), stream)
    print(f"{len(CASES)} reorders")  # noqa: T201  # the test reads it


if __name__ == "__main__":
    _main()
