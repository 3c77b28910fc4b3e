"""What a family of kernels is asked for: the one argument of each family's ``plan``."""

from __future__ import annotations

from dataclasses import dataclass

from .choices import RULES, Choices
from .problem import Problem
from .traits import Traits


@dataclass(frozen=True, slots=True)
class Request:
    """A problem that the family takes, the device, and what is not left to the rules."""

    problem: Problem
    traits: Traits
    choices: Choices = RULES

    @property
    def is_large(self) -> bool:
        """Whether so much is moved that stores are to pass by the cache."""
        return self.traits.streams(self.problem.nbytes)
