"""`clformats demo` on a small picture of its own, and what it says when something is wrong."""

from __future__ import annotations

import re
import sys
import time
from pathlib import Path

import numpy as np
import pytest

import clformats as cf
from clformats import cli
from clformats.cli import demo, photograph
from clformats.runtime import Engine, Stream

pytest.importorskip("PIL", reason="Pillow is not installed; pip install 'clformats[demo]'")


@pytest.fixture
def image(tmp_path: Path) -> Path:
    """A picture without two equal sides, in a format that needs no library to write."""
    pixels = np.random.default_rng(3).integers(0, 256, (37, 23, 3), np.uint8)
    file = tmp_path / "small.ppm"
    file.write_bytes(b"P6 23 37 255\n" + pixels.tobytes())
    return file


@pytest.fixture(autouse=True)
def small(monkeypatch: pytest.MonkeyPatch) -> None:
    """Three shifted copies are enough to check what the demo does."""
    monkeypatch.setattr(demo, "LEAST_BYTES", 3 * 37 * 23 * 3)


def test_the_demo_runs(image: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    drawing = tmp_path / "layout.svg"
    status = cli.main(["demo", "--image", str(image), "--svg", str(drawing), "--verbose"])
    text, errors = capsys.readouterr()
    assert (status, errors) == (0, "")
    assert "small.ppm, 23 x 37, 3 shifted copies" in text
    assert text.count(demo.CHECKED) == 6
    assert text.count("GB/s, plain copy") == 4
    assert "f16:b_fs_yx_fsv16:3x3x37x23" in text
    assert "os_is_yx_isv16_osv16" in text
    assert "gs_oiyx_gsv16" in text
    assert len(text.splitlines()) <= 90
    assert drawing.read_text(encoding="utf-8").startswith("<svg")


def test_the_demo_is_short(image: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """Steps in a line each, the plans by --verbose alone, and code that runs when it is pasted."""
    assert cli.main(["demo", "--image", str(image)]) == 0
    text = capsys.readouterr().out
    assert "family" not in text
    assert text.count("GB/s, plain copy") == 4
    assert len(re.findall(r"\d x numpy", text)) == 4
    assert text.count(demo.CHECKED) == 6
    assert len(text.splitlines()) <= 45
    lines = [line.strip() for line in demo.PASTE.splitlines()[2:]]
    pixels, _ = photograph.photograph(str(image), None)
    exec("\n".join(lines), {"photo": pixels})  # noqa: S102  # our own
    assert capsys.readouterr().out == "(1, 1, 37, 23, 16)\n"


def test_the_picture_shows_the_pixels(image: Path, capsys: pytest.CaptureFixture[str]) -> None:
    cli.main(["demo", "--image", str(image)])
    first = next(line for line in capsys.readouterr().out.splitlines() if "x=0 │" in line)
    pixels, _ = photograph.photograph(str(image), None)
    assert [cell.strip() for cell in first.split("│")[1:4]] == [str(v) for v in pixels[0, 0]]


def test_the_size_can_be_chosen(image: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert cli.main(["demo", "--image", str(image), "--size", "19x11"]) == 0
    assert "19 x 11" in capsys.readouterr().out


@pytest.mark.parametrize("size", ["30000x30000", "99999x99999", "0x5", "-3x5", "4097x1", "5"])
def test_sizes_out_of_range_are_refused(
    image: Path, size: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert cli.main(["demo", "--image", str(image), "--size", size]) == 1
    error = capsys.readouterr().err
    assert "expected width and height of 1 to 4096 pixels" in error
    assert error.count("\n") == 1


def test_a_tiny_picture_makes_its_batch_at_once(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(demo, "LEAST_BYTES", 32 << 20)
    start = time.perf_counter()
    batch = demo.batch_of(np.full((1, 1, 3), 7, np.uint8))
    assert time.perf_counter() - start < 10
    assert batch.shape == (-(-(32 << 20) // 3), 3, 1, 1)
    assert (batch == 7).all()
    few = demo.batch_of(np.arange(96, dtype=np.uint8).reshape(4, 8, 3))
    assert (few[demo.MOST_SHIFTS] == few[0]).all()
    assert not (few[1] == few[0]).all()


def test_a_wrong_result_ends_the_demo(
    image: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    def spoiled(array: object, desc: cf.MemoryDesc) -> np.ndarray[tuple[int], np.dtype[np.uint8]]:
        result = cf.pack(array, desc)
        result[3] += 1
        return result

    monkeypatch.setattr(demo, "pack", spoiled)
    assert cli.main(["demo", "--image", str(image)]) == 1
    assert "MISMATCH" in capsys.readouterr().err


def test_a_byte_of_padding_that_is_not_zero_is_a_mismatch() -> None:
    engine = Engine()
    bench = demo.Bench(engine, Stream(engine))
    array = np.arange(30, dtype=np.float32).reshape(2, 3, 1, 5)
    source, _ = bench.upload(array, cf.MemoryDesc(array.shape, "f32", "bfyx"))
    desc = cf.MemoryDesc(array.shape, "f32", "b_fs_yx_fsv4")
    truth = cf.pack(array, desc)
    bench.step(source, desc, truth)
    truth[3] = 7
    with pytest.raises(cf.Error, match=r"1 of 40 elements differ, the first at offset 3 \(padding"):
        bench.step(source, desc, truth)


@pytest.mark.parametrize(
    ("arguments", "told"),
    [
        (["--image", "/nowhere/photo.jpg"], "No such file"),
        (["--image", __file__], "no image that Pillow can read"),
        (["--device", "no such device"], "no OpenCL device matches"),
    ],
)
def test_what_is_missing_is_said_in_one_line(
    arguments: list[str], told: str, image: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    status = cli.main(["demo", "--image", str(image), *arguments])
    errors = capsys.readouterr().err
    assert status == 1
    assert told in errors
    assert errors.count("\n") == 1


def test_without_the_extra_it_says_what_to_install(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(photograph, "find_spec", lambda _: None)
    assert cli.main(["demo"]) == 1
    assert "pip install pillow matplotlib" in capsys.readouterr().err


def test_without_pillow_it_says_what_to_install(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setitem(sys.modules, "PIL.Image", None)
    assert cli.main(["demo"]) == 1
    assert "Pillow" in capsys.readouterr().err
