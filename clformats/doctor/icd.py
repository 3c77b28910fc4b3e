"""Make OpenCL runtimes that pip installed visible, and say what the OpenCL loader will see.

An OpenCL program links to a *loader* (`libOpenCL.so.1`). The loader reads a *vendors folder* of
`.icd` files, each one line: the library of one platform. Intel's CPU runtime on PyPI
(`intel-opencl-rt`) brings such files, but in a folder that no loader reads, and they name a path of
Intel's build machine. So the library must be shown to the loader before the loader looks.

What was measured, with the loader inside pyopencl's wheels (ocl-icd 2.3.1):

* `OCL_ICD_VENDORS` names one folder (or one `.icd` file, or one library) and *replaces*
  `/etc/OpenCL/vendors`; a list with `:` finds nothing.
  `OPENCL_VENDOR_PATH` is the same, and weaker.
* `OCL_ICD_FILENAMES`, which adds to the folder with the Khronos loader, is ignored.
* `.icd` files in `pyopencl/.libs` are read besides, whatever the variables say.
* Platforms are looked up at the first OpenCL call, not when pyopencl is imported: either may be
  imported first, but a process that has listed platforms sees no others any more
  (`opencl.hint` says so where a device is missing).
* Intel's library finds its own parts beside itself: `LD_LIBRARY_PATH` is not needed.

So `expose_bundled_runtimes` makes a folder of links to the system's `.icd` files and one file more
for Intel's library, and points `OCL_ICD_VENDORS` there. Both loaders honour that, no platform is
hidden, and a variable that the user has set is not changed.
`CLFORMATS_BUNDLED_RUNTIMES=0` switches it off.

This module imports neither pyopencl nor numpy, and platformdirs only where it makes a folder.
See `findings.py` for the doctor's view.
"""

from __future__ import annotations

import atexit
import hashlib
import os
import shutil
import sys
import tempfile
from dataclasses import dataclass
from importlib import metadata
from pathlib import Path
from typing import TYPE_CHECKING, Literal

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, MutableMapping

SYSTEM_VENDORS = Path("/etc/OpenCL/vendors")
VENDOR_VARIABLES = ("OCL_ICD_VENDORS", "OPENCL_VENDOR_PATH")
"""The variables that replace the loader's vendors folder, the strongest first."""
SWITCH = "CLFORMATS_BUNDLED_RUNTIMES"
BUNDLED = {"intel-opencl-rt": "libintelocl.so"}
"""By distribution on PyPI the library in it that is an OpenCL platform."""
_FOLDER_PREFIX = "clformats-vendors-"

State = Literal["exposed", "late", "already visible", "overruled", "failed"]


@dataclass(frozen=True)
class Exposed:
    """What became of one pip-installed OpenCL runtime: ``name`` is its distribution on PyPI.

    ``state`` is "exposed" (the loader will see it), "late" (pyopencl was imported before: seen only
    if nothing has asked for platforms yet), "already visible" (the system's vendor files name it),
    "overruled" (the user's settings rule) or "failed". ``reason`` is one sentence for people.
    """

    name: str
    library: Path
    state: State
    reason: str


# ---- reading -----------------------------------------------------------------------------------


def icd_files(folder: Path) -> list[Path]:
    """The `.icd` files of a vendors folder, sorted by name; none where it cannot be read."""
    try:
        return sorted(path for path in folder.iterdir() if path.suffix == ".icd")
    except OSError:
        return []


def icd_target(file: Path) -> str:
    """The library that an `.icd` file names (a path or a bare name); "" where it is unreadable.

    Anything else that a variable may name is a library itself.
    """
    if file.suffix != ".icd":
        return str(file)
    try:
        if file.exists() and not file.is_file():  # a pipe would not end
            return ""
        lines = file.read_text(encoding="utf-8", errors="replace").splitlines()
    except OSError:
        return ""
    return lines[0].strip() if lines and "\0" not in lines[0] else ""


def bundled_library(distribution: str) -> Path | None:
    """The platform library of a pip-installed runtime, None where it is not installed."""
    name = BUNDLED[distribution]
    try:
        files = metadata.files(distribution) or []
    except metadata.PackageNotFoundError:
        return None
    for file in files:
        path = Path(str(file.locate()))
        if file.name == name and path.is_file():
            return path.resolve()
    return None


