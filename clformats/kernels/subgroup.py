"""Kernels for sub-groups: block reads, exchanges between lanes, block writes."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import product

from ..formats.expr import Const, Expr, Var, total
from ..schedule.plan import Plan
from ..schedule.subgroup import LANES, READ_BYTES, WRITE_BYTES, Access, Bit, SubgroupPlan
from ..templates import render
from ..tensors.dtypes import DType
from .source import Arguments, Launch, moved, starts
from .types import Conversion, conversion

_SUFFIX = {1: "_uc", 2: "_us", 4: "", 8: "_ul"}
"""How the block functions for elements of so many bytes are called."""


@dataclass(frozen=True, slots=True)
class Rows:
    """The registers that one block function fills or stores, from ``at`` on."""

    registers: tuple[int, ...]
    at: str


@dataclass(frozen=True, slots=True)
class SideText:
    """One side of a tile in the kernel.

    ``bits`` is the type of the elements as bits, ``function`` the end of the block functions' name.
    ``whole`` is the condition for taking the tile in blocks. ``steps`` are variables: how far a
    lane is into the tile along each loop. For each register ``tests`` says which lanes have an
    element, ``places`` where it lies.
    """

    bits: str
    function: str
    whole: str
    rows: list[Rows]
    steps: list[tuple[str, str]]
    tests: list[str]
    places: list[str]


def launch(plan: Plan, body: SubgroupPlan) -> Launch:
    """The kernel and its arguments."""
    types = conversion(*plan.problem.dtypes)
    writer = _Writer(body, types)
    source = render("subgroup", **writer.values(), wide=plan.problem.is_wide, types=types)
    given = writer.arguments.given
    return Launch(source, given, plan.problem.is_wide, body.tiles * LANES, LANES)


class _Writer:
    """Turns a `SubgroupPlan` into the texts that the template arranges.

    Along loop k the tile starts at ``x<k>``; guard g is at ``g<g>`` there.
    """

    def __init__(self, plan: SubgroupPlan, types: Conversion) -> None:
        self.plan = plan
        self.types = types
        self.arguments = Arguments()
        self._number = self.arguments.expression
        self.loops = range(len(plan.nodes))
        self.sizes = [self._number(f"size{k}", n.size) for k, n in enumerate(plan.nodes)]
        self.src = [self._number(f"src_stride{k}", n.src) for k, n in enumerate(plan.nodes)]
        self.dst = [self._number(f"dst_stride{k}", n.dst) for k, n in enumerate(plan.nodes)]
        self.arguments.values.update(src0=plan.problem.src0, dst0=plan.problem.dst0)
        self.moving = [k for k, n in enumerate(plan.nodes)
                       if not (n.size.fixed and n.size.value == 1 << plan.bits[k])]  # fmt: skip

    def values(self) -> dict[str, object]:
        """Everything that ``subgroup.mako`` uses, beside the types."""
        plan, p = self.plan, self.plan.problem
        read = self._side("r", plan.read, self.src, p.dtypes[0])
        write = self._side("w", plan.write, self.dst, p.dtypes[1])
        exchanges = [
            (f"v{r}", f"v{r | 1 << e.register}", 1 << e.lane)
            for e in plan.exchanges
            for r in range(1 << len(plan.read.registers)) if not r >> e.register & 1
        ]  # fmt: skip
        return {
            "title": f"{p.src.format} -> {p.dst.format}: {plan.structure}",
            "lanes": LANES,
            "starts": starts([(k, self.sizes[k], 1 << plan.bits[k]) for k in self.moving]),
            "guards": [(f"g{g}", str(self._sum(self._units(g)))) for g in range(len(p.guards))],
            "src_base": str(Var("src0") + self._sum(self.src)),
            "dst_base": str(Var("dst0") + self._sum(self.dst)),
            "read": read,
            "write": write,
            "registers": range(1 << len(plan.read.registers)),
            "exchanges": exchanges,
            "source_lane": str(self._source_lane()) if plan.order else "",
            "declarations": self.arguments.declarations,
        }

    def _sum(self, factors: Sequence[Expr]) -> Expr:
        """The sum over the loops of where the tile starts."""
        return total([Var(f"x{k}") * factors[k] for k in self.moving])

    def _units(self, guard: int) -> list[Expr]:
        return [Const(n.unit if n.guard == guard else 0) for n in self.plan.nodes]

    def _source_lane(self) -> Expr:
        """The lane from which a lane takes its values, once the right bits are in the lanes."""
        lane = Var("lane")
        return total([lane // (1 << j) % 2 * (1 << k) for j, k in enumerate(self.plan.order)])

    def _side(self, letter: str, access: Access, strides: Sequence[Expr], dtype: DType) -> SideText:
        written = letter == "w"
        registers = range(1 << len(access.registers))
        steps = _steps(access.lanes)
        return SideText(
            conversion(dtype, dtype).src,
            _SUFFIX[dtype.nbytes],
            " && ".join(self._whole(dtype, written=written)),
            self._rows(access, strides),
            [(f"{letter}{k}", str(text)) for k, text in steps.items()],
            [" && ".join(self._tests(letter, access, r, written=written)) for r in registers],
            [moved("lane", _row(access, r, strides)) for r in registers],
        )

    def _whole(self, dtype: DType, *, written: bool) -> list[str]:
        """The conditions for all of a tile to exist in memory, at an address that blocks take."""
        plan, name = self.plan, "dst" if written else "src"
        least = WRITE_BYTES if written else READ_BYTES
        tests = []
        if least > dtype.nbytes:
            tests.append(f"((uintptr_t){name} & {least - 1}) == 0")
        last: dict[int, Expr] = {k: Const((1 << b) - 1) for k, b in enumerate(plan.bits) if b}
        first: dict[int, Expr] = {}
        for at, limits in ((first, "lo"), (last, "hi")):
            tests += self._limits(at, limits, written=written)
        return tests

    def _tests(self, letter: str, access: Access, register: int, *, written: bool) -> list[str]:
        """The conditions for what a lane has in a register to be an element."""
        at: dict[int, Expr] = {k: Var(f"{letter}{k}") for k in _steps(access.lanes)}
        for k, steps in _register(access, register).items():
            at[k] = at.get(k, Const(0)) + steps
        return self._limits(at, "lo", written=written) + self._limits(at, "hi", written=written)

    def _limits(self, at: dict[int, Expr], which: str, *, written: bool) -> list[str]:
        """The lower or upper limits for an element that is so far into the tile.

        What is read must be an element, what is ``written`` may be padding.
        """
        plan = self.plan
        tests = []
        if which == "hi":
            for k in self.moving:
                size, bits = plan.nodes[k].size, plan.bits[k]
                if bits and not (size.fixed and size.value % (1 << bits) == 0):
                    tests.append(f"{Var(f'x{k}') + at.get(k, Const(0))} < {self.sizes[k]}")
        for g, guard in enumerate(plan.problem.guards):
            units = self._units(g)
            index = Var(f"g{g}") + total([units[k] * step for k, step in at.items()])
            cover = 1 + sum((n.size.value - 1) * n.unit for n in plan.nodes if n.guard == g)
            name, limit = ("end", guard.end) if written else ("hi", guard.hi)
            if which == "hi" and limit.value < cover:
                tests.append(f"{index} < {self._number(f'{name}{g}', limit)}")
            if which == "lo" and guard.lo.value > 0 and not written:
                tests.append(f"{index} >= {self._number(f'lo{g}', guard.lo)}")
        return tests

    def _rows(self, access: Access, strides: Sequence[Expr]) -> list[Rows]:
        """The registers in blocks, each from its first row on."""
        inside = sum(1 << j for j in access.block)
        firsts = (r for r in range(1 << len(access.registers)) if not r & inside)
        parts = [sum(j) for j in product(*((0, 1 << j) for j in reversed(access.block)))]
        return [Rows(tuple(r | part for part in parts), _row(access, r, strides)) for r in firsts]


def _steps(lanes: Sequence[Bit]) -> dict[int, Expr]:
    """How far a lane is into the tile along each loop; a run of bits is one number."""
    steps: dict[int, Expr] = {}
    j = 0
    while j < len(lanes):
        n = 1
        while j + n < len(lanes) and lanes[j + n] == Bit(lanes[j].node, lanes[j].place + n):
            n += 1
        part = Var("lane") // (1 << j)
        part = part if j + n == len(lanes) else part % (1 << n)
        steps[lanes[j].node] = steps.get(lanes[j].node, Const(0)) + part * (1 << lanes[j].place)
        j += n
    return steps


def _register(access: Access, register: int) -> dict[int, int]:
    """How far a register is into the tile along each loop."""
    steps: dict[int, int] = {}
    for j, bit in enumerate(access.registers):
        if register >> j & 1:
            steps[bit.node] = steps.get(bit.node, 0) + (1 << bit.place)
    return steps


def _row(access: Access, register: int, strides: Sequence[Expr]) -> str:
    """How far the row of a register is from the tile's first."""
    return str(total([strides[k] * n for k, n in _register(access, register).items()]))
