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


def test_a_library_is_found_in_any_one_folder() -> None:
    text = (ROOT / "scripts" / "setup.sh").read_text()
    function = text[text.index("has_library()") : text.index("# Wanted, not needed")]
    found = sorted(Path("/usr/lib").glob("*/lib*.so*"))
    if not found:
        pytest.skip("this system has no folders of libraries in /usr/lib")
    for name, status in ((found[0].name, 0), ("libnothing.so.0", 1)):
        done = subprocess.run(["/bin/sh", "-c", f"{function}\nhas_library {name}"], check=False)
        assert done.returncode == status


def test_the_folder_for_a_gpu_without_network(tmp_path: Path) -> None:
    """The library, the benchmark, wheels for a Python, the kernels, and a script to run there."""
    python, log = tmp_path / "python", tmp_path / "log"
    python.write_text(PYTHON.format(log=log, version="3.11"))
    python.chmod(0o755)
    made = tmp_path / "gpu"
    subprocess.run(
        ["/bin/sh", ROOT / "scripts" / "gpu_folder.sh", python, made],
        env={**os.environ, "FOR_PYTHON": "3.13", "PEERS": "cupy-cuda12x torch"},
        check=True, capture_output=True,
    )  # fmt: skip
    wheel, download, kernels = log.read_text().splitlines()
    assert wheel.endswith(f"-m pip wheel --quiet --no-deps -w {made}/wheels .")
    assert "--python-version 3.13 " in download
    assert download.endswith("pip cupy-cuda12x torch")
    assert kernels.endswith(f"-m bench gpu --ptx {made}/ptx")
    assert (made / "bench" / "ptx.py").exists()
    assert not (made / "bench" / "results").exists()
    subprocess.run(["/bin/sh", "-n", made / "run.sh"], check=True)
