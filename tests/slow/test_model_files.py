"""A model file of 200 MB is packed and restored without being held."""

from __future__ import annotations

import filecmp
import tracemalloc
from pathlib import Path

import numpy as np
import pytest

import clformats as cf
from clformats.interop.files import pack_quantised, unpack_quantised

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
    writer.write_header_to_file()
    writer.write_kv_data_to_file()
    writer.write_tensors_to_file()
    writer.close()
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
