"""The commands that need no device: what they print, and how they refuse."""

from __future__ import annotations

import random
import re
import subprocess
import sys
import xml.etree.ElementTree as ET
from pathlib import Path

import pytest

import clformats as cf
from clformats import cli
from clformats.host.packing import flat_size
from clformats.pictures import words
from clformats.pictures.drawing import Box, picture, terminal
from clformats.pictures.explaining import element
from clformats.pictures.svg import svg
from tests.support import dtype_for

# The printed tables of clDNN's own documentation, for [b: 2; f: 2; y: 2; x: 2]. The second is cut
# there as it is here; three of its lines say f=1 where fsv=2 and f=2 are meant, put right here.
BFYX = """
i = 0 => [b=0; f=0; y=0; x=0]
i = 1 => [b=0; f=0; y=0; x=1]
i = 2 => [b=0; f=0; y=1; x=0]
i = 3 => [b=0; f=0; y=1; x=1]
i = 4 => [b=0; f=1; y=0; x=0]
i = 5 => [b=0; f=1; y=0; x=1]
i = 6 => [b=0; f=1; y=1; x=0]
i = 7 => [b=0; f=1; y=1; x=1]
i = 8 => [b=1; f=0; y=0; x=0]
i = 9 => [b=1; f=0; y=0; x=1]
i = 10 => [b=1; f=0; y=1; x=0]
i = 11 => [b=1; f=0; y=1; x=1]
i = 12 => [b=1; f=1; y=0; x=0]
i = 13 => [b=1; f=1; y=0; x=1]
i = 14 => [b=1; f=1; y=1; x=0]
i = 15 => [b=1; f=1; y=1; x=1]
"""
FSV16_ROWS = [  # the first element of each run of sixteen: b, y, x
    (0, 0, 0, 0),
    (16, 0, 0, 1),
    (32, 0, 1, 0),
    (48, 0, 1, 1),
    (64, 1, 0, 0),
    (80, 1, 0, 1),
    (96, 1, 1, 0),
    (112, 1, 1, 1),
]


def run(capsys: pytest.CaptureFixture[str], *arguments: str) -> str:
    """What a command prints when all is well."""
    status = cli.main(arguments)
    captured = capsys.readouterr()
    assert (status, captured.err) == (0, "")
    return captured.out


def refusal(capsys: pytest.CaptureFixture[str], *arguments: str) -> str:
    """The one line with which a command refuses."""
    status = cli.main(arguments)
    captured = capsys.readouterr()
    assert (status, captured.out) == (1, "")
    assert captured.err.startswith("clformats: ")
    assert captured.err.count("\n") == 1
    return captured.err


def squeezed(text: str) -> list[str]:
    """Lines without the spaces that make columns."""
    return [re.sub(" +", " ", line).strip() for line in text.strip().splitlines()]


# --- help -----------------------------------------------------------------------------------------


@pytest.mark.parametrize("command", cli.COMMANDS)
def test_each_command_has_help_with_an_example(
    command: str, capsys: pytest.CaptureFixture[str]
) -> None:
    with pytest.raises(SystemExit) as done:
        cli.main([command, "-h"])
    assert done.value.code == 0
    assert f"clformats {command}" in capsys.readouterr().out.split("example:")[1]


