"""All that a GPU is asked in one command: `python -m bench gpu`, offline, in less than ten minutes.

What the doctor says and what the device says of itself; plain copies whose runs lie apart, by the
length of a run; the cases, and large ones, beside torch and CuPy, every result checked; with
``--sweep`` other families and the tuner's space; with ``--isa`` what the driver made of kernels.
"""

from __future__ import annotations

import argparse
import sys
import zipfile
from collections.abc import Iterator
from contextlib import redirect_stdout
from dataclasses import asdict, replace
from datetime import datetime, timezone
from io import StringIO
from pathlib import Path
from time import perf_counter
from typing import Any

import numpy as np

import clformats as cf
from clformats.cli import main as clformats_main
from clformats.timing import Settings

from . import ptx, rotation, table
from .cases import F16, F32, LAUNCH, MB, SMALL, U8, Case
from .contest import contest
from .machine import facts
from .options import pool, which_cases
from .picture import picture
from .report import Report

SETTINGS = Settings(rounds=5, seconds=0.6)
LEAST = 80 * MB
"""Cases are made so large by their outermost dimension, but for those that are small on purpose."""
RUNS = (16, 32, 64, 128, 256, 512, 1024, 4096)
"""Bytes of a run in the copies whose runs lie apart."""
RUNS_MB = 256

SQUARE = (4096, 4096)
LARGE = (64, 256, 56, 56)
MORE = (
    Case("square_f32", F32, SQUARE, "f32:ab", "f32:ba"),
    Case("square_f16", F16, (8192, 8192), "f16:ab", "f16:ba"),
    Case("square_u8", U8, (8192, 8192), "u8:ab", "u8:ba"),
    Case("large_bfyx_byxf_f32", F32, LARGE, "f32:bfyx", "f32:byxf"),
    Case("large_bfyx_byxf_f16", F16, LARGE, "f16:bfyx", "f16:byxf"),
    Case("large_bfyx_fsv16_f16", F16, LARGE, "f16:bfyx", "f16:b_fs_yx_fsv16"),
    Case("large_copy_f32", F32, LARGE, "f32:bfyx", "f32:bfyx"),
)

_COPY = """\
// A copy whose runs of 2^log vectors of 16 bytes lie apart in the source, or in the destination.
__kernel void runs(__global const uint4 *restrict src, __global uint4 *restrict dst,
                   const uint log, const uint mask, const uint scatter)
{
    const uint at = get_global_id(0), inside = at & ((1u << log) - 1);
    const uint other = ((((at >> log) * 2654435761u) & mask) << log) | inside;
    if (scatter) {
        dst[other] = src[at];
    } else {
        dst[at] = src[other];
    }
}
"""


def main(words: list[str]) -> int:
    """Run the command; 1 where a case failed."""
    options = parser().parse_args(words)
    if options.ptx or options.run_ptx:
        return with_ptx(options)
    try:
        began, engine = perf_counter(), cf.Engine(options.device)
    except cf.DeviceError as error:
        print(f"bench gpu: {error}\nWith CUDA alone: --run-ptx, see --help", file=sys.stderr)
        return 2
    if engine.traits.is_cpu:
        print(f"bench gpu: {engine.device.name.strip()} is a CPU: python -m bench", file=sys.stderr)
        return 2
    report = Report(
        datetime.now(timezone.utc).isoformat(timespec="seconds"),
        {**facts(engine), **said(engine), "doctor": doctor()}, asdict(SETTINGS), [],
    )  # fmt: skip
    print("\n".join([*table.machine(report), ""]))
    for name, speed in copies(engine).items():
        report.machine[name] = f"{speed:.0f} GB/s"
        print(f"{name:<40}{speed:>8.0f} GB/s", flush=True)
    print(f"\n{table.heading()}", flush=True)
    for case in chosen(options):
        report.records.append(contest(case, engine, SETTINGS, sweep=options.sweep))
        print(table.row(report.records[-1]), flush=True)
    print("\n".join(table.footer(report)))
    print(f"all in {perf_counter() - began:.0f} s")
    write(options, report, engine)
    return int(any(record.error for record in report.records))


def parser() -> argparse.ArgumentParser:
    """The options."""
    result = argparse.ArgumentParser(prog="python -m bench gpu", description=__doc__)
    add = result.add_argument
    which_cases(result)
    add("--sweep", action="store_true", help="other families and the tuner's space as well")
    add("--json", metavar="FILE", type=Path, help="write the results")
    add("--svg", metavar="FILE", type=Path, help="draw the results")
    add("--ptx", metavar="DIR", type=Path, help="make the kernels as PTX, for a machine with CUDA")
    add("--run-ptx", metavar="DIR", type=Path, help="check and time those: no OpenCL, but CuPy")
    add("--isa", metavar="FILE.zip", type=Path, help="write the sources and the driver's binaries")
    return result


