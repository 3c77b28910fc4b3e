"""Profiles of a device: forced ones change no byte, and measuring survives what may happen."""

from __future__ import annotations

import os
import random
import subprocess
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import replace
from functools import cache
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np
import pyopencl as cl
import pytest

import clformats as cf
from clformats.problems import thresholds
from clformats.problems.refine import problem, separate
from clformats.problems.thresholds import STREAMED_LEAST, STREAMED_MOST
from clformats.problems.traits import Traits
from clformats.programs.background import background
from clformats.programs.processor import processor
from clformats.records import DeviceNames, add
from clformats.records.processors import (
    FASTEST_GB_S,
    ProcessorRecord,
    find_processor,
    processors_file,
)
from clformats.records.record import now
from clformats.reorders import building, calibration, profiles
from clformats.reorders.calibration import CopyTimes, crossing, is_steady
from clformats.reorders.profiles import (
    attempt,
    kept_of,
    measure_later,
    traits_of,
    wants_measuring,
)
from clformats.runtime.engine import vector_bytes_of
from clformats.schedule.schedule import Store
from clformats.schedule.search import ranked
from clformats.tensors.dtypes import convert
from tests.schedules_support import random_problem, with_garbage, written
from tests.support import random_values

MB = 1 << 20
FORCED: dict[str, dict[str, Any]] = {
    "tiny caches": {"streamed_bytes": 0, "FAR_BYTES": 1},
    "huge caches": {"streamed_bytes": 1 << 40, "FAR_BYTES": 1 << 40, "NEAR_BYTES": 1 << 40},
    "no streaming stores": {"streamed_bytes": 1 << 62},
    "slow shuffles": {"SHUFFLE_NS": 1e6},
    "slow memory": {"copied_gb_s": 1, "BYTE_NS": 1e6, "JUMP_BYTES": 1 << 30, "SENT_BYTES": 1 << 30},
    "fast memory": {"copied_gb_s": 10_000},
    "one core": {"compute_units": 1},
    "64 cores": {"compute_units": 64, "ITEM_NS": 0.0},
}
"""What a device is like, and weights of the cost model."""
SIZES = ((2, 17, 5, 7), (1, 33, 13, 3), (3, 16, 8, 8))
PAIRS = (
    ("f32:bfyx", "f32:byxf"), ("u8:byxf", "u8:bfyx"), ("f32:b_fs_yx_fsv16", "f16:bfyx"),
    ("f16:bfyx", "f16:bs_fs_yx_bsv16_fsv16"), ("f32:bfyx", "f32:bfyx"),
)  # fmt: skip


