"""Tables of kernels: three kernels in two formats, and the mistakes that people make in one."""

from __future__ import annotations

from pathlib import Path

import pytest

import clformats as cf

TABLE = """op,ins,outs,seconds,kernel
Conv,bfyx * *,bfyx,4e-3,conv
Conv,b_fs_yx_fsv16 * *,b_fs_yx_fsv16,9e-4,conv
MaxPool,bfyx,bfyx,3e-4,pool
MaxPool,b_fs_yx_fsv16,b_fs_yx_fsv16,1e-4,pool
"""


def planned(table: str, folder: Path) -> cf.FormatPlan:
    net = cf.Network()
    for name in ("image", "a", "out"):
        net.value(name, (1, 16, 8, 8))
    net.value("w", (16, 16, 1, 1), constant=0)
    net.value("b", (16,), constant=0)
    net.node("conv1", ["image", "w", "b"], ["a"], "Conv")
    net.node("pool1", ["a"], ["out"], "MaxPool")
    net.fix("image", "bfyx")
    file = folder / "kernels.csv"
    file.write_text(table)
    return cf.propagate(net, cf.Kernels.load(file))


def test_a_table_without_mistakes_is_not_doubted(tmp_path: Path) -> None:
    plan = planned(TABLE, tmp_path)
    assert [c.kernel for c in plan.choices.values()] == ["conv", "pool"]
    assert plan.formats["out"] == "b_fs_yx_fsv16"
    assert str(plan).splitlines()[-1].endswith("(the cost model)")


def test_digits_with_spaces_stand_in_quotes(tmp_path: Path) -> None:
    digits = "'b f/16 y x f%16'"
    plan = planned(TABLE.replace("b_fs_yx_fsv16", digits), tmp_path)
    assert cf.Format(plan.formats["out"]) == cf.Format("b_fs_yx_fsv16")
    assert plan.seconds < 4e-3
    with pytest.raises(cf.InvalidNetwork, match=r"line 3: got the formats .*No closing quotation"):
        planned(TABLE.replace("b_fs_yx_fsv16", digits[:-1]), tmp_path)


@pytest.mark.parametrize(
    ("wrong", "right", "said"),
    [
        ("MaxPol", "MaxPool", "line 4: the network has no operation 'MaxPol'; it has MaxPool"),
        ("MaxPol", "MaxPool", "no kernel, so plain and at no cost: pool1 (MaxPool)"),
        ("bfyx,bfyx,4e-3", "bfyx * *,bfyx,4e-3", "line 2: node 'conv1' (Conv): ins has 1 formats"),
        ("bfzyx,bfzyx", "bfyx,bfyx", "line 4: node 'pool1' (MaxPool), value 'a': the format"),
        ("b_fs_yx_fsvl6", "b_fs_yx_fsv16", "so opaque: b_fs_yx_fsvl6"),
    ],
)
def test_what_may_be_a_mistake_is_told_with_the_plan(
    wrong: str, right: str, said: str, tmp_path: Path
) -> None:
    assert said in str(planned(TABLE.replace(right, wrong), tmp_path))


def test_a_node_that_is_not_there_is_named(tmp_path: Path) -> None:
    table = TABLE.replace("op,", "node,").replace("Conv", "conv_1").replace("MaxPool", "pool1")
    plan = planned(table, tmp_path)
    assert "line 2: the network has no node 'conv_1'; it has conv1" in str(plan)
    assert plan.network.notes[0].endswith("it has conv1")
    assert len(plan.network.notes) == 2


def test_a_format_that_is_only_a_name_cannot_run(tmp_path: Path) -> None:
    plan = planned(TABLE.replace("b_fs_yx_fsv16", "b_fs_yx_fsvl6"), tmp_path)
    with pytest.raises(cf.InvalidNetwork, match=r"value 'image' .* Did you mean b_fs_yx_fsv16"):
        plan.network.values["image"].desc(plan.formats["out"])
