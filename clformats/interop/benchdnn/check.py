"""The check of a destination, byte by byte, reported in benchdnn's form."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from ...host.memory import behind
from ...host.oracle import unpack_by_offsets
from ...reorders.trial import POISON, Bytes, Case, element_bits, owned_bits
from ...tensors.desc import MemoryDesc
from ...tensors.dtypes import as_dtype
from .outcome import FAILED, PASSED, CaseOutcome

TRUSTED_ZEROS = 0.8
"""The share of zeros in a result from which on a comparison says little (benchdnn's)."""
SHOWN = 10
"""The most wrong elements listed. A result of fewer elements than this is always trusted."""


def is_trusted(case: Case) -> bool:
    """Whether the expected result has enough elements that are not zero."""
    return case.dst.nelems < SHOWN or case.zeros <= TRUSTED_ZEROS * case.dst.nelems


def compare(got: Bytes, expected: Bytes, dst: MemoryDesc, outcome: CaseOutcome) -> None:
    """Set ``outcome`` by comparing a destination and its canary with the expected bytes."""
    outcome.total = dst.nelems
    canary = np.full(got.size - expected.size, POISON, np.uint8)
    want = np.concatenate([expected, canary])
    outcome.status = PASSED
    if not np.array_equal(got, want):
        _differences(got, want, expected.size, dst, outcome)


def _sums(memory: Bytes, desc: MemoryDesc) -> NDArray[Any]:
    """All sums after the elements."""
    dtype = as_dtype(desc.sums[0].dtype if desc.sums else "s32")
    return behind(memory, desc).view(dtype.numpy)


def _differences(got: Bytes, want: Bytes, size: int, dst: MemoryDesc, outcome: CaseOutcome) -> None:
    """Elements that are wrong, and bytes beside them; a NaN is as good as another."""
    storage = dst.dtype.storage
    found, truth = (unpack_by_offsets(side[:size].view(storage), dst) for side in (got, want))
    wrong = found.view(dst.dtype.raw) != truth.view(dst.dtype.raw)
    if dst.dtype.is_float:
        wrong &= ~(np.isnan(found) & np.isnan(truth))
    beside = got != want
    beside[:size] = ((got ^ want)[:size] & ~element_bits(dst)) != 0
    behind(beside, dst)[:] = False
    sums = [_sums(side, dst) for side in (got, want)]
    off = sums[0].view(np.uint32) != sums[1].view(np.uint32)
    outcome.errors = sum(int(np.count_nonzero(which)) for which in (wrong, off, beside))
    if outcome.errors:
        outcome.status = FAILED
    for at in np.flatnonzero(wrong)[:SHOWN]:
        index = np.unravel_index(at, dst.dims)
        one, other = float(truth[index]), float(found[index])
        place = ":".join(map(str, index))
        diff = abs(one - other)
        outcome.points.append(
            f"[{at:4}][DST][{place}] exp:{one:12.9g} got:{other:12.9g} "
            f"diff:{diff:8g} rdiff:{diff / (abs(one) or 1):8g}"
        )
    for at in np.flatnonzero(off)[:SHOWN]:
        outcome.points.append(f"[{at:4}][COMP] exp:{sums[1][at]:12} got:{sums[0][at]:12}")
    owned = owned_bits(dst)
    for at in np.flatnonzero(beside)[:SHOWN]:
        kind = "PADDING" if at < size and owned[at] else "CANARY"
        outcome.points.append(f"[{at:4}][{kind}] byte exp:{want[at]:#04x} got:{got[at]:#04x}")
