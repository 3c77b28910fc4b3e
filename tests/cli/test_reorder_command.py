"""`clformats reorder`: files in, files out, and what it says when it cannot."""

from __future__ import annotations

import fcntl
import json
import os
import pty
import signal
import struct
import subprocess
import sys
import termios
import time
from pathlib import Path
from typing import Any

import ml_dtypes
import numpy as np
import pytest

import clformats as cf
from clformats.cli import main
from tests.support import same_bytes

ROOT = Path(__file__).resolve().parents[2]
DEVICE = os.environ.get("CLFORMATS_TEST_DEVICE", "pocl")
SHAPE = (2, 17, 5, 4)


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    np.save("in.npy", np.random.default_rng(0).standard_normal(SHAPE).astype(np.float32))
    return tmp_path


def reorder(*words: str) -> int:
    return main(["reorder", *words, "--device", DEVICE])


def words(out: str, source: str, to: str, *more: str) -> tuple[str, ...]:
    return (f"{source}.npy", "-o", f"{out}.npy", "--to", to, *more)


@pytest.mark.parametrize("piece", [(), ("--piece", "3K")])
def test_to_blocks_and_back(
    piece: tuple[str, ...], folder: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert not reorder(
        *words("b", "in", "b_fs_yx_fsv16", "--from", "bfyx", "--dtype", "f16"), *piece
    )
    desc = cf.MemoryDesc(SHAPE, "f16", "b_fs_yx_fsv16")
    values = np.load("in.npy")
    assert same_bytes(np.load("b.npy"), cf.pack(values, desc))
    printed = capsys.readouterr().out.split()[0]
    assert cf.MemoryDesc.parse(printed) == desc
    assert not reorder(*words("c", "b", "byxf", "--from", printed), *piece)
    back = np.load("c.npy")
    assert back.shape == (2, 5, 4, 17)
    assert (back.transpose(0, 3, 1, 2) == values.astype(np.float16)).all()
    assert not reorder(*words("d", "b", "bfyx", "--from", "nChw16c", "--shape", "2,17,5,4"), *piece)
    assert (np.load("d.npy") == back.transpose(0, 3, 1, 2)).all()
    assert sorted(p.name for p in folder.iterdir()) == ["b.npy", "c.npy", "d.npy", "in.npy"]


def test_axes_in_any_order(folder: Path) -> None:
    values = np.load("in.npy")
    np.save("hwc.npy", np.ascontiguousarray(values.transpose(0, 2, 3, 1)))
    np.save("fortran.npy", np.asfortranarray(values))
    np.save("bf16.npy", values.astype(ml_dtypes.bfloat16))
    for name, source in (("hwc", "byxf"), ("fortran", "bfyx"), ("bf16", "bf16:bfyx:2x17x5x4")):
        more = ("--from", source, "--dtype", "f32", "--force")
        assert not reorder(*words("out", name, "bfyx", *more))
        want = values if name != "bf16" else values.astype(ml_dtypes.bfloat16).astype(np.float32)
        assert (np.load("out.npy") == want).all()


def test_winograd_transforms(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """As cf.reorder does: a file that says Winograd holds transformed values."""
    weights = np.random.default_rng(1).standard_normal((16, 32, 3, 3)).astype(np.float32)
    np.save("w.npy", weights)
    src = cf.MemoryDesc(weights.shape, "f32")
    desc = cf.winograd(src, "winograd_2x3_s1_weights", "f16")
    to = ("--from", "oiyx", "--dtype", "f16")
    assert not reorder(*words("t", "w", "winograd_2x3_s1_weights", *to))
    assert same_bytes(np.load("t.npy"), cf.pack(cf.transform(weights, src, desc), desc))
    printed = capsys.readouterr().out.split()[0]
    assert cf.MemoryDesc.parse(printed) == desc
    assert not reorder(*words("b", "t", "oiyx", "--from", printed, "--dtype", "f32"))
    np.testing.assert_allclose(np.load("b.npy"), weights, atol=0.02)
    assert reorder(*words("c", "in", "winograd_2x3_s1_weights", "--from", "oiyx")) == 1
    assert "[TRANSFORM_DIMS]" in capsys.readouterr().err


def test_nothing_is_lost(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """Neither the input, nor what stands at the place; and a link stays one."""
    values = Path("in.npy").read_bytes()
    assert reorder(*words("in", "in", "byxf", "--from", "bfyx", "--force")) == 1
    assert "is the input itself" in capsys.readouterr().err
    Path("there.npy").write_bytes(b"mine")
    Path("there.npy.part").write_bytes(b"mine too")
    assert reorder(*words("there", "in", "byxf", "--from", "bfyx")) == 1
    assert "give --force" in capsys.readouterr().err
    assert Path("in.npy").read_bytes() == values
    assert Path("there.npy").read_bytes() == b"mine"
    Path("link.npy").symlink_to("there.npy")
    assert not reorder(*words("link", "in", "byxf", "--from", "bfyx", "--force"))
    assert Path("link.npy").is_symlink()
    assert np.load("there.npy").shape == np.load("link.npy").shape
    assert Path("there.npy.part").read_bytes() == b"mine too"


LIES = "{{'descr': '<f4', 'fortran_order': False, 'shape': ({}, 17, 5, 4), }}\n"
HEADERS = {
    "token": "{'descr': '<f4', 'shape': (2, 3",
    "deep": "-" * 9000 + "1",
    "negative": LIES.format(-2),
    "true": LIES.format(True),
    "huge": LIES.format("9" * 4000),
}
"""Headers of damaged files, at each of which something else breaks in numpy."""
BAD = {
    "none": ("none", ("--from", "bfyx", "--to", "byxf"), "cannot read none.npy"),
    "text": ("text", ("--from", "bfyx", "--to", "byxf"), "text.npy is no npy file"),
    "cut": ("cut", ("--from", "bfyx", "--to", "byxf"), "cut.npy is cut off"),
    "archive": ("archive", ("--from", "bfyx", "--to", "byxf"), "an archive of several arrays"),
    "token": ("token", ("--from", "bfyx", "--to", "byxf"), "token.npy is no npy file"),
    "deep": ("deep", ("--from", "bfyx", "--to", "byxf"), "is nested too deeply"),
    "negative": ("negative", ("--from", "bfyx", "--to", "byxf"), "its shape is (-2, 17, 5, 4)"),
    "true": ("true", ("--from", "bfyx", "--to", "byxf"), "its shape is (True, 17, 5, 4)"),
    "huge": ("huge", ("--from", "bfyx", "--to", "byxf"), "huge.npy is cut off"),
    "empty": ("empty", ("--from", "bfyx", "--to", "byxf"), "empty.npy is no npy file"),
    "objects": ("objects", ("--from", "a", "--to", "a"), "objects.npy is no npy file"),
    "void": ("void", ("--from", "bfyx", "--to", "byxf"), "--from bf16:bfyx:2x17x5x4"),
    "rank": ("in", ("--from", "bfy", "--to", "byxf"), "'bfy' has 3 dimensions"),
    "blocked": ("in", ("--from", "nChw16c", "--to", "bfyx"), "add --shape with 4 numbers"),
    "sizes": ("in", ("--from", "f32:bfyx:2x17x5x5", "--to", "bfyx"), "has 850 of 4"),
    "piece": ("in", ("--from", "bfyx", "--to", "byxf", "--piece", "64X"), "--piece '64X'"),
    "no piece": ("in", ("--from", "bfyx", "--to", "byxf", "--piece", "0"), "--piece '0'"),
    "fine": (
        "in",
        ("--from", "bfyx", "--to", "b_fs_yx_fsv16", "--piece", "100"),
        "[PIECE_SIZE]",
    ),
    "any": ("in", ("--from", "bfyx", "--to", "any"), "choose a concrete format"),
    "image": ("in", ("--from", "oiyx", "--to", "image_2d_weights_c4_fyx_b"), "[IMAGE]"),
    "quote": ("in", ("--from", "bfyx", "--to", "x';y"), "unknown format"),
    "type": ("in", ("--from", "bfyx", "--to", "byxf", "--dtype", "f31"), "unknown element type"),
}


@pytest.mark.parametrize("name", BAD)
def test_bad_input_leaves_the_files_alone(
    name: str, folder: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    whole = Path("in.npy").read_bytes()
    Path("text.npy").write_bytes(b"hello")
    Path("cut.npy").write_bytes(whole[:300])
    Path("empty.npy").write_bytes(b"")
    for file, text in HEADERS.items():
        head = struct.pack("<H", len(text)) + text.encode()
        Path(f"{file}.npy").write_bytes(b"\x93NUMPY\1\0" + head + bytes(9999))
    Path("archive.npy").write_bytes(b"PK\3\4" + bytes(99))
    np.save("objects.npy", np.array([{}], dtype=object))
    np.save("void.npy", np.load("in.npy").astype(ml_dtypes.bfloat16))
    np.save("out.npy", np.arange(3))
    before = {p.name: p.read_bytes() for p in folder.iterdir()}
    file, more, said = BAD[name]
    assert reorder(f"{file}.npy", "-o", "out.npy", "--force", *more) == 1
    errors = capsys.readouterr().err
    assert said in errors
    assert errors.count("\n") == 1
    assert {p.name: p.read_bytes() for p in folder.iterdir()} == before


def test_a_missing_folder(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert reorder(*words("no/where", "in", "byxf", "--from", "bfyx")) == 1
    assert "cannot write no/where.npy" in capsys.readouterr().err


def start(*arguments: str, **more: Any) -> subprocess.Popen[bytes]:
    command = [sys.executable, *arguments]
    return subprocess.Popen(command, env={**os.environ, "PYTHONPATH": str(ROOT)}, **more)


def test_killed_half_way(folder: Path) -> None:
    """What is killed has not written OUT.npy, and IN.npy is as it was."""
    np.save("big.npy", np.zeros((64, 64, 64, 64), np.float32))
    np.save("out.npy", np.arange(3))
    process = start("-m", "clformats", "reorder", "big.npy", "--from", "bfyx", "--to", "byxf",
                    "--piece", "64K", "--device", DEVICE, "-o", "out.npy",
                    "--force")  # fmt: skip
    deadline = time.monotonic() + 60
    while not any(folder.glob(".clformats-*/out.npy")) and time.monotonic() < deadline:
        assert process.poll() is None, "it should have begun, and not be done yet"
        time.sleep(0.01)
    process.send_signal(signal.SIGKILL)
    assert process.wait(60) == -signal.SIGKILL
    assert (np.load("out.npy") == np.arange(3)).all()
    assert not np.load("big.npy").any()
    done = reorder(*words("out", "in", "byxf", "--from", "bfyx", "--force"))
    assert done == 0, "what is left is no obstacle"


WITHOUT_TQDM = """
import sys
sys.modules["tqdm"] = None
from clformats.cli import main
sys.exit(main())
"""


@pytest.mark.parametrize("bar", [True, False])
def test_progress_is_shown(bar: bool, folder: Path) -> None:
    """A bar on a terminal; without tqdm one line that says how to get one."""
    if bar:
        pytest.importorskip("tqdm", reason="needs tqdm: pip install 'clformats[progress]'")
    try:
        ours, theirs = pty.openpty()
    except OSError as error:
        pytest.skip(f"needs a pseudo-terminal: mount -t devpts devpts /dev/pts ({error})")
    fcntl.ioctl(theirs, termios.TIOCSWINSZ, struct.pack("4H", 24, 100, 0, 0))
    begin = ("-m", "clformats") if bar else ("-c", WITHOUT_TQDM)
    more = ("--from", "bfyx", "--to", "byxf", "--piece", "500", "--device", DEVICE)
    process = start(
        *begin, "reorder", "in.npy", "-o", "out.npy", *more, stderr=theirs, stdout=subprocess.PIPE
    )
    out, _ = process.communicate(timeout=100)
    os.close(theirs)
    shown = os.read(ours, 100_000).decode()
    os.close(ours)
    assert process.returncode == 0, shown
    assert out.startswith(b"f32:byxf:2x17x5x4")
    assert ("100%" in shown) == bar
    assert ("pip install tqdm" in shown) != bar


@pytest.mark.parametrize(
    ("array", "options", "said"),
    [
        (np.zeros(48, np.float32), ("--from", "b_fs_yx_fsv16"), "add --shape with 4 numbers"),
        (np.zeros(48, np.float32), ("--from", "bfyx"), "add --shape with 4 numbers"),
        (np.zeros((2, 3, 4, 2), np.float32), ("--from", "any"), "does not say how the file lies"),
        (np.zeros((2, 3, 4, 2), ">f4"), ("--from", "bfyx"), "in the other byte order"),
        (np.zeros((5, 7, 3), np.uint8), ("--from", "bfyx", "--axes", "yx"), "expected 3 different"),
    ],
)
def test_messages_speak_of_files(
    array: Any, options: tuple[str, ...], said: str, tmp_path: Path,
    capsys: pytest.CaptureFixture[str],
) -> None:  # fmt: skip
    np.save(tmp_path / "in.npy", array)
    out = str(tmp_path / "out.npy")
    assert main(["reorder", str(tmp_path / "in.npy"), *options, "--to", "byxf", "-o", out])
    message = capsys.readouterr().err
    assert said in message
    assert "HostMemory" not in message


@pytest.mark.device
def test_a_photograph_by_its_axes(tmp_path: Path) -> None:
    photo = np.arange(5 * 7 * 3, dtype=np.uint8).reshape(5, 7, 3)
    np.save(tmp_path / "in.npy", photo)
    line = ["reorder", str(tmp_path / "in.npy"), "--from", "bfyx", "--axes", "hwc", "--to", "bfyx"]
    assert main([*line, "-o", str(tmp_path / "out.npy")]) == 0
    assert (np.load(tmp_path / "out.npy") == photo.transpose(2, 0, 1)[None]).all()


@pytest.mark.device
def test_json_tells_what_was_written(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    np.save(tmp_path / "in.npy", np.zeros((2, 3, 5, 7), np.uint8))
    out = tmp_path / "out.npy"
    words = ["reorder", str(tmp_path / "in.npy"), "--from", "bfyx", "--to", "nChw16c", "--json"]
    assert main([*words, "-o", str(out)]) == 0
    desc = cf.MemoryDesc((2, 3, 5, 7), "u8", "nChw16c")
    found = json.loads(capsys.readouterr().out)
    assert found == {"output": str(out), "desc": str(desc), "nbytes": desc.nbytes}
