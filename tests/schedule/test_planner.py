"""Plans, without a device: the shuffle networks, the loops, and which family takes what."""

from __future__ import annotations

import itertools
import random

import numpy as np
import pytest

import clformats as cf
from clformats.kernels import render
from clformats.problems.computation import from_attr
from clformats.problems.problem import Problem
from clformats.problems.refine import problem
from clformats.problems.thresholds import (
    GENERIC_RUN,
    GROUP_ITEMS,
    ITEMS_PER_UNIT,
    STREAMED_USUAL,
)
from clformats.problems.traits import Traits
from clformats.schedule.generic import GenericPlan, places
from clformats.schedule.plan import FAMILIES
from clformats.schedule.runs import steady
from tests.support import BUFFERS, hurting_dims, random_pair
from tests.uneven_support import uneven_pairs

D = cf.MemoryDesc


@pytest.mark.parametrize(
    ("src", "dst", "dims", "loops"),
    [
        ("bfyx", "b_fs_yx_fsv16", (2, 32, 5, 4), "(4:320,320) (20:1,16) (16:20,1)"),
        ("bfyx", "bfyx", (2, 3, 4, 5), "(120:1,1)"),
        ("bfyx", "byxf", (2, 3, 4, 5), "(2:60,60) (20:1,3) (3:20,1)"),
        ("bfyx", "byxf", (2, 1, 4, 5), "(40:1,1)"),
        ("aBcd16b", "aBcd32b", (2, 64, 2, 2), "(4:128,128) (4:16,32) (2:64,16) (16:1,1)"),
    ],
)
def test_loops(src: str, dst: str, dims: tuple[int, ...], loops: str) -> None:
    assert str(problem(D(dims, "f32", src), D(dims, "f32", dst))) == loops


def _run(p: Problem) -> dict[int, int | None]:
    """What the loops of a problem do: destination offset -> source offset, None for a zero."""
    assert not p.why
    along = steady(p.nodes, "src")
    moves: dict[int, int | None] = {}
    for index in itertools.product(*(range(n.size.value) for n in p.nodes)):
        at = [
            sum(i * n.unit for i, n in zip(index, p.nodes, strict=True) if n.guard == g)
            for g in range(len(p.guards))
        ]
        if any(a >= g.end.value for a, g in zip(at, p.guards, strict=True)):
            continue
        dst = p.dst0 + sum(i * n.dst.value for i, n in zip(index, p.nodes, strict=True))
        src = p.src0 + sum(i * s for i, s in zip(index, along, strict=True))
        for t, table in enumerate(p.tables):
            moved = sum(i * n.steps_of(t) for i, n in zip(index, p.nodes, strict=True))
            src += table.place(table.first + moved)
        inside = all(g.lo.value <= a < g.hi.value for a, g in zip(at, p.guards, strict=True))
        assert dst not in moves
        moves[dst] = src if inside else None
    return moves


def test_the_loops_move_every_element_and_zero_the_padding() -> None:
    rng = random.Random(5)  # noqa: S311
    formats: dict[int, list[cf.Format]] = {}
    for fmt in BUFFERS:
        formats.setdefault(fmt.ndims, []).append(fmt)
    done = 0
    while done < 100:
        dims, a, b = random_pair(rng, formats)
        src = D(dims, "s8", a)
        pads = [(rng.choice([0, 0, 2]), rng.choice([0, 1])) for _ in dims]
        try:
            dst = D(dims, "s8", b, padding=pads if rng.random() < 0.3 else None)
        except cf.InvalidDescriptor:
            continue
        p = problem(src, dst, transform=False)
        if p.why or max(src.nbytes, dst.nbytes) > 5_000:
            continue
        done += 1
        _check_moves(p)


def _check_moves(p: Problem) -> None:
    want: dict[int, int | None] = dict.fromkeys(range(places(p.dst)))
    offsets = zip(p.dst.offsets().ravel().tolist(), p.src.offsets().ravel().tolist(), strict=True)
    assert _run(p) == want | dict(offsets), p


