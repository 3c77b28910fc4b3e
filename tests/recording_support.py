"""Random sequences of commands, and the program in C that runs what they export."""

from __future__ import annotations

import os
import random
import shutil
import subprocess
import tempfile
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from functools import cache, partial
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray

import clformats as cf
import clformats.recording

RUNNER = Path(clformats.recording.__file__).parent / "runner"
PROGRAM = Path(__file__).parent / "recording" / "run_export.c"
STRICT = ["-Wall", "-Wextra", "-Werror", "-pedantic"]
FORMATS = ("nchw", "nhwc", "nChw16c", "nChw8c", "b_fs_yx_fsv4", "yxfb", "bs_fs_yx_bsv4_fsv2")
TYPES = ("f32", "f16", "u8", "s8")
DIMS = ((2, 17, 5, 4), (1, 31, 3, 7), (3, 16, 2, 5), (5, 15, 1, 13))
KERNEL = """
kernel void scaled(global const float *src, const float by, global float *dst)
{
    const size_t i = get_global_id(0);
    dst[i] = src[i] * by + 0.25f;
}
kernel void turned(global const float *src, global float *dst, local float *part, const uint count)
{
    const uint i = get_global_id(0), k = get_local_id(0);
    part[k] = i < count ? src[i] : 0.0f;
    barrier(CLK_LOCAL_MEM_FENCE);
    if (i < count) dst[i] = part[k] * 0.5f;
}
kernel void added(global float *dst, const int by) { dst[get_global_id(0)] += by; }
"""

Call = Callable[[cf.Stream], Any]


def bytes_of(memory: cf.Memory) -> bytes:
    """All that lies in the buffer."""
    with memory.map("r") as flat:
        return bytes(flat.tobytes())


def poison(memory: cf.Memory) -> None:
    """0xA5 in every byte."""
    with memory.map("w") as flat:
        flat.view(np.uint8)[:] = 0xA5


@dataclass
class Calls:
    """Calls on memory objects, to be made on a stream, or on a recording of it."""

    engine: cf.Engine
    inputs: dict[str, cf.Memory] = field(default_factory=dict)
    outputs: dict[str, cf.Memory] = field(default_factory=dict)
    scalars: dict[str, float] = field(default_factory=dict)
    constants: list[cf.Memory] = field(default_factory=list)
    calls: list[Callable[[cf.Stream, dict[str, Any]], Any]] = field(default_factory=list)

    def called(self, stream: cf.Stream) -> dict[str, bytes]:
        """What the calls write to the outputs."""
        for memory in self.outputs.values():
            poison(memory)
        numbers = {name: np.float32(value) for name, value in self.scalars.items()}
        for call in self.calls:
            call(stream, numbers)
        stream.wait()
        return self.held()

    def held(self) -> dict[str, bytes]:
        """The bytes of the outputs."""
        return {name: bytes_of(memory) for name, memory in self.outputs.items()}

    def recorded(self) -> cf.Recording:
        """The calls as a recording."""
        recording = cf.Recording(self.engine, inputs=self.inputs, outputs=self.outputs)
        scalars = {name: recording.scalar(name) for name in self.scalars}
        for memory in self.constants:
            recording.constant(memory)
        for call in self.calls:
            call(recording, scalars)
        return recording

    def export_inputs(self, folder: Path) -> list[str]:
        """Files of the inputs; the arguments of `run_export` that name them, and scalars."""
        words = []
        for name, memory in self.inputs.items():
            (folder / name).write_bytes(bytes_of(memory))
            words.append(f"<{name}={folder / name}")
        return [*words, *(f"{name}={value!r}" for name, value in self.scalars.items())]


