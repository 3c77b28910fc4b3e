"""`clformats export` and `clformats run`."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

import clformats as cf
from clformats.cli import main
from clformats.recording.load import read_program

SRC, DST = "f32:nchw:1x5x3x7", "f16:nChw4c:1x5x3x7"


def test_an_exported_reorder_runs(
    tmp_path: Path, engine: cf.Engine, capsys: pytest.CaptureFixture[str]
) -> None:
    place, name = str(tmp_path / "net"), engine.device.platform.name.strip()
    assert main(["export", SRC, DST, "-o", place, "--device", name]) == 0
    values = np.random.default_rng(0).integers(-9, 9, (1, 5, 3, 7)).astype(np.float32)
    np.save(tmp_path / "src.npy", values)
    files = [f"src={tmp_path / 'src.npy'}", f"dst={tmp_path / 'dst.npy'}"]
    assert main(["run", place, "--device", name, "--set", files[0], "--save", files[1]]) == 0
    assert (np.load(tmp_path / "dst.npy") == values).all()
    assert main(["run", place, "--device", name, "--save", files[1]]) == 1
    assert main(["run", place, "--device", name, "--save", files[1], "--force"]) == 0
    said, refused = capsys.readouterr()
    assert "dst.npy exists: give --force" in refused
    assert "variant device0, planned for this device" in said
    assert "1 commands" in said
    assert main(["run", place, "--device", name, "--set", "dst=3"]) == 1
    assert main(["run", place, "--device", name, "--set", "src"]) == 1
    assert main(["run", place, "--device", name, "--set", "src=nothing.npy"]) == 1
    assert main(["run", str(tmp_path / "nothing")]) == 1


@pytest.mark.device
def test_an_exported_reorder_of_quantised_tensors_runs(
    tmp_path: Path, engine: cf.Engine, capsys: pytest.CaptureFixture[str]
) -> None:
    src = cf.MemoryDesc((8, 64), "q4_0", "gguf")
    device = ["--device", engine.device.platform.name.strip()]
    export = ["export", str(src), "f32:ab:8x64", "-o", str(tmp_path / "net")]
    assert main([*export, *device]) == 0
    values = np.random.default_rng(0).standard_normal((8, 64)).astype(np.float32)
    np.save(tmp_path / "src.npy", values)
    files = [f"src={tmp_path / 'src.npy'}", f"dst={tmp_path / 'dst'}"]
    run = ["run", str(tmp_path / "net"), *device]
    assert main([*run, "--set", files[0], "--save", files[1]]) == 0
    assert (np.load(tmp_path / "dst") == cf.unpack(cf.pack(values, src), src)).all()
    assert main(run) == 0
    assert main([*export, "--device-like", "gpu", "--force"]) == 1
    assert "reorders of one element type" in capsys.readouterr().err


@pytest.mark.parametrize("like", ["cpu", "gpu"])
def test_a_device_that_is_not_here(tmp_path: Path, like: str) -> None:
    """Without OpenCL: the plans and sources are of the profile."""
    place = tmp_path / "net.clf"
    words = ["export", SRC, DST, "-o", str(place), "--device-like", like, "--name", "weights"]
    code = f"import sys; from clformats.cli import main; assert main({words!r}) == 0; "
    subprocess.run(
        [sys.executable, "-c", code + "sys.exit('pyopencl._cl' in sys.modules)"], check=True
    )
    program = read_program(place)
    assert program.name == "weights"
    assert [v.like for v in program.variants] == [like, ""]
    assert [b.name for b in program.buffers] == ["src", "dst"]


def test_refusals(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    place = str(tmp_path / "net")
    words = ["-o", place, "--device-like", "cpu"]
    assert main(["export", SRC, "f32:nchw:1x5x3x8", *words]) == 1
    assert main(["export", "f32:nchw:*x5x3x7", SRC, *words]) == 1
    assert "known at execution" in capsys.readouterr().err
    assert main(["export", SRC, DST, *words]) == 0
    assert main(["export", SRC, DST, *words]) == 1
    assert "--force replaces" in capsys.readouterr().err
    assert main(["export", SRC, DST, *words, "--force"]) == 0
    (tmp_path / "own").mkdir()
    (tmp_path / "own" / "file").touch()
    words = ["-o", str(tmp_path / "own"), "--device-like", "cpu", "--force"]
    assert main(["export", SRC, DST, *words]) == 1
