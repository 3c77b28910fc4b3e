"""`clformats demo`: a photograph through blocked formats and back, every step checked to the byte.

Two layers of real networks follow, packed as a convolution wants its weights. The numbers are wall
times on this machine; the plain copy beside each reorder moves as many bytes on the same device.
"""

from __future__ import annotations

import argparse
from collections.abc import Callable
from functools import partial
from statistics import median
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from ..errors import Error
from ..host.packing import flat_size, pack, unpack
from ..pictures.calls import draw
from ..tensors.desc import MemoryDesc
from ..timing import timed, turns
from .arguments import write_text
from .photograph import photograph

if TYPE_CHECKING:
    from ..reorders.reorder import Reorder
    from ..runtime import Engine, Memory, Stream

LEAST_BYTES = 32 << 20
MOST_SHIFTS = 64
ROUNDS = 5
POISON = 0xA5
SEED = 7
CHECKED = "✔ equals numpy"

PASTE = """
the same in Python, with photo an array of height x width x channels:
  import clformats as cf
  memory = cf.from_numpy(photo, axes="hwc", format="byxf")
  blocked = cf.reorder(memory, "b_fs_yx_fsv16", dtype="f16")
  print(blocked.physical().shape)"""

# What it is, the shape, the plain format and the one a convolution wants.
LAYERS = (
    ("ResNet-50, the first convolution", (64, 3, 7, 7), "oiyx", "os_is_yx_isv16_osv16"),
    ("MobileNetV3, depthwise 5 x 5", (72, 1, 1, 5, 5), "goiyx", "gs_oiyx_gsv16"),
)


def add_parser(subparsers: argparse._SubParsersAction[argparse.ArgumentParser]) -> None:
    """Add `demo` to the command line."""
    parser = subparsers.add_parser(
        "demo",
        help="reorder a real photograph, every byte checked, and timed",
        description="Reorder a photograph to a blocked format and to planar floats on the device, "
        "and back; then pack the weights of two real layers. Every result is compared with the one "
        "computed in numpy, byte for byte; exit status 1 if one differs.",
        epilog="example:  clformats demo --image photo.jpg --device pocl",
    )
    parser.add_argument("--image", metavar="FILE", help="your own photograph")
    parser.add_argument("--size", metavar="WxH", help="scale the photograph to this size first")
    parser.add_argument("--device", metavar="NAME", help="part of a device's or platform's name")
    parser.add_argument("--verbose", action="store_true", help="print the plan of each reorder too")
    parser.add_argument("--svg", metavar="FILE", help="write the picture of the layout as SVG")
    parser.add_argument("--force", action="store_true", help="replace FILE if it exists")
    parser.set_defaults(run=run)


def run(args: argparse.Namespace) -> int:
    """Run the demo. Raises `Error` if a result differs from the reference in numpy."""
    from ..runtime import Engine, Stream

    pixels, origin = photograph(args.image, args.size)
    engine = Engine(args.device)
    bench = Bench(engine, Stream(engine), verbose=args.verbose)
    images = batch_of(pixels)
    device = engine.device
    print(f"photo    {origin}, {len(images)} shifted copies as one batch")
    print(f"device   {device.name.strip()} ({device.platform.name.strip()})")
    blocked = photo_section(bench, images)
    draw_section(blocked, args.svg, force=args.force)
    weights_section(bench)
    print("\nall results equal the numpy truth to the byte, padding included  ✔")
    print(PASTE)
    return 0


