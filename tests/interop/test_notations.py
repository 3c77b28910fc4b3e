"""Names in other notations: what is printed means the same and can be read back."""

from __future__ import annotations

import re
from contextlib import suppress
from functools import cache
from itertools import pairwise
from typing import Any

import numpy as np
import pytest

import clformats as cf
from clformats import cli
from clformats.formats.registry import listed
from clformats.interop import notations
from clformats.interop.notations import NOTATIONS, guess, parse, parse_desc, render, render_desc
from tests.support import dtype_for, hurting_dims

UNIQUE = list(dict.fromkeys(cf.formats()))
RT = cf.tensors.desc.RUNTIME_DIM


@cache
def said(notation: str) -> list[tuple[cf.Format, str]]:
    """Each listed name that the notation can say, with what it says."""
    result = []
    for fmt in cf.formats():
        with suppress(cf.Unsupported):
            result.append((fmt, render(fmt, notation)))
    return result


# --- the laws -------------------------------------------------------------------------------------


@pytest.mark.parametrize("notation", NOTATIONS)
def test_what_is_printed_can_be_read_back(notation: str) -> None:
    pairs = said(notation)
    assert len(pairs) > (20 if notation == "engines" else 1400)
    for fmt, text in pairs:
        assert parse(text, notation) == fmt, text
        assert parse(text) == fmt, text
        assert render(parse(text), notation) == text or notation in {"cldnn", "einops", "tvm"}


@pytest.mark.parametrize("notation", NOTATIONS)
def test_one_text_means_one_layout(notation: str) -> None:
    meaning: dict[str, cf.Format] = {}
    for fmt, text in said(notation):
        assert meaning.setdefault(text, fmt) == fmt


@pytest.mark.parametrize("notation", ["onednn", "tvm", "einops", "xla"])
def test_every_tag_has_a_name(notation: str) -> None:
    tags = {fmt for fmt in UNIQUE if fmt.kind == "blocked" and fmt.onednn}
    assert len(tags) > 900
    assert tags <= {fmt for fmt, _ in said(notation)}


@pytest.mark.parametrize("notation", ["tvm", "einops"])
def test_letters_keep_data_and_weights_apart(notation: str) -> None:
    for name in (
        "b_fs_yx_fsv16",
        "os_is_yx_isv16_osv16",
        "g_os_iyx_osv16",
        "os_is_zyx_isv16_osv16",
    ):
        assert parse(render(name, notation)).cldnn == name


# --- onednn, cldnn --------------------------------------------------------------------------------


def test_own_names_are_read_strictly() -> None:
    assert parse("nChw16c", "onednn").name == "nChw16c"
    assert parse("OhwI32o", "onednn") == cf.Format("Ohwi32o")
    assert parse("bfyx_f16", "cldnn") == cf.Format("b_fs_yx_fsv16")
    assert render("byx8_f4", "cldnn") == "byx8_f4"
    for text, notation in [("b_fs_yx_fsv16", "onednn"), ("nChw16c", "cldnn"), ("NCHW", "onednn")]:
        with pytest.raises(cf.InvalidFormat):
            parse(text, notation)
    with pytest.raises(cf.InvalidFormat, match="meta tag"):
        parse("aBx16b")


def test_a_name_that_only_the_grammar_knows_is_its_own_cldnn_name() -> None:
    assert render("os_iyx_osv24__ai8", "cldnn") == "os_iyx_osv24__ai8"


@pytest.mark.parametrize(
    ("name", "notation", "reason"),
    [
        ("abc", "cldnn", "no data of a b c"),
        ("goiw", "cldnn", "no weights of g o i w"),
        ("ldigo", "cldnn", "recurrent"),
        ("byxf__af32", "onednn", "rounds f up"),
        ("os_iyx_osv16_rotate_180", "xla", "far end"),
        ("os_i_yxs_osv4_yxsv4", "einops", "two dimensions as one"),
        ("is_o32_yx_isv32_swizzled_by_4", "xla", "before the open part"),
        ("os_is_osv32_isv32_swizzled_by_4", "tvm", "like cards"),
        ("any", "tvm", "no layout yet"),
    ],
)
def test_refusals_tell_the_reason(name: str, notation: str, reason: str) -> None:
    with pytest.raises(cf.Unsupported, match=reason) as refused:
        render(name, notation)
    assert refused.value.code == "NO_NOTATION"


