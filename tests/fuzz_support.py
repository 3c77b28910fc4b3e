"""Runs random reorders between pages that may not be touched, with canaries beside every memory.

``python -m tests.fuzz_support SEED STRUCTURE CASES [SECONDS]`` tells each case before it runs it,
so that the last line of a process that dies is the case that it died of; ``SEED STRUCTURE 0`` runs
one structure again. So do `tests.groups_fuzz` and `tests.quantised_fuzz`. The device is that of
``CLFORMATS_TEST_DEVICE``. With ``CLFORMATS_GUARD=0`` a compiler that crashes ends the process;
otherwise it ends a child, which takes twice the time, and another kernel serves.
"""

from __future__ import annotations

import ctypes
import mmap
import os
import subprocess
import sys
import time
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field, replace
from functools import partial
from hashlib import sha256
from itertools import pairwise
from typing import Any, Protocol

import numpy as np

import clformats as cf
from tests import fuzz_cases
from tests.device_support import CANARY, holding
from tests.fuzz_cases import Case, cases, nbytes_of
from tests.support import dirty_pack, put_values, random_values

PAGE = mmap.PAGESIZE
FORBIDDEN = 0
ROOM = 4 << 20
OF_STRUCTURE = int(os.environ.get("CLFORMATS_FUZZ_SIZES", "6"))
"""Cases of a structure at the most. Most faults show with any sizes and with few structures: with
20 sizes, 6,000 cases did not meet one that is in 300 structures."""
DRAWN = 3
"""So many are drawn for each of them, of which some need one more program than there may be."""
OF_PROCESS = 1000
"""Cases of a process: what is built stays in memory."""
PROGRAMS = 2
"""Programs of a structure at the most: compiling takes far longer than running."""
POISON = 0xA5


class Room:
    """Memory between two pages that may not be touched, where a buffer begins or ends at one."""

    def __init__(self) -> None:
        libc = ctypes.CDLL(None, use_errno=True)
        pages = np.frombuffer(mmap.mmap(-1, ROOM + 2 * PAGE), np.uint8)
        for at in (0, PAGE + ROOM):
            fence = ctypes.c_void_p(pages.ctypes.data + at)
            assert libc.mprotect(fence, ctypes.c_size_t(PAGE), FORBIDDEN) == 0
        self.bytes = pages[PAGE : PAGE + ROOM]

    def place(self, contents: Any, where: str) -> slice:
        """Put bytes at one of the pages, between canaries; where they lie."""
        count = contents.size
        first = 0 if where == "first" else ROOM - count
        self.bytes[max(0, first - PAGE) : first + count + PAGE] = POISON
        self.bytes[first : first + count] = contents
        return slice(first, first + count)

    def memory(self, desc: cf.MemoryDesc, contents: Any, where: str, engine: cf.Engine) -> Any:
        """Such bytes as a memory object, and where they lie."""
        import pyopencl as cl

        at = self.place(contents, where)
        flags = cl.mem_flags.READ_WRITE | cl.mem_flags.USE_HOST_PTR
        # No buffer has no bytes.
        host = self.bytes[at] if contents.size else np.zeros(64, np.uint8)
        buffer = cl.Buffer(engine.context, flags, hostbuf=host)
        return cf.Memory(desc, engine, buffer=buffer), at

    def check(self, memory: cf.Memory, at: slice, want: Any) -> None:
        """Every byte of a buffer that is here, and of the canaries beside it."""
        with memory.map("r"):  # a GPU brings what it wrote
            self.compare(at, want)

    def compare(self, at: slice, want: Any) -> None:
        """Every byte of a place, and of the canaries beside it."""
        first, last = max(0, at.start - PAGE), min(ROOM, at.stop + PAGE)
        whole = np.full(last - first, POISON, np.uint8)
        whole[at.start - first : at.stop - first] = want
        wrong = np.flatnonzero(self.bytes[first:last] != whole)
        if wrong.size:
            got, due = self.bytes[first:last][wrong[:6]], whole[wrong[:6]]
            raise AssertionError(
                f"{wrong.size} bytes differ, from byte {wrong[0] - (at.start - first)} of "
                f"{at.stop - at.start} to {wrong[-1] - (at.start - first)}: got {got}, not {due}"
            )


class NoMoreProgramsError(Exception):
    """A case needs one more program than its structure may have."""


