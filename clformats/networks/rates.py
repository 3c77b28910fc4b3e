"""The time of a reorder that was not measured: that of the library's own plan by its cost model.

The seconds a byte hardly depend on the shape: by the model, those of 216 of 248 pairs of formats
and shapes, from ``1x32x112x112`` to ``1x1024x7x7``, are within 20 % of a typical tensor's, and the
farthest is 46 % above. So each pair of formats is planned once, for `PROCESSOR`.
"""

from __future__ import annotations

from functools import lru_cache

from ..errors import Error
from ..formats import Format
from ..problems.thresholds import BYTE_NS, CACHED
from ..problems.traits import Traits
from ..schedule import make_plan
from ..tensors.desc import MemoryDesc
from ..tensors.dtypes import DType

PROCESSOR = Traits(vector_bytes=32, streamed_bytes=18 << 20)
"""What the prices of reorders that were not measured are for."""
SLOW = 10.0
"""How many times as long as a copy plans without a model are taken to be: three at the least."""
CACHED_ELEMENTS, MANY_ELEMENTS = 200_000, 13_000_000


@lru_cache(maxsize=4096)
def seconds_a_byte(src: Format, dst: Format, dtype: DType, *, is_large: bool) -> float | None:
    """Seconds for each byte read or written; None where the library has no such reorder.

    ``is_large``: the tensors do not stay in the caches.
    """
    dims = _typical(src.ndims, MANY_ELEMENTS if is_large else CACHED_ELEMENTS)
    try:
        sides = MemoryDesc(dims, dtype, src), MemoryDesc(dims, dtype, dst)
        plan = make_plan(*sides)
    except Error:
        return None
    copied = BYTE_NS * (1.0 if is_large else CACHED) * 1e-9
    seconds = plan.body.seconds(PROCESSOR) if plan.body else None
    if seconds is not None:
        return seconds / sum(side.nbytes for side in sides)
    return copied if plan.family == "copy" else SLOW * copied


def _typical(rank: int, elements: int) -> tuple[int, ...]:
    """One picture of 64 channels; matrices and vectors have as many elements."""
    if rank < 3:
        return (elements,) if rank == 1 else (elements // 64, 64)
    return (1, 64, *[round((elements / 64) ** (1 / (rank - 2)))] * (rank - 2))
