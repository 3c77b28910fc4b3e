"""Kernels that users enqueue themselves: the library's commands come after them."""

from __future__ import annotations

import gc
import threading
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import clformats as cf
from clformats.runtime.arguments import declarations

# Slow enough that who does not wait for it reads what was there before.
SOURCE = """
__kernel void twos(__global float *p)
{
    float value = 2;
    for (int k = 0; k < 20000; ++k) {
        value = value * 0.5f + 1;
    }
    p[get_global_id(0)] = value;
}
__kernel void add(__global const float *a, __global float *b, float c)
{
    b[get_global_id(0)] = a[get_global_id(0)] + c;
}
"""
SHAPE = (2, 16, 8, 8)
SIZE = 2048


def ones(engine: cf.Engine) -> cf.Memory:
    return cf.from_numpy(np.ones(SHAPE, np.float32), engine, format="nChw16c")


def read_by_reorder(memory: cf.Memory) -> Any:
    return cf.reorder(memory, "bfyx").numpy()


def read_on_another_stream(memory: cf.Memory) -> Any:
    stream = cf.Stream(memory.engine)
    result = cf.Memory(cf.MemoryDesc(SHAPE, "f32"), memory.engine)
    cf.Reorder(memory.desc, result.desc, memory.engine)(stream, memory, result)
    return result.numpy(stream=stream)


def read_by_transfer(memory: cf.Memory) -> Any:
    result = np.empty(SHAPE, np.float32)
    cf.transfer(memory, result)
    return result


WAYS = [cf.to_numpy, np.asarray, read_by_reorder, read_on_another_stream, read_by_transfer]


@pytest.mark.parametrize("read", WAYS, ids=lambda f: f.__name__)
@pytest.mark.parametrize("out_of_order", [False, True])
def test_an_unknown_kernel_is_waited_for(
    read: Callable[[cf.Memory], Any], out_of_order: bool, engine: cf.Engine
) -> None:
    stream, memory = cf.Stream(engine, out_of_order=out_of_order), ones(engine)
    kernel = engine.kernel(SOURCE, "twos")
    kernel(stream.queue, (SIZE,), None, memory.buffer)
    assert (read(memory) == 2).all()


@pytest.mark.parametrize("read", WAYS, ids=lambda f: f.__name__)
def test_a_kernel_on_a_queue_that_is_dropped_is_waited_for(
    read: Callable[[cf.Memory], Any], engine: cf.Engine
) -> None:
    memory = ones(engine)
    engine.kernel(SOURCE, "twos")(cf.Stream(engine).queue, (SIZE,), None, memory.buffer)
    assert (read(memory) == 2).all()


def run_on_another_stream(memory: cf.Memory) -> Any:
    stream = cf.Stream(memory.engine)
    add, result = memory.engine.kernel(SOURCE, "add"), ones(memory.engine)
    stream.run(add, (SIZE,), None, memory, result, np.float32(0), reads=[memory])
    return result.numpy(stream=stream)


@pytest.mark.parametrize(
    "read", [cf.to_numpy, read_by_reorder, run_on_another_stream], ids=["map", "reorder", "run"]
)
def test_no_event_is_asked_for_a_queue_that_is_released(
    read: Callable[[cf.Memory], Any], engine: cf.Engine, monkeypatch: Any
) -> None:
    """A driver's event need not keep its queue: under Oclgrind it does not."""
    asked: list[int] = []

    def flush(waits: list[Any]) -> None:
        asked.extend(event.command_queue.int_ptr for event in waits)

    monkeypatch.setattr("clformats.runtime.external.flush", flush)
    memory = ones(engine)
    queue = cf.Stream(engine).queue
    engine.kernel(SOURCE, "twos")(queue, (SIZE,), None, memory.buffer)
    address = queue.int_ptr
    del queue
    assert (read(memory) == 2).all()
    assert address not in asked


