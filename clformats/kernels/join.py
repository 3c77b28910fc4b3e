"""Lines joined from several registers: the texts for `clformats.schedule.join`."""

from __future__ import annotations

from collections.abc import Sequence

from ..schedule.join import Join
from ..schedule.tile import TilePlan
from ..schedule.traits import LINE_BYTES
from .carry import joined
from .types import Conversion

JoinedLine = tuple[list[tuple[str, str]], list[str]]
"""The name and the expression of each value that is needed first, and the statements behind."""


def joined_accesses(
    plan: TilePlan, join: Join, types: Conversion, loads: Sequence[str], rows: Sequence[str]
) -> dict[str, object]:
    """What ``tile.mako`` needs of loads and stores, as for `joined_lines`; there are no edges."""
    lines = joined_lines(plan, join, types, loads, rows)
    nothing = dict.fromkeys(("loads", "passes", "edge_loads", "edge_lines"), ())
    return {**nothing, "carry": None, "joins": lines, "join_patterns": join.patterns}


def joined_lines(
    plan: TilePlan, join: Join, types: Conversion, loads: Sequence[str], rows: Sequence[str]
) -> list[JoinedLine]:
    """The lines of a tile; ``loads`` are expressions, ``rows`` where each row begins."""
    names = {pattern: f"JOIN{k}" for k, pattern in enumerate(join.patterns)}
    values = [*loads, *(f"{names[pattern]}(r{a}, r{b})" for a, b, pattern in join.mixes)]
    length = max(plan.lanes, LINE_BYTES // plan.problem.dtypes[1].nbytes)
    ready: set[int] = set()
    lines: list[JoinedLine] = []
    for row, place, parts in join.lines(length):
        needed = [n for value in parts for n in join.needed(value, ready)]
        stores = _stores(plan, types, [f"r{n}" for n in parts], f"to + {rows[row]} + {place}")
        lines.append(([(f"r{n}", values[n]) for n in needed], stores))
    return lines


def _stores(plan: TilePlan, types: Conversion, names: Sequence[str], at: str) -> list[str]:
    """The statements that store the registers of a line."""
    lanes = plan.lanes
    if not plan.nontemporal:
        return [types.store(name, f"{at} + {k * lanes}", lanes) for k, name in enumerate(names)]
    if lanes * plan.problem.dtypes[1].nbytes > LINE_BYTES:
        return [types.store_nontemporal(names[0], at, lanes)]
    return [f"STORE_STREAM({joined(plan, types, names)}, (__global uint16 *)({at}))"]
