"""What is asked of a plan, as one value: `clformats.schedule.plan_for` needs nothing else."""

from __future__ import annotations

from dataclasses import dataclass

from ..problems.computation import Computation
from ..problems.traits import DEFAULT, Traits
from ..tensors.desc import MemoryDesc
from .choices import RULES, Choices


@dataclass(frozen=True, slots=True)
class Request:
    """Two tensors, the device, what is computed on the way, and what is not left to the rules.

    ``transform`` says whether values are moved or transformed, where the dims leave both open: see
    `clformats.values.transforms.between`.
    """

    src: MemoryDesc
    dst: MemoryDesc
    traits: Traits = DEFAULT
    computation: Computation | None = None
    transform: bool | None = None
    choices: Choices = RULES