def test_every_command_of_a_queue_is_waited_for(engine: cf.Engine) -> None:
    """Not only those before the first wait: who has the queue may enqueue more."""
    import pyopencl as cl

    queue, twos = cf.Stream(engine).queue, engine.kernel(SOURCE, "twos")
    complete = cl.command_execution_status.COMPLETE
    for _ in range(2):
        memory, gate = ones(engine), cl.UserEvent(engine.context)
        twos(queue, (SIZE,), None, memory.buffer, wait_for=[gate])
        threading.Timer(0.1, gate.set_status, (complete,)).start()
        assert (read_on_another_stream(memory) == 2).all()


def test_a_queue_and_a_buffer_of_the_users(engine: cf.Engine) -> None:
    import pyopencl as cl

    queue = cl.CommandQueue(engine.context)
    stream = cf.Stream(engine, queue=queue)
    buffer = cl.Buffer(engine.context, cl.mem_flags.READ_WRITE, 4 * SIZE)
    memory = cf.Memory(cf.MemoryDesc(SHAPE, "f32"), engine, buffer=buffer)
    engine.kernel(SOURCE, "twos")(queue, (SIZE,), None, buffer)
    assert (memory.numpy() == 2).all()
    assert stream.queue is queue


def test_an_array_over_a_memory_object(engine: cf.Engine) -> None:
    """What pyopencl's array is told to compute later is waited for too."""
    stream, memory = cf.Stream(engine), cf.from_numpy(np.ones(SIZE, np.float32), engine)
    array = cf.to_array(memory, stream=stream)
    engine.kernel(SOURCE, "twos")(stream.queue, (SIZE,), None, array.data)  # type: ignore[arg-type]
    array += 3
    assert (memory.numpy() == 5).all()


def test_run_lets_streams_wait_for_each_other(engine: cf.Engine) -> None:
    streams = [cf.Stream(engine, out_of_order=k == 1) for k in range(3)]
    twos, add = (engine.kernel(SOURCE, name) for name in ("twos", "add"))
    a, b, c = (ones(engine) for _ in range(3))
    event = streams[0].run(twos, (SIZE,), None, a)
    streams[1].run(add, (SIZE,), None, a, b, np.float32(5), reads=[a])
    streams[2].run(add, (SIZE,), (1,), a, c, np.float32(7), reads=[a])
    streams[1].run(twos, (SIZE,), None, a)
    assert (c.numpy() == 9).all()
    assert (b.numpy() == 7).all()
    assert (a.numpy() == 2).all()
    assert event.done


def test_run_makes_nothing_wait_that_need_not(engine: cf.Engine) -> None:
    """Tracked memory does not wait for other memory's commands, nor readers for each other."""
    import pyopencl as cl

    gate = cl.UserEvent(engine.context)
    held, free = cf.Stream(engine), cf.Stream(engine)
    twos, add = (engine.kernel(SOURCE, name) for name in ("twos", "add"))
    a, b, c = (ones(engine) for _ in range(3))
    held.after(gate)
    held.run(add, (SIZE,), None, a, b, np.float32(1), reads=[a])
    try:
        free.run(add, (SIZE,), None, a, c, np.float32(2), reads=[a])
        assert (c.numpy() == 3).all()
        later = free.run(twos, (SIZE,), None, a)
        assert not later.done
    finally:
        gate.set_status(cl.command_execution_status.COMPLETE)
    assert (a.numpy() == 2).all()
    assert (b.numpy() == 2).all()


IMAGES = """
kernel void draw(write_only image2d_t to, const float by)
{ write_imagef(to, (int2)(get_global_id(0), get_global_id(1)), by); }
kernel void look(read_only image2d_t from, global float *to)
{ to[get_global_id(0)] = read_imagef(from, (int2)(get_global_id(0), 1)).y; }
"""


