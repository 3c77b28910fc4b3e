"""The kernels as PTX for a machine with CUDA and no OpenCL: all but the GPU itself."""

from __future__ import annotations

import json
import re
import subprocess
import sys
from collections.abc import Callable
from dataclasses import asdict, replace
from pathlib import Path
from types import ModuleType, SimpleNamespace
from typing import Any

import numpy as np
import pytest

import clformats as cf
from bench import ptx, rotation
from bench.__main__ import main
from bench.arena import Data
from bench.cases import CASES, Case
from bench.report import COMMAND, OURS, Report
from clformats.kernels import render
from clformats.timing import QUICK

ROOT = Path(__file__).parents[2]
NAMES = ("tiny_bfyx_byxf_f32", "tiny_bfyx_fsv16_f32")
TINY = [case for case in CASES if case.name in NAMES]
needs_clang = pytest.mark.skipif(bool(ptx.missing()), reason=ptx.missing())

PTX = """\
.version 7.0
.visible .entry reorder(
	.param .u64 reorder_param_0,
	.param .u64 reorder_param_1,
	.param .u32 reorder_param_2
)
{
	ret;
}
"""


def entry_of(case: Case) -> ptx.Entry:
    plan = cf.make_plan(*case.descriptors(), ptx.GPU)
    made = render(plan)
    assert made is not None
    numbers = tuple(int(n) for n in made.arguments)
    size = made.groups, made.local_size
    return ptx.Entry(case, f"{case.name}.ptx", plan.family, str(plan), numbers, made.wide, *size)


def fake_cupy(right: Callable[[Path], bool] = lambda _: True) -> tuple[ModuleType, list[Any]]:
    """A module with what is used of CuPy, on the host, and the launches that it was asked for.

    A kernel writes what the reorder of its case would, where it is a ``right`` one.
    """
    launches: list[Any] = []
    truths = {case.name: case for case in TINY}

    class Event:
        def record(self) -> None:
            pass

        def synchronize(self) -> None:
            pass

    class RawModule:
        def __init__(self, path: str) -> None:
            self.path = Path(path)
            assert self.path.exists()

        def get_function(self, name: str) -> Callable[..., None]:
            assert name == "reorder"

            def kernel(grid: Any, block: Any, given: Any) -> None:
                launches.append((self.path.stem, grid, block, given))
                data = Data(truths[self.path.stem], 1 << 30)
                given[1][: data.truth.size] = data.truth if right(self.path) else 0x5A

            return kernel

    cupy = ModuleType("cupy")
    runtime = SimpleNamespace(
        getDeviceProperties=lambda _: {
            "name": b"A GPU", "multiProcessorCount": 132, "l2CacheSize": 50 << 20,
            "totalGlobalMem": 1 << 30,
        },
        driverGetVersion=lambda: 13000,
        memcpyAsync=lambda *_: None,
    )  # fmt: skip
    cuda = SimpleNamespace(
        runtime=runtime, Event=Event, Device=lambda: SimpleNamespace(id=0),
        get_elapsed_time=lambda *_: 1.5,
        get_current_stream=lambda: SimpleNamespace(ptr=0),
    )  # fmt: skip

    class Array(np.ndarray):
        @property
        def data(self) -> Any:
            return SimpleNamespace(ptr=self.ctypes.data)

    vars(cupy).update(
        cuda=cuda, RawModule=RawModule, __version__="0",
        asarray=lambda a: np.array(a).view(Array), asnumpy=np.asarray,
    )  # fmt: skip
    return cupy, launches


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """A folder of two kernels, without a compiler."""
    entries = [entry_of(case) for case in TINY]
    for one in entries:
        (tmp_path / one.file).write_text(PTX)
    text = json.dumps([asdict(one) for one in entries])
    (tmp_path / ptx.INDEX).write_text(text)
    return tmp_path


