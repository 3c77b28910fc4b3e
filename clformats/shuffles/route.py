"""Which vectors to merge on the way from loads to stores, wherever the elements lie.

The stores are split in two parts, by the values that they need, and the values that both parts need
are merged, two into one, for each part by itself; and so on, until it takes fewer shuffles to merge
what a store needs directly. For a 16 x 16 transposition that is the butterfly. Elements are bits of
masks: a *value* is the set of elements that a vector has.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field

from .sets import connected, mask_of, union

Split = tuple[tuple[int, ...], ...]


@dataclass(slots=True)
class Merge:
    """A value: the elements ``mask`` of two others, or of a load where there are none."""

    mask: int
    parts: tuple[int, ...] = ()


@dataclass(slots=True)
class Router:
    """Merges the ``values``, first the loads, into what each of the ``targets`` needs."""

    width: int
    targets: Sequence[int]
    values: list[Merge]
    used: dict[int, list[int]] = field(default_factory=dict)

    def route(self, part: tuple[int, ...], values: Sequence[int]) -> None:
        """Find the values whose union each target of a part is."""
        need = self._needed(part)
        values = [v for v in values if self.values[v].mask & need]
        sources = (self._fed(self.targets[t], values) for t in part)
        if len(groups := connected(sources)) > 1:
            for group in groups:
                self.route(tuple(part[k] for k in group), values)
            return
        fed = (self._fed(self.targets[t], values).bit_count() for t in part)
        best, chosen = sum(max(1, n - 1) for n in fed), None  # where nothing is shared
        for split in self._splits(part, values):
            cost = sum(self._cost_of(one, values) for one in split)
            if cost < best:
                best, chosen = cost, split
        if chosen is None:
            self.used |= {
                t: [v for v in values if self.values[v].mask & self.targets[t]] for t in part
            }
            return
        for one in chosen:
            self.route(one, self._packed(one, values))

    def _needed(self, part: Sequence[int]) -> int:
        return union(self.targets[t] for t in part)

    def _fed(self, target: int, values: Sequence[int]) -> int:
        """The values that have elements of a target, as bits."""
        return mask_of(v for v in values if self.values[v].mask & target)

    def _splits(self, part: tuple[int, ...], values: Sequence[int]) -> Iterator[Split]:
        """The ways to split a part, each once.

        The part itself is one where values fill vectors together.
        """
        if len(part) == 1:
            return
        if any(j is not None for _, j in self._pairs(part, values)[0]):
            yield (part,)
        half = len(part) // 2
        seen = set()
        keys = {t: tuple(self.values[v].mask & self.targets[t] > 0 for v in values) for t in part}
        by = tuple(sorted(part, key=keys.__getitem__))
        for order in (part, by):
            for split in ((order[:half], order[half:]), (order[::2], order[1::2])):
                key = frozenset(map(frozenset, split))
                if key not in seen:
                    seen.add(key)
                    yield split

    def _cost_of(self, part: Sequence[int], values: Sequence[int]) -> int:
        """An estimate of what a part costs: to pack it, and the least that is left."""
        pairs, masks = self._pairs(part, values)
        masks = [masks[i] | masks[j] if j is not None else masks[i] for i, j in pairs]
        cost = sum(j is not None for _, j in pairs)
        direct = shared = 0
        for t in part:
            target = self.targets[t]
            count = sum(mask & target > 0 for mask in masks)
            direct += max(count - 1, len(part) > 1)
            shared += max((min(count, len(part)) - 1).bit_length(), 1)
        return cost + min(direct, max(0, len(masks) - len(part)) + shared)

    def _pairs(
        self, part: Sequence[int], values: Sequence[int]
    ) -> tuple[list[tuple[int, int | None]], list[int]]:
        """Which values are merged for a part, and the elements of each that it needs."""
        need = self._needed(part)
        masks = [self.values[v].mask & need for v in values]
        feeds = [sum(1 << k for k, t in enumerate(part) if m & self.targets[t]) for m in masks]
        sizes = [m.bit_count() for m in masks]
        free = [k for k, m in enumerate(masks) if m]
        pairs: list[tuple[int, int | None]] = []
        while free:
            i = free.pop(0)
            mate, most = None, 0
            for j in free:
                common = (feeds[i] & feeds[j]).bit_count()
                if common > most and sizes[i] + sizes[j] <= self.width:
                    mate, most = j, common
            if mate is not None:
                free.remove(mate)
            pairs.append((i, mate))
        return pairs, masks

    def _packed(self, part: Sequence[int], values: Sequence[int]) -> list[int]:
        """The values of a part after merging those that it needs together."""
        pairs, masks = self._pairs(part, values)
        packed = []
        for i, j in pairs:
            if j is None:
                packed.append(values[i])
                continue
            self.values.append(Merge(masks[i] | masks[j], (values[i], values[j])))
            packed.append(len(self.values) - 1)
        return packed
