"""`clformats pack` and `unpack` of .onnx models; the library itself reads what we write."""

from __future__ import annotations

import shutil
from pathlib import Path
from typing import Any

import ml_dtypes
import numpy as np
import pytest

import clformats as cf
from clformats import cli, files
from clformats.files import onnx as onnx_files
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

onnx = pytest.importorskip("onnx", reason="pip install 'clformats[onnx]'")

Capture = pytest.CaptureFixture[str]
STRANGE = "q\"uo'te;\nnew line"
ARRAYS: dict[str, Any] = {
    "conv.weight": values(DIMS),
    STRANGE: values((5, 16, 1, 3), np.int8, 2),
    "bf16": values(DIMS, np.uint16).view(ml_dtypes.bfloat16),
    "f8": values(DIMS, np.uint8).view(ml_dtypes.float8_e5m2),
    "s4": (values(DIMS, np.uint8, 5) % 8).view(ml_dtypes.int4),
    "empty": np.zeros((0, 3, 2, 2), np.float32),
    "grouped": values((2, *DIMS), np.float16, 3),
    "bias": values((17,), np.float32, 4),
    "ids": values((2, 3, 1, 2), np.int64, 5),
    "names": np.array(["a", "b"], object),
}
FIELDS = {"floats": (1, np.float32), "halves": (10, np.float16)}
UNTOUCHED = ("grouped", "bias", "names")


def build(arrays: dict[str, Any]) -> Any:
    """A model of these initializers; two more keep their values in fields of their own."""
    helper, numpy_helper = onnx.helper, onnx.numpy_helper
    tensors = [numpy_helper.from_array(a, name) for name, a in arrays.items()]
    for name, (code, dtype) in FIELDS.items():
        data = np.arange(12).astype(dtype)
        tensors.append(helper.make_tensor(name, code, (3, 2, 1, 2), data))
    tensors[0].doc_string = "kept"
    tensors[0].metadata_props.add(key="other", value="kept")
    constant = numpy_helper.from_array(values((40, 10)), "constant")
    nodes = [helper.make_node("Constant", [], ["c"], value=constant)]
    model = helper.make_model(helper.make_graph(nodes, "g", [], [], tensors))
    model.metadata_props.add(key="author", value="kept")
    return model


@pytest.fixture(params=["inside", "outside"])
def model(request: pytest.FixtureRequest, tmp_path: Path) -> Path:
    file = tmp_path / "m.onnx"
    if request.param == "inside":
        onnx.save(build(ARRAYS), file)
    else:
        onnx.save(
            build(ARRAYS), file, save_as_external_data=True, location="m.weights",
            size_threshold=40, convert_attribute=True,
        )  # fmt: skip
    return file


def loaded(file: Path) -> tuple[dict[str, Any], Any]:
    """Every initializer as an array, and the model, by the library."""
    model = onnx.load(file)
    arrays = {t.name: onnx.numpy_helper.to_array(t) for t in model.graph.initializer}
    return arrays, model


def test_initializers_are_packed_and_come_back(model: Path, capsys: Capture) -> None:
    out, back = model.with_name("out.onnx"), model.with_name("back.onnx")
    before, old = loaded(model)
    lines = done(capsys, "pack", model, "--from", "oiyx", "--to", TO, "-o", out)
    assert lines[-1].startswith("note: ")
    assert "no plain ONNX runtime can run this model" in lines[-1]
    assert sum(line.startswith("untouched") for line in lines) == len(UNTOUCHED)
    arrays, new = loaded(out)
    assert list(arrays) == list(before)
    for tensor in new.graph.initializer:
        array, name = before[tensor.name], tensor.name
        records = [e.value for e in tensor.metadata_props if e.key == "clformats"]
        if name in UNTOUCHED:
            assert same_bytes(arrays[name], array)
            assert not records
        else:
            desc = cf.MemoryDesc(array.shape, array.dtype, TO)
            assert same_bytes(arrays[name], cf.pack(array, desc))
            assert records == [f"{desc} from {cf.MemoryDesc(array.shape, array.dtype, 'oiyx')}"]
    assert new.graph.initializer[0].doc_string == "kept"
    assert new.graph.initializer[0].metadata_props[0].value == "kept"
    assert [e.value for e in new.metadata_props] == ["kept"]
    assert new.graph.node == old.graph.node

    done(capsys, "unpack", out, "-o", back)
    arrays, new = loaded(back)
    for name, array in before.items():
        assert (arrays[name].dtype, arrays[name].shape) == (array.dtype, array.shape)
        assert same_bytes(arrays[name], array)
    for tensor in new.graph.initializer:
        tensor.ClearField("data_location")
    for tensor in old.graph.initializer:
        tensor.ClearField("data_location")
    raw = [t.name for t in old.graph.initializer if t.name not in FIELDS]
    assert [t for t in new.graph.initializer if t.name in raw] == [
        t for t in old.graph.initializer if t.name in raw
    ]
    assert (new.graph.node, new.opset_import) == (old.graph.node, old.opset_import)


