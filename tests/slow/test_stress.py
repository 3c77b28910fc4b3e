"""Two processes of eight threads each, for ten minutes; CLFORMATS_STRESS_SECONDS says otherwise."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

import clformats as cf

ROOT = Path(__file__).resolve().parents[2]
SECONDS = float(os.environ.get("CLFORMATS_STRESS_SECONDS", "600"))
STEPS = ("reorder", "chain", "map", "part", "free")


@pytest.mark.timeout(SECONDS + 900)
def test_everything_at_once(engine: cf.Engine) -> None:
    script = str(ROOT / "tests" / "slow" / "stress.py")
    started = [
        subprocess.Popen(
            [sys.executable, script, engine.device.platform.name, str(SECONDS), str(seed)],
            env={**os.environ, "PYTHONPATH": str(ROOT)},
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
        )
        for seed in range(2)
    ]
    for process in started:
        out, said = process.communicate(timeout=SECONDS + 600)
        print(out)  # noqa: T201  # the figures
        assert process.returncode == 0, f"{said}\n{out}"
        figures = json.loads(out)
        assert min(figures["steps"][step] for step in STEPS) > SECONDS / 10
        middle, last = (figures[f"resident, median of the {third} third"]
                        for third in ("middle", "last"))  # fmt: skip
        assert last < middle * 1.02 + (4 << 20), "memory grows"
        assert figures["alive in the context at the end"] == 1
