"""Reorders between random lists of digits: laws 3 and 4 on a device."""

from __future__ import annotations

import random

import numpy as np
import pytest

import clformats as cf
from tests.digits_support import random_desc, random_format

pytestmark = [pytest.mark.device, pytest.mark.sampled(50)]


def pair(rng: random.Random) -> tuple[cf.MemoryDesc, cf.MemoryDesc]:
    """Two lists of digits in buffers, of one rank."""
    dst = random_desc(rng, random_format(rng)).buffer_twin
    src = random_format(rng)
    while src.ndims != dst.ndims or src.image:
        src = random_format(rng)
    return cf.MemoryDesc(dst.dims, dst.dtype, src), dst


@pytest.mark.parametrize("seed", range(500))
def test_reorders_between_random_lists(seed: int, engine: cf.Engine, stream: cf.Stream) -> None:
    src, dst = pair(random.Random(seed))  # noqa: S311  # cases, not secrets
    array = np.arange(1, 1 + src.nelems, dtype=np.int32).reshape(src.dims)
    a, b = cf.from_numpy(array, engine, format=src.format), cf.Memory(dst, engine)
    wanted = np.full(cf.host.packing.storage_size(dst), -1515870811, np.int32)
    with b.map("w") as flat:
        flat[:] = wanted
    cf.Reorder(src, dst, engine)(stream, a, b).wait()
    cf.host.packing.zero_padding(wanted, dst)
    wanted[dst.offsets()] = array
    with b.map("r") as flat:
        assert np.array_equal(flat, wanted)
