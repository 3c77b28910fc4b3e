"""Audits: every planted needless reorder of a log is found, and what is no log is refused."""

from __future__ import annotations

import json
import random
import sys
from pathlib import Path
from typing import Any

import pytest

import clformats as cf

HEADS = {
    "1.3": "dnnl_verbose,exec,cpu,",
    "2.6": "onednn_verbose,exec,cpu,",
    "3.0": "onednn_verbose,primitive,exec,cpu,",
    "3.5": "onednn_verbose,v1,1718.5,primitive,exec,cpu,",
}


def desc(version: str, name: str, fmt: str) -> str:
    return f"{name}:f32::blocked:{fmt}::f0" if version > "3" else f"{name}_f32::blocked:{fmt}:f0"


def reorder(version: str, src: str, dst: str, dims: str, ms: float) -> str:
    sides = f"{desc(version, 'src', src)} {desc(version, 'dst', dst)}"
    return f"{HEADS[version]}reorder,jit:uni,undef,{sides},,,{dims},{ms}"


def conv(version: str, fmt: str, channels: int, ms: float) -> str:
    data = f"{desc(version, 'src', fmt)} {desc(version, 'wei', 'ABcd8b8a')} "
    problem = f"mb1_ic{channels}oc{channels}_ih9oh9kh3sh1dh0ph1_iw7ow7kw3sw1dw0pw1"
    return (
        f"{HEADS[version]}convolution,jit:avx2,forward_inference,{data}{desc(version, 'dst', fmt)}"
        f",,alg:convolution_direct,{problem},{ms}"
    )


def planted(seed: int, version: str) -> tuple[str, set[int]]:
    """A chain of convolutions in one format with needless reorders; the lines of these."""
    rng = random.Random(seed)  # noqa: S311  # a test
    lines = ["onednn_verbose,info,oneDNN v2.6.3 (commit N/A)", "the program's own output, exec"]
    lines.append(reorder(version, "abcd", "aBcd8b", "1x16x9x7", 0.02))
    found = set()
    for _ in range(rng.randint(3, 12)):
        lines.append(conv(version, "aBcd8b", 16, 0.5))
        if rng.random() < 0.5:  # there and back
            other = rng.choice(["abcd", "acdb", "aBcd16b"])
            lines.append(reorder(version, "aBcd8b", other, "1x16x9x7", rng.uniform(0.01, 0.1)))
            lines.append(reorder(version, other, "aBcd8b", "1x16x9x7", rng.uniform(0.01, 0.1)))
            found |= {len(lines) - 1, len(lines)}
        if rng.random() < 0.2:  # to itself
            lines.append(reorder(version, "aBcd8b", "aBcd8b", "1x16x9x7", 0.01))
            found.add(len(lines))
    lines.append(reorder(version, "aBcd8b", "aBcd4b", "1x16x9x7", 0.02))
    return "\n".join(lines), found


@pytest.mark.parametrize("version", HEADS)
def test_every_planted_reorder_is_found(version: str, tmp_path: Path) -> None:
    log = tmp_path / "run.log"
    count = 0
    for seed in range(40):
        text, wanted = planted(seed, version)
        log.write_text(text)
        report = cf.audit(log)
        assert {f.line for f in report.needless} == wanted, seed
        saved = sum(f.seconds for f in report.needless)
        assert report.least == pytest.approx(report.seconds - saved)
        assert report.plan.exact
        count += len(wanted)
    assert count > 100


def test_a_report_reads_well(tmp_path: Path) -> None:
    log = tmp_path / "run.log"
    log.write_text(planted(4, "2.6")[0])
    text = str(cf.audit(log))
    assert text.startswith("oneDNN verbose log: ")
    assert "the least possible: " in text
    assert "needless: is taken back by line" in text
    assert "first of" in text


def test_a_format_that_the_log_shows_faster_elsewhere_is_advised(tmp_path: Path) -> None:
    log = tmp_path / "run.log"
    lines = [
        reorder("2.6", "abcd", "acdb", "1x16x9x7", 0.02),
        conv("2.6", "acdb", 16, 0.5),
        reorder("2.6", "acdb", "aBcd8b", "1x16x9x7", 0.02),
        conv("2.6", "aBcd8b", 16, 0.1),
    ]
    log.write_text("\n".join(lines))
    report = cf.audit(log)
    assert report.least < 0.25e-3 < report.seconds
    assert any("run convolution@2 as aBcd8b" in text for text in report.changes)


