"""Fields of a quantised tensor in buffers of their own: GPTQ's qweight, qzeros and scales."""

from __future__ import annotations

from typing import Any

import numpy as np
import pyopencl
import pytest
from numpy.typing import NDArray

import clformats as cf
from clformats.quantised.host import moved
from tests.quantised.test_table import described, random_bytes, same

LAYOUTS = [("u4g32", "gptq"), ("q5_K", "flat"), ("q4_0", "transposed"), ("q4_0", "gguf")]
DIMS = (24, 512)


def apart(desc: Any, raw: NDArray[Any], stream: cf.Stream) -> dict[str, pyopencl.Buffer]:
    """Buffers of pyopencl's with the bytes of each buffer of a tensor."""
    flags = pyopencl.mem_flags.READ_WRITE | pyopencl.mem_flags.COPY_HOST_PTR
    return {name: pyopencl.Buffer(stream.engine.context, flags, hostbuf=np.array(part))
            for name, part in desc.split(raw).items()}  # fmt: skip


@pytest.mark.sampled(2)
@pytest.mark.parametrize(("name", "layout"), LAYOUTS)
def test_reorders_read_and_write_buffers_apart(stream: cf.Stream, name: str, layout: str) -> None:
    desc, other = described(DIMS, name, layout), described(DIMS, name, "plain")
    raw, zeros = random_bytes(desc, 3), np.zeros(desc.nbytes, np.uint8)
    memory = cf.Memory(desc, stream.engine, buffers=apart(desc, raw, stream))
    assert same(memory.numpy(), cf.unpack(raw, desc))
    dense = cf.Memory(cf.MemoryDesc(DIMS, "f32"), stream.engine)
    cf.Reorder(desc, dense.desc, stream.engine)(stream, memory, dense)
    assert same(dense.numpy(), cf.unpack(raw, desc))
    plain = cf.reorder(memory, other)
    with plain.map("r") as flat:
        assert np.array_equal(flat, moved(raw, desc, other))
    assert cf.reorder(memory, str(other)).desc == other
    back = cf.Memory(desc, stream.engine, buffers=apart(desc, zeros, stream))
    cf.Reorder(other, desc, stream.engine)(stream, plain, back).wait()
    with back.map("r") as flat:
        assert np.array_equal(flat, raw)
        assert not flat.flags.writeable
    parts = desc.split(raw)
    for part, found in back.parts.items():
        assert np.array_equal(found.numpy(), parts[part])


@pytest.mark.parametrize("name", ["u4g32", "s4g32", "mx_f8_e4m3"])
@pytest.mark.parametrize("begins", [0, 4])
def test_planes_are_read_and_written_where_they_are(
    as_gpu: cf.Stream, name: str, begins: int
) -> None:
    """As for GPUs: nothing is copied together first, also where buffers begin anywhere."""
    one, other = {"u4g32": ("gptq", "awq_gemm"), "s4g32": ("compressed", "marlin")}.get(
        name, ("plain", "swizzled")
    )
    src, dst = described((128, 512), name, one), described((128, 512), name, other)
    raw, engine = random_bytes(src, 3), as_gpu.engine

    def own(desc: Any, contents: NDArray[Any]) -> dict[str, pyopencl.Buffer]:
        flags = pyopencl.mem_flags.READ_WRITE | pyopencl.mem_flags.USE_HOST_PTR
        found = {}
        for n, part in desc.split(contents).items():
            room = np.zeros(part.size + 128, np.uint8)
            first = -room.ctypes.data % 64 + begins
            room[first : first + part.size] = part
            found[n] = pyopencl.Buffer(engine.context, flags, hostbuf=room[first:][: part.size])
        return found

    whole = cf.Memory(src, engine)
    with whole.map("w") as flat:
        flat[:] = raw
    for read in (whole, cf.Memory(src, engine, buffers=own(src, raw))):
        zeros = np.zeros(dst.nbytes, np.uint8)
        written = cf.Memory(dst, engine, buffers=own(dst, zeros))
        reorder: Any = cf.Reorder(src, dst, engine)
        assert reorder._on_buffers(read, written)
        reorder(as_gpu, read, written).wait()
        with written.map("r") as flat:
            assert np.array_equal(flat, moved(raw, src, dst))
        for to in ("f16:ba", "f32:BA16b16a"):
            dense = cf.Memory(cf.MemoryDesc((128, 512), *to.split(":")), engine)
            decode: Any = cf.Reorder(dst, dense.desc, engine)
            assert decode._on_buffers(written, dense)
            decode(as_gpu, written, dense).wait()
            with np.errstate(all="ignore"):
                expected = cf.unpack(raw, src).astype(dense.desc.dtype.numpy)
            assert same(dense.numpy().astype(np.float32), expected.astype(np.float32))


