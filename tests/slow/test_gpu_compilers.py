"""What makers' compilers make of the kernels for GPUs, without a GPU: clang for AMD and NVIDIA.

They build and spill nothing, all loads of a work-item are on their way before the first is waited
for, both sides are moved by 16 bytes where they are aligned, and the instructions for each element
stay below a bound, so that every change of these kernels shows.
"""

from __future__ import annotations

import os
import re
import shutil
import subprocess
from dataclasses import dataclass
from math import prod
from pathlib import Path

import pytest

import clformats as cf
from clformats.kernels import launch
from clformats.schedule import Traits
from clformats.schedule.local import LocalPlan

H100 = Traits(is_cpu=False, compute_units=132, cache_bytes=50 << 20, local_bytes=48 << 10)
CLANG = next((c for c in ("clang-15", "clang-14", "clang-16", "clang") if shutil.which(c)), "")
LIBCLC = Path(os.environ.get("CLFORMATS_LIBCLC", "/usr/lib/clc"))
AMD, NVIDIA = LIBCLC / "amdgcn--amdhsa.bc", LIBCLC / "nvptx64--nvidiacl.bc"
FLAGS = ["-x", "cl", "-cl-std=CL1.2", "-Xclang", "-finclude-default-header", "-Wno-everything",
         "-O3", "-S"]  # fmt: skip
AMDGCN = ["-target", "amdgcn-amd-amdhsa", "-mcpu=gfx90a", "-nogpulib"]
PTX = ["-target", "nvptx64-nvidia-cuda", "-march=sm_80", "-Xclang", "-target-feature", "-Xclang",
       "+ptx70"]  # fmt: skip

pytestmark = [
    pytest.mark.slow,
    pytest.mark.skipif(not CLANG, reason="no clang: apt-get install clang-15"),
    pytest.mark.skipif(
        not (AMD.exists() and NVIDIA.exists()),
        reason=f"no libclc in {LIBCLC}: apt-get install libclc-15, or set CLFORMATS_LIBCLC",
    ),
]


@dataclass(frozen=True)
class Made:
    """The assembly of a kernel, and how many elements a work-item moves."""

    text: str
    elements: float
    plan: LocalPlan

    def lines(self, pattern: str) -> list[str]:
        """Those that have an instruction like this."""
        return [line for line in self.text.splitlines() if re.search(pattern, line)]


def made(src: str, dst: str, folder: Path, target: list[str], library: Path) -> Made:
    plan = cf.make_plan(cf.MemoryDesc.parse(src), cf.MemoryDesc.parse(dst), H100)
    body, launched = plan.body, launch(plan)
    assert isinstance(body, LocalPlan)
    assert launched
    (folder / "kernel.cl").write_text(launched.source)
    out = folder / "kernel.s"
    linked = ["-Xclang", "-mlink-builtin-bitcode", "-Xclang", str(library)]
    command = [CLANG, *target, *FLAGS, *linked, "-o", str(out), str(folder / "kernel.cl")]
    subprocess.run(command, check=True, capture_output=True, text=True)
    return Made(out.read_text(), prod(body.box) / body.group, body)


# (source, destination, the most instructions for an element on gfx90a, scalar ones counted): a
# tenth above what clang 15 makes. Kernels that moved 4 bytes a work-item had some 50, 21 and 16
# for transpositions of f32, f16 and u8 (on sm_90).
CASES = {
    "f32 bfyx byxf": ("f32:bfyx:32x256x56x56", "f32:byxf:32x256x56x56", 14.0),
    "f16 bfyx byxf": ("f16:bfyx:32x256x56x56", "f16:byxf:32x256x56x56", 9.0),
    "u8 bfyx byxf": ("u8:bfyx:64x256x56x56", "u8:byxf:64x256x56x56", 6.2),
    "f16 bfyx fsv16": ("f16:bfyx:32x256x56x56", "f16:b_fs_yx_fsv16:32x256x56x56", 7.2),
    "f16 fsv16 bfyx": ("f16:b_fs_yx_fsv16:32x256x56x56", "f16:bfyx:32x256x56x56", 6.8),
    "f16 3x3 weights": ("f16:oiyx:1024x1024x3x3", "f16:os_is_yx_isv16_osv16:1024x1024x3x3", 18.0),
    "s8 3x3 weights": ("s8:oiyx:1024x1024x3x3", "s8:os_is_yx_osv16_isv4:1024x1024x3x3", 10.0),
    "f32 byxf fsv16": ("f32:byxf:32x256x56x56", "f32:b_fs_yx_fsv16:32x256x56x56", 10.5),
    "f32 copy": ("f32:bfyx:32x256x56x56", "f32:bfyx:32x256x56x56", 7.0),
}


@pytest.mark.parametrize("name", CASES)
def test_amd(name: str, tmp_path: Path) -> None:
    src, dst, most = CASES[name]
    kernel = made(src, dst, tmp_path, AMDGCN, AMD)
    assert not [line for line in kernel.lines(r"vgpr_spill_count") if not line.endswith(" 0")]
    assert not kernel.lines(r"scratch_(load|store)|buffer_(load|store)")
    found = kernel.lines(r"global_load|vmcnt\(0\)")
    last = max(k for k, line in enumerate(found) if "global_load" in line)
    assert not [line for line in found[:last] if "vmcnt" in line], "a load waits for another"
    for access in kernel.lines("global_(load|store)"):
        assert "dwordx4" in access, access
    instructions = kernel.lines(r"^\s+(s|v|ds|global|flat)_\w+")
    assert len(instructions) / kernel.elements <= most, len(instructions) / kernel.elements


@pytest.mark.parametrize("name", CASES)
def test_nvidia(name: str, tmp_path: Path) -> None:
    src, dst, _ = CASES[name]
    kernel = made(src, dst, tmp_path, PTX, NVIDIA)
    assert not kernel.lines(r"__local_depot|\.local\b")
    for access in kernel.lines(r"(ld|st)\.global"):
        assert re.search(r"\.v4\.(u32|b32|f32)", access), access


def test_odd_sizes_wait_once_for_each_chunk(tmp_path: Path) -> None:
    """Single elements, eight at once."""
    kernel = made("u8:bfyx:48x250x55x57", "u8:b_fs_yx_fsv32:48x250x55x57", tmp_path, AMDGCN, AMD)
    found = kernel.lines(r"global_load|vmcnt\(0\)")
    loads = [k for k, line in enumerate(found) if "global_load" in line]
    assert loads[:8] == list(range(8)), "each chunk of eight waits together"
