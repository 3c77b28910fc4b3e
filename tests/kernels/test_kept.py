"""Lines that wait in private memory, on small tensors that are treated as large ones."""

from __future__ import annotations

import pytest

import clformats as cf
from clformats.schedule.tile import TilePlan
from clformats.schedule.walk import Kept
from tests.device_support import as_large, check_reorder

pytestmark = [pytest.mark.sampled(4), pytest.mark.usefixtures("plans_for_cpus")]

D = cf.MemoryDesc

CASES = [
    ("f32", "byxf", "f32", "bfyx", (2, 33, 17, 23)),
    ("f16", "byxf", "f16", "bfyx", (2, 49, 25, 27)),
    ("f32", "byxf", "bf16", "bfyx", (2, 35, 23, 29)),
    ("u8", "byxf", "f32", "bfyx", (1, 261, 19, 21)),
    ("f64", "byxf", "f16", "bfyx", (1, 17, 25, 27)),
    ("u8", "byxf", "u8", "bfyx", (2, 100, 37, 39)),
    ("s8", "byxf", "u8", "bfyx", (1, 250, 36, 37)),
    ("f32", "b_fs_yx_fsv32", "f32", "bfyx", (2, 75, 17, 23)),  # a block of 11 features
    ("f16", "b_fs_yx_fsv32", "bf16", "bfyx", (1, 64, 23, 31)),
    ("f32", "fs_b_yx_fsv32", "f16", "bfyx", (3, 40, 21, 33)),
    ("f32", "bfyx", "f32", "byxf", (3, 331, 7, 9)),
    ("f16", "bfyx", "f16", "byxf", (2, 675, 5, 13)),
    ("f32", "byxf", "f32", "bfyx", (1, 130, 41, 83)),
    ("f32", "b_fs_yx_fsv32", "bf16", "bfyx", (3, 64, 21, 43)),
    ("f32", "byxf", "f32", "b_fs_yx_fsv8", (2, 48, 13, 17)),
    ("f32", "byxf", "f32", "b_fs_yx_fsv8", (2, 45, 13, 17)),
    ("f32", "byxf", "bf16", "b_fs_yx_fsv4", (2, 67, 21, 23)),
    ("f32", "fs_b_yx_fsv32", "f32", "b_fs_yx_fsv4", (3, 72, 13, 17)),
    ("f32", "bs_fs_yx_bsv16_fsv16", "f32", "bfyx", (32, 33, 17, 21)),
]


@pytest.fixture(scope="module", params=[1, 3])
def streaming(engine: cf.Engine, request: pytest.FixtureRequest) -> cf.Stream:
    """A stream of an engine whose kernels treat every tensor as a large one."""
    return as_large(engine, compute_units=request.param)


def _apart(desc: cf.MemoryDesc) -> cf.MemoryDesc:
    """The same with a place more between its rows, so that they cannot be linked."""
    _, f, y, x = desc.dims
    if desc.format.name.startswith("b_fs"):
        return desc
    if desc.format.name == "bfyx":
        return D(desc.dims, desc.dtype, strides=(f * (y * x + 1), y * x + 1, x, 1))
    return D(desc.dims, desc.dtype, strides=(y * x * (f + 1), 1, x * (f + 1), f + 1))


@pytest.mark.parametrize(("src_type", "src", "dst_type", "dst", "dims"), CASES)
def test_lines_that_wait_in_memory(
    src_type: str, src: str, dst_type: str, dst: str, dims: tuple[int, ...], streaming: cf.Stream
) -> None:
    a, b = D(dims, src_type, src), _apart(D(dims, dst_type, dst))
    plan = check_reorder(a, b, streaming).plan.body
    assert isinstance(plan, TilePlan)
    assert isinstance(plan.walk.lines, Kept)
    for front in (1, 7):
        check_reorder(a, b, streaming, front=front)
        check_reorder(a, D(dims, dst_type, dst), streaming, front=front)
    check_reorder(a, b, streaming, attr=cf.Attr(src_scale=0.5))
    whole = plan.nodes[plan.walk.middle or 0].size.value // plan.steps_along(plan.walk.middle or 0)
    # Work-items of one tile; one whose only tile overlaps; one that ends where whole tiles do.
    for chunk in (1, 7, whole - 1, whole):
        check_reorder(a, b, streaming, choices=cf.Choices(chunk=chunk))
    check_reorder(a, b, streaming, choices=cf.Choices(ahead=0, chunk=3))


@pytest.mark.parametrize("size", [320, 321, 335, 336])
def test_rows_of_any_length_and_place(size: int, streaming: cf.Stream) -> None:
    dims = (2, 37, size)
    src = D(dims, "f32", strides=(37 * size, 1, 37))
    for row in (size + 1, size + 2, size + 16):
        dst = D(dims, "f32", strides=(37 * row, row, 1))
        check_reorder(src, dst, streaming, choices=cf.Choices(chunk=9))


def test_memory_that_begins_anywhere(streaming: cf.Stream) -> None:
    a, b = D((2, 33, 17, 23), "f32", "byxf"), _apart(D((2, 33, 17, 23), "f32", "bfyx"))
    for begins in ((4, 4), (0, 60), (12, 32)):
        check_reorder(a, b, streaming, begins=begins)
