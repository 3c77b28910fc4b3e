"""The operands of a computation in a tile: read in the order in which the tile is stored.

Inside the tensor the lanes of a store lie in an operand as they do: side by side, all in one place,
or apart. At an edge some lanes are padding, for which an operand may have no memory: there each
lane is read by itself, from a place held inside the operand, and what comes of it is masked.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

from ..formats.expr import Expr, Var, total
from ..planner.computation import Operand
from ..planner.problem import Number
from ..planner.tile import TilePlan, lane_run
from .computation import Computed
from .edges import EdgeWriter
from .source import Arguments, moved


@dataclass(frozen=True, slots=True)
class TileOperand:
    """An operand in a tile.

    ``at`` is the offset of the tile's first element, ``registers`` and ``lanes`` how far the
    registers and the lanes of a store are from there. The lowest ``piece`` lanes lie side by side,
    or the lowest ``same`` lanes in one place. ``strides`` are the arguments that ``lanes`` need.
    """

    operand: Operand
    at: str
    base: str
    registers: tuple[str, ...]
    lanes: tuple[str, ...]
    piece: int
    same: int
    strides: tuple[str, ...]

    @property
    def name(self) -> str:
        """Its variable in the formula."""
        return self.operand.name

    @property
    def last(self) -> str:
        """The argument that holds the offset of its last element."""
        return f"{self.name}_last"


def tile_operands(
    plan: TilePlan,
    moving: Sequence[int | None],
    number: Callable[[str, Number], Expr],
    offsets: Callable[[Sequence[Expr]], tuple[list[str], list[str]]],
) -> list[TileOperand]:
    """The operands of a plan; ``offsets`` gives those of the registers and of the lanes."""
    computation = plan.problem.computation
    result = []
    for j, operand in enumerate(computation.operands if computation else ()):
        name = operand.name
        strides = [number(f"{name}_stride{k}", n.operands[j]) for k, n in enumerate(plan.nodes)]
        products = [Var(f"x{k}") * s for k, s in enumerate(strides) if k in moving]
        registers, lanes = offsets(strides)
        words = {word for text in lanes for word in text.split()}
        named = [s for s in map(str, strides) if s in words and not s.isdigit()]
        steps = [n.operands[j].value for n in plan.nodes]
        result.append(
            TileOperand(
                operand, f"{name}_at", str(total([Var(f"{name}0"), *products])), tuple(registers),
                tuple(lanes), lane_run(steps, plan.store, 1), lane_run(steps, plan.store, 0),
                tuple(dict.fromkeys(named)),
            )
        )  # fmt: skip
    return result


class ComputedWriter:
    """What is stored from each register, as texts."""

    def __init__(
        self, plan: TilePlan, types: Computed, operands: Sequence[TileOperand], edges: EdgeWriter
    ) -> None:
        self.plan = plan
        self.types = types
        self.operands = operands
        self.edges = edges
        self.gathered: list[TileOperand] = []

    def add_arguments(self, arguments: Arguments) -> None:
        """The starts and ends of the operands, for the kernel's parameters."""
        for o, start in zip(self.operands, self.plan.problem.operands0, strict=True):
            arguments.values[f"{o.name}0"] = start
            span = o.operand.desc.span_nbytes // o.operand.desc.dtype.nbytes
            arguments.values[o.last] = span - 1

    def whole(self, register: int) -> str:
        """Of a register whose lanes are all elements."""
        texts = [self._whole(o, register) for o in self.operands]
        return self.types.call(f"r{register}", texts, self.plan.lanes)

    def edge(self, register: int) -> str:
        """Of a register of an edge tile: zero where no element is."""
        keep, mask = self.edges.kept(register), self.edges.written(register)
        zero = f"({self.types.dst}{self.plan.lanes})(0)"
        if not any(keep):
            return zero
        if all(keep) and not mask:
            return self.whole(register)
        texts = [self._gathered(o, register, keep, mask) for o in self.operands]
        value = self.types.call(f"r{register}", texts, self.plan.lanes)
        masks = [mask] if mask else []
        if not all(keep):
            constants = ", ".join("-1" if k else "0" for k in keep)
            masks.append(f"({self.types.stored_mask}{self.plan.lanes})({constants})")
        return f"KEEP_STORED({value}, {' & '.join(masks)})"

    def _whole(self, o: TileOperand, register: int) -> str:
        at, lanes = moved(o.at, o.registers[register]), self.plan.lanes
        if o.same == lanes:
            return self.types.spread(self.types.load_operand(o.operand, at, 1), lanes)
        parts = []
        for lane in range(0, lanes, max(o.piece, o.same)):
            value = self.types.load_operand(o.operand, moved(at, o.lanes[lane]), o.piece)
            parts.append(self.types.spread(value, o.same) if o.same > 1 else value)
        return self._joined(parts)

    def _gathered(self, o: TileOperand, register: int, keep: Sequence[bool], mask: str) -> str:
        """An operand where some lanes are no element."""
        at = moved(o.at, o.registers[register])
        if not mask:
            # Which lanes are elements is known: only those are read.
            if o.same == self.plan.lanes:
                return self._whole(o, register)
            loads = [
                self.types.load_operand(o.operand, moved(at, lane), 1) if k else "0"
                for k, lane in zip(keep, o.lanes, strict=True)
            ]
            return self._joined(loads)
        if o.same == self.plan.lanes:
            inside = f"clamp({at}, (idx)0, {o.last})"
            return self.types.spread(self.types.load_operand(o.operand, inside, 1), self.plan.lanes)
        if o not in self.gathered:
            self.gathered.append(o)
        pointer = self.types.pointer(o.operand)
        return f"edge_{o.name}({', '.join([pointer, at, o.last, *o.strides])})"

    def _joined(self, parts: Sequence[str]) -> str:
        if len(parts) == 1:
            return parts[0]
        return f"({self.types.real}{self.plan.lanes})({', '.join(parts)})"
