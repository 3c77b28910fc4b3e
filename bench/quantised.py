"""Race quantised tensors against a copy of as many bytes, gguf's numpy and ggml's C code."""

from __future__ import annotations

import argparse
import json
import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass, field, replace
from pathlib import Path
from statistics import geometric_mean
from typing import Any

import numpy as np
from numpy.typing import NDArray

import clformats as cf
from clformats.timing import QUICK, Settings, Slot, Times, race

from . import rotation
from .cases import MB
from .machine import facts
from .options import expression
from .peers import ggml

Array = NDArray[Any]
SIZES = ((512, 512), (4096, 4096), (4224, 4608), (4096, 14336))
"""Rows and columns: small; powers of two; no stride a power of two; a large one."""
SETTINGS = Settings(rounds=5, warm=0.025, runs=5, seconds=20.0)
LARGE = 17_000_000
"""Bytes read and written from which on a tensor counts for the means."""


@dataclass(frozen=True, slots=True)
class Case:
    """A source and a destination, as ``type:format``."""

    src: str
    dst: str

    def __str__(self) -> str:
        return f"{self.src} -> {self.dst}"


_TYPES = ("q4_0", "q8_0", "mxfp4", "q4_K", "q6_K")
_GROUPED = ("u4g128", "s4g128")
_LAYOUTS = (
    ("q4_0", "gguf", "flat"), ("q4_0", "gguf", "transposed"), ("q4_0", "gguf", "trans4"),
    ("q4_K", "gguf", "flat"), ("u4g128", "gptq_v2", "awq_gemm"), ("u4g128", "awq_gemm", "plain"),
    ("u4g128", "gptq_v2", "plain"), ("mx_f8_e4m3", "plain", "swizzled"),
)  # fmt: skip
CASES = (
    *(Case(f"{name}:gguf", "f16:ab") for name in _TYPES),
    Case("q4_0:gguf", "f32:ab"),
    *(Case(f"{name}:{a}", f"{name}:{b}") for name, *two in _LAYOUTS for a, b in (two, two[::-1])),
    *(Case(f"{name}:plain", f"f16:{to}") for name in _GROUPED for to in ("BA16b16a", "ba")),
    *(Case("f16:ab", f"{name}:gguf") for name in ("q8_0", "q4_0", "mxfp4", "nvfp4")),
    Case("u4g128:plain", "f16:ab"),
    *(Case(f"u4g128:{name}", f"f16:{to}") for name in ("awq_gemm", "gptq") for to in ("ab", "ba")),
    Case("f16:ab", "mx_f4_e2m1:plain"),
    Case("f16:ab", "u4g128:plain"),
)  # fmt: skip
"""The rows of the table."""


def described(text: str, dims: tuple[int, int]) -> Any:
    """The descriptor of one side."""
    return cf.MemoryDesc(dims, *text.split(":"))


def filled(desc: Any) -> Array:
    """Bytes of a source: numbers, or any codes with scales that are no NaN."""
    rng = np.random.default_rng(7)
    if isinstance(desc, cf.MemoryDesc):
        return cf.pack(rng.standard_normal(desc.dims, np.float32).astype(desc.dtype.numpy), desc)
    fields = {}
    for name, f in desc.fields.items():
        if f.dtype.kind == "float" and f.bits >= 16:
            scales = rng.standard_normal(f.dims, np.float32) * 0.02
            fields[name] = scales.astype(f.dtype.numpy)
        else:
            low, high = (110, 130) if f.bits == 8 and f.dtype.kind != "signed" else (0, 1 << f.bits)
            codes = rng.integers(low, high, f.dims, np.int64)
            fields[name] = codes - (high >> 1) if f.dtype.kind == "signed" else codes
    return cf.pack(fields, desc)