@dataclass
class Bench:
    """A device as it is, and as other devices would see it; and memory that is used in turn.

    ``left`` programs may be built; ``kernels`` are the hashes of those that were.
    """

    engine: cf.Engine
    rooms: list[Room] = field(default_factory=lambda: [Room() for _ in range(3)])
    streams: dict[str, cf.Stream] = field(default_factory=dict)
    left: int = 1 << 30
    kernels: set[str] = field(default_factory=set)

    def stream(self, plan: str) -> cf.Stream:
        """A stream of an engine that plans so."""
        if plan not in self.streams:
            engine, traits = self.engine, self.engine.traits
            other = cf.Engine(device=engine.device, context=engine.context)
            if plan == "large":
                traits = replace(traits, streamed_bytes=0)
            elif plan != "rules":
                group = 64 if plan == "gpu" else traits.group_size
                traits = replace(traits, is_cpu=False, group_size=group)
            other.traits = traits
            other.kernel = partial(self._kernel, other, other.kernel)  # type: ignore[method-assign]
            self.streams[plan] = cf.Stream(other)
        return self.streams[plan]

    def _kernel(self, engine: cf.Engine, make: Any, source: str, *others: Any) -> Any:
        """What the engine makes, if it need not build what it may not."""
        if not engine.has_built(source):
            if not self.left:
                raise NoMoreProgramsError
            self.left -= 1
            self.kernels.add(sha256(source.encode()).hexdigest()[:12])
        return make(source, *others)


def run(case: Case, bench: Bench) -> bool:
    """Run a case, and compare every byte; False where no kernel takes it."""
    stream = bench.stream(case.plan)
    rng = np.random.default_rng(case.seed)
    src, dst = case.src, case.dst
    array, old = _values(rng, src), random_values(rng, dst.dims, dst.dtype.name)
    if case.pieces:
        return _transferred(case, bench, array)
    try:
        ready = _map(case, stream) if case.other else _reorder(case, stream)
    except cf.Unsupported:
        return False
    source, _ = bench.rooms[0].memory(
        src, dirty_pack(rng, array, src).view(np.uint8), case.places[0], stream.engine
    )
    before = np.full(nbytes_of(dst), POISON, np.uint8)
    if not case.attr.is_empty:
        put_values(before, dst, old)
    target, at = bench.rooms[1].memory(dst, before, case.places[1], stream.engine)
    given = _given(case, bench, stream)
    if case.other:
        third = _values(rng, case.other)
        flat = dirty_pack(rng, third, case.other).view(np.uint8)
        other, _ = bench.rooms[2].memory(case.other, flat, case.places[0], stream.engine)
        ready(stream, x=source, y=other, z=target).wait()
        values = _mapped(array, third, case)
    else:
        ready(stream, source, target, **given).wait()
        values = (
            cf.transform(array, src, dst)
            if case.attr.is_empty
            else case.attr.apply(array, src.dtype, dst.dtype, old)
        )
    want = holding(values, dst)[:-CANARY] if dst.nelems else before
    bench.rooms[1].check(target, at, want)
    return True


