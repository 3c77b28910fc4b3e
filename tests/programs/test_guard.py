"""A compiler that aborts, hangs or exits takes a child process, and never the user's."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import threading
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import clformats as cf
from clformats.kernels import Launch, render, universal
from clformats.programs import cache as programs
from clformats.programs import guard, outcomes
from clformats.programs.background import background
from clformats.reorders import building
from tests.compiler_support import ROOT, Faulty, faulty
from tests.device_support import check_reorder
from tests.tiers import tiered

D = cf.MemoryDesc
SRC, DST = D((2, 35, 9, 7), "u8", "bfyx"), D((2, 35, 9, 7), "u8", "b_fs_yx_fsv16")
DIED = outcomes.CompilerDied
PUTS = [f"__kernel void put(__global int *p) {{ *p = {k}; }}" for k in range(2)]
"""Sources of little kernels."""


@pytest.fixture
def own(engine: cf.Engine, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[cf.Engine]:
    """A guarded engine that finds nothing on disk; no worker is there yet."""
    monkeypatch.setenv(guard.SWITCH, "1")
    monkeypatch.delenv("PYOPENCL_NO_CACHE", raising=False)
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    monkeypatch.setattr(outcomes, "_known", {})
    workers = guard.Workers()
    monkeypatch.setattr(guard, "workers", workers)
    yield cf.Engine(context=engine.context, device=engine.device)
    background.later(lambda: None).result(60)
    workers.stop()


class Compiler:
    """What is faulty in each worker; this process must not build the victims."""

    def __init__(self, made: Faulty, monkeypatch: pytest.MonkeyPatch) -> None:
        self._made, self._patch = made, monkeypatch
        self.count = made.count

    def fails(self, fault: str, *victims: str) -> None:
        """From the next worker on."""
        import pyopencl as cl

        for name, value in self._made.environ(fault, *victims).items():
            self._patch.setenv(name, value)
        real = cl.Program.build

        def build(program: Any, *arguments: Any, **more: Any) -> Any:
            assert "build" not in fault or vars(program).get("_source") not in victims, (
                "built in the user's process"
            )
            return real(program, *arguments, **more)

        self._patch.setattr(cl.Program, "build", build)


@pytest.fixture
def compiler(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Compiler:
    return Compiler(faulty(tmp_path / "faulty"), monkeypatch)


def made_for(engine: cf.Engine, count: int = 1) -> list[Launch]:
    """The kernel of the plan for `SRC` and `DST`, and those of the next best plans."""
    plan = cf.make_plan(SRC, DST, engine.traits)
    first = render(plan)
    assert first
    return [first, *(other for _, other in building.others(plan))][:count]


def is_right(reorder: cf.Reorder, engine: cf.Engine) -> bool:
    array = np.random.default_rng(0).integers(0, 255, SRC.dims).astype(np.uint8)
    src, dst = cf.from_numpy(array, engine), cf.Memory(DST, engine)
    reorder(cf.Stream(engine), src, dst).wait()
    return bool((cf.to_numpy(dst) == array).all())


@pytest.mark.usefixtures("plans_for_cpus")
@pytest.mark.parametrize(
    "fault",
    tiered(["abort at build", "exit at build", "abort at launch"], ["abort at launch"]),
)
def test_a_reorder_goes_on_by_another_plan(own: cf.Engine, compiler: Compiler, fault: str) -> None:
    (victim,) = made_for(own)
    compiler.fails(fault, victim.source)
    reorder = cf.Reorder(SRC, DST, own)  # the suite waits for kernels
    assert reorder.source != victim.source
    assert is_right(reorder, own)
    why = {"abort": "signal SIGABRT", "exit": "exit status 8"}[fault[: fault.index(" ")]]
    assert f"not scheduled kernel {programs.key(own._wanted(victim.source))[:12]}" \
        in str(reorder.plan)  # fmt: skip
    assert f"ended the compiler of {own.device.name}" in str(reorder.plan)
    assert why in str(reorder.plan)
    assert compiler.count(victim.source) == 2, "what ended one worker is tried once more"
    again = cf.Engine(context=own.context, device=own.device)
    outcomes._known.clear()  # as in the next process
    assert cf.Reorder(SRC, DST, again).source == reorder.source
    assert compiler.count(victim.source) == 2, "remembered"


QUANTISED = {
    "decodes": (D((64, 96), "q8_0", "gguf"), D((64, 96), "f16", "ba"), "decodes twice"),
    "moves": (D((64, 96), "q4_0", "gguf"), D((64, 96), "q4_0", "transposed"), "host"),
    "quantises": (D((64, 96), "f32", "ab"), D((64, 96), "q8_0", "gguf"), "host"),
}


@pytest.mark.usefixtures("plans_for_cpus")
@pytest.mark.parametrize("family", tiered([*QUANTISED], ["decodes"]))
def test_a_reorder_of_quantised_tensors_goes_on_too(
    own: cf.Engine, compiler: Compiler, monkeypatch: pytest.MonkeyPatch, family: str
) -> None:
    """Drivers may generate code at the first launch, so that it takes place in the worker."""
    src, dst, then = QUANTISED[family]
    with monkeypatch.context() as unguarded:
        unguarded.setenv(guard.SWITCH, "0")
        unguarded.setenv("PYOPENCL_NO_CACHE", "1")
        best: Any = cf.Reorder(src, dst, own)
    assert best.plan.family == family
    compiler.fails("abort at launch", *(k.source for k, _ in best._work.kernels))
    reorder = cf.Reorder(src, dst, cf.Engine(context=own.context, device=own.device))
    assert reorder.plan.family == then
    assert f"ended the compiler of {own.device.name}" in str(reorder.plan)
    array = np.random.default_rng(0).standard_normal(src.dims).astype(np.float32)
    results = []
    for made in (best, reorder):
        memory, target = cf.Memory(src, made.engine), cf.Memory(dst, made.engine)
        with memory.map("w") as flat:
            flat[:] = cf.pack(array, src)
        made(cf.Stream(made.engine), memory, target).wait()
        with target.map("r") as flat:
            results.append(flat.tobytes())
    assert results[0] == results[1]


def test_index_kernels_run_in_the_worker_first(own: cf.Engine, compiler: Compiler) -> None:
    kernels = cf.IndexKernels(SRC, own)
    compiler.fails("abort at launch", kernels.source)
    with pytest.raises(cf.CompilerDied, match="ended the compiler"):
        kernels.offset_map()


def test_in_the_background_too(
    own: cf.Engine, compiler: Compiler, monkeypatch: pytest.MonkeyPatch
) -> None:
    if not own.traits.is_cpu:
        pytest.skip("GPUs wait for their kernels")
    monkeypatch.delenv(building.WAIT_VARIABLE, raising=False)
    (victim,) = made_for(own)
    compiler.fails("abort at build", victim.source)
    own.kernel(universal.source(), "reorder")
    reorder = cf.Reorder(SRC, DST, own)
    assert not reorder.is_built
    assert is_right(reorder, own)
    reorder.wait(60)
    assert reorder.source not in (victim.source, universal.source())
    assert "signal SIGABRT" in str(reorder.plan)
    assert is_right(reorder, own)


def test_a_compiler_that_hangs_is_ended(
    own: cf.Engine, compiler: Compiler, monkeypatch: pytest.MonkeyPatch
) -> None:
    (victim,) = made_for(own)
    compiler.fails("hang at build", victim.source)
    own.kernel(PUTS[0], "put")  # a worker is there, and has a context
    limits = iter((2.0,))  # for the victim
    monkeypatch.setattr(guard, "limit", lambda: next(limits, 60.0))
    reorder = cf.Reorder(SRC, DST, own)
    assert is_right(reorder, own)
    assert "no answer in 2 s while it was built" in str(reorder.plan)
    assert compiler.count(victim.source) == 1, "not tried for as long again"


@pytest.mark.slow
@pytest.mark.parametrize("family", ["universal", "generic"])
def test_where_all_others_fail_a_last_resort_does_the_work(
    own: cf.Engine, compiler: Compiler, monkeypatch: pytest.MonkeyPatch, family: str
) -> None:
    monkeypatch.setattr(building, "OTHER_TILES", 1)
    *victims, same, each = made_for(own, 99)
    assert (len(victims), same.source) == (4, universal.source()), "two tiles, two generic"
    last = same
    if family == "generic":
        victims, last = [*victims, same], each
    compiler.fails("exit at build", *(v.source for v in victims))
    reorder = cf.Reorder(SRC, DST, own)
    assert is_right(reorder, own)
    assert (reorder.plan.family, reorder.source) == (family, last.source)
    assert str(reorder.plan).count("ended the compiler") == len(victims)


def test_the_universal_program_has_no_better_one_to_wait_for(own: cf.Engine) -> None:
    reorder = cf.Reorder(SRC, DST, own, family="universal")
    assert "  family  universal: element by element" in str(reorder.plan)
    assert is_right(reorder, own)
    with pytest.raises(cf.Unsupported, match="universal program has not its types"):
        cf.Reorder(SRC, DST, own, attr=cf.Attr(src_scale=2.0), family="universal")


@pytest.mark.usefixtures("plans_for_cpus")
def test_whoever_names_a_kernel_gets_an_error(own: cf.Engine, compiler: Compiler) -> None:
    (victim,) = made_for(own)
    compiler.fails("exit at build", victim.source)
    with pytest.raises(DIED, match=r"exit status 8 while it was built.*doctor --killed") as raised:
        cf.Reorder(SRC, DST, own, family="scheduled")
    assert raised.value.name == "COMPILER_DIED"
    assert "cannot emit physreg copy" in raised.value.log


def test_where_no_plan_is_built_the_error_says_so(own: cf.Engine, compiler: Compiler) -> None:
    compiler.fails("exit at build")
    with pytest.raises(DIED):
        cf.Reorder(D(SRC.dims, "u8", "bfyx"), D(SRC.dims, "u8", "bfyx"), own)


@pytest.mark.slow
def test_whom_the_system_kills_is_not_to_blame(own: cf.Engine, compiler: Compiler) -> None:
    (victim,) = made_for(own)
    compiler.fails("kill at launch", victim.source)
    assert cf.Reorder(SRC, DST, own).source == victim.source
    assert not list(outcomes.killers(programs.cache_folder()))


def test_a_full_disk_is_not_the_compilers_fault(own: cf.Engine, compiler: Compiler) -> None:
    compiler.fails("fill at build", PUTS[0])
    with pytest.raises(cf.DeviceError, match=r"No space left on device\. Free some") as raised:
        own.kernel(PUTS[0], "put")
    assert not isinstance(raised.value, DIED)
    assert not list(outcomes.killers(programs.cache_folder()))


@pytest.mark.parametrize(("given", "seconds"), [("inf", guard.LONGEST), ("7", 7), ("x", 60)])
def test_the_limit_is_a_time_that_can_be_waited_for(
    given: str, seconds: float, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv(guard.LIMIT, given)
    assert guard.limit() == seconds


def test_binaries_are_not_asked_again_of_a_driver_that_died_of_it(
    own: cf.Engine, compiler: Compiler, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(programs, "_gives_slowly", lambda device: True)
    compiler.fails("abort at binary")
    for source in PUTS:
        own.kernel(source, "put")
        background.later(lambda: None).result(60)
    assert compiler.count(PUTS[0], "binary") == 2
    assert compiler.count(PUTS[1], "binary") == 0
    folder = programs.cache_folder()
    assert folder
    assert not list(programs.entries(folder))
    (found,) = outcomes.killers(folder)
    assert found.stage == outcomes.BINARY
    assert found.source == PUTS[0]


def test_threads_share_the_workers(own: cf.Engine, compiler: Compiler) -> None:
    (victim,) = made_for(own)
    compiler.fails("exit at build", victim.source)
    right: list[bool] = []

    def move() -> None:
        right.append(is_right(cf.Reorder(SRC, DST, own), own))

    threads = [threading.Thread(target=move) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert right == [True] * 4
    assert compiler.count(victim.source) == 2


def test_an_error_in_the_source_is_told_as_ever(own: cf.Engine) -> None:
    with pytest.raises(cf.DeviceError, match="undeclared") as raised:
        own.kernel("__kernel void f(__global int *p) { *p = nowhere; }", "f")
    assert not isinstance(raised.value, DIED)


def test_control_c_leaves_no_answer_for_the_next(
    own: cf.Engine, monkeypatch: pytest.MonkeyPatch
) -> None:
    line = guard.Worker._line

    def interrupted(self: guard.Worker) -> object:
        monkeypatch.setattr(guard.Worker, "_line", line)
        raise KeyboardInterrupt

    with guard.workers.one():
        monkeypatch.setattr(guard.Worker, "_line", interrupted)
    with pytest.raises(KeyboardInterrupt):
        own.kernel(PUTS[0], "put")
    for source in PUTS[::-1]:
        own.kernel(source, "put")
    assert own.programs_built == 2


def test_a_worker_that_went_is_replaced(own: cf.Engine) -> None:
    own.kernel(PUTS[0], "put")
    with guard.workers.one() as worker:
        assert worker
        worker._process.kill()
        worker._process.wait()
    assert worker._errors.closed
    own.kernel(PUTS[1], "put")
    with guard.workers.one() as another:
        assert another not in (None, worker)


@pytest.mark.parametrize("python", tiered(["", "/blender", "/nowhere/python3"], ["/blender"]))
def test_where_no_python_can_start_this_process_builds(
    own: cf.Engine, monkeypatch: pytest.MonkeyPatch, python: str
) -> None:
    monkeypatch.setattr(sys, "executable", python)
    assert is_right(cf.Reorder(SRC, DST, own), own)


WHOLE, SUMMED = (2, 17, 5, 3), (33, 17, 3, 3)
FAMILIES = {
    "operands": (D(WHOLE, "f32", "bfyx"), D(WHOLE, "s8", "b_fs_yx_fsv32"),
                 cf.Attr(src_scale=2.0, src_zero_point=([1] * 17, 2))),
    "words": (D(WHOLE, "s8", "bfyx"), D(WHOLE, "s8", "bfyx"), None),
    "nibbles": (D(WHOLE, "u4", "bfyx"), D(WHOLE, "f16", "byxf"), None),
    "tables": (D(WHOLE, "f32", "aBcd24b"), D(WHOLE, "f32", "aBcd16b"), None),
    "generic": (D(WHOLE, "f32", "bfyx"), D(WHOLE, "f32", "bf8_xy16"), None),
    "sums": (D(SUMMED, "f32", "oihw"),
             D(SUMMED, "s8", "OIhw4i16o4i", extra=cf.Extra(1, s8s8=True)), None),
}  # fmt: skip


@pytest.mark.parametrize("name", tiered([*FAMILIES], ["operands"]))
def test_kernels_are_tried_with_memory_that_holds_them(own: cf.Engine, name: str) -> None:
    """They run in the worker without a fault, with operands, scalars and sums."""
    src, dst, attr = FAMILIES[name]
    check_reorder(src, dst, cf.Stream(own), attr=attr)
    assert not list(outcomes.killers(programs.cache_folder()))


def test_a_report_has_what_a_drivers_authors_need(own: cf.Engine, compiler: Compiler) -> None:
    (victim,) = made_for(own)
    compiler.fails("abort at build", victim.source)
    cf.Reorder(SRC, DST, own)
    (found,) = outcomes.killers(programs.cache_folder())
    text = outcomes.report(found)
    for part in (victim.source.rstrip(), own.device.name, own.device.driver_version, cf.__version__,
                 "cannot emit physreg copy", "SIGABRT"):  # fmt: skip
        assert part in text


@pytest.mark.parametrize(
    "text",
    ["", "{", "[]", "{}", '{"outcome": 3}', '{"outcome": "died", "x": 1}', '{"outcome": "odd"}',
     '{"outcome": "built", "binary": "x"}'],
)  # fmt: skip
def test_a_damaged_outcome_is_none(tmp_path: Path, text: str) -> None:
    (tmp_path / "0123.json").write_text(text)
    assert outcomes.recall("0123", tmp_path) is None
    assert not list(outcomes.killers(tmp_path))


BEGIN = """
import multiprocessing, os, sys
import numpy as np
import clformats as cf

