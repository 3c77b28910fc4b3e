"""Reorders of one value: shortest chains, and the cheapest tree that serves all readers.

A value is written in one format and read in several. A reorder serves every reader of its result,
and a reorder may start from another one's result: the reorders of a value are a tree, and the
cheapest one is a Steiner tree, here by Dreyfus and Wagner's recursion over subsets of readers.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from functools import reduce

import numpy as np
from numpy.typing import NDArray

Array = NDArray[np.float64]
Edges = list[tuple[int, int]]


def closed(costs: Array) -> tuple[Array, NDArray[np.intp]]:
    """Costs of the cheapest chains between formats, and for each pair the last step's start.

    Floyd and Warshall's algorithm; a direct reorder stays where a chain is not cheaper.
    """
    best = costs.copy()
    np.fill_diagonal(best, 0.0)
    last = np.broadcast_to(np.arange(len(best))[:, None], best.shape).copy()
    for k in range(len(best)):
        through = best[:, k, None] + best[None, k]
        shorter = through < best
        if shorter.any():
            best = np.where(shorter, through, best)
            last = np.where(shorter, last[None, k], last)
    return best, last


def chain(last: NDArray[np.intp], src: int, dst: int) -> Edges:
    """The steps of the cheapest chain."""
    steps: Edges = []
    while src != dst:
        before = int(last[src, dst])
        steps.insert(0, (before, dst))
        dst = before
    return steps


def min_plus(a: Array, b: Array) -> Array:
    """``out[i, j] = min over k of a[i, k] + b[k, j]``, where b may have more dimensions, or one."""
    if b.ndim == 1:
        return (a + b).min(axis=1)  # type: ignore[no-any-return]
    flat = b.reshape(len(b), -1)
    out = a[:, 0, None] + flat[None, 0]
    through = np.empty_like(out)
    for k in range(1, len(flat)):  # element by element, so that it is vectorised
        np.add(a[:, k, None], flat[k], out=through)
        np.minimum(out, through, out=out)
    return out.reshape(len(a), *b.shape[1:])


def splits(members: int) -> list[tuple[int, int]]:
    """The ways to part a set, given as bits, into two that are not empty, each way once."""
    low = members & -members
    found, part = [], (members - 1) & members
    while part:
        if part & low:
            found.append((part, members & ~part))
        part = (part - 1) & members
    return found


def trees(distance: Array, leaves: Sequence[Array]) -> tuple[list[Array], list[Array]]:
    """For each set of leaves, given as bits, the least cost of a tree to them, and of the leaves.

    ``leaves[i][d, ...]`` is what it costs that leaf i is read in format d; further dimensions, the
    same for all leaves or of length 1, are carried along. The first list has the costs by the
    format at the root, ``[root, ...]``, the second one by that in which the tree forks.
    """
    nothing = np.zeros(len(distance))
    tables, forks = [nothing], [nothing]
    for members in range(1, 1 << len(leaves)):
        if members & (members - 1) == 0:
            joined = leaves[members.bit_length() - 1]
        else:
            joined = reduce(np.minimum, [tables[a] + tables[b] for a, b in splits(members)])
        forks.append(joined)
        tables.append(min_plus(distance, joined))
    return tables, forks


def tree(distance: Array, root: int, leaves: Sequence[Array]) -> tuple[float, list[int], Edges]:
    """The cost of a cheapest tree, as `trees` prices it, the formats of its leaves, its steps.

    The steps are pairs of formats, each once; a step may be a chain, see `chain`.
    """
    tables, forks = trees(distance, leaves)
    chosen = [0] * len(leaves)
    edges: Edges = []
    stack = [((1 << len(leaves)) - 1, root)] if leaves else []
    while stack:
        members, at = stack.pop()
        to = int(np.argmin(distance[at] + forks[members]))
        if to != at and (at, to) not in edges:
            edges.append((at, to))
        if members & (members - 1) == 0:
            chosen[members.bit_length() - 1] = to
            continue
        a, b = min(splits(members), key=lambda ab: tables[ab[0]][to] + tables[ab[1]][to])
        stack += [(a, to), (b, to)]
    return float(tables[-1][root]), chosen, edges


class Distances:
    """The closed distances between the formats of a value, and the trees found so far."""

    def __init__(self, costs: Array) -> None:
        self.table, self.last = closed(costs)
        self._trees: dict[tuple[int, ...], tuple[float, Edges]] = {}

    def __len__(self) -> int:
        return len(self.table)

    def served(self, root: int, wanted: Iterable[int]) -> tuple[float, Edges]:
        """The cheapest tree from a format to all those wanted: its cost and steps."""
        targets = sorted(set(wanted) - {root})
        if not targets:
            return 0.0, []
        if len(targets) == 1:
            return float(self.table[root, targets[0]]), [(root, targets[0])]
        key = (root, *targets)
        if key not in self._trees:
            leaves = [np.where(np.arange(len(self)) == d, 0.0, np.inf) for d in targets]
            cost, _, steps = tree(self.table, root, leaves)
            self._trees[key] = cost, steps if np.isfinite(cost) else []
        return self._trees[key]
