"""Sizes and strides known at execution: few programs for all of them, and what fits a pattern."""

from __future__ import annotations

import os
import random
from functools import partial
from itertools import permutations, product
from typing import Any

import numpy as np
import pytest

import clformats as cf
from clformats.reorders.planning import PROGRAMS, FewPrograms
from clformats.schedule import Request
from clformats.schedule.anysize import WHY, as_pattern, fits
from tests.device_support import check_bytes, expected, guarded, holding, memory_of, moved
from tests.support import dirty_pack, random_values
from tests.tiers import tiered

D, RT = cf.MemoryDesc, cf.RUNTIME_DIM
SHAPES = [(2, 17, 5, 7), (3, 16, 7, 5), (1, 1, 1, 1), (5, 1, 3, 1), (1, 33, 2, 64), (7, 2, 1, 15)]
MOST = PROGRAMS + 2
"""Generic programs are there for offsets of 32 bits, and of 64."""


@pytest.fixture
def fresh() -> cf.Stream:
    """A stream of an engine that has built nothing yet."""

    import pyopencl as cl

    device = cf.Engine(os.environ.get("CLFORMATS_TEST_DEVICE", "pocl")).device
    return cf.Stream(cf.Engine(context=cl.Context([device])))


def strides_in(order: tuple[int, ...], dims: tuple[int, ...], gap: int) -> tuple[int, ...]:
    """Strides with the dimensions in an order, outermost first, and gaps between them."""
    result, step = [0] * len(dims), 1
    for d in reversed(order):
        result[d] = step
        step = step * dims[d] + gap
    return tuple(result)


def check(
    reorder: cf.Reorder,
    src: cf.MemoryDesc,
    dst: cf.MemoryDesc,
    stream: cf.Stream,
    begins: tuple[int, int] = (3, 5),
) -> None:
    rng = np.random.default_rng(1)
    src, dst = moved(src, begins[0]), moved(dst, begins[1])
    array = random_values(rng, src.dims, src.dtype.name)
    source = memory_of(dirty_pack(rng, array, src), src, stream.engine)
    target = guarded(dst, stream.engine)
    reorder(stream, source, target).wait()
    check_bytes(target, expected(array, src, dst), f"{reorder.plan}")


def test_every_order_of_unknown_strides_has_few_programs(fresh: cf.Stream) -> None:
    unknown = D((RT,) * 4, "f32", strides=(RT,) * 4)
    reorder = cf.Reorder(unknown, unknown, fresh.engine)
    rng = random.Random(2)  # noqa: S311
    orders = list(permutations(range(4)))
    for dims, there in product(SHAPES, orders):
        back, gap = rng.choice(orders), rng.choice([0, 0, 1, 3])
        src = D(dims, "f32", strides=strides_in(there, dims, gap))
        dst = D(dims, "f32", strides=strides_in(back, dims, 3 - gap))
        check(reorder, src, dst, fresh)
    assert fresh.engine.programs_built <= MOST


def test_later_shapes_have_a_fast_program_that_is_built(fresh: cf.Stream) -> None:
    """Of any size, as long as channels fill a vector; nothing is compiled behind the first few."""
    reorder = cf.Reorder(D((RT,) * 4, "f32", "byxf"), D((RT,) * 4, "f32", "bfyx"), fresh.engine)
    rng = random.Random(5)  # noqa: S311
    shapes = [(rng.randint(1, 5), *(rng.randint(16, 40) for _ in "fyx")) for _ in range(20)]
    for dims in shapes:
        check(reorder, D(dims, "f32", "byxf"), D(dims, "f32", "bfyx"), fresh)
        assert not fresh.engine.traits.is_cpu or reorder.plan.family == "scheduled"
    assert fresh.engine.programs_built <= PROGRAMS


def test_what_no_program_serves_is_generic_and_the_plan_says_so(fresh: cf.Stream) -> None:
    request = partial(Request, traits=fresh.engine.traits)
    few = FewPrograms(D((RT,) * 4, "f32"), D((RT,) * 4, "f32", "acdb"), request)
    few._sources.update(map(str, range(PROGRAMS)))  # as if others were built
    src, dst = D((2, 17, 5, 7), "f32"), D((2, 17, 5, 7), "f32", "acdb")
    plan, made = few.planned(src, dst)
    assert made
    assert plan.family == "generic"
    assert WHY in dict(plan.rejected).values()


PATTERNS = [
    ("bfyx", "b_fs_yx_fsv16", None),
    ("b_fs_yx_fsv32", "byxf", None),
    ("oiyx", "os_is_yx_osa4_isa8_osv8_isv4", None),
    ("oiyx", "os_i_yxs_osv4_yxsv4", None),
    ("os_iyx_osv16_rotate_180", "iy_xs_os_xsv2_osv8__ao32", None),
    ("bfyx", "b_fs_yx_fsv16", ((0, 0), (1, 2), (1, 0), (0, 3))),
]