RUNTIME = """<net name="n"><layers>
<layer id="0" name="data" type="Input"><data execOrder="0" execTimeMcs="0" layerType="Input"
 outputLayouts="abcd" outputPrecisions="f32"/><output><port id="0"><dim>1</dim><dim>16</dim>
 <dim>9</dim><dim>7</dim></port></output></layer>
<layer id="1" name="r1" type="Reorder"><data execOrder="1" execTimeMcs="30" layerType="Reorder"
 outputLayouts="acdb" outputPrecisions="f32"/><input><port id="0"/></input><output><port id="1">
 <dim>1</dim><dim>16</dim><dim>9</dim><dim>7</dim></port></output></layer>
<layer id="2" name="r2" type="Reorder"><data execOrder="2" execTimeMcs="40" layerType="Reorder"
 outputLayouts="abcd" outputPrecisions="f32"/><input><port id="0"/></input><output><port id="1">
 <dim>1</dim><dim>16</dim><dim>9</dim><dim>7</dim></port></output></layer>
<layer id="3" name="relu" type="Eltwise"><data execOrder="3" execTimeMcs="100"
 layerType="Eltwise" outputLayouts="abcd" outputPrecisions="f32"/><input><port id="0"/></input>
 <output><port id="1"><dim>1</dim><dim>16</dim><dim>9</dim><dim>7</dim></port></output></layer>
</layers><edges><edge from-layer="0" from-port="0" to-layer="1" to-port="0"/>
<edge from-layer="1" from-port="1" to-layer="2" to-port="0"/>
<edge from-layer="2" from-port="1" to-layer="3" to-port="0"/></edges></net>"""


def test_openvinos_runtime_model(tmp_path: Path) -> None:
    file = tmp_path / "runtime.xml"
    file.write_text(RUNTIME)
    report = cf.audit(file)
    assert report.kind == "OpenVINO runtime model"
    assert report.seconds == pytest.approx(170e-6)
    assert [f.line for f in report.needless] == [1, 2]
    assert report.least == pytest.approx(100e-6)


def test_tensorrts_layers(tmp_path: Path) -> None:
    def tensor(name: str, fmt: str) -> dict[str, object]:
        return {"Name": name, "Dimensions": [1, 16, 9, 7], "Format/Datatype": fmt}

    row, vec = "Row major linear FP32", "Channel major FP16 format where C % 8 == 0"
    layers = [
        ("Reformat", tensor("x", row), tensor("x1", vec), 0.03),
        ("Convolution", tensor("x1", vec), tensor("y", vec), 0.5),
        ("Reformat", tensor("y", vec), tensor("y1", row), 0.02),
        ("Reformat", tensor("y1", row), tensor("y2", vec), 0.02),
        ("Convolution", tensor("y2", vec), tensor("z", vec), 0.5),
    ]
    content = {
        "Layers": [
            {"Name": f"l{k}", "LayerType": kind, "Inputs": [a], "Outputs": [b], "averageMs": ms}
            for k, (kind, a, b, ms) in enumerate(layers)
        ]
    }
    file = tmp_path / "layers.json"
    file.write_text(json.dumps(content))
    report = cf.audit(file)
    assert [f.line for f in report.needless] == [2, 3]
    assert report.least == pytest.approx(1.03e-3)


@pytest.mark.parametrize(
    ("text", "match"),
    [
        ("hello\nworld\n", "nothing that was executed"),
        ("", "nothing that was executed"),
        ("<net><layers>", "cut off"),
        ("<net/>", "no runtime model"),
        ('{"Layers": [', "cut off"),
        ('{"Layers": [{"Name": "a"}]}', "entry 0"),
        ("onednn_verbose,exec,cpu,reorder,jit:uni,undef,src_f32::blocked:abcd:f0", "line 1"),
        (reorder("2.6", "abcd", "acdb", "1x2x3x4", 0.1)[:-3] + "soon", "line 1 is cut off"),
        (reorder("2.6", "abcd", "acdb", "1x2x3x4", 0.1).replace("src_", "?"), "line 1"),
        (
            reorder("2.6", "abcd", "acdb", "1x2x3x4", 0.1)[:-3] + "inf",
            "line 1 is cut off: got '.*inf",
        ),
        ('{"Layers": 5}', "is damaged"),
        ('{"Layers": [{"Outputs": 5}]}', "is damaged"),
        ('{"Layers": [{"Outputs": [{"Dimensions": ["x"]}]}]}', "is damaged"),
        ("[" * 100_000, "is damaged|cut off"),
    ],
)
def test_other_files_are_refused(text: str, match: str, tmp_path: Path) -> None:
    file = tmp_path / "file"
    file.write_text(text)
    with pytest.raises(cf.InvalidNetwork, match=match):
        cf.audit(file)
    with pytest.raises(cf.InvalidNetwork, match="cannot read"):
        cf.audit(tmp_path / "none")


