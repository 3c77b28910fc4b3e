"""Oclgrind watches a sample of reorders: no access out of bounds, no uninitialised value used.

Oclgrind 21.10 tracks uninitialised values wrongly through shuffles of two vectors (a plain
`__builtin_shufflevector(x, y, 1, 17, ...)` of loaded vectors is reported), and crashes where a
vector is built from shorter ones (`(float8)(x, y)` of two float4). So that run takes the kernels'
portable form, and leaves out the cases that crash it. `Engine` builds kernels for Oclgrind without
prefetches and without its optimiser.
"""

from __future__ import annotations

import os
import random
import shutil
import subprocess
import sys
from collections.abc import Iterable
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import clformats as cf
from clformats.kernels import universal
from clformats.problems.computation import from_attr
from clformats.schedule import Traits
from clformats.schedule.universal import serves

ROOT = Path(__file__).parent.parent.parent
GPU = Traits(is_cpu=False)
REPORTS = ("Invalid", "Uninitialized", "Read-write", "Write-write", "OCLGRIND", "Oclgrind")

PROBLEMS = 5
"""Random problems of a process, with five schedules each."""
MOST_ELEMENTS = 3000

PORTABLE = "-DCLFORMATS_PORTABLE"  # the kernels without compiler built-ins, as on any OpenCL C 1.2

# (source, destination), small: the simulator runs some thousand times slower than a device.
CASES = [
    ("f32:bfyx:1x3x5x7", "f32:bfyx:1x3x5x7"),
    ("f32:bfyx:1x3x5x7", "f16:bfyx:1x3x5x7"),
    ("f32:bfyx:2x17x5x4", "f32:b_fs_yx_fsv16:2x17x5x4"),
    ("f32:b_fs_yx_fsv16:2x17x5x4", "f32:bfyx:2x17x5x4"),
    ("u8:byxf:1x3x9x7", "f16:b_fs_yx_fsv16:1x3x9x7"),
    ("f16:b_fs_yx_fsv16:1x3x9x7", "u8:byxf:1x3x9x7"),
    ("u8:bfyx:1x18x5x5", "u8:byxf:1x18x5x5"),
    ("f32:byxf:2x19x3x5", "s8:b_fs_yx_fsv4:2x19x3x5"),
    ("s8:oiyx:19x21x3x3", "s8:os_is_yx_isa8_osv8_isv4:19x21x3x3"),
    ("bf16:oiyx:17x15x3x3", "f32:os_is_yx_isv16_osv16:17x15x3x3"),
    ("s32:aBcd24b:1x25x3x3", "s32:aBcd16b:1x25x3x3"),
    ("f32:bfyx:1x5x4x6", "f32:bfyx:1x5x4x6:pad=0+0x3+2x1+1x2+0"),
    ("f32:ab:5x7:strides=9x1", "f32:ab:5x7:strides=1x6"),
    ("s8:oiyx:33x5x3x3", "s8:os_iyx_osv16_rotate_180:33x5x3x3"),
]


# Those whose kernels build no vector from shorter ones.
WHOLE_VECTORS = [0, 1, 2, 3, 4, 6, 7, 13]

