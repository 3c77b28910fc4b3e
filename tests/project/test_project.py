"""The project's own rules are really on: lint, types, and what a wheel holds.

A rule set that a later edit switched off by accident still says "All checks passed". So bad code is
shown to the tools under the project's configuration, and they must complain.
"""

from __future__ import annotations

import json
import subprocess
import sys
import tarfile
from functools import cache
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]

# Each line breaks at least one rule; the codes that must be reported stand beside it.
BAD_CODE = '''\
import os, sys                                    # E401 F401
from typing import List                           # UP035


def Compute(values, scale=[]):                    # N802 ANN001 ANN201 B006 D103
    print(values)                                 # T201
    if values == None:                            # E711
        return None
    try:
        result = eval("1")                        # S307
    except:                                       # E722
        pass
    for i in range(len(values)):
        unused = lambda x: x                      # E731 F841
    return open("f").read()                       # PTH123


def late(limit: int) -> int:
    """Assert in the library."""
    assert limit > 0                              # S101
    raise ValueError("x" * limit) from NotImplemented  # noqa
'''
BAD_CODES = {
    *("E401", "F401", "UP035", "N802", "ANN001", "ANN201", "B006", "D103", "T201", "E711"),
    *("S307", "E722", "E731", "F841", "PTH123", "S101", "PGH004"),
}

# One code of mypy --strict and of the project's extra checks for each function.
BAD_TYPES = """\
from typing import Any
import numpy as np
def untyped(x): return x
def generic(x: list) -> None: ...
def returns_any(x: Any) -> int: return x.y
def wrong() -> int: return "text"
def calls() -> None: untyped(1)
def ignores() -> int: return 1  # type: ignore
def maybe(flag: bool) -> int:
    if flag: value = 1
    return value
def never(x: int) -> int:
    if isinstance(x, str): return 2
    return x
def array(x: np.ndarray) -> None: ...
"""
BAD_TYPE_CODES = {
    "no-untyped-def",
    "type-arg",
    "no-any-return",
    "return-value",
    "no-untyped-call",
    "unused-ignore",
    "possibly-undefined",
    "unreachable",
}


def tool(name: str, *arguments: str, text: str = "") -> subprocess.CompletedProcess[str]:
    """Run one of the development tools in the project's folder."""
    pytest.importorskip(name, reason=f"{name} is not installed; pip install -e '.[dev]'")
    return subprocess.run(
        [sys.executable, "-m", name, *arguments],
        cwd=ROOT,
        input=text,
        capture_output=True,
        text=True,
        check=False,
    )


def ruff_codes(file: str, text: str) -> set[str]:
    """The rules that ruff reports for this text, as if it stood in this file."""
    done = tool(
        "ruff",
        "check",
        "--no-cache",
        "--output-format=json",
        "--stdin-filename",
        file,
        "-",
        text=text,
    )
    return {entry["code"] for entry in json.loads(done.stdout)}


@cache
def enabled_rules(file: str) -> frozenset[str]:
    """The codes of every rule that is on for a file of the project."""
    settings = tool("ruff", "check", "--no-cache", "--show-settings", file).stdout
    block = settings.split("linter.rules.enabled = [", 1)[1].split("]", 1)[0]
    return frozenset(
        line.rsplit("(", 1)[1].split(")")[0] for line in block.splitlines() if "(" in line
    )


def test_ruff_reports_bad_code() -> None:
    assert ruff_codes("clformats/desc.py", BAD_CODE) >= BAD_CODES


@pytest.mark.parametrize(
    ("file", "allowed"),
    [
        ("clformats/cli/doctor.py", {"T201"}),
        ("tests/project/test_project.py", {"S101", "D103"}),
    ],
)
def test_exceptions_for_a_folder_are_the_intended_ones(file: str, allowed: set[str]) -> None:
    assert BAD_CODES - ruff_codes(file, BAD_CODE) == allowed


def test_nearly_every_rule_is_on_for_the_library() -> None:
    rules = enabled_rules("clformats/__init__.py")
    families = {
        "A",
        "ANN",
        "ARG",
        "B",
        "C4",
        "D",
        "E",
        "F",
        "I",
        "N",
        "PL",
        "PTH",
        "RUF",
        "S",
        "UP",
    }
    assert all(any(rule.startswith(family) for rule in rules) for family in families)
    assert len(rules) > 700
    assert {"C901", "PLR0912", "PLR0915", "ANN206", "PGH003", "RUF100", "TD002"} <= rules


