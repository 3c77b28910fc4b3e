"""`clformats pack` and `unpack` of .safetensors files; the library itself reads what we write."""

from __future__ import annotations

import json
import struct
from pathlib import Path
from typing import Any

import ml_dtypes
import numpy as np
import pytest

import clformats as cf
from clformats import cli, files
from tests.files_support import (
    DIMS,
    TO,
    contents,
    cut,
    done,
    refused,
    small_pack,
    spoiled,
    survives,
    values,
)
from tests.support import same_bytes

safetensors = pytest.importorskip("safetensors", reason="pip install safetensors")

Capture = pytest.CaptureFixture[str]
STRANGE = "q\"uo'te;\nnew line"
MODEL: dict[str, Any] = {
    "conv1.weight": values(DIMS),
    "half.weight": values(DIMS, np.float16, 1),
    STRANGE: values((5, 16, 1, 3), np.int8, 2),
    "grouped.weight": values((2, *DIMS), np.float32, 3),
    "bn.weight": values((17,), np.float32, 4),
    "ids": values((2, 3, 1, 2), np.uint16, 5),
    "mask": np.ones((1, 1, 2, 3), np.bool_),
    "empty": np.zeros((0, 3, 2, 2), np.float32),
    "scalar": np.array(2.5, np.float32),
}
PACKED = ("conv1.weight", "half.weight", STRANGE, "empty")


@pytest.fixture
def model(tmp_path: Path) -> Path:
    from safetensors.numpy import save_file

    file = tmp_path / "m.safetensors"
    save_file(MODEL, file, metadata={"format": "pt", "conv1.weight": "not a record"})
    return file


def loaded(file: Path) -> tuple[dict[str, Any], dict[str, str]]:
    """Every tensor and the metadata, by the library."""
    with safetensors.safe_open(str(file), framework="numpy") as opened:
        return {name: opened.get_tensor(name) for name in opened.keys()}, opened.metadata()  # noqa: SIM118


def raw_file(file: Path, *tensors: tuple[str, str, tuple[int, ...], bytes]) -> None:
    """A file with tensors of any type, written by hand."""
    header, end = {}, 0
    for name, dtype, shape, data in tensors:
        header[name] = {"dtype": dtype, "shape": shape, "data_offsets": [end, end + len(data)]}
        end += len(data)
    text = json.dumps(header).encode()
    file.write_bytes(struct.pack("<Q", len(text)) + text + b"".join(t[3] for t in tensors))


def test_the_tensors_of_the_rank_are_packed_and_the_others_stay(
    model: Path, capsys: Capture
) -> None:
    out, back = model.with_name("out.safetensors"), model.with_name("back.safetensors")
    lines = done(capsys, "pack", model, "--from", "oiyx", "--to", TO, "-o", out)
    assert {line.split()[0] for line in lines[:-1]} == {"packed", "untouched"}
    assert len(lines) == len(MODEL) + 1
    tensors, metadata = loaded(out)
    assert metadata["format"] == "pt"
    assert metadata["conv1.weight"] == "not a record"
    for name, array in MODEL.items():
        if name in PACKED:
            desc = cf.MemoryDesc(array.shape, array.dtype, TO)
            assert same_bytes(tensors[name], cf.pack(array, desc))
            source = cf.MemoryDesc(array.shape, array.dtype, "oiyx")
            assert metadata[f"clformats:{name}"] == f"{desc} from {source}"
        else:
            assert tensors[name].dtype == array.dtype
            assert tensors[name].shape == array.shape
            assert same_bytes(tensors[name], array)
    assert sum(key.startswith("clformats:") for key in metadata) == len(PACKED)

    done(capsys, "unpack", out, "-o", back)
    tensors, metadata = loaded(back)
    assert metadata == {"format": "pt", "conv1.weight": "not a record"}
    assert all(same_bytes(tensors[name], array) for name, array in MODEL.items())
    assert back.read_bytes() == model.read_bytes()


