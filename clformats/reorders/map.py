"""`Map`: an element-wise expression over tensors in any formats, as one kernel."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

from ..errors import InvalidDescriptor, InvalidExpression, expect
from ..opencl import OnDevice
from ..problems.computation import for_groups, over_tensors
from ..runtime import Engine, Event
from ..runtime.engine import default_engine
from ..schedule import Plan, Request
from ..schedule.choices import Choices
from ..tensors.desc import MemoryDesc
from ..tensors.given import as_desc
from ..values.attr import OLD
from ..values.formula import Formula, parse
from ..values.groups import Group, Grouped, group_of, grouping
from .given import as_memory, as_stream, let_arrays_wait
from .planning import planned
from .profiles import traits_of
from .ready import Ready

if TYPE_CHECKING:
    from .given import AnyMemory, AnyStream

_ASSIGNMENT = re.compile(r"\s*([A-Za-z_]\w*)\s*=(?!=)(.*)", re.ASCII | re.DOTALL)


class Map(OnDevice):
    """Computes each element of a tensor from those of others at the same logical index.

    ``m = Map("z = max(x, y) * 0.5f", engine, x=desc, y=desc, z=desc)``: each variable is a tensor,
    in any format and element type. The expression is in the part of OpenCL C that
    `clformats.values.formula` describes, and computed in f32, or in f64 if a tensor is f64. A
    dimension of size 1 is repeated. A dimension of size ceil(n / g), where the result has n, is one
    of groups of g: g is the power of two for which this is so, else n divided by the size;
    ``d=cf.Grouped(desc, (1, 30))`` names other groups. The name of the result, on the right, stands
    for its old value. The padding of the result becomes zero. A tensor cannot have the name of
    another argument: self, text, engine, family, stream.

    ``m(stream, x=memory, y=memory, z=memory)`` enqueues it and returns an `Event`. ``m.plan`` and
    ``m.source`` are those of `clformats.Reorder`. Safe to call from several threads. Raises
    `InvalidExpression`, `InvalidDescriptor`, `Unsupported` and `DeviceError`.
    """

    _travels_as = "send its text and tensors, and make another by Map(text, **tensors) there"

    def __init__(
        self,
        text: str,
        engine: Engine | None = None,
        *,
        family: str | None = None,
        **tensors: MemoryDesc | str | Grouped,
    ) -> None:
        expect(engine, Engine | None, "engine")
        expect(family, str | None, "family")
        groups = {n: t.group for n, t in tensors.items() if isinstance(t, Grouped)}
        self._groups = groups
        descs = {
            name: as_desc(t.values if isinstance(t, Grouped) else t, name)
            for name, t in tensors.items()
        }
        for name, desc in descs.items():
            if desc.has_runtime:
                raise InvalidDescriptor(
                    f"{name} is {desc}, of sizes known at execution only: make a map for each shape"
                )
        self.text = text
        self.engine = engine or default_engine()
        self.target, formula = _read(text, descs)
        self.tensors = descs
        self.inputs = [name for name in formula.names if name != self.target]
        if not self.inputs:
            raise InvalidExpression(f"{text!r} reads no tensor but its own result: name one more")
        dst = descs[self.target]
        inputs = [(_variable(n), _repeated(n, descs[n], dst, groups.get(n))) for n in self.inputs]
        renamed = {n: Formula("name", _variable(n)) for n in self.inputs}
        if self.target in formula.names:
            renamed[self.target] = Formula("name", OLD)
        src, computation = over_tensors(formula.with_names(renamed), inputs, dst)
        self._moved = next(n for n in self.inputs if _variable(n) == computation.value)
        choices, traits = Choices(family=family), traits_of(self.engine)
        request = Request(src, dst, traits, computation, choices=choices)
        self._ready = Ready(*planned(request), self.engine)

    @property
    def plan(self) -> Plan:
        """The plan: the loops, the family of kernels, and why no better one."""
        return self._ready.plan

    @property
    def source(self) -> str:
        """The OpenCL C that runs; empty if there is nothing to do."""
        return self._ready.source

    def __call__(self, stream: AnyStream | None = None, **memories: AnyMemory) -> Event:
        """Enqueue it; the memory objects are given by the names of their variables.

        Raises `InvalidDescriptor` if one is missing, superfluous or has another descriptor,
        `MappedError` if one is mapped, `DeviceError` if OpenCL refuses.
        """
        own = as_stream(stream, self.engine)
        wanted = {*self.inputs, self.target}
        if set(memories) != wanted:
            raise InvalidDescriptor(
                f"got memories for {', '.join(sorted(memories)) or 'nothing'}, {self.text!r} needs "
                f"{', '.join(sorted(wanted))}"
            )
        given = {
            name: as_memory(memory, self.tensors[name], self.engine, name)
            for name, memory in memories.items()
        }
        names = sorted(self.inputs, key=lambda name: name != self._moved)
        uses = [(name, given[name], self.tensors[name]) for name in (*names, self.target)]
        values = {_variable(name): given[name] for name in self.inputs}
        event = self._ready.call(own, uses, values, self)
        let_arrays_wait(memories.values(), event)
        return event

    def __repr__(self) -> str:
        shown = (f"{n}={d}{f' in {grouping(g)}' if (g := self._groups.get(n)) else ''}"
                 for n, d in self.tensors.items())  # fmt: skip
        return f"Map({self.text!r}, {', '.join(shown)})"


def _read(text: object, tensors: dict[str, MemoryDesc]) -> tuple[str, Formula]:
    """The name of the result, and the formula."""
    found = _ASSIGNMENT.fullmatch(text) if isinstance(text, str) else None
    if found is None:
        raise InvalidExpression(f"got {text!r}, expected an assignment such as 'z = x + y'")
    target = found[1]
    formula = parse(found[2], tuple(tensors))
    if "stream" in tensors:
        raise InvalidExpression(f"{text!r}: stream names the stream of a call, rename the tensor")
    if target not in tensors:
        raise InvalidExpression(f"{text!r} assigns {target!r}: give its descriptor, {target}=...")
    unused = [name for name in tensors if name != target and name not in formula.names]
    if unused:
        raise InvalidExpression(f"{text!r} does not use {', '.join(unused)}: leave them out")
    return target, formula


def _variable(name: str) -> str:
    """The name in the kernel: no word of OpenCL C or of the kernel begins like it."""
    return f"in_{name}"


def _repeated(name: str, desc: MemoryDesc, dst: MemoryDesc, group: Group | None) -> MemoryDesc:
    """The operand with the dims of the result: its elements serve groups, or whole dimensions."""
    if desc.dims == dst.dims and group is None:
        return desc
    try:
        group = group or group_of(dst.dims, desc.dims)
        if group is None or {*group} <= {1, None}:
            return desc.broadcast_to(dst.dims)
        return for_groups(desc, dst.dims, group)
    except InvalidDescriptor as error:
        raise InvalidDescriptor(f"{name} does not fit the result: {error}") from error