def test_blocks_that_do_not_divide_each_other_have_tables() -> None:
    """Of any sizes; and of no pair of blocks of the grammar is the generic family needed."""
    steps = []
    twice = [D((300, 4), "f32", name) for name in ("AB24a2b6a", "Ab16a")]
    for src, dst in (twice, twice[::-1], *uneven_pairs(3, 60, 20_000)):
        p = problem(src, dst)
        _check_moves(p)
        steps += [len(table.jumps) for table in p.tables]
    assert max(steps) > 2
    assert len(steps) > 20
    assert sum(bool(problem(*pair).why) for pair in uneven_pairs(7, 300)) < 0.05 * 300
    p = problem(D((2, 40, 3, 3), "f32", "aBcd24b"), D((2, 40, 3, 3), "f32", "aBcd16b"))
    assert (
        str(p)
        == "(2:432,432) (3:~144,144?0) (9:24,16) (2:~72,8?0) (8:1,1?0)  guards dim 1: [0, 40) of 48"
    )
    assert p.tables[0].jumps == ((1, 8), (3, 192))


def test_a_shift_across_blocks_has_a_table() -> None:
    for front in (1, 3, 4, 5):
        src = D((2, 19, 2, 3), "f32", "aBcd8b", padding=((0, 0), (front, 0), (0, 0), (0, 0)))
        for dst in ("aBcd8b", "aBcd6b", "abcd", "acdb"):
            p = problem(src, D(src.dims, "f32", dst))
            assert p.tables
            _check_moves(p)


def test_each_family_is_chosen_where_it_fits() -> None:
    def family(src: str, dst: str, dims: tuple[int, ...]) -> str:
        return cf.make_plan(D(dims, "f32", src), D(dims, "f32", dst)).family

    assert family("bfyx", "bfyx", (2, 3, 4, 5)) == "scheduled"
    assert family("bfyx", "b_fs_yx_fsv16", (2, 17, 9, 9)) == "scheduled"
    assert family("b_fs_yx_fsv16", "byxf", (2, 17, 9, 9)) == "scheduled"
    assert family("aBcd24b", "aBcd16b", (2, 40, 3, 3)) == "scheduled"
    assert family("bfyx", "bf8_xy16", (2, 17, 3, 3)) == "generic"
    assert family("oiyx", "os_iyx_osv16_rotate_180", (17, 3, 3, 3)) == "generic"
    assert family("oiyx", "image_2d_weights_c1_b_fyx", (17, 3, 3, 3)) == "generic"
    assert family("nchw", "nh|Cw|4c", (2, 17, 3, 5)) == "scheduled"


def test_images_are_for_their_family_alone_where_kernels_reach_them() -> None:
    gpu = Traits(is_cpu=False)
    plain, image = (D((5, 3, 2, 7), "f32", n) for n in ("oiyx", "image_2d_weights_c4_fyx_b"))
    for pair in ((plain, image), (image, plain), (image, image)):
        for traits, family in ((gpu, None), (Traits(), "image")):
            plan = cf.make_plan(*pair, traits, family)
            assert (plan.family, plan.has_twin, plan.problem.src) == ("image", False, pair[0])
            assert "pixels" in str(plan) or pair[1] is plain
        assert {name for name, _ in cf.make_plan(*pair, gpu).rejected} >= {"local", "generic"}
        with pytest.raises(cf.Unsupported, match="a side is an image"):
            cf.make_plan(*pair, gpu, family="generic")
    with pytest.raises(cf.Unsupported, match="neither side is an image"):
        cf.make_plan(plain, plain, family="image")


