"""Programs of shuffles: what happens to vectors between the loads and the stores of a tile.

A program is a straight line of shuffles of values, each of which is assigned once. The loads are
the values 0, 1, ..., and every shuffle makes the next one. All values have the same number of
lanes; what is loaded from a shorter run lies in the lowest of them.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import TypeVar

from ..errors import InvalidArgument

ZERO = -1
"""The number of the value that is zero in every lane: an operand of a shuffle, or an output."""

T = TypeVar("T")


@dataclass(frozen=True, slots=True)
class Shuffle:
    """Lanes of the values ``a`` and ``b``.

    Lane ``j`` of the result is lane ``pattern[j]`` of a followed by b; None: anything.
    """

    a: int
    b: int
    pattern: tuple[int | None, ...]

    @property
    def operands(self) -> tuple[int, ...]:
        """The values that are needed, each once; `ZERO` is none."""
        return tuple(v for v in dict.fromkeys((self.a, self.b)) if v != ZERO)

    def __str__(self) -> str:
        lanes = ".".join("_" if n is None else str(n) for n in self.pattern)
        return f"{_name(self.a)}&{_name(self.b)}:{lanes}"


@dataclass(frozen=True, slots=True)
class ShuffleProgram:
    """What makes the stores of a tile from its loads.

    ``lanes`` of every value; ``loads``: how many there are; ``ops`` in the order in which a kernel
    is to run them; ``outputs``: the value of each store; ``together``: how many stores, one after
    the other, are sent at a time, since they share a cache line.

    ``str`` of a program is one line that `parsed` reads.
    """

    lanes: int
    loads: int
    ops: tuple[Shuffle, ...]
    outputs: tuple[int, ...]
    together: int = 1

    def run(
        self, loads: Sequence[Sequence[T | None]], zero: T | None = None
    ) -> list[list[T | None]]:
        """What is stored where this is loaded; shorter loads lie in the lowest lanes.

        >>> ShuffleProgram(2, 2, (Shuffle(0, 1, (0, 2)),), (2, 1)).run(["ab", "cd"])
        [['a', 'c'], ['c', 'd']]
        """
        most = max(map(len, loads), default=0)
        if len(loads) != self.loads or most > self.lanes:
            raise InvalidArgument(
                f"got {len(loads)} loads of up to {most} lanes, expected {self.loads} of "
                f"{self.lanes} at the most: pass what the program was made for"
            )
        values = {k: [*load, *[None] * (self.lanes - len(load))] for k, load in enumerate(loads)}
        values[ZERO] = [zero] * self.lanes
        for value, op in enumerate(self.ops, self.loads):
            both = values[op.a] + values[op.b]
            values[value] = [None if n is None else both[n] for n in op.pattern]
        return [[*values[v]] for v in self.outputs]

    def steps(self) -> Iterator[tuple[str, tuple[int, ...]]]:
        """What a kernel does in turn.

        ``("load", (value,))`` just before it is needed, ``("op", (value,))``, and
        ``("store", numbers)`` of stores that are sent together, as soon as all are ready; those of
        loads just after the shuffled ones before them, so that runs are stored in order.
        """
        ready: set[int] = {ZERO}
        ends: dict[int, list[tuple[int, ...]]] = {}
        last = ZERO
        for line in self.lines:
            made = max(self.outputs[k] for k in line)
            if made >= self.loads:
                last = made
            ends.setdefault(last, []).append(line)
        for value in (ZERO, *range(self.loads, self.loads + len(self.ops))):
            if value != ZERO:
                yield from _loaded(self.ops[value - self.loads].operands, self.loads, ready)
                yield "op", (value,)
            for line in ends.get(value, ()):
                yield from _loaded([self.outputs[k] for k in line], self.loads, ready)
                yield "store", line

    @property
    def lines(self) -> list[tuple[int, ...]]:
        """The stores that are sent together, by number."""
        count = len(self.outputs)
        return [
            tuple(range(k, min(k + self.together, count))) for k in range(0, count, self.together)
        ]

    def __str__(self) -> str:
        head = f"{self.lanes}x{self.loads} {self.together}"
        parts = (*self.ops, ">", *map(_name, self.outputs))
        return f"{head}: {' '.join(map(str, parts))}"


def _loaded(
    values: Sequence[int], loads: int, ready: set[int]
) -> Iterator[tuple[str, tuple[int, ...]]]:
    """The steps that load those of the values that are loads and are not ready."""
    for value in values:
        if value < loads and value not in ready:
            ready.add(value)
            yield "load", (value,)


def parsed(text: str) -> ShuffleProgram:
    """The program that prints so; `InvalidArgument` where none does.

    >>> str(parsed("2x2 1: 0&1:0.2 > 2 1"))
    '2x2 1: 0&1:0.2 > 2 1'
    """
    try:
        head, body = text.split(": ", 1)
        sizes, together = head.split(" ")
        lanes, loads = sizes.split("x")
        ops, outputs = f" {body} ".split(" > ")
        return ShuffleProgram(
            int(lanes), int(loads), tuple(map(_parsed_op, ops.split())),
            tuple(map(_number, outputs.split())), int(together),
        )  # fmt: skip
    except ValueError as error:
        raise InvalidArgument(
            f"got {text!r}, expected a program as str() prints it, such as '2x2 1: 0&1:0.2 > 2 1'"
        ) from error


def _parsed_op(text: str) -> Shuffle:
    values, lanes = text.split(":")
    a, b = values.split("&")
    pattern = tuple(None if n == "_" else int(n) for n in lanes.split("."))
    return Shuffle(_number(a), _number(b), pattern)


def _name(value: int) -> str:
    return "zero" if value == ZERO else str(value)


def _number(name: str) -> int:
    return ZERO if name == "zero" else int(name)
