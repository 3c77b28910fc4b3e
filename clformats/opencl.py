"""The door to pyopencl: importing it late, naming its errors, listing its devices."""

from __future__ import annotations

import os
import sqlite3
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from functools import cache
from pathlib import Path
from types import ModuleType
from typing import TYPE_CHECKING, ClassVar, NoReturn, SupportsIndex

from .doctor.caches import REMEDY as CACHE_REMEDY
from .doctor.caches import provide_cache_folder
from .doctor.icd import expose_bundled_runtimes
from .errors import CacheWarning, DeviceError, InvalidArgument, warn

if TYPE_CHECKING:
    import pyopencl

HINT = "run `clformats doctor`: it says what is there, what is wrong and how to fix it"


@cache
def opencl() -> ModuleType:
    """The module pyopencl, imported on first use, with pip-installed runtimes made visible before.

    Raises `DeviceError` where it cannot be imported, and in a process forked from one that used it.
    """
    if _is_forked:
        raise DeviceError(
            "this process was forked from one that had used OpenCL, and has no driver threads: "
            "start processes by 'spawn' or 'forkserver', as "
            "multiprocessing.get_context('spawn') does, or fork before OpenCL is used"
        )
    if trouble := provide_cache_folder():
        warn(f"{trouble}. {CACHE_REMEDY}", CacheWarning)
    expose_bundled_runtimes()
    try:
        import pyopencl
    except ImportError as error:
        raise DeviceError(f"pyopencl cannot be imported ({error}); {HINT}") from error
    if hasattr(os, "register_at_fork"):
        os.register_at_fork(after_in_child=_forked)
    return pyopencl


@cache
def is_nvidia(device: pyopencl.Device) -> bool:
    """Whether NVIDIA's driver has the device."""
    from pyopencl.characterize import nv_compute_capability

    return nv_compute_capability(device) is not None


def kernel_of(program: pyopencl.Program, name: str) -> pyopencl.Kernel:
    """A kernel object, also where pyopencl's cache on disk fails meanwhile: then without the cache.

    pyopencl keeps the Python code that sets a kernel's arguments in a database of its own, and
    passes on the database's errors (a disk that is full, a folder that was removed).
    """
    make: Callable[..., pyopencl.Kernel] = opencl().Kernel
    try:
        return make(program, name)
    except (sqlite3.Error, OSError) as error:
        vars(opencl())["_PYOPENCL_NO_CACHE"] = True  # what its variable of this name sets
        warn(f"pyopencl's cache failed ({error}): it is not used any more", CacheWarning)
    return make(program, name)


_is_forked = False


def _forked() -> None:
    """A driver would hang at the next call: make the library refuse it."""
    global _is_forked  # noqa: PLW0603
    _is_forked = True
    opencl.cache_clear()


def hint() -> str:
    """What to do where a device is missing."""
    late = [e for e in expose_bundled_runtimes() if e.state == "late" and not _is_loaded(e.library)]
    if not late:
        return HINT
    names = " and ".join(e.name for e in late)
    return (
        f"{names}, installed by pip, cannot be found any more: this process listed OpenCL's "
        f"platforms before it used clformats; call clformats.devices() first"
    )


def _is_loaded(library: Path) -> bool:
    """Whether this process has loaded a shared library."""
    try:
        return str(library) in Path("/proc/self/maps").read_text(encoding="utf-8", errors="replace")
    except OSError:
        return False


@contextmanager
def named_errors(doing: str, about: object = "") -> Iterator[None]:
    """Turn an OpenCL error inside the block into a `DeviceError` with its name.

    ``about`` is printed after ``doing``, and only where there is an error: printing a descriptor
    costs more than enqueueing a kernel.
    """
    cl = opencl()
    try:
        yield
    except cl.Error as error:
        raise failure(f"{doing} {about}".rstrip(), error) from error


def failure(doing: str, error: Exception, advice: str = "") -> DeviceError:
    """The exception for an error of OpenCL's."""
    name = error_name(error)
    return DeviceError(f"{doing} failed: {name} ({error}){advice}", name=name)


class OnDevice:
    """Base of objects of a device, which cannot be pickled or copied."""

    __slots__ = ()
    _travels_as: ClassVar[str]
    """The advice of the error message: what to send or copy instead."""

    def __reduce_ex__(self, protocol: SupportsIndex) -> NoReturn:
        raise InvalidArgument(
            f"{self!r} belongs to an OpenCL device of this process, and cannot be pickled or "
            f"copied: {self._travels_as}"
        )


def error_name(error: object) -> str:
    """OpenCL's name of an error of pyopencl's, such as ``MEM_OBJECT_ALLOCATION_FAILURE``."""
    code = getattr(error, "code", None)
    if code is None:
        return type(error).__name__
    return str(opencl().status_code.to_string(code, "UNKNOWN_%d"))


def devices() -> list[pyopencl.Device]:
    """Every OpenCL device of every platform; empty where there is none."""
    return [*places()]


def places() -> dict[pyopencl.Device, tuple[int, int]]:
    """By device the numbers of its platform and of the device in it; parts of devices have none."""
    cl = opencl()
    found: dict[pyopencl.Device, tuple[int, int]] = {}
    with suppress(cl.Error):
        for i, platform in enumerate(cl.get_platforms()):
            with suppress(cl.Error):  # a platform without devices says so by an error
                found |= {device: (i, j) for j, device in enumerate(platform.get_devices())}
    return found