CHANNELS = {"src_zero_point": (range(17), 2), "dst_scale": (range(1, 18), 2)}
# Those that compute: behind the two descriptors the attributes.
COMPUTED: list[tuple[str, str, dict[str, Any]]] = [
    ("f32:bfyx:1x17x5x4", "s8:bfyx:1x17x5x4", {"src_scale": 0.5, "beta": 2}),
    ("f32:bfyx:1x17x5x4", "f16:b_fs_yx_fsv16:1x17x5x4", CHANNELS | {"beta": 1}),
    ("u8:byxf:1x17x5x4", "f32:bfyx:1x17x5x4", CHANNELS | {"expression": "max(x, 0) + 1"}),
    ("u8:byxf:1x3x9x7", "f16:b_fs_yx_fsv16:1x3x9x7", {"src_scale": ([1, 2, 3], 2)}),
    ("u8:byxf:1x3x3x17", "f32:byxf:1x3x3x17", {"src_zero_point": ([1, 2, 3], 2)}),
    ("s8:aBcd24b:1x17x3x3", "s8:aBcd16b:1x17x3x3", CHANNELS | {"beta": 1}),
    ("s8:bfyx:1x17x3x3", "s8:bf8_xy16:1x17x3x3", CHANNELS | {"beta": 1}),
    ("f32:ab:5x7:strides=9x1", "f32:ab:5x7:strides=1x6", {"beta": ([1, 2, 3, 4, 5], 1)}),
    ("f32:oihw:18x5x2x3", "s8:OIhw4i16o4i:18x5x2x3:s8s8=1:asymmetric=1", {}),
    ("f32:oihw:18x5x2x3", "s8:hwio:18x5x2x3:s8s8=1", {}),  # the last vector overlaps another
    ("f32:oihw:18x5x2x3", "s8:oihw:18x5x2x3:s8s8=1", {}),  # 30 bytes: a vector, then byte by byte
    ("f32:ldigo:1x2x5x3x17", "s8:ldigo_p:1x2x5x3x17", {}),
    ("f32:oihw:17x3x3x3", "f32:winograd_2x3_s1_weights:17x3x3x4", {}),
    ("f32:bfyx:1x3x4x8", "f16:winograd_2x3_s1_data:1x3x4x12", {}),
    ("s4:ab:6x10", "f16:ba:6x10", {}),
    ("f32:ab:3x38", "u4:ab:3x38", {"src_scale": 0.1}),
    ("f8_e4m3:bfyx:1x17x5x4", "f8_e5m2:b_fs_yx_fsv16:1x17x5x4", {}),
]
SHUFFLED = ("f32:a", "u4:ab")
# Planned as for a GPU.
ON_GPUS: list[tuple[str, str, dict[str, Any]]] = [
    ("f32:bfyx:1x3x5x7", "f16:bfyx:1x3x5x7", {}),
    ("f32:bfyx:2x17x5x4", "f32:b_fs_yx_fsv16:2x17x5x4", {}),
    ("u8:b_fs_yx_fsv16:2x20x5x8", "u8:bfyx:2x20x5x8", {}),
    ("u8:byxf:1x3x9x8", "u8:bfyx:1x3x9x8", {}),
    ("f16:bfyx:1x18x5x6", "f16:byxf:1x18x5x6", {}),
    ("u8:b_fs_yx_fsv4:1x20x3x5", "u8:b_fs_yx_fsv32:1x20x3x5", {}),
    ("s8:oiyx:19x21x3x3", "s8:os_is_yx_isa8_osv8_isv4:19x21x3x3", {}),
    ("f32:bfyx:1x5x4x6", "f32:bfyx:1x5x4x6:pad=0+0x3+2x1+1x2+0", {}),
    ("f32:byxf:1x20x3x5", "f32:b_fs_yx_fsv16:1x20x3x5", {}),
    ("f32:bfyx:1x17x5x4", "f16:b_fs_yx_fsv16:1x17x5x4", CHANNELS | {"beta": 1}),
    ("u8:byxf:1x17x5x4", "f32:bfyx:1x17x5x4", CHANNELS | {"expression": "max(x, 0) + 1"}),
]
# Planned as where the tensors exceed the cache.
LARGE: list[tuple[str, str, dict[str, Any]]] = [
    ("f32:byxf:1x48x3x16", "f32:bfyx:1x48x3x16", {}),
    ("f32:byxf:1x50x3x5", "f32:b_fs_yx_fsv16:1x50x3x5", {}),
    ("f16:bfyx:1x64x8x5", "f16:byxf:1x64x8x5", {}),
    ("f32:oiyx:17x19x3x3", "f32:hwio:17x19x3x3", {}),
    ("f32:os_is_yx_isv16_osv16:16x32x3x3", "f32:oiyx:16x32x3x3", {}),
    ("f32:b_fs_yx_fsv4:1x5x17x19", "f32:bfyx:1x5x17x19", {}),
    ("f16:b_fs_yx_fsv16:1x17x19x34", "f16:bfyx:1x17x19x34", {}),
    ("f32:b_fs_yx_fsv4:1x37x5x7", "f32:bfyx:1x37x5x7", {}),
    ("f32:byxf:5x32x3x7", "f32:bfyx:5x32x3x7", {}),
    ("f16:oiyx:16x32x3x3", "f16:os_is_yx_isv16_osv16:16x32x3x3", {}),
    ("s8:oiyx:16x8x3x3", "s8:os_is_yx_osv16_isv4:16x8x3x3", {}),
    ("f32:os_is_yx_osv16_isv4:16x16x3x3", "f32:oiyx:16x16x3x3", {}),
    ("f32:bfyx:2x37x3x7", "f32:byxf:2x37x3x7", {}),
    ("f16:bfyx:2x67x3x9", "f16:byxf:2x67x3x9", {}),
    ("u8:b_fs_yx_fsv16:1x20x15x19", "u8:bfyx:1x20x15x19", {}),
    ("u8:b_fs_yx_fsv16:1x16x83x61", "u8:bfyx:1x16x83x61", {}),
    ("u8:bfyx:1x250x5x7", "u8:byxf:1x250x5x7", {}),
    ("f32:byxf:1x33x17x23", "f32:bfyx:1x33x17x23", {}),
    ("u8:byxf:1x100x37x39", "u8:bfyx:1x100x37x39", {}),
    ("f32:bs_fs_yx_bsv32_fsv32:33x35x2x3", "f32:bfyx:33x35x2x3", {}),
    ("f32:yxfb:3x16x5x7", "f32:b_fs_yx_fsv16:3x16x5x7", {}),
    ("f32:byxf:1x5x9x7", "f16:b_fs_yx_fsv16:1x5x9x7", {}),
    ("f32:hwio:32x32x3x3", "f32:oiyx:32x32x3x3", {}),
    ("f32:b_fs_yx_fsv16:2x20x5x7", "s8:byxf:2x20x5x7", {}),
    ("u8:b_fs_yx_fsv32:2x40x5x7", "u8:byxf:2x40x5x7", {}),
    ("f32:b_fs_yx_fsv4:1x135x46x46", "f32:byxf:1x135x46x46", {}),
]
# Large ones that build vectors from shorter ones.
CRASHING = [
    ("f16:oiyx:16x32x3x3", "f16:os_is_yx_isv16_osv16:16x32x3x3"),
    ("f32:b_fs_yx_fsv16:2x20x5x7", "s8:byxf:2x20x5x7"),
    ("u8:b_fs_yx_fsv32:2x40x5x7", "u8:byxf:2x40x5x7"),
]
# A run of tiles is sent as a whole, those of its tiles that are at an edge are written later.
SENT_EARLY = [("f32:oiyx:17x19x3x3", "f32:hwio:17x19x3x3")]
EVERY = [*((a, b, {}) for a, b in CASES), *COMPUTED, *LARGE, *ON_GPUS]
GPU_FROM = len(EVERY) - len(ON_GPUS)
LARGE_FROM = GPU_FROM - len(LARGE)


