"""What memory objects lie in: buffers, pools, SVM, arrays, host memory, parts of one another."""

from __future__ import annotations

import gc
import inspect
import mmap
import re
import threading
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import clformats as cf
from clformats.host.oracle import padding_offsets
from tests.support import dirty_pack, garbage, random_values, same_bytes

D = cf.MemoryDesc
SRC, DST = D((2, 17, 5, 3), "f32", "bfyx"), D((2, 17, 5, 3), "f32", "b_fs_yx_fsv16")


def svm_or_skip(engine: cf.Engine, nbytes: int) -> Any:
    import pyopencl as cl

    try:
        flags = cl.svm_mem_flags.READ_WRITE
        return cl.SVMAllocation(engine.context, nbytes, 64, flags)
    except (cl.Error, AttributeError) as error:
        pytest.skip(f"no shared virtual memory on {engine.device.name}: {error}")


def values_of(desc: cf.MemoryDesc, seed: int = 0) -> Any:
    return random_values(np.random.default_rng(seed), desc.dims, desc.dtype.name)


def reordered(source: cf.Memory, target: cf.Memory, stream: cf.Stream) -> Any:
    cf.Reorder(source.desc, target.desc, stream.engine)(stream, source, target)
    return cf.to_numpy(target)


def test_large_buffers_of_a_cpu_ask_for_huge_pages(engine: cf.Engine) -> None:
    maps = Path("/proc/self/smaps")
    has_huge = Path("/sys/kernel/mm/transparent_hugepage").exists() and maps.exists()
    if not (engine.traits.is_cpu and has_huge and hasattr(mmap, "MADV_HUGEPAGE")):
        pytest.skip("no CPU, or no huge pages")
    if "rusticl" in engine.device.platform.name:
        pytest.skip("rusticl maps a copy of the buffer")
    memory = cf.Memory(D((16 << 20,), "u8"), engine)
    with memory.map("r") as flat:
        middle = flat.ctypes.data + (8 << 20)
        flags, inside = "", False
        for line in maps.read_text(encoding="ascii").splitlines():
            if found := re.match(r"([0-9a-f]+)-([0-9a-f]+) ", line):
                inside = int(found[1], 16) <= middle < int(found[2], 16)
            elif inside and line.startswith("VmFlags:"):
                flags = line
    assert " hg" in flags


# ---- allocators and SVM --------------------------------------------------------------------------


@pytest.mark.parametrize("kind", ["pool", "immediate", "svm", "svm pool"])
def test_allocators(kind: str, engine: cf.Engine, stream: cf.Stream) -> None:
    from pyopencl import tools

    if "svm" in kind:
        svm_or_skip(engine, 64)
    makers: dict[str, Any] = {
        "pool": lambda: tools.MemoryPool(tools.ImmediateAllocator(engine.queue)),
        "immediate": lambda: tools.ImmediateAllocator(engine.queue),
        "svm": lambda: tools.SVMAllocator(engine.context, queue=engine.queue),
        "svm pool": lambda: tools.SVMPool(tools.SVMAllocator(engine.context, queue=engine.queue)),
    }
    allocator = makers[kind]()
    array = values_of(SRC)
    for turn in range(20):
        # A dropped memory object gives its storage back only when nothing uses it any more.
        source = cf.from_numpy(array, engine, format="bfyx", allocator=allocator)
        target = cf.Memory(DST, engine, allocator=allocator)
        result = cf.Memory(SRC, engine)
        cf.Reorder(SRC, DST, engine)(cf.Stream(engine), source, target)
        cf.Reorder(DST, SRC, engine)(cf.Stream(engine), target, result)
        del source, target
        other = cf.Memory(DST, engine, allocator=allocator)
        assert not other.physical().any()
        with other.map("w") as flat:
            flat[:] = 7
        assert (cf.to_numpy(result) == array).all()
        del other, flat
        assert "pool" not in kind or allocator.active_blocks == 0, turn


def test_an_allocator_that_cheats_is_found(engine: cf.Engine) -> None:
    import pyopencl as cl

    def short(nbytes: int) -> Any:
        return cl.Buffer(engine.context, cl.mem_flags.READ_WRITE, nbytes - 1)

    with pytest.raises(cf.DeviceError, match=r"has 2047 bytes, .* needs 2048|bytes"):
        cf.Memory(DST, engine, allocator=short)
    with pytest.raises(cf.InvalidArgument, match="pyopencl Buffer"):
        cf.Memory(DST, engine, allocator=bytearray)
    with pytest.raises(cf.InvalidArgument, match="allocator"):
        cf.Memory(DST, engine, allocator=5)  # type: ignore[arg-type]
    with pytest.raises(cf.InvalidArgument, match="no buffer"):
        cf.Memory(DST, engine, buffer=None, allocator=short)


