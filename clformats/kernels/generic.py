"""Kernels of the generic and the image family: one element after the other, as they are stored.

Elements of the destination that share bytes are written unit by unit: ``templates/units.mako``.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any

from ..formats.digits import Placed, offset_expr, place, tail_at
from ..formats.expr import Const, Expr, Var, as_expr, total
from ..problems.problem import Number, Problem
from ..schedule.generic import GenericPlan, units
from ..schedule.plan import Plan
from ..templates import filled
from ..tensors.desc import MemoryDesc
from ..values.attr import OLD
from .computation import Computed, types_of
from .image import pixels
from .source import Arguments, Launch
from .types import KernelConversion


def render(plan: Plan, body: GenericPlan) -> Launch:
    """The kernel and its arguments."""
    p, types, arguments = body.problem, types_of(body.problem), Arguments(plan.choices.baked)
    source = (_of_units if p.dst.dtype.is_packed else _of_places)(body, types, arguments)
    items = -(-body.items // body.group) * body.group
    return Launch(source, arguments.given, p.is_wide, items, body.group, types.buffers)


def _of_places(body: GenericPlan, types: KernelConversion, arguments: Arguments) -> str:
    """The source where each place is stored by itself: an element, or a pixel of an image."""
    p = body.problem
    arguments.values["items"] = body.items
    if body.counts:
        arguments.values |= {"run": body.run, "places": body.places}
    parts = common_parts(p, arguments)
    reads = pixels("src", p.src, types.src, arguments)
    writes = pixels("dst", p.dst, types.dst, arguments)
    at, to = parts["src_offset"], Const(0) if writes else dst_offset(p.dst, arguments)
    pointer, before = str(at) if types.source else f"src + ({at})", list[str]()
    if reads:
        pointer = f"(const {types.src} *)texel + at % {reads.channels}"
        before = [f"const idx at = {at};", f"{reads.c_type} texel[4];",
                  reads.load("src", f"(at / {reads.channels})", "texel")]  # fmt: skip
    stored = computed_text(types, arguments, to)
    return filled(
        "generic", **parts, types=types, declarations=arguments.declarations + types.parameters,
        constants=arguments.constants, counts=body.counts, before=before, pixels=writes,
        source=reads.declared if reads else f"__global const {types.buffers[0]} *restrict src",
        target=writes.declared if writes else f"__global {types.dst} *restrict dst",
        loaded=types.load(pointer, 1), stored=stored, dst_offset=to,
    )  # fmt: skip


def _of_units(body: GenericPlan, types: KernelConversion, arguments: Arguments) -> str:
    """The source where elements of the destination share bytes."""
    p = body.problem
    arguments.values |= {
        "first": units(p.dst).start, "places": body.places, "run": body.run, "dst0": p.dst.offset0,
    }  # fmt: skip
    orders = [_inverse(p.dst, p.dst.placed, arguments)]
    begins: tuple[str, Expr] | None = None
    if tail := p.dst.tail:
        strides = {q.digit: q.stride for q in p.dst.placed}
        after = [
            q if q.fixed_stride else replace(q, stride=strides[q.digit])
            for q in place(tail.layout, p.dst.padded_dims)
        ]
        orders.append(_inverse(p.dst, after, arguments))
        begins = f"p{tail.dim}", Const(int(tail.start.evaluate({})))
    bounds = _bounds(p.dst, arguments)
    src_offset = _offset_of("src", p.src, arguments)
    stored = computed_text(types, arguments, Var("place") + Var("dst0"))
    declarations = arguments.declarations + types.parameters
    return filled(
        "units", wide=p.is_wide, dst=str(p.dst.format), src=str(p.src.format), types=types,
        orders=orders, begins=begins, bounds=bounds, stored=stored, declarations=declarations,
        value=types.load(str(src_offset) if types.source else f"src + ({src_offset})", 1),
        constants=arguments.constants,
    )  # fmt: skip


@dataclass(frozen=True, slots=True)
class InverseOffset:
    """From an offset to the place that lies there: ``digits`` by falling stride, then ``indices``.

    A digit is (variable, stride, size), as texts; those of one value have none.
    """

    digits: Sequence[tuple[str, str, str]]
    indices: Sequence[tuple[str, Expr]]


def _inverse(dst: MemoryDesc, placed: Sequence[Placed], arguments: Arguments) -> InverseOffset:
    sizes = [arguments.text(f"size{k}", Number(q.size, q.fixed_size)) for k, q in enumerate(placed)]
    strides = [str(n) for n in _strides("dst", placed, arguments)]
    order = sorted(range(len(placed)), key=lambda k: (-placed[k].stride, -placed[k].size))
    digits = [(f"v{k}", strides[k], sizes[k]) if placed[k].size > 1 else (f"v{k}", "", "")
              for k in order]  # fmt: skip
    return InverseOffset(digits, _indices(dst, arguments, placed))


def common_parts(p: Problem, arguments: Arguments) -> dict[str, Any]:
    """What the template needs to go from a place in the destination to the source's offset."""
    return {
        "wide": p.is_wide,
        "dst": str(p.dst.format),
        "src": str(p.src.format),
        "digits": _digits(p.dst, arguments),
        "indices": _indices(p.dst, arguments, p.dst.placed),
        "bounds": _bounds(p.dst, arguments),
        "src_offset": _offset_of("src", p.src, arguments),
    }


