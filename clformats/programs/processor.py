"""The processor of this machine, as the system describes it."""

from __future__ import annotations

import os
import platform
import re
from functools import cache
from pathlib import Path

_FACTS = ("model name", "cpu family", "model", "stepping", "CPU implementer", "CPU part")
_INSTRUCTIONS = ("flags", "Features")
MOST_BYTES = 1 << 14
"""Enough for the first core; there may be hundreds."""
HELD_BY = "CL_CONFIG_CPU_TARGET_ARCH"
"""The variable that holds Intel's CPU runtime to an older processor."""


@cache
def _first_core() -> dict[str, str]:
    try:
        with Path("/proc/cpuinfo").open("rb") as file:
            text = file.read(MOST_BYTES).decode(errors="replace")
    except OSError:
        text = ""
    return dict(re.findall(r"^([^:\n]*?)\s*:\s*(.*)$", text.split("\n\n", 1)[0], re.MULTILINE))


@cache
def processor() -> str:
    """The processor and its cores, as the system names them.

    With family and model: a virtual machine may say no more than the maker.
    """
    first = _first_core()
    told = [f"{name} {first[name]}".removeprefix("model name ") for name in _FACTS if name in first]
    told = told or [platform.processor() or platform.machine()]
    return f"{', '.join(told)}, {os.cpu_count()} cores"


def instructions() -> str:
    """What programs for this CPU may be compiled for: its instructions, and what holds them back.

    A CPU's name in OpenCL does not tell: guests of one host are all named "AMD EPYC", and Intel's
    runtime ends a process that loads a program of another processor.
    """
    first = _first_core()
    told = next((first[name] for name in _INSTRUCTIONS if name in first), "")
    told = told or platform.processor()  # which starts a process
    return f"{told} {os.environ.get(HELD_BY, '')}"
