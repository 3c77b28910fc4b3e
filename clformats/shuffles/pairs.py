"""Parts of a program that are alike run at once: their vectors side by side in one twice as long.

Sixteen bytes are half or a quarter of what processors shuffle by one instruction. A tile often has
parts that share no vector and whose shuffles are the same, such as 16 channels of 64. The values of
two of these are pairs, which are shuffled together, each half by itself.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace

from .program import ZERO, Shuffle, ShuffleProgram
from .sets import connected, mask_of


@dataclass(frozen=True, slots=True)
class PairedProgram:
    """A ``program`` of pairs, and what each value of it is in the program that was paired.

    ``line``: how many stores share a line there. ``loads[k]`` and ``stores[k]`` are the two loads
    and stores that pair ``k`` is made of.
    """

    program: ShuffleProgram
    line: int
    loads: tuple[tuple[int, int], ...]
    stores: tuple[tuple[int, int], ...]

    def steps(self) -> Iterator[tuple[str, tuple[int, ...]]]:
        """As those of a program: loads and stores of single vectors, ``("pair", (value,))`` ones.

        A pair is put together when both halves are loaded.
        """
        for what, numbers in self.program.steps():
            if what == "load":
                yield what, self.loads[numbers[0]]
                yield "pair", numbers
            elif what == "store":
                stored = sorted(n for k in numbers for n in self.stores[k])
                for k in range(0, len(stored), self.line):
                    yield what, tuple(stored[k : k + self.line])
            else:
                yield what, numbers

    def output(self, store: int) -> tuple[int, int]:
        """(pair, which half of it) that a store takes."""
        return next((self.program.outputs[k], both.index(store))
                    for k, both in enumerate(self.stores) if store in both)  # fmt: skip

    def whole(self, stores: Sequence[int]) -> list[int]:
        """The pairs that stores are, one after the other; none where halves are stored apart."""
        halves = [self.output(n) for n in stores]
        if len(halves) % 2 or any(half != k % 2 for k, (_, half) in enumerate(halves)):
            return []
        low, high = ([value for value, _ in halves[k::2]] for k in (0, 1))
        return low if low == high else []


def paired(program: ShuffleProgram) -> PairedProgram | None:
    """The program with all its parts in pairs; None where some part is alike to no other.

    >>> from clformats.shuffles.program import parsed
    >>> found = paired(parsed("2x4 2: 0&1:0.2 2&3:0.2 0&1:1.3 2&3:1.3 > 4 5 6 7"))
    >>> str(found.program), found.loads, found.stores
    ('2x2 1: 0&1:0.2 0&1:1.3 > 2 3', ((0, 2), (1, 3)), ((0, 1), (2, 3)))
    """
    if any(ZERO in (op.a, op.b) for op in program.ops) or ZERO in program.outputs:
        return None
    alike: dict[tuple[object, ...], list[_AlikePart]] = {}
    for part in _parts(program):
        alike.setdefault(part.shape(program), []).append(part)
    if not program.ops or any(len(parts) % 2 for parts in alike.values()):
        return None
    pairs = [pair for parts in alike.values()
             for pair in zip(parts[::2], parts[1::2], strict=True)]  # fmt: skip
    loads = sorted(both for a, b in pairs for both in zip(a.loads, b.loads, strict=True))
    number = {a: k for k, (a, _) in enumerate(loads)}
    ops = sorted(k for a, _ in pairs for k in a.ops)
    number |= {program.loads + k: len(loads) + n for n, k in enumerate(ops)}
    stores = sorted(both for a, b in pairs for both in zip(a.stores, b.stores, strict=True))
    together = _together(stores, program)
    if not together:
        return None
    mine = (program.ops[k] for k in ops)
    made = tuple(replace(op, a=number[op.a], b=number[op.b]) for op in mine)
    outputs = tuple(number[program.outputs[a]] for a, _ in stores)
    wide = ShuffleProgram(program.lanes, len(loads), made, outputs, together)
    return PairedProgram(wide, program.together, tuple(loads), tuple(stores))


def doubled(pattern: Sequence[int], lanes: int) -> tuple[int, ...]:
    """The pattern of both halves of a pair, of ``lanes`` each.

    >>> doubled((0, 2), 2), doubled((1, 3), 2)
    ((0, 4, 2, 6), (1, 5, 3, 7))
    """
    return tuple(n + half + (lanes if n >= lanes else 0) for half in (0, lanes) for n in pattern)


def _together(stores: Sequence[tuple[int, int]], program: ShuffleProgram) -> int:
    """How many pairs of stores, one after the other, are whole lines; 0 where they are none.

    A pair is in one line, or its halves are at the same place of two.
    """
    line = program.together
    if all(b == a + 1 and a % line != line - 1 for a, b in stores):
        return line // 2
    first = [a for a, _ in stores]
    whole = all(first[k : k + line] == [*range(a, a + line)] and not a % line and not (b - a) % line
                for k, (a, b) in enumerate(stores) if k % line == 0)  # fmt: skip
    steady = all(stores[k][1] - stores[k][0] == stores[k - k % line][1] - stores[k - k % line][0]
                 for k in range(len(stores)))  # fmt: skip
    return line if whole and steady and len(stores) % line == 0 else 0


@dataclass(slots=True)
class _AlikePart:
    """Loads, operations and stores, each in order, that share no value with others."""

    loads: list[int]
    ops: list[int]
    stores: list[int]

    def shape(self, program: ShuffleProgram) -> tuple[object, ...]:
        """What parts that are alike have in common: all but the names of their values."""
        name = {k: n for n, k in enumerate([*self.loads, *(program.loads + k for k in self.ops)])}
        ops = tuple(Shuffle(name[op.a], name[op.b], op.pattern)
                    for op in (program.ops[k] for k in self.ops))  # fmt: skip
        return len(self.loads), ops, tuple(name[program.outputs[k]] for k in self.stores)


def _parts(program: ShuffleProgram) -> list[_AlikePart]:
    """The parts, by their first loads."""
    first = program.loads
    sets = [1 << value for value in range(first)]
    sets += (mask_of((value, *op.operands)) for value, op in enumerate(program.ops, first))
    found = []
    for values in sorted(map(sorted, connected(sets))):
        inside = {*values}
        stores = [k for k, v in enumerate(program.outputs) if v in inside]
        loads = [v for v in values if v < first]
        found.append(_AlikePart(loads, [v - first for v in values[len(loads) :]], stores))
    return found
