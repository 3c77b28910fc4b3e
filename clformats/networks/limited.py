"""Plans whose arena stays within a limit: `propagate` with a ``memory_limit``, by HiGHS.

To the program of `clformats.solver.highs` come columns that say whether a value's buffer in a
format is alive while a node runs, and rows: what is alive while a node or a reorder runs, fits.
Gaps between buffers are not in these rows, nor that several reorders may run before one node. So
they are a relaxation: what they forbid does not exist, and what they allow is checked.
Where its arena is too large, another plan is asked for, at last with a smaller limit.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from ..errors import InvalidNetwork
from ..recording.arena import ALIGNMENT, rounded
from ..solver.highs import FlowProgram, Terms, times
from .build import OUTPUT, BuiltProblem
from .decision import Plan
from .graph import Value
from .memory import plan_memory
from .named import FormatName, named
from .views import kind_of

ATTEMPTS = 10
Place = tuple[int, int]
"""The number of a tensor of the problem, and of one of its formats."""


def fitted(free: Plan, limit: int) -> Plan:
    """The cheapest plan with an arena of at most ``limit`` bytes; ``free`` is that without limit.

    Raises `InvalidNetwork` where no such plan exists, or none was found.
    """
    needed = plan_memory(free).nbytes
    if needed <= limit:
        return free
    asked, bound = limit, free.bound
    refused: list[tuple[int, ...]] = []
    for attempt in range(2 * ATTEMPTS):
        solution, proven = _Limited(free.built, asked, refused).solve()
        if solution is None:
            break
        if asked == limit:
            bound = max(bound, min(proven, solution.bound))
        plan = free.decided(free.built, solution.assignment, bound)
        memory = plan_memory(plan)
        if memory.nbytes <= limit:
            return plan
        refused.append(solution.assignment)
        if attempt >= ATTEMPTS:
            asked = min(asked, memory.lower_bound) - ALIGNMENT
    none = "there is no plan" if asked == limit else "no plan was found"
    raise InvalidNetwork(
        f"memory_limit: {none} whose arena fits in {limit} bytes; the cheapest plan has one of "
        f"{needed} bytes"
    )


class _Limited(FlowProgram):
    """The program of a network with a row for the memory of each step.

    Steps are the nodes' numbers; the last one is the end, when outputs are delivered. Of each value
    ``makers`` are the nodes that write it, ``born`` says at which step, ``reads`` at which each
    reader reads it, and ``kept`` whether it is delivered as it is written. ``shares`` has the bytes
    of each buffer, as a share of the limit.
    """

    def __init__(self, built: BuiltProblem, limit: int, refused: Sequence[Sequence[int]]) -> None:
        super().__init__(built.problem, whole_flows=True)
        for assignment in refused:
            taken = [own[k] for own, k in zip(self.chosen, assignment, strict=True)]
            self.program.row(times(1.0, taken), high=len(taken) - 1.0)
        self.built = built
        self.step = {node.name: t for t, node in enumerate(built.order)}
        self.end = len(built.order)
        self.number = {t.name: k for k, t in enumerate(built.problem.tensors)}
        self.makers = [built.network.producer(name) for name in self.number]
        self.born = [0 if maker is None else self.step[maker.name] for maker in self.makers]
        at = self.step | {OUTPUT: self.end}
        self.reads = [[at[n] for n, _ in built.reading.get(name, [])] for name in self.number]
        delivered = {v.name for v in built.network.outputs} - {*built.network.fixed}
        self.kept = [name in delivered for name in self.number]
        self.shares = {
            (k, f): rounded(built.network.values[name].nbytes(fmt)) / limit
            for name, k in self.number.items()
            for f, fmt in enumerate(built.formats[name])
        }
        self.inside = list(self._views())
        self.ranges = self._ranges()
        self.alive: dict[tuple[Place, int], int] = {
            ((k, f), t): self.program.column()
            for k, (first, last) in enumerate(self.ranges)
            for f in range(len(built.problem.tensors[k].distances))
            for t in range(first, last + 1)
        }
        for k in range(len(self.ranges)):
            self._lives(k)
        for column, inner, outer in self.inside:
            for t in range(self.ranges[inner[0]][0], self.ranges[inner[0]][1] + 1):
                self._least(outer, t, times(1.0, [self.alive[inner, t]]), times(1.0, [column]))
        self._limit(limit)

    # --- when ------------------------------------------------------------------------------------

    def _views(self) -> Iterator[tuple[int, Place, Place]]:
        """The column of each choice that shares memory, what lies inside, and in what."""
        for node in self.built.order:
            columns = self.chosen[self.built.variable[node.name]]
            for column, choice in zip(columns, self.built.choices[node.name], strict=True):
                for i, o in choice.shared:
                    pair = (self._place(node.inputs[i], choice.ins[i]),
                            self._place(node.outputs[o], choice.outs[o]))  # fmt: skip
                    inner, outer = pair if kind_of(node.op) == "part" else pair[::-1]
                    yield column, inner, outer

    def _place(self, value: Value, fmt: FormatName | None) -> Place:
        name = named(fmt)
        keys = [f.key for f in self.built.formats[value.name]]
        return self.number[value.name], keys.index(name.key)

    def _ranges(self) -> list[tuple[int, int]]:
        """The first and the last step at which each value, or what lies in it, may be alive."""
        values = zip(self.born, self.reads, self.kept, strict=True)
        found = [(born, max([born, *reads, self.end * kept])) for born, reads, kept in values]
        changed = True
        while changed:
            changed = False
            for _, (inner, _), (outer, _) in self.inside:
                wide = (min(found[inner][0], found[outer][0]), max(found[inner][1],
                        found[outer][1]))  # fmt: skip
                changed |= wide != found[outer]
                found[outer] = wide
        return found

    # --- what is alive ----------------------------------------------------------------------------

    def _lives(self, k: int) -> None:
        flows, steps, born = self.flows[k], self.reads[k], self.born[k]
        for f, columns in enumerate(flows.written):
            place, written = (k, f), times(1.0, columns)
            if self.makers[k] is not None:
                self._least(place, born, written)
            for t in range(born, self.end + 1) if self.kept[k] else ():
                self._least(place, t, written)
            for r, last in enumerate(steps):
                wanted = times(1.0, flows.read[r][f])
                self._least(place, last, wanted)
                for t in range(born, last):
                    self._least(place, t, wanted, written)
                    for other, before in enumerate(steps):
                        if before <= t:
                            moved = [c for (_, b), c in flows.moved[other].items() if b == f]
                            self._least(place, t, wanted, times(1.0, moved))
                    # What a later reader has reordered for it first, is alive until then.
                    for a, b in flows.moved[r]:
                        if a == f:
                            self._least(place, t, written, self._first(k, r, (a, b)))

    def _first(self, k: int, r: int, step: tuple[int, int]) -> Terms:
        """Whether a reorder runs for this reader, and for none before it."""
        moved, steps = self.flows[k].moved, self.reads[k]
        before = [moved[other][step] for other, t in enumerate(steps) if (t, other) < (steps[r], r)]
        return [(moved[r][step], 1.0), *times(-1.0, before)]

    def _least(self, place: Place, t: int, *things: Terms) -> None:
        """A buffer is alive where one thing is so, or where all of several are."""
        terms = [(column, -factor) for thing in things for column, factor in thing]
        self.program.row([(self.alive[place, t], 1.0), *terms], low=1.0 - len(things))

    # --- bytes ------------------------------------------------------------------------------------

    def _limit(self, limit: int) -> None:
        rows: list[Terms] = [[] for _ in range(self.end + 1)]
        for (place, t), column in self.alive.items():
            own = self._own(place, times(1.0, [column])) if self._viewed(place) else column
            rows[t].append((own, self.shares[place]))
        for node in self.built.order:
            v = self.built.variable[node.name]
            for column, choice in zip(self.chosen[v], self.built.choices[node.name], strict=True):
                if choice.workspace:
                    rows[self.step[node.name]].append((column, rounded(choice.workspace) / limit))
        for row in rows:
            if row:
                self.program.row(row, high=1.0)
        self._limit_reorders()

    def _limit_reorders(self) -> None:
        """What is alive before a node as well as while it runs, and both sides of a reorder."""
        staying = {(place, t): self._own(place, *alive) for place, t, alive in self._staying()}
        totals = [self.program.column() for _ in range(self.end + 1)]
        sums = [[(total, -1.0)] for total in totals]
        for (place, t), column in staying.items():
            sums[t].append((column, self.shares[place]))
        for terms in sums:
            self.program.row(terms, high=0.0)
        for k, flows in enumerate(self.flows):
            for r, t in enumerate(self.reads[k]):
                for step in flows.moved[r]:
                    row = [(totals[t], 1.0)]
                    for place in ((k, f) for f in step):
                        counted = self._viewed(place)
                        counted += [staying[place, t]] if (place, t) in staying else []
                        for column, factor in self._first(k, r, step) + times(-1.0, counted):
                            row.append((column, factor * self.shares[place]))
                    self.program.row(row, high=1.0)

    def _staying(self) -> Iterator[tuple[Place, int, list[Terms]]]:
        """Buffers that are alive at a step and at the one before.

        Inputs are so from the start, in the format in which they are given: what a reorder makes of
        one is not there before it.
        """
        for (place, t), column in self.alive.items():
            k, f = place
            if (place, t - 1) in self.alive:
                yield place, t, [times(1.0, [column]), times(1.0, [self.alive[place, t - 1]])]
            elif self.makers[k] is None and self.flows[k].written[f]:
                yield place, t, [times(1.0, [column]), times(1.0, self.flows[k].written[f])]

    def _viewed(self, place: Place) -> list[int]:
        return list({column for column, inner, _ in self.inside if inner == place})

    def _own(self, place: Place, *alive: Terms) -> int:
        """The column of a buffer that is alive, as all of these say, and in no other."""
        own = self.program.column()
        against = [(column, -factor) for terms in alive for column, factor in terms]
        row = [*times(1.0, [own, *self._viewed(place)]), *against]
        self.program.row(row, low=1.0 - len(alive))
        return own