def with_ptx(options: argparse.Namespace) -> int:
    """Make the kernels of the cases as PTX, or run them; 1 where one is wrong, 2 where none is."""
    try:
        if options.ptx:
            made = ptx.write(options.ptx, chosen(options))
            print(f"{len(made)} kernels in {options.ptx}")
            return 0
        wanted = options.cases.search if options.cases else bool
        report = ptx.run(options.run_ptx, SETTINGS, wanted)
    except (RuntimeError, ValueError, ImportError) as error:
        print(f"bench gpu: {error}", file=sys.stderr)
        return 2
    store(options, report)
    return int(any(record.error for record in report.records))


def store(options: argparse.Namespace, report: Report) -> None:
    """The results as they were asked for."""
    if options.json:
        report.write(options.json)
    if options.svg:
        options.svg.write_text(picture(report), encoding="utf-8")


def write(options: argparse.Namespace, report: Report, engine: cf.Engine) -> None:
    """The files that were asked for."""
    store(options, report)
    if options.isa:
        with zipfile.ZipFile(options.isa, "w", zipfile.ZIP_DEFLATED) as archive:
            for case in chosen(options):
                reorder = cf.Reorder(*case.descriptors(), engine, tuned=False, wait=True)
                archive.writestr(f"{case.name}.cl", reorder.source)
                archive.writestr(f"{case.name}.bin", binary(reorder, engine))


def binary(reorder: cf.Reorder, engine: cf.Engine) -> bytes:
    """What the driver made of a kernel: on NVIDIA's that is PTX."""
    import pyopencl as cl

    kernel = engine.kernel(reorder.source, "reorder")
    found: Any = kernel.program.get_info(cl.program_info.BINARIES)
    return bytes(found[0])


def chosen(options: argparse.Namespace) -> Iterator[Case]:
    """The cases to run, as large as they are to be."""
    fixed = () if options.random else MORE
    for case in (*map(scaled, pool(options)), *fixed):
        if options.cases is None or options.cases.search(case.name):
            yield case


def scaled(case: Case) -> Case:
    """A case with more of its outermost dimension, until it moves enough for a GPU."""
    if case.group in (SMALL, LAUNCH) or case.name.startswith(("w1_", "dw_")):
        return case
    first, *others = case.dims
    moved = sum(desc.nbytes for desc in case.descriptors())
    times = max(1, -(-int(LEAST) // moved))
    return replace(case, dims=(first * times, *others))


def said(engine: cf.Engine) -> dict[str, str]:
    """What the device says of itself."""
    names = (
        "local_mem_size", "local_mem_type", "global_mem_cache_size", "global_mem_cacheline_size",
        "global_mem_size", "max_work_group_size", "preferred_vector_width_int",
        "native_vector_width_int", "max_clock_frequency", "mem_base_addr_align", "extensions",
    )  # fmt: skip
    return {name: str(getattr(engine.device, name, "unknown")).strip() for name in names}


def doctor() -> str:
    """What `clformats doctor` prints."""
    printed = StringIO()
    with redirect_stdout(printed):
        clformats_main(["doctor"])
    return printed.getvalue()


def copies(engine: cf.Engine) -> dict[str, float]:
    """GB/s of plain copies by the length of their runs, apart in the source or the destination."""
    import pyopencl as cl

    kernel, stream = engine.kernel(_COPY, "runs"), cf.Stream(engine, profiling=True)
    count = (RUNS_MB << 20) // 16
    read, written = (cl.Buffer(engine.context, cl.mem_flags.READ_WRITE, 16 * count) for _ in "rw")
    cl.enqueue_fill_buffer(stream.queue, read, np.uint32(0x3F9D70A4), 0, 16 * count)

    def batch(log: int, scatter: int) -> rotation.Batch:
        numbers = [np.uint32(n) for n in (log, (count >> log) - 1, scatter)]

        def enqueue(pair: rotation.Pair) -> Any:
            kernel.set_args(*pair, *numbers)
            return cl.enqueue_nd_range_kernel(stream.queue, kernel, (count,), (256,))

        return rotation.opencl_batch(enqueue, [(read, written)])

    batches = {
        f"copy, runs of {nbytes} bytes {'written' if scatter else 'read'} apart":
            batch((nbytes // 16).bit_length() - 1, scatter)
        for nbytes in RUNS for scatter in (0, 1)
    }  # fmt: skip
    times = rotation.race(batches, SETTINGS, np.random.default_rng(1))
    return {name: 32 * count / t.median / 1e9 for name, t in times.items()}
