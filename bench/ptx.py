"""The kernels on an NVIDIA GPU where there is CUDA and no OpenCL: PTX made by clang, run by CuPy.

    python -m bench gpu --ptx DIR          makes them where clang and libclc are; needs no GPU
    python -m bench gpu --run-ptx DIR      checks and times them; needs numpy and CuPy, no OpenCL

What runs is the source that OpenCL would get, compiled by another compiler than the driver's. Each
result is compared with the host's to the byte. Times are those of CUDA's events over buffers used
in turn, beside cudaMemcpy and, where it is installed, torch.
"""

from __future__ import annotations

import json
import os
import platform
import re
import shutil
import subprocess
from collections.abc import Callable, Iterable
from dataclasses import asdict, dataclass, replace
from datetime import datetime, timezone
from importlib import import_module
from pathlib import Path
from typing import Any

import numpy as np

import clformats as cf
from clformats.kernels import render
from clformats.schedule import Traits
from clformats.timing import Settings

from . import rotation, table
from .arena import Data, NotComparableError, WrongResultError
from .cases import Case
from .peers import cuda
from .report import AGAIN, COMMAND, OURS, Record, Report

GPU = Traits(is_cpu=False, compute_units=132, local_bytes=48 << 10)
"""What kernels are planned for: an H100's."""
CLANG = next((c for c in ("clang-15", "clang-14", "clang-16", "clang") if shutil.which(c)), "")
LIBCLC = Path(os.environ.get("CLFORMATS_LIBCLC", "/usr/lib/clc")) / "nvptx64--nvidiacl.bc"
HEADER = Path(__file__).with_name("nvptx.h")
ARCH, ISA = "sm_80", "70"
"""The oldest devices that the PTX is for, Ampere, and its version, 7.0, of CUDA 11."""
FLAGS = [
    "-target", "nvptx64-nvidia-cuda", f"-march={ARCH}", "-Xclang", "-target-feature", "-Xclang",
    f"+ptx{ISA}", "-x", "cl", "-cl-std=CL1.2", "-Xclang", "-finclude-default-header",
    "-Wno-everything", "-O3", "-S", "-include", str(HEADER), "-Xclang", "-mlink-builtin-bitcode",
]  # fmt: skip
INDEX = "index.json"


@dataclass(frozen=True)
class Entry:
    """A kernel in a folder: the ``case``, its PTX, and what it is launched with."""

    case: Case
    file: str
    family: str
    plan: str
    arguments: tuple[int, ...]
    wide: bool
    groups: int
    local_size: int

    def packed(self, src: Any, dst: Any) -> tuple[Any, ...]:
        """The arguments of a launch: two arrays of the device, and numbers as wide as offsets."""
        number = np.int64 if self.wide else np.int32
        return src, dst, *map(number, self.arguments)


# --- where clang is -------------------------------------------------------------------------------


def missing() -> str:
    """What `compiled` lacks on this machine; empty if nothing."""
    if not CLANG:
        return "no clang: apt-get install clang-15"
    if not LIBCLC.exists():
        return f"no {LIBCLC}: apt-get install libclc-15, or set CLFORMATS_LIBCLC to its folder"
    return ""


def compiled(source: str, folder: Path) -> str:
    """The PTX of a kernel. Raises `RuntimeError` with what the compiler says."""
    file, out = folder / "kernel.cl", folder / "kernel.ptx"
    file.write_text(source, encoding="utf-8")
    command = [CLANG, *FLAGS, "-Xclang", str(LIBCLC), "-o", str(out), str(file)]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    file.unlink()
    if done.returncode:
        raise RuntimeError(f"{CLANG} does not compile a kernel: {done.stderr[-2000:]}")
    ptx = out.read_text(encoding="utf-8")
    out.unlink()
    return with_group(ptx, int(re.findall(r"reqd_work_group_size\((\d+)", source)[0]))


def with_group(ptx: str, items: int) -> str:
    """The PTX with the size of its groups, which clang 15 leaves out: registers depend on it."""
    if ".reqntid" in ptx:
        return ptx
    return re.sub(r"^\)$", f")\n.reqntid {items}, 1, 1", ptx, count=1, flags=re.MULTILINE)


def write(folder: Path, cases: Iterable[Case]) -> list[Entry]:
    """Make a folder with the PTX of each case, and its index. Raises `RuntimeError`."""
    if lacking := missing():
        raise RuntimeError(lacking)
    folder.mkdir(parents=True, exist_ok=True)
    entries = []
    for case in cases:
        plan = cf.make_plan(*case.descriptors(), GPU)
        made = render(plan)
        if made is None or not re.search("reqd_work_group_size", made.source):
            continue  # nothing to move, or by a kernel that leaves the size of groups to OpenCL
        file = f"{case.name}.ptx"
        (folder / file).write_text(compiled(made.source, folder), encoding="utf-8")
        numbers = tuple(int(n) for n in made.arguments)
        size = made.groups, made.local_size
        entries.append(Entry(case, file, plan.family, str(plan), numbers, made.wide, *size))
    text = json.dumps([asdict(entry) for entry in entries], indent=1)
    (folder / INDEX).write_text(text + "\n", encoding="utf-8")
    return entries