def test_images_of_the_users_are_waited_for(engine: cf.Engine) -> None:
    import pyopencl as cl

    if not engine.device.image_support:
        pytest.skip("the device has no images")
    kind = cl.ImageFormat(cl.channel_order.RGBA, cl.channel_type.FLOAT)
    image = cl.create_image(engine.context, cl.mem_flags.READ_WRITE, kind, (SIZE, 2))
    draw, look = (engine.kernel(IMAGES, name) for name in ("draw", "look"))
    a, b, gate = ones(engine), ones(engine), cl.UserEvent(engine.context)
    held, free = cf.Stream(engine), cf.Stream(engine)
    held.after(gate)
    held.run(draw, (SIZE, 2), None, image, np.float32(3))
    later = [free.run(look, (SIZE,), None, image, memory, reads=[image]) for memory in (a, b)]
    assert not any(event.done for event in later)
    gate.set_status(cl.command_execution_status.COMPLETE)
    assert (a.numpy() == 3).all()
    held.run(draw, (SIZE, 2), None, image, np.float32(4)).wait()
    assert (b.numpy() == 3).all()


def test_what_users_tell(engine: cf.Engine) -> None:
    import pyopencl as cl

    queue = cl.CommandQueue(engine.context)  # the library never saw it
    twos, add = (engine.kernel(SOURCE, name) for name in ("twos", "add"))
    a, b = ones(engine), ones(engine)
    a.written_by(twos(queue, (SIZE,), None, a.buffer))
    assert (a.numpy() == 2).all()
    event = add(queue, (SIZE,), None, a.buffer, b.buffer, np.float32(1), wait_for=a.events)
    a.read_by(event)
    b.written_by(cf.Event(event))
    assert (read_by_reorder(b) == 3).all()
    gate = cl.UserEvent(engine.context)
    a.read_by(gate)
    later = cf.Stream(engine).run(twos, (SIZE,), None, a)
    assert not later.done
    assert gate.int_ptr in [e.int_ptr for e in a.events] or a.events
    gate.set_status(cl.command_execution_status.COMPLETE)
    later.wait()
    with pytest.raises(cf.InvalidArgument, match="event: got 5"):
        a.written_by(5)  # type: ignore[arg-type]


def test_a_command_told_of_keeps_those_before(engine: cf.Engine) -> None:
    """A kernel that waits for nothing may end before the reorder that it should wait for."""
    import pyopencl as cl

    gate, held = cl.UserEvent(engine.context), cf.Stream(engine)
    a, b = ones(engine), ones(engine)
    held.after(gate)
    cf.Reorder(a.desc, b.desc, engine)(held, a, b)
    b.written_by(cl.enqueue_marker(cl.CommandQueue(engine.context)))
    late = b.map("r").start()
    assert late.event is not None
    assert not late.event.done
    gate.set_status(cl.command_execution_status.COMPLETE)
    with late as flat:
        assert (flat == 1).all()


def test_run_refuses(engine: cf.Engine, stream: cf.Stream) -> None:
    import pyopencl as cl

    memory, twos = ones(engine), engine.kernel(SOURCE, "twos")
    with memory.map("r"), pytest.raises(cf.MappedError, match="cannot run a kernel on it"):
        stream.run(twos, (SIZE,), None, memory)
    with pytest.raises(cf.InvalidArgument, match="reads"):
        stream.run(twos, (SIZE,), None, memory, reads=[ones(engine)])
    with pytest.raises(cf.InvalidArgument, match=r"global_size: got 2048"):
        stream.run(twos, SIZE, None, memory)  # type: ignore[arg-type]
    with pytest.raises(cf.InvalidArgument, match="kernel: got 'twos'"):
        stream.run("twos", (SIZE,), None, memory)  # type: ignore[arg-type]
    with pytest.raises(cf.DeviceError, match="no buffer"):
        stream.run(twos, (SIZE,), None, cf.Memory(memory.desc, engine, buffer=None))
    other = cf.Engine(context=cl.Context([engine.device]), device=engine.device)
    with pytest.raises(cf.DeviceError, match="another OpenCL context"):
        stream.run(twos, (SIZE,), None, ones(other))
    with pytest.raises(
        cf.DeviceError, match=r"enqueueing twos failed.*local_size \(1048576,\): None"
    ):
        stream.run(twos, (SIZE,), (1 << 20,), memory)


