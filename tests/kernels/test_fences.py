"""No kernel reads or writes beyond its memory: pages around it may not be touched."""

from __future__ import annotations

import os
import subprocess
import sys

import pytest

from tests.fences_support import CASES, MAPS, SIZES, SWEPT


@pytest.mark.skipif(os.name != "posix", reason="pages are protected by mprotect")
def test_nothing_beyond_its_memory_is_touched() -> None:
    """A process that dies tells the case that it died of in its last line."""
    command = [sys.executable, "-m", "tests.fences_support"]
    run = subprocess.run(command, check=False, capture_output=True, text=True)
    assert run.returncode == 0, (run.stdout.splitlines()[-1:], run.stderr)
    assert len(run.stdout.splitlines()) == 3 * (len(CASES) + len(MAPS)) + len(SIZES) * len(SWEPT)
