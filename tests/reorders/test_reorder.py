"""Reorders on a device equal pack and unpack on the host, to the byte."""

from __future__ import annotations

import os
import random

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

import clformats as cf
from clformats.kernels import masks
from clformats.schedule.generic import GenericPlan
from clformats.schedule.layout import lay_out
from clformats.schedule.scheduled import ScheduledPlan
from tests.device_support import (
    as_large,
    check_bytes,
    check_reorder,
    expected,
    guarded,
    memory_of,
    moved,
)
from tests.strategies import pairs
from tests.support import BUFFERS, hurting_dims, random_values
from tests.tiers import tiered

D = cf.MemoryDesc
FRONTS = (0, 1, 7, 64)  # elements in front of the tensor: the canary there, and odd alignments
EXAMPLES = int(os.environ.get("CLFORMATS_TEST_EXAMPLES", "12"))

# Of these no oneDNN tag exists: swizzled, aligned, fused, turned around. Others have their tags.
STRUCTURES = list(dict.fromkeys(BUFFERS))
NO_TAG = [fmt for fmt in STRUCTURES if not fmt.structure.is_tag]


@settings(
    max_examples=EXAMPLES,
    deadline=None,
    suppress_health_check=[HealthCheck.function_scoped_fixture, HealthCheck.too_slow],
    derandomize=True,
)
@given(pair=pairs(), seed=st.integers(0, 2**31), front=st.sampled_from(FRONTS))
def test_any_to_any(pair: tuple[D, D], seed: int, front: int, every_stream: cf.Stream) -> None:
    check_reorder(*pair, every_stream, seed=seed, front=front)


FAMILY_CASES = [
    ("scheduled", "bfyx", "bfyx", (2, 3, 5, 7)),
    ("scheduled", "byxf", "b_fs_yx_fsv16", (2, 17, 5, 7)),
    ("scheduled", "byxf", "bfyx", (2, 3, 9, 11)),
    ("scheduled", "bfyx", "byxf", (2, 3, 9, 11)),
    ("scheduled", "bfyx", "b_fs_yx_fsv16", (2, 35, 5, 7)),
    ("scheduled", "b_fs_yx_fsv16", "bfyx", (2, 35, 5, 7)),
    ("scheduled", "bfyx", "byxf", (2, 18, 5, 7)),
    ("scheduled", "oiyx", "os_is_yx_osv8_isv4", (19, 21, 3, 3)),
    ("scheduled", "oiyx", "os_is_yx_isa8_osv8_isv4_swizzled_by_4", (35, 37, 3, 3)),
    ("scheduled", "aBcd24b", "aBcd16b", (2, 40, 3, 3)),
    ("scheduled", "aBcd3b", "aBcd16b", (2, 40, 3, 7)),
    ("scheduled", "aBcd16b", "aBcd3b", (2, 40, 3, 7)),
    ("scheduled", "ABcd12a18b", "ABcd16b9a", (35, 40, 2, 3)),
    ("generic", "oiyx", "g_os_iyx_osv16_rotate_180", (1, 17, 5, 3, 3)),
    ("generic", "bfyx", "bf8_xy16", (2, 9, 5, 7)),
]


@pytest.mark.parametrize("front", [0, 5, 64])
@pytest.mark.parametrize(("family", "src", "dst", "dims"), FAMILY_CASES)
def test_each_family(
    family: str, src: str, dst: str, dims: tuple[int, ...], front: int, stream: cf.Stream
) -> None:
    if src == "oiyx" and len(dims) == 5:
        src = "goiyx"
    a, b = D(dims, "f32", src), D(dims, "f32", dst)
    plan = check_reorder(a, b, stream, front=front).plan
    assert plan.family == family or not stream.engine.traits.is_cpu
    if family != "generic":
        again = check_reorder(a, b, stream, family="generic", front=front)
        assert again.plan.family == "generic"


