"""What tiles at an edge of the tensor do differently: see `clformats.schedule.tile.Edge`.

A guard that the lanes of a vector do not move is one condition for the whole register: load it or
take zeros, store it or leave it. One that they do move is a mask over the lanes. Where everything
about a guard is part of the structure (3 channels in a block of 16) it is decided here, and the
kernel has neither.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from enum import Enum
from math import gcd

from ..formats.expr import Expr, Var, total
from ..schedule.lanes import Bit
from ..schedule.problem import Number
from ..schedule.tile import Edge, TilePlan
from .source import moved
from .types import Conversion


@dataclass(frozen=True, slots=True)
class GuardText:
    """A guard in the kernel.

    ``base`` is the index of the tile's first element; ``load_lanes`` and ``store_lanes`` are how
    far each lane moves it, the ``registers`` lists how far each register does. ``limits`` are lo,
    hi and end as numbers; ``static`` says that they and the base are constants. ``end`` and every
    base are multiples of ``whole``: what lies between two of these is stored all or not at all.
    """

    name: str
    base: str
    span: int
    lo: str
    hi: str
    end: str
    limits: tuple[int, int, int]
    static: bool
    whole: int
    edge: Edge
    load_lanes: tuple[int, ...]
    store_lanes: tuple[int, ...]
    load_registers: tuple[int, ...]
    store_registers: tuple[int, ...]

    def at(self, by: int) -> str:
        """The index ``by`` behind the tile's first element."""
        return str(int(self.base) + by) if self.static else moved(self.name, by)

    def is_element(self, at: str) -> str:
        """The condition that an index is an element's."""
        above = "" if self.lo == "0" else f"{at} >= {self.lo} && "
        return f"{above}{at} < {self.hi}"


class Load(Enum):
    """How a register of an edge tile is loaded: what is no element becomes zero.

    ``LANES``: those that are elements one by one; ``KEPT``: whole, then masked by constants;
    ``MASKED``: whole, then masked by where the tile lies; ``CHECKED``: so too, reading nothing
    beyond the source.
    """

    ZEROS = "zeros"
    WHOLE = "whole"
    LANES = "lanes"
    KEPT = "kept"
    MASKED = "masked"
    CHECKED = "checked"


