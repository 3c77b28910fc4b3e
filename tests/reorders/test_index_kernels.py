"""Index kernels: coordinates to offsets, offsets to coordinates, and maps of whole tensors."""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor
from typing import Any

import numpy as np
import pytest

import clformats as cf
from tests.index_support import PADDING, hurting, padded_data

FORMATS = [
    *("bfyx", "byxf", "b_fs_yx_fsv16", "bs_fs_yx_bsv16_fsv32", "aBcd24b", "byxf_af32", "bf8_xy16"),
    *("os_is_yx_isv16_osv16", "os_iyx_osv16_rotate_180", "iy_xs_os_xsv2_osv8__ao32", "a"),
    *("os_is_yx_osa4_isa8_osv8_isv4_swizzled_by_4", "os_iyx_osv16:i4", "abcdefghijkl"),
    *("winograd_2x3_s1_weights", "image_2d_weights_c4_fyx_b", "ldigo_p"),
]


def _descs() -> list[cf.MemoryDesc]:
    dims = (2, 17, 5, 4)
    piece = cf.MemoryDesc((40, 70, 6, 4), "f32", "ABcd32a32b")
    return [
        *(hurting(cf.Format(name)) for name in FORMATS),
        *padded_data()[::15],
        cf.MemoryDesc(dims, "f32", strides=(1000, 1, 133, 33)),
        piece.submemory((32, 32, 3, 2), (0, 32, 2, 1)),
        piece.submemory((5, 7, 3, 2), (32, 32, 0, 1)),
        cf.MemoryDesc((1, 1), "f32"),
    ]


DESCS = _descs()


def test_offsets_have_64_bits_where_32_are_too_few(engine: cf.Engine) -> None:
    assert cf.IndexKernels(cf.MemoryDesc((1 << 15, 1 << 15), "f32"), engine).dtype == np.int32
    assert cf.IndexKernels(cf.MemoryDesc((1 << 15, 1 << 16), "s4"), engine).dtype == np.int64