# Law 7 holds within a class: the same loops are shorter than a tile, and the same have a rest.
TAILS = [(2, 35, 20, 7), (3, 99, 9, 25), (5, 51, 17, 13), (7, 67, 33, 20)]
WHOLE = [(2, 32, 20, 7), (3, 96, 9, 25), (5, 48, 17, 13), (7, 64, 33, 20)]
IMAGES = [(2, 3, 30, 47), (3, 3, 37, 31), (4, 3, 40, 31), (7, 3, 64, 65)]
KNOWN = [
    ("scheduled", "bfyx", "b_fs_yx_fsv16", "f32 f32", TAILS),
    ("scheduled", "bfyx", "b_fs_yx_fsv16", "u8 u8", TAILS),
    ("scheduled", "b_fs_yx_fsv16", "bfyx", "f32 f16", TAILS),
    ("scheduled", "bfyx", "b_fs_yx_fsv16", "f32 s8", WHOLE),
    ("scheduled", "bfyx", "byxf", "f32 f32", TAILS),
    ("scheduled", "bfyx", "byxf", "u8 f32", WHOLE),
    ("scheduled", "oiyx", "os_is_yx_osv8_isv4", "s8 s8", [(19, 21, 3, 5), (35, 45, 5, 3)]),
    ("scheduled", "byxf", "b_fs_yx_fsv16", "f32 f32", TAILS),
    ("scheduled", "byxf", "b_fs_yx_fsv16", "u8 f16", WHOLE[1:]),  # 32 channels fill a tile: one run
    ("scheduled", "byxf", "bfyx", "u8 u8", IMAGES),
    ("scheduled", "bfyx", "byxf", "f32 bf16", IMAGES),
    ("scheduled", "bfyx", "bfyx", "f32 f32", TAILS),
    ("scheduled", "b_fs_yx_fsv16", "b_fs_yx_fsv16", "u8 u8", WHOLE),
    ("scheduled", "byxf", "byxf", "f16 f32", TAILS),
    ("scheduled", "aBcd24b", "aBcd16b", "s32 s32", TAILS),
    ("generic", "bfyx", "bf8_xy16", "s32 s32", TAILS),
]


@pytest.mark.parametrize(
    ("src", "dst", "dims"),
    [
        ("aBcd24b", "aBcd16b", (3, 40, 11, 13)),
        ("goiyx", "g_os_iyx_osv16_rotate_180", (1, 17, 35, 5, 3)),
        ("bfyx", "bf8_xy16", (3, 9, 7, 37)),
        ("bf8_xy16", "byxf", (2, 9, 25, 37)),
        ("a", "a", (8191,)),
    ],
)
def test_runs_of_single_elements_end_anywhere(
    src: str, dst: str, dims: tuple[int, ...], every_stream: cf.Stream
) -> None:
    """Long ones, which begin and end in the middle of every digit, and the last one early.

    How long they are depends on the number of units, so that is the same on every device.
    """
    a, b = D(dims, "s32", src), D(dims, "f32", dst)
    of_two = as_large(every_stream.engine, compute_units=2)
    reorder = check_reorder(a, b, of_two, family="generic")
    body = reorder.plan.body
    assert isinstance(body, GenericPlan)
    assert not body.counts or body.places % body.run


def test_strides_with_gaps_leave_the_gaps_alone(every_stream: cf.Stream) -> None:
    dims = (5, 3, 7)
    gaps = D(dims, "s32", strides=(40, 11, 1))
    check_reorder(D(dims, "s32", "bca"), gaps, every_stream)
    check_reorder(gaps, D(dims, "s32", "aBc4b"), every_stream)
    repeated = np.broadcast_to(np.arange(21, dtype=np.int32).reshape(1, 3, 7), dims)
    check_reorder(D(dims, "s32", strides=(0, 1, 3)), D(dims, "s32"), every_stream, array=repeated)


def test_padding_of_both_sides(every_stream: cf.Stream) -> None:
    dims = (2, 19, 6, 5)
    pads = ((0, 0), (16, 3), (1, 2), (3, 0))
    for a, b in (("bfyx", "b_fs_yx_fsv16"), ("b_fs_yx_fsv16", "byxf"), ("bfyx", "bfyx")):
        check_reorder(D(dims, "f16", a, padding=pads), D(dims, "f16", b), every_stream)
        check_reorder(D(dims, "f16", a), D(dims, "f16", b, padding=pads), every_stream)
        check_reorder(D(dims, "f16", a, padding=pads), D(dims, "u8", b, padding=pads), every_stream)


