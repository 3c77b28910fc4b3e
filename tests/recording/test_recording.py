"""Recordings and replays: the bytes of the calls, or a refusal."""

from __future__ import annotations

import gc
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any
from weakref import finalize

import numpy as np
import pyopencl as cl
import pytest

import clformats as cf
from clformats.recording.arena import Piece, placed
from clformats.recording.export import exported_reorder
from clformats.recording.program import TEMPORARY
from clformats.runtime.scalar import TYPES, Scalar
from tests.recording_support import bytes_of, poison, sequence

DIMS = (2, 17, 5, 4)
PLAIN = cf.MemoryDesc(DIMS, "f32", "nchw")
BLOCKED = cf.MemoryDesc(DIMS, "f16", "nChw16c")
DOUBLE = "kernel void twice(global float *p) { p[get_global_id(0)] *= 2; }"
SCALE = """kernel void scaled(global const float *a, const float by, global float *b)
{ b[get_global_id(0)] = a[get_global_id(0)] * by; }"""

pytestmark = pytest.mark.device


class Three:
    """f32 to f16 in blocks, back, and a kernel with a scalar by name."""

    def __init__(self, engine: cf.Engine) -> None:
        self.values = np.random.default_rng(3).integers(-99, 99, DIMS).astype(np.float32)
        self.photo = cf.from_numpy(self.values, engine, format="nchw")
        self.packed = cf.Memory(PLAIN, engine)
        self.recording = cf.Recording(
            engine, inputs={"photo": self.photo}, outputs={"packed": self.packed}
        )
        half, plain = cf.Memory(BLOCKED, engine), cf.Memory(PLAIN, engine)
        self.by = self.recording.scalar("by")
        cf.Reorder(PLAIN, BLOCKED, engine)(self.recording, self.photo, half)
        cf.Reorder(BLOCKED, PLAIN, engine)(self.recording, half, plain)
        self.recording.run(
            engine.kernel(SCALE, "scaled"), (PLAIN.nelems,), None, plain, self.by, self.packed,
            reads=[plain],
        )  # fmt: skip


@pytest.fixture(scope="module")
def three(engine: cf.Engine) -> Three:
    return Three(engine)


@pytest.mark.parametrize("seed", [1, 5])
def test_a_replay_repeats_the_calls(engine: cf.Engine, stream: cf.Stream, seed: int) -> None:
    made = sequence(engine, seed, most=8)
    wanted = made.called(stream)
    replay = made.recorded().replay()
    for _ in range(2):
        for memory in made.outputs.values():
            poison(memory)
        replay(stream, **made.scalars)
        assert made.held() == wanted


class Token:
    """On an object of pyopencl's, which goes with it."""


def test_kernels_go_before_their_buffers_and_the_arena_last(three: Three) -> None:
    """Nothing goes before what has it, and of parts of a buffer the last made goes first."""
    replay, gone = three.recording.replay(), list[str]()
    bound = replay._bound
    found = [("kernel", kernel) for kernel, *_ in bound._steps]
    parts = [k for k, b in enumerate(replay._program.buffers) if b.role == TEMPORARY]
    found += [(f"part {k}", bound._buffers[k]) for k in parts]
    for name, one in [*found, ("the arena", bound._arena)]:
        one.token = Token()
        finalize(one.token, gone.append, name)
    del found, one, replay, bound
    gc.collect()
    assert len(parts) == 2
    assert gone == ["kernel"] * 3 + [f"part {k}" for k in reversed(parts)] + ["the arena"]


def test_memory_and_scalars_are_exchanged_by_name(three: Three, stream: cf.Stream) -> None:
    engine, replay = stream.engine, three.recording.replay()
    assert replay.inputs == {"photo": PLAIN}
    assert replay.outputs == {"packed": PLAIN}
    assert replay.scalars == {"by": "f32"}
    replay(stream, by=2)
    assert (three.packed.numpy() == three.values * 2).all()
    other, result = cf.from_numpy(three.values + 1, engine), cf.Memory(PLAIN, engine)
    replay(stream, photo=other, packed=result, by=np.float32(0.5))
    assert (result.numpy() == (three.values + 1) / 2).all()
    assert (three.packed.numpy() == three.values * 2).all()
    other.set_buffer(cf.from_numpy(three.values + 3, engine).buffer)
    replay(stream)  # what was given before, in the buffer of now
    assert (result.numpy() == (three.values + 3) / 2).all()


