"""The options with which the compiler of a device's driver takes our kernels.

The table of `doctor.drivers` decides. A runtime in no row of it is asked in a process of its
own, once for each version: the answer is kept in the user's cache folder.
"""

from __future__ import annotations

import hashlib
from contextlib import suppress
from functools import lru_cache
from typing import TYPE_CHECKING

from .. import trust
from ..doctor.drivers import PORTABLE, runtime_of
from ..doctor.icd import cache_root
from ..doctor.probe import builtins_work
from ..opencl import opencl, places

if TYPE_CHECKING:
    from pathlib import Path

    import pyopencl

_BUILTINS, _NO_BUILTINS = "built-in functions", "portable"


def options(device: pyopencl.Device) -> tuple[str, ...]:
    """The options for a device: those of its row, or of what its compiler answered."""
    kinds = opencl().device_type
    kind = next((name for name in ("CPU", "GPU") if device.type & getattr(kinds, name)), "other")
    runtime = runtime_of(device.platform.name, kind)
    if runtime is not None:
        return runtime.options
    return () if _takes_builtins(device) else (PORTABLE,)


@lru_cache(maxsize=64)
def _takes_builtins(device: pyopencl.Device) -> bool:
    """Whether kernels with clang's functions run on a device of a runtime in no row.

    Asking takes a process about a second; where the answer cannot be kept, each process asks.
    """
    place, file = place_of(device), _file(device)
    if place is None:
        return False
    try:
        kept = trust.read(file).decode() if file else ""
    except (OSError, ValueError):
        kept = ""
    if kept in (_BUILTINS, _NO_BUILTINS):
        return kept == _BUILTINS
    works = builtins_work(*place)
    with suppress(OSError):
        if file:
            trust.make_own_folder(file.parent)
            trust.write(file, (_BUILTINS if works else _NO_BUILTINS).encode())
    return works


def place_of(device: pyopencl.Device) -> tuple[int, int] | None:
    """The numbers of a device's platform and of the device in it; None of a part of a device."""
    return places().get(device)


def _file(device: pyopencl.Device) -> Path | None:
    """Where the answer of a driver is kept; None where there is no cache folder."""
    p = device.platform
    facts = (p.name, p.version, device.name, device.version, device.driver_version)
    try:
        folder = cache_root() / "drivers"
    except (ImportError, OSError):
        return None
    return folder / hashlib.sha256(repr(facts).encode()).hexdigest()[:32]