def test_images_go_by_their_twins() -> None:
    """On CPUs, and everywhere those that are buffers: by the twins' kernel; the plan says so."""
    plain, plane, line = (D((2, 7, 3, 5), "f32", f) for f in ("nchw", "nh|Cw|4c", "Chwn|4c"))
    pitched = D((2, 7, 3, 5), "f32", "nh|Cw|4c", strides=(192, 20, 64, 4))
    gpu = Traits(is_cpu=False)
    for image, traits in ((plane, Traits()), (line, Traits()), (line, gpu), (pitched, gpu)):
        for pair in ((plain, image), (image, plain)):
            plan = cf.make_plan(*pair, traits)
            twins = cf.make_plan(pair[0].buffer_twin, pair[1].buffer_twin, traits)
            assert plan.twinned == tuple(d if d is image else None for d in pair)
            assert (plan.problem, str(plan.body)) == (twins.problem, str(twins.body))
            assert str(plan).startswith(f"reorder {pair[0]} -> {pair[1]}")
            verb = "writes" if image is pair[1] else "reads"
            what = "a copy" if image is plane else "its buffer"
            assert f"the kernel {verb} {image.buffer_twin}, {what}" in str(plan)
    for image in (line, pitched):
        with pytest.raises(cf.Unsupported, match="a line of pixels is a buffer"):
            cf.make_plan(plain, image, family="image")


def test_a_plan_says_why_each_better_family_was_not_taken() -> None:
    src, dst = (D((2, 40, 3, 3), "u4", name) for name in ("aBcd24b", "aBcd16b"))
    plan = cf.make_plan(src, dst, Traits(is_cpu=False))
    assert [name for name, _ in plan.rejected] == ["local", "rows"]
    assert "dimension 1 is split at 24 on one side and at 16 on the other" in str(plan)
    plan = cf.make_plan(src, D((2, 40, 3, 3), "f32", "bf8_xy16"))
    assert [name for name, _ in plan.rejected] == ["scheduled"]
    assert "fused" in str(plan)
    assert "generic" in str(plan)


def test_no_listed_pair_is_slow_in_silence() -> None:
    """Law 6: whatever falls to the generic family says why, and plain <-> listed does not."""
    for fmt in dict.fromkeys(BUFFERS):
        dims = tuple(4 * n for n in hurting_dims(fmt))
        plain = D(dims, "f32")
        for src, dst in ((plain, D(dims, "f32", fmt)), (D(dims, "f32", fmt), plain)):
            plan = cf.make_plan(src, dst)
            nests = all(len(d.dims) == 1 and not d.flip for d in fmt.digits)
            nests = nests and not fmt.structure.tail
            assert (plan.family != "generic") or not nests, plan
            assert plan.family == FAMILIES[0].name or plan.rejected


@pytest.mark.parametrize("dims", [(2, 40, 3, 3), (7, 40, 30, 31), (64, 240, 56, 56)])
def test_single_elements_go_in_runs_that_leave_every_core_some(dims: tuple[int, ...]) -> None:
    """On a GPU each has a work-item; whether they go in runs does not depend on sizes."""
    src, dst = D(dims, "f32", "aBcd24b"), D(dims, "f32", "aBcd16b")
    for cores in (1, 2, 64):
        body = cf.make_plan(src, dst, Traits(compute_units=cores), "generic").body
        assert isinstance(body, GenericPlan)
        assert body.counts
        assert 1 <= body.run <= GENERIC_RUN
        assert body.run == 1 or body.items >= ITEMS_PER_UNIT * cores
        assert (body.items - 1) * body.run < body.places <= body.items * body.run
    gpu = cf.make_plan(src, dst, Traits(is_cpu=False), "generic").body
    assert isinstance(gpu, GenericPlan)
    assert (gpu.counts, gpu.items, gpu.group) == (False, gpu.places, GROUP_ITEMS)


def test_a_family_can_be_asked_for_by_name() -> None:
    src, dst = D((2, 17, 4, 5), "f32", "bfyx"), D((2, 17, 4, 5), "f32", "b_fs_yx_fsv16")
    assert cf.make_plan(src, dst, family="generic").family == "generic"
    for name in ("image", "none such"):
        with pytest.raises(cf.Unsupported) as caught:
            cf.make_plan(src, dst, family=name)
        assert caught.value.code == "FAMILY"


