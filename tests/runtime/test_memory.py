"""Engines, streams, memory objects and their mapping."""

from __future__ import annotations

import re
from collections.abc import Callable

import numpy as np
import pytest

import clformats as cf
from clformats.programs.buildlog import told

D = cf.MemoryDesc


def test_new_memory_is_zero(engine: cf.Engine) -> None:
    m = cf.Memory(D((3, 17), "f32", "aB16b"), engine)
    with m.map("r") as a:
        assert a.shape == (96,)
        assert a.dtype == np.float32
        assert not a.any()


@pytest.mark.parametrize("dtype", cf.DTYPES)
def test_from_numpy_and_back(dtype: str, engine: cf.Engine) -> None:
    dt = cf.tensors.dtypes.as_dtype(dtype)
    array = (np.arange(2 * 17 * 3).reshape(2, 17, 3) % dt.largest).astype(dt.numpy)
    m = cf.from_numpy(array, engine, format="aBc16b", dtype=dt)
    assert m.desc == D((2, 17, 3), dtype, "aBc16b")
    back = cf.to_numpy(m)
    assert back.dtype == dt.numpy
    assert (back.view(dt.raw) == array.view(dt.raw)).all()


def test_from_numpy_converts(engine: cf.Engine) -> None:
    m = cf.from_numpy(np.array([[0.5, 300.0], [1.5, -1.0]]), engine, dtype="u8", format="ba")
    assert (cf.to_numpy(m) == [[0, 255], [2, 0]]).all()


def test_map_writes(engine: cf.Engine) -> None:
    m = cf.Memory(D((4,), "s32"), engine)
    with m.map("w") as a:
        a[:] = [1, 2, 3, 4]
    with m.map("rw") as b:
        b[:] += 1
    assert list(cf.to_numpy(m)) == [2, 3, 4, 5]


def test_mapping_is_exclusive(engine: cf.Engine, stream: cf.Stream) -> None:
    desc = D((4,), "s32")
    m, other = cf.Memory(desc, engine), cf.Memory(desc, engine)
    with m.map("rw"):
        with pytest.raises(
            cf.MappedError,
            match=r"is mapped with mode 'rw' since \S+test_memory.py:\d+ in Main.*, cannot map it",
        ):
            m.map("r")
        with pytest.raises(cf.MappedError, match="cannot reorder it"):
            cf.Reorder(desc, desc, engine)(stream, m, other)
        with pytest.raises(cf.MappedError, match="cannot give it another buffer"):
            m.set_buffer(None)
    with m.map("r"):
        pass


def test_an_exception_in_the_block_unmaps_once(engine: cf.Engine) -> None:
    m = cf.Memory(D((4,), "s32"), engine)

    def write_and_fail() -> None:
        with m.map("rw") as a:
            a[:] = 7
            raise RuntimeError("mine")

    with pytest.raises(RuntimeError, match="mine"):
        write_and_fail()
    assert list(cf.to_numpy(m)) == [7, 7, 7, 7]


def test_bad_modes(engine: cf.Engine) -> None:
    m = cf.Memory(D((4,), "s32"), engine)
    with pytest.raises(ValueError, match="'r', 'w' or 'rw'"):
        m.map("x")  # type: ignore[arg-type]
    with m.map("r"):
        pass


def test_buffers_of_the_user(engine: cf.Engine) -> None:
    import pyopencl as cl

    desc = D((2, 17), "f32", "aB16b")
    host = np.arange(64, dtype=np.float32)
    flags = cl.mem_flags.READ_WRITE | cl.mem_flags.COPY_HOST_PTR
    buffer = cl.Buffer(engine.context, flags, hostbuf=host)
    m = cf.Memory(desc, engine, buffer=buffer)
    assert m.buffer is buffer
    assert (cf.to_numpy(m) == cf.unpack(host, desc)).all()
    small = cl.Buffer(engine.context, cl.mem_flags.READ_WRITE, 255)
    with pytest.raises(cf.DeviceError, match=r"has 255 bytes, .* needs 256"):
        cf.Memory(desc, engine, buffer=small)
    foreign = cl.Buffer(cl.Context([engine.device]), cl.mem_flags.READ_WRITE, 256)
    with pytest.raises(cf.DeviceError, match="another OpenCL context"):
        m.set_buffer(foreign)


def test_memory_without_a_buffer(engine: cf.Engine) -> None:
    m = cf.Memory(D((4,), "f32"), engine, buffer=None)
    assert m.buffer is None
    mapping = m.map("r")
    with pytest.raises(cf.DeviceError, match="set_buffer"), mapping:
        pass
    m.set_buffer(cf.Memory(m.desc, engine).buffer)
    assert not cf.to_numpy(m).any()


