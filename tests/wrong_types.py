"""Calling public functions with arguments of wrong types: what all of them must answer."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

import numpy as np

import clformats as cf

JUNK: dict[str, Any] = {
    "None": None,
    "int": -7,
    "float": 2.5,
    "nan": float("nan"),
    "str": "foo",
    "bytes": b"x",
    "list": [4],
    "ragged": [[1], [2, 3]],
    "dict": {"a": 1},
    "set": {1},
    "tuple": (1, "a"),
    "array": np.zeros(3),
    "class": cf.MemoryDesc,
    "object": object(),
    "function": len,
}
"""Values of every kind of type, by what they are called here."""


def answers(function: Callable[..., Any], right: Mapping[str, Any], parameter: str) -> set[str]:
    """The junk that the parameter takes; all other junk must be refused on purpose.

    On purpose is an `Error` of ours that tells what was got, and nothing else.
    """
    function(**right)
    taken = set()
    for name, value in JUNK.items():
        try:
            function(**{**right, parameter: value})
        except cf.Error as error:
            said = str(error)
            assert len(said) > 20, f"{function} {parameter}={name}: {said!r} helps nobody"
            assert "\n" not in said, f"{function} {parameter}={name}: {said!r} is not one line"
        except Exception as error:
            raise AssertionError(f"{function} {parameter}={name}: {error!r}") from error
        else:
            taken.add(name)
    return taken