@pytest.mark.parametrize(("src", "dst", "pads"), tiered(PATTERNS, PATTERNS[::2]))
def test_every_size_of_a_format_has_few_programs(
    src: str, dst: str, pads: Any, fresh: cf.Stream
) -> None:
    a, b = D((RT,) * 4, "s8", src, padding=pads), D((RT,) * 4, "f32", dst, padding=pads)
    reorder = cf.Reorder(a, b, fresh.engine)
    for dims in SHAPES:
        check(reorder, D(dims, "s8", src, padding=pads), D(dims, "f32", dst, padding=pads), fresh)
    assert fresh.engine.programs_built <= MOST


@pytest.mark.parametrize("dst", ["byxf", "b_fs_yx_fsv16"])
def test_sizes_of_4_bit_elements_have_few_programs(dst: str, fresh: cf.Stream) -> None:
    """Those of whole bytes have schedules, all others a kernel of the generic family."""
    reorder = cf.Reorder(D((RT,) * 4, "s4", "bfyx"), D((RT,) * 4, "s4", dst), fresh.engine)
    families = set()
    for f, x in product((2, 6, 7, 18, 34, 64), (2, 5, 6, 12)):
        dims = (2, f, 2, x)
        check(reorder, D(dims, "s4", "bfyx"), D(dims, "s4", dst), fresh, begins=(2, 6))
        families.add(reorder.plan.family)
    assert fresh.engine.programs_built <= MOST  # a dimension of one block has another stride
    assert "generic" in families
    assert not fresh.engine.traits.is_cpu or "scheduled" in families


def test_repeated_and_partly_known(fresh: cf.Stream) -> None:
    """Some sizes and strides known, a stride of 0 among the unknown ones."""
    src = D((RT, 6, RT), "f32", strides=(RT, RT, 1))
    dst = D((RT, 6, RT), "f16", "aBc16b")
    reorder = cf.Reorder(src, dst, fresh.engine)
    for a, c, strides in ((2, 5, (30, 5, 1)), (7, 3, (3, 21, 1)), (1, 1, (9, 9, 9))):
        dims = (a, 6, c)
        check(reorder, D(dims, "f32", strides=strides), D(dims, "f16", "aBc16b"), fresh)
    dims = (4, 6, 3)
    once = D(dims, "f32", strides=(0, 3, 1))
    array = np.broadcast_to(np.arange(18, dtype=np.float32).reshape(1, 6, 3), dims)
    target = guarded(D(dims, "f16", "aBc16b"), fresh.engine)
    source = memory_of(np.arange(18, dtype=np.float32), once, fresh.engine)
    reorder(fresh, source, target).wait()
    check_bytes(target, expected(array, once, target.desc))
    assert fresh.engine.programs_built <= MOST


def test_attributes_of_unknown_sizes_have_few_programs(fresh: cf.Stream) -> None:
    """Values at execution over two dimensions that are no neighbours, and a sum."""
    attr = cf.Attr(src_scale=cf.at_execution(5), dst_zero_point=cf.at_execution(), beta=0.5)
    src = D((RT,) * 4, "s8", strides=(RT,) * 4)
    dst = D((RT,) * 4, "f32", "b_fs_yx_fsv16")
    reorder = cf.Reorder(src, dst, fresh.engine, attr=attr)
    rng = np.random.default_rng(3)
    for dims in SHAPES:
        for order in ((0, 1, 2, 3), (2, 0, 3, 1), (3, 2, 1, 0)):
            here, there = (
                D(dims, "s8", strides=strides_in(order, dims, 1)),
                D(dims, "f32", dst.format),
            )
            array, old = (rng.integers(-40, 40, dims, np.int8) for _ in range(2))
            given: dict[str, Any] = {
                "src_scale": rng.integers(1, 9, dims[0] * dims[2]) / 4, "dst_zero_point": 3.0,
            }  # fmt: skip
            source = memory_of(dirty_pack(rng, array, here), here, fresh.engine)
            target = guarded(there, fresh.engine)
            with target.map("rw") as flat:
                flat[there.offsets()] = old
            reorder(fresh, source, target, **given).wait()
            want = attr.apply(array, here.dtype, there.dtype, old.astype(np.float32), **given)
            check_bytes(target, holding(want, there), f"{dims} {order}")
    assert fresh.engine.programs_built <= MOST


