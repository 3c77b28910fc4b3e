"""Kernels of the winograd family: each value is a row of a matrix times a window of the source."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from ..formats.winograd import Matrix
from ..problems.problem import Problem
from ..problems.thresholds import GROUP_ITEMS
from ..schedule.plan import Plan
from ..schedule.winograd import WinogradPlan
from ..templates import filled
from ..tensors.desc import MemoryDesc
from ..tensors.dtypes import as_dtype
from ..values.transforms import Step
from .generic import common_parts, dst_offset
from .source import Arguments, Launch
from .types import KernelConversion, conversion

_F32 = as_dtype("f32")
_FLOATS = KernelConversion(_F32, _F32, "float", "float", "float", early=False)


@dataclass(frozen=True, slots=True)
class _WindowText:
    """An expression of floats in OpenCL C; `Matrix.apply` computes with it as with numbers."""

    text: str

    def __add__(self, other: _WindowText) -> _WindowText:
        return _WindowText(f"{self.text} + {other.text}")

    def __sub__(self, other: _WindowText) -> _WindowText:
        return _WindowText(f"{self.text} - {other.text}")

    def __mul__(self, other: _WindowText) -> _WindowText:
        inside = f"({self.text})" if " " in self.text else self.text
        return _WindowText(f"{inside} * {other.text}")


def _literal(number: float) -> _WindowText:
    return _WindowText(f"{np.float32(number)!s}f")


def _rows(matrix: Matrix, taps: list[str]) -> list[str]:
    """Each row of the matrix times the variables ``taps``."""
    values = [_WindowText(name) for name in taps]
    return [matrix.apply(k, values, _literal).text for k in range(len(matrix.rows))]


@dataclass(frozen=True, slots=True)
class Places:
    """Where in the source the taps of windows lie, as text.

    ``along`` and ``across`` are what is added to and taken from the indices of the result;
    ``reach``: whether there is data at ``i2``, ``i3``, empty where there always is.
    """

    low_x: str
    low_y: str
    reach: str

    @classmethod
    def of(cls, p: Problem, step: Step, arguments: Arguments) -> Places:
        """For a problem; its numbers become arguments of the kernel."""
        if not step.transform.overlaps:
            return cls("", "", "")
        numbers = zip(("lower_y", "lower_x", "src_y", "src_x"), (*step.lower, *p.src.dims[2:]),
                      strict=True)  # fmt: skip
        low_y, low_x, size_y, size_x = (arguments.text(name, n) for name, n in numbers)
        reach = f"i2 >= 0 && i2 < {size_y} && i3 >= 0 && i3 < {size_x}"
        return cls(f" - {low_x}", f" - {low_y}", reach)

    def at(self, step: Step, window: str, tap: str, across: str) -> tuple[str, str]:
        """The source's y and x of a tap of a window, of a line across the windows."""
        t = step.transform
        begin = f"{window} * {t.step} + {tap}" if t.step else tap
        along, across = f"{begin}{self.low_x}", f"{across}{self.low_y}"
        return (across, along) if t.src_axis == "x" else (along, across)


@dataclass(frozen=True, slots=True)
class StepText:
    """A transform for one value, as templates/winograd_places.mako wants it."""

    inner: list[str]
    outer: list[str]
    taps: int
    outer_taps: int
    row: str
    across: str
    y: str
    x: str
    reach: str
    scale: str


def step_text(p: Problem, step: Step, arguments: Arguments) -> StepText:
    """The transform of a problem, for the value at ``y``, ``x``."""
    t = step.transform
    to, other = ("x", "y") if t.dst_axis == "x" else ("y", "x")
    rows = len(t.inner.rows)
    where = Places.of(p, step, arguments)
    y, x = where.at(step, f"{to} / {rows}", "tap", "across")
    return StepText(
        inner=_rows(t.inner, [f"v[{k}]" for k in range(t.inner.taps)]),
        outer=_rows(t.outer, [f"v[{k}]" for k in range(t.outer.taps)]) if t.outer else [],
        taps=t.inner.taps,
        outer_taps=t.outer.taps if t.outer else 0,
        row=f"{to} % {rows}" if t.step else to,
        across=other,
        y=y,
        x=x,
        reach=where.reach,
        scale=_scale(step),
    )


