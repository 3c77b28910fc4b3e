"""`scripts/setup.sh`, with a Python that only writes down what it is asked."""

from __future__ import annotations

import os
import shutil
import subprocess
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]
PYTHON = """#!/bin/sh
echo "$0 $*" >>"{log}"
case "$*" in
*"-m venv"*) mkdir -p .venv/bin && cp "$0" .venv/bin/python ;;
*version_info*implementation*) echo "{version}" ;;
esac
exit 0
"""


class Clone:
    """A folder with what the script reads, and Pythons of some versions."""

    def __init__(self, folder: Path) -> None:
        self.folder, self.log = folder, folder / "log"
        (folder / "scripts").mkdir()
        shutil.copy(ROOT / "scripts" / "setup.sh", folder / "scripts")
        shutil.copy(ROOT / "pyproject.toml", folder)

    def python(self, version: str) -> Path:
        file = self.folder / f"python-{version}"
        file.write_text(PYTHON.format(log=self.log, version=version))
        file.chmod(0o755)
        return file

    def setup(self, goal: str, python: Path) -> tuple[str, list[str]]:
        """What the script prints, and the packages that it asks pip for."""
        self.log.write_text("")
        done = subprocess.run(
            ["/bin/sh", self.folder / "scripts" / "setup.sh", goal],
            env={**os.environ, "PYTHON": str(python), "SETUP_NO_APT": "1"},
            capture_output=True, text=True, check=True,
        )  # fmt: skip
        asked = [line for line in self.log.read_text().splitlines() if "pip install" in line]
        return done.stdout, [line.rpartition(" ")[2] for line in asked]


@pytest.fixture
def clone(tmp_path: Path) -> Clone:
    return Clone(tmp_path)


def test_the_demo_installs_what_it_needs_and_no_more(clone: Clone) -> None:
    python = clone.python("3.11")
    said, packages = clone.setup("demo", python)
    assert packages == [".[demo]"]
    assert "about 110 MB" in said
    assert clone.setup("demo", python) == ("", [])
    assert clone.setup("python", python)[1] == [".[dev,demo]"]
    assert clone.setup("demo", python) == ("", [])


def test_another_python_makes_another_environment(clone: Clone) -> None:
    clone.setup("demo", clone.python("3.11"))
    said, packages = clone.setup("demo", clone.python("3.12"))
    assert "another Python" in said
    assert packages == [".[demo]"]
    assert "3.12" in (clone.folder / ".venv" / "bin" / "python").read_text()
