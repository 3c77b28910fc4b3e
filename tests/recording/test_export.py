"""Exports: what is written is read, elsewhere and later; what is damaged is refused."""

from __future__ import annotations

import json
import shutil
from collections.abc import Iterator
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest

import clformats as cf
from clformats.recording.export import targets_of
from clformats.recording.load import read_program, version_of
from clformats.recording.manifest import MANIFEST, read, sealed, written
from clformats.recording.program import Source
from clformats.runtime.engine import SOURCE
from clformats.schedule import Traits
from tests.recording_support import bytes_of, poison, sequence

GOLDEN = Path(__file__).parent.parent / "data" / "recording" / "version1"
GPU = Traits(is_cpu=False)


@pytest.fixture(scope="module")
def made(engine: cf.Engine) -> cf.Recording:
    return sequence(engine, 5, most=8).recorded()


@pytest.fixture(scope="module")
def folder(made: cf.Recording, tmp_path_factory: pytest.TempPathFactory) -> Path:
    place = tmp_path_factory.mktemp("export") / "net"
    made.export(place, engines=[made.engine, GPU])
    return place


def test_an_export_gives_the_bytes_of_the_calls(
    engine: cf.Engine, stream: cf.Stream, tmp_path: Path
) -> None:
    made = sequence(engine, 7, most=6)
    wanted = made.called(stream)
    recording = made.recorded()
    for place in (tmp_path / "net", tmp_path / "net.clf"):
        recording.export(place)
        for variant in (None, "portable"):
            replay = cf.load(place, engine, variant=variant)
            assert replay.is_tuned == (variant is None)
            for memory in made.outputs.values():
                poison(memory)
            replay(stream, **made.inputs, **made.outputs, **made.scalars)
            assert made.held() == wanted


def test_what_is_written_is_read(made: cf.Recording) -> None:
    program = made.program(targets_of([made.engine, GPU], made.engine), "net")
    assert [v.name for v in program.variants] == ["device0", "device1", "portable"]
    assert [v.like for v in program.variants] == ["", "gpu", ""]
    files = written(program)
    assert read(files.__getitem__) == program
    assert all(k.parameter_bytes <= 1024 for k in program.variants[2].kernels)


def test_files_and_folders_hold_the_same(made: cf.Recording, folder: Path) -> None:
    file = folder.with_suffix(".clf")
    made.export(file, name="net", engines=[made.engine, GPU])
    assert read_program(file) == read_program(folder)
    assert file.read_bytes()[4096:].startswith((folder / "data.bin").read_bytes())
    names = {p.name for p in folder.iterdir()}
    assert names == {
        "manifest.json", "kernels", "data.bin", "net.h", "clformats.h", "clformats.c",
    }  # fmt: skip


def test_an_export_replaces_an_export_alone(made: cf.Recording, tmp_path: Path) -> None:
    place = tmp_path / "net"
    made.export(place, name="first")
    (place / "main.c").write_text("int main(void) { return 0; }\n", encoding="ascii")
    made.export(place, name="second", engines=[])
    assert (place / "main.c").exists()
    assert read_program(place).name == "second"
    named = {f["file"] for f in json.loads((place / MANIFEST).read_bytes())["files"]}
    assert {f"kernels/{p.name}" for p in (place / "kernels").iterdir()} == named - {"data.bin"}
    (tmp_path / "own").mkdir()
    (tmp_path / "own" / "a").touch()
    with pytest.raises(cf.Error, match="no export"):
        made.export(tmp_path / "own")
    with pytest.raises(cf.InvalidArgument, match="a letter, then"):
        made.export(tmp_path / "a-b")
    with pytest.raises(cf.InvalidArgument, match="expected Engine or Traits"):
        made.export(place, engines=["gpu"])  # type: ignore[list-item]