@pytest.mark.parametrize("command", ["list", "explain", "offset", "draw", "convert"])
def test_the_example_in_the_help_works(
    command: str,
    capsys: pytest.CaptureFixture[str],
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.chdir(tmp_path)
    with pytest.raises(SystemExit):
        cli.main([command, "-h"])
    example = " ".join(capsys.readouterr().out.split("example:")[1].split())
    assert run(capsys, *example.split()[1:])


# --- list -----------------------------------------------------------------------------------------


def test_list_has_one_line_for_each_format(capsys: pytest.CaptureFixture[str]) -> None:
    lines = run(capsys, "list").splitlines()[1:]
    assert [line.split()[0] for line in lines] == [f.name for f in cf.formats()]
    assert all(line.split()[-1] != "None" for line in lines)


def test_list_filters(capsys: pytest.CaptureFixture[str]) -> None:
    lines = squeezed(
        run(capsys, "list", "--role", "data", "--ndims", "4", "--match", "b_fs_yx_fsv1")
    )
    assert lines[1:] == [
        "b_fs_yx_fsv16 b f y x data aBcd16b",
        "nChw16c n c h w data b_fs_yx_fsv16",
    ]


def test_list_says_that_nothing_matches(capsys: pytest.CaptureFixture[str]) -> None:
    assert "no listed format" in refusal(capsys, "list", "--match", "nothing_like_this")
    assert "whole numbers" in refusal(capsys, "list", "--ndims", "four")


# --- explain --------------------------------------------------------------------------------------


def test_the_documented_table_of_bfyx(capsys: pytest.CaptureFixture[str]) -> None:
    lines = squeezed(run(capsys, "explain", "bfyx", "--shape", "2,2,2,2"))
    assert lines[-16:] == squeezed(BFYX)


def test_the_documented_table_of_fsv16(capsys: pytest.CaptureFixture[str]) -> None:
    lines = squeezed(run(capsys, "explain", "b_fs_yx_fsv16", "--shape", "2x2x2x2"))
    expected = [
        f"i = {i + f} => [b={b}; f={f}; y={y}; x={x}] == [b={b}; fs=0; y={y}; x={x}; fsv={f}]"
        + " padding" * (f >= 2)
        for i, b, y, x in FSV16_ROWS
        for f in range(16)
    ]
    assert lines[-128:] == expected


def test_explain_tells_sizes_and_the_formula(capsys: pytest.CaptureFixture[str]) -> None:
    text = run(capsys, "explain", "b_fs_yx_fsv16", "--shape", "2,17,5,4")
    assert "oneDNN  aBcd16b = nChw16c" in text
    assert "padded   2 x 32 x 5 x 4, 1280 elements in memory, 600 of them padding (46.9 %)" in text
    assert "bytes    5120" in text
    assert "offset   b * 640 + f / 16 * 320 + y * 64 + x * 16 + f % 16" in text
    assert "=>" not in text  # too large for the table


@pytest.mark.parametrize(
    ("name", "told"),
    [
        ("b_fs_yx_fsv16", "fsv16 vector of a slice: 16 neighbours along f lie together: f % 16"),
        ("os_is_yx_isa8_osv8_isv4", "isa8 array of 8 smaller blocks along i, inside a slice: "),
        ("OIhw4i16o4i", "O output channels; the capital says blocked"),
        ("OIhw4i16o4i", "4i block: 4 neighbours along i lie together: i / 4 % 4"),
        ("os_is_osv32_isv32_swizzled_by_4", "dealt like cards onto 4 piles: o % 4"),
        ("os_iyx_osv16_rotate_180", "y height, counted from the far end: Y - 1 - y"),
        ("os_i_osv8__ai8", "i is rounded up to a multiple of 8"),
        ("byx8_f4", "x8 width; rounded up to a multiple of 8, but not split"),
        ("gs_oi_yxs_gsv4_yxsv4", "yxs y and x fused into one index, in slices: (y * X + x) / 4"),
        ("bf8_xy16", "y16 height; fused with its neighbour into one index; in blocks of 16"),
        ("ldgoi", "LSTM i f c o (input, forget, candidate, output), GRU u r o"),
        ("o_i_yx_i16_o16", "the name os_is_yx_isv16_osv16, which o_i_yx_i16_o16 is another"),
        ("bfwzyx", "w 4th spatial dimension"),
        ("ncw", "w width"),
        ("aBcd16b", "aBcd16b = nChw16c (as data) = oIhw16i (as weights)"),
        ("goiyx", "oneDNN abcde = goihw"),
        ("OhwI32o", "note named as if I were blocked; it is not"),
        ("any", "let the library choose"),
    ],
)
def test_explain_tells_what_tokens_mean(
    name: str, told: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert told in " ".join(run(capsys, "explain", name).split())


def test_every_token_of_every_listed_name_is_explained() -> None:
    for fmt in cf.formats():
        name = words.spelled(fmt)
        assert "".join(words.split(fmt)) == name
        assert cf.Format(name) == fmt
        assert all(meaning for _, meaning in words.token_words(fmt)), name
        labels = words.digit_labels(fmt)
        assert len(set(labels)) == len(labels) == len(fmt.digits), name


def test_commands_read_orders_of_four_bits(capsys: pytest.CaptureFixture[str]) -> None:
    shape = "--shape", "32,4,1,1"
    name, plain = "os_iyx_osv16:i4", "os_iyx_osv16"
    assert "os_iyx_osv64:i4" in run(capsys, "list", "--match", ":i4")
    told = run(capsys, "explain", name, *shape)
    assert "i % 2" in told
    assert told == run(capsys, "explain", plain, *shape, "--dtype", "u4")
    assert told == run(capsys, "explain", f"u4:{name}:32x4x1x1")
    assert "byte 17, from bit 0" in run(capsys, "offset", name, *shape, "--coord", "1,2,0,0")
    assert "i3" in run(capsys, "draw", name, *shape)
    assert "ABcd16a2b" in run(capsys, "convert", name)
    assert "got f16: leave :i4 out" in refusal(capsys, "draw", name, *shape, "--dtype", "f16")


def test_explain_tells_the_size_of_images(capsys: pytest.CaptureFixture[str]) -> None:
    told = run(capsys, "explain", "image_2d_rgba", "--shape", "1,3,5,7")
    assert "u8:image_2d_rgba:1x3x5x7" in told
    assert "image    7 x 5 pixels (width x height), channels: 4" in told
    told = run(capsys, "explain", "nv12", "--shape", "1,6,10,1")
    assert "y  width" in told
    assert "image    10 x 6 pixels (width x height), channels: 1" in told
    assert "image" not in run(capsys, "explain", "bfyx", "--shape", "1,3,5,7")


def test_explain_reads_logs_and_printed_descriptors(capsys: pytest.CaptureFixture[str]) -> None:
    log = run(capsys, "explain", "src_s8::blocked:acdb::f0", "--shape", "1,2,3,4")
    assert "s8:acdb:1x2x3x4" in log
    assert "acdb = nhwc (as data)" in log
    assert "f16:nchw:1x2x3x4" in run(capsys, "explain", "f16:nchw:1x2x3x4")
    assert "f32:acdb" in run(capsys, "explain", "blocked:acdb", "--shape", "1x2x3x4")
    assert "aBcde16b: generic, 5 dimensions" in run(capsys, "explain", "aBx16b", "--ndims", "5")
    assert "f32:axb" not in run(capsys, "explain", "axb", "--shape", "2,3,5")


@pytest.mark.parametrize(
    "text",
    [
        "f32:nchw:2x17x5x4",
        "f32:bfyx:1x2x3x4:pad=0+0x0+0x1+2x3+0",
        "f32:aBc16b:2x17x3:padded=2x32x3:offset=48",
        "f32:ab:2x3:strides=10x2",
        "f32:os_i_yxs_osv4_yxsv4:5x2x3x7:strides=1000x400x40x4x1",
        "f32:nchw:*x17x5x4",
        "f32:b_fs_yx_fsv16:2x*x*x4",
        "f32:os_iyx_osv16_rotate_180:5x2x*x7",
        "f32:os_i_yxs_osv4_yxsv4:5x*x*x7",
        "f32:nchw:2x17x5x4:strides=*x*x*x1",
        "f32:nchw:*x0x5x4",
    ],
)
def test_explain_reads_what_str_prints(text: str, capsys: pytest.CaptureFixture[str]) -> None:
    desc = cf.MemoryDesc.parse(text)
    out = run(capsys, "explain", str(desc))
    assert f"\n{desc}\n" in out
    assert str(cf.RUNTIME_DIM) not in out
    assert ("bytes    known at execution only" in out) == desc.has_runtime


def test_explain_names_what_is_known_at_execution(capsys: pytest.CaptureFixture[str]) -> None:
    out = run(capsys, "explain", "b_fs_yx_fsv16", "--shape", "2,*,5,4")
    assert "dims     2 x * x 5 x 4, where * is known at execution only" in out
    assert "offset   b * s0 + f / 16 * 320 + y * 64 + x * 16 + f % 16" in out
    assert ["b", "2", "s0"] in [line.split() for line in out.splitlines()]
    turned = run(capsys, "explain", "f32:os_iyx_osv16_rotate_180:5x2x*x7")
    assert "Y - 1 - y" in turned


def test_explain_reads_both_generations_of_the_log(capsys: pytest.CaptureFixture[str]) -> None:
    assert "let the library choose" in run(capsys, "explain", "dst_f32::any")
    assert "let the library choose" in run(capsys, "explain", "dst:f32::any")
    assert "acdb = nhwc (as data)" in run(capsys, "explain", "src:f32::blocked:acdb::f0")


@pytest.mark.parametrize(
    "arguments", [["explain"], ["explain", "bfyx", "--colour"], ["frob"], ["convert", "a", "--to"]]
)
def test_a_line_that_is_no_command_ends_in_the_usage_text(
    arguments: list[str], capsys: pytest.CaptureFixture[str]
) -> None:
    with pytest.raises(SystemExit) as done:
        cli.main(arguments)
    assert done.value.code == 2
    assert capsys.readouterr().err.startswith("usage: clformats")


def test_the_table_tells_padding_from_gaps() -> None:
    padded = cf.MemoryDesc((1, 1, 1, 2), "u8", "bfyx", padding=((0, 0),) * 3 + ((1, 0),))
    assert element(padded, 0) == "[b=0; f=0; y=0; x=-1]  padding"
    assert element(padded, 1) == "[b=0; f=0; y=0; x=0]"
    assert element(cf.MemoryDesc((2, 3), "f32", strides=(10, 2)), 1) == "a gap between strides"
    fused = cf.MemoryDesc((1, 8, 1, 3), "f32", "bf8_xy16")
    assert element(fused, 3).endswith("(y*X+x)%16=3]  padding")


# --- offset ---------------------------------------------------------------------------------------


def test_offset_works_the_example_out(capsys: pytest.CaptureFixture[str]) -> None:
    lines = squeezed(
        run(capsys, "offset", "b_fs_yx_fsv16", "--shape", "2,17,5,4", "--coord", "1,16,4,3")
    )
    assert lines == [
        "f32:b_fs_yx_fsv16:2x17x5x4 at b=1, f=16, y=4, x=3",
        "offset = b * 640 + f / 16 * 320 + y * 64 + x * 16 + f % 16",
        "",
        "b = 1 * 640 = 640",
        "f / 16 = 16 / 16 = 1 * 320 = 320",
        "y = 4 * 64 = 256",
        "x = 3 * 16 = 48",
        "f % 16 = 16 % 16 = 0 * 1 = 0",
        "sum = 1264",
        "",
        "offset 1264 elements = byte 5056",
    ]


@pytest.mark.parametrize(
    ("desc", "index"),
    [
        ("f16:OIhw4i16o4i:20x18x3x2", (17, 5, 2, 1)),
        ("u8:bfyx:1x2x3x2:pad=0+0x0+0x1+2x3+0", (0, 1, 2, 1)),
        ("f32:ab:2x3:strides=10x2", (1, 2)),
        ("f32:os_iyx_osv16_rotate_180:5x2x3x7", (4, 1, 2, 1)),
        ("f32:os_i_yxs_osv4_yxsv4:5x2x3x7", (4, 1, 2, 1)),
        ("f32:ab:123456789012345678x5", (123456789012345677, 3)),
    ],
)
def test_offset_and_at_are_inverses(
    desc: str, index: tuple[int, ...], capsys: pytest.CaptureFixture[str]
) -> None:
    there = run(capsys, "offset", desc, "--coord", ",".join(map(str, index)))
    offset = re.findall(r"offset (\d+) elements", there)[0]
    assert int(offset) == cf.MemoryDesc.parse(desc).offset(*index)
    assert f"= {offset}" in squeezed(there)[-3]
    back = run(capsys, "offset", desc, "--at", offset)
    assert re.findall(r"[a-z]=(\d+)", back.splitlines()[-1]) == [str(i) for i in index]


def test_at_tells_padding_and_gaps(capsys: pytest.CaptureFixture[str]) -> None:
    shape = ("--shape", "2,17,5,4")
    assert run(capsys, "offset", "b_fs_yx_fsv16", *shape, "--at", "1265").endswith(
        "padding: no element\n"
    )
    assert "a gap" in run(capsys, "offset", "f32:ab:2x3:strides=10x2", "--at", "1")


# --- draw -----------------------------------------------------------------------------------------


def test_draw_shows_memory_order_and_padding(capsys: pytest.CaptureFixture[str]) -> None:
    text = run(capsys, "draw", "nChw4c", "--shape", "1,5,1,2")
    assert text.splitlines()[4:] == [
        "     C=0  @0                     C=1  @8",
        "    ┌────┬────┬────┬────┐       ┌────┬────┬────┬────┐",
        "w=0 │ c0 │ c1 │ c2 │ c3 │   w=0 │ c4 │░░░░│░░░░│░░░░│",
        "w=1 │ c0 │ c1 │ c2 │ c3 │   w=1 │ c4 │░░░░│░░░░│░░░░│",
        "    └────┴────┴────┴────┘       └────┴────┴────┴────┘",
    ]


def test_draw_leaves_out_the_middle_and_says_so(capsys: pytest.CaptureFixture[str]) -> None:
    text = run(capsys, "draw", "byxf", "--shape", "2,40,5,34", "--boxes", "3")
    assert "… 7 more boxes …" in text
    assert "x=33" in text
    assert "x=20" not in text
    assert "│f14│…│f39│" in text
    assert "… 9 more boxes …" in run(capsys, "draw", "byxf", "--shape", "2,40,5,34", "--boxes", "1")


@pytest.mark.parametrize("name", ["bfyx", "bf8_xy16", "b_fs_yx_fsv16", "bs_fs_yx_bsv16_fsv16"])
def test_a_picture_shows_every_element_once_in_memory_order(name: str) -> None:
    desc = cf.MemoryDesc((3, 17, 2, 5), "f32", name)
    boxes = [b for b in picture(desc, boxes=10**6, widest=10**6).boxes if isinstance(b, Box)]
    cells = [cell for box in boxes for row in box.rows if row for cell in row.cells if cell]
    assert [cell.index for cell in cells] == [desc.coords(k) for k in range(flat_size(desc))]


@pytest.mark.parametrize("fmt", [f for f in cf.formats() if "_" in f.name], ids=str)
def test_every_cldnn_format_can_be_drawn(fmt: cf.Format) -> None:
    desc = cf.MemoryDesc([(3, 17, 5, 2, 1)[k % 5] for k in range(fmt.ndims)], dtype_for(fmt), fmt)
    drawn = picture(desc, boxes=3)
    assert max(map(len, terminal(drawn))) < 220
    ET.fromstring(svg(drawn))  # noqa: S314  # our own text


def test_draw_writes_svg(capsys: pytest.CaptureFixture[str], tmp_path: Path) -> None:
    file = tmp_path / "picture.svg"
    run(capsys, "draw", "b_fs_yx_fsv16", "--shape", "2,17,5,4", "--svg", str(file))
    root = ET.fromstring(file.read_text(encoding="utf-8"))  # noqa: S314  # our own text
    texts = [node.text for node in root.iter("{http://www.w3.org/2000/svg}text")]
    assert "b_fs_yx_fsv16" in texts
    assert texts.count("f16") == 4  # one for each x of the last box
    assert "… 16 more boxes …" in texts
    assert refusal(
        capsys, "draw", "bfyx", "--shape", "1,2,3,4", "--svg", str(tmp_path / "no" / "a.svg")
    ).endswith("No such file or directory\n")


@pytest.mark.parametrize("shape", ["1,1,1,1", "1,0,5,4"])
def test_draw_takes_the_smallest_tensors(shape: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert "in memory" in run(capsys, "draw", "b_fs_yx_fsv16", "--shape", shape)
    desc = cf.MemoryDesc([int(n) for n in shape.split(",")], "f32", "b_fs_yx_fsv16")
    ET.fromstring(svg(picture(desc)))  # noqa: S314  # our own text


@pytest.mark.parametrize("role", ["data", "weights", "rnn", "generic"])
def test_no_command_fails_in_another_way_than_by_one_line(
    role: str, capsys: pytest.CaptureFixture[str]
) -> None:
    chance = random.Random(role)  # noqa: S311  # the same shapes in every run
    for fmt in chance.sample([f for f in cf.formats(role) if f.layout], 15):
        sizes = chance.choices(["0", "1", "3", "16", "17", "*", "1000000007", "-2"], k=fmt.ndims)
        shape, zeros = ",".join(sizes), ",".join("0" * fmt.ndims)
        for arguments in (
            ["explain", fmt.name, "--shape", shape],
            ["offset", fmt.name, "--shape", shape, "--coord", zeros],
            ["offset", fmt.name, "--shape", shape, "--at", "1"],
            ["draw", fmt.name, "--shape", shape, "--boxes", "2"],
            ["convert", fmt.name],
        ):
            status = cli.main(arguments)
            out, err = capsys.readouterr()
            assert (status, bool(out), err.count("\n")) in ((0, True, 0), (1, False, 1)), arguments
            assert str(cf.RUNTIME_DIM) not in out + err, arguments


# --- refusals -------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("arguments", "told"),
    [
        (["explain", "bfyxx"], "Did you mean bfyx"),
        (["explain", "aBx16b"], "give the rank by --ndims 4 or by --shape"),
        (["explain", "bfyx", "--shape", "1,2,3"], "got 3 dims (1, 2, 3), but bfyx has 4"),
        (["explain", "bfyx", "--shape", "1,,2"], "cannot read '1,,2' as the shape"),
        (["explain", "bfyx", "--shape", "1,2,3,-4"], "dimension 3 is -4 in dims"),
        (["explain", "bfyx", "--shape", "-1,2,3,4"], "dimension 0 is -1 in dims"),
        (["explain", "bfyx", "--shape", "1,2,3,4", "--dtype", "f33"], "unknown element type 'f33'"),
        (
            ["explain", "f32:bfyx:1x2x3x4", "--dtype", "f16"],
            "leave out --shape, --ndims and --dtype",
        ),
        (["explain", "axb", "--ndims", "4", "--shape", "1,2,3"], "a shape of 3 sizes"),
        (["offset", "bfyx", "--coord", "0,0,0,0"], "add --shape with 4 numbers, for b, f, y, x"),
        (["offset", "bfyx", "--shape", "1,2,3,4", "--coord", "0,2,0,0"], "f=2 is outside"),
        (["offset", "bfyx", "--shape", "1,2,3,4", "--coord", "0,0,0"], "got 3 coordinates"),
        (["offset", "bfyx", "--shape", "1,2,0,4", "--coord", "0,0,0,0"], "y has size 0"),
        (["offset", "bfyx", "--shape", "1,2,3,4", "--at", "24"], "offset 24 is outside"),
        (["offset", "any", "--shape", "1,2", "--coord", "0,0"], "name a concrete one"),
        (["draw", "bfyx"], "add --shape"),
        (
            ["draw", "bfyx", "--shape", "1,2,3,4", "-o", "a.png"],
            "expected a name that ends in .svg",
        ),
        (["draw", "bfyx", "--shape", "1,2,3,4", "--boxes", "0"], "number of 1 to 1000"),
        (["draw", "bfyx", "--shape", "1,2,3,4", "--boxes", "1000000"], "number of 1 to 1000"),
        (["draw", "bfyx", "--shape", "1,2,3,4", "--boxes", "-3"], "number of 1 to 1000"),
        (["draw", "bfyx", "--shape", "*,2,3,4"], "known at execution only"),
        (["draw", "f32:nchw:*x17x5x4"], "known at execution only"),
        (["offset", "f32:nchw:*x17x5x4", "--coord", "0,0,0,0"], "known at execution only"),
        (["offset", "f32:ab:2x3:strides=*x1", "--at", "0"], "known at execution only"),
        (["offset", "bfyx", "--shape", "1,2,3,4", "--coord", "-1,0,0,0"], "b=-1 is outside"),
        (["offset", "bfyx", "--shape", "1,2,3,4", "--at", "-1"], "offset -1 is outside"),
        (["offset", "bfyx", "--shape", "1,2,3,4", "--at", "1,2"], "got 2 offsets"),
        (["explain", "bfyx", "--shape", "1" * 5000], "as the shape: expected whole numbers"),
        (["explain", "bfyx", "--ndims", "-4"], "number of 1 to 12"),
        (["explain", "f32:ab:2x3:padded=*"], "got padded=(*,)"),
        (["explain", "f32:ab:2x3:width=4"], "cannot read the descriptor"),
    ],
)
def test_bad_input_is_answered_in_one_line(
    arguments: list[str], told: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert told in refusal(capsys, *arguments)


def test_a_closed_stdout_is_no_error() -> None:
    done = subprocess.run(
        ["/bin/sh", "-c", f"'{sys.executable}' -m clformats explain bfyx >&-"],
        stderr=subprocess.PIPE, text=True, check=False,
    )  # fmt: skip
    assert (done.returncode, done.stderr) == (0, "")


@pytest.mark.skipif(not Path("/dev/full").exists(), reason="no /dev/full here")
@pytest.mark.parametrize("words", [["header"], ["list"], ["explain", "bfyx"]])
def test_a_full_disk_behind_stdout_is_one_line(words: list[str]) -> None:
    with Path("/dev/full").open("w") as full:
        done = subprocess.run(
            [sys.executable, "-m", "clformats", *words],
            stdout=full, stderr=subprocess.PIPE, text=True, check=False,
        )  # fmt: skip
    assert done.returncode == 1
    assert done.stderr.splitlines() == [
        "clformats: cannot write the output: [Errno 28] No space left on device"
    ]


@pytest.mark.parametrize(
    ("words", "told"),
    [
        ([], "expected a command: `clformats help` lists them"),
        (["reoder"], "unknown command 'reoder': did you mean reorder?"),
        (["help", "reoder"], "unknown command 'reoder': did you mean reorder?"),
        (["nchw"], "unknown command 'nchw': `clformats help` lists them"),
    ],
)
def test_a_command_that_there_is_not(
    words: list[str], told: str, capsys: pytest.CaptureFixture[str]
) -> None:
    with pytest.raises(SystemExit) as caught:
        cli.main(words)
    assert caught.value.code == 2
    assert told in capsys.readouterr().err


def test_help_is_a_word_too(capsys: pytest.CaptureFixture[str]) -> None:
    for line, said in ((["help"], "clformats help explain"), (["help", "draw"], "clformats draw")):
        with pytest.raises(SystemExit, match="0"):
            cli.main(line)
        assert said in capsys.readouterr().out


def test_interrupted_is_one_line(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    from clformats.cli import list_

    def interrupted(_: object) -> int:
        raise KeyboardInterrupt

    monkeypatch.setattr(list_, "run", interrupted)
    assert cli.main(["list"]) == 130
    assert capsys.readouterr().err == "clformats: interrupted\n"


def test_list_does_not_mind_capitals(capsys: pytest.CaptureFixture[str]) -> None:
    assert cli.main(["list", "--match", "FSV16"]) == 0
    assert "b_fs_yx_fsv16" in capsys.readouterr().out
    assert cli.main(["list", "--match", "nothing so"]) == 1
    assert capsys.readouterr().err.endswith("leave out --match\n")


def test_names_of_frameworks_in_commands(capsys: pytest.CaptureFixture[str]) -> None:
    for name, cldnn in (("NCHW", "bfyx"), ("channels_last", "byxf"), ("NCHW16c", "b_fs_yx_fsv16")):
        assert cli.main(["explain", name]) == 0
        assert cldnn in capsys.readouterr().out
    line = (
        "onednn_verbose,v1,primitive,exec,cpu,reorder,jit:uni,undef,"
        "src_f32::blocked:abcd::f0 dst_u8::blocked:acdb::f0,,,2x17x5x4,0.01"
    )
    assert cli.main(["convert", line]) == 0
    out = capsys.readouterr().out
    assert "f32:abcd:2x17x5x4" in out
    assert "u8:acdb:2x17x5x4" in out
    assert cli.main(["convert", line, "--to", "tvm"]) == 0
    assert capsys.readouterr().out.split() == ["src", "NCHW", "dst", "NHWC"]