def _transferred(case: Case, bench: Bench, array: Any) -> bool:
    """Run a transfer between memories of the host's, and compare every byte."""
    rng = np.random.default_rng(case.seed + 1)
    contents = (dirty_pack(rng, array, case.src).view(np.uint8),
                np.full(nbytes_of(case.dst), POISON, np.uint8))  # fmt: skip
    sides, at = [], slice(0)
    for desc, room, flat, where in zip(
        (case.src, case.dst), bench.rooms, contents, case.places, strict=False
    ):
        at = room.place(flat, where)
        sides.append(cf.HostMemory(desc, room.bytes[at].view(desc.dtype.raw)))
    engine = bench.stream(case.plan).engine
    least = max(1, sum(c.size for c in contents) // case.pieces)
    parts = (None,) if case.pieces == 1 else (least, None)
    for nbytes in parts:
        try:
            cf.transfer(*sides, engine=engine, piece_nbytes=nbytes)
            break
        except cf.Unsupported as error:
            if error.code != "PIECE_SIZE":
                raise
    values = cf.transform(array, case.src, case.dst)
    want = holding(values, case.dst)[:-CANARY] if case.dst.nelems else contents[1]
    bench.rooms[1].compare(at, want)
    return True


def _values(rng: np.random.Generator, desc: cf.MemoryDesc) -> Any:
    """Random values; equal ones where the descriptor repeats them."""
    array = random_values(rng, desc.dims, desc.dtype.name)
    if desc.format.structure.blocks == (1,) * desc.ndims and 0 in desc.strides and desc.nelems:
        for d in (d for d, stride in enumerate(desc.strides) if stride == 0):
            array[:] = array.take([0], axis=d)
    return array


def _reorder(case: Case, stream: cf.Stream) -> Any:
    wished = partial(cf.Reorder, case.src, case.dst, stream.engine)
    attr = case.attr
    if case.late:
        dims = case.dst.dims
        given: dict[str, Any] = {
            name: (np.reshape(v.values, v.sizes(dims)), v.mask)
            for name, v in attr.terms.items() if v.values is not None
        }  # fmt: skip
        given |= {name: cf.at_execution(attr.terms[name].mask) for name in case.late}
        attr = cf.Attr(**given, expression=attr.expression)
    try:
        return wished(attr=attr, family=case.family, tuned=case.choices or True)
    except cf.Unsupported as error:
        if case.family is None or error.code != "FAMILY":
            raise
        return wished(attr=attr)


def _given(case: Case, bench: Bench, stream: cf.Stream) -> dict[str, Any]:
    """Values that are given at the call: the first as a memory that ends at a page."""
    given: dict[str, Any] = {}
    real = "f64" if "f64" in (case.src.dtype.name, case.dst.dtype.name) else "f32"
    for k, name in enumerate(case.late):
        values = case.attr.terms[name].values
        assert values is not None
        given[name] = values
        if k == 0:
            desc = cf.MemoryDesc((values.size,), real)
            flat = values.astype(desc.dtype.numpy).ravel()
            place = case.places[0]
            given[name], _ = bench.rooms[2].memory(desc, flat.view(np.uint8), place, stream.engine)
    return given


def _map(case: Case, stream: cf.Stream) -> Any:
    assert case.other
    return cf.Map("z = x - y", stream.engine, x=case.src, y=case.other, z=case.dst)


def _mapped(x: Any, y: Any, case: Case) -> Any:
    """What the map of two tensors is."""
    assert case.other
    wide = "f64" in (case.src.dtype.name, case.dst.dtype.name)
    real = cf.tensors.dtypes.as_dtype("f64" if wide else "f32")
    a = cf.tensors.dtypes.convert(x, case.src.dtype, real)
    b = cf.tensors.dtypes.convert(y, case.other.dtype, real)
    formula = cf.values.formula.parse("x - y", ("x", "y"))
    return cf.tensors.dtypes.convert(
        formula.evaluate({"x": a, "y": b}, real.numpy), real, case.dst.dtype
    )


class Structure(Protocol):
    """Everything but the sizes: its cases share programs. It prints in one line."""

    def cases(self, most: int) -> Iterator[Any]:
        """So many cases, or fewer."""

    def run(self, case: Any, bench: Bench) -> bool:
        """Run a case, and compare every byte; False where there is none, or no kernel takes it."""


@dataclass(frozen=True)
class Reorders:
    """A structure of `tests.fuzz_cases`."""

    seed: int
    number: int

    def cases(self, most: int) -> Iterator[Case]:
        """Its cases."""
        return cases(self.seed, self.number, most)

    def run(self, case: Case, bench: Bench) -> bool:
        """Run one."""
        return run(case, bench)


def of_structure(found: Structure, name: str, most: int, bench: Bench) -> tuple[int, int]:
    """Run cases of a structure; how many ran and how many failed, each of which is told."""
    ran = failed = 0
    bench.left = PROGRAMS
    sys.stdout.write(f"{name}: {found}\n")
    for case in found.cases(DRAWN * OF_STRUCTURE):
        if ran == min(most, OF_STRUCTURE):
            break
        result = told(name, case, found.run, bench)
        ran, failed = ran + (result is not None), failed + (result is False)
    return ran, failed


def told(name: str, case: Any, run: Callable[[Any, Bench], bool], bench: Bench) -> bool | None:
    """Whether a case is as it should be; None where no kernel takes it."""
    sys.stdout.write(f"{name}: {case}\n")
    sys.stdout.flush()
    try:
        return run(case, bench) or None
    except NoMoreProgramsError:
        return None
    except Exception as error:  # noqa: BLE001  # whatever it is, the next case is to run
        if _is_refusal(error, case):
            return None
        text = (str(error) or "?").splitlines()[0]
        sys.stdout.write(f"FAILED {type(error).__name__}: {text}\n")
    return False


def _is_refusal(error: Exception, case: Any) -> bool:
    """Whether a device has no double precision, or its compiler died of a schedule that was chosen.

    For a schedule that somebody chose there is no fallback: another one would be measured for it.
    """
    if isinstance(error, cf.CompilerDied):
        return isinstance(case, Case) and case.choices is not None
    return isinstance(error, cf.Unsupported) and error.code == "FP64"


ALONE = {"CLFORMATS_WAIT": "1", "CLFORMATS_TUNED": "off", "PYOPENCL_NO_CACHE": "1"}
"""Each case runs the kernel of its plan, newly built: not one that serves meanwhile."""


def main(make: Callable[[int, int], Structure] = Reorders) -> None:
    """Structure after structure, until there are so many cases or no time is left."""
    for name, value in ALONE.items():
        os.environ.setdefault(name, value)
    bench = Bench(cf.Engine(os.environ.get("CLFORMATS_TEST_DEVICE", "pocl")))
    if "PoCL 3.1" in bench.engine.names[-1]:
        # Its usual method loses stores of kernels for GPUs, whose groups have several work-items.
        os.environ.setdefault("POCL_WORK_GROUP_METHOD", "auto")
    if sys.argv[1] == "odd":
        first = int(sys.argv[2])
        every = list(enumerate(fuzz_cases.odd_blocks(tuple(sys.argv[3:]))))[first:]
        results = [told(f"odd {k}", case, run, bench) for k, case in every]
        done(first + len(results), len(results), results.count(False), bench)
        return
    seed, structure, wanted, seconds = map(int, [*sys.argv[1:], str(1 << 30)][:4])
    ends = time.monotonic() + seconds
    ran = failed = 0
    while True:
        left = wanted - ran if wanted else OF_STRUCTURE
        now = of_structure(make(seed, structure), f"{seed} {structure}", left, bench)
        ran, failed = ran + now[0], failed + now[1]
        done(structure, ran, failed, bench)
        if ran >= wanted or time.monotonic() > ends:
            return
        structure += 1


def done(structure: int, ran: int, failed: int, bench: Bench) -> None:
    """Tell how far it has come, and what was built since it told last."""
    sys.stdout.write(f"DONE {structure} {ran} {failed} {' '.join(sorted(bench.kernels))}\n")
    sys.stdout.flush()
    bench.kernels.clear()


@dataclass
class Report:
    """How many cases ran, by which kernels, and which failed."""

    ran: int = 0
    kernels: set[str] = field(default_factory=set)
    failures: list[str] = field(default_factory=list)

    def __str__(self) -> str:
        told = "\n".join(self.failures[:20])
        counts = f"{self.ran} cases, {len(self.kernels)} kernels, {len(self.failures)} failures"
        return f"{counts}\n{told}"


def fuzz(
    seed: int,
    wanted: int,
    device: str,
    seconds: int = 1 << 20,
    module: str = "tests.fuzz_support",
    environment: Mapping[str, str] | None = None,
) -> Report:
    """So many cases in processes of their own: one that dies has failed, and the next goes on.

    ``module`` is one whose ``main`` runs structures, ``environment`` what it finds there.
    """
    report, structure = Report(), 0
    given = {**(environment or {}), "CLFORMATS_TEST_DEVICE": device}
    ends = time.monotonic() + seconds
    while report.ran < wanted and time.monotonic() < ends:
        left = max(1, int(ends - time.monotonic()))
        count = min(OF_PROCESS, wanted - report.ran)
        structure = _process([module, seed, structure, count, left], report, given) + 1
    return report


def odd_blocks(types: tuple[str, ...], device: str) -> Report:
    """Those of `tests.fuzz_cases.odd_blocks`, of which each process that dies leaves one out."""
    report, first, module = Report(), 0, "tests.fuzz_support"
    count = sum(1 for _ in fuzz_cases.odd_blocks(types))
    while first < count:
        environment = {"CLFORMATS_TEST_DEVICE": device}
        first = _process([module, "odd", first, *types], report, environment) + 1
    return report


def _process(arguments: list[Any], report: Report, environment: Mapping[str, str]) -> int:
    """Run one, and add what it tells to the report; the last structure or case that it came to."""
    ended = subprocess.run(
        [sys.executable, "-m", *map(str, arguments)],
        check=False, capture_output=True, text=True, env={**os.environ, **environment},
    )  # fmt: skip
    lines = ended.stdout.splitlines()
    numbers = [line.split() for line in lines if line.startswith("DONE")]
    starts = [line for line in lines if line[:4] not in ("DONE", "FAIL")]
    if numbers:
        report.ran += int(numbers[-1][2])
        report.kernels.update(*(line[4:] for line in numbers))
    for case, line in pairwise(lines):
        if line.startswith("FAILED"):
            report.failures.append(f"{case}\n    {line}")
    if ended.returncode:
        if not starts:
            raise AssertionError(f"no case was begun: {ended.stderr}")
        # Of the structure at which it died, those before that one are not counted.
        report.ran += 1
        why = f"the process ended with {ended.returncode}: {ended.stderr.strip()[-200:]}"
        report.failures.append(f"{starts[-1]}\n    {why}")
    if not ended.returncode or not starts:
        return int(numbers[-1][1])
    return int(starts[-1].split()[1].rstrip(":"))


if __name__ == "__main__":
    main()