def _digits(dst: MemoryDesc, arguments: Arguments) -> list[tuple[str, str]]:
    """(variable, size) of each destination digit, innermost first; the last needs no size."""
    return [
        (f"v{k}", arguments.text(f"size{k}", Number(p.size, p.fixed_size)))
        for k, p in reversed(list(enumerate(dst.placed)))
    ]


def _indices(
    dst: MemoryDesc, arguments: Arguments, placed: Sequence[Placed]
) -> list[tuple[str, Expr]]:
    """(``p0``.., expression): the physical index along each dimension, from the digits."""
    result: dict[str, Expr] = {}
    for dims, flip in dict.fromkeys(p.digit.index for p in placed):
        value = total([
            Var(f"v{k}") * p.digit.step
            for k, p in enumerate(placed) if p.digit.index == (dims, flip)
        ])  # fmt: skip
        for d in reversed(dims[1:]):
            extent = Var(arguments.text(f"dst_extent{d}", dst.padded_dims[d]))
            result[f"p{d}"], value = value % extent, value // extent
        if flip:
            value = (
                Var(arguments.text(f"dst_extent{dims[0]}", dst.padded_dims[dims[0]])) - 1 - value
            )
        result[f"p{dims[0]}"] = value
    return list(result.items())


def _bounds(dst: MemoryDesc, arguments: Arguments) -> list[tuple[str, str, str, str]]:
    """(index, lo, hi, end) for each dimension: see `clformats.problems.problem`.

    ``end`` is empty for the outermost dimension of a fused index: what lies beyond it there is the
    padding of the fused index, and belongs to the destination.
    """
    fused = {p.digit.dims[0] for p in dst.placed if len(p.digit.dims) > 1}
    return [
        (
            f"p{d}",
            arguments.text(f"lo{d}", Number(lower, lower == 0)),
            arguments.text(f"hi{d}", lower + dst.dims[d]),
            "" if d in fused else arguments.text(f"end{d}", dst.padded_dims[d]),
        )
        for d, lower in enumerate(dst.padded_offsets)
    ]


def _strides(side: str, placed: Sequence[Placed], arguments: Arguments) -> list[Expr]:
    return [
        arguments.expression(f"{side}_stride{k}", Number(p.stride, p.fixed_stride))
        for k, p in enumerate(placed)
    ]


def _offset_of(side: str, desc: MemoryDesc, arguments: Arguments) -> Expr:
    """The offset formula of a tensor that is read, with its sizes and strides as arguments."""
    indices = [
        Var(f"i{d}") + as_expr(Var(arguments.text(f"{side}_lower{d}", lower)) if lower else 0)
        for d, lower in enumerate(desc.padded_offsets)
    ]
    return _formula(side, desc, indices, arguments)


def computed_text(types: KernelConversion, arguments: Arguments, dst_offset: Expr) -> str:
    """What is stored of ``value`` where an element lies; empty where it is the value itself."""
    if not isinstance(types, Computed):
        return ""
    offsets = ((o, dst_offset if o.name == OLD else _offset_of(o.name, o.desc, arguments))
               for o in types.computation.operands)  # fmt: skip
    return types.call("value", [types.load_operand(o, str(at), 1) for o, at in offsets], 1)


def _formula(side: str, desc: MemoryDesc, indices: list[Expr], arguments: Arguments) -> Expr:
    extents: list[Expr | int] = [0] * desc.ndims
    for p in desc.placed:
        for d in p.digit.dims[0 if p.digit.flip else 1 :]:
            extents[d] = Var(arguments.text(f"{side}_extent{d}", desc.padded_dims[d]))
    sizes: list[Expr | int] = [0] * desc.ndims
    if desc.tail:
        d = desc.tail.dim
        sizes[d] = Var(arguments.text(f"{side}_size{d}", desc.dims[d]))
    strides = _strides(side, desc.placed, arguments)
    arguments.values[f"{side}0"] = desc.offset0
    tail = tail_at(desc.format.structure, sizes)
    return offset_expr(desc.placed, indices, extents, strides, Var(f"{side}0"), tail)


def dst_offset(dst: MemoryDesc, arguments: Arguments) -> Expr:
    """The offset of a place in the destination."""
    if dst.tail:
        # The digits number the places in one order; in the tail they lie in another.
        return _formula("dst", dst, [Var(f"p{d}") for d in range(dst.ndims)], arguments)
    strides = _strides("dst", dst.placed, arguments)
    arguments.values["dst0"] = dst.offset0
    terms = [Var(f"v{k}") * stride for k, stride in enumerate(strides)]
    return total([*terms, Var("dst0")])