def batch_of(pixels: NDArray[np.uint8]) -> NDArray[np.uint8]:
    """The photograph as a batch large enough to time, in the logical order b, f, y, x.

    Each copy is shifted by another way, so that mixing up two of them would show; a small picture
    needs so many copies that after `MOST_SHIFTS` of them the same ones follow again.
    """
    planes = np.ascontiguousarray(pixels.transpose(2, 0, 1))
    count = max(2, -(-LEAST_BYTES // max(planes.nbytes, 1)))
    shifts = range(min(count, MOST_SHIFTS))
    copies = np.stack([np.roll(planes, (7 * k, 13 * k), (1, 2)) for k in shifts])
    return copies[np.arange(count) % len(copies)]


# --- running and checking -------------------------------------------------------------------------


class Bench:
    """A device, and the steps that are run on it."""

    def __init__(self, engine: Engine, stream: Stream, *, verbose: bool = False) -> None:
        self.engine, self.stream, self.verbose = engine, stream, verbose

    def upload(self, array: NDArray[Any], desc: MemoryDesc) -> tuple[Memory, NDArray[Any]]:
        """A memory object that holds ``array``, and its bytes as numpy packs them."""
        from ..runtime import Memory

        truth = pack(array, desc)
        memory = Memory(desc, self.engine)
        with memory.map("w") as flat:
            flat[:] = truth
        return memory, truth

    def step(self, src: Memory, desc: MemoryDesc, truth: NDArray[Any]) -> tuple[Reorder, Memory]:
        """Reorder ``src`` into a poisoned memory object and compare it with the truth."""
        from ..reorders.reorder import Reorder
        from ..runtime import Memory

        reorder = Reorder(src.desc, desc, self.engine, wait=True)
        dst = Memory(desc, self.engine)
        with dst.map("w") as flat:
            flat.view(np.uint8)[:] = POISON
        reorder(self.stream, src, dst).wait()
        with dst.map("r") as flat:
            check(flat, truth, reorder)
        return reorder, dst

    def rates(self, reorder: Reorder, src: Memory, dst: Memory) -> tuple[float, float]:
        """GB/s, read and written, of the reorder and of a plain copy of as many bytes.

        The two take turns, so that a slower or faster moment of the machine meets both.
        """
        size = (src.desc.nbytes + dst.desc.nbytes) // 2
        copy = self._copy(size)
        runs = {
            "reorder": partial(timed, lambda: reorder(self.stream, src, dst).wait()),
            "copy": partial(timed, lambda: copy().wait()),
        }
        mine, plain = (median(times) for times in turns(runs, ROUNDS).values())
        return 2e-9 * size / mine, 2e-9 * size / plain

    def _copy(self, size: int) -> Callable[[], Any]:
        from ..opencl import named_errors, opencl

        cl = opencl()
        with named_errors(f"allocating two buffers of {size} bytes to compare with"):
            flags = cl.mem_flags.READ_WRITE
            a, b = (cl.Buffer(self.engine.context, flags, size) for _ in range(2))
            cl.enqueue_fill_buffer(self.stream.queue, a, np.zeros(1, np.uint8), 0, size).wait()
        return lambda: cl.enqueue_copy(self.stream.queue, b, a, byte_count=size)


def numpy_seconds(src: Memory, desc: MemoryDesc) -> float:
    """What numpy takes for the same on the host, with the threads of `clformats.pack`."""
    with src.map("r") as flat:
        return timed(lambda: pack(unpack(flat, src.desc), desc))


def check(flat: NDArray[Any], truth: NDArray[Any], reorder: Reorder) -> None:
    """Raise `Error` where the device's bytes are not the truth's."""
    got, expected = flat.view(reorder.dst.dtype.raw), truth.view(reorder.dst.dtype.raw)
    if np.array_equal(got, expected):
        return
    wrong = np.flatnonzero(got != expected)
    at = int(wrong[0])
    index = reorder.dst.coords(at)
    raise Error(
        f"MISMATCH in {reorder.src} -> {reorder.dst}: {wrong.size} of {got.size} elements differ, "
        f"the first at offset {at} ({index or 'padding'}): got {flat[at]}, expected {truth[at]}; "
        f"please report this with the output of `clformats doctor`"
    )


# --- what is printed ------------------------------------------------------------------------------


def photo_section(bench: Bench, images: NDArray[np.uint8]) -> Memory:
    """The photograph to two formats and back; the blocked memory is returned."""
    photo = MemoryDesc(images.shape, "u8", "byxf")
    blocked = MemoryDesc(images.shape, "f16", "b_fs_yx_fsv16")
    planar = MemoryDesc(images.shape, "f32", "bfyx")
    print("\n" + "\n".join(size_line(desc) for desc in (photo, blocked, planar)))
    print("\nspeed = bytes read and written; the plain copy moves as many on the same device,")
    print("numpy unpacks, converts and packs on the host, as cf.unpack and cf.pack do")
    source, truth = bench.upload(images, photo)
    there = [photo_step(bench, source, desc, pack(images, desc)) for desc in (blocked, planar)]
    for memory in there:
        photo_step(bench, memory, photo, truth)
    return there[0]


def photo_step(bench: Bench, src: Memory, desc: MemoryDesc, truth: NDArray[Any]) -> Memory:
    """One reorder: checked, timed, and printed with its plan."""
    reorder, dst = bench.step(src, desc, truth)
    mine, copy = bench.rates(reorder, src, dst)
    times = numpy_seconds(src, desc) * mine / (1e-9 * (src.desc.nbytes + desc.nbytes))
    told = f"{mine:5.1f} GB/s, plain copy {copy:5.1f}, {times:5.1f} x numpy"
    if bench.verbose:
        print(f"\n{reorder.plan}\n  speed   {told}, ratio {mine / copy:.2f}    {CHECKED}")
    else:
        print(f"{src.desc!s:<32} -> {short(desc):<20} {told}    {CHECKED}")
    return dst


def short(desc: MemoryDesc) -> str:
    """Element type and format, where the sizes are known."""
    return f"{desc.dtype}:{desc.format}"


def size_line(desc: MemoryDesc) -> str:
    """A descriptor, its bytes, and how much of them is padding."""
    share = 1 - desc.nelems / flat_size(desc)
    padding = f", {100 * share:.1f} % of it padding" if share else ""
    size = f"{desc.nbytes / 1e6:.1f} MB" if desc.nbytes >= 1e6 else f"{desc.nbytes / 1e3:.1f} kB"
    return f"{desc!s:<38} {size:>9}{padding}"


def draw_section(blocked: Memory, file: str | None, *, force: bool) -> None:
    """The first pixels of the blocked format, in memory order."""
    with blocked.map("r") as flat:
        drawn = draw(blocked.desc, boxes=1, values=flat)
    print("\nthe first pixels in memory: three colours, and zeros up to sixteen features")
    print("\n".join(str(drawn).splitlines()[2:]))
    if file:
        print()
        write_text(file, drawn.svg, force=force)


def weights_section(bench: Bench) -> None:
    """The weights of two layers, packed as f16. Only their shapes are the networks'."""
    print(f"\nweights in the shapes of real layers, with random values (seed {SEED})")
    for layer, shape, plain, packed in LAYERS:
        values = np.random.default_rng(SEED).standard_normal(shape).astype(np.float32)
        desc = MemoryDesc(shape, "f16", packed)
        source, _ = bench.upload(values, MemoryDesc(shape, "f32", plain))
        reorder, _ = bench.step(source, desc, pack(values, desc))
        if bench.verbose:
            print(f"\n{layer}    {CHECKED}\n{size_line(desc)}\n{reorder.plan}")
        else:
            print(f"{layer:<32} {desc!s:<44} {CHECKED}")
