"""What the planner needs to know of a device, as plain numbers, so that it can be tested alone."""

from __future__ import annotations

from dataclasses import dataclass

LINE_BYTES = 64
"""A cache line of the processors on which that matters here: the host's."""
STREAMED_FLOOR = 32 << 20
"""Bytes moved below which stores go through the cache even where the device names a small one.

Measured with a cache of 32 MiB, ordinary stores against those that pass by it: alone, the latter
gain from 15 MB on; with a kernel behind that reads the result they lose a fifth at 26 MB and gain a
fifth at 38 MB, and somebody always reads the result."""


@dataclass(frozen=True, slots=True)
class Traits:
    """``compute_units`` cores or multiprocessors; ``cache_bytes`` of the last-level cache.

    ``group_size`` are the work-items of a work-group where a group works together.
    ``subgroup_bytes``: how wide the elements may be that sub-groups of 16 work-items read and write
    as blocks; none where there are no such sub-groups.
    ``streamed_bytes``: from how many bytes moved on stores pass by the cache; None: from as many as
    fit into it, and `STREAMED_FLOOR`.
    """

    is_cpu: bool = True
    compute_units: int = 2
    cache_bytes: int = 32 << 20
    has_fp64: bool = True
    has_images: bool = True
    group_size: int = 256
    subgroup_bytes: tuple[int, ...] = ()
    streamed_bytes: int | None = None

    def streams(self, nbytes: int) -> bool:
        """Whether stores are to pass by the cache where so many bytes are moved."""
        least = self.streamed_bytes
        if least is None:
            least = max(self.cache_bytes, STREAMED_FLOOR)
        return self.is_cpu and nbytes >= least


DEFAULT = Traits()