def test_operands_of_a_matmul_have_dims_of_their_own(tmp_path: Path) -> None:
    """A reorder of an input of the second one's dims is not that of its result."""
    one = "onednn_verbose,v1,primitive,exec,cpu,matmul,jit,undef,src:f32::blocked:ab::f0 "
    lines = [
        f"{one}wei:f32::blocked:ab::f0 dst:f32::blocked:{dst}::f0,,,8x16:16x32,0.1"
        for dst in ("ba", "ab")
    ]
    start = "onednn_verbose,v1,primitive,exec,cpu"
    both = "src:f32::blocked:{}::f0 dst:f32::blocked:ba::f0,,,8x16,0.02"
    lines.append(f"{start},reorder,jit,undef,{both.format('ab')}")
    lines.append(f"{start},softmax,jit,undef,{both.format('ba')}")
    file = tmp_path / "log"
    file.write_text("\ufeff" + "\n".join(lines), encoding="utf-8")
    report = cf.audit(file)
    assert not report.needless
    assert {v.dims for v in report.plan.network.values.values()} == {(8, 16), (16, 32), (8, 32)}


def test_a_prelu_stands_between_the_reorders_around_it(tmp_path: Path) -> None:
    """Its one descriptor of data is that of both sides; it runs in no other format."""
    sides = "data:f32::blocked:abcd::f0 wei:f32::blocked:abcd::f0,,,1x16x9x7:1x16x1x1"
    prelu = f"{HEADS['3.0']}prelu,ref:any,forward_inference,{sides},0.1"
    dims = "1x16x9x7"
    lines = [conv("3.0", "aBcd8b", 16, 0.5), reorder("3.0", "aBcd8b", "abcd", dims, 0.1),
             prelu, reorder("3.0", "abcd", "aBcd8b", dims, 0.1),
             conv("3.0", "aBcd8b", 16, 0.5)]  # fmt: skip
    (tmp_path / "log").write_text("\n".join(lines))
    assert not cf.audit(tmp_path / "log").needless


def test_where_no_plan_is_cheaper_than_the_log_nothing_is_needless(tmp_path: Path) -> None:
    file = tmp_path / "log"
    steps = [("abcd", "acdb", "1x64x112x112", 0.5), ("acdb", "aBcd8b", "1x64x112x112", 0.5),
             ("abcd", "acdb", "1x2x1x1", 0.01)]  # fmt: skip
    file.write_text("\n".join(reorder("3.0", *step) for step in steps))
    report = cf.audit(file)
    assert report.plan.seconds > report.seconds
    assert not report.needless
    assert not report.changes


def steps_of_audit(path: Path, lines: int) -> int:
    """How many Python functions and generators an audit of a log of one shape enters."""
    rng = random.Random(lines)  # noqa: S311  # no secret
    formats = ("abcd", "acdb", "aBcd4b", "aBcd8b", "aBcd16b")
    ways = formats[:2], formats[1::-1]
    path.write_text(
        "\n".join(
            reorder("3.0", *rng.choice(ways), "1x32x9x7", rng.uniform(0.1, 0.2))
            if k % 2
            else conv("3.0", rng.choice(formats), 32, rng.uniform(1, 2))
            for k in range(lines)
        )
    )
    entered = 0

    def count(_frame: Any, event: str, _arg: Any) -> None:
        nonlocal entered
        entered += event == "call"

    sys.setprofile(count)
    try:
        cf.audit(path)
    finally:
        sys.setprofile(None)
    return entered


def test_the_work_grows_as_the_log(tmp_path: Path) -> None:
    few, many = (steps_of_audit(tmp_path / "log", lines) for lines in (150, 600))
    assert many < 4.5 * few
