"""`clformats kernel` and `clformats header`: what they print and write, and what they refuse."""

from __future__ import annotations

from pathlib import Path

import pytest

import clformats as cf
from clformats.cli import main

Capture = pytest.CaptureFixture[str]
UNKNOWN = cf.RUNTIME_DIM


def _printed(words: str, capsys: Capture) -> str:
    assert main(words.split()) == 0
    return capsys.readouterr().out


def test_kernel_prints_index_source(capsys: Capture) -> None:
    desc = cf.MemoryDesc((2, 17, 5, 4), "f32", "b_fs_yx_fsv16")
    assert _printed("kernel b_fs_yx_fsv16 --shape 2,17,5,4", capsys) == cf.index_source(desc)
    assert _printed(f"kernel {desc} --prefix IN", capsys) == cf.index_source(desc, "IN")
    wanted = cf.index_source(desc, vector="x4", wide=True)
    assert _printed(f"kernel {desc} --vector x4 --wide", capsys) == wanted
    wanted = cf.index_source(cf.MemoryDesc((2, 17, 5, 4), "s8", "nChw16c"))
    assert _printed("kernel nChw16c --shape 2,17,5,4 --dtype s8", capsys) == wanted


def test_kernel_without_sizes(capsys: Capture) -> None:
    assert _printed("kernel nchw", capsys) == cf.index_source("nchw")
    wanted = cf.index_source("nchw", sizes="arguments")
    assert _printed("kernel nchw --dynamic", capsys) == wanted
    wanted = cf.index_source("bfyx", sizes="shape_info", padded="yx")
    assert _printed("kernel bfyx --shape-info --padded yx", capsys) == wanted


def test_kernel_of_a_quantised_tensor(capsys: Capture) -> None:
    name = "q4_0:transposed:1x32"
    assert _printed(f"kernel {name} --prefix W", capsys) == cf.index_source(name, "W")
    wanted = cf.index_source(name, sizes="arguments")
    assert _printed(f"kernel {name} --dynamic", capsys) == wanted
    assert main(f"kernel {name} --shape-info".split()) == 1
    assert "expected None or arguments" in capsys.readouterr().err


def test_kernel_with_some_sizes(capsys: Capture) -> None:
    """With --dynamic all are unknown; `*` alone leaves the others numbers."""
    unknown = cf.MemoryDesc((UNKNOWN,) * 4, "f32", "nChw16c")
    wanted = cf.index_source(unknown, sizes="arguments")
    assert _printed("kernel nChw16c --shape 2,17,5,4 --dynamic", capsys) == wanted
    assert _printed("kernel nChw16c --dtype f32 --dynamic", capsys) == wanted
    partly = cf.MemoryDesc((2, UNKNOWN, 5, UNKNOWN), "f32", "nChw16c")
    wanted = cf.index_source(partly, sizes="arguments")
    assert _printed("kernel nChw16c --shape 2,*,5,*", capsys) == wanted
    assert _printed("kernel nChw16c --shape 2x*x5x* --dynamic", capsys) == wanted


def test_kernel_of_an_element_type_alone(capsys: Capture) -> None:
    """It decides the vectors, and with 4 bits the order."""
    unknown = cf.MemoryDesc((UNKNOWN,) * 4, "f16", "nChw16c")
    wanted = cf.index_source(unknown, sizes="macros", vector="c8")
    assert _printed("kernel nChw16c --dtype f16 --vector c8", capsys) == wanted
    wanted = cf.index_source(cf.MemoryDesc((UNKNOWN,) * 4, "s4", "os_iyx_osv32"), sizes="macros")
    assert _printed("kernel os_iyx_osv32 --dtype s4", capsys) == wanted
    order = "o / 32, i, y, x, o % 16, o / 16 % 2\n"
    assert order in wanted
    assert order in _printed("kernel os_iyx_osv32 --dtype s4 --padded o", capsys)


def test_kernel_with_a_shape_that_wants_64_bits(capsys: Capture) -> None:
    shape = "--shape 70000,70000,3,1"
    assert "ulong SRC_SIZE_N" in _printed(f"kernel nchw {shape} --dynamic", capsys)
    assert "(ulong)shape_info" in _printed(f"kernel nchw {shape} --shape-info", capsys)


def test_sizes_come_from_one_place(capsys: Capture) -> None:
    with pytest.raises(SystemExit) as stop:
        main(["kernel", "nchw", "--dynamic", "--shape-info"])
    assert stop.value.code == 2
    assert "not allowed with" in capsys.readouterr().err


@pytest.mark.parametrize(
    ("words", "said"),
    [
        ("kernel nchx", "unknown format"),
        ("kernel nchw --dtype f99", "f99"),
        ("kernel nchw --prefix 1", "C identifier"),
        ("kernel nchw --padded q", "got 'q'"),
        ("kernel nchw --vector q4 --shape 1,2,3,4", "a width of 2, 4, 8 or 16, such as c16"),
        ("kernel f32:ab:2x3:strides=10x1 --dynamic", "strides of its own"),
        ("kernel f32:ab:2x3:pad=1+1x0+0 --dynamic --padded b", "has its padding"),
        ("kernel any", "no layout"),
        ("kernel nchw --shape 1,2,3", "3 dims"),
        ("header any", "no layout"),
        ("header nchx", "unknown format"),
        ("header -o /nowhere/formats.h", "cannot write"),
    ],
)
def test_refusals(words: str, said: str, capsys: Capture) -> None:
    assert main(words.split()) == 1
    out, err = capsys.readouterr()
    assert not out
    assert said in err
    assert err.startswith("clformats: ")
    assert err.count("\n") == 1


def test_header_of_some_formats(capsys: Capture) -> None:
    names = ["nchw", "nChw16c", "b_fs_yx_fsv16"]
    text = _printed(f"header {' '.join(names)}", capsys)
    assert text == cf.format_header(names)
    assert "#define cf_b_fs_yx_fsv16 cf_nChw16c\n" in text
    assert "cf_nhwc" not in text


def test_header_is_written_whole_or_not_at_all(tmp_path: Path, capsys: Capture) -> None:
    file = tmp_path / "formats.h"
    assert _printed(f"header nchw bfyx -o {file}", capsys) == f"wrote {file}\n"
    assert file.read_text() == cf.format_header(["nchw", "bfyx"])
    assert main(["header", "nhwc", "-o", str(file)]) == 1
    assert "give --force" in capsys.readouterr().err
    assert "cf_nhwc" not in file.read_text()
    _printed(f"header nhwc -o {file} --force", capsys)
    assert "cf_nhwc" in file.read_text()
    assert [f.name for f in tmp_path.iterdir()] == ["formats.h"]


def test_a_text_is_no_list_of_formats() -> None:
    with pytest.raises(cf.InvalidFormat, match="a list of formats"):
        cf.format_header("nchw")
