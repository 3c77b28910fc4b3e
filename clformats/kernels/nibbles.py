"""Kernels of the nibbles family: elements of four bits, taken from bytes and put into them.

Between the byte and the element that is a half of it, values are s8 or u8: those convert to and
from every other type, and clamping them gives the four bits (rounding and saturating to eight bits
and clamping then is the same as saturating to four at once).
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, fields, replace
from typing import Any

from ..formats.expr import Expr, Var, total
from ..schedule.computation import Computation, Operand
from ..schedule.generic import GROUP_ITEMS
from ..schedule.nibbles import RUN_ELEMENTS, NibblesPlan
from ..schedule.plan import Plan
from ..schedule.problem import Node, Number, Problem
from ..templates import render
from ..tensors.desc import MemoryDesc
from ..tensors.dtypes import DType, as_dtype
from ..values.attr import OLD
from .computation import Computed, as_real, computed_of
from .generic import common_parts, computed_text, dst_offset
from .source import Arguments, Launch, moved
from .types import KernelConversion, conversion

AS_BYTE = {"s4": as_dtype("s8"), "u4": as_dtype("u8")}
"""The types that stand for elements of four bits once they have a byte of their own."""


@dataclass(frozen=True, slots=True)
class ComputedHalves(Computed):
    """As `Computed`, where operands have elements of four bits: ``halves``, by their names."""

    halves: tuple[tuple[str, str], ...]

    def load_operand(self, operand: Operand, at: str, width: int) -> str:
        """An expression: ``width`` elements of an operand from offset ``at``, in the real type."""
        dtype = dict(self.halves).get(operand.name)
        if dtype is None:
            return Computed.load_operand(self, operand, at, width)
        value = f"half_{dtype}({self.pointer(operand)}, {at})"
        return as_real(value, AS_BYTE[dtype], self.computation.real, "")


@dataclass(frozen=True, slots=True)
class Runs:
    """A walk over runs, as texts: (variable, size) of the loops outside, innermost first.

    ``computed`` is by width the expression of what is stored of ``value``, where anything is.
    """

    loops: Sequence[tuple[str, str]]
    src_base: str
    dst_base: str
    computed: dict[int, str]

    per_item = RUN_ELEMENTS
    widths = (16, 2)


def launch(plan: Plan, body: NibblesPlan) -> Launch:
    """The kernel and its arguments."""
    p = plan.problem
    types = _types_of(p)
    arguments = Arguments()
    runs = _runs(body, body.inner, types, arguments) if body.inner else None
    places = None if runs else _places(body, types, arguments)
    names = [t.name if t.is_packed else "" for t in p.dtypes]
    packed = {d.dtype.name for d in (p.src, *p.operand_descs) if d.dtype.is_packed}
    source = render(
        "nibbles",
        runs=runs,
        places=places,
        title=f"{p.src.format} -> {p.dst.format}: {p.src.dtype} to {p.dst.dtype}, two to a byte",
        wide=p.is_wide,
        types=types,
        src_name=names[0],
        dst_name=names[1],
        halves=sorted(packed),
        declarations=arguments.declarations + types.parameters,
    )
    local = GROUP_ITEMS if body.inner is None else 1
    items = -(-body.items // local) * local
    return Launch(source, tuple(arguments.values.values()), p.is_wide, items, local)


def _as_byte(dtype: DType) -> DType:
    return AS_BYTE.get(dtype.name, dtype)


def _types_of(p: Problem) -> KernelConversion:
    """The types of the kernel, with bytes in the place of their halves."""
    src, dst = map(_as_byte, p.dtypes)
    if p.computation is None:
        return conversion(src, dst)
    operands = p.computation.operands
    computed = computed_of(src, dst, replace(p.computation, operands=tuple(map(_bytes, operands))))
    values = {f.name: getattr(computed, f.name) for f in fields(computed)}
    halves = tuple((o.name, o.desc.dtype.name) for o in operands if o.desc.dtype.is_packed)
    return ComputedHalves(**values, halves=halves)


def _bytes(operand: Operand) -> Operand:
    """The operand with memory that is declared as bytes; its offsets stay those of halves."""
    if not operand.desc.dtype.is_packed:
        return operand
    return replace(operand, desc=MemoryDesc.of(operand.desc.geometry, "u8"))


def _places(body: NibblesPlan, types: KernelConversion, arguments: Arguments) -> dict[str, Any]:
    """What the template needs to make the destination byte by byte, or place by place."""
    p = body.problem
    arguments.values["items"] = body.items
    common = common_parts(p, arguments)
    # Two places with consecutive numbers share a byte only if numbers rise as offsets do.
    strides = {f"v{k}": placed.stride for k, placed in enumerate(p.dst.placed) if placed.size > 1}
    digits = sorted(common["digits"], key=lambda digit: strides.get(digit[0], 0))
    to = dst_offset(p.dst, arguments)
    return {
        **common,
        "digits": digits,
        "dst_offset": to,
        "computed": computed_text(types, arguments, to),
    }


def _runs(body: NibblesPlan, inner: Node, types: KernelConversion, arguments: Arguments) -> Runs:
    """What the template needs to walk over runs."""
    p = body.problem
    arguments.values.update(count=inner.size.value, src0=p.src0, dst0=p.dst0)
    loops = [(f"at{k}", arguments.text(f"size{k}", node.size)) for k, node in enumerate(body.outer)]
    src = _base("src", [n.src for n in body.outer], arguments)
    dst = _base("dst", [n.dst for n in body.outer], arguments)
    computed: dict[int, str] = {}
    if isinstance(types, Computed):
        operands = zip(
            types.computation.operands,
            _operand_bases(body, types.computation, dst, arguments),
            [stride.value == 1 for stride in inner.operands],
            strict=True,
        )
        computed = _computed(types, list(operands))
    return Runs(loops[::-1], src, dst, computed)


def _computed(types: Computed, operands: Sequence[tuple[Operand, str, bool]]) -> dict[int, str]:
    """What is stored of ``value``; an operand has one element for each, or one for all."""
    return {
        width: types.call(
            "value",
            [
                types.load_operand(o, moved(base, "i"), width) if each
                else types.spread(types.load_operand(o, base, 1), width)
                for o, base, each in operands
            ],
            width,
        )
        for width in (1, *Runs.widths)
    }  # fmt: skip


def _operand_bases(
    body: NibblesPlan, computation: Computation, dst: str, arguments: Arguments
) -> list[str]:
    """Where each operand's run starts."""
    bases = []
    for k, operand in enumerate(computation.operands):
        if operand.name == OLD:
            bases.append(dst)
            continue
        arguments.values[f"{operand.name}0"] = body.problem.operands0[k]
        strides = [node.operands[k] for node in body.outer]
        bases.append(_base(operand.name, strides, arguments))
    return bases


def _base(side: str, strides: Sequence[Number], arguments: Arguments) -> str:
    """How far the start of a run is from the start of the memory, in elements."""
    terms: list[Expr] = [Var(f"{side}0")]
    for k, stride in enumerate(strides):
        text = arguments.text(f"{side}_stride{k}", stride)
        terms.append(Var(f"at{k}") * (stride.value if stride.fixed else Var(text)))
    return str(total(terms))
