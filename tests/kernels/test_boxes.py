"""Walks in boxes of several loops, on small tensors that are treated as large ones."""

from __future__ import annotations

import pytest

import clformats as cf
from tests.device_support import as_large, check_reorder

pytestmark = [pytest.mark.sampled(3), pytest.mark.usefixtures("plans_for_cpus")]

D = cf.MemoryDesc


@pytest.fixture(scope="module", params=[1, 2])
def streaming(engine: cf.Engine, request: pytest.FixtureRequest) -> cf.Stream:
    """A stream of an engine whose kernels treat every tensor as a large one."""
    return as_large(engine, compute_units=request.param)


CASES = [
    ("f32", "bs_fs_yx_bsv32_fsv32", "f32", "bfyx", (32, 64, 6, 16)),
    ("f32", "bs_fs_yx_bsv32_fsv32", "f32", "bfyx", (33, 35, 7, 17)),
    ("f32", "bs_fs_yx_bsv32_fsv32", "s8", "bfyx", (67, 35, 9, 16)),
    ("u8", "bs_fs_yx_bsv32_fsv32", "f32", "bfyx", (5, 65, 9, 15)),
    ("u8", "bs_fs_yx_bsv32_fsv32", "u8", "b_fs_yx_fsv16", (64, 48, 5, 13)),
    ("f16", "bs_fs_yx_bsv32_fsv32", "f32", "bfyx", (37, 96, 9, 16)),
    ("u8", "bs_fs_yx_bsv16_fsv16", "u8", "byxf", (16, 160, 13, 9)),
    ("u8", "byxf", "u8", "bs_fs_yx_bsv32_fsv32", (9, 96, 17, 16)),
    ("f16", "yxfb", "f16", "bs_fs_yx_bsv32_fsv32", (64, 96, 5, 9)),
    ("f32", "fs_b_yx_fsv32", "f32", "yxfb", (32, 64, 7, 15)),
    ("f32", "fs_b_yx_fsv32", "bf16", "yxfb", (17, 67, 9, 13)),
    ("u8", "yxfb", "f32", "fs_b_yx_fsv32", (64, 96, 5, 7)),
    ("f32", "byxf", "f32", "fs_b_yx_fsv32", (3, 160, 9, 7)),
    ("f32", "fs_b_yx_fsv32", "s8", "bfyx", (5, 67, 30, 33)),
    ("f32", "os_is_yx_osv16_isv4", "f32", "oiyx", (65, 36, 1, 3)),
    ("f32", "oiyx", "f32", "OIhw16i16o4i", (48, 128, 3, 3)),
]


@pytest.mark.parametrize(("src_type", "src", "dst_type", "dst", "dims"), CASES)
def test_boxes(
    src_type: str, src: str, dst_type: str, dst: str, dims: tuple[int, ...], streaming: cf.Stream
) -> None:
    a, b = D(dims, src_type, src), D(dims, dst_type, dst)
    assert "in boxes" in str(check_reorder(a, b, streaming).plan)
    check_reorder(a, b, streaming, front=3)
    check_reorder(a, b, streaming, attr=cf.Attr(src_scale=0.5))
    for choices in (cf.Choices(ahead=3, chunk=7), cf.Choices(ahead=1 << 20), cf.Choices(chunk=1)):
        check_reorder(a, b, streaming, choices=choices)