def test_the_examples_in_the_help_work(
    model: Path, capsys: Capture, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(model.parent)
    model.rename("model.safetensors")
    for command in ("pack", "unpack"):
        with pytest.raises(SystemExit):
            cli.main([command, "-h"])
        example = " ".join(capsys.readouterr().out.split("example:")[1].split())
        done(capsys, *example.split()[1:], "--force")
    assert same_bytes(loaded(Path("model.safetensors"))[0][STRANGE], MODEL[STRANGE])


def test_groups_convert_and_match_one_after_the_other(model: Path, capsys: Capture) -> None:
    first, second, back = (model.with_name(f"{n}.safetensors") for n in "abc")
    done(capsys, "pack", model, "--to", TO, "--match", r"^conv\d", "-o", first)
    lines = done(
        capsys, "pack", first, "--to", "gs_oiyx_gsv16", "--dtype", "f16", "-o", second
    )  # fmt: skip
    assert sum(line.startswith("packed") for line in lines) == 1
    tensors, metadata = loaded(second)
    assert sorted(k for k in metadata if ":" in k) == [
        "clformats:conv1.weight",
        "clformats:grouped.weight",
    ]
    assert tensors["grouped.weight"].dtype == np.float16
    assert "packed already" in refused(
        capsys, "pack", second, "--to", "a", "--match", "conv1", "-o", back
    )
    done(capsys, "unpack", second, "--match", "conv1", "-o", back)
    tensors, metadata = loaded(back)
    assert same_bytes(tensors["conv1.weight"], MODEL["conv1.weight"])
    assert "clformats:grouped.weight" in metadata


@pytest.mark.parametrize(("name", "code"), [("bf16", "BF16"), ("f8_e4m3", "F8_E4M3"),
                                            ("f8_e5m2", "F8_E5M2")])  # fmt: skip
def test_types_that_numpy_lacks(name: str, code: str, tmp_path: Path, capsys: Capture) -> None:
    source, out, back = (tmp_path / f"{n}.safetensors" for n in ("in", "out", "back"))
    dtype = cf.tensors.dtypes.as_dtype(name)
    array = values(DIMS, dtype.raw)
    raw_file(source, ("w", code, DIMS, array.tobytes()), ("scale", "F8_E8M0", (1,), b"\x7f"))
    done(capsys, "pack", source, "--to", TO, "-o", out)
    file = files.open_file(out)
    flat = cf.pack(array.view(dtype.numpy), cf.MemoryDesc(DIMS, name, TO))
    assert file.tensors["w"].type_name == code
    assert same_bytes(file.read("w"), flat)
    done(capsys, "unpack", out, "-o", back)
    assert same_bytes(files.open_file(back).read("w"), array)


def test_four_bits_lie_as_bytes(model: Path, capsys: Capture) -> None:
    out, back = model.with_name("out.safetensors"), model.with_name("back.safetensors")
    done(capsys, "pack", model, "--to", TO, "--dtype", "s4", "--match", "q", "-o", out)
    tensors, _ = loaded(out)
    desc = cf.MemoryDesc((5, 16, 1, 3), "s4", TO)
    assert same_bytes(tensors[STRANGE], cf.pack(MODEL[STRANGE], desc))
    told = refused(capsys, "unpack", out, "--dtype", "s4", "-o", back)
    assert "cannot have elements of type s4" in told


def test_tensors_are_aligned_whatever_pack_makes_of_the_others(
    model: Path, capsys: Capture
) -> None:
    out = model.with_name("out.safetensors")
    done(capsys, "pack", model, "--to", TO, "--dtype", "f8_e5m2", "--match", "conv1", "-o", out)
    data = out.read_bytes()
    (length,) = struct.unpack("<Q", data[:8])
    header = json.loads(data[8 : 8 + length])
    for name, array in MODEL.items():
        start = 8 + length + header[name]["data_offsets"][0]
        assert start % (1 if name == "conv1.weight" else array.dtype.itemsize) == 0


@pytest.mark.parametrize(
    ("arguments", "told"),
    [
        (["pack", "--to", "abcdef"], "rank 4, abcdef has 6 (a, b, c, d, e, f); "),
        (["pack", "--to", TO, "--match", "("], "is no regular expression"),
        (["pack", "--to", TO, "--match", "nothing"], "not matched; "),
        (["pack", "--to", TO, "--as", "bf16"], "--as is for .npy files only"),
        (["pack", "--to", "os_zyxi_osv16", "--match", "bn"], "rank 1"),
        (["unpack"], "not packed; "),
        (["unpack", "--desc", "f32:a:17"], "--desc is for .npy files only"),
    ],
)
def test_refusals(arguments: list[str], told: str, model: Path, capsys: Capture) -> None:
    before = contents(model.parent)
    out = model.with_name("out.safetensors")
    assert told in refused(capsys, arguments[0], model, *arguments[1:], "-o", out)
    assert contents(model.parent) == before


def test_a_bad_record_is_told_with_the_tensor_and_spoils_no_other(
    model: Path, capsys: Capture
) -> None:
    from safetensors.numpy import save_file

    out = model.with_name("out.safetensors")
    save_file(
        {"a": np.zeros(24, np.float32), "b;\n": np.zeros(23, np.float32)},
        model,
        metadata={
            "clformats:a": "f32:abc:2x3x4 from f32:abc:2x3x4",
            "clformats:b;\n": "f32:abc:2x3x4 from f32:abc:2x3x4",
            "clformats:none": "x",
        },
    )
    told = refused(capsys, "unpack", model, "-o", out)
    assert r"tensor 'b;\n': the tensor is F32 23, f32:abc:2x3x4 needs f32 24" in told
    done(capsys, "unpack", model, "--match", "a", "-o", out)
    assert loaded(out)[0]["a"].shape == (2, 3, 4)


@pytest.fixture
def small(tmp_path: Path) -> tuple[Path, Path]:
    """A file and what pack makes of it."""
    source, packed = tmp_path / "w.safetensors", tmp_path / "p.safetensors"
    raw_file(source, ("w", "F32", (3, 2, 1, 2), bytes(range(48))), ("b", "I64", (1,), bytes(8)))
    small_pack(source, packed)
    return source, packed


def test_cut_files_are_refused_at_every_length(small: tuple[Path, Path]) -> None:
    source, packed = small
    assert not any(survives(small_pack, source, data) for data in cut(source.read_bytes()))
    assert not any(survives(files.unpack_file, packed, d) for d in cut(packed.read_bytes()))


def test_spoiled_files_are_read_or_refused(small: tuple[Path, Path]) -> None:
    source, packed = small
    whole = source.read_bytes(), packed.read_bytes()
    assert {survives(small_pack, source, d) for d in spoiled(whole[0], 200)} == {True, False}
    assert {survives(files.unpack_file, packed, d) for d in spoiled(whole[1], 200)} == {True, False}


def test_bfloat16_of_the_library_itself(tmp_path: Path, capsys: Capture) -> None:
    from safetensors.numpy import save_file

    source, out, back = (tmp_path / f"{n}.safetensors" for n in ("in", "out", "back"))
    save_file({"w": values(DIMS, np.uint16).view(ml_dtypes.bfloat16)}, source)
    done(capsys, "pack", source, "--from", "hwio", "--to", "OIhw16i16o", "-o", out)
    done(capsys, "unpack", out, "-o", back)
    assert back.read_bytes() == source.read_bytes()


def test_a_shape_that_numpy_refuses_is_told(tmp_path: Path, capsys: Capture) -> None:
    entry = {"dtype": "F32", "shape": [0, 2**62, 1, 1], "data_offsets": [0, 0]}
    text = json.dumps({"w": entry}).encode()
    file = tmp_path / "w.safetensors"
    file.write_bytes(struct.pack("<Q", len(text)) + text)
    told = refused(capsys, "pack", file, "--to", TO, "-o", tmp_path / "o.safetensors")
    assert "w.safetensors" in told or "2**63" in told


def test_a_name_that_stands_twice_is_refused(tmp_path: Path) -> None:
    file, entry = tmp_path / "twice.safetensors", '{"dtype":"F32","shape":[1],"data_offsets":[0,4]}'
    header = f'{{"w":{entry},"w":{entry}}}'.encode()
    file.write_bytes(struct.pack("<Q", len(header)) + header + bytes(4))
    with pytest.raises(cf.Error, match="names w twice"):
        files.open_file(file)