def default_vendors(prefix: Path | None = None) -> list[Path]:
    """The folders that a loader reads when no variable says otherwise.

    Conda's loader reads the folder of its own environment: ``prefix``, the Python installation.
    """
    prefix = Path(sys.prefix) if prefix is None else prefix
    own = [prefix / "etc" / "OpenCL" / "vendors"] if (prefix / "conda-meta").is_dir() else []
    return [SYSTEM_VENDORS, *own]


def user_setting(environ: Mapping[str, str]) -> tuple[str, str] | None:
    """The (variable, value) by which the user chose the platforms, None where there is none.

    A value that this module set, here or in a parent process, is not the user's.
    """
    for name in VENDOR_VARIABLES:
        value = environ.get(name, "")
        if value and not is_own_folder(value):
            return name, value
    return None


def is_own_folder(value: str) -> bool:
    """Whether a vendors folder was made by this module."""
    return Path(value).name.startswith(_FOLDER_PREFIX)


def seen_files(environ: Mapping[str, str]) -> list[Path]:
    """The `.icd` files that the loader reads under these variables, our own folder resolved."""
    for name in VENDOR_VARIABLES:
        value = environ.get(name, "")
        if value:
            path = Path(value)
            return icd_files(path) if path.is_dir() else [path]
    return [file for folder in default_vendors() for file in icd_files(folder)]


# ---- making the folder -------------------------------------------------------------------------


def merged_entries(files: Iterable[Path], libraries: Mapping[str, Path]) -> dict[str, Path]:
    """What our vendors folder holds: file name -> the `.icd` file to link to, or a library to name.

    Two files of one name, from two folders, both get in: the second under another name.
    """
    entries: dict[str, Path] = {}
    for file in files:
        name, count = file.name, 1
        while name in entries:
            count += 1
            name = f"{file.stem}-{count}.icd"
        entries[name] = file
    entries.update({f"clformats-{dist}.icd": library for dist, library in libraries.items()})
    return entries


def folder_name(entries: Mapping[str, Path]) -> str:
    """A name that changes with the content, so that a finished folder is never changed."""
    text = "\n".join(f"{name}={path}" for name, path in sorted(entries.items()))
    return _FOLDER_PREFIX + hashlib.sha256(text.encode()).hexdigest()[:16]


def fill_folder(folder: Path, entries: Mapping[str, Path]) -> None:
    """Write the entries: links to `.icd` files, new one-line files for libraries."""
    for name, path in entries.items():
        if path.suffix == ".icd":
            (folder / name).symlink_to(path)
        else:
            (folder / name).write_text(f"{path}\n", encoding="utf-8")


def cache_root() -> Path:
    """Where vendors folders are kept between runs: the user's cache folder.

    Raises OSError if there is none, and ImportError without platformdirs, as the doctor may run.
    """
    from platformdirs import user_cache_dir

    try:
        root = Path(user_cache_dir("clformats"))
    except RuntimeError as error:  # without HOME, of a user number without a name
        raise FileNotFoundError(f"no cache folder: {error}") from error
    if not root.is_absolute():
        raise FileNotFoundError(f"no cache folder: {root} is not absolute, there is no home folder")
    return root


def make_folder(entries: Mapping[str, Path], root: Path) -> Path:
    """The vendors folder with these entries under `root`, made if it is not there yet.

    It appears under its name only when it is complete: other processes may be doing the same.
    Raises OSError if `root` cannot be written.
    """
    final = root / folder_name(entries)
    if final.is_dir():
        return final
    root.mkdir(mode=0o700, parents=True, exist_ok=True)
    fresh = Path(tempfile.mkdtemp(prefix="making-", dir=root))
    fill_folder(fresh, entries)
    try:
        fresh.rename(final)
    except OSError:
        shutil.rmtree(fresh, ignore_errors=True)
        if not final.is_dir():
            raise
    return final


# ---- the one action ----------------------------------------------------------------------------