def test_what_does_not_fit_together_is_refused() -> None:
    a = D((2, 3), "f32")
    with pytest.raises(cf.InvalidDescriptor, match="logical dims"):
        cf.make_plan(a, D((3, 2), "f32"))
    with pytest.raises(cf.InvalidDescriptor, match="no layout"):
        cf.make_plan(a, D((2, 3), "f32", "any"))
    with pytest.raises(cf.InvalidDescriptor, match="stride of 0"):
        cf.make_plan(a, D((2, 3), "f32", strides=(0, 1)))
    with pytest.raises(
        cf.InvalidDescriptor, match=r"dst is .* make a plan for each shape, or a Reorder"
    ):
        cf.make_plan(a, D((cf.RUNTIME_DIM, 3), "f32"))


@pytest.mark.parametrize("dims", [(3, 0), (0, 3)])
def test_nothing_is_written_where_there_is_no_element(dims: tuple[int, int]) -> None:
    """A stride of 0 says nothing then: dense strides of such a tensor have some."""
    dst = D(dims, "f32", strides=(0, 1))
    for src in (D(dims, "f16"), dst):
        assert cf.make_plan(src, dst).family == "none"
    with pytest.raises(cf.InvalidDescriptor, match="stride of 0"):
        cf.make_plan(D((3, 3), "f32"), D((3, 3), "f32", strides=(0, 1)))


@pytest.mark.parametrize(
    ("src", "dst", "most"),
    [
        ("f32:bfyx", "f32:b_fs_yx_fsv16", 4),
        ("u8:b_fs_yx_fsv16", "f16:bfyx", 6),
        ("f32:bfyx", "s8:byxf", 6),
        ("u8:byxf", "f32:b_fs_yx_fsv16", 15),
        ("f16:bfyx", "f16:bfyx", 3),
        ("s32:aBcd24b", "s32:aBcd16b", 6),
        ("s32:bfyx", "s32:bf8_xy16", 2),
    ],
)
def test_many_shapes_need_few_programs(src: str, dst: str, most: int) -> None:
    """Law 7 on a hundred shapes: a program for each tile, of which few are usual."""
    rng = random.Random(6)  # noqa: S311
    sources = set()
    for _ in range(100):
        sizes = rng.randrange(2, 9), 16 * rng.randrange(2, 9) + 3, *rng.choices(range(2, 40), k=2)
        dims = "x".join(map(str, sizes))
        plan = cf.make_plan(D.parse(f"{src}:{dims}"), D.parse(f"{dst}:{dims}"))
        launched = render(plan)
        assert launched is not None
        sources.add(launched.source)
    assert len(sources) <= most


@pytest.mark.parametrize(
    ("dims", "src", "dst"),
    [
        ((8, 3, 224, 224), "f32:bfyx", "f32:b_fs_yx_fsv16"),  # all tiles are at an edge
        ((16, 250, 55, 57), "f32:bfyx", "f32:b_fs_yx_fsv16"),
        ((16, 250, 55, 57), "u8:bfyx", "u8:b_fs_yx_fsv32"),
    ],
)
def test_tiles_at_an_edge_pass_by_the_cache_too(dims: tuple[int, ...], src: str, dst: str) -> None:
    a, b = (D(dims, *text.split(":")) for text in (src, dst))
    launched = render(cf.make_plan(a, b))
    assert launched is not None
    kernel = launched.source[launched.source.index("__kernel") :]
    assert "STORE_STREAM(" in kernel
    assert "STORE16(" not in kernel


@pytest.mark.parametrize(
    ("src", "dst", "blocks"),
    [
        ("u8:byxf", "u8:b_fs_yx_fsv4", "b5"),
        ("u8:b_fs_yx_fsv4", "u8:byxf", "c5"),
        ("f32:b_fs_yx_fsv8", "f32:byxf", "c3"),
    ],
)
def test_a_tile_has_all_channels_where_pixels_follow_them(src: str, dst: str, blocks: str) -> None:
    """17 of them are no power of two of blocks; a part of them would end at an edge."""
    plan = cf.make_plan(D.parse(f"{src}:32x17x113x113"), D.parse(f"{dst}:32x17x113x113"))
    assert f" {blocks} " in str(plan.body)


