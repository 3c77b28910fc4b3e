"""The digits of an element's number in a pass of a work-group, as variables of its kernel."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field

from ..formats.expr import Const, Expr, Var, total
from ..schedule.banks import stays


@dataclass
class Digits:
    """The digits that some text needs of the number of a unit's first element, as variables.

    Units begin at multiples of their ``width``. With ``run`` they begin anywhere in a run of so
    many elements, and do not leave it.
    """

    width: int
    run: int = 0
    named: dict[str, str] = field(default_factory=dict)

    def of(self, step: int, size: int | None, lane: int = 0) -> Expr:
        """The digit that counts ``step`` elements, of ``size`` values or, with None, of any.

        ``lane``: how many elements further.
        """
        if size == 1:
            return Const(0)
        if size and not lane and not self.run and self.width % (step * size) == 0:
            return Const(0)
        name = f"e{step}" + (f"_{size}" if size else "") + (f"_at{lane}" if lane else "")
        digit = (Var("e") + lane) // step
        self.named[name] = str(digit % size if size else digit)
        return Var(name)

    @property
    def texts(self) -> list[tuple[str, str]]:
        """(variable, value) of all."""
        return list(self.named.items())

    def sum(self, parts: Sequence[tuple[int, Expr]], lane: int = 0) -> Expr:
        """The sum over (size, factor), the nearest digit first; those that go on are one."""
        merged: list[tuple[int, Expr]] = []
        for size, factor in parts:
            if merged:
                near, of_near = merged[-1]
                if isinstance(of_near, Const) and factor == Const(of_near.value * near):
                    merged[-1] = near * size, of_near
                    continue
            merged.append((size, factor))
        if lane and (merged[0][0] % self.run == 0 if self.run else stays(merged, self.width)):
            return self.sum(parts) + _near(merged, lane)
        if lane and len(merged) > 1 and merged[0][0] * merged[1][0] % (self.run or self.width) == 0:
            return self._further(merged, lane)
        terms, step = [], 1
        for number, (size, factor) in enumerate(merged):
            if factor != Const(0):
                last = number == len(merged) - 1
                terms.append(self.of(step, None if last else size, lane) * factor)
            step *= size
        return total(terms)

    def _further(self, parts: Sequence[tuple[int, Expr]], lane: int) -> Expr:
        """The sum so many elements after a unit's first, whose third digit is that of the first."""
        (size, near), (_, far), *_ = parts
        digit, name = self.of(1, size), f"turns{size}_at{lane}"
        turns: Expr = Const(lane // size)
        if not isinstance(digit, Const):
            at = digit + lane
            self.named[name] = f"{at} >= {size}" if lane <= size else str(at // size)
            turns = Var(name)
        return self.sum(parts) + near * lane + turns * (far - near * size)


def _near(parts: Sequence[tuple[int, Expr]], lane: int) -> Expr:
    """How far an element is from the first of its unit, where that is the same for all units."""
    terms = []
    for size, factor in parts:
        terms.append(factor * (lane % size))
        lane //= size
    return total(terms)
