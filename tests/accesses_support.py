"""What a GPU pays for the memory accesses of a kernel, counted without one.

The real kernel is compiled by clang for the host, with a call in front of each access, and some of
its work-groups run, a thread for each work-item (``tests/slow/accesses``). Work-items that run in
step on a GPU make one *request* together: for each we count the 32-byte sectors and the lines of
128 bytes that it touches, and in how many turns 32 banks of 4 bytes serve local memory.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from itertools import groupby
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

import clformats as cf
from bench.ptx import CLANG, LIBCLC
from clformats.kernels import render
from clformats.kernels.source import Launch
from tests.gpu_compilers_support import ran

HERE = Path(__file__).parent / "slow" / "accesses"
SECTOR, LINE, BANKS, BANK = 32, 128, 32, 4
IN_STEP = 32
ACCESS = np.dtype([
    ("group", "u4"), ("item", "u4"), ("bytes", "u4"), ("memory", "u4"), ("stores", "u4"),
    ("unused", "u4"), ("instruction", "u8"), ("at", "u8"),
])  # fmt: skip
Accesses = NDArray[Any]
"""Records of `ACCESS`, as run.c writes them."""
SOURCE, DESTINATION, LOCAL = range(3)
KERNEL = [
    "-x", "cl", "-cl-std=CL1.2", "-Xclang", "-finclude-default-header", "-Wno-everything", "-O1",
    "-fno-slp-vectorize", "-mf16c", "-fsanitize=kernel-address",
    "-Xclang", "-mlink-builtin-bitcode", "-Xclang", str(LIBCLC), "-include", str(HERE / "names.h"),
]  # fmt: skip
OUTLINED = (
    "-asan-instrumentation-with-call-threshold=0", "-asan-stack=0", "-asan-globals=0",
    "-asan-use-after-return=never", "-asan-instrument-dynamic-allocas=0",
)  # fmt: skip


def accesses(plan: cf.Plan, folder: Path, groups: int = 6) -> Accesses:
    """The accesses of some groups of a plan's kernel, spread evenly over the tensor."""
    made = render(plan)
    assert made is not None
    (folder / "kernel.cl").write_text(made.source)
    (folder / "run.c").write_text(driver(plan, made, spread(made.groups, groups)))
    flags = [word for flag in OUTLINED for word in ("-mllvm", flag)]
    objects = [str(folder / name) for name in ("kernel.o", "run.o")]
    program, out = str(folder / "run"), str(folder / "accesses")
    ran(CLANG, *KERNEL, *flags, "-c", "-o", objects[0], str(folder / "kernel.cl"))
    ran(CLANG, "-O1", "-c", "-o", objects[1], str(folder / "run.c"))
    ran(CLANG, "-no-pie", "-pthread", "-o", program, *objects)
    ran(program, out)
    return np.fromfile(out, ACCESS)


def driver(plan: cf.Plan, made: Launch, groups: Sequence[int]) -> str:
    """The C of the program around a kernel."""
    p, number = plan.problem, "long" if made.wide else "int"
    macros = {
        "ITEMS": made.local_size,
        "SRC_BYTES": p.src.span_nbytes,
        "DST_BYTES": p.dst.span_nbytes,
        "GROUPS": ", ".join(map(str, groups)),
        "ARGUMENTS": "".join(f", {value!r}" for value in made.arguments),
    }
    types = "".join(f", {number}" for _ in made.arguments)
    lines = [f"#define {name} {value}" for name, value in macros.items()]
    return "\n".join([
        *lines, f"void reorder(const void *, void *{types});", f'#include "{HERE / "run.c"}"', "",
    ])  # fmt: skip


