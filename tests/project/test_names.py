"""One name, one thing: classes and constants, but for those listed here."""

from __future__ import annotations

import ast
from collections import defaultdict

from .test_layers import FILES, ROOT

LEFT = {
    "Buffer", "Finding", "Given", "Kernel", "LoggedTensor", "Node", "Placed", "Program", "Schedule",
    "Slot", "Tile",
}  # fmt: skip
"""Names that still stand for several classes: remove those that you rename, add none."""
DIFFER = {
    "ALIGNMENT", "ALL", "ANY", "CONVERTED", "COUNTS", "DEEPEST", "DEFAULT", "EXAMPLE",
    "FAILED", "FILES", "FOLDER", "HINT", "KEPT", "KINDS", "LANES", "LEAST", "LEAST_BYTES",
    "LETTERS", "LIMIT", "LOCK_SECONDS", "LONGEST", "MOST_BYTES", "NAMES", "NOTES", "PASSED",
    "PORTABLE", "ROUNDS", "ROWS", "RULES", "SCALE", "SCHEMA", "SEED", "SHOWN", "SUFFIX",
    "SWITCH", "TIME_LIMIT", "TYPES", "UNITS", "VERSION", "WORDS",
}  # fmt: skip
"""Constants of one name whose values differ between modules: remove what you rename, add none."""


def test_a_class_name_occurs_once() -> None:
    found: dict[str, list[str]] = defaultdict(list)
    for file in FILES:
        module = ".".join(file.relative_to(ROOT).with_suffix("").parts)
        for node in ast.walk(ast.parse(file.read_text(encoding="utf-8"))):
            if isinstance(node, ast.ClassDef):
                found[node.name].append(module)
    several = {name: where for name, where in found.items() if len(where) > 1}
    assert not {n: w for n, w in several.items() if n not in LEFT}, "say what it is of"


def test_constants_of_one_name_have_one_value() -> None:
    found: dict[str, set[str]] = defaultdict(set)
    for file in FILES:
        for node in ast.parse(file.read_text(encoding="utf-8")).body:
            if not isinstance(node, ast.Assign | ast.AnnAssign) or node.value is None:
                continue
            for target in node.targets if isinstance(node, ast.Assign) else [node.target]:
                if isinstance(target, ast.Name) and target.id.isupper() and target.id[0] != "_":
                    found[target.id].add(ast.unparse(node.value))
    differ = {name for name, values in found.items() if len(values) > 1}
    assert not differ - DIFFER, "say what it is of"