def test_buffers_of_pyopencl_are_taken(three: Three, stream: cf.Stream) -> None:
    result = cl.Buffer(stream.context, cl.mem_flags.READ_WRITE, PLAIN.nbytes)
    three.recording.replay()(stream, packed=result, by=1)
    assert (cf.Memory(PLAIN, stream.engine, buffer=result).numpy() == three.values).all()


@pytest.mark.parametrize("out_of_order", [False, True])
def test_order_with_other_commands(three: Three, engine: cf.Engine, out_of_order: bool) -> None:
    replay, other = three.recording.replay(), cf.Stream(engine, out_of_order=out_of_order)
    own = cf.Stream(engine, out_of_order=out_of_order)
    photo, result, last = (cf.Memory(PLAIN, engine) for _ in range(3))
    fill, move = cf.Reorder(PLAIN, PLAIN, engine), cf.Reorder(PLAIN, PLAIN, engine)
    for k in range(10):
        source = cf.from_numpy(three.values + k, engine)
        fill(other, source, photo)
        replay(own, photo=photo, packed=result, by=1)
        move(other, result, last)
        assert (last.numpy() == three.values + k).all()


def test_one_replay_from_several_threads(three: Three, engine: cf.Engine) -> None:
    replay = three.recording.replay()

    def work(k: int) -> bool:
        own, right = cf.Stream(engine), True
        source, result = cf.from_numpy(three.values + k, engine), cf.Memory(PLAIN, engine)
        for _ in range(10):
            replay(own, photo=source, packed=result, by=1)
            right = right and bool((result.numpy() == three.values + k).all())
        return right

    with ThreadPoolExecutor(4) as pool:
        assert all(pool.map(work, range(4)))


def test_temporaries_begin_with_zeros(engine: cf.Engine, stream: cf.Stream) -> None:
    """As new memory objects do: a region is written, and the whole is read."""
    whole = cf.Memory(cf.MemoryDesc((2, 34, 5, 4), "f32", "nchw"), engine)
    part = whole.submemory(DIMS, (0, 17, 0, 0))
    source, result = cf.Memory(PLAIN, engine), cf.Memory(whole.desc, engine)
    recording = cf.Recording(engine, inputs={"a": source}, outputs={"b": result})
    cf.Reorder(PLAIN, part.desc, engine)(recording, source, part)
    cf.Reorder(whole.desc, result.desc, engine)(recording, whole, result)
    poison(whole)  # it is no part of the replay
    replay = recording.replay()
    for k in (1, 2):
        ones = cf.from_numpy(np.full(DIMS, k, np.float32), engine)
        replay(stream, a=ones)
        assert (result.numpy()[:, 17:] == k).all()
        assert not result.numpy()[:, :17].any()


def test_temporaries_share_an_arena(engine: cf.Engine) -> None:
    source, result = cf.Memory(PLAIN, engine), cf.Memory(PLAIN, engine)
    recording = cf.Recording(engine, inputs={"a": source}, outputs={"b": result})
    move, at = cf.Reorder(PLAIN, PLAIN, engine), source
    for _ in range(9):
        at, before = cf.Memory(PLAIN, engine), at
        move(recording, before, at)
    move(recording, at, result)
    assert recording.replay()._program.arena_bytes <= 2 * (PLAIN.nbytes + 512)


def test_pieces_that_live_at_once_lie_apart() -> None:
    pieces = [Piece(700 + 64 * k, k, k + k % 3) for k in range(12)]
    size = placed(pieces, 512)
    for a in pieces:
        assert a.offset % 512 == 0
        assert a.offset + a.nbytes <= size
        for b in pieces:
            if a is not b and a.first <= b.last and b.first <= a.last:
                assert a.offset + a.nbytes <= b.offset or b.offset + b.nbytes <= a.offset


