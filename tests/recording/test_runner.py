"""The runner in C: the bytes of the calls, or a status with the reason."""

from __future__ import annotations

import json
import re
import shutil
import subprocess
from pathlib import Path

import numpy as np
import pytest

import clformats as cf
from clformats.doctor.drivers import RUNTIMES
from clformats.recording.load import read_program
from clformats.recording.manifest import MANIFEST, sealed
from tests.recording.test_export import GOLDEN, golden
from tests.recording_support import RUNNER, STRICT, bytes_of, run_in_c, runner, sequence

OK, NO_FILE, BAD_FILE, NEWER, WRONG_DEVICE, BAD_CALL, OPENCL = range(7)
pytestmark = [
    pytest.mark.device,
    pytest.mark.filterwarnings("ignore::ResourceWarning"),
]


class Exported:
    """A random sequence in a folder, with the files of its inputs and the bytes it must give."""

    def __init__(self, stream: cf.Stream, place: Path) -> None:
        self.made = sequence(stream.engine, 7, most=5)
        self.engine, self.place, self.folder = stream.engine, place, place / "net"
        self.wanted = self.made.called(stream)
        self.made.recorded().export(self.folder, name="net")
        self.words = self.made.export_inputs(place)
        for name, content in self.wanted.items():
            (place / f"{name}.wanted").write_bytes(content)
        self.compare = [f"?{name}={place / name}.wanted" for name in self.wanted]

    def run(self, *words: str, path: Path | None = None) -> subprocess.CompletedProcess[str]:
        every = [*self.words, *self.compare, *words]
        return run_in_c(runner(), self.engine, path or self.folder, *every)


@pytest.fixture(scope="module")
def exported(stream: cf.Stream, tmp_path_factory: pytest.TempPathFactory) -> Exported:
    runner()  # skips
    return Exported(stream, tmp_path_factory.mktemp("runner"))


def test_the_runner_gives_the_bytes_of_the_calls(exported: Exported, tmp_path: Path) -> None:
    done = exported.run("-c", str(tmp_path))
    assert done.stdout == "status 0 variant device0 tuned 1 exact 1 wrong 0 \n", done.stderr
    kept = sorted(tmp_path.iterdir())
    if kept:  # not on a driver that gives no binaries
        stamps = [file.stat().st_mtime_ns for file in kept]
        kept[0].write_bytes(kept[0].read_bytes()[:-1])  # it is built again, and kept
        assert exported.run("-c", str(tmp_path)).returncode == 0
        assert sorted(tmp_path.iterdir()) == kept
        assert [f.stat().st_mtime_ns == s for f, s in zip(kept, stamps, strict=True)][1:] == (
            [True] * (len(kept) - 1)
        )
        done = exported.run("-c", str(tmp_path), "-t", "3", "-o")
        assert done.returncode == 0, done.stdout + done.stderr
    assert exported.run("-c", "/nowhere", "-r").returncode == 0


def test_it_knows_whose_compilers_take_clangs_functions() -> None:
    text = (RUNNER / "clformats.c").read_text()
    (names,) = re.findall(r"clf_takes_builtins\[\] = \{(.*?)\}", text)
    assert set(re.findall(r'"(.*?)"', names)) == {r.platform for r in RUNTIMES if not r.options}


def test_variants_and_files(exported: Exported) -> None:
    done = exported.run("-v", "portable")
    assert "status 0 variant portable tuned 0" in done.stdout
    assert exported.run("-v", "gpu").returncode == BAD_CALL
    file = exported.folder.with_suffix(".clf")
    exported.made.recorded().export(file, name="net")
    assert exported.run(path=file).returncode == OK
    file.write_bytes(file.read_bytes()[:5000])
    assert exported.run(path=file).returncode in (NO_FILE, BAD_FILE)
    assert exported.run(path=exported.place / "nothing").returncode == NO_FILE


def test_what_is_missing_is_told(exported: Exported) -> None:
    done = run_in_c(runner(), exported.engine, exported.folder, *exported.words)
    assert done.returncode == BAD_CALL
    assert "no buffer was given for out" in done.stdout
    assert exported.run("nothing=1").returncode == BAD_CALL


@pytest.mark.parametrize(
    ("change", "status"),
    [
        ({"version": 2}, NEWER),
        ({"format": "another"}, BAD_FILE),
        ({"variants": []}, WRONG_DEVICE),
        ({"scalars": [{"name": "by", "type": "u4"}]}, BAD_FILE),
        ({"arena_bytes": -1}, BAD_FILE),
        ({"buffers": 3}, BAD_FILE),
    ],
)
def test_another_manifest_is_refused(
    exported: Exported, tmp_path: Path, change: dict[str, object], status: int
) -> None:
    shutil.copytree(exported.folder, tmp_path / "net")
    manifest = json.loads((exported.folder / MANIFEST).read_bytes())
    del manifest["crc32"]
    (tmp_path / "net" / MANIFEST).write_bytes(sealed({**manifest, **change}))
    done = exported.run(path=tmp_path / "net")
    assert done.returncode == status, done.stdout


REQUIRED = {
    "extensions": ["cl_khr_nothing"], "opencl_c": 990, "work_group": 1 << 40,
    "largest_buffer": 1 << 60,
}  # fmt: skip


@pytest.mark.parametrize("member", REQUIRED)
def test_what_a_device_lacks_is_told(exported: Exported, tmp_path: Path, member: str) -> None:
    shutil.copytree(exported.folder, tmp_path / "net")
    manifest = json.loads((exported.folder / MANIFEST).read_bytes())
    del manifest["crc32"]
    manifest["variants"][0]["requires"][member] = REQUIRED[member]
    (tmp_path / "net" / MANIFEST).write_bytes(sealed(manifest))
    done = exported.run(path=tmp_path / "net")
    assert "status 0 variant portable tuned 0" in done.stdout  # the next one
    done = exported.run("-v", "device0", path=tmp_path / "net")
    assert done.returncode == WRONG_DEVICE
    assert "needs" in done.stdout