@pytest.fixture
def quick(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(rotation, "TURN_BYTES", 100_000)
    monkeypatch.setattr("bench.gpu.SETTINGS", replace(QUICK, rounds=3))


def test_an_index_reads_back(folder: Path) -> None:
    assert ptx.read(folder) == [entry_of(case) for case in TINY]


def test_numbers_are_as_wide_as_offsets() -> None:
    """CuPy packs a numpy number by its type, and Python's own as 8 bytes."""
    one = entry_of(TINY[0])
    packed = one.packed("src", "dst")
    assert packed[:2] == ("src", "dst")
    assert packed[2:] == one.arguments
    assert {type(n) for n in packed[2:]} == {np.int32}
    assert {type(n) for n in replace(one, wide=True).packed(0, 0)[2:]} == {np.int64}


def test_the_size_of_groups_is_said_once() -> None:
    once = ptx.with_group(PTX, 128)
    assert "\n)\n.reqntid 128, 1, 1\n{" in once
    assert ptx.with_group(once, 64) == once


@pytest.mark.usefixtures("quick")
def test_each_kernel_is_launched_checked_and_timed(
    folder: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    cupy, launches = fake_cupy()
    monkeypatch.setitem(sys.modules, "cupy", cupy)
    out = folder / "out.json"
    assert main(["gpu", "--run-ptx", str(folder), "--json", str(out)]) == 0
    report = Report.read(out)
    assert [r.name for r in report.records] == [case.name for case in TINY]
    assert report.machine["device"] == "A GPU"
    for record in report.records:
        assert {OURS, COMMAND} <= set(record.times)
        assert record.share == pytest.approx(record.moved / (2 * record.copied), rel=0.01)
    printed = capsys.readouterr().out
    assert "A GPU" in printed
    entries = {one.case.name: one for one in ptx.read(folder)}
    for name, grid, block, given in launches:
        assert (grid, block) == ((entries[name].groups,), (entries[name].local_size,))
        assert given[2:] == entries[name].arguments
        assert len(given[0]) >= entries[name].case.descriptors()[0].nbytes
    # Several pairs of buffers are used in turn.
    assert len({id(given[0]) for _, _, _, given in launches}) > 2


@pytest.mark.usefixtures("quick")
def test_a_wrong_kernel_is_no_success(
    folder: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    cupy, _ = fake_cupy(lambda path: path.stem != NAMES[0])
    monkeypatch.setitem(sys.modules, "cupy", cupy)
    assert main(["gpu", "--run-ptx", str(folder)]) == 1
    assert "bytes differ from the truth" in capsys.readouterr().out
    # Only the cases that are asked for.
    assert main(["gpu", "--run-ptx", str(folder), "--cases", NAMES[1]]) == 0


def test_what_is_missing_is_said(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["gpu", "--run-ptx", str(tmp_path)]) == 2
    assert "python -m bench gpu --ptx DIR" in capsys.readouterr().err
    (tmp_path / ptx.INDEX).write_text("[]")
    monkeypatch.setitem(sys.modules, "cupy", None)
    assert main(["gpu", "--run-ptx", str(tmp_path)]) == 2
    assert "cupy" in capsys.readouterr().err
    monkeypatch.setattr(ptx, "CLANG", "")
    assert main(["gpu", "--ptx", str(tmp_path)]) == 2
    assert "apt-get install clang" in capsys.readouterr().err


def test_no_opencl_is_needed(folder: Path) -> None:
    """A machine without pyopencl gets as far as to CuPy, or to its first launch."""
    code = (
        "import sys; sys.modules['pyopencl'] = sys.modules['cupy'] = None\n"
        "from bench.__main__ import main\n"
        f"sys.exit(main(['gpu', '--run-ptx', {str(folder)!r}]))"
    )
    done = subprocess.run(
        [sys.executable, "-c", code], cwd=ROOT, capture_output=True, text=True, check=False
    )
    assert done.returncode == 2
    assert done.stderr.startswith("bench gpu: import of cupy halted")


@needs_clang
def test_the_kernels_are_made_as_ptx(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """Its parameters are those that a launch packs."""
    assert main(["gpu", "--ptx", str(tmp_path), "--cases", f"^({'|'.join(NAMES)})$"]) == 0
    assert "2 kernels in" in capsys.readouterr().out
    for one in ptx.read(tmp_path):
        text = (tmp_path / one.file).read_text()
        kinds = re.findall(r"\.param \.(\w+)(?: .*)? reorder_param_\d+", text)
        assert kinds[:2] == ["u64", "u64"]
        assert kinds[2:] == ["u32"] * len(one.arguments)
        assert f".reqntid {one.local_size}, 1, 1" in text
