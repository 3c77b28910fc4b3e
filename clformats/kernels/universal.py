"""The universal program: any move between two tensors, element by element.

Everything is an argument: the loops with their strides, where elements end, and the pair of types.
So one program, built once for a device, serves every problem whose digits nest. What it writes is
what every schedule of the problem writes; it is a tenth to a third as fast.
"""

from __future__ import annotations

from functools import cache
from itertools import permutations
from math import prod

from ..problems.problem import Problem
from ..schedule.plan import Plan
from ..schedule.universal import CONVERTED, GUARDS, LOOPS, MOVED, UniversalPlan
from ..templates import filled
from ..tensors.dtypes import DType, as_dtype
from .source import Launch, packed
from .types import conversion

_ROUNDED = ("bf16", "f16", "s8", "u8")
LONG_LOOP = 16
"""Steps that make a loop long enough to be the innermost one."""
Rows = list[tuple[int, ...]]
_ZERO = 16


def render(plan: Plan, body: UniversalPlan) -> Launch:
    """The kernel and its arguments."""
    del plan
    return render_problem(body.problem, body.items)


def render_problem(p: Problem, items: int) -> Launch:
    """The kernel with its arguments, over about ``items`` work-items; `serves` must hold."""
    nodes = list(p.nodes)
    long = [k for k, n in enumerate(nodes) if n.size.value >= LONG_LOOP] or range(len(nodes))
    if nodes:
        nodes.append(nodes.pop(min(long, key=lambda k: abs(nodes[k].dst.value))))
    rows = prod(n.size.value for n in nodes[:-1])
    each = -(-rows // items)
    loops: Rows = [
        (n.size.value, n.src.value, n.dst.value, -1 if n.guard is None else n.guard, n.unit)
        for n in nodes
    ] or [(1, 0, 0, -1, 0)]  # fmt: skip
    guards: Rows = [(g.lo.value, g.hi.value, g.end.value) for g in p.guards]
    numbers = [_number(*p.dtypes), rows, each, len(loops), len(guards)]
    numbers += [p.src0, p.dst0, *_columns(loops, 5, LOOPS), *_columns(guards, 3, GUARDS)]
    return Launch(
        source(), (packed(numbers, 8),), wide=True,
        global_size=-(-rows // each), local_size=1,
    )  # fmt: skip


@cache
def source() -> str:
    """The OpenCL C; the same for all problems."""
    names = [*((t, t) for t in MOVED.values()), *permutations(CONVERTED, 2)]
    types = (map(as_dtype, pair) for pair in names)
    pairs = [(_number(src, dst), conversion(src, dst)) for src, dst in types]
    return filled("universal", pairs=pairs, moved=len(MOVED), loops=LOOPS, guards=GUARDS,
                  zero=_ZERO, rounded=list(map(as_dtype, _ROUNDED)))  # fmt: skip


def _number(src: DType, dst: DType) -> int:
    """The number of a pair of types; the rest of its division by 16 is the destination's bytes."""
    if src == dst:
        return dst.nbytes
    pair = CONVERTED.index(src.name) * len(CONVERTED) + CONVERTED.index(dst.name)
    return (pair + 1) * _ZERO + dst.nbytes


def _columns(rows: Rows, count: int, length: int) -> list[int]:
    """The fields of a structure of arrays."""
    padded = [*rows, *[(0,) * count] * (length - len(rows))]
    return [row[k] for k in range(count) for row in padded]
