"""Reorders with attributes equal those of the real oneDNN, byte for byte, wherever it has them.

Version 2 has one set of scales, computes ``scale * (src - zp_src) + zp_dst + beta * old`` and takes
the sum with neither zero points nor two element types. That is our formula without ``dst_scale``;
the order of the additions shows only where both a zero point and a sum are given, which it refuses.
"""

from __future__ import annotations

import random
from collections import Counter
from typing import Any

import numpy as np
import pytest

import clformats as cf
from bench.peers import onednn
from tests.device_support import memory_of
from tests.support import dirty_pack, random_values

pytestmark = pytest.mark.sampled(4)

D = cf.MemoryDesc
TYPES = ("f32", "s32", "s8", "u8", "bf16")
TAGS = {4: ["abcd", "acdb", "aBcd16b", "aBcd8b", "ABcd4b16a4b", "aBcd4b", "bacd", "cdba"],
        3: ["abc", "acb", "aBc16b", "ABc16b16a", "cba"], 2: ["ab", "ba"]}  # fmt: skip
CASES = 80
CHUNKS = 16


def random_attributes(rng: random.Random, dims: tuple[int, ...]) -> tuple[Any, cf.Attr]:
    """oneDNN's and ours."""
    given: dict[str, Any] = {}
    ours: dict[str, Any] = {}
    if rng.random() < 0.7:
        mask = rng.choice([0, 1, 2, 3, (1 << len(dims)) - 1, 1 << rng.randrange(len(dims))])
        count = int(np.prod([n for d, n in enumerate(dims) if mask >> d & 1], dtype=int))
        values = [rng.choice([0.25, 0.5, 1.5, 2.0, 0.3]) for _ in range(count)]
        given["scales"] = (values, mask)
        ours["src_scale"] = (values, mask)
    for name in ("src_zero_point", "dst_zero_point"):
        if rng.random() < 0.3:
            given[name] = ours[name] = rng.randint(-9, 9)
    if not set(given) - {"scales"} and rng.random() < 0.5:
        given["beta"] = ours["beta"] = rng.choice([1.0, 0.5, 2.0])
    return onednn.Attributes(**given), cf.Attr(**ours)


def compared(seed: int, stream: cf.Stream) -> str:
    """Run one random case in both; what came of it."""
    rng = random.Random(seed)  # noqa: S311  # cases, not secrets
    ndims = rng.choice([2, 3, 4, 4])
    dims = tuple(rng.sample([1, 2, 3, 5, 7, 15, 16, 17, 19, 33], ndims))
    src, dst = (D(dims, rng.choice(TYPES), rng.choice(TAGS[ndims])) for _ in range(2))
    theirs, attr = random_attributes(rng, dims)
    descs = [onednn.Desc.by_tag(d.dims, d.dtype.name, d.format.name) for d in (src, dst)]
    try:
        real = onednn.Reorder(*descs, attributes=theirs)
    except onednn.Status as status:
        return status.name
    values = np.random.default_rng(seed)
    array, old = (random_values(values, dims, d.dtype.name) for d in (src, dst))
    if src.dtype.name == "s32":
        array = array >> 8  # all compute in f32, which holds 24 bits
    if "beta" in attr.terms and dst.dtype.name == "s32":
        old = old >> 8
    source, result = dirty_pack(values, array, src), cf.pack(old, dst)
    memories = [memory_of(source, src, stream.engine), memory_of(result, dst, stream.engine)]
    real.execute(source, result)
    cf.Reorder(src, dst, stream.engine, attr=attr)(stream, *memories).wait()
    got = cf.to_numpy(memories[1])
    np.testing.assert_array_equal(got, attr.apply(array, src.dtype, dst.dtype, old))
    want = cf.unpack(result, dst)
    if dst.dtype.name == "s32":
        # oneDNN stops at the largest f32 below 2**31.
        got = np.minimum(got, 2147483520)
    np.testing.assert_array_equal(got, want, err_msg=f"{src} -> {dst} {attr} by {real.impl}")
    return "compared"


@pytest.mark.parametrize("chunk", range(CHUNKS))
def test_attributes_equal_onednn(chunk: int, stream: cf.Stream) -> None:
    seeds = range(chunk, CASES, CHUNKS)
    outcomes = Counter(compared(seed, stream) for seed in seeds)
    assert set(outcomes) <= {"compared", "unimplemented"}
    assert outcomes["compared"] >= len(seeds) // 4, outcomes
