"""One arena for a network: what lies where, and when it may be overwritten.

A buffer is a value in one format: as it is written, or as a reorder makes it. Views share their
owner's buffer: the parts of a concatenation lie in the result's. A buffer is alive from the step
that first writes into it to the last step that reads it. `clformats.recording.arena` places them.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

from ..recording.arena import Piece, lower_bound, placed
from ..tensors.desc import MemoryDesc
from .decision import Decision, PlannedReorder
from .graph import Node
from .named import FormatName, Key, named
from .views import inside, kind_of

Place = tuple[str, str]
"""A value and one name of a format of it."""


@dataclass(slots=True)
class ArenaBuffer(Piece):
    """A piece of the arena, and the values in it."""

    holds: list[Place] = field(default_factory=list)


@dataclass(frozen=True, slots=True)
class MemoryPlan:
    """Offsets in one arena.

    ``offsets`` has for each value and format the byte at which its buffer begins, ``views`` the
    descriptor of what lies inside another value's buffer: ``offset0`` says where.
    ``lower_bound`` is the most that is alive at once; ``steps`` are nodes and reorders in order.
    """

    nbytes: int
    lower_bound: int
    offsets: Mapping[Place, int]
    views: Mapping[Place, MemoryDesc]
    buffers: Sequence[ArenaBuffer]
    steps: Sequence[Node | PlannedReorder]

    def __repr__(self) -> str:
        return f"MemoryPlan({self.nbytes} bytes, {len(self.buffers)} buffers)"

    def __str__(self) -> str:
        separate = sum(b.nbytes for b in self.buffers)
        return (
            f"arena of {self.nbytes} bytes, at least {self.lower_bound} are alive at once; "
            f"{len(self.buffers)} buffers, {separate} bytes without sharing"
        )


def plan_memory(plan: Decision) -> MemoryPlan:
    """The arena of a plan. Inputs of the network lie in it; constants do not."""
    return _Arena(plan).run()


def steps_of(plan: Decision) -> list[Node | PlannedReorder]:
    """Nodes and reorders in the order in which they run: each reorder right before its reader."""
    nodes = plan.built.order
    number, end = {node.name: k for k, node in enumerate(nodes)}, len(nodes)
    first: dict[tuple[str, Key], int] = {}  # before which node a format of a value is reordered
    before: list[list[PlannedReorder]] = [[] for _ in range(end + 1)]
    for r in reversed(plan.reorders):  # what starts from a result of another comes after it
        result, source = (r.value, r.dst.key), (r.value, r.src.key)
        at = min([first.get(result, end), *(number.get(name, end) for name in r.readers)])
        first[source] = min(at, first.get(source, end))
        before[at].insert(0, r)
    found: list[Node | PlannedReorder] = []
    for node, reorders in zip(nodes, before, strict=False):
        names = [v.name for v in node.inputs]
        found += [*sorted(reorders, key=lambda r: names.index(r.value)), node]
    return found + before[end]


class _Arena:
    def __init__(self, plan: Decision) -> None:
        self.plan = plan
        self.steps = steps_of(plan)
        self.owner: dict[tuple[str, Key], tuple[tuple[str, Key], Node, int, int]] = {}
        self.names: dict[tuple[str, Key], FormatName] = {}
        self.buffers: dict[tuple[str, Key], ArenaBuffer] = {}

    def run(self) -> MemoryPlan:
        self._owners()
        end = len(self.steps)
        for name in (v.name for v in self.plan.network.inputs):
            self._touch(name, self.plan.formats[name], -1)
        for number, step in enumerate(self.steps):
            if isinstance(step, Node):
                self._node(step, number)
            else:
                self._touch(step.value, step.src, number)
                self._touch(step.value, step.dst, number)
        for value in self.plan.delivered:
            fmt = self.plan.network.fixed.get(value.name) or self.plan.formats[value.name]
            self._touch(value.name, fmt, end)
        buffers = list(self.buffers.values())
        nbytes = placed(buffers)
        offsets = {p: b.offset for b in buffers for p in b.holds}
        views: dict[Place, MemoryDesc] = {
            (p[0], self.names[p]): d for p in self.owner if (d := self._desc(p)) is not None
        }
        return MemoryPlan(nbytes, lower_bound(buffers), offsets, views, buffers, self.steps)

    def _place(self, value: str, fmt: FormatName) -> tuple[str, Key]:
        place = value, fmt.key
        self.names.setdefault(place, fmt)
        return place

    def _owners(self) -> None:
        """Who owns the memory of what is a view."""
        for node in self.plan.built.order:
            choice = self.plan.choices[node.name]
            for i, o in choice.shared:
                inside = self._place(node.inputs[i].name, named(choice.ins[i]))
                whole = self._place(node.outputs[o].name, choice.outs[o])
                if kind_of(node.op) != "part":
                    inside, whole = whole, inside
                # What a part was written over lies in the whole with it.
                self.owner[self._root(inside)] = (whole, node, i, o)

    def _root(self, place: tuple[str, Key]) -> tuple[str, Key]:
        while (found := self.owner.get(place)) is not None:
            place = found[0]
        return place

    def _node(self, node: Node, number: int) -> None:
        choice = self.plan.choices[node.name]
        for value, fmt in zip(node.inputs, choice.ins, strict=True):
            if not value.is_constant:
                self._touch(value.name, fmt or self.plan.formats[value.name], number)
        for value, fmt in zip(node.outputs, choice.outs, strict=True):
            self._touch(value.name, fmt, number)
        if choice.workspace:
            place = (node.name, "(workspace)")
            self.buffers[place] = ArenaBuffer(choice.workspace, number, number, holds=[place])

    def _touch(self, value: str, fmt: FormatName, number: int) -> None:
        place = self._place(value, fmt)
        root = self._root(place)
        if root not in self.buffers:
            whole = self.plan.network.values[root[0]]
            self.buffers[root] = ArenaBuffer(whole.nbytes(self.names[root]), number, number)
        buffer = self.buffers[root]
        buffer.last = max(buffer.last, number)
        name = (value, self.names[place])
        if name not in buffer.holds:
            buffer.holds.append(name)

    def _desc(self, place: tuple[str, Key]) -> MemoryDesc | None:
        """The descriptor of a place inside its owner's buffer."""
        step = self.owner.get(place)
        if isinstance(place[1], str):  # opaque
            return None
        if step is None:
            return self.plan.network.values[place[0]].desc(self.names[place])
        whole, node, i, o = step
        outer = self._desc(whole)
        return None if outer is None else inside(node, outer, i, o)
