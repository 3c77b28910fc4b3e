"""Which cases of a long list the fast tier runs; the slow tier runs the others."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import pytest


def tiered(cases: Sequence[Any], fast: Sequence[Any]) -> list[Any]:
    """The cases as parameters; those that are not among ``fast`` carry the marker ``slow``.

    Such a list carries ``pytest.mark.sampled(1)`` where its module is sampled, so that no case of
    the fast tier is left out.
    """
    return [
        pytest.param(
            *(case if isinstance(case, tuple) else (case,)),
            marks=() if case in fast else (pytest.mark.slow,),
        )
        for case in cases
    ]


def crossed(names: Sequence[str]) -> list[Any]:
    """Every pair of names as parameters: in the fast tier each name is once first, once second."""
    half = len(names) // 2
    diagonal = list(zip(names, [*names[half:], *names[:half]], strict=True))
    return tiered([(a, b) for a in names for b in names], diagonal)
