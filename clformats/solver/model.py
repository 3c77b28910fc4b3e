"""A `AssignmentProblem` as variables and tables: what elimination works on.

The cost of a value's reorders is a function of the format it is written in and of all those it is
read in. Three exact forms keep the tables small:

* one reader: a table of distances;
* two readers: the tree has one fork, a variable of its own with three tables of distances;
* more: a variable for the set of formats that exist, while there are few formats (`SET_FORMATS`),
  else a `Bundle`, which elimination treats as a whole.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field

import numpy as np
from numpy.typing import NDArray

from .problem import ANY, AssignmentProblem, FormatSlot, ReorderedValue
from .trees import Array, trees

SET_FORMATS = 8
"""Up to this many formats a value with many readers gets a variable for the set of them."""

Scope = tuple[int, ...]
Formats = NDArray[np.intp]


@dataclass(frozen=True, slots=True)
class Bundle:
    """A value with many readers: trees from the source's format to those of all leaves.

    Each value of a leaf's variable is another format; none reads the value as it is.
    """

    distance: Array
    source: FormatSlot
    leaves: tuple[FormatSlot, ...]

    @property
    def readers(self) -> tuple[int, ...]:
        """The variables of the leaves."""
        return tuple(leaf.variable for leaf in self.leaves)


@dataclass(slots=True)
class GraphicalModel:
    """Sizes of variables, tables over them, and bundles. The first variables are the problem's."""

    sizes: list[int] = field(default_factory=list)
    tables: list[tuple[Scope, Array]] = field(default_factory=list)
    bundles: list[Bundle] = field(default_factory=list)
    _slots: dict[tuple[int, bytes], int] = field(default_factory=dict)
    _sets: dict[bytes, Array] = field(default_factory=dict)
    """By distances, for each set of formats, given as bits, and each root the cheapest tree."""

    @classmethod
    def of(cls, problem: AssignmentProblem) -> GraphicalModel:
        """The model of a problem."""
        model = cls([len(costs) for costs in problem.costs])
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
        slots = [self._slot(s, unshared=names.count(s.variable) == 1) for s in tensor.readers]
        leaves = [*{s.variable: s for s in slots}.values()]  # those on one variable are equal
        distance = tensor.distances.table
        if len(leaves) == 1:
            self._link(distance, source, leaves[0])
        elif len(leaves) == 2:
            fork = FormatSlot(self.variable(len(distance)), np.arange(len(distance)))
            self._link(distance, source, fork)
            for leaf in leaves:
                self._link(distance, fork, leaf)
        elif len(distance) <= SET_FORMATS:
            self._add_set(distance, source, leaves)
        else:
            apart = tuple(self._apart(leaf, len(distance)) for leaf in leaves)
            self.bundles.append(Bundle(distance, source, apart))

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
        key = distance.tobytes()
        if key not in self._sets:
            self._sets[key] = np.stack(trees(distance, [*identity(len(distance))])[0])
        members = self.variable(1 << len(distance))
        table = self._sets[key][:, source.formats]
        self.tables.append(((members, source.variable), table))
        has = np.arange(1 << len(distance))[:, None] >> np.arange(len(distance)) & 1
        costs = np.where(has, 0.0, np.inf)
        for leaf in leaves:
            self.tables.append(((members, leaf.variable), _read_costs(costs, leaf.formats)))

    def _apart(self, leaf: FormatSlot, count: int) -> FormatSlot:
        """The formats as a variable of their own, so that bundles do not wait for each other."""
        formats = np.arange(count) if ANY in leaf.formats else leaf.formats
        made = self.variable(len(formats))
        table = _read_costs(identity(count)[formats], leaf.formats)
        self.tables.append(((made, leaf.variable), table))
        return FormatSlot(made, formats)


def identity(size: int) -> Array:
    """The table of two variables that have one value."""
    return np.where(np.eye(size) > 0, 0.0, np.inf)


def leaf_costs(bundle: Bundle, leaf: FormatSlot, costs: Array) -> Array:
    """``costs[value of the leaf's variable, ...]`` as ``[format, ...]``."""
    result = np.full((len(bundle.distance), *costs.shape[1:]), np.inf)
    result[leaf.formats] = costs
    return result


def _read_costs(table: Array, formats: Formats) -> Array:
    """The columns of these formats; nothing for what is read as it is."""
    return np.where(formats == ANY, 0.0, table[:, formats])
