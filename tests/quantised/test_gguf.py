"""A model file of GGUF: written by the package gguf, read, run on a device, and written again."""

from __future__ import annotations

import re
from pathlib import Path

import numpy as np
import pytest

import clformats as cf
from clformats import cli
from clformats.files.checkpoints import read_safetensors
from clformats.files.gguf import read_gguf
from clformats.files.stored import StoredTensor
from clformats.quantised.host import from_codes
from tests.files_support import finish_gguf
from tests.quantised.test_index_source import product
from tests.quantised.test_table import GGUF, described, random_codes, same

gguf = pytest.importorskip("gguf")


@pytest.fixture(scope="module")
def model(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A small model."""
    return written(tmp_path_factory.mktemp("gguf") / "model.gguf", 24)


def written(path: Path, rows: int) -> Path:
    """A file with a tensor of every type, of rows of 512 finite values."""
    writer = gguf.GGUFWriter(path, "llama")
    for name in GGUF:
        desc = described((rows, 512), name, "gguf")
        codes = random_codes(desc, 4)
        for field in desc.fields.values():
            if field.dtype.name == "f16":  # finite
                codes[field.name] &= np.uint16(0xBBFF)
        raw = from_codes(codes, desc).reshape(rows, -1)
        writer.add_tensor(f"blk.{name}", raw, raw_dtype=gguf.GGMLQuantizationType[name.upper()])
    tq1_0 = np.random.default_rng(0).integers(0, 256, (3, 54), np.uint8)
    writer.add_tensor("base3", tq1_0, raw_dtype=gguf.GGMLQuantizationType.TQ1_0)
    writer.add_tensor("norm", np.arange(40, dtype=np.float32))
    writer.add_tensor("half", np.ones((3, 5), np.float16))
    finish_gguf(writer)
    return path


def test_every_tensor_is_read_with_its_layout(model: Path) -> None:
    tensors = read_gguf(model)
    assert list(tensors) == [*(f"blk.{n}" for n in GGUF), "base3", "norm", "half"]
    for name in GGUF:
        tensor = tensors[f"blk.{name}"]
        assert str(tensor.desc) == f"{name}:gguf:24x512"
        kind = gguf.GGMLQuantizationType[name.upper()]
        with np.errstate(all="ignore"):
            expected = gguf.quants.dequantize(np.asarray(tensor.raw).reshape(24, -1), kind)
        assert same(tensor.numpy(), expected)
    assert tensors["norm"].numpy().tolist() == list(range(40))
    assert str(tensors["half"].desc) == "f16:ab:3x5"


def test_a_tensor_goes_to_a_device_and_back(model: Path, stream: cf.Stream) -> None:
    tensor = read_gguf(model)["blk.q4_0"]
    src = tensor.desc
    assert src is not None
    memory = tensor.memory(stream.engine)
    assert np.array_equal(tensor.memory(stream.engine, "flat").numpy(), tensor.numpy())
    with pytest.raises(cf.Unsupported, match="TQ1_0"):
        read_gguf(model)["base3"].memory(stream.engine)
    planes = cf.Memory(cf.MemoryDesc(src.dims, "q4_0", "flat"), stream.engine)
    cf.Reorder(src, planes.desc, stream.engine)(stream, memory, planes)
    back = cf.Memory(src, stream.engine)
    cf.Reorder(planes.desc, src, stream.engine)(stream, planes, back)
    with back.map("r") as flat:
        assert np.array_equal(flat, tensor.raw)


LAYOUTS = ("transposed", "flat", "trans4", "repack_8x8", "plain", "u4g32:gptq", "s8g32:compressed")


@pytest.mark.parametrize("to", LAYOUTS)
def test_a_packed_model_comes_back_to_the_byte(
    to: str, model: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """Header, padding, and tensors of a type without a layout too."""
    packed, again = str(tmp_path / "packed.safetensors"), tmp_path / "again.gguf"
    assert cli.main(["pack", str(model), "--to", to, "-o", packed]) == 0
    layout = to.rpartition(":")[2]
    assert f"{layout}:24x512" in capsys.readouterr().out
    found, stored = read_safetensors(packed), read_gguf(model)
    for name, tensor in stored.items():
        if tensor.desc is not None:
            own, back = (t.numpy().astype(np.float32) for t in (tensor, found[name]))
            assert same(own, back), name
    assert sum(str(t.desc).endswith(f":{layout}:24x512") for t in found.values()) >= 1
    assert cli.main(["unpack", packed, "-o", str(again)]) == 0
    assert again.read_bytes() == model.read_bytes()


def test_what_cannot_be_packed_is_told(
    model: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    target = str(tmp_path / "packed.safetensors")
    for words, why in (
        (["--to", "marlin"], "no layout marlin"),
        (["--to", "u4g32:gptq", "--match", "q4_K"], "not scale"),
        (["--to", "flat", "--match", "nothing"], "not matched"),
        (["--to", "flat", "--dtype", "f16"], "leave it out"),
        (["--to", "nchw", "--dask", "tcp://127.0.0.1:1"], "no layout of them"),
        (["--to", "transposd"], "got transposd for .* expected a layout .*, transposed"),
    ):
        assert cli.main(["pack", str(model), *words, "-o", target]) == 1
        assert re.search(why, capsys.readouterr().err), words
    assert cli.main(["pack", str(model), "--to", "flat", "-o", str(tmp_path / "x.gguf")]) == 1
    assert "ends in .safetensors" in capsys.readouterr().err
    assert not any(tmp_path.iterdir())


@pytest.mark.sampled(8)
@pytest.mark.parametrize("name", GGUF)
def test_a_gemv_of_a_model_runs_on_a_device(model: Path, name: str, stream: cf.Stream) -> None:
    """By the index source, against numpy in f64."""
    check_product(read_gguf(model)[f"blk.{name}"], stream)


def check_product(tensor: StoredTensor, stream: cf.Stream) -> None:
    """Let a kernel multiply a tensor of a file by a vector."""
    values = tensor.numpy().astype(np.float64)
    x = np.random.default_rng(1).standard_normal(512).astype(np.float32)
    y = product(stream, tensor.memory(stream.engine), x)
    with np.errstate(all="ignore"):  # mxfp4's largest scales give infinite values
        largest, expected = np.abs(values) @ np.abs(x), values @ x
    fits = largest < np.finfo(np.float32).max
    assert fits.sum() > 2 or tensor.name.endswith("mxfp4")
    assert (np.abs(y[fits] - expected[fits]) <= 1e-5 * largest[fits]).all()


def test_inspect_lists_types_layouts_and_sizes(
    model: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert cli.main(["inspect", str(model)]) == 0
    text = capsys.readouterr().out
    assert "q4_K:gguf:24x512" in text
    assert "f32:a:40" in text
    assert f"{len(GGUF) + 3} tensors" in text
    assert cli.main(["inspect", str(model), "--json"]) == 0
    assert '"nbytes": 6912' in capsys.readouterr().out


def test_files_of_big_endian_processors_are_refused(tmp_path: Path) -> None:
    path = tmp_path / "big.gguf"
    writer = gguf.GGUFWriter(path, "llama", endianess=gguf.GGUFEndian.BIG)
    writer.add_tensor("x", np.arange(8, dtype=np.float32))
    finish_gguf(writer)
    with pytest.raises(cf.Error, match="gguf-convert-endian FILE little"):
        read_gguf(path)


def test_what_is_no_such_file_is_told(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    file = tmp_path / "x.gguf"
    file.write_bytes(b"no")
    assert cli.main(["inspect", str(file)]) == 1
    assert "GGUF" in capsys.readouterr().err
    assert cli.main(["inspect", str(tmp_path / "none.gguf")]) == 1
    with pytest.raises(cf.InvalidArgument, match="path: got 5"):
        cf.read_gguf(5)  # type: ignore[arg-type]
