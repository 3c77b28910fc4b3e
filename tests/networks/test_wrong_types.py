"""Every public function of networks, called with every kind of wrong argument."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

import clformats as cf
from tests.wrong_types import JUNK, answers

DIMS = (1, 16, 5, 7)
CHOICE = cf.Choice(("nchw",), ("nchw",), 1e-3)


def net() -> cf.Network:
    made = cf.Network()
    made.value("x", DIMS)
    made.value("y", DIMS)
    made.node("relu", ["x"], ["y"], "Relu", [CHOICE])
    made.value("free", DIMS)
    return made


def value(**given: Any) -> object:
    return net().value(**given)


def node(**given: Any) -> object:
    return net().node(**given)


def fix(**given: Any) -> None:
    net().fix(**given)


def output(**given: Any) -> None:
    net().output(**given)


def rule(**given: Any) -> object:
    kernels = cf.Kernels()
    kernels.same("Relu", **given)
    return cf.propagate(net().with_choices({"relu": []}), kernels)


def recorded(**given: Any) -> None:
    cf.Costs().record_reorder("f32:1x16x5x7", **given)


CALLS: dict[str, tuple[Callable[..., Any], dict[str, Any]]] = {
    "Choice": (cf.Choice, {"ins": ("nchw",), "outs": ("nchw",), "views": {}}),
    "Cost": (cf.Cost, {"seconds": 1.0}),
    "Costs": (cf.Costs, {"bandwidth": 1e9, "latency": 0.0}),
    "Costs.record_reorder": (recorded, {"src": "nchw", "dst": "nhwc", "seconds": 1.0}),
    "Costs.load": (cf.Costs.load, {}),
    "Network.value": (value, {"name": "n", "dims": DIMS, "dtype": "f32"}),
    "Network.node": (
        node,
        {"name": "n", "inputs": ["x"], "outputs": ["free"], "op": "Conv", "choices": [CHOICE]},
    ),
    "Network.fix": (fix, {"value": "x", "format": "nchw"}),
    "Network.output": (output, {"value": "y", "format": "nchw"}),
    "propagate": (cf.propagate,
                  {"network": net(), "reorder_cost": None, "kernels": None, "via": (),
                   "limit": 1000}),
    "Kernels.same": (rule, {"formats": ["nchw"]}),
    "audit": (cf.audit, {}),
    "Kernels.load": (cf.Kernels.load, {}),
}  # fmt: skip


@pytest.mark.parametrize(
    ("call", "parameter"),
    [(name, parameter) for name, (_, right) in CALLS.items() for parameter in right],
)
def test_wrong_arguments_are_refused_on_purpose(call: str, parameter: str) -> None:
    function, right = CALLS[call]
    taken = answers(function, right, parameter)
    assert len(taken) < len(JUNK)


@pytest.mark.parametrize("call", ["audit", "Kernels.load", "Costs.load", "from_onnx"])
def test_what_is_no_path_is_refused(call: str) -> None:
    function = {**{k: f for k, (f, _) in CALLS.items()}, "from_onnx": cf.Network.from_onnx}[call]
    for junk in (None, 7, 2.5, [4], {"a": 1}, object(), b"x", "no such file"):
        with pytest.raises(cf.Error):
            function(junk)
