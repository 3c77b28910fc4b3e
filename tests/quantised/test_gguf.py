"""A model file of GGUF: written by the package gguf, read, run on a device, and written again."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

import clformats as cf
from clformats import cli
from clformats.interop.files.gguf import read_gguf
from tests.quantised.test_table import GGUF, random_bytes, same

gguf = pytest.importorskip("gguf")


@pytest.fixture(scope="module")
def model(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A file with a tensor of every type."""
    path = tmp_path_factory.mktemp("gguf") / "model.gguf"
    writer = gguf.GGUFWriter(path, "llama")
    for name in GGUF:
        desc = cf.MemoryDesc((24, 512), name, "gguf")
        raw = random_bytes(desc, 4).reshape(24, -1)  # type: ignore[arg-type]
        writer.add_tensor(f"blk.{name}", raw, raw_dtype=gguf.GGMLQuantizationType[name.upper()])
    writer.add_tensor("norm", np.arange(40, dtype=np.float32))
    writer.add_tensor("half", np.ones((3, 5), np.float16))
    writer.write_header_to_file()
    writer.write_kv_data_to_file()
    writer.write_tensors_to_file()
    writer.close()
    return path


def test_every_tensor_is_read_with_its_layout(model: Path) -> None:
    tensors = read_gguf(model)
    assert list(tensors) == [*(f"blk.{n}" for n in GGUF), "norm", "half"]
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
    memory = cf.Memory(src, stream.engine)
    with memory.map("w") as flat:
        flat[:] = tensor.raw
    planes = cf.Memory(cf.MemoryDesc(src.dims, "q4_0", "flat"), stream.engine)
    cf.Reorder(src, planes.desc, stream.engine)(stream, memory, planes)
    back = cf.Memory(src, stream.engine)
    cf.Reorder(planes.desc, src, stream.engine)(stream, planes, back)
    with back.map("r") as flat:
        assert np.array_equal(flat, tensor.raw)


def test_inspect_lists_types_layouts_and_sizes(
    model: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert cli.main(["inspect", str(model)]) == 0
    text = capsys.readouterr().out
    assert "q4_K:gguf:24x512" in text
    assert "f32:a:40" in text
    assert f"{len(GGUF) + 2} tensors" in text
    assert cli.main(["inspect", str(model), "--json"]) == 0
    assert '"nbytes": 6912' in capsys.readouterr().out


def test_what_is_no_such_file_is_told(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    file = tmp_path / "x.gguf"
    file.write_bytes(b"no")
    assert cli.main(["inspect", str(file)]) == 1
    assert "GGUF" in capsys.readouterr().err
    assert cli.main(["inspect", str(tmp_path / "none.gguf")]) == 1
    with pytest.raises(cf.InvalidArgument, match="path: got 5"):
        cf.read_gguf(5)  # type: ignore[arg-type]
