"""Functions whose vectors PoCL computes wrongly: they are called lane by lane there.

PoCL 3.1 computes some lanes wrongly where another one is huge, subnormal or, for ``pow``, 0: beside
3e38 the sine of 0.001 is 0.008, beside 0 the square of 2 is 0.25. Single numbers are right.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator, Sequence

LANE_BY_LANE = {"float": {"sin": 1, "cos": 1, "tan": 1}, "double": {"pow": 2}}
"""For each type of numbers the functions, with how many arguments they have."""


def name_of(function: str, real: str) -> str:
    """What a function of vectors is called in a kernel that has its `definitions`."""
    return f"{function}_by_lane" if function in LANE_BY_LANE.get(real, ()) else function


def definitions(called: Collection[str], real: str, widths: Sequence[int]) -> str:
    """Such functions of these widths, as OpenCL C; empty where none of them is called."""
    own = {f: count for f, count in LANE_BY_LANE.get(real, {}).items() if f in called}
    wide = [width for width in widths if width > 1]
    if not own or not wide:
        return ""
    here = [_lane_by_lane(f, count, real, width) for f, count in own.items() for width in wide]
    elsewhere = [f"#define {name_of(f, real)} {f}" for f in own]
    return "\n".join([
        "#ifdef POCL_DEVICE_ADDRESS_BITS  // whose vectors of these have wrong lanes",
        *(line for lines in here for line in lines), "#else", *elsewhere, "#endif", "",
    ])  # fmt: skip


def _lane_by_lane(function: str, count: int, real: str, width: int) -> Iterator[str]:
    names, vector = "xyz"[:count], f"{real}{width}"
    lanes = (f"{function}({', '.join(f'{n}.s{k:x}' for n in names)})" for k in range(width))
    parameters = ", ".join(f"{vector} {n}" for n in names)
    yield (
        f"static inline {vector} __attribute__((overloadable)) {name_of(function, real)}"
        f"({parameters})"
    )
    yield f"{{\n    return ({vector})({', '.join(lanes)});\n}}"
