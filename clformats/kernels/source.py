"""What a family hands over: its source with its arguments, and how numbers stand in a source."""

from __future__ import annotations

import re
import struct
from collections.abc import Sequence
from dataclasses import dataclass, field
from hashlib import sha256

from ..formats.expr import Const, Expr, Var
from ..problems.problem import Number
from ..problems.thresholds import MOST_LOOPS, MOST_PLACES_STORED

MOST_ARGUMENT_BYTES = 1024
"""What a kernel's arguments take together at the most: OpenCL promises no more."""
SHORT_NEST = "const Short given"
"""How a kernel declares a nest whose numbers have 4 bytes."""
IDLE_BYTES = 8 * MOST_PLACES_STORED
"""What the tile of an `idle` kernel touches on each side at the most."""
_COMMENT = re.compile(r"/\*.*?\*/|//[^\n]*", re.DOTALL)


@dataclass(frozen=True, slots=True)
class Launch:
    """A kernel ready to be built and run.

    Its parameters are the source, the destination, ``arguments``, integers or the bytes of a
    structure, and what its computation reads: the operands that are no part of the destination,
    then the scalars.
    ``buffers`` are the C types with which source and destination are declared; empty in families
    without choices, whose kernels no tuner takes. ``then`` is the kernel that runs after this one
    has ended, with the destination for its source as well.
    """

    source: str
    arguments: tuple[int | bytes, ...]
    wide: bool
    global_size: int
    local_size: int
    buffers: tuple[str, str] = ("", "")
    then: Launch | None = None
    given: tuple[bytes, ...] = field(init=False, repr=False, compare=False)
    """Each of ``arguments`` as the kernel takes it."""

    def __post_init__(self) -> None:
        width = 8 if self.wide else 4
        given = (a if isinstance(a, bytes) else a.to_bytes(width, "little", signed=True)
                 for a in self.arguments)  # fmt: skip
        object.__setattr__(self, "given", tuple(given))

    @property
    def argument_bytes(self) -> int:
        """The bytes of source, destination and ``arguments``."""
        return 16 + sum(map(len, self.given))

    @property
    def groups(self) -> int:
        """How many work-groups there are."""
        return self.global_size // self.local_size

    @property
    def digest(self) -> str:
        """A hash of the source without its comments: of equal kernels it is equal."""
        return sha256(without_comments(self.source).encode()).hexdigest()[:12]

    KERNEL = "reorder"


def without_comments(source: str) -> str:
    """OpenCL C without its comments, and without the blanks that they leave."""
    lines = (line.rstrip() for line in _COMMENT.sub("", source).splitlines())
    return "\n".join(line for line in lines if line) + "\n"


def packed(numbers: Sequence[int], width: int) -> bytes:
    """The bytes of numbers of 4 or 8 bytes."""
    return struct.pack(f"<{len(numbers)}{'q' if width == 8 else 'i'}", *numbers)


def idle(launched: Launch) -> bytes:
    """A nest of one tile, whose vectors lie within the first `IDLE_BYTES` of both sides.

    For a dummy launch: it touches no user's memory, but makes the driver compile the kernel.
    """
    (nest,) = (a for a in launched.arguments if isinstance(a, bytes))
    width = 4 if SHORT_NEST in launched.source else 8
    numbers = [0] * (len(nest) // width)
    head, column = len(("loops", "spread", "lead", "src0", "dst0")), MOST_LOOPS + 1
    step, size, outer = head, head + column, head + 3 * column
    numbers[0] = numbers[step] = numbers[size] = 1  # one loop of one step
    numbers[outer] = -1
    return packed(numbers, width)


@dataclass
class Arguments:
    """Names numbers in the source: constants by their value, others as kernel arguments.

    ``baked``: those too are constants, declared in the kernel.
    """

    baked: bool | None = None
    values: dict[str, int] = field(default_factory=dict)

    def text(self, name: str, number: Number | int) -> str:
        """The text for a number: its value if it is part of the structure, else ``name``."""
        if isinstance(number, int):
            number = Number(number)
        if number.fixed:
            return str(number.value)
        self.values[name] = number.value
        return name

    def expression(self, name: str, number: Number) -> Expr:
        """The same as an expression, in which constants fold."""
        text = self.text(name, number)
        return Const(number.value) if number.fixed else Var(text)

    @property
    def declarations(self) -> list[str]:
        """The scalar parameters, as OpenCL C."""
        return [] if self.baked else [f"const idx {name}" for name in self.values]

    @property
    def constants(self) -> list[str]:
        """What a baked kernel declares instead."""
        return [f"const idx {name} = {value};" for name, value in self.values.items() if self.baked]

    @property
    def given(self) -> tuple[int, ...]:
        """The values of the parameters, in their order."""
        return () if self.baked else tuple(self.values.values())


def divided(
    loops: Sequence[tuple[int, Number, int]], arguments: Arguments
) -> list[tuple[str, str, str]]:
    """Where what a work-group moves starts along each loop, from its number; without a division.

    ``loops`` are (number, how many groups follow each other along it, how much of it one takes),
    the outermost first. Gives (type, variable, value) in the order of their declaration; where the
    group starts along loop 3 is ``x3``.
    """
    result, rest = [("uint", "rest", "get_group_id(0)")], "rest"
    for k, count, part in reversed(loops):
        if k == loops[0][0]:
            result.append(("idx", f"x{k}", str(Var(f"(idx){rest}") * part)))
        else:
            many = arguments.text(f"count{k}", count)
            quotient = f"{rest} / {many}"
            if not count.fixed:
                multiplier, shift = reciprocal(count.value)
                factor = arguments.text(f"multiplier{k}", Number(multiplier - (1 << 32)))
                shifted = arguments.text(f"shift{k}", Number(shift))
                quotient = f"mul_hi({rest} << 1, (uint){factor}) >> {shifted}"
            result.append(("uint", f"rest{k}", quotient))
            mine = Var(f"(idx)({rest} - rest{k} * {many})")
            result.append(("idx", f"x{k}", str(mine * part)))
            rest = f"rest{k}"
    return result if loops else []


def reciprocal(divisor: int) -> tuple[int, int]:
    """(m, s) so that ``n / divisor`` is the upper word of ``2 n m``, shifted right by ``s``.

    Exact for every n below 2**31; m has 32 bits.
    """
    shift = (divisor - 1).bit_length()
    return -(-(1 << (31 + shift)) // divisor), shift


def under(condition: str, value: str, zeros: str) -> str:
    """``value`` under a condition, else ``zeros``; always where the condition is empty."""
    return f"{condition} ? {value} : {zeros}" if condition else value


def moved(base: str, by: str | int) -> str:
    """``base + by`` without a needless zero."""
    return base if str(by) == "0" else f"{base} + {by}"