def test_the_header_names_everything_once(engine: cf.Engine, tmp_path: Path) -> None:
    desc = cf.MemoryDesc((2, 17), "f32", "ab")
    a, b = cf.Memory(desc, engine), cf.Memory(desc, engine)
    recording = cf.Recording(engine, inputs={"a": a}, outputs={"b": b})
    cf.Reorder(desc, desc, engine)(recording, a, b)
    recording.export(tmp_path / "net")
    lines = (tmp_path / "net" / "net.h").read_text(encoding="ascii").splitlines()
    assert "#define NET_A_BYTES 136" in lines
    assert "#define NET_B_DIMS {2, 17}" in lines
    assert f'#define NET_B_DESC "{desc}"' in lines
    weights = cf.Memory(cf.MemoryDesc((17, 96), "q4_0", "transposed"), engine)
    of_weights = cf.Recording(engine, inputs={"w": weights}, outputs={"b": b})
    of_weights.export(tmp_path / "weights", name="net")
    text = (tmp_path / "weights" / "net.h").read_text(encoding="ascii")
    assert "/* Input: 2 dimensions, rows, columns. */" in text
    assert f'#define NET_W_DESC "{weights.desc}"' in text
    other = cf.Recording(engine, inputs={"a": a, "a_bytes": b})
    with pytest.raises(cf.InvalidArgument, match="NET_A_BYTES would be defined twice"):
        other.export(tmp_path / "other", name="net")


# --- damage ---------------------------------------------------------------------------------------


def edited(folder: Path, tmp_path: Path, manifest: Any) -> Path:
    place = tmp_path / "edited"
    shutil.copytree(folder, place, dirs_exist_ok=True)
    manifest.pop("crc32", None)
    (place / MANIFEST).write_bytes(sealed(manifest))
    return place


def paths_in(value: Any) -> Iterator[tuple[Any, ...]]:
    """Where there are members, those of lists only once."""
    if isinstance(value, dict):
        for key, member in value.items():
            yield (key,)
            yield from ((key, *path) for path in paths_in(member))
    elif isinstance(value, list) and value:
        yield from ((0, *path) for path in paths_in(value[0]))


@pytest.mark.parametrize("change", ["removed", "text", "negative", "list"])
def test_every_member_of_the_manifest_is_checked(folder: Path, tmp_path: Path, change: str) -> None:
    text = (folder / MANIFEST).read_text(encoding="ascii")
    unread = {"made_by", "exact", "requires", "arguments", "text"}
    place = edited(folder, tmp_path, json.loads(text))
    for path in list(paths_in(json.loads(text))):
        manifest = json.loads(text)
        inside = manifest
        for key in path[:-1]:
            inside = inside[key]
        if change == "removed":
            del inside[path[-1]]
        else:
            inside[path[-1]] = {"text": "?", "negative": -1, "list": [None]}[change]
        manifest.pop("crc32", None)
        (place / MANIFEST).write_bytes(sealed(manifest))
        if change == "text" and isinstance(json.loads(text).get(path[-1], 0), str):
            continue
        if unread & set(path) or (change == "text" and path[-1] in ("desc", "name", "options")):
            continue
        if path == ("crc32",):
            continue
        with pytest.raises(cf.InvalidRecording):
            read_program(place)