def test_any_has_no_memory(engine: cf.Engine) -> None:
    with pytest.raises(cf.InvalidDescriptor, match="choose a concrete format"):
        cf.Memory(D((4,), "f32", "any"), engine)


def test_out_of_memory_is_told_by_name(engine: cf.Engine) -> None:
    with pytest.raises(cf.DeviceError, match="allocating") as caught:
        cf.Memory(D((2**50,), "u8"), engine)
    assert caught.value.name in ("INVALID_BUFFER_SIZE", "MEM_OBJECT_ALLOCATION_FAILURE")
    assert not cf.to_numpy(cf.Memory(D((4,), "u8"), engine)).any()


def test_a_failed_build_shows_the_log_and_the_lines_that_it_names(engine: cf.Engine) -> None:
    before, after = "\n".join(["// before"] * 30), "\n".join(["// after"] * 30)
    with pytest.raises(cf.DeviceError) as caught:
        engine.kernel(f"{before}\nkernel void k(global int *p)\n{{ p[0] = none; }}\n{after}", "k")
    assert caught.value.name == "BUILD_PROGRAM_FAILURE"
    assert str(caught.value).endswith(caught.value.log)
    log, _, lines = caught.value.log.rpartition("\n\n")
    assert "none" in log
    assert "failed: BUILD" not in log
    if re.search(r":32:\d+:", log):
        around = [line for line in lines.splitlines() if "..." not in line]
        assert [int(line.partition("|")[0]) for line in around] == list(range(29, 36))
        assert "  32 | { p[0] = none; }" in around


def test_lines_behind_index_source_count_from_one(engine: cf.Engine) -> None:
    head = cf.index_source("f32:nChw16c:2x17x5x4", "SRC")
    with pytest.raises(cf.DeviceError) as caught:
        engine.kernel(head + head.replace("SRC", "DST") + "// mine\nkernel void k() { oops; }", "k")
    if "Portable" in engine.device.platform.name:
        assert "\n   2 | kernel void k() { oops; }" in caught.value.log
        assert re.search(r":2:\d+: .*oops", caught.value.log)


def test_a_log_that_names_no_line_shows_the_begin() -> None:
    text = told("\n".join(map(str, range(100))), "clBuildProgram failed: X - oops")
    assert text.startswith("oops\n\n   1 | 0\n   2 | 1\n")
    assert text.endswith("\n  40 | 39\n ... |")


def test_no_such_device() -> None:
    with pytest.raises(cf.DeviceError, match="no OpenCL device matches 'abacus'"):
        cf.Engine("abacus")


def test_engines_of_the_users_objects(engine: cf.Engine) -> None:
    assert cf.Engine(device=engine.device).device == engine.device
    same = cf.Engine(context=engine.context, device=engine.device)
    assert same.context == engine.context
    assert engine.device in cf.devices()
    queue = cf.Stream(engine, out_of_order=True).queue
    assert not cf.Stream(queue=queue).in_order


def test_events_tell_their_times(engine: cf.Engine) -> None:
    src, dst = D((64, 64), "f32"), D((64, 64), "f32", "ba")
    a, b = cf.Memory(src, engine), cf.Memory(dst, engine)
    reorder = cf.Reorder(src, dst, engine)
    assert 0 < reorder(cf.Stream(engine, profiling=True), a, b).seconds() < 10
    with pytest.raises(cf.DeviceError, match="profiling=True"):
        reorder(cf.Stream(engine), a, b).seconds()


@pytest.mark.parametrize("out_of_order", [False, True])
def test_commands_wait_for_what_they_need(out_of_order: bool, engine: cf.Engine) -> None:
    """A chain over two streams, without a wait between, gives what it gives in order."""
    desc = [D((300, 299), "s32", name) for name in ("ab", "ba", "aB16b", "ab")]
    streams = [cf.Stream(engine, out_of_order=out_of_order) for _ in range(2)]
    array = np.arange(300 * 299, dtype=np.int32).reshape(300, 299)
    for _ in range(5):
        memories = [cf.from_numpy(array, engine, format="ab")]
        memories += [cf.Memory(d, engine) for d in desc[1:]]
        for k in range(3):
            reorder = cf.Reorder(desc[k], desc[k + 1], engine)
            reorder(streams[k % 2], memories[k], memories[k + 1])
        assert (cf.to_numpy(memories[-1]) == array).all()


def test_importing_the_library_does_not_import_opencl() -> None:
    import subprocess
    import sys

    code = "import clformats as cf, sys; cf.make_plan; assert 'pyopencl' not in sys.modules"
    subprocess.run([sys.executable, "-c", code], check=True)