def test_the_cases_reach_every_family() -> None:
    plans = [cf.make_plan(cf.MemoryDesc.parse(a), cf.MemoryDesc.parse(b)) for a, b in CASES]
    families = {"scheduled", "generic"}
    assert {p.family for p in plans} == families
    assert {plans[k].family for k in WHOLE_VECTORS} == families
    reached = set()
    for a, b, given in COMPUTED:
        src, dst = cf.MemoryDesc.parse(a), cf.MemoryDesc.parse(b)
        computation = from_attr(cf.Attr(**given), src, dst)
        reached.add(cf.make_plan(src, dst, computation=computation).family)
    assert reached == families | {"winograd"}
    pairs = [(cf.MemoryDesc.parse(a), cf.MemoryDesc.parse(b)) for a, b, _ in ON_GPUS]
    assert {cf.make_plan(*p, GPU).family for p in pairs} == {"local", "rows"}


@pytest.mark.parametrize("options", ["", PORTABLE])
def test_nothing_out_of_bounds(options: str) -> None:
    _watch(range(len(EVERY)), options)


def test_no_two_work_items_race() -> None:
    """Where work-items share local memory, or write what others read."""
    _watch(range(GPU_FROM, len(EVERY)), "", "--data-races")


def test_nothing_uninitialised() -> None:
    first = len(CASES)
    # Among those that compute one builds a vector from shorter ones, one takes even and odd lanes.
    computed = [first + k for k in range(len(COMPUTED)) if COMPUTED[k][1][:5] not in SHUFFLED]
    left_out = [k for k in range(LARGE_FROM, len(EVERY)) if EVERY[k][:2] in CRASHING + SENT_EARLY]
    others = [k for k in range(LARGE_FROM, len(EVERY)) if k not in left_out]
    _watch([*WHOLE_VECTORS, *computed, *others], PORTABLE, "--uninitialized")