def works(name):
    engine = cf.Engine(name)
    array = np.random.default_rng(0).integers(0, 255, (2, 35, 9, 7)).astype('u1')
    reorder = cf.Reorder('u8:bfyx:2x35x9x7', 'u8:b_fs_yx_fsv16:2x35x9x7', engine)
    source, target = cf.from_numpy(array, engine), cf.Memory(reorder.dst, engine)
    for _ in range(2):
        reorder(cf.Stream(engine), source, target).wait()
        assert (cf.to_numpy(target) == array).all()
        reorder.wait(100)
    assert 'ended the compiler' in str(reorder.plan), reorder.plan
"""
PROCESSES = {
    "-c": "works(sys.argv[1])",
    "twice": "works(sys.argv[1])",
    "waiting": "os.environ['CLFORMATS_WAIT'] = '1'; works(sys.argv[1])",
    "fork before": """
if not (child := os.fork()):
    works(sys.argv[1])
    os._exit(7)
assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 7
works(sys.argv[1])
""",
    "fork after": """
works(sys.argv[1])
if not (child := os.fork()):
    os._exit(7)
assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 7
engine = cf.Engine(sys.argv[1])
assert cf.Reorder('u8:bfyx:2x35x9x7', 'u8:byxf:2x35x9x7', engine, wait=True).is_built
""",
    "ends at once": """
