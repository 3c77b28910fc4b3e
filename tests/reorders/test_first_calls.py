"""The first calls of a reorder: another kernel stands in while the plan's own is built."""

from __future__ import annotations

import os
import subprocess
import sys
import threading
import time
import warnings
from collections.abc import Callable, Iterator
from concurrent.futures import Future
from dataclasses import replace
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest

import clformats as cf
from clformats.kernels import Launch, render, universal
from clformats.programs import guard
from clformats.programs.background import background
from clformats.reorders import building, ready
from clformats.runtime.order import LOCK
from clformats.schedule.scheduled import ScheduledPlan
from tests.device_support import check_reorder
from tests.tiers import tiered

D = cf.MemoryDesc
SRC, DST = D((2, 35, 9, 7), "f32", "bfyx"), D((2, 35, 9, 7), "f16", "b_fs_yx_fsv16")
ROOT = Path(__file__).resolve().parents[2]


@pytest.fixture
def own(engine: cf.Engine, monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> cf.Engine:
    """An engine that has built nothing but the universal program, and finds nothing on disk."""
    if not engine.traits.is_cpu:
        pytest.skip("GPUs wait for their kernels")
    monkeypatch.delenv(building.WAIT_VARIABLE, raising=False)
    monkeypatch.delenv("PYOPENCL_NO_CACHE", raising=False)
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    monkeypatch.setattr(building, "_told", set())
    made = cf.Engine(context=engine.context, device=engine.device)
    made.kernel(universal.source(), "reorder")
    return made


@pytest.fixture
def held(own: cf.Engine, monkeypatch: pytest.MonkeyPatch) -> Iterator[Callable[[], None]]:
    """The compiler hangs until this is called."""
    goes_on, build = threading.Event(), cf.Engine._build

    def hangs(self: cf.Engine, source: str, *more: Any) -> object:
        assert goes_on.wait(60)
        return build(self, source, *more)

    monkeypatch.setattr(cf.Engine, "_build", hangs)
    yield goes_on.set
    goes_on.set()
    background.later(lambda: None).result(60)


def moved(reorder: cf.Reorder, stream: cf.Stream) -> bool:
    """Whether a call writes the right bytes."""
    array = np.random.default_rng(0).standard_normal(SRC.dims).astype(np.float32)
    src, dst = cf.from_numpy(array, stream.engine), cf.Memory(DST, stream.engine)
    with dst.map("w") as flat:
        flat.view(np.uint8)[:] = 0xA5
    reorder(stream, src, dst).wait()
    with dst.map("r") as flat:
        expected = cf.pack(array.astype(np.float16), DST)
        return bool(np.array_equal(flat.view(np.uint8), expected.view(np.uint8)))


def test_calls_go_over_to_the_plans_kernel(own: cf.Engine, held: Callable[[], None]) -> None:
    stream, reorder = cf.Stream(own), cf.Reorder(SRC, DST, own)
    assert [reorder.is_built, own.programs_built] == [False, 1]
    assert moved(reorder, stream)
    with pytest.raises(cf.DeviceError, match=r"not built after 0\.01 s: the slower one serves on"):
        reorder.wait(0.01)
    held()
    reorder.wait(60)
    assert [reorder.is_built, own.programs_built] == [True, 2]
    assert moved(reorder, stream)
    assert reorder.source != universal.source()
    assert cf.Reorder(SRC, DST, own).is_built


def test_a_call_has_the_kernel_with_its_own_size(
    own: cf.Engine, held: Callable[[], None], monkeypatch: pytest.MonkeyPatch
) -> None:
    """Even if another kernel takes over while the call waits for the lock."""
    del held
    called = threading.Event()

    class Watched:
        def __enter__(self) -> None:
            called.set()
            LOCK.acquire()

        def __exit__(self, *_: object) -> None:
            LOCK.release()

    stream, reorder = cf.Stream(own), cf.Reorder(SRC, DST, own)
    values = np.arange(np.prod(SRC.dims), dtype=np.float32).reshape(SRC.dims) % 1000
    sources, dst = [cf.Memory(SRC, own) for _ in "12"], cf.Memory(DST, own)
    for src, sign in zip(sources, (1, -1), strict=True):
        with src.map("w") as flat:
            flat[:] = sign * values.ravel()
        reorder(stream, src, dst)  # later calls of these take the fast path
    used = reorder._known()
    assert isinstance(used.plan.body, ScheduledPlan)
    by_one_item = universal.render_problem(used.plan.body.problem, 1)
    call = threading.Thread(target=reorder, args=(stream, sources[0], dst))
    with LOCK:
        monkeypatch.setattr(ready, "LOCK", Watched())
        call.start()
        assert called.wait(60)
        monkeypatch.setattr(ready, "LOCK", LOCK)
        used._serve(used.plan, by_one_item)
    call.join()
    assert np.array_equal(cf.to_numpy(dst), values.astype(np.float16))


def test_every_kind_of_reorder_has_the_right_bytes(own: cf.Engine) -> None:
    """While it changes from one kernel to the other, too."""
    stream = cf.Stream(own)
    for a, b in (
        (D((3, 17, 5, 4), "s8", "bfyx"), D((3, 17, 5, 4), "s8", "b_fs_yx_fsv32")),
        (D((33, 17, 3, 3), "f16", "oiyx"), D((33, 17, 3, 3), "f32", "os_is_yx_isv16_osv16")),
        (D((2, 5, 7), "f64", "abc"), D((2, 5, 7), "f32", "acb")),  # waits: f64 is converted
        (D((2, 40, 3, 3), "f32", "aBcd24b"), D((2, 40, 3, 3), "f32", "aBcd16b")),  # waits: a table
        (D((2, 40, 3, 3), "f32", "bfyx"), D((2, 40, 3, 3), "f32", "bf8_xy16")),  # generic
    ):
        made = [check_reorder(a, b, stream) for _ in range(3)]
        made[0].wait(60)
        check_reorder(a, b, stream)


@pytest.mark.parametrize("tag", ["OIhw4i16o4i", "hwio"])
def test_sums_follow_while_another_kernel_stands_in(
    own: cf.Engine, monkeypatch: pytest.MonkeyPatch, tag: str
) -> None:
    never: Future[None] = Future()
    monkeypatch.setattr(building, "background", SimpleNamespace(later=lambda _: never))
    src = D((33, 17, 3, 3), "f32", "oihw")
    dst = D(src.dims, "s8", tag, extra=cf.Extra(1, s8s8=True, asymmetric=True))
    reorder = check_reorder(src, dst, cf.Stream(own))
    assert reorder.plan.sums
    assert not reorder.is_built


def test_those_who_ask_wait(
    own: cf.Engine, held: Callable[[], None], monkeypatch: pytest.MonkeyPatch
) -> None:
    threading.Timer(0.05, held).start()
    assert cf.Reorder(SRC, DST, own, wait=True).is_built
    assert own.programs_built == 2
    monkeypatch.setenv(building.WAIT_VARIABLE, "1")
    other = D(SRC.dims, "f32", "byxf")
    assert cf.Reorder(SRC, other, own).is_built


def test_large_tensors_wait(own: cf.Engine) -> None:
    dims = (1024, 1024, 16, 64)  # nothing of it is allocated
    plan = cf.make_plan(D(dims, "f32", "bfyx"), D(dims, "f32", "byxf"), own.traits)
    made = render(plan)
    assert made
    assert building.fallback_kernel(plan, made, own) is None


@pytest.mark.parametrize("pair", ["u8:bfyx u8:b_fs_yx_fsv32", "f16:byxf f16:bfyx"])
def test_the_universal_program_moves_what_words_could_trade(
    pair: str, own: cf.Engine, monkeypatch: pytest.MonkeyPatch
) -> None:
    """It serves memory that begins anywhere that the plan takes, so it goes element by element."""
    monkeypatch.delenv(building.WAIT_VARIABLE, raising=False)
    src, dst = (cf.MemoryDesc.parse(f"{text}:2x64x8x8") for text in pair.split())
    plan = cf.make_plan(src, dst, own.traits)
    made = render(plan)
    assert made
    assert building.fallback_kernel(plan, made, own)


def test_reorders_made_again_and_again_share_one_build(
    own: cf.Engine, held: Callable[[], None], monkeypatch: pytest.MonkeyPatch
) -> None:
    """As those of `cf.reorder` in a loop: each waits for the program, one launches it."""
    launched, run_idle = [], building.run_idle

    def counted(made: Launch, engine: cf.Engine) -> None:
        launched.append(made)
        run_idle(made, engine)

    monkeypatch.setattr(building, "run_idle", counted)
    reorders = [cf.Reorder(SRC, DST, own) for _ in range(3)]
    held()
    for reorder in reorders:
        reorder.wait(60)
    assert len(launched) == 1
    assert len({id(reorder._known()._shared) for reorder in reorders}) == 1


def test_work_that_few_items_share_is_estimated_so(own: cf.Engine) -> None:
    """One loop is one work-item, on however many cores."""
    many = replace(own.traits, compute_units=64)
    own.traits = many
    desc = D((1 << 26,), "f32", "a")
    plan = cf.make_plan(desc, D(desc.dims, "f16", "a"), many, family="scheduled")
    made = render(plan)
    assert made
    assert building.fallback_kernel(plan, made, own) is None


def test_kernels_of_one_problem_are_built_too(own: cf.Engine) -> None:
    """Those of the tuner's records: their nest is a constant, so that they have no idle run."""
    choices = cf.Choices(schedule="tile c16 d8 of 8 | a b c d | ahead 0 | ordinary", baked=True)
    plan = cf.make_plan(SRC, D(SRC.dims, "f32", "byxf"), own.traits, choices=choices)
    (build,) = ready.Ready(plan, render(plan), own, wait=False).builds
    build.result(60)


@pytest.mark.parametrize("error", [
    cf.DeviceError("building failed: OUT_OF_HOST_MEMORY"), MemoryError(), KeyboardInterrupt(),
])  # fmt: skip
def test_a_compiler_that_fails(
    own: cf.Engine, monkeypatch: pytest.MonkeyPatch, error: BaseException
) -> None:
    def fails(self: cf.Engine, *more: object) -> object:
        del self, more
        raise error

    monkeypatch.setattr(cf.Engine, "_build", fails)
    stream, other = cf.Stream(own), D(SRC.dims, "f32", "byxf")
    with warnings.catch_warnings(record=True) as told:
        warnings.simplefilter("always")
        reorders = [cf.Reorder(SRC, dst, own) for dst in (DST, other)]
        for reorder in reorders:
            with pytest.raises(type(error)):
                reorder.wait(60)
    (only,) = told
    assert "could not be built in the background" in str(only.message)
    assert not reorders[0].is_built
    assert moved(reorders[0], stream)


def test_what_is_kept_is_not_waited_for(own: cf.Engine, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv(guard.SWITCH, "1")  # a child is asked for PoCL's binaries
    cf.Reorder(SRC, DST, own, wait=True)
    background.later(lambda: None).result(60)  # binaries of PoCL are kept in the background
    fresh = cf.Engine(context=own.context, device=own.device)
    monkeypatch.setattr(universal, "render", None)  # must not be asked
    assert cf.Reorder(SRC, DST, fresh).is_built


BEGIN = """
import os, signal, sys, threading, time
import numpy as np
import clformats as cf
from clformats.programs import background
engine = cf.Engine(sys.argv[1])
stream = cf.Stream(engine)
src = cf.from_numpy(np.ones((2, 35, 9, 7), 'f4'), engine)
def move(name):
    desc = cf.MemoryDesc(src.desc.dims, 'f32', name)
    dst = cf.Memory(desc, engine)
    reorder = cf.Reorder(src.desc, desc, engine)
    reorder(stream, src, dst).wait()
    assert (cf.to_numpy(dst) == 1).all()
    return reorder
"""
PROCESSES = {
    "ends before it begins": "move('byxf'); move('b_fs_yx_fsv16')",
    "ends while it builds": "move('byxf'); time.sleep(0.5)",
    "compiler hangs": """
background.GRACE = 0.2
build = cf.Engine._build
move('byxf').wait()
cf.Engine._build = lambda *a: time.sleep(1000)
assert not move('b_fs_yx_fsv16').is_built
time.sleep(0.5)
""",
    "fork": """
reorder = move('byxf')
child = os.fork()
if not child:
    try:
        move('byxf')
    except cf.DeviceError:
        sys.exit(7)
assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 7
reorder.wait(100)
assert move('byxf').is_built
""",
    "fork while it builds": """
build = cf.Engine._build
move('byxf').wait()
cf.Engine._build = lambda *a: (time.sleep(0.4), build(*a))[1]
reorder = move('b_fs_yx_fsv16')
child = os.fork()
if not child:
    assert not reorder.is_built
    try:
        reorder.wait()
    except cf.DeviceError:
        os._exit(7)
assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 7
reorder.wait(100)
""",
    "others wait while it ends": """
import atexit
def last():
    # Its thread is gone: calls go on, and whoever waits is told.
    assert not reorders[1].is_built
    try:
        reorders[1].wait()
    except cf.DeviceError as error:
        assert 'the process ends' in str(error)
        assert not move('fyxb').is_built
    else:
        os._exit(1)
atexit.register(last)
build = cf.Engine._build
move('byxf').wait()
cf.Engine._build = lambda *a: (time.sleep(1), build(*a))[1]
reorders = [move(name) for name in ('b_fs_yx_fsv16', 'b_fs_yx_fsv4')]
time.sleep(0.5)
""",
    "no thread": """
def refuses(*a):
    raise RuntimeError("can't start new thread")
threading.Thread.start = refuses
reorder = move('byxf')
assert reorder.is_built
""",
    "begins as it ends": """
import atexit
atexit.register(lambda: move('byxf').wait())
""",
    "interrupt": """
signal.signal(signal.SIGINT, signal.default_int_handler)  # a job in the background ignores it
build = cf.Engine._build
move('byxf').wait()
cf.Engine._build = lambda *a: (time.sleep(1), build(*a))[1]
reorder = move('b_fs_yx_fsv16')
threading.Timer(0.2, os.kill, (os.getpid(), signal.SIGINT)).start()
try:
    reorder.wait()
    sys.exit('not interrupted')
except KeyboardInterrupt:
    pass
move('b_fs_yx_fsv16')
reorder.wait(100)
assert reorder.is_built
""",
}
FAST = ["ends while it builds", "fork while it builds", "interrupt"]


@pytest.mark.parametrize("name", tiered([*PROCESSES], FAST))
def test_a_process_ends_well(engine: cf.Engine, name: str, tmp_path: Path) -> None:
    environ = {k: v for k, v in os.environ.items() if k != building.WAIT_VARIABLE}
    environ |= {"XDG_CACHE_HOME": str(tmp_path), "POCL_CACHE_DIR": str(tmp_path)}
    start = time.monotonic()
    done = subprocess.run(
        [sys.executable, "-c", BEGIN + PROCESSES[name], engine.device.platform.name],
        env=environ, cwd=ROOT, capture_output=True, text=True, timeout=300, check=False,
    )  # fmt: skip
    assert done.returncode == 0, done.stderr
    assert "Traceback" not in done.stderr
    assert time.monotonic() - start < 200


def test_tasks_do_not_wait_for_ever(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("clformats.programs.background.LONGEST", 0.1)
    with background.awaited():
        background.later(lambda: None).result(60)


def test_awaited_builds_come_first() -> None:
    order = []
    with background.awaited():
        last = background.later(lambda: order.append("later"))
        time.sleep(0.6)
        order.append("awaited")
    last.result(60)
    assert order == ["awaited", "later"]