def spread(count: int, wanted: int) -> list[int]:
    """So many of ``count`` numbers, evenly spread, the first and the last among them."""
    if count <= wanted:
        return [*range(count)]
    return [k * (count - 1) // (wanted - 1) for k in range(wanted)]


@dataclass(frozen=True)
class Cost:
    """What the requests to one memory cost, loads or stores, for work-items in step.

    ``width``: bytes of the widest access. ``used`` are the bytes accessed, each once in a request.
    ``turns`` of the banks, and the ``fewest`` that could serve the same.
    """

    width: int = 0
    requests: int = 0
    used: int = 0
    sectors: int = 0
    lines: int = 0
    turns: int = 0
    fewest: int = 0

    @property
    def efficiency(self) -> float:
        """Bytes used, of those in the sectors that are touched."""
        return self.used / (SECTOR * self.sectors) if self.sectors else 1.0

    @property
    def conflict(self) -> float:
        """Turns of the banks, of the fewest that could do."""
        return self.turns / self.fewest if self.fewest else 1.0


def cost(found: Accesses, memory: int, *, stores: bool, step: int = IN_STEP) -> Cost:
    """What the accesses to a memory cost."""
    mine = found[(found["memory"] == memory) & (found["stores"] == stores)]
    every = [request_cost(one, local=memory == LOCAL) for one in requests(mine, step)]
    if not every:
        return Cost()
    width = int(mine["bytes"].max())
    total = np.array(every).sum(axis=0)
    return Cost(width, len(every), *map(int, total))


def group_share(found: Accesses, memory: int, *, stores: bool) -> float:
    """Bytes that groups use, of those in the sectors that they touch: as a cache sees them."""
    mine = found[(found["memory"] == memory) & (found["stores"] == stores)]
    groups = [mine[mine["group"] == number] for number in np.unique(mine["group"])]
    touched = sum(units(one, SECTOR).size for one in groups)
    return sum(units(one, 1).size for one in groups) / (SECTOR * touched) if touched else 1.0


def requests(found: Accesses, step: int) -> Iterable[Accesses]:
    """The accesses that work-items in step make together: of one instruction, each for the n-th
    time, by one group."""
    turn = np.zeros(len(found), "u8")
    order = np.lexsort((np.arange(len(found)), found["instruction"], found["item"], found["group"]))
    keys = found[order][["group", "item", "instruction"]]
    fresh = np.concatenate([[True], keys[1:] != keys[:-1]]) if len(keys) else np.zeros(0, bool)
    starts = np.maximum.accumulate(np.where(fresh, np.arange(len(keys)), 0))
    turn[order] = np.arange(len(keys)) - starts
    which = (found["group"], found["item"] // step, found["instruction"], turn)
    order = np.lexsort((found["item"], *reversed(which)))
    changes = np.zeros(max(0, len(found) - 1), bool)
    for key in which:
        changes |= key[order][1:] != key[order][:-1]
    return np.split(found[order], np.flatnonzero(changes) + 1) if len(found) else []


def request_cost(one: Accesses, *, local: bool) -> tuple[int, ...]:
    """(bytes used, sectors, lines, turns, the fewest turns) of one request."""
    used = units(one, 1).size
    if local:
        return (used, 0, 0, *turns(one))
    return used, units(one, SECTOR).size, units(one, LINE).size, 0, 0


def units(one: Accesses, unit: int) -> NDArray[np.uint64]:
    """The different units of so many bytes that some accesses touch."""
    most = int(one["bytes"].max())
    steps = np.arange(0, most, min(unit, most), dtype=np.uint64)
    ends = np.minimum(steps[None, :], one["bytes"][:, None].astype(np.uint64) - 1)
    firsts = (one["at"][:, None] + ends) // unit
    lasts = (one["at"] + one["bytes"] - 1) // unit
    return np.unique(np.concatenate([firsts.ravel(), lasts]))


def turns(one: Accesses) -> tuple[int, int]:
    """In how many turns the banks serve a request, and the fewest possible.

    Accesses of 8 and 16 bytes are served in halves and quarters of the work-items, as on NVIDIA's;
    longer ones by instructions of 16 bytes, one after the other.
    """
    total = fewest = 0
    width = min(16, max(BANK, int(one["bytes"].max())))
    together = BANKS * BANK // width
    for begin in range(0, int(one["bytes"].max()), width):
        for _, part in groupby(one, key=lambda a: int(a["item"]) // together):
            words: set[int] = set()
            for a in part:
                at, end = int(a["at"]) + begin, int(a["at"] + a["bytes"])
                words |= {*range(at // BANK, -(-min(at + width, end) // BANK))}
            total += max(np.bincount([word % BANKS for word in words]))
            fewest += -(-len(words) // BANKS)
    return total, fewest