@pytest.fixture
def where(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A folder where nothing is kept, for a process that has not looked yet."""
    monkeypatch.setenv("CLFORMATS_TUNED", str(tmp_path / "tuned"))
    monkeypatch.setattr(profiles, "_kept", cache(find_processor))
    monkeypatch.setattr(profiles, "_tried", set())
    return tmp_path / "tuned"


@pytest.fixture
def idle(monkeypatch: pytest.MonkeyPatch) -> None:
    """A machine that is never busy, and quickly measured."""
    monkeypatch.setattr(calibration, "busy", lambda: "")
    monkeypatch.setattr(calibration, "SPREAD", 1e9)
    monkeypatch.setattr(calibration, "RING_BYTES", 64 * MB)
    monkeypatch.setattr(calibration, "RUN_BYTES", 64 * MB)
    monkeypatch.setattr(calibration, "ROUNDS", 2)


# --- forced profiles ------------------------------------------------------------------------------


def forced(name: str, monkeypatch: pytest.MonkeyPatch) -> cf.schedule.Traits:
    weights = {n for n in FORCED[name] if n.isupper()}
    for weight in weights:
        monkeypatch.setattr(thresholds, weight, FORCED[name][weight])
    own = {n: v for n, v in FORCED[name].items() if n not in weights}
    return cf.schedule.Traits(vector_bytes=32, **own)


@pytest.mark.sampled(14)
@pytest.mark.parametrize("seed", range(24))
@pytest.mark.parametrize("name", FORCED)
def test_a_forced_profile_never_changes_a_byte(
    engine: cf.Engine, name: str, seed: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Of two schedules that it puts first: the best one, and the best with another store."""
    r = random.Random(seed)  # noqa: S311  # cases, not secrets
    p = random_problem(r)
    array = random_values(np.random.default_rng(seed), p.src.dims, p.src.dtype.name)
    source = with_garbage(p.src, array, seed)
    converted = array if p.src.dtype == p.dst.dtype else convert(array, *p.dtypes)
    expected = cf.pack(converted, p.dst).view(np.uint8)
    found = ranked(p, forced(name, monkeypatch))
    others = (s for s in found if s.store != found[0].store)
    for schedule in (found[0], *[next(others, found[0])][: seed % 2]):
        got = written(engine, p, schedule, source)
        assert np.array_equal(got, expected), f"{p.src} -> {p.dst} by {schedule}"


@pytest.mark.parametrize("name", FORCED)
@pytest.mark.parametrize("pair", PAIRS, ids=" ".join)
def test_a_forced_profile_plans_everything(
    name: str, pair: tuple[str, str], monkeypatch: pytest.MonkeyPatch
) -> None:
    traits = forced(name, monkeypatch)
    for dims in (*SIZES, (16, 64, 112, 112)):
        src, dst = (cf.MemoryDesc(dims, *text.split(":")) for text in pair)
        p = problem(src, dst)
        if p.nodes:
            assert ranked(separate(p), traits)


@pytest.mark.parametrize("nbytes", [STREAMED_LEAST, STREAMED_MOST], ids=["least", "most"])
@pytest.mark.parametrize("pair", PAIRS, ids=" ".join)
def test_reorders_by_a_kept_profile(
    engine: cf.Engine, where: Path, pair: tuple[str, str], nbytes: int
) -> None:
    keep(engine, where, nbytes)
    stream = cf.Stream(engine)
    for dims in SIZES:
        src, dst = (cf.MemoryDesc(dims, *text.split(":")) for text in pair)
        array = random_values(np.random.default_rng(1), dims, src.dtype.name)
        source, result = cf.from_numpy(array, engine, format=src.format), cf.Memory(dst, engine)
        cf.Reorder(src, dst, engine)(stream, source, result)
        converted = array if src.dtype == dst.dtype else convert(array, src.dtype, dst.dtype)
        assert np.array_equal(cf.to_numpy(result), cf.unpack(cf.pack(converted, dst), dst))


def keep(engine: cf.Engine, where: Path, nbytes: int) -> None:
    """As if it had been measured."""
    device = DeviceNames(*engine.names)
    add(processors_file(device, where), ProcessorRecord(device, processor(), nbytes, 40, now()))


def read(engine: cf.Engine, where: Path) -> ProcessorRecord | None:
    return find_processor(DeviceNames(*engine.names), where)


# --- from measuring to planning -------------------------------------------------------------------


def test_without_a_file_the_defaults_hold(engine: cf.Engine, where: Path) -> None:
    assert traits_of(engine) == engine.traits
    assert not where.exists(), "looking writes nothing"


def test_what_is_kept_reaches_reorders(
    engine: cf.Engine, where: Path, plans_for_cpus: None
) -> None:
    desc = cf.MemoryDesc((3, MB), "f32", "ab")
    first = str(cf.Reorder(desc, desc, engine).plan.body)
    profiles._kept.cache_clear()
    other = 30 * MB if "stream" in first else 5 * MB
    keep(engine, where, other)
    assert traits_of(engine).stream_bytes == other
    assert str(cf.Reorder(desc, desc, engine).plan.body) != first


def test_calibrating_keeps_what_was_measured(
    engine: cf.Engine, where: Path, idle: None, plans_for_cpus: None
) -> None:
    assert wants_measuring(engine)
    built = engine.programs_built
    traits = cf.calibrate(engine)
    assert engine.programs_built <= built + 2
    kept = read(engine, where)
    assert kept is not None
    assert (kept.stream_bytes, kept.copy_gb_s) == (traits.stream_bytes, traits.copy_gb_s)
    assert traits_of(engine) == traits
    assert not wants_measuring(engine)


def test_a_large_reorder_measures_once_in_the_background(
    engine: cf.Engine, where: Path, monkeypatch: pytest.MonkeyPatch, plans_for_cpus: None
) -> None:
    tried: list[cf.Engine] = []
    monkeypatch.setattr(profiles, "attempt", lambda engine, again: tried.append(engine))
    monkeypatch.setenv(building.WAIT_VARIABLE, "1")
    measure_later(engine, 64 * MB)  # a benchmark may follow
    monkeypatch.delenv(building.WAIT_VARIABLE)
    for nbytes in (4 * MB - 1, 4 * MB, 64 * MB):
        measure_later(engine, nbytes)
    background.later(lambda: None).result(60)
    assert tried == [engine]


def test_what_is_measured_later_is_planned_by_in_the_next_process(
    engine: cf.Engine, where: Path, monkeypatch: pytest.MonkeyPatch, plans_for_cpus: None
) -> None:
    def measured(engine: cf.Engine, *, again: bool) -> str:
        del again
        keep(engine, where, 5 * MB)
        profiles._kept.cache_clear()
        return ""

    planned: list[tuple[Traits, ...]] = []
    monkeypatch.setattr(profiles, "attempt", measured)
    monkeypatch.setattr(profiles, "plan_again", lambda *traits: planned.append(traits))
    monkeypatch.delenv(building.WAIT_VARIABLE)
    measure_later(engine, 64 * MB)
    background.later(lambda: None).result(60)
    assert planned == [
        (engine.traits, replace(engine.traits, streamed_bytes=5 * MB, copied_gb_s=40))
    ]


def test_what_is_no_engine_is_refused(where: Path) -> None:
    with pytest.raises(cf.InvalidArgument, match="engine: got 'pocl'"):
        cf.calibrate("pocl")  # type: ignore[arg-type]


def test_what_is_no_cpu_is_not_measured(as_gpu: cf.Stream, where: Path) -> None:
    engine = as_gpu.engine
    assert cf.calibrate(engine) == engine.traits
    assert not wants_measuring(engine)
    assert "no CPU" in attempt(engine)
    assert not where.exists()


def test_switched_off_nothing_is_measured(
    engine: cf.Engine, where: Path, monkeypatch: pytest.MonkeyPatch, plans_for_cpus: None
) -> None:
    monkeypatch.setenv("CLFORMATS_TUNED", "off")
    assert not wants_measuring(engine)
    assert "off" in attempt(engine)
    assert traits_of(engine) == engine.traits


# --- trouble --------------------------------------------------------------------------------------


def test_a_busy_machine_is_left_alone(
    engine: cf.Engine, where: Path, monkeypatch: pytest.MonkeyPatch, plans_for_cpus: None
) -> None:
    monkeypatch.setattr(os, "getloadavg", lambda: (1e3, 0.0, 0.0))
    monkeypatch.setattr(calibration, "_times", lambda _: pytest.fail("nothing may run"))
    assert "load is 1000.0" in attempt(engine)
    assert kept_of(engine) is None
    assert traits_of(engine) == engine.traits
    assert not wants_measuring(engine), "the next process tries again, not this one"


def test_times_that_do_not_repeat_are_not_kept(
    engine: cf.Engine, where: Path, idle: None, monkeypatch: pytest.MonkeyPatch,
    plans_for_cpus: None,
) -> None:  # fmt: skip
    monkeypatch.setattr(calibration, "SPREAD", 0.0)
    assert "differ from run to run" in attempt(engine)
    assert kept_of(engine) is None


def test_a_busy_machine_keeps_what_was_measured_before(
    engine: cf.Engine, where: Path, monkeypatch: pytest.MonkeyPatch, plans_for_cpus: None
) -> None:
    keep(engine, where, 33 * MB)
    monkeypatch.setattr(calibration, "busy", lambda: "the machine is busy")
    assert cf.calibrate(engine).stream_bytes == 33 * MB


def test_a_spoilt_file_is_measured_again(
    engine: cf.Engine, where: Path, idle: None, plans_for_cpus: None
) -> None:
    path = processors_file(DeviceNames(*engine.names), where)
    where.mkdir()
    path.write_text("{")
    assert wants_measuring(engine)
    assert traits_of(engine) == engine.traits
    assert not attempt(engine)
    assert kept_of(engine) == read(engine, where) != None  # noqa: E711


def test_a_folder_that_cannot_be_written_is_told(
    engine: cf.Engine, where: Path, idle: None, plans_for_cpus: None
) -> None:
    where.write_text("no folder")
    assert "cannot write" in attempt(engine)
    assert traits_of(engine) == engine.traits


def test_a_process_that_waited_takes_what_the_other_has_measured(
    engine: cf.Engine, where: Path, monkeypatch: pytest.MonkeyPatch, plans_for_cpus: None
) -> None:
    def meanwhile(_: Path) -> Iterator[Callable[[object], None]]:
        keep(engine, where, 21 * MB)
        yield lambda _: None

    monkeypatch.setattr(profiles, "appending", contextmanager(meanwhile))
    monkeypatch.setattr(calibration, "measured", lambda _: pytest.fail("it need not measure"))
    assert cf.calibrate(engine).stream_bytes == 21 * MB


TWO = """
import sys
import clformats as cf
from clformats.reorders import calibration
from clformats.reorders.profiles import attempt, traits_of
calibration.busy = lambda: ""
calibration.SPREAD, calibration.ROUNDS = 1e9, 2
calibration.RING_BYTES = calibration.RUN_BYTES = 64 << 20
engine = cf.Engine(sys.argv[1])
reason = attempt(engine, again=False)
assert not reason, reason
print(traits_of(engine).stream_bytes)
"""


def test_two_processes_agree(engine: cf.Engine, where: Path, plans_for_cpus: None) -> None:
    """Both at once: the second one waits, and takes the numbers of the first."""
    root = Path(__file__).resolve().parents[2]
    name = engine.device.name.strip()
    both = [
        subprocess.Popen([sys.executable, "-c", TWO, name], cwd=root, stdout=subprocess.PIPE)
        for _ in range(2)
    ]
    said = [process.communicate()[0].split() for process in both]
    assert [process.returncode for process in both] == [0, 0]
    kept = read(engine, where)
    assert kept is not None
    assert [kept.stream_bytes] * 2 == [int(words[-1]) for words in said]


# --- the numbers ----------------------------------------------------------------------------------


def test_where_streaming_stores_begin_to_gain() -> None:
    sizes = (4, 16, 64)
    assert crossing(sizes, (2.0, 2.0, 2.0)) == 4
    assert crossing(sizes, (0.5, 0.5, 0.5)) == float("inf")
    assert 4 < crossing(sizes, (0.9, 1.5, 2.0)) < 16
    assert 16 < crossing(sizes, (2.0, 0.9, 1.5)) < 64, "from there on, not once"


def test_the_number_is_between_where_copies_gain_and_the_default(
    engine: cf.Engine, monkeypatch: pytest.MonkeyPatch
) -> None:
    """However wrong the times are: the number moves half as far."""
    default = engine.traits.stream_bytes
    for gain in (0.1, 10.0):
        times = dict.fromkeys(calibration.SIZES, CopyTimes(gain, 1e-3))
        monkeypatch.setattr(calibration, "_times", lambda _, times=times: times)
        monkeypatch.setattr(calibration, "busy", lambda: "")
        copies = calibration.SIZES[0] if gain > 1 else STREAMED_MOST
        assert calibration.measured(engine).stream_bytes == round((copies * default) ** 0.5)


def test_copies_with_streaming_stores_are_timed(
    engine: cf.Engine, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The best round counts, as others may use the machine."""

    def turns(runs: dict[tuple[int, Store], object], *_: object, **__: object) -> object:
        return {key: [1e-3, 2e-3, 1e-3] if key[1].streams else [4e-3, 8e-3, 4e-3] for key in runs}

    monkeypatch.setattr(calibration, "turns", turns)
    monkeypatch.setattr(calibration.Ring, "run", lambda *_: None)
    assert calibration._times(engine) == dict.fromkeys(calibration.SIZES, CopyTimes(4.0, 1e-3))


def test_the_largest_copy_whose_times_repeat_tells_how_fast_memory_is(
    engine: cf.Engine, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(calibration, "busy", lambda: "")
    for sizes, seconds, expected in ((7, 1e-3, 46), (5, 1e-3, 21), (7, 1e-6, 46137), (7, 1.0, 1)):
        times = {size: CopyTimes(1.0, seconds) for size in calibration.SIZES[:sizes]}
        monkeypatch.setattr(calibration, "_times", lambda _, times=times: times)
        assert calibration.measured(engine).copy_gb_s == min(expected, FASTEST_GB_S)


@pytest.mark.parametrize("size", calibration.SIZES)
def test_copies_go_round_in_memory_that_no_cache_holds(
    engine: cf.Engine, size: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Each reads what the one before has written, and writes what was read longest ago."""
    log: list[str] = []
    ring = calibration.Ring(engine)
    run = ring.run(size, Store())
    enqueue = cl.enqueue_nd_range_kernel

    def enqueued(queue: cl.CommandQueue, kernel: cl.Kernel, *sizes: Any) -> Any:
        log.append("copy")
        return enqueue(queue, kernel, *sizes)

    def clock() -> float:
        log.append("clock")
        return 0.0

    parts, each = calibration.RING_BYTES // (size // 2), size // 2
    last = np.random.default_rng(0).integers(0, 256, each, np.uint8)
    cl.enqueue_copy(ring.queue, ring.buffer, last, dst_offset=(parts - 1) * each).wait()
    monkeypatch.setattr(cl, "enqueue_nd_range_kernel", enqueued)
    monkeypatch.setattr(calibration, "CLOCK", clock)
    count = calibration.RUN_BYTES // each
    runs = -(-parts // (count + 1))
    for _ in range(runs):
        run()
    assert count >= 4
    assert log == ["copy", "clock", *["copy"] * count, "clock"] * runs
    found = np.empty((parts, each), np.uint8)
    cl.enqueue_copy(ring.queue, found, ring.buffer).wait()
    assert (found == last).all()
    assert ring.at == (runs * (count + 1) % parts or parts) * each, "the next run goes on there"


def test_the_end_of_the_ring_that_no_part_fills_is_passed_over(
    engine: cf.Engine, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(calibration, "RING_BYTES", 64 * MB)
    monkeypatch.setattr(calibration, "RUN_BYTES", 10 * MB)
    ring = calibration.Ring(engine)
    ring.at = 64 * MB - 1  # six parts of 10 MB end before
    ring.run(20 * MB, Store())()
    assert ring.at == 20 * MB, "the first two parts were written"


def test_devices_of_little_memory_are_not_measured(
    engine: cf.Engine, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(calibration, "busy", lambda: "")
    monkeypatch.setattr(calibration, "RING_BYTES", engine.device.global_mem_size)
    with pytest.raises(cf.Error, match="more than an eighth"):
        calibration.measured(engine)


def test_steady_is_what_repeats() -> None:
    assert is_steady([1.0, 1.1, 1.05, 1.0, 9.0]), "one outlier does not count"
    assert not is_steady([1.0, 2.0, 1.0, 2.0, 1.5])


@pytest.mark.parametrize(
    ("platform", "held", "expected"),
    [
        ("Intel(R) OpenCL", "core-avx2", 32),
        ("Intel(R) OpenCL", "skx", 64),
        ("Intel(R) OpenCL", "", 64),
        ("Portable Computing Language", "core-avx2", 64),
    ],
)
def test_a_runtime_held_to_an_older_processor_has_its_vectors(
    platform: str, held: str, expected: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The device itself tells of its own vectors all the same."""
    monkeypatch.setenv("CL_CONFIG_CPU_TARGET_ARCH", held)
    device: Any = SimpleNamespace(
        native_vector_width_int=16, platform=SimpleNamespace(name=platform)
    )
    assert vector_bytes_of(device) == expected
