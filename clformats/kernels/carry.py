"""Lines that tiles end for each other: the texts for a walk that carries them on.

Where rows of the destination start anywhere, the lines of memory do not begin where tiles do. A
work-item that goes along its rows keeps what the tile before has left of each line, in a register,
puts it before the line of this tile, and writes the line of memory that lies across the two.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from ..planner.tile import TilePlan
from ..planner.traits import LINE_BYTES
from .source import moved
from .types import Conversion

DWORDS = LINE_BYTES // 4


@dataclass(frozen=True, slots=True)
class CarriedLine:
    """One of a tile's rows: the line that it adds, as sixteen ``uint``, and where that belongs.

    ``register`` is the first of those that make it.
    """

    number: int
    register: int
    value: str
    at: str

    @property
    def begun(self) -> list[str]:
        """The statements of the first tile, which has nothing before it."""
        k = self.number
        return [f"c{k} = {self.value}", f"store_line(c{k}, {self.at})"]

    @property
    def ended(self) -> list[str]:
        """The statements of the tiles behind it."""
        k = self.number
        return [
            f"const uint16 l{k} = {self.value}",
            f"END_LINE(c{k}, l{k}, {self.at}, {k})",
            f"c{k} = l{k}",
        ]


@dataclass(frozen=True, slots=True)
class Carry:
    """What ``tile.mako`` needs to carry lines along a loop.

    ``whole``: how many tiles follow each other there without an overlap. ``groups``: the registers
    that are moved one after the other. ``parts``: which of a line's ``uint`` make a vector, for
    each of the vectors in it. ``unit`` is the type by multiples of which rows start, ``units`` how
    many make a line.
    """

    whole: str
    groups: list[list[int]]
    lines: tuple[CarriedLine, ...]
    parts: tuple[str, ...]
    unit: str
    units: int

    def parts_of(self, *, first: bool) -> list[tuple[list[int], list[str]]]:
        """The registers of each pass, and the statements that store what it has moved."""
        return [
            (group, [text for line in self.lines if line.register in group
                     for text in (line.begun if first else line.ended)])
            for group in self.groups
        ]  # fmt: skip


def carry_of(
    plan: TilePlan, types: Conversion, whole: str, stored: Sequence[tuple[int, str, str]]
) -> Carry:
    """The texts; ``stored``: each register, its name and place, those of a line side by side."""
    dwords = _dwords(plan)
    count = DWORDS // dwords
    lines = []
    for number in range(len(stored) // count):
        group = stored[number * count : (number + 1) * count]
        value = joined(plan, types, [name for _, name, _ in group])
        register, _, at = group[0]
        lines.append(CarriedLine(number, register, value, moved("to", at)))
    names = "0123456789abcdef"
    parts = [f".s{names[k : k + dwords]}" if count > 1 else "" for k in range(0, DWORDS, dwords)]
    unit, size = ("ushort", 2) if plan.problem.dtypes[1].nbytes == 2 else ("uint", 4)
    return Carry(whole, plan.groups, tuple(lines), tuple(parts), unit, LINE_BYTES // size)


def joined(plan: TilePlan, types: Conversion, registers: Sequence[str]) -> str:
    """The line, as ``uint16``, that some registers make side by side."""
    vector = f"as_uint{_dwords(plan)}"
    values = [f"{vector}({types.value_to_store(name, plan.lanes)})" for name in registers]
    return values[0] if len(values) == 1 else f"(uint16)({', '.join(values)})"


def _dwords(plan: TilePlan) -> int:
    return plan.lanes * plan.problem.dtypes[1].nbytes // 4
