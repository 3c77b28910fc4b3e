"""The kernels of `examples/plan_network.py`, one operation each, in every choice, against numpy."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np
import pytest

import clformats as cf
from clformats.networks.costs import held
from tests.networks_support import example
from tests.tiers import tiered

RNG = np.random.default_rng(3)


def given(*dims: int) -> Any:
    return RNG.standard_normal(dims, np.float32)


def one(
    op: str, arrays: list[Any], constants: list[Any], dims: tuple[int, ...], **attributes: Any
) -> cf.Network:
    """A network of one operation."""
    net = cf.Network()
    names = [f"x{k}" for k in range(len(arrays))]
    for name, array in zip(names, arrays, strict=True):
        net.value(name, array.shape)
        net.fix(name, "bfyx")
    for k, array in enumerate(constants):
        net.value(f"w{k}", array.shape, constant=array)
        names.append(f"w{k}")
    net.value("y", dims)
    net.node("n", names, ["y"], op, **attributes)
    return net


def found(net: cf.Network, arrays: list[Any], stream: cf.Stream) -> Iterator[Any]:
    """What the kernels compute, in each of their choices."""
    ready = example.kernels.apply(net)
    for way in range(len(ready.nodes["n"].choices)):
        plan = cf.propagate(held(ready, way), reorder_cost=lambda *_: 0.0)
        run = plan.schedule(stream.engine, example.launch)
        yield run(stream, **{f"x{k}": a for k, a in enumerate(arrays)})["y"].numpy()


@pytest.mark.parametrize(("width", "group"), [(1, 0), (4, 4)])
@pytest.mark.parametrize(
    ("groups", "inputs", "outputs"),
    tiered([(2, 6, 16), (12, 12, 12), (2, 8, 20)], [(2, 6, 16), (12, 12, 12)]),
)
def test_convolutions_in_groups(
    groups: int, inputs: int, outputs: int, width: int, group: int, stream: cf.Stream,
    monkeypatch: pytest.MonkeyPatch,
) -> None:  # fmt: skip
    image, weights, bias = (
        given(2, inputs, 9, 7),
        given(outputs, inputs // groups, 3, 3),
        given(outputs),
    )
    net = one("Conv", [image], [weights, bias], (2, outputs, 5, 4), pads=[1] * 4, strides=[2, 2],
              group=groups, activation="Relu")  # fmt: skip
    setting = {example.problem(net.nodes["n"]): example.Setting(width, group)}
    monkeypatch.setattr(example, "tuned", setting)
    padded = np.pad(image, [(0, 0), (0, 0), (1, 1), (1, 1)])
    windows = np.lib.stride_tricks.sliding_window_view(padded, (3, 3), axis=(2, 3))[:, :, ::2, ::2]
    parts = zip(np.split(windows, groups, 1), np.split(weights, groups), strict=True)
    summed = np.concatenate([np.einsum("bihwyx,oiyx->bohw", w, f) for w, f in parts], 1)
    wanted = np.maximum(summed + bias[:, None, None], 0)
    for result in found(net, [image], stream):
        assert np.allclose(result, wanted, atol=1e-4)


def test_normalisation_over_channels(stream: cf.Stream) -> None:
    image = given(1, 11, 4, 5)
    net = one("LRN", [image], [], image.shape, size=4, alpha=0.5, beta=0.75, bias=2.0)
    squares = np.pad(image**2, [(0, 0), (1, 2), (0, 0), (0, 0)])
    near = sum(squares[:, k : k + 11] for k in range(4))
    for result in found(net, [image], stream):
        assert np.allclose(result, image / (2 + 0.5 / 4 * near) ** 0.75, rtol=1e-4)


def test_batch_normalisation(stream: cf.Stream) -> None:
    image = given(1, 11, 4, 5)
    scale, shift, mean, variance = constants = [np.abs(given(11)) + 0.5 for _ in range(4)]
    net = one("BatchNormalization", [image], constants, image.shape, activation="Relu")
    factor = (scale / np.sqrt(variance + 1e-5))[:, None, None]
    wanted = np.maximum((image - mean[:, None, None]) * factor + shift[:, None, None], 0)
    for result in found(net, [image], stream):
        assert np.allclose(result, wanted, atol=1e-4)


def test_a_concatenation_that_is_a_copy(stream: cf.Stream) -> None:
    arrays = [given(2, n, 4, 5) for n in (5, 8, 3)]
    net = one("Concat", arrays, [], (2, 16, 4, 5), axis=1)
    for result in found(net, arrays, stream):
        assert np.array_equal(result, np.concatenate(arrays, 1))
