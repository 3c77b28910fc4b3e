"""Tables of kernels: CSV with a header, JSON with the same names, or a Python file.

::

    node,op,ins,outs,seconds,low,high,kernel
    conv1,,nchw *,nChw16c,1.2e-4,,,conv_16c
    ,Relu,nChw16c,nChw16c,2e-5,,,relu

``node`` or ``op`` says for which nodes a row is; formats stand with spaces between, ``*`` for any;
digits with spaces stand in quotes, as in a shell: ``'n h | c/4 w | c%4' *``.
A row for an operation counts for every node of it with as many inputs and outputs of these ranks.
JSON is a list of objects with these names, where ``ins`` and ``outs`` may be lists.
"""

from __future__ import annotations

import csv
import json
import runpy
import shlex
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from difflib import get_close_matches
from pathlib import Path
from typing import Any

from ..errors import InvalidNetwork
from .choice import Choice
from .cost import Cost
from .graph import Network, Node, checked_choices
from .named import ANY

FIELDS = ("node", "op", "ins", "outs", "seconds", "low", "high", "kernel", "workspace")


@dataclass(frozen=True, slots=True)
class TableRow:
    """A choice for one node, or for every node of an operation that it fits, and where it stands.

    One of ``node`` and ``op`` is empty.
    """

    where: str
    node: str
    op: str
    choice: Choice

    def choices(self, node: Node) -> Iterator[Choice]:
        """The choice, if it fits a node: a row may be for values of other ranks."""
        if not self._misfit(node):
            yield self.choice

    def unused(self, network: Network) -> str:
        """Why no node of a network can use the row, or the empty string."""
        by_name = bool(self.node)
        wanted = self.node or self.op
        nodes = network.nodes.values()
        known = list(dict.fromkeys(n.name if by_name else n.op for n in nodes))
        if wanted not in known:
            near = get_close_matches(wanted, known, n=3, cutoff=0.5)
            what = "node" if by_name else "operation"
            return f"{self.where}: the network has no {what} {wanted!r}" + (
                f"; it has {', '.join(near)}" if near else ""
            )
        reasons = [self._misfit(n) for n in nodes if wanted == (n.name if by_name else n.op)]
        return f"{self.where}: {reasons[0]}" if all(reasons) else ""

    def _misfit(self, node: Node) -> str:
        """Why the choice does not fit a node, or the empty string."""
        try:
            checked_choices(node, [self.choice])
        except InvalidNetwork as error:
            return str(error).replace(", choice 0", "")
        return ""


def rows(file: Path) -> list[TableRow]:
    """The rows of a table in CSV or JSON. Raises `InvalidNetwork`, naming the line."""
    try:
        text = file.read_text(encoding="utf-8")
    except (OSError, UnicodeDecodeError) as error:
        raise _unreadable(file, error) from error
    given = _json_rows(file, text) if file.suffix == ".json" else _csv_rows(file, text)
    found = []
    for where, row in given:
        try:
            found.append(_row(where, row))
        except InvalidNetwork as error:
            raise InvalidNetwork(f"{where}: {error}") from None
    if not found:
        raise InvalidNetwork(f"{file} has no row: expected the columns {', '.join(FIELDS)}")
    return found


def from_python(file: Path) -> Any:
    """What a Python file calls ``kernels``; None where it defines no such name."""
    try:
        file.read_bytes()
    except OSError as error:
        raise _unreadable(file, error) from error
    return runpy.run_path(str(file)).get("kernels")


def _unreadable(file: Path, error: Exception) -> InvalidNetwork:
    return InvalidNetwork(f"cannot read the kernels of {file}: {error}")


def _csv_rows(file: Path, text: str) -> Iterator[tuple[str, Mapping[str, Any]]]:
    reader = csv.DictReader(text.splitlines())
    _check_fields(f"{file}, line 1", reader.fieldnames or ())
    for row in reader:
        where = f"{file}, line {reader.line_num}"
        if None in row or None in row.values():
            raise InvalidNetwork(f"{where}: expected {len(reader.fieldnames or ())} columns")
        yield where, row


def _json_rows(file: Path, text: str) -> Iterator[tuple[str, Mapping[str, Any]]]:
    try:
        rows = json.loads(text)
    except ValueError as error:
        raise InvalidNetwork(f"{file} is no JSON: {error}") from error
    if not isinstance(rows, list):
        raise InvalidNetwork(f"{file}: expected a list of objects, got {type(rows).__name__}")
    for number, row in enumerate(rows):
        where = f"{file}, entry {number}"
        if not isinstance(row, dict):
            raise InvalidNetwork(f"{where}: expected an object, got {row!r}")
        _check_fields(where, row)
        yield where, row


def _check_fields(where: str, names: Any) -> None:
    unknown = [n for n in names if n not in FIELDS]
    missing = {"ins", "outs"} - set(names)
    if unknown or missing or not {"node", "op"} & set(names):
        raise InvalidNetwork(
            f"{where}: got the columns {', '.join(map(str, names))}; expected node or op, ins, "
            f"outs, seconds, and perhaps low, high, kernel, workspace"
        )


def _row(where: str, row: Mapping[str, Any]) -> TableRow:
    node, op = row.get("node") or "", row.get("op") or ""
    if not node and not op:
        raise InvalidNetwork("says neither node nor op")
    return TableRow(where, node, "" if node else op, _choice(row))


def _choice(row: Mapping[str, Any]) -> Choice:
    found = {name: _number(row, name) for name in ("seconds", "low", "high")}
    known = {name: number for name, number in found.items() if number is not None}
    cost = Cost(**known, source="measured") if "seconds" in known else None
    ins, outs = (_formats(row[side]) for side in ("ins", "outs"))
    texts = [f for f in outs if f is not None]
    if len(texts) < len(outs):
        raise InvalidNetwork("an output is in a concrete format, got *")
    workspace = int(_number(row, "workspace") or 0)
    return Choice(ins, texts, cost, row.get("kernel") or None, workspace)


def _formats(given: Any) -> list[str | None]:
    try:
        names = shlex.split(given) if isinstance(given, str) else given
    except ValueError as error:
        raise InvalidNetwork(f"got the formats {given!r}: {error}") from None
    if not isinstance(names, list):
        raise InvalidNetwork(f"got the formats {given!r}, expected names")
    return [None if n in ("*", *ANY) else n for n in names]


def _number(row: Mapping[str, Any], name: str) -> float | None:
    text = row.get(name)
    if text in (None, ""):
        return None
    try:
        return float(text)
    except (TypeError, ValueError):
        raise InvalidNetwork(f"{name}: got {text!r}, expected a number") from None
