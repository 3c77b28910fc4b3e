"""Lines that tiles end for each other: the texts for a walk that carries them on.

Where rows of the destination start anywhere, the lines of memory do not begin where tiles do. A
work-item that goes along its rows keeps what the tile before has left of each line, in a register,
puts it before the line of this tile, and writes the line of memory that lies across the two.

Where each row ends where the next one begins, rows are linked: what the last tile leaves of a row's
line goes before the first line of the next row, which was kept since the first tile. So all lines
are written whole but the two at the ends of what a work-item writes.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

from ..schedule.tile import TilePlan
from ..schedule.traits import LINE_BYTES
from ..schedule.walk import Kept
from .source import moved
from .types import Conversion

DWORDS = LINE_BYTES // 4

Part = tuple[list[int], list[tuple[tuple[int, ...], list[str]]]]
"""Registers that are moved together; then for each line those it needs, and its statements."""


@dataclass(frozen=True, slots=True)
class CarriedLine:
    """One of a tile's rows: the line that it adds, as sixteen ``uint``, and where that belongs.

    ``registers`` are those that make it.
    """

    number: int
    registers: tuple[int, ...]
    value: str
    at: str

    @property
    def begun(self) -> list[str]:
        """The statements of the first tile, which has nothing before it."""
        k = self.number
        return [f"c{k} = {self.value}", f"store_line(c{k}, {self.at})"]

    @property
    def waits(self) -> list[str]:
        """The statements of the first tile whose lines wait in memory.

        What is before it in its line another work-item has, which writes all of the line.
        """
        k = self.number
        return [
            f"const uint16 l{k} = {self.value}",
            f"BEGIN_LINE(c[{k}], l{k}, {self.at})",
            f"if (begins) store_line(l{k}, {self.at})",
        ]

    @property
    def goes_on(self) -> list[str]:
        """The statements of the tiles behind it, where lines wait in memory."""
        k = self.number
        return [
            f"const uint16 l{k} = {self.value}",
            f"END_LINE(c + {k}, l{k}, {self.at})",
        ]

    @property
    def alone(self) -> list[str]:
        """The statement of a tile that overlaps the last one, where lines wait in memory."""
        return [f"store_line({self.value}, {self.at})"]

    @property
    def ended(self) -> list[str]:
        """The statements of the tiles behind it."""
        k = self.number
        return [
            f"const uint16 l{k} = {self.value}",
            f"END_LINE(c{k}, l{k}, {self.at}, {k})",
            f"c{k} = l{k}",
        ]

    @property
    def kept(self) -> list[str]:
        """The statements of the first tile of rows that are linked."""
        k = self.number
        return [f"c{k} = {self.value}", f"KEEP_LINE(c{k}, {self.at}, {k})"]

    @property
    def last(self) -> list[str]:
        """The statements of the tile that overlaps the last one of rows that are linked."""
        k = self.number
        return [
            f"const uint16 l{k} = {self.value}",
            f"LAST_LINE(c{k}, l{k}, {self.at}, {k})",
            f"c{k} = l{k}",
        ]


@dataclass(frozen=True, slots=True)
class Carry:
    """What ``tile.mako`` needs to carry lines along a loop.

    ``whole``: how many tiles follow each other there without an overlap. ``groups``: the registers
    that are moved one after the other. ``parts``: which of a line's ``uint`` make a vector, for
    each of the vectors in it. ``unit`` is the type by multiples of which rows start, ``units`` how
    many make a line, ``unit_steps`` how many make an element. ``size`` is that of the loop where
    rows are linked, else empty. ``waiting``: so many
    lines wait in private memory, where any do.
    """

    whole: str
    groups: list[list[int]]
    lines: tuple[CarriedLine, ...]
    parts: tuple[str, ...]
    unit: str
    units: int
    unit_steps: int
    size: str
    waiting: int

    def parts_of(self, statements: Callable[[CarriedLine], list[str]]) -> list[Part]:
        """The registers of each pass; for each line in it those it needs, and its statements."""
        return [
            (group, [(line.registers, statements(line))
                     for line in self.lines if line.registers[0] in group])
            for group in self.groups
        ]  # fmt: skip

    @property
    def begun(self) -> list[Part]:
        """What the first tile does, and one that overlaps."""
        return self.parts_of(lambda line: line.begun)

    @property
    def ended(self) -> list[Part]:
        """What the tiles behind the first one do."""
        return self.parts_of(lambda line: line.ended)

    @property
    def kept(self) -> list[Part]:
        """What the first tile of linked rows does."""
        return self.parts_of(lambda line: line.kept)

    @property
    def waits(self) -> list[Part]:
        """What the first tile does where lines wait in memory."""
        return self.parts_of(lambda line: line.waits)

    @property
    def goes_on(self) -> list[Part]:
        """What the tiles behind it do there."""
        return self.parts_of(lambda line: line.goes_on)

    @property
    def alone(self) -> list[Part]:
        """What a tile that overlaps the last one does there."""
        return self.parts_of(lambda line: line.alone)

    @property
    def last(self) -> list[Part]:
        """What the tile that overlaps does where rows are linked."""
        return self.parts_of(lambda line: line.last)


def carry_of(
    plan: TilePlan,
    types: Conversion,
    whole: str,
    size: str,
    stored: Sequence[tuple[int, str, str]],
) -> Carry:
    """The texts; ``stored``: each register, its name and place, those of a line side by side."""
    dwords = _dwords(plan)
    count = DWORDS // dwords
    lines = []
    for number in range(len(stored) // count):
        group = stored[number * count : (number + 1) * count]
        value = joined(plan, types, [name for _, name, _ in group])
        registers = tuple(register for register, _, _ in group)
        lines.append(CarriedLine(number, registers, value, moved("to", group[0][2])))
    names = "0123456789abcdef"
    parts = [f".s{names[k : k + dwords]}" if count > 1 else "" for k in range(0, DWORDS, dwords)]
    item = plan.problem.dtypes[1].nbytes
    unit, nbytes = ("ushort", 2) if item == 2 else ("uint", 4)
    units, steps = LINE_BYTES // nbytes, item // nbytes
    waiting = plan.walk.lines.room if isinstance(plan.walk.lines, Kept) else 0
    return Carry(whole, plan.groups, tuple(lines), tuple(parts), unit, units, steps, size, waiting)


def joined(plan: TilePlan, types: Conversion, registers: Sequence[str]) -> str:
    """The line, as ``uint16``, that some registers make side by side."""
    vector = f"as_uint{_dwords(plan)}"
    values = [f"{vector}({types.value_to_store(name, plan.lanes)})" for name in registers]
    return values[0] if len(values) == 1 else f"(uint16)({', '.join(values)})"


def _dwords(plan: TilePlan) -> int:
    return plan.lanes * plan.problem.dtypes[1].nbytes // 4
