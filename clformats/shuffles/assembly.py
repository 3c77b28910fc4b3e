"""The shuffles of a part of a tile: which lane each element has in the values between.

Elements are numbers from 0; `ANY_LANE` is a lane that is never read, `NOUGHT` one that is to be
zero.
"""

from __future__ import annotations

from collections.abc import Sequence

from .program import ZERO
from .route import Merge, Router
from .sets import mask_of

ANY_LANE = -1
NOUGHT = -2

Vector = tuple[int, ...]
Mix = tuple[int, int, tuple[int | None, ...]]
"""Two values, and the lanes that are taken of them, as in `clformats.shuffles.program.Shuffle`."""
Made = tuple[list[Mix], list[int]]
"""The shuffles of a part, and the value of each store."""


def routed(loads: Sequence[Vector], stores: Sequence[Vector]) -> Made:
    """A part of vectors of equal lengths, by the router."""
    router = Router(
        len(stores[0]), [mask_of(s) for s in stores], [Merge(mask_of(v)) for v in loads]
    )
    router.route(tuple(range(len(stores))), range(len(loads)))
    assembly = _Assembly(loads, router)
    outputs = [assembly.store(store, router.used[t]) for t, store in enumerate(stores)]
    return assembly.mixes, outputs


class _Assembly:
    """Makes the values of a router, and the stores from them."""

    def __init__(self, loads: Sequence[Vector], router: Router) -> None:
        self.router = router
        self.holds: list[Vector] = [*loads]
        self.mixes: list[Mix] = []
        self.number = {k: k for k in range(len(loads))}

    def store(self, store: Vector, used: Sequence[int]) -> int:
        """The number of the value that is stored, made of values of the router."""
        value, *others = (self._merged(v) for v in used)
        have = {*self.holds[value]}
        for other in others:
            have |= {*self.holds[other]}
            value = self._mix(value, other, [e if e in have else ANY_LANE for e in store])
        if NOUGHT in store:
            return self._mix(value, ZERO, store)
        moved = any(e not in (ANY_LANE, h) for e, h in zip(store, self.holds[value], strict=True))
        return self._mix(value, value, store) if moved else value

    def _merged(self, value: int) -> int:
        """The number of a value of the router."""
        if value not in self.number:
            merge = self.router.values[value]
            a, b = map(self._merged, merge.parts)
            both = dict.fromkeys((*self.holds[a], *self.holds[b]))
            held = [e for e in both if e >= 0 and merge.mask >> e & 1]
            self.number[value] = self._mix(
                a, b, held + [ANY_LANE] * (self.router.width - len(held))
            )
        return self.number[value]

    def _mix(self, a: int, b: int, wanted: Sequence[int]) -> int:
        """The value with these elements in its lanes, made of two others."""
        lanes = len(wanted)
        at: dict[int, int] = {}
        for first, value in ((0, a), (lanes, b)):
            held = self.holds[value] if value != ZERO else (NOUGHT,)
            for lane, e in enumerate(held, first):
                at.setdefault(e, lane)
        self.mixes.append((a, b, tuple(None if e == ANY_LANE else at[e] for e in wanted)))
        self.holds.append(tuple(wanted))
        return len(self.holds) - 1
