"""`Engine`: a device and its context, and the programs built for it."""

from __future__ import annotations

import os
import threading
from collections import OrderedDict
from collections.abc import Callable
from dataclasses import dataclass
from functools import cache, cached_property
from typing import TYPE_CHECKING, Any

from ..errors import DeviceError, InvalidArgument, expect, shown
from ..opencl import OnDevice, devices, error_name, hint, kernel_of, named_errors, opencl
from ..problems.traits import DEFAULT, Traits
from ..programs import compiler
from ..programs.background import background
from ..programs.buildlog import told
from ..programs.cache import build, compilers_silent, loaded
from ..programs.guard import Build, FirstLaunch
from ..programs.processor import HELD_BY
from .external import handed_out

if TYPE_CHECKING:
    import pyopencl

KINDS = ("cpu", "gpu", "accelerator")
"""The kinds of devices that `Engine` takes by name."""

KEPT_KERNELS = 512
"""How many kernels with their sizes set are cached, so that preparing a reorder again is fast."""

KEPT_PROGRAMS = 128
"""How many programs are kept: Intel's runtime takes 3 MB for each, and networks need 30 to 60."""


@dataclass(slots=True)
class SharedKernel:
    """A kernel that several reorders enqueue; `order.LOCK` guards its arguments.

    Its integers are set once, the buffers at every call. ``mark`` identifies the reorder whose
    other values are set; None if there is none. ``make`` makes another kernel object with the same
    integers.
    """

    kernel: pyopencl.Kernel
    make: Callable[[], pyopencl.Kernel]
    mark: object = None

    def fitting(self, enqueue: Callable[..., pyopencl.Event], *given: Any) -> pyopencl.Event:
        """Enqueue it: ``enqueue(self, *given)``, if need be with another kernel object.

        NVIDIA's driver refuses one that had other kinds of memory: once an argument was shared
        virtual memory, a buffer in its place is INVALID_KERNEL_ARGS.
        """
        cl = opencl()
        try:
            return enqueue(self, *given)
        except cl.Error as error:
            if error.code != cl.status_code.INVALID_KERNEL_ARGS:
                raise
            self.kernel, self.mark = self.make(), None
            return enqueue(self, *given)


class _Program:
    """A program, once it is built; one thread builds it, while others build other programs."""

    __slots__ = ("built", "lock")

    def __init__(self) -> None:
        self.built: pyopencl.Program | None = None
        self.lock = threading.Lock()


FIRST_NUMBER = 2
"""The argument of a `SharedKernel` from which on its numbers are set."""
SOURCE = "_clformats_source"
"""The attribute of a kernel with the source that `Engine.kernel` made it of: a program that was
loaded from a binary does not know it."""
_PROBE = "__kernel void probe(__global int *p) { p[get_global_id(0)] = 1; }"


