"""Calls that users of pyopencl and numpy would guess."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import clformats as cf
from clformats.reorders.given import as_stream

SHAPE = (2, 17, 5, 4)
SRC, DST = "f32:bfyx:2x17x5x4", "f32:nChw16c:2x17x5x4"
X = np.random.default_rng(0).random(SHAPE, np.float32)


def test_descriptors_by_their_text(engine: cf.Engine, stream: cf.Stream) -> None:
    reorder = cf.Reorder(SRC, DST, engine)
    assert str(reorder.src) == SRC
    result = cf.Memory(DST, engine)
    reorder(stream, cf.from_numpy(X, engine), result)
    assert (result.numpy() == X).all()
    assert (cf.unpack(cf.pack(X, DST), DST) == X).all()
    assert cf.same_bytes(SRC, SRC)
    assert str(cf.make_plan(SRC, DST)) == str(cf.make_plan(reorder.src, reorder.dst))
    doubled = cf.Memory(SRC, engine)
    cf.Map("z = x + x", engine, x=DST, z=SRC)(stream, x=result, z=doubled)
    assert (doubled.numpy() == X + X).all()
    assert cf.HostMemory(SRC).array.size == X.size
    with pytest.raises(cf.InvalidDescriptor, match="cannot read the descriptor 'bfyx'"):
        cf.Memory("bfyx", engine)


def test_descriptors_by_their_text_without_a_device() -> None:
    desc = cf.MemoryDesc.parse(DST)
    assert cf.index_source(DST) == cf.index_source(desc)
    assert cf.jit_constants({"INPUT0": DST}) == cf.jit_constants({"INPUT0": desc})
    assert cf.notations.render_desc(DST, "xla") == cf.notations.render_desc(desc, "xla")
    weights = cf.MemoryDesc((8, 5, 3, 3), "f32", "oihw")
    changed = cf.winograd(str(weights), "winograd_2x3_s1_weights")
    assert changed == cf.winograd(weights, "winograd_2x3_s1_weights")
    values = np.ones(weights.dims, np.float32)
    got = cf.transform(values, str(weights), str(changed))
    assert (got == cf.transform(values, weights, changed)).all()


def test_memory_in_place_of_a_descriptor_is_answered_with_desc() -> None:
    memory = cf.HostMemory.of(np.zeros((2, 3), np.float32))
    with pytest.raises(cf.InvalidArgument, match=r"dst: got Host.*give its \.desc"):
        cf.make_plan(memory.desc, memory)  # type: ignore[arg-type]
    assert cf.make_plan(memory.desc, memory.desc).problem.src == memory.desc


def test_arrays_of_numpys_own_integers_are_answered_with_a_conversion() -> None:
    array = np.arange(6, dtype=np.uint32).reshape(2, 3)
    with pytest.raises(cf.InvalidDescriptor, match=r"uint32.*array\.astype\(np\.int32\)$"):
        cf.pack(array, "ab")
    assert (cf.pack(array.astype(np.int32), "ab") == array.reshape(-1)).all()
    with pytest.raises(cf.InvalidDescriptor, match=r"of one$"):
        cf.pack(array.astype(complex), "ab")


def test_pack_by_a_format_alone() -> None:
    desc = cf.MemoryDesc(SHAPE, "f32", "nChw16c")
    for format in ("nChw16c", "NCHW16c", desc.format):
        assert (cf.pack(X, format) == cf.pack(X, desc)).all()
    photo = np.arange(105, dtype=np.uint8).reshape(5, 7, 3)
    assert (cf.pack(photo, "byxf", axes="hwc") == photo.ravel()).all()


def test_reorder_takes_arrays_and_out(engine: cf.Engine, stream: cf.Stream) -> None:
    result = cf.reorder(X, "nChw16c")
    assert str(result.desc) == DST
    assert (result.numpy() == X).all()
    out = cf.Memory("f16:byxf:2x17x5x4", engine)
    assert cf.reorder(X, out=out) is out
    assert (out.numpy() == X.astype(np.float16)).all()
    assert cf.reorder(out, "bfyx", stream=stream).numpy(stream=stream).dtype == np.float16
    with pytest.raises(cf.InvalidArgument, match="says format and element type"):
        cf.reorder(X, "bfyx", out=out)
    with pytest.raises(cf.InvalidArgument, match="expected Memory or an array"):
        cf.reorder(5)


def test_memory_has_the_attributes_of_an_array(engine: cf.Engine) -> None:
    memory = cf.Memory(DST, engine)
    assert (memory.shape, memory.ndim, memory.size) == (SHAPE, 4, X.size)
    assert memory.dtype == memory.desc.dtype
    assert memory.nbytes == memory.desc.nbytes


def test_engines_by_kind_and_by_pyopencls_objects(engine: cf.Engine) -> None:
    import pyopencl as cl

    kinds = {"cpu": cl.device_type.CPU, "gpu": cl.device_type.GPU}
    for kind, flag in kinds.items():
        if any(d.type & flag for d in cf.devices()):
            assert cf.Engine(kind).device.type & flag
        else:
            with pytest.raises(cf.DeviceError, match=kind):
                cf.Engine(kind)
    queue = cl.CommandQueue(engine.context, engine.device)
    for given in (queue, engine.context, engine.device):
        assert cf.Engine(given).device == engine.device
    assert cf.Engine(queue).context == engine.context
    with pytest.raises(cf.InvalidArgument, match="name: got 3"):
        cf.Engine(3)  # type: ignore[arg-type]
    with pytest.raises(cf.DeviceError, match="give one of them"):
        cf.Engine(queue, context=engine.context)


def buffers(engine: cf.Engine) -> tuple[Any, Any]:
    import pyopencl as cl

    flags = cl.mem_flags.READ_WRITE
    source = cl.Buffer(engine.context, flags | cl.mem_flags.COPY_HOST_PTR, hostbuf=X)
    return source, cl.Buffer(engine.context, flags, cf.MemoryDesc.parse(DST).nbytes)


def test_reorders_take_pyopencls_objects(engine: cf.Engine, stream: cf.Stream) -> None:
    import pyopencl as cl
    import pyopencl.array as cla

    queue = cl.CommandQueue(engine.context, engine.device)
    reorder, packed = cf.Reorder(SRC, DST, engine), cf.pack(X, DST)
    a, b = buffers(engine)
    got = np.empty_like(packed)
    reorder(queue, a, b)
    cl.enqueue_copy(queue, got, b)
    assert (got == packed).all()
    source, target = cla.to_device(queue, X), cla.zeros(queue, packed.size, np.float32)
    reorder(queue, source, target)
    assert (target.get() == packed).all()
    reorder(stream, source, cf.Memory(DST, engine)).wait()
    memory = cf.from_numpy(X, engine)
    reorder(queue, memory, b)
    cl.enqueue_copy(queue, got, b)
    assert (got == packed).all()
    z = cla.zeros(queue, X.size, np.float32)
    cf.Map("z = x * 2", engine, x=SRC, z=SRC)(queue, x=source, z=z)
    assert (z.get() == X.ravel() * 2).all()


def test_a_queue_shares_the_engine_of_its_context(engine: cf.Engine) -> None:
    """So that its calls find the programs that are built."""
    import pyopencl as cl

    own = as_stream(cl.CommandQueue(engine.context, engine.device), engine)
    assert own.engine is engine
    other = cl.Context([engine.device])
    assert as_stream(cl.CommandQueue(other, engine.device), engine).engine.context == other


def test_what_is_no_memory_is_refused(engine: cf.Engine, stream: cf.Stream) -> None:
    reorder, memory = cf.Reorder(SRC, DST, engine), cf.Memory(SRC, engine)
    with pytest.raises(cf.InvalidArgument, match="dst: got 5 of type int, expected Memory"):
        reorder(stream, memory, 5)  # type: ignore[arg-type]
    with pytest.raises(cf.InvalidArgument, match="stream: got Memory"):
        reorder(memory, memory, memory)  # type: ignore[arg-type]
    with pytest.raises(cf.DeviceError, match="has 2720 bytes"):
        reorder(stream, memory, buffers(engine)[0])


@pytest.mark.parametrize("shape", [(1, 17, 1, 1), (2, 17, 1, 1), (1, 1, 1, 4)])
def test_scales_broadcast_as_in_numpy(shape: tuple[int, ...], engine: cf.Engine) -> None:
    scale = np.arange(1, 1 + np.prod(shape), dtype=np.float32).reshape(shape)
    attr, stream = cf.Attr(src_scale=scale), cf.Stream(engine)
    result = cf.Memory(DST, engine)
    cf.Reorder(SRC, DST, engine, attr=attr)(stream, cf.from_numpy(X, engine), result)
    assert (result.numpy() == X * scale).all()


def test_scales_that_do_not_fit_are_refused(engine: cf.Engine) -> None:
    with pytest.raises(cf.InvalidAttr, match=r"values.reshape\(1, 17, 1, 1\)"):
        cf.Attr(src_scale=np.ones(17))
    for shape, said in (((17, 1, 1), "3 axes"), ((1, 16, 1, 1), "expected 17")):
        with pytest.raises(cf.InvalidAttr, match=said):
            cf.Reorder(SRC, DST, engine, attr=cf.Attr(src_scale=np.ones(shape)))


def test_a_forgotten_stream_is_told(engine: cf.Engine) -> None:
    reorder = cf.Reorder("f32:ab:3x5", "f32:ba:3x5", engine)
    src, dst = cf.Memory(reorder.src, engine), cf.Memory(reorder.dst, engine)
    mapped = cf.Map("z = x * 2", engine, x=reorder.src, z=reorder.src)
    calls: list[Callable[[], object]] = [
        lambda: reorder(src, dst),  # type: ignore[arg-type]
        lambda: reorder(src=src, dst=dst),
        lambda: mapped(x=src, z=src),
    ]
    for call in calls:
        with pytest.raises(cf.InvalidArgument, match="expected a stream too, in front"):
            call()


def test_hidden_elements_do_not_reach_a_device(engine: cf.Engine) -> None:
    array = np.ma.masked_array(np.ones((2, 3), np.float32), np.eye(2, 3, dtype=bool))
    target = cf.Memory("f32:ab:2x3", engine)
    calls: list[Callable[[], object]] = [
        lambda: cf.from_numpy(array, engine),
        lambda: cf.from_host(array, engine),
        lambda: cf.transfer(array, target),
        lambda: cf.reorder(array, "ba"),
    ]
    for call in calls:
        with pytest.raises(cf.InvalidArgument, match="2 elements are hidden"):
            call()


def test_a_format_in_the_engines_place_is_told() -> None:
    with pytest.raises(cf.InvalidArgument, match="as format='nChw16c'"):
        cf.from_numpy(np.ones((1, 2, 3, 4), np.float32), "nChw16c")  # type: ignore[arg-type]


def test_a_descriptor_says_format_and_type(engine: cf.Engine) -> None:
    memory = cf.from_numpy(np.arange(15, dtype=np.float32).reshape(3, 5), engine)
    desc = cf.MemoryDesc((3, 5), "f16", "ba")
    for given in (desc, str(desc)):
        out = cf.reorder(memory, given)
        assert out.desc == desc
        assert (out.numpy() == memory.numpy()).all()
    with pytest.raises(cf.InvalidArgument, match="leave dtype out"):
        cf.reorder(memory, desc, dtype="f32")
    with pytest.raises(cf.InvalidDescriptor):
        cf.reorder(memory, "f16:ba:5x3")
