"""What a process loads that finds its plans on disk: nothing that plans or renders."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

PROGRAM = """\
import sys
import clformats as cf
from clformats.problems.traits import Traits
from clformats.reorders import kept, planning, reorder
from clformats.schedule import Request

kept.SETTLED_NS = -(10**18)  # however shortly ago files were edited
src, dst = (cf.MemoryDesc((2, 17, 5, 4), "f32", name) for name in ("bfyx", "byxf"))
plan, made = planning.planned(Request(src, dst, Traits()))
assert plan.family == "scheduled" and "__kernel" in made.source
print(*sys.modules)
"""
PLANS = {"mako.template", "clformats.kernels.scheduled", "clformats.kernels.writer"}
"""What a process loads that plans and renders."""
NEVER = ("clformats.quantised", "clformats.recoding", "clformats.tuning", "clformats.networks",
         "clformats.pictures", "clformats.interop", "clformats.files", "clformats.solver",
         "mako", "argparse", "scipy", "torch", "pyopencl")  # fmt: skip


def loaded(folder: Path) -> set[str]:
    """The modules of a process that prepares a reorder, with its cache in a folder."""
    environ = os.environ | {"XDG_CACHE_HOME": str(folder)}
    environ.pop("PYOPENCL_NO_CACHE", None)
    done = subprocess.run(
        [sys.executable, "-c", PROGRAM], env=environ, capture_output=True, text=True, check=True
    )
    return set(done.stdout.split())


def test_a_second_process_loads_nothing_that_plans(tmp_path: Path) -> None:
    first, second = loaded(tmp_path), loaded(tmp_path)
    assert first >= PLANS
    assert not second & PLANS
    assert not [name for name in second if f"{name}.".startswith(tuple(f"{n}." for n in NEVER))]
