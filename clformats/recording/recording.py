"""`Recording`: a stream that runs nothing, and keeps what it is asked for."""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any, NoReturn

import numpy as np

from ..errors import InvalidArgument, Unsupported, expect, shown
from ..opencl import opencl
from ..reorders.ready import Ready
from ..runtime import Engine, Event, Memory, Stream
from ..runtime.arguments import set_arguments
from ..runtime.engine import FIRST_NUMBER, SharedKernel
from ..runtime.interop import from_numpy
from ..runtime.order import LOCK, QueueOrder
from ..runtime.scalar import TYPES, Scalar
from ..tensors.desc import MemoryDesc
from .binding import device_of
from .export import Named, name_of, targets_of, write
from .nothing import NO_QUEUE, NoOrder, Recorded
from .program import (
    INPUT,
    OUTPUT,
    TEMPORARY,
    Argument,
    Fill,
    Given,
    Kernel,
    Local,
    OfBuffer,
    OfScalar,
    Program,
    check_name,
)
from .replay import Replay
from .slots import Slots, arranged, check_storage, covers
from .sources import source_of
from .steps import Move, Run, Step, Target, assembled, renumbered, used

if TYPE_CHECKING:
    import pyopencl


class Recording(Stream):
    """A stream that runs nothing: what is called on it is kept, to be replayed and shipped.

    ``inputs`` and ``outputs`` are memory objects by name: what a replay exchanges, and what a
    program in C gives. Give it to reorders and maps in the place of a stream, and call its `run`
    and `fill`. Outputs may be read, too; a buffer has one name. Every other memory object is
    private to each replay: a *temporary*, whose place in one arena is free again after its last
    use, or a `constant`. Temporaries hold zeros when a run begins, as new memory objects do; where
    a command reads one that nothing has written, `replay` and `export` raise `InvalidArgument`:
    most likely it is a constant or an input.

    The same bytes come out as from the calls, or a refusal. What cannot be recorded raises
    `Unsupported` (code RECORDING): images, shared virtual and host memory, the queue and whatever
    needs it (mapping, copies from and to the host, waiting), kernels whose source is not known.

        recording = cf.Recording(engine, inputs={"photo": photo}, outputs={"packed": packed})
        to_half(recording, photo, half)
        recording.run(kernel, (n,), None, half, np.float32(3), out, reads=[half])
        to_blocks(recording, out, packed)
        replay = recording.replay()
        replay(stream, photo=other)
        recording.export("net/")
    """

    def __init__(
        self,
        engine: Engine | None = None,
        *,
        inputs: Mapping[str, Memory] | None = None,
        outputs: Mapping[str, Memory] | None = None,
    ) -> None:
        expect(engine, Engine | None, "engine")
        expect(inputs, Mapping | None, "inputs")
        expect(outputs, Mapping | None, "outputs")
        inputs, outputs = dict(inputs or {}), dict(outputs or {})
        every = [*inputs.values(), *outputs.values()]
        for name, memory in (*inputs.items(), *outputs.items()):
            expect(memory, Memory, name)
        self.engine = engine or next((m.engine for m in every), None) or Engine()
        self.context: pyopencl.Context = self.engine.context
        self.in_order = True
        self.order: QueueOrder | None = NoOrder()
        self.recorder = self
        self.inputs, self.outputs = inputs, outputs
        self._slots = Slots()
        self._steps: list[Step] = []
        self._scalars: list[Scalar] = []
        self._names: dict[str, str] = {}
        for name, memory in inputs.items():
            if outputs.get(name) is not memory:
                self._name(name, memory, INPUT)
        for name, memory in outputs.items():
            self._name(name, memory, OUTPUT)

    def _name(self, name: str, memory: Memory, role: str) -> None:
        self._take(check_name(name, f"the {role}"))
        check_storage(memory)
        memory.check_place(self.context, "the recording")
        self._slots.name(memory, name, role)

    def _take(self, name: str) -> None:
        before = self._names.get(name.upper())
        if before is not None:
            raise InvalidArgument(
                f"got the names {before} and {name}: expected one for each input, output and "
                f"scalar, different without regard to case, as C's header has them"
            )
        self._names[name.upper()] = name

    # --- what is recorded -------------------------------------------------------------------------

    def moved(self, ready: Ready, src: Memory, dst: Memory, values: Any) -> Event:
        """Take a reorder or a map that was checked; see `Stream.recorder`."""
        if ready.launch is None:
            return Recorded()
        problem = ready.plan.problem
        about = f"{problem.src} -> {problem.dst}"
        others = [self._other(ready, name, operand, values) for name, operand in ready.others]
        source, target = self._slots.of(src), self._slots.of(dst)
        source.read(src, src.nbytes, ready.alignment[0], about)
        for _, memory in others:
            if memory is not None:
                self._slots.of(memory).read(memory, memory.nbytes, 1, about)
        whole = covers(dst, reads_old=problem.reads_old)
        target.write(dst, dst.nbytes, ready.alignment[1], about, covers=whole)
        arguments = tuple(argument for argument, _ in others)
        self._steps.append(
            Move(
                ready.plan, ready.launch, source.number, target.number, arguments,
                self.engine.rounds_divisions,
            )
        )  # fmt: skip
        return Recorded()

    def _other(
        self, ready: Ready, name: str, operand: object, values: Mapping[str, Any] | None
    ) -> tuple[Argument, Memory | None]:
        """The argument of an operand or a scalar, and the memory object that it is."""
        value = (values or {}).get(name)
        value = (ready.values or {}).get(name) if value is None else value
        if isinstance(value, Scalar):
            return self._scalar(value), None
        if isinstance(value, Memory):
            return OfBuffer(self._slots.of(value).number), value
        numbers = np.asarray(value)
        if operand is None:
            return bytes(numbers[:1].tobytes()), None
        return OfBuffer(self._slots.constant(numbers).number), None

    def _ran(
        self,
        kernel: pyopencl.Kernel,
        global_size: Sequence[int],
        local_size: Sequence[int] | None,
        args: Sequence[Any],
        reads: Sequence[Memory],
    ) -> Event:
        """Take a kernel of the user's, whose sizes were checked; see `Stream.run`."""
        about = f"the kernel {kernel.function_name}"
        source = source_of(kernel, self.engine)
        with LOCK:
            for a in args:
                if isinstance(a, Memory):
                    a.check_use("run a kernel on it", self.context, "the recording")
            arguments = tuple(self._argument(k, a) for k, a in enumerate(args, 1))
            set_arguments(kernel, [_given(a) for a in args], args)  # what it refuses is refused now
            if 0 in global_size:
                return Recorded()
            for a in args:
                if isinstance(a, Memory) and a.tracked_buffer is not None:
                    self._touch(a, about, writes=not any(a is m for m in reads))
            self._steps.append(Run(Kernel(
                source, kernel.function_name, arguments, tuple(map(int, global_size)),
                tuple(map(int, local_size or ())),
            )))  # fmt: skip
        return Recorded()

    def run_shared(
        self,
        shared: SharedKernel,
        sizes: tuple[Sequence[int], Sequence[int] | None],
        args: Sequence[Any],
        numbers: Sequence[bytes],
        reads: Sequence[Any],
    ) -> Event:
        """Take a kernel of the library's; see `Stream.run_shared`."""
        every = (*args[:FIRST_NUMBER], *numbers, *args[FIRST_NUMBER:])
        return self._ran(shared.kernel, *sizes, every, reads)

    def _touch(self, memory: Memory, about: str, *, writes: bool) -> None:
        slot = self._slots.of(memory)
        nbytes = memory.tracked_buffer.size if slot.role == TEMPORARY else memory.nbytes
        touch = partial(slot.write, covers=0) if writes else slot.read
        touch(memory, nbytes, 1, about)

    def _argument(self, number: int, given: Any) -> Argument:
        cl = opencl()
        if isinstance(given, Memory) and given.tracked_buffer is not None:
            return OfBuffer(self._slots.of(given).number)
        if isinstance(given, Memory):
            raise Unsupported("RECORDING", f"argument {number}: {given!r} has no elements")
        if isinstance(given, Scalar):
            return self._scalar(given)
        if isinstance(given, cl.LocalMemory):
            return Local(int(given.size))
        if isinstance(given, bytes):
            return given
        if isinstance(given, np.generic) or (isinstance(given, np.ndarray) and not given.ndim):
            return bytes(given.tobytes())
        raise InvalidArgument(
            f"argument {number}: got {shown(given)}, expected a Memory, bytes, a number as "
            f"numpy's such as np.float32(3), a scalar of the recording, or pyopencl's LocalMemory"
        )

    def _filled(self, memory: Any, value: int, where: slice) -> Event:
        """Take the filling of these bytes of a memory object's buffer; see `Stream.fill`."""
        with LOCK:
            memory.check_use("fill it", self.context, "the recording")
            if where.start == where.stop:
                return Recorded()
            slot = self._slots.of(memory)
            slot.write(memory, where.stop, 1, "a fill", covers=0 if where.start else where.stop)
            fill = Fill(slot.number, int(value), where.start, where.stop - where.start)
            self._steps.append(Run(fill))
        return Recorded()

    # --- what is shipped with it, or given at each run --------------------------------------------

    def constant(
        self,
        content: Any,
        *,
        format: Any = None,  # the field's word for it
        dtype: Any = None,
    ) -> Memory:
        """Ship what a memory object holds now, or an array; gives the memory object.

        An array becomes one in ``format`` and ``dtype``, as by `clformats.from_numpy`. Raises
        `InvalidArgument` for inputs, outputs, and for what a command of the recording writes.
        """
        made = content
        if not isinstance(content, Memory):
            made = from_numpy(content, self.engine, format=format, dtype=dtype)
        memory: Memory = made
        check_storage(memory)
        memory.check_use("record what it holds", self.context, "the recording")
        held = _bytes_of(memory) if memory.tracked_buffer is not None else b""
        with LOCK:
            self._slots.of(memory).become_constant(held, str(memory.desc))
        return memory

    def scratch(self, *memories: Memory) -> None:
        """What these temporaries hold when a run begins does not matter: no zeros are needed.

        For memory of which every byte that is read was written before by the same run, though the
        recording cannot see it: regions, and what kernels of yours write.
        """
        for memory in memories:
            expect(memory, Memory, "memory")
            check_storage(memory)
            memory.check_use("record it", self.context, "the recording")
            self._slots.of(memory).scratch = True

    def scalar(self, name: str, dtype: str = "f32") -> Scalar:
        """A number that is given by ``name`` at each replay: an argument of `run`, or an attribute.

        ``dtype`` is one of f32, f64, s32, u32, s64 and u64. Attributes are computed in f32, or f64
        where a side is. Raises `InvalidArgument`.
        """
        expect(dtype, str, "dtype")
        if dtype not in TYPES:
            raise InvalidArgument(f"dtype: got {shown(dtype)}, expected one of {', '.join(TYPES)}")
        self._take(check_name(name, "the scalar"))
        made = Scalar(name, dtype)
        self._scalars.append(made)
        return made

    def _scalar(self, scalar: Scalar) -> OfScalar:
        for number, known in enumerate(self._scalars):
            if known is scalar:
                return OfScalar(number, TYPES[scalar.dtype]().itemsize)
        raise InvalidArgument(f"{scalar} is of another recording: recording.scalar() makes one")

    # --- what becomes of it -----------------------------------------------------------------------

    def replay(self) -> Replay:
        """All commands in one call, with kernels, arguments and temporaries of its own.

        Builds the programs. Raises `InvalidArgument` where a temporary is read before anything is
        written to it, and `DeviceError`.
        """
        own = self.program([("recorded", Target(own=True), device_of(self.engine), "")])
        return Replay(own, own.variants[0], self.engine, {**self.inputs, **self.outputs})

    def export(
        self,
        path: str | os.PathLike[str],
        *,
        name: str | None = None,
        engines: Sequence[Named] | None = None,
    ) -> None:
        """Write a folder, or one file ``*.clf``, that C and `clformats.load` run without this code.

        ``name`` names the header and what it defines; without it that is the folder's. The folder
        has ``manifest.json``, OpenCL C in ``kernels/``, constants in ``data.bin``, a header, and
        the runner ``clformats.h`` and ``clformats.c``; docs/recording.md describes it. ``engines``
        are those that variants are planned for, the recording's own by default: engines, or
        `clformats.schedule.Traits` of devices that are not here. A portable variant, for every
        device, is always there. An export that exists is replaced, other files in the folder stay.
        Raises `InvalidArgument`, `Unsupported`, and `Error` where files cannot be written.
        """
        expect(path, str | os.PathLike, "path")
        expect(name, str | None, "name")
        expect(engines, Sequence | None, "engines")
        place = Path(path)
        targets = targets_of([self.engine] if engines is None else engines, self.engine)
        write(self.program(targets, name_of(place, name)), place)

    def program(
        self, targets: Sequence[tuple[str, Target, Any, str]], name: str = "recording"
    ) -> Program:
        """The recording as data; for each variant its name, what to plan for, its device, its kind.

        Raises `InvalidArgument` where a temporary is read before anything is written to it.
        """
        with LOCK:
            slots, steps = list(self._slots), self._with_zeros()
        for slot in slots:
            if slot.role == TEMPORARY and slot.unset:
                raise InvalidArgument(
                    f"{slot.unset} reads {slot.desc}, to which nothing was written: name it among "
                    f"the inputs, or give it to recording.constant()"
                )
        lives: dict[int, tuple[int, int]] = {}
        for k, step in enumerate(steps):
            for number in used(step):
                lives[number] = (lives.get(number, (k, k))[0], k)
        buffers, numbers, arena = arranged(slots, lives)
        steps = [renumbered(step, numbers) for step in steps]
        scalars = tuple(Given(s.name, s.dtype) for s in self._scalars)
        return assembled(name, buffers, scalars, arena, steps, targets)

    def _with_zeros(self) -> list[Step]:
        """The steps, with fills before the first use of what must begin as zeros."""
        left = {s.number: s for s in self._slots if s.wants_zeros}
        found: list[Step] = []
        for step in self._steps:
            first = [left.pop(number) for number in used(step) if number in left]
            found += [Run(Fill(slot.number, 0, 0, slot.nbytes)) for slot in first]
            found.append(step)
        return found

    # --- what a stream has, and a recording not ---------------------------------------------------

    @property
    def queue(self) -> NoReturn:
        """Refused: what is enqueued there would not be recorded."""
        raise Unsupported("RECORDING", NO_QUEUE)

    def __getattr__(self, name: str) -> Any:
        if name == "tracked_queue":
            raise Unsupported("RECORDING", NO_QUEUE)
        raise AttributeError(f"{type(self).__name__} has no attribute {name!r}")

    def wait(self) -> NoReturn:
        """Refused: nothing runs."""
        raise Unsupported("RECORDING", "a recording runs nothing: wait for what its replay gives")

    def after(self, *events: Any) -> NoReturn:
        """Refused: events are of commands that run now."""
        raise Unsupported("RECORDING", f"a recording cannot wait for {len(events)} events of now")

    def __exit__(self, *_: object) -> None:
        """End nothing: a recording has no commands that run."""

    def __repr__(self) -> str:
        return f"Recording({self.engine!r}, {len(self._steps)} commands)"


def _given(argument: Any) -> Any:
    """An argument as a kernel takes it; a number of its type for a scalar."""
    if isinstance(argument, Memory):
        return argument.tracked_buffer
    return TYPES[argument.dtype](0) if isinstance(argument, Scalar) else argument


def _bytes_of(memory: Memory) -> bytes:
    """All bytes of its buffer, after the commands on it."""
    size = int(memory.tracked_buffer.size)
    whole = Memory(MemoryDesc((size,), "u8", "a"), memory.engine, buffer=memory.tracked_buffer)
    with whole.map("r") as flat:
        return bytes(flat.tobytes())
