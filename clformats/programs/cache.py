"""Programs built from source, and the cache of built ones on disk.

An entry is one file: a magic line, a checksum, the binary. It is written to a temporary file and
moved to its place, so that many processes may start at once without locks. A file that cannot be
read, whose checksum is wrong, or which others could have written (see `trust`), is a miss. The name
of an entry is a hash of the source, options, device, driver, a CPU's instructions, and the versions
of the libraries.
NVIDIA's driver has a cache of its own that is as fast; PoCL's preprocesses the source before it
looks, which takes 50 to 100 ms for each program where a binary takes 3. But PoCL compiles once more
before it gives a binary, and version 6.0 may abort then: a child process asks it, in the
background, and no more once one has died of it. ``PYOPENCL_NO_CACHE`` switches the cache off.

Where a compiler may end the process, a child builds each new source first: see `guard`.

Only building needs OpenCL: the doctor reads the cache without it.
"""

from __future__ import annotations

import hashlib
import os
import shutil
import threading
import time
import warnings
from collections.abc import Iterator
from contextlib import suppress
from dataclasses import replace
from functools import lru_cache, partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

from .. import trust
from ..doctor.caches import REMEDY
from ..doctor.icd import cache_root
from ..errors import CacheWarning, warn
from ..opencl import is_nvidia, opencl
from ..version import __version__
from .background import background
from .guard import Build, is_guarded, tried
from .outcomes import BINARY, BUILT, SUFFIX, BuildOutcome, CompilerDied, recall, remember
from .processor import instructions

if TYPE_CHECKING:
    import pyopencl

_MAGIC = b"clformats program 1\n"
_SUM = 32
_HOLLOW = b"/program.bc" + bytes(4)
"""The bytes of PoCL's binary in which the program is an empty file: another process was writing it.

PoCL 3.1 aborts each process that loads such a binary.
"""
RETRIES = (0.1, 0.5)
"""Seconds before a build that failed for no reason of the source's is tried again."""
PLAN = ".plan"
"""The suffix of the entries of `clformats.reorders.kept`, in the same folder."""
_told: set[Path] = set()


def cache_folder() -> Path | None:
    """Where built programs are kept; None where there is no place or the user wants none."""
    if os.environ.get("PYOPENCL_NO_CACHE"):
        return None
    return _folder(*map(os.environ.get, ("XDG_CACHE_HOME", "HOME")))


@lru_cache(maxsize=8)
def _folder(*_: str | None) -> Path | None:
    """The same by the variables that say where caches are: platformdirs takes its time."""
    try:
        return cache_root() / "programs"
    except (ImportError, OSError):
        return None


def entries(folder: Path) -> Iterator[tuple[Path, int]]:
    """The programs and the plans (of suffix `PLAN`) of a cache, and their bytes."""
    with suppress(OSError):
        for file in sorted(folder.iterdir()):
            if file.suffix != SUFFIX and file.name[0] != ".":  # an outcome, or just being written
                with suppress(OSError):
                    yield file, file.stat().st_size


def clear(folder: Path) -> None:
    """Remove the whole cache; programs are built again. Raises OSError."""
    if folder.exists():
        shutil.rmtree(folder)


def key(wanted: Build) -> str:
    """The name of an entry."""
    from pyopencl.version import VERSION_TEXT

    names, is_cpu = _facts(wanted.device)
    facts = (
        __version__,
        VERSION_TEXT,
        *names,
        instructions() if is_cpu else "",
        *wanted.all_options,
    )
    return hashlib.sha256(f"{facts!r}{wanted.source}".encode()).hexdigest()


@lru_cache(maxsize=64)
def _facts(device: pyopencl.Device) -> tuple[tuple[str, ...], bool]:
    """What names a device and its driver, and whether it is a CPU; asking takes 0.2 ms."""
    p = device.platform
    driver = device.vendor, device.name, device.version, device.driver_version
    return (p.vendor, p.name, p.version, *driver), bool(device.type & opencl().device_type.CPU)


