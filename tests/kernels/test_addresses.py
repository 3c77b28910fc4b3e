"""Memory of the host's that begins anywhere: kernels rely on no more than is so."""

from __future__ import annotations

import numpy as np
import pytest

import clformats as cf
from tests.device_support import (
    as_large,
    check_bytes,
    check_reorder,
    expected,
    guarded,
    memory_of,
    on_host,
)
from tests.support import dirty_pack, pair_of, random_values

pytestmark = pytest.mark.sampled(8)

D = cf.MemoryDesc

# One or more of each family: what of words, vectors and whole lines it relies on is in their plans.
CASES = [
    ("scheduled rows", "f32:bfyx", "f32:bfyx", (3, 5, 16, 64)),
    ("scheduled", "u8:bfyx", "u8:bfyx", (3, 5, 16, 64)),
    ("scheduled", "f16:bfyx", "f32:bfyx", (3, 5, 16, 64)),
    ("scheduled", "f64:bfyx", "f64:bfyx", (3, 5, 8, 16)),
    ("scheduled rows", "s4:ab", "s4:ab", (64, 64)),
    ("scheduled rows", "f32:byxf", "f32:b_fs_yx_fsv16", (2, 48, 8, 5)),
    ("scheduled rows", "u8:b_fs_yx_fsv32", "u8:byxf", (2, 64, 8, 8)),
    ("scheduled rows", "u8:b_fs_yx_fsv32", "f32:byxf", (2, 64, 3, 5)),
    ("scheduled rows", "f16:b_fs_yx_fsv16", "f16:byxf", (2, 48, 8, 5)),
    ("scheduled rows", "f32:b_fs_yx_fsv16", "f32:byxf", (2, 40, 8, 5)),
    ("scheduled local", "f32:bfyx", "f32:b_fs_yx_fsv16", (2, 48, 8, 8)),
    ("scheduled local", "f16:byxf", "f16:bfyx", (2, 64, 8, 16)),
    ("scheduled local", "u8:bfyx", "u8:byxf", (2, 64, 8, 16)),
    ("scheduled local", "u8:b_fs_yx_fsv4", "u8:b_fs_yx_fsv32", (2, 64, 8, 8)),
    ("scheduled local", "f16:bfyx", "f32:byxf", (2, 64, 8, 16)),
    ("scheduled local", "f32:bfyx", "s8:b_fs_yx_fsv4", (2, 36, 5, 16)),
    ("scheduled generic", "s32:aBcd24b", "s32:aBcd16b", (2, 40, 3, 3)),
    ("scheduled generic", "u4:ab", "s8:ab", (6, 64)),
    ("scheduled local generic", "s8:ab", "s4:ba", (6, 64)),
    ("scheduled local rows", "f32:oiyx", "s8:hwio:s8s8=1", (32, 16, 3, 3)),
]
ATTRS = [
    ("scheduled rows", "f32:bfyx", "s8:bfyx", (2, 16, 8, 8), cf.Attr(src_scale=2)),
    ("scheduled rows", "f32:bfyx", "f32:bfyx", (2, 32, 8, 16), cf.Attr(beta=2)),
    (
        "scheduled rows",
        "f16:byxf",
        "f16:b_fs_yx_fsv16",
        (2, 32, 8, 4),
        cf.Attr(src_scale=(range(32), 2)),
    ),
    ("scheduled local", "f32:bfyx", "f32:b_fs_yx_fsv16", (2, 32, 8, 16), cf.Attr(beta=0.5)),
    (
        "scheduled local",
        "u8:byxf",
        "f32:bfyx",
        (2, 32, 8, 16),
        cf.Attr(dst_scale=(range(1, 33), 2)),
    ),
]


@pytest.fixture(scope="module", params=["cpu", "gpu"])
def large(request: pytest.FixtureRequest, engine: cf.Engine, as_gpu: cf.Stream) -> cf.Stream:
    """Kernels for tensors that exceed the cache, whose stores are of whole lines; and GPUs'."""
    if request.param == "gpu":
        return as_gpu
    return as_large(engine)


def begins_of(src: D, dst: D) -> list[tuple[int, int]]:
    """Where both may begin behind a line: an odd number of elements, at a vector, far apart."""
    a, b = src.dtype.nbytes, dst.dtype.nbytes
    return [(0, 0), (a, b), (3 * a, 0), (0, 5 * b), (16, 16), (0, 32), (8, 0)]


@pytest.mark.parametrize(("family", "src", "dst", "dims"), CASES)
def test_memory_may_begin_anywhere(
    family: str, src: str, dst: str, dims: tuple[int, ...], large: cf.Stream
) -> None:
    a, b = pair_of(src, dst, dims)
    for begins in begins_of(a, b):
        made = check_reorder(a, b, large, begins=begins)
        assert made.plan.family in family.split(), begins


@pytest.mark.parametrize("begins", [(0, 0), (0, 1), (0, 2), (0, 3), (4, 6), (1, 34)])
@pytest.mark.parametrize(
    ("dtype", "src", "dst", "dims"),
    [
        ("f32", "b_fs_yx_fsv16", "bfyx", (2, 48, 23, 57)),  # lines are carried on from tile to tile
        ("f16", "b_fs_yx_fsv16", "bfyx", (2, 48, 22, 57)),
        ("f32", "b_fs_yx_fsv16", "bfyx", (3, 48, 7, 7)),  # and from row to row
        ("f32", "b_fs_yx_fsv16", "byxf", (3, 40, 7, 7)),  # and gathered in whole lines
        ("f16", "oiyx", "os_is_yx_isv16_osv16", (32, 32, 3, 3)),  # and put together from parts
        ("f32", "bfyx", "bfyx", (2, 16, 8, 8)),
    ],
)
def test_elements_may_lie_across_their_own_width(
    dtype: str, src: str, dst: str, dims: tuple[int, ...], begins: tuple[int, int], large: cf.Stream
) -> None:
    """OpenCL does not promise it, but processors can, so nothing may be made worse."""
    check_reorder(D(dims, dtype, src), D(dims, dtype, dst), large, begins=begins)


@pytest.mark.parametrize(("family", "src", "dst", "dims", "attr"), ATTRS)
def test_what_is_computed_may_begin_anywhere(
    family: str, src: str, dst: str, dims: tuple[int, ...], attr: cf.Attr, large: cf.Stream
) -> None:
    a, b = pair_of(src, dst, dims)
    for begins in begins_of(a, b):
        assert check_reorder(a, b, large, attr=attr, begins=begins).plan.family in family.split()


def test_one_reorder_serves_every_address(large: cf.Stream) -> None:
    """Beside each other, in any order; where nothing is relied on, nothing is planned anew."""
    rng, engine = np.random.default_rng(0), large.engine
    src, dst = D((2, 32, 8, 16), "f32", "bfyx"), D((2, 32, 8, 16), "f32", "b_fs_yx_fsv16")
    array = random_values(rng, src.dims, "f32")
    reorder = cf.Reorder(src, dst, engine)
    for begins in ((4, 0), (0, 0), (0, 4), (16, 16), (4, 0), (0, 0)):
        source = on_host(memory_of(dirty_pack(rng, array, src), src, engine), begins[0])
        target = on_host(guarded(dst, engine), begins[1])
        reorder(large, source, target).wait()
        check_bytes(target, expected(array, src, dst), begins)