class Engine(OnDevice):
    """An OpenCL device to work on.

    ``Engine()`` takes the device that ``PYOPENCL_CTX`` names, else the first GPU that can build a
    kernel, else the first other device that can. ``Engine("pocl")`` takes the first device with
    that text in its own or its platform's name, vendor or version, one of that very name before
    others; ``"cpu"``, ``"gpu"`` and ``"accelerator"`` are kinds of devices. ``Engine(device=...)``
    and ``Engine(context=..., device=...)`` take pyopencl's objects, ``Engine(queue)`` and
    ``Engine(context)`` what those belong to. Engines made without a context share one context for
    each device, so that their memory objects work together. Raises `DeviceError`.
    """

    _travels_as = "send its device's name, and make another by Engine(name) there"

    def __init__(
        self,
        name: str | pyopencl.CommandQueue | pyopencl.Context | pyopencl.Device | None = None,
        *,
        device: pyopencl.Device | None = None,
        context: pyopencl.Context | None = None,
    ) -> None:
        if name is not None and not isinstance(name, str):
            name, device, context = _taken_apart(name, device, context)
        expect(device, opencl().Device | None, "device")
        expect(context, opencl().Context | None, "context")
        if name is not None and (device is not None or context is not None):
            raise DeviceError(f"got the name {name!r} and a device or context: give one of them")
        if context is not None and device is None:
            device = context.devices[0]
        self.device: pyopencl.Device = device or _choose(name)
        self.context: pyopencl.Context = context or _context(self.device)
        if self.device not in self.context.devices:
            raise DeviceError(f"the device {self.device.name} does not belong to the context given")
        self._programs: OrderedDict[str, _Program] = OrderedDict()
        self._kernels: OrderedDict[tuple[Any, ...], SharedKernel] = OrderedDict()
        self._lock = threading.Lock()

    @property
    def queue(self) -> pyopencl.CommandQueue:
        """The engine's own queue, for maps and fills where the user names no stream.

        See `Stream.queue` for commands of your own on it.
        """
        return handed_out(self.tracked_queue)  # type: ignore[no-any-return]

    @cached_property
    def tracked_queue(self) -> pyopencl.CommandQueue:
        """The engine's own queue, for commands that the library knows."""
        with named_errors("making a queue"):
            return opencl().CommandQueue(self.context, self.device)  # type: ignore[no-any-return]

    @cached_property
    def names(self) -> tuple[str, str, str]:
        """The device, its platform, and the version of its driver, as OpenCL names them."""
        return names_of(self.device)

    @cached_property
    def traits(self) -> Traits:
        """The properties of the device that plans depend on."""
        d = self.device
        is_cpu = bool(d.type & opencl().device_type.CPU)
        keeps_small = bool(d.single_fp_config & opencl().device_fp_config.DENORM)
        return Traits(
            is_cpu=is_cpu,
            compute_units=d.max_compute_units,
            cache_bytes=d.global_mem_cache_size,
            has_fp64="cl_khr_fp64" in d.extensions,
            has_images=bool(d.image_support),
            group_size=min(DEFAULT.group_size, d.max_work_group_size),
            vector_bytes=vector_bytes_of(d),
            local_bytes=_local_bytes(d),
            has_ieee_f32=is_cpu or (self.rounds_divisions and keeps_small),
        )

    @cached_property
    def rounds_divisions(self) -> bool:
        """Whether the device rounds divisions and roots of f32 correctly where it is asked to."""
        wanted = opencl().device_fp_config.CORRECTLY_ROUNDED_DIVIDE_SQRT
        return bool(self.device.single_fp_config & wanted)

    def kernel(self, source: str, name: str, trial: FirstLaunch | None = None) -> pyopencl.Kernel:
        """A new kernel object of the program with this source; the program is built once.

        ``trial`` is its first launch, for a child process that builds what no one has built yet.
        Raises `DeviceError` where the build fails, with the compiler's log and the lines it names.
        """
        cl = opencl()
        known = self._program(source)
        with known.lock:
            program = known.built = known.built or self._build(source, trial)
        try:
            made = kernel_of(program, name)
        except cl.Error as error:
            there = str(program.get_info(cl.program_info.KERNEL_NAMES)).replace(";", ", ")
            found = error_name(error)
            raise DeviceError(
                f"creating the kernel {name} failed: {found}; the source has {there or 'none'}",
                name=found,
            ) from error
        setattr(made, SOURCE, source)
        return made

    def _program(self, source: str) -> _Program:
        """The program with this source, built or not; the one that was not used longest goes."""
        with self._lock:
            known = self._programs.setdefault(source, _Program())
            self._programs.move_to_end(source)
            if len(self._programs) > KEPT_PROGRAMS:
                oldest, _ = self._programs.popitem(last=False)
                for key in [key for key in self._kernels if key[0] == oldest]:
                    del self._kernels[key]  # a kernel keeps its program
            return known

    def shared_kernel(
        self,
        source: str,
        name: str,
        given: tuple[bytes, ...],
        trial: FirstLaunch | None = None,
    ) -> SharedKernel:
        """A kernel of the program with this source, with ``given`` set from argument 2 on.

        Equal arguments give the same object: making a kernel and setting its integers takes
        pyopencl longer than everything else that preparing a reorder again needs.
        """
        opencl()  # refuses in a forked process, where the lock may never be released
        key = (source, name, given)
        with self._lock:
            found = self._kernels.get(key)
            if found is not None:
                self._kernels.move_to_end(key)
                return found

        def make() -> pyopencl.Kernel:
            needed = 16 + sum(map(len, given))
            if needed > (most := self.device.max_parameter_size):
                raise DeviceError(
                    f"{name} takes {needed} bytes of arguments, {self.device.name.strip()} at most "
                    f"{most}: take family='generic' or tuned=cf.Choices(baked=True)"
                )
            kernel = self.kernel(source, name, trial)
            with named_errors(f"setting the arguments of {name}"):
                for k, value in enumerate(given, FIRST_NUMBER):
                    kernel.set_arg(k, value)
            return kernel

        made = SharedKernel(make(), make)
        with self._lock:
            found = self._kernels.setdefault(key, made)
            if len(self._kernels) > KEPT_KERNELS:
                self._kernels.popitem(last=False)
        return found

    @cached_property
    def _options(self) -> tuple[str, ...]:
        """Compiler options: correctly rounded divisions, if the device has them; its driver's."""
        exact = ("-cl-fp32-correctly-rounded-divide-sqrt",) if self.rounds_divisions else ()
        return (*exact, *compiler.options(self.device))

    @property
    def programs_built(self) -> int:
        """How many programs this engine has built."""
        return sum(program.built is not None for program in list(self._programs.values()))

    def has_built(self, source: str) -> bool:
        """Whether this engine has built a program."""
        known = self._programs.get(source)
        return known is not None and known.built is not None

    def has_program(self, source: str) -> bool:
        """Whether a program is built, or can be loaded from the cache now: without a compiler."""
        known = self._program(source)
        if known.lock.acquire(blocking=False):  # else it is built just now
            try:
                if known.built is None:
                    with compilers_silent:
                        known.built = loaded(self.context, self._wanted(source))
            finally:
                known.lock.release()
        return known.built is not None

    def _wanted(self, source: str, trial: FirstLaunch | None = None) -> Build:
        return Build(self.device, self._options, source, trial)

    def _build(self, source: str, trial: FirstLaunch | None = None) -> pyopencl.Program:
        cl = opencl()
        try:
            with background.awaited(), compilers_silent:
                return build(self.context, self._wanted(source, trial))
        except cl.Error as error:
            name = error_name(error)
            text = f"building a kernel for {self.device.name} failed: {name}"
            raise DeviceError(text, name=name, log=told(source, str(error))) from error

    def __enter__(self) -> Engine:  # noqa: PYI034  # Self is of Python 3.11
        return self

    def __exit__(self, *_: object) -> None:
        """Wait for the engine's own queue, and let go of the programs built."""
        with named_errors("waiting for an engine"):
            self.tracked_queue.finish()
        with self._lock:
            self._programs.clear()
            self._kernels.clear()

    def __repr__(self) -> str:
        return f"Engine(device={self.device.name!r} of {self.device.platform.name!r})"


