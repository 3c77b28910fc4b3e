"""`tune`: search for faster kernels of a reorder, and record them."""

from __future__ import annotations

import math
import time
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from importlib import import_module
from pathlib import Path
from statistics import median
from typing import Any

from ..errors import Error, InvalidArgument, Unsupported, expect
from ..problems.refine import problem
from ..records import DeviceNames, TuningRecord, add, forget, path_of, wanted_folder
from ..records.record import keys_of, now
from ..reorders.planning import kernel_digest
from ..reorders.profiles import traits_of
from ..reorders.warm import Pair, pairs_of
from ..runtime import Engine
from ..runtime.engine import default_engine
from ..schedule import Request
from ..schedule.choices import RULES, Choices
from ..spaces.space import spaces
from ..tensors.desc import MemoryDesc
from ..tensors.described import Described
from ..timing import Settings
from .contest import AGAIN, BAKED_GAIN, DEFAULT, LEAST_GAIN, Contest, is_faster, noise
from .outcome import Outcome, Tried, Verdict
from .search import search

TIME_LIMIT = 60.0
SEARCH_SHARE = 0.65
"""The share of the time limit for the search; the rest is for the contest of the best."""
FINALISTS = 3
CONTEST = Settings(rounds=8, warm=0.01, runs=5, timed=0.03, seconds=2.0)
"""How the finalists are measured; within the time limit, and at least three rounds."""


def tune(
    src: MemoryDesc | str | Iterable[Pair],
    dst: MemoryDesc | str | None = None,
    engine: Engine | str | None = None,
    *,
    time_limit: float = TIME_LIMIT,
    watch: Callable[[Outcome | None], None] | None = None,
    client: Any = None,
) -> list[Outcome]:
    """Search for faster kernels for one reorder or many, and record those that are found.

    Call ``tune(src, dst)`` or ``tune([(src, dst), ...])``. The kernels that are estimated to be the
    fastest are tried, then what is near to the best of them: some seconds for each reorder, at most
    ``time_limit``; a kernel that is being compiled when the time is up is finished. Every kernel is
    checked against the host before it is timed. Then the best ones are measured again, interleaved
    with the plan by the rules. A kernel is recorded only if it is faster by more than the noise.
    Every `Reorder` made from then on uses the record, in this process and in others. ``watch`` is
    called with None for each kernel tried, and with each outcome as soon as it is there.

    Returns an `Outcome` for each reorder, in their order: its records, and every measurement.

    ``client``, a ``distributed.Client``, makes each reorder a job on Dask's workers, for the device
    that ``engine`` names there, or their default one; the records are stored here as they arrive.
    Give each device one worker with one thread: other work at the same time falsifies the times.

    Raises `Error` if the records cannot be written or are switched off; `InvalidArgument`,
    `DeviceError`, and `Unsupported` (code TUNING) for quantised tensors.
    """
    expect(engine, Engine | str | None, "engine")
    expect(time_limit, int | float, "time_limit")
    if not time_limit > 0:  # NaN is not, either
        raise InvalidArgument(f"time_limit: got {time_limit}, expected seconds above 0")
    jobs = _jobs(src, dst)
    where = wanted_folder()
    found: dict[int, Outcome] = {}
    for number, outcome in _outcomes(jobs, engine, time_limit, watch or (lambda _: None), client):
        store(outcome, where)
        found[number] = outcome
        if watch:
            watch(outcome)
    return [found[number] for number in range(len(jobs))]


def _outcomes(
    jobs: Sequence[Pair],
    engine: Engine | str | None,
    seconds: float,
    watch: Callable[[None], None],
    client: Any,
) -> Iterator[tuple[int, Outcome]]:
    """Each outcome with the number of its job, as soon as it is there."""
    if client is None:
        here = Engine(engine) if isinstance(engine, str) else engine or default_engine()
        yield from ((k, tuned(pair, here, seconds, watch)) for k, pair in enumerate(jobs))
        return
    if isinstance(engine, Engine):
        raise InvalidArgument(
            f"engine: got {engine!r}, which is of this process only: name the workers' device, "
            f"such as 'pocl', or leave it out"
        )
    dask = import_module("distributed")
    futures = {
        client.submit(on_worker, pair, engine, seconds, pure=False): number
        for number, pair in enumerate(jobs)
    }
    try:
        for future in dask.as_completed([*futures]):
            yield futures[future], future.result()
    finally:
        client.cancel([*futures])


def on_worker(pair: Pair, engine: str | None, seconds: float) -> Outcome:
    """A job of Dask's: tune one reorder on a device of the worker's machine."""
    return tuned(pair, Engine(engine) if engine else default_engine(), seconds)


def _jobs(src: MemoryDesc | str | Iterable[Pair], dst: MemoryDesc | str | None) -> list[Pair]:
    """The reorders to tune. Raises `InvalidArgument`, and `Unsupported` for quantised tensors."""
    pairs: Any = [(src, dst)] if isinstance(src, MemoryDesc | Described | str) else src
    if dst is not None and pairs is src:
        raise InvalidArgument(f"dst: got {dst!r:.60} beside a list of pairs: leave it out")
    jobs = list[Pair]()
    for one, other in pairs_of(pairs):
        if not (isinstance(one, MemoryDesc) and isinstance(other, MemoryDesc)):
            raise Unsupported("TUNING", f"{one} to {other} has no search space: the kernels of "
                              f"quantised tensors follow from their layouts")  # fmt: skip
        jobs.append((one, other))
    return jobs