class EdgeWriter:
    """The loads and stores of edge tiles, as texts.

    ``guards`` are those that ask for anything, ``zeroing`` those with zeros in place of what is
    loaded, ``masked`` those of them that need masks over its lanes, ``bounding`` those that bound
    what is computed in between, ``zeroed`` those of them that need masks over the lanes of stores;
    ``stored`` is what registers are called then. ``counted`` says whether a store needs to count
    its lanes; ``always`` that every tile is an edge tile, and decided here. ``strides`` are the
    arguments that lane offsets need.
    """

    def __init__(
        self,
        plan: TilePlan,
        moving: Sequence[int | None],
        number: Callable[[str, Number], Expr],
        strides: Sequence[str],
    ) -> None:
        self.plan = plan.gathered
        self.strides = strides
        self.stored = "w" if plan.problem.computation else "r"
        self.guards = [
            _guard_text(plan, g, moving, number)
            for g, edge in enumerate(plan.edges) if edge.zeroes or edge.spills
        ]  # fmt: skip
        self.zeroing = [g for g in self.guards if g.edge.zeroes]
        lanes = [g for g in self.zeroing if any(g.load_lanes)]
        self.masked = [] if all(g.static for g in lanes) else lanes
        # A computation makes something of zeros too: padding is masked where it is stored. What is
        # no part of the destination is not stored, but operands have no memory for it.
        reads = bool(plan.problem.operand_descs)
        self.bounding = [g for g in self.guards if g.edge.zeroes or reads]
        self.zeroed = [g for g in self.bounding if not g.static]
        self.counted = False
        self.always = bool(self.guards) and all(g.static for g in self.guards)

    def inside(self) -> str:
        """The condition that no lane of a tile needs a guard."""
        tests = []
        for g in self.guards:
            lower = "" if g.lo == "0" else f"{g.name} >= {g.lo} && "
            tests.append(f"{lower}{moved(g.name, g.span)} < {g.hi}")
        return " && ".join(tests)

    def _loaded(self, register: int) -> list[bool]:
        """Which lanes of a load are elements, as far as it is known here."""
        known = [g for g in self.zeroing if g.static and g not in self.masked]
        return _static_lanes(known, register, self.plan.lanes)

    def way(self, register: int) -> Load:
        """How a register is loaded, where no guard leaves it out as a whole."""
        keep = self._loaded(register)
        if not any(keep):
            return Load.ZEROS
        if self.masked:
            return Load.CHECKED if any(g.edge.reaches for g in self.masked) else Load.MASKED
        if all(keep):
            return Load.WHOLE
        reaches = any(g.edge.reaches for g in self.zeroing if any(g.load_lanes))
        return Load.LANES if reaches else Load.KEPT

    def load(
        self, register: int, whole: str, pieces: Sequence[str], types: Conversion, base: str
    ) -> str:
        """Register ``register`` of an edge tile; ``whole`` is its text where nothing is masked."""
        zeros, way = f"({types.work}{self.plan.lanes})(0)", self.way(register)
        if way is Load.ZEROS:
            return zeros
        if way in (Load.MASKED, Load.CHECKED):
            value = self._masked(way, register, whole, moved(base, pieces[0]), zeros)
        else:
            value = self._kept(way, self._loaded(register), whole, pieces, types)
        conditions = [
            g.is_element(g.at(g.load_registers[register]))
            for g in self.zeroing
            if not g.static and not any(g.load_lanes)
        ]
        return f"{' && '.join(conditions)} ? {value} : {zeros}" if conditions else value

    def _masked(self, way: Load, register: int, whole: str, offset: str, zeros: str) -> str:
        """A load whose lanes are chosen by where the tile lies."""
        places = [g.at(g.load_registers[register]) for g in self.masked]
        numbers = [*places, *mask_numbers(self.masked)]
        if way is Load.MASKED:
            return f"KEEP({whole}, elements({', '.join(numbers)}))"
        value = f"load_edge({', '.join(['src', offset, 'src_end', *numbers, *self.strides])})"
        # Nothing is read of a block without elements behind the first one: fsv16 to fsv32 with 72
        # channels 1.2 of a copy instead of 0.9.
        inside = [
            f"{place} < {g.hi}"
            for g, place in zip(self.masked, places, strict=True)
            if g.load_registers[register]
        ]
        return f"({' && '.join(inside)} ? {value} : {zeros})" if inside else value

    def _kept(
        self,
        way: Load,
        keep: Sequence[bool],
        whole: str,
        pieces: Sequence[str],
        types: Conversion,
    ) -> str:
        """A load of which the lanes to keep are known here."""
        if way is Load.WHOLE:
            return whole
        lanes = str(self.plan.lanes)
        if way is Load.LANES:
            return f"({types.work}{lanes})({', '.join(self._some(keep, pieces, types))})"
        mask = ", ".join("-1" if k else "0" for k in keep)
        return f"KEEP({whole}, ({types.mask}{lanes})({mask}))"

    def kept(self, register: int) -> list[bool]:
        """Which lanes of a store are elements, as far as it is known here."""
        known = [g for g in self.bounding if g.static]
        return _static_lanes(known, register, self.plan.lanes, stored=True)

    def written(self, register: int) -> str:
        """The mask of the lanes of a store that are elements; empty where `kept` says it all."""
        if not self.zeroed:
            return ""
        places = [g.at(g.store_registers[register]) for g in self.zeroed]
        return f"written({', '.join([*places, *mask_numbers(self.zeroed)])})"

    def _some(self, keep: Sequence[bool], pieces: Sequence[str], types: Conversion) -> list[str]:
        """The lanes of a vector of which only some may be read."""
        piece = self.plan.load_piece
        values = []
        for first, offset in zip(range(0, self.plan.lanes, piece), pieces, strict=True):
            if all(keep[first : first + piece]):
                values.append(types.load(moved("from", offset), piece))
                continue
            for lane in range(piece):
                at = moved("from", offset) if lane == 0 else f"{moved('from', offset)} + {lane}"
                values.append(types.load(at, 1) if keep[first + lane] else "0")
        return values

    def store(
        self, line: Sequence[int], pieces: Sequence[Sequence[str]], types: Conversion
    ) -> list[str]:
        """The statements that store the registers of a line of an edge tile.

        What is put together has one condition for all registers of a lane: with one for each of 240
        elements compilers take 8 seconds, and up to minutes with two guards.
        """
        guards = [g for g in self.guards if g.edge.spills]
        stores = [
            one
            for register in line
            for k, offset in enumerate(pieces[register])
            if (one := self._store_piece(guards, register, k, offset, types))
        ]
        if not self.plan.interleaves[1]:
            return [_where(*one) for one in stores]
        of_lanes: dict[str, list[str]] = {}
        for condition, text in stores:
            of_lanes.setdefault(condition, []).append(text)
        return [_where(condition, " ".join(texts)) for condition, texts in of_lanes.items()]

    def _store_piece(
        self, guards: Sequence[GuardText], register: int, k: int, offset: str, types: Conversion
    ) -> tuple[str, str] | None:
        """The condition under which a piece is stored, and the statement; None if it never is."""
        width = self.plan.store_piece
        lanes = range(k * width, k * width + width)
        part, to = (
            lane_part(f"{self.stored}{register}", self.plan.lanes, lanes),
            moved("to", offset),
        )
        conditions, count = [], ""
        for g in guards:
            places = [g.store_registers[register] + g.store_lanes[lane] for lane in lanes]
            groups = {p // g.whole for p in places}
            if g.static and int(g.base) + places[0] >= g.limits[2]:
                return None
            if len(groups) > 1 and places != list(range(places[0], places[0] + width)):
                return "", self._store_lanes(guards, register, lanes, offset, types)
            if len(groups) > 1:
                count = f"{g.end} - ({g.at(places[0])})"
            elif not g.static:
                conditions.append(f"{g.at(places[0])} < {g.end}")
        # Where all is edge, as in 3 channels of a block of 16, this is 1.3 of a copy, not 0.7.
        if self.plan.nontemporal:
            text = types.store_nontemporal(part, to, width, self.plan.streamed_piece) + ";"
        else:
            text = types.store(part, to, width) + ";"
        if count:
            self.counted = True
            text = f"store_part({part}, {to}, {count});"
        return " && ".join(conditions), text

    def _store_lanes(
        self,
        guards: Sequence[GuardText],
        register: int,
        lanes: Sequence[int],
        offset: str,
        types: Conversion,
    ) -> str:
        """Lane by lane, where those that exist are not the first ones."""
        texts = []
        for lane in lanes:
            tests = [
                f"{g.at(g.store_registers[register] + g.store_lanes[lane])} < {g.end}"
                for g in guards
            ]
            to = moved(moved("to", offset), lane - lanes[0])
            part = lane_part(f"{self.stored}{register}", self.plan.lanes, (lane,))
            texts.append(f"if ({' && '.join(tests)}) {{ {types.store(part, to, 1)}; }}")
        return "\n".join(texts)


def _where(condition: str, statement: str) -> str:
    """The statement under a condition; empty stands for always."""
    return f"if ({condition}) {{ {statement} }}" if condition else statement


def lane_part(name: str, count: int, lanes: Sequence[int]) -> str:
    """Some neighbouring lanes of a register of ``count`` lanes."""
    return name if len(lanes) == count else f"{name}.s" + "".join(f"{lane:x}" for lane in lanes)


def _static_lanes(
    guards: Sequence[GuardText], register: int, count: int, *, stored: bool = False
) -> list[bool]:
    """Which lanes of a load or a store are elements by guards that are constants."""
    keep = [True] * count
    for g in guards:
        lo, hi, _ = g.limits
        first = int(g.base) + (g.store_registers if stored else g.load_registers)[register]
        lanes = g.store_lanes if stored else g.load_lanes
        keep = [k and lo <= first + m < hi for k, m in zip(keep, lanes, strict=True)]
    return keep


def mask_numbers(guards: Sequence[GuardText]) -> list[str]:
    """The limits of guards that are arguments of the kernel."""
    return [n for g in guards for n in (g.lo, g.hi) if not n.isdigit()]


def _guard_text(
    plan: TilePlan, g: int, moving: Sequence[int | None], number: Callable[[str, Number], Expr]
) -> GuardText:
    guard = plan.problem.guards[g]

    def units(bits: Sequence[Bit]) -> tuple[int, ...]:
        moves = [
            plan.nodes[b.node].unit << b.place if plan.nodes[b.node].guard == g else 0 for b in bits
        ]
        return tuple(
            sum(m for j, m in enumerate(moves) if n >> j & 1) for n in range(1 << len(bits))
        )

    numbers = (guard.lo, guard.hi, guard.end)
    members = [k for k, n in enumerate(plan.nodes) if n.guard == g and k in moving]
    named = zip(("lo", "hi", "end"), numbers, (True, True, plan.edges[g].spills), strict=True)
    lo, hi, end = (str(number(f"{name}{g}", n)) if used else "" for name, n, used in named)
    # What is taken apart has registers for each step of the short loop, which is not guarded.
    times = plan.register_count >> len(plan.registers)
    whole = guard.block if guard.end.value % guard.block == 0 else 1
    load, registers = units(plan.load), units(plan.registers) * times
    return GuardText(
        name=f"g{g}",
        base=str(total([Var(f"x{k}") * plan.nodes[k].unit for k in members])),
        span=max(load) + max(registers),
        lo=lo,
        hi=hi,
        end=end,
        limits=(guard.lo.value, guard.hi.value, guard.end.value),
        static=not members and all(n.fixed for n in numbers),
        whole=gcd(whole, *(plan.steps_along(k) * plan.nodes[k].unit for k in members)),
        edge=plan.edges[g],
        load_lanes=load,
        store_lanes=units(plan.store),
        load_registers=registers,
        store_registers=units(plan.store_registers) * times,
    )
