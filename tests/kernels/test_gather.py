"""Rows gathered from blocks, sent in whole lines: every byte, wherever rows and boxes begin."""

from __future__ import annotations

import pytest

import clformats as cf
from clformats.schedule.gather import GatherPlan
from tests.device_support import as_large, check_reorder
from tests.support import pair_of

pytestmark = [pytest.mark.sampled(8), pytest.mark.usefixtures("plans_for_cpus")]

D = cf.MemoryDesc
TYPES = ["u8 u8", "f16 f16", "f32 s8", "f32 bf16", "u8 f32", "f16 f32", "f64 f64", "bf16 u8"]


@pytest.fixture(scope="module", params=[0, None], ids=["past the cache", "in it"])
def any_size(request: pytest.FixtureRequest, engine: cf.Engine) -> cf.Stream:
    """Kernels for tensors that exceed the cache, and for those that it holds."""
    return as_large(engine, streamed_bytes=request.param)


@pytest.mark.parametrize("types", TYPES)
@pytest.mark.parametrize(
    ("block", "dims"),
    [
        (4, (2, 37, 19, 17)),
        (8, (3, 23, 11, 17)),
        (16, (3, 40, 7, 11)),
        (16, (1, 17, 9, 31)),
        (16, (7, 13, 6, 11)),
        (16, (2, 233, 33, 1)),
        (32, (2, 80, 5, 13)),
        (32, (5, 24, 3, 11)),
        (32, (2, 65, 1, 37)),
    ],
)
def test_blocks_to_images(
    block: int, dims: tuple[int, ...], types: str, any_size: cf.Stream
) -> None:
    src, dst = types.split()
    sides = D(dims, src, f"b_fs_yx_fsv{block}"), D(dims, dst, "byxf")
    families = {check_reorder(*sides, any_size, front=k).plan.family for k in (0, 5)}
    assert families == {"gather"} or min(dims[1], block) * sides[1].dtype.nbytes < 16


@pytest.mark.parametrize(
    ("types", "block", "dims"),
    [
        ("f32 f32", 4, (1, 135, 46, 47)),
        ("f16 f16", 16, (2, 530, 37, 31)),
        ("f32 s8", 16, (1, 530, 17, 31)),
        ("u8 u8", 16, (1, 1000, 45, 47)),
        ("u8 f32", 16, (1, 250, 15, 17)),
    ],
)
def test_rows_of_many_pieces_are_gathered_by_blocks(
    types: str, block: int, dims: tuple[int, ...], any_size: cf.Stream
) -> None:
    src, dst = types.split()
    sides = D(dims, src, f"b_fs_yx_fsv{block}"), D(dims, dst, "byxf")
    for front in (0, 3):
        plan = check_reorder(*sides, any_size, front=front).plan
        if any_size.engine.traits.streamed_bytes == 0 or dims[1] % block:
            assert "block by block" in str(plan)


@pytest.mark.parametrize(
    ("src", "dst", "dims"),
    [
        ("f32:b_fs_yx_fsv16:pad=0+0x0+0x1+2x3+1", "f32:byxf", (3, 40, 7, 31)),
        ("u8:b_fs_yx_fsv32:pad=1+0x32+0x0+0x0+0", "u8:byxf", (3, 75, 7, 13)),
        ("f32:b_fs_yx_fsv16:pad=0+0x16+16x0+1x0+1", "s8:byxf", (3, 47, 7, 31)),
        ("f32:fs_b_yx_fsv32", "f16:byxf", (3, 40, 7, 13)),
        ("f16:b_fs_zyx_fsv16", "f16:bzyxf", (2, 24, 3, 5, 7)),
        ("f32:b_fs_yx_fsv16", "f32:yxfb", (1, 40, 7, 13)),
    ],
)
def test_sources_in_parts(src: str, dst: str, dims: tuple[int, ...], any_size: cf.Stream) -> None:
    made = check_reorder(*pair_of(src, dst, dims), any_size, front=1)
    assert made.plan.family == "gather", made.plan


@pytest.mark.parametrize("strides", [(40 * 77 + 13, 1, 440, 40), (40 * 199, 1, 1531, 40)])
@pytest.mark.parametrize("types", ["f32 f32", "u8 u8", "f32 s8"])
def test_images_that_lie_apart(types: str, strides: tuple[int, ...], any_size: cf.Stream) -> None:
    """What lies between the images, or between their lines, belongs to no one."""
    src, dst = types.split()
    dims = (3, 40, 7, 11) if strides[2] == 440 else (2, 40, 5, 37)
    sides = D(dims, src, "b_fs_yx_fsv16"), D(dims, dst, strides=strides)
    made = check_reorder(*sides, any_size, front=2)
    assert made.plan.family == "gather", made.plan


@pytest.mark.parametrize("chunk", [1, 7, 1 << 20])
def test_chosen_otherwise(chunk: int, any_size: cf.Stream) -> None:
    for nontemporal, baked in ((False, True), (True, False), (True, True)):
        choices = cf.Choices(chunk=chunk, nontemporal=nontemporal, baked=baked)
        sides = D((3, 40, 7, 31), "u8", "b_fs_yx_fsv32"), D((3, 40, 7, 31), "u8", "byxf")
        plan = check_reorder(*sides, any_size, front=3, choices=choices).plan
        assert plan.choices == choices
        assert isinstance(plan.body, GatherPlan)
        assert (plan.body.chunk, plan.body.nontemporal) == (min(chunk, 3 * 7 * 31), nontemporal)


def test_boxes_that_end_inside_images(any_size: cf.Stream) -> None:
    """Small images, of which a box has several and parts of others."""
    for dims in ((67, 40, 3, 3), (31, 24, 4, 5), (129, 100, 2, 5)):
        sides = D(dims, "f32", "b_fs_yx_fsv16"), D(dims, "f32", "byxf")
        assert check_reorder(*sides, any_size, front=9).plan.family == "gather"