def read(folder: Path) -> list[Entry]:
    """The entries of a folder. Raises `ValueError` where it is none."""
    try:
        found = json.loads((folder / INDEX).read_text(encoding="utf-8"))
        return [_entry(one) for one in found]
    except (OSError, ValueError, KeyError, TypeError) as error:
        raise ValueError(
            f"{folder} is no folder of kernels: make one by python -m bench gpu --ptx DIR ({error})"
        ) from error


def _entry(found: dict[str, Any]) -> Entry:
    case = found.pop("case")
    dims, numbers = tuple(case.pop("dims")), tuple(found.pop("arguments"))
    return Entry(**found, case=Case(**case, dims=dims), arguments=numbers)


# --- where the GPU is -----------------------------------------------------------------------------


def run(folder: Path, settings: Settings, wanted: Callable[[str], Any]) -> Report:
    """Check and time the kernels of a folder whose name is ``wanted``, printing each.

    Raises `ValueError`, and `ModuleNotFoundError` where there is no CuPy.
    """
    entries, cupy = [e for e in read(folder) if wanted(e.case.name)], import_module("cupy")
    now = datetime.now(timezone.utc).isoformat(timespec="seconds")
    report = Report(now, facts(cupy), asdict(settings), [])
    print("\n".join([*table.machine(report), "", table.heading()]), flush=True)
    for entry in entries:
        report.records.append(record(entry, folder, cupy, settings))
        print(table.row(report.records[-1]), flush=True)
    print("\n".join(table.footer(report)))
    return report


def facts(cupy: Any) -> dict[str, str]:
    """What the run ran on."""
    device = properties(cupy)
    return {
        "device": device["name"].decode(),
        "platform": "CUDA, PTX made by clang from the kernels' OpenCL C",
        "driver": f"CUDA {cupy.cuda.runtime.driverGetVersion()}",
        "units": f"{device['multiProcessorCount']}, {device['l2CacheSize'] >> 10} KiB cache",
        "load": ", ".join(f"{load:.2f}" for load in os.getloadavg()),
        "clformats": cf.__version__,
        "python": platform.python_version(),
        "numpy": np.__version__,
        "cupy": cupy.__version__,
    }


def properties(cupy: Any) -> dict[str, Any]:
    """What CUDA says of the device."""
    found: dict[str, Any] = cupy.cuda.runtime.getDeviceProperties(cupy.cuda.Device().id)
    return found


def record(entry: Entry, folder: Path, cupy: Any, settings: Settings) -> Record:
    """One case: checked, then raced. What goes wrong stands in the record's ``error``."""
    case = entry.case
    src, dst = case.descriptors()
    data = Data(case, int(properties(cupy)["totalGlobalMem"]))
    blank = Record(
        case.name, case.group, str(src), str(dst), src.nbytes + dst.nbytes, data.copied,
        entry.family, entry.plan,
    )  # fmt: skip
    kernel = cupy.RawModule(path=str(folder / entry.file)).get_function("reorder")
    pairs = [
        tuple(cupy.asarray(side) for side in (data.read, data.written))
        for _ in range(rotation.pairs_of(data))
    ]
    calls = [_call(kernel, entry, pair) for pair in pairs]
    try:
        check(data, cupy, calls[0], pairs[0][1])
    except WrongResultError as error:
        return replace(blank, error=str(error))
    event = lambda: cuda.CupyEvent(cupy)  # noqa: E731  # two of them
    ours = cuda.timed(calls, event, 1e-3)
    copies = cuda.timed([_copy(cupy, pair, data.copied) for pair in pairs], event, 1e-3)
    batches, notes = {OURS: ours, AGAIN: ours, COMMAND: copies}, {}
    try:
        batches["torch"] = cuda.torch_batch(data)
    except (NotComparableError, WrongResultError) as reason:
        notes["torch"] = str(reason)
    times = rotation.race(batches, settings, np.random.default_rng())
    return replace(blank, times=times, notes=notes)


def check(data: Data, cupy: Any, call: Callable[[], object], written: Any) -> None:
    """Run over a destination full of rubbish, and compare every byte; see `Data.compare`."""
    written.fill(0xA5)
    call()
    data.compare(cupy.asnumpy(written).view(np.uint8))


def _call(kernel: Any, entry: Entry, pair: tuple[Any, ...]) -> Callable[[], object]:
    given = entry.packed(*pair)
    return lambda: kernel((entry.groups,), (entry.local_size,), given)


def _copy(cupy: Any, pair: tuple[Any, ...], nbytes: int) -> Callable[[], object]:
    """Enqueue CUDA's copy from device to device, of which 3 is the number."""
    (src, dst), api = (array.data.ptr for array in pair), cupy.cuda
    return lambda: api.runtime.memcpyAsync(dst, src, nbytes, 3, api.get_current_stream().ptr)
