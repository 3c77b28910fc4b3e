"""What engines call their layouts, as a table: the engine's name, its version, the digits.

`clformats.notations` reads and prints these names. The table, `engines.txt`, has the version of the
engine that was read, and for what is no list of digits the reason.
"""

from __future__ import annotations

from functools import cache
from importlib import resources
from typing import NamedTuple


class EngineRow(NamedTuple):
    """A row of the table; ``digits`` begin with ! where there are none, but a reason."""

    engine: str
    version: str
    name: str
    dims: str
    digits: str


@cache
def rows() -> dict[str, EngineRow]:
    """The table, by the names as they are written here: ``MNN NC4HW4``."""
    lines = resources.files(__package__).joinpath("engines.txt").read_text("utf-8").splitlines()
    table = [EngineRow(*line.split("\t")) for line in lines if not line.startswith("#")]
    return {f"{row.engine} {row.name}": row for row in table}


def called(name: str) -> list[EngineRow]:
    """The rows of lists of digits that an engine calls ``name``, without regard to case."""
    return [
        row
        for row in rows().values()
        if row.name.lower() == name.lower() and not row.digits.startswith("!")
    ]