cf.Reorder('u8:bfyx:2x35x9x7', 'u8:b_fs_yx_fsv16:2x35x9x7', cf.Engine(sys.argv[1]))
""",
}


@pytest.mark.parametrize("name", tiered([*PROCESSES], ["-c"]))
def test_a_process_survives(
    name: str, engine: cf.Engine, compiler: Compiler, tmp_path: Path
) -> None:
    """The compiler of the user's process is the faulty one as well."""
    (victim,) = made_for(engine)
    kept = {
        k: v
        for k, v in os.environ.items()
        if k not in (building.WAIT_VARIABLE, guard.SWITCH, "HOME")
    }
    environ = kept | compiler._made.environ("abort at build", victim.source)
    environ |= {"XDG_CACHE_HOME": str(tmp_path), "POCL_CACHE_DIR": str(tmp_path / "pocl")}
    environ.pop("PYOPENCL_NO_CACHE", None)
    line = [sys.executable, "-c", BEGIN + PROCESSES[name], engine.device.platform.name]
    done = subprocess.run(
        line, env=environ, cwd=tmp_path, capture_output=True, text=True, timeout=300, check=False
    )
    assert done.returncode == 0, done.stderr
    assert "Traceback" not in done.stderr
    if name in ("-c", "twice"):
        assert compiler.count(victim.source) == 2
        if name == "twice":
            again = subprocess.run(line, env=environ, cwd=tmp_path, timeout=300, check=False)
            assert again.returncode == 0
            assert compiler.count(victim.source) == 2
        _doctor_lists_it(environ, victim.source)


def _doctor_lists_it(environ: dict[str, str], source: str) -> None:
    def doctor(*arguments: str) -> str:
        line = [sys.executable, "-m", "clformats", "doctor", *arguments]
        return subprocess.run(
            line, env=environ, cwd=ROOT, capture_output=True, text=True, check=False
        ).stdout

    assert source.rstrip() in doctor("--killed")
    (found,) = json.loads(doctor("--killed", "--json"))
    assert found["source"] == source
