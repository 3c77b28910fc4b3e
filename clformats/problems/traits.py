"""The properties of a device that plans depend on, as plain numbers: plans need no device."""

from __future__ import annotations

from dataclasses import dataclass

LINE_BYTES = 64
"""A cache line of every processor on which streaming stores matter here."""
CACHE_FLOOR = 32 << 20
"""The least size assumed of the last-level cache: Intel's runtime reports the second-level one."""
STREAMED_MOST = 64 << 20
"""Streaming stores are used from these moved bytes on, however large a cache the device reports:
a guest of a large machine has a slice of it. On a Xeon that reported 300 MB, 18 MB to 165 MB:
ordinary -> streaming stores, 1.6 -> 1.8 times as fast as oneDNN."""
STREAMED_SHARE = 0.55
"""Streaming stores are used from this share of the last-level cache on, source and destination
together.

Measured with a cache of 32 MiB and a second kernel that reads the result, medians of many runs:
streaming stores lose a fifth at 13 MB and gain a tenth at 19 MB; at 26 MB they gain 15 % with f32
and 38 % with 8-bit elements. Without the second kernel they gain more: 1.6 at 19 MB. The share is
below 1 because other processes use the cache too."""


@dataclass(frozen=True, slots=True)
class Traits:
    """The properties of a device.

    ``compute_units``: cores or multiprocessors. ``cache_bytes``: the last-level cache.
    ``group_size``: work-items of a work-group that works together.
    ``vector_bytes``: the widest vector that an instruction takes.
    ``local_bytes``: local memory of a work-group; 0 where it is main memory under another name.
    ``streamed_bytes``: streaming stores are used from this many moved bytes on; None stands for
    `STREAMED_SHARE` of the cache, `STREAMED_MOST` at the most.
    ``begin_bytes``: the alignment of memory, a power of two. Memory that OpenCL allocates is
    aligned to cache lines at least, a user's host memory may begin anywhere.
    """

    is_cpu: bool = True
    compute_units: int = 2
    cache_bytes: int = 32 << 20
    has_fp64: bool = True
    has_images: bool = True
    group_size: int = 256
    vector_bytes: int = 64
    local_bytes: int = 32 << 10
    streamed_bytes: int | None = None
    begin_bytes: int = LINE_BYTES

    @property
    def streams_from(self) -> int:
        """From how many read and written bytes on streaming stores are used on a CPU."""
        if self.streamed_bytes is not None:
            return self.streamed_bytes
        return min(int(max(self.cache_bytes, CACHE_FLOOR) * STREAMED_SHARE), STREAMED_MOST)

    def streams(self, nbytes: int) -> bool:
        """Whether a kernel of ``nbytes`` read and written bytes uses streaming stores."""
        return self.is_cpu and nbytes >= self.streams_from


DEFAULT = Traits()
