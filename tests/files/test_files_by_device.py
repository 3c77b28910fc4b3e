"""`clformats pack --device`: the device's reorder writes what numpy does."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

import clformats as cf
from tests.files_support import DIMS, TO, done, refused, values


@pytest.mark.parametrize("dtype", ["f32", "f16", "bf16", "s8"])
def test_a_device_packs_and_unpacks_as_numpy_does(
    dtype: str, engine: cf.Engine, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    source, host, out, back = (tmp_path / f"{n}.npy" for n in ("in", "host", "out", "back"))
    array = values(DIMS, np.int8).astype(np.float32) / 8
    np.save(source, array.transpose(2, 3, 1, 0))
    job = ("pack", source, "--from", "hwio", "--to", TO, "--dtype", dtype)
    device = ("--device", engine.device.name)
    done(capsys, *job, "-o", host)
    done(capsys, *job, *device, "-o", out)
    assert out.read_bytes() == host.read_bytes()
    done(capsys, "unpack", out, *device, "-o", back)
    if dtype in ("f32", "f16"):
        assert back.read_bytes() == source.read_bytes()


def test_what_the_device_cannot_is_refused(
    engine: cf.Engine, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    source, out = tmp_path / "in.npy", tmp_path / "out.npy"
    np.save(source, values(DIMS))
    assert "no device" in refused(
        capsys, "pack", source, "--to", TO, "--device", "none such", "-o", out
    ).lower().replace("no opencl device", "no device")  # fmt: skip
    np.save(source, np.zeros((17, 0, 3, 2), np.float32))
    done(capsys, "pack", source, "--to", TO, "--device", engine.device.name, "-o", out)