def store(outcome: Outcome, where: Path) -> None:
    """Write the records of an outcome to disk. Raises `Error`, whose message has the record."""
    for record in outcome.records:
        try:
            add(path_of(record.device, where), record)
        except Error as error:
            raise Error(f"{error}. What was found: {record.line}") from error
    if outcome.records:
        forget()


def tuned(
    pair: Pair,
    engine: Engine,
    seconds: float,
    watch: Callable[[None], None] = lambda _: None,
) -> Outcome:
    """Tune one reorder, and store nothing. Raises `Error` and `DeviceError`."""
    began = time.monotonic()
    src, dst = pair
    count = 0

    def outcome(
        note: str, tried: Sequence[Tried] = (), records: Sequence[TuningRecord] = ()
    ) -> Outcome:
        failures = tuple(t.failure for t in tried if t.failure)
        spent = time.monotonic() - began
        return Outcome(src, dst, tuple(records), count, failures, spent, note, tuple(tried))

    places = spaces(src, dst, traits_of(engine))
    if not places:
        return outcome("nothing can be chosen here")
    run = Contest(places[0].src, places[0].dst, engine)  # buffers, where images go by these
    until = began + SEARCH_SHARE * seconds
    tried = search(run, places, until, lambda: watch(None))
    cut = time.monotonic() > until
    count = len(tried)
    finalists = [t.choices for t in tried if t.times][:FINALISTS]
    verdict = contest(run, finalists, CONTEST, began + seconds)
    if verdict is None:
        late = "the time was up before the best could be measured: allow more"
        return outcome(late, Verdict().measured(tried, late))
    note = "faster than the rules" if verdict.records else "the rules are not beaten"
    if cut and not verdict.records:
        note += ", but the time was up before the search was done: allow more"
    slower = f"not among the fastest {FINALISTS} of the search"
    return outcome(note, verdict.measured(tried, slower), verdict.records)


def contest(
    run: Contest, finalists: Sequence[Choices], settings: Settings, end: float = math.inf
) -> Verdict | None:
    """Which kernels beat the rules in two measurements, the best of the first again.

    None if there was no time for both until ``end``, by ``time.monotonic``.
    """
    if time.monotonic() > end:
        return None
    named = {str(c): c for c in finalists if c != RULES}
    best, reasons = RULES, dict.fromkeys(named.values(), "there was no time to build it again")
    first: dict[str, list[float]] = {}
    if named:
        first = run.times(named, settings, (time.monotonic() + end) / 2)
        if not first:
            return None
        reasons |= {named[n]: "another finalist was faster" for n in named if n in first}
        name = min((n for n in named if n in first), key=lambda name: median(first[name]))
        # What does not win twice has won by chance.
        if is_faster(first[DEFAULT] + first[AGAIN], first[name], LEAST_GAIN):
            best = named[name]
        else:
            reasons[named[name]] = _missed(first, name)
    baked = replace(best, baked=True)
    again = {"best": best, "baked": baked} if best != RULES else {"baked": baked}
    times = run.times(again, settings, end)
    if not times:
        return None
    records, failed = _winners(run, again, times)
    samples: dict[Choices, list[float]] = {}
    for measured, names in ((first, named), (times, again)):
        for name, values in measured.items():
            samples.setdefault(names.get(name, RULES), []).extend(values)
    return Verdict(tuple(records), samples, reasons | failed)


def _winners(
    run: Contest, again: Mapping[str, Choices], times: Mapping[str, list[float]]
) -> tuple[list[TuningRecord], dict[Choices, str]]:
    """The records of the second measurement, and why the other choices have none."""
    noisy = noise(times)
    rules = [*times[DEFAULT], *times[AGAIN]]
    records, base = [], rules
    reasons = {c: _missed(times, name, noisy) for name, c in again.items() if name in times}
    if "best" in times and is_faster(rules, times["best"], LEAST_GAIN, noisy):
        records.append(record_of(run, again["best"], rules, times["best"]))
        base = times["best"]
    constant = times.get("baked", base)
    if is_faster(base, constant, BAKED_GAIN, noisy) and is_faster(
        rules, constant, LEAST_GAIN, noisy
    ):
        records.append(record_of(run, again["baked"], rules, constant))
    else:
        reasons[again["baked"]] = f"constant sizes do not gain {BAKED_GAIN - 1:.0%}"
    return records, reasons


def _missed(times: Mapping[str, list[float]], name: str, noisy: float = 1.0) -> str:
    """Why a contestant that does not count as faster than the rules does not."""
    gain = median([*times[DEFAULT], *times[AGAIN]]) / median(times[name])
    return (
        f"{gain:.2f} times as fast as the rules: not surely by {LEAST_GAIN - 1:.0%} more than the "
        f"noise of {noisy - 1:.0%}"
    )


def record_of(
    run: Contest, choices: Choices, rules: Sequence[float], times: Sequence[float]
) -> TuningRecord:
    """The record of choices and their times; where sizes are constants it is of these only."""
    src, dst = run.pair
    exact, shape = keys_of(problem(src, dst))
    digest = kernel_digest(Request(src, dst, traits_of(run.engine), choices=choices))
    return TuningRecord(
        DeviceNames(*run.engine.names), digest, exact if choices.baked else shape, str(src),
        str(dst), choices, tuple(rules), tuple(times), now(),
    )  # fmt: skip
