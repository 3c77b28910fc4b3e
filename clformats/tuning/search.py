"""The search: what the cost model puts first, then what is near to the fastest of it.

Each kernel is checked before it is timed. All of a turn are timed in turns, so that what else the
machine does falsifies no comparison. The best are measured again, and longer, before one is
recorded.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Sequence
from time import monotonic

from ..errors import Error
from ..schedule.choices import Choices
from ..spaces.space import Space
from ..timing import Settings, Slot, sampled
from .contest import Contest
from .outcome import Tried

SETTINGS = Settings(rounds=3, warm=0.001, runs=3, timed=0.01, seconds=1.0)
"""How a kernel is timed."""
MOST_FAILURES = 5
"""Kernels that do not build or are wrong, after which no further ones are tried."""


def search(
    run: Contest,
    spaces: Sequence[Space],
    end: float = math.inf,
    watch: Callable[[], None] = lambda: None,
) -> list[Tried]:
    """What was tried until ``end``, by ``time.monotonic``, the fastest first.

    Where the time is up only the kernel that is being built or measured is finished, and at least
    one is built. ``watch`` is called for each.
    """
    pool = {space.choices(value): (space, value) for space in spaces for value in space.values}
    tried = _measured(run, pool, (monotonic() + end) / 2, watch)
    if tried and tried[0].times and monotonic() < end:
        space, value = pool[tried[0].choices]
        near = {space.choices(v): None for v in space.near(value)}
        tried += _measured(run, [c for c in near if c not in pool], end, watch)
    return sorted(tried, key=lambda t: t.seconds)


def _measured(
    run: Contest, pool: Iterable[Choices], end: float, watch: Callable[[], None]
) -> list[Tried]:
    """What was tried, the fastest first; half of the time until ``end`` is for building."""
    began = monotonic()
    slots: dict[Choices, Slot] = {}
    failed: list[Tried] = []
    for choices in pool:
        late = monotonic() > (began + end) / 2 and (slots or failed)
        if late or len(failed) >= MOST_FAILURES:
            break
        try:
            slots[choices] = run.slot(str(choices), choices)
        except Error as error:
            failed.append(Tried(choices, failure=f"{type(error).__name__}: {error}"))
        watch()
    times = sampled([*slots.values()], SETTINGS, run.rng, end)
    done = [Tried(choices, tuple(times.get(str(choices), ()))) for choices in slots]
    return sorted([*done, *failed], key=lambda t: t.seconds)