def _scale(step: Step) -> str:
    return "" if step.scale == 1 else f" * {_literal(step.scale).text}"


def conversions(p: Problem) -> tuple[KernelConversion, KernelConversion]:
    """How source values are read and results written: by way of f32."""
    src, dst = p.dtypes
    reads = _FLOATS if src == _F32 else conversion(src, _F32)
    return reads, _FLOATS if dst == _F32 else conversion(_F32, dst)


def render(plan: Plan, body: WinogradPlan) -> Launch:
    """The kernel and its arguments."""
    p = plan.problem
    arguments = Arguments()
    arguments.values["places" if body.windows is None else "items"] = body.items
    parts = common_parts(replace(p, dst=body.windows or p.dst), arguments)
    parts["reads"], parts["writes"] = conversions(p)
    parts["dst_offset"] = dst_offset(body.windows or p.dst, arguments)
    if body.windows is None:
        template = "winograd_places"
        parts["step"] = step_text(p, body.step, arguments)
    else:
        template = "winograd"
        parts |= _window_parts(p, body.step, arguments) | {"run": body.run}
        arguments.values["runs"] = -(-body.windows.placed[-1].size // body.run)
    source = filled(template, **parts, declarations=arguments.declarations)
    rounded = -(-body.items // GROUP_ITEMS) * GROUP_ITEMS
    return Launch(source, tuple(arguments.values.values()), p.is_wide, rounded, GROUP_ITEMS)


def _window_parts(p: Problem, step: Step, arguments: Arguments) -> dict[str, Any]:
    """The taps, the steps from them to the results, and where the results lie."""
    t = step.transform
    to, other = ("x", "y") if t.dst_axis == "x" else ("y", "x")
    where = Places.of(p, step, arguments)
    lines = range(t.outer.taps) if t.outer else [other]
    taps, middle, ends = [], [], []
    for m, line in enumerate(lines):
        names = [f"tap{m}_{k}" for k in range(t.inner.taps)]
        taps += [(n, *where.at(step, to, str(k), str(line))) for k, n in enumerate(names)]
        ends.append(_rows(t.inner, names))
    if t.outer:
        middle = [
            (f"line{m}_{k}", text) for m, row in enumerate(ends) for k, text in enumerate(row)
        ]
        columns = [
            _rows(t.outer, [f"line{m}_{k}" for m in range(t.outer.taps)])
            for k in range(len(t.inner.rows))
        ]
        ends = [list(row) for row in zip(*columns, strict=True)]
    shape = p.dst.image_shape
    if shape:
        arguments.values["dst_width"] = shape[1]
    return {
        "taps": taps,
        "middle": middle,
        "results": [
            (f"value{u}_{k}", f"({text}){_scale(step)}" if step.scale != 1 else text)
            for u, row in enumerate(ends)
            for k, text in enumerate(row)
        ],
        "places": list(_result_places(p.dst, step, arguments)),
        "reach": where.reach,
        "is_image": bool(shape),
    }


def _result_places(dst: MemoryDesc, step: Step, arguments: Arguments) -> Iterator[tuple[str, str]]:
    """How far after the first each result of a window lies, and whether it is there at all."""
    t = step.transform
    axes = {"y": 2, "x": 3}
    along, across = axes[t.dst_axis], 5 - axes[t.dst_axis]
    strides = {d: next(p.stride for p in dst.placed if d in p.digit.dims) for d in (along, across)}
    rows = len(t.inner.rows)
    # The last window of outputs may have one too many.
    odd = t.step is not None and not t.overlaps
    size = arguments.text("dst_along", dst.dims[along]) if odd else ""
    for u in range(len(t.outer.rows) if t.outer else 1):
        for k in range(rows):
            terms = [f" + {n} * {arguments.text(name, strides[d])}" for n, d, name in
                     ((u, across, "stride_across"), (k, along, "stride_along")) if n]  # fmt: skip
            yield "".join(terms), f"p{along} * {rows} + {k} < {size}" if odd and k else ""
