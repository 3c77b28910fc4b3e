"""The examples run, and say what they should."""

from __future__ import annotations

import importlib.util
import os
import shutil
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

import clformats as cf
from clformats.cli import main

EXAMPLES = Path(__file__).parent.parent.parent / "examples"


def _run(*words: str | Path, cwd: Path | None = None) -> str:
    environment = {**os.environ, "PYTHONPATH": str(EXAMPLES.parent)}
    done = subprocess.run(
        words, cwd=cwd, env=environment, capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, done.stdout + done.stderr
    return done.stdout


def test_every_example_has_a_test() -> None:
    tested = {
        *("convolution.cl", "convolution.py", "tune_formats.py", "use_header.c"),
        *("plan_network.cl", "plan_network.py", "tune_network.py"),
        *("export_network.py", "run_network.c"),
    }
    assert {file.name for file in EXAMPLES.iterdir() if file.is_file()} == tested


def test_one_convolution_in_three_pairs_of_formats() -> None:
    lines = _run(sys.executable, EXAMPLES / "convolution.py").splitlines()
    assert [line[:3] for line in lines] == ["1x1"] * 3 + ["3x3"] * 3
    assert sum("b_fs_yx_fsv16 and os_is_yx_isv16_osv16" in line for line in lines) == 2


def test_a_network_is_planned_and_run() -> None:
    text = _run(sys.executable, EXAMPLES / "plan_network.py")
    assert "the least there is" in text
    assert "largest difference" in text


def compiled(place: Path, language: str) -> Path:
    """`run_network.c` with the export in ``place``."""
    c = language == "c99"
    compiler = shutil.which("gcc" if c else "g++") or shutil.which("clang" if c else "clang++")
    if compiler is None or not Path("/usr/include/CL/cl.h").exists():
        pytest.skip("no C compiler or no OpenCL headers: apt-get install g++ opencl-c-headers")
    flags = [*([] if c else ["-x", "c++"]), f"-std={language}", "-Wall", "-Wextra", "-Werror"]
    program = place.parent / f"run_network_{language}"
    _run(compiler, *flags, "-pedantic", "-O1", f"-I{place}", EXAMPLES / "run_network.c",
         place / "clformats.c", "-l:libOpenCL.so.1", "-o", program)  # fmt: skip
    return program


def test_the_program_in_c_says_what_went_wrong(tmp_path: Path, engine: cf.Engine) -> None:
    place, pixels = tmp_path / "net", np.zeros((1, 3, 4, 5), np.uint8)
    photo, result = (cf.from_numpy(pixels, engine, format=f) for f in ("nhwc", "nchw"))
    recording = cf.Recording(engine, inputs={"photo": photo}, outputs={"result": result})
    cf.Reorder(photo.desc, result.desc, engine)(recording, photo, result)
    recording.export(place, name="network")
    program = compiled(place, "c99")
    (tmp_path / "photo").write_bytes(pixels.tobytes())
    words = [program, tmp_path / "nowhere", tmp_path / "photo", tmp_path / "out"]
    done = subprocess.run([*words, engine.device.platform.name.strip()], capture_output=True,
                          text=True, check=False)  # fmt: skip
    assert done.returncode == 1
    assert "manifest.json" in done.stderr


@pytest.mark.slow  # it measures kernels before it plans; tests/recording/test_network.py does not
@pytest.mark.parametrize("network", ["small", "squeezenet"])
def test_a_planned_network_runs_without_python(
    tmp_path: Path, engine: cf.Engine, network: str
) -> None:
    if network != "small" and importlib.util.find_spec("onnx") is None:
        pytest.skip("onnx is not installed: pip install 'clformats[onnx]'")
    place = tmp_path / "net"
    platform = engine.device.platform.name.strip()
    said = _run(sys.executable, EXAMPLES / "export_network.py", network, place, platform)
    assert "largest difference" in said
    for language in ("c99", "c++11"):
        said = _run(compiled(place, language), place, place / "photo.bin", "result.bin", platform,
                    cwd=tmp_path)  # fmt: skip
        assert "planned for this device" in said
        assert (tmp_path / "result.bin").read_bytes() == (place / "result.bin").read_bytes()


@pytest.mark.slow
def test_a_network_is_tuned_and_planned(tmp_path: Path) -> None:
    if importlib.util.find_spec("kernel_tuner") is None:
        pytest.skip("kernel_tuner is not installed: pip install 'clformats[tune]'")
    text = _run(sys.executable, EXAMPLES / "tune_network.py", cwd=tmp_path)
    assert text.count("pixels to a work-item") == 4
    assert "largest difference" in text


def test_formats_as_a_tunable(tmp_path: Path) -> None:
    if importlib.util.find_spec("kernel_tuner") is None:
        pytest.skip("kernel_tuner is not installed: pip install 'clformats[tune]'")
    said = _run(sys.executable, EXAMPLES / "tune_formats.py", "16", cwd=tmp_path)
    assert "fastest: " in said


def test_the_header_in_plain_opencl(tmp_path: Path, engine: cf.Engine) -> None:
    compiler = shutil.which("cc") or shutil.which("gcc") or shutil.which("clang")
    if compiler is None or not Path("/usr/include/CL/cl.h").exists():
        pytest.skip("no C compiler or no OpenCL headers: apt-get install gcc opencl-c-headers")
    assert main(["header", "nchw", "nChw16c", "-o", str(tmp_path / "formats.h")]) == 0
    # The loader without its development package, which has the name for -lOpenCL.
    flags = ["-std=c99", "-Wall", "-Wextra", "-Werror", "-pedantic", "-I."]
    _run(compiler, *flags, EXAMPLES / "use_header.c", "-l:libOpenCL.so.1", "-o", "use_header",
         cwd=tmp_path)  # fmt: skip
    said = _run(tmp_path / "use_header", "formats.h", cwd=tmp_path)
    assert said == "1330 elements in 2240 places, 0 wrong\n"