def test_wrong_arguments_are_named(engine: cf.Engine) -> None:
    stream, a, b = cf.Stream(engine), ones(engine), ones(engine)
    add = engine.kernel(SOURCE, "add")
    for few in ((a, b), (a, b, np.float32(1), np.float32(2))):
        with pytest.raises(cf.InvalidArgument, match=f"add takes 3 arguments, got {len(few)}"):
            stream.run(add, (SIZE,), None, *few)
    host = np.ones(SHAPE, np.float32)
    with pytest.raises(
        cf.DeviceError, match="argument 2 is an array of numpy's: put it on the dev"
    ):
        stream.run(add, (SIZE,), None, a, host, np.float32(1))
    two = np.ones(2, np.float32)  # of 8 bytes: pyopencl and pocl take them for a pointer, and crash
    with pytest.raises(cf.InvalidArgument, match="argument 2 is an array of numpy's"):
        stream.run(add, (SIZE,), None, a, two, np.float32(1))
    for runs in (stream, cf.Recording(engine, inputs={"a": a}, outputs={"b": b})):
        with pytest.raises(
            cf.DeviceError,
            match=r"argument 3 is of type float64, the kernel has 'float \w+': give np.float32\(1",
        ):
            runs.run(add, (SIZE,), None, a, b, np.float64(1), reads=[a])
    with pytest.raises(cf.DeviceError, match=r"argument 3 is of type int, .*np.float32\(3\)"):
        stream.run(add, (SIZE,), None, a, b, 3)
    with pytest.raises(cf.DeviceError, match="argument 2 is of type str: give buffers as Memory"):
        stream.run(add, (SIZE,), None, a, "b", np.float32(1))
    for reads in (None, 3, [3], ["b"]):
        with pytest.raises(cf.InvalidArgument, match="reads: "):
            stream.run(add, (SIZE,), None, a, b, np.float32(1), reads=reads)  # type: ignore[arg-type]


@pytest.mark.parametrize(
    ("declared", "given", "wanted"),
    [
        ("float by", np.int32(3), r"np.float32\(3\)"),
        ("float by", np.array(3, np.uint32), "np.float32"),
        ("const int n", np.float32(3), r"np.int32\(3.0\)"),
        ("ulong n", np.float64(2.5), r"np.uint64\(2.5\)"),
    ],
)
def test_bits_of_integers_are_not_taken_for_floats(
    engine: cf.Engine, declared: str, given: Any, wanted: str
) -> None:
    stream, a = cf.Stream(engine), ones(engine)
    kernel = engine.kernel(f"kernel void f(global float *p, {declared}) {{}}", "f")
    for runs in (stream, cf.Recording(engine, inputs={}, outputs={"a": a})):
        with pytest.raises(cf.InvalidArgument, match=f"argument 2 of f: .*'{declared}'.*{wanted}"):
            runs.run(kernel, (1,), None, a, given)


def test_pyopencl_converts_where_it_was_told_types(engine: cf.Engine) -> None:
    import pyopencl as cl

    stream, a = cf.Stream(engine), ones(engine)
    program = cl.Program(engine.context, "kernel void f(global float *p, float by) { *p = by; }")
    kernel = program.build().f
    kernel.set_scalar_arg_dtypes([None, np.float32])
    stream.run(kernel, (1,), None, a, np.int32(3))
    assert cf.to_numpy(a).flat[0] == 3


