"""Reorders to int8 weights that are followed by sums, to the byte."""

from __future__ import annotations

import random
from collections.abc import Callable
from functools import partial
from typing import Any

import numpy as np
import pytest

import clformats as cf
from clformats.kernels import render
from clformats.reorders import planning
from clformats.reorders.planning import FewPrograms
from clformats.schedule import Request
from tests.device_support import check_bytes, check_reorder, guarded, holding, memory_of
from tests.faults_support import error
from tests.support import dirty_pack, random_values
from tests.tiers import tiered

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


@pytest.mark.sampled(6)
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
    made = render(plan)
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


@pytest.mark.parametrize("tag", tiered(["OIhw4i16o4i", "hwio", "oihw"], ["hwio"]))
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


def strided(rng: random.Random, extra: cf.Extra) -> D:
    """Weights of any sizes, with the dimensions in any order and gaps between them."""
    dims = (*rng.choices((1, 3, 16, 18, 70), k=2), *rng.choices((1, 3), k=2))
    strides, at = [0] * 4, 1
    for d in rng.sample(range(4), 4):
        strides[d], at = at, at * dims[d] + rng.choice((0, 0, 3))
    return D(dims, "s8", strides=strides, extra=extra)


def test_few_programs_add_up_sums_of_any_strides(engine: cf.Engine) -> None:
    rng, extra, unknown = random.Random(1), cf.Extra(1, s8s8=True), (cf.RUNTIME_DIM,) * 4  # noqa: S311
    pattern = D(unknown, "s8", strides=unknown, extra=extra)
    request = partial(Request, traits=engine.traits)
    few, sources = FewPrograms(D(unknown, "s8", "oihw"), pattern, request), set()
    for _ in range(60):
        dst = strided(rng, extra)
        _, made = few.planned(D(dst.dims, "s8", "oihw"), dst)
        assert made
        assert made.then
        sources.add(made.then.source)
    assert len(sources) == planning.SUMS + 1


