"""Long runs of recordings: random sequences, damaged folders, sanitizers, no Python at all.

CLFORMATS_OTHER_DEVICES names other platforms, with commas, on which what was made here runs, too.
POCL_EXTRA_BUILD_FLAGS=-cl-opt-disable lets PoCL build in half the time.
"""

from __future__ import annotations

import json
import os
import random
import re
import shutil
import subprocess
from collections.abc import Iterable, Iterator
from pathlib import Path

import pytest

import clformats as cf
from clformats.recording.manifest import MANIFEST, sealed
from tests.recording_support import Calls, poison, run_in_c, runner, sequence

pytestmark = [pytest.mark.device, pytest.mark.slow, pytest.mark.timeout(3600)]
SEQUENCES, AT_ONCE = int(os.environ.get("CLFORMATS_SEQUENCES", "200")), 20
REFUSED = range(1, 8)
SANITIZED = ("-fsanitize=address,undefined", "-fno-sanitize-recover=undefined", "-g")
QUIET = {"ASAN_OPTIONS": "detect_leaks=0:exitcode=77", "UBSAN_OPTIONS": "exitcode=78"}


def others() -> list[cf.Engine]:
    names = os.environ.get("CLFORMATS_OTHER_DEVICES", "")
    return [cf.Engine(name) for name in names.split(",") if name]


def is_pocl(engine: cf.Engine) -> bool:
    """Whether it is PoCL, which keeps built programs itself, and compiles again for a binary."""
    return bool(engine.device.platform.name.strip() == "Portable Computing Language")


def exported(made: Calls, place: Path) -> list[str]:
    """Export it; the arguments of the program in C."""
    made.recorded().export(place / "net", name="net")
    return made.export_inputs(place)


@pytest.mark.parametrize("first", range(0, SEQUENCES, AT_ONCE))
def test_random_sequences(engine: cf.Engine, stream: cf.Stream, tmp_path: Path, first: int) -> None:
    """Replayed, loaded and run from C they give the bytes of the calls, or are refused."""
    program, refused = runner(), 0
    cache = Path(os.environ.get("CLFORMATS_TEST_BINARIES") or tmp_path / "binaries")
    cache.mkdir(exist_ok=True)
    for seed in range(first, first + AT_ONCE):
        made = sequence(engine, seed, alike=True)
        wanted = made.called(stream)
        words = exported(made, tmp_path)
        words += [f">{name}={tmp_path / name}" for name in wanted]
        portable, cached = seed % 4 == 0, seed % 5 == 0
        for variant in (None, *["portable"] * portable):
            replay = cf.load(tmp_path / "net", engine, variant=variant)
            for memory in made.outputs.values():
                poison(memory)
            replay(stream, **made.inputs, **made.outputs, **made.scalars)
            assert made.held() == wanted, (seed, variant)
        replay = made.recorded().replay()
        for memory in made.outputs.values():
            poison(memory)
        replay(stream, **made.scalars)
        replay(stream)
        assert made.held() == wanted, seed
        hows = [(engine, []), *[(engine, ["-v", "portable"])] * portable]
        for device, how in [*hows, *((other, []) for other in others())]:
            order = ["-o"] * (seed % 3 == 0)
            kept = ["-c", str(cache)] * (cached or not is_pocl(device))
            done = run_in_c(program, device, tmp_path / "net", *words, *how, *order, *kept)
            if done.returncode == 4 and device is not engine:
                refused += 1
                assert "needs correctly rounded divisions" in done.stdout
                continue
            assert done.returncode == 0, (seed, device, done.stdout, done.stderr)
            for name, content in wanted.items():
                assert (tmp_path / name).read_bytes() == content, (seed, device, how, name)
    print(f"{AT_ONCE} sequences, {refused} refused elsewhere")  # noqa: T201  # the answer


def has_sanitizers(compiler: str) -> bool:
    """Whether a compiler can link them."""
    words = [compiler, *SANITIZED, "-x", "c", "-", "-o", os.devnull]
    if shutil.which(compiler) is None:
        return False
    return not subprocess.run(words, input=b"int main(void){return 0;}", check=False).returncode


def sanitized() -> list[Path]:
    """The program with the sanitizers of each compiler that is here."""
    found = [runner(name, *SANITIZED) for name in ("gcc", "clang") if has_sanitizers(name)]
    return found or pytest.skip("no sanitizers: apt-get install gcc, or clang and libclang-rt-dev")


