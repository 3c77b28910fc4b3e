"""The legal regions along a dimension, as lazy ranges: a dimension may be of any length."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import overload


@dataclass(frozen=True, slots=True, eq=False)
class Sizes(Sequence[int]):
    """The legal sizes of a region, rising, from ``rest`` elements that begin at a whole block.

    Less than a block; whole blocks; everything up to the edge.
    """

    rest: int
    block: int

    @property
    def _ranges(self) -> tuple[range, range, range]:
        rest, block = self.rest, self.block
        last = range(rest, rest + 1) if rest > block and rest % block else range(0)
        return range(min(block, rest + 1)), range(block, rest + 1, block), last

    def __len__(self) -> int:
        return sum(map(len, self._ranges))

    @overload
    def __getitem__(self, index: int) -> int: ...
    @overload
    def __getitem__(self, index: slice) -> Sequence[int]: ...
    def __getitem__(self, index: int | slice) -> int | Sequence[int]:
        chosen = range(len(self))[index]
        return self._at(chosen) if isinstance(chosen, int) else [self._at(k) for k in chosen]

    def _at(self, index: int) -> int:
        for part in self._ranges:
            if index < len(part):
                return part[index]
            index -= len(part)
        raise IndexError(index)

    def __contains__(self, size: object) -> bool:
        return any(size in part for part in self._ranges)

    def __iter__(self) -> Iterator[int]:
        return (size for part in self._ranges for size in part)

    def __eq__(self, other: object) -> bool:
        """As a list: equal to any sequence of the same sizes."""
        return list(self) == list(other) if isinstance(other, Sequence) else NotImplemented

    __hash__ = None  # type: ignore[assignment]  # as a list has none

    def __repr__(self) -> str:
        return f"[{', '.join(f'*{part!r}' for part in self._ranges if part)}]"


@dataclass(frozen=True, slots=True, eq=False)
class Crops(Mapping[int, Sequence[int]]):
    """The legal offsets, each with its legal `Sizes`; ``whole`` is the size of the dimension.

    Nothing is stored: offsets and sizes are computed when they are read.
    """

    whole: int
    block: int

    @property
    def _offsets(self) -> range:
        return range(0, self.whole + 1, self.block)

    def __getitem__(self, offset: int) -> Sequence[int]:
        if offset not in self._offsets:
            raise KeyError(offset)
        return Sizes(self.whole - offset, self.block)

    def __iter__(self) -> Iterator[int]:
        return iter(self._offsets)

    def __len__(self) -> int:
        return len(self._offsets)
