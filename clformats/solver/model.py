"""A `AssignmentProblem` as variables and tables: what elimination works on.

The cost of a value's reorders is a function of the format it is written in and of all those it is
read in. Three exact forms keep the tables small:

* one reader: a table of distances;
* two readers: the tree has one fork, a variable of its own with three tables of distances;
* more: a variable for the set of formats that are read, of as many as there are readers at most.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from math import comb

import numpy as np
from numpy.typing import NDArray

from .problem import ANY, AssignmentProblem, FormatSlot, ReorderedValue
from .trees import Array, set_costs

Scope = tuple[int, ...]
Formats = NDArray[np.intp]


@dataclass(slots=True)
class GraphicalModel:
    """Sizes of variables, and tables over them. The first variables are the problem's.

    ``fits``: no table of it would have more than ``limit`` entries; else it lacks some.
    """

    limit: int
    sizes: list[int] = field(default_factory=list)
    tables: list[tuple[Scope, Array]] = field(default_factory=list)
    fits: bool = True
    _slots: dict[tuple[int, bytes], int] = field(default_factory=dict)
    _sets: dict[tuple[int, bytes], tuple[NDArray[np.bool_], Array]] = field(default_factory=dict)

    @classmethod
    def of(cls, problem: AssignmentProblem, limit: int) -> GraphicalModel:
        """The model of a problem."""
        model = cls(limit, [len(costs) for costs in problem.costs])
        model.tables = [((v,), costs) for v, costs in enumerate(problem.costs)]
        model.tables += [((a, b), table) for a, b, table in problem.pairs]
        for tensor in problem.tensors:
            if len(tensor.distances) > 1 and tensor.readers:
                model._add_tensor(tensor)
        return model

    def variable(self, size: int) -> int:
        """A new variable."""
        self.sizes.append(size)
        return len(self.sizes) - 1

    def _add_tensor(self, tensor: ReorderedValue) -> None:
        source = self._slot(tensor.source, unshared=True)
        names = [s.variable for s in tensor.readers]
        leaves: list[FormatSlot] = []
        for slot in tensor.readers:
            leaf = self._slot(slot, unshared=names.count(slot.variable) == 1)
            if not any(_same(leaf, other) for other in leaves):
                leaves.append(leaf)
        distance = tensor.distances.table
        if len(leaves) == 1:
            self._link(distance, source, leaves[0])
        elif len(leaves) == 2:
            fork = FormatSlot(self.variable(len(distance)), np.arange(len(distance)))
            self._link(distance, source, fork)
            for leaf in leaves:
                self._link(distance, fork, leaf)
        else:
            self._add_set(distance, source, leaves)

    def _slot(self, slot: FormatSlot, *, unshared: bool) -> FormatSlot:
        """The slot on a variable that has one value for each format, where that is smaller."""
        formats, labels = np.unique(slot.formats, return_inverse=True)
        size = self.sizes[slot.variable]
        if unshared and len(formats) == size:
            return slot
        key = (slot.variable, labels.astype(np.int32).tobytes())
        if not unshared:
            key = (slot.variable, key[1] + slot.formats.tobytes())
        if key not in self._slots:
            made = self._slots[key] = self.variable(len(formats))
            link = np.where(labels[:, None] == np.arange(len(formats)), 0.0, np.inf)
            self.tables.append(((slot.variable, made), link))
        return FormatSlot(self._slots[key], formats)

    def _link(self, distance: Array, source: FormatSlot, reader: FormatSlot) -> None:
        table = _read_costs(distance[source.formats], reader.formats)
        self.tables.append(((source.variable, reader.variable), table))

    def _add_set(self, distance: Array, source: FormatSlot, leaves: Sequence[FormatSlot]) -> None:
        formats, most = len(distance), min(len(leaves), len(distance))
        if formats * sum(comb(formats, size) for size in range(most + 1)) > self.limit:
            self.fits = False
            return
        key = most, distance.tobytes()
        if key not in self._sets:
            self._sets[key] = set_costs(distance, most)
        has, table = self._sets[key]
        members = self.variable(len(has))
        self.tables.append(((members, source.variable), table[:, source.formats]))
        costs = np.where(has, 0.0, np.inf)
        for leaf in leaves:
            self.tables.append(((members, leaf.variable), _read_costs(costs, leaf.formats)))


def _read_costs(table: Array, formats: Formats) -> Array:
    """The columns of these formats; nothing for what is read as it is."""
    return np.where(formats == ANY, 0.0, table[:, formats])


def _same(a: FormatSlot, b: FormatSlot) -> bool:
    return a.variable == b.variable and bool(np.array_equal(a.formats, b.formats))