def test_damaged_files_are_refused(exported: Exported, tmp_path: Path) -> None:
    place = tmp_path / "net"
    for name in ("manifest.json", "data.bin", "kernels/000.cl"):
        content = (exported.folder / name).read_bytes()
        for changed in (content[: len(content) // 2], content[:99] + b"!" + content[100:], None):
            shutil.copytree(exported.folder, place, dirs_exist_ok=True)
            (place / name).unlink()
            if changed is not None:
                (place / name).write_bytes(changed)
            done = exported.run("-v", "device0", path=place)
            assert done.returncode in (NO_FILE, BAD_FILE), done.stdout


def test_a_build_that_fails_tells_its_log(exported: Exported, tmp_path: Path) -> None:
    manifest = json.loads((exported.folder / MANIFEST).read_bytes())
    del manifest["crc32"]
    shutil.copytree(exported.folder, tmp_path / "net")
    for program in manifest["variants"][0]["programs"]:
        program["options"] = "-cl-nonsense"
    (tmp_path / "net" / MANIFEST).write_bytes(sealed(manifest))
    done = exported.run("-v", "device0", path=tmp_path / "net")
    assert done.returncode == OPENCL
    assert "building kernels/0" in done.stdout
    assert "variant portable" in exported.run(path=tmp_path / "net").stdout


def test_exports_of_version_1_run_for_ever(stream: cf.Stream, tmp_path: Path) -> None:
    recording, memories = golden(stream)
    recording.replay()(stream, by=3)
    (tmp_path / "photo").write_bytes(bytes_of(memories["photo"]))
    (tmp_path / "wanted").write_bytes(bytes_of(memories["result"]))
    words = [f"<photo={tmp_path / 'photo'}", "by=3"]
    done = run_in_c(runner(), stream.engine, GOLDEN, *words, f"?result={tmp_path / 'wanted'}", "-i")
    if "exact 1" in done.stdout:
        assert done.returncode == OK, done.stdout + done.stderr
    else:
        assert done.returncode in (OK, 21), done.stdout + done.stderr
    assert read_program(GOLDEN).name == "golden"


@pytest.mark.parametrize("compiler", ["gcc", "clang"])
@pytest.mark.parametrize("language", ["c99", "c++11"])
def test_it_compiles_without_a_warning(compiler: str, language: str, tmp_path: Path) -> None:
    if shutil.which(compiler) is None:
        pytest.skip(f"no {compiler}: apt-get install {compiler}")
    if not Path("/usr/include/CL/cl.h").exists():
        pytest.skip("no OpenCL headers: apt-get install opencl-c-headers")
    header = GOLDEN / "golden.h"
    both = [f'#include "{name}"' for name in ("clformats.h", header)]
    both += ["size_t bytes(void);", "size_t bytes(void) { return GOLDEN_PHOTO_BYTES; }", ""]
    (tmp_path / "both.c").write_text("\n".join(both), encoding="ascii")
    for file in (RUNNER / "clformats.c", tmp_path / "both.c"):
        words = [
            compiler, "-x", "c++" if "++" in language else "c", f"-std={language}", *STRICT,
            "-Wconversion", f"-I{RUNNER}", "-fsyntax-only", str(file),
        ]  # fmt: skip
        done = subprocess.run(words, capture_output=True, text=True, check=False)
        assert done.returncode == 0, done.stderr


def test_scalars_become_their_type(engine: cf.Engine, tmp_path: Path) -> None:
    """Each type through a kernel that stores it; what a type cannot hold is refused."""
    program = runner()
    out = cf.Memory(cf.MemoryDesc((8,), "s32", "a"), engine)
    recording = cf.Recording(engine, outputs={"out": out})
    types = {"f32": "float", "s32": "int", "u32": "uint", "s64": "long", "u64": "ulong"}
    given = [recording.scalar(name, name) for name in types]
    text = ", ".join(f"const {t} {n}" for n, t in types.items())
    source = f"""kernel void f(global int *out, {text}) {{
        out[0] = as_int(f32); out[1] = s32; out[2] = (int)u32;
        out[3] = (int)(s64 >> 32); out[4] = (int)s64; out[5] = (int)(u64 >> 32); out[6] = (int)u64;
        out[7] = 0; }}"""
    recording.run(engine.kernel(source, "f"), (1,), None, out, *given)
    recording.export(tmp_path / "net")
    words = ["f32=0.1", "s32=-7", "u32=4294967295", "s64=-4294967299", "u64=18446744073709549568"]
    done = run_in_c(program, engine, tmp_path / "net", *words, f">out={tmp_path / 'out'}")
    assert done.returncode == 0, done.stdout + done.stderr
    found = np.fromfile(tmp_path / "out", np.int32)
    s64, u64 = np.array([-4294967299]), np.array([18446744073709549568], np.uint64)
    wanted = [np.float32(0.1).view(np.int32), -7, -1, *s64.view(np.int32)[::-1]]
    assert list(found) == [*wanted, *u64.view(np.int32)[::-1], 0]
    for wrong in ("f32=1e39", "s32=0.5", "s32=2147483648", "u32=-1", "s64=1e19", "u64=nan"):
        done = run_in_c(program, engine, tmp_path / "net", wrong)
        assert done.returncode == BAD_CALL
        assert "cannot hold" in done.stdout
