"""Kernels of the tile and rows families: vectors in registers, shuffled between load and store."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from math import prod

from ..formats.expr import Const, Expr, Var, total
from ..planner.plan import Plan
from ..planner.problem import Number
from ..planner.tile import Bit, TilePlan
from .source import Arguments, Launch, render
from .types import Conversion, conversion


@dataclass(frozen=True, slots=True)
class Loop:
    """A loop of the kernel: its variable counts ``count`` positions along a node."""

    variable: str
    count: str


@dataclass(frozen=True, slots=True)
class GuardText:
    """A guard in the kernel: its numbers, and how far each lane moves its index."""

    name: str
    base: str
    span: int
    lo: str
    hi: str
    end: str
    load_lane: str
    store_lane: str


def launch(plan: Plan, body: TilePlan) -> Launch:
    """The kernel and its arguments."""
    writer = _Writer(body)
    types = conversion(*plan.problem.dtypes)
    source = render("tile", **writer.values(types), wide=plan.problem.is_wide, types=types)
    values = tuple(writer.arguments.values.values())
    return Launch(source, values, plan.problem.is_wide, writer.items, 1)


class _Writer:
    """Turns a `TilePlan` into the texts that the template arranges."""

    def __init__(self, plan: TilePlan) -> None:
        self.plan = plan
        self.arguments = Arguments()
        nodes = plan.nodes
        self.sizes = [self._number(f"size{k}", n.size) for k, n in enumerate(nodes)]
        self.src = [self._number(f"src_stride{k}", n.src) for k, n in enumerate(nodes)]
        self.dst = [self._number(f"dst_stride{k}", n.dst) for k, n in enumerate(nodes)]
        self.arguments.values.update(src0=plan.problem.src0, dst0=plan.problem.dst0)
        counts = [plan.positions(k).value for k in plan.outer]
        middle = plan.positions(plan.middle).value if plan.middle is not None else 1
        self.items = prod(counts) * -(-middle // plan.chunk)
        if plan.middle is not None:
            self.arguments.values["chunk"] = plan.chunk

    def _number(self, name: str, number: Number) -> Expr:
        text = self.arguments.text(name, number)
        return Const(number.value) if number.fixed else Var(text)

    def values(self, types: Conversion) -> dict[str, object]:
        """Everything that ``tile.mako`` uses, beside the types."""
        plan = self.plan
        count = 1 << len(plan.registers)
        guards = self._guards()
        loads = self._offsets(plan.registers, self.src, count)
        stores = self._offsets(plan.store_registers, self.dst, count)
        return {
            "title": f"{plan.problem.src.format} -> {plan.problem.dst.format}: {plan}",
            "width": plan.lanes,
            "registers": count,
            "outer": [Loop(f"at{k}", str(self._positions(k))) for k in plan.outer],
            "middle": self._loop(plan.middle),
            "inner": self._loop(plan.inner),
            "starts": [(f"x{k}", str(self._start(k))) for k in range(len(plan.nodes))],
            "src_base": str(total([Var("src0"), *self._products(self.src)])),
            "dst_base": str(total([Var("dst0"), *self._products(self.dst)])),
            "loads": loads,
            "stores": stores,
            "load_lanes": self._lane_offsets(plan.load, self.src, vector=plan.load_is_vector),
            "store_lanes": self._lane_offsets(plan.store, self.dst, vector=plan.store_is_vector),
            "guards": guards,
            "load_guards": self._register_guards(plan.registers, count),
            "store_guards": self._register_guards(plan.store_registers, count),
            "steps": plan.steps,
            "nontemporal": plan.nontemporal and types.can_stream,
            "declarations": self.arguments.declarations,
        }  # fmt: skip

    def _positions(self, node: int) -> Expr:
        bits = self.plan.bits[node]
        size = self.sizes[node]
        return (size + ((1 << bits) - 1)) // (1 << bits)

    def _loop(self, node: int | None) -> Loop | None:
        return None if node is None else Loop(f"at{node}", str(self._positions(node)))

    def _start(self, node: int) -> Expr:
        """Where the tile starts along a node; the last tile of an unguarded one overlaps."""
        plan, bits = self.plan, self.plan.bits[node]
        if node not in (*plan.outer, plan.middle, plan.inner):
            return Const(0)
        start = Var(f"at{node}") * (1 << bits)
        size = plan.nodes[node].size
        divides = bits == 0 or (size.fixed and size.value % (1 << bits) == 0)
        if divides or plan.nodes[node].guard is not None:
            return start
        return Var(f"min({start}, {self.sizes[node] - (1 << bits)})")

    def _products(self, strides: Sequence[Expr]) -> list[Expr]:
        moving = (*self.plan.outer, self.plan.middle, self.plan.inner)
        return [Var(f"x{k}") * s for k, s in enumerate(strides) if k in moving]

    def _offsets(self, bits: Sequence[Bit], strides: Sequence[Expr], count: int) -> list[str]:
        """For each register how far its first lane is from the first lane of register 0."""
        result = []
        for r in range(count):
            steps: dict[int, int] = {}
            for j, b in enumerate(bits):
                if r >> j & 1:
                    steps[b.node] = steps.get(b.node, 0) + (1 << b.place)
            result.append(str(total([strides[k] * n for k, n in steps.items()])))
        return result

    def _lane_offsets(
        self, lanes: Sequence[Bit], strides: Sequence[Expr], *, vector: bool
    ) -> list[str] | None:
        """For each lane its distance from lane 0; None where the lanes are one vector."""
        return None if vector else self._offsets(lanes, strides, 1 << len(lanes))

    def _units(self, guard: int) -> Callable[[Bit], int]:
        def unit(bit: Bit) -> int:
            node = self.plan.nodes[bit.node]
            return node.unit << bit.place if node.guard == guard else 0

        return unit

    def _guards(self) -> list[GuardText]:
        result = []
        for g, guard in enumerate(self.plan.problem.guards):
            unit = self._units(g)
            members = [k for k, n in enumerate(self.plan.nodes) if n.guard == g]
            tile = {*self.plan.load, *self.plan.store}
            result.append(GuardText(
                name=f"g{g}",
                base=str(total([Var(f"x{k}") * self.plan.nodes[k].unit for k in members])),
                span=sum(unit(b) for b in tile),
                lo=str(self._number(f"lo{g}", guard.lo)),
                hi=str(self._number(f"hi{g}", guard.hi)),
                end=str(self._number(f"end{g}", guard.end)),
                load_lane=_lane_sum(self.plan.load, unit),
                store_lane=_lane_sum(self.plan.store, unit),
            ))  # fmt: skip
        return result

    def _register_guards(self, bits: Sequence[Bit], count: int) -> list[list[str]]:
        """For each register, by how much it moves each guarded index."""
        units = [self._units(g) for g in range(len(self.plan.problem.guards))]
        return [
            [str(sum(unit(b) for j, b in enumerate(bits) if r >> j & 1)) for unit in units]
            for r in range(count)
        ]


def _lane_sum(lanes: Sequence[Bit], unit: Callable[[Bit], int]) -> str:
    """How far lane ``l`` moves a guarded index, as an expression of ``l``; empty if not at all."""
    moves = [unit(b) for b in lanes]
    if not any(moves):
        return ""
    if moves == [moves[0] << j for j in range(len(moves))]:
        return str(Var("l") * moves[0])
    return " + ".join(f"(l >> {j} & 1) * {m}" for j, m in enumerate(moves) if m)
