"""`clformats.convert`, of which the command is a thin shell."""

from __future__ import annotations

import json

import pytest

import clformats as cf
from clformats import cli
from clformats.interop.notations import NOTATIONS, render
from clformats.interop.notations.conversion import convert_line

LINE = (
    "onednn_verbose,v1,primitive,exec,cpu,reorder,jit:uni,undef,"
    "src_f32::blocked:abcd::f0 dst_u8::blocked:acdb::f0,,,2x17x5x4,0.01"
)


@pytest.mark.parametrize("name", ["nChw16c", "b_fs_yx_fsv16", "NCHW", "bs_fs_yx_bsv16_fsv16"])
def test_convert_is_what_the_command_prints(name: str, capsys: pytest.CaptureFixture[str]) -> None:
    found = cf.convert(name)
    assert cli.main(["convert", name]) == 0
    assert capsys.readouterr().out == f"{found}\n"
    assert cli.main(["convert", name, "--json"]) == 0
    assert json.loads(capsys.readouterr().out) == found.data
    for notation in NOTATIONS:
        said = found.names[notation]
        if said is None:
            with pytest.raises(cf.Unsupported):
                cf.convert(name, notation)
            assert found.why[notation]
        else:
            assert cf.convert(name, notation) == said == render(found.format, notation)


def test_convert_takes_formats_and_meta_tags() -> None:
    assert cf.convert(cf.Format("nChw16c"), "cldnn") == "b_fs_yx_fsv16"
    assert cf.convert("aBx16b", "cldnn", ndims=4) == "b_fs_yx_fsv16"
    assert cf.convert("src_f32::blocked:acdb::f0", "cldnn") == "byxf"
    assert repr(cf.convert("nchw")) == "Conversion('nchw')"
    with pytest.raises(cf.InvalidFormat, match="unknown notation 'torch'"):
        cf.convert("nchw", "torch")
    with pytest.raises(cf.InvalidFormat):
        cf.convert("aBx16b")


def test_a_line_of_the_log(capsys: pytest.CaptureFixture[str]) -> None:
    source, target = convert_line(LINE)
    assert (source.argument, source.said) == ("src", "f32:abcd:2x17x5x4")
    assert target.names is not None
    assert target.names.names["cldnn"] == "byxf"
    assert [t.said for t in convert_line(LINE, "tvm")] == ["NCHW", "NHWC"]
    assert cli.main(["convert", LINE, "--json"]) == 0
    assert [t["argument"] for t in json.loads(capsys.readouterr().out)] == ["src", "dst"]
    with pytest.raises(cf.InvalidArgument, match="onednn_verbose"):
        convert_line("nchw")
    with pytest.raises(cf.InvalidFormat, match=r"a whole line of oneDNN's log.*convert_line"):
        cf.convert(LINE)
