"""The operands of a computation in a tile: read in the order in which the tile is stored.

Inside the tensor the lanes of a store lie in an operand as they do: side by side, all in one place,
or apart. At an edge some lanes are padding, for which an operand may have no memory: there each
lane is read by itself, from a place held inside the operand, and what comes of it is masked.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

from ..formats.expr import Const, Expr, Var, total
from ..schedule.computation import Operand
from ..schedule.lanes import lane_run
from ..schedule.problem import Number
from ..schedule.tile import TilePlan
from .computation import Computed
from .edges import EdgeWriter
from .source import Arguments, moved


@dataclass(frozen=True, slots=True)
class TileOperand:
    """An operand in a tile.

    ``at`` is the offset of the tile's first element, ``base`` its text, ``offsets[r][l]`` how far
    lane l of register r of the stores is from there. The lowest ``piece`` lanes lie side by side,
    or the lowest ``same`` lanes in one place. ``strides`` are the arguments that the offsets need.
    """

    operand: Operand
    at: str
    base: str
    offsets: tuple[tuple[str, ...], ...]
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
    offsets: Callable[[Sequence[Expr]], list[list[str]]],
) -> list[TileOperand]:
    """The operands of a plan; ``offsets`` gives those of each register's lanes for strides."""
    moved = _lane_nodes(plan)
    computation = plan.problem.computation
    result = []
    for j, operand in enumerate(computation.operands if computation else ()):
        name = operand.name
        strides = [number(f"{name}_stride{k}", n.operands[j]) for k, n in enumerate(plan.nodes)]
        products = [Var(f"x{k}") * s for k, s in enumerate(strides) if k in moving]
        places = offsets(strides)
        named = [str(s) for k, s in enumerate(strides) if k in moved and not isinstance(s, Const)]
        steps = [n.operands[j].value for n in plan.nodes]
        woven = plan.comb is not None and plan.comb.is_woven
        piece, same = (1 if woven else lane_run(steps, plan.store, step) for step in (1, 0))
        result.append(
            TileOperand(
                operand, f"{name}_at", str(total([Var(f"{name}0"), *products])),
                tuple(map(tuple, places)), piece, same, tuple(named),
            )
        )  # fmt: skip
    return result


def _lane_nodes(plan: TilePlan) -> set[int]:
    """The loops along which the lanes of a store lie."""
    if plan.comb is None or not plan.comb.is_woven:
        return {bit.node for bit in plan.store}
    along = [plan.store[0].node] if plan.lanes > plan.comb.size else []
    return {plan.comb.node, *along}


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

    def is_masked(self, register: int) -> bool:
        """Whether some lanes of a register of an edge tile are elements, and some may be none."""
        keep = self.edges.kept(register)
        return any(keep) and (bool(self.edges.zeroed) or not all(keep))

    def edge(self, register: int) -> str:
        """Of a register of an edge tile: zero where no element is."""
        keep, mask = self.edges.kept(register), self.edges.written(register)
        zero = f"({self.types.dst}{self.plan.lanes})(0)"
        if not any(keep):
            return zero
        if not self.is_masked(register):
            return self.whole(register)
        texts = [self._gathered(o, register, keep, mask) for o in self.operands]
        value = self.types.call(f"r{register}", texts, self.plan.lanes)
        masks = [mask] if mask else []
        if not all(keep):
            constants = ", ".join("-1" if k else "0" for k in keep)
            masks.append(f"({self.types.stored_mask}{self.plan.lanes})({constants})")
        return f"KEEP_STORED({value}, {' & '.join(masks)})"

    def _whole(self, o: TileOperand, register: int) -> str:
        places, lanes = o.offsets[register], self.plan.lanes
        if o.same == lanes:
            at = moved(o.at, places[0])
            return self.types.spread(self.types.load_operand(o.operand, at, 1), lanes)
        parts = []
        for lane in range(0, lanes, max(o.piece, o.same)):
            value = self.types.load_operand(o.operand, moved(o.at, places[lane]), o.piece)
            parts.append(self.types.spread(value, o.same) if o.same > 1 else value)
        return self._joined(parts)

    def _gathered(self, o: TileOperand, register: int, keep: Sequence[bool], mask: str) -> str:
        """An operand where some lanes are no element."""
        places = o.offsets[register]
        at = moved(o.at, places[0])
        if not mask:
            # Which lanes are elements is known: only those are read.
            if o.same == self.plan.lanes:
                return self._whole(o, register)
            loads = [
                self.types.load_operand(o.operand, moved(o.at, place), 1) if k else "0"
                for k, place in zip(keep, places, strict=True)
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