def test_images_and_buffers_are_not_taken_for_each_other(engine: cf.Engine) -> None:
    """PoCL takes a buffer for an image, and the process dies."""
    stream, plain = cf.Stream(engine), ones(engine)
    image = cf.Memory(cf.MemoryDesc((1, 4, 2, 3), "f32", "nh|Cw|4c"), engine)
    source = "kernel void f(read_only image2d_t from, global float4 *to, float by) {}"
    kernel = engine.kernel(source, "f")
    stream.run(kernel, (1,), None, image, plain, np.float32(1), reads=[image])
    for runs in (stream, cf.Recording(engine, inputs={}, outputs={"a": plain})):
        with pytest.raises(
            cf.InvalidArgument, match=r"1 of f: .*image2d_t from', expected an image"
        ):
            runs.run(kernel, (1,), None, plain, plain, np.float32(1))
    with pytest.raises(cf.InvalidArgument, match=r"2 of f: .*float4 \*to', expected a buffer"):
        stream.run(kernel, (1,), None, image, image, np.float32(1))
    hidden = "#define IN read_only image2d_t from, int"
    other = engine.kernel(f"{hidden}\nkernel void f(IN x, global float4 *to, float by) {{}}", "f")
    stream.run(other, (1,), None, image, np.int32(1), plain, np.float32(1), reads=[image])


@pytest.mark.parametrize("size", [SIZE, (SIZE / 2,), (-1,), ("1",), (), (1, 1, 1, 1), None])
def test_sizes_are_tuples_of_integers(engine: cf.Engine, size: Any) -> None:
    stream, a = cf.Stream(engine), ones(engine)
    kernel = engine.kernel("kernel void f(global float *p) {}", "f")
    for runs in (stream, cf.Recording(engine, inputs={}, outputs={"a": a})):
        with pytest.raises(cf.InvalidArgument, match=r"global_size: got .* a tuple of integers"):
            runs.run(kernel, size, None, a)
        for local in ((0,), (1, 1), 1):
            with pytest.raises(cf.InvalidArgument, match="local_size: got"):
                runs.run(kernel, (SIZE,), local, a)  # type: ignore[arg-type]
    stream.run(kernel, (np.int64(SIZE),), [1], a)
    with pytest.raises(cf.InvalidArgument, match=r"reads: got Memory.*expected a list"):
        stream.run(kernel, (SIZE,), None, a, reads=a)  # type: ignore[arg-type]


def test_declarations_of_arguments() -> None:
    source = "kernel void f(global int *p,\n  const  uint by) {} kernel void ff(int a) {}"
    assert declarations(source, "f") == ["global int *p", "const uint by"]
    assert declarations(source, "ff") == ["int a"]
    assert declarations(source, "g") == declarations(source + source, "f") == []


def test_a_stream_is_a_context_manager(engine: cf.Engine) -> None:
    with cf.Stream(engine) as stream:
        event = stream.run(engine.kernel(SOURCE, "twos"), (SIZE,), None, ones(engine))
    assert event.done


def test_an_array_whose_mapping_has_ended_is_empty(engine: cf.Engine) -> None:
    memory = ones(engine)
    with memory.map("rw") as flat:
        flat[0] = 7
    with pytest.raises(IndexError):
        flat[0]
    with pytest.raises(IndexError):
        flat[0] = 8
    assert flat.size == 0
    assert memory.numpy()[0, 0, 0, 0] == 7


def test_transfer_is_a_function_whatever_was_imported(engine: cf.Engine) -> None:
    """The folder of the same name takes the name in the package when it is imported."""
    import inspect

    import clformats.transfers.pieces  # noqa: F401  # for what it does to the name

    assert "engine" in inspect.signature(cf.transfer).parameters
    memory, result = ones(engine), np.zeros(SHAPE, np.float32)
    cf.transfer(memory, result)
    assert result.all()


def test_a_context_that_is_dropped_with_its_queue_holds_nobody_up(engine: cf.Engine) -> None:
    """Intel's runtime forgets a context that only a queue keeps, and asking for it then fails."""
    import pyopencl as cl

    memory = cf.from_numpy(np.ones(8, np.float32), engine)
    assert memory.buffer is not None
    other = cf.Engine(device=engine.device, context=cl.Context([engine.device]))
    assert other.queue is not None
    del other
    gc.collect()
    assert cf.to_numpy(memory).sum() == 8
