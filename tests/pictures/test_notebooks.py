"""What notebooks show, and `clformats.explain`, of which the command is a thin shell."""

from __future__ import annotations

import json
import xml.etree.ElementTree as ET
from contextlib import suppress
from typing import Any

import pytest

import clformats as cf
from clformats import cli
from clformats.audits import Report
from clformats.pictures.calls import example_dims


def shown(thing: Any) -> Any:
    return thing._repr_svg_()


def test_formats_and_descriptors_have_pictures() -> None:
    fmt = cf.Format("b_fs_yx_fsv16")
    assert shown(fmt) == cf.draw("f32:b_fs_yx_fsv16:1x18x1x4").svg
    assert shown(cf.MemoryDesc((1, 18, 1, 4), "f32", fmt)) == shown(fmt)
    assert ET.fromstring(shown(fmt)).tag.endswith("svg")  # noqa: S314  # our own
    for nothing in (cf.Format("any"), cf.MemoryDesc((cf.RUNTIME_DIM, 3), "f32", "ab")):
        assert shown(nothing) is None


def test_every_format_with_a_layout_has_a_picture() -> None:
    for fmt in [f for f in cf.formats() if f.layout][::37]:
        assert cf.draw(fmt).desc.dims == example_dims(fmt)
        begun = zip(fmt.structure.blocks, example_dims(fmt), strict=True)
        assert all(block < size for block, size in begun if block > 1)


def test_networks_and_audits_have_pictures_and_short_reprs() -> None:
    net = cf.Network()
    net.value("x", (1, 16, 4, 4), "f32")
    net.value("y", (1, 16, 4, 4), "f32")
    choice = cf.Choice(ins=("nchw",), outs=("nChw16c",), cost=1e-3)
    net.node("conv", inputs=["x"], outputs=["y"], op="Conv", choices=[choice])
    plan = cf.propagate(net, reorder_cost=lambda *_: 0.0)
    assert shown(plan) == plan.svg()
    assert repr(plan) == "FormatPlan(1 nodes, 0 reorders, 1 ms)"
    assert repr(plan.memory).startswith("MemoryPlan(")
    report = Report("log", "ms", 1.0, 0.0, 1.0, (), (), plan, timed=True)
    assert shown(report) == plan.svg()
    assert repr(report) == "Report(0 reorders, 0 needless)"


def test_plans_and_choices_have_short_reprs() -> None:
    desc = cf.MemoryDesc((2, 17, 5, 4), "f32")
    plan = cf.make_plan(desc, cf.MemoryDesc(desc.dims, "f16", "nChw16c"))
    assert repr(plan) == f"Plan({plan.problem.src} -> {plan.problem.dst}, {plan.family})"
    html = ET.fromstring(plan._repr_html_())  # noqa: S314  # our own
    assert (html.tag, html.text) == ("pre", str(plan))
    for choices in (cf.Choices(), cf.Choices(family="generic", local_size=64, baked=False)):
        assert eval(repr(choices), {"Choices": cf.Choices}) == choices  # noqa: S307  # our own
    assert repr(cf.Choices(local_size=8)) == "Choices(local_size=8)"


# --- explain --------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "words",
    [["nChw16c"], ["f32:bfyx:2x3x5x7"], ["b_fs_yx_fsv16", "--shape", "2,17,5,4"], ["any"],
     ["aBx16b", "--shape", "2,17,5,4"], ["f32:bfyx:*x3x5x7"]],
)  # fmt: skip
def test_explain_is_what_the_command_prints(
    words: list[str], capsys: pytest.CaptureFixture[str]
) -> None:
    shape = [int(n) for n in words[2].split(",")] if words[1:] else None
    explained = cf.explain(words[0], shape)
    assert cli.main(["explain", *words]) == 0
    assert capsys.readouterr().out == f"{explained}\n"
    assert cli.main(["explain", *words, "--json"]) == 0
    assert json.loads(capsys.readouterr().out) == explained.data
    assert explained._repr_html_().startswith("<pre>")


def test_explain_takes_every_listed_format_as_digits() -> None:
    for fmt in cf.formats():
        with suppress(cf.Unsupported):
            assert str(cf.explain(cf.notations.render(fmt, "digits")))


@pytest.mark.parametrize("name", ["C|4c", "h|w", "Chwn|4c"])
def test_explain_tells_the_size_of_an_image_of_one_row(name: str) -> None:
    shape = range(2, 2 + cf.Format(name).ndims)
    assert "pixels, channels: 4" in str(cf.explain(name, [*shape])) or name == "h|w"


def test_explain_takes_formats_and_descriptors() -> None:
    desc = cf.MemoryDesc((2, 17, 5, 4), "f16", "nChw16c")
    data = cf.explain(desc).data
    assert data["desc"]["nbytes"] == desc.nbytes
    assert data["desc"]["padded_dims"] == [2, 32, 5, 4]
    assert str(cf.explain(cf.Format("nChw16c"), desc.dims, dtype="f16")) == str(cf.explain(desc))
    assert repr(cf.explain(desc)) == "Explanation('f16:nChw16c:2x17x5x4')"
    with pytest.raises(cf.InvalidDescriptor, match="already has sizes"):
        cf.explain(desc, (1, 2, 3, 4))
    with pytest.raises(cf.InvalidFormat):
        cf.explain("bfyxx")