# --- damage ---------------------------------------------------------------------------------------


def damaged(folder: Path, others_: Path, draw: random.Random) -> None:
    """Truncate, edit, exchange or remove a file of an export."""
    names = [
        "manifest.json",
        "data.bin",
        *(f"kernels/{p.name}" for p in (folder / "kernels").iterdir()),
    ]
    file = folder / draw.choice(names[:2] if draw.random() < 0.7 else names)
    content = bytearray(file.read_bytes())
    what = draw.randrange(6)
    if what == 0:
        file.write_bytes(content[: draw.randrange(len(content))])
    elif what == 1:
        for _ in range(draw.choice((1, 1, 5))):
            content[draw.randrange(len(content))] = draw.randrange(256)
        file.write_bytes(content)
    elif what == 2:
        at = draw.randrange(len(content))
        content[at:at] = draw.choice(
            (b"9", b"0", b'"', b"{", b"]", b",", b"\\", b"[[[[", b"\\u0041")
        )
        file.write_bytes(content)
    elif what == 3:
        file.unlink()
    elif what == 4:
        shutil.copy(draw.choice([p for p in others_.rglob("*") if p.is_file()]), file)
    else:
        file.write_bytes(content + content[: draw.randrange(99)])


def numbers_in(value: object, path: tuple[object, ...] = ()) -> Iterator[tuple[object, ...]]:
    members: Iterable[tuple[object, object]] = ()
    if isinstance(value, dict):
        members = value.items()
    elif isinstance(value, list):
        members = enumerate(value)
    for key, member in members:
        yield (*path, key)
        yield from numbers_in(member, (*path, key))


def changed(manifest: str, draw: random.Random) -> bytes:
    """A manifest with a right checksum, in which a member is gone or of another kind."""
    found = json.loads(manifest)
    del found["crc32"]
    # Sizes of work are the program's: another number is another program, not damage.
    paths = [p for p in numbers_in(found) if not {"global", "local", "exact", "options"} & set(p)]
    path = draw.choice(paths)
    inside = found
    for key in path[:-1]:
        inside = inside[key]
    if draw.random() < 0.4:
        del inside[path[-1]]
    else:
        inside[path[-1]] = draw.choice((None, "?", -1, 1 << 70, [], {}, [[]], True, "../x", 1e300))
    return sealed(found)


