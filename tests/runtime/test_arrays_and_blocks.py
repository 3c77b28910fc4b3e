"""Names that arrays have, `with` blocks, and pyopencl's arrays of physical elements."""

from __future__ import annotations

import numpy as np
import pytest

import clformats as cf
from clformats.runtime import engine as engine_module

DESC = cf.MemoryDesc((2, 17, 5, 4), "f16", "nChw16c")


def test_descriptors_have_the_names_of_arrays(engine: cf.Engine) -> None:
    array = np.zeros(DESC.dims, np.float16)
    host, memory = cf.HostMemory(DESC), cf.Memory(DESC, engine)
    for thing in (DESC, host, memory):
        for name in ("shape", "ndim", "size", "itemsize"):
            assert getattr(thing, name) == getattr(array, name)
    assert host.dtype == memory.dtype == DESC.dtype
    assert cf.MemoryDesc((3, 5), "s4").itemsize == 1


def test_host_memory_gives_its_tensor() -> None:
    x = np.arange(680, dtype=np.float16).reshape(DESC.dims)
    assert np.array_equal(cf.HostMemory(DESC, cf.pack(x, DESC)).numpy(), x)


def test_host_memory_takes_a_photograph_as_it_lies() -> None:
    photo = np.arange(105, dtype=np.uint8).reshape(5, 7, 3)
    host = cf.HostMemory("u8:byxf:1x3x5x7", photo)
    assert np.array_equal(host.numpy()[0], photo.transpose(2, 0, 1))
    assert np.shares_memory(host.array, photo)
    with pytest.raises(cf.InvalidDescriptor, match="just as many"):
        cf.HostMemory("u8:byxf:1x3x5x6", photo)


def test_leaving_a_block_gives_the_buffer_back(engine: cf.Engine) -> None:
    x = np.ones(DESC.dims, np.float16)
    with cf.from_numpy(x, engine, format="nChw16c") as memory:
        assert np.array_equal(memory.numpy(), x)
    with pytest.raises(cf.DeviceError, match="no buffer"):
        memory.numpy()
    memory.release()


def test_an_engine_keeps_the_latest_programs(
    engine: cf.Engine, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(engine_module, "KEPT_PROGRAMS", 2)
    sources = [f"kernel void f(global int *p) {{ p[0] = {k}; }}" for k in range(3)]
    with cf.Engine(device=engine.device) as own:
        for k in (0, 1, 0, 2):
            own.kernel(sources[k], "f")
        assert [own.has_built(source) for source in sources] == [True, False, True]


def test_an_engine_lets_its_programs_go() -> None:
    with cf.Engine() as engine:
        kernel = engine.kernel("__kernel void f(__global int *p) { p[0] = 1; }", "f")
        memory = cf.Memory("s32:a:1", engine)
        cf.Stream(engine).run(kernel, (1,), None, memory)
        assert engine.programs_built
    assert not engine.programs_built
    assert memory.numpy()[0] == 1


def test_reprs_are_short(engine: cf.Engine, stream: cf.Stream) -> None:
    event = stream.run(
        engine.kernel("__kernel void g(__global int *p) { p[0] = 1; }", "g"),
        (1,), None, cf.Memory("s32:a:1", engine),
    )  # fmt: skip
    event.wait()
    assert repr(event) == "Event(done)"
    mapping = cf.Memory(DESC, engine).map("r")
    assert repr(mapping) == f"Mapping(Memory({str(DESC)!r}), 'r', new)"
    assert repr(cf.IndexKernels(DESC, engine)) == f"IndexKernels({str(DESC)!r})"


# --- pyopencl's arrays ----------------------------------------------------------------------------


def test_an_array_of_the_physical_elements(engine: cf.Engine) -> None:
    x = np.random.default_rng(0).random(DESC.dims).astype(np.float16)
    memory = cf.from_numpy(x, engine, format="nChw16c")
    array = cf.to_array(memory, physical=True)
    assert array.shape == (2, 2, 5, 4, 16)
    assert np.array_equal(array.get(), memory.physical())
    with pytest.raises(cf.InvalidDescriptor, match="physical=True"):
        cf.to_array(memory)
    with pytest.raises(cf.InvalidDescriptor, match="has no strides"):
        cf.to_array(cf.Memory("s4:ab:4x4", engine), physical=True)


def test_arrays_in_a_format_of_their_own(engine: cf.Engine) -> None:
    import pyopencl as cl
    import pyopencl.array as cla

    queue = cl.CommandQueue(engine.context, engine.device)
    x = np.arange(105, dtype=np.uint8).reshape(1, 3, 5, 7)
    held = np.ascontiguousarray(x.transpose(0, 2, 3, 1)).reshape(x.shape)
    memory = cf.from_array(cla.to_device(queue, held), format="byxf")
    assert np.array_equal(memory.numpy(), x)
    with pytest.raises(cf.InvalidDescriptor, match=r"cf\.Memory"):
        cf.from_array(cla.to_device(queue, held), format="nChw16c")


def test_the_buffer_says_which_context(engine: cf.Engine) -> None:
    import pyopencl as cl
    import pyopencl.array as cla

    context = cl.Context([engine.device])  # Intel's runtime forgets one that only a queue keeps
    queue = cl.CommandQueue(context)
    array = cla.zeros(queue, DESC.nbytes // 2, np.float16)
    for buffer in (array, array.base_data):
        memory = cf.Memory(DESC, buffer=buffer)
        assert memory.context == queue.context
        assert not memory.numpy().any()
