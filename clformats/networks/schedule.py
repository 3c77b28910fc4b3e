"""A plan that runs: reorders prepared, constants packed, one arena, and the author's kernels."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ..errors import InvalidNetwork
from ..host.packing import pack_into
from ..opencl import opencl
from ..recording.recording import Recording
from ..reorders.reorder import Reorder
from ..runtime import Engine, Memory, Stream
from ..runtime.interop import from_numpy
from ..tensors.desc import MemoryDesc
from ..tensors.given import moved_by
from .choice import Choice
from .decision import Decision, PlannedReorder
from .graph import Node, Value
from .memory import MemoryPlan, Place
from .named import FormatName, Key, named, plain
from .views import kind_of

Launch = Callable[..., Any]
"""``launch(stream, node, choice, *memories)``: the inputs' memories, then the outputs'."""


class PreparedPlan:
    """A planned network on a device, made by `FormatPlan.schedule`.

    ``run(stream, image=array)`` writes the inputs into the arena, runs nodes and reorders in order
    on the stream, waits, and returns the outputs by name: memory objects in the arena, good until
    the next run. ``launch`` is called for every node that has work to do: not for a concatenation
    of which every part is in place, nor for a reshape that is one. Buffers whose formats have
    padding are filled with zeros before they are first written, unless ``clear_padding`` is False.

    Raises `InvalidNetwork` for opaque formats, and inputs that are missing or of other dims.
    """

    def __init__(
        self,
        plan: Decision,
        memory: MemoryPlan,
        engine: Engine,
        launch: Launch,
        *,
        constants: Mapping[str, Any] | None = None,
        clear_padding: bool = True,
    ) -> None:
        cl = opencl()
        self.plan, self.memory, self.engine, self.launch = plan, memory, engine, launch
        nbytes = max(memory.nbytes, 64)
        self.arena = cl.Buffer(engine.context, cl.mem_flags.READ_WRITE, nbytes)
        self._whole = Memory(MemoryDesc((nbytes,), "u8", "a"), engine, buffer=self.arena)
        self.memories: dict[tuple[str, Key], Memory] = {}
        self.constants: dict[tuple[str, Key], Memory] = {}
        for name, fmt in memory.offsets:
            if isinstance(fmt, FormatName):  # else it is a node's workspace
                self.memories[name, fmt.key] = self._memory((name, fmt))
        for value in plan.network.values.values():
            if value.is_constant:
                self._pack(value, (constants or {}).get(value.name, value.constant))
        self._fills = self._padded() if clear_padding else {}
        self._reorders: dict[PlannedReorder, Reorder] = {}
        for r in plan.reorders:
            src, dst = (self._at(r.value, f).desc for f in (r.src, r.dst))
            self._reorders[r] = Reorder(src, dst, engine, wait=True)
        self._given = {v.name: self._taken(v) for v in plan.network.inputs}

    def __call__(self, stream: Stream, **inputs: Any) -> dict[str, Memory]:
        """Run everything; the outputs."""
        self._write(stream, inputs)
        for number in range(len(self.memory.steps)):
            self.run_step(stream, number)
        stream.wait()  # what launch enqueued is not known to mapping
        return self._outputs()

    def run_step(self, stream: Stream, number: int) -> Any:
        """Run one node or one reorder: ``plan.memory.steps[number]``."""
        step = self.memory.steps[number]
        for piece in self._fills.get(number, ()):
            stream.fill(piece)
        if not isinstance(step, Node):
            sides = [self._at(step.value, f) for f in (step.src, step.dst)]
            return self._reorders[step](stream, *sides)
        choice = self.plan.choices[step.name]
        if is_free(step, choice):
            return None
        read = [self._input(v, f) for v, f in zip(step.inputs, choice.ins, strict=True)]
        written = [self._at(v.name, f) for v, f in zip(step.outputs, choice.outs, strict=True)]
        return self.launch(stream, step, choice, *read, *written)

    def record(self, recording: Recording, **memories: Memory) -> None:
        """Record a run: ``schedule.record(recording, image=memory, label=memory)``.

        ``memories`` are those of the network's inputs and outputs by name, of the same dims, in any
        format and element type; those left out are the recording's own inputs and outputs of these
        names. Inputs are reordered into the arena, which is a temporary of the recording, and
        outputs out of it. Constants are shipped. ``launch`` is called as in a run, with the
        recording for the stream: it must enqueue by ``stream.run``. Raises `InvalidNetwork` where
        a name is missing or unknown, and what `clformats.Recording` refuses.
        """
        inputs = [v.name for v in self.plan.network.inputs]
        outputs = self._outputs()
        known = {**recording.inputs, **recording.outputs, **memories}
        missing = [name for name in (*inputs, *outputs) if name not in known]
        unknown = [name for name in memories if name not in (*inputs, *outputs)]
        if missing or unknown:
            raise InvalidNetwork(
                f"record: got {', '.join(memories) or 'no memories'}, expected memory objects for "
                f"{', '.join((*inputs, *outputs))}: give each by its name"
            )
        recording.scratch(self._whole)
        for memory in self.constants.values():
            recording.constant(memory)
        for name in inputs:
            target = self._at(name, self.plan.formats[name])
            Reorder(known[name].desc, target.desc, self.engine)(recording, known[name], target)
        for number in range(len(self.memory.steps)):
            self.run_step(recording, number)
        for name, source in outputs.items():
            Reorder(source.desc, known[name].desc, self.engine)(recording, source, known[name])

    def _outputs(self) -> dict[str, Memory]:
        """The outputs in the arena."""
        formats = {**self.plan.formats, **self.plan.network.fixed}
        return {v.name: self._at(v.name, formats[v.name]) for v in self.plan.delivered}

    def _padded(self) -> dict[int, list[Memory]]:
        """For each step the buffers with padding that it is the first to write."""
        found: dict[int, list[Memory]] = {}
        for buffer in self.memory.buffers:
            places = [(name, named(fmt).key) for name, fmt in buffer.holds]
            descs = [self.memories[p].desc for p in places if p in self.memories]
            if any(d.padded_dims != d.dims for d in descs):
                piece = self._whole.submemory((buffer.nbytes,), (buffer.offset,))
                found.setdefault(buffer.first, []).append(piece)
        return found

    # --- memory -----------------------------------------------------------------------------------

    def _memory(self, place: Place) -> Memory:
        value = self.plan.network.values[place[0]]
        desc = self.memory.views.get(place) or value.desc(place[1])
        at, rest = divmod(self.memory.offsets[place] * 8, desc.dtype.bits)
        if rest:
            raise InvalidNetwork(f"{place[0]!r} lies at no whole element of {desc.dtype}")
        return Memory(moved_by(desc, at), self.engine, buffer=self.arena)

    def _at(self, value: str, fmt: FormatName) -> Memory:
        return self.memories[value, fmt.key]

    def _input(self, value: Value, fmt: FormatName | None) -> Memory:
        if value.is_constant:
            return self.constants[value.name, (fmt or plain(value.rank)).key]
        return self._at(value.name, fmt or self.plan.formats[value.name])

    def _pack(self, value: Value, content: Any) -> None:
        """Constants in every format that they are read in; plain where any will do."""
        wanted = {p.dst for p in self.plan.pack if p.value == value.name} | {plain(value.rank)}
        advice = f": give its elements, schedule(constants={{{value.name!r}: array}})"
        array = _array(value, content, advice)
        for fmt in sorted(wanted):
            self.constants[value.name, fmt.key] = from_numpy(array, self.engine, format=fmt)

    def _taken(self, value: Value) -> tuple[Memory, Reorder]:
        """Memory for an input as it is given, and what moves it into the arena."""
        given = Memory.unfilled(value.desc(plain(value.rank)), self.engine)
        target = self._at(value.name, self.plan.formats[value.name])
        return given, Reorder(given.desc, target.desc, self.engine)

    def _write(self, stream: Stream, inputs: Mapping[str, Any]) -> None:
        names = {v.name for v in self.plan.network.inputs}
        if set(inputs) != names:
            raise InvalidNetwork(
                f"got the inputs {', '.join(inputs)}, expected {', '.join(sorted(names))}"
            )
        for value in self.plan.network.inputs:
            array = _array(value, inputs[value.name])
            given, reorder = self._given[value.name]
            with given.map("w", stream=stream) as flat:
                pack_into(flat, array, given.desc)
            reorder(stream, given, self._at(value.name, self.plan.formats[value.name]))


def _array(value: Value, content: Any, advice: str = "") -> NDArray[Any]:
    """The elements of a value. Raises `InvalidNetwork` for other dims."""
    array = np.ascontiguousarray(np.asarray(content, value.dtype.numpy))
    if array.shape != value.dims:
        what = "constant" if value.is_constant else "input"
        raise InvalidNetwork(
            f"{what} {value.name!r}: got the shape {array.shape}, expected {value.dims}{advice}"
        )
    return array


def is_free(node: Node, choice: Choice) -> bool:
    """Whether a node has nothing to do because all of it is in place."""
    kind = kind_of(node.op)
    if kind == "overwrite":
        return False
    if kind == "part":
        return {i for i, _ in choice.shared} == set(range(len(node.inputs)))
    return {o for _, o in choice.shared} == set(range(len(node.outputs)))
