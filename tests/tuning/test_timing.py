"""How everything is timed: rounds in changing order, warm runs, and what is surely faster."""

from __future__ import annotations

import os
import time
from collections.abc import Callable

import numpy as np
import pytest

from clformats import timing
from clformats.timing import Race, Settings, Slot, race, repeated, sampled, turns


def test_turns_give_every_run_every_place() -> None:
    """The first of each run warms up, and does not count."""
    ran: list[str] = []

    def run(name: str) -> Callable[[], float]:
        def seconds() -> float:
            ran.append(name)
            return float(len(ran))

        return seconds

    found = turns({name: run(name) for name in "abc"}, 6)
    assert ran[:3] == ["a", "b", "c"]
    rounds = ["".join(ran[k : k + 3]) for k in range(3, 21, 3)]
    assert sorted(rounds) == ["abc", "acb", "bac", "bca", "cab", "cba"]
    assert sorted(s for times in found.values() for s in times) == list(range(4, 22))
    ran.clear()
    turns({name: run(name) for name in "abc"}, 2, in_order=True)
    assert ran == [*"abcabcabc"]


@pytest.mark.parametrize(("before", "after"), [(None, "1"), ("0", "0")])
def test_pinned_threads_leave_the_last_word_to_the_environment(
    before: str | None, after: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(os, "environ", {} if before is None else {"POCL_AFFINITY": before})
    timing.pin_threads()
    assert os.environ["POCL_AFFINITY"] == after


def test_a_run_is_repeated_until_time_or_number_is_up(monkeypatch: pytest.MonkeyPatch) -> None:
    clock = [0.0]
    monkeypatch.setattr(timing, "monotonic", lambda: clock[0])

    def run() -> float:
        clock[0] += 1
        return 1.0

    assert len(repeated(run, 5)) == 5
    assert len(repeated(run, 2, 7)) == 7
    assert len(repeated(run, 2, 1)) == 2
    assert len(repeated(run, 2, 100, most=4)) == 4


@pytest.mark.parametrize("judge", [Race.of, Race.unpaired])
def test_the_same_times_are_not_faster(judge: Callable[..., Race]) -> None:
    rng = np.random.default_rng(3)
    one, other = (list(rng.lognormal(0, 0.3, 40)) for _ in range(2))
    for a, b in ((one, other), (other, one)):
        found = judge(a, b)
        assert not found.is_faster
        assert found.low < found.ratio < found.high
    half = judge([t / 2 for t in one], other)
    assert half.is_faster
    assert half.is_faster_by(1.2)
    assert not half.is_faster_by(2.5)


def test_pairs_are_compared_pair_by_pair() -> None:
    """What slows both of a pair says nothing; without pairs it is noise."""
    slow = [1.0, 10.0] * 8
    fast = [0.9 * s for s in slow]
    assert Race.of(fast, slow).is_faster
    assert not Race.unpaired(fast, slow).is_faster
    with pytest.raises(ValueError, match="got 15 and 16 seconds"):
        Race.of(fast[1:], slow)


def test_rounds_run_every_slot_in_changing_order() -> None:
    ran: list[str] = []
    slots = [Slot(name, lambda name=name: ran.append(name)) for name in "abc"]  # type: ignore[misc]
    settings = Settings(rounds=20, warm=0, runs=2)
    times = race(slots, settings, np.random.default_rng(0))
    assert {t.count for t in times.values()} == {40}
    visits = ran[::3]  # one untimed run, two timed
    rounds = {tuple(visits[k : k + 3]) for k in range(0, 60, 3)}
    assert all(set(order) == set("abc") for order in rounds)
    assert len(rounds) > 3


def test_a_slow_slot_leaves_after_the_first_rounds() -> None:
    slots = [Slot("slow", lambda: time.sleep(0.02)), Slot("fast", lambda: None)]
    settings = Settings(rounds=8, warm=0, runs=1, seconds=0.1)
    times = race(slots, settings, np.random.default_rng(0))
    assert times["slow"].count == 3
    assert times["fast"].count >= times["slow"].count


def test_nothing_begins_when_the_time_is_up() -> None:
    began: list[float] = []

    def run() -> None:
        began.append(time.monotonic())
        time.sleep(0.01)

    slots, settings = [Slot("a", run), Slot("b", run)], Settings(rounds=10**6, warm=0, runs=1)
    rng = np.random.default_rng(0)
    end = time.monotonic() + 1
    samples = sampled(slots, settings, rng, end)
    assert sum(t > end for t in began) <= 2  # of one visit: a run to warm up and a timed one
    assert all(len(times) >= 3 for times in samples.values())
    assert sampled(slots, settings, rng, time.monotonic() + 0.03) == {}
    assert sampled(slots, settings, rng, time.monotonic()) == {}


def test_a_slot_that_repeats_is_timed_per_repeat() -> None:
    slot = Slot("often", lambda: time.sleep(0.02), batch=10)
    times = race([slot], Settings(rounds=1, warm=0, runs=1), np.random.default_rng(0))
    assert 0.002 <= times["often"].median < 0.01
