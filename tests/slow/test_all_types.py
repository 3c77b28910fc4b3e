"""On the device, every pair of element types between formats of many kinds."""

from __future__ import annotations

import random
from itertools import product

import numpy as np
import pytest

import clformats as cf
from tests.device_support import check_reorder
from tests.kernels.test_types import ALL_TYPES, needs_fp64
from tests.support import BUFFERS, hurting_dims, random_values

D = cf.MemoryDesc
SAMPLE = 4


@pytest.mark.parametrize(("src", "dst"), list(product(ALL_TYPES, ALL_TYPES)))
def test_both_ways(src: str, dst: str, stream: cf.Stream) -> None:
    """Other formats for each pair, and as many in all as there are."""
    needs_fp64(src, dst, stream)
    number = ALL_TYPES.index(src) * len(ALL_TYPES) + ALL_TYPES.index(dst)
    for fmt in random.Random(number).sample(BUFFERS, SAMPLE):  # noqa: S311  # formats, not secrets
        dims = hurting_dims(fmt, number)
        array = random_values(np.random.default_rng(number), dims, src)
        for a, b in ((D(dims, src), D(dims, dst, fmt)), (D(dims, src, fmt), D(dims, dst))):
            check_reorder(a, b, stream, array=array, front=2)
