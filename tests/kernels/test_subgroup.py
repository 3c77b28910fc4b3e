"""The subgroup family where the device has sub-groups; elsewhere that it says so."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

import clformats as cf
from tests.device_support import CANARY, check_bytes, check_reorder, expected
from tests.support import BUFFERS, dirty_pack, hurting_dims, random_values

pytestmark = pytest.mark.sampled(4)

D = cf.MemoryDesc
WHY = "the device has no sub-groups; Intel's runtime for CPUs has: pip install intel-opencl-rt"

# Sizes next to blocks and tiles; rows start at multiples of 16 bytes where the type is narrow.
PAIRS = [
    ("bfyx", "b_fs_yx_fsv16", [(2, 35, 5, 16), (3, 48, 8, 4), (1, 15, 1, 80)]),
    ("b_fs_yx_fsv16", "bfyx", [(2, 33, 9, 16), (3, 17, 8, 4)]),
    ("bfyx", "b_fs_yx_fsv8", [(2, 19, 12, 4)]),
    ("b_fs_yx_fsv32", "bfyx", [(2, 67, 16, 5)]),
    ("bfyx", "byxf", [(2, 48, 3, 16)]),
    ("byxf", "bfyx", [(2, 64, 16, 5)]),
    ("bfyx", "bs_fs_yx_bsv16_fsv16", [(17, 19, 4, 12)]),
    ("oiyx", "os_is_yx_isa8_osv8_isv4_swizzled_by_4", [(35, 37, 4, 4)]),
    ("os_is_yx_isv16_osv16", "oiyx", [(17, 33, 4, 8)]),
    ("b_fs_yx_fsv4", "b_fs_yx_fsv32", [(2, 67, 4, 5)]),
]
TYPES = ["f32 f32", "f16 f16", "u8 u8", "f64 f64", "f32 s8", "u8 f32", "f16 f32", "f64 bf16"]
CASES = [(n, *case) for n, case in enumerate(
    (src, dst, dims) for src, dst, sizes in PAIRS for dims in sizes
)]  # fmt: skip


@pytest.fixture
def has_subgroups(engine: cf.Engine) -> None:
    if not engine.traits.subgroup_bytes:
        pytest.skip(WHY)


def test_the_engine_knows(engine: cf.Engine, stream: cf.Stream) -> None:
    """What the device has is read from its extensions; without sub-groups the refusal says so."""
    found = engine.traits.subgroup_bytes
    extensions = engine.device.extensions.split()
    wanted = {"cl_intel_subgroups", "cl_intel_required_subgroup_size"} <= set(extensions)
    assert (4 in found) == bool(found) == wanted
    assert (1 in found) == (wanted and "cl_intel_subgroups_char" in extensions)
    src, dst = D((2, 35, 5, 8), "f32", "bfyx"), D((2, 35, 5, 8), "f32", "b_fs_yx_fsv16")
    if found:
        assert check_reorder(src, dst, stream, family="subgroup").plan.family == "subgroup"
    else:
        with pytest.raises(cf.Unsupported, match="device has no sub-groups"):
            cf.Reorder(src, dst, engine, family="subgroup")


@pytest.mark.usefixtures("has_subgroups")
@pytest.mark.parametrize("turn", range(4))
@pytest.mark.parametrize(("number", "src", "dst", "dims"), CASES)
def test_blocks(
    number: int, src: str, dst: str, dims: tuple[int, ...], turn: int, stream: cf.Stream
) -> None:
    """Each case with four of the types; the front is canary before the destination."""
    types = TYPES[(3 * turn + number) % len(TYPES)].split()
    a, b = (D(dims, t, name) for t, name in zip(types, (src, dst), strict=True))
    check_reorder(a, b, stream, family="subgroup", front=16 * (turn % 2))


@pytest.mark.usefixtures("has_subgroups")
@pytest.mark.parametrize("begins", [(4, 0), (0, 4), (12, 8), (16, 16), (1, 3)])
@pytest.mark.parametrize("types", ["f32 f32", "u8 u8", "f16 f32"])
def test_memory_may_begin_anywhere(begins: tuple[int, int], types: str, stream: cf.Stream) -> None:
    """Blocks are for addresses at multiples of 4 and 16 bytes alone."""
    dims, (a, b) = (2, 32, 8, 16), (D.parse(f"{t}:a:1").dtype for t in types.split())
    at = begins[0] * a.nbytes % 64, begins[1] * b.nbytes % 64
    src, dst = D(dims, a, "bfyx"), D(dims, b, "b_fs_yx_fsv16")
    check_reorder(src, dst, stream, family="subgroup", begins=at)


@pytest.mark.usefixtures("has_subgroups")
@pytest.mark.parametrize(
    ("src", "dst"),
    [
        (
            "f32:bfyx:2x36x5x16:pad=0+0x0+0x3+1x0+0",
            "f32:b_fs_yx_fsv16:2x36x5x16:pad=0+0x16+9x0+2x1+0",
        ),
        (
            "u8:b_fs_yx_fsv16:2x36x5x16:pad=0+0x16+0x1+1x0+0",
            "u8:bfyx:2x36x5x16:pad=0+0x16+2x1+1x0+0",
        ),
        ("f16:bfyx:2x40x6x16:pad=0+0x5+0x0+0x0+0", "f32:byxf:2x40x6x16:pad=0+0x8+0x3+1x2+6"),
    ],
)
def test_padding_around(src: str, dst: str, stream: cf.Stream) -> None:
    """Padding before and behind becomes zero, whatever the source has there."""
    check_reorder(D.parse(src), D.parse(dst), stream, family="subgroup")


@pytest.mark.usefixtures("has_subgroups")
def test_regions(stream: cf.Stream) -> None:
    """A part of a buffer: nothing around it is touched."""
    parent = D((4, 64, 6, 16), "f32", "b_fs_yx_fsv16")
    part = parent.submemory((2, 32, 3, 16), (1, 16, 2, 0))
    check_reorder(D(part.dims, "f32"), part, stream, family="subgroup")
    check_reorder(part, D(part.dims, "f32"), stream, family="subgroup")


@pytest.mark.usefixtures("has_subgroups")
@pytest.mark.parametrize(("shift_src", "shift_dst"), [(1, 0), (0, 1), (3, 5)])
def test_memory_that_starts_anywhere(
    shift_src: int, shift_dst: int, engine: cf.Engine, stream: cf.Stream
) -> None:
    """A user's memory may start where no block may; the kernel then goes lane by lane."""
    import pyopencl as cl

    rng = np.random.default_rng(4)
    src, dst = D((2, 35, 4, 8), "u8", "bfyx"), D((2, 35, 4, 8), "u8", "b_fs_yx_fsv16")
    array = random_values(rng, src.dims, "u8")
    flags = cl.mem_flags.READ_WRITE | cl.mem_flags.USE_HOST_PTR
    buffers = []
    for desc, shift in ((src, shift_src), (dst, shift_dst)):
        host = np.full(desc.nbytes + 4096, 0xA5, np.uint8)
        start = -host.ctypes.data % 64 + shift
        view = host[start : start + desc.nbytes + CANARY]
        buffers.append(cl.Buffer(engine.context, flags, hostbuf=view))
    cl.enqueue_copy(engine.queue, buffers[0], dirty_pack(rng, array, src)).wait()
    source, target = (
        cf.Memory(d, engine, buffer=b) for d, b in zip((src, dst), buffers, strict=True)
    )
    cf.Reorder(src, dst, engine, family="subgroup")(stream, source, target).wait()
    check_bytes(target, expected(array, src, dst))


