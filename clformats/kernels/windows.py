"""Windows of the source from which several blocks are filled: `clformats.schedule.windows`."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from ..formats.expr import Expr, total
from ..schedule.lanes import steps_of
from ..schedule.tile import TilePlan
from ..schedule.windows import Window, windows_of
from .computation import Computed, types_of
from .source import moved
from .types import Conversion


@dataclass(frozen=True, slots=True)
class WindowText:
    """A window in the kernel: its name, where it is in the source, and the text that loads it.

    ``is_far``: no other is known to end behind it.
    """

    name: str
    place: str
    load: str
    is_far: bool


def types_in_windows(plan: TilePlan) -> Conversion:
    """The types of a tile: what fills several registers is converted before it does."""
    types, windows = types_of(plan.problem), windows_of(plan)
    fills_several = len(windows) < sum(len(w.spread) for w in windows)
    return types.at_once if fills_several and not isinstance(types, Computed) else types


def windowed(
    plan: TilePlan, types: Conversion, base: str, strides: Sequence[Expr], loads: list[str]
) -> dict[str, object]:
    """What ``tile.mako`` needs of the windows of a tile at ``base``; ``loads`` become shuffles.

    The lanes of the second vector that a pattern mixes are zero.
    """
    windows = windows_of(plan)
    steps = [steps_of((plan.registers, w.first), (plan.load, w.lane)) for w in windows]
    patterns: list[tuple[int, ...]] = []
    texts = []
    for k, w in enumerate(windows):
        for register, taken in w.spread:
            pattern = tuple(plan.lanes if n is None else n for n in taken)
            patterns += [] if pattern in patterns else [pattern]
            loads[register] = f"SPREAD{patterns.index(pattern)}(window{k}, none)"
        by = str(total([strides[node] * n for node, n in steps[k].items()]))
        load = types.load(moved("from", by), plan.lanes)
        texts.append(WindowText(f"window{k}", moved(base, by), load, _is_far(windows, steps, k)))
    return {"windows": texts, "spreads": patterns}


def _is_far(windows: Sequence[Window], steps: Sequence[Mapping[int, int]], k: int) -> bool:
    """Whether there is no window that moves at least as far along each loop; of equals the last."""
    others = (j for j in range(len(windows)) if j != k and (steps[j] != steps[k] or j > k))
    return not any(all(steps[j].get(node, 0) >= n for node, n in steps[k].items()) for j in others)
