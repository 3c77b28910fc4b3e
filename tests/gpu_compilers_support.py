"""The makers' own compilers, or their upstream, on kernels for GPUs: no GPU is needed.

clang makes PTX for NVIDIA, which ptxas assembles, and code for AMD; ocloc is Intel's compiler. Each
tool may be missing: `lacking` names the package.
"""

from __future__ import annotations

import os
import re
import shutil
import site
import subprocess
import sys
from dataclasses import dataclass
from pathlib import Path

import clformats as cf
from bench import ptx
from bench.ptx import CLANG, LIBCLC
from clformats.kernels import render
from clformats.schedule import Traits
from clformats.schedule.local import GroupPlan

H100 = ptx.GPU
INTEL = Traits(is_cpu=False, compute_units=512, local_bytes=64 << 10)
AMD = LIBCLC.parent / "amdgcn--amdhsa.bc"
OCLOC = shutil.which("ocloc") or ""
FLAGS = ["-x", "cl", "-cl-std=CL1.2", "-Xclang", "-finclude-default-header", "-Wno-everything",
         "-O3", "-S"]  # fmt: skip
AMDGCN = ["-target", "amdgcn-amd-amdhsa", "-mcpu=gfx90a", "-nogpulib"]
SASS = re.compile(r"^\s+/\*[0-9a-f]{4,5}\*/\s+(?:@!?U?P\w+\s+)?([A-Z][A-Z0-9_.]+)", re.MULTILINE)
"""An instruction in what nvdisasm prints."""


def wheel_program(name: str) -> str:
    """A program on the path, or of NVIDIA's wheels in this environment."""
    folders = [*site.getsitepackages(), str(Path(sys.prefix) / "lib")]
    inside = (path for f in folders for path in Path(f).glob(f"nvidia/*/bin/{name}"))
    return shutil.which(name) or str(next(inside, ""))


PTXAS, NVDISASM = wheel_program("ptxas"), wheel_program("nvdisasm")


def lacking(*tools: str) -> str:
    """Which package is missing for some of the tools; empty if none is."""
    reasons = {
        "clang": "" if CLANG else "no clang: apt-get install clang-15",
        "libclc": "" if AMD.exists() and LIBCLC.exists() else (
            f"no libclc in {LIBCLC.parent}: apt-get install libclc-15, or set CLFORMATS_LIBCLC"
        ),
        "ptxas": "" if PTXAS else "no ptxas: pip install nvidia-cuda-nvcc",
        "nvdisasm": "" if NVDISASM else "no nvdisasm: pip install nvidia-cuda-nvdisasm",
        "ocloc": "" if OCLOC else "no ocloc: apt-get install intel-opencl-icd",
        "cc": "" if shutil.which("cc") else "no C library: apt-get install gcc libc6-dev",
    }  # fmt: skip
    return next(filter(None, map(reasons.__getitem__, tools)), "")


@dataclass(frozen=True)
class Made:
    """The assembly of a kernel, and how many elements a work-item, or Intel's thread, moves.

    ``said``: what the compiler printed.
    """

    text: str
    elements: float
    said: str = ""

    def lines(self, pattern: str) -> list[str]:
        """Those that have an instruction like this."""
        return [line for line in self.text.splitlines() if re.search(pattern, line)]


def planned(src: str, dst: str, traits: Traits, family: str | None = None) -> cf.Plan:
    return cf.make_plan(cf.MemoryDesc.parse(src), cf.MemoryDesc.parse(dst), traits, family)


def elements(plan: cf.Plan) -> float:
    """How many elements a work-item moves."""
    body = plan.body
    assert isinstance(body, GroupPlan)
    return body.layout.elements("dst") / body.schedule.group


def source_of(plan: cf.Plan) -> str:
    made = render(plan)
    assert made is not None
    return made.source


def ran(*command: str, **environment: str) -> str:
    """What a program printed. Fails with that where it fails."""
    done = subprocess.run(
        command, capture_output=True, text=True, check=False, env={**os.environ, **environment}
    )
    said = done.stdout + done.stderr
    assert done.returncode == 0, f"{' '.join(command)}\n{said[-3000:]}"
    return said


def amd(plan: cf.Plan, folder: Path) -> Made:
    """Assembly for gfx90a."""
    file, out = folder / "kernel.cl", folder / "kernel.s"
    file.write_text(source_of(plan))
    linked = ["-Xclang", "-mlink-builtin-bitcode", "-Xclang", str(AMD)]
    ran(CLANG, *AMDGCN, *FLAGS, *linked, "-o", str(out), str(file))
    return Made(out.read_text(), elements(plan))


def nvidia(plan: cf.Plan, folder: Path) -> Made:
    """PTX."""
    return Made(ptx.compiled(source_of(plan), folder), elements(plan))


def sm_90(plan: cf.Plan, folder: Path) -> Made:
    """Machine code of an H100, by NVIDIA's assembler."""
    return assembled(source_of(plan), elements(plan), folder)


def assembled(source: str, count: float, folder: Path) -> Made:
    """The same of a kernel whose work-items move so many elements."""
    text, cubin = folder / "kernel.ptx", str(folder / "kernel.cubin")
    text.write_text(ptx.compiled(source, folder))
    said = ran(PTXAS, "-v", "-arch=sm_90", "-o", cubin, str(text))
    return Made(ran(NVDISASM, "-c", cubin), count, said)


def intel(plan: cf.Plan, folder: Path, device: str = "dg2") -> Made:
    """Assembly of Intel's compiler; elements are those of a hardware thread, of some work-items."""
    file = folder / "kernel.cl"
    file.write_text(source_of(plan))
    dumps = {"IGC_ShaderDumpEnable": "1", "IGC_DumpToCustomDir": f"{folder}/"}
    said = ran(
        OCLOC, "compile", "-file", str(file), "-device", device, "-options", "-cl-std=CL1.2",
        "-out_dir", str(folder), "-output", "kernel", **dumps,
    )  # fmt: skip
    (asm,) = folder.glob("*_entry_0001.asm")
    (lanes,) = re.findall(r"simd(\d+)", asm.name)
    return Made(asm.read_text(), elements(plan) * int(lanes), said)


def intel_instructions(made: Made) -> list[str]:
    """The instructions in the assembly of Intel's compiler, without those that only wait."""
    found = []
    for line in made.text.splitlines():
        word = re.match(r"(?:\(W\))?\s*(?:\([^)]*\))?\s*([a-z][a-z0-9_.]*)\s", line.strip() + " ")
        if word and not line.startswith("//") and not line.strip().endswith(":"):
            found.append(word[1])
    return [i for i in found if not i.startswith(("sync", "join", "nop", "illegal"))]