@pytest.mark.parametrize(
    ("src", "dst", "attr"),
    [
        ("s8:oiyx", "s8:os_is_yx_osv8_isv4", cf.Attr()),
        ("f32:bfyx", "s8:b_fs_yx_fsv16", cf.Attr(src_scale=0.5)),
        ("u8:byxf", "f32:b_fs_yx_fsv16", cf.Attr()),
    ],
)
def test_kernels_of_vectors_are_not_to_be_joined(src: str, dst: str, attr: cf.Attr) -> None:
    """Else Intel's compiler for CPUs makes vectors of several work-items, for half a minute."""
    a, b = (D.parse(f"{text}:19x21x5x3") for text in (src, dst))
    launched = render(cf.make_plan(a, b, computation=from_attr(attr, a, b)))
    assert launched is not None
    head, kernel, _ = launched.source.partition("\n__kernel void reorder(")
    assert kernel
    hint = head[head.rindex("#ifdef") :].splitlines()
    assert hint[0] == "#ifdef cl_intel_vec_len_hint"
    assert hint[-2:] == ["__attribute__((intel_vec_len_hint(1)))", "#endif"]


def test_offsets_beyond_32_bits_are_noticed() -> None:
    big = D((2**16, 2**16), "s8")
    assert cf.make_plan(big, D(big.dims, "s8", "ba")).problem.is_wide
    small = D((2**10, 2**10), "s8")
    assert not cf.make_plan(small, D(small.dims, "s8", "ba")).problem.is_wide


def test_nothing_to_do() -> None:
    plan = cf.make_plan(D((2, 0), "f32"), D((2, 0), "f32", "ba"))
    assert (plan.family, plan.body) == ("none", None)
    assert "nothing to do" in str(plan)
    assert np.prod(plan.problem.dst.dims) == 0


def test_stores_pass_by_the_cache_from_some_bytes_on_however_large_it_is() -> None:
    """A guest of a large machine has a slice of its cache, and reports all of it."""
    found = {Traits(cache_bytes=mb << 20).stream_bytes for mb in (1, 32, 64, 300)}
    assert found == {STREAMED_USUAL}
    assert Traits(streamed_bytes=0).streams(0)
    assert not Traits(is_cpu=False, streamed_bytes=0).streams(0)


def test_a_repeated_source_has_a_plan() -> None:
    src = D((1, 4000, 32, 3), "f16", "byxf").broadcast_to((100, 4000, 32, 3))
    for fmt in ("bfyx", "yxfb", "b_fs_yx_fsv16"):
        for traits in (Traits(), Traits(streamed_bytes=0)):
            assert cf.make_plan(src, D(src.dims, "f16", fmt), traits).body


@pytest.mark.parametrize(("src", "dst", "hides"), [
    ("u8:bfyx", "u8:b_fs_yx_fsv16", True),  # 16 bytes of shuffled lanes
    ("f32:bfyx", "s8:bfyx", True),  # converted to shorter ones
    ("u8:b_fs_yx_fsv16", "u8:byxf", False),  # as they were loaded
    ("f32:bfyx", "f32:b_fs_yx_fsv16", False),  # whole lines
])  # fmt: skip
def test_stores_past_the_cache_are_hidden_where_lanes_may_be_truncated(
    src: str, dst: str, hides: bool
) -> None:
    """LLVM makes ordinary stores of some: of s8 `oiyx` to `isv16_osv16` they took 15 times as long.

    One of nine lines of a tile had 16 bytes that did not pass by the cache.
    """
    launched = render(cf.make_plan(f"{src}:32x64x112x112", f"{dst}:32x64x112x112"))
    assert launched is not None
    kernel = launched.source[launched.source.index("__kernel") :]
    stores = [line for line in kernel.splitlines() if "STORE_STREAM(" in line]
    assert stores
    assert any("HIDDEN(" in line for line in stores) == hides