def test_no_elements_and_then_some(fresh: cf.Stream) -> None:
    reorder = cf.Reorder(D((RT, RT), "f32"), D((RT, RT), "f32", "ba"), fresh.engine)
    nothing = D((3, 0), "f32"), D((3, 0), "f32", "ba")
    memories = [cf.Memory(desc, fresh.engine) for desc in nothing]
    reorder(fresh, *memories).wait()
    check(reorder, D((3, 5), "f32"), D((3, 5), "f32", "ba"), fresh)
    assert fresh.engine.programs_built <= MOST


def test_a_family_can_be_asked_for(fresh: cf.Stream) -> None:
    """Then programs follow the structure, as for known sizes."""
    src, dst = D((RT,) * 4, "f32"), D((RT,) * 4, "f32", "acdb")
    reorder = cf.Reorder(src, dst, fresh.engine, family="scheduled")
    check(reorder, D((2, 17, 5, 7), "f32"), D((2, 17, 5, 7), "f32", "acdb"), fresh)
    assert reorder.plan.family == "scheduled"


@pytest.mark.parametrize("types", [("s4", "u4"), ("s4", "f32"), ("f32", "u4")])
def test_elements_of_four_bits(types: tuple[str, str], fresh: cf.Stream) -> None:
    """They have no address, so that the generic family cannot have them."""
    a, b = types
    reorder = cf.Reorder(D((RT,) * 4, a, "bfyx"), D((RT,) * 4, b, "byxf"), fresh.engine)
    for dims in ((3, 18, 5, 4), (1, 2, 7, 2), (0, 2, 2, 2)):
        src, dst = D(dims, a, "bfyx"), D(dims, b, "byxf")
        array = random_values(np.random.default_rng(2), dims, a)
        target = guarded(dst, fresh.engine)
        reorder(fresh, memory_of(cf.pack(array, src), src, fresh.engine), target).wait()
        check_bytes(target, holding(cf.transform(array, src, dst), dst), f"{reorder.plan}")


def test_what_fits_a_pattern() -> None:
    blocked = D((RT, 35, RT), "f32", "aBc16b")
    assert fits(D((4, 35, 7), "f32", "aBc16b"), blocked)
    assert fits(D((4, 35, 7), "f32", "aBc16b").submemory((4, 35, 2), (0, 0, 3)), blocked)
    for other in (
        D((4, 36, 7), "f32", "aBc16b"),
        D((4, 35, 7), "f16", "aBc16b"),
        D((4, 35, 7), "f32", "aBc8b"),
        D((4, 35, 7), "f32", "abc"),
        D((4, 35), "f32", "aB16b"),
        D((4, 35, 7), "f32", "aBc16b", padding=((0, 0), (0, 0), (1, 0))),
    ):
        assert not fits(other, blocked), other
    plain = D((RT, RT), "f32", "ab")
    assert fits(D((4, 5), "f32", strides=(9, 1)), plain), "the row pitch is as unknown as the sizes"
    assert not fits(D((4, 5), "f32", "ba"), plain)
    assert fits(D((4, 1), "f32", "ba"), plain), "a stride of one element does not count"
    loose = D((RT, 5), "f32", strides=(RT, RT))
    assert fits(D((4, 5), "f32", "ba"), loose)
    assert not fits(D((4, 6), "f32", "ba"), loose)
    summed = D((RT, 5), "s8", extra=cf.Extra(1, s8s8=True))
    assert fits(D((4, 5), "s8", extra=cf.Extra(1, s8s8=True)), summed)
    for extra in (None, cf.Extra(2, s8s8=True), cf.Extra(1, asymmetric=True)):
        assert not fits(D((4, 5), "s8", extra=extra), summed), extra
    known = D((4, 5), "f32")
    assert fits(known, known)
    assert not fits(D((4, 5), "f32", "ba"), known)


def test_what_fits_a_pattern_takes_its_order_and_its_constants() -> None:
    """The same memory; strides that do not count are the pattern's, so that one kernel serves."""
    pattern = D((RT, 6, RT), "f32", strides=(RT, RT, 1))
    for dims, strides in (
        ((2, 6, 5), (30, 5, 1)), ((7, 6, 3), (3, 21, 1)), ((7, 6, 1), (6, 42, 99)),
        ((1, 6, 1), (9, 9, 9)), ((1, 6, 1), (1, 2, 2)),
    ):  # fmt: skip
        desc = D(dims, "f32", strides=strides)
        assert fits(desc, pattern)
        brought = as_pattern(desc, pattern)
        assert brought == desc
        for mine, wanted in zip(brought.placed, pattern.placed, strict=True):
            assert mine.digit == wanted.digit
            assert wanted.stride in (RT, mine.stride)
