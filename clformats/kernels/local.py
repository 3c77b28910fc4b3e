"""Kernels for GPUs: a work-group moves a box, through local memory or without it."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from math import prod

from ..formats.expr import Const, Expr, Var, as_expr, total
from ..schedule.banks import Pass
from ..schedule.local import LocalPlan
from ..schedule.plan import Plan
from ..templates import render
from ..values.attr import OLD
from .computation import Computed, types_of
from .source import Arguments, Launch, moved, starts
from .types import Conversion


@dataclass(frozen=True, slots=True)
class PassText:
    """One pass in the kernel.

    It takes ``count`` vectors of ``width`` elements. ``digits`` say how far into the box, along
    each loop, the first element of a vector is, ``places`` where its elements lie in local memory,
    ``offset`` where it lies in the tensor, from the box's first element on.
    """

    width: int
    count: int
    digits: list[tuple[str, str]]
    places: list[str]
    offset: str


@dataclass(frozen=True, slots=True)
class GuardText:
    """A guard: its index is ``value``; the conditions for elements and for what is stored."""

    name: str
    value: str
    inside: str
    exists: str


def launch(plan: Plan, body: LocalPlan) -> Launch:
    """The kernel and its arguments."""
    types = types_of(body.problem)
    writer = _Writer(body, types, Arguments(plan.choices.baked))
    source = render("local", **writer.values(), wide=body.problem.is_wide, types=types)
    given = writer.arguments.given
    items = body.groups * body.group
    return Launch(source, given, body.problem.is_wide, items, body.group, types.buffers)


class _Writer:
    """Turns a `LocalPlan` into the texts that the template arranges.

    Along loop k the group's box starts at ``x<k>``, and an element is ``t<k>`` steps behind that.
    """

    def __init__(self, plan: LocalPlan, types: Conversion, arguments: Arguments) -> None:
        self.plan = plan
        self.types = types
        self.arguments = arguments
        self._number = self.arguments.expression
        loops = range(len(plan.nodes))
        self.sizes = [self._number(f"size{k}", plan.nodes[k].size) for k in loops]
        self.src = [self._number(f"src_stride{k}", n.src) for k, n in enumerate(plan.nodes)]
        self.dst = [self._number(f"dst_stride{k}", n.dst) for k, n in enumerate(plan.nodes)]
        self.arguments.values.update(src0=plan.problem.src0, dst0=plan.problem.dst0)
        self.moving = [
            k for k, n in enumerate(plan.nodes) if k not in plan.whole and n.size.value > 1
        ]
        self.guards = [self._guard(g) for g in range(len(plan.problem.guards))]

    def values(self) -> dict[str, object]:
        """Everything that ``local.mako`` uses, beside the types."""
        plan, p, types = self.plan, self.plan.problem, self.types
        read, write = self._pass(plan.read, self.src), self._pass(plan.write, self.dst)
        return {
            "title": f"{p.src.format} -> {p.dst.format}: {plan.structure}",
            "group": plan.group,
            "places": plan.local_elements,
            "starts": starts([(k, self.sizes[k], plan.box[k]) for k in self.moving]),
            "src_base": str(self._sum("x", self.src, Var("src0"))),
            "dst_base": str(self._sum("x", self.dst, Var("dst0"))),
            "tails": self._tails(),
            "guards": [g for g in self.guards if g.inside or g.exists],
            "read": read,
            "write": write,
            "loaded": types.load(moved("src", read.offset), read.width, aligned=True),
            **self._stores(write),
            "declarations": self.arguments.declarations + types.parameters,
            "constants": self.arguments.constants,
        }

    def _sum(self, letter: str, factors: Sequence[Expr], start: Expr | int = 0) -> Expr:
        """The sum over the loops of where the box starts (x), or how far it is into it (t)."""
        plan = self.plan
        inside = [k for k, box in enumerate(plan.box) if box > 1]
        loops = inside if letter == "t" else self.moving
        return total([as_expr(start), *(Var(f"{letter}{k}") * factors[k] for k in loops)])

    def _tails(self) -> list[str]:
        """The conditions that a box which reaches beyond its loops needs."""
        plan = self.plan
        return [
            f"x{k} + t{k} < {self.sizes[k]}"
            for k, n in enumerate(plan.nodes)
            if plan.box[k] > 1 and k not in plan.whole
            and not (n.size.fixed and n.size.value % plan.box[k] == 0)
        ]  # fmt: skip

    def _guard(self, g: int) -> GuardText:
        plan, guard = self.plan, self.plan.problem.guards[g]
        units = [Const(n.unit if n.guard == g else 0) for n in plan.nodes]
        cover = 1 + sum((n.size.value - 1) * n.unit for n in plan.nodes if n.guard == g)
        tests = []
        if guard.lo.value > 0:
            tests.append(f"g{g} >= {self._number(f'lo{g}', guard.lo)}")
        if guard.hi.value < cover:
            tests.append(f"g{g} < {self._number(f'hi{g}', guard.hi)}")
        ends = guard.end.value < cover
        return GuardText(
            f"g{g}",
            str(self._sum("x", units) + self._sum("t", units)),
            " && ".join(tests),
            f"g{g} < {self._number(f'end{g}', guard.end)}" if ends else "",
        )

    def _pass(self, p: Pass, strides: Sequence[Expr]) -> PassText:
        plan, e = self.plan, Var("e" if p.width > 1 else "n")
        digits = [(f"t{k}", str(text)) for k, text in zip(p.order, self._digits(p, e), strict=True)]
        places: list[str] = []
        if plan.pitch and p.order and plan.box[p.order[0]] % p.width == 0:
            at = self._sum("t", [Const(n) for n in plan.pitch])
            places = [str(at + plan.pitch[p.order[0]] * j) for j in range(p.width)]
        elif plan.pitch:
            for j in range(p.width):
                steps = zip(p.order, self._digits(p, e + j), strict=True)
                places.append(str(total([t * plan.pitch[k] for k, t in steps])))
        count = prod(plan.box) // p.width
        return PassText(p.width, count, digits, places, str(self._sum("t", strides)))

    def _digits(self, p: Pass, e: Expr) -> list[Expr]:
        """How far element ``e`` of a pass is into the box, along each of its loops."""
        texts, step = [], 1
        for k in p.order:
            last = k == p.order[-1]
            texts.append(e // step if last else e // step % self.plan.box[k])
            step *= self.plan.box[k]
        return texts

    def _stores(self, write: PassText) -> dict[str, object]:
        """What is stored of a vector: a text for each of its elements, or for all together."""
        types, width, to = self.types, write.width, moved("dst", write.offset)
        kept = [f"kept[{place}]" for place in write.places]
        if not kept:
            kept = ["value"] if width == 1 else [f"value.s{j:x}" for j in range(width)]
        if not isinstance(types, Computed):
            value = _vector(types.work, kept) if write.places else "value"
            return {"operands": [], "result": "", "stored": types.store(value, to, width)}
        operands = self._operands(types)
        texts = [
            types.call(value, [self._operand(types, k, j) for k in range(len(operands))], 1)
            for j, value in enumerate(kept)
        ]
        return {
            "operands": [o for o in operands if o],
            "result": _vector(types.dst, texts),
            "stored": types.store("result", to, width),
        }

    def _operands(self, types: Computed) -> list[tuple[str, str] | None]:
        """(variable, value): where the box starts in each operand; None for the destination."""
        result: list[tuple[str, str] | None] = []
        for j, operand in enumerate(types.computation.operands):
            if operand.name == OLD:
                result.append(None)
                continue
            name = operand.name
            self.arguments.values[f"{name}0"] = self.plan.problem.operands0[j]
            strides = self._operand_strides(j, name)
            result.append((f"{name}_at", str(self._sum("x", strides, Var(f"{name}0")))))
        return result

    def _operand_strides(self, j: int, name: str) -> list[Expr]:
        return [
            self._number(f"{name}_stride{k}", n.operands[j]) for k, n in enumerate(self.plan.nodes)
        ]

    def _operand(self, types: Computed, j: int, lane: int) -> str:
        """Operand ``j`` for one element of a vector."""
        operand, inner = types.computation.operands[j], self.plan.write.order[:1]
        is_old = operand.name == OLD
        strides = self.dst if is_old else self._operand_strides(j, operand.name)
        at = self._sum("t", strides, 0 if is_old else Var(f"{operand.name}_at"))
        if lane:
            at = at + strides[inner[0]] * lane
        return types.load_operand(operand, str(at), 1)


def _vector(name: str, elements: Sequence[str]) -> str:
    """A vector of elements; one is itself."""
    return elements[0] if len(elements) == 1 else f"({name}{len(elements)})({', '.join(elements)})"
