"""A model file of 200 MB is packed and restored without being held."""

from __future__ import annotations

import filecmp
import tracemalloc
from pathlib import Path

import numpy as np
import pytest

import clformats as cf
from clformats import cli
from clformats.files import pack_quantised, unpack_quantised
from tests.files_support import finish_gguf
from tests.quantised.test_gguf import check_product, written

gguf = pytest.importorskip("gguf")
pytestmark = pytest.mark.slow
MOST = 48 << 20
"""Bytes that numpy and Python may have at a time: a part of a tensor, some times over."""


@pytest.mark.parametrize("to", ["transposed", "u4g32:gptq"])
def test_a_large_file_streams(to: str, tmp_path: Path) -> None:
    rows, columns = 86_016, 4096
    desc = cf.MemoryDesc((rows, columns), "q4_0", "gguf")
    path = tmp_path / "model.gguf"
    writer = gguf.GGUFWriter(path, "llama")
    raw = np.random.default_rng(0).integers(0, 256, (rows, desc.nbytes // rows), np.uint8)
    writer.add_tensor("w", raw, raw_dtype=gguf.GGMLQuantizationType.Q4_0)
    finish_gguf(writer)
    del raw, writer
    assert path.stat().st_size > 190e6
    packed, again = tmp_path / "packed.safetensors", tmp_path / "again.gguf"
    tracemalloc.start()
    try:
        pack_quantised(path, packed, to)
        assert tracemalloc.get_traced_memory()[1] < MOST
        unpack_quantised(packed, again)
        assert tracemalloc.get_traced_memory()[1] < MOST
    finally:
        tracemalloc.stop()
    assert filecmp.cmp(path, again, shallow=False)


def test_a_model_of_all_types_is_inspected_packed_run_and_restored(
    tmp_path: Path, stream: cf.Stream, capsys: pytest.CaptureFixture[str]
) -> None:
    """Several MB: by the commands, products in the layout of the packed file, the same bytes."""
    model = written(tmp_path / "model.gguf", 2048)
    assert model.stat().st_size > 10e6
    packed, again = str(tmp_path / "packed.safetensors"), str(tmp_path / "again.gguf")
    assert cli.main(["inspect", str(model)]) == 0
    assert "q4_K:gguf:2048x512" in capsys.readouterr().out
    assert cli.main(["pack", str(model), "--to", "transposed", "-o", packed]) == 0
    tensors = cf.read_safetensors(packed)
    for name in ("q4_0", "q5_1", "q8_0", "q4_K", "q6_K", "iq3_s", "mxfp4"):
        check_product(tensors[f"blk.{name}"], stream)
    assert cli.main(["unpack", packed, "-o", again]) == 0
    assert filecmp.cmp(model, again, shallow=False)
