"""Reorders to int8 weights that are followed by sums, to the byte."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import clformats as cf
from tests.device_support import check_bytes, guarded, holding, memory_of
from tests.support import dirty_pack, random_values

D = cf.MemoryDesc
CONV, GROUPED = (18, 21, 2, 3), (3, 18, 5, 2, 1)
EXTRAS = [
    {"s8s8": True}, {"asymmetric": True}, {"s8s8": True, "asymmetric": True},
    {"s8s8": True, "scale_adjust": 0.5},
]  # fmt: skip


def check(src: D, dst: D, stream: cf.Stream, attr: cf.Attr | None = None) -> cf.Reorder:
    """Random weights, garbage in padding, 0xA5 and canaries around; sums are of what is stored."""
    rng = np.random.default_rng(5)
    array = random_values(rng, src.dims, src.dtype.name)
    source = memory_of(dirty_pack(rng, array, src), src, stream.engine)
    target = guarded(dst, stream.engine)
    reorder = cf.Reorder(src, dst, stream.engine, attr=attr)
    reorder(stream, source, target).wait()
    assert dst.extra is not None
    if attr:
        values = attr.apply(array, src.dtype, "f32")
        values = cf.Attr(src_scale=dst.extra.scale_adjust).apply(values, "f32", "s8")
    else:
        values = cf.transform(array, src, dst)
    check_bytes(target, holding(values, dst), reorder.plan)
    assert reorder.plan.family == "summed"
    return reorder


@pytest.mark.sampled(3)
@pytest.mark.parametrize("given", EXTRAS)
@pytest.mark.parametrize("tag", ["OIhw4i16o4i", "hwio", "oihw", "OIhw2i8o4i", "Ohwi16o"])
@pytest.mark.parametrize("dtype", ["s8", "f32"])
def test_weights(given: dict[str, Any], tag: str, dtype: str, stream: cf.Stream) -> None:
    dst = D(CONV, "s8", tag, extra=cf.Extra(1, **given))
    check(D(CONV, dtype, "oihw"), dst, stream)


@pytest.mark.parametrize("given", EXTRAS[2:])
@pytest.mark.parametrize("tag", ["gOIhw4i16o4i", "hwigo", "Goihw16g"])
def test_groups_with_scales_for_each_channel(
    given: dict[str, Any], tag: str, stream: cf.Stream
) -> None:
    """Scales count logical channels, g * 18 + o; sums padded ones, g * 32 + o."""
    scales = np.random.default_rng(0).uniform(0.1, 2, GROUPED[:2])
    dst = D(GROUPED, "s8", tag, extra=cf.Extra(3, **given))
    check(D(GROUPED, "f32", "goihw"), dst, stream, cf.Attr(src_scale=(scales, 3)))


def test_back_to_plain_drops_the_sums(stream: cf.Stream) -> None:
    src = D(CONV, "s8", "OIhw4i16o4i", extra=cf.Extra(1, s8s8=True))
    array = random_values(np.random.default_rng(0), CONV, "s8")
    source = memory_of(cf.pack(array, src), src, stream.engine)
    target = cf.Memory(D(CONV, "s8", "hwio"), stream.engine)
    cf.Reorder(src, target.desc, stream.engine)(stream, source, target).wait()
    np.testing.assert_array_equal(cf.to_numpy(target), array)
    np.testing.assert_array_equal(cf.to_numpy(source), array)


def test_one_program_for_all_sizes(engine: cf.Engine) -> None:
    before = None
    for o, i in ((18, 21), (33, 5), (47, 64)):
        dims = (o, i, 3, 3)
        dst = D(dims, "s8", "OIhw4i16o4i", extra=cf.Extra(1, s8s8=True))
        cf.Reorder(D(dims, "f32", "oihw"), dst, engine)
        before = before or engine.programs_built
    assert engine.programs_built == before
