"""Oclgrind watches a sample of reorders: no access out of bounds, no uninitialised value used.

Two defects of Oclgrind 21.10 are worked around. Its optimiser makes instructions that it cannot run
(freeze), so kernels are built without. And its tracking of uninitialised values is wrong about
shuffles of two vectors (a plain `__builtin_shufflevector(x, y, 1, 17, ...)` of loaded vectors is
reported) and crashes where a vector is built from shorter ones; so that run takes the kernels'
portable form, and leaves out the cases that crash it.
"""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from collections.abc import Iterable
from pathlib import Path

import pytest

import clformats as cf

ROOT = Path(__file__).parent.parent.parent
REPORTS = ("Invalid", "Uninitialized", "OCLGRIND", "Oclgrind")

PORTABLE = "-DCLFORMATS_PORTABLE"  # the kernels without compiler built-ins, as on any OpenCL C 1.2

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


# Those whose kernels build no vector from shorter ones.
WHOLE_VECTORS = [0, 1, 2, 3, 4, 5, 6, 7, 10, 13]


def test_the_cases_reach_every_family() -> None:
    plans = [cf.make_plan(cf.MemoryDesc.parse(a), cf.MemoryDesc.parse(b)) for a, b in CASES]
    assert {p.family for p in plans} == {"copy", "rows", "tile", "generic"}
    assert {plans[k].family for k in WHOLE_VECTORS} == {"copy", "rows", "tile", "generic"}


@pytest.mark.parametrize("options", ["", PORTABLE])
def test_nothing_out_of_bounds(options: str) -> None:
    _watch(range(len(CASES)), options)


def test_nothing_uninitialised() -> None:
    _watch(WHOLE_VECTORS, PORTABLE, "--uninitialized")


def _watch(cases: Iterable[int], options: str, *flags: str) -> None:
    """Run the cases under oclgrind in a process of their own; fail on any report."""
    if not shutil.which("oclgrind"):
        pytest.skip("oclgrind is not installed: apt-get install oclgrind")
    numbers = [str(k) for k in cases]
    build = f"-cl-opt-disable {options}".strip()
    command = ["oclgrind", "--build-options", build, *flags, sys.executable, __file__, *numbers]
    # Oclgrind reads each kernel as source; a program from a cache would be a foreign binary to it.
    environment = {**os.environ, "PYOPENCL_NO_CACHE": "1", "PYTHONPATH": str(ROOT)}
    done = subprocess.run(
        command, env=environment, capture_output=True, text=True, check=False, cwd=ROOT
    )
    output = done.stdout + done.stderr
    assert done.returncode == 0, output
    assert f"{len(numbers)} reorders" in done.stdout
    assert not [s for s in output.splitlines() if s.startswith(REPORTS)], output


def _main(numbers: list[str]) -> None:
    """Run cases on the device that oclgrind simulates, checked against the host."""
    from tests.device_support import check_reorder

    stream = cf.Stream(cf.Engine("oclgrind"))
    for number in numbers:
        source, target = CASES[int(number)]
        check_reorder(cf.MemoryDesc.parse(source), cf.MemoryDesc.parse(target), stream)
    print(f"{len(numbers)} reorders")  # noqa: T201  # the test reads it


if __name__ == "__main__":
    _main(sys.argv[1:])
