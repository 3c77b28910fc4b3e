"""A network as an assignment problem: variables with costs, values that are reordered, exclusions.

Formats are numbers here. A variable is a node's choice, or the format that an input of the network
is given in. A `ReorderedValue` says for each choice of the variable that writes it, and of those
that read it, which of the value's formats that means.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field

import numpy as np
from numpy.typing import ArrayLike, NDArray

from .trees import Array, Distances, Edges, chain

ANY = -1
"""Instead of a format: reads the value as it is."""
CLOSE = 1e-9
"""Where bound and cost differ by less, relative to the cost, they are equal."""


@dataclass(frozen=True, slots=True)
class FormatSlot:
    """A variable that writes or reads a value, and for each of its choices the value's format."""

    variable: int
    formats: NDArray[np.intp]


@dataclass(frozen=True, slots=True)
class ReorderedValue:
    """A value: the closed distances between its formats, who writes it and who reads it."""

    name: str
    distances: Distances
    source: FormatSlot
    readers: tuple[FormatSlot, ...]

    def formats(self, assignment: Sequence[int]) -> tuple[int, list[int]]:
        """The format it is written in, and those that its readers read, reader by reader."""
        root = int(self.source.formats[assignment[self.source.variable]])
        found = [int(s.formats[assignment[s.variable]]) for s in self.readers]
        return root, [root if d == ANY else d for d in found]

    def cost(self, assignment: Sequence[int]) -> float:
        """What the reorders cost under an assignment."""
        return self.distances.served(*self.formats(assignment))[0]

    def reorders(self, assignment: Sequence[int]) -> Edges:
        """The reorders of the cheapest tree, each after the one that makes what it reads."""
        root, wanted = self.formats(assignment)
        made: dict[int, int] = {}  # from which format each one is made
        for edge in self.distances.served(root, wanted)[1]:
            for src, dst in chain(self.distances.last, *edge):
                if dst != root:
                    made.setdefault(dst, src)
        return [(src, dst) for dst, src in made.items()]


@dataclass(slots=True)
class AssignmentProblem:
    """Variables, tensors, and pairs of variables with a table: 0, or infinity for what excludes."""

    names: list[str] = field(default_factory=list)
    costs: list[Array] = field(default_factory=list)
    tensors: list[ReorderedValue] = field(default_factory=list)
    pairs: list[tuple[int, int, Array]] = field(default_factory=list)

    def add(self, name: str, costs: ArrayLike) -> int:
        """Add a variable; its number."""
        self.names.append(name)
        self.costs.append(np.array(costs, float))
        return len(self.names) - 1

    def total(self, assignment: Sequence[int]) -> float:
        """What an assignment costs: choices, reorders, and infinity where two exclude each other.

        A tree of reorders costs the distances of its edges, so what is told here is exact.
        """
        cost = sum(float(c[k]) for c, k in zip(self.costs, assignment, strict=True))
        cost += sum(float(table[assignment[a], assignment[b]]) for a, b, table in self.pairs)
        return cost + sum(t.cost(assignment) for t in self.tensors)


@dataclass(frozen=True, slots=True)
class Solution:
    """A value for each variable of a problem, what that costs, and a proven lower bound."""

    assignment: tuple[int, ...]
    cost: float
    bound: float

    @property
    def exact(self) -> bool:
        """Whether nothing cheaper exists."""
        return self.cost <= self.bound + CLOSE * max(abs(self.cost), abs(self.bound))