def test_damaged_files_are_refused(folder: Path, tmp_path: Path) -> None:
    place = tmp_path / "copy"
    for name in ("manifest.json", "data.bin", "kernels/000.cl"):
        content = (folder / name).read_bytes()
        other = content[:9] + b"!" + content[10:]
        for changed in (content[:-3], content[: len(content) // 2], b"", other, None):
            shutil.copytree(folder, place, dirs_exist_ok=True)
            (place / name).unlink()
            if changed is not None:
                (place / name).write_bytes(changed)
            with pytest.raises(cf.InvalidRecording):
                read_program(place)
    for broken in (b"[" * 100_000, b"{}", b"[]", b"\xff", b'{"format": 1}'):
        (place / MANIFEST).write_bytes(broken)
        with pytest.raises(cf.InvalidRecording):
            read_program(place)
    with pytest.raises(cf.InvalidRecording, match=r"there is no .*nowhere: expected a folder"):
        read_program(tmp_path / "nowhere")
    with pytest.raises(cf.InvalidRecording, match=r"has no manifest\.json"):
        read_program(tmp_path)


def test_newer_versions_and_other_places_are_refused(folder: Path, tmp_path: Path) -> None:
    manifest = json.loads((folder / MANIFEST).read_bytes())
    with pytest.raises(cf.InvalidRecording, match="take a newer clformats"):
        read_program(edited(folder, tmp_path, {**manifest, "version": 2}))
    manifest["files"][0]["file"] = "../net/data.bin"
    with pytest.raises(cf.InvalidRecording, match="outside"):
        read_program(edited(folder, tmp_path, manifest))


# --- devices --------------------------------------------------------------------------------------


def test_a_device_that_lacks_something_refuses(engine: cf.Engine, tmp_path: Path) -> None:
    desc = cf.MemoryDesc((2, 17), "f32", "ab")
    a, b = cf.Memory(desc, engine), cf.Memory(desc, engine)
    recording = cf.Recording(engine, inputs={"a": a}, outputs={"b": b})
    source = "#pragma OPENCL EXTENSION cl_khr_nothing : enable\nkernel void f(global float *p) {}"
    kernel = engine.kernel("kernel void f(global float *p) {}", "f")
    setattr(kernel, SOURCE, source)  # as if another device had built it
    recording.run(kernel, (1,), None, b)
    recording.export(tmp_path / "net")
    with pytest.raises(cf.Unsupported, match="needs the extension cl_khr_nothing"):
        cf.load(tmp_path / "net", engine)
    with pytest.raises(cf.InvalidArgument, match="expected one of device0, portable"):
        cf.load(tmp_path / "net", engine, variant="gpu")


def test_versions_of_opencl_c() -> None:
    """Of a device of OpenCL 3.0, which names 1.2, the newest in its list."""
    all_versions = [SimpleNamespace(version=major << 22) for major in (1, 3)]
    for name, listed, newest in (
        ("OpenCL C 1.2 PoCL", [], 120), ("OpenCL C 3.0", [], 300), ("C", [], 0),
        ("OpenCL C 1.2 PoCL", all_versions, 300),
    ):  # fmt: skip
        info = lambda _, listed=listed: listed  # noqa: E731
        assert version_of(SimpleNamespace(opencl_c_version=name, get_info=info)) == newest


ENABLED = "#pragma OPENCL EXTENSION cl_khr_a : enable"


@pytest.mark.parametrize(
    ("text", "is_needed"),
    [
        (f"  {ENABLED}", True),
        (ENABLED.replace("#", "# ").replace(" :", ":"), True),
        (f"#ifdef cl_khr_a\n{ENABLED}\n#endif", False),
        (f"#if 1\n#if 2\n#endif\n{ENABLED}\n#endif", False),
        (f"#if 1\n#else\n#endif\n{ENABLED}", True),
        (f"/* {ENABLED} */", False),
        (ENABLED.replace("enable", "disable"), False),
        (f'constant char text[] = "{ENABLED}";', False),
    ],
)
def test_extensions_are_needed_where_nothing_asks_for_them(text: str, is_needed: bool) -> None:
    assert Source(text).extensions == ({"cl_khr_a"} if is_needed else set())


def golden(stream: cf.Stream) -> tuple[cf.Recording, dict[str, cf.Memory]]:
    """What tests/data/recording/version1 was exported from."""
    engine = stream.engine
    photo = cf.from_numpy(np.arange(2 * 5 * 3 * 7).reshape(2, 5, 3, 7) % 251, engine,
                          format="nhwc", dtype="u8")  # fmt: skip
    half = cf.Memory(cf.MemoryDesc(photo.desc.dims, "f16", "nChw4c"), engine)
    result = cf.Memory(cf.MemoryDesc(photo.desc.dims, "f32", "nchw"), engine)
    recording = cf.Recording(engine, inputs={"photo": photo}, outputs={"result": result})
    by = recording.scalar("by")
    scale = cf.Attr(src_scale=([0.5, 1, 2, 4, 8], 2), dst_scale=cf.at_execution())
    cf.Reorder(photo.desc, half.desc, engine, attr=scale)(recording, photo, half, dst_scale=by)
    cf.Reorder(half.desc, result.desc, engine)(recording, half, result)
    return recording, {"photo": photo, "result": result}


def test_exports_of_version_1_are_read_for_ever(stream: cf.Stream) -> None:
    """The folder is never written anew: whoever breaks it raises the version, and reads both."""
    recording, memories = golden(stream)
    recording.replay()(stream, by=3)
    wanted = bytes_of(memories["result"])
    poison(memories["result"])
    for variant in (None, "portable"):
        replay = cf.load(GOLDEN, stream.engine, variant=variant, inexact=True)
        replay(stream, **memories, by=3)
        if replay.is_exact:
            assert bytes_of(memories["result"]) == wanted