def expose_bundled_runtimes(environ: MutableMapping[str, str] | None = None) -> list[Exposed]:
    """Let the OpenCL loader see the runtimes that pip installed; call it before using pyopencl.

    Sets `OCL_ICD_VENDORS` in `environ`, by default of this process, when there is something to show
    and nothing against it. Idempotent; never raises for what it finds on a machine. Gives an entry
    for each pip-installed runtime.
    """
    environ = os.environ if environ is None else environ
    _drop_stale_folder(environ)
    found = _installed(environ)
    files = [file for folder in default_vendors() for file in icd_files(folder)]
    verdicts = {name: _obstacle(library, files, environ) for name, library in found.items()}
    wanted = {name: found[name] for name, verdict in verdicts.items() if verdict is None}
    verdict = _point_loader_at(wanted, files, environ) if wanted else None
    return [
        Exposed(name, library, *(verdicts[name] or verdict or _EXPOSED))
        for name, library in found.items()
    ]


_Verdict = tuple[State, str]
_EXPOSED: _Verdict = ("exposed", "the loader sees it beside the system's platforms")
_LATE: _Verdict = (
    "late",
    "pyopencl was imported before: seen only if it has listed no platforms yet",
)
_set_late: set[str] = set()
"""Folders that were set after pyopencl had been imported, so that a second call says so again."""


def _drop_stale_folder(environ: MutableMapping[str, str]) -> None:
    """Forget a folder of ours that is gone (inherited from a parent, or the cache was cleared).

    And one that another user has made in its place since.
    """
    value = environ.get(VENDOR_VARIABLES[0], "")
    if is_own_folder(value) and not _is_users(Path(value)):
        del environ[VENDOR_VARIABLES[0]]


def _installed(environ: Mapping[str, str]) -> dict[str, Path]:
    """Name -> library of each runtime that pip installed; none where switched off."""
    if not sys.platform.startswith("linux") or environ.get(SWITCH) == "0":
        return {}
    libraries = {name: bundled_library(name) for name in BUNDLED}
    return {name: library for name, library in libraries.items() if library is not None}


def _obstacle(library: Path, files: list[Path], environ: Mapping[str, str]) -> _Verdict | None:
    """Why this library must not be shown, None where it may."""
    chosen = user_setting(environ)
    if chosen is not None:
        return "overruled", f"{chosen[0]}={chosen[1]} is set and names the platforms to use"
    for file in files:
        target = Path(icd_target(file))
        # A second copy of one runtime in a process ends in crashes: the system's copy wins.
        if target.name.startswith(library.name) and (target.is_file() or not target.is_absolute()):
            return "already visible", f"{file} names {target}"
    return None


def _point_loader_at(
    libraries: Mapping[str, Path], files: list[Path], environ: MutableMapping[str, str]
) -> _Verdict | None:
    """Make the folder and set the variable; a verdict only where that is not plain success."""
    entries = merged_entries(files, libraries)
    current = environ.get(VENDOR_VARIABLES[0], "")
    if Path(current).name != folder_name(entries):
        try:
            current = str(_place(entries))
        except OSError as error:
            return "failed", f"no folder for vendor files could be made: {error}"
        environ[VENDOR_VARIABLES[0]] = current
        if environ is os.environ and "pyopencl" in sys.modules:
            _set_late.add(current)
    return _LATE if current in _set_late else None


def _place(entries: Mapping[str, Path]) -> Path:
    """The vendors folder in the user's cache; where that is not to be had one of this process.

    So where the cache cannot be written, and where others could have put their drivers into it.
    """
    try:
        folder = make_folder(entries, cache_root())
    except (OSError, ImportError):
        folder = None
    if folder and _is_users(folder):
        return folder
    private = Path(tempfile.mkdtemp(prefix="clformats-"))
    atexit.register(shutil.rmtree, private, ignore_errors=True)
    return make_folder(entries, private)


def _is_users(folder: Path) -> bool:
    """Whether it is a folder that only the user and root could have filled."""
    try:
        from ..trust import foreign
    except ImportError:  # this file runs by itself, as `probe.py` has it
        return folder.is_dir()
    try:
        return folder.is_dir() and not foreign(folder)
    except OSError:
        return False
