"""The commands of a program as kernel objects of their own, with their arguments set."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from ..opencl import named_errors, opencl
from ..programs.cache import build
from ..programs.guard import Build
from ..runtime import Engine
from .program import (
    CONSTANT,
    TEMPORARY,
    Device,
    Fill,
    Kernel,
    Local,
    OfScalar,
    Program,
    Source,
    Variant,
)

if TYPE_CHECKING:
    import pyopencl


def device_of(engine: Engine) -> Device:
    """The names of an engine's device."""
    return Device(*engine.names)


def is_tuned(variant: Variant, engine: Engine) -> bool:
    """Whether a variant was planned for the device of an engine, and its driver."""
    return variant.tuned_for == device_of(engine)


class Bound:
    """Kernels, temporaries and constants of a program on an engine.

    The arguments are set once; `set_buffer` and `set_scalar` exchange those with a name. Raises
    `DeviceError` where a program cannot be built or memory not be had.
    """

    def __init__(self, program: Program, variant: Variant, engine: Engine) -> None:
        self._engine = engine
        self._numbers = {b.name: k for k, b in enumerate(program.buffers)}
        self._scalars = {s.name: k for k, s in enumerate(program.scalars)}
        self._places: dict[int, list[tuple[Any, int]]] = {}
        self._scalar_places: dict[int, list[tuple[Any, int]]] = {}
        self._steps: list[tuple[Any, Any, Any]] = []
        self._buffers: dict[int, Any] = {}  # A kernel does not keep its arguments alive.
        self._arena: Any = None
        self._allocate(program)
        for command in variant.commands:
            if isinstance(command, Fill):
                self._steps.append((None, command, np.uint8(command.value)))
            else:
                kernel = self._kernel(command)
                self._steps.append((kernel, command.work, command.local or None))

    def __del__(self) -> None:
        """Release the kernels, then the buffers, the last made first, and then the arena.

        NVIDIA's driver ends the process where a part of a buffer goes that a kernel had, and
        another part, made later, overlaps it (580.159 on an H200: 8 of 12 random sets of parts in
        the order in which they were made, 2 in a random order, none in the reverse).
        """
        for kernels in (self._places, self._scalar_places, self._steps):
            kernels.clear()
        while self._buffers:
            self._buffers.popitem()
        self._arena = None

    def _allocate(self, program: Program) -> None:
        """Make the constants, and the temporaries: parts of the arena where the device has such."""
        cl, flags, engine = opencl(), opencl().mem_flags, self._engine
        with named_errors("allocating the temporaries of a recording"):
            if program.arena_bytes and engine.device.mem_base_addr_align <= 8 * 512:
                self._arena = cl.Buffer(engine.context, flags.READ_WRITE, program.arena_bytes)
            for k, b in enumerate(program.buffers):
                if b.role == CONSTANT:
                    copied = flags.READ_ONLY | flags.COPY_HOST_PTR
                    made = cl.Buffer(engine.context, copied, hostbuf=bytearray(b.content))
                elif b.role == TEMPORARY and self._arena is not None:
                    made = self._arena.get_sub_region(b.at, b.nbytes)
                elif b.role == TEMPORARY:
                    made = cl.Buffer(engine.context, flags.READ_WRITE, b.nbytes)
                else:
                    continue
                self._buffers[k] = made

    def _kernel(self, command: Kernel) -> pyopencl.Kernel:
        cl = opencl()
        kernel = _made(self._engine, command.source, command.name)
        with named_errors(f"setting the arguments of {command.name}"):
            for k, argument in enumerate(command.arguments):
                if isinstance(argument, bytes):
                    kernel.set_arg(k, argument)
                elif isinstance(argument, Local):
                    kernel.set_arg(k, cl.LocalMemory(argument.nbytes))
                elif isinstance(argument, OfScalar):
                    self._scalar_places.setdefault(argument.number, []).append((kernel, k))
                elif (buffer := self._buffers.get(argument.number)) is not None:
                    kernel.set_arg(k, buffer)
                else:
                    self._places.setdefault(argument.number, []).append((kernel, k))
        return kernel

    def set_buffer(self, name: str, buffer: Any) -> None:
        """Give an input or output; `order.LOCK` is held."""
        number = self._numbers[name]
        self._buffers[number] = buffer
        for kernel, k in self._places.get(number, ()):
            kernel.set_arg(k, buffer)

    def set_scalar(self, name: str, value: bytes) -> None:
        """Give a scalar, as the kernels take it."""
        for kernel, k in self._scalar_places.get(self._scalars[name], ()):
            kernel.set_arg(k, value)

    def enqueue(
        self, queue: pyopencl.CommandQueue, waits: list[pyopencl.Event], *, in_order: bool
    ) -> pyopencl.Event:
        """Enqueue the commands, one after the other; raises pyopencl's errors."""
        cl = opencl()
        launch, before, event = cl.enqueue_nd_range_kernel, waits or None, None
        for kernel, work, local in self._steps:
            if kernel is not None:
                event = launch(queue, kernel, work, local, None, before)
            else:
                event = cl.enqueue_fill_buffer(
                    queue, self._buffers[work.buffer], local, work.first, work.nbytes,
                    wait_for=before,
                )  # fmt: skip
            before = None if in_order else [event]
        if event is None:
            event = cl.enqueue_marker(queue, wait_for=before)
        return event  # type: ignore[no-any-return]


def _made(engine: Engine, source: Source, name: str) -> pyopencl.Kernel:
    if source.rounds and not source.options:
        return engine.kernel(source.text, name)
    cl = opencl()
    with named_errors(f"building {name}"):
        wanted = Build(engine.device, (*source.options.split(),), source.text)
        program = build(engine.context, wanted)
        return cl.Kernel(program, name)  # type: ignore[no-any-return]
