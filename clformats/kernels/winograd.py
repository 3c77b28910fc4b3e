"""Kernels of the winograd family: each value is a row of a matrix times a window of the source."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import replace
from typing import Any

import numpy as np

from ..formats.expr import Var
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
from .image import pixels
from .source import Arguments, Launch
from .types import KernelConversion, conversion

_F32 = as_dtype("f32")
_FLOATS = KernelConversion(_F32, _F32, "float", "float", "float", early=False)


def _literal(number: float) -> Var:
    return Var(f"{np.float32(number)!s}f")


def _rows(matrix: Matrix, taps: list[str]) -> list[str]:
    """Each row of the matrix times the variables ``taps``, which are floats."""
    values = [Var(name) for name in taps]
    return [str(matrix.apply(k, values, _literal)) for k in range(len(matrix.rows))]


def _chosen(texts: Sequence[str], number: str) -> str:
    """The one of some expressions that has a number."""
    tests = [f"{number} == {k} ? {text} : " for k, text in enumerate(texts[:-1])]
    return "".join(tests) + texts[-1]


def _borders(p: Problem, step: Step, arguments: Arguments) -> tuple[str, str, str]:
    """What is taken from the source's y and x, and whether there is data at ``i2``, ``i3``.

    Texts, empty where windows do not overlap: there is data everywhere.
    """
    if not step.transform.overlaps:
        return "", "", ""
    numbers = zip(("lower_y", "lower_x", "src_y", "src_x"), (*step.lower, *p.src.dims[2:]),
                  strict=True)  # fmt: skip
    low_y, low_x, size_y, size_x = (arguments.text(name, n) for name, n in numbers)
    reach = f"i2 >= 0 && i2 < {size_y} && i3 >= 0 && i3 < {size_x}"
    return f" - {low_y}", f" - {low_x}", reach


def render(plan: Plan, body: WinogradPlan) -> Launch:
    """The kernel and its arguments."""
    p = plan.problem
    arguments = Arguments()
    arguments.values["items"] = body.items
    parts = common_parts(replace(p, dst=body.windows), arguments)
    # Values are read and results written by way of f32.
    src, dst = p.dtypes
    parts["reads"] = _FLOATS if src == _F32 else conversion(src, _F32)
    parts["writes"] = _FLOATS if dst == _F32 else conversion(_F32, dst)
    parts["dst_offset"] = dst_offset(body.windows, arguments)
    parts |= _window_parts(body, arguments)
    arguments.values["runs"] = -(-body.windows.placed[-1].size // body.run)
    source = filled("winograd", **parts, run=body.run, declarations=arguments.declarations)
    rounded = -(-body.items // GROUP_ITEMS) * GROUP_ITEMS
    return Launch(source, arguments.given, p.is_wide, rounded, GROUP_ITEMS)


def _window_parts(body: WinogradPlan, arguments: Arguments) -> dict[str, Any]:
    """The taps, the steps from them to the results, and where the results lie."""
    p, step, t = body.problem, body.step, body.step.transform
    to, other = ("x", "y") if t.dst_axis == "x" else ("y", "x")
    low_y, low_x, reach = _borders(p, step, arguments)
    scale = _literal(step.scale)
    window = row = to
    if body.by_places and t.step:
        window, row = (f"{to} {sign} {len(t.inner.rows)}" for sign in "/%")
    lines = range(t.outer.taps) if t.outer else [other]
    taps, middle, ends = [], [], []
    for m, line in enumerate(lines):
        names = [f"tap{m}_{k}" for k in range(t.inner.taps)]
        for k, name in enumerate(names):
            y, x = str(line), f"{window} * {t.step} + {k}" if t.step else str(k)
            y, x = (y, x) if t.src_axis == "x" else (x, y)
            taps.append((name, f"{y}{low_y}", f"{x}{low_x}"))
        found = _rows(t.inner, names)
        ends.append([_chosen(found, row)] if body.by_places else found)
    if t.outer:
        middle = [
            (f"line{m}_{k}", text) for m, row in enumerate(ends) for k, text in enumerate(row)
        ]
        columns = [
            _rows(t.outer, [f"line{m}_{k}" for m in range(t.outer.taps)])
            for k in range(len(ends[0]))
        ]
        if body.by_places:
            columns = [[_chosen(found, other)] for found in columns]
        ends = [list(row) for row in zip(*columns, strict=True)]
    return {
        "taps": taps,
        "middle": middle,
        "results": [
            (f"value{u}_{k}", text if step.scale == 1 else f"({text}) * {scale}")
            for u, row in enumerate(ends)
            for k, text in enumerate(row)
        ],
        "places": [("", "")] if body.by_places else [*_result_places(p.dst, step, arguments)],
        "reach": reach,
        "pixels": pixels("dst", p.dst, p.dst.dtype.opencl, arguments),
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