def test_mapping_writes_buffers_apart(stream: cf.Stream) -> None:
    desc = described(DIMS, "u4g32", "gptq")
    raw = random_bytes(desc, 3)
    buffers = {n: cf.from_numpy(p, stream.engine) for n, p in desc.split(raw).items()}
    memory = cf.Memory(desc, buffers=buffers)  # memory objects are taken too
    with memory.map("rw") as flat:
        assert np.array_equal(flat, raw)
        flat[:] ^= 255
        with pytest.raises(cf.MappedError):
            buffers["q"].numpy()
    q, (start, nbytes) = buffers["q"].numpy(), (desc.buffers[2].start, desc.buffers[2].nbytes)
    assert np.array_equal(q, 255 ^ raw[start : start + nbytes])
    with memory.map("w") as flat:
        flat[:] = raw
    cf.transfer(memory, cf.HostMemory(desc, found := np.zeros_like(raw)))
    assert np.array_equal(found, raw)
    mapping = memory.map("w").start()
    with pytest.raises(cf.MappedError, match="once"):
        mapping.start()
    with mapping as flat:
        assert not flat.any()
        flat[:] = raw
    assert same(memory.numpy(), cf.unpack(raw, desc))
    memory.release()
    assert all(part.buffer is None for part in memory.parts.values())


def test_a_kernel_takes_the_buffers(stream: cf.Stream) -> None:
    desc = described(DIMS, "u4g32", "gptq")
    raw = random_bytes(desc, 3)
    memory = cf.Memory(desc, stream.engine, buffers=apart(desc, raw, stream))
    text = (
        cf.index_source(desc, "W", buffers=True)
        + """
kernel void f(global const uchar *s, global const uchar *z, global const uchar *q, global float *y)
{
    const W_buffers w = {.s = s, .z = z, .q = q};
    const uint n = get_global_id(0), k = 4 * get_global_id(1);
    vstore4(W_VALUES4(w, n, k), 0, y + n * W_COLUMNS + k);
}
"""
    )
    y = cf.Memory(cf.MemoryDesc(DIMS, "f32"), stream.engine)
    parts = memory.parts
    stream.run(stream.engine.kernel(text, "f"), (24, 128), None, *parts.values(), y,
               reads=[*parts.values()])  # fmt: skip
    assert list(parts) == ["s", "z", "q"]
    assert same(y.numpy(), cf.unpack(raw, desc))


def test_what_does_not_fit_is_refused(engine: cf.Engine) -> None:
    desc = described(DIMS, "u4g32", "gptq")
    own = {n: cf.Memory(f"u8:a:{b.nbytes}", engine)
           for n, b in zip("szq", desc.buffers, strict=True)}  # fmt: skip
    with pytest.raises(cf.InvalidDescriptor, match=r"expected \['s', 'z', 'q'\]"):
        cf.Memory(desc, engine, buffers={"q": own["q"]})
    with pytest.raises(cf.InvalidArgument, match="without buffer="):
        cf.Memory(desc, engine, buffer=None, buffers=own)
    with pytest.raises(cf.InvalidArgument, match="for a quantised tensor"):
        cf.Memory("f32:ab:3x4", engine, buffers=own)
    with pytest.raises(cf.DeviceError, match="bytes"):
        cf.Memory(desc, engine, buffers={**own, "q": own["s"]})
    memory = cf.Memory(desc, engine, buffers=own)
    assert str(memory) == "Memory('u4g32:gptq:24x512', buffers s, z, q)"
    with pytest.raises(cf.InvalidArgument, match=r"set those of memory.parts"):
        memory.set_buffer(own["q"].buffer)
    with pytest.raises(cf.DeviceError, match="those of its parts"):
        cf.Stream(engine).run(engine.kernel("kernel void f(global uchar *p) {}", "f"), (1,), None,
                              memory)  # fmt: skip


def test_join_takes_the_matrices_of_a_file_and_no_others() -> None:
    """The bytes of a transpose are as many, and would be values of other columns."""
    desc = described((64, 256), "u4g128", "gptq")
    parts: dict[str, NDArray[Any]] = {
        "q": np.ones((32, 64), np.int32),
        "z": np.ones((2, 8), np.int32),
        "s": np.ones((2, 64), np.float16),
    }
    raw = desc.join(parts)
    assert np.array_equal(raw, desc.join({n: p.reshape(-1) for n, p in parts.items()}))
    assert np.array_equal(raw, desc.join({n: p.view(np.uint8) for n, p in parts.items()}))
    said = {"q": "got an array of 64 x 32, expected 32 x 64 of int32",
            "z": "got an array of 8 x 2, expected 2 x 8 of int32",
            "s": "got an array of 64 x 2, expected 2 x 64 of float16"}  # fmt: skip
    for name, message in said.items():
        with pytest.raises(cf.InvalidDescriptor, match=f"buffer {name}: {message}"):
            desc.join(parts | {name: parts[name].T})
    with pytest.raises(cf.InvalidDescriptor, match="buffer q: got 4096 bytes, expected 8192"):
        desc.join(parts | {"q": parts["q"][:16]})


def test_memory_objects_of_transposed_matrices_are_refused(engine: cf.Engine) -> None:
    desc = described((64, 256), "u4g128", "gptq")
    parts: dict[str, NDArray[Any]] = {
        "s": np.ones((2, 64), np.float16), "z": np.ones((2, 8), np.int32),
        "q": np.ones((32, 64), np.int32),
    }  # fmt: skip
    held = {name: cf.from_numpy(part, engine) for name, part in parts.items()}
    assert cf.Memory(desc, engine, buffers=held).parts.keys() == parts.keys()
    held["q"] = cf.from_numpy(parts["q"].T, engine)
    with pytest.raises(cf.InvalidDescriptor, match="buffer q: got an array of 64 x 32"):
        cf.Memory(desc, engine, buffers=held)