def test_only_the_listed_rules_are_off() -> None:
    """Everything that is off is named in pyproject.toml, with its reason on the same line."""
    text = (ROOT / "pyproject.toml").read_text(encoding="utf-8")
    assert 'select = ["ALL"]' in text
    section = text.split("[tool.ruff.lint]", 1)[1].split("[tool.ruff.lint.pydocstyle]", 1)[0]
    ignores = [line for line in section.splitlines() if line.startswith("    ")]
    assert all("#" in line for line in ignores), "an ignored rule without its reason"
    assert len(ignores) < 40


def test_mypy_reports_bad_types(tmp_path: Path) -> None:
    snippet = tmp_path / "bad_types.py"
    snippet.write_text(BAD_TYPES)
    done = tool("mypy", "--cache-dir=/dev/null", "--no-error-summary", str(snippet))
    codes = {line.rsplit("[", 1)[-1].rstrip("]") for line in done.stdout.splitlines()}
    assert codes >= BAD_TYPE_CODES, done.stdout + done.stderr


def test_no_file_of_the_library_is_excused() -> None:
    """No file-level switch turns lint or types off for a whole file."""
    switches = ("# ruff: " + "noqa", "# flake8: " + "noqa", "# mypy: " + "ignore-errors")
    files = [*ROOT.glob("clformats/**/*.py"), *ROOT.glob("tests/**/*.py")]
    excused = [
        str(file.relative_to(ROOT))
        for file in files
        if any(switch in file.read_text(encoding="utf-8") for switch in switches)
    ]
    assert excused == []


def test_mypy_excuses_only_other_peoples_packages() -> None:
    text = (ROOT / "pyproject.toml").read_text(encoding="utf-8")
    overrides = text.split("[[tool.mypy.overrides]]")[1:]
    assert "ignore_errors" not in text
    assert all("clformats" not in block.split("\n[")[0] for block in overrides)


def test_ci_runs_what_a_developer_runs() -> None:
    script = ROOT / ".ci" / "run"
    assert script.stat().st_mode & 0o111, ".ci/run must be executable"
    assert "make test" in script.read_text(encoding="utf-8")


def test_the_oldest_versions_are_those_that_pyproject_allows() -> None:
    done = subprocess.run(
        ["/bin/sh", ROOT / "scripts/lowest.sh", "--pins"],
        capture_output=True, text=True, check=True,
    )  # fmt: skip
    text = (ROOT / "pyproject.toml").read_text(encoding="utf-8")
    listed = text.partition("\ndependencies = [\n")[2].partition("]")[0]
    wanted = [line.strip(' ",').replace(">=", "==") for line in listed.splitlines()]
    assert len(wanted) > 3
    assert done.stdout.split() == wanted


def test_the_sdist_has_all_that_git_has(tmp_path: Path) -> None:
    """So that the tests run in it, which read documents, scripts and examples."""
    pytest.importorskip("hatchling", reason="needs hatchling: pip install hatchling")
    listed = subprocess.run(
        ["/usr/bin/env", "git", "ls-files"], cwd=ROOT, capture_output=True, text=True, check=False
    )
    if listed.returncode:
        pytest.skip("this is no clone")
    subprocess.run(
        [sys.executable, "-m", "hatchling", "build", "-t", "sdist", "-d", tmp_path],
        cwd=ROOT, check=True, capture_output=True,
    )  # fmt: skip
    (file,) = tmp_path.iterdir()
    with tarfile.open(file) as archive:
        held = {name.partition("/")[2] for name in archive.getnames()}
    tracked = {name for name in listed.stdout.splitlines() if (ROOT / name).exists()}
    assert tracked <= held


@pytest.mark.parametrize("script", ["scripts/setup.sh", "scripts/lowest.sh", ".ci/run"])
def test_shell_scripts_parse(script: str) -> None:
    shell = "sh" if script.endswith(".sh") else "bash"
    done = subprocess.run(
        [shell, "-n", script], cwd=ROOT, capture_output=True, text=True, check=False
    )
    assert done.stderr == ""
