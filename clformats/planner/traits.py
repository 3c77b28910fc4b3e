"""What the planner needs to know of a device, as plain numbers, so that it can be tested alone."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Traits:
    """``compute_units`` cores or multiprocessors; ``cache_bytes`` of the last-level cache.

    ``group_size`` are the work-items of a work-group where a group works together.
    """

    is_cpu: bool = True
    compute_units: int = 2
    cache_bytes: int = 32 << 20
    has_fp64: bool = True
    has_images: bool = True
    group_size: int = 256


DEFAULT = Traits()