def compiled_of(plan: ScheduledPlan) -> object:
    """What the program of a schedule depends on, beside types: tile, store, and what edges ask."""
    p, tile, store = plan.problem, plan.schedule.tile, plan.schedule.store
    guards = masks.guarded(p, tile, lay_out(p, tile))
    return tile, store, tuple((g.number, g.edge.below, g.edge.spills) for g in guards)


@pytest.mark.parametrize(("family", "src", "dst", "types", "shapes"), KNOWN)
@pytest.mark.usefixtures("plans_for_cpus")
def test_a_new_shape_of_a_known_structure_compiles_nothing(
    family: str, src: str, dst: str, types: str, shapes: list[tuple[int, ...]], engine: cf.Engine
) -> None:
    """Law 7: one program for all shapes of a tile, its edges and a store.

    test_planner.py counts them.
    """
    stream = cf.Stream(engine)
    built: dict[object, set[str]] = {}
    for dims in shapes:
        a, b = (D(dims, t, name) for t, name in zip(types.split(), (src, dst), strict=True))
        made = check_reorder(a, b, stream)
        assert made.plan.family == family
        body = made.plan.body
        kind = compiled_of(body) if isinstance(body, ScheduledPlan) else ""
        built.setdefault(kind, set()).add(made.source)
    assert all(len(sources) == 1 for sources in built.values())


@pytest.mark.parametrize("regions", tiered([2, 12], [2]))
def test_regions_write_themselves_and_nothing_else(regions: int, every_stream: cf.Stream) -> None:
    """Also where a block is only begun: oneDNN zeroes the block before the region there."""
    parents = [
        D((19, 6, 1), "f32", "ABc8b8a"),
        D((4, 40, 3, 5), "s8", "b_fs_yx_fsv16"),
        D((4, 6), "f32", "ab"),
        D((20, 37, 3, 2), "s8", "OIhw4i16o4i"),
    ]
    rng = random.Random(9)  # noqa: S311  # shapes, not secrets
    for parent in parents:
        for _ in range(regions):
            offsets, dims = [], []
            for d in range(parent.ndims):
                at, sizes = rng.choice(list(parent.legal_crops(d).items()))
                offsets.append(at)
                dims.append(rng.choice(sizes) or sizes[-1])
            region = parent.submemory(dims, offsets)
            if region.nelems:
                check_reorder(D(dims, "u8"), region, every_stream)
                check_reorder(region, D(dims, "u8"), every_stream)
    region = parents[0].submemory((2, 6, 1), (16, 0, 0))
    check_reorder(D((2, 6, 1), "f32"), region, every_stream)


def test_concat_in_place(engine: cf.Engine, stream: cf.Stream) -> None:
    """Parts written through regions of one buffer make the whole."""
    whole = D((2, 40, 3, 5), "f16", "b_fs_yx_fsv16")
    memory = cf.Memory(whole, engine)
    values = np.random.default_rng(1).standard_normal(whole.dims).astype(np.float16)
    for at, n in ((0, 16), (16, 16), (32, 8)):
        part = cf.from_numpy(values[:, at : at + n], engine, format="bfyx")
        region = whole.submemory((2, n, 3, 5), (0, at, 0, 0))
        view = cf.Memory(region, engine, buffer=memory.buffer)
        cf.Reorder(part.desc, region, engine)(stream, part, view).wait()
    assert (cf.to_numpy(memory) == values).all()


def test_zero_volume(stream: cf.Stream) -> None:
    src, dst = D((2, 0, 3), "f32"), D((2, 0, 3), "s8", "aBc16b")
    a, b = cf.Memory(src, stream.engine), cf.Memory(dst, stream.engine)
    assert a.buffer is None
    reorder = cf.Reorder(src, dst, stream.engine)
    reorder(stream, a, b).wait()
    assert reorder.source == ""
    assert cf.to_numpy(b).shape == (2, 0, 3)


