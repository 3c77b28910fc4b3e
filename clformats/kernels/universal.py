"""The universal program: any move between two tensors, element by element.

Everything is an argument: the loops with their strides, where elements end, and the pair of types.
So one program, built once for a device, serves every problem whose digits nest. What it writes is
what every schedule of the problem writes; it is a tenth to a third as fast.
"""

from __future__ import annotations

import struct
from functools import cache
from math import prod

from ..schedule.problem import Problem
from ..templates import render
from ..tensors.dtypes import as_dtype
from .source import Launch
from .types import _RAW, Conversion, conversion

CONVERTED = ("f32", "f16", "bf16", "s32", "s8", "u8")
"""The types between which it converts; others it only moves."""
LOOPS = GUARDS = 12
RUN = 16
"""Steps that make a loop long enough to be the innermost one."""
Rows = list[tuple[int, ...]]
_WIDTHS = (1, 2, 4, 8)
_ZERO = 16


def serves(p: Problem) -> bool:
    """Whether the universal program executes a problem."""
    src, dst = p.dtypes
    moves = src == dst and src.bits // 8 in _WIDTHS and src.bits % 8 == 0
    return (
        (moves or {src.name, dst.name} <= set(CONVERTED))
        and (p.nodes is not None and len(p.nodes) <= LOOPS and len(p.guards) <= GUARDS)
        and (p.moves_only and p.computation is None)
    )


def launch(p: Problem, items: int) -> Launch:
    """The kernel with its arguments, over about so many work-items; `serves` must hold."""
    nodes = list(p.nodes or ())
    long = [k for k, n in enumerate(nodes) if n.size.value >= RUN] or range(len(nodes))
    if nodes:
        nodes.append(nodes.pop(min(long, key=lambda k: abs(nodes[k].dst.value))))
    rows = prod(n.size.value for n in nodes[:-1])
    each = -(-rows // items)
    loops: Rows = [
        (n.size.value, n.src.value, n.dst.value, -1 if n.guard is None else n.guard, n.unit)
        for n in nodes
    ] or [(1, 0, 0, -1, 0)]  # fmt: skip
    guards: Rows = [(g.lo.value, g.hi.value, g.end.value) for g in p.guards]
    src, dst = p.dtypes
    numbers = [_number(src.name, dst.name, dst.bits // 8), rows, each, len(loops), len(guards)]
    numbers += [p.src0, p.dst0, *_columns(loops, 5, LOOPS), *_columns(guards, 3, GUARDS)]
    return Launch(
        source(), (struct.pack(f"<{len(numbers)}q", *numbers),), wide=True,
        global_size=-(-rows // each), local_size=1,
    )  # fmt: skip


@cache
def source() -> str:
    """The OpenCL C; the same for all problems."""
    raw = [_RAW[8 * n] for n in _WIDTHS]
    pairs = [(n, Conversion(as_dtype("u8"), as_dtype("u8"), r, r, r, early=False))
             for n, r in zip(_WIDTHS, raw, strict=True)]  # fmt: skip
    for a in CONVERTED:
        for b in CONVERTED:
            if a != b:
                dst = as_dtype(b)
                pairs.append((_number(a, b, dst.bits // 8), conversion(as_dtype(a), dst)))
    return render("universal", pairs=pairs, loops=LOOPS, guards=GUARDS, widths=_WIDTHS, raw=raw,
                  zero=_ZERO)  # fmt: skip


def _number(src: str, dst: str, nbytes: int) -> int:
    """The number of a pair of types; the rest of its division by 16 is the destination's bytes."""
    if src == dst:
        return nbytes
    pair = CONVERTED.index(src) * len(CONVERTED) + CONVERTED.index(dst)
    return (pair + 1) * _ZERO + nbytes


def _columns(rows: Rows, count: int, length: int) -> list[int]:
    """The fields of a structure of arrays."""
    padded = [*rows, *[(0,) * count] * (length - len(rows))]
    return [row[k] for k in range(count) for row in padded]
