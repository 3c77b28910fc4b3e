"""First uses of 40 of a network's reorders: with nothing cached, and in a second process.

Each number is also given in builds of a trivial program, so that machines can be compared. A first
use is all from the two descriptors to the moved bytes. What a process takes before, from its start
until it has an engine, is a number of its own.
"""

from __future__ import annotations

import argparse
import json
import os
import random
import subprocess
import sys
import tempfile
import uuid
from time import perf_counter
from typing import Any

import numpy as np

import clformats as cf
from clformats.programs.background import background
from tests.workload import reorders

COUNT = 40
LARGEST = 64 << 20
"""Bytes that a reorder moves at the most."""
TRIVIAL = "typedef int t{}; __kernel void put(__global int *p) {{ p[get_global_id(0)] = 1; }}"
MS = 1e3


def main(arguments: list[str]) -> int:
    """Two processes with a cache folder of their own, one after the other."""
    parser = argparse.ArgumentParser(prog="python -m bench first", description=__doc__)
    parser.add_argument("--device", metavar="NAME", default="", help="a text in the device's name")
    parser.add_argument("--wait", action="store_true", help="wait for each reorder's own program")
    options = parser.parse_args(arguments)
    heads = (
        f"{'trivial':>10}{'start':>10}{'40 uses':>10}{'ratio':>8}{'programs':>10}{'all built':>11}"
    )
    print(f"{'':16}{heads}")
    command = [sys.executable, "-m", "bench.network", options.device, str(options.wait)]
    with tempfile.TemporaryDirectory() as folder:
        environ = os.environ | {"XDG_CACHE_HOME": folder, "POCL_CACHE_DIR": f"{folder}/pocl"}
        environ.pop("PYTHONDONTWRITEBYTECODE", None)  # users have the library's bytecode
        for name in ("nothing cached", "second process"):
            now = [*command, str(perf_counter())]
            done = subprocess.run(now, env=environ, capture_output=True, text=True, check=False)
            if done.returncode:
                print(f"bench first: {done.stderr}", file=sys.stderr)
                return 1
            found = json.loads(done.stdout)
            trivial, uses = found["trivial"], found["uses"]
            print(
                f"{name:16}{trivial * MS:7.0f} ms{found['start'] * MS:7.0f} ms{uses * MS:7.0f} ms"
                f"{uses / trivial:8.2f}{found['programs']:10}{found['later'] * MS:8.0f} ms"
            )
    return 0


def first_uses(engine: cf.Engine, *, wait: bool) -> dict[str, Any]:
    """Seconds of a trivial build, of 40 first uses, and until their own programs are built."""
    stream = cf.Stream(engine)
    fitting = [r for r in reorders() if r[1].nbytes + r[2].nbytes <= LARGEST]
    drawn = random.Random(COUNT).sample(fitting, COUNT)  # noqa: S311  # cases, not secrets
    found = {"trivial": _trivial(stream), "uses": 0.0}
    made = []
    for _, src, dst in drawn:
        memories = [cf.Memory(desc, engine) for desc in (src, dst)]
        for memory in memories:
            with memory.map("w") as flat:
                flat.view(np.uint8)[:] = 1
        start = perf_counter()
        made.append(cf.Reorder(src, dst, engine, wait=wait))
        made[-1](stream, *memories).wait()
        found["uses"] += perf_counter() - start
    found["programs"] = engine.programs_built
    start = perf_counter()
    for reorder in made:
        reorder.wait()
    background.later(lambda: None).result()  # what is kept on disk is kept in the background
    return found | {"later": perf_counter() - start}


def _trivial(stream: cf.Stream) -> float:
    """Seconds to build and launch a program that no cache knows."""
    import pyopencl as cl

    start = perf_counter()
    program: Any = cl.Program(stream.context, TRIVIAL.format(uuid.uuid4().hex))
    kernel = program.build(cache_dir=False).put
    buffer = cl.Buffer(stream.context, cl.mem_flags.READ_WRITE, 64)
    kernel(stream.queue, (1,), (1,), buffer).wait()
    return perf_counter() - start


if __name__ == "__main__":
    name, waits, began = sys.argv[1:]
    engine = cf.Engine(name or None)
    start = perf_counter() - float(began)  # one clock for all processes of a machine
    print(json.dumps(first_uses(engine, wait=waits == "True") | {"start": start}))
