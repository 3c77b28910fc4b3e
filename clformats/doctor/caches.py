"""A cache folder for those who have none of their own that can be written, as in many containers.

Without a cache folder PoCL shows no device at all, and pyopencl cannot make a kernel. In one that
others can write they could put code into the process. So the process gets a temporary one, by the
environment variable that all of them read; it is removed when the process ends. PoCL looks for it
at the first OpenCL call, pyopencl at the first kernel.

Needs neither pyopencl nor numpy: the doctor uses it too.
"""

from __future__ import annotations

import atexit
import errno
import os
import shutil
import sys
import tempfile
from pathlib import Path

from ..trust import foreign
from .icd import cache_root

VARIABLE = "XDG_CACHE_HOME"
_OF_POCL = "POCL_CACHE_DIR"
REMEDY = f"Set {VARIABLE} to a folder that you alone can write"
LEAST_BYTES = 1 << 20
"""The room that a cache folder must have."""
LEAST_FREE = 16 << 20
"""The room that must be left on its disk: PoCL ends a process that finds it full, and programs
take up to some MB while they are built."""


def provide_cache_folder() -> str:
    """Set `VARIABLE` to a new folder where the user's own cannot be used; says what is wrong."""
    if os.environ.get(_OF_POCL) == "":
        del os.environ[_OF_POCL]  # PoCL 3.1 aborts the process over a name without letters
    if not sys.platform.startswith("linux"):
        return ""  # others do not read the variable
    try:
        root = cache_root()
        of_pocl = [] if os.environ.get(_OF_POCL) else ["pocl"]
        for name in (root.name, *of_pocl, "pyopencl", "pytools"):  # all that `VARIABLE` moves
            _try_out(root.parent / name)
    except ImportError:
        return ""  # the folder is not known: the doctor runs where packages are missing
    except OSError as error:
        where = error.filename or os.environ.get(VARIABLE) or "in your home"
        trouble = f"the cache folder {where} cannot be used ({error.strerror or error})"
    else:
        return ""
    try:
        _check_disk(Path(tempfile.gettempdir()))
        temporary = tempfile.mkdtemp(prefix="clformats-cache-")
    except OSError as error:
        return f"{trouble}, and no temporary one either ({error})"
    atexit.register(shutil.rmtree, temporary, ignore_errors=True)
    os.environ[VARIABLE] = temporary
    return f"{trouble}: each process builds its own programs"


def _try_out(folder: Path) -> None:
    """Raise OSError where a folder can be neither written nor made, or belongs to others, too.

    Leaves no file.
    """
    try:
        if reason := foreign(folder):
            raise PermissionError(errno.EPERM, reason)
        there = folder
        while not there.exists() and there != there.parent:
            there = there.parent
        with tempfile.TemporaryFile(dir=there) as file:
            os.posix_fallocate(file.fileno(), 0, LEAST_BYTES)
        _check_disk(there)
    except OSError as error:
        error.filename = str(folder)
        raise


def _check_disk(folder: Path) -> None:
    """Raise OSError where a disk is nearly full; some file systems do not tell."""
    disk = os.statvfs(folder)
    if disk.f_blocks and disk.f_bavail * disk.f_frsize < LEAST_FREE:
        raise OSError(errno.ENOSPC, f"less than {LEAST_FREE >> 20} MiB are free")