@pytest.mark.parametrize("seed", range(10))
def test_no_schedule_goes_out_of_bounds(seed: int) -> None:
    """Random schedules of random problems, as `test_schedules` runs them."""
    _watch(range(seed * PROBLEMS, (seed + 1) * PROBLEMS), "", what="schedules")


def _watch(cases: Iterable[int], options: str, *flags: str, what: str = "reorders") -> None:
    """Run the cases under oclgrind in a process of their own; fail on any report."""
    if not shutil.which("oclgrind"):
        pytest.skip("oclgrind is not installed: apt-get install oclgrind")
    numbers = [what, *map(str, cases)]
    build = ["--build-options", options] if options else []
    command = ["oclgrind", *build, *flags, sys.executable, __file__, *numbers]
    # Oclgrind reads each kernel as source; a program from a cache would be a foreign binary to it.
    environment = {**os.environ, "PYOPENCL_NO_CACHE": "1", "PYTHONPATH": str(ROOT)}
    done = subprocess.run(
        command, env=environment, capture_output=True, text=True, check=False, cwd=ROOT
    )
    output = done.stdout + done.stderr
    assert done.returncode == 0, output
    assert f"{len(numbers) - 1} {what}" in done.stdout
    assert not [s for s in output.splitlines() if s.startswith(REPORTS)], output


def _run_reorders(numbers: Iterable[int]) -> None:
    """Run cases on the device that oclgrind simulates, checked against the host."""
    from tests.device_support import check_reorder

    for number in numbers:
        source, target, given = EVERY[number]
        engine = cf.Engine("oclgrind")
        if number >= GPU_FROM:
            engine.__dict__["traits"] = replace(GPU, group_size=32)
        elif number >= LARGE_FROM:
            large = replace(engine.traits, streamed_bytes=0, vector_bytes=64, compute_units=1)
            engine.__dict__["traits"] = large
        attr = cf.Attr(**given) if given else None
        pair = cf.MemoryDesc.parse(source), cf.MemoryDesc.parse(target)
        check_reorder(*pair, cf.Stream(engine), attr=attr)


def _run_schedules(seeds: Iterable[int]) -> None:
    """Run random schedules of small random problems, checked against the host."""
    from tests.schedules_support import (
        before_and_after,
        ran,
        random_problem,
        random_schedules,
        written,
    )

    engine = cf.Engine("oclgrind")
    for seed in seeds:
        r = random.Random(seed)  # noqa: S311  # cases, not secrets
        p = random_problem(r)
        while max(p.src.nelems, p.dst.nelems) > MOST_ELEMENTS:
            p = random_problem(r)
        source, expected = before_and_after(p, seed)
        if serves(p):
            got = ran(engine, p, universal.render_problem(p, 3), source, "the universal program")
            assert np.array_equal(got, expected), f"{p.src} -> {p.dst} by the universal program"
        for schedule in random_schedules(r, p):
            got = written(engine, p, schedule, source)
            assert np.array_equal(got, expected), f"{p.src} -> {p.dst} by {schedule}"


def _main(what: str, *numbers: str) -> None:
    """Run what the tests watch, in a process that oclgrind has started."""
    {"reorders": _run_reorders, "schedules": _run_schedules}[what](map(int, numbers))
    print(f"{len(numbers)} {what}")  # noqa: T201  # the test reads it


if __name__ == "__main__":
    _main(*sys.argv[1:])
