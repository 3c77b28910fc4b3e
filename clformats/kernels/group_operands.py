"""The other tensors that a work-group reads beside its tile: operands of what is computed.

A scale for each channel, or for each group of 128 inputs, is one value for whole rows of a tile.
Where every vector that is stored asked memory for those of its own rows, each would be in a line by
itself, asked for again and again. So a work-group loads the values that elements share once, and
keeps them in local memory.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from math import prod

from ..formats.expr import Expr, Var, as_expr, total
from ..problems.thresholds import MOST_SHARED, SHARED_BY
from ..schedule.grouped import GroupLayout
from ..values.attr import OLD
from .computation import Computed
from .kept import vector
from .source import Arguments, moved


@dataclass(frozen=True, slots=True)
class Shared:
    """The values of operand ``name`` for a tile, in local memory.

    ``pitches``: by loop, how far apart its steps are there. There are ``count`` values; a
    work-item loads value ``i`` from place ``at`` if ``test`` holds, as ``value`` says.
    """

    name: str
    pitches: Mapping[int, int]
    count: int
    test: str
    at: str
    value: str


@dataclass
class GroupOperands:
    """The texts of operands for a group of work-items.

    ``start`` is where the tile begins in a tensor, by its strides; ``dst`` are those of the
    destination, and ``sizes`` the steps of the loops.
    """

    layout: GroupLayout
    types: Computed
    group: int
    arguments: Arguments
    start: Callable[[Sequence[Expr], Expr], Expr]
    dst: Sequence[Expr]
    sizes: Sequence[Expr]
    shared: dict[int, Shared] = field(init=False)

    def __post_init__(self) -> None:
        """Find those that elements share."""
        self.shared = {}
        for j in range(len(self.types.computation.operands)):
            if loops := self._loops_shared(j):
                self.shared[j] = self._shared(j, loops)

    def bases(self, begins: Sequence[int]) -> list[tuple[str, str]]:
        """(variable, value): where the tile starts in each operand but the destination.

        ``begins`` are the places of their first elements.
        """
        found = []
        for j, (operand, begin) in enumerate(
            zip(self.types.computation.operands, begins, strict=True)
        ):
            if operand.name != OLD:
                self.arguments.values[f"{operand.name}0"] = begin
                start = self.start(self._strides(j), Var(f"{operand.name}0"))
                found.append((f"{operand.name}_at", str(start)))
        return found

    def lanes(
        self, j: int, width: int, further: Mapping[int, int],
        offset: Callable[[Sequence[Expr], int], Expr],
    ) -> str:  # fmt: skip
        """Operand ``j`` for the elements of a vector of the destination.

        ``offset`` is how far an element of it is from the tile's first, by strides and by its
        number in the vector, and ``further`` the steps from there.
        """
        one, real, strides = self.shared.get(j), self.types.real, self._strides(j)
        if one:
            strides = [as_expr(one.pitches.get(k, 0)) for k in range(len(self.layout.nodes))]
        steps = total([strides[k] * count for k, count in further.items()])
        places = [offset(strides, lane) + steps for lane in range(width)]
        if all(at == places[0] for at in places):
            return self.types.spread(self._element(j, places[0]), width)
        if one and width > 1 and places == [places[0] + lane for lane in range(width)]:
            name = moved(f"kept_{one.name}", str(places[0]))
            return f"*(__local const {real}{width} *)({name})"
        return vector(real, [self._element(j, at) for at in places])

    def _element(self, j: int, at: Expr) -> str:
        """Operand ``j`` of one element, so far from where the tile begins."""
        operand = self.types.computation.operands[j]
        if j in self.shared:
            return f"kept_{operand.name}[{at}]"
        begins = f"{operand.name}_at"
        if operand.name == OLD:
            begins = "dst_at" if self.types.target else ""
        return self.types.load_operand(operand, str(Var(begins) + at if begins else at), 1)

    def _strides(self, j: int) -> Sequence[Expr]:
        name = self.types.computation.operands[j].name
        if name == OLD:
            return self.dst
        return [self.arguments.expression(f"{name}_stride{k}", n.operands[j])
                for k, n in enumerate(self.layout.nodes)]  # fmt: skip

    def _loops_shared(self, j: int) -> list[int]:
        """The loops along which an operand's values differ, where many elements share each.

        Not where there are guards along them: of padding it has no values.
        """
        layout = self.layout
        along = [n.operands[j].value != 0 or not n.operands[j].fixed for n in layout.nodes]
        loops = [k for k in layout.write.order if along[k] and layout.sizes[k] > 1]
        count = prod(layout.sizes[k] for k in loops)
        is_guarded = any(goes and n.guard is not None
                         for n, goes in zip(layout.nodes, along, strict=True))  # fmt: skip
        is_old = self.types.computation.operands[j].name == OLD
        if layout.banks is None or is_old or is_guarded or count > MOST_SHARED:
            return []
        return loops if count * SHARED_BY <= prod(layout.sizes) else []

    def _shared(self, j: int, loops: Sequence[int]) -> Shared:
        operand, sizes = self.types.computation.operands[j], self.layout.sizes
        pitches, count = {}, 1
        for k in loops:
            pitches[k] = count
            count *= sizes[k]
        steps = {k: Var("i") // pitch % sizes[k] for k, pitch in pitches.items()}
        tests = [f"{Var(f'x{k}') + step} < {self.sizes[k]}"
                 for k, step in steps.items() if k not in self.layout.whole]  # fmt: skip
        tests += [f"i < {count}"] if count % self.group else []
        strides = self._strides(j)
        at = total([Var(f"{operand.name}_at"), *(step * strides[k] for k, step in steps.items())])
        value = self.types.load_operand(operand, "at", 1)
        return Shared(operand.name, pitches, count, " && ".join(tests), str(at), value)