def test_constants_are_what_they_held(engine: cf.Engine, stream: cf.Stream) -> None:
    values = np.random.default_rng(1).random(DIMS, np.float32)
    weights, result = cf.from_numpy(values, engine), cf.Memory(PLAIN, engine)
    recording = cf.Recording(engine, outputs={"b": result})
    cf.Reorder(PLAIN, PLAIN, engine)(recording, weights, result)
    with pytest.raises(cf.InvalidArgument, match=r"nothing was written.*recording\.constant"):
        recording.replay()
    assert recording.constant(weights) is weights
    weights.release()
    recording.replay()(stream)
    assert (result.numpy() == values).all()
    again = recording.constant(values, format="nhwc")
    assert str(again.desc) == "f32:nhwc:2x17x5x4"


def test_outputs_may_be_read(engine: cf.Engine, stream: cf.Stream) -> None:
    memory = cf.from_numpy(np.ones(DIMS, np.float32), engine)
    recording = cf.Recording(engine, inputs={"a": memory}, outputs={"a": memory})
    recording.run(engine.kernel(DOUBLE, "twice"), (PLAIN.nelems,), None, memory)
    replay = recording.replay()
    replay(stream)
    replay(stream)
    assert (memory.numpy() == 4).all()


def test_nothing_to_do(engine: cf.Engine, stream: cf.Stream) -> None:
    empty = cf.Memory(EMPTY, engine)
    recording = cf.Recording(engine, inputs={"a": empty})
    recording.run(engine.kernel(DOUBLE, "twice"), (0,), None, cf.Memory(PLAIN, engine))
    with pytest.raises(cf.InvalidArgument):
        recording.run(engine.kernel(DOUBLE, "twice"), (0,), None)
    recording.replay()(stream).wait()


# --- refusals -------------------------------------------------------------------------------------

EMPTY = cf.MemoryDesc((0, 3), "f32", "ab")
REFUSED: dict[str, Callable[[Three, cf.Stream], Any]] = {
    "queue": lambda three, _: three.recording.queue,
    "wait": lambda three, _: three.recording.wait(),
    "after": lambda three, _: three.recording.after(),
    "mapping": lambda three, _: three.photo.map("r", stream=three.recording),
    "to_numpy": lambda three, _: cf.to_numpy(three.photo, stream=three.recording),
    "from_numpy": lambda three, s: cf.from_numpy(three.values, s.engine, stream=three.recording),
    "clear_padding": lambda three, _: three.photo.clear_padding(stream=three.recording),
    "host memory": lambda three, s: cf.Reorder(PLAIN, PLAIN, s.engine)(
        three.recording, cf.Memory(PLAIN, s.engine, buffer=on_host(s)), three.packed
    ),
    "an event": lambda three, s: cf.Reorder(PLAIN, PLAIN, s.engine)(
        three.recording, three.photo, cf.Memory(PLAIN, s.engine)
    ).wait(),
    "fields in buffers of their own": lambda three, s: three.recording.constant(in_buffers(s)),
    "no elements": lambda three, s: three.recording.run(
        s.engine.kernel(DOUBLE, "twice"), (1,), None, cf.Memory(EMPTY, s.engine)
    ),
    "an included file": lambda three, s: three.recording.run(
        of_pyopencl(s, f'#include "pyopencl-complex.h"\n{DOUBLE}'), (1,), None, three.packed
    ),
}  # fmt: skip


def on_host(stream: cf.Stream) -> cl.Buffer:
    flags = cl.mem_flags.READ_WRITE | cl.mem_flags.USE_HOST_PTR
    return cl.Buffer(stream.context, flags, hostbuf=np.zeros(DIMS, np.float32))


def in_buffers(stream: cf.Stream) -> cf.Memory:
    """A quantised tensor whose codes and scales are in two buffers."""
    own = {name: cl.Buffer(stream.context, cl.mem_flags.READ_WRITE, size)
           for name, size in (("q", 256), ("d", 32))}  # fmt: skip
    return cf.Memory(cf.MemoryDesc((8, 64), "q4_0", "flat"), stream.engine, buffers=own)


