"""The order in which operations are run: few values wait, and lines are finished in turn."""

from __future__ import annotations

from dataclasses import replace

from .program import ZERO, Shuffle, ShuffleProgram
from .sets import union


def in_order(program: ShuffleProgram) -> ShuffleProgram:
    """The same program with its operations in the order of its lines, or nearly so.

    What frees a value comes first. Where that order needs more values at once, in the order of the
    lines that need fewest new ones: a core puts stores together that follow each other, but spills
    what registers do not hold.
    """
    straight, fewest = (_ordered(program, _EmissionOrder(program).all(by_need=by_need))
                        for by_need in (False, True))  # fmt: skip
    return straight if _most_needed(straight) <= _most_needed(fewest) else fewest


def _most_needed(program: ShuffleProgram) -> int:
    """How many values are needed at once: each from where it is made or loaded to its last use."""
    uses: list[tuple[int, ...]] = []
    for what, numbers in program.steps():
        if what == "store":
            uses.append(tuple(program.outputs[k] for k in numbers))
        else:
            made = numbers[0]
            parts = program.ops[made - program.loads].operands if what == "op" else ()
            uses.append((made, *parts))
    last = {v: k for k, values in enumerate(uses) for v in values}
    most, needed = 0, set[int]()
    for k, values in enumerate(uses):
        needed.update(v for v in values if v != ZERO)
        most = max(most, len(needed))
        needed = {v for v in needed if last[v] > k}
    return most


def _ordered(program: ShuffleProgram, order: list[int]) -> ShuffleProgram:
    """The same program with its operations in another order."""
    loads = program.loads
    number = {ZERO: ZERO} | {k: k for k in range(loads)}
    number |= {loads + k: loads + n for n, k in enumerate(order)}
    taken = (program.ops[k] for k in order)
    ops = tuple(Shuffle(number[op.a], number[op.b], op.pattern) for op in taken)
    outputs = tuple(number[v] for v in program.outputs)
    return replace(program, ops=ops, outputs=outputs)


class _EmissionOrder:
    """Emits operations depth first, and at once those that free as many values as they make."""

    def __init__(self, program: ShuffleProgram) -> None:
        self.program = program
        loads = program.loads
        self.parts: list[tuple[int, ...]] = [() for _ in range(loads)]
        self.parts += [op.operands for op in program.ops]
        self.users: list[list[int]] = [[] for _ in self.parts]
        closures = [1 << k for k in range(loads)]
        for value, op in enumerate(program.ops, loads):
            mask = 1 << value
            for v in op.operands:
                mask |= closures[v]
                self.users[v].append(value)
            closures.append(mask)
        self.closures = closures
        self.lines = [[v for k in line if (v := program.outputs[k]) != ZERO]
                      for line in program.lines]  # fmt: skip
        # Who still needs a value: operations, and lines.
        self.needs = [len(users) for users in self.users]
        for line in self.lines:
            for v in {*line}:
                self.needs[v] += 1
        self.done = 0
        self.order: list[int] = []

    def all(self, *, by_need: bool) -> list[int]:
        """The operations, by number from 0: in the order of lines, or of what these still need."""
        masks = {n: union(self.closures[v] for v in line) for n, line in enumerate(self.lines)}

        def left(n: int) -> int:
            return (masks[n] & ~self.done).bit_count()

        while masks:
            n = min(masks, key=lambda n: (left(n) if by_need else 0, n))
            del masks[n]
            for value in self.lines[n]:
                self._emit(value)
            for v in {*self.lines[n]}:
                self.needs[v] -= 1
        return self.order

    def _emit(self, value: int) -> None:
        """An operation and all that it needs."""
        if self.done >> value & 1:
            return
        parts = self.parts[value]
        for v in sorted(parts, key=lambda v: -(self.closures[v] & ~self.done).bit_count()):
            self._emit(v)
        if self.done >> value & 1:
            return  # What frees values came first.
        self._take(value)
        for v in parts:
            self._free(v)

    def _take(self, value: int) -> None:
        self.done |= 1 << value
        if value >= self.program.loads:
            self.order.append(value - self.program.loads)
        for v in self.parts[value]:
            self.needs[v] -= 1

    def _free(self, value: int) -> None:
        """Emit the users of a value that are ready and free at least one."""
        for user in self.users[value]:
            parts = self.parts[user]
            ready = not self.done >> user & 1 and all(self.done >> v & 1 for v in parts)
            if ready and any(self.needs[v] == 1 for v in parts):
                self._take(user)
                for v in parts:
                    self._free(v)
