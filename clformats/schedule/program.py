"""Programs of shuffles: what happens to vectors between the loads and the stores of a tile.

A program is a straight line of operations on values, each of which is assigned once. The loads are
the values 0, 1, ..., and every operation makes the next one. All values have the same number of
lanes; what is loaded from a shorter run lies in the lowest of them.

A *word* is a number of neighbouring lanes that move together: 1, unless bytes or shorts move as
words. `Shuffle` moves whole words, `Rotate` and `Select` work inside each word.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import TypeAlias, TypeVar

from ..errors import InvalidArgument

ZERO = -1
"""The number of the value that is zero in every lane: an operand of a shuffle, or an output."""

T = TypeVar("T")


@dataclass(frozen=True, slots=True)
class Shuffle:
    """Words of the values ``a`` and ``b``.

    Word ``j`` of the result is word ``pattern[j]`` of a followed by b; None: anything.
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
class Rotate:
    """The elements inside each word of ``a``, moved ``by`` places up and round."""

    a: int
    by: int

    @property
    def operands(self) -> tuple[int, ...]:
        """The value that is needed."""
        return (self.a,)

    def __str__(self) -> str:
        return f"{self.a}<{self.by}"


@dataclass(frozen=True, slots=True)
class Select:
    """In each word the elements of ``b`` at ``places``, those of ``a`` at the others."""

    a: int
    b: int
    places: tuple[int, ...]

    @property
    def operands(self) -> tuple[int, ...]:
        """The values that are needed, each once."""
        return tuple(dict.fromkeys((self.a, self.b)))

    def __str__(self) -> str:
        return f"{self.a}|{self.b}@{'.'.join(map(str, self.places))}"


Op: TypeAlias = "Shuffle | Rotate | Select"


@dataclass(frozen=True, slots=True)
class Program:
    """What makes the stores of a tile from its loads.

    ``lanes`` of every value; ``loads``: how many there are; ``ops`` in the order in which a kernel
    is to run them; ``outputs``: the value of each store; ``word``: lanes that move together;
    ``together``: how many stores, one behind the other, are sent at a time, since they share a
    cache line; ``peak``: how many values are needed at once, at the most.

    ``str`` of a program is one line that `parsed` reads.
    """

    lanes: int
    loads: int
    ops: tuple[Op, ...]
    outputs: tuple[int, ...]
    word: int = 1
    together: int = 1
    peak: int = 0

    def run(
        self, loads: Sequence[Sequence[T | None]], zero: T | None = None
    ) -> list[list[T | None]]:
        """What is stored where this is loaded; shorter loads lie in the lowest lanes.

        >>> Program(2, 2, (Shuffle(0, 1, (0, 2)),), (2, 1)).run(["ab", "cd"])
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
            values[value] = _result(op, values, self.word)
        return [[*values[v]] for v in self.outputs]

    def steps(self) -> Iterator[tuple[str, tuple[int, ...]]]:
        """What a kernel does in turn.

        ``("load", (value,))`` just before it is needed, ``("op", (value,))``, and
        ``("store", numbers)`` of stores that are sent together, as soon as all are ready.
        """
        ready: set[int] = {ZERO}
        lines = self.lines
        ends: dict[int, list[tuple[int, ...]]] = {}
        for line in lines:
            ends.setdefault(max(self.outputs[k] for k in line), []).append(line)
        for value, op in enumerate(self.ops, self.loads):
            yield from _loaded(op.operands, self.loads, ready)
            yield "op", (value,)
            for line in ends.get(value, ()):
                yield from _loaded([self.outputs[k] for k in line], self.loads, ready)
                yield "store", line
        for line in lines:
            if max(self.outputs[k] for k in line) < self.loads:
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
        head = f"{self.lanes}/{self.word}x{self.loads} {self.together} {self.peak}"
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


def _result(op: Op, values: dict[int, list[T | None]], word: int) -> list[T | None]:
    """What an operation makes."""
    a = values[op.a]
    lanes = range(len(a))
    if isinstance(op, Rotate):
        return [a[n - n % word + (n - op.by) % word] for n in lanes]
    if isinstance(op, Select):
        b = values[op.b]
        return [(b if n % word in op.places else a)[n] for n in lanes]
    both = a + values[op.b]
    words = (None if n is None else both[n * word : n * word + word] for n in op.pattern)
    return [one for part in words for one in (part or [None] * word)]


def peak_of(program: Program) -> int:
    """How many values of a program are needed at once, at the most: those to be stored too."""
    steps = list(program.steps())
    last: dict[int, int] = {}
    for time, step in enumerate(steps):
        last.update(dict.fromkeys(_uses(program, step), time))
    live: set[int] = set()
    most = 0
    for time, step in enumerate(steps):
        uses = _uses(program, step)
        if step[0] == "op":
            # A result may take the place of an operand that is needed no more.
            live -= {v for v in uses if last[v] == time}
        if step[0] != "store":
            live.add(step[1][0])
        most = max(most, len(live))
        live -= {v for v in uses if last[v] == time}
    return most


def _uses(program: Program, step: tuple[str, tuple[int, ...]]) -> tuple[int, ...]:
    """The values that a step needs."""
    what, numbers = step
    if what == "op":
        return program.ops[numbers[0] - program.loads].operands
    if what == "store":
        return tuple(v for k in numbers if (v := program.outputs[k]) != ZERO)
    return ()


def parsed(text: str) -> Program:
    """The program that prints so; `InvalidArgument` where none does.

    >>> str(parsed("2/1x2 1 2: 0&1:0.2 > 2 1"))
    '2/1x2 1 2: 0&1:0.2 > 2 1'
    """
    try:
        head, body = text.split(": ", 1)
        sizes, together, peak = head.split(" ")
        vector, loads = sizes.split("x")
        lanes, word = vector.split("/")
        ops, outputs = f" {body} ".split(" > ")
        return Program(
            int(lanes), int(loads), tuple(map(_parsed_op, ops.split())),
            tuple(map(_number, outputs.split())), int(word), int(together), int(peak),
        )  # fmt: skip
    except ValueError as error:
        raise InvalidArgument(
            f"got {text!r}, expected a program as str() prints it, such as "
            f"'2/1x2 1 2: 0&1:0.2 > 2 1'"
        ) from error


def _parsed_op(text: str) -> Op:
    if "<" in text:
        a, by = text.split("<")
        return Rotate(int(a), int(by))
    if "|" in text:
        values, places = text.split("@")
        a, b = values.split("|")
        return Select(int(a), int(b), tuple(map(int, places.split("."))))
    values, lanes = text.split(":")
    a, b = values.split("&")
    pattern = tuple(None if n == "_" else int(n) for n in lanes.split("."))
    return Shuffle(_number(a), _number(b), pattern)


def _name(value: int) -> str:
    return "zero" if value == ZERO else str(value)


def _number(name: str) -> int:
    return ZERO if name == "zero" else int(name)
