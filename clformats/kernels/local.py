"""Kernels for GPUs: a work-group moves a tile, through local memory or without it."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from functools import partial
from math import prod

from ..formats.expr import Const, Expr, Var, total
from ..problems.guards import limits, places
from ..problems.problem import Number
from ..problems.thresholds import BANK_BYTES
from ..schedule.banks import Pass
from ..schedule.local import GroupPlan
from ..schedule.plan import Plan
from ..templates import filled
from . import exchange, kept
from .computation import Computed, types_of
from .digits import Digits
from .group_operands import GroupOperands
from .kept import lanes_of, vector
from .passes import Anywhere, GroupMove, Lane, PassText, Runs
from .source import Arguments, Launch, divided, moved
from .types import KernelConversion, swizzle

NEVER = "false"
"""A condition that does not hold."""
AT_ONCE = 8
"""Loads of a work-item that are on their way before the first value is used, at the most."""


def all_of(conditions: Sequence[str]) -> str:
    """The condition that all hold; empty for none."""
    return NEVER if NEVER in conditions else " && ".join(conditions)


def render(plan: Plan, body: GroupPlan) -> Launch:
    """The kernel and its arguments."""
    types = types_of(body.problem).in_units(loads=True)
    writer = _GroupWriter(body, types, Arguments(plan.choices.baked))
    source = filled("local", **writer.values(), wide=body.problem.is_wide, types=types)
    given = writer.arguments.given
    group = body.schedule.group
    items = writer.layout.count * group
    return Launch(source, given, body.problem.is_wide, items, group, types.buffers)


class _GroupWriter:
    """Turns a `GroupPlan` into the texts that the template arranges.

    Along loop k the group's tile starts at ``x<k>``.
    """

    def __init__(self, plan: GroupPlan, types: KernelConversion, arguments: Arguments) -> None:
        self.p, self.schedule, self.layout = plan.problem, plan.schedule, plan.layout
        self.order = [loop.axis for loop in plan.schedule.nest]
        self.types = types
        sizes = self.layout.sizes
        self.blocks = self.layout.blocks
        self.strict = [g for g in range(len(self.p.guards)) if g not in self.blocks]
        self.trades = exchange.GroupTrades(self._unit, sizes, self.p.exchanges, types.work)
        self.arguments = arguments
        self._number = self.arguments.expression
        nodes = self.layout.nodes
        self.sizes = [self._number(f"size{k}", n.size) for k, n in enumerate(nodes)]
        self.src = [self._number(f"src_stride{k}", n.src) for k, n in enumerate(nodes)]
        self.dst = [self._number(f"dst_stride{k}", n.dst) for k, n in enumerate(nodes)]
        self.arguments.values.update(src0=self.p.src0, dst0=self.p.dst0)
        self.operands = (
            GroupOperands(self.layout, types, plan.schedule.group, self.arguments, self._start,
                          self.dst, self.sizes)
            if isinstance(types, Computed) else None
        )  # fmt: skip

    def values(self) -> dict[str, object]:
        """Everything that ``local.mako`` uses, beside the types."""
        layout, p = self.layout, self.p
        positions = [(k, layout.positions(k), layout.sizes[k]) for k in self.order]
        starts, read = divided(positions, self.arguments), self._read()
        write = self._write_runs() if layout.loose[1] else self._write()
        chunks, at_once = self._loads()
        return {
            "title": f"{p.src.format} -> {p.dst.format}: {self.schedule}",
            "group": self.schedule.group,
            "places": layout.local_elements,
            "starts": starts,
            "src_base": str(self._start(self.src, Var("src0"))),
            "dst_base": str(self._start(self.dst, Var("dst0"))),
            "read": read,
            "write": write,
            "at_once": at_once,
            "chunks": chunks,
            "numbers": self.trades.numbers(self.schedule.group, at_once),
            "traded": [*self.trades.statements(at_once)],
            "exchanges": exchange.distances([p.exchanges], p.dtypes[0].bits),
            "swaps": exchange.swaps(p.swaps, p.dtypes[0].bits),
            "bases": self.operands.bases(p.operands0) if self.operands else [],
            "anywhere": self._anywhere(),
            "shared": [*self.operands.shared.values()] if self.operands else [],
            "declarations": self.arguments.declarations + self.types.parameters,
            "constants": self.arguments.constants,
        }

    def _anywhere(self) -> Anywhere | None:
        """How vectors are loaded that begin anywhere; None where none are."""
        if not self.layout.loose[0]:
            return None
        bits, nbytes = self.p.dtypes[0].bits, self.p.src.span_nbytes
        end = str(self._number("src_end", Number(nbytes * 8 // bits)))
        return Anywhere(self.layout.read.width, end, bits, nbytes % BANK_BYTES > 0)

    # ---- the parts of both passes ----------------------------------------------------------------

    def _start(self, factors: Sequence[Expr], start: Expr) -> Expr:
        """Where the tile starts in a tensor."""
        return total([start, *(Var(f"x{k}") * factors[k] for k in sorted(self.order))])

    def _offset(self, digits: Digits, p: Pass, factors: Sequence[Expr], lane: int = 0) -> Expr:
        """How far from there the first element of a unit is, or the one ``lane`` further."""
        sizes = self.layout.sizes
        parts = [(p.steps(sizes, k), factors[k] * (sizes[k] // p.steps(sizes, k))) for k in p.order]
        return digits.sum(parts, lane)

    def _step(
        self, digits: Digits, p: Pass, k: int, further: dict[int, int], lane: int = 0
    ) -> Expr:
        """How far into the tile along loop k an element is: ``further`` than its unit's first.

        Or than the one that follows ``lane`` elements after it.
        """
        at: Expr = Const(0)
        if k in p.order:
            step = 1
            for inner in p.order[: p.order.index(k)]:
                step *= p.steps(self.layout.sizes, inner)
            size = p.steps(self.layout.sizes, k)
            digit = digits.of(step, None if k == p.order[-1] else size, lane)
            at = digit * (self.layout.sizes[k] // size)
        return at + further.get(k, 0)

    def _tails(self, digits: Digits, p: Pass, further: dict[int, int]) -> list[str]:
        """The conditions that a tile which reaches beyond its loops needs."""
        return [
            f"{Var(f'x{k}') + self._step(digits, p, k, further)} < {self.sizes[k]}"
            for k in range(len(self.layout.nodes)) if self._reaches_beyond(k)
        ]  # fmt: skip

    def _reaches_beyond(self, k: int) -> bool:
        """Whether a tile may have steps of a loop that are not there."""
        size, steps = self.layout.nodes[k].size, self.layout.sizes[k]
        cut = steps > 1 and k not in self.layout.whole
        return cut and not (size.fixed and size.value % steps == 0)

    def _guards(
        self,
        digits: Digits,
        p: Pass,
        further: dict[int, int],
        guards: Collection[int],
        lane: int = 0,
    ) -> tuple[list[str], list[str]]:
        """The conditions of guards: for elements, and for what is stored."""
        inside, exists = [], []
        for g in guards:
            at, low, high = self._guarded(digits, p, further, g, lane=lane)
            guard = self.p.guards[g]
            if guard.lo.value > low:
                inside.append(f"{at} >= {self._number(f'lo{g}', guard.lo)}")
            if guard.hi.value < high:
                inside += self._below(at, f"hi{g}", guard.hi)
            if guard.end.value < high:
                exists += self._below(at, f"end{g}", guard.end)
        return inside, exists

    def _below(self, at: Expr, name: str, limit: Number) -> list[str]:
        """The condition that an index is below a limit: none where it is known to be."""
        if isinstance(at, Const) and limit.fixed:
            return [] if at.value < limit.value else [NEVER]
        return [f"{at} < {self._number(name, limit)}"]

    def _guarded(
        self,
        digits: Digits,
        p: Pass,
        further: dict[int, int],
        g: int,
        least: int = 0,
        lane: int = 0,
    ) -> tuple[Expr, int, int]:
        """A guard's index as a pass's loops by ``least`` units count it; its first and its end."""
        nodes = [(k, n) for k, n in enumerate(self.layout.nodes) if n.guard == g
                 and n.unit >= least and (not n.split or k in p.order)]  # fmt: skip
        steps = [
            ((Var(f"x{k}") if k in self.order else Const(0))
             + self._step(digits, p, k, further, lane)) * n.unit
            for k, n in nodes
        ]  # fmt: skip
        first = next((-n.split.first * (n.unit // n.split.steps) for _, n in nodes
                      if n.split and n.split.side == "src"), 0)  # fmt: skip
        end = first + places(n for _, n in nodes)
        return total(steps) + first, first, end

    def _in_blocks(self, digits: Digits, p: Pass) -> list[str]:
        """The conditions that some of a vector is there, for guards of blocks loaded as a whole."""
        found = []
        for g, block in self.blocks.items():
            guard, least, after = self.p.guards[g], 0, 0
            near = p.order[0] if p.width > 1 else -1
            if p.width > 1 and self.layout.sizes[near] % p.width:  # it is of several loops
                least, after = block, block - 1
            elif p.width > 1 and self.layout.nodes[near].guard == g:
                after = self.layout.nodes[near].unit * (p.width - 1)
            at, low, high = self._guarded(digits, p, {}, g, least)
            if guard.lo.value > low + after:
                found.append(f"{at + after} >= {self._number(f'lo{g}', guard.lo)}")
            if guard.hi.value < high:
                found += self._below(at, f"hi{g}", guard.hi)
        return found

    @property
    def _unit(self) -> Pass:
        """What a work-item loads at once."""
        layout = self.layout
        return layout.read if layout.banks else Pass(layout.read.order, layout.write.width)

    def _loads(self) -> tuple[int, int]:
        """How often a work-item loads, and how much of that at once."""
        together, loads = self.trades.together, -(-self.trades.apart // self.schedule.group)
        chunks = -(-loads * together // AT_ONCE)
        return chunks, -(-loads // chunks) * together

    def _in_count(self, count: int, *, loads: bool) -> list[str]:
        """The condition that a work-item has something to do at all."""
        together, apart = self.trades.together, self.trades.apart
        covered = prod(self._loads()) * self.schedule.group
        some_idle = covered != count if loads else count % self.schedule.group
        if loads and together > 1:
            return [f"n - k % {together} * {apart} < {apart}"] if some_idle else []
        return [f"n < {count}"] if some_idle else []

    # ---- the first pass --------------------------------------------------------------------------

    def _read(self) -> dict[str, object]:
        """What is loaded: the addresses and conditions of a vector, or of each of its elements."""
        layout, p = self.layout, self.layout.read
        unit, digits = self._unit, Digits(self._unit.width)
        count = layout.elements("src") // unit.width
        counted = self._in_count(count, loads=True)
        offset = self._offset(digits, unit, self.src)
        lanes = []
        for j in range(0, unit.width, p.width):
            further = {p.order[0]: j} if p.order else {}
            inside, _ = self._guards(digits, unit, further, self.strict)
            there = [*inside, *self._in_blocks(digits, unit)]
            test = [*counted, *self._tails(digits, unit, further), *there]
            at = Var("src_at") + offset + (self.src[p.order[0]] * j if j else 0)
            part = swizzle(j, p.width)
            lanes.append(Lane(str(at), all_of(test), all_of(inside), part))
        pointers = [f"{'' if self.types.source else 'src + '}at{j}" for j in range(len(lanes))]
        loaded = (self.types.load_anywhere("at0", p.width) if layout.loose[0]
                  else self.types.load_pieces(pointers, p.width))  # fmt: skip
        return {
            "lanes": lanes, "loaded": loaded,
            "kept": kept.stores(digits, layout.banks, p, self.types.work) if layout.banks else [],
            "counted": "".join(counted), "pass": PassText(unit.width, count, digits.texts),
        }  # fmt: skip

    # ---- the second pass -------------------------------------------------------------------------

    def _write(self) -> dict[str, object]:
        """What is stored: where to, of what, and under which conditions."""
        layout, p, digits = self.layout, self.layout.write, Digits(self.layout.write.width)
        count = layout.elements("dst") // (p.width * p.tall)
        counted = self._in_count(count, loads=layout.banks is None)
        offset = self._offset(digits, p, self.dst)
        fetched, columns = (
            kept.loads(digits, layout.banks, p, self.types.work)
            if layout.banks
            else ([], [lanes_of(p.width)])
        )
        moves = []
        for j in range(p.tall):
            further = {p.across: j} if j else {}
            inside, exists = self._guards(digits, p, further, range(len(self.p.guards)))
            test = [*self._tails(digits, p, further), *exists]
            if not layout.banks:
                test = [*counted, *test]
            at = offset + (self.dst[p.across] * j if j else 0)
            to = moved("dst_at" if self.types.target else "dst", str(at))
            result, stored = self._stored(digits, columns[j], to, further)
            zero = all_of(inside) if result else ""
            moves.append(GroupMove(all_of(test), zero, result, stored))
        text = PassText(p.width, count, digits.texts)
        return {"pass": text, "fetched": fetched, "moves": moves, "runs": None,
                "counted": "".join(counted)}  # fmt: skip

    def _write_runs(self) -> dict[str, object]:
        """The same where vectors are stored that begin anywhere."""
        layout, types, p = self.layout, self.types, self.layout.write
        assert layout.banks  # noqa: S101  # they come out of local memory
        wide, size = p.width, prod(layout.sizes[k] for k in layout.run)
        first, whole, one = Digits(size), Digits(wide, size), Digits(1)
        at = self._offset(first, p, self.dst)
        exists, ends = self._ends(first, p)
        lanes = kept.elements(whole, layout.banks, p, wide)
        value = self._with_zeros(whole, vector(types.work, lanes), lanes, {})
        (single,) = kept.elements(one, layout.banks, p, 1)
        alone = self._with_zeros(one, single, [single], {})
        runs = Runs(
            size, wide, str(Var("dst_at") + at), all_of(exists), ends, first.texts,
            (whole.texts, types.store(value, "dst + at + within", wide)),
            (one.texts, types.store(alone, "dst + at + within", 1)),
        )  # fmt: skip
        count = layout.elements("dst") // size * runs.count
        counted = self._in_count(count, loads=False)
        text = PassText(wide, count, [])
        return {"pass": text, "runs": runs, "moves": [], "counted": "".join(counted)}

    def _ends(self, digits: Digits, p: Pass) -> tuple[list[str], list[str]]:
        """Under which conditions a run exists, and how many of its elements do at the most."""
        layout, exists, ends = self.layout, [], []
        found = [([k], 1, Var(f"x{k}") + self._step(digits, p, k, {}), self.sizes[k])
                  for k in range(len(layout.nodes)) if self._reaches_beyond(k)]  # fmt: skip
        for g, guard in enumerate(self.p.guards):
            at, _, high = self._guarded(digits, p, {}, g)
            mine = [k for k in layout.run if layout.nodes[k].guard == g]
            if guard.end.value < high:
                unit = layout.nodes[mine[0]].unit if mine else 1
                found.append((mine, unit, at, self._number(f"end{g}", guard.end)))
        for mine, unit, at, limit in found:
            inside = [k for k in mine if k in layout.run]
            if not inside:
                exists.append(f"{at} < {limit}")
                continue
            each = prod(layout.sizes[k] for k in layout.run[: layout.run.index(inside[0])])
            left = (
                f"({limit} - ({at}) + {unit - 1}) / {unit}" if unit > 1 else f"({limit} - ({at}))"
            )
            ends.append(f"{left} * {each}" if each > 1 else left)
        return exists, ends

    def _stored(
        self, digits: Digits, lanes: list[str], to: str, further: dict[int, int]
    ) -> tuple[str, str]:
        """What is computed of a vector, if anything is, and the statement that stores it."""
        types, width = self.types, len(lanes)
        whole = lanes == lanes_of(width)
        if not (isinstance(types, Computed) and self.operands):
            value = "value" if whole else vector(types.work, lanes)
            return "", types.store(self._with_zeros(digits, value, lanes, further), to, width)
        offset = partial(self._offset, digits, self.layout.write)
        operands = [
            self.operands.lanes(k, width, further, offset)
            for k in range(len(types.computation.operands))
        ]
        result = types.call("value" if whole else vector(types.lane, lanes), operands, width)
        return result, types.store("result", to, width)

    def _with_zeros(
        self, digits: Digits, value: str, lanes: list[str], further: dict[int, int]
    ) -> str:
        """A vector with zeros for what is no element of blocks that are loaded as a whole."""
        p, sizes, work = self.layout.write, self.layout.sizes, self.types.work
        guards = [g for g in self.blocks if self.p.guards[g].hi.value < self.p.guards[g].end.value
                  or self.p.guards[g].lo.value]  # fmt: skip
        if not guards:
            return value
        width, alike = len(lanes), len(lanes) == 1
        if not (alike or digits.run):
            near = self.p.nodes[p.order[0]]
            ends = [sizes[p.order[0]], *limits(self.p, near, "dst", stored=False)]
            alike = near.guard not in guards or not any(n % width for n in ends)
        apart = [({}, j) if digits.run else ({p.order[0]: j} if j else {}, 0) for j in range(width)]
        tests = [
            all_of(self._guards(digits, p, {**further, **more}, guards, lane)[0])
            for more, lane in ([({}, 0)] if alike else apart)
        ]
        if not any(tests):
            return value
        if alike:
            zero = f"({work}{width})(0)" if width > 1 else f"({work})0"
            return f"{tests[0]} ? {value} : {zero}"
        chosen = [
            f"({work})0" if NEVER in t else f"({t} ? {x} : ({work})0)" if t else x
            for t, x in zip(tests, lanes, strict=True)
        ]
        return vector(work, chosen)