def test_svm_is_wrapped(engine: cf.Engine, stream: cf.Stream) -> None:
    svm = svm_or_skip(engine, DST.nbytes + 8)
    target = cf.Memory(DST, engine, buffer=svm)
    with target.map("w") as flat:
        flat[:] = garbage(np.random.default_rng(1), DST)
    array = values_of(SRC)
    assert (reordered(cf.from_numpy(array, engine), target, stream) == array).all()
    with target.map("r") as flat:
        assert (flat == cf.pack(array, DST)).all()
    again = cf.Memory(DST, engine, buffer=svm)
    with again.map("r"), pytest.raises(cf.MappedError, match="since"):
        target.map("r")
    with pytest.raises(cf.DeviceError, match="bytes"):
        cf.Memory(D((2, 33, 5, 3), "f32"), engine, buffer=svm)


# ---- pyopencl's arrays ---------------------------------------------------------------------------


def test_arrays_are_used_where_they_lie(engine: cf.Engine, stream: cf.Stream) -> None:
    from pyopencl import array as arrays

    host = values_of(SRC)
    whole = arrays.to_device(engine.queue, host)
    memory = cf.from_array(whole)
    assert memory.desc == SRC
    assert memory.buffer is whole.base_data
    assert (reordered(memory, cf.Memory(DST, engine), stream) == host).all()
    part = whole[1:, 3:9]
    memory = cf.from_array(part, engine)
    assert (cf.to_numpy(memory) == host[1:, 3:9]).all()
    zeros = cf.Memory(D(memory.desc.dims, "f32"), engine)
    cf.Reorder(zeros.desc, memory.desc, engine)(stream, zeros, memory).wait()
    host[1:, 3:9] = 0
    assert (whole.get() == host).all()
    assert cf.Memory(SRC, engine, buffer=whole).buffer is whole.base_data
    with pytest.raises(cf.DeviceError, match="from_array"):
        cf.Memory(D(part.shape, "f32"), engine, buffer=part)


def test_memory_as_an_array(engine: cf.Engine, stream: cf.Stream) -> None:
    host = values_of(SRC)
    source = cf.from_numpy(host, engine)
    target, result = cf.Memory(DST, engine), cf.Memory(SRC, engine)
    cf.Reorder(SRC, DST, engine)(stream, source, target)
    cf.Reorder(DST, SRC, engine)(cf.Stream(engine), target, result)
    array = cf.to_array(result)
    padded = cf.Memory(D(SRC.dims, "f32", "byxf", padding=((0, 0), (1, 2), (0, 0), (3, 0))), engine)
    around = cf.to_array(padded)
    assert (around.offset, around.strides) == ((3 * 20 + 1) * 4, (6 * 5 * 20 * 4, 4, 480, 80))
    assert array.shape == SRC.dims
    doubled = array + array
    assert (doubled.get() == 2 * host).all()
    assert (cf.to_array(source, stream=stream).get() == host).all()
    for memory in (cf.Memory(DST, engine), cf.Memory(D((4, 6), "s4"), engine)):
        with pytest.raises(cf.InvalidDescriptor, match="plain format"):
            cf.to_array(memory)


# ---- host memory ---------------------------------------------------------------------------------


@pytest.mark.parametrize("start", [0, 1, 5])
def test_host_memory_is_used_where_it_lies(
    start: int, engine: cf.Engine, stream: cf.Stream
) -> None:
    if not engine.traits.is_cpu:
        pytest.skip("only devices that share the host's memory")
    room = np.full(SRC.nelems + 40, 7, np.float32)
    array = room[start : start + SRC.nelems].reshape(SRC.dims)
    array[:] = host = values_of(SRC)
    memory = cf.from_host(array, engine)
    assert (reordered(memory, cf.Memory(DST, engine), stream) == host).all()
    other = cf.from_numpy(host + 1, engine, format="b_fs_yx_fsv16")
    cf.Reorder(DST, memory.desc, engine)(stream, other, memory)
    with memory.map("r"):
        assert (array == host + 1).all()
    assert (room[:start] == 7).all()
    assert (room[start + SRC.nelems :] == 7).all()