def test_abstract_formats() -> None:
    assert render("any", "onednn") == render("any", "cldnn") == "any"
    assert render("undef", "onednn") == "undef"
    with pytest.raises(cf.Unsupported):
        render("undef", "cldnn")


# --- tvm ------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("text", "name"),
    [
        ("NCHW", "nchw"),
        ("NHWC", "nhwc"),
        ("NCHW16c", "nChw16c"),
        ("HWIO", "hwio"),
        ("OIHW16i16o", "OIhw16i16o"),
        ("OIHW4i16o4i", "OIhw4i16o4i"),
        ("OIHW4o4i", "OIhw4o4i"),
        ("OIHW[4o4i]", "OIhw4o4i"),
        ("OIHW[4o][4i]", "OIhw4o4i"),
        ("GOIHW8g", "Goihw8g"),
        ("TNC", "tnc"),
        ("ABCDEF16b", "aBcdef16b"),
        ("NC", "nc"),
    ],
)
def test_tvm_names(text: str, name: str) -> None:
    assert guess(text) == "tvm"
    found = parse(text)
    assert found.name == name
    assert render(found, "tvm") == text.replace("[", "").replace("]", "")


def test_tvm_letters() -> None:
    assert render("b_fs_zyx_fsv16", "tvm") == "NCDHW16c"
    assert render("aBcd16b", "tvm") == "NCHW16c"
    assert render("goiyx", "tvm") == "GOIHW"
    assert render("bfwzyx", "tvm") == "ABCDEF"
    assert render("brfyx", "tvm") == "ABCDE"


def test_both_readings_of_a_name_agree() -> None:
    both = 0
    for name in listed("onednn"):
        if guess(name) == "tvm":
            assert parse(name, "tvm") == parse(name, "onednn")
            both += 1
    assert both > 20


@pytest.mark.parametrize(
    "text", ["NCHWc", "NCHW16x", "NNCHW", "NCHW0c", "16c", "OIHW[4o4i", "nCHW"]
)
def test_tvm_refuses(text: str) -> None:
    with pytest.raises(cf.InvalidFormat):
        parse(text, "tvm")


def test_tvm_blocks_amid_dimensions() -> None:
    assert parse("NC16cHW") == cf.Format("n c/16 c%16 h w")


# --- einops ---------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("name", "text"),
    [
        ("bfyx", "b f y x -> b f y x"),
        ("nhwc", "n c h w -> n h w c"),
        ("b_fs_yx_fsv16", "b (f 16) y x -> b f y x 16"),
        ("OIhw16i16o", "(o o1) (i i1) h w -> o i h w i1 o1, i1=16, o1=16"),
        ("OIhw4i16o4i", "(o o1) (i i1 i2) h w -> o i h w i1 o1 i2, i1=4, i2=4, o1=16"),
        ("AB8b4a2b", "(a 4) (b 8 2) -> a b 8 4 2"),
        ("is_o32_yx_isv32_swizzled_by_4", "(o 8 4) (i 32) y x -> i o 4 8 y x 32"),
    ],
)
def test_einops_text(name: str, text: str) -> None:
    assert render(name, "einops") == text
    assert parse(text) == cf.Format(name)


def test_einops_reads_what_people_write() -> None:
    assert parse("b (f 16) y x -> b f (y x) 16") == cf.Format("b_fs_yx_fsv16")
    assert parse("row ( col c )->row col c,c = 8") == cf.Format("aB8b")
    assert parse("b (f fi) y x -> b f y x fi, fi=16").name == "b_fs_yx_fsv16"


@pytest.mark.parametrize(
    "text",
    [
        "b f y x",
        "b (f 16) y x -> b f y x",
        "b (f 16 y x -> b f y x 16",
        "(a 8) (b 8) -> a b 8 8",
        "(a c) b -> a b c",
        "(16 a) b -> a b 16",
        "(a 1) b -> a b 1",
        "a a -> a a",
        "() a -> a",
        " -> ",
    ],
)
def test_einops_refuses(text: str) -> None:
    with pytest.raises(cf.InvalidFormat):
        parse(text, "einops")