def build(context: pyopencl.Context, wanted: Build) -> pyopencl.Program:
    """A built program, from the cache where it is there.

    Raises pyopencl's errors, and `CompilerDied` for a source that no process survives.
    """
    kept = loaded(context, wanted)
    if kept is not None:
        return kept
    file, guarded = _file(wanted), is_guarded(wanted.device)
    if guarded:
        binary = _proven(wanted)
        if file:
            _write(file, binary)
        kept = _from_binary(context, wanted, binary)
        if kept is not None:
            return kept
    built = _from_source(context, wanted)
    slowly = _gives_slowly(wanted.device)
    if file and guarded and slowly:
        background.later(partial(_keep_by_child, wanted, file))
    elif file and not guarded and not slowly:
        _write(file, _binary(built))
    return built


def loaded(context: pyopencl.Context, wanted: Build) -> pyopencl.Program | None:
    """A program from the cache, which takes milliseconds; None where it is not there."""
    file = _file(wanted)
    return _from_binary(context, wanted, read_entry(file) if file else None)


def _from_binary(
    context: pyopencl.Context, wanted: Build, binary: bytes | None
) -> pyopencl.Program | None:
    """The program; None where a driver does not take back what it gave: it is built again then."""
    if not binary or _HOLLOW in binary:
        return None
    cl = opencl()
    try:
        kept: pyopencl.Program = cl.Program(context, [wanted.device], [binary])
        kept.build([*wanted.options], devices=[wanted.device])
    except cl.Error:
        return None
    return kept


def _proven(wanted: Build) -> bytes:
    """The binary of a program that a child has built, or not all of it: it is safe to build here.

    Raises `CompilerDied`.
    """
    folder, name = cache_folder(), key(wanted)
    known = recall(name, folder)
    if known is None:
        asks = not _gives_slowly(wanted.device) and _may_be_asked(wanted.device, folder)
        known = _described(tried(wanted, binary=asks), wanted, name)
        if known.kills and known.stage == BINARY:
            _ask_no_more(known, wanted, folder)
            known = BuildOutcome(BUILT, key=name)
        if known.kills or (known.outcome == BUILT and not known.binary):
            remember(known, folder)
    if known.kills:
        raise CompilerDied(known)
    return known.binary


def _described(found: BuildOutcome, wanted: Build, name: str) -> BuildOutcome:
    """An outcome with all that a report of it needs."""
    if not found.kills:
        return replace(found, key=name)
    device, p = wanted.device, wanted.device.platform
    driver = f"{p.name.strip()} {device.driver_version.strip()}, {p.version.strip()}"
    return replace(
        found, key=name, device=device.name.strip(), driver=driver, source=wanted.source,
        options=wanted.all_options, when=time.strftime("%Y-%m-%dT%H:%M:%S"),
    )  # fmt: skip


def _may_be_asked(device: pyopencl.Device, folder: Path | None) -> bool:
    """Whether no worker has died of asking the driver for a binary."""
    return recall(key(Build(device, (), BINARY)), folder) is None


def _ask_no_more(death: BuildOutcome, wanted: Build, folder: Path | None) -> None:
    """Remember that a worker has died of it."""
    remember(_described(death, wanted, key(Build(wanted.device, (), BINARY))), folder)


def _keep_by_child(wanted: Build, file: Path) -> None:
    """Add a program to the cache that a worker has built, unless asking for binaries is no good."""
    if not _may_be_asked(wanted.device, file.parent):
        return
    found = tried(replace(wanted, trial=None), binary=True)
    if found.kills:
        _ask_no_more(found, wanted, file.parent)
    else:
        _write(file, found.binary)


