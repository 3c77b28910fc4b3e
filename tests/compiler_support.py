"""A compiler that ends or hangs its process at chosen kernels, for tests of the guard.

`faulty` makes a folder with a ``sitecustomize.py``, which each Python loads that starts with the
folder in PYTHONPATH: pyopencl's `build` there, or the first launch, or asking for the binary, does
what the variable ``FAULT`` says, to the sources whose hashes the variable ``VICTIMS`` names. Each
build is noted in the file ``BUILDS``.
"""

from __future__ import annotations

import hashlib
import os
from dataclasses import dataclass
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
CODE = """
import hashlib, os, time
import pyopencl as cl

def dies(program, where):
    fault, _, place = os.environ["FAULT"].partition(" at ")
    try:
        source = getattr(program, "_source", None) or program.get_info(cl.program_info.SOURCE)
    except cl.Error:
        return
    name = hashlib.sha256(source.encode()).hexdigest()
    with open(os.environ["BUILDS"], "a") as builds:
        print(where, name, os.getpid(), file=builds)
    if where == place and ("every" in os.environ["VICTIMS"] or name in os.environ["VICTIMS"]):
        os.write(2, os.environ["SAID"].encode())
        {"abort": os.abort, "exit": lambda: os._exit(8), "hang": lambda: time.sleep(1000),
         "fill": lambda: os._exit(1), "kill": lambda: os.kill(os.getpid(), 9)}[fault]()

build, get_info, launch = cl.Program.build, cl.Program.get_info, cl.enqueue_nd_range_kernel

def builds(self, *arguments, **more):
    dies(self, "build")
    return build(self, *arguments, **more)

def gives(self, wanted):
    if wanted == cl.program_info.BINARIES:
        dies(self, "binary")
    return get_info(self, wanted)

def launches(queue, kernel, *arguments, **more):
    dies(kernel.program, "launch")
    return launch(queue, kernel, *arguments, **more)

cl.Program.build, cl.Program.get_info, cl.enqueue_nd_range_kernel = builds, gives, launches
"""

NO_ROOM = "LLVM ERROR: IO failure on output stream: No space left on device\n"
"""What PoCL ends with on a full disk."""


@dataclass(frozen=True)
class Faulty:
    """The variables of processes with such a compiler, and what it was asked to build."""

    folder: Path

    def environ(self, fault: str, *victims: str) -> dict[str, str]:
        """The variables: ``fault`` is such as "abort at build"; victims are sources."""
        hashes = [hashlib.sha256(v.encode()).hexdigest() for v in victims] or ["every"]
        return {
            "PYTHONPATH": f"{self.folder}{os.pathsep}{ROOT}",
            "FAULT": fault,
            "VICTIMS": " ".join(hashes),
            "SAID": NO_ROOM if fault.startswith("fill") else "compiler: cannot emit physreg copy\n",
            "BUILDS": str(self.folder / "builds"),
        }

    def count(self, source: str, where: str = "build") -> int:
        """How many times a source was built, launched or its binary asked for."""
        line = f"{where} {hashlib.sha256(source.encode()).hexdigest()} "
        file = self.folder / "builds"
        return file.read_text().count(line) if file.exists() else 0


def faulty(folder: Path) -> Faulty:
    """Make the folder."""
    folder.mkdir()
    (folder / "sitecustomize.py").write_text(CODE)
    return Faulty(folder)