class Maker:
    """Makes a random sequence of 1 to 40 commands over tensors of the same dims."""

    def __init__(
        self, engine: cf.Engine, seed: int, *, most: int = 40, alike: bool = False
    ) -> None:
        self.pick = random.Random(seed)  # noqa: S311  # no secret
        self.rng = np.random.default_rng(seed)
        self.made = Calls(engine)
        self.engine = engine
        self.alike = alike
        self.formats: tuple[str, ...] = FORMATS[:3:2] if alike else FORMATS
        self.types: tuple[str, ...] = TYPES[::2] if alike else TYPES
        self.dims = self.pick.choice(DIMS[:2] if alike else DIMS)
        self.written: list[cf.Memory] = []
        for k in range(self.pick.randint(1, 3)):
            memory = self.tensor(self.pick.choice(self.types))
            self.made.inputs[f"in{k}"] = memory
            self.written.append(memory)
        count = self.pick.randint(1, most)
        kinds = [self.reorder, self.reorder, self.scale, self.map, self.kernel, self.region,
                 self.fill, self.sums, self.weights, self.values, self.quantised]  # fmt: skip
        while len(self.made.calls) < count:
            self.pick.choice(kinds)()
        self.finish()

    def values_of(self, dtype: str) -> NDArray[Any]:
        low, high = (0, 200) if dtype == "u8" else (-100, 100)
        if dtype.startswith("f"):
            return (self.rng.integers(low, high, self.dims) / 16).astype(np.float32)
        return self.rng.integers(low, high, self.dims).astype(np.int32)

    def tensor(self, dtype: str) -> cf.Memory:
        fmt = self.pick.choice(self.formats)
        return cf.from_numpy(self.values_of(dtype), self.engine, format=fmt, dtype=dtype)

    def new(self, dtype: str | None = None, fmt: str | None = None) -> cf.Memory:
        dtype, fmt = dtype or self.pick.choice(self.types), fmt or self.pick.choice(self.formats)
        return cf.Memory(cf.MemoryDesc(self.dims, dtype, fmt), self.engine)

    def call(self, call: Callable[[cf.Stream, dict[str, Any]], Any]) -> None:
        self.made.calls.append(call)

    def source(self) -> cf.Memory:
        return self.pick.choice(self.written)

    def to(self, src: cf.Memory, dst: cf.Memory, attr: cf.Attr | None = None) -> None:
        reorder = cf.Reorder(src.desc, dst.desc, self.engine, attr=attr, wait=True)
        self.call(lambda stream, _: reorder(stream, src, dst))
        if not any(dst is m for m in self.written):
            self.written.append(dst)

    # --- the kinds of commands --------------------------------------------------------------------

    def reorder(self) -> None:
        self.to(self.source(), self.new())

    def scale(self) -> None:
        mask = self.pick.choice((0, 2))
        values = self.rng.integers(1, 32, self.dims[1] if mask else 1) / 32
        attr = cf.Attr(src_scale=(values, mask))
        if self.pick.random() < 0.3:
            attr = cf.Attr(src_scale=(values, mask), dst_scale=2.7, src_zero_point=3)
        dst = self.new()
        if self.pick.random() < 0.3:
            attr = cf.Attr(src_scale=(values, mask), beta=0.5)
            free = [m for m in self.written if not any(m is f for f in self.fixed)]
            dst = self.pick.choice(free or [dst])
        src = self.source()
        if src is not dst:
            self.to(src, dst, attr)

    @property
    def fixed(self) -> list[cf.Memory]:
        """What nothing may be written to."""
        return [*self.made.inputs.values(), *self.made.constants]

    def values(self) -> None:
        """A scalar that is given by name."""
        name = f"by{len(self.made.scalars)}"
        self.made.scalars[name] = self.pick.choice((0.5, 0.75, 1.25, 0.125))
        src, dst = self.source(), self.new()
        attr = cf.Attr(src_scale=cf.at_execution())
        reorder = cf.Reorder(src.desc, dst.desc, self.engine, attr=attr, wait=True)
        self.call(lambda stream, given: reorder(stream, src, dst, src_scale=given[name]))
        self.written.append(dst)

    def map(self) -> None:
        x, y, z = self.source(), self.source(), self.new("f32" if self.alike else None)
        text = self.pick.choice(("z = clamp(x + y * 0.5f, -90.f, 90.f)", "z = fmax(x, y) - 1"))
        made = cf.Map(text, self.engine, x=x.desc, y=y.desc, z=z.desc)
        self.call(lambda stream, _: made(stream, x=x, y=y, z=z))
        self.written.append(z)

    def kernel(self) -> None:
        src = self.new("f32", "nChw16c")
        dst = cf.Memory(src.desc, self.engine)
        self.to(self.source(), src)
        count = src.nbytes // 4
        kind = self.pick.choice(("scaled", "named", "turned", "added"))
        kernel = self.engine.kernel(KERNEL, "scaled" if kind == "named" else kind)
        if kind == "scaled":
            by = np.float32(self.pick.choice((0.5, 0.25)))
            self.call(lambda s, _: s.run(kernel, (count,), None, src, by, dst, reads=[src]))
        elif kind == "named":
            name = f"by{len(self.made.scalars)}"
            self.made.scalars[name] = self.pick.choice((0.5, 0.75, 0.125))
            self.call(
                lambda s, given: s.run(kernel, (count,), None, src, given[name], dst, reads=[src])
            )
        elif kind == "turned":
            import pyopencl as cl

            local, work = cl.LocalMemory(64), -(-count // 16) * 16
            self.call(lambda s, _: s.run(kernel, (work,), (16,), src, dst, local, np.uint32(count),
                                         reads=[src]))  # fmt: skip
        else:
            dst = src
            self.call(lambda s, _: s.run(kernel, (count,), None, src, np.int32(2)))
        if dst is not src:
            self.written.append(dst)

    def region(self) -> None:
        """A part of a larger tensor, of which the rest is zero, or written before."""
        n, c, h, w = self.dims
        whole = cf.Memory(cf.MemoryDesc((n, 2 * c, h, w), "f32", "nchw"), self.engine)
        part = whole.submemory(self.dims, (0, self.pick.choice((0, c)), 0, 0))
        self.to(self.source(), part)
        other = whole.submemory(self.dims, (0, c, 0, 0))
        self.to(other, self.new())

    def fill(self) -> None:
        memory = self.new("u8")
        self.call(lambda stream, _: stream.fill(memory, 7))
        self.written.append(memory)

    def weights(self) -> None:
        """A constant that is shipped."""
        memory = self.tensor("f32")
        self.made.constants.append(memory)
        self.written.append(memory)

    def sums(self) -> None:
        """Weights with the sums that follow them: two kernels."""
        src = cf.from_numpy(
            self.rng.integers(-9, 9, (17, 5, 3, 3)).astype(np.float32), self.engine, format="oihw"
        )
        self.made.constants.append(src)
        desc = cf.MemoryDesc((17, 5, 3, 3), "s8", "OIhw4i16o4i", extra=cf.Extra(1, s8s8=True))
        dst = cf.Memory(desc, self.engine)
        reorder = cf.Reorder(src.desc, desc, self.engine, wait=True)
        self.call(lambda stream, _: reorder(stream, src, dst))
        self.made.outputs[f"sums{len(self.made.outputs)}"] = dst

    def quantised(self) -> None:
        """Weights of 4 bits with scales, an input or shipped: their bits moved, then decoded."""
        desc = cf.MemoryDesc((17, 96), "q4_0", "gguf")
        values = self.rng.standard_normal(desc.dims).astype(np.float32)
        src = cf.from_numpy(values, self.engine, desc=desc)
        if self.pick.random() < 0.5:
            self.made.constants.append(src)
        else:
            self.made.inputs[f"in{len(self.made.inputs)}"] = src
        moved = cf.Memory(cf.MemoryDesc(desc.dims, "q4_0", "transposed"), self.engine)
        out = cf.Memory(cf.MemoryDesc(desc.dims, "f16", "BA16b16a"), self.engine)
        for a, b in ((src, moved), (self.pick.choice((src, moved)), out)):
            reorder = cf.Reorder(a.desc, b.desc, self.engine, wait=True)
            self.call(partial(lambda r, a, b, stream, _: r(stream, a, b), reorder, a, b))
        number = len(self.made.outputs)
        self.made.outputs |= {f"codes{number}": moved, f"decoded{number}": out}

    def finish(self) -> None:
        """Outputs from what was written last, and from something else."""
        taken = [m for m in self.written[::-1] if m.desc.dims == self.dims][:2]
        for memory in taken:
            out = self.new("f32")
            self.to(memory, out)
            self.made.outputs[f"out{len(self.made.outputs)}"] = out


def sequence(engine: cf.Engine, seed: int, *, most: int = 40, alike: bool = False) -> Calls:
    """A random sequence; ``alike``: of few formats and types, so that many share their programs."""
    return Maker(engine, seed, most=most, alike=alike).made


# --- the program in C -----------------------------------------------------------------------------


@cache
def runner(compiler: str = "gcc", *options: str) -> Path:
    """The program that runs exports, built once; skips where a compiler or headers are missing."""
    return compiled([PROGRAM], compiler, "-std=c99", "-D_POSIX_C_SOURCE=200809L", "-O1", *options)


def compiled(sources: Sequence[Path], compiler: str, *options: str, libraries: str = "") -> Path:
    """A program of sources and of the runner. Skips where something is missing."""
    if shutil.which(compiler) is None:
        pytest.skip(f"no {compiler}: apt-get install {compiler}")
    if not Path("/usr/include/CL/cl.h").exists():
        pytest.skip("no OpenCL headers: apt-get install opencl-c-headers")
    place = Path(tempfile.mkdtemp()) / "program"
    words = [compiler, *options, *STRICT, f"-I{RUNNER}", *map(str, sources)]
    words += [str(RUNNER / "clformats.c"), "-o", str(place), "-l:libOpenCL.so.1", "-lpthread"]
    done = subprocess.run([*words, *libraries.split()], capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    return place


def run_in_c(
    program: Path, engine: cf.Engine, path: Path, *words: str, **environment: str
) -> subprocess.CompletedProcess[str]:
    """Run an export in C."""
    platform = engine.device.platform.name.strip()
    return subprocess.run(
        [str(program), platform, str(path), *words], capture_output=True, text=True, check=False,
        env={**os.environ, **environment}, timeout=300, errors="replace",
    )  # fmt: skip