def test_memories_in_one_buffer_know_of_each_other(engine: cf.Engine, stream: cf.Stream) -> None:
    """A view of a buffer waits for what was written through another, and shares its mapping."""
    a, b = D((1500, 1501), "f32"), D((1500, 1501), "f32", "ba")
    values = np.random.default_rng(0).standard_normal(a.dims).astype(np.float32)
    source = cf.from_numpy(values, engine)
    reorder = cf.Reorder(a, b, engine)
    target = cf.Memory(b, engine)
    view = cf.Memory(b, engine, buffer=target.buffer)
    for _ in range(10):
        reorder(stream, source, target)
        assert (cf.to_numpy(view) == values).all()
        source = cf.from_numpy(values := values + 1, engine)
    with view.map("r"), pytest.raises(cf.MappedError):
        target.map("r")


def test_a_mapping_is_entered_once(engine: cf.Engine) -> None:
    m = cf.Memory(D((4,), "s32"), engine)
    mapping = m.map("r")
    with mapping, pytest.raises(cf.MappedError):
        mapping.__enter__()
    with pytest.raises(cf.MappedError, match="once"), mapping:
        pass
    m.map("rw")  # never entered: nothing is locked
    with m.map("w") as a:
        a[:] = 1


def test_reading_maps_are_read_only(engine: cf.Engine) -> None:
    m = cf.Memory(D((4,), "s32"), engine)
    with m.map("r") as a, pytest.raises(ValueError, match="read-only"):
        a[0] = 1


def test_many_threads_map_one_memory(engine: cf.Engine) -> None:
    import threading

    m = cf.Memory(D((4,), "s32"), engine)
    wrong: list[BaseException] = []

    def work() -> None:
        for _ in range(100):
            try:
                with m.map("r"):
                    pass
            except cf.MappedError:
                pass
            except BaseException as error:  # noqa: BLE001  # whatever it is, it is wrong
                wrong.append(error)

    threads = [threading.Thread(target=work) for _ in range(8)]
    for t in threads:
        t.start()
    for t in threads:
        t.join()
    assert not wrong
    assert cf.to_numpy(m).shape == (4,)


def test_events_are_not_kept_for_ever(engine: cf.Engine) -> None:
    m = cf.from_numpy(np.ones((4, 5), np.float32), engine)
    for out_of_order in (False, True):
        stream = cf.Stream(engine, out_of_order=out_of_order)
        for _ in range(100):
            cf.reorder(m, "ba", stream=stream)
            stream.wait()
        assert len(m.usage.readers) < 40


def test_arguments_of_a_wrong_kind_are_told(engine: cf.Engine, stream: cf.Stream) -> None:
    desc = D((2, 3), "f32")
    reorder, m = cf.Reorder(desc, D((2, 3), "f32", "ba"), engine), cf.Memory(desc, engine)
    calls: list[Callable[[], object]] = [
        lambda: reorder(None, m, m),
        lambda: reorder(stream, np.zeros(6), m),  # type: ignore[arg-type]
        lambda: cf.Memory((2, 3), engine),  # type: ignore[arg-type]
        lambda: cf.Memory(desc, "pocl"),  # type: ignore[arg-type]
        lambda: cf.Memory(desc, engine, buffer=b"abc"),
        lambda: cf.Reorder(5, desc, engine),  # type: ignore[arg-type]
        lambda: cf.Engine(5),  # type: ignore[arg-type]
        lambda: cf.Stream("pocl"),  # type: ignore[arg-type]
    ]
    for call in calls:
        with pytest.raises(TypeError, match="expected"):
            call()


def test_engines_of_one_device_share_a_context(engine: cf.Engine) -> None:
    again = cf.Engine(device=engine.device)
    m = cf.from_numpy(np.ones((2, 3), np.float32), again)
    assert (cf.to_numpy(cf.reorder(m, "ba"), stream=cf.Stream(engine)) == 1).all()


def test_memory_of_unknown_sizes_is_refused(engine: cf.Engine) -> None:
    with pytest.raises(cf.InvalidDescriptor, match="give the dims"):
        cf.Memory(D((cf.RUNTIME_DIM, 3), "f32"), engine)


def test_an_image_is_refused_with_what_to_do(engine: cf.Engine) -> None:
    with pytest.raises(cf.Unsupported, match=r"shape \(24, 5, 1\).*IMAGE"):
        cf.Memory(D((5, 2, 3, 4), "bf16", "image_2d_weights_c1_b_fyx"), engine)


@pytest.mark.parametrize("dtype", ["s4", "u4", "u1"])
def test_elements_that_share_bytes_are_mapped_as_bytes(dtype: str, engine: cf.Engine) -> None:
    desc = D((64, 6, 1, 1), dtype, "os_iyx_osv32")
    with cf.Memory(desc, engine).map("r") as a:
        assert a.dtype == np.uint8
        assert a.size == desc.nbytes == 64 * 6 * desc.dtype.bits // 8
