"""The properties of a device that plans depend on, as plain numbers: plans need no device."""

from __future__ import annotations

from dataclasses import dataclass

from ..errors import InvalidArgument
from .thresholds import CORE_GB_S, LINE_BYTES, STREAMED_USUAL


@dataclass(frozen=True, slots=True)
class Traits:
    """The properties of a device.

    ``compute_units``: cores or multiprocessors. ``cache_bytes``: the last-level cache, as the
    device reports it; no plan depends on it, see `STREAMED_USUAL`.
    ``group_size``: work-items of a work-group that works together.
    ``vector_bytes``: the widest vector that an instruction takes.
    ``local_bytes``: local memory of a work-group; 0 where it is main memory under another name.
    ``streamed_bytes``: what was measured for `stream_bytes`; None: `STREAMED_USUAL`.
    ``copied_gb_s``: what was measured for `copy_gb_s`; None: `CORE_GB_S` for each core.
    ``has_ieee_f32``: f32 divisions are correctly rounded, and small numbers are not zero.
    ``begin_bytes``: the alignment of memory, a power of two. Memory that OpenCL allocates is
    aligned to cache lines at least, a user's host memory may begin anywhere.

    Raises `InvalidArgument` for numbers that no device has.
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
    has_ieee_f32: bool = True
    copied_gb_s: int | None = None

    def __post_init__(self) -> None:
        begin = self.begin_bytes
        least = min(self.compute_units, self.group_size, self.vector_bytes, begin)
        if least < 1 or begin & (begin - 1):
            raise InvalidArgument(
                f"got {self}, expected compute_units, group_size and vector_bytes of 1 at least, "
                f"and a power of two for begin_bytes"
            )

    @property
    def registers(self) -> int:
        """Vector registers of a core: AVX-512 has more."""
        return 32 if self.vector_bytes >= 64 else 16

    @property
    def stream_bytes(self) -> int:
        """From how many read and written bytes on streaming stores are used on a CPU."""
        return STREAMED_USUAL if self.streamed_bytes is None else self.streamed_bytes

    @property
    def copy_gb_s(self) -> int:
        """What copies outside the caches read and write on a CPU, in gigabytes a second."""
        usual = CORE_GB_S * self.compute_units
        return usual if self.copied_gb_s is None else self.copied_gb_s

    def is_large(self, nbytes: int) -> bool:
        """Whether ``nbytes`` read and written bytes are more than caches hold."""
        return nbytes >= self.stream_bytes

    def streams(self, nbytes: int) -> bool:
        """Whether a kernel of ``nbytes`` read and written bytes uses streaming stores."""
        return self.is_cpu and self.is_large(nbytes)


DEFAULT = Traits()
