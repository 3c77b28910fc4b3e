"""`clformats plan` and `clformats audit`."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from clformats import cli

LOG = (
    "onednn_verbose,exec,cpu,reorder,jit:uni,undef,src_f32::blocked:abcd:f0 "
    "dst_f32::blocked:acdb:f0,,,1x16x9x7,0.02\n"
    "onednn_verbose,exec,cpu,reorder,jit:uni,undef,src_f32::blocked:acdb:f0 "
    "dst_f32::blocked:abcd:f0,,,1x16x9x7,0.03\n"
    "onednn_verbose,exec,cpu,eltwise,jit:avx2,forward_inference,data_f32::blocked:abcd:f0,,"
    "alg:eltwise_relu alpha:0 beta:0,1x16x9x7,0.1\n"
)


def test_audit(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    log = tmp_path / "run.log"
    log.write_text(LOG)
    assert cli.main(["audit", str(log), "--svg", str(tmp_path / "least.svg")]) == 0
    text = capsys.readouterr().out
    assert "2 of them needless" in text
    assert (tmp_path / "least.svg").read_text().startswith("<svg")
    words = ["audit", str(log), "--svg", str(tmp_path / "least.svg"), "--json"]
    assert cli.main(words) == 1
    assert "--force" in capsys.readouterr().err
    assert cli.main([*words, "--force"]) == 0
    found = json.loads(capsys.readouterr().out)
    assert [f["needless"] for f in found["findings"]] == [True, True]
    log.write_text("something else")
    assert cli.main(["audit", str(log)]) == 1
    error = capsys.readouterr().err
    assert error.startswith("clformats: ")
    assert "expected oneDNN's verbose log" in error


def test_plan(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    onnx = pytest.importorskip("onnx", reason="pip install 'clformats[onnx]'")
    model = Path(onnx.__file__).parent / "backend/test/data/light/light_squeezenet.onnx"
    table = tmp_path / "kernels.csv"
    table.write_text(
        "op,ins,outs,seconds\nConv,nchw * *,nchw,3e-4\nConv,nChw16c * *,nChw16c,1e-4\n"
        "MaxPool,nChw16c,nChw16c,2e-5\nConcat,nChw16c nChw16c,nChw16c,1e-5\n"
    )
    files = {kind: tmp_path / f"plan.{kind}" for kind in ("svg", "dot", "json", "onnx")}
    words = ["plan", str(model), "--kernels", str(table), "--fix", "data_0=nchw", "--why", "n3"]
    for kind, file in files.items():
        words += [f"--{kind}", str(file)]
    assert cli.main(words) == 0
    text = capsys.readouterr().out
    assert "the least there is" in text
    assert "fastest per layer" in text
    assert "arena of" in text
    assert "nChw16c * * -> nChw16c" in text
    assert all(file.stat().st_size > 1000 for file in files.values())
    assert cli.main(words) == 1
    assert "--force" in capsys.readouterr().err
    again = [*words[:6], "--svg", str(files["svg"]), "--onnx", str(files["onnx"]), "--force"]
    assert cli.main([*again, "--json"]) == 0
    assert json.loads(capsys.readouterr().out) == json.loads(files["json"].read_text())


@pytest.mark.parametrize(
    ("words", "match"),
    [
        (["--fix", "data_0"], "expected VALUE=FORMAT"),
        (["--bandwidth", "fast"], "--bandwidth"),
        (["--fix", "nothing=nchw"], "no value 'nothing'"),
    ],
)
def test_plan_refuses(
    words: list[str], match: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    onnx = pytest.importorskip("onnx", reason="pip install 'clformats[onnx]'")
    model = Path(onnx.__file__).parent / "backend/test/data/light/light_squeezenet.onnx"
    table = tmp_path / "kernels.csv"
    table.write_text("op,ins,outs,seconds\nConv,nchw * *,nchw,3e-4\n")
    assert cli.main(["plan", str(model), "--kernels", str(table), *words]) == 1
    assert match in capsys.readouterr().err