def test_one_element(stream: cf.Stream) -> None:
    for name in ("abcd", "aBcd16b", "ABcd16b16a"):
        check_reorder(D((1, 1, 1, 1), "f32"), D((1, 1, 1, 1), "bf16", name), stream)


def test_the_source_may_have_another_padding_than_zero(stream: cf.Stream) -> None:
    """The seeds' trap: garbage in the source's padding never reaches the destination."""
    desc = D((2, 17, 3, 3), "f32", "nChw16c")
    target = guarded(desc, stream.engine)
    flat = np.full(cf.host.packing.flat_size(desc), np.nan, np.float32)
    flat[desc.offsets()] = 1
    cf.Reorder(desc, desc, stream.engine)(
        stream, memory_of(flat, desc, stream.engine), target
    ).wait()
    with target.map("r") as a:
        assert a.sum() == 2 * 17 * 9


def test_the_one_line_form(engine: cf.Engine) -> None:
    array = np.random.default_rng(0).standard_normal((2, 17, 4, 5)).astype(np.float32)
    m = cf.from_numpy(array, engine, format="bfyx")
    blocked = cf.reorder(m, "b_fs_yx_fsv16")
    assert blocked.desc == D(array.shape, "f32", "nChw16c")
    assert (cf.to_numpy(cf.reorder(blocked, "byxf")) == array).all()
    assert (cf.to_numpy(cf.reorder(blocked, dtype="f64")) == array).all()
    half = cf.reorder(m, "b_fs_yx_fsv16", dtype="f16")
    assert (cf.to_numpy(half) == array.astype(np.float16)).all()


def test_wrong_memories_are_refused(engine: cf.Engine, stream: cf.Stream) -> None:
    a, b = D((2, 3), "f32"), D((2, 3), "f32", "ba")
    reorder = cf.Reorder(a, b, engine)
    ma, mb = cf.Memory(a, engine), cf.Memory(b, engine)
    with pytest.raises(cf.InvalidDescriptor, match="was made for"):
        reorder(stream, mb, ma)
    with pytest.raises(cf.DeviceError, match="has no buffer"):
        reorder(stream, ma, cf.Memory(b, engine, buffer=None))
    with ma.map("r"), pytest.raises(cf.MappedError):
        reorder(stream, ma, mb)
    check_reorder(D((5, 7), "u8"), D((5, 7), "u8", "ba"), stream)


def check_both_ways(fmt: cf.Format, stream: cf.Stream, *, front: int = 0) -> None:
    """Laws 3 and 4: plain to a format and back, garbage in the padding of both sources."""
    dims = hurting_dims(fmt)
    array = random_values(np.random.default_rng(len(fmt.name)), dims, "s8")
    plain, other = D(dims, "s8"), D(dims, "s8", fmt)
    check_reorder(plain, other, stream, array=array, front=front)
    check_reorder(other, plain, stream, array=array, front=front)


@pytest.mark.sampled(4)
@pytest.mark.parametrize("fmt", NO_TAG, ids=str)
def test_every_format_that_is_no_tag_both_ways(fmt: cf.Format, stream: cf.Stream) -> None:
    check_both_ways(fmt, stream, front=3)


@pytest.mark.sampled(4)
@pytest.mark.parametrize("fmt", random.Random(7).sample(STRUCTURES, 25), ids=str)  # noqa: S311
def test_a_sample_of_listed_formats_both_ways(fmt: cf.Format, stream: cf.Stream) -> None:
    check_both_ways(fmt, stream)


@pytest.mark.parametrize("at", ["first", "before", "inside", "padding", "behind", "last"])
def test_one_wrong_byte_anywhere_is_noticed(at: str, engine: cf.Engine) -> None:
    """The tests' own canaries, in front and behind, and the comparison between them are alive."""
    import pyopencl as cl

    src, dst = moved(D((2, 3), "s8"), 9), moved(D((2, 3), "s8", "aB4b"), 9)
    array = np.arange(6, dtype=np.int8).reshape(2, 3)
    want = expected(array, src, dst)
    target = guarded(dst, engine)
    cf.Reorder(src, dst, engine)(
        cf.Stream(engine), memory_of(cf.pack(array, src), src, engine), target
    ).wait()
    check_bytes(target, want)
    places = {"first": 0, "before": 8, "inside": 9, "padding": 12, "behind": 17, "last": -1}
    assert isinstance(target.buffer, cl.Buffer)
    byte = want[places[at] :][:1] ^ np.uint8(1)
    cl.enqueue_copy(engine.queue, target.buffer, byte, dst_offset=places[at] % want.size)
    with pytest.raises(
        AssertionError, match=rf"1 bytes differ, the first at \[{places[at] % want.size}\]"
    ):
        check_bytes(target, want)


