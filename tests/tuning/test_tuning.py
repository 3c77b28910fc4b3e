"""The tuner on a device: what it tries is right, what it stores is faster, nothing is lost."""

from __future__ import annotations

import json
import math
import os
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import clformats as cf
from clformats import cli
from clformats import records as tuned
from clformats.records.record import InvalidRecord
from clformats.reorders.variants import Variants
from clformats.schedule.choices import RULES
from clformats.spaces.space import spaces
from clformats.timing import QUICK, Slot, Times
from clformats.tuning import contest, run, search
from clformats.tuning.exchange import merge, t4
from clformats.tuning.outcome import Outcome, Tried
from clformats.tuning.revalidate import revalidate
from tests.choices_support import HURTING
from tests.tuned_support import ahead, record_of

D = cf.MemoryDesc
SRC, DST = D((2, 17, 5, 19), "f32", "bfyx"), D((2, 17, 5, 19), "f32", "byxf")
SUMMED = (
    D((16, 5, 3, 3), "s8", "oihw"),
    D((16, 5, 3, 3), "s8", "hwio", extra=cf.Extra(1, s8s8=True)),
)
"""Sums follow the elements: there is nothing to choose."""
WORDS = ["bfyx", "byxf", "--shape", "2,17,5,19", "--time-limit", "3"]
ROOT = Path(__file__).resolve().parents[2]
SLOW = cf.Choices(schedule="tile of 1 | a* b c | ahead 0 | ordinary")


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    monkeypatch.setenv("CLFORMATS_TUNED", str(tmp_path / "tuned"))
    tuned.forget()
    yield tmp_path / "tuned"
    tuned.forget()


@pytest.fixture
def kernel_tuner(engine: cf.Engine) -> Any:
    if "rusticl" in engine.device.platform.name:
        pytest.skip("kernel_tuner polls events without a flush: rusticl never begins")
    return pytest.importorskip("kernel_tuner", reason="pip install 'clformats[tune]'")


@pytest.fixture
def device_name() -> str:
    return os.environ.get("CLFORMATS_TEST_DEVICE", "pocl")


def records_in(folder: Path) -> list[tuned.TuningRecord]:
    return [r for file in folder.glob("*.jsonl") for r in tuned.read(file)[0]]


# --- kernel_tuner ---------------------------------------------------------------------------------


@pytest.mark.sampled(2)
@pytest.mark.parametrize("pair", HURTING[::3], ids=str)
def test_another_script_tunes_a_reorder(
    pair: tuple[cf.MemoryDesc, cf.MemoryDesc], engine: cf.Engine, kernel_tuner: Any
) -> None:
    arguments = cf.Reorder(*pair, engine).as_kernel_tuner()
    results, _ = kernel_tuner.tune_kernel(
        **arguments, strategy="random_sample", strategy_options={"max_fevals": 3}, quiet=True
    )
    assert results
    for result in results:
        assert result["time"] > 0
        # What was measured is what runs.
        choices = cf.Choices.of({name: result[name] for name in arguments["tune_params"]})
        assert cf.Reorder(*pair, engine, tuned=choices).source == arguments["kernel_source"](result)


def test_another_script_tunes_the_groups_of_a_gpu(as_gpu: cf.Stream, kernel_tuner: Any) -> None:
    """Each schedule has a size of its groups: no other one is tried with it."""
    pair = D((2, 64, 24, 32), "f16", "bfyx"), D((2, 64, 24, 32), "f16", "byxf")
    arguments = cf.Reorder(*pair, as_gpu.engine).as_kernel_tuner()
    asked = arguments["tune_params"]
    assert len(asked["local_size"]) > 1
    results, _ = kernel_tuner.tune_kernel(
        **arguments, strategy="random_sample", strategy_options={"max_fevals": 3}, quiet=True
    )
    assert len(results) == 3
    for result in results:
        assert result["time"] > 0
        assert f"of {result['local_size']} |" in result["schedule"]
        choices = cf.Choices.of({name: result[name] for name in asked})
        made = cf.Reorder(*pair, as_gpu.engine, tuned=choices)
        assert made.source == arguments["kernel_source"](result)


def test_a_strategy_searches_the_parts_of_a_schedule(engine: cf.Engine, kernel_tuner: Any) -> None:
    if not engine.traits.is_cpu:
        pytest.skip("a GPU's parts are those of groups")
    pair = D((2, 17, 5, 19), "f32", "bfyx"), D((2, 17, 5, 19), "f16", "byxf")
    reorder = cf.Reorder(*pair, engine)
    arguments = reorder.as_kernel_tuner(parts=True)
    # What can be compiled is a thousand programs: a small part of it will do for a test.
    few = {"tile_a": [1], "tile_b": [1, 8, 16], "tile_c": [1, 16], "lanes": [8, 16],
           "ahead": [0, 8], "block": [0], "items": [8]}  # fmt: skip
    assert few.keys() <= arguments["tune_params"].keys()
    arguments["tune_params"] |= few
    results, _ = kernel_tuner.tune_kernel(
        **arguments, strategy="genetic_algorithm", quiet=True,
        strategy_options={"max_fevals": 4, "popsize": 2},
    )  # fmt: skip
    assert results
    for result in results:
        assert result["time"] > 0
        choices = reorder.choices_of(result)
        assert cf.Reorder(*pair, engine, tuned=choices).source == arguments["kernel_source"](result)