def raced(
    case: Case, dims: tuple[int, int], engine: cf.Engine, how: Settings
) -> tuple[str, int, dict[str, Times]]:
    """The family, the bytes moved, and the times of all; after a look at small results.

    Raises `AssertionError` where bytes differ from the host's.
    """
    src, dst = described(case.src, dims), described(case.dst, dims)
    raw, stream = filled(src), cf.Stream(engine, profiling=not engine.traits.is_cpu)
    a, b = cf.Memory(src, engine), cf.Memory(dst, engine)
    with a.map("w") as flat:
        flat[:] = raw
    reorder = cf.Reorder(src, dst, engine)
    reorder(stream, a, b).wait()
    if raw.size < MB:
        check(raw, a.desc, b)
    moved = src.nbytes + dst.nbytes
    plain = cf.MemoryDesc((moved // 8,), "f32", "a")
    copy = cf.Reorder(plain, plain, engine, wait=True)
    c, d = cf.Memory(plain, engine), cf.Memory(plain, engine)
    with c.map("w") as flat:  # some processors move zeros half again as fast
        flat[:] = np.resize(raw.view(np.uint8), plain.nbytes).view(flat.dtype)
    family = str(reorder.plan.family)
    if not engine.traits.is_cpu:
        return (
            family,
            moved,
            by_device(stream, {"ours": (reorder, a, b), "copy": (copy, c, d)}, how),
        )
    calls: dict[str, Callable[[], object]] = {
        "ours": lambda: reorder(stream, a, b).wait(),
        "copy": lambda: copy(stream, c, d).wait(),
        **ggml.calls(src, dst, raw),
    }
    slots = [Slot(name, call) for name, call in calls.items()]
    return family, moved, race(slots, how, np.random.default_rng())


def by_device(
    stream: cf.Stream, moves: Mapping[str, tuple[cf.Reorder, cf.Memory, cf.Memory]], how: Settings
) -> dict[str, Times]:
    """The times of the device's clock, over buffers used in turn."""
    batches = {
        name: rotation.ours(reorder, stream, rotation.buffers(stream, (a.buffer, b.buffer)))
        for name, (reorder, a, b) in moves.items()
    }
    return rotation.race(batches, how, np.random.default_rng())


def check(raw: Array, src: Any, memory: cf.Memory) -> None:
    """Compare with the host's bytes, where the destination has some of its own."""
    dst = memory.desc
    same = str(src.dtype) == str(dst.dtype)
    values: Any = cf.unpack(raw, src)
    if same:
        values = {n: cf.unpack(raw, src, field=n) for n in src.fields}
    with np.errstate(all="ignore"):
        if isinstance(dst, cf.MemoryDesc):
            values = values.astype(dst.dtype.numpy)
        expected = cf.pack(values, dst).view(np.uint8)
    with memory.map("r") as flat:
        found = flat.view(np.uint8)
        parts = getattr(dst, "buffers", ())
        spans = [slice(p.start, p.start + p.nbytes) for p in parts] or [slice(None)]
        assert all(np.array_equal(found[s], expected[s]) for s in spans), f"{src} -> {dst}"


def chosen(options: argparse.Namespace) -> Iterator[tuple[Case, tuple[int, int]]]:
    """The cases of the command line, with sizes."""
    sizes = SIZES[:1] if options.quick else options.size or SIZES
    for case in CASES:
        if options.cases is None or options.cases.search(str(case)):
            yield from ((case, dims) for dims in sizes)


def size(words: str) -> tuple[int, int]:
    """Rows and columns of the command line."""
    found = re.fullmatch(r"(\d+)x(\d+)", words)
    if found is None:
        raise argparse.ArgumentTypeError(f"got {words!r}, expected such as 4096x4096")
    return int(found[1]), int(found[2])


@dataclass(frozen=True, slots=True)
class Row:
    """A case of one size: the bytes read and written, and the median seconds of each run."""

    case: str
    size: str
    moved: int
    family: str
    seconds: dict[str, list[float]] = field(default_factory=dict)

    def times(self, name: str) -> float:
        """How many times as long as ours another takes: the median of the runs."""
        return float(np.median(np.divide(self.seconds[name], self.seconds["ours"])))

    @property
    def peers(self) -> list[str]:
        """Who else took part, besides the copy."""
        return [name for name in self.seconds if name not in ("ours", "copy")]

    def __str__(self) -> str:
        others = [f"{name} {self.times(name):.1f}" for name in self.peers]
        speed = self.moved / float(np.median(self.seconds["ours"])) / 1e9
        return (
            f"{self.case:<42} {self.size:<11}{self.moved / MB:7.1f}{speed:7.1f}"
            f"{self.times('copy'):6.2f}  {', '.join([self.family, *others])}"
        )


HEAD = f"{'case':<42} {'size':<11}{'MB':>7}{'GB/s':>7}{'copy':>6}  family, times as fast as"


def means(rows: Sequence[Row]) -> Iterator[str]:
    """A line for each case: geometric means over the large sizes, and the lowest of them."""
    large: dict[str, list[Row]] = {}
    for row in rows:
        if row.moved >= LARGE:
            large.setdefault(row.case, []).append(row)
    if large:
        yield f"{'case, of 17 MB and more':<42}{'copy':>6}{'lowest':>8}  times as fast as"
    for case, found in large.items():
        others = [f"{name} {_mean(found, name):.1f}" for name in found[0].peers]
        least = min(row.times("copy") for row in found)
        yield f"{case:<42}{_mean(found, 'copy'):6.2f}{least:8.2f}  {', '.join(others)}".rstrip()


def _mean(rows: Sequence[Row], name: str) -> float:
    return geometric_mean(row.times(name) for row in rows)


def save(path: Path, told: Mapping[str, str], rows: Sequence[Row]) -> None:
    """Write the machine and all rows."""
    text = json.dumps({"machine": dict(told), "rows": [asdict(row) for row in rows]}, indent=1)
    path.write_text(text + "\n", encoding="utf-8")


def load(path: Path) -> tuple[dict[str, str], list[Row]]:
    """What `save` wrote."""
    found = json.loads(path.read_text(encoding="utf-8"))
    return found["machine"], [Row(**row) for row in found["rows"]]


def measure(options: argparse.Namespace, engine: cf.Engine) -> list[Row]:
    """Run after run of all cases that were asked for; a row is printed each time that it grows."""
    how = QUICK if options.quick else SETTINGS
    how = replace(how, rounds=options.rounds or how.rounds)
    rows: dict[tuple[Case, tuple[int, int]], Row] = {}
    for _ in range(options.runs):
        for case, dims in chosen(options):
            family, moved, times = raced(case, dims, engine, how)
            at = f"{dims[0]}x{dims[1]}"
            row = rows.setdefault((case, dims), Row(str(case), at, moved, family))
            for name, measured in times.items():
                row.seconds.setdefault(name, []).append(measured.median)
            print(row, flush=True)
    return [*rows.values()]


def main(arguments: list[str]) -> int:
    """Run ``python -m bench quantised``; 1 where no case matches."""
    parser = argparse.ArgumentParser(prog="python -m bench quantised", description=__doc__)
    add = parser.add_argument
    add("--device", metavar="NAME", help="a text in the device's or platform's name")
    add("--cases", metavar="REGEX", type=expression, help="only cases that have this in their name")
    add("--size", metavar="NxK", type=size, action="append", help="rows x columns, may be repeated")
    add("--rounds", metavar="N", type=int, help="rounds per case")
    add("--runs", metavar="N", type=int, default=1, help="the whole so often; medians count")
    add(
        "--quick", action="store_true", help="few short rounds, small tensors: to see that it works"
    )
    add("--json", metavar="FILE", type=Path, help="write the results")
    add("--load", metavar="FILE", type=Path, help="print a file's results, measure nothing")
    options = parser.parse_args(arguments)
    engine = None if options.load else cf.Engine(options.device)
    told, rows = (facts(engine), []) if engine else load(options.load)
    print("\n".join(f"{name:<10} {told[name]}" for name in ("device", "processor", "load")))
    if lacking := ggml.missing():
        print(lacking)
    print(f"\n{HEAD}")
    for row in rows:
        print(row)
    rows = measure(options, engine) if engine else rows
    print("\n".join(["", *means(rows)]))
    if options.json:
        save(options.json, told, rows)
    return int(not rows)