@pytest.mark.parametrize("x", [1, 4, 5])
@pytest.mark.parametrize("osv", [8, 16])
def test_the_two_orders_of_odd_columns(x: int, osv: int, stream: cf.Stream) -> None:
    dims, name = (40, 3, 2, x), f"iy_xs_os_xsv2_osv{osv}__ao32"
    for src, dst in (("oiyx", name), (name, "oiyx"), (name, "iy_xs_os_xsv2_osv8__ao32")):
        check_reorder(D(dims, "f32", src), D(dims, "f32", dst), stream)


def test_sizes_known_at_execution(engine: cf.Engine, stream: cf.Stream) -> None:
    rt = cf.RUNTIME_DIM
    src, dst = D((rt, 35, rt, rt), "f32", "bfyx"), D((rt, 35, rt, rt), "f16", "b_fs_yx_fsv16")
    reorder = cf.Reorder(src, dst, engine)
    with pytest.raises(cf.InvalidDescriptor, match="after the first call"):
        _ = reorder.plan
    built = []
    for dims in ((2, 35, 6, 7), (4, 35, 20, 3), (3, 35, 5, 5)):
        values = np.random.default_rng(2).standard_normal(dims).astype(np.float32)
        a = cf.from_numpy(values, engine, format="bfyx")
        b = cf.Memory(D(dims, "f16", "b_fs_yx_fsv16"), engine)
        reorder(stream, a, b)
        assert (cf.to_numpy(b) == values.astype(np.float16)).all()
        built.append(engine.programs_built)
    assert built[-1] - built[0] <= (0 if engine.traits.is_cpu else 4)  # as docs/speed.md says
    assert "35" in str(reorder.plan)
    wrong = cf.Memory(D((2, 36, 6, 7), "f32", "bfyx"), engine)
    with pytest.raises(cf.InvalidDescriptor, match="was made for"):
        reorder(stream, wrong, cf.Memory(D(wrong.desc.dims, "f16", "b_fs_yx_fsv16"), engine))


def test_in_place_and_foreign_memories_are_refused(engine: cf.Engine, stream: cf.Stream) -> None:
    a, b = D((4, 6), "f32"), D((4, 6), "f32", "ba")
    memory = cf.Memory(a, engine)
    with pytest.raises(cf.InvalidDescriptor, match="in place"):
        cf.Reorder(a, b, engine)(stream, memory, cf.Memory(b, engine, buffer=memory.buffer))
    import pyopencl as cl

    other = cf.Engine(context=cl.Context([engine.device]))
    with pytest.raises(cf.DeviceError, match="another OpenCL context"):
        cf.Reorder(a, b, engine)(stream, memory, cf.Memory(b, other))
    left, right = a.submemory((4, 2), (0, 0)), a.submemory((4, 2), (0, 3))
    views = [cf.Memory(d, engine, buffer=memory.buffer) for d in (left, right)]
    cf.Reorder(left, right, engine)(stream, *views).wait()


def test_padding_over_the_source_is_in_place_too(engine: cf.Engine, stream: cf.Stream) -> None:
    dst = D((1, 1, 1, 6), "f32", "nChw8c")
    src = D((1, 8, 1, 6), "f32", "nhwc").submemory(dst.dims, (0, 3, 0, 0))
    memory = cf.Memory(dst, engine)
    with pytest.raises(cf.InvalidDescriptor, match="in place"):
        cf.Reorder(src, dst, engine)(stream, cf.Memory(src, engine, buffer=memory.buffer), memory)
