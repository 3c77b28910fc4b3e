"""What the planner needs to know of a device, as plain numbers, so that it can be tested alone."""

from __future__ import annotations

from dataclasses import dataclass

LINE_BYTES = 64
"""A cache line of the processors on which that matters here: the host's."""
PIECE_BYTES = 16
"""What is stored past the cache at once, at the least, where runs start at such places. In f32
``bfyx`` to ``b_fs_yx_fsv4`` with 35 x 35 positions four pieces instead of a vector reach 0.8 to 1,
ordinary stores 0.45 to 0.8; pieces of 8 bytes gain a tenth, those of 4 lose a sixth."""
CACHE_FLOOR = 32 << 20
"""The last-level cache where the device names a smaller one: Intel's runtime tells the second."""
STREAMED_MOST = 64 << 20
"""From so many bytes on stores pass by the cache, however large a cache the device names: the guest
of a large machine has a part of it. On a Xeon that named 300 MB tensors of 18 MB to 165 MB were
1.6 times as fast as oneDNN, and 1.8 times with stores past the cache."""
STREAMED_SHARE = 0.55
"""Share of the cache from which on stores pass by it, source and destination taken together.

Measured with a cache of 32 MiB and a kernel behind that reads the result, medians of many runs: at
13 MB the stores that pass by it lose a fifth, at 19 MB they gain a tenth, at 26 MB 15 % with f32
and 38 % with bytes. Alone they gain more: 1.6 at 19 MB. Others want some of the cache too, on some
days more than on others: it is never all ours."""


@dataclass(frozen=True, slots=True)
class Traits:
    """``compute_units`` cores or multiprocessors; ``cache_bytes`` of the last-level cache.

    ``group_size`` are the work-items of a work-group where a group works together.
    ``vector_bytes``: the widest vectors that instructions of the device have.
    ``subgroup_bytes``: how wide the elements may be that sub-groups of 16 work-items read and write
    as blocks; none where there are no such sub-groups.
    ``streamed_bytes``: from how many bytes moved on stores pass by the cache; None: from
    `STREAMED_SHARE` of it, and from `STREAMED_MOST` at the latest.
    ``begin_bytes``: memory begins at multiples of so many bytes, a power of two. What OpenCL
    allocates begins at cache lines and more, a user's host memory anywhere.
    """

    is_cpu: bool = True
    compute_units: int = 2
    cache_bytes: int = 32 << 20
    has_fp64: bool = True
    has_images: bool = True
    group_size: int = 256
    vector_bytes: int = 64
    subgroup_bytes: tuple[int, ...] = ()
    streamed_bytes: int | None = None
    begin_bytes: int = LINE_BYTES

    def streams(self, nbytes: int) -> bool:
        """Whether stores are to pass by the cache where so many bytes are moved."""
        least = self.streamed_bytes
        if least is None:
            share = int(max(self.cache_bytes, CACHE_FLOOR) * STREAMED_SHARE)
            least = min(share, STREAMED_MOST)
        return self.is_cpu and nbytes >= least


DEFAULT = Traits()
