"""The cache of built programs: what is found, what is a miss, and many processes at once."""

from __future__ import annotations

import json
import os
import re
import subprocess
import sys
import warnings
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import clformats as cf
from clformats.programs import cache as programs
from clformats.programs import guard
from clformats.programs.background import background
from tests.tiers import tiered

ROOT = Path(__file__).resolve().parents[2]
SOURCE = "__kernel void put(__global int *p) { p[get_global_id(0)] = 42; }\n"
PROCESS = """
import sys
import clformats as cf
from clformats.programs import cache as programs
from clformats.reorders import kept, planning
programs.is_nvidia = lambda device: False
programs._gives_slowly = lambda device: False
kept.SETTLED_NS = -(10**18)  # however shortly ago files were edited
if sys.argv[2] == "again":
    planning.plan_for = planning.render = None  # must not be asked
stream = cf.Stream(cf.Engine(sys.argv[1]))
a = cf.from_numpy(__import__('numpy').ones((2, 17, 5, 3), 'f4'), stream.engine)
for name in ('byxf', 'b_fs_yx_fsv16'):
    assert (cf.to_numpy(cf.reorder(a, name)) == 1).all()
"""


class Cache:
    """A folder of our own, and how often something was built from source."""

    def __init__(self, folder: Path) -> None:
        self.folder, self.builds = folder, 0

    @property
    def files(self) -> list[Path]:
        return [file for file, _ in programs.entries(self.folder) if file.suffix != programs.PLAN]

    def works(self, engine: cf.Engine) -> int:
        """How many builds from source it took a new engine to run the kernel."""
        import pyopencl as cl

        before, out = self.builds, np.zeros(5, np.int32)
        own = cf.Engine(context=engine.context, device=engine.device)
        buffer = cl.Buffer(own.context, cl.mem_flags.READ_WRITE, out.nbytes)
        own.kernel(SOURCE, "put")(own.queue, (5,), None, buffer)
        cl.enqueue_copy(own.queue, out, buffer)
        assert (out == 42).all()
        return self.builds - before