HELD = {"core-avx2": 32, "corei7-avx": 16, "corei7": 16}
"""The widest vectors of integers, in bytes, of the older processors that `HELD_BY` makes Intel's
CPU runtime compile for; what the device itself reports stays the same."""


def vector_bytes_of(device: pyopencl.Device) -> int:
    """The widest vector that kernels get."""
    told: int = 4 * device.native_vector_width_int
    if "Intel" not in device.platform.name:
        return told
    return min(told, HELD.get(os.environ.get(HELD_BY, ""), told))


def _local_bytes(device: pyopencl.Device) -> int:
    """The local memory of a work-group; 0 on GPUs that have none of their own, such as Mali."""
    cl = opencl()
    is_gpu = bool(device.type & cl.device_type.GPU)
    if is_gpu and device.local_mem_type != cl.device_local_mem_type.LOCAL:
        return 0
    return int(device.local_mem_size)


@cache
def default_engine() -> Engine:
    """The engine that is used where none is given: `Engine()`, made once."""
    return Engine()


@cache
def _context(device: pyopencl.Device) -> pyopencl.Context:
    """One context for each device and process."""
    with named_errors(f"making a context for {device.name}"):
        return opencl().Context([device])  # type: ignore[no-any-return]


def _choose(name: str | None) -> pyopencl.Device:
    found = devices()
    if not found:
        raise DeviceError(f"no OpenCL device is visible; {hint()}")
    if name is None and os.environ.get("PYOPENCL_CTX"):
        with named_errors(f"PYOPENCL_CTX={os.environ['PYOPENCL_CTX']!r}"):
            return opencl().create_some_context(interactive=False).devices[0]  # type: ignore[no-any-return]
    if name is not None:
        found = _matching(found, name.lower())
        if not found:
            known = "; ".join(f"{d.name} ({d.platform.name})" for d in devices())
            raise DeviceError(f"no OpenCL device matches {name!r}; there are: {known}; {hint()}")
    found.sort(key=lambda d: not d.type & opencl().device_type.GPU)
    if len(found) == 1:
        return found[0]
    if works := next(filter(_can_build, found), None):
        return works
    names = ", ".join(d.name for d in found)
    raise DeviceError(f"no device can build a kernel, tried {names}; {hint()}")


def _matching(found: list[pyopencl.Device], name: str) -> list[pyopencl.Device]:
    """The devices of a kind, of this very name, or with it in what describes them."""
    if name in KINDS:
        kind = getattr(opencl().device_type, name.upper())
        return [d for d in found if d.type & kind]
    named = [d for d in found if d.name.strip().lower() == name.strip()]
    return named or [
        d
        for d in found
        if name in " ".join(f"{x.name} {x.vendor} {x.version}" for x in (d, d.platform)).lower()
    ]


def _taken_apart(given: Any, device: Any, context: Any) -> tuple[None, Any, Any]:
    """Device and context of what stands in place of a name. Raises `InvalidArgument`."""
    cl = opencl()
    if not isinstance(given, cl.CommandQueue | cl.Context | cl.Device):
        raise InvalidArgument(
            f"name: got {shown(given)}, expected a device's name, 'cpu', 'gpu', or pyopencl's "
            f"CommandQueue, Context or Device"
        )
    if context is not None or (device is not None and not isinstance(given, cl.Context)):
        raise DeviceError(f"got {shown(given)} and a device or context: give one of them")
    if isinstance(given, cl.CommandQueue):
        return None, given.device, given.context
    return (None, given, None) if isinstance(given, cl.Device) else (None, device, given)


def _can_build(device: pyopencl.Device) -> bool:
    try:
        with compilers_silent:
            build(_context(device), Build(device, (), _PROBE))
    except (opencl().Error, DeviceError):
        return False
    return True


def names_of(device: pyopencl.Device) -> tuple[str, str, str]:
    """The device, its platform, and the version of its driver, as OpenCL names them."""
    platform = device.platform
    driver = f"{device.driver_version}, {platform.version}".strip()
    return device.name.strip(), platform.name.strip(), driver
