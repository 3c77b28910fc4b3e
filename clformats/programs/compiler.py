"""The options with which the compiler of a device's driver takes our kernels.

The table of `doctor.drivers` decides. A runtime in no row of it is asked in a process of its
own, once for each version: the answer is kept beside the outcomes of builds.
"""

from __future__ import annotations

from functools import lru_cache
from typing import TYPE_CHECKING

from ..doctor.drivers import PORTABLE, runtime_of
from ..doctor.probe import builtins_work
from ..opencl import opencl, places
from .cache import cache_folder, key
from .guard import Build
from .outcomes import BUILT, FAILED, BuildOutcome, recall, remember

if TYPE_CHECKING:
    import pyopencl

_BUILTINS = "built-in functions"
"""In place of a source, in the name of the answer."""


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
    place, folder = places().get(device), cache_folder()
    if place is None:
        return False
    name = key(Build(device, (), _BUILTINS))
    known = recall(name, folder)
    if known is None:
        known = BuildOutcome(BUILT if builtins_work(*place) else FAILED, key=name)
        remember(known, folder)
    return known.outcome == BUILT