def test_all_parts_of_a_schedule_are_read_back(engine: cf.Engine) -> None:
    """A legal configuration is the schedule of its plan; there are many, also the rules' tile."""
    pair = D((4, 64, 28, 57), "f32", "bfyx"), D((4, 64, 28, 57), "f32", "byxf")
    if not engine.traits.is_cpu:
        pytest.skip("a GPU's parts are those of groups")
    variants = Variants(*pair, engine)
    asked = variants.parts.parameters
    rng = np.random.default_rng(0)
    legal = 0
    for _ in range(200):
        config = {name: values[rng.integers(len(values))] for name, values in asked.items()}
        try:
            value = variants.value(config)
        except cf.InvalidArgument:
            continue
        legal += 1
        plan = variants.space.plan(value)
        assert str(plan.body) == value
    assert legal > 20


def test_the_parts_of_groups_are_read_back(as_gpu: cf.Stream) -> None:
    pair = D((1, 16, 8, 24), "f16", "bfyx"), D((1, 16, 8, 24), "f16", "byxf")
    variants = Variants(*pair, as_gpu.engine)
    arguments = cf.Reorder(*pair, as_gpu.engine).as_kernel_tuner(parts=True)
    asked = arguments["tune_params"]
    assert variants.parts.parameters.keys() < asked.keys()
    rng = np.random.default_rng(0)
    legal = 0
    for _ in range(60):
        config = {name: values[rng.integers(len(values))] for name, values in asked.items()}
        if arguments["restrictions"](config):
            legal += 1
            choices = cf.Reorder(*pair, as_gpu.engine).choices_of(config)
            made = cf.Reorder(*pair, as_gpu.engine, tuned=choices).plan
            assert str(made.body.schedule) == choices.schedule  # type: ignore[union-attr]
    assert legal > 2


def test_parts_that_are_missing_or_do_not_fit_are_told(engine: cf.Engine) -> None:
    reorder = cf.Reorder(SRC, DST, engine)
    if not engine.traits.is_cpu:
        pytest.skip("a GPU's parts are those of groups")
    with pytest.raises(cf.InvalidArgument, match="has no ahead"):
        reorder.choices_of({"lanes": 16})
    asked = reorder.as_kernel_tuner(parts=True)["tune_params"]
    config = {name: values[0] for name, values in asked.items()}
    with pytest.raises(cf.InvalidArgument, match="expected ordinary"):
        reorder.choices_of(config | {"store": "stream 64"})
    with pytest.raises(cf.Unsupported, match="leave parts=True out"):
        cf.Reorder(SRC, SRC, engine, family="generic").as_kernel_tuner(parts=True)


