"""Reorders to int8 weights that are followed by sums, to the byte."""

from __future__ import annotations

import random
from typing import Any

import numpy as np
import pytest

import clformats as cf
from clformats.kernels import launch
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
    assert reorder.plan.sums
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


def kernels_of(plan: cf.Plan) -> tuple[str, str]:
    """The sources of its two kernels."""
    made = launch(plan)
    assert made
    assert made.then
    return made.source, made.then.source


def test_one_program_sums_up_all_sizes() -> None:
    sources = set()
    for o, i in ((18, 21), (33, 5), (47, 64)):
        dims = (o, i, 3, 3)
        dst = D(dims, "s8", "OIhw4i16o4i", extra=cf.Extra(1, s8s8=True))
        sources.add(kernels_of(cf.make_plan(D(dims, "f32", "oihw"), dst))[1])
    assert len(sources) == 1


@pytest.mark.parametrize("tag", ["OIhw4i16o4i", "hwio", "oihw"])
def test_sums_of_unknown_sizes(tag: str, engine: cf.Engine) -> None:
    """Few programs serve all shapes: four and a generic one, and those of sums."""
    fresh = cf.Engine(device=engine.device, context=engine.context)
    stream, extra, unknown = cf.Stream(fresh), cf.Extra(1, s8s8=True), (cf.RUNTIME_DIM,) * 4
    reorder = cf.Reorder(D(unknown, "s8", "oihw"), D(unknown, "s8", tag, extra=extra), fresh)
    rng = random.Random(3)  # noqa: S311  # shapes, not secrets
    for _ in range(12):
        dims = (*(rng.choice([1, 3, 16, 18, 70, 130]) for _ in range(2)), *rng.choices((1, 3), k=2))
        src, dst = D(dims, "s8", "oihw"), D(dims, "s8", tag, extra=extra)
        array = random_values(np.random.default_rng(1), dims, "s8")
        target = guarded(dst, fresh)
        reorder(stream, memory_of(cf.pack(array, src), src, fresh), target).wait()
        check_bytes(target, holding(array, dst), reorder.plan)
    assert fresh.programs_built <= 5 + 8


@pytest.mark.sampled(12)
@pytest.mark.parametrize("seed", range(24))
def test_random_weights(seed: int, every_stream: cf.Stream) -> None:
    """Any tag of weights, any mask, with strides where the tag is plain."""
    rng = random.Random(seed)  # noqa: S311  # shapes, not secrets
    tags = [
        f
        for f in cf.formats("weights")
        if f.structure.is_tag and f.kind == "blocked" and f.ndims in (4, 5)
    ]
    for _ in range(5):
        fmt = rng.choice(tags)
        dims = tuple(rng.choice([1, 2, 5, 16, 33, 80]) if d < 2 else rng.choice([1, 2, 3])
                     for d in range(fmt.ndims))  # fmt: skip
        mask = rng.randrange(1, (1 << fmt.ndims) - 1)
        extra = cf.Extra(mask, s8s8=rng.random() < 0.7, asymmetric=True)
        dst = D(dims, "s8", fmt, extra=extra)
        check(D(dims, rng.choice(["s8", "f32"]), "abcdef"[: fmt.ndims]), dst, every_stream)