def test_host_memory_is_kept_while_it_is_used(engine: cf.Engine) -> None:
    if not engine.traits.is_cpu:
        pytest.skip("only devices that share the host's memory")
    big = D((1500, 1501), "f32")
    target = cf.Memory(D(big.dims, "f32", "ba"), engine)
    values = values_of(big)
    for _ in range(3):
        source = cf.from_host(values.copy(), engine)
        cf.Reorder(source.desc, target.desc, engine)(cf.Stream(engine), source, target)
        del source
        gc.collect()
        assert (cf.to_numpy(target) == values).all()


def test_read_only_and_empty_host_memory(engine: cf.Engine) -> None:
    if not engine.traits.is_cpu:
        pytest.skip("only devices that share the host's memory")
    array = values_of(SRC)
    array.flags.writeable = False
    assert (cf.to_numpy(cf.from_host(array, engine)) == array).all()
    assert cf.from_host(np.zeros((3, 0), np.float32), engine).buffer is None


# ---- numpy and DLPack ----------------------------------------------------------------------------


def test_numpy_takes_memory(engine: cf.Engine) -> None:
    host = values_of(SRC)
    memory = cf.from_numpy(host, engine, format="b_fs_yx_fsv16")
    assert (np.asarray(memory) == host).all()
    assert np.asarray(memory, dtype=np.float64).dtype == np.float64
    with pytest.raises(ValueError, match="by a copy"):
        memory.__array__(copy=False)


def test_dlpack_both_ways(engine: cf.Engine) -> None:
    host = values_of(SRC)
    memory = cf.from_dlpack(host, engine, format="b_fs_yx_fsv16")
    assert memory.desc == DST
    assert (np.from_dlpack(memory) == host).all()
    for wrong in (5, "text", np.zeros(3, cf.tensors.dtypes.as_dtype("bf16").numpy)):
        with pytest.raises(cf.InvalidDescriptor, match="speaks DLPack"):
            cf.from_dlpack(wrong, engine)


@pytest.mark.parametrize(
    "text",
    ["f32:b_fs_yx_fsv16:2x17x5x3", "s8:os_is_yx_isa8_osv8_isv4:19x21x3x3",
     "f16:bfyx:1x5x4x6:pad=0+0x3+2x1+1x2+0", "f32:ab:5x7:strides=9x1"],
)  # fmt: skip
def test_physical_has_an_axis_for_each_digit(text: str, engine: cf.Engine) -> None:
    desc = D.parse(text)
    array = values_of(desc)
    found = cf.from_numpy(array, engine, format="abcd"[: desc.ndims], dtype=desc.dtype)
    target = cf.Memory(desc, engine)
    cf.Reorder(found.desc, desc, engine)(cf.Stream(engine), found, target)
    physical = target.physical()
    assert physical.shape == tuple(p.size for p in desc.placed)
    assert (np.sort(physical[physical != 0]) == np.sort(array[array != 0])).all()
    if desc.format.name == "b_fs_yx_fsv16":
        assert (physical[1, 1, 4, 2, 0] == array[1, 16, 4, 2]).all()


def test_memory_without_volume(engine: cf.Engine, stream: cf.Stream) -> None:
    empty, other = D((2, 0, 5, 3), "f32"), D((2, 0, 5, 3), "f32", "b_fs_yx_fsv16")
    a, b = cf.Memory(empty, engine), cf.Memory(other, engine)
    assert a.buffer is b.buffer is None
    cf.Reorder(empty, other, engine)(stream, a, b).wait()
    for array in (cf.to_numpy(b), np.asarray(b), np.from_dlpack(b)):
        assert array.shape == empty.dims
    with b.map("rw") as flat:
        assert flat.size == 0
    b.clear_padding()
    assert b.physical().size == 0