@pytest.mark.usefixtures("plans_for_cpus")
def test_a_wrong_kernel_is_found_before_it_is_timed(
    engine: cf.Engine, kernel_tuner: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    arguments = cf.Reorder(SRC, DST, engine).as_kernel_tuner()
    right = arguments["kernel_source"]

    def wrong(params: Any) -> str:
        return str(right(params)).replace("*to = dst + now.dst", "*to = dst + 1 + now.dst")

    arguments["kernel_source"] = wrong
    with pytest.raises(RuntimeError, match="verification failed"):
        kernel_tuner.tune_kernel(**arguments, quiet=True)


def test_the_answer_knows_padding_and_canaries(engine: cf.Engine) -> None:
    dst = D(SRC.dims, "f32", "b_fs_yx_fsv16")
    variants = Variants(SRC, dst, engine)
    assert variants.launch({variants.space.parameter: variants.space.values[0]}).arguments == ()
    arguments = variants.kernel_tuner()
    want = arguments["answer"][1]
    before = arguments["arguments"][1]
    assert before.view(np.uint8).min() == before.view(np.uint8).max() == 0xA5
    assert want.nbytes > dst.nbytes
    assert (want.view(np.uint8)[dst.nbytes :] == 0xA5).all()
    assert not want.view(np.uint8)[: dst.nbytes].view(np.float32)[dst.offset(0, 16, 0, 0) + 1]


def test_a_reorder_without_a_space_says_so(engine: cf.Engine) -> None:
    with pytest.raises(cf.Unsupported, match="TUNING"):
        cf.Reorder(SRC, DST, engine, attr=cf.Attr(src_scale=2.0)).as_kernel_tuner()
    with pytest.raises(cf.Unsupported, match="TUNING"):
        cf.Reorder(*SUMMED, engine).as_kernel_tuner()


@pytest.mark.parametrize("image", ["nh|Cw|4c", "Chwn|4c"])
def test_an_image_is_tuned_as_its_buffer(image: str, engine: cf.Engine, folder: Path) -> None:
    src, dst = D((2, 7, 13, 11), "f32", "nchw"), D((2, 7, 13, 11), "f32", image)
    (outcome,) = cf.tune(src, dst, engine=engine, time_limit=1)
    if image == "Chwn|4c" or engine.traits.is_cpu:
        assert outcome.tried > 0
        assert outcome.failures == ()
        assert {r.dst for r in records_in(folder)} <= {str(dst.buffer_twin)}
    assert (outcome.src, outcome.dst) == (src, dst)


# --- the search -----------------------------------------------------------------------------------


def searched(engine: cf.Engine, dst: cf.MemoryDesc, end: float = math.inf) -> list[Tried]:
    return search.search(contest.Contest(SRC, dst, engine), spaces(SRC, dst, engine.traits), end)


def test_the_search_goes_on_without_what_fails(
    engine: cf.Engine, monkeypatch: pytest.MonkeyPatch
) -> None:
    right = contest.Contest.checked
    broken: list[cf.Choices] = []

    def checked(self: contest.Contest, choices: cf.Choices) -> cf.Reorder:
        if not broken and choices != RULES:
            broken.append(choices)
        if choices in broken:
            self._expected = np.bitwise_not(self._expected)
        try:
            return right(self, choices)
        finally:
            self._expected = self._case.answer

    monkeypatch.setattr(contest.Contest, "checked", checked)
    tried = searched(engine, SRC)
    failed = {t.choices: t.failure for t in tried if t.failure}
    assert [*failed] == broken
    assert "bytes wrong" in failed[broken[0]]
    times = [t.seconds for t in tried]
    assert times == sorted(times)
    assert {t.choices for t in tried} > {RULES}


def test_the_search_gives_up_where_all_fails(
    engine: cf.Engine, monkeypatch: pytest.MonkeyPatch
) -> None:
    def checked(self: contest.Contest, choices: cf.Choices) -> cf.Reorder:
        return cf.Reorder(SRC, DST, self.engine, family="image")

    monkeypatch.setattr(contest.Contest, "checked", checked)
    tried = searched(engine, DST)
    assert len(tried) <= search.MOST_FAILURES
    assert all("Unsupported" in t.failure and t.seconds == math.inf for t in tried)


@pytest.mark.usefixtures("plans_for_cpus")
def test_the_search_ends_near_the_fastest(
    engine: cf.Engine, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Of all tiles and stores first, then of the one that was the fastest: here the last one."""
    found = spaces(SRC, DST, engine.traits)[0]
    fastest = found.values[-1]
    seen: list[list[str]] = []

    def times(slots: list[Slot], *_: object) -> dict[str, list[float]]:
        seen.append([slot.name for slot in slots])
        return {s.name: [1.0 if fastest in s.name else 2.0] for s in slots}

    monkeypatch.setattr(search, "sampled", times)
    tried = searched(engine, DST)
    near = found.near(fastest)
    names = [[str(found.choices(v)) for v in values] for values in (found.values, near)]
    assert seen == [names[0], [name for name in names[1] if name not in names[0]]]
    assert len(seen[1]) > 3
    assert tried[0] == Tried(found.choices(fastest), (1.0,))


@pytest.mark.usefixtures("plans_for_cpus")
def test_when_the_time_is_up_only_what_is_being_tried_is_finished(
    engine: cf.Engine, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Half of the time is for the first turn, and half of each turn for building."""
    clock = [0.0]
    monkeypatch.setattr(search, "monotonic", lambda: clock[0])
    monkeypatch.setattr("clformats.timing.monotonic", lambda: clock[0])

    def slot(_: object, name: str, choices: cf.Choices) -> Slot:
        clock[0] += 1  # what building takes
        return Slot(name, lambda: clock.__setitem__(0, clock[0] + 0.01))

    monkeypatch.setattr(contest.Contest, "slot", slot)
    assert [t.times for t in searched(engine, DST, end=-1)] == [()]
    clock[0] = 0.0
    tried = searched(engine, DST, end=10)
    assert len(tried) == 3 + 4
    assert all(t.times for t in tried)
    assert clock[0] < 8


# --- the contest ----------------------------------------------------------------------------------


def test_only_what_is_surely_faster_is_faster() -> None:
    rng = np.random.default_rng(1)
    one, other = (list(rng.lognormal(0, 0.3, 40)) for _ in range(2))
    assert not contest.is_faster(one, other, 1.03)
    assert not contest.is_faster(other, one, 1.03)
    assert contest.is_faster(one, [t / 2 for t in other], 1.03)
    assert not contest.is_faster(one, [t / 2 for t in other], 1.03, noisy=2.5)
    assert not contest.is_faster([1.0, 1.0], [0.98, 0.98], 1.03)


def test_a_contestant_that_is_wrong_is_no_record(
    engine: cf.Engine, monkeypatch: pytest.MonkeyPatch
) -> None:
    run = contest.Contest(SRC, DST, engine)
    run.checked(SLOW)
    monkeypatch.setattr(run, "_expected", run._expected + 1)
    with pytest.raises(cf.DeviceError, match=r"moves \d+ bytes wrong.*report"):
        run.checked(SLOW)


def test_large_tensors_take_turns(engine: cf.Engine, monkeypatch: pytest.MonkeyPatch) -> None:
    """So a run finds nothing in the caches of the run before. Small ones are measured there."""
    assert len(contest.Contest(SRC, DST, engine)._places) == 1
    if not engine.traits.is_cpu:
        pytest.skip("GPUs have one pair of tensors")
    other = cf.Engine(device=engine.device)
    moved = SRC.nbytes + DST.nbytes
    other.__dict__["traits"] = replace(engine.traits, streamed_bytes=moved // 2)
    monkeypatch.setattr(contest, "IN_TURN_BYTES", 5 * moved // 2)
    run = contest.Contest(SRC, DST, other)
    slot = run.slot("rules", RULES)
    for _ in run._places:
        slot.run()
    assert len({id(memory) for pair in run._places for memory in pair}) == 2 * 3
    for _, written in run._places:
        assert np.array_equal(written.read(), run._expected)


def test_what_the_kernel_before_wrote_does_not_count(
    engine: cf.Engine, monkeypatch: pytest.MonkeyPatch
) -> None:
    run_ = contest.Contest(SRC, DST, engine)
    run_.checked(RULES)
    nothing = cf.Reorder(D((0, 3), "f32"), D((0, 3), "f32"), engine)
    memory = cf.Memory(nothing.src, engine)

    def idle(*_: object, **__: object) -> Any:
        return lambda stream, *_: nothing(stream, memory, cf.Memory(nothing.dst, engine))

    monkeypatch.setattr(contest, "Reorder", idle)
    with pytest.raises(cf.DeviceError, match="the first at 0"):
        run_.checked(RULES)


def test_what_is_slower_than_the_rules_is_never_stored(
    engine: cf.Engine, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Whatever the search calls the best: here what is ten times slower, and the rules' own."""
    src, dst = D((4, 64, 56, 57), "f32", "bfyx"), D((4, 64, 56, 57), "f32", "byxf")
    monkeypatch.setattr("clformats.tuning.run.BAKED_GAIN", 1e9)
    verdict = run.contest(contest.Contest(src, dst, engine), [SLOW, RULES], QUICK)
    assert verdict is not None
    assert verdict.records == ()
    assert "not surely by 3%" in verdict.reasons[SLOW]
    assert set(verdict.times) == {RULES, SLOW, cf.Choices(baked=True)}


def test_a_contest_keeps_half_of_its_time_to_measure(
    engine: cf.Engine, monkeypatch: pytest.MonkeyPatch
) -> None:
    clock = [0.0]
    monkeypatch.setattr(contest, "monotonic", lambda: clock[0])
    monkeypatch.setattr("clformats.timing.monotonic", lambda: clock[0])
    run_ = contest.Contest(SRC, DST, engine)
    named = {f"{n}": ahead(n) for n in range(1, 9)}

    def slot(name: str, _: object) -> Slot:
        clock[0] += 1  # what building takes
        return Slot(name, lambda: clock.__setitem__(0, clock[0] + 0.01))

    monkeypatch.setattr(run_, "slot", slot)
    times = run_.times(named, replace(QUICK, rounds=10**9, seconds=math.inf), end=10)
    assert list(times) == ["default", "default, again", "1", "2", "3", "4"]
    assert 10 < clock[0] < 11
    # Too late: one is built nevertheless, but nothing is known of it.
    assert run_.times(named, QUICK, end=10) == {}
    assert clock[0] < 14
    assert run.contest(run_, list(named.values()), QUICK, end=0) is None


def test_what_was_not_measured_is_no_record(
    engine: cf.Engine, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A contestant that there was no time to build, a contest cut short, and no baked sizes."""
    fast = {"default": [1.0] * 9, "default, again": [1.0] * 9}
    answers: list[dict[str, list[float]]] = []
    monkeypatch.setattr(contest.Contest, "times", lambda *_: answers.pop(0))
    run_ = contest.Contest(SRC, DST, engine)
    finalists = [ahead(4), ahead(8)]
    answers[:] = [{}]
    assert run.contest(run_, finalists, QUICK) is None
    answers[:] = [fast | {str(ahead(4)): [0.5] * 9}, {}]
    assert run.contest(run_, finalists, QUICK) is None
    answers[:] = [fast | {str(ahead(4)): [0.5] * 9}, fast | {"best": [0.5] * 9}]
    verdict = run.contest(run_, finalists, QUICK)
    assert verdict is not None
    assert [r.choices for r in verdict.records] == [ahead(4)]
    assert "no time" in verdict.reasons[ahead(8)]


@pytest.mark.usefixtures("plans_for_cpus")
def test_what_is_faster_is_stored_with_all_times(
    engine: cf.Engine, folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def times(_run: object, named: dict[str, cf.Choices], *_: object) -> Any:
        speed = {name: 1.0 - 0.1 * k for k, name in enumerate(named, 1)}
        return {
            name: [t, t] for name, t in {"default": 1.0, "default, again": 1.0, **speed}.items()
        }

    monkeypatch.setattr(contest.Contest, "times", times)
    finalists = [ahead(4), ahead(8)]
    verdict = run.contest(contest.Contest(SRC, DST, engine), finalists, QUICK)
    assert verdict is not None
    records = [*verdict.records]
    told = verdict.measured([Tried(ahead(4), (1.5,)), Tried(ahead(2), (3.0,))], "too slow")
    assert [(t.choices, t.reason) for t in told] == [
        (ahead(4), "another finalist was faster"),
        (ahead(2), "too slow"),
        (RULES, ""),
        (ahead(8), ""),
        (replace(ahead(8), baked=True), ""),
    ]
    assert told[0].final == (0.9, 0.9)
    assert told[1].spread == Times(3.0, 3.0, 3.0, 1)
    assert [r.choices for r in records] == [ahead(8), replace(ahead(8), baked=True)]
    assert records[0].default == (1.0,) * 4
    assert records[0].tuned == (0.9, 0.9)
    assert records[1].tuned == (0.8, 0.8)
    assert records[0].key.sizes == ""
    assert records[1].key.sizes == f"{SRC} -> {DST}"
    run.store(Outcome(SRC, DST, tuple(records), 2, (), 1.0, "x"), folder)
    assert cf.Reorder(SRC, DST, engine).plan.choices.baked
    assert records_in(folder) == records


# --- tune -----------------------------------------------------------------------------------------


def test_tune_ends_in_time_and_says_what_it_did(engine: cf.Engine, folder: Path) -> None:
    seen: list[Any] = []
    nothing = SUMMED
    outcomes = cf.tune([(SRC, DST), nothing], engine=engine, time_limit=3, watch=seen.append)
    assert [o for o in seen if o] == outcomes
    assert seen.count(None) == outcomes[0].tried > 0
    assert outcomes[0].failures == ()
    measured = outcomes[0].measurements
    assert RULES in {m.choices for m in measured}
    recorded = {r.choices for r in outcomes[0].records} | {RULES}
    assert all(bool(m.reason) != (m.choices in recorded) for m in measured)
    assert outcomes[1].measurements == ()
    assert str(outcomes[1]).startswith(f"{nothing[0]} -> {nothing[1]}: nothing can be chosen here")
    assert all(r.gain > 1 for r in records_in(folder))


def test_tune_refuses_what_makes_no_sense(
    engine: cf.Engine, folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    wild = D((cf.RUNTIME_DIM, 17), "f32", "ab")
    for pairs in ([(SRC,)], [SRC], [(SRC, 3)], 3, [(wild, wild)], ["ab"]):
        with pytest.raises(cf.InvalidArgument):
            cf.tune(pairs, engine=engine)  # type: ignore[arg-type]
    with pytest.raises(cf.InvalidArgument, match="leave it out"):
        cf.tune([(SRC, DST)], DST, engine)
    monkeypatch.setenv("CLFORMATS_TUNED", "off")
    with pytest.raises(cf.Error, match="switched off"):
        cf.tune(SRC, DST, engine)


def test_records_that_cannot_be_stored_are_told(engine: cf.Engine, tmp_path: Path) -> None:
    (tmp_path / "file").touch()
    record = record_of(SRC, DST, SLOW, tuned.DeviceNames(*engine.names))
    outcome = Outcome(SRC, DST, (record,), 1, (), 1.0, "x")
    with pytest.raises(cf.Error, match=r"What was found: .*tile of 1"):
        run.store(outcome, tmp_path / "file")


def test_an_interrupted_run_keeps_what_it_found(folder: Path, device_name: str) -> None:
    """Killed in the midst of a second reorder: the first one's records and the file are whole."""
    code = """
import sys
import clformats as cf
from clformats.tuning import run
from clformats.tuning.outcome import Outcome
from tests.tuned_support import ahead, record_of
from clformats import records as tuned

def found(pair, engine, seconds, watch):
    record = record_of(*pair, ahead(8), tuned.DeviceNames(*engine.names))
    return Outcome(*pair, (record,), 1, (), 1.0, "faster")
real, done = run.tuned, []
def first_then_real(pair, engine, seconds, watch):
    done.append(pair)
    search = found if len(done) == 1 else real
    return search(pair, engine, seconds, watch)
run.tuned = first_then_real
D = cf.MemoryDesc
pairs = [(D((2, 17, 5, w), "f32", "bfyx"), D((2, 17, 5, w), "f32", "byxf")) for w in (19, 190)]
cf.tune(pairs, engine=sys.argv[1], time_limit=100, watch=lambda o: print(o or "kernel", flush=True))
"""
    process = subprocess.Popen(
        [sys.executable, "-c", code, device_name], stdout=subprocess.PIPE, text=True,
        env={**os.environ, "PYTHONPATH": str(ROOT)},
    )  # fmt: skip
    assert process.stdout is not None
    while "kernel" not in (line := process.stdout.readline()):
        assert line, "it ended by itself"
    process.send_signal(signal.SIGKILL)
    process.communicate()
    assert [r.src for r in records_in(folder)] == ["f32:bfyx:2x17x5x19"]
    assert not [r for file in folder.glob("*.jsonl") for r in tuned.read(file)[1]]


@pytest.mark.parametrize("seconds", [0, -1, math.nan])
def test_a_time_limit_is_positive(engine: cf.Engine, seconds: float) -> None:
    with pytest.raises(cf.InvalidArgument, match="expected seconds above 0"):
        cf.tune(SRC, DST, engine, time_limit=seconds)


def test_two_runs_at_once_lose_nothing(folder: Path, device_name: str) -> None:
    command = [sys.executable, "-m", "clformats", "tune", *WORDS, "--device", device_name]
    both = [
        subprocess.Popen(command, stdout=subprocess.PIPE, text=True,
                         env={**os.environ, "PYTHONPATH": str(ROOT)})
        for _ in range(2)
    ]  # fmt: skip
    said = [process.communicate()[0] for process in both]
    assert [process.returncode for process in both] == [0, 0]
    found = sum(text.count("times as fast") for text in said)
    assert len(records_in(folder)) == found


# --- Dask -----------------------------------------------------------------------------------------


def test_jobs_on_workers_are_merged_here(folder: Path, device_name: str) -> None:
    distributed = pytest.importorskip("distributed", reason="pip install 'clformats[dask]'")
    pairs = [(D((2, 17, 5, w), "f32", "bfyx"), D((2, 17, 5, w), "f32", "byxf")) for w in (19, 23)]
    seen: list[Any] = []
    with distributed.Client(
        n_workers=1, threads_per_worker=1, processes=False, dashboard_address=None
    ) as client:
        outcomes = cf.tune(
            pairs, engine=device_name, time_limit=1, client=client, watch=seen.append
        )
        with pytest.raises(cf.InvalidArgument, match="name the workers' device"):
            cf.tune(pairs, engine=cf.Engine(device_name), client=client)
    assert [(o.src, o.dst) for o in outcomes] == pairs
    assert sorted(seen, key=lambda o: str(o.src)) == outcomes
    assert len(records_in(folder)) == sum(len(o.records) for o in outcomes)


def test_outcomes_travel_between_processes() -> None:
    import pickle

    outcome = Outcome(SRC, DST, (record_of(SRC, DST),), 1, ("no",), 1.0, "x")
    assert pickle.loads(pickle.dumps(outcome)) == outcome  # noqa: S301  # what we made ourselves


# --- records --------------------------------------------------------------------------------------


@pytest.mark.usefixtures("plans_for_cpus")
def test_old_records_are_measured_again(
    engine: cf.Engine, folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    device = tuned.DeviceNames(*engine.names)
    path = tuned.path_of(device, folder)
    good = record_of(D((2, 37, 5, 131), "f32", "bfyx"), D((2, 37, 5, 131), "f32", "byxf"),
                     ahead(8), device, engine.traits)  # fmt: skip
    old = record_of(SRC, DST, SLOW, device, kernels="older")
    worse = record_of(*HURTING[1], SLOW, device, kernels="older")
    for record in (old, good, worse):
        tuned.add(path, record)
    with path.open("a") as file:
        file.write("garbage\n")

    def times(run: contest.Contest, named: dict[str, cf.Choices], *_: object) -> Any:
        t = 0.5 if run._case.src == SRC else 1.1
        return {"default": [1.0], "default, again": [1.0], **{key: [t] for key in named}}

    monkeypatch.setattr(contest.Contest, "times", times)
    assert revalidate(engine) == (1, 2)
    records, rejected = tuned.read(path)
    assert not rejected
    assert [(r.src, r.gain) for r in records] == [(good.src, good.gain), (old.src, 2.0)]
    if engine.traits.is_cpu:  # others have no lanes to choose
        assert cf.Reorder(SRC, DST, engine).plan.choices == SLOW
    assert revalidate(engine) == (0, 0)
    assert revalidate(engine, everything=True) == (1, 2)


@pytest.mark.usefixtures("plans_for_cpus")
def test_a_schedule_that_covers_nothing_is_not_measured_again(
    engine: cf.Engine, folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """What would be measured is the plan by the rules: here it would win."""
    device = tuned.DeviceNames(*engine.names)
    pair = D((2, 3, 5, 131), "f32", "bfyx"), D((2, 3, 5, 131), "f32", "byxf")
    tuned.add(tuned.path_of(device, folder), record_of(*pair, ahead(8), device, engine.traits))
    times = {"default": [1.0], "default, again": [1.0], "best": [0.5]}
    monkeypatch.setattr(contest.Contest, "times", lambda *_: times)
    assert revalidate(engine) == (0, 1)
    assert records_in(folder) == []


def test_revalidating_needs_no_file(engine: cf.Engine, folder: Path) -> None:
    assert revalidate(engine) == (0, 0)
    assert not folder.exists()


def test_merging_adds_what_is_newer(folder: Path, tmp_path: Path) -> None:
    other = tmp_path / "other.jsonl"
    older, newer = (record_of(date=f"2026-01-0{n}T00:00:00+00:00") for n in (1, 2))
    gpu = record_of(device=tuned.DeviceNames("gpu", "Other", "1"))
    oldest = record_of(choices=ahead(4), date="2025-01-01T00:00:00+00:00")
    for record in (newer, gpu, oldest):
        tuned.add(other, record)
    with other.open("a") as file:
        file.write("garbage\n")
    tuned.add(tuned.path_of(newer.device, folder), older)
    merged = merge([other])
    assert merged.added == (newer, gpu)
    assert (merged.known, len(merged.rejected)) == (1, 1)
    assert len(list(folder.glob("*.jsonl"))) == 2
    again = merge([tmp_path])  # a folder: all its files
    assert (again.added, again.known) == ((), 3)
    (tmp_path / "empty").mkdir()
    with pytest.raises(cf.Error, match="no file there ends in"):
        merge([tmp_path / "empty"])
    with pytest.raises(cf.Error, match="it is no file"):
        merge([tmp_path / "nowhere"])


def test_t4_is_what_its_schema_says(kernel_tuner: Any) -> None:
    jsonschema = pytest.importorskip("jsonschema")
    found = t4([record_of(), record_of(choices=cf.Choices(baked=True))])
    schema = Path(kernel_tuner.__file__).parent / "schema/T4/1.0.0/results-schema.json"
    jsonschema.validate(found, json.loads(schema.read_text()))
    assert len(found["results"]) == 4
    assert found["results"][1]["configuration"] == {"schedule": ahead(8).schedule}
    assert found["results"][1]["times"]["runtimes"] == pytest.approx([1.0, 1.2, 1.1])


# --- the command line -----------------------------------------------------------------------------


def test_the_command_tunes_and_shows(
    folder: Path, device_name: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert cli.main(["tune", *WORDS, "--device", device_name, "--dtype", "f32,f16"]) == 0
    said = capsys.readouterr().out
    assert said.startswith("f32:bfyx:2x17x5x19 -> f16:byxf:2x17x5x19: ")
    engine = cf.Engine(device_name)
    device = tuned.DeviceNames(*engine.names)
    path = tuned.path_of(device, folder)
    tuned.add(path, record_of(SRC, DST, SLOW, device, engine.traits))
    tuned.add(path, record_of(*HURTING[1], SLOW, device, kernels="older"))
    with path.open("a") as file:
        file.write("garbage\n")
    assert cli.main(["tune", "show", "--all", "--device", device_name]) == 0
    said = capsys.readouterr().out
    assert str(path) in said
    assert f"{SLOW}, 1.91 times as fast" in said
    assert "not used: of other kernels" in said
    assert "no JSON" in said
    assert "    rules    2100 us (2050 to 2300, 3 runs)" in said


def test_the_command_exports_and_merges(
    folder: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert cli.main(["tune", "show"]) == 0
    assert "no records in" in capsys.readouterr().out
    other = tmp_path / "other.jsonl"
    tuned.add(other, record_of())
    assert cli.main(["tune", "merge", str(other)]) == 0
    assert capsys.readouterr().out == (
        f"1 record added in {folder}\n  1 not used here: of a device that is not here\n"
    )
    assert cli.main(["tune", "merge", str(other)]) == 0
    assert "0 records added" in (said := capsys.readouterr().out)
    assert "1 left out: the same or a newer one is there" in said
    (tmp_path / "garbage.jsonl").write_text("garbage\n")
    assert cli.main(["tune", "merge", str(tmp_path / "garbage.jsonl")]) == 1
    assert "nothing was added" in capsys.readouterr().err
    target = tmp_path / "t4.json"
    assert cli.main(["tune", "export", "--t4", str(target)]) == 0
    assert len(json.loads(target.read_text())["results"]) == 2
    capsys.readouterr()
    assert cli.main(["tune", "export", "--t4", "-"]) == 0
    assert json.loads(capsys.readouterr().out)["schema_version"] == "1.0.0"


@pytest.mark.parametrize(
    ("options", "found"),
    [
        ([], 3),
        (["--shape", "2,17,5,19"], 2),
        (["--shape", "2x17x5x19", "--shape", "2,37,11,19"], 3),
        (["--shape", "17,2,5,19"], 0),
        (["--dtype", "f32"], 2),
        (["--dtype", "f32,f16"], 1),
        (["--dtype", "f16,f32"], 0),
        (["--device", "OTHER"], 1),
        (["--device", "of-a-test", "--dtype", "f32", "--shape", "2,17,5,19"], 0),
        (["--device", "nowhere"], 0),
    ],
)
def test_some_records_alone(
    options: list[str], found: int, folder: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """By sizes, element types and part of a device's name, also of one that is not there."""
    half = D(SRC.dims, "f16", "byxf")
    gpu = tuned.DeviceNames("gpu", "Other", "1")
    for record in (record_of(), record_of(SRC, half), record_of(SRC, DST, device=gpu)):
        tuned.add(tuned.path_of(record.device, folder), record)
    assert cli.main(["tune", "show", *options]) == 0
    said = capsys.readouterr().out
    assert said.count("times as fast") == found
    assert ("no such records" in said) == (found == 0)
    assert cli.main(["tune", "export", "--t4", "-", *options]) == 0
    assert len(json.loads(capsys.readouterr().out)["results"]) == 2 * found


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (["show", "--time-limit", "3"], "tune show does not take --time-limit; its options are: "),
        (["show", "--shape", "2,a"], "as the shape: expected whole numbers"),
        (["show", "--dtype", "f33"], "f33"),
        (["export", "--t4", "-", "--all"], "does not take --all"),
        (["merge", "a", "--shape", "2,3"], "does not take --shape; its options are: none"),
        (["merge", "a", "--dtype", "f32", "--device", "cpu"], "--device, --dtype"),
        (["revalidate", "--shape", "2,3"], "does not take --shape; its options are: --device"),
        (["bfyx", "byxf", "--shape", "2,3,4,5", "--t4", "x"], "a search does not take --t4"),
        (["bfyx"], "expected two formats"),
        (["bfyx", "byxf"], "add --shape"),
        (["bfyx", "byxf", "--shape", "2,3"], "bfyx"),
        (["bfyx", "foo", "--shape", "2,3,4,5"], "foo"),
        (["f32:bfyx:2x3x4x5", "byxf"], "not one of each"),
        (
            ["f32:bfyx:2x3x4x5", "f32:byxf:2x3x4x5", "--dtype", "f16"],
            "leave out --shape and --dtype",
        ),
        (["bfyx", "byxf", "--shape", "2,3,4,5", "--time-limit", "0"], "expected seconds"),
        (["bfyx", "byxf", "--shape", "2,3,4,5", "--time-limit", "soon"], "expected seconds"),
        (["bfyx", "byxf", "--shape", "2,3,4,5", "--dtype", "f32,f16,s8"], "one type or two"),
        (["bfyx", "byxf", "--shape", "2,*,4,5"], "sizes known at execution"),
        (["show", "all"], "no further words"),
        (["merge"], "merge FILE"),
        (["merge", "/nowhere.jsonl"], "it is no file"),
        (["export"], "-o FILE"),
        (["export", "--t4", "/nowhere/x"], "cannot write"),
    ],
)
def test_the_command_refuses_in_one_line(
    words: list[str], said: str, folder: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert cli.main(["tune", *words]) == 1
    error = capsys.readouterr().err
    assert error.startswith("clformats: ")
    assert error.count("\n") == 1
    assert said in error
    assert not folder.exists()


@pytest.mark.parametrize(
    "words",
    [["show"], ["bfyx", "byxf", "--shape", "2,3,4,5"], ["revalidate"], ["export", "--t4", "-"]],
)
def test_a_file_is_no_folder_for_records(
    words: list[str], folder: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """This is said before a search, not behind it."""
    folder.touch()
    assert cli.main(["tune", *words]) == 1
    assert "which is no folder" in capsys.readouterr().err


# --- warm_up --------------------------------------------------------------------------------------


def test_warm_up_builds_what_a_reorder_then_finds(device_name: str) -> None:
    engine = cf.Engine(device_name)
    pairs = [(SRC, DST), (D((0, 3), "f32"), D((0, 3), "f32", "ba"))]
    began = time.perf_counter()
    seconds = cf.warm_up(pairs, engine)
    assert len(seconds) == 2
    assert 0 < sum(seconds) <= time.perf_counter() - began
    built = engine.programs_built
    assert built
    cf.Reorder(SRC, DST, engine)
    other = [D((2, 17, 5, 21), "f32", f) for f in ("bfyx", "byxf")]
    cf.Reorder(other[0], other[1], engine)
    assert engine.programs_built == built


def test_warm_up_takes_quantised_tensors_and_texts(device_name: str) -> None:
    engine, (src, dst) = cf.Engine(device_name), ("q8_0:gguf:8x64", "f16:ba:8x64")
    assert len(cf.warm_up([(src, dst)], engine)) == 1
    built = engine.programs_built
    assert built
    cf.Reorder(cf.MemoryDesc((8, 64), "q8_0", "gguf"), D((8, 64), "f16", "ba"), engine)
    assert engine.programs_built == built


def test_quantised_tensors_have_nothing_to_tune(engine: cf.Engine) -> None:
    src, dst = "q8_0:gguf:8x64", "f16:ba:8x64"
    asked: Any
    for asked in ((src, dst), ([(src, dst)], None)):
        with pytest.raises(cf.Unsupported, match="no search space") as error:
            cf.tune(asked[0], asked[1], engine)
        assert error.value.code == "TUNING"


def test_warm_up_says_which_pair_is_none(engine: cf.Engine) -> None:
    wild = D((cf.RUNTIME_DIM, 17), "f32", "ab")
    for pairs in ([SRC], [(SRC, 3)], 3, [(wild, wild)]):
        with pytest.raises(cf.InvalidArgument):
            cf.warm_up(pairs, engine)  # type: ignore[arg-type]


def test_a_record_is_refused_in_words() -> None:
    with pytest.raises(InvalidRecord, match="no JSON"):
        tuned.TuningRecord.parse("{")