@pytest.fixture
def cache(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Cache:
    monkeypatch.delenv("PYOPENCL_NO_CACHE", raising=False)
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    monkeypatch.setenv(guard.SWITCH, "0")
    monkeypatch.setattr(programs, "is_nvidia", lambda device: False)
    monkeypatch.setattr(programs, "_gives_slowly", lambda device: False)
    folder = programs.cache_folder()
    assert folder is not None
    assert tmp_path in folder.parents
    found = Cache(folder)

    def seen(write: Callable[..., None]) -> Callable[..., None]:
        def call(file: Path, binary: bytes) -> None:
            found.builds += 1
            write(file, binary)

        return call

    monkeypatch.setattr(programs, "_write", seen(programs._write))
    return found


def test_a_program_is_built_once(cache: Cache, engine: cf.Engine) -> None:
    assert cache.works(engine) == 1
    assert len(cache.files) == 1
    assert cache.works(engine) == 0


def test_slow_binaries_are_asked_of_a_child_in_the_background(
    cache: Cache, engine: cf.Engine, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(programs, "_gives_slowly", lambda device: True)
    cache.works(engine)
    background.later(lambda: None).result(60)
    assert not cache.files
    monkeypatch.setenv(guard.SWITCH, "1")
    with background.awaited():
        cache.works(engine)
        assert not cache.files
    background.later(lambda: None).result(60)
    assert len(cache.files) == 1
    assert cache.works(engine) == 0


def test_what_cannot_be_read_is_a_miss(cache: Cache, engine: cf.Engine) -> None:
    cache.works(engine)
    (file,) = cache.files
    right = file.read_bytes()
    changed = bytearray(right)
    changed[len(changed) // 2] ^= 1
    head = len(programs._MAGIC)
    spoilt = [
        right[:n] for n in (0, 1, head, head + 31, head + 32, len(right) // 2, len(right) - 1)
    ]
    spoilt += [bytes(changed), right + b"x", b"another program's file", os.urandom(4000)]
    for data in spoilt:
        file.write_bytes(data)
        assert cache.works(engine) == 1, data[:80]
        assert cache.works(engine) == 0
    file.unlink()
    file.mkdir()
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", RuntimeWarning)
        assert cache.works(engine) == 1


def test_a_binary_that_the_driver_refuses_is_a_miss(cache: Cache, engine: cf.Engine) -> None:
    import hashlib

    cache.works(engine)
    (file,) = cache.files
    other = b"no binary of this driver's"
    file.write_bytes(programs._MAGIC + hashlib.sha256(other).digest() + other)
    assert cache.works(engine) == 1
    assert cache.works(engine) == 0


def test_binaries_of_other_devices_are_not_kept(
    cache: Cache, engine: cf.Engine, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A context may have several devices, and a driver may give binaries for all of them."""
    import pyopencl as cl

    real, others = cl.Program.get_info, [b"of another device"]

    def get_info(self: Any, wanted: Any) -> Any:
        found: Any = real(self, wanted)
        return [*others, *found] if wanted == cl.program_info.BINARIES else found

    monkeypatch.setattr(cl.Program, "get_info", get_info)
    cache.works(engine)
    assert not cache.files
    others[:] = [b""]
    cache.works(engine)
    (file,) = cache.files
    assert programs.read_entry(file)


def test_a_hollow_binary_of_pocl_is_not_kept(
    cache: Cache, engine: cf.Engine, monkeypatch: pytest.MonkeyPatch
) -> None:
    """PoCL gives one while another process writes the program, and aborts where it is read."""
    import pyopencl as cl

    def sized(text: bytes) -> bytes:
        return len(text).to_bytes(4, "little") + text

    for content, kept in ((b"", 0), (b"BC...", 1)):
        binary = b"poclbin" + sized(b"/program.bc") + sized(content)
        monkeypatch.setattr(cl.Program, "get_info", lambda *_, found=binary: [found])
        cache.works(engine)
        assert len(cache.files) == kept


TWO = """
import sys
import numpy as np, pyopencl as cl, clformats as cf
from clformats.programs import cache as programs
programs.is_nvidia = lambda device: False
programs._gives_slowly = lambda device: False
devices = next(p for p in cl.get_platforms() if p.name == sys.argv[1]).get_devices()
assert len(devices) == 2
array = np.arange(510, dtype=np.float32).reshape(2, 17, 5, 3)
for context in (cl.Context(devices), cl.Context(devices[::-1])):
    for device in devices:
        own = cf.Engine(context=context, device=device)
        moved = cf.reorder(cf.from_numpy(array, own), 'b_fs_yx_fsv16')
        assert (cf.to_numpy(moved) == array).all()
        programs._from_source = None  # from here on, all comes from the cache
"""


def test_a_context_with_two_devices(cache: Cache, engine: cf.Engine, tmp_path: Path) -> None:
    name = engine.device.platform.name
    if "Portable Computing Language" not in name:
        pytest.skip("pocl is asked for two devices")
    environment = {**os.environ, "XDG_CACHE_HOME": str(tmp_path), "PYTHONPATH": str(ROOT),
                   "POCL_DEVICES": "pthread pthread"}  # fmt: skip
    line = [sys.executable, "-c", TWO, name]
    done = subprocess.run(line, env=environment, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    assert cache.files


def test_the_key_has_all_that_matters(engine: cf.Engine, monkeypatch: pytest.MonkeyPatch) -> None:
    from types import SimpleNamespace

    import pyopencl.version

    class Device:  # a CPU
        vendor, name, version, driver_version, type = "V", "N", "2", "3", 2

        def __init__(self) -> None:
            self.platform = SimpleNamespace(vendor="v", name="n", version="1")

    facts: Any = Device
    pairs: Any = ((["-a"], "source"), (["-b"], "source"), (["-a"], "source "), ([], "-a source"))
    keys = [programs.key(guard.Build(facts(), (*options,), source)) for options, source in pairs]
    for name in ("vendor", "name", "version", "driver_version"):
        device = facts()
        setattr(device, name, "other")
        keys.append(programs.key(guard.Build(device, ("-a",), "source")))
    for name in ("vendor", "name", "version"):
        device = facts()
        setattr(device.platform, name, "other")
        keys.append(programs.key(guard.Build(device, ("-a",), "source")))
    with monkeypatch.context() as patch:
        patch.setattr(programs, "__version__", "other")
        keys.append(programs.key(guard.Build(facts(), ("-a",), "source")))
    with monkeypatch.context() as patch:
        patch.setattr(pyopencl.version, "VERSION_TEXT", "other")
        keys.append(programs.key(guard.Build(facts(), ("-a",), "source")))
    with monkeypatch.context() as patch:
        patch.setenv("CL_CONFIG_CPU_TARGET_ARCH", "core-avx2")
        keys.append(programs.key(guard.Build(facts(), ("-a",), "source")))
    with monkeypatch.context() as patch:
        patch.setattr(programs, "instructions", lambda: "of another processor")
        keys.append(programs.key(guard.Build(facts(), ("-a",), "source")))
        gpu = facts()
        gpu.type = 4
        keys.append(own := programs.key(guard.Build(gpu, ("-a",), "source")))
    assert programs.key(guard.Build(gpu, ("-a",), "source")) == own
    assert len(set(keys)) == len(keys)
    assert programs.key(guard.Build(facts(), ("-a",), "source")) == keys[0]


def test_a_folder_that_cannot_be_written_is_told_once(cache: Cache, engine: cf.Engine) -> None:
    cache.folder.parent.mkdir(parents=True, exist_ok=True)
    cache.folder.write_text("a file where the folder should be")
    with warnings.catch_warnings(record=True) as told:
        warnings.simplefilter("always")
        assert cache.works(engine) == 1
        assert cache.works(engine) == 1
    (only,) = told
    assert "XDG_CACHE_HOME" in str(only.message)


def test_the_user_may_want_no_cache(
    cache: Cache, engine: cf.Engine, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("PYOPENCL_NO_CACHE", "1")
    cache.works(engine)
    assert not cache.files


def test_a_build_that_fails_for_no_reason_is_tried_again(
    cache: Cache, engine: cf.Engine, monkeypatch: pytest.MonkeyPatch
) -> None:
    import pyopencl as cl

    real, asked = cl.Program.build, []

    def build(self: Any, *arguments: Any, **more: Any) -> Any:
        asked.append(self)
        if len(asked) < 3:
            record = cl._cl._ErrorRecord(
                msg="failed to build", code=cl.status_code.BUILD_PROGRAM_FAILURE, routine="clBuild"
            )
            raise cl.RuntimeError(record)
        return real(self, *arguments, **more)

    monkeypatch.setattr(programs, "RETRIES", (0, 0))
    monkeypatch.setattr(cl.Program, "build", build)
    assert cache.works(engine) == 1
    assert len(asked) == 3
    asked.clear()
    monkeypatch.setattr(programs, "RETRIES", (0,))
    cache.files[0].unlink()
    with pytest.raises(cf.DeviceError, match="failed to build"):
        cache.works(engine)
    asked[:] = [None] * 5
    with pytest.raises(cf.DeviceError, match="nonsense"):
        cf.Engine(context=engine.context).kernel("__kernel void k() { nonsense; }", "k")
    assert len(asked) == 6


@pytest.mark.parametrize("count", tiered([2, 3, 8], [2]))
def test_many_processes_start_at_once(
    count: int, cache: Cache, engine: cf.Engine, tmp_path: Path
) -> None:
    command = [sys.executable, "-c", PROCESS, engine.device.platform.name]
    environment = {**os.environ, "XDG_CACHE_HOME": str(tmp_path), "PYTHONPATH": str(ROOT)}
    for which in ("first", "again"):
        started = [
            subprocess.Popen([*command, which], env=environment, stderr=subprocess.PIPE, text=True)
            for _ in range(count)
        ]
        said = [process.communicate(timeout=250)[1] for process in started]
        assert [process.returncode for process in started] == [0] * count, said
        assert len(cache.files) == 2
    plans = [*cache.folder.glob(f"*{programs.PLAN}")]
    assert len(plans) == 2
    assert not [file for file in (*cache.files, *plans) if programs.read_entry(file) is None]


def test_the_doctor_shows_and_clears_it(cache: Cache, engine: cf.Engine) -> None:
    def doctor(*arguments: str) -> str:
        done = subprocess.run(
            [sys.executable, "-m", "clformats", "doctor", *arguments],
            env={**os.environ, "PYTHONPATH": str(ROOT)},
            capture_output=True,
            text=True,
            check=True,
        )
        return done.stdout

    cache.works(engine)
    (program,) = cache.files
    plan, unfinished = program.with_name(f"1{programs.PLAN}"), program.with_name(".new-1")
    for file in (plan, unfinished):
        file.write_text("kept")
    assert f"{cache.folder}: 1 built programs and 1 plans" in doctor("--cache")
    found = json.loads(doctor("--cache", "--json"))
    assert (found["programs"], found["plans"]) == (1, 1)
    assert found["bytes"] == program.stat().st_size + 4
    assert "cleared: there were 1 built programs and 1 plans" in doctor("--cache", "clear")
    assert not cache.files
    assert f"{cache.folder}: 0 built programs and 0 plans" in doctor("--cache")
    assert cache.works(engine) == 1


@pytest.mark.parametrize("rounded", [False, True])
@pytest.mark.parametrize("platform", ["Oclgrind", "Portable Computing Language"])
def test_the_options_of_a_device(engine: cf.Engine, platform: str, rounded: bool) -> None:
    """Oclgrind creates no kernel with a prefetch; under others a kernel without would be slow."""
    from types import SimpleNamespace

    import pyopencl as cl

    config = cl.device_fp_config.CORRECTLY_ROUNDED_DIVIDE_SQRT if rounded else 0
    own = cf.Engine(context=engine.context, device=engine.device)
    own.device = SimpleNamespace(  # type: ignore[assignment]
        platform=SimpleNamespace(name=f"{platform} "), single_fp_config=config,
        type=cl.device_type.CPU,
    )  # fmt: skip
    simulated = ("-DCLFORMATS_NO_PREFETCH", "-cl-opt-disable") if platform == "Oclgrind" else ()
    exact = ("-cl-fp32-correctly-rounded-divide-sqrt",) if rounded else ()
    assert own._options == exact + simulated


def test_the_compiler_is_told_not_to_join_work_items_of_vectors(
    engine: cf.Engine, monkeypatch: pytest.MonkeyPatch
) -> None:
    """It says itself what it was told; that it heeds it shows in the seconds of a build alone."""
    import pyopencl as cl

    monkeypatch.setenv("PYOPENCL_NO_CACHE", "1")  # binaries do not tell, nor those of a child
    monkeypatch.setenv(guard.SWITCH, "0")
    knows = "cl_intel_vec_len_hint" in engine.device.extensions.split()
    own = cf.Engine(context=engine.context, device=engine.device)
    dims = (19, 21, 3, 5)
    for src, dst in (("oiyx", "os_is_yx_osv8_isv4"), ("byxf", "b_fs_yx_fsv16")):
        made = cf.Reorder(cf.MemoryDesc(dims, "s8", src), cf.MemoryDesc(dims, "s8", dst), own)
        told = own.kernel(made.source, "reorder").get_info(cl.kernel_info.ATTRIBUTES)
        assert ("intel_vec_len_hint(1)" in str(told)) == knows


ANYWHERE = """
import sys, warnings
with warnings.catch_warnings(record=True) as told:
    warnings.simplefilter("always")
    import clformats as cf
    from clformats.programs import cache as programs
    programs.is_nvidia = lambda device: sys.argv[2] == "driver"
    memory = cf.from_numpy(__import__('numpy').ones((2, 17, 5, 3), 'f4'), cf.Engine(sys.argv[1]))
    assert (cf.to_numpy(cf.reorder(memory, 'byxf')) == 1).all()
print(sum("XDG_CACHE_HOME" in str(w.message) for w in told))
"""


# What the environment says, with how many warnings, and for which kind of cache in the fast tier.
PLACES: dict[str, tuple[dict[str, str | None], str | None, str]] = {
    "below a file": ({"XDG_CACHE_HOME": "{file}/cache"}, "1", "library"),
    "home below a file": ({"HOME": "{file}/home"}, "1", "driver"),
    "a file": ({"XDG_CACHE_HOME": "{file}"}, "1", "driver"),
    # The home that the system knows counts.
    "no home": ({"XDG_CACHE_HOME": "", "HOME": None}, None, "library"),
    "new": ({"XDG_CACHE_HOME": "{folder}/new/cache"}, "0", "library"),
}
EVERYWHERE = [(who, place) for place in PLACES for who in ("driver", "library")]
FAST = [(PLACES[place][2], place) for place in ("below a file", "home below a file", "no home")]


@pytest.mark.parametrize(("who", "place"), tiered(EVERYWHERE, FAST))
def test_nothing_needs_a_cache_folder(
    who: str, place: str, engine: cf.Engine, tmp_path: Path
) -> None:
    """Without one that can be written, and where none is named, all works; told at most once."""
    own = tmp_path / "file"
    own.write_text("no folder")
    temporary = tmp_path / "temporary"
    temporary.mkdir()
    kept = {k: v for k, v in os.environ.items() if k not in ("XDG_CACHE_HOME", "POCL_CACHE_DIR")}
    kept |= {"PYTHONPATH": str(ROOT), "TMPDIR": str(temporary)}
    changes, told, _ = PLACES[place]
    for name, text in changes.items():
        kept.pop(name, None)
        if text is not None:
            kept[name] = text.format(file=own, folder=tmp_path)
    line = [sys.executable, "-c", ANYWHERE, engine.device.platform.name, who]
    done = subprocess.run(line, env=kept, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    assert told in (None, done.stdout.strip()), done.stdout
    # pocl's compiler counts what it warns of, where vectors are wider than the processor's.
    assert re.sub(r"\d+ warnings? generated\.\n", "", done.stderr) == ""
    assert not [*temporary.glob("clformats-*")]