# ---- handles -------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "text",
    ["f32:b_fs_yx_fsv16:2x17x5x3", "u4:os_iyx_osv16:17x3x1x3", "s4:aB8b:3x13",
     "f16:bfyx:1x5x4x6:pad=0+0x3+2x1+1x2+0", "f32:ab:5x7:strides=9x1", "s8:ab:4x6"],
)  # fmt: skip
def test_padding_becomes_zero_and_nothing_else(text: str, engine: cf.Engine) -> None:
    desc = D.parse(text)
    rng, array = np.random.default_rng(2), values_of(desc)
    filled = dirty_pack(rng, array, desc)
    memory, other = cf.Memory(desc, engine), cf.Memory(desc, engine)
    raw = desc.dtype.raw
    with memory.map("w") as flat:
        flat[:] = filled
    other.set_buffer(memory.buffer)
    with memory.map("r") as flat:
        assert (flat.view(raw) == filled.view(raw)).all()
    other.set_buffer(memory.buffer, clear_padding=True)
    with memory.map("r") as flat:
        assert same_bytes(cf.unpack(flat, desc), array)
        changed = np.flatnonzero(flat.view(raw) != filled.view(raw))
        per_place = 8 // desc.dtype.bits if desc.dtype.is_packed else 1
        assert set(changed) <= set(padding_offsets(desc) // per_place)
        if not desc.dtype.is_packed:
            assert not flat[padding_offsets(desc)].any()


# ---- views ---------------------------------------------------------------------------------------


@pytest.mark.parametrize("name", ["bfyx", "byxf", "b_fs_yx_fsv16", "fyxb"])
@pytest.mark.parametrize("by", ["reorder", "map"])
def test_concatenation_in_place(name: str, by: str, engine: cf.Engine, stream: cf.Stream) -> None:
    """Writing the parts writes the whole, and nothing else."""
    whole = cf.Memory(D((3, 48, 5, 2), "f32", name), engine)
    with whole.map("w") as flat:
        flat[:] = -1
    cuts = [(0, 16), (16, 32)]
    arrays = [values_of(D((2, count, 5, 2), "f32"), first) for first, count in cuts]
    for (first, count), array in zip(cuts, arrays, strict=True):
        view = whole.submemory((2, count, 5, 2), (1, first, 0, 0))
        if by == "map":
            with view.map("w") as flat:
                flat[view.mapped.offsets()] = array
        else:
            source = cf.from_numpy(array, engine)
            cf.Reorder(source.desc, view.desc, engine)(stream, source, view)
        assert (cf.to_numpy(view) == array).all()
    want = np.full((3, 48, 5, 2), -1, np.float32)
    want[1:] = np.concatenate(arrays, axis=1)
    assert (cf.to_numpy(whole) == want).all()


def test_a_view_maps_its_own_bytes(engine: cf.Engine) -> None:
    whole = cf.from_numpy(np.arange(7 * 6 * 5, dtype=np.int32).reshape(7, 6, 5), engine)
    view = whole.submemory((2, 6, 5), (3, 0, 0))
    assert view.mapped_bytes == slice(360, 600)
    assert view.is_dense
    with view.map("w") as flat:
        assert flat.size == 60
        flat[:] = cf.pack(np.ones((2, 6, 5), np.int32), view.mapped)
    inner = whole.submemory((2, 2, 5), (3, 1, 0))
    assert not inner.is_dense
    with inner.map("rw") as flat:
        assert flat.size == 40
        assert (cf.unpack(flat, inner.mapped) == 1).all()
    got = cf.to_numpy(whole)
    assert (got[3:5] == 1).all()
    assert (np.delete(got, [3, 4], 0).ravel() != 1).sum() == 5 * 30 - 1
    with view.map("r"), pytest.raises(cf.MappedError, match="since"):
        whole.map("r")


def test_a_view_of_half_bytes(engine: cf.Engine) -> None:
    array = np.arange(5 * 6).reshape(5, 6) % 7
    whole = cf.from_numpy(array, engine, dtype="s4")
    view = whole.submemory((2, 6), (2, 0))
    assert (cf.to_numpy(view).astype(int) == array[2:4]).all()
    assert view.physical().size == 6


def test_a_view_keeps_the_buffer(engine: cf.Engine) -> None:
    whole = cf.from_numpy(np.arange(12, dtype=np.int32).reshape(3, 4), engine)
    view = whole.submemory((1, 4), (2, 0))
    del whole
    gc.collect()
    assert (cf.to_numpy(view) == [[8, 9, 10, 11]]).all()


# ---- mapping -------------------------------------------------------------------------------------


def test_who_holds_a_mapping_is_told(engine: cf.Engine) -> None:
    memory = cf.Memory(SRC, engine)
    line = 0

    def hold() -> None:
        nonlocal line
        frame = inspect.currentframe()
        assert frame is not None
        line = frame.f_lineno + 1
        mapping = memory.map("rw")
        mapping.__enter__()
        held.append(mapping)

    held: list[Any] = []
    thread = threading.Thread(target=hold, name="the holder")
    thread.start()
    thread.join()
    with pytest.raises(cf.MappedError, match=rf"test_storage.py:{line} in the holder"):
        cf.to_numpy(memory)
    held[0].release()
    assert not cf.to_numpy(memory).any()


def test_a_mapping_may_start_early(engine: cf.Engine, stream: cf.Stream) -> None:
    big, turned = D((1500, 1501), "f32"), D((1500, 1501), "f32", "ba")
    values = values_of(big)
    source, target = cf.from_numpy(values, engine), cf.Memory(turned, engine)
    reorder = cf.Reorder(big, turned, engine)
    for _ in range(3):
        with target.map("w") as flat:
            flat[:] = 0
        reorder(stream, source, target)
        mapping = target.map("r").start()
        with pytest.raises(cf.MappedError, match="since"):
            reorder(stream, source, target)
        with pytest.raises(cf.MappedError, match="once"):
            mapping.start()
        assert mapping.event is not None
        with mapping as flat:
            assert (cf.unpack(flat, turned) == values).all()
    target.map("rw").start().release()
    assert (cf.to_numpy(target) == values).all()


def test_a_mapping_outlives_everything(engine: cf.Engine) -> None:
    own = cf.Engine(device=engine.device)
    stream, memory = cf.Stream(own), cf.Memory(SRC, own)
    buffer = memory.buffer
    mapping = memory.map("rw", stream=stream)
    flat = mapping.__enter__()
    del own, stream, memory
    gc.collect()
    flat[:] = 5
    mapping.release()
    mapping.release()
    del mapping, flat
    gc.collect()
    assert (cf.to_numpy(cf.Memory(SRC, engine, buffer=buffer)) == 5).all()


def test_an_abandoned_mapping_goes_with_its_memory(engine: cf.Engine) -> None:
    import weakref

    memory = cf.Memory(SRC, engine)
    seen = weakref.ref(memory.usage)
    memory.map("r").__enter__()
    del memory
    gc.collect()
    assert seen() is None


def test_writing_maps_do_not_read_back(engine: cf.Engine, monkeypatch: pytest.MonkeyPatch) -> None:
    import pyopencl as cl

    asked: list[Any] = []
    real = cl.enqueue_map_buffer

    def seen(queue: Any, buffer: Any, flags: Any, *rest: Any, **more: Any) -> Any:
        asked.append(flags)
        return real(queue, buffer, flags, *rest, **more)

    monkeypatch.setattr(cl, "enqueue_map_buffer", seen)
    memory = cf.Memory(D((6, 4), "s32"), engine)
    for wish in (memory, memory.submemory((2, 4), (1, 0)), memory.submemory((6, 2), (0, 1))):
        with wish.map("w"):
            pass
    flags = cl.map_flags
    both = flags.READ | flags.WRITE
    assert asked == [flags.WRITE_INVALIDATE_REGION, flags.WRITE_INVALIDATE_REGION, both]


def test_a_kernel_that_had_other_memory_is_made_anew(
    engine: cf.Engine, stream: cf.Stream, monkeypatch: pytest.MonkeyPatch
) -> None:
    """NVIDIA's driver refuses a buffer in the place of shared virtual memory."""
    import pyopencl as cl

    reorder = cf.Reorder(SRC, DST, engine)
    array = np.arange(SRC.nelems, dtype=np.float32).reshape(SRC.dims)
    real = cl.enqueue_nd_range_kernel
    refused: list[Any] = []

    def once(queue: Any, kernel: Any, *others: Any) -> Any:
        if not refused or refused[0] is kernel:
            refused.append(kernel)
            raise cl.LogicError(
                cl._cl._ErrorRecord(
                    msg="", code=cl.status_code.INVALID_KERNEL_ARGS, routine="clEnqueue"
                )
            )
        return real(queue, kernel, *others)

    monkeypatch.setattr(cl, "enqueue_nd_range_kernel", once)
    for _ in range(2):
        target = cf.Memory(DST, engine)
        reorder(stream, cf.from_numpy(array, engine), target)
        assert (cf.to_numpy(target) == array).all()
    assert refused, "another kernel served"
