"""Tables of kernels: CSV with a header, JSON with the same names, or a Python file.

::

    node,op,ins,outs,seconds,low,high,kernel
    conv1,,nchw *,nChw16c,1.2e-4,,,conv_16c
    ,Relu,nChw16c,nChw16c,2e-5,,,relu

``node`` or ``op`` says for which nodes a row is; formats stand with spaces between, ``*`` for any.
A row for an operation counts for every node of it with as many inputs and outputs of these ranks.
JSON is a list of objects with these names, where ``ins`` and ``outs`` may be lists.
"""

from __future__ import annotations

import csv
import json
import runpy
from collections.abc import Iterator, Mapping
from difflib import get_close_matches
from pathlib import Path
from typing import Any

from ..errors import InvalidNetwork
from .choice import Choice
from .cost import Cost, as_cost
from .graph import Network, Node, check_choice
from .kernels import Kernels
from .named import path_of

FIELDS = ("node", "op", "ins", "outs", "seconds", "low", "high", "kernel", "workspace")


def load(path: str | Path) -> Kernels:
    """The kernels of a file. Raises `InvalidNetwork`, naming the line."""
    file = path_of(path)
    try:
        if file.suffix == ".py":
            return _from_python(file)
        text = file.read_text(encoding="utf-8")
    except (OSError, UnicodeDecodeError) as error:
        raise InvalidNetwork(f"cannot read the kernels of {file}: {error}") from error
    result = Kernels(plain=True)
    rows = _json_rows(file, text) if file.suffix == ".json" else _csv_rows(file, text)
    count = 0
    for where, row in rows:
        _add(result, where, row)
        count += 1
    if not count:
        raise InvalidNetwork(f"{file} has no row: expected the columns {', '.join(FIELDS)}")
    return result


def _from_python(file: Path) -> Kernels:
    file.read_bytes()
    found = runpy.run_path(str(file)).get("kernels")
    if not isinstance(found, Kernels):
        raise InvalidNetwork(f"{file} defines no `kernels`, a cf.Kernels: got {found!r}")
    return found


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


def _add(kernels: Kernels, where: str, row: Mapping[str, Any]) -> None:
    node, op = row.get("node") or "", row.get("op") or ""
    if not node and not op:
        raise InvalidNetwork(f"{where}: says neither node nor op")
    choice = _choice(where, row)
    kernels.check(lambda network: _unused(network, where, node, op, choice))
    if node:
        kernels.node(node, [choice])
        return

    @kernels.of(op)
    def _(asked: Node) -> Iterator[Choice]:
        try:
            check_choice(asked, 0, choice)
        except InvalidNetwork:
            return  # a row for other ranks
        yield choice


def _unused(network: Network, where: str, node: str, op: str, choice: Choice) -> str:
    """Why no node of a network can use a row, or the empty string."""
    known = list(network.nodes) if node else list({n.op: 0 for n in network.nodes.values()})
    wanted = node or op
    if wanted not in known:
        near = get_close_matches(wanted, known, n=3, cutoff=0.5)
        what = "node" if node else "operation"
        return f"{where}: the network has no {what} {wanted!r}" + (
            f"; it has {', '.join(near)}" if near else ""
        )
    reasons = []
    for asked in (n for n in network.nodes.values() if wanted == (n.name if node else n.op)):
        try:
            check_choice(asked, 0, choice)
        except InvalidNetwork as error:
            reasons.append(str(error).replace(", choice 0", ""))
        else:
            return ""
    return f"{where}: {reasons[0]}"


def _choice(where: str, row: Mapping[str, Any]) -> Choice:
    seconds = _number(where, row, "seconds")
    cost = None
    if seconds is not None:
        low, high = _number(where, row, "low"), _number(where, row, "high")
        try:
            ends = [-1.0 if x is None else x for x in (low, high)]
            cost = Cost(seconds, ends[0], ends[1], "measured")
        except InvalidNetwork as error:
            raise InvalidNetwork(f"{where}: {error}") from None
        as_cost(cost, where)
    ins, outs = (_formats(where, row[side]) for side in ("ins", "outs"))
    workspace = _number(where, row, "workspace") or 0
    try:
        texts = [str(f) for f in outs if f is not None]
        if len(texts) < len(outs):
            raise InvalidNetwork("an output is in a concrete format, got *")  # noqa: TRY301
        return Choice(ins, texts, cost, row.get("kernel") or None, int(workspace))
    except InvalidNetwork as error:
        raise InvalidNetwork(f"{where}: {error}") from None


def _formats(where: str, given: Any) -> list[str | None]:
    names = given.split() if isinstance(given, str) else given
    if not isinstance(names, list):
        raise InvalidNetwork(f"{where}: got the formats {given!r}, expected names")
    return [None if n in ("*", None, "any") else n for n in names]


def _number(where: str, row: Mapping[str, Any], name: str) -> float | None:
    text = row.get(name)
    if text in (None, ""):
        return None
    try:
        return float(text)
    except (TypeError, ValueError):
        raise InvalidNetwork(f"{where}: {name}: got {text!r}, expected a number") from None
