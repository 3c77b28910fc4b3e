"""Kernels of the nibbles family: elements of four bits, taken from bytes and put into them.

Between the byte and the element that is a half of it, values are s8 or u8: those convert to and
from every other type, and clamping them gives the four bits (rounding and saturating to eight bits
and clamping then is the same as saturating to four at once).
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from ..dtypes import DType, as_dtype
from ..formats.expr import Expr, Var, total
from ..planner.nibbles import RUN_ELEMENTS, NibblesPlan
from ..planner.plan import Plan
from ..planner.problem import Node
from .generic import LOCAL_SIZE, common_parts, dst_offset
from .source import Arguments, Launch, render
from .types import conversion


@dataclass(frozen=True, slots=True)
class Runs:
    """A walk over runs, as texts: (variable, size) of the loops outside, innermost first."""

    loops: Sequence[tuple[str, str]]
    src_base: str
    dst_base: str

    per_item = RUN_ELEMENTS
    widths = (16, 2)


def launch(plan: Plan, body: NibblesPlan) -> Launch:
    """The kernel and its arguments."""
    p = plan.problem
    src, dst = p.dtypes
    arguments = Arguments()
    runs = _runs(body, body.inner, arguments) if body.inner else None
    places = None if runs else _places(body, arguments)
    source = render(
        "nibbles",
        runs=runs,
        places=places,
        title=f"{p.src.format} -> {p.dst.format}: {src} to {dst}, two elements of four bits a byte",
        wide=p.is_wide,
        types=conversion(_as_bytes(src), _as_bytes(dst)),
        src_name=src.name if src.is_packed else "",
        dst_name=dst.name if dst.is_packed else "",
        declarations=arguments.declarations,
    )
    local = LOCAL_SIZE if body.inner is None else 1
    items = -(-body.items // local) * local
    return Launch(source, tuple(arguments.values.values()), p.is_wide, items, local)


def _as_bytes(dtype: DType) -> DType:
    """The type that stands for ``dtype`` once it has a byte of its own."""
    return as_dtype({"s4": "s8", "u4": "u8"}.get(dtype.name, dtype))


def _places(body: NibblesPlan, arguments: Arguments) -> dict[str, Any]:
    """What the template needs to make the destination byte by byte, or place by place."""
    p = body.problem
    arguments.values["items"] = body.items
    common = common_parts(p, arguments)
    # Two places with consecutive numbers share a byte only if numbers rise as offsets do.
    strides = {f"v{k}": placed.stride for k, placed in enumerate(p.dst.placed) if placed.size > 1}
    digits = sorted(common["digits"], key=lambda digit: strides.get(digit[0], 0))
    return {**common, "digits": digits, "dst_offset": dst_offset(p.dst, arguments)}


def _runs(body: NibblesPlan, inner: Node, arguments: Arguments) -> Runs:
    """What the template needs to walk over runs."""
    p = body.problem
    arguments.values.update(count=inner.size.value, src0=p.src0, dst0=p.dst0)
    src: list[Expr] = [Var("src0")]
    dst: list[Expr] = [Var("dst0")]
    loops = []
    for k, node in reversed(list(enumerate(body.outer))):
        loops.append((f"at{k}", arguments.text(f"size{k}", node.size)))
        src.append(_product(f"at{k}", arguments.text(f"src_stride{k}", node.src)))
        dst.append(_product(f"at{k}", arguments.text(f"dst_stride{k}", node.dst)))
    return Runs(loops, str(total(src)), str(total(dst)))


def _product(variable: str, number: str) -> Expr:
    return Var(variable) * (int(number) if number.isdigit() else Var(number))