def test_a_result_with_external_data_stands_on_its_own(
    model: Path, tmp_path: Path, capsys: Capture
) -> None:
    """Packed elsewhere, the input gone: also what nodes had outside has come along."""
    is_outside = model.with_name("m.weights").exists()
    folder = tmp_path / "elsewhere"
    folder.mkdir()
    before, old = loaded(model)
    done(capsys, "pack", model, "--to", TO, "-o", folder / "out.onnx")
    assert sorted(contents(folder)) == ["out.onnx", "out.onnx.data"][: 1 + is_outside]
    for file in tmp_path.glob("m.*"):
        file.unlink()
    done(capsys, "unpack", folder / "out.onnx", "-o", folder / "back.onnx")
    arrays, new = loaded(folder / "back.onnx")
    assert all(same_bytes(arrays[name], array) for name, array in before.items())
    assert new.graph.node[0].attribute[0].t.raw_data == old.graph.node[0].attribute[0].t.raw_data


def test_a_model_too_large_for_one_message_gets_external_data(
    tmp_path: Path, capsys: Capture, monkeypatch: pytest.MonkeyPatch
) -> None:
    source, out, back = (tmp_path / f"{n}.onnx" for n in ("in", "out", "back"))
    onnx.save(build(ARRAYS), source)
    monkeypatch.setattr(onnx_files, "_MOST_INLINE", 10_000)
    done(capsys, "pack", source, "--to", TO, "-o", out)
    assert out.with_name("out.onnx.data").stat().st_size > 10_000
    done(capsys, "unpack", out, "-o", back)
    before, after = loaded(source)[0], loaded(back)[0]
    assert all(same_bytes(after[name], array) for name, array in before.items())


def test_types_are_converted_and_restored(model: Path, capsys: Capture) -> None:
    out, back = model.with_name("out.onnx"), model.with_name("back.onnx")
    done(capsys, "pack", model, "--to", TO, "--dtype", "u4", "--match", "floats", "-o", out)
    arrays, _ = loaded(out)
    data = np.arange(12, dtype=np.float32).reshape(3, 2, 1, 2)
    assert same_bytes(arrays["floats"], cf.pack(data, cf.MemoryDesc((3, 2, 1, 2), "u4", TO)))
    done(capsys, "unpack", out, "-o", back)
    assert same_bytes(loaded(back)[0]["floats"], data)
    done(capsys, "unpack", out, "--dtype", "u4", "--force", "-o", back)
    assert loaded(back)[0]["floats"].dtype == ml_dtypes.uint4


def test_no_file_of_anybody_is_overwritten(tmp_path: Path, capsys: Capture) -> None:
    """Nor is the file of external data that the input reads, which a target would have."""
    source, out, weights = tmp_path / "m.onnx", tmp_path / "out.onnx", "twice.onnx.data"
    onnx.save(build(ARRAYS), source, save_as_external_data=True, location=weights)
    (tmp_path / "out.onnx.data").write_bytes(b"precious")
    before = contents(tmp_path)
    told = refused(capsys, "pack", source, "--to", TO, "-o", out)
    assert "out.onnx.data exists: give --force" in told
    for target in ("m.onnx", "twice.onnx"):
        told = refused(capsys, "pack", source, "--to", TO, "--force", "-o", tmp_path / target)
        assert "is the input itself" in told
    assert contents(tmp_path) == before
    done(capsys, "pack", source, "--to", TO, "--force", "-o", out)
    after = contents(tmp_path)
    assert sorted(after) == sorted([*before, "out.onnx"])
    assert [after[name] for name in ("m.onnx", weights)] == [
        before[name] for name in ("m.onnx", weights)
    ]


@pytest.mark.parametrize("damage", ["gone", "cut", "elsewhere", "no name"])
def test_external_data_that_cannot_be_read(damage: str, tmp_path: Path, capsys: Capture) -> None:
    folder = tmp_path / "model"
    folder.mkdir()
    source, weights = folder / "m.onnx", folder / "m.weights"
    onnx.save(build(ARRAYS), source, save_as_external_data=True, location="m.weights")
    if damage == "gone":
        weights.unlink()
    elif damage == "cut":
        weights.write_bytes(weights.read_bytes()[:-1])
    elif damage == "no name":
        source.write_bytes(source.read_bytes().replace(b"m.weights", b"\xff.weights"))
    else:
        shutil.move(weights, tmp_path / "m.weights")
        model = onnx.load(source, load_external_data=False)
        for tensor in model.graph.initializer:
            for entry in tensor.external_data:
                if entry.key == "location":
                    entry.value = "../m.weights"
        source.write_bytes(model.SerializeToString())
    before = contents(tmp_path)
    refused_line(capsys, source, folder / "out.onnx")
    assert contents(tmp_path) == before


def refused_line(capsys: Capture, source: Path, out: Path) -> None:
    """Refused while it works: there may be lines on what was done until then."""
    assert cli.main(["pack", str(source), "--to", TO, "-o", str(out)]) == 1
    captured = capsys.readouterr()
    assert captured.err.startswith("clformats: ")
    assert captured.err.count("\n") == 1


def test_refusals(model: Path, capsys: Capture) -> None:
    out = model.with_name("out.onnx")
    before = contents(model.parent)
    assert "rank 4, abcdef has 6" in refused(capsys, "pack", model, "--to", "abcdef", "-o", out)
    assert "not packed" in refused(capsys, "unpack", model, "-o", out)
    assert contents(model.parent) == before


@pytest.fixture
def small(tmp_path: Path) -> tuple[Path, Path]:
    """A model and what pack makes of it."""
    source, packed = tmp_path / "w.onnx", tmp_path / "p.onnx"
    tensor = onnx.numpy_helper.from_array(values((3, 2, 1, 2)), "w")
    graph = onnx.helper.make_graph([], "g", [], [], [tensor])
    onnx.save(onnx.helper.make_model(graph), source)
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
