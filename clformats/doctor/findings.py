"""The state of OpenCL on this machine, in words, with remedies.

Reads files and loads libraries, in processes of their own since a broken one may crash; makes no
OpenCL call. `clformats doctor` adds what the devices themselves answer (`probe.py`).
"""

from __future__ import annotations

import ctypes.util
import os
import shutil
import subprocess
import sys
from dataclasses import dataclass
from importlib import metadata, util
from pathlib import Path
from typing import TYPE_CHECKING, Literal

from .caches import REMEDY, provide_cache_folder
from .icd import (
    BUNDLED,
    SWITCH,
    Exposed,
    bundled_library,
    expose_bundled_runtimes,
    icd_files,
    icd_target,
    seen_files,
    user_setting,
)

if TYPE_CHECKING:
    from collections.abc import Mapping

Level = Literal["ok", "note", "problem"]

APT_LINE = "sudo apt-get update && sudo apt-get install pocl-opencl-icd"
PIP_LINE = "python -m pip install intel-opencl-rt intel-cmplr-lib-rt"
_NVIDIA = "libnvidia-opencl.so.1"
_LOAD = "import ctypes, sys; ctypes.CDLL(sys.argv[1])"


@dataclass(frozen=True)
class Finding:
    """One thing seen on this machine, and the command or step that fixes it, if it is wrong."""

    level: Level
    text: str
    remedy: str = ""


def findings(environ: Mapping[str, str] | None = None) -> list[Finding]:
    """Everything worth saying about OpenCL on this machine, loader first.

    Exposes pip-installed runtimes on the way, as the library does. Takes about a tenth of a second
    for each platform library.
    """
    trouble = provide_cache_folder() if environ is None else ""
    exposed = expose_bundled_runtimes() if environ is None else []
    environ = os.environ if environ is None else environ
    files = [*seen_files(environ), *wheel_files()]
    errors = {file: load_error(icd_target(file)) for file in files}
    return [
        loader_finding(),
        *setting_findings(environ),
        *([Finding("note", trouble, REMEDY)] if trouble else []),
        *[vendor_finding(file, icd_target(file), error) for file, error in errors.items()],
        *[exposed_finding(entry) for entry in exposed],
        *pocl_wheel_findings(),
        *nvidia_findings(files),
        *([] if any(error == "" for error in errors.values()) else [no_platform_finding(environ)]),
    ]


# ---- the loader --------------------------------------------------------------------------------


def pyopencl_folder() -> Path | None:
    """Where pyopencl is installed, without importing it; None where it is not."""
    spec = util.find_spec("pyopencl")
    return Path(spec.origin).parent if spec is not None and spec.origin else None


def wheel_files() -> list[Path]:
    """The `.icd` files beside pyopencl's own loader, which it reads whatever the variables say."""
    folder = pyopencl_folder()
    return icd_files(folder / ".libs") if folder else []


def loader_finding() -> Finding:
    """Which OpenCL loader pyopencl uses."""
    folder = pyopencl_folder()
    if folder is None:
        return Finding("problem", "pyopencl is not installed", "python -m pip install pyopencl")
    bundled = sorted((folder / ".libs").glob("libOpenCL*"))
    if bundled:
        return Finding("ok", f"OpenCL loader: {bundled[0]} (from pyopencl's wheel)")
    system = ctypes.util.find_library("OpenCL")
    if system:
        return Finding("ok", f"OpenCL loader: {system} (the system's)")
    return Finding(
        "problem",
        "pyopencl brings no OpenCL loader and the system has none (libOpenCL.so.1)",
        "sudo apt-get install ocl-icd-libopencl1",
    )


def setting_findings(environ: Mapping[str, str]) -> list[Finding]:
    """The user's own choice of platforms, which may hide some."""
    chosen = user_setting(environ)
    found = []
    if chosen is not None:
        name, value = chosen
        text = f"{name}={value}: only the platforms named there are visible"
        found.append(Finding("note", text, f"unset {name}    (to see all platforms)"))
    if environ.get(SWITCH) == "0":
        text = f"{SWITCH}=0: OpenCL runtimes that pip installed stay hidden"
        found.append(Finding("note", text, f"unset {SWITCH}"))
    return found


