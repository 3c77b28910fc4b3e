"""A cache folder for those who have none that can be written, as in many containers.

Without a cache folder PoCL shows no device at all, and pyopencl cannot make a kernel. So the
process gets a temporary one, by the environment variable that all of them read; it is removed
when the process ends. PoCL looks for it at the first OpenCL call, pyopencl at the first kernel.

Needs neither pyopencl nor numpy: the doctor uses it too.
"""

from __future__ import annotations

import atexit
import os
import shutil
import sys
import tempfile
from pathlib import Path

from .icd import cache_root

VARIABLE = "XDG_CACHE_HOME"
REMEDY = f"Set {VARIABLE} to a folder that you can write"


def provide_cache_folder() -> str:
    """Set `VARIABLE` to a new folder where the user's own cannot be written.

    Returns:
        What is wrong with the user's, for people; "" where nothing is.
    """
    if not sys.platform.startswith("linux"):
        return ""  # others do not read the variable
    try:
        _try_out(cache_root().parent)
    except ImportError:
        return ""  # nobody knows the folder: the doctor runs where packages are missing
    except OSError as error:
        where = os.environ.get(VARIABLE) or "in your home"
        trouble = f"the cache folder {where} cannot be written ({error.strerror or error})"
    else:
        return ""
    try:
        temporary = tempfile.mkdtemp(prefix="clformats-cache-")
    except OSError as error:
        return f"{trouble}, and no temporary one either ({error})"
    atexit.register(shutil.rmtree, temporary, ignore_errors=True)
    os.environ[VARIABLE] = temporary
    return f"{trouble}: each process builds its own programs"


def _try_out(folder: Path) -> None:
    """Raise OSError where a folder can be neither written nor made; leaves nothing behind."""
    while not folder.exists() and folder != folder.parent:
        folder = folder.parent
    with tempfile.TemporaryFile(dir=folder):
        pass
