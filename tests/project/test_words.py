"""The glossary of CONTRIBUTING.md: names and words that it replaces do not come back."""

from __future__ import annotations

import ast
import re
import tokenize
from collections.abc import Iterator
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]
FILES = sorted((ROOT / "clformats").rglob("*.py"))
ROOMS = sorted({file.relative_to(ROOT / "clformats").parts[0] for file in FILES} - {"quantised"})
"""The rooms whose docstrings and comments keep to the glossary."""


def section(title: str) -> str:
    """The text below a title."""
    text = (ROOT / "CONTRIBUTING.md").read_text(encoding="utf-8")
    return text.split(f"## {title}\n", 1)[1].split("\n## ", 1)[0]


def rows() -> list[list[str]]:
    """The cells of the glossary's table."""
    table = [line for line in section("Glossary").splitlines() if line.startswith("|")][2:]
    return [[cell.strip() for cell in line.strip("|").split("|")] for line in table]


NAMES = {name for row in rows() for name in re.findall(r"`(\w+)`", row[2])}
WORDS = [word.strip() for row in rows() if "`" not in row[2] for word in row[2].split(",") if word]


def names_in(tree: ast.AST) -> Iterator[str]:
    """Every name that is given to something."""
    for node in ast.walk(tree):
        if isinstance(node, ast.ClassDef | ast.FunctionDef | ast.AsyncFunctionDef):
            yield node.name
        elif isinstance(node, ast.arg):
            yield node.arg
        elif isinstance(node, ast.Name):
            yield node.id
        elif isinstance(node, ast.Attribute):
            yield node.attr


def texts_in(file: Path) -> Iterator[str]:
    """Docstrings, also of constants, and comments."""
    with file.open("rb") as source:
        for token in tokenize.tokenize(source.readline):
            if token.type == tokenize.COMMENT or (
                token.type == tokenize.STRING and token.string.startswith('"""')
            ):
                yield token.string


def test_a_term_has_a_meaning_and_stands_once() -> None:
    terms = [term for row in rows() for term in row[0].split(", ")]
    assert len(terms) == len({*terms})
    assert 20 <= len(rows()) <= 30
    assert all(meaning for _, meaning, _ in rows())


def test_names_that_are_replaced_do_not_come_back() -> None:
    assert "launch_of" in NAMES
    for file in FILES:
        found = {*names_in(ast.parse(file.read_text(encoding="utf-8"))), file.stem}
        assert not found & NAMES, f"{file}: see the glossary of CONTRIBUTING.md"


@pytest.mark.parametrize("room", ROOMS)
def test_docstrings_and_comments_keep_to_the_glossary(room: str) -> None:
    replaced = re.compile(rf"\b({'|'.join(WORDS)})\b", re.IGNORECASE)
    assert "behind" in WORDS
    found = [
        f"{file.relative_to(ROOT)}: {hit[0]!r} in {text[:80]!r}"
        for file in FILES
        if file.relative_to(ROOT).parts[1] == room
        for text in texts_in(file)
        if (hit := replaced.search(text))
    ]
    assert not found


@pytest.mark.parametrize("title", ["A walk", "Where things are"])
def test_modules_that_are_named_are_there(title: str) -> None:
    """A name without a folder is in the folder of the one before it in its line."""
    count = 0
    for line in section(title).splitlines():
        folder = ""
        for path in re.findall(r"`([a-z_/]+\.(?:py|mako|txt))`", line):
            folder = path.rpartition("/")[0] or folder
            found = ROOT / "clformats" / folder / path.rpartition("/")[2]
            assert found.is_file(), f"{path} in {line}"
            count += 1
    assert count > 20