@pytest.mark.usefixtures("has_subgroups")
@pytest.mark.parametrize("number", range(0, len(BUFFERS), 41))
def test_formats(number: int, engine: cf.Engine, stream: cf.Stream) -> None:
    """Some of all formats, from and to the plain one; rows of whole tiles, blocks that are not."""
    fmt, dtype = BUFFERS[number], ("f32", "u8", "f16")[number % 3]
    dims = (*hurting_dims(fmt)[:-1], 48)
    blocked, plain = D(dims, dtype, fmt), D(dims, dtype)
    gpu = replace(engine.traits, is_cpu=False)
    for src, dst in ((plain, blocked), (blocked, plain)):
        if cf.make_plan(src, dst, gpu).family == "subgroup":
            check_reorder(src, dst, stream, family="subgroup")


@pytest.mark.usefixtures("has_subgroups")
def test_a_gpu_takes_it_by_itself(engine: cf.Engine) -> None:
    other = cf.Engine(device=engine.device)
    other.__dict__["traits"] = replace(engine.traits, is_cpu=False)
    stream = cf.Stream(other)
    blocked = check_reorder(D((2, 35, 5, 8), "f16"), D((2, 35, 5, 8), "f16", "aBcd16b"), stream)
    assert blocked.plan.family == "subgroup"