def built(context: cl.Context, source: str, options: str = "") -> Any:
    """A program of pyopencl's, without its cache, whose programs have no source."""
    return cl.Program(context, source).build(options, cache_dir=False)  # type: ignore[arg-type]


def of_pyopencl(stream: cf.Stream, source: str) -> cl.Kernel:
    program = built(stream.context, source)
    return cl.Kernel(program, "twice")


@pytest.mark.parametrize("what", REFUSED)
def test_what_cannot_be_recorded_is_refused(
    engine: cf.Engine, stream: cf.Stream, what: str
) -> None:
    three = Three(engine)
    with pytest.raises(cf.Unsupported) as caught:
        REFUSED[what](three, stream)
    assert caught.value.code == "RECORDING"


def test_an_image_is_refused_with_what_to_record_instead(engine: cf.Engine) -> None:
    photo = cf.MemoryDesc((1, 6, 3, 5), "f32", "nh|Cw|4c")
    for record in (
        lambda: cf.Recording(engine, inputs={"a": cf.Memory(photo, engine)}),
        lambda: exported_reorder(photo, photo, Path("net")),
    ):
        with pytest.raises(
            cf.Unsupported, match=f"such as {photo.buffer_twin}, which has the same"
        ):
            record()


def test_a_name_stands_for_one_thing(engine: cf.Engine) -> None:
    photo, packed = cf.Memory(PLAIN, engine), cf.Memory(PLAIN, engine)
    with pytest.raises(cf.InvalidArgument, match="names a and a"):
        cf.Recording(engine, inputs={"a": photo}, outputs={"a": packed})
    both = cf.Recording(engine, inputs={"a": photo}, outputs={"a": photo, "b": packed})
    both.scalar("c")
    for taken in ("a", "B", "c"):
        with pytest.raises(cf.InvalidArgument, match="expected one for each"):
            both.scalar(taken)


def test_programs_without_source_are_refused(engine: cf.Engine) -> None:
    program = built(engine.context, DOUBLE)
    binary = program.get_info(cl.program_info.BINARIES)[0]
    from_binary = cl.Program(engine.context, [engine.device], [binary]).build()
    memory = cf.Memory(PLAIN, engine)
    recording = cf.Recording(engine, outputs={"a": memory})
    with pytest.raises(cf.Unsupported, match="without source"):
        recording.run(cl.Kernel(from_binary, "twice"), (1,), None, memory)


def test_options_of_a_program_are_kept(engine: cf.Engine, stream: cf.Stream) -> None:
    source = "kernel void by(global float *p) { p[get_global_id(0)] *= BY; }"
    program = built(engine.context, source, "-DINNER=2 -DBY=5-INNER -cl-std=CL1.2")
    memory = cf.from_numpy(np.ones(DIMS, np.float32), engine)
    recording = cf.Recording(engine, outputs={"a": memory})
    recording.run(cl.Kernel(program, "by"), (PLAIN.nelems,), None, memory)
    recording.replay()(stream)
    assert (memory.numpy() == 3).all()


