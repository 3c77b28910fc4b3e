"""Int8 weights with their sums equal those of the real oneDNN, byte for byte."""

from __future__ import annotations

from collections import Counter

import numpy as np
import pytest

import clformats as cf
from bench.peers import onednn
from tests.device_support import memory_of
from tests.support import hurting_dims, random_values

pytestmark = pytest.mark.sampled(24)

D = cf.MemoryDesc
# Every name of weights; the library says unimplemented where it does not put sums behind them.
WEIGHTS = sorted(
    name for name in onednn.ALIASES if {"o", "i"} <= {c for c in name.lower() if c.isalpha()}
    and not {"l", "t", "n", "c"} & set(name.lower())
)  # fmt: skip
CHUNKS = 64


def compared(name: str, flags: int, stream: cf.Stream) -> str:
    """One name in both libraries; what came of it."""
    tag, mask = onednn.ALIASES[name], 3 if "g" in name.lower() else 1
    dims = hurting_dims(cf.Format(tag))
    if "G" in name:
        dims = (dims[0], 1, 1, *dims[3:])  # depthwise: that is what these are for
    plain = D(dims, "s8", "abcdefgh"[: len(dims)])
    extra = cf.Extra(mask, s8s8=bool(flags & 1), asymmetric=bool(flags & 8))
    dst = D(dims, "s8", tag, extra=extra)
    to = onednn.Desc.by_tag(dims, "s8", tag)
    to.raw.extra.flags = flags
    to.raw.extra.compensation_mask = to.raw.extra.asymm_compensation_mask = mask
    try:
        real = onednn.Reorder(onednn.Desc.by_tag(dims, "s8", plain.format.name), to)
    except onednn.Status as status:
        return status.name
    array = random_values(np.random.default_rng(len(tag)), dims, "s8")
    filled = np.full(max(to.size(), dst.nbytes), 0xA5, np.uint8)
    real.execute(cf.pack(array, plain), filled)
    # Bytes between weights and sums are written by neither.
    want = cf.pack(array, dst).view(np.uint8)
    rest = np.full(dst.nbytes, 0xA5, np.uint8)
    gap = slice(dst.sums_at - (-D(dims, "s8", tag).nbytes % 4), dst.sums_at)
    want[gap] = rest[gap]
    np.testing.assert_array_equal(filled[: dst.nbytes], want, err_msg=f"{dst} by {real.impl}")
    source = memory_of(cf.pack(array, plain), plain, stream.engine)
    target = memory_of(rest.view(np.int8), dst, stream.engine)
    cf.Reorder(plain, dst, stream.engine)(stream, source, target).wait()
    with target.map("r") as got:
        np.testing.assert_array_equal(got.view(np.uint8)[: dst.nbytes], want, err_msg=str(dst))
    return "compared"


@pytest.mark.parametrize("chunk", range(CHUNKS))
def test_sums_equal_onednn(chunk: int, stream: cf.Stream) -> None:
    outcomes: Counter[str] = Counter()
    for k, name in enumerate(WEIGHTS[chunk::CHUNKS]):
        outcomes[compared(name, (1, 8, 9)[k % 3], stream)] += 1
    print(outcomes)  # noqa: T201  # shown where it fails
    assert set(outcomes) <= {"compared", "unimplemented"}
    assert outcomes["compared"], outcomes