@pytest.mark.parametrize("tag", tiered(["OIhw4i16o4i", "gOIhw4i16o4i", None], ["gOIhw4i16o4i"]))
def test_one_kernel_adds_up_all_other_sizes(
    tag: str | None, engine: cf.Engine, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(planning, "SUMS", 0)
    rng, sources = random.Random(2), set()  # noqa: S311  # shapes, not secrets
    ndims = 5 if tag and tag[0] == "g" else 4
    extra, unknown = cf.Extra(1, s8s8=True, asymmetric=True), (cf.RUNTIME_DIM,) * ndims
    pattern = D(unknown, "s8", tag, strides=None if tag else unknown, extra=extra)
    reorder = cf.Reorder(D(unknown, "s8", "abcde"[:ndims]), pattern, engine)
    for _ in range(3):
        dims = tuple(rng.choice([1, 3, 17, 40]) for _ in unknown)
        dst = D(dims, "s8", tag, extra=extra) if tag else strided(rng, extra)
        src = D(dst.dims, "s8", "abcde"[:ndims])
        array = random_values(np.random.default_rng(1), dst.dims, "s8")
        target = guarded(dst, engine)
        stream = cf.Stream(engine)
        reorder(stream, memory_of(cf.pack(array, src), src, engine), target).wait()
        check_bytes(target, holding(array, dst), reorder.plan)
        sources.add(kernels_of(reorder.plan)[1])
    assert len(sources) == 1


@pytest.mark.parametrize(("tag", "on_gpus"), [("OIhw4i16o4i", "local"), ("oihw", "rows")])
def test_elements_of_four_bits(tag: str, on_gpus: str, every_stream: cf.Stream) -> None:
    dst = D(CONV, "s8", tag, extra=cf.Extra(1, s8s8=True, asymmetric=True))
    family = check_reorder(D(CONV, "s4", "oihw"), dst, every_stream).plan.family
    assert family == ("scheduled" if every_stream.engine.traits.is_cpu else on_gpus)


def test_sums_get_no_image(stream: cf.Stream, monkeypatch: pytest.MonkeyPatch) -> None:
    """Their kernel takes buffers; not every driver refuses an image instead."""
    import pyopencl as cl

    given, real = [], cl.Kernel.set_arg

    def set_arg(kernel: Any, k: int, value: Any) -> None:
        given.append(value)
        real(kernel, k, value)

    src = D((16, 5, 3, 3), "f32", "image_2d_weights_c1_b_fyx")
    array = np.round(random_values(np.random.default_rng(0), src.dims, "f32") * 100)
    source = cf.Memory(src, stream.engine)
    cf.Reorder(D(src.dims, "f32", "oiyx"), src, stream.engine)(
        stream, cf.from_numpy(array, stream.engine, format="oiyx"), source
    ).wait()
    dst = D(src.dims, "s8", "hwio", extra=cf.Extra(1, s8s8=True))
    target, reorder = guarded(dst, stream.engine), cf.Reorder(src, dst, stream.engine)
    monkeypatch.setattr(cl.Kernel, "set_arg", set_arg)
    reorder(stream, source, target).wait()
    check_bytes(target, holding(cf.transform(array, src, dst), dst), reorder.plan)
    images = sum(isinstance(value, cl.Image) for value in given)
    assert images == (not reorder.plan.has_twin)


@pytest.mark.parametrize("offset", [14, 15, 20, 27])
def test_sums_are_no_place_for_a_source(offset: int, stream: cf.Stream) -> None:
    """Nor the byte before them, where one more tensor would end within the sums."""
    import pyopencl as cl

    dst = D((3, 5, 1, 1), "s8", "oihw", extra=cf.Extra(1, s8s8=True))
    src = D.parse(f"s8:oihw:3x5x1x1:offset={offset}")
    buffer = cl.Buffer(stream.engine.context, cl.mem_flags.READ_WRITE, 64)
    source, target = (cf.Memory(d, stream.engine, buffer=buffer) for d in (src, dst))
    with pytest.raises(cf.InvalidDescriptor, match="share bytes"):
        cf.Reorder(src, dst, stream.engine)(stream, source, target)


Enqueues = list[Any]
"""The events of kernels, in their order; an exception stands for one to raise."""


@pytest.fixture
def enqueues(monkeypatch: pytest.MonkeyPatch) -> Callable[..., Enqueues]:
    """Watch the kernels that are enqueued from now on; those given raise errors, once each."""
    import pyopencl as cl

    def watch(errors: dict[int, Exception] | None = None) -> Enqueues:
        found: Enqueues = []
        real = cl.enqueue_nd_range_kernel

        def enqueue(*arguments: Any) -> Any:
            failure = (errors or {}).get(len(found))
            found.append(failure or real(*arguments))
            if failure:
                raise failure
            return found[-1]

        monkeypatch.setattr(cl, "enqueue_nd_range_kernel", enqueue)
        return found

    return watch


def pair(engine: cf.Engine) -> tuple[cf.Reorder, cf.Memory, cf.Memory, Any]:
    """A reorder to weights with sums, its memory, and the bytes it writes."""
    src = D(CONV, "s8", "oihw")
    dst = D(CONV, "s8", "OIhw4i16o4i", extra=cf.Extra(1, s8s8=True))
    array = random_values(np.random.default_rng(0), CONV, "s8")
    source = memory_of(cf.pack(array, src), src, engine)
    return cf.Reorder(src, dst, engine), source, guarded(dst, engine), holding(array, dst)


@pytest.mark.parametrize("out_of_order", [False, True])
def test_sums_that_are_refused(
    out_of_order: bool, engine: cf.Engine, enqueues: Callable[..., Enqueues]
) -> None:
    """Later commands wait for the elements, which are under way; then all goes well again."""
    reorder, source, target, expected = pair(engine)
    stream = cf.Stream(engine, out_of_order=out_of_order)
    found = enqueues({1: error()})
    with pytest.raises(cf.DeviceError, match="OUT_OF_RESOURCES"):
        reorder(stream, source, target)
    assert target.usage.writer is found[0]
    assert list(source.usage.readers.values()) == [found[0]]
    reorder(cf.Stream(engine), source, target).wait()
    check_bytes(target, expected)


def test_elements_that_are_refused(engine: cf.Engine, enqueues: Callable[..., Enqueues]) -> None:
    """Nothing is under way, and what went before on another stream is not forgotten."""
    import pyopencl as cl

    reorder, source, target, expected = pair(engine)
    gate, other = cl.UserEvent(engine.context), cf.Stream(engine)
    try:
        before = cl.enqueue_marker(other.tracked_queue, wait_for=[gate])
        target.written_by(before)
        enqueues({0: error()})
        with pytest.raises(cf.DeviceError, match="OUT_OF_RESOURCES"):
            reorder(cf.Stream(engine), source, target)
        assert target.usage.writer is before
        assert not source.usage.readers
    finally:
        gate.set_status(cl.command_execution_status.COMPLETE)
    reorder(cf.Stream(engine), source, target).wait()
    check_bytes(target, expected)


@pytest.mark.parametrize("number", [0, 1])
def test_a_kernel_that_had_other_memory_is_made_anew(
    number: int, engine: cf.Engine, enqueues: Callable[..., Enqueues]
) -> None:
    reorder, source, target, expected = pair(engine)
    found = enqueues({number: error("INVALID_KERNEL_ARGS")})
    reorder(cf.Stream(engine), source, target).wait()
    check_bytes(target, expected)
    assert len(found) == 3


def test_seconds_are_those_of_both_kernels(
    engine: cf.Engine, enqueues: Callable[..., Enqueues]
) -> None:
    reorder, source, target, _ = pair(engine)
    found = enqueues()
    seconds = reorder(cf.Stream(engine, profiling=True), source, target).seconds()
    each = [event.profile.end - event.profile.start for event in found]
    assert len(each) == 2
    assert seconds >= sum(each) * 1e-9


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