@pytest.mark.sampled(2)
@pytest.mark.parametrize("desc", DESCS, ids=str)
def test_there_and_back(desc: cf.MemoryDesc, engine: cf.Engine) -> None:
    kernels = cf.IndexKernels(desc, engine)
    want = desc.offsets()
    table = kernels.offset_map()
    assert table.shape == desc.dims
    assert (table.get() == want).all()

    every = np.moveaxis(np.indices(desc.dims), 0, -1)
    assert (kernels.offsets(every).get() == want).all()
    assert (kernels.coordinates(table).get() == every).all()

    # Every place in memory, some behind, and one before.
    places = np.arange(-1, min(desc.span_nbytes * 8 // desc.dtype.bits + 20, 20_000))
    number = np.full(places[-1] + 1, -1)
    inside = want.ravel() <= places[-1]
    number[want.ravel()[inside]] = np.arange(want.size)[inside]
    got = kernels.coordinates(places).get()
    assert (got[0] == -1).all()
    holes = number == -1
    assert (got[1:][holes] == -1).all()
    found = np.ravel_multi_index(tuple(got[1:][~holes].T), desc.dims)
    assert (found == number[~holes]).all()


def test_outside_is_none(engine: cf.Engine) -> None:
    desc = cf.MemoryDesc((2, 17, 5, 4), "f32", "b_fs_yx_fsv16")
    kernels = cf.IndexKernels(desc, engine)
    outside = [[2, 0, 0, 0], [0, 17, 0, 0], [0, 0, -1, 0], [0, 0, 0, 2**40], [1, 16, 4, 3]]
    assert kernels.offsets(outside).get().tolist() == [-1, -1, -1, -1, 1264]
    assert kernels.coordinates([1264, 1265, 2**40, -5]).get().tolist() == [
        [1, 16, 4, 3],
        *[[-1] * 4] * 3,
    ]


def test_beyond_32_bits(engine: cf.Engine) -> None:
    desc = cf.MemoryDesc((70_000, 17, 300, 200), "u8", "b_fs_yx_fsv16")
    kernels = cf.IndexKernels(desc, engine)
    assert kernels.dtype == np.int64
    index = np.array([(0, 0, 0, 0), (69_999, 16, 299, 199), (34_567, 3, 1, 2), (70_000, 0, 0, 0)])
    offsets = kernels.offsets(index)
    assert offsets.get().tolist() == [*(desc.offset(*map(int, i)) for i in index[:3]), -1]
    assert (kernels.coordinates(offsets).get()[:3] == index[:3]).all()


def test_one_program_for_all_shapes(engine: cf.Engine) -> None:
    engine = cf.Engine(device=engine.device)
    for n in (3, 16, 17):
        desc = cf.MemoryDesc((2, n, 5, n + 1), "f32", "b_fs_yx_fsv16")
        assert (cf.IndexKernels(desc, engine).offset_map().get() == desc.offsets()).all()
    assert engine.programs_built == 1


def test_on_a_stream_and_from_threads(engine: cf.Engine) -> None:
    desc = cf.MemoryDesc((3, 33, 7, 5), "f32", "b_fs_yx_fsv16")
    kernels = cf.IndexKernels(desc, engine)
    every = np.moveaxis(np.indices(desc.dims), 0, -1)

    def work(number: int) -> Any:
        stream = cf.Stream(engine, out_of_order=number % 2 == 1)
        return kernels.coordinates(kernels.offsets(every, stream), stream).get(stream.queue)

    with ThreadPoolExecutor(4) as pool:
        for got in pool.map(work, range(8)):
            assert (got == every).all()


def test_of_nothing(engine: cf.Engine) -> None:
    desc = cf.MemoryDesc((2, 0, 5), "f32")
    kernels = cf.IndexKernels(desc, engine)
    assert kernels.offset_map().shape == (2, 0, 5)
    assert kernels.offsets([[0, 0, 0]]).get().tolist() == [-1]
    other = cf.IndexKernels(cf.MemoryDesc((2, 3), "f32"), engine)
    assert other.offsets(np.empty((0, 2), np.int32)).shape == (0,)
    assert other.coordinates(np.empty(0, np.int32)).shape == (0, 2)


def test_gather_by_a_table(engine: cf.Engine) -> None:
    """What it is for: a kernel of the user's that reads by offsets from a buffer."""
    desc = cf.MemoryDesc((2, 17, 5, 4), "f32", "b_fs_yx_fsv16", padding=PADDING[:4])
    array = np.random.default_rng(0).random(desc.dims, np.float32)
    memory = cf.Memory(desc, engine)
    with memory.map("w") as flat:
        flat[:] = cf.pack(array, desc)
    wanted = np.array([[1, 16, 4, 3], [0, 5, 2, 1], [1, 0, 0, 0]])
    offsets = cf.IndexKernels(desc, engine).offsets(wanted)
    text = """__kernel void gather(__global const float *src, __global const int *offsets,
        __global float *dst) { dst[get_global_id(0)] = src[offsets[get_global_id(0)]]; }"""
    import pyopencl.array

    out = pyopencl.array.empty(engine.queue, 3, np.float32)
    kernel = engine.kernel(text, "gather")
    arguments: list[Any] = [memory.buffer, offsets.data, out.data]
    kernel(engine.queue, (3,), None, *arguments)
    assert (out.get() == array[tuple(wanted.T)]).all()


def test_refusals(engine: cf.Engine) -> None:
    import pyopencl.array

    desc = cf.MemoryDesc((2, 17, 5, 4), "f32", "b_fs_yx_fsv16")
    kernels = cf.IndexKernels(desc, engine)
    unsigned: Any = pyopencl.array.zeros(engine.queue, 3, np.uint32)
    with pytest.raises(cf.InvalidArgument, match=r"expected \(\.\.\., 4\) for b, f, y, x"):
        kernels.offsets([1, 2, 3])
    with pytest.raises(cf.InvalidArgument, match="expected integers"):
        kernels.offsets([[1.0, 2, 3, 4]])
    with pytest.raises(cf.InvalidArgument, match="expected int32, C-contiguous"):
        kernels.coordinates(unsigned)
    for bad in (cf.MemoryDesc((2, 3), "f32", "any"), cf.MemoryDesc((cf.RUNTIME_DIM, 3), "f32")):
        with pytest.raises(cf.InvalidDescriptor):
            cf.IndexKernels(bad, engine)
    with pytest.raises(cf.InvalidDescriptor):
        cf.IndexKernels(cf.MemoryDesc((), "f32"), engine)


def test_none_at_all(engine: cf.Engine) -> None:
    """An empty list has no type that could be wrong."""
    kernels = cf.IndexKernels(cf.MemoryDesc((2, 3), "f32"), engine)
    assert kernels.coordinates([]).get().shape == (0, 2)
    assert kernels.offsets(np.zeros((0, 2), np.int64)).get().shape == (0,)
