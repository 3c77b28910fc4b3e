"""Operations that vanish in the one before them: normalisations, activations, what passes on."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np
from numpy.typing import NDArray

PASSING = ("Identity", "Dropout")
ACTIVATIONS = ("Relu", "Clip", "LeakyRelu", "Sigmoid", "Tanh", "Elu", "HardSigmoid", "HardSwish")
TAKING = ("Conv", "ConvTranspose", "Gemm", "BatchNormalization", "Add")
"""Operations that take an activation."""
INTO = ("Conv", "BatchNormalization")
"""Operations that take a factor and a summand for each channel."""


@dataclass(slots=True)
class RawOperation:
    """An operation before it is a node of a network."""

    name: str
    op: str
    inputs: list[str]
    outputs: list[str]
    attributes: dict[str, Any] = field(default_factory=dict)


class Folded:
    """A constant that is computed when it is asked for: ``np.asarray(folded)``."""

    def __init__(
        self, shape: Sequence[int], dtype: Any, compute: Callable[[], NDArray[Any]]
    ) -> None:
        self.shape, self.dtype = tuple(shape), np.dtype(dtype)
        self._compute = compute

    def __array__(self, dtype: Any = None, copy: bool | None = None) -> NDArray[Any]:  # noqa: FBT001  # numpy's
        del copy
        computed: NDArray[Any] = self._compute().astype(dtype or self.dtype)
        return computed


def folded(
    steps: Sequence[RawOperation],
    constants: dict[str, Any],
    outputs: Iterable[str],
    ranks: Mapping[str, int],
) -> list[RawOperation]:
    """The steps that are left; the constants they read are added.

    ``ranks`` has the number of dims of each value of which it is known.
    """
    return _Folder(steps, constants, outputs, ranks).run()


class _Folder:
    def __init__(
        self,
        steps: Sequence[RawOperation],
        constants: dict[str, Any],
        outputs: Iterable[str],
        ranks: Mapping[str, int],
    ) -> None:
        self.steps, self.constants, self.ranks = steps, constants, ranks
        self.outputs = set(outputs)
        self.renamed: dict[str, str] = {}
        self.made: dict[str, RawOperation] = {}
        self.count = Counter(name for step in steps for name in step.inputs)

    def run(self) -> list[RawOperation]:
        kept: list[RawOperation] = []
        for step in self.steps:
            step.inputs = [self.renamed.get(n, n) for n in step.inputs]
            step.outputs = [
                n for k, n in enumerate(step.outputs)
                if not k or n in self.outputs or self.count[n]
            ]  # fmt: skip
            if step.op == "Sum" and len(step.inputs) == 2:
                step.op = "Add"
            if self._passes(step) or self._scales(step) or self._activates(step):
                continue
            kept.append(step)
            self.made.update((n, step) for n in step.outputs)
        return kept

    def _before(self, step: RawOperation) -> RawOperation | None:
        """The step whose only reader this one is."""
        name = step.inputs[0] if step.inputs else ""
        before = self.made.get(name)
        if before is None or len(before.outputs) != 1 or name in self.outputs:
            return None
        return before if self.count[name] == 1 else None

    def _join(self, before: RawOperation, step: RawOperation) -> None:
        """The step's output is now what the one before writes."""
        old, new = before.outputs[0], step.outputs[0]
        del self.made[old]
        before.outputs[0] = new
        self.made[new] = before

    def _passes(self, step: RawOperation) -> bool:
        if step.op not in PASSING or len(step.outputs) != 1 or step.outputs[0] in self.outputs:
            return False
        source = step.inputs[0]
        self.renamed[step.outputs[0]] = source
        self.count[source] += self.count[step.outputs[0]] - 1
        return True

    def _activates(self, step: RawOperation) -> bool:
        before = self._before(step) if step.op in ACTIVATIONS and len(step.inputs) == 1 else None
        if before is None or before.op not in TAKING or "activation" in before.attributes:
            return False
        self._join(before, step)
        before.attributes["activation"] = step.op
        before.attributes |= {f"activation_{k}": v for k, v in step.attributes.items()}
        return True

    # --- one factor and one summand for each channel ----------------------------------------------

    def _scales(self, step: RawOperation) -> bool:
        if step.op in ("Mul", "Add") and step.inputs[0] in self.constants:
            step.inputs = step.inputs[::-1]
        before = self._before(step)
        if before is None or before.op not in INTO or "activation" in before.attributes:
            return False
        if any(s.attributes.get("training_mode") for s in (before, step)):
            return False  # its factors are those of the batch
        if any(name not in self.constants for name in before.inputs[1:]):
            return False
        affine = self._affine(step, self.constants[before.inputs[1]].shape[0])
        if affine is None or (before.op == step.op == "BatchNormalization"):
            return False
        self._take(before, *affine)
        self._join(before, step)
        return True

    def _affine(self, step: RawOperation, channels: int) -> tuple[Any, Any] | None:
        """Functions for the factor and the summand of each channel, if that is all a step does."""
        if step.op == "BatchNormalization" and len(step.inputs) == 5:
            names = step.inputs[1:]
            if any(n not in self.constants for n in names):
                return None
            epsilon = float(step.attributes.get("epsilon", 1e-5))
            factor, summand, mean, variance = (self.constants[n] for n in names)

            def scale() -> Any:
                return _exact(factor) / np.sqrt(_exact(variance) + epsilon)

            return scale, lambda: _exact(summand) - _exact(mean) * scale()
        if step.op not in ("Mul", "Add") or len(step.inputs) != 2:
            return None
        constant = self.constants.get(step.inputs[1])
        is_image = self.ranks.get(step.inputs[0]) == 4  # channels are third from the end
        if constant is None or not is_image or _channels(constant.shape) != channels:
            return None
        flat = np.asarray(constant).reshape(-1)
        if step.op == "Mul":
            return lambda: flat, lambda: np.zeros_like(flat)
        return lambda: np.ones_like(flat), lambda: flat

    def _take(self, step: RawOperation, scale: Any, shift: Any) -> None:
        """(w * x + b) * scale + shift has the weights w * scale, and b * scale + shift."""
        weights, *biases = (self.constants[n] for n in step.inputs[1:3])
        first, *others = weights.shape
        bias = biases[0] if biases else np.zeros(first)
        factor = f"{step.name}.{'weights' if step.op == 'Conv' else 'scale'}"
        summand = f"{step.name}.bias"

        def scaled() -> Any:
            return _exact(weights) * scale().reshape(-1, *[1] * len(others))

        def shifted() -> Any:
            return _exact(bias) * scale() + shift()

        self.constants[factor] = Folded(weights.shape, weights.dtype, scaled)
        self.constants[summand] = Folded((first,), weights.dtype, shifted)
        step.inputs[1:3] = factor, summand


def _exact(constant: Any) -> Any:
    """The numbers of a constant as f32, or as they are where that is wider."""
    return np.asarray(constant, np.result_type(constant.dtype, np.float32))


def _channels(shape: Sequence[int]) -> int:
    """C of ``(C, 1, 1)`` or ``(1, C, 1, 1)``, a number for each channel of 4 dimensions; else 0."""
    core = tuple(shape)[1:] if len(shape) == 4 and shape[0] == 1 else tuple(shape)
    return core[0] if len(core) == 3 and core[0] > 1 and core[1:] == (1, 1) else 0