class _Silence:
    """Some compilers warn that all went well; those that fail raise. So no warnings around builds.

    Threads may build at once, and users change the filters meanwhile: only our own one is removed,
    where `warnings.catch_warnings` would bring back all of what was there before.
    """

    def __init__(self) -> None:
        self._lock, self._depth, self._is_ours = threading.Lock(), 0, False

    def __enter__(self) -> None:
        with self._lock:
            self._depth += 1
            if self._depth == 1 and self._filter not in warnings.filters:
                self._is_ours = True
                warnings.simplefilter("ignore", self._filter[2])

    def __exit__(self, *_: object) -> None:
        with self._lock:
            self._depth -= 1
            if not self._depth and self._is_ours:
                self._is_ours = False
                with suppress(ValueError):
                    warnings.filters.remove(self._filter)  # type: ignore[attr-defined]

    @property
    def _filter(self) -> Any:
        return ("ignore", None, opencl().CompilerWarning, None, 0)


compilers_silent = _Silence()


def _file(wanted: Build) -> Path | None:
    """The entry of a program; None where there is no cache."""
    # NVIDIA's driver finds a program by its source as fast as by its binary.
    folder = None if is_nvidia(wanted.device) else cache_folder()
    return folder / key(wanted) if folder else None


def _binary(program: pyopencl.Program) -> bytes:
    """The binary for a single device; empty if the driver gives none, or those of others too.

    pyopencl leaves out the empty binaries of some drivers, so which is whose is not certain.
    """
    cl, found = opencl(), list[bytes]()
    with suppress(cl.Error):
        binaries: Any = program.get_info(cl.program_info.BINARIES)
        found = [binary for binary in binaries if binary]
    return found[0] if len(found) == 1 else b""


def _from_source(context: pyopencl.Context, wanted: Build) -> pyopencl.Program:
    """Built anew; tried again if the build failed without an error in the source.

    PoCL 3.1 fails so now and then when several processes fill its cache at once.
    """
    cl = opencl()
    for seconds in RETRIES:
        try:
            return _built(context, wanted)
        except cl.Error as error:
            failed = error.code == cl.status_code.BUILD_PROGRAM_FAILURE
            if not failed or "error:" in str(error):
                raise
            time.sleep(seconds)
    return _built(context, wanted)


def _built(context: pyopencl.Context, wanted: Build) -> pyopencl.Program:
    """Without pyopencl's own cache, which waits for the lock of a killed process."""
    program: pyopencl.Program = opencl().Program(context, wanted.source)
    program.build([*wanted.options], devices=[wanted.device], cache_dir=False)  # type: ignore[arg-type]
    return program


def _gives_slowly(device: pyopencl.Device) -> bool:
    """Whether the driver compiles before it gives a binary: PoCL, for work-groups of any size.

    So that only a child may ask it.
    """
    return bool(device.platform.name == "Portable Computing Language")


def read_entry(file: Path) -> bytes | None:
    """What an entry holds, such as a binary; None for a miss of any kind."""
    try:
        data = trust.read(file)
    except OSError:
        return None
    sum_, held = data[len(_MAGIC) : len(_MAGIC) + _SUM], data[len(_MAGIC) + _SUM :]
    right = data.startswith(_MAGIC) and hashlib.sha256(held).digest() == sum_
    return held if right and held else None


def write_entry(file: Path, held: bytes) -> None:
    """Add an entry, in a folder that only the user can change. Raises OSError."""
    trust.make_own_folder(file.parent)
    trust.write(file, _MAGIC + hashlib.sha256(held).digest() + held)


def _write(file: Path, binary: bytes) -> None:
    """Add an entry, if there is a whole one; warn once about a folder that cannot be written."""
    if not binary or _HOLLOW in binary:
        return
    try:
        write_entry(file, binary)
    except OSError as error:
        if file.parent not in _told:
            _told.add(file.parent)
            warn(
                f"built programs cannot be kept in {file.parent} ({error.strerror or error}): "
                f"every process builds its own. {REMEDY}",
                CacheWarning,
            )