def test_einops_says_digits_without_a_name() -> None:
    assert parse("(a 4 2) b -> a 2 b 4") == cf.Format("a/8 a%2 b a/2%4")


def test_einops_means_pad_reshape_transpose() -> None:
    """What `einops.rearrange` would do, by hand: split each dimension, then transpose."""
    for fmt, text in dict(said("einops")).items():
        dims = hurting_dims(fmt)
        desc = cf.MemoryDesc(dims, dtype_for(fmt), fmt)
        if desc.nbytes > 1_000_000:
            continue
        marks = np.arange(1, 1 + np.prod(dims)).reshape(dims)
        whole = [(0, p - n) for p, n in zip(desc.padded_dims, dims, strict=True)]
        flat = _rearrange(np.pad(marks, whole), text)
        assert (flat[desc.offsets()] == marks).all(), text


def _rearrange(array: Any, text: str) -> Any:
    sides, *sizes = text.split(", ")
    known = {k: int(n) for k, n in (size.split("=") for size in sizes)}
    left, right = sides.split(" -> ")
    groups = [g.strip("()").split() for g in re.findall(r"\([^)]*\)|\S+", left)]
    axes = [
        (name, known.get(name, int(name) if name.isdigit() else 0)) for g in groups for name in g
    ]
    shape = []
    for extent, group in zip(array.shape, groups, strict=True):
        inner = [dict(axes)[name] for name in group[1:]]
        shape += [extent // int(np.prod(inner, dtype=int)), *inner]
    order = [[name for name, _ in axes].index(name) for name in right.split()]
    return array.reshape(shape).transpose(order).ravel()


# --- xla ------------------------------------------------------------------------------------------


def xla_offsets(dims: tuple[int, ...], text: str) -> Any:
    """The offset of every element and the size, by the formula of XLA's page "Tiled layout".

    ``linear_index_with_tile(e, d, t) = linear_index((e / t, e mod t), (ceil(d / t), t))``, after
    the joins; one tile after the other. It knows nothing of digits.
    """
    order, _, rest = text.strip("{}").partition(":T")
    major_to_minor = [int(n) for n in reversed(order.split(","))]
    index = [np.indices(dims)[d].ravel() for d in major_to_minor]
    sizes = [dims[d] for d in major_to_minor]
    for tile in re.findall(r"\(([^)]*)\)", rest):
        entries = tile.split(",")
        start = len(sizes) - len(entries)
        for k in reversed(range(len(entries))):
            if entries[k] == "*":
                at = start + k
                index[at : at + 2] = [index[at] * sizes[at + 1] + index[at + 1]]
                sizes[at : at + 2] = [sizes[at] * sizes[at + 1]]
        numbers = [int(n) for n in entries if n != "*"]
        e, d = index[start:], sizes[start:]
        index[start:] = [x // t for x, t in zip(e, numbers, strict=True)] + [
            x % t for x, t in zip(e, numbers, strict=True)
        ]
        sizes[start:] = [-(-n // t) for n, t in zip(d, numbers, strict=True)] + numbers
    offset = np.zeros_like(index[0])
    for x, n in zip(index, sizes, strict=True):
        offset = offset * n + x
    return offset.reshape(dims), int(np.prod(sizes, dtype=object))


def test_xla_puts_every_element_where_we_do() -> None:
    checked = 0
    for fmt, text in dict(said("xla")).items():
        for shift in (0, 1):
            desc = cf.MemoryDesc(hurting_dims(fmt, shift), dtype_for(fmt, "s8"), fmt)
            offsets, size = xla_offsets(desc.dims, text)
            assert (offsets == desc.offsets()).all(), (fmt, text)
            assert size == desc.nbytes * 8 // desc.dtype.bits
        checked += 1
    assert checked > 900


def test_the_example_of_the_documentation() -> None:
    """F32[3,5]{1,0:T(2,2)}: element (2, 3) is in tile (1, 1) of 2 x 3, there at (0, 1)."""
    offsets, size = xla_offsets((3, 5), "{1,0:T(2,2)}")
    assert (offsets[2, 3], size) == (17, 24)
    assert parse_desc("f32[3,5]{1,0:T(2,2)}").offset(2, 3) == 17


@pytest.mark.parametrize(
    ("name", "text"),
    [
        ("bfyx", "{3,2,1,0}"),
        ("nhwc", "{1,3,2,0}"),
        ("nChw16c", "{3,2,1,0:T(16,1,1)}"),
        ("AB8a128b", "{1,0:T(8,128)}"),
        ("AB4a128b2a", "{1,0:T(8,128)(2,1)}"),
        ("OIhw16i16o", "{3,2,1,0:T(16,1,1)(16,1,1,1,1,1,1)}"),
        ("os_i_yxs_osv4_yxsv4", "{3,2,1,0:T(4,1,*,4)}"),
        ("os_is_osv32_isv32_swizzled_by_4", "{1,0:T(4,32)(8,1,1,4)}"),
    ],
)
def test_xla_text(name: str, text: str) -> None:
    assert render(name, "xla") == text
    assert parse(text) == cf.Format(name)
    assert parse("f32" + str([7] * len(cf.Format(name).dims)).replace(" ", "") + text).layout


def test_xla_says_the_bytes_of_an_innermost_rounded_dimension() -> None:
    dims = (2, 40, 3, 5)
    tag = parse("{1,3,2,0:T(32)}")
    assert tag.name == "acdB32b"
    rounded = cf.MemoryDesc(dims, "f32", "byxf__af32")
    assert (cf.MemoryDesc(dims, "f32", tag).offsets() == rounded.offsets()).all()


def test_xla_reads_spaces_memory_spaces_and_redundant_tiles() -> None:
    assert parse("{3, 2, 1, 0}") == cf.Format("abcd")
    assert parse("{1,0:T(8,128)S(1)}") == cf.Format("AB8a128b")
    assert parse("{1,0:S(1)}") == cf.Format("ab")
    assert parse("{1,0:T(1,1)}") == cf.Format("ab")
    assert parse("{2,1,0:T(8,4)(2)}") == cf.Format("aBC8b2c2c")
    assert parse("{1,0:T(4)(2,1,1)}") == cf.Format("AB4b2a")


def test_xla_descriptors() -> None:
    desc = parse_desc("bf16[8,16]{1,0:T(8,128)(2,1)}")
    assert desc == cf.MemoryDesc((8, 16), "bf16", "AB4a128b2a")
    assert render_desc(desc, "xla") == "bf16[8,16]{1,0:T(8,128)(2,1)}"
    assert render_desc(cf.MemoryDesc((2, 3), "f8_e4m3"), "xla") == "f8e4m3fn[2,3]{1,0}"
    assert str(parse_desc("f8e4m3fn[2,3]{1,0}").dtype) == "f8_e4m3"
    padded = cf.MemoryDesc((2, 3), "f32", "ab", padding=((1, 0), (0, 0)))
    for odd in (padded, cf.MemoryDesc((2, 3), "f32", strides=(5, 1)), cf.MemoryDesc((RT,), "f32")):
        with pytest.raises(cf.Unsupported, match="NO_NOTATION"):
            render_desc(odd, "xla")
    with pytest.raises(cf.InvalidDescriptor, match="no sizes"):
        parse_desc("{1,0}")


@pytest.mark.parametrize(
    "text",
    ["{}", "{0,2}", "{0,0}", "f32[2]{1,0}", "{0:T(2,2)}", "{0:T(0)}", "{1,0:T(2,*)}", "{0:L(4)}"],
)
def test_xla_refuses(text: str) -> None:
    with pytest.raises(cf.InvalidFormat):
        parse(text)


@pytest.mark.parametrize("text", ["{0:T(8)(3)}", "{0:T(8)(16)}", "{1,0:T(4)(*,2,2)}"])
def test_xla_tiles_that_no_format_has(text: str) -> None:
    with pytest.raises(cf.Unsupported) as refused:
        parse(text)
    assert refused.value.code == "NO_FORMAT"


# --- oneDNN's log ---------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("text", "name"),
    [
        ("f32::blocked:aBcd16b:f0", "aBcd16b"),
        ("f32::blocked:aBcd16b::f0", "aBcd16b"),
        ("src_f32::blocked:acdb::f0", "acdb"),
        ("src:f32:a:blocked:abcd::f0", "abcd"),
        ("dst:f32:p:blocked:aBcd16b:4096x64x8x1:f0", "aBcd16b"),
        ("wei:s8:ap:blocked:AB16b64a4b::f8:zpm2", "AB16b64a4b"),
        ("attr_post_op_dw_wei:f8_e4m3:a:blocked:Abcde16a::f0", "Abcde16a"),
        ("src_f8_e5m2::blocked:ab::f0", "ab"),
        ("blocked:acdb", "acdb"),
        ("src:f32::any:any::f0", "any"),
        ("f32::any::f0", "any"),
        ("dst_f32::any", "any"),
        ("dst:f32::any", "any"),
        ("f32::undef", "undef"),
        ("undef::undef:::", "undef"),
    ],
)
def test_the_log_is_read(text: str, name: str) -> None:
    assert guess(text) == "verbose"
    assert parse(text) == cf.Format(name)


def test_the_log_with_sizes_is_a_descriptor() -> None:
    want = cf.MemoryDesc((2, 17, 5, 4), "f32", "aBcd16b")
    for text in ("f32:p:blocked:aBcd16b:f0", "src_f32:p:blocked:aBcd16b::f0"):
        assert parse_desc(text + " 2x17x5x4") == parse_desc(text + ",2x17x5x4") == want
    assert render_desc(want, "verbose") == "f32:p:blocked:aBcd16b::f0 2x17x5x4"
    named = notations.verbose.render_desc(want, "src")
    assert named == "src:f32:p:blocked:aBcd16b::f0 2x17x5x4"
    assert parse_desc(named) == want


@pytest.mark.parametrize(
    "desc",
    [
        cf.MemoryDesc((2, 3, 4), "bf16", strides=(100, 10, 2)),
        cf.MemoryDesc((2, 3), "f32", strides=(0, 2)),
        cf.MemoryDesc((2, 32, 4), "f32", "aBc16b").submemory((1, 16, 3), (0, 0, 0)),
        cf.MemoryDesc((2, RT, 3), "s8", "aBc16b"),
        cf.MemoryDesc((1, 3, 1), "f32", strides=(7, 1, 5)),
        cf.MemoryDesc((2, 0, 4), "f32", "acb"),
        cf.MemoryDesc((2, 3), "f16", "any"),
        cf.MemoryDesc((), "f32"),
    ],
    ids=str,
)
def test_descriptors_survive_the_log(desc: cf.MemoryDesc) -> None:
    assert parse_desc(render_desc(desc, "verbose")) == desc


def test_what_the_log_does_not_tell() -> None:
    shifted = cf.MemoryDesc((2, 8), "f32").submemory((1, 8), (1, 0))
    text = render_desc(shifted, "verbose")
    assert text == "f32:0:blocked:ab::f0 1x8"
    assert parse(text) == cf.Format("ab")
    for bad in (text, "s8::blocked:ab::f1 2x3"):
        with pytest.raises(cf.Unsupported, match="NO_FORMAT"):
            parse_desc(bad)
    with pytest.raises(cf.Unsupported, match="kind wino"):
        parse("f32::wino::f0")
    with pytest.raises(cf.InvalidDescriptor, match="no sizes"):
        parse_desc("f32::blocked:ab::f0")
    with pytest.raises(cf.Unsupported, match="NO_NOTATION"):
        render_desc(cf.MemoryDesc((2, 3, 4, 5), "f32", "byxf__af32"), "verbose")
    for text in ("f32:blocked", "nonsense:ab", "f32::blocked:ab::f0 2xy"):
        with pytest.raises(cf.InvalidFormat):
            parse(text)


# --- the front door and the command ---------------------------------------------------------------


def test_unknown_notations() -> None:
    with pytest.raises(cf.InvalidFormat, match=r"unknown notation 'cute'.*onednn"):
        render("abcd", "cute")
    with pytest.raises(cf.InvalidFormat, match="unknown notation"):
        parse("abcd", "cute")


def test_guesses() -> None:
    texts = ["aBcd16b", "aBx16b", "b_fs_yx_fsv16", "NCHW16c", "{1,0}", "a b -> b a", "f32::any::f0"]
    found = [guess(text) for text in texts]
    assert found == ["onednn", "onednn", "cldnn", "tvm", "xla", "einops", "verbose"]
    assert len({*pairwise(found)}) == 6


def run(capsys: pytest.CaptureFixture[str], *arguments: str) -> tuple[int, str, str]:
    status = cli.main(["convert", *arguments])
    captured = capsys.readouterr()
    return status, captured.out, captured.err


@pytest.mark.parametrize(
    ("arguments", "answer"),
    [
        (["NCHW16c", "--to", "cldnn"], "b_fs_yx_fsv16"),
        (["b_fs_yx_fsv16", "--to", "tvm"], "NCHW16c"),
        (["aBx16b", "--ndims", "5", "--to", "xla"], "{4,3,2,1,0:T(16,1,1,1)}"),
        (["src_f32::blocked:acdb::f0", "--to", "onednn"], "acdb"),
        (["OI16i16o", "--from", "onednn", "--to", "tvm"], "OI16i16o"),
        (["os_is_yx_isv16_osv16", "--to", "onednn"], "ABcd16b16a"),
    ],
)
def test_convert(arguments: list[str], answer: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert run(capsys, *arguments) == (0, answer + "\n", "")


def test_convert_prints_all_names(capsys: pytest.CaptureFixture[str]) -> None:
    status, out, _ = run(capsys, "byxf__af32")
    lines = out.splitlines()
    assert status == 0
    assert lines[0] == "byxf__af32: cldnn, dimensions b f y x"
    assert [line.split()[0] for line in lines[1:]] == list(NOTATIONS)
    assert lines[2].split() == ["cldnn", "byxf__af32"]
    assert "rounds f up without splitting it" in lines[1]


def test_convert_refuses_with_one_line(capsys: pytest.CaptureFixture[str]) -> None:
    for arguments in (
        ["byxf__af32", "--to", "tvm"],
        ["frob"],
        ["aBx16b"],
        ["nchw", "--from", "xla"],
    ):
        status, out, err = run(capsys, *arguments)
        assert (status, out, err.count("\n")) == (1, "", 1)


def test_explain_reads_the_log_with_sizes(capsys: pytest.CaptureFixture[str]) -> None:
    assert cli.main(["explain", "src:s8:p:blocked:aBcd16b::f0 2x17x5x4"]) == 0
    assert "s8:aBcd16b:2x17x5x4" in capsys.readouterr().out
    assert cli.main(["explain", "f32::blocked:ab:10x2:f0", "--shape", "2,3"]) == 0
    assert "strides=10x2" in capsys.readouterr().out
    assert cli.main(["explain", "f32::blocked:ab::f0 2x3", "--shape", "2,3"]) == 1
    assert "leave out --shape" in capsys.readouterr().err


LINE = (
    "onednn_verbose,v1,primitive,exec,cpu,{},jit:uni,undef,"
    "src_f32::blocked:abcd::f0 dst_u8:p:blocked:aBcd16b::f0,,,{},0.01"
)


def test_a_whole_line_of_the_log() -> None:
    found = notations.verbose.read_line(LINE.format("reorder", "2x17x5x4"))
    assert [name for name, _ in found] == ["src", "dst"]
    assert [str(log.desc()) for _, log in found] == ["f32:abcd:2x17x5x4", "u8:aBcd16b:2x17x5x4"]
    line = LINE.format("convolution", "mb2_ic17oc5_ih4oh4kh1sh1dh0ph0")
    found = notations.verbose.read_line(line)
    assert [log.format.name for _, log in found] == ["abcd", "aBcd16b"]
    assert not any(log.dims for _, log in found)
    assert notations.verbose.is_line("dnnl_verbose,exec")
    with pytest.raises(cf.InvalidFormat, match="a line of oneDNN's log"):
        notations.verbose.read_line("onednn_verbose,info,cpu,runtime:OpenMP")