# ---- the platforms -----------------------------------------------------------------------------


def load_error(library: str) -> str:
    """Why a platform's library cannot be loaded, "" if it can; tried in another process."""
    if not library:
        return "the file is empty or cannot be read"
    try:
        done = subprocess.run(
            [sys.executable, "-c", _LOAD, library],
            capture_output=True,
            text=True,
            timeout=60,
            check=False,
            errors="replace",
        )
    except subprocess.TimeoutExpired:
        return "loading it takes more than 60 s"
    if done.returncode < 0:
        return f"loading it ends the process with signal {-done.returncode}"
    return done.stderr.strip().splitlines()[-1].removeprefix("OSError: ") if done.returncode else ""


def vendor_finding(file: Path, target: str, error: str) -> Finding:
    """An `.icd` file, and whether the library ``target`` that it names can be loaded."""
    if not error:
        return Finding("ok", f"platform file {file} names {target}, which loads")
    text = f"platform file {file} names {target or 'nothing'}: {error}"
    return Finding("problem", text, _vendor_remedy(target, error))


def _vendor_remedy(target: str, error: str) -> str:
    """The remedy for a library that does not load: it, or one that it needs, is missing."""
    intel_parts = ("libimf", "libsvml", "libirng", "libintlc", "libtbb")
    if any(part in error for part in intel_parts):
        return "python -m pip install intel-cmplr-lib-rt tbb"
    if "pocl" in target:
        return "sudo apt-get install --reinstall pocl-opencl-icd"
    return "reinstall the driver that this file belongs to, or remove the file"


def exposed_finding(entry: Exposed) -> Finding:
    """What became of a runtime that pip installed."""
    text = f"{entry.name} (pip): {entry.state}: {entry.reason}"
    remedies = {
        "late": "import clformats before pyopencl",
        "overruled": f"unset the variable, or add a file to its folder: echo {entry.library}",
        "failed": "set XDG_CACHE_HOME to a folder that you can write",
    }
    remedy = remedies.get(entry.state, "")
    return Finding("note" if remedy else "ok", text, remedy)


def pocl_wheel_findings() -> list[Finding]:
    """PyPI's build of pocl: frozen in 2022, and no use on newer processors."""
    name = "pocl-binary-distribution"
    try:
        version = metadata.version(name)
    except metadata.PackageNotFoundError:
        return []
    text = (
        f"{name} {version} (pip) is installed. It cannot build kernels on newer processors "
        "(\"unknown target CPU 'generic'\") and takes the same name as a working pocl"
    )
    return [Finding("problem", text, f"python -m pip uninstall {name}; {APT_LINE}")]


def nvidia_findings(files: list[Path]) -> list[Finding]:
    """NVIDIA's driver without its vendor file, as in containers that mount only the libraries."""
    if any("nvidia" in icd_target(file) for file in files) or load_error(_NVIDIA):
        return []
    text = f"NVIDIA's OpenCL library ({_NVIDIA}) is here, but no platform file names it"
    folder = "/etc/OpenCL/vendors"
    remedy = f"sudo mkdir -p {folder} && echo {_NVIDIA} | sudo tee {folder}/nvidia.icd"
    return [Finding("problem", text, remedy)]


def no_platform_finding(environ: Mapping[str, str]) -> Finding:
    """Nothing that could be an OpenCL platform, and how to get one here."""
    chosen = user_setting(environ)
    # With such a variable the loader looks nowhere else, whatever is installed.
    first = f"unset {chosen[0]}; if none is visible then:\n    " if chosen else ""
    ways = [APT_LINE] if shutil.which("apt-get") else ["install pocl with your package manager"]
    if all(bundled_library(name) is None for name in BUNDLED) and os.uname().machine == "x86_64":
        ways.append(f"{PIP_LINE}    (no root needed)")
    return Finding(
        "problem", "no OpenCL platform is visible that can be loaded", first + "\nor: ".join(ways)
    )