def test_wrong_arguments(three: Three, engine: cf.Engine, stream: cf.Stream) -> None:
    replay, twice = three.recording.replay(), engine.kernel(DOUBLE, "twice")
    with pytest.raises(cf.InvalidArgument, match="by missing"):
        replay(stream)
    with pytest.raises(cf.InvalidArgument, match="got x, expected some of photo, packed, by"):
        replay(stream, x=1)
    with pytest.raises(cf.InvalidArgument, match="expected a number"):
        replay(stream, by="1")
    with pytest.raises(cf.InvalidDescriptor, match="made for f32:nchw"):
        replay(stream, photo=cf.Memory(BLOCKED, engine))
    with pytest.raises(cf.InvalidArgument, match="in one buffer"):
        replay(stream, photo=three.packed)
    with three.photo.map("r"), pytest.raises(cf.MappedError):
        replay(stream, by=1)
    with pytest.raises(cf.InvalidArgument, match="cannot be recorded again"):
        replay(three.recording, by=1)
    with pytest.raises(cf.InvalidArgument, match=r"numpy's such as np\.float32"):
        three.recording.run(engine.kernel(SCALE, "scaled"), (1,), None, three.photo, 1.5,
                            three.packed, reads=[three.photo])  # fmt: skip
    with pytest.raises(cf.InvalidArgument, match="recorded as an input"):
        three.recording.run(twice, (1,), None, three.photo)
    with pytest.raises(cf.InvalidArgument, match="takes 1 arguments, got 0"):
        three.recording.run(twice, (1,), None)
    with pytest.raises(cf.InvalidArgument, match="is an output"):
        three.recording.constant(three.packed)
    with pytest.raises(cf.InvalidArgument, match="as C's header has them"):
        three.recording.scalar("PHOTO")
    with pytest.raises(cf.InvalidArgument, match="a letter, then"):
        three.recording.scalar("a b")
    with pytest.raises(cf.InvalidArgument, match="another recording"):
        Three(engine).recording.run(engine.kernel(SCALE, "scaled"), (1,), None, three.photo,
                                    three.by, three.packed)  # fmt: skip
    with pytest.raises(cf.InvalidArgument, match="whole buffer once"):
        cf.Recording(engine, inputs={"a": three.photo, "b": three.photo})


def test_scalars_outside_of_recordings(three: Three, engine: cf.Engine, stream: cf.Stream) -> None:
    reorder = cf.Reorder(PLAIN, BLOCKED, engine, attr=cf.Attr(src_scale=cf.at_execution()))
    half = cf.Memory(BLOCKED, engine)
    with pytest.raises(cf.InvalidArgument, match="when a recording runs"):
        reorder(stream, three.photo, half, src_scale=three.by)
    with pytest.raises(cf.InvalidAttr, match="expected one of f32"):
        reorder(three.recording, three.photo, half, src_scale=Scalar("a", "f64"))


@pytest.mark.parametrize("dtype", TYPES)
def test_numbers_become_the_scalars_type(dtype: str) -> None:
    scalar = Scalar("n", dtype)
    assert np.frombuffer(scalar.as_bytes(3), TYPES[dtype])[0] == 3
    wrong: list[Any]
    if dtype[0] == "f":
        assert np.isnan(np.frombuffer(scalar.as_bytes(np.nan), TYPES[dtype])[0])
        wrong = ["1", None, True, 1j, 10**400] + [1e39] * (dtype == "f32")
    else:
        limits = np.iinfo(np.dtype(TYPES[dtype]))
        assert np.frombuffer(scalar.as_bytes(limits.max), TYPES[dtype])[0] == limits.max
        wrong = [0.5, np.nan, np.inf, limits.max + 1, limits.min - 1, True, 10**400]
        wrong += [np.float32(limits.max), np.float64(2.0**64), np.float16("inf")]
    for value in wrong:
        with pytest.raises(cf.InvalidArgument):
            scalar.as_bytes(value)


# --- fills, which streams have, too ---------------------------------------------------------------


def test_fill_writes_the_tensor_and_nothing_else(engine: cf.Engine, stream: cf.Stream) -> None:
    memory = cf.Memory(cf.MemoryDesc((4, 6), "u8", "ab"), engine)
    stream.fill(memory, 3)
    assert bytes_of(memory) == bytes([3] * 24)
    stream.fill(memory.submemory((1, 6), (2, 0)), 5)
    assert bytes_of(memory) == bytes([3] * 12 + [5] * 6 + [3] * 6)
    with pytest.raises(cf.InvalidDescriptor, match="others in between"):
        stream.fill(memory.submemory((4, 2), (0, 1)))
    with pytest.raises(cf.InvalidArgument, match="0 to 255"):
        stream.fill(memory, 256)
    with memory.map("r"), pytest.raises(cf.MappedError):
        stream.fill(memory)