def test_damaged_folders_are_refused_or_right(
    engine: cf.Engine, stream: cf.Stream, tmp_path: Path
) -> None:
    """1,000 of them; none may crash the runner, which runs with sanitizers."""
    programs, draw = sanitized(), random.Random(7)  # noqa: S311  # no secret
    made = sequence(engine, 7, most=5, alike=True)
    wanted = made.called(stream)
    words = exported(made, tmp_path)
    for name, content in wanted.items():
        (tmp_path / f"{name}.wanted").write_bytes(content)
        words.append(f"?{name}={tmp_path / name}.wanted")
    sequence(engine, 8, most=5, alike=True).recorded().export(tmp_path / "other", name="net")
    text = (tmp_path / "net" / MANIFEST).read_text(encoding="ascii")
    cache = tmp_path / "binaries"
    cache.mkdir()
    statuses: dict[int, int] = {}
    for k in range(int(os.environ.get("CLFORMATS_DAMAGED", "1000"))):
        place = tmp_path / "damaged"
        shutil.rmtree(place, ignore_errors=True)
        shutil.copytree(tmp_path / "net", place)
        if k % 2:
            (place / MANIFEST).write_bytes(changed(text, draw))
        else:
            damaged(place, tmp_path / "other", draw)
        if k % 10 == 9:
            for file in cache.iterdir():
                file.write_bytes(file.read_bytes()[: draw.randrange(200)])
        program = programs[k // 2 % len(programs)]
        done = run_in_c(program, engine, place, *words, "-c", str(cache), **QUIET)
        status = done.returncode
        statuses[status] = statuses.get(status, 0) + 1
        # A manifest with a right checksum is another recording, of other names (20) or bytes (21).
        another = (20, 21) if k % 2 else ()
        assert status in (0, *REFUSED, *another), (k, done.stdout, done.stderr)
    print(statuses)  # noqa: T201  # the answer


# --- tools ----------------------------------------------------------------------------------------


@pytest.fixture
def three(engine: cf.Engine, stream: cf.Stream, tmp_path: Path) -> tuple[Path, list[str]]:
    made = sequence(engine, 7, most=5, alike=True)
    wanted = made.called(stream)
    words = exported(made, tmp_path)
    for name, content in wanted.items():
        (tmp_path / f"{name}.wanted").write_bytes(content)
        words.append(f"?{name}={tmp_path / name}.wanted")
    return tmp_path, words


@pytest.mark.parametrize("compiler", ["gcc", "clang"])
def test_sanitizers_find_nothing(
    engine: cf.Engine, three: tuple[Path, list[str]], compiler: str
) -> None:
    if not has_sanitizers(compiler):
        pytest.skip(f"{compiler} has no sanitizers: apt-get install gcc, clang, libclang-rt-dev")
    place, words = three
    for how in ([], ["-r", "-o"], ["-t", "4"]):
        done = run_in_c(runner(compiler, *SANITIZED), engine, place / "net", *words, *how, **QUIET)
        assert done.returncode == 0, done.stdout + done.stderr
        assert "runtime error" not in done.stderr


def test_valgrind_finds_nothing(engine: cf.Engine, three: tuple[Path, list[str]]) -> None:
    """Of the runner's: drivers have their own."""
    if shutil.which("valgrind") is None:
        pytest.skip("no valgrind: apt-get install valgrind")
    if not is_pocl(engine):
        pytest.skip("valgrind runs PoCL only")
    place, words = three
    program = runner("gcc", "-g")
    assert run_in_c(program, engine, place / "net", *words).returncode == 0  # PoCL keeps the builds
    tool = ["valgrind", "--leak-check=full", "--show-leak-kinds=definite", "--num-callers=20"]
    done = subprocess.run(
        [*tool, str(program), "Portable", str(place / "net"), *words],
        capture_output=True, text=True, check=False, timeout=1800,
    )  # fmt: skip
    assert done.returncode == 0, done.stdout + done.stderr[-3000:]
    ours = [
        block for block in re.split(r"==\d+== \n", done.stderr)
        if re.search(r"(at|by) 0x[0-9A-F]+: clf_\w+ ", block)
        and not re.search(r"(at|by) 0x[0-9A-F]+: cl[A-Z]\w+ ", block)
    ]  # fmt: skip
    assert not ours, "\n".join(ours)


def test_it_runs_where_there_is_no_python(
    engine: cf.Engine, three: tuple[Path, list[str]], tmp_path: Path
) -> None:
    """A root with an OpenCL loader and PoCL, made by mmdebstrap; takes minutes and the network."""
    if shutil.which("mmdebstrap") is None or os.geteuid():
        pytest.skip("no mmdebstrap, or not root: apt-get install mmdebstrap")
    if not is_pocl(engine):
        pytest.skip("the root has PoCL")
    place, words = three
    root = tmp_path / "root"
    made = subprocess.run(
        [shutil.which("mmdebstrap") or "", "--variant=essential",
         "--include=pocl-opencl-icd,ocl-icd-libopencl1", "bookworm", str(root)],
        capture_output=True, text=True, check=False, timeout=1800,
    )  # fmt: skip
    if made.returncode:
        pytest.skip(f"mmdebstrap made no root: {made.stderr[-200:]}")
    assert not list(root.glob("usr/bin/python*"))
    shutil.copy(runner(), root / "run_export")
    shutil.copytree(place, root / "work", ignore=shutil.ignore_patterns("root"))
    inside = [word.replace(str(place), "/work") for word in words]
    # PoCL asks /proc and /sys for the memory and the cores.
    mounts = "".join(f"mount --bind /{name} {root}/{name} && " for name in ("proc", "sys", "dev"))
    done = subprocess.run(
        ["/usr/bin/unshare", "--mount", "sh", "-c", f'{mounts} chroot {root} "$@"', "sh",
         "/run_export", "Portable", "/work/net", *inside],
        capture_output=True, text=True, check=False, timeout=900,
        env={"PATH": "/usr/sbin:/usr/bin:/sbin:/bin"},
    )  # fmt: skip
    assert done.returncode == 0, done.stdout + done.stderr
